// SPDX-License-Identifier: MIT OR Apache-2.0
// Shares out the updates of a scatter among threads.
//
// In: a loop kernel whose stores may meet, so that they go in order: `y[place(i0) * 768 + i1] += u[i0][i1]`. Out: the
// same updates of each element in the same order, and so the same bits, by many threads. Two ideas. An axis that the
// element's index gives away, as i1 does here, cannot meet itself elsewhere: its points are independent, and it goes
// to the front, among the axes that threads share out. And of the place that is looked up each of a number of owners
// takes those that are its own: all read the places, which are few and the same for many threads, and one stores.
//
//     for owner, i1 (shared out)  for i0 (in order)  if place(i0) % 64 == owner:  y[...] += u[...]
//
// An index gives a term away if no sum of the smaller ones reaches from one of its multiples to the next.
#include "schedule/schedule.h"
#include "tile.h"

#include <stdlib.h>

enum { MAX_TERMS = 16,
       OWNED_THREADS = 1 << 14,                         // each with a loop of its own over all updates
       EACH_OWNER = 8 };                                // updates for each, or a thread more is not worth it

typedef struct Term { Expr *of; int64_t by, lo, hi; } Term;
typedef struct Terms { int n; bool ok; Term at[MAX_TERMS]; } Terms;

static void add_term(Terms *t, Expr *of, int64_t by) {
    t->ok = t->ok && t->n < MAX_TERMS && by > 0;
    if (t->ok) t->at[t->n++] = (Term){ .of = of, .by = by, .lo = of->lo, .hi = of->hi };
}

static void collect_terms(Terms *t, Expr *e, int64_t by) {
    if (e->op == E_Add) {
        collect_terms(t, e->a[0], by);
        collect_terms(t, e->a[1], by);
    } else if (e->op == E_Mul && e->a[1]->op == E_Const) collect_terms(t, e->a[0], by * e->a[1]->c.i);
    else if (e->op == E_Mul && e->a[0]->op == E_Const) collect_terms(t, e->a[1], by * e->a[0]->c.i);
    else if (e->op != E_Const) add_term(t, e, by);
}

// What holds of x where c does: l < x and x < h, in any conjunction.
static void narrow(Term *t, const Expr *c, const Expr *x) {
    if (c->op == E_And) {
        narrow(t, c->a[0], x);
        narrow(t, c->a[1], x);
    } else if (c->op == E_Lt && c->a[0] == x && c->a[1]->hi - 1 < t->hi) t->hi = c->a[1]->hi - 1;
    else if (c->op == E_Lt && c->a[1] == x && c->a[0]->lo + 1 > t->lo) t->lo = c->a[0]->lo + 1;
    else if (c->op == E_Le && c->a[0] == x && c->a[1]->hi < t->hi) t->hi = c->a[1]->hi;
    else if (c->op == E_Le && c->a[1] == x && c->a[0]->lo > t->lo) t->lo = c->a[0]->lo;
}

// A looked up place is 0 where it would be outside (schedule/kernel.c).
static void narrow_place(Term *t) {
    const Expr *e = t->of;
    if (e->op != E_Select || e->a[2]->op != E_Const || e->a[2]->c.i != 0) return;
    narrow(t, e->a[0], e->a[1]);
    if (t->lo > 0) t->lo = 0;
}

static int by_step(const void *x, const void *y) {
    const Term *a = x, *b = y;
    return (a->by > b->by) - (a->by < b->by);
}

// How many of the terms, the smallest first, the index gives away.
static int given_away(Terms *t) {
    int64_t reach = 0;
    qsort(t->at, (size_t)t->n, sizeof *t->at, by_step);
    for (int i = 0; i < t->n; i++) {
        Term *m = &t->at[i];
        int64_t more;
        if (m->of->op != E_Axis) narrow_place(m);
        if (m->lo < 0 || reach >= m->by) return i;
        if (i + 1 == t->n) break;                       // nothing is above the largest
        if (__builtin_mul_overflow(m->hi, m->by, &more) || __builtin_add_overflow(reach, more, &reach)) return i + 1;
    }
    return t->n;
}

// The term whose values owners share out: of those that are looked up the one with the most.
static const Term *owned_term(const Terms *t, int given) {
    const Term *most = NULL;
    for (int i = 0; i < given; i++)
        if (t->at[i].of->op != E_Axis && (!most || t->at[i].hi > most->hi)) most = &t->at[i];
    return most;
}

static int64_t owners_of(const Term *owned, int64_t threads, int64_t in_order) {
    int64_t n = 1;
    while (n * 2 * threads <= OWNED_THREADS && n * 2 * EACH_OWNER <= in_order && n * 2 - 1 <= owned->hi) n *= 2;
    return n;
}

typedef struct Moved { const Kernel *kernel; ExprPool *pool; int to[64]; } Moved;

static Expr *move_axis(void *ctx, Expr *e) {
    const Moved *m = ctx;
    if (e->op != E_Axis) return NULL;
    const Axis *axis = &m->kernel->axes.at[e->c.i];
    return dim_is_const(axis->size) ? expr_axis(m->pool, m->to[e->c.i], axis->extent) :
                                      expr_axis_size(m->pool, e->graph, m->to[e->c.i], axis->size);
}

static bool in_order(const Kernel *k) {
    for (int i = 0; i < k->axes.n; i++)
        if (!k->axes.at[i].reduce) return false;
    return k->kind == KERNEL_LOOP && k->stores.n == 1 && k->axes.n && k->axes.n < 32 && k->n_parallel == k->axes.n;
}

void gpu_scatter(Arena *a, Kernel *k) {
    Terms t = { .ok = true };
    bool independent[64] = { false };
    if (!in_order(k)) return;
    Store *s = &k->stores.at[0];
    collect_terms(&t, s->index, 1);
    const int given = t.ok ? given_away(&t) : 0;
    int64_t threads = 1, updates = 1;
    for (int i = 0; i < given; i++)
        if (t.at[i].of->op == E_Axis) independent[t.at[i].of->c.i] = true;
    for (int i = 0; i < k->axes.n; i++) {
        int64_t *count = independent[i] ? &threads : &updates;
        if (__builtin_mul_overflow(*count, k->axes.at[i].extent, count)) return;
    }
    const Term *owned = owned_term(&t, given);
    const int64_t owners = owned ? owners_of(owned, threads, updates) : 1;
    const Kernel old = *k;
    Moved m = { .kernel = &old, .pool = k->exprs };
    k->axes.at = NULL;
    k->axes.n = k->axes.cap = 0;
    if (owners > 1) VEC_PUSH(a, k->axes, ((Axis){ .extent = owners, .size = owners }));
    for (int side = 0; side < 2; side++)                // those that are shared out, then those in order
        for (int i = 0; i < old.axes.n; i++) {
            if (independent[i] != !side) continue;
            Axis axis = old.axes.at[i];
            axis.reduce = side;
            m.to[i] = k->axes.n;
            VEC_PUSH(a, k->axes, axis);
        }
    k->n_parallel = k->axes.n;
    ExprPool *p = k->exprs;
    s->index = expr_map_leaves(p, s->index, move_axis, &m);
    s->expr = expr_map_leaves(p, s->expr, move_axis, &m);
    if (s->guard) s->guard = expr_map_leaves(p, s->guard, move_axis, &m);
    if (owners < 2) return;
    Expr *place = expr_cast(p, expr_map_leaves(p, owned->of, move_axis, &m), DT_U32),
         *last = expr_binary(p, E_BitAnd, place, expr_const_i(p, DT_U32, owners - 1)),
         *own = expr_binary(p, E_Eq, last, expr_cast(p, expr_axis(p, 0, owners), DT_U32));
    s->guard = s->guard ? expr_binary(p, E_And, s->guard, own) : own;
}
