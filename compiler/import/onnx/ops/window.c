// SPDX-License-Identifier: MIT OR Apache-2.0
// Sliding windows: convolutions and pools.
//
// In: an OnnxNode with kernel_shape, strides, dilations, pads, auto_pad and ceil_mode in their many forms. Out: what
// build/window.c makes of a Window, in which all padding is explicit.
#include "import/onnx/run/measure.h"

#include <string.h>

#define MAX_EXTENT (INT64_C(1) << 31)

// Reads an attribute of `count` sizes, or fills with `otherwise`.
static bool sizes_attr(OnnxNode *n, const char *name, int count, int64_t otherwise, int64_t least, int64_t *out) {
    int given;
    const int64_t *v = onnx_ints(n, name, &given);
    if (v && given != count)
        return onnx_fail(n, "attribute \"%s\" has %d elements, expected %d", name, given, count), false;
    for (int i = 0; i < count; i++) {
        out[i] = v ? v[i] : otherwise;
        if (out[i] < least || out[i] > MAX_EXTENT)
            return onnx_fail(n, "attribute \"%s\" holds %lld", name, (long long)out[i]), false;
    }
    return true;
}

// A weight's sizes are as large as attributes may be, at most: then nothing overflows that is made of both.
static bool kernel_fits(OnnxNode *n, int rank, const Dim *kernel) {
    for (int i = 0; i < rank; i++)
        if (kernel[i] > MAX_EXTENT)
            return onnx_fail(n, "the kernel is %lld wide along axis %d", (long long)kernel[i], i), false;
    return true;
}

// 1: upper, 2: lower, 0: pads are given.
static int same_of(OnnxNode *n) {
    const char *how = onnx_string(n, "auto_pad", "NOTSET");
    return !strcmp(how, "SAME_UPPER") ? 1 : !strncmp(how, "SAME_", 5) ? 2 : 0;
}

bool onnx_window(OnnxNode *n, const Value *x, const Dim *kernel, Window *w) {
    *w = (Window){ .rank = x->type.rank - 2 };
    bool run = false;
    if (w->rank < 1)
        return onnx_fail(
                   n, "the input must have at least 3 dimensions (batch, channels, space), got %d", x->type.rank),
               false;
    if (!onnx_has(n, "kernel_shape") && kernel) memcpy(w->kernel, kernel, sizeof *kernel * (size_t)w->rank);
    else if (!onnx_has(n, "kernel_shape")) return onnx_fail(n, "attribute \"kernel_shape\" is missing"), false;
    else if (!sizes_attr(n, "kernel_shape", w->rank, 1, 1, w->kernel)) return false;
    for (int i = 0; i < w->rank && kernel; i++) {
        run = run || !dim_is_const(kernel[i]);
        if (dim_is_const(kernel[i]) && w->kernel[i] != kernel[i])
            return onnx_fail(n, "attribute \"kernel_shape\" says %lld along axis %d, the weight has %lld",
                       (long long)w->kernel[i], i, (long long)kernel[i]),
                   false;
    }
    if (!kernel_fits(n, w->rank, w->kernel) || !sizes_attr(n, "strides", w->rank, 1, 1, w->strides)
        || !sizes_attr(n, "dilations", w->rank, 1, 1, w->dilations))
        return false;
    if (!sizes_attr(n, "pads", 2 * w->rank, 0, -MAX_EXTENT, w->pads)) return false;
    const char *how = onnx_string(n, "auto_pad", "NOTSET");
    const int same = same_of(n);
    if (!strcmp(how, "VALID")) memset(w->pads, 0, sizeof w->pads);
    else if (same && run) w->same = same;
    else if (same) window_same(x, w, same == 1);
    else if (strcmp(how, "NOTSET") && *how) return onnx_fail(n, "attribute \"auto_pad\" is \"%s\"", how), false;
    if (onnx_int(n, "ceil_mode", 0) && !same && !run) window_ceil(x, w);
    return true;
}

// ---------------------------------------------------------------- convolution

static Value *add_bias(OnnxNode *n, Value *y, int input) {
    Value *bias = onnx_optional(n, input);
    return y && bias ? b_binary(n->g, OP_Add, y, b_along(n->g, bias, y->type.rank, 1)) : y;
}

Value *onnx_convolution(OnnxNode *n, Value *x, Value *w, const Window *win) {
    if (!x || !w) return NULL;
    return (type_is_static(&w->type) ? b_convolve : b_convolve_run)(n->g, x, w, win, onnx_int(n, "group", 1));
}

Value *onnx_conv(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 2) || !b_weight_fits(n->g, n->in[0], n->in[1])
        || !onnx_window(n, n->in[0], n->in[1]->type.dim + 2, &w))
        return NULL;
    return add_bias(n, onnx_convolution(n, n->in[0], n->in[1], &w), 2);
}

// Integer convolution of (x - zero) with (w - zero): exact in i32.
Value *onnx_conv_integer(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 2) || !b_weight_fits(n->g, n->in[0], n->in[1])
        || !onnx_window(n, n->in[0], n->in[1]->type.dim + 2, &w))
        return NULL;
    Value *v[2];
    for (int i = 0; i < 2; i++) {
        if (!(v[i] = b_cast(n->g, n->in[i], DT_I32))) return NULL;
        Value *zero = b_cast(n->g, onnx_optional(n, 2 + i), DT_I32);
        if (zero && zero->type.rank == 1 && zero->type.dim[0] != 1)
            zero = b_along(n->g, zero, v[i]->type.rank, i ? 0 : 1);
        if (zero && zero->type.rank <= 1) zero = b_scalar_of(n->g, zero);
        if (zero) v[i] = b_binary(n->g, OP_Sub, v[i], zero);
    }
    return onnx_convolution(n, v[0], v[1], &w);
}

// What attribute output_shape asks of the spatial axes, NULL: nothing.
static bool output_shape(OnnxNode *n, int rank, const int64_t **shape) {
    int count;
    *shape = onnx_ints(n, "output_shape", &count);
    if (*shape && count != rank && count != rank + 2)
        return onnx_fail(n, "attribute \"output_shape\" has %d elements, expected %d", count, rank), false;
    if (*shape) *shape += count - rank;
    for (int i = 0; *shape && i < rank; i++)
        if ((*shape)[i] < 0 || (*shape)[i] > MAX_EXTENT)
            return onnx_fail(n, "attribute \"output_shape\" holds %lld", (long long)(*shape)[i]), false;
    return true;
}

// The pads that make the output as large as output_shape asks for, or as SAME does.
static bool transposed_pads(OnnxNode *n, const Value *x, Window *w, const int64_t *shape, int64_t *output_padding) {
    for (int i = 0; i < w->rank; i++) {
        int64_t in = shape ? x->type.dim[2 + i] : 1, want = shape ? shape[i] : in * w->strides[i];
        const __int128 whole = (__int128)w->strides[i] * (in - 1) + output_padding[i] + window_extent(w, i);
        if (whole - want > MAX_EXTENT)
            return onnx_fail(n, "attribute \"output_shape\" holds %lld", (long long)want), false;
        int64_t total = (int64_t)(whole - want);
        if (total < 0) {
            output_padding[i] -= total;
            total = 0;
        }
        w->pads[i] = w->same == 1 ? total / 2 : total - total / 2;
        w->pads[w->rank + i] = total - w->pads[i];
    }
    return true;
}

// The sizes of the result, where the pads (lo.., hi..) are values of the run.
static bool padded_sizes(OnnxNode *n, const Window *w, Value *pads, const int64_t *more, Value **before, Dim *size) {
    Value *v[MAX_RANK];
    Dim most[MAX_RANK];
    for (int i = 0; i < w->rank; i++) {
        Dim places = n->in[0]->type.dim[2 + i], kernel = n->in[1]->type.dim[2 + i];
        Dim reach = dim_mul(n->g, dim_sub(n->g, kernel, 1), w->dilations[i]);
        most[i] = dim_add(n->g, dim_mul(n->g, places, w->strides[i]), reach);
        most[i] = dim_offset(n->g, most[i], 1 + more[i] - w->strides[i]);
        before[i] = b_item(n->g, pads, i);
        v[i] = B_MAP(n->g, "x - y - z", "x y z", b_number(n->g, most[i]), before[i], b_item(n->g, pads, w->rank + i));
    }
    Value *sizes = b_joined(n->g, w->rank, v);
    for (int i = 0; i < w->rank; i++)
        if (!onnx_measure(n, sizes, i, 0, 2 + i, 0, most[i], &size[i])) return false;
    return true;
}

static Value *transposed(OnnxNode *n, Value *pads) {
    if (!b_weight_fits(n->g, n->in[0], n->in[1])) return NULL;
    Value *x = n->in[0], *weight = n->in[1], *before[MAX_RANK];
    Window w = { .rank = x->type.rank - 2, .same = same_of(n) };
    int64_t output_padding[MAX_RANK];
    Dim size[MAX_RANK];
    const int64_t group = onnx_int(n, "group", 1), *shape;
    bool known = type_is_static(&weight->type);
    memcpy(w.kernel, weight->type.dim + 2, sizeof *w.kernel * (size_t)w.rank);
    onnx_has(n, "kernel_shape");
    if (!kernel_fits(n, w.rank, w.kernel) || !sizes_attr(n, "strides", w.rank, 1, 1, w.strides)
        || !sizes_attr(n, "dilations", w.rank, 1, 1, w.dilations))
        return NULL;
    if (!sizes_attr(n, "pads", 2 * w.rank, 0, -MAX_EXTENT, w.pads)
        || !sizes_attr(n, "output_padding", w.rank, 0, 0, output_padding) || !output_shape(n, w.rank, &shape))
        return NULL;
    if (pads && pads->type.dim[0] != 2 * w.rank)
        return onnx_fail(n, "%lld pads for %d axes", (long long)pads->type.dim[0], w.rank);
    if (pads && !padded_sizes(n, &w, pads, output_padding, before, size)) return NULL;
    for (int i = 0; i < w.rank; i++) known = known && (!shape || dim_is_const(x->type.dim[2 + i]));
    if (pads) return b_convolve_transposed_run(n->g, x, weight, &w, size, before, output_padding, group);
    if (!known) return b_convolve_transposed_run(n->g, x, weight, &w, shape, NULL, output_padding, group);
    if ((shape || w.same) && !transposed_pads(n, x, &w, shape, output_padding)) return NULL;
    return b_convolve_transposed(n->g, x, weight, &w, output_padding, group);
}

Value *onnx_conv_transpose(OnnxNode *n) { return onnx_inputs(n, 2) ? add_bias(n, transposed(n, NULL), 2) : NULL; }

Value *onnx_transposed_by(OnnxNode *n, int pads, int bias) {
    int count;
    Value *list = onnx_list(n, pads, "pads", &count);
    return list ? add_bias(n, transposed(n, list), bias) : NULL;
}

// Columns [N, C*k, L] back to an image [N, C, size...]: overlapping elements add up, of bools any.
static Value *col2im_run(OnnxNode *n) {
    Value *x = n->in[0];
    int rank, count;
    Value *image = onnx_list(n, 1, "image_shape", &rank), *block = onnx_list(n, 2, "block_shape", &count);
    Window w = { .rank = rank };
    if (!image || !block) return NULL;
    if (count != rank || rank < 1 || 2 + 2 * rank > MAX_RANK || x->type.rank != 3)
        return onnx_fail(n, "image_shape, block_shape and the input's rank do not fit each other");
    if (!sizes_attr(n, "strides", rank, 1, 1, w.strides) || !sizes_attr(n, "dilations", rank, 1, 1, w.dilations)
        || !sizes_attr(n, "pads", 2 * rank, 0, 0, w.pads))
        return NULL;
    Dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (!onnx_measure(n, image, i, 0, 2 + i, 0, NO_LIMIT, &dims[i])
            || !onnx_measure(n, block, i, -1, i, 1, x->type.dim[1], &dims[rank + i]))
            return NULL;
    return b_col2im_run(n->g, x, dims, &w);
}

static Value *col2im(OnnxNode *n) {
    int64_t size[MAX_RANK], kernel[MAX_RANK];
    int rank, count;
    if (!onnx_knows(n, 1) || !onnx_knows(n, 2) || !type_is_static(&n->in[0]->type)) return col2im_run(n);
    if (!onnx_ints_input(n, 1, "image_shape", size, &rank, MAX_RANK - 2)
        || !onnx_ints_input(n, 2, "block_shape", kernel, &count, MAX_RANK - 2))
        return NULL;
    Value *x = n->in[0];
    Window w = { .rank = rank };
    if (count != rank || rank < 1 || x->type.rank != 3 )
        return onnx_fail(n, "image_shape, block_shape and the input's rank do not fit each other");
    if (!sizes_attr(n, "strides", rank, 1, 1, w.strides) || !sizes_attr(n, "dilations", rank, 1, 1, w.dilations)
        || !sizes_attr(n, "pads", 2 * rank, 0, 0, w.pads))
        return NULL;
    for (int i = 0; i < rank; i++) {
        if (kernel[i] < 1 || kernel[i] > 1024) return onnx_fail(n, "block_shape holds %lld", (long long)kernel[i]);
        if (size[i] < 0 || size[i] > MAX_EXTENT) return onnx_fail(n, "image_shape holds %lld", (long long)size[i]);
        w.kernel[i] = kernel[i];
    }
    return b_col2im(n->g, x, size, &w);
}

static Value *col2im_of_part(OnnxNode *n, bool imaginary) {
    (void)imaginary;
    const DType d = n->in[0]->type.dtype;
    if (d == DT_BOOL && !(n->in[0] = b_cast(n->g, n->in[0], DT_I32))) return NULL;
    return b_cast(n->g, col2im(n), d);
}

Value *onnx_col2im(OnnxNode *n) { return onnx_inputs(n, 3) ? onnx_by_parts(n, col2im_of_part) : NULL; }

// ---------------------------------------------------------------- pools

Value *onnx_max_pool(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 1) || !onnx_window(n, n->in[0], NULL, &w)) return NULL;
    if (n->n_out > 1 && n->asked[1]) {
        n->out[1] = b_window_op(n->g, OP_WindowArgMax, n->in[0], &w);
        if (n->out[1] && onnx_int(n, "storage_order", 0)) n->out[1] = b_column_major(n->g, n->out[1], &n->in[0]->type);
        if (!n->out[1]) return NULL;
    }
    return b_window_op(n->g, OP_WindowMax, n->in[0], &w);
}

Value *onnx_average_pool(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 1) || !onnx_window(n, n->in[0], NULL, &w)) return NULL;
    return b_average_pool(n->g, n->in[0], &w, onnx_int(n, "count_include_pad", 0) != 0);
}

static double lp_order(OnnxNode *n) { return n->opset < 2 ? onnx_float(n, "p", 2) : (double)onnx_int(n, "p", 2); }

Value *onnx_lp_pool(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 1) || !onnx_window(n, n->in[0], NULL, &w)) return NULL;
    double p = lp_order(n);
    return b_lp_after(n->g, b_window_op(n->g, OP_WindowSum, b_lp_before(n->g, n->in[0], p), &w), p);
}

Value *onnx_global_pool(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    return b_over_space(n->g, !strcmp(n->argument, "max") ? OP_ReduceMax : OP_ReduceMean, n->in[0]);
}

Value *onnx_global_lp_pool(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    double p = lp_order(n);
    return b_lp_after(n->g, b_over_space(n->g, OP_ReduceSum, b_lp_before(n->g, n->in[0], p)), p);
}
