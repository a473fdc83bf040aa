/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Epochs, and what watchers are told of them. In: an opened learner. Out: its parameters after the last epoch, and the
 * outcome. What watchers wish is obeyed between two steps, or two batches of validation. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "data_own.h"
#include "learner_own.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double learner_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- what is told */

static int64_t batches_of(const burn_learner *l, burn_split split)
{
    return l->loaders[split] ? burn_loader_batches(l->loaders[split]) : 0;
}

/* A batch takes so long, as far as is known: one of validation, before the first, a third of one of training. */
static double batch_seconds(const burn_learner *l, burn_split split)
{
    const Pace *p = &l->pace[split];
    if (p->batches) return p->seconds / (double)p->batches;
    return split == BURN_VALIDATION ? batch_seconds(l, BURN_TRAINING) / 3 : NAN;
}

static double seconds_left(const burn_learner *l, burn_split split)
{
    double epochs = (double)(l->how.epochs - l->epoch - 1), left = 0;
    for (int s = 0; s < 2; s++) {
        double batches = (double)batches_of(l, (burn_split)s);
        double now = s == (int)split ? batches - (double)l->batch : s > (int)split ? batches : 0;
        if (batches > 0) left += (epochs * batches + now) * batch_seconds(l, (burn_split)s);
    }
    return left;
}

int64_t pace_skipped(const burn_learner *l, burn_split split)
{
    const Pace *p = &l->pace[split];
    return burn_loader_skipped(l->loaders[split]) - p->skipped_before + p->refused + p->others;
}

static burn_progress progress_of(const burn_learner *l, burn_split split)
{
    const Pace *p = &l->pace[split];
    const Figures *f = &l->figures[split];
    double now = learner_clock(), took = now - p->began;
    return (burn_progress){
        .split = split, .epoch = l->epoch + 1, .epochs = l->how.epochs, .batch = l->batch,
        .batches = batches_of(l, split), .step = l->step, .items = p->items,
        .skipped = pace_skipped(l, split),
        .seconds = now - l->began, .seconds_left = seconds_left(l, split),
        .computing = took > 0 ? 1 - p->waited / took : 1, .figure_count = f->count, .figures = f->of };
}

void learner_told(burn_learner *l, burn_split split, int64_t items)
{
    Pace *p = &l->pace[split];
    double now = learner_clock();
    p->items += items;
    p->seconds += now - p->last;
    p->batches++;
    p->last = now;
    figures_ask(&l->figures[split], 0);
    const burn_progress progress = progress_of(l, split);
    for (int i = 0; i < l->how.watcher_count; i++) {
        const burn_watcher *w = &l->how.watchers[i];
        if (w->batch) w->batch(w->own, &progress);
        burn_wish wish = w->wish ? w->wish(w->own) : BURN_GO_ON;
        if (wish > l->asked) l->asked = wish;
    }
    if (l->how.interrupts && signals_came() && l->asked < BURN_STOP) l->asked = BURN_STOP;
    if (l->ranks) return;                                 /* they agree on wishes when they meet */
    if (l->asked > l->wish) l->wish = l->asked;
    l->asked = BURN_GO_ON;
}

static void tell_epoch(burn_learner *l, burn_split split)
{
    figures_ask(&l->figures[split], 1);
    figures_rank(&l->figures[split], l->epoch + 1);
    const burn_progress progress = progress_of(l, split);
    for (int i = 0; i < l->how.watcher_count; i++)
        if (l->how.watchers[i].epoch) l->how.watchers[i].epoch(l->how.watchers[i].own, &progress);
}

void learner_say(burn_learner *l, burn_level level, const char *format, ...)
{
    burn_said said;
    va_list a;
    va_start(a, format);
    vsnprintf(said.text, sizeof said.text, format, a);
    va_end(a);
    for (int i = 0; i < l->how.watcher_count; i++)
        if (l->how.watchers[i].say) l->how.watchers[i].say(l->how.watchers[i].own, level, said.text);
}

/* Of the first epoch that took long enough to tell. */
static void say_waits(burn_learner *l)
{
    double took = learner_clock() - l->pace[BURN_TRAINING].began, waited = l->pace[BURN_TRAINING].waited;
    if (l->is_told_waits || took < 1) return;
    l->is_told_waits = 1;
    if (waited > 0.1 * took)
        learner_say(l, BURN_NOTE, "%.0f %% of the time goes by waiting for data, with %d worker%s that get%s it ahead",
                    100 * waited / took, l->how.workers, l->how.workers == 1 ? "" : "s",
                    l->how.workers == 1 ? "s" : "");
}

static void set(Settings *s, const char *name, const char *format, ...)
{
    va_list a;
    char *text = s->texts[s->own_count];
    if (s->own_count == SETTINGS) return;
    va_start(a, format);
    vsnprintf(text, SETTING_BYTES, format, a);
    va_end(a);
    s->pairs[s->count][0] = name;
    s->pairs[s->count++][1] = text;
    s->own_count++;
}

/* The configuration as texts: the caller's, then the learner's. */
static int make_settings(burn_learner *l)
{
    const burn_learning *how = &l->how;
    Settings *s = &l->settings;
    free(s->pairs);
    s->count = s->own_count = 0;
    s->pairs = calloc((size_t)how->setting_count + SETTINGS, sizeof *s->pairs);
    if (!s->pairs) return BURN_ENOMEM;
    for (; s->count < how->setting_count; s->count++)
        for (int k = 0; k < 2; k++) s->pairs[s->count][k] = how->settings[s->count][k];
    set(s, "module", "%s", l->t->name);
    set(s, "loss", "%s", l->t->loss);
    set(s, "optimizer", "%s", l->t->optimizer);
    if (l->t->schedule) set(s, "schedule", "%s", l->t->schedule);
    for (int i = 0; i < l->t->hyper_count; i++)
        if (strcmp(l->t->hypers[i].name, "step") && !(l->t->schedule && !strcmp(l->t->hypers[i].name, "learning_rate")))
            set(s, l->t->hypers[i].name, "%g", (double)l->hypers[i]);
    for (int i = 0; i < l->t->schedule_count; i++)
        set(s, l->t->schedule_hypers[i].name, "%g", (double)l->schedule[i]);
    set(s, "epochs", "%lld", (long long)how->epochs);
    set(s, "batch", "%lld", (long long)how->batch);
    if (how->accumulate > 1) set(s, "accumulate", "%lld", (long long)how->accumulate);
    set(s, "items", "%lld", (long long)how->train->count);
    if (how->valid) set(s, "validation items", "%lld", (long long)how->valid->count);
    set(s, "seed", "%llu", (unsigned long long)how->seed);
    set(s, "workers", "%d", how->workers);
    return BURN_OK;
}

static int64_t numbers_learnt(const burn_training *t)
{
    int64_t count = 0;
    for (int i = 0; i < t->param_count; i++)
        if (t->params[i].role == BURN_TRAINED)
            count += (int64_t)(t->params[i].tensor.bytes / dtype_bytes(t->params[i].tensor.dtype));
    return count;
}

static void tell_begin(burn_learner *l)
{
    const burn_learning *how = &l->how;
    const burn_task task = {
        .name = l->t->name, .epochs = how->epochs, .parameters = numbers_learnt(l->t),
        .train_items = how->train->count, .valid_items = how->valid ? how->valid->count : 0, .batch = how->batch,
        .train = how->train, .valid = how->valid, .artifacts = how->artifacts, .resumed_epoch = l->resumed_epoch,
        .setting_count = l->settings.count,
        .settings = (const char *const (*)[2])l->settings.pairs };
    for (int i = 0; i < how->watcher_count; i++)
        if (how->watchers[i].begin) how->watchers[i].begin(how->watchers[i].own, &task);
}

/* ---- epochs */

static int begin_split(burn_learner *l, burn_split split)
{
    Pace *p = &l->pace[split];
    p->began = p->last = learner_clock();
    p->waited = 0;
    p->items = p->refused = p->others = 0;
    p->skipped_before = burn_loader_skipped(l->loaders[split]);
    return figures_begin(&l->figures[split]);
}

/* Puts back what an epoch in whose middle the learner was resumed had brought so far. */
static void go_on(burn_learner *l)
{
    const Half *half = &l->half;
    figures_go_on(&l->figures[BURN_TRAINING], half->loss, half->losses, half->rate);
    l->pace[BURN_TRAINING].items = half->items;
    l->pace[BURN_TRAINING].others = half->skipped;
}

/* A step is whole: as far as this a checkpoint goes. */
static void mark(burn_learner *l)
{
    const Figures *f = &l->figures[BURN_TRAINING];
    l->half = (Half){ l->batch, l->pace[BURN_TRAINING].items, pace_skipped(l, BURN_TRAINING), f->loss_sum,
                      f->loss_items, f->of[1].mean };
}

/* Lets the loader end its epoch, so that the next batch is the first of the next one. */
static int end_split(burn_learner *l, burn_split split, burn_said *said)
{
    burn_batch none;
    int got = learner_next(l, split, &none, said);
    return got < 0 ? got : BURN_OK;
}

static int is_stopped(const burn_learner *l)
{
    return l->wish >= BURN_STOP;
}

/* What is wished and due between two steps. */
static int obey(burn_learner *l, int64_t step_before, burn_said *said)
{
    int64_t every = l->how.checkpoint_steps;
    int is_due = l->wish == BURN_SAVE || l->wish == BURN_STOP
        || (every && l->step != step_before && l->step % every == 0);
    if (l->wish == BURN_SAVE) l->wish = BURN_GO_ON;
    return is_due ? keep_save(l, said) : BURN_OK;
}

static int train(burn_learner *l, burn_said *said)
{
    int64_t batches = batches_of(l, BURN_TRAINING), from = l->half.batches;
    int error = begin_split(l, BURN_TRAINING);
    if (from) go_on(l);
    l->batch = from;
    while (!error && !is_stopped(l) && l->batch < batches) {
        int64_t before = l->step;
        error = learner_step(l, said);
        if (!error) mark(l);
        if (!error) error = obey(l, before, said);
    }
    if (error || is_stopped(l)) return error;
    if (from < batches) error = end_split(l, BURN_TRAINING, said);
    if (!error) tell_epoch(l, BURN_TRAINING);
    if (!error) say_waits(l);
    return error;
}

static int validate(burn_learner *l, burn_said *said)
{
    int error = begin_split(l, BURN_VALIDATION);
    l->batch = 0;
    while (!error && !is_stopped(l) && l->batch < batches_of(l, BURN_VALIDATION)) {
        burn_batch batch;
        int got = learner_next(l, BURN_VALIDATION, &batch, said);
        if (got < 0) return got;
        error = learner_look(l, &l->feeds[BURN_VALIDATION], &batch, &l->figures[BURN_VALIDATION], 1, said);
        l->batch++;
        if (!error) learner_told(l, BURN_VALIDATION, l->lanes[0].items);
        if (!error) error = obey(l, l->step, said);
    }
    if (l->ranks) error = ranks_agree(l, error, said);
    if (l->ranks && !error) error = obey(l, l->step, said);
    if (error || is_stopped(l)) return error;
    error = end_split(l, BURN_VALIDATION, said);
    if (!error) tell_epoch(l, BURN_VALIDATION);
    return error;
}

static int learn(burn_learner *l, burn_said *said)
{
    int error = BURN_OK;
    while (l->epoch < l->how.epochs && !keep_is_over(l)) {
        error = train(l, said);
        if (!error && !is_stopped(l) && l->how.valid) error = validate(l, said);
        if (error || is_stopped(l)) return error;
        l->epoch++;
        l->half = (Half){ 0 };
        if ((error = keep_epoch(l, said))) return error;
    }
    return BURN_OK;
}

/* Why it ended, where nothing went wrong. */
static void say_why(burn_learner *l)
{
    const Keep *k = &l->keep;
    if (is_stopped(l)) data_said(&l->reason, 0, l->how.interrupts && signals_came() ? "interrupted" : "stopped");
    else if (l->epoch >= l->how.epochs) data_said(&l->reason, 0, "epochs done");
    else data_said(&l->reason, 0, "stopped early: no better %s since epoch %lld", k->figures->of[k->figure].name,
                   (long long)k->patient_epoch);
}

int burn_learner_run(burn_learner *l, burn_outcome *outcome, burn_said *said)
{
    Signals signals = { 0 };
    if (!l) return BURN_EINVAL;
    l->began = learner_clock();
    l->asked = l->wish = BURN_GO_ON;
    int error = !make_settings(l) && (!l->how.interrupts || signals_take(&signals)) ? BURN_OK
        : data_said(&l->reason, BURN_ENOMEM, "no memory");
    if (!error) error = keep_begin(l, &l->reason);
    tell_begin(l);
    if (*l->keep.note.text) learner_say(l, l->keep.note_level, "%s", l->keep.note.text);
    if (!error) error = learn(l, &l->reason);
    if (error == BURN_EDEVICE && l->ranks) keep_lost(l);
    if (!error) say_why(l);
    else learner_say(l, BURN_ERROR, "%s", l->reason.text);
    if (signals.before) signals_give_back(&signals);
    const burn_outcome end = { error, l->reason.text, l->epoch, l->keep.figures->of[l->keep.figure].best_epoch, l->step,
                               learner_clock() - l->began };
    for (int i = 0; i < l->how.watcher_count; i++)
        if (l->how.watchers[i].finish) l->how.watchers[i].finish(l->how.watchers[i].own, &end);
    if (outcome) *outcome = end;
    if (error && said) *said = l->reason;
    return error;
}

/* Of other data: a split of its own, without watchers. */
int burn_learner_evaluate(burn_learner *l, burn_dataset *data, burn_progress *figures, burn_said *said)
{
    if (!l || !data || !figures || !l->t->evaluate) return BURN_EINVAL;
    Figures *f = &l->figures[BURN_VALIDATION];
    Feeds feeds = { 0 };
    burn_loader *loader = NULL;
    const burn_loading loading = { .batch = l->how.batch, .workers = l->how.workers, .skip_bad = l->how.skip_bad };
    int error = feeds_open(l, &feeds, data, said), got = 1;
    if (!error) error = burn_loader_open(data, &loading, &loader, said);
    if (!error) error = figures_begin(f);
    *figures = (burn_progress){ .split = BURN_VALIDATION, .epoch = l->epoch, .epochs = l->how.epochs, .step = l->step,
                                .seconds_left = NAN, .computing = NAN, .figure_count = f->count, .figures = f->of };
    while (!error && got > 0) {
        burn_batch batch;
        got = burn_loader_next(loader, &batch, said);
        error = got < 0 ? got : got ? learner_look(l, &feeds, &batch, f, 0, said) : BURN_OK;
        if (got > 0) figures->items += batch.items;
    }
    if (!error) {
        figures_ask(f, 1);
        figures->batch = figures->batches = burn_loader_batches(loader);
        figures->skipped = burn_loader_skipped(loader);
    }
    burn_loader_close(loader);
    feeds_close(l, &feeds);
    return error;
}
