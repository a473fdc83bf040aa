// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc bench --train: builds the training code and times a step, gradients and update. In: --input files, or random
// values; targets that the loss takes. Out: one line,
//   median_ms=1.9 min_ms=1.88 gradients_ms=1.7 update_ms=0.2 gflops=33.1 workspace_bytes=65536 params_bytes=4096
//       state_bytes=8192 runs=1050
// with the medians of a step and of its two calls. The learning rate is 0, so that steps are alike however many there
// are; other hyper-parameters have their usual values.
#define _DEFAULT_SOURCE
#include "module.h"
#include "profile.h"

#include "grad/train.h"
#include "runtime/threads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_SAMPLES = 100000 };
static const double warmup_share = 0.2, sample_seconds = 20e-6;      // of the time budget; shortest span worth timing

typedef struct Sample { float gradients, update; } Sample;
// marked: how many of gradients, and of update
typedef struct Samples { int64_t runs; int n, marked[2]; Sample at[MOST_SAMPLES]; } Samples;

typedef struct Job {
    const Module *module;
    const Options *options;
    ModuleCall gradients, update;
    double seconds;
    float *count;                                       // the update's argument `step`; NULL: it takes none
    Samples *samples;                                   // shared with the child
    Collector *runs[2];                                 // of gradients and update, with marks; NULL: they have none
} Job;

// ---------------------------------------------------------------- in the child

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Of random numbers no loss need be finite, and what is computed is the same.
static int run_many(const ModuleCall *s, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int code = s->program->run(&s->call);
        if (code && code != BURN_ENAN) return code;
    }
    return 0;
}

static int sample(const Job *j, int64_t inner, Sample *s) {
    double start = now();
    int code = run_many(&j->gradients, inner);
    double middle = now();
    if (j->count) *j->count += 1;
    if (!code) code = run_many(&j->update, inner);
    *s = (Sample){ (float)(1e3 * (middle - start) / (double)inner), (float)(1e3 * (now() - middle) / (double)inner) };
    return code;
}

static int measure(Job *j) {
    Samples *all = j->samples;
    Sample s;
    int64_t warm = 0;
    double start = now(), once;
    do {
        int code = sample(j, 1, &s);
        if (code) return code;
        once = (now() - start) / (double)++warm;
    } while (now() - start < j->seconds * warmup_share);
    int64_t inner = once < sample_seconds ? (int64_t)(sample_seconds / once) + 1 : 1;
    double end = now() + j->seconds;
    do {
        int code = sample(j, inner, &all->at[all->n++]);
        if (code) return code;
        all->runs += inner;
    } while (now() < end && all->n < MOST_SAMPLES);
    return 0;
}

// One after the other, for marks tell kernels of one program from each other.
static int measure_marked(Job *j) {
    const ModuleCall *const calls[] = { &j->gradients, &j->update };
    Samples *all = j->samples;
    for (int i = 0; i < 2; i++) {
        // to warm up, and all that is made only once is made at once where nobody watches
        if (i && j->count) *j->count += 1;
        int code = run_many(calls[i], 1);
        profile_ran(j->runs[i]);
        if (!code) code = module_watch(j->options, profile_handed, j->runs[i]);
        const double end = now() + j->seconds / 2;
        all->n = 0;
        if (code) return code;
        do {
            if (i && j->count) *j->count += 1;
            const double from = now();
            code = run_many(calls[i], 1);
            const float ms = (float)(1e3 * (now() - from));
            if (code) return code;
            profile_ran(j->runs[i]);
            if (i) all->at[all->n++].update = ms;
            else all->at[all->n++].gradients = ms;
        } while (now() < end && all->n < MOST_SAMPLES);
        all->marked[i] = all->n;
        if (i == 0) code = module_watch(j->options, NULL, NULL);
        if (code) return code;
    }
    return 0;
}

// Inputs and outputs of a call to where the GPU has them; numbers that are passed by value stay.
static int move_ends(const Job *j, ModuleCall *call) {
    for (int side = 0; side < 2; side++) {
        const Graph *g = call->graph;
        void **at = side ? call->call.out : call->call.in;
        for (int i = 0; i < (side ? g->outputs.n : g->inputs.n); i++) {
            const Value *v = side ? g->outputs.at[i] : g->inputs.at[i];
            const size_t bytes = (size_t)type_bytes_upper(g, &v->type);
            if (!at[i] || v->role == ROLE_VALUE) continue;
            void *moved = module_room(j->options, bytes);
            if (!moved) return BURN_ENOMEM;
            if (!side) memcpy(moved, at[i], bytes);
            at[i] = moved;
        }
    }
    return 0;
}

// What all of a call's workspaces are where kernels run on a GPU, whose runtime has its own.
static unsigned char no_workspace[1];

static int child(void *argument) {
    Job *j = argument;
    const burncc_module *m = j->module->code;
    burn_threads threads = { NULL, NULL };
    const bool gpu = options_gpu(j->options);
    // gradients need no state: what one kernel of a GPU sees is from one place to another (runtime/vulkan_steps.c)
    void *state = module_room(j->options, m->state_bytes);
    void *params = module_room(j->options, m->params_bytes), *grads = module_room(j->options, m->params_bytes);
    ModuleCall *const steps[] = { &j->gradients, &j->update };
    if (!params || !grads || !state) return BURN_ENOMEM;
    int code = m->begin(params, j->module->initial);
    if (!code && j->options->threads > 1) code = burn_threads_open(&threads, j->options->threads, 0);
    for (size_t i = 0; i < COUNT(steps); i++) {
        burncc_call *c = &steps[i]->call;
        c->params = params;
        c->grads = grads;
        c->state = state;
        c->threads = &threads;
        c->work = gpu ? no_workspace : module_memory(steps[i]->program->work_bytes);
        if (!c->work) return BURN_ENOMEM;
        if (gpu && !code) code = move_ends(j, steps[i]);
    }
    if (!code) code = j->runs[0] ? measure_marked(j) : measure(j);
    burn_threads_close(&threads);
    return code;
}

// ---------------------------------------------------------------- what programs are given

// The update's counter of steps, if it takes one.
static float *counter(const Module *m, const ModuleCall *update) {
    const Graph *g = m->programs->at[update->program - m->code->programs].plan->graph;
    for (int i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i]->role == ROLE_VALUE && !strcmp(g->inputs.at[i]->name, "step")) return update->call.in[i];
    return NULL;
}

// ---------------------------------------------------------------- the report

static int compare_floats(const void *x, const void *y) {
    float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

typedef enum Which { STEP, GRADIENTS, UPDATE } Which;

static float *sorted(Arena *a, const Samples *s, Which which) {
    float *ms = NEW_ARRAY(a, float, s->n);
    for (int i = 0; i < s->n; i++)
        ms[i] = (which == UPDATE ? 0 : s->at[i].gradients) + (which == GRADIENTS ? 0 : s->at[i].update);
    qsort(ms, (size_t)s->n, sizeof *ms, compare_floats);
    return ms;
}

static void print_report(Arena *a, const CommandOptions *c, const Job *j) {
    const Samples *s = j->samples;
    const float *step = sorted(a, s, STEP);
    double flops = 0, median = step[s->n / 2], gradients = sorted(a, s, GRADIENTS)[s->n / 2],
           update = sorted(a, s, UPDATE)[s->n / 2];
    const burncc_module *m = j->module->code;
    size_t state = j->module->programs->training->state.n ? m->state_bytes : 0;     // no struct is empty
    size_t work = j->gradients.program->work_bytes;
    if (j->update.program->work_bytes > work) work = j->update.program->work_bytes;
    for (int i = 0; i < m->program_count; i++) {
        const Plan *p = j->module->programs->at[i].plan;
        bool timed = &m->programs[i] == j->gradients.program || &m->programs[i] == j->update.program;
        for (int k = 0; timed && k < p->kernels.n; k++) flops += p->kernels.at[k]->flops;
    }
    Text t;
    text_init(&t, a);
    if (c->json) {
        text_printf(&t, "{\"model\":");
        json_quoted(&t, c->compile.model);
        text_printf(&t,
            ",\"target\":\"%s\",\"median_ms\":%.6g,\"min_ms\":%.6g,\"gradients_ms\":%.6g,\"update_ms\":%.6g,"
            "\"gflops\":%.6g,\"flops\":%.17g,\"workspace_bytes\":%zu,\"params_bytes\":%zu,\"state_bytes\":%zu,"
            "\"runs\":%lld}\n",
            c->compile.target, median, (double)*step, gradients, update, median > 0 ? flops / median * 1e-6 : 0, flops,
            work, m->params_bytes, state, (long long)s->runs);
    } else {
        text_printf(&t,
            "median_ms=%.5g min_ms=%.5g gradients_ms=%.5g update_ms=%.5g gflops=%.4g workspace_bytes=%zu "
            "params_bytes=%zu state_bytes=%zu runs=%lld\n",
            median, (double)*step, gradients, update, median > 0 ? flops / median * 1e-6 : 0, work, m->params_bytes,
            state, (long long)s->runs);
    }
    print_text(&t, 0);
}

static Job job_new(
    Arena *a, const CommandOptions *c, const Module *m, const Graph *signature, const Inputs *in, double share) {
    const double seconds = c->seconds * share;
    Job j = { .module = m, .options = &c->compile, .seconds = seconds > 1e-3 ? seconds : 1e-3 };
    j.gradients = module_call(a, m, "gradients", signature, in);
    j.update = module_call(a, m, "update", signature, in);
    j.count = counter(m, &j.update);
    j.samples = sandbox_memory(sizeof *j.samples);
    return j;
}

// false with a diagnostic
static bool run_job(Arena *a, const CommandOptions *c, Job *j) {
    progress_stage("timing for %.3g s", j->seconds);
    const char *why = j->samples ? sandbox_call(a, child, j, c->timeout + (int)(2 * c->seconds)) : "not enough memory";
    if (why) diag_error(NULL, "the training code failed: %s", why);
    return !why;
}

static void time_steps(Arena *a, CommandOptions *c, const Module *m, const Graph *signature, const Inputs *in) {
    Job j = job_new(a, c, m, signature, in, 1);
    if (run_job(a, c, &j)) print_report(a, c, &j);
    sandbox_release(j.samples, sizeof *j.samples);
}

// ---------------------------------------------------------------- the time of each kernel

static Timing timing_of(Arena *a, const Samples *s, Which which) {
    const float *ms = sorted(a, s, which);
    return (Timing){ .median_ms = ms[s->n / 2], .min_ms = ms[0], .runs = s->n };
}

static bool begin_runs(Arena *a, Job *j, const Options *o) {
    const ModuleCall *const calls[] = { &j->gradients, &j->update };
    for (int i = 0; i < 2; i++) {
        const Plan *p = j->module->programs->at[calls[i]->program - j->module->code->programs].plan;
        if (!(j->runs[i] = profile_begin(a, p, o, j->module->library))) return false;
    }
    return true;
}

// of code with marks, beside the times without; the exit status
static int report_marked(Arena *a, const CommandOptions *c, Job *j, const Options *o, const Timing plain[2]) {
    static const char *const names[] = { "gradients", "update" };
    Profile *all[2];
    Limits limits;
    if (!begin_runs(a, j, o)) {
        diag_error(NULL, "not enough memory");
        return diag_status();
    }
    bool ok = run_job(a, c, j);
    for (int i = 0; i < 2; i++) {
        Profile *p = profile_end(a, j->runs[i]);
        ok = ok && p;
        if (!ok) continue;
        j->samples->n = j->samples->marked[i];
        p->program = names[i];
        p->plain = plain[i];
        p->marked = timing_of(a, j->samples, i ? UPDATE : GRADIENTS);
        all[i] = p;
    }
    if (!ok && !diag_errors()) diag_error(NULL, "the training code failed: no run came to its end");
    ok = ok && (options_gpu(o) ? limits_take_gpu(a, c->timeout, &limits) : limits_take(a, &c->compile, &limits));
    if (!ok) return diag_status();
    for (int i = 0; i < 2; i++) all[i]->limits = limits;
    return profile_report(a, c, 2, (const Profile *const *)all);
}

static int profile_steps(Arena *a, CommandOptions *c, const Options *o, const Module *m, const Graph *signature,
    const Inputs *in) {
    Job plain = job_new(a, c, m, signature, in, PLAIN_SHARE);
    const bool ok = run_job(a, c, &plain);
    Timing timing[2];
    for (int i = 0; ok && i < 2; i++) timing[i] = timing_of(a, plain.samples, i ? UPDATE : GRADIENTS);
    sandbox_release(plain.samples, sizeof *plain.samples);
    if (!ok) return diag_status();
    Options *with = arena_copy(a, o, sizeof *with);
    with->profile = true;
    Module *marked = module_build(with);
    if (!marked) return diag_status();
    Job j = job_new(a, c, marked, signature, in, 1 - PLAIN_SHARE);
    int status = report_marked(a, c, &j, with, timing);
    sandbox_release(j.samples, sizeof *j.samples);
    module_free(marked);
    return status;
}

int bench_training(Arena *a, CommandOptions *c) {
    OpenModule open;
    if (!module_open(a, c, "--train is timed", &open)) return diag_status();
    if (c->profile) profile_steps(a, c, open.options, open.module, open.signature, &open.in);
    else time_steps(a, c, open.module, open.signature, &open.in);
    module_free(open.module);
    return diag_status();
}
