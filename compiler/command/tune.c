// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc tune: measures what else the template kernels of a model could be on this machine, and writes what is
// fastest as records.
//
// In: a model and a time. Out: FILE.records, whose lines compile, verify, run and bench read with --records. The
// idea: a kernel of the plan is planned again and again with one record each (schedule/cpu/candidates.c says which),
// its forms become one small C file (codegen/c/alone.c), compiled as the model would be and timed in a child process
// (tune_time.c). First algorithms and register tiles, then blocks around the best as long as that gains.
// Kernels that take most of the model's time come first, and the file is written anew after each, so that stopping
// loses nothing. Of a GPU's kernels tune_gpu.c measures the forms.
#define _POSIX_C_SOURCE 200809L
#include "tune.h"
#include "profile.h"
#include "schedule/cpu/templates.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const double tune_tie = 0.02;
enum { MAX_ROUNDS_OF_BLOCKS = 4 };                      // and of tiles one
static const double shortest = 0.1, longest = 1.5;      // seconds of timing a stage

double tune_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---------------------------------------------------------------- which kernels
static void add_case(Tuner *t, const Plan *p, const Kernel *k) {
    // ns, as in parts.c
    double rate = 60, near = 20,
           expected = k->flops / rate > (double)k->traffic / near ? k->flops / rate : (double)k->traffic / near;
    for (int i = 0; i < t->cases.n; i++) {
        Case *c = &t->cases.at[i];
        if (strcmp(c->kernel->signature, k->signature)) continue;
        c->times++;
        c->expected += expected;
        return;
    }
    VEC_PUSH(t->arena, t->cases, (Case){ p, k, 1, expected });
}

static void collect(Tuner *t, const Plan *p) {
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        if (k->signature) add_case(t, p, k);
        for (int j = 0; j < kernel_bodies(k); j++) collect(t, k->region.bodies[j]);
    }
}

static int compare_cases(const void *x, const void *y) {
    const Case *a = x, *b = y;
    return (a->expected < b->expected) - (a->expected > b->expected);
}

// ---------------------------------------------------------------- one kernel
// The kernel as this choice makes it; NULL when the choice does not fit.
static Kernel *replan(Arena *a, const Tuner *t, const Case *c, const char *choice) {
    Records one;
    records_init(&one, a);
    records_add(
        &one, a, (Record){ .place = "", .machine = t->machine, .kernel = c->kernel->signature, .choice = choice });
    Options *o = arena_copy(a, t->options, sizeof *o);
    Kernel *k = arena_copy(a, c->kernel, sizeof *k);
    Text said;
    o->records = &one;
    k->holes.at = NULL;
    k->holes.n = k->holes.cap = 0;
    k->packed = NULL;
    k->scratch_bytes = 0;
    text_init(&said, a);
    DiagHold held = diag_hold(&said);
    template_plan(a, c->plan->graph, k, o);
    return diag_release(held) && k->tuned ? k : NULL;
}

// Milliseconds of each choice, HUGE_VAL for those that cannot be; the first is the cost model's. false: nothing could
// be measured.
static bool measure(Arena *a, const Tuner *t, const Case *c, const Choices *choices, double seconds, double *ms) {
    Contest contest = { .cold_bytes = t->cold_bytes, .seconds = seconds };
    int at[MAX_FORMS];
    double measured[MAX_FORMS];
    for (int i = 0; i < choices->n; i++) {
        Kernel *k = contest.n < MAX_FORMS ? replan(a, t, c, choices->at[i]) : NULL;
        ms[i] = HUGE_VAL;
        if (!k) continue;
        contest.kernels[contest.n] = k;
        at[contest.n++] = i;
    }
    const char *folder = folder_make();
    if (!folder) return false;
    const char *source = arena_printf(a, "%s/alone.c", folder), *object = arena_printf(a, "%s/alone.so", folder),
               *why = NULL;
    void *library = NULL;
    if (codegen_alone(a, t->options, c->plan, contest.n, contest.kernels, source, &contest.alone)
        && build_object(a, t->options, NULL, source, object) && !(library = dlopen(object, RTLD_NOW | RTLD_LOCAL)))
        diag_error_as(EXIT_IO, NULL, "cannot load the compiled kernels: %s", dlerror());
    if (library) contest.functions = (AloneFn *const *)dlsym(library, "burncc_alone");
    if (contest.functions && (why = contest_run(a, &contest, measured)))
        diag_warn(WARN_tuning, NULL, "%s: cannot be measured: %s", c->kernel->signature, why);
    for (int i = 0; i < contest.n && contest.functions && !why; i++) ms[at[i]] = measured[i];
    if (library) dlclose(library);
    folder_remove(folder);
    return contest.functions && !why && !diag_errors();
}

static int fastest(const double *ms, int n, int than) {
    for (int i = 0; i < n; i++)
        if (ms[i] < ms[than]) than = i;
    return than;
}

static bool contains(const Choices *c, const char *choice) {
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->at[i], choice)) return true;
    return false;
}

// The candidates around `best` that were not measured yet, after the model's choice and `best` itself; false: there
// are none.
static bool line_up(Arena *a, const Tuner *t, const Case *c, const char *best, Choices *seen, Choices *out) {
    Choices near = { 0 };
    const char *model = c->kernel->choice;
    VEC_PUSH(a, *out, model);
    if (best && strcmp(best, model)) VEC_PUSH(a, *out, best);
    int before = out->n;
    template_candidates(a, c->plan->graph, c->kernel, t->options, best, &near);
    for (int i = 0; i < near.n; i++) {
        if (out->n == MAX_FORMS || contains(seen, near.at[i]) || !strcmp(near.at[i], model)) continue;
        VEC_PUSH(a, *out, near.at[i]);
        VEC_PUSH(a, *seen, near.at[i]);
    }
    return out->n > before;
}

void tune_report(Arena *a, const Case *c, const Choices *choices, const double *ms) {
    Text out;
    text_init(&out, a);
    for (int i = 0; i < choices->n; i++)
        if (ms[i] < HUGE_VAL)
            text_printf(&out, "%-10.4g %+6.1f %%  %s | %s%s\n", ms[i], 100 * (ms[i] / ms[0] - 1), c->kernel->signature,
                choices->at[i], i ? "" : " (the cost model's)");
    print_text(&out, EXIT_OK);
}

void tune_note(Tuner *t, const Case *c, const char *best, double best_ms, double model_ms) {
    records_add(&t->records, t->arena,
        (Record){ .machine = t->machine,
            .kernel = c->kernel->signature,
            .choice = arena_strdup(t->arena, best),
            .ms = best_ms,
            .model_ms = model_ms });
}

void tune_keep(Tuner *t, const Case *c, const char *best, double best_ms, double model_ms) {
    tune_note(t, c, best, best_ms, model_ms);
    t->model_ms += model_ms * c->times;
    t->tuned_ms += best_ms * c->times;
    t->measured++;
    progress_line("  %.4g ms, the cost model's %.4g ms (%+.1f %%): %s as %s", best_ms, model_ms,
        100 * (best_ms / model_ms - 1), c->kernel->signature, best);
}

// Its share of the time left: rounds may begin for half as long again, and a quarter of it goes on timing each.
static bool tune_case(Tuner *t, const Case *c, double share) {
    Arena *a = arena_new();
    const char *best = NULL, *before = "";
    double ms[MAX_FORMS], best_ms = 0, model_ms = 0;
    double begun = tune_now(), seconds = share / 4 < shortest ? shortest : share / 4 > longest ? longest : share / 4;
    Choices seen = { 0 };
    for (int round = 0; round <= MAX_ROUNDS_OF_BLOCKS
         && (!round || (tune_now() < begun + 1.5 * share && tune_now() < t->deadline && strcmp(best, before)));
         round++) {
        Choices choices = { 0 };
        if (round) before = best;
        if (!line_up(a, t, c, best, &seen, &choices) && best) break;
        if (!measure(a, t, c, &choices, seconds, ms)) break;
        if (t->report) tune_report(a, c, &choices, ms);
        int least = fastest(ms, choices.n, 0);
        if (ms[least] > ms[0] * (1 - tune_tie)) least = 0;
        best = choices.at[least];
        best_ms = ms[least];
        model_ms = ms[0];
    }
    if (best) tune_keep(t, c, best, best_ms, model_ms);
    arena_free(a);
    return !diag_errors();
}

// ---------------------------------------------------------------- all of them
bool tune_write(const Tuner *t) {
    Arena *a = arena_new();
    Text text;
    text_init(&text, a);
    records_print(&t->records, &text);
    bool ok = text_write(a, t->options->output, &text);
    arena_free(a);
    return ok;
}

static bool usable(const Options *o, const Plan *p) {
    if (o->machine.n_parts || !o->machine.backend->choices)
        diag_error_as(EXIT_USAGE, NULL,
            "tune measures code for one kind of processor, this one; leave out --target %s", o->target);
    else if (o->machine.arch && strcmp(o->machine.arch, target_host()))
        diag_error_as(EXIT_USAGE, NULL, "%s code cannot run here; tune there", o->machine.arch);
    return p && !diag_errors();
}

static void tune_all(Tuner *t, double seconds) {
    int known = 0, n = t->cases.n;
    for (int i = 0; i < n; i++)
        known += records_find(&t->records, t->arena, t->machine, t->cases.at[i].kernel->signature) != NULL;
    if (known)
        progress_line("%d of %d kernels have records in %s already", known, n, t->options->output);
    double start = tune_now();
    int left = n - known;
    t->deadline = start + seconds;
    for (int i = 0; i < n && tune_now() < t->deadline; i++) {
        const Case *c = &t->cases.at[i];
        if (records_find(&t->records, t->arena, t->machine, c->kernel->signature)) continue;
        double share = (t->deadline - tune_now()) / left--;
        progress_stage("kernel %d of %d, %.0f s left", i + 1, n, t->deadline - tune_now());
        if (!tune_case(t, c, share) || !tune_write(t)) return;
    }
}

int command_tune(Arena *a, CommandOptions *c) {
    Options *o = &c->compile;
    Tuner t = { .arena = a, .options = o, .report = c->report, .machine = tune_machine(a, &o->machine) };
    const bool gpu = o->machine.backend->descriptor == DESCRIPTOR_VULKAN;
    const char *device, *why = gpu ? gpu_device(a, c->timeout, &device) : NULL;
    if (why) diag_error(NULL, "tune measures on a GPU, but %s", why);
    if (why) return diag_status();
    if (gpu) t.machine = tune_device(a, device);
    if (!o->output) o->output = arena_printf(a, "%s.records", o->name);
    records_init(&t.records, a);
    if (!access(o->output, F_OK) && !records_read(&t.records, a, o->output)) return diag_status();
    Programs *programs = compile_programs(a, o);
    if (programs && programs->at[0].function)
        diag_error_as(EXIT_USAGE, NULL, "tune: the model has several functions; choose one with --function");
    if (diag_errors()) return diag_status();
    Plan *p = programs ? programs->at[0].plan : NULL;
    if (!usable(o, p)) return diag_status();
    collect(&t, p);
    if (!t.cases.n)
        diag_note(NULL, "nothing to measure: its kernels are loops, calls, or products too small for a choice");
    if (t.cases.n) qsort(t.cases.at, (size_t)t.cases.n, sizeof *t.cases.at, compare_cases);
    size_t most = 4 * (o->machine.l2 ? o->machine.l2 : (size_t)1 << 20);
    t.cold_bytes = (size_t)p->weight_bytes < most ? (size_t)p->weight_bytes : most;
    if (gpu) tune_gpu(&t, c);
    else tune_all(&t, c->seconds);
    if (diag_errors() || !tune_write(&t)) return diag_status();
    Text out;
    text_init(&out, a);
    text_printf(&out, "kernels=%d measured=%d model_ms=%.4g tuned_ms=%.4g records=%s\n", t.cases.n, t.measured,
        t.model_ms, t.tuned_ms, o->output);
    print_text(&out, EXIT_OK);
    return diag_status();
}
