// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders that resize axes to sizes that only the running program knows.
//
// In: scales, sizes or a region that are computed. Out: per axis the same as in build/resize.c, with coordinates and
// weights as values of f64 instead of constants: a gather for `nearest`, weighted gathers for `linear` and `cubic`, and
// for antialiasing filters, whose width depends on the scale, a product with a matrix of weights over the axis and what
// repeats beyond its ends.
#include "build/build.h"

#include <math.h>

// Where each output coordinate lies in the input: f64[out].
static Value *source(Graph *g, const Resize *r, const RunAxis *p) {
    Value *x = b_iota(g, 1, &p->out, 0, DT_F64), *width = b_binary(g, OP_Mul, p->scale, p->n);
    if (r->coordinates == PLACE_ASYMMETRIC) return b_binary(g, OP_Div, x, p->scale);
    if (r->coordinates == PLACE_HALF_PIXEL_FOR_NN) return B_MAP(g, "(x + 0.5) / y", "x y", x, p->scale);
    if (r->coordinates == PLACE_ALIGN_CORNERS)
        return B_MAP(g, "z == 1 ? 0 : x * (y - 1) / (z - 1)", "x y z", x, p->n, width);
    if (r->coordinates == PLACE_PYTORCH_HALF_PIXEL)
        return B_MAP(g,
            r->mode == RESIZE_NEAREST ? "z == 1 ? 0 : (x + 0.5) / y - 0.5" : "z == 1 ? -0.5 : (x + 0.5) / y - 0.5",
            "x y z", x, p->scale, p->m);
    if (r->coordinates == PLACE_HALF_PIXEL_SYMMETRIC) {
        Value *shift = B_MAP(g, "x / 2 * (1 - y / z)", "x y z", p->n, p->m, width);
        return B_MAP(g, "z + (x + 0.5) / y - 0.5", "x y z", x, p->scale, shift);
    }
    if (r->coordinates == PLACE_CROP_AND_RESIZE) {
        Value *span = B_MAP(g, "(y - x) * (z - 1)", "x y z", p->start, p->end, p->n),
              *from = B_MAP(g, "x * (y - 1)", "x y", p->start, p->n);
        return B_MAP(g, "y + (w == 1 ? z / 2 : x * z / (w - 1))", "x y z w", x, from, span, width);
    }
    return B_MAP(g, "(x + 0.5) / y - 0.5", "x y", x, p->scale);
}

static Value *clamped(Graph *g, Value *at, const RunAxis *p) {
    return b_cast(g, B_MAP(g, "min(max(x, 0), y - 1)", "x y", at, p->n), DT_I64);
}

static Value *nearest_axis(Graph *g, const Resize *r, const RunAxis *p, Value *x, Value *at) {
    const char *how = r->rounding == ROUND_FLOOR ? "floor(x)" :
        r->rounding == ROUND_CEIL                ? "ceil(x)" :
        r->rounding == ROUND_PREFER_CEIL   ? "floor(x + 0.5)" :
                                                 "ceil(x - 0.5)";
    return b_gather(g, x, clamped(g, B_MAP(g, how, "x", at), p), p->axis);
}

// The filter at the distance d, which is not negative.
static const char *filter_text(Graph *g, const Resize *r) {
    if (r->mode == RESIZE_LINEAR) return "x < 1 ? 1 - x : 0";
    double a = r->cubic_a;
    return arena_printf(g->arena,
        "x <= 1 ? ((%.17g * x - %.17g) * x * x + 1) : x < 2 ? ((%.17g * x - %.17g) * x + %.17g) * x - %.17g : 0",
        a + 2, a + 3, a, 5 * a, 8 * a, 4 * a);
}

// A sum of 2 or 4 gathers, each with its weight along the axis.
static Value *taps_axis(Graph *g, const Resize *r, const RunAxis *p, Value *x, Value *at) {
    int first = r->mode == RESIZE_LINEAR ? 0 : -1, last = r->mode == RESIZE_LINEAR ? 1 : 2, taps = last - first + 1;
    Value *base = b_unary(g, OP_Floor, at), *place[4], *weight[4], *total = NULL, *sum = NULL;
    for (int k = 0; k < taps; k++) {
        place[k] = B_MAP(g, arena_printf(g->arena, "x + %d", first + k), "x", base);
        weight[k] = B_MAP(g, filter_text(g, r), "x", B_MAP(g, "abs(x - y)", "x y", place[k], at));
        if (r->exclude_outside) weight[k] = B_MAP(g, "y >= 0 && y < z ? x : 0", "x y z", weight[k], place[k], p->n);
        total = total ? b_binary(g, OP_Add, total, weight[k]) : weight[k];
    }
    for (int k = 0; k < taps; k++) {
        Value *w = r->exclude_outside ? B_MAP(g, "y == 0 ? x : x / y", "x y", weight[k], total) : weight[k];
        w = b_along(g, b_cast(g, w, x->type.dtype), x->type.rank, p->axis);
        Value *term = b_binary(g, OP_Mul, b_gather(g, x, clamped(g, place[k], p), p->axis), w);
        sum = sum ? b_binary(g, OP_Add, sum, term) : term;
    }
    return sum;
}

// y = W x over the axis with its first and last elements repeated by as much as the filter may reach over: at most
// twice its size, as there is at least one result.
static Value *matrix_axis(Graph *g, const Resize *r, const RunAxis *p, Value *x, Value *at) {
    if (!dim_is_const(x->type.dim[p->axis]))
        return graph_fail(g, "antialiasing at scales that are computed wants a known size of axis %d", p->axis);
    int64_t size = x->type.dim[p->axis], reach = 2 * size, wide = size + 2 * reach;
    int last = x->type.rank - 1;
    Value *place = B_MAP(
        g, arena_printf(g->arena, "x - %lld", (long long)reach), "x", b_iota(g, 2, (Dim[]){ 1, wide }, 1, DT_F64));
    Value *shrink = B_MAP(g, "x < 1 ? x : 1", "x", p->scale), *from = b_reshape(g, at, 2, (Dim[]){ p->out, 1 });
    Value *w = B_MAP(g, filter_text(g, r), "x", B_MAP(g, "abs(x - y) * z", "x y z", place, from, shrink));
    if (r->exclude_outside)
        w = B_MAP(g, arena_printf(g->arena, "y >= 0 && y < %lld ? x : 0", (long long)size), "x y", w, place);
    Value *sum = b_reduce(g, OP_ReduceSum, w, 1, (int64_t[]){ 1 }, true);
    w = b_cast(g, B_MAP(g, "y == 0 ? x : x / y", "x y", w, sum), x->type.dtype);
    Value *repeated = b_gather(g, x, clamped(g, b_reshape(g, place, 1, &wide), p), p->axis);
    repeated = b_swap(g, repeated, p->axis, last);
    return b_swap(g, b_matmul(g, repeated, b_swap(g, w, 0, 1)), p->axis, last);
}

Value *b_resize_axis(Graph *g, const Resize *r, const RunAxis *p, Value *x) {
    Value *at = source(g, r, p), *v;
    if (r->mode == RESIZE_NEAREST) v = nearest_axis(g, r, p, x, at);
    else v = r->antialias ? matrix_axis(g, r, p, x, at) : taps_axis(g, r, p, x, at);
    if (!v || r->coordinates != PLACE_CROP_AND_RESIZE) return v;
    Value *outside = b_along(g, B_MAP(g, "x < 0 || x > y - 1", "x y", at, p->n), v->type.rank, p->axis);
    return b_where(g, outside, b_like(g, v, r->extrapolation), v);
}

// floor(old * scale) as an expression of the old size: a constant scale, which was 32 bits wide, is an integer over a
// power of two.
bool resize_scaled_size(Graph *g, Dim old, const Tensor *scales, int i, Dim *out) {
    enum { SIGNIFICANT = 24 };
    double scale = scales ? tensor_get_f(scales, i) : 0, halves = 1;
    while (scale != floor(scale) && halves < 1 << SIGNIFICANT) {
        scale *= 2;
        halves *= 2;
    }
    if (!(scale > 0) || scale != floor(scale) || scale > INT32_MAX || dim_upper(g, old) > INT32_MAX) return false;
    *out = dim_div(g, dim_mul(g, old, (Dim)scale), (Dim)halves);
    return true;
}
