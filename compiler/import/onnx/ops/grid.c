// SPDX-License-Identifier: MIT OR Apache-2.0
// Operators that read images at computed places: GridSample, AffineGrid, RoiAlign, DeformConv, MaxUnpool.
//
// In: an OnnxNode; its sizes may be the running program's. Out: what build/sample.c and build/roi.c make of them.
#include "import/onnx/run/measure.h"

#include <string.h>

#define MAX_EXTENT (INT64_C(1) << 30)      // of a kernel, a stride, a padding
#define MAX_SPACE 4

// ---------------------------------------------------------------- GridSample and AffineGrid

static bool grid_modes(OnnxNode *n, Sampler *s) {
    const char *mode = onnx_string(n, "mode", "linear"), *outside = onnx_string(n, "padding_mode", "zeros");
    bool linear = !strcmp(mode, "linear") || !strcmp(mode, "bilinear"),
         cubic = !strcmp(mode, "cubic") || !strcmp(mode, "bicubic");
    if (!linear && !cubic && strcmp(mode, "nearest")) return onnx_fail(n, "attribute \"mode\" is \"%s\"", mode), false;
    if (strcmp(outside, "zeros") && strcmp(outside, "border") && strcmp(outside, "reflection"))
        return onnx_fail(n, "attribute \"padding_mode\" is \"%s\"", outside), false;
    s->mode = linear ? SAMPLE_LINEAR : cubic ? SAMPLE_CUBIC : SAMPLE_NEAREST;
    s->outside = *outside == 'z' ? SAMPLE_ZEROS : *outside == 'b' ? SAMPLE_BORDER : SAMPLE_REFLECTION;
    s->align = onnx_int(n, "align_corners", 0) != 0;
    return true;
}

static Value *grid_sample(OnnxNode *n, bool imaginary) {
    Sampler s;
    (void)imaginary;
    if (!b_sampler(n->g, &s, n->in[0]) || !grid_modes(n, &s)) return NULL;
    // bools count as 0 and 1, and what is not 0 is true again
    const DType d = n->in[0]->type.dtype;
    Value *y = b_grid_sample(n->g, &s, d == DT_BOOL ? b_cast(n->g, n->in[0], DT_F32) : n->in[0], n->in[1]);
    return b_cast(n->g, y, d);
}

Value *onnx_grid_sample(OnnxNode *n) { return onnx_inputs(n, 2) ? onnx_by_parts(n, grid_sample) : NULL; }

static Value *affine_grid_run(OnnxNode *n, Value *size, int k, bool align) {
    Dim space[MAX_RANK];
    for (int i = 0; i < k; i++)
        if (!onnx_measure(n, size, 2 + i, 0, 1 + i, 1, NO_LIMIT, &space[i])) return NULL;
    return b_affine_grid_run(n->g, n->in[0], k, space, align);
}

Value *onnx_affine_grid(OnnxNode *n) {
    int64_t size[MAX_RANK];
    int rank;
    Value *list = onnx_inputs(n, 2) ? onnx_list(n, 1, "the size", &rank) : NULL;
    if (!list) return NULL;
    int k = rank - 2;
    bool align = onnx_int(n, "align_corners", 0) != 0;
    if (k < 1 || k > MAX_SPACE || n->in[0]->type.rank != 3)
        return onnx_fail(n, "the size must list batch, channels and space, theta must have 3 dimensions");
    if (!onnx_knows(n, 1)) return affine_grid_run(n, list, k, align);
    if (!onnx_ints_input(n, 1, "the size", size, &rank, MAX_SPACE + 2)) return NULL;
    for (int i = 0; i < k; i++)
        if (size[2 + i] < 1 || size[2 + i] > 1 << 16)
            return onnx_fail(n, "the size holds %lld", (long long)size[2 + i]);
    return b_affine_grid(n->g, n->in[0], k, size + 2, align);
}

// ---------------------------------------------------------------- regions

Value *onnx_roi_align(OnnxNode *n) {
    Sampler s;
    if (!onnx_inputs(n, 3) || !b_sampler(n->g, &s, n->in[0])) return NULL;
    Value *rois = b_cast(n->g, n->in[1], DT_F32);
    RoiAlign o = { .bins = { onnx_int(n, "output_height", 1), onnx_int(n, "output_width", 1) },
        .count = onnx_int(n, "sampling_ratio", 0) };
    o.half = n->opset >= 16
        && !strcmp(onnx_string(n, "coordinate_transformation_mode", "half_pixel"), "half_pixel");
    o.most = !strcmp(onnx_string(n, "mode", "avg"), "max");
    if (!rois) return NULL;
    if (s.space != 2 || rois->type.rank != 2 || rois->type.dim[1] != 4)
        return onnx_fail(n, "wants an image [n, c, h, w] and rois [r, 4]");
    if (o.count < 0 || o.bins[0] < 1 || o.bins[1] < 1 || o.count > 1024 || o.bins[0] > 4096 || o.bins[1] > 4096)
        return onnx_fail(n, "wants a sampling_ratio of 0 to 1024 and sizes of 1 to 4096");
    o.scale = onnx_float(n, "spatial_scale", 1);
    return b_roi_align(n->g, &s, n->in[0], rois, n->in[2], &o);
}

Value *onnx_max_roi_pool(OnnxNode *n) {
    int count;
    if (!onnx_inputs(n, 2) || !b_static(n->g, n->in[0], "MaxRoiPool")) return NULL;
    const int64_t *bins = onnx_ints(n, "pooled_shape", &count);
    Value *x = n->in[0], *rois = b_cast(n->g, n->in[1], DT_F32);
    if (!rois || x->type.rank != 4 || rois->type.rank != 2 || rois->type.dim[1] != 5)
        return onnx_fail(n, "wants an image [n, c, h, w] and rois [r, 5]");
    if (count != 2 || bins[0] < 1 || bins[1] < 1 || bins[0] > 4096 || bins[1] > 4096)
        return onnx_fail(n, "attribute \"pooled_shape\" must be two sizes of 1 to 4096");
    return b_max_roi_pool(n->g, x, rois, bins, onnx_float(n, "spatial_scale", 1));
}

Value *onnx_deform_conv(OnnxNode *n) {
    Sampler s;
    DeformConv o;
    if (!onnx_inputs(n, 3) || !b_sampler(n->g, &s, n->in[0])) return NULL;
    Value *x = n->in[0], *weight = n->in[1], *offset = n->in[2];
    if (s.space != 2 || weight->type.rank != 4 || offset->type.rank != 4
        || !onnx_window(n, x, weight->type.dim + 2, &o.window) || o.window.same)
        return onnx_fail(n, "only images [n, c, h, w] are supported");
    o.offset_groups = onnx_int(n, "offset_group", 1);
    o.groups = onnx_int(n, "group", 1);
    o.bias = onnx_optional(n, 3);
    o.mask = onnx_optional(n, 4);
    return b_deform_conv(n->g, &s, x, weight, offset, &o);
}

// ---------------------------------------------------------------- MaxUnpool

static bool in_reach(int64_t size) { return size >= -MAX_EXTENT && size <= MAX_EXTENT; }

// Elements go back to where a max pool found them (flat indices into the tensor that was pooled); the rest is 0.
Value *onnx_max_unpool(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0];
    Type t = x->type;
    int rank = t.rank - 2, count, n_strides, n_pads;
    const int64_t *kernel = onnx_ints(n, "kernel_shape", &count), *strides = onnx_ints(n, "strides", &n_strides),
                  *pads = onnx_ints(n, "pads", &n_pads);
    if (rank < 1 || !kernel || count != rank || (strides && n_strides != rank) || (pads && n_pads != 2 * rank))
        return onnx_fail(n, "kernel_shape, strides or pads do not fit the input");
    for (int i = 0; i < 2 * rank; i++)
        if (!in_reach(kernel[i / 2]) || (strides && (strides[i / 2] < 1 || !in_reach(strides[i / 2])))
            || (pads && !in_reach(pads[i])) || (dim_is_const(t.dim[2 + i / 2]) && !in_reach(t.dim[2 + i / 2])))
            return onnx_fail(n, "axis %d: a size is out of range", i / 2);
    for (int i = 0; i < rank; i++) {
        int64_t stride = strides ? strides[i] : 1, more = kernel[i] - stride - (pads ? pads[i] + pads[rank + i] : 0);
        Dim spread = dim_mul(n->g, t.dim[2 + i], stride);
        if (dim_is_const(spread) && spread + more < 0) return onnx_fail(n, "axis %d: a size is out of range", i);
        t.dim[2 + i] = dim_is_const(spread) ? spread + more :
            more < 0                        ? dim_sub(n->g, spread, -more) :
                                              dim_add(n->g, spread, more);
    }
    Type checked;
    if (type_is_static(&t) && !onnx_type(&checked, (int)t.dtype, t.rank, t.dim, "output", "0", n->loc)) return NULL;
    int64_t given[MAX_RANK], lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    Dim total = type_size(n->g, &t), elements = type_size(n->g, &x->type);
    Value *in[3] = { b_filled(n->g, t.dtype, 0, 1, &total), b_reshape(n->g, n->in[1], 1, &elements),
        b_reshape(n->g, x, 1, &elements) };
    Node *node = graph_node(n->g, OP_ScatterElements, 3, in, 1);
    node_set_int(node, "axis", 0);
    node_set_string(node, "reduction", "none");
    Value *v = b_reshape(n->g, b_finish(node), t.rank, t.dim);
    if (!onnx_optional(n, 2)) return v;
    if (!onnx_knows(n, 2)) {                            // what lies outside reads 0
        Value *list = onnx_list(n, 2, "output_shape", &count);
        if (!list || count != t.rank)
            return list ? onnx_fail(n, "output_shape has %d elements, expected %d", count, t.rank) : NULL;
        for (int i = 0; i < t.rank && v; i++) {
            Dim size;
            if (!onnx_measure(n, list, i, 0, i, 0, NO_LIMIT, &size)) return NULL;
            v = b_take(n->g, v, i, NULL, NULL, size);
        }
        return v;
    }
    if (!onnx_ints_input(n, 2, "output_shape", given, &count, MAX_RANK)) return NULL;
    for (int i = 0; i < t.rank; i++)
        if (!dim_is_const(t.dim[i]))
            return onnx_fail(n, "output_shape needs known sizes; pin the dimensions with --dim NAME=V");
    if (count != t.rank) return onnx_fail(n, "output_shape has %d elements, expected %d", count, t.rank);
    for (int i = 0; i < t.rank; i++) {
        if (given[i] < 0) return onnx_fail(n, "output_shape holds %lld", (long long)given[i]);
        hi[i] = given[i] - t.dim[i];
    }
    return b_pad(n->g, v, lo, hi, NULL, NULL);
}
