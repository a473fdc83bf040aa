// SPDX-License-Identifier: MIT OR Apache-2.0
// Where conditions of loads fail only near the ends of the innermost parallel axis, those points have a loop of their
// own, and the others one without the conditions, which the C compiler makes vector code of.
//
//   for (i2 = 0; i2 < 192; i2 += i2 == 1 ? 189 : 1) { sum of (1 < i2 + i3 && i2 + i3 < 194 ? x[i2 + i3 - 2] : 0) }
//   for (i2 = 2; i2 < 190; i2++) { sum of x[i2 + i3 - 2] }
#include "loops.h"

enum { MIN_INTERIOR = 16 };

// The points lo..hi-1 of the axis where e, a < of indices, is true whatever the reductions' axes are. False: none, or
// it is no such condition.
static bool true_within(const LoopPrinter *p, const Expr *e, int axis, int64_t *lo, int64_t *hi) {
    int64_t a[64] = { 0 }, b[64] = { 0 }, a0, b0, extent = p->k->axes.at[axis].extent;
    if (e->op != E_Lt || e->a[0]->dtype != DT_INDEX || !expr_affine(e->a[0], p->k->axes.n, a, &a0)
        || !expr_affine(e->a[1], p->k->axes.n, b, &b0))
        return false;
    int64_t least = b0 - a0, slope = b[axis] - a[axis];     // e: slope * i + least > 0
    for (int i = 0; i < p->k->axes.n; i++) {
        int64_t c = b[i] - a[i];
        if (i == axis || c == 0) continue;
        if (!p->k->axes.at[i].reduce || !dim_is_const(p->k->axes.at[i].size)) return false;
        if (c < 0) least += c * (p->k->axes.at[i].extent - 1);
    }
    *lo = 0;
    *hi = extent;
    if (slope > 0 && least <= 0) *lo = -least / slope + 1;
    if (slope < 0) *hi = least <= 0 ? 0 : (least - 1) / -slope + 1;
    if (*hi > extent) *hi = extent;
    return slope != 0 && *lo < *hi;
}

Ends ends_find(const LoopPrinter *p, int scope) {
    int axis = p->scopes.at[scope].axis;
    int64_t lo = 0, hi = p->k->axes.at[axis].extent, extent = hi, from, to;
    bool *holds = NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1), found = false;
    if (!p->d->lanes || p->shared[axis] || loops_is_ranged(p, axis) || !dim_is_const(p->k->axes.at[axis].size))
        return (Ends){ .holds = NULL };
    for (int n = 0; n < p->exprs.n; n++) {
        const Expr *e = p->exprs.at[n];
        if (e->op == E_And) holds[e->id] = holds[e->a[0]->id] && holds[e->a[1]->id];
        if (p->scope_of[e->id] < scope || !true_within(p, e, axis, &from, &to)) continue;
        from = from > lo ? from : lo;
        to = to < hi ? to : hi;
        if (to - from < MIN_INTERIOR || to - from < extent / 4 * 3) continue;
        lo = from;
        hi = to;
        holds[e->id] = found = true;
    }
    return (Ends){ lo, hi, found && (lo > 0 || hi < extent) ? holds : NULL };
}

// The loop over the points that are not among those from lo to hi.
void ends_print(LoopPrinter *p, int scope, const Ends *e, int depth) {
    const int axis = p->scopes.at[scope].axis;
    const int64_t lo = e->lo, hi = e->hi, extent = p->k->axes.at[axis].extent;
    const char *i = p->axis_name[axis], *it = p->d->index_type;
    loops_line(p, depth);
    if (lo == 0)
        text_printf(p->out, "for (%s %s = %lld; %s < %lld; %s++) {\n", it, i, (long long)hi, i, (long long)extent, i);
    else if (hi == extent) text_printf(p->out, "for (%s %s = 0; %s < %lld; %s++) {\n", it, i, i, (long long)lo, i);
    else
        text_printf(p->out, "for (%s %s = 0; %s < %lld; %s += %s == %lld ? %lld : 1) {\n", it, i, i, (long long)extent,
            i, i, (long long)lo - 1, (long long)(hi - lo + 1));
    p->scope(p, scope, depth + 1);
    loops_close(p, depth);
}

// Prints the loop over the axis of `scope` as two and returns true, where that pays.
bool ends_emit(LoopPrinter *p, int scope, int depth) {
    const char *i = p->axis_name[p->scopes.at[scope].axis], *it = p->d->index_type;
    for (int s = scope + 1; s <= p->last_parallel; s++)
        if (p->k->axes.at[p->scopes.at[s].axis].size != 1) return false;
    const Ends e = ends_find(p, scope);
    if (!e.holds) return false;
    ends_print(p, scope, &e, depth);
    for (int n = 0; n < p->exprs.n; n++) {
        int id = p->exprs.at[n]->id;
        if (p->scope_of[id] >= scope) p->name[id] = NULL;
        p->holds[id] = e.holds[id];
    }
    loops_line(p, depth);
    text_printf(p->out, "for (%s %s = %lld; %s < %lld; %s++) {\n", it, i, (long long)e.lo, i, (long long)e.hi, i);
    p->scope(p, scope, depth + 1);
    loops_close(p, depth);
    for (int n = 0; n < p->exprs.n; n++) p->holds[p->exprs.at[n]->id] = false;
    return true;
}
