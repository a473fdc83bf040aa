// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc fit: from a model and data to a model that has learnt. In: --data, and the options of training. Out: in the
// folder of --artifacts the best epoch as model.onnx, model.safetensors, model.c, model.h, and model.json, by which
// `burncc predict` reads other data (fit_memory.c); on standard output
//
//   epochs=3 best_epoch=3 valid_loss=0.0412 valid_accuracy=0.9865 seconds=14.2
//
// The way: what the model takes (fit_model.c) says how the data is read, what the data has says the loss and the sizes
// that the model leaves open; then the training code in this process (module.c), a learner over it (runtime/learn), and
// the compiler once more for each file.
#define _DEFAULT_SOURCE
#include "fit.h"
#include "fit_ranks.h"

#include "runtime/learn/watchers.h"
#include "runtime/threads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { USUAL_BATCH = 32, USUAL_EPOCHS = 10, MOST_FIGURES = 40 };

typedef struct Fit {
    Arena *a;
    CommandOptions *c;
    Options *o;                                         // of the training code
    FitModel model;
    burn_source data, apart;                            // apart: of --valid
    const burn_field *target;
    FitMemory memory;
    const char *metrics, *folder;
    int64_t batch, accumulate;
    Module *module;
    void *params;                                       // at the start, then the best
    burn_threads threads;
    FitRanks ranks;                                     // of mpirun; one: this process alone
} Fit;

// ---------------------------------------------------------------- data

static bool open_data(Fit *f) {
    burn_said said = { "" };
    burn_asked asked = f->model.asked;
    const struct FitOptions *how = &f->c->fit;
    if (fit_failed(burn_source_open(f->c->data.at[0], &asked, &f->data, &said), &said)) return false;
    f->memory = fit_remember(f->a, &f->data);
    if (how->valid) {
        asked.like = f->data.train->fields[0].class_count || burn_data_field(f->data.train, "label") >= 0
            ? f->data.train : NULL;
        if (!fit_source(f->a, &f->memory, &asked, how->valid, &f->apart)) return false;
    } else if (fit_failed(burn_source_split(&f->data, how->split, (uint64_t)f->o->seed, &said), &said)) {
        return false;
    }
    for (int i = 0; i < f->memory.column_count && !strstr(f->c->data.at[0], "target="); i++)
        if (f->memory.columns[i].is_target)
            diag_note(NULL, "it learns to predict '%s', the table's last column; target=COLUMN in --data takes another",
                f->memory.columns[i].name);
    return (f->target = fit_target(&f->model, f->data.train)) != NULL;
}

// The model again, where the data says how large it is.
static bool adapt(Fit *f) {
    if (!fit_settings(f->a, &f->c->compile, &f->model, f->data.train)) return true;
    f->o = arena_copy(f->a, &f->c->compile, sizeof f->c->compile);
    return fit_model(f->a, f->o, &f->model);
}

static burn_dataset *valid_data(const Fit *f) {
    return f->apart.train ? f->apart.valid ? f->apart.valid : f->apart.train : f->data.valid;
}

// What lets a model of a fixed batch compute more: its first input's sizes, the batch's with a name.
static const char *open_batch(const Fit *f) {
    const Value *in = f->model.graph->inputs.at[0];
    Text t;
    if (f->model.batch || !in->type.rank || !in->name) return "";
    text_init(&t, f->a);
    text_printf(&t, "; --shape %s=batch", in->name);
    for (int i = 1; i < in->type.rank; i++) text_printf(&t, ",%s", dim_text(f->a, f->model.graph, in->type.dim[i]));
    text_printf(&t, " may let it compute more");
    return t.at;
}

// How many items are computed at once, and how often before a step, which takes `wanted` of them from all ranks: a run
// that fewer go on with computes the same batches, more of them each.
static void choose_batch(Fit *f) {
    int64_t wanted = f->c->fit.batch ? f->c->fit.batch : USUAL_BATCH, items = f->data.train->count, given = 0;
    int64_t ranks = f->ranks.of.count, kept = f->c->fit.resume ? burn_learner_kept(f->folder) : 0;
    if (wanted > items) wanted = items;
    for (int i = 0; i < f->o->dims.n; i++)              // what --dim says of it
        if (f->model.batch && !strcmp(f->o->dims.at[i].name, f->model.batch)) given = f->o->dims.at[i].hi;
    if (given && !f->c->fit.batch) wanted = given;
    int64_t each = kept && wanted % (kept * ranks) == 0 ? kept : wanted >= ranks ? wanted / ranks : 1;
    f->batch = given ? given : f->model.batch ? each : f->model.fixed;
    f->accumulate = wanted > f->batch * ranks ? wanted / (f->batch * ranks) : 1;
    if (f->accumulate > 1)
        diag_note(NULL, "the model computes %lld item%s at a time; the gradients of %lld are summed for a step%s",
            (long long)f->batch, f->batch == 1 ? "" : "s", (long long)(f->batch * f->accumulate * ranks),
            open_batch(f));
    else if (ranks > 1)
        diag_note(NULL, "%lld ranks compute %lld items each for a step", (long long)ranks, (long long)f->batch);
}

// ---------------------------------------------------------------- the module

static bool begin_params(Fit *f) {
    const burn_training *t = f->module->training;
    int error = 0;
    f->params = module_memory(t->params_bytes);
    if (!f->params) error = BURN_ENOMEM;
    else if (t->params_init) error = t->params_init(f->params);
    else error = t->params_load(f->params, f->module->initial);
    if (error) diag_error_as(EXIT_MEMORY, NULL, "the initial parameters cannot be had");
    return !error;
}

// Rank 0 alone compiles.
static bool build(Fit *f) {
    bool leads = fit_ranks_leads(&f->ranks);
    if (!f->o->optimizer) f->o->optimizer = "adam";
    fit_bind(f->a, f->o, &f->model, f->data.train, f->batch);
    if (leads) f->module = module_build(f->o);
    if (!fit_ranks_agree(&f->ranks, !leads || (f->module && begin_params(f)))) return false;
    if (!fit_ranks_module(&f->ranks, &f->module, &f->params)) return false;
    return f->o->threads < 2 || !burn_threads_open(&f->threads, f->o->threads, 0)
        || (diag_error(NULL, "%d threads cannot be had", f->o->threads), false);
}

// ---------------------------------------------------------------- who looks on: figures of the best epoch are kept

typedef struct Figures { int64_t epoch; int n; burn_figure at[MOST_FIGURES]; } Figures;
typedef struct Keeper { bool has_valid; Figures now, best; } Keeper;

static void on_epoch(void *own, const burn_progress *p) {
    Keeper *k = own;
    if ((p->split == BURN_VALIDATION) != k->has_valid) return;
    k->now = (Figures){ .epoch = p->epoch, .n = p->figure_count < MOST_FIGURES ? p->figure_count : MOST_FIGURES };
    memcpy(k->now.at, p->figures, (size_t)k->now.n * sizeof *p->figures);
}

static void on_checkpoint(void *own, const char *path, int64_t epoch, int best) {
    Keeper *k = own;
    (void)path;
    if (best && epoch == k->now.epoch) k->best = k->now;
}

// ---------------------------------------------------------------- learning

typedef struct Hypers { int n; const char *names[32]; double values[32]; } Hypers;

static void set_hyper_value(Hypers *h, const burn_hyper *known, int n, const char *name, double value) {
    for (int i = 0; i < n && h->n < (int)COUNT(h->names); i++)
        if (!strcmp(known[i].name, name)) {
            h->names[h->n] = known[i].name;
            h->values[h->n++] = value;
            return;
        }
}

// The optimizer's usual learning rate is the schedule's, too, whose steps are all there are; but noam's rate has
// another meaning.
static void choose_hypers(const Fit *f, Hypers *h, int64_t epochs) {
    const burn_training *t = f->module->training;
    int64_t batches = f->data.train->count / f->batch, per_step = f->accumulate * f->ranks.of.count;
    int64_t steps = epochs * ((batches + per_step - 1) / per_step);
    double rate = f->c->fit.lr;
    for (int i = 0; i < t->hyper_count && rate < 0; i++)
        if (!strcmp(t->hypers[i].name, "learning_rate")) rate = t->hypers[i].usual;
    bool own = t->schedule && strstr(t->schedule, "noam") && f->c->fit.lr < 0;
    if (f->c->fit.lr >= 0) set_hyper_value(h, t->hypers, t->hyper_count, "learning_rate", rate);
    if (!own) set_hyper_value(h, t->schedule_hypers, t->schedule_count, "learning_rate", rate);
    set_hyper_value(h, t->schedule_hypers, t->schedule_count, "steps", (double)steps);
    for (int i = 0; i < f->c->fit.hypers.n && h->n < (int)COUNT(h->names); i++) {
        h->names[h->n] = f->c->fit.hypers.at[i].name;   // the learner says what there is, and the last one counts
        h->values[h->n++] = strtod(f->c->fit.hypers.at[i].value, NULL);
    }
}

enum { WATCHERS = 4 };

// Who looks on: *n of them, all but the first to be closed. Progress goes to standard error.
static bool open_watchers(const Fit *f, Keeper *k, burn_watcher at[WATCHERS], int *n) {
    at[(*n)++] = (burn_watcher){ .own = k, .epoch = on_epoch, .checkpoint = on_checkpoint };
    bool plain = f->o->quiet || f->c->fit.plain;
    int error = plain ? burn_watch_lines(stderr, f->o->quiet, &at[1]) : burn_watch_screen(stderr, &at[1]);
    *n += !error;
    if (!error) error = burn_watch_logs(&at[1], &at[2]);
    *n += !error;
    if (!error) error = burn_watch_report(&at[1], &at[3]);
    *n += !error;
    if (error) diag_error_as(EXIT_MEMORY, NULL, "not enough memory");
    return !error;
}

// A best epoch of a run that this one resumed has no figures here.
static int print_line(const Fit *f, const Keeper *k, const burn_outcome *outcome) {
    Text t;
    text_init(&t, f->a);
    text_printf(&t, "epochs=%lld best_epoch=%lld", (long long)outcome->epochs, (long long)outcome->best_epoch);
    for (int i = 0; i < k->best.n && k->best.epoch == outcome->best_epoch; i++)
        text_printf(&t, " %s_%s=%.6g", k->has_valid ? "valid" : "train", k->best.at[i].name, k->best.at[i].mean);
    text_printf(&t, " seconds=%.1f\n", outcome->seconds);
    return print_text(&t, 0);
}

static bool run_learner(const Fit *f, const burn_learning *how, burn_outcome *outcome) {
    burn_said said = { "" };
    burn_learner *learner;
    if (fit_failed(burn_learner_open(how, &learner, &said), &said)) return false;
    int error = burn_learner_run(learner, outcome, &said);
    if (!error) error = burn_learner_best(learner, f->params, &said);
    outcome->reason = NULL;                             // the learner's
    burn_learner_close(learner);
    return !fit_failed(error, &said);
}

static burn_learning learning(const Fit *f, const Words *metrics) {
    const struct FitOptions *how = &f->c->fit;
    return (burn_learning){ .training = f->module->training, .weights = f->module->weights.data, .params = f->params,
        .train = f->data.train, .valid = valid_data(f), .epochs = how->epochs ? how->epochs : USUAL_EPOCHS,
        .batch = f->batch, .accumulate = f->accumulate, .threads = f->threads.run ? &f->threads : NULL,
        .seed = (uint64_t)f->o->seed, .workers = how->workers, .skip_bad = how->skip_bad,
        .train_metrics = how->train_metrics,
        .metric_count = metrics->n, .metrics = metrics->at, .class_axis = (int)f->o->class_axis,
        .best_by = how->best_by, .patience = how->patience, .artifacts = f->folder, .keep = how->keep,
        .checkpoint_steps = how->checkpoint_steps, .resume = how->resume, .interrupts = 1, .ranks = &f->ranks.of,
        .blame = f->module->programs ? fit_blame : NULL, .blame_own = f->module };
}

static bool learn(Fit *f) {
    Hypers h = { 0 };
    Words metrics = fit_words(f->a, f->metrics);
    burn_watcher watchers[WATCHERS];
    burn_learning l = learning(f, &metrics);
    choose_hypers(f, &h, l.epochs);
    l.hyper_count = h.n;
    l.hyper_names = h.names;
    l.hyper_values = h.values;
    l.watchers = watchers;
    progress_stage(NULL);                               // the terminal is the watchers'
    Keeper k = { .has_valid = l.valid != NULL };
    burn_outcome outcome = { 0 };
    bool leads = fit_ranks_leads(&f->ranks), ok = !leads || open_watchers(f, &k, watchers, &l.watcher_count);
    ok = ok && run_learner(f, &l, &outcome);
    for (int i = 1; i < l.watcher_count; i++) watchers[i].close(watchers[i].own);
    return ok && (!leads || !print_line(f, &k, &outcome));
}

// ---------------------------------------------------------------- what comes of it

// What a program around the compiled model reads other data by; examples/infer/learnt.c does.
static void say_how(const Fit *f, Options *o, const FitMemory *m) {
    Text t;
    text_init(&t, f->a);
    for (int i = 0; m->classes && i < m->class_count; i++) text_printf(&t, "%s%s", i ? "\n" : "", m->classes[i]);
    const char *facts[] = { "burncc.source", m->kind, "burncc.settings", m->settings, "burncc.classes",
        t.n ? t.at : "" };
    for (size_t i = 0; i < COUNT(facts); i++) VEC_PUSH(f->a, o->metadata, facts[i]);
}

// The compiler once more, without training, with what was learnt over the weights that were given.
static bool write_as(const Fit *f, const char *suffix, Written written, const char *learnt, const FitMemory *m) {
    CommandOptions *c = arena_copy(f->a, f->c, sizeof *f->c);
    Options *o = &c->compile;
    o->train = false;
    o->learnt = true;
    o->written = written;
    o->output = arena_printf(f->a, "%s/model%s", f->folder, suffix);
    o->name = "model";
    if (written == WRITTEN_ONNX) o->embed_limit = INT32_MAX;
    if (!written) say_how(f, o, m);
    if (!written) fit_bind(f->a, o, &f->model, f->data.train, 1);
    const char **given = o->weights.at;
    int n = o->weights.n;
    o->weights.at = NULL;
    o->weights.n = o->weights.cap = 0;
    for (int i = 0; i < n; i++) VEC_PUSH(f->a, o->weights, given[i]);
    VEC_PUSH(f->a, o->weights, learnt);
    o->strict = false;
    Text said;                                          // notes: the training code's compilation had them
    text_init(&said, f->a);
    diag_capture(&said);
    int status = command_compile(f->a, c);
    diag_capture(NULL);
    if (status) diag_replay(&said);
    return !status;
}

static bool write_results(Fit *f) {
    const burn_training *t = f->module->training;
    const char *learnt = arena_printf(f->a, "%s/learnt.safetensors", f->module->dir);
    if (t->params_save(f->params, learnt)) {
        diag_error_as(EXIT_IO, NULL, "%s cannot be written", learnt);
        return false;
    }
    FitMemory m = f->memory;
    progress_stage("writing %s", f->folder);
    m.class_count = f->target->class_count;
    m.logits = m.class_count > 0;
    m.classes = f->target->classes;
    m.binary = m.logits && f->model.classes == 1;
    m.loss_count = f->o->losses.n;
    m.losses = f->o->losses.at;
    return write_as(f, ".safetensors", WRITTEN_SAFETENSORS, learnt, &m)
        && write_as(f, ".onnx", WRITTEN_ONNX, learnt, &m)
        && write_as(f, f->o->machine.backend->extension, WRITTEN_CODE, learnt, &m)
        && fit_memory_write(f->a, arena_printf(f->a, "%s/model.json", f->folder), &m);
}

static bool make_folder(Fit *f) {
    f->folder = f->c->fit.artifacts ? f->c->fit.artifacts : arena_printf(f->a, "%s-run", f->o->name);
    if (!mkdir(f->folder, 0777) || errno == EEXIST) return true;
    diag_error_as(EXIT_IO, NULL, "%s: the folder cannot be made: %s", f->folder, strerror(errno));
    return false;
}

static void end(Fit *f) {
    burn_threads_close(&f->threads);
    if (f->module) module_free(f->module);
    free(f->params);
    burn_source_close(&f->data);
    burn_source_close(&f->apart);
    fit_ranks_close(&f->ranks);
}

static bool prepare(Fit *f) {
    if (!fit_model(f->a, f->o, &f->model) || !open_data(f) || !adapt(f)) return false;
    if (!fit_loss(f->a, f->o, &f->model, f->target, &f->metrics) || !make_folder(f)) return false;
    choose_batch(f);
    return true;
}

int command_fit(Arena *a, CommandOptions *c) {
    Fit f = { .a = a, .c = c, .o = arena_copy(a, &c->compile, sizeof c->compile), .metrics = c->fit.metrics };
    if (fit_ranks_open(a, &f.ranks)) {
        bool ok = fit_ranks_agree(&f.ranks, prepare(&f)) && fit_ranks_agree(&f.ranks, build(&f));
        ok = ok && fit_ranks_agree(&f.ranks, learn(&f));
        fit_ranks_agree(&f.ranks, ok && (!fit_ranks_leads(&f.ranks) || write_results(&f)));
    }
    end(&f);
    return diag_status();
}
