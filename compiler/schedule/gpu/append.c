// SPDX-License-Identifier: MIT OR Apache-2.0
// What is made of some of a product's elements, each alone, is stored by the product's kernel too.
//
// In: products of few rows and loop kernels, in order. Out: fewer kernels. A decoder's keys and values go from the
// product that gives them into their caches, many columns each, and what reads the caches waits for the copies, which
// takes longer than they do.
//
//     y[i0] = sum[i1](x[i1] * w[i1][i0])                       keys[i0' / 64 * 65536 + i0' % 64 + past * 64] = y's
//     keys[i0 * 65536 + i1 + past * 64] = y[768 + ...]   =>    sum, where i0' = i0 - 768 is 0 .. 767
//
// The loop's axes are digits of the place in y that it reads: from there on the element of y says where they are.
#include "schedule/steps.h"
#include "tile.h"
#include "ir/expr.h"

#include <string.h>

enum { MOST_AXES = 8, MOST_STORES = 4, MOST_VALUES = 24 };       // values: of a kernel, each has a push constant

// An axis of the loop as it walks y, the fastest first.
typedef struct Digit { int axis; int64_t step, extent; } Digit;
typedef struct Walk { int n; Digit at[MOST_AXES]; int64_t from; } Walk;

typedef struct Appending {
    const Plan *plan;
    Kernel *from, *into;
    const Expr *load;                                   // from's, of what into stores
    int loads;                                          // of it, at different places
    bool *seen, plain;                                  // plain: neither sums nor anything else that is no map
    Walk walk;
    Expr **axis;                                        // by axis of `from`: what it is where `into` stores
} Appending;

static void find_load(Appending *s, const Expr *e) {
    if (!e || s->seen[e->id]) return;
    s->seen[e->id] = true;
    if (e->op == E_Reduce) s->plain = false;
    if (e->op == E_Load && e->value == s->into->stores.at[0].value) {
        s->load = e;
        s->loads++;
        s->plain = s->plain && !e->a[1];
    }
    for (int i = 0; i < 3; i++) find_load(s, e->a[i]);
}

// The loop's axes as digits of the place that it loads; false: some places have several points, or it is no such sum.
static bool find_walk(Appending *s) {
    const Kernel *k = s->from;
    Walk *w = &s->walk;
    int64_t coef[64];
    w->n = 0;
    if (!expr_affine(s->load->a[0], k->axes.n, coef, &w->from) || w->from < 0) return false;
    for (int i = 0; i < k->axes.n; i++) {
        const Digit d = { i, coef[i], k->axes.at[i].extent };
        int at = w->n;
        if (d.extent == 1) continue;
        if (d.step < 1 || w->n == MOST_AXES) return false;
        for (; at > 0 && w->at[at - 1].step > d.step; at--) w->at[at] = w->at[at - 1];
        w->at[at] = d;
        w->n++;
    }
    for (int i = 0; i + 1 < w->n; i++)
        if (w->at[i + 1].step % w->at[i].step || w->at[i + 1].step < w->at[i].step * w->at[i].extent) return false;
    return w->n > 0 && w->at[0].step == 1;
}

static bool is_simple(const Kernel *k) {
    if (k->kind != KERNEL_LOOP || k->stores.n != 1 || k->strips || k->axes.n != k->n_parallel) return false;
    for (int i = 0; i < k->axes.n; i++)
        if (k->axes.at[i].reduce || !dim_is_const(k->axes.at[i].size)) return false;
    return k->axes.n < 64 && !k->stores.at[0].guard && k->stores.at[0].op == RED_NONE;
}

static bool fits(Appending *s) {
    const Store *store = &s->from->stores.at[0];
    const int values = s->from->reads.n + s->into->reads.n + s->into->writes.n + 1;
    if (!is_simple(s->from) || s->into->stores.n == MOST_STORES || values > MOST_VALUES) return false;
    s->seen = NEW_ARRAY(s->plan->arena, bool, expr_count(s->from->exprs) + 1);
    s->plain = true;
    s->loads = 0;
    find_load(s, store->expr);
    find_load(s, store->index);
    return s->plain && s->loads == 1 && find_walk(s);
}

// ---------------------------------------------------------------- one of two
static Expr *moved(void *ctx, Expr *e) {
    const Appending *s = ctx;
    if (e == s->load) return s->into->stores.at[0].expr;
    return e->op != E_Axis ? NULL : s->axis[e->c.i] ? s->axis[e->c.i] : expr_index(s->into->exprs, 0);
}

static Expr *both(ExprPool *p, Expr *x, Expr *y) { return x ? expr_binary(p, E_And, x, y) : y; }

// The axes by the place where `into` stores, and whether some point of `from` reads from there.
static Expr *place_axes(Appending *s) {
    ExprPool *p = s->into->exprs;
    const Walk *w = &s->walk;
    Expr *at = s->into->stores.at[0].index, *guard = NULL;
    if (w->from > at->lo) guard = expr_binary(p, E_Le, expr_index(p, w->from), at);
    at = expr_binary(p, E_Sub, at, expr_index(p, w->from));
    for (int i = 0; i < w->n; i++) {
        const Digit *d = &w->at[i];
        const int64_t room = i + 1 < w->n ? w->at[i + 1].step / d->step : 0;
        Expr *digit = expr_binary(p, E_Div, at, expr_index(p, d->step));
        if (room) digit = expr_binary(p, E_Mod, digit, expr_index(p, room));
        if (room ? room > d->extent : digit->hi >= d->extent)
            guard = both(p, guard, expr_binary(p, E_Lt, digit, expr_index(p, d->extent)));
        s->axis[d->axis] = digit;
    }
    return guard;
}

static void add_reads(Arena *a, Kernel *k, const Kernel *from, const Value *but) {
    for (int i = 0; i < from->reads.n; i++) {
        Value *v = from->reads.at[i];
        bool known = v == but;
        for (int j = 0; j < k->loads.n; j++) known = known || k->loads.at[j] == v;
        if (known) continue;
        VEC_PUSH(a, k->loads, v);
        kernel_read(a, k, v);
    }
}

static void append(Appending *s) {
    Arena *a = s->plan->arena;
    Kernel *k = s->into;
    const Value *between = k->stores.at[0].value;
    s->axis = NEW_ARRAY(a, Expr *, s->from->axes.n + 1);
    Expr *guard = place_axes(s);
    Store made = s->from->stores.at[0];
    made.index = expr_rebuild(k->exprs, made.index, moved, s);
    made.expr = expr_rebuild(k->exprs, made.expr, moved, s);
    made.guard = guard;
    VEC_PUSH(a, k->stores, made);
    VEC_PUSH(a, k->writes, made.value);
    add_reads(a, k, s->from, between);
    for (int i = 0; i < s->from->sizes.n; i++) {
        bool known = false;
        for (int j = 0; j < k->sizes.n; j++) known = known || k->sizes.at[j] == s->from->sizes.at[i];
        if (!known) VEC_PUSH(a, k->sizes, s->from->sizes.at[i]);
    }
    for (int i = 0; i < s->from->nodes.n; i++) VEC_PUSH(a, k->nodes, s->from->nodes.at[i]);
    k->flops += s->from->flops;
}

// ---------------------------------------------------------------- where to
static int number_of(const Steps *s, const Plan *p, Value *v) {
    int64_t at;
    const Buffer *b = buffer_owner(buffer_of(p, v), &at);
    int i = 1;
    while (s->buffers.at[i] != b) i++;
    return i;
}

// May the kernel at `at` become part of the one at `into`, before all that lies between?
static bool may_move(const Steps *s, const bool *gone, int into, int at, int between) {
    if (step_meets(&s->at[into], &s->at[at], between)) return false;
    for (int i = into + 1; i < at; i++)
        if (!gone[i] && step_meets(&s->at[i], &s->at[at], -1)) return false;
    return true;
}

static void append_to(const Steps *s, const Plan *p, bool *gone, int into) {
    enum { FAR = 32 };                                  // steps that are looked at
    Kernel *k = p->kernels.at[s->at[into].kernel];
    for (int at = into + 1; at < s->n && at < into + FAR; at++) {
        Appending a = { .plan = p, .from = p->kernels.at[s->at[at].kernel], .into = k };
        Value *between = k->stores.at[0].value;
        if (gone[at] || s->at[at].kernels > 1 || !kernel_reads(a.from, between)) continue;
        if (!fits(&a) || !may_move(s, gone, into, at, number_of(s, p, between))) continue;
        append(&a);
        step_use_too(s->a, &s->at[into], &s->at[at]);
        gone[at] = true;
    }
}

void gpu_append(Plan *p) {
    int n = 0;
    if (p->parent || p->options->no_fuse) return;
    Arena *scratch = arena_new();
    const Steps *s = steps_read(scratch, p);
    bool *gone = NEW_ARRAY(scratch, bool, s->n + 1);
    for (int i = 0; i < s->n; i++) {
        const Kernel *k = p->kernels.at[s->at[i].kernel];
        if (k->kind == KERNEL_PRODUCT && k->product.few && !gone[i]) append_to(s, p, gone, i);
    }
    for (int i = 0; i < s->n; i++)
        for (int m = 0; m < s->at[i].kernels && !gone[i]; m++)
            p->kernels.at[n++] = p->kernels.at[s->at[i].kernel + m];
    p->kernels.n = n;
    arena_free(scratch);
}
