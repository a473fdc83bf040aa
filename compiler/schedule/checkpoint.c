// SPDX-License-Identifier: MIT OR Apache-2.0
// What a training program keeps from where it is made until it is read, and what it makes again: with --train-memory
// so that it fits into a workspace of so many bytes, without it what costs next to no time.
//
// In: a plan with its kernels in order. Out: the plan with some kernels in the list more than once, and its buffers
// placed. A value that a kernel makes again lies where it lay before, and between its last reader and the second run
// its bytes serve others; the kernel, its code and its operands are the same, so the results have the same bits.
//
// Greedy: at the worst moment, of all values that wait there for a later reader, the one is made again just before it
// whose absence removes most bytes above the budget, summed over all moments, for the time that it costs: of loops
// first, of products where that is not enough. What its kernel reads and nobody has any more is made again too, or
// kept longer, whichever is better. The search counts its steps, not the time, so the same input gives the same code.
//
// Without a budget only loops run again (activations, what norms make of what they keep), never products, and only as
// long as all of that is a small share of the program's time; the target is lowered while anything is found.
#include "steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORK INT64_C(400000000)                     // looks at an operand: one or two seconds
enum {
    HELPFUL = 32,                                       // changes that help, of which the best is taken
    TRIED = 128,                                        // ... of so many that are measured, or more until one does
    MOST_AGAIN = 48,                                    // steps that one value takes with it
    MOST_PLACINGS = 8, GAPS = 200,                      // what no buffer fits into is about this part
    SMALL = 64,                                         // what is less than this part of what is too much comes last
    FACTOR = 8,                                         // an operand so much smaller than the value is kept
    LENGTH = 4,                                         // most runs, by kernels
    LOWER = 8,                                          // without a budget: each target is this part less
    GAIN_PERCENT = 3                                    // and what all of them together must save, as in order.c
};

// from where it is made to where it is read last; earlier: the buffer's span before, -1: none
typedef struct Span { int buffer, first, last, earlier; } Span;
typedef struct Use { int buffer; bool makes; } Use;     // makes: its only maker writes it
typedef struct Reuse { int in, out; } Reuse;            // of a step's uses: an operand, a result of as many bytes
// over: bytes above the target, summed over the moments; at: the worst one
typedef struct Cost { int64_t peak; double over; int at; } Cost;
typedef VEC(int) Sequence;                              // steps in the order in which they run
typedef struct Candidate {
    int buffer, before; double score;
    Sequence lists[2]; int n;                           // the steps that make it again, in one way or two
} Candidate;

typedef struct Search {
    Arena *a, *round;                                   // round: while one change is looked for
    const Steps *s;
    int64_t target, work;
    double spare;                                       // ns that may be added; with a budget there is no bound
    double *ns;                                         // by step
    bool *may_again, *is_loop;                          // by step
    bool only_loops;                                    // nothing else runs again, for the time being
    int *maker;                                         // by buffer: the step that alone writes it; -1: not one
    int *first_write, *last_write;                      // by buffer: the steps; -1: none
    int64_t *bytes;                                     // by buffer: of the workspace
    Use *uses; int *uses_of;                            // of all steps; by step: where its begin
    VEC(Reuse) reuses; int *reuses_of;                  // the same of what results may lie over
    int64_t *scratch;                                   // by step
    // of the sequence that was measured last
    Span *spans; int n_spans;
    int *span_of;                                       // by use, in order
    int room;                                           // for spans and uses
    int *open;                                          // by buffer
    int *times;                                         // by step
    int64_t *now;                                       // by moment: bytes
    int64_t *change;
    int *previous, *next;                               // by buffer: uses around the worst moment
} Search;

// ---------------------------------------------------------------- what may run again
static double kernel_ns(const Kernel *k, const Rates *r) {
    const bool product = k->template || k->kind == KERNEL_GEMM || k->kind == KERNEL_PRODUCT
        || k->kind == KERNEL_ATTENTION;
    double compute = k->flops / (product ? r->products : r->loops), memory = (double)k->traffic / r->bytes;
    return (compute > memory ? compute : memory) + r->call;
}

static bool kernel_may_again(const Kernel *k) {
    if (k->kind == KERNEL_REGION || k->kind == KERNEL_SIZES || k->string_bytes || kernel_fails(k)) return false;
    for (int i = 0; i < k->stores.n; i++)
        if (k->stores.at[i].op != RED_NONE) return false;
    return true;
}

static void read_steps(Search *c, const Plan *p, const Rates *rates) {
    const Steps *s = c->s;
    for (int b = 0; b < s->buffers.n; b++) c->maker[b] = c->first_write[b] = c->last_write[b] = -1;
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->at[i].uses.n; j++) {
            const Access *u = &s->at[i].uses.at[j];
            if (!u->write) continue;
            c->maker[u->buffer] = c->first_write[u->buffer] < 0 ? i : -1;
            if (c->first_write[u->buffer] < 0) c->first_write[u->buffer] = i;
            c->last_write[u->buffer] = i;
        }
    for (int b = 1; b < s->buffers.n; b++) c->bytes[b] = steps_bytes(s, b);
    for (int i = 0, n = 0; i < s->n; i++) {
        c->may_again[i] = c->is_loop[i] = true;
        for (int m = 0; m < s->at[i].kernels; m++) {
            const Kernel *k = p->kernels.at[s->at[i].kernel + m];
            c->may_again[i] = c->may_again[i] && kernel_may_again(k);
            c->is_loop[i] = c->is_loop[i] && k->kind == KERNEL_LOOP;
            c->ns[i] += kernel_ns(k, rates);
        }
        for (int j = 0; j < s->at[i].uses.n; j++) {
            const Access *u = &s->at[i].uses.at[j];
            c->uses[n++] = (Use){ u->buffer, u->write && c->maker[u->buffer] >= 0 };
            if (u->write && (!s->in_work.at[u->buffer] || c->maker[u->buffer] != i)) c->may_again[i] = false;
        }
        c->uses_of[i + 1] = n;
    }
}

static void read_reuses(Search *c) {
    for (int i = 0; i < c->s->n; i++) {
        const Step *s = &c->s->at[i];
        c->scratch[i] = s->scratch;
        for (int r = 0; r < s->reuse.n; r++) {
            int in = 0;
            while (in < s->uses.n && s->uses.at[in].buffer != s->reuse.at[r]) in++;
            for (int j = 0; j < s->uses.n && in < s->uses.n; j++)
                if (s->uses.at[j].write && c->bytes[s->uses.at[j].buffer] == c->bytes[s->reuse.at[r]])
                    VEC_PUSH(c->a, c->reuses, ((Reuse){ in, j }));
        }
        c->reuses_of[i + 1] = c->reuses.n;
    }
}

static bool runs_again(const Search *c, int step) {
    return c->may_again[step] && (!c->only_loops || c->is_loop[step]);
}

// ---------------------------------------------------------------- what a sequence needs
// Bytes that the step's result takes over from an operand (memory.c does it for what runs once).
static int64_t reused(const Search *c, int step, int at, const int *span_of) {
    for (int i = c->reuses_of[step]; i < c->reuses_of[step + 1]; i++) {
        const Reuse *r = &c->reuses.at[i];
        const int in = span_of[r->in];
        const Span *s = &c->spans[in];
        if (s->last == at && in == c->open[s->buffer] && c->spans[span_of[r->out]].first == at)
            return c->bytes[s->buffer];
    }
    return 0;
}

static void make_room(Search *c, const Sequence *q) {
    int uses = 0;
    for (int at = 0; at < q->n; at++) uses += c->uses_of[q->at[at] + 1] - c->uses_of[q->at[at]];
    if (uses <= c->room) return;
    c->room = 2 * uses;
    c->spans = NEW_ARRAY(c->a, Span, c->room);
    c->span_of = NEW_ARRAY(c->a, int, c->room);
}

static void find_spans(Search *c, const Sequence *q) {
    make_room(c, q);
    int n = 0, *span_of = c->span_of;
    for (int b = 0; b < c->s->buffers.n; b++) c->open[b] = -1;
    memset(c->times, 0, sizeof(int) * (size_t)c->s->n);
    for (int at = 0; at < q->n; at++) {
        const int step = q->at[at];
        const Use *end = c->uses + c->uses_of[step + 1];
        c->times[step]++;
        c->work += c->uses_of[step + 1] - c->uses_of[step] + 4;
        for (const Use *u = c->uses + c->uses_of[step]; u < end; u++) {
            int *open = &c->open[u->buffer];
            if (*open < 0 || u->makes) {
                c->spans[n] = (Span){ u->buffer, at, at, *open };
                *open = n++;
            }
            c->spans[*open].last = at;
            *span_of++ = *open;
        }
    }
    c->n_spans = n;
}

static Cost measure(Search *c, const Sequence *q) {
    Cost cost = { 0 };
    find_spans(c, q);
    memset(c->change, 0, sizeof(int64_t) * (size_t)(q->n + 1));
    for (int i = 0; i < c->n_spans; i++) {
        const int64_t bytes = c->bytes[c->spans[i].buffer];
        c->change[c->spans[i].first] += bytes;
        c->change[c->spans[i].last + 1] -= bytes;
    }
    int64_t alive = 0;
    const int *span_of = c->span_of;
    for (int at = 0; at < q->n; at++) {
        const int step = q->at[at];
        alive += c->change[at];
        int64_t now = c->now[at] = alive + c->scratch[step];
        if (c->times[step] == 1) now = c->now[at] -= reused(c, step, at, span_of);
        span_of += c->uses_of[step + 1] - c->uses_of[step];
        if (now > c->target) cost.over += (double)(now - c->target);
        if (now <= cost.peak) continue;
        cost.peak = now;
        cost.at = at;
    }
    return cost;
}

// ---------------------------------------------------------------- one value less
// Is what `reader` reads of the buffer there, as it was, before the moment?
static bool may_read(const Search *c, const Sequence *q, int reader, int buffer, int before) {
    if (c->last_write[buffer] < 0 || c->maker[buffer] == reader) return true;
    if (c->maker[buffer] < 0 && reader < c->last_write[buffer] && reader > c->first_write[buffer]) return false;
    bool after = reader > c->last_write[buffer];        // it reads what has been written, or what has not been yet
    for (int at = 0; at < q->n; at++)
        if (q->at[at] == (after ? c->last_write[buffer] : c->first_write[buffer])) return (at < before) == after;
    return false;
}

static bool is_alive(const Search *c, int buffer, int before) {
    for (int i = c->open[buffer]; i >= 0; i = c->spans[i].earlier)
        if (c->spans[i].first < before && c->spans[i].last >= before) return true;
    return false;
}

// Steps that have to run before the moment so that the step's results are there, itself last; false: it cannot be.
// keep: operands are kept rather than made again.
static bool collect(Search *c, const Sequence *q, int step, int before, bool keep, Sequence *again) {
    const Step *s = &c->s->at[step];
    int64_t size = 0;
    if (!runs_again(c, step) || again->n >= MOST_AGAIN) return false;
    for (int j = 0; j < s->uses.n; j++) size += s->uses.at[j].write ? c->bytes[s->uses.at[j].buffer] : 0;
    for (int j = 0; j < s->uses.n; j++) {
        int b = s->uses.at[j].buffer, maker = c->maker[b];
        bool there = s->uses.at[j].write || !c->s->in_work.at[b];
        if (!may_read(c, q, step, b, before)) return false;
        if (there || is_alive(c, b, before)) continue;
        for (int i = 0; i < again->n; i++) there = there || again->at[i] == maker;
        if (there || keep || maker < 0 || !runs_again(c, maker) || c->bytes[b] * FACTOR <= size) continue;
        if (!collect(c, q, maker, before, keep, again)) return false;
    }
    if (again->n >= MOST_AGAIN) return false;           // by those that it needs
    VEC_PUSH(c->round, *again, step);
    return true;
}

static void add(Arena *a, Sequence *to, const int *steps, int n) {
    for (int i = 0; i < n; i++) VEC_PUSH(a, *to, steps[i]);
}

static void insert(Arena *a, const Sequence *q, int before, const Sequence *more, Sequence *to) {
    to->n = 0;
    add(a, to, q->at, before);
    add(a, to, more->at, more->n);
    add(a, to, q->at + before, q->n - before);
}

static void uses_around(Search *c, const Sequence *q, int moment) {
    for (int b = 0; b < c->s->buffers.n; b++) c->previous[b] = c->next[b] = -1;
    for (int at = 0; at <= moment; at++)
        for (int j = 0; j < c->s->at[q->at[at]].uses.n; j++) c->previous[c->s->at[q->at[at]].uses.at[j].buffer] = at;
    for (int at = q->n - 1; at > moment; at--)
        for (int j = 0; j < c->s->at[q->at[at]].uses.n; j++) c->next[c->s->at[q->at[at]].uses.at[j].buffer] = at;
}

static int by_score(const void *x, const void *y) {
    const Candidate *a = x, *b = y;
    return a->score != b->score ? (a->score < b->score ? 1 : -1) : a->buffer - b->buffer;
}

// Values of so many bytes and more that wait over the worst moment, the most promising first.
static int candidates(Search *c, const Sequence *q, const Cost *cost, int64_t least, Candidate *best) {
    int n = 0;
    double *over = NEW_ARRAY(c->round, double, q->n + 1), *count = NEW_ARRAY(c->round, double, q->n + 1);
    for (int at = 0; at < q->n; at++) {
        bool above = c->now[at] > c->target;
        over[at + 1] = over[at] + (above ? (double)(c->now[at] - c->target) : 0);
        count[at + 1] = count[at] + above;
    }
    uses_around(c, q, cost->at);
    for (int i = 0; i < c->n_spans; i++) {
        const Span *s = &c->spans[i];
        int b = s->buffer, maker = c->maker[b];
        if (s->first >= cost->at || s->last <= cost->at || c->previous[b] == cost->at) continue;
        if (maker < 0 || !runs_again(c, maker) || c->bytes[b] < least) continue;
        int from = c->previous[b] + 1, to = c->next[b];
        double bytes = (double)c->bytes[b] * (count[to] - count[from]), most = over[to] - over[from];
        best[n++] = (Candidate){ .buffer = b, .before = to, .score = (bytes < most ? bytes : most) / c->ns[maker] };
    }
    qsort(best, (size_t)n, sizeof *best, by_score);
    return n;
}

static double sequence_ns(const Search *c, const Sequence *steps) {
    double ns = 0;
    for (int i = 0; i < steps->n; i++) ns += c->ns[steps->at[i]];
    return ns;
}

// The lists of steps that make a candidate again: with its operands made again, and with them kept, where that differs.
static void find_lists(Search *c, const Sequence *q, Candidate *one) {
    for (int keep = 0; keep < 2; keep++) {
        Sequence again = { 0 };
        if (!collect(c, q, c->maker[one->buffer], one->before, keep, &again)) continue;
        if (sequence_ns(c, &again) > c->spare || (one->n && again.n == one->lists[0].n)) continue;
        one->lists[one->n++] = again;
    }
}

static void copy(Arena *a, const Sequence *from, Sequence *to) {
    to->n = 0;
    add(a, to, from->at, from->n);
}

// The best change of the sequence, of the most promising ones that help at all; least: bytes of what they free. false:
// none does.
static bool improve(Search *c, Sequence *q, Cost *cost, int64_t least) {
    c->round = arena_new();
    Candidate *best = NEW_ARRAY(c->round, Candidate, c->n_spans + 1);
    Sequence chosen = { 0 }, trial = { 0 };
    double most = 0;
    Cost before = *cost;
    const int n = candidates(c, q, cost, least, best);
    for (int i = 0; i < n; i++) find_lists(c, q, &best[i]);         // all before anything else is measured
    int tried = 0, helpful = 0;
    for (int i = 0; i < n && (tried < TRIED || most <= 0) && helpful < HELPFUL && c->work < MAX_WORK; i++)
        for (int j = 0; j < best[i].n; j++, tried++) {
            insert(c->round, q, best[i].before, &best[i].lists[j], &trial);
            const Cost then = measure(c, &trial);
            double gain = (before.over - then.over) / sequence_ns(c, &best[i].lists[j]);
            helpful += then.over < before.over;
            if (then.over >= before.over || gain <= most) continue;
            Sequence old = chosen;
            chosen = trial;
            trial = old;
            most = gain;
            *cost = then;
        }
    if (most > 0) {
        c->spare -= sequence_ns(c, &chosen) - sequence_ns(c, q);
        copy(c->a, &chosen, q);
    }
    arena_free(c->round);
    return most > 0;
}

// Runs that turn out not to be needed.
static void trim(Search *c, Sequence *q) {
    Sequence trial = { 0 };
    bool *seen = NEW_ARRAY(c->a, bool, c->s->n);
    for (int at = 0; at < q->n; at++) {
        bool again = seen[q->at[at]];
        seen[q->at[at]] = true;
        if (!again) continue;
        trial.n = 0;
        for (int i = 0; i < q->n; i++)
            if (i != at) VEC_PUSH(c->a, trial, q->at[i]);
        if (measure(c, &trial).peak > c->target) continue;
        c->spare += c->ns[q->at[at]];
        Sequence old = *q;
        *q = trial;
        trial = old;
        at--;
    }
}

// ---------------------------------------------------------------- the plan
static void set_kernels(Plan *p, const Search *c, Kernel *const *kernels, const Sequence *q) {
    double all = 0, again = 0;
    bool *seen = NEW_ARRAY(c->a, bool, c->s->n);
    p->kernels.n = p->runs_again = 0;
    for (int i = 0; i < q->n; i++) {
        const Step *s = &c->s->at[q->at[i]];
        bool twice = seen[q->at[i]];
        seen[q->at[i]] = true;
        *(twice ? &again : &all) += c->ns[q->at[i]];
        for (int m = 0; m < s->kernels; m++) {
            Kernel *k = kernels[s->kernel + m];
            k->runs = twice ? k->runs + 1 : 1;
            VEC_PUSH(p->arena, p->kernels, k);
            p->runs_again += twice;
        }
    }
    p->again_share = all > 0 ? again / all : 0;
}

static Search *search_new(Arena *a, Plan *p, const Rates *rates) {
    memory_ends(p);
    Search *c = NEW(a, Search);
    *c = (Search){ .a = a, .s = steps_read(a, p), .spare = HUGE_VAL };
    const int n = c->s->n, buffers = c->s->buffers.n;
    c->ns = NEW_ARRAY(a, double, n + 1);
    c->may_again = NEW_ARRAY(a, bool, n + 1);
    c->is_loop = NEW_ARRAY(a, bool, n + 1);
    c->times = NEW_ARRAY(a, int, n + 1);
    int uses = 0;
    for (int i = 0; i < n; i++) uses += c->s->at[i].uses.n;
    c->uses = NEW_ARRAY(a, Use, uses + 1);
    c->uses_of = NEW_ARRAY(a, int, n + 1);
    c->reuses_of = NEW_ARRAY(a, int, n + 1);
    c->scratch = NEW_ARRAY(a, int64_t, n + 1);
    c->bytes = NEW_ARRAY(a, int64_t, buffers);
    c->maker = NEW_ARRAY(a, int, buffers);
    c->first_write = NEW_ARRAY(a, int, buffers);
    c->last_write = NEW_ARRAY(a, int, buffers);
    c->open = NEW_ARRAY(a, int, buffers);
    c->previous = NEW_ARRAY(a, int, buffers);
    c->next = NEW_ARRAY(a, int, buffers);
    c->now = NEW_ARRAY(a, int64_t, LENGTH * n + MOST_AGAIN + 2);
    c->change = NEW_ARRAY(a, int64_t, LENGTH * n + MOST_AGAIN + 2);
    read_steps(c, p, rates);
    read_reuses(c);
    return c;
}

// The order of runs comes in and goes out; what is alive at the worst moment, which may be more than the target. Where
// many small values make the sum, none is large enough beside what is too much: with a budget they are tried then.
static int64_t search(Search *c, Sequence *q) {
    const bool budget = isinf(c->spare);
    Cost cost = measure(c, q);
    while (cost.peak > c->target && c->work < MAX_WORK && q->n < LENGTH * c->s->n) {
        bool better = improve(c, q, &cost, (cost.peak - c->target) / SMALL);
        cost = measure(c, q);                           // what was tried last has left its spans
        if (better) continue;
        if (!budget || !improve(c, q, &cost, 1)) break;
        cost = measure(c, q);
    }
    if (cost.peak <= c->target) trim(c, q);
    return cost.peak;
}

static Sequence as_planned(Search *c) {
    Sequence q = { 0 };
    for (int i = 0; i < c->s->n; i++) VEC_PUSH(c->a, q, i);
    return q;
}

// Plans the memory with a workspace of at most so many bytes, if it can; what it comes to, -1 with diagnostics.
static int64_t reach(Search *c, Plan *p, Kernel *const *kernels, int64_t budget) {
    Sequence q = as_planned(c);
    c->target = budget;
    c->work = 0;
    for (int tries = 0; tries < MOST_PLACINGS; tries++) {
        c->only_loops = true;                           // what costs little, then anything
        bool found = search(c, &q) <= c->target;
        c->only_loops = false;
        found = found || search(c, &q) <= c->target;
        set_kernels(p, c, kernels, &q);
        if (!memory_plan(p)) return -1;
        if (!found || p->work_bytes <= budget) break;
        c->target -= p->work_bytes - budget + budget / GAPS;
    }
    return p->work_bytes;
}

// What costs next to nothing: the kernels are in the order of their runs then.
void checkpoint_spare(Plan *p, const Rates *rates) {
    Arena *a = arena_new();
    Search *c = search_new(a, p, rates);
    Kernel *const *kernels = arena_copy(a, p->kernels.at, sizeof *kernels * (size_t)p->kernels.n);
    Sequence q = as_planned(c);
    const int64_t before = measure(c, &q).peak;
    c->spare = rates->spare * sequence_ns(c, &q);
    c->only_loops = true;
    int64_t peak = before, then;
    do {
        then = peak;
        c->target = then - then / LOWER;
        peak = search(c, &q);
    } while (peak < then && peak <= c->target);
    c->target = peak;
    trim(c, &q);
    if (peak * 100 <= before * (100 - GAIN_PERCENT)) set_kernels(p, c, kernels, &q);
    arena_free(a);
}

bool checkpoint_plan(Plan *p, int64_t budget, const Rates *rates) {
    Arena *a = arena_new();
    Search *c = search_new(a, p, rates);
    Kernel *const *kernels = arena_copy(a, p->kernels.at, sizeof *kernels * (size_t)p->kernels.n);
    int64_t least = reach(c, p, kernels, budget);
    bool fits = least >= 0 && least <= budget;
    for (int tries = 0; !fits && least >= 0 && tries < MOST_PLACINGS; tries++) {        // what can be asked for?
        int64_t then = reach(c, p, kernels, least);
        if (then <= least) break;
        least = then;
    }
    if (!fits && least >= 0)
        diag_error_as(EXIT_LIMIT, NULL,
            "--train-memory: %s needs a workspace of %lld bytes, not %lld; smaller batches, fewer parameters that "
            "learn and --frozen-norm need less",
            p->graph->name, (long long)least, (long long)budget);
    arena_free(a);
    return fits;
}
