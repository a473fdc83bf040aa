// SPDX-License-Identifier: MIT OR Apache-2.0
// Loop kernels that go strip by strip: pooling, maps, sums with another tensor. In: a loop nest. Out: the axis whose
// steps are rows of the result, stored one after the other, and what of an operand each of them reads, from the affine
// indices of its loads.
#include "strips.h"

static int64_t clamp(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

// The range of an index, and what a step of `axis` adds to it; false: it is not affine.
static bool index_by_axis(const Kernel *k, const Expr *index, int axis, int64_t *per, int64_t *low, int64_t *high) {
    int64_t coef[64] = { 0 }, at;
    if (k->axes.n > 64 || !expr_affine(index, k->axes.n, coef, &at)) return false;
    *low = *high = at;
    for (int i = 0; i < k->axes.n; i++) {
        const int64_t most = i == axis ? 0 : coef[i] * (k->axes.at[i].extent - 1);
        *low += most < 0 ? most : 0;
        *high += most > 0 ? most : 0;
    }
    *per = coef[axis];
    return true;
}

// A sum over what has no part in the axis would be computed again for each strip.
static bool sums_along(const Expr *e, int axis, bool *seen) {
    if (!e || seen[e->id]) return true;
    seen[e->id] = true;
    if (e->op == E_Reduce && !(e->axes_used >> axis & 1)) return false;
    return sums_along(e->a[0], axis, seen) && sums_along(e->a[1], axis, seen) && sums_along(e->a[2], axis, seen);
}

bool loop_rows(const Kernel *k, int *axis, int64_t *step) {
    if (k->kind != KERNEL_LOOP || k->stores.n != 1 || k->runs > 1 || k->sizes.n) return false;
    const Store *s = &k->stores.at[0];
    const Type *t = &s->value->type;
    int64_t low, high, i = 0;
    if (s->op != RED_NONE || s->guard || t->dtype == DT_STRING || !type_is_static(t)) return false;
    while (i < k->n_parallel && k->axes.at[i].size == 1) i++;
    if (i == k->n_parallel || k->axes.at[i].reduce || !index_by_axis(k, s->index, (int)i, step, &low, &high))
        return false;
    for (int j = 0; j < k->axes.n; j++)
        if (!dim_is_const(k->axes.at[j].size)) return false;
    *axis = (int)i;
    Arena *own = arena_new();
    const bool along = sums_along(s->expr, (int)i, NEW_ARRAY(own, bool, expr_count(k->exprs) + 1));
    arena_free(own);
    return along && low >= 0 && high < *step && *step * k->axes.at[i].extent == type_count(t);
}

static bool reach_of(const Kernel *k, const Value *v, const Expr *e, Reach *r, bool *seen) {
    int64_t per, low, high;
    if (!e || seen[e->id]) return true;
    seen[e->id] = true;
    if (e->op == E_Load && e->value == v) {
        const bool first = r->high < r->low;
        if (!index_by_axis(k, e->a[0], r->axis, &per, &low, &high)) return false;
        if (per < 0 || (!first && per != r->per)) return false;
        r->low = first || low < r->low ? low : r->low;
        r->high = first || high > r->high ? high : r->high;
        r->per = per;
    }
    return reach_of(k, v, e->a[0], r, seen) && reach_of(k, v, e->a[1], r, seen) && reach_of(k, v, e->a[2], r, seen);
}

bool loop_reach(const Kernel *k, const Value *v, Reach *out) {
    int64_t step;
    *out = (Reach){ .low = 1 };
    if (!type_is_static(&v->type) || !loop_rows(k, &out->axis, &step)) return false;
    out->count = type_count(&v->type);
    Arena *own = arena_new();
    const bool found = reach_of(k, v, k->stores.at[0].expr, out, NEW_ARRAY(own, bool, expr_count(k->exprs) + 1));
    arena_free(own);
    return found && out->low <= out->high;
}

int64_t reach_low(const Reach *r, int64_t step) { return clamp(r->per * step + r->low, r->count); }
int64_t reach_high(const Reach *r, int64_t step) { return clamp(r->per * step + r->high + 1, r->count); }
