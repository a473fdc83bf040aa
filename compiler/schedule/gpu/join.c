// SPDX-License-Identifier: MIT OR Apache-2.0
// Loop kernels of the same few points become one.
//
// In: a plan's kernels in their order. Out: fewer of them. What a batch norm makes of a channel's sums are half a dozen
// kernels of one number for each channel, in both directions, and each waits for the one before, which takes longer
// than it does; and its two sums on the way back read the same maps.
//
//     m[i0] = sum[i1](x[i1][i0]) / N                       m, d and r of one kernel, and of r's map its own number
//     d[i0] = m[i0] + eps                        =>        in place of what it would read; d is stored where others
//     r[i0] = 1 / sqrt(d[i0])                              read it
//
// A kernel of maps joins the last one before it that it cannot change places with, and a sum one that goes over the
// same terms of a value, where all between them leave alone what it touches.
#include "schedule/steps.h"
#include "tile.h"
#include "ir/expr.h"

#include <string.h>

enum { MOST_POINTS = 1 << 14, MOST_STORES = 12 };

typedef struct Joining {
    Plan *plan;
    const Steps *steps;
    bool *gone;                                         // by step
    Arena *scratch;
} Joining;

static Kernel *kernel_at(const Joining *j, int step) { return j->plan->kernels.at[j->steps->at[step].kernel]; }

// ---------------------------------------------------------------- which fit
static bool is_simple(const Kernel *k) {
    int64_t points = 1;
    if (k->kind != KERNEL_LOOP || k->sizes.n || k->strips || !k->stores.n) return false;
    for (int i = 0; i < k->n_parallel; i++) {
        if (k->axes.at[i].reduce || !dim_is_const(k->axes.at[i].size)) return false;
        if (__builtin_mul_overflow(points, k->axes.at[i].extent, &points)) return false;
    }
    for (int i = 0; i < k->stores.n; i++) {
        const Store *s = &k->stores.at[i];
        if (s->guard || s->op != RED_NONE || type_count_upper(k->nodes.at[0]->graph, &s->value->type) != points)
            return false;
    }
    return points <= MOST_POINTS;
}

static bool sums(const Kernel *k) { return k->axes.n > k->n_parallel; }

// to: by axis of `from`, the one of `into` of the same place and size, -1 for those of size 1; false: they differ
static bool match_axes(const Kernel *from, const Kernel *into, bool reduced, int *to) {
    const int a0 = reduced ? from->n_parallel : 0, a1 = reduced ? from->axes.n : from->n_parallel,
              b1 = reduced ? into->axes.n : into->n_parallel;
    int b = reduced ? into->n_parallel : 0;
    for (int a = a0; a < a1; a++) {
        to[a] = -1;
        if (from->axes.at[a].extent == 1) continue;
        while (b < b1 && into->axes.at[b].extent == 1) b++;
        if (b == b1 || into->axes.at[b].extent != from->axes.at[a].extent) return false;
        to[a] = b++;
    }
    while (b < b1 && into->axes.at[b].extent == 1) b++;
    return b == b1;
}

static const Store *store_of(const Kernel *k, const Value *v) {
    for (int i = 0; i < k->stores.n; i++)
        if (k->stores.at[i].value == v) return &k->stores.at[i];
    return NULL;
}

// Does `from` read what `into` stores at the same point alone?
typedef struct Reading { const Kernel *from, *into; const int *to; bool *seen; } Reading;

static bool reads_points(const Reading *r, const Expr *e) {
    const int n = r->from->axes.n;
    int64_t coef[64], c0, at[64], a0;
    if (!e || r->seen[e->id]) return true;
    r->seen[e->id] = true;
    const Store *s = e->op == E_Load ? store_of(r->into, e->value) : NULL;
    if (s) {
        if (e->a[1] || !expr_affine(e->a[0], n, coef, &c0) || !expr_affine(s->index, r->into->axes.n, at, &a0))
            return false;
        for (int i = 0; i < n; i++)
            if (r->to[i] >= 0 ? coef[i] != at[r->to[i]] : coef[i] != 0 && r->from->axes.at[i].extent != 1) return false;
        if (c0 != a0) return false;
    }
    for (int i = 0; i < 3; i++)
        if (!reads_points(r, e->a[i])) return false;
    return true;
}

static bool shares_read(const Kernel *a, const Kernel *b) {
    for (int i = 0; i < a->reads.n; i++)
        for (int k = 0; k < b->reads.n; k++)
            if (a->reads.at[i] == b->reads.at[k]
                && type_count_upper(a->nodes.at[0]->graph, &a->reads.at[i]->type) > MOST_POINTS)
                return true;
    return false;
}

static bool reads_stored(const Kernel *from, const Kernel *into) {
    for (int i = 0; i < from->reads.n; i++)
        if (store_of(into, from->reads.at[i])) return true;
    return false;
}

static const Buffer *owner(const Joining *j, Value *v) {
    int64_t at;
    return buffer_owner(buffer_of(j->plan, v), &at);
}

// Do they meet in bytes by other names than those of what `into` stores? A view's, or a field's that changes in place.
static bool meet_in_bytes(const Joining *j, const Kernel *from, const Kernel *into) {
    for (int w = 0; w < into->writes.n; w++)
        for (int i = 0; i < from->reads.n; i++)
            if (from->reads.at[i] != into->writes.at[w] && owner(j, from->reads.at[i]) == owner(j, into->writes.at[w]))
                return true;
    for (int w = 0; w < from->writes.n; w++)
        for (int i = 0; i < into->reads.n + into->writes.n; i++) {
            Value *v = i < into->reads.n ? into->reads.at[i] : into->writes.at[i - into->reads.n];
            if (owner(j, v) == owner(j, from->writes.at[w])) return true;
        }
    return false;
}

static bool fits(const Joining *j, const Kernel *from, const Kernel *into, int *to) {
    if (!is_simple(into) || into->stores.n + from->stores.n > MOST_STORES || into->axes.n > 60) return false;
    if (meet_in_bytes(j, from, into) || !match_axes(from, into, false, to)) return false;
    if (sums(from) && (reads_stored(from, into) || !shares_read(from, into) || !match_axes(from, into, true, to)))
        return false;
    Reading r = { from, into, to, NEW_ARRAY(j->scratch, bool, expr_count(from->exprs) + 1) };
    for (int i = 0; i < from->stores.n; i++)
        if (!reads_points(&r, from->stores.at[i].index) || !reads_points(&r, from->stores.at[i].expr)) return false;
    return true;
}

// ---------------------------------------------------------------- one of two
typedef struct Moving { Kernel *into; const int *to; } Moving;

static Expr *move_expr(void *ctx, Expr *e) {
    const Moving *m = ctx;
    ExprPool *pool = m->into->exprs;
    const Store *s = e->op == E_Load ? store_of(m->into, e->value) : NULL;
    if (s) return s->expr;
    if (e->op != E_Axis) return NULL;
    const int to = m->to[e->c.i];
    return to < 0 ? expr_index(pool, 0) : expr_axis(pool, to, m->into->axes.at[to].extent);
}

static void add_value(Arena *a, Kernel *k, Value *v) {
    kernel_read(a, k, v);
    for (int i = 0; i < k->loads.n; i++)
        if (k->loads.at[i] == v) return;
    VEC_PUSH(a, k->loads, v);
}

static void join(const Joining *j, const Kernel *from, Kernel *into, const int *to) {
    Arena *a = j->plan->arena;
    Moving m = { into, to };
    const int had = into->stores.n;
    Store made[MOST_STORES];
    for (int i = 0; i < from->stores.n; i++) {
        made[i] = from->stores.at[i];
        made[i].index = expr_rebuild(into->exprs, made[i].index, move_expr, &m);
        made[i].expr = expr_rebuild(into->exprs, made[i].expr, move_expr, &m);
    }
    for (int i = 0; i < from->reads.n; i++)
        if (!store_of(into, from->reads.at[i])) add_value(a, into, from->reads.at[i]);
    for (int i = 0; i < from->stores.n; i++) VEC_PUSH(a, into->stores, made[i]);
    for (int i = had; i < into->stores.n; i++) VEC_PUSH(a, into->writes, into->stores.at[i].value);
    for (int i = 0; i < from->nodes.n; i++) VEC_PUSH(a, into->nodes, from->nodes.at[i]);
    into->flops += from->flops;
}

// ---------------------------------------------------------------- where to
// Joins step `at` to one before it; false: there is none.
static bool join_step(const Joining *j, int at) {
    Step *steps = j->steps->at;
    Kernel *from = kernel_at(j, at);
    int to[64];
    if (!is_simple(from) || from->axes.n > 60) return false;
    for (int i = at - 1; i >= 0; i--) {
        if (j->gone[i]) continue;
        const bool stop = step_meets(&steps[i], &steps[at], -1), may = sums(from) ? !stop : stop;
        Kernel *into = kernel_at(j, i);
        if (may && steps[i].kernels == 1 && fits(j, from, into, to)) {
            join(j, from, into, to);
            step_use_too(j->scratch, &steps[i], &steps[at]);
            return true;
        }
        if (stop) return false;
    }
    return false;
}

// ---------------------------------------------------------------- what nobody reads any more
// An output may be made of it by its place alone, as a concatenation is of its parts.
static void drop_unread(const Joining *j, Kernel *k) {
    const Plan *p = j->plan;
    int n = 0;
    k->writes.n = 0;
    for (int s = 0; s < k->stores.n; s++) {
        Value *v = k->stores.at[s].value;
        bool read = v->role != ROLE_NONE;
        for (int i = 0; i < p->graph->outputs.n; i++) read = read || owner(j, p->graph->outputs.at[i]) == owner(j, v);
        for (int i = 0; i < p->kernels.n && !read; i++)
            for (int r = 0; r < p->kernels.at[i]->reads.n; r++)
                read = read || owner(j, p->kernels.at[i]->reads.at[r]) == owner(j, v);
        if (!read) continue;
        k->stores.at[n++] = k->stores.at[s];
        VEC_PUSH(p->arena, k->writes, v);
    }
    k->stores.n = n;
}

void gpu_join(Plan *p) {
    int n = 0;
    if (p->parent || p->options->no_fuse) return;
    Joining j = { .plan = p, .scratch = arena_new() };
    j.steps = steps_read(j.scratch, p);
    j.gone = NEW_ARRAY(j.scratch, bool, j.steps->n + 1);
    for (int i = 0; i < j.steps->n; i++) {
        const int stores = j.steps->at[i].kernels == 1 ? kernel_at(&j, i)->stores.n : 0;
        j.gone[i] = stores && join_step(&j, i);
    }
    for (int i = 0; i < j.steps->n; i++)
        for (int m = 0; m < j.steps->at[i].kernels && !j.gone[i]; m++)
            p->kernels.at[n++] = p->kernels.at[j.steps->at[i].kernel + m];
    p->kernels.n = n;
    for (int i = 0; i < n; i++)
        if (p->kernels.at[i]->kind == KERNEL_LOOP && p->kernels.at[i]->stores.n > 1) drop_unread(&j, p->kernels.at[i]);
    arena_free(j.scratch);
}
