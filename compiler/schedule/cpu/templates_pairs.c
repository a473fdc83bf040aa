// SPDX-License-Identifier: MIT OR Apache-2.0
// Products in training with --precision bf16 (templates/c/gemm_pairs.c): of activations, gradients and parameters, all
// of which change from run to run. In: a kernel in canonical form. Out: its template, holes and scratch memory.
#include "schedule/schedule.h"
#include "templates.h"

#include <string.h>

// Rounding a factor costs what a product with a few rows or columns does: below this it gains nothing.
enum { LEAST = 16 };

// Of panels, pairs of numbers, and of a block of rows in whole tiles, whose numbers are floats where a target has no
// instructions for pairs. Tiles have half the rows where registers are few.
static int64_t scratch_bytes(const GemmTiles *t) {
    const int64_t half = (t->mr + 1) / 2, rows = max64(ceil_div(t->mc, t->mr) * t->mr, ceil_div(t->mc, half) * half);
    return 4 * (t->kc * t->nc + rows * max64(2 * t->kc, t->kc + 8));
}

bool plan_pairs(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    const Contraction *s = &k->gemm;
    if (!o->train || !o->precision || strcmp(o->precision, "bf16")
        || k->operand[0]->type.dtype != DT_F32 || dim_upper(g, s->m) < LEAST
        || dim_upper(g, s->n) < LEAST || dim_upper(g, s->k) < LEAST)
        return false;
    TileTarget target = template_target(o);
    // strides 0: both factors are copied; half as long, a pair of numbers takes the room of one
    GemmShape shape = { .batch = dim_upper(g, s->batch),
        .m = dim_upper(g, s->m),
        .n = dim_upper(g, s->n),
        .k = ceil_div(dim_upper(g, s->k), 2),
        .open_m = !dim_is_const(s->m) };
    GemmTiles t = gemm_tiles(&shape, &target);
    k->template = &template_gemm_pairs;
    template_hole_dim(a, k, "BATCH", s->batch);
    template_hole_dim(a, k, "M", s->m);
    template_hole_dim(a, k, "N", s->n);
    template_hole_dim(a, k, "K", s->k);
    template_hole_dim(a, k, "AB", s->a_batch);
    template_hole_dim(a, k, "AM", s->a_row);
    template_hole_dim(a, k, "AK", s->a_col);
    template_hole_dim(a, k, "BB", s->b_batch);
    template_hole_dim(a, k, "BK", s->b_row);
    template_hole_dim(a, k, "BN", s->b_col);
    template_hole_dim(a, k, "CB", s->c_batch);
    template_hole_dim(a, k, "CM", s->c_row);
    template_hole(a, k, "MR", t.mr);
    template_hole(a, k, "NV", t.nv);
    template_hole_dim(a, k, "KC", 2 * t.kc);
    template_hole_dim(a, k, "NC", t.nc);
    template_hole_dim(a, k, "MC", t.mc);
    k->scratch_bytes = scratch_bytes(&t);
    return true;
}
