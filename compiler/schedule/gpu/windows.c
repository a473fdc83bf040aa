// SPDX-License-Identifier: MIT OR Apache-2.0
// Sums over windows whose channels lie last: depthwise convolutions, and pools.
//
// In: a loop nest. Out: is it such a one? Neighbours along its last axis are neighbours in memory, in whatever it
// stores and, of the terms of its one small reduction, reads: then a thread has several of them, and reads and stores
// them at once (codegen/gpu/windows.c), instead of points of a plane, whose elements lie apart.
#include "tile.h"
#include "ir/expr.h"

enum { TOGETHER = 8,                                    // neighbours, at most
       MOST_TERMS = 64, MOST_LOADS = 4 };

typedef struct Search {
    const Kernel *kernel;
    int axis;
    bool *seen, inside, fits;
    const Expr *reduce;
    int loads;
} Search;

// Do neighbours along the axis lie in order, from whole vectors on?
static bool in_order(const Search *s, const Expr *index) {
    int64_t coef[64], c0;
    if (!expr_affine(index, s->kernel->axes.n, coef, &c0) || coef[s->axis] != 1 || c0 % TOGETHER) return false;
    for (int i = 0; i < s->kernel->axes.n; i++)
        if (i != s->axis && coef[i] % TOGETHER) return false;
    return true;
}

static void search(Search *s, const Expr *e) {
    if (!e || s->seen[e->id] || !s->fits) return;
    s->seen[e->id] = true;
    const bool walks = e->axes_used >> s->axis & 1;
    if (e->op == E_Reduce) {
        s->fits = !s->reduce && !s->inside && !reduce_is_arg(e->rop) && e->dtype == DT_F32;
        s->reduce = e;
    }
    if (e->op == E_Load && s->inside && walks) {
        const bool plain = !e->a[1] || (!(e->a[1]->axes_used >> s->axis & 1) && (!e->a[2] || e->a[2]->op == E_Const));
        s->fits = plain && s->loads++ < MOST_LOADS && e->value->type.dtype == DT_F32 && in_order(s, e->a[0]);
    }
    const bool outside = !s->inside && e->op == E_Reduce;
    s->inside = s->inside || e->op == E_Reduce;
    for (int i = 0; i < 3; i++) search(s, e->a[i]);
    if (outside) s->inside = false;
}

bool gpu_windows(Arena *a, const Kernel *k) {
    Search s = { .kernel = k, .axis = k->n_parallel - 1, .fits = true };
    int64_t terms = 1;
    s.seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1);
    while (s.axis >= 0 && k->axes.at[s.axis].extent == 1) s.axis--;
    if (s.axis < 0 || k->axes.at[s.axis].extent % TOGETHER || k->loop.spread != k->n_parallel) return false;
    if (k->stores.n != 1 || k->stores.at[0].guard || k->stores.at[0].op != RED_NONE) return false;
    if (!in_order(&s, k->stores.at[0].index) || k->stores.at[0].value->type.dtype != DT_F32) return false;
    search(&s, k->stores.at[0].expr);
    if (!s.fits || !s.reduce || !s.loads) return false;
    for (int i = 0; i < s.reduce->n_axes; i++) {
        terms *= k->axes.at[s.reduce->axes[i]].extent;
        if (terms > MOST_TERMS) return false;
    }
    return true;
}
