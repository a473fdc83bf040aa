// SPDX-License-Identifier: MIT OR Apache-2.0
// Some points of the innermost parallel axis at a time (16 in the sketch): the reductions' loops stand outside, a
// loop over the points inside, so that the C compiler makes a vector of it: windows, contractions as plain loops,
// sums along outer axes.
//
//   for (i2b = 0; i2b < 48; i2b += 16) {
//       float r0l[16];
//       for (i2l = 0; i2l < 16; i2l++) r0l[i2l] = 0.0f;
//       for (i3 = 0; i3 < 3; i3++)
//           for (i2l = 0; i2l < 16; i2l++) { const ptrdiff_t i2 = i2b + i2l; r0l[i2l] += x[i3 * 55 + i2]; }
//       for (i2l = 0; i2l < 16; i2l++) { const ptrdiff_t i2 = i2b + i2l; y[i2] = r0l[i2l]; }
//   }
#include "loops.h"

// terms of a plain sum that may go one after the other, for its rounding; more go in blocks
enum { MIN_STRIP = 4, MAX_STRIP = 64, MAX_STRIP_SUM = 1024, SUM_BLOCK = 256 };

typedef struct Reads { const LoopPrinter *p; int axis, inner; bool *seen, good; } Reads;

// Do the loads below e lie along the axis rather than along the reduction's innermost one?
static void judge_reads(Reads *r, const Expr *e) {
    Dim coef[64], c0;
    if (!e || r->seen[e->id] || !r->good) return;
    r->seen[e->id] = true;
    // named by then, if it is no part of this one
    if (e->op == E_Reduce) {
        r->good = r->p->scope_of[e->id] <= r->p->last_parallel;
        return;
    }
    if (e->op == E_Load) {
        r->good = expr_affine_sizes(e->a[0], r->p->d->graph, r->p->k->axes.n, coef, &c0);
        Dim step = r->good ? coef[r->axis] : -1, along = r->good && r->inner >= 0 ? coef[r->inner] : 0;
        bool row = along == 1 && step != 1 && r->p->k->axes.at[r->inner].extent >= MIN_LANES_EXTENT;
        r->good = r->good && step >= 0 && step <= 2 && !row;
    }
    for (int i = 0; i < 3; i++) judge_reads(r, e->a[i]);
}

static bool is_float_sum(const Expr *e) { return e->rop == RED_SUM && dtype_is_float(e->dtype); }

static bool is_plain_sum(const Expr *e) { return is_float_sum(e) && e->a[0]->op != E_Mul; }

static double count_terms(const LoopPrinter *p, const Expr *e) {
    double terms = 1;
    for (int k = 0; k < e->n_axes; k++) terms *= (double)p->k->axes.at[e->axes[k]].extent;
    return terms;
}

// Is some load below e guarded by what the strip's axis has no part in? Its lanes are then all read or all left out.
static bool guarded_apart(const Expr *e, int axis, bool *seen) {
    if (!e || seen[e->id]) return false;
    seen[e->id] = true;
    if (e->op == E_Load && e->a[1] && !(e->a[1]->axes_used >> axis & 1)) return true;
    return guarded_apart(e->a[0], axis, seen) || guarded_apart(e->a[1], axis, seen)
        || guarded_apart(e->a[2], axis, seen);
}

bool strips_pay(const LoopPrinter *p, int scope) {
    int axis = p->scopes.at[scope].axis, found = 0;
    if (!p->d->lanes || p->shared[axis] || p->k->axes.at[axis].extent < MIN_STRIP) return false;
    for (int s = scope + 1; s <= p->last_parallel; s++)
        if (p->k->axes.at[p->scopes.at[s].axis].size != 1) return false;
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        if (e->op != E_Reduce || p->scope_of[e->id] < scope) continue;
        if (p->scope_of[e->id] > p->last_parallel || reduce_is_arg(e->rop) || !e->n_axes) return false;
        if (loops_unrolls(p, e)
            && !guarded_apart(e->a[0], axis, NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1)))
            return false;
        if (is_plain_sum(e) && count_terms(p, e) > MAX_STRIP_SUM
            && (e->n_axes > 1 || p->peer[e->id] || p->follows[e->id]))
            return false;
        Reads r = { p, axis, e->axes[e->n_axes - 1], NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1), true };
        judge_reads(&r, e->a[0]);
        if (!r.good) return false;
        found++;
    }
    return found > 0;
}

// Points in a strip: several vectors, so that one's sums need not wait for their last step; one strip where they are
// few.
static int strip_width(Dim size) { return !dim_is_const(size) ? LANES : size < MAX_STRIP ? (int)size : MAX_STRIP; }

static void open_lanes(LoopPrinter *p, int axis, const char *count, int depth, bool element, bool chooses) {
    const char *i = p->axis_name[axis], *it = p->d->index_type;
    loops_line(p, depth);
    text_printf(p->out, "%sfor (%s %sl = 0; %sl < %s; %sl++) {\n", chooses ? "BURN_LANES " : "", it, i, i, count, i);
    if (!element) return;
    loops_line(p, depth + 1);
    text_printf(p->out, "const %s %s = %sb + %sl;\n", it, i, i, i);
}

static void declare_lanes(LoopPrinter *p, const Expr *e, const char *name, int axis, const char *count, int depth) {
    loops_line(p, depth);
    text_printf(p->out, "%s %s[%d];\n", p->d->type(e->dtype), name, strip_width(p->k->axes.at[axis].size));
    open_lanes(p, axis, count, depth, false, false);
    loops_line(p, depth + 1);
    text_printf(p->out, "%s[%sl] = %s;\n", name, p->axis_name[axis], loops_identity(p, e));
    loops_close(p, depth);
}

// Defines what of e the strip's axis has no part in, before its lanes begin.
static void hoist(LoopPrinter *p, Expr *e, int axis, int depth) {
    if (!e || p->name[e->id] || loops_is_leaf(e)) return;
    bool apart = !(e->axes_used >> axis & 1);
    for (int i = 0; i < 3; i++) hoist(p, e->a[i], axis, depth);
    if (!apart || loops_plain_index(e)) return;
    loops_define(p, e, depth);
    VEC_PUSH(p->arena, p->hoisted, e);
}

static void forget_hoisted(LoopPrinter *p) {
    for (int i = 0; i < p->hoisted.n; i++) p->name[p->hoisted.at[i]->id] = NULL;
    p->hoisted.n = 0;
}

// The condition without which a term of e adds nothing, and that the strip's axis has no part in; NULL: none.
static Expr *term_condition(const Expr *e, int axis) {
    const Expr *x = e->a[0];
    bool load = x->op == E_Load && x->a[1], select = x->op == E_Select;
    Expr *cond = load ? x->a[1] : select ? x->a[0] : NULL, *otherwise = load || select ? x->a[2] : NULL;
    if (!cond || cond->axes_used >> axis & 1 || !dtype_is_float(x->dtype) || x->dtype != e->dtype) return NULL;
    if (otherwise && otherwise->op != E_Const) return NULL;
    return (otherwise ? otherwise->c.f : 0) == reduce_identity(e->rop, e->dtype).f ? cond : NULL;
}

// One term of e and its peers for all lanes.
static void strip_terms(LoopPrinter *p, Expr *e, int axis, const char *count, int depth) {
    Expr *cond = p->peer[e->id] ? NULL : term_condition(e, axis),
         *term = cond && e->a[0]->op == E_Select ? e->a[0]->a[1] : e->a[0];
    int inner = cond ? depth + 1 : depth;
    if (cond) hoist(p, cond, axis, depth);
    else for (Expr *m = e; m; m = p->peer[m->id]) hoist(p, m->a[0], axis, depth);
    if (cond) {
        loops_line(p, depth);
        text_printf(p->out, "if (%s) {\n", loops_operand(p, cond));
        hoist(p, term, axis, inner);
        p->certain = cond;
    }
    open_lanes(p, axis, count, inner, true, e->rop != RED_SUM);
    for (Expr *m = e; m; m = p->peer[m->id]) {
        Expr *x = m == e ? term : m->a[0];
        loops_demand(p, x, inner + 1);
        loops_accumulate(p, m, x, p->name[m->id], inner + 1);
    }
    loops_close_fresh(p, inner);
    p->certain = NULL;
    if (cond) loops_close(p, depth);
    forget_hoisted(p);
}

// A long plain sum in blocks, each summed by itself.
static void strip_blocks(LoopPrinter *p, Expr *e, int axis, const char *count, int depth) {
    const char *i = p->axis_name[e->axes[0]], *it = p->d->index_type, *extent = loops_extent(p, e->axes[0]),
               *total = p->name[e->id];
    const char *name = arena_printf(p->arena, "r%dp", p->temps++);
    loops_line(p, depth);
    text_printf(p->out, "for (%s %sb = 0; %sb < %s; %sb += %d) {\n", it, i, i, extent, i, SUM_BLOCK);
    declare_lanes(p, e, name, axis, count, depth + 1);
    p->name[e->id] = arena_printf(p->arena, "%s[%sl]", name, p->axis_name[axis]);
    loops_line(p, depth + 1);
    text_printf(
        p->out, "for (%s %s = %sb; %s < %sb + %d && %s < %s; %s++) {\n", it, i, i, i, i, SUM_BLOCK, i, extent, i);
    strip_terms(p, e, axis, count, depth + 2);
    loops_close(p, depth + 1);
    open_lanes(p, axis, count, depth + 1, false, false);
    loops_line(p, depth + 2);
    text_printf(p->out, "%s += %s;\n", total, p->name[e->id]);
    loops_close(p, depth + 1);
    loops_close(p, depth);
    p->name[e->id] = total;
}

// Does cond hold for all of e's terms when it does for the first and the last? So it does where each comparison goes
// with one axis alone.
static bool holds_between(const LoopPrinter *p, const Expr *e, const Expr *cond) {
    int64_t coef[64], c0;
    uint64_t axes = 0;
    if (cond->op == E_And) return holds_between(p, e, cond->a[0]) && holds_between(p, e, cond->a[1]);
    for (int i = 0; i < e->n_axes; i++) axes += cond->axes_used >> e->axes[i] & 1;
    bool compares = (cond->op == E_Lt || cond->op == E_Le) && cond->a[0]->dtype == DT_INDEX;
    return compares && axes < 2 && expr_affine(cond->a[0], p->k->axes.n, coef, &c0)
        && expr_affine(cond->a[1], p->k->axes.n, coef, &c0);
}

// Where a few terms have a condition and all of them hold, as inside of an image: no loops and no array, sums stay in
// registers. Leaves an else open.
static void strip_inside(LoopPrinter *p, Expr *e, int axis, const char *count, int depth) {
    Expr *cond = term_condition(e, axis), *term = e->a[0]->op == E_Select ? e->a[0]->a[1] : e->a[0];
    const char *all = arena_printf(p->arena, "all%d", p->temps++), *sum = arena_printf(p->arena, "r%d", p->temps++);
    int64_t at[MAX_RANK] = { 0 };
    loops_line(p, depth);
    text_printf(p->out, "bool %s = true;\n", all);
    for (int last = 0; last < 2; last++) {
        for (int i = 0; i < e->n_axes; i++) at[i] = last ? p->k->axes.at[e->axes[i]].size - 1 : 0;
        loops_open_term(p, e, cond->axes_used, at, depth);
        hoist(p, cond, axis, depth + 1);
        loops_line(p, depth + 1);
        text_printf(p->out, "%s = %s && %s;\n", all, all, loops_operand(p, cond));
        forget_hoisted(p);
        loops_close(p, depth);
    }
    loops_next_term(p, e, at);
    loops_line(p, depth);
    text_printf(p->out, "if (%s) {\n", all);
    open_lanes(p, axis, count, depth + 1, true, e->rop != RED_SUM);
    loops_line(p, depth + 2);
    text_printf(p->out, "%s %s = %s;\n", p->d->type(e->dtype), sum, loops_identity(p, e));
    p->certain = cond;
    p->name[cond->id] = "true";                         // nobody asks
    do {
        loops_open_term(p, e, term->axes_used, at, depth + 2);
        loops_demand(p, term, depth + 3);
        loops_accumulate(p, e, term, sum, depth + 3);
        loops_close_fresh(p, depth + 2);
    } while (loops_next_term(p, e, at));
    p->certain = NULL;
    p->name[cond->id] = NULL;
    loops_line(p, depth + 2);
    text_printf(p->out, "%s = %s;\n", p->name[e->id], sum);
    loops_close(p, depth + 1);
    loops_line(p, depth);
    text_printf(p->out, "} else {\n");
}

static void strip_reduce(LoopPrinter *p, Expr *e, int axis, const char *count, int depth) {
    for (Expr *m = e; m; m = p->peer[m->id]) {
        const char *name = arena_printf(p->arena, "r%dl", p->temps++);
        p->name[m->id] = arena_printf(p->arena, "%s[%sl]", name, p->axis_name[axis]);
        declare_lanes(p, m, name, axis, count, depth);
    }
    if (is_float_sum(e) && !p->peer[e->id] && e->n_axes == 1 && count_terms(p, e) > MAX_STRIP_SUM) {
        strip_blocks(p, e, axis, count, depth);
        return;
    }
    const Expr *cond = !p->peer[e->id] && loops_unrolls(p, e) ? term_condition(e, axis) : NULL;
    bool apart = cond && holds_between(p, e, cond);
    if (apart) strip_inside(p, e, axis, count, depth++);
    for (int i = 0; i < e->n_axes; i++) loops_open(p, e->axes[i], depth + i);
    strip_terms(p, e, axis, count, depth + e->n_axes);
    for (int i = e->n_axes - 1; i >= 0; i--) loops_close(p, depth + i);
    if (apart) loops_close(p, depth - 1);
}

static void strip_points(LoopPrinter *p, int scope, const char *count, int depth) {
    int axis = p->scopes.at[scope].axis;
    for (int i = 0; i < p->exprs.n; i++) {
        Expr *e = p->exprs.at[i];
        if (e->op == E_Reduce && p->scope_of[e->id] >= scope && !p->follows[e->id])
            strip_reduce(p, e, axis, count, depth);
    }
    open_lanes(p, axis, count, depth, true, false);
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        loops_demand(p, s->index, depth + 1);
        loops_demand(p, s->guard, depth + 1);
        loops_demand(p, s->expr, depth + 1);
    }
    loops_stores(p, depth + 1);
    loops_close_fresh(p, depth);
    for (int i = 0; i < p->exprs.n; i++)
        if (p->scope_of[p->exprs.at[i]->id] >= scope) p->name[p->exprs.at[i]->id] = NULL;
}

void loops_strips(LoopPrinter *p, int scope, int width, PrintPoints points, int depth) {
    int axis = p->scopes.at[scope].axis;
    bool ranged = loops_is_ranged(p, axis);
    const char *i = p->axis_name[axis], *it = p->d->index_type, *extent = ranged ? p->d->last : loops_extent(p, axis);
    const char *first = ranged ? p->d->first : "0";
    Dim size = p->k->axes.at[axis].size;
    bool fixed = dim_is_const(size) && !ranged;
    loops_line(p, depth);
    text_printf(p->out, "for (%s %sb = %s; %sb + %d <= %s; %sb += %d) {\n", it, i, first, i, width, extent, i, width);
    points(p, scope, arena_printf(p->arena, "%d", width), depth + 1);
    loops_close(p, depth);
    if (fixed && size % width == 0) return;
    loops_line(p, depth);
    text_printf(p->out, "{\n");
    loops_line(p, depth + 1);
    if (ranged)
        text_printf(p->out, "const %s %sb = %s + (%s - %s) / %d * %d;\n", it, i, first, extent, first, width, width);
    else text_printf(p->out, "const %s %sb = %s / %d * %d;\n", it, i, extent, width, width);
    points(p, scope,
        fixed ? arena_printf(p->arena, "%d", (int)(size % width)) : arena_printf(p->arena, "%s - %sb", extent, i),
        depth + 1);
    loops_close(p, depth);
}

void strips_emit(LoopPrinter *p, int scope, int depth) {
    loops_strips(p, scope, strip_width(p->k->axes.at[p->scopes.at[scope].axis].size), strip_points, depth);
}
