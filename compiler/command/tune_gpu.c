// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc tune on a GPU: which blocks of its products are fastest, on the device's own clock.
//
// In: the kernels that have choices. Out: records. The idea: the whole model is built again and again, each time with
// another choice for every kernel, and runs kernel by kernel between timestamps (profile_gpu.c); so all kernels are
// measured at once, each on what the kernel before it has left in the caches. A program whose outputs are not those of
// the cost model's counts for nothing. At last both that one and the best of each are measured once more, since clocks
// wander. The file is written after each round, so that stopping loses nothing.
#include "tune.h"
#include "profile.h"

#include <math.h>
#include <string.h>

enum { MOST_TURNS = 3 };                                // around the best so far
static const double shortest = 0.05, longest = 1;       // seconds of timing a program
static const double rounds_planned = 40;
// 1e-3 of the largest element, as for processors (tune_time.c), and with 16 bits between kernels 2e-2
static const double ulps_of_floats = 8192, ulps_of_halves = 16;

// A kernel's way through its choices; known: it has a record already, which it keeps
typedef struct Race {
    const Case *of;
    bool known;
    Choices choices; int next, turns;
    const char *best, *trying;                          // NULL: the cost model's
    double best_ms, model_ms;
    bool measured;                                      // anything but the cost model's choice
} Race;

typedef struct Track {
    Tuner *tuner;
    CommandOptions *command;
    Arena *arena;
    const Graph *signature;
    Inputs in;
    int n; Race *races;
    double seconds;                                     // of timing a program
} Track;

// A program and what it computed; ms: of each race's kernel in it
typedef struct Lap { BuildCache cache; const Built *built; Inputs bound; Tensor **out; double *ms; } Lap;

// ---------------------------------------------------------------- choices
static void line_up(Track *k, Race *r, const char *best) {
    Choices more = { 0 };
    gpu_candidates(k->arena, r->of->kernel, best, &more);
    for (int i = 0; i < more.n; i++) {
        bool seen = !strcmp(more.at[i], r->of->kernel->choice);
        for (int j = 0; j < r->choices.n && !seen; j++) seen = !strcmp(more.at[i], r->choices.at[j]);
        if (!seen) VEC_PUSH(k->arena, r->choices, more.at[i]);
    }
}

// false: it has none left
static bool take_next(Track *k, Race *r) {
    r->trying = NULL;
    while (!r->known && r->next == r->choices.n && r->turns < MOST_TURNS) {
        r->turns++;
        line_up(k, r, r->best ? r->best : r->of->kernel->choice);
    }
    if (r->known || r->next == r->choices.n) return false;
    r->trying = r->choices.at[r->next++];
    return true;
}

// What is known, and for the others what `choice_of` says; NULL leaves it to the cost model.
static Options *options_with(Arena *a, const Track *k, const char *(*choice_of)(const Race *r)) {
    const Tuner *t = k->tuner;
    Options *o = arena_copy(a, t->options, sizeof *o);
    o->records = NEW(a, Records);
    records_init(o->records, a);
    o->records->machine = t->machine;
    for (int i = 0; i < k->n; i++) {
        const char *signature = k->races[i].of->kernel->signature;
        const char *choice = k->races[i].known ? records_find(&t->records, a, t->machine, signature)->choice :
                                                 choice_of(&k->races[i]);
        if (choice)
            records_add(
                o->records, a, (Record){ .place = "", .machine = t->machine, .kernel = signature, .choice = choice });
    }
    return o;
}

static const char *models(const Race *r) {
    (void)r;
    return NULL;
}
static const char *tried(const Race *r) { return r->trying ? r->trying : r->best; }
static const char *best(const Race *r) { return r->best; }

// ---------------------------------------------------------------- one program
// Times of its kernels; NULL, or what went wrong.
static const char *time_lap(Arena *a, const Track *k, Lap *lap) {
    CommandOptions *c = arena_copy(a, k->command, sizeof *c);
    Profile *p = NULL;
    c->seconds = k->seconds / (1 - PLAIN_SHARE);
    const char *why = profile_gpu(a, lap->built, &lap->bound, c, false, &p);
    for (int i = 0; i < k->n && !why; i++) {
        int times = 0;
        lap->ms[i] = 0;
        for (int j = 0; j < p->n; j++) {
            const char *signature = p->at[j].kernel->signature;
            if (!signature || strcmp(signature, k->races[i].of->kernel->signature)) continue;
            lap->ms[i] += p->at[j].ms;
            times++;
        }
        lap->ms[i] = times ? lap->ms[i] / times : HUGE_VAL;
    }
    return why;
}

// false with diagnostics; *why: the program does not run
static bool run_lap(Arena *a, const Track *k, const char *(*choice_of)(const Race *r), Lap *lap, const char **why) {
    const char *frozen;
    *lap = (Lap){ .cache = { .arena = a }, .ms = NEW_ARRAY(a, double, k->n + 1) };
    lap->built = build_for_inputs(&lap->cache, options_with(a, k, choice_of), k->signature, &k->in, &frozen);
    if (!lap->built) return false;
    if (!lap->built->gpu) {
        diag_error_as(EXIT_USAGE, NULL,
            "tune measures GPU programs that are one list of kernels; this one has control on the host");
        return false;
    }
    lap->bound = inputs_random(a, lap->built, k->signature, &k->in);
    lap->out = NEW_ARRAY(a, Tensor *, lap->built->plan->graph->outputs.n + 1);
    *why = sandbox_run(a, lap->built, &lap->bound, lap->out, k->command->timeout);
    if (!*why) *why = time_lap(a, k, lap);
    return true;
}

// NULL: the second computes what the first does; else what is wrong with it
static const char *compare_laps(Arena *a, const Track *k, const Lap *x, const Lap *y) {
    const char *precision = k->tuner->options->precision, *fault = NULL;
    const Tolerance allowed = { 0, 1e-7, precision ? ulps_of_halves : ulps_of_floats, precision, "the cost model's" };
    for (int i = 0; i < x->built->plan->graph->outputs.n && !fault; i++)
        fault = compare_tensors(a, y->out[i], x->out[i], allowed).fault;
    return fault ? arena_printf(a, "it gives other results: %s", fault) : NULL;
}

// ---------------------------------------------------------------- all of them
static void settle(Track *k, Arena *a, const Lap *lap) {
    for (int i = 0; i < k->n; i++) {
        Race *r = &k->races[i];
        if (!r->trying || lap->ms[i] == HUGE_VAL) continue;
        const char *of_both[] = { r->of->kernel->choice, r->trying };
        const double ms[] = { r->model_ms, lap->ms[i] };
        Choices two = { 0 };
        for (int j = 0; j < 2; j++) VEC_PUSH(a, two, of_both[j]);
        if (k->tuner->report) tune_report(a, r->of, &two, ms);
        r->measured = true;
        if (lap->ms[i] < r->best_ms && lap->ms[i] < r->model_ms * (1 - tune_tie)) {
            r->best = r->trying;
            r->best_ms = lap->ms[i];
        }
        tune_note(k->tuner, r->of, r->best ? r->best : r->of->kernel->choice, r->best_ms, r->model_ms);
    }
}

// The choices that are being tried; `alone`: of this kernel. false with diagnostics; *failed: the program does not run,
// or is wrong
static bool try_choices(Track *k, const Lap *first, const Race *alone, bool *failed) {
    Arena *a = arena_new();
    Lap lap;
    const char *why = NULL;
    bool ok = run_lap(a, k, tried, &lap, &why);
    if (ok && !why) why = compare_laps(a, k, first, &lap);
    *failed = ok && why;
    if (*failed && alone)
        diag_warn(WARN_tuning, NULL, "%s as '%s' is not taken: %s", alone->of->kernel->signature, alone->trying, why);
    else if (ok && !why) settle(k, a, &lap);
    build_cache_free(&lap.cache);
    arena_free(a);
    return ok && tune_write(k->tuner);
}

// One more choice for each, and if they fail together, one by one, so that the others count. false with diagnostics
static bool next_round(Track *k, const Lap *first) {
    const char **trying = NEW_ARRAY(k->arena, const char *, k->n + 1);
    bool failed;
    int n = 0, last = 0;
    for (int i = 0; i < k->n; i++) {
        trying[i] = k->races[i].trying;
        n += trying[i] != NULL;
        if (trying[i]) last = i;
    }
    bool ok = try_choices(k, first, n == 1 ? &k->races[last] : NULL, &failed);
    for (int i = 0; i < k->n && ok && failed && n > 1; i++) {
        bool ignored;
        for (int j = 0; j < k->n; j++) k->races[j].trying = j == i ? trying[j] : NULL;
        if (trying[i]) ok = try_choices(k, first, &k->races[i], &ignored);
    }
    return ok;
}

// What was best is held against the cost model's once more, and counts only if it still is.
static bool last_round(Track *k, Lap *first) {
    Arena *a = arena_new();
    Lap lap;
    const char *why = NULL;
    const bool ok = run_lap(a, k, best, &lap, &why);
    if (ok && !why) why = time_lap(a, k, first);
    if (ok && !why) why = compare_laps(a, k, first, &lap);
    if (ok && why) diag_warn(WARN_tuning, NULL, "the program of the best blocks is not taken: %s", why);
    for (int i = 0; i < k->n && ok; i++) {
        Race *r = &k->races[i];
        if (!r->measured) continue;
        if (!why) r->model_ms = fmin(r->model_ms, first->ms[i]);
        const bool better = r->best && !why && lap.ms[i] < r->model_ms * (1 - tune_tie);
        tune_keep(k->tuner, r->of, better ? r->best : r->of->kernel->choice, better ? lap.ms[i] : r->model_ms,
            r->model_ms);
    }
    build_cache_free(&lap.cache);
    arena_free(a);
    return ok;
}

static bool race(Track *k, Lap *first) {
    Tuner *t = k->tuner;
    const char *why = NULL;
    if (!run_lap(k->arena, k, models, first, &why)) return false;
    if (why) diag_error(NULL, "the model's code failed: %s", why);
    if (why) return false;
    for (int i = 0; i < k->n; i++) {
        Race *r = &k->races[i];
        r->best_ms = r->model_ms = first->ms[i];
        if (r->model_ms > 0 && r->model_ms < HUGE_VAL) continue;
        r->next = r->choices.n;                         // too short for the clock: there is nothing to choose by
        r->turns = MOST_TURNS;
    }
    for (int round = 0; !round || tune_now() < t->deadline; round++) {
        int left = 0;
        for (int i = 0; i < k->n; i++) left += take_next(k, &k->races[i]);
        if (!left) break;
        progress_stage("blocks %d of %d kernels, %.0f s left", round + 1, left, fmax(0, t->deadline - tune_now()));
        if (!next_round(k, first)) return false;
    }
    return last_round(k, first);
}

bool tune_gpu(Tuner *t, CommandOptions *c) {
    Arena *a = t->arena;
    Track k = { .tuner = t, .command = c, .arena = a, .n = t->cases.n };
    Lap first = { 0 };
    int known = 0;
    t->deadline = tune_now() + c->seconds;
    k.seconds = fmin(longest, fmax(shortest, c->seconds / rounds_planned));
    k.races = NEW_ARRAY(a, Race, k.n + 1);
    for (int i = 0; i < k.n; i++) {
        Race *r = &k.races[i];
        *r = (Race){ .of = &t->cases.at[i] };
        r->known = records_find(&t->records, a, t->machine, r->of->kernel->signature) != NULL;
        known += r->known;
        if (!r->known) line_up(&k, r, NULL);
    }
    if (known) progress_line("%d of %d kernels have records in %s already", known, k.n, t->options->output);
    if (known == k.n || c->seconds <= 0) return true;
    if (!(k.signature = inputs_read(a, c, false, &k.in))) return false;
    const bool ok = race(&k, &first);
    build_cache_free(&first.cache);
    return ok;
}
