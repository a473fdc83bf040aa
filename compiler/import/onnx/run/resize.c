// SPDX-License-Identifier: MIT OR Apache-2.0
// Resize and Upsample to sizes that only the running program knows.
//
// In: an OnnxNode with scales, sizes or a region that are computed. Out: per axis the same as in ops/resize.c, with
// coordinates and weights as values of f64 instead of constants: a gather for `nearest`, weighted gathers for
// `linear` and `cubic`, and for antialiasing filters, whose width depends on the scale, a product with a matrix of
// weights over the axis and what repeats beyond its ends.
#include "import/onnx/ops/resize.h"

#include <math.h>
#include <string.h>

// One axis: its size, its new size (also as f64 scalars), scale and region as f64 scalars.
typedef struct RunAxis { int axis; Dim out; Value *n, *m, *scale, *start, *end; } RunAxis;

static bool is(const char *s, const char *t) { return !strcmp(s, t); }

static Value *number(OnnxNode *n, double v) { return b_scalar(n->g, DT_F64, v); }

// Where each output coordinate lies in the input: f64[out].
static Value *source(OnnxNode *n, const Resize *r, const RunAxis *p) {
    Value *x = b_iota(n->g, 1, &p->out, 0, DT_F64), *width = b_binary(n->g, OP_Mul, p->scale, p->n);
    if (is(r->coordinates, "asymmetric")) return b_binary(n->g, OP_Div, x, p->scale);
    if (is(r->coordinates, "tf_half_pixel_for_nn")) return B_MAP(n->g, "(x + 0.5) / y", "x y", x, p->scale);
    if (is(r->coordinates, "align_corners"))
        return B_MAP(n->g, "z == 1 ? 0 : x * (y - 1) / (z - 1)", "x y z", x, p->n, width);
    if (is(r->coordinates, "pytorch_half_pixel"))
        return B_MAP(n->g,
            r->mode == RESIZE_NEAREST ? "z == 1 ? 0 : (x + 0.5) / y - 0.5" : "z == 1 ? -0.5 : (x + 0.5) / y - 0.5",
            "x y z", x, p->scale, p->m);
    if (is(r->coordinates, "half_pixel_symmetric")) {
        Value *shift = B_MAP(n->g, "x / 2 * (1 - y / z)", "x y z", p->n, p->m, width);
        return B_MAP(n->g, "z + (x + 0.5) / y - 0.5", "x y z", x, p->scale, shift);
    }
    if (is(r->coordinates, "tf_crop_and_resize")) {
        Value *span = B_MAP(n->g, "(y - x) * (z - 1)", "x y z", p->start, p->end, p->n),
              *from = B_MAP(n->g, "x * (y - 1)", "x y", p->start, p->n);
        return B_MAP(n->g, "y + (w == 1 ? z / 2 : x * z / (w - 1))", "x y z w", x, from, span, width);
    }
    return B_MAP(n->g, "(x + 0.5) / y - 0.5", "x y", x, p->scale);
}

static Value *clamped(OnnxNode *n, Value *at, const RunAxis *p) {
    return b_cast(n->g, B_MAP(n->g, "min(max(x, 0), y - 1)", "x y", at, p->n), DT_I64);
}

static Value *nearest_axis(OnnxNode *n, const Resize *r, const RunAxis *p, Value *x, Value *at) {
    const char *how = is(r->rounding, "floor") ? "floor(x)" :
        is(r->rounding, "ceil")                ? "ceil(x)" :
        is(r->rounding, "round_prefer_ceil")   ? "floor(x + 0.5)" :
                                                 "ceil(x - 0.5)";
    return b_gather(n->g, x, clamped(n, B_MAP(n->g, how, "x", at), p), p->axis);
}

// The filter at the distance d, which is not negative.
static const char *filter_text(OnnxNode *n, const Resize *r) {
    if (r->mode == RESIZE_LINEAR) return "x < 1 ? 1 - x : 0";
    double a = r->cubic_a;
    return arena_printf(n->g->arena,
        "x <= 1 ? ((%.17g * x - %.17g) * x * x + 1) : x < 2 ? ((%.17g * x - %.17g) * x + %.17g) * x - %.17g : 0",
        a + 2, a + 3, a, 5 * a, 8 * a, 4 * a);
}

// A sum of 2 or 4 gathers, each with its weight along the axis.
static Value *taps_axis(OnnxNode *n, const Resize *r, const RunAxis *p, Value *x, Value *at) {
    int first = r->mode == RESIZE_LINEAR ? 0 : -1, last = r->mode == RESIZE_LINEAR ? 1 : 2, taps = last - first + 1;
    Value *base = b_unary(n->g, OP_Floor, at), *place[4], *weight[4], *total = NULL, *sum = NULL;
    for (int k = 0; k < taps; k++) {
        place[k] = B_MAP(n->g, arena_printf(n->g->arena, "x + %d", first + k), "x", base);
        weight[k] = B_MAP(n->g, filter_text(n, r), "x", B_MAP(n->g, "abs(x - y)", "x y", place[k], at));
        if (r->exclude_outside) weight[k] = B_MAP(n->g, "y >= 0 && y < z ? x : 0", "x y z", weight[k], place[k], p->n);
        total = total ? b_binary(n->g, OP_Add, total, weight[k]) : weight[k];
    }
    for (int k = 0; k < taps; k++) {
        Value *w = r->exclude_outside ? B_MAP(n->g, "y == 0 ? x : x / y", "x y", weight[k], total) : weight[k];
        w = b_along(n->g, b_cast(n->g, w, x->type.dtype), x->type.rank, p->axis);
        Value *term = b_binary(n->g, OP_Mul, b_gather(n->g, x, clamped(n, place[k], p), p->axis), w);
        sum = sum ? b_binary(n->g, OP_Add, sum, term) : term;
    }
    return sum;
}

// y = W x over the axis with its first and last elements repeated by as much as the filter may reach over: at most
// twice its size, as there is at least one result.
static Value *matrix_axis(OnnxNode *n, const Resize *r, const RunAxis *p, Value *x, Value *at) {
    if (!dim_is_const(x->type.dim[p->axis]))
        return onnx_fail(n, "antialiasing at scales that are computed wants a known size of axis %d", p->axis);
    int64_t size = x->type.dim[p->axis], reach = 2 * size, wide = size + 2 * reach;
    int last = x->type.rank - 1;
    Value *place = B_MAP(n->g, arena_printf(n->g->arena, "x - %lld", (long long)reach), "x",
        b_iota(n->g, 2, (Dim[]){ 1, wide }, 1, DT_F64));
    Value *shrink = B_MAP(n->g, "x < 1 ? x : 1", "x", p->scale), *from = b_reshape(n->g, at, 2, (Dim[]){ p->out, 1 });
    Value *w = B_MAP(n->g, filter_text(n, r), "x", B_MAP(n->g, "abs(x - y) * z", "x y z", place, from, shrink));
    if (r->exclude_outside)
        w = B_MAP(n->g, arena_printf(n->g->arena, "y >= 0 && y < %lld ? x : 0", (long long)size), "x y", w, place);
    Value *sum = b_reduce(n->g, OP_ReduceSum, w, 1, (int64_t[]){ 1 }, true);
    w = b_cast(n->g, B_MAP(n->g, "y == 0 ? x : x / y", "x y", w, sum), x->type.dtype);
    Value *repeated = b_gather(n->g, x, clamped(n, b_reshape(n->g, place, 1, &wide), p), p->axis);
    return b_swap(n->g, b_matmul(n->g, b_swap(n->g, repeated, p->axis, last), b_swap(n->g, w, 0, 1)), p->axis, last);
}

static Value *resize_axis(OnnxNode *n, const Resize *r, const RunAxis *p, Value *x) {
    Value *at = source(n, r, p), *v;
    if (r->mode == RESIZE_NEAREST) v = nearest_axis(n, r, p, x, at);
    else v = r->antialias ? matrix_axis(n, r, p, x, at) : taps_axis(n, r, p, x, at);
    if (!v || !is(r->coordinates, "tf_crop_and_resize")) return v;
    Value *outside = b_along(n->g, B_MAP(n->g, "x < 0 || x > y - 1", "x y", at, p->n), v->type.rank, p->axis);
    return b_where(n->g, outside, b_like(n->g, v, r->extrapolation), v);
}

static Value *scalar_at(OnnxNode *n, Value *list, int i) { return list ? b_item(n->g, list, i) : NULL; }

// Scales and new sizes of all axes as lists: f64[count] and i64[count].
static bool read_lists(OnnxNode *n, const Resize *r, Value *lengths, int scales_at, Value **scales, Value **sizes) {
    int count;
    Value *n_f = b_cast(n->g, lengths, DT_F64);
    if (scales_at >= 0) {
        Value *given = onnx_input(n, scales_at);
        if (!given || given->type.rank != 1 || given->type.dim[0] != r->count)
            return onnx_fail(n, "scales must be a list of %d numbers", r->count), false;
        *scales = b_cast(n->g, given, DT_F64);
        *sizes = b_cast(n->g, B_MAP(n->g, "floor(x * y)", "x y", n_f, *scales), DT_I64);
        return *sizes != NULL;
    }
    *sizes = onnx_list(n, 3, "sizes", &count);
    if (!*sizes) return false;
    if (count != r->count) return onnx_fail(n, "%d sizes for %d axes", count, r->count), false;
    *scales = B_MAP(n->g, "y == 0 ? 1 : x / y", "x y", b_cast(n->g, *sizes, DT_F64), n_f);
    const char *policy = onnx_string(n, "keep_aspect_ratio_policy", "stretch");
    if (is(policy, "stretch")) return *scales != NULL;
    Value *one = b_reduce(
        n->g, is(policy, "not_smaller") ? OP_ReduceMax : OP_ReduceMin, *scales, 1, (int64_t[]){ 0 }, true);
    *scales = b_expand(n->g, one, 1, (Dim[]){ r->count });
    *sizes = b_cast(n->g, B_MAP(n->g, "floor(x * y + 0.5)", "x y", n_f, *scales), DT_I64);
    return *sizes != NULL;
}

// floor(old * scale) as an expression of the old size: a constant scale, which was 32 bits wide, is an integer over a
// power of two.
static bool scaled_size(Graph *g, Dim old, const Tensor *scales, int i, Dim *out) {
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

Value *onnx_resize_run(OnnxNode *n, const Resize *r, const int64_t *axes, int scales_at) {
    Value *x = n->in[0], *scales, *sizes, *roi = NULL;
    DType d = x->type.dtype, wide = dtype_is_float(d) ? dtype_wide(d) : DT_F32;
    Dim old[MAX_RANK];
    for (int i = 0; i < r->count; i++) old[i] = x->type.dim[axes[i]];
    Value *lengths = b_numbers(n->g, r->count, old);
    if (!read_lists(n, r, lengths, scales_at, &scales, &sizes)) return NULL;
    if (is(r->coordinates, "tf_crop_and_resize")) {
        if (!(roi = b_cast(n->g, onnx_input(n, 1), DT_F64))) return NULL;
        if (roi->type.rank != 1 || roi->type.dim[0] != 2 * r->count)
            return onnx_fail(n, "roi must be a list of %d numbers", 2 * r->count);
    }
    if (r->mode != RESIZE_NEAREST) x = b_cast(n->g, x, wide);
    for (int i = 0; i < r->count && x; i++) {
        RunAxis p = { .axis = (int)axes[i] };
        Tensor *scale = value_const(scales);
        if (scale && tensor_get_f(scale, i) == 1 && !roi) continue;
        if (!(scales_at >= 0 && scaled_size(n->g, old[i], scale, i, &p.out))
            && !onnx_measure(n, sizes, i, 0, p.axis, 0, NO_LIMIT, &p.out))
            return NULL;
        p.scale = scalar_at(n, scales, i);
        p.n = b_cast(n->g, scalar_at(n, lengths, i), DT_F64);
        p.m = b_cast(n->g, scalar_at(n, sizes, i), DT_F64);
        p.start = roi ? scalar_at(n, roi, i) : number(n, 0);
        p.end = roi ? scalar_at(n, roi, r->count + i) : number(n, 1);
        x = resize_axis(n, r, &p, x);
    }
    return b_cast(n->g, x, d);
}
