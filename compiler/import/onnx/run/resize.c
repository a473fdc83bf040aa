// SPDX-License-Identifier: MIT OR Apache-2.0
// Resize and Upsample to sizes that only the running program knows.
//
// In: an OnnxNode with scales, sizes or a region that are computed. Out: the axes, measured, and what
// build/resize_run.c makes of them.
#include "import/onnx/ops/resize.h"

#include <string.h>

static bool is(const char *s, const char *t) { return !strcmp(s, t); }

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

Value *onnx_resize_run(OnnxNode *n, const Resize *r, const int64_t *axes, int scales_at) {
    Value *x = n->in[0], *scales, *sizes, *roi = NULL;
    DType d = x->type.dtype, wide = dtype_is_float(d) ? dtype_wide(d) : DT_F32;
    Dim old[MAX_RANK];
    for (int i = 0; i < r->count; i++) old[i] = x->type.dim[axes[i]];
    Value *lengths = b_numbers(n->g, r->count, old);
    if (!read_lists(n, r, lengths, scales_at, &scales, &sizes)) return NULL;
    if (r->coordinates == PLACE_CROP_AND_RESIZE) {
        if (!(roi = b_cast(n->g, onnx_input(n, 1), DT_F64))) return NULL;
        if (roi->type.rank != 1 || roi->type.dim[0] != 2 * r->count)
            return onnx_fail(n, "roi must be a list of %d numbers", 2 * r->count);
    }
    if (r->mode != RESIZE_NEAREST) x = b_cast(n->g, x, wide);
    for (int i = 0; i < r->count && x; i++) {
        RunAxis p = { .axis = (int)axes[i] };
        Tensor *scale = value_const(scales);
        if (scale && tensor_get_f(scale, i) == 1 && !roi) continue;
        if (!(scales_at >= 0 && resize_scaled_size(n->g, old[i], scale, i, &p.out))
            && !onnx_measure(n, sizes, i, 0, p.axis, 0, NO_LIMIT, &p.out))
            return NULL;
        p.scale = b_item(n->g, scales, i);
        p.n = b_cast(n->g, b_item(n->g, lengths, i), DT_F64);
        p.m = b_cast(n->g, b_item(n->g, sizes, i), DT_F64);
        p.start = roi ? b_item(n->g, roi, i) : b_scalar(n->g, DT_F64, 0);
        p.end = roi ? b_item(n->g, roi, r->count + i) : b_scalar(n->g, DT_F64, 1);
        x = b_resize_axis(n->g, r, &p, x);
    }
    return b_cast(n->g, x, d);
}
