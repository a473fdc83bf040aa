// SPDX-License-Identifier: MIT OR Apache-2.0
// Central differences of a loss, for some elements of every parameter. In: training code, and its loss as a program in
// double precision. Out: gradients as the code computes them, and (f(x + h) - f(x - h)) / 2h.
//
// The idea: steps shrink until two in a row agree. Over a kink (a maximum that changes sides) they do not, until the
// step is short of it; what is left is a kink at x itself, where slopes to the left and to the right stay apart as
// steps shrink, and not in proportion to them. Steps end where the loss's own rounding errors would be what is seen.
//
// How far rounding errors alone lead gradients astray says the code itself, with parameters of which each is another by
// a unit in its last place: untrained networks of many normalizations lose all but two digits.
#define _DEFAULT_SOURCE
#include "module.h"

#include "runtime/threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDINGS = 4 };
static const double first_step = 0x1p-8, shorter = 8, noise_of_loss = 4e-16, least_scale = 1e-3;
// of the error that is allowed: what two differences may differ by
static const double agreement = 0.01;
// no gradient is so much smaller than the largest of all that it is more than rounding errors
static const double negligible = 1e-4;

typedef struct Work {
    const Differences *d;
    void *params, *grads, *work;
    burn_tensor *in;
    double loss[1], start;
} Work;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double evaluate(Work *w) {
    const Built *b = w->d->loss;
    burn_tensor out = { .data = w->loss, .bytes = sizeof w->loss };
    return b->model->run(NULL, w->work, b->weights, w->in, &out) ? NAN : w->loss[0];
}

// ---------------------------------------------------------------- one element

typedef struct Slopes { double central, bend, noise; } Slopes;

static Slopes slopes_at(Work *w, double *x, double step) {
    double at = *x, base = w->d->losses[1];
    volatile double above = at + step, below = at - step;
    *x = above;
    double up = evaluate(w);
    *x = below;
    double down = evaluate(w);
    *x = at;
    return (Slopes){ (up - down) / (above - below), (up - base) / (above - at) - (base - down) / (at - below),
        noise_of_loss * fabs(base) / step };
}

// Do slopes differ from side to side by more than the curve's bending? Then they did so at the longer step as well.
static bool bends_sharply(Slopes s, Slopes before, double apart) {
    return fabs(s.bend) > 2 * apart + 8 * s.noise && fabs(s.bend) > 0.5 * fabs(before.bend);
}

static bool difference(Work *w, double *x, double scale, double apart, double *slope) {
    double step = first_step * fmax(fabs(*x), scale);
    Slopes before = slopes_at(w, x, step);
    for (;;) {
        step /= shorter;
        Slopes s = slopes_at(w, x, step);
        if (fabs(s.central - before.central) <= apart) {
            *slope = s.central + (s.central - before.central) / (shorter * shorter - 1);     // Richardson
            return !bends_sharply(s, before, apart);
        }
        if (!(s.noise < apart)) return false;
        before = s;
    }
}

// ---------------------------------------------------------------- all of them

static bool is_wide(const DiffParameter *p) { return p->type.dtype == DT_F64; }

static double gradient(const Work *w, const DiffParameter *p, int64_t i) {
    const char *at = (const char *)w->grads + p->offset;
    return is_wide(p) ? ((const double *)(const void *)at)[i] : (double)((const float *)(const void *)at)[i];
}

static int64_t largest_of(const Work *w, const DiffParameter *p) {
    int64_t best = 0;
    for (int64_t i = 1, n = type_count(&p->type); i < n; i++)
        if (fabs(gradient(w, p, i)) > fabs(gradient(w, p, best))) best = i;
    return best;
}

static double root_mean_square(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return n ? sqrt(sum / (double)n) : 0;
}

// All of a few; else the one of the largest gradient, and others here and there.
static int64_t choose(const Work *w, const DiffParameter *p, int number, int round) {
    int64_t n = type_count(&p->type);
    if (n <= MOST_ELEMENTS) return round;
    uint64_t hash = ((uint64_t)round << 32 | (uint64_t)number) * 0x9e3779b97f4a7c15;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9;
    return round ? (int64_t)((hash ^ hash >> 32) % (uint64_t)n) : largest_of(w, p);
}

static void take(Work *w, DiffParameter *p, int number, int round) {
    int64_t n = type_count(&p->type), at = choose(w, p, number, round);
    double *x = w->in[p->input].data;
    Element *e = &p->element[p->n];
    *e = (Element){ .at = at, .gradient = gradient(w, p, at) };
    double scale = fmax(root_mean_square(x, n), least_scale);
    e->smooth = difference(w, x + at, scale, agreement * w->d->allowed * p->largest, &e->difference);
    p->n++;
}

static void set_largest(const Work *w) {
    double all = 0;
    for (int i = 0; i < w->d->n; i++) {
        DiffParameter *p = &w->d->at[i];
        if (!p->trained) continue;
        p->largest = fabs(gradient(w, p, largest_of(w, p)));
        all = fmax(all, p->largest);
    }
    for (int i = 0; i < w->d->n; i++) {
        DiffParameter *p = &w->d->at[i];
        p->largest = fmax(p->largest, all * negligible);
        p->rounding /= p->largest > 0 ? p->largest : 1;
    }
}

// Elements of all parameters in turns, so that what time allows is spread over them.
static void take_all(Work *w) {
    const Differences *d = w->d;
    for (int round = 0; round < d->rounds; round++)
        for (int i = 0; i < d->n; i++) {
            DiffParameter *p = &d->at[i];
            if (!p->trained || p->input < 0 || round >= type_count(&p->type)) continue;
            if (now() - w->start > d->seconds && (round || now() - w->start > 4 * d->seconds)) return;
            take(w, p, i, round);
        }
}

// ---------------------------------------------------------------- the code

// Parameters that are rounded once more: each by up to half a unit in its last place.
static void round_again(const Work *w, void *params, uint64_t *random) {
    for (int i = 0; i < w->d->n; i++) {
        const DiffParameter *p = &w->d->at[i];
        float *at = (float *)(void *)((char *)params + p->offset);
        for (int64_t k = 0, n = p->trained && !is_wide(p) ? type_count(&p->type) : 0; k < n; k++) {
            *random = *random * 6364136223846793005 + 1442695040888963407;
            at[k] *= 1 + ((*random >> 63) ? 0x1p-23f : -0x1p-23f);
        }
    }
}

static void compare_grads(Work *w, const void *others) {
    for (int i = 0; i < w->d->n; i++) {
        DiffParameter *p = &w->d->at[i];
        const float *x = (const float *)(const void *)((const char *)w->grads + p->offset),
                    *y = (const float *)(const void *)((const char *)others + p->offset);
        for (int64_t k = 0, n = p->trained && !is_wide(p) ? type_count(&p->type) : 0; k < n; k++)
            p->rounding = fmax(p->rounding, fabs((double)x[k] - (double)y[k]));
    }
}

// What is it to the gradients that parameters are rounded?
static int measure_rounding(Work *w, burncc_call call) {
    size_t bytes = w->d->module->code->params_bytes;
    uint64_t random = 1;
    void *params = module_memory(bytes), *grads = module_memory(bytes);
    int code = params && grads ? 0 : BURN_ENOMEM;
    call.params = params;
    call.grads = grads;
    for (int i = 0; i < ROUNDINGS && !code; i++) {
        memcpy(params, w->params, bytes);
        round_again(w, params, &random);
        code = w->d->gradients.program->run(&call);
        if (!code) compare_grads(w, grads);
    }
    free(params);
    free(grads);
    return code;
}

static int run_code(Work *w) {
    const Differences *d = w->d;
    const burncc_module *m = d->module->code;
    burncc_call call = d->gradients.call;
    burn_threads threads = { NULL, NULL };
    int code = m->begin(w->params, d->module->initial);
    if (!code && d->options->threads > 1) code = burn_threads_open(&threads, d->options->threads, 0);
    if (code) return code;
    call.params = w->params;
    call.grads = w->grads;
    call.threads = &threads;
    if (!(call.work = module_memory(d->gradients.program->work_bytes))) return BURN_ENOMEM;
    if (!(call.state = module_memory(m->state_bytes))) return BURN_ENOMEM;
    code = d->gradients.program->run(&call);
    d->losses[0] = *(const float *)call.out[0];
    if (!code) code = measure_rounding(w, call);
    burn_threads_close(&threads);
    return code;
}

// The parameters as the loss wants them.
static bool widen(Work *w) {
    for (int i = 0; i < w->d->n; i++) {
        const DiffParameter *p = &w->d->at[i];
        int64_t n = type_count(&p->type);
        if (p->input < 0) continue;
        double *wide = module_memory((size_t)n * sizeof *wide);
        if (!wide) return false;
        const char *at = (const char *)w->params + p->offset;
        for (int64_t k = 0; k < n; k++)
            wide[k] = is_wide(p) ? ((const double *)(const void *)at)[k] :
                                                (double)((const float *)(const void *)at)[k];
        w->in[p->input] = (burn_tensor){ .data = wide, .bytes = (size_t)n * sizeof *wide };
    }
    return true;
}

int differences_take(void *differences) {
    const Differences *d = differences;
    Work w = { .d = d, .in = d->in, .start = now() };
    w.params = module_memory(d->module->code->params_bytes);
    w.grads = module_memory(d->module->code->params_bytes);
    w.work = module_memory(d->loss->model->workspace_bytes);
    if (!w.params || !w.grads || !w.work) return BURN_ENOMEM;
    int code = run_code(&w);
    if (code) return code;
    if (!widen(&w)) return BURN_ENOMEM;
    d->losses[1] = evaluate(&w);
    set_largest(&w);
    if (isfinite(d->losses[1])) take_all(&w);
    return 0;
}
