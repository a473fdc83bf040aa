// SPDX-License-Identifier: MIT OR Apache-2.0
// Reductions of a loop nest: an accumulator, the loops over the reduced axes with what the body needs, and the peers
// that go over the very same axes in the same loops.
//
// Long sums go in lanes, a few terms stand one after the other, and on a GPU a team of threads shares the terms out.
#include "loops.h"

#include <string.h>

// ---------------------------------------------------------------- one term
const char *loops_identity(const LoopPrinter *p, const Expr *e) {
    Scalar s = reduce_identity(e->rop, e->dtype);
    Expr *v = dtype_is_float(e->dtype) ? expr_const_f(p->k->exprs, e->dtype, s.f) :
                                         expr_const_i(p->k->exprs, e->dtype, s.i);
    Text t;
    text_init(&t, p->arena);
    spell_op(p->d->language, &t, v, (const char *const[]){ NULL, NULL, NULL });
    return t.at;
}

// acc = step(acc, x); of floats, += is all that a sum needs.
static void combine(LoopPrinter *p, const Expr *e, const char *acc, const char *x, int depth) {
    loops_line(p, depth);
    if (e->rop == RED_SUM && dtype_is_float(e->dtype)) {
        text_printf(p->out, "%s += %s;\n", acc, text_bare(p->arena, x));
        return;
    }
    text_printf(p->out, "%s = ", acc);
    spell_step(p->d->language, p->out, e->rop, e->dtype, acc, x);
    text_printf(p->out, ";\n");
}

static void combine_arg(LoopPrinter *p, Expr *e, const char *best, const char *at, int depth) {
    const char *x = loops_operand(p, e->a[0]), *payload = loops_operand(p, e->a[1]);
    const ReduceInfo *info = &reduce_table[e->rop];
    bool max = info->extreme == RED_MAX, last = info->tie == TIE_LAST;
    const char *cmp = max ? (last ? ">=" : ">") : last ? "<=" : "<";
    loops_line(p, depth);
    text_printf(p->out, "if (%s < 0 || %s %s %s", at, x, cmp, best);
    if (dtype_is_float(e->a[0]->dtype) && max && !last)
        text_printf(p->out, " || (%s != %s && %s == %s)", x, x, best, best);
    if (dtype_is_float(e->a[0]->dtype) && max && last) text_printf(p->out, " || %s != %s", x, x);
    text_printf(p->out, ") {\n");
    loops_line(p, depth + 1);
    text_printf(p->out, "%s = %s;\n", best, x);
    loops_line(p, depth + 1);
    text_printf(p->out, "%s = %s;\n", at, payload);
    loops_close(p, depth);
}

// acc += x, e's body; a product goes in with one rounding where the dialect has a name for that.
void loops_accumulate(LoopPrinter *p, const Expr *e, Expr *x, const char *acc, int depth) {
    bool fused = p->d->fma && e->rop == RED_SUM && x->op == E_Mul && dtype_is_float(x->dtype) && !p->name[x->id];
    if (!fused) {
        combine(p, e, acc, loops_operand(p, x), depth);
        return;
    }
    loops_line(p, depth);
    text_printf(
        p->out, "%s = %s(%s, %s, %s);\n", acc, p->d->fma, loops_operand(p, x->a[0]), loops_operand(p, x->a[1]), acc);
}

// ---------------------------------------------------------------- loops
// What the body defined is gone when its scope closes.
static void forget(LoopPrinter *p, int scope) {
    for (int i = 0; i < p->exprs.n; i++)
        if (p->scope_of[p->exprs.at[i]->id] == scope) p->name[p->exprs.at[i]->id] = NULL;
}

static void reduce_body(LoopPrinter *p, Expr *e, int at, int depth, const char *acc, const char *second) {
    int scope = p->axis_scope[e->axes[at]];
    p->scope(p, scope, depth);
    if (at + 1 < e->n_axes) {
        loops_open(p, e->axes[at + 1], depth);
        reduce_body(p, e, at + 1, depth + 1, acc, second);
        loops_close(p, depth);
    } else if (reduce_is_arg(e->rop)) combine_arg(p, e, acc, second, depth);
    else loops_accumulate(p, e, e->a[0], acc, depth);
    for (Expr *m = p->peer[e->id]; m && at + 1 == e->n_axes; m = p->peer[m->id])
        loops_accumulate(p, m, m->a[0], p->name[m->id], depth);
    forget(p, scope);
}

static bool use_lanes(const LoopPrinter *p, const Expr *e) {
    return p->d->lanes && !p->in_order && !reduce_is_arg(e->rop) && dtype_is_float(e->dtype) && e->n_axes == 1
        && p->k->axes.at[e->axes[0]].extent >= MIN_LANES_EXTENT;
}

// A long sum as LANES interleaved ones: independent, so that the C compiler may keep them in a vector without
// reassociating anything. Gcc would write the lanes out one by one and then find no vector of maxima: BURN_LANES
// keeps the loop.
static void emit_lanes(LoopPrinter *p, Expr *e, const char *acc, int depth) {
    int axis = e->axes[0];
    const char *i = p->axis_name[axis], *type = p->d->type(e->dtype), *zero = loops_identity(p, e),
               *it = p->d->index_type;
    Dim size = p->k->axes.at[axis].size;
    bool fixed = dim_is_const(size);
    const char *whole = fixed ? arena_printf(p->arena, "%lld", (long long)(size / LANES * LANES)) :
                                arena_printf(p->arena, "%s / %d * %d", loops_extent(p, axis), LANES, LANES);
    const char *lane = arena_printf(p->arena, "%sl", acc), *base = arena_printf(p->arena, "%sb", i),
               *part = arena_printf(p->arena, "%sl[%sl]", acc, i);
    loops_line(p, depth);
    text_printf(p->out, "%s %s[%d];\n", type, lane, LANES);
    loops_line(p, depth);
    text_printf(p->out, "for (%s %sl = 0; %sl < %d; %sl++) %s = %s;\n", it, i, i, LANES, i, part, zero);
    loops_line(p, depth);
    text_printf(p->out, "for (%s %s = 0; %s < %s; %s += %d)\n", it, base, base, whole, base, LANES);
    loops_line(p, depth + 1);
    text_printf(p->out, "BURN_LANES for (%s %sl = 0; %sl < %d; %sl++) {\n", it, i, i, LANES, i);
    loops_line(p, depth + 2);
    text_printf(p->out, "const %s %s = %s + %sl;\n", it, i, base, i);
    reduce_body(p, e, 0, depth + 2, part, NULL);
    loops_close(p, depth + 1);
    if (!fixed || size % LANES) {
        loops_line(p, depth);
        text_printf(p->out, "for (%s %s = %s; %s < %s; %s++) {\n", it, i, whole, i, loops_extent(p, axis), i);
        reduce_body(p, e, 0, depth + 1, arena_printf(p->arena, "%s[0]", lane), NULL);
        loops_close(p, depth);
    }
    for (int half = LANES / 2; half > 1; half /= 2) {
        loops_line(p, depth);
        text_printf(p->out, "%sfor (%s %sl = 0; %sl < %d; %sl++)\n", e->rop == RED_SUM ? "" : "BURN_LANES ", it, i, i,
            half, i);
        combine(p, e, part, arena_printf(p->arena, "%s[%sl + %d]", lane, i, half), depth + 1);
    }
    loops_line(p, depth);
    text_printf(p->out, "%s %s = %s[0];\n", type, acc, lane);
    combine(p, e, acc, arena_printf(p->arena, "%s[1]", lane), depth);
}

// ---------------------------------------------------------------- teams
// The axis of a chain worth sharing out: the longest, the innermost of equals.
static int longest(const LoopPrinter *p, const signed char *axes, int n) {
    int best = axes[0];
    for (int i = 1; i < n; i++)
        if (p->k->axes.at[axes[i]].extent >= p->k->axes.at[best].extent) best = axes[i];
    return best;
}

static bool is_teamwork(const LoopPrinter *p, const Expr *e) {
    return p->d->team > 1 && p->scope_of[e->id] == p->bound && !reduce_is_arg(e->rop) && e->n_axes;
}

void loops_share(LoopPrinter *p) {
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        if (e->op == E_Reduce && is_teamwork(p, e)) p->shared[longest(p, e->axes, e->n_axes)] = true;
    }
    signed char inner[64];
    int n = 0;
    for (int i = p->bound; i < p->last_parallel; i++) inner[n++] = (signed char)i;
    if (n && p->d->team > 1) p->shared[longest(p, inner, n)] = true;
}

// Does a later reduction, whose terms all members sum, need e or one of its peers?
static bool feeds_reduction(const LoopPrinter *p, const Expr *e) {
    bool *needs = NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1);
    for (const Expr *m = e; m; m = p->peer[m->id]) needs[m->id] = true;
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *x = p->exprs.at[i];
        for (int j = 0; j < 3; j++) {
            if (!x->a[j] || !needs[x->a[j]->id]) continue;
            if (x->op == E_Reduce) return true;
            needs[x->id] = true;
        }
    }
    return false;
}

// Every member of the team holds a part of each peer: all parts go to the team's memory, and are combined in order of
// rank, so that all hold the same result. Where only rank 0 will use it, the others skip that.
static void emit_gather(LoopPrinter *p, Expr *e, int depth) {
    int first = p->parts;
    const char *it = p->d->index_type;
    bool root_only = p->bound == p->last_parallel && !feeds_reduction(p, e);
    for (Expr *m = e; m; m = p->peer[m->id]) {
        loops_line(p, depth);
        text_printf(p->out, "%s = %s;\n", p->d->part(p->d->ctx, m->dtype, p->parts++, NULL), p->name[m->id]);
    }
    loops_line(p, depth);
    text_printf(p->out, "%s\n", p->d->barrier);
    int slot = first;
    for (Expr *m = e; m; m = p->peer[m->id]) {
        loops_line(p, depth);
        text_printf(p->out, "%s = %s;\n", p->name[m->id], p->d->part(p->d->ctx, m->dtype, slot++, "0"));
    }
    loops_line(p, depth);
    if (root_only) text_printf(p->out, "for (%s other = 1; rank == 0 && other < %d; other++) {\n", it, p->d->team);
    else text_printf(p->out, "for (%s other = 1; other < %d; other++) {\n", it, p->d->team);
    slot = first;
    for (Expr *m = e; m; m = p->peer[m->id])
        combine(p, m, p->name[m->id], p->d->part(p->d->ctx, m->dtype, slot++, "other"), depth + 1);
    loops_close(p, depth);
}

// ---------------------------------------------------------------- reductions and their peers
// A few terms stand one after the other, without loops: nothing between the C compiler and a vector over the points
// around them.
bool loops_unrolls(const LoopPrinter *p, const Expr *e) {
    int64_t terms = 1;
    if (reduce_is_arg(e->rop)) return false;
    for (int i = 0; i < e->n_axes; i++) {
        if (!dim_is_const(p->k->axes.at[e->axes[i]].size) || terms > p->d->unrolled) return false;
        terms *= p->k->axes.at[e->axes[i]].size;
    }
    for (int i = 0; i < p->exprs.n; i++)                // a sum inside of a term has loops of its own
        if (p->exprs.at[i]->op == E_Reduce && p->scope_of[p->exprs.at[i]->id] >= p->axis_scope[e->axes[0]]
            && p->scope_of[p->exprs.at[i]->id] <= loops_body_scope(p, e))
            return false;
    return terms > 1 && terms <= p->d->unrolled;
}

static void emit_unrolled(LoopPrinter *p, Expr *e, int depth) {
    int64_t at[MAX_RANK] = { 0 };
    uint64_t used = 0;
    for (const Expr *m = e; m; m = p->peer[m->id]) used |= m->a[0]->axes_used;
    do {
        loops_open_term(p, e, used, at, depth);
        for (Expr *m = e; m; m = p->peer[m->id]) {
            loops_demand(p, m->a[0], depth + 1);
            loops_accumulate(p, m, m->a[0], p->name[m->id], depth + 1);
        }
        loops_close_fresh(p, depth);
    } while (loops_next_term(p, e, at));
}

// A reduction and its peers.
void loops_reduce(LoopPrinter *p, Expr *e, int depth) {
    const char *acc = NULL, *best = NULL;
    for (Expr *m = e; m; m = p->peer[m->id]) {
        const char *name = arena_printf(p->arena, "r%d", p->temps++);
        p->name[m->id] = name;
        if (m == e) acc = name;
        if (m == e && use_lanes(p, e)) {
            emit_lanes(p, e, acc, depth);
            return;
        }
        loops_line(p, depth);
        if (reduce_is_arg(m->rop)) {
            best = arena_printf(p->arena, "%sx", name);
            text_printf(p->out, "%s %s = 0;\n", p->d->type(m->a[0]->dtype), best);
            loops_line(p, depth);
            text_printf(p->out, "%s %s = -1;\n", p->d->type(m->dtype), name);
        } else text_printf(p->out, "%s %s = %s;\n", p->d->type(m->dtype), name, loops_identity(p, m));
    }
    if (e->n_axes && loops_unrolls(p, e)) emit_unrolled(p, e, depth);
    else if (e->n_axes) {
        loops_open(p, e->axes[0], depth);
        reduce_body(p, e, 0, depth + 1, reduce_is_arg(e->rop) ? best : acc, acc);
        loops_close(p, depth);
    } else if (reduce_is_arg(e->rop)) combine_arg(p, e, best, acc, depth);
    else loops_accumulate(p, e, e->a[0], acc, depth);
    if (is_teamwork(p, e)) emit_gather(p, e, depth);
}
