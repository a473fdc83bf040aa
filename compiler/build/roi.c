// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders that pool regions of images, and convolve at places that are moved by offsets.
//
// In: images [n, c, h, w], regions [r, 4 or 5] or offsets. Out: gathers and maps: the places of build/sample.c, or
// masks of which pixels a part of a region holds.
#include "build/build.h"

#include <math.h>

// ---------------------------------------------------------------- RoiAlign

// Sample places along one axis: start + (bin + (s + 0.5) / count) * length / bins, as [rois, bins, count].
static Value *roi_places(Graph *g, Value *start, Value *length, int64_t bins, int64_t count) {
    Dim shape[3] = { 1, bins, count };
    const char *text = arena_printf(g->arena, "x + (z + (w + 0.5) / %.17g) * y / %.17g", (double)count, (double)bins);
    Value *bin = b_iota(g, 3, shape, 1, DT_F32), *step = b_iota(g, 3, shape, 2, DT_F32);
    if (!start || !length) return NULL;
    Value *from = b_insert(g, start, 2), *size = b_insert(g, length, 2);
    return B_MAP(g, text, "x y z w", from, size, bin, step);
}

// The samples at [r, places] of image `batch` [r] -> [r, c, places]. Places more than one element outside count as 0;
// others move to the edge.
static Value *roi_samples(Graph *g, Sampler *s, Value *x, Value *batch, Value **at) {
    Value *size[2] = { NULL };
    for (int i = 0; i < 2; i++) size[i] = b_size_like(g, s, i, at[i]);
    Value *gone = B_MAP(g, "x < -1 || x > h || y < -1 || y > w", "x y h w", at[0], at[1], size[0], size[1]);
    for (int i = 0; i < 2; i++) at[i] = B_MAP(g, "min(max(x, 0), n - 1)", "x n", at[i], size[i]);
    Value *v = b_sample(g, s, b_flat_space(g, b_gather(g, x, batch, 0)), at);
    if (!v || !gone) return NULL;
    gone = b_insert(g, gone, 1);
    return b_where(g, gone, b_like(g, v, 0), v);
}

#define MOST_SAMPLES 1024       // along a side of a bin that counts its own: larger than any image's

// Each region has its own number of samples, ceil(length / bins) along a side: a loop takes one sample of every bin at
// a time, as many times as the region with the most wants, and what a region has no more counts as nothing.
static Value *roi_adaptive(
    Graph *g, Sampler *s, Value *x, Value *const *start, Value *const *length, Value *batch, const RoiAlign *o) {
    const Dim r = batch->type.dim[0], places = o->bins[0] * o->bins[1], shape[3] = { r, x->type.dim[1], places };
    Value *samples[2], *at[2], *in[3], *out[2];
    for (int i = 0; i < 2; i++) {
        const char *text = arena_printf(
            g->arena, "min(max(ceil(x / %.17g), 0), %d)", (double)o->bins[i], MOST_SAMPLES);
        samples[i] = b_cast(g, B_MAP(g, text, "x", length[i]), DT_I64);         // [r, 1]
    }
    Value *count = b_binary(g, OP_Mul, samples[0], samples[1]),
          *none = b_filled(g, x->type.dtype, o->most ? -INFINITY : 0, 3, shape);
    if (!count) return NULL;
    Graph *body = b_loop_body(g, "sample", 1, &none, in);
    Value *k[2] = { B_MAP(body, "s / max(n, 1)", "s n", in[0], samples[1]),
        B_MAP(body, "s % max(n, 1)", "s n", in[0], samples[1]) };
    for (int i = 0; i < 2; i++) {
        Value *bin = b_iota(body, 2, (Dim[]){ 1, places }, 1, DT_I64);
        bin = b_cast(body, B_MAP(body, arena_printf(g->arena, i ? "x %% %lld" : "x / %lld", (long long)o->bins[1]),
            "x", bin), DT_F32);
        const char *text = arena_printf(g->arena, "x + (b + (k + 0.5) / max(n, 1)) * y / %.17g", (double)o->bins[i]);
        at[i] = B_MAP(body, text, "x y b k n", start[i], length[i], bin, b_cast(body, k[i], DT_F32),
            b_cast(body, samples[i], DT_F32));
    }
    Value *v = roi_samples(body, s, x, batch, at), *more = b_binary(body, OP_Less, in[0], b_insert(body, count, 2));
    if (!v) return NULL;
    out[0] = b_scalar(body, DT_BOOL, 1);
    out[1] = b_where(body, more, b_binary(body, o->most ? OP_Max : OP_Add, in[2], v), in[2]);
    Node *loop = b_loop(g, body, b_reduce(g, OP_ReduceMax, count, 2, (int64_t[]){ 0, 1 }, false), 1, &none, out);
    if (!loop) return NULL;
    Value *number = b_cast(g, b_insert(g, count, 2), x->type.dtype);
    v = B_MAP(g, o->most ? "n > 0 ? x : 0" : "x / max(n, 1)", "x n", loop->out[0], number);
    return b_reshape(g, v, 4, (Dim[]){ r, shape[1], o->bins[0], o->bins[1] });
}

Value *b_roi_align(Graph *g, Sampler *s, Value *x, Value *rois, Value *batch, const RoiAlign *o) {
    Value *edge[4], *at[2], *length[2];
    const char *scale = arena_printf(g->arena, "x * %.17g - %.17g", o->scale, o->half ? 0.5 : 0.0);
    for (int i = 0; i < 4; i++) edge[i] = B_MAP(g, scale, "x", b_part(g, rois, 1, i, 1));
    s->outside = SAMPLE_BORDER;
    s->combine = o->most ? OP_Max : OP_Add;
    for (int i = 0; i < 2; i++) {
        length[i] = b_binary(g, OP_Sub, edge[3 - i], edge[1 - i]);
        if (!o->half) length[i] = B_MAP(g, "max(x, 1)", "x", length[i]);
    }
    if (!o->count) return roi_adaptive(g, s, x, (Value *[]){ edge[1], edge[0] }, length, batch, o);
    Dim r = rois->type.dim[0], wide[5] = { r, o->bins[0], o->count, o->bins[1], o->count },
        places = o->bins[0] * o->bins[1] * o->count * o->count;
    for (int i = 0; i < 2; i++) {
        Value *v = roi_places(g, edge[1 - i], length[i], o->bins[i], o->count);
        v = b_reshape(
            g, v, 5, i ? (Dim[]){ r, 1, 1, o->bins[1], o->count } : (Dim[]){ r, o->bins[0], o->count, 1, 1 });
        at[i] = b_reshape(g, b_expand(g, v, 5, wide), 2, (Dim[]){ r, places });
    }
    Value *v = roi_samples(g, s, x, batch, at);
    v = b_reshape(g, v, 6, (Dim[]){ r, x->type.dim[1], o->bins[0], o->count, o->bins[1], o->count });
    return b_reduce(g, o->most ? OP_ReduceMax : OP_ReduceMean, v, 2, (int64_t[]){ 3, 5 }, false);
}

// ---------------------------------------------------------------- MaxRoiPool

// Which of `size` pixels part i of `bins` holds, bool [r, bins, size]: of the region from..to the pixels from +
// floor(i extent / bins) up to before from + ceil((i + 1) extent / bins).
static Value *roi_parts(Graph *g, Value *from, Value *to, int64_t bins, int64_t size) {
    const Dim r = from->type.dim[0];
    Value *extent = B_MAP(g, "max(y - x + 1, 1)", "x y", from, to),
          *i = b_iota(g, 3, (Dim[]){ 1, bins, 1 }, 1, DT_I64);
    Value *pixel = b_iota(g, 3, (Dim[]){ 1, 1, size }, 2, DT_I64);
    if (!extent) return NULL;
    from = b_reshape(g, from, 3, (Dim[]){ r, 1, 1 });
    extent = b_reshape(g, extent, 3, (Dim[]){ r, 1, 1 });
    const char *text = arena_printf(g->arena, "p >= x + i * y / %lld && p < x + ((i + 1) * y + %lld) / %lld",
        (long long)bins, (long long)bins - 1, (long long)bins);
    return B_MAP(g, text, "p i x y", pixel, i, from, extent);
}

// The largest element along `axis` where the mask holds.
static Value *masked_max(Graph *g, Value *x, Value *mask, int axis) {
    return x && mask ?
        b_reduce(g, OP_ReduceMax, b_where(g, mask, x, b_like(g, x, -INFINITY)), 1, (int64_t[]){ axis }, false) :
        NULL;
}

Value *b_max_roi_pool(Graph *g, Value *x, Value *rois, const int64_t *bins, double spatial_scale) {
    Value *at[4];
    const char *scale = arena_printf(g->arena, "round(x * %.17g)", spatial_scale);
    for (int i = 0; i < 4; i++) at[i] = b_cast(g, B_MAP(g, scale, "x", b_part(g, rois, 1, 1 + i, 1)), DT_I64);
    const Dim r = rois->type.dim[0], h = x->type.dim[2], w = x->type.dim[3];
    if (!at[0] || !at[1] || !at[2] || !at[3]) return NULL;
    Value *rows = roi_parts(g, at[1], at[3], bins[0], h), *columns = roi_parts(g, at[0], at[2], bins[1], w);
    Value *batch = b_reshape(g, b_cast(g, b_part(g, rois, 1, 0, 1), DT_I64), 1, &r);
    Value *v = b_insert(g, b_gather(g, x, batch, 0), 2);                                       // [r, c, 1, h, w]
    v = masked_max(g, v, b_reshape(g, rows, 5, (Dim[]){ r, 1, bins[0], h, 1 }), 3);              // [r, c, rows, w]
    v = b_insert(g, v, 3);
    v = masked_max(g, v, b_reshape(g, columns, 5, (Dim[]){ r, 1, 1, bins[1], w }), 4);
    return v ? B_MAP(g, "x == y ? 0 : x", "x y", v, b_like(g, v, -INFINITY)) : NULL;
}

// ---------------------------------------------------------------- DeformConv

// Places of every kernel tap at every output along one axis: o * stride - pad + tap * dilation + offset, [n * groups,
// taps * outputs].
static Value *deformed(Graph *g, Value *offset, const Window *w, int axis, const Dim *out, Dim images) {
    Dim shape[4] = { w->kernel[0], w->kernel[1], out[0], out[1] };
    const DType d = dtype_wide(offset->type.dtype);
    Value *tap = b_iota(g, 4, shape, axis, d), *place = b_iota(g, 4, shape, 2 + axis, d);
    const char *text = arena_printf(g->arena, "y * %lld - %lld + x * %lld", (long long)w->strides[axis],
        (long long)w->pads[axis], (long long)w->dilations[axis]);
    Dim taps = dim_mul(g, w->kernel[0], w->kernel[1]), places = dim_mul(g, out[0], out[1]),
        all = dim_mul(g, taps, places);
    Value *regular = b_reshape(g, B_MAP(g, text, "x y", tap, place), 2, (Dim[]){ 1, all });
    Value *v = b_reshape(g, offset, 4, (Dim[]){ images, taps, 2, places });
    v = b_reshape(g, b_part(g, v, 2, axis, 1), 2, (Dim[]){ images, all });
    return b_binary(g, OP_Add, b_cast(g, v, d), regular);
}

// Of known sizes; of others the program is told.
static bool divides(Dim d, int64_t n) { return !dim_is_const(d) || d % n == 0; }
static bool differ(Dim a, Dim b) { return dim_is_const(a) && dim_is_const(b) && a != b; }

Value *b_deform_conv(Graph *g, Sampler *s, Value *x, Value *weight, Value *offset, const DeformConv *o) {
    Value *at[2];
    const Window *w = &o->window;
    const int64_t groups = o->offset_groups, group = o->groups;
    Dim channels = x->type.dim[1], outputs = weight->type.dim[0], taps = dim_mul(g, w->kernel[0], w->kernel[1]);
    Dim batch = x->type.dim[0], out[2] = { offset->type.dim[2], offset->type.dim[3] },
        places = dim_mul(g, out[0], out[1]), space = dim_mul(g, s->size[0], s->size[1]);
    if (groups < 1 || group < 1 || !divides(channels, groups) || !divides(channels, group) || !divides(outputs, group)
        || differ(dim_mul(g, weight->type.dim[1], group), channels))
        return graph_fail(g, "channels do not divide into groups");
    Dim images = dim_mul(g, batch, groups), offsets = dim_mul(g, groups, dim_mul(g, taps, 2)),
        inner = dim_mul(g, dim_div(g, channels, group), taps);
    if (differ(offset->type.dim[0], batch) || differ(offset->type.dim[1], offsets))
        return graph_fail(g, "the offsets have %lld channels, expected %lld", (long long)offset->type.dim[1],
            (long long)offsets);
    for (int i = 0; i < 2; i++) at[i] = deformed(g, offset, w, i, out, images);
    Value *v = b_reshape(g, x, 3, (Dim[]){ images, dim_div(g, channels, groups), space });
    v = b_sample(g, s, v, at);
    if (o->mask)
        v = b_binary(g, OP_Mul, v, b_reshape(g, o->mask, 3, (Dim[]){ images, 1, dim_mul(g, taps, places) }));
    v = b_reshape(g, v, 4, (Dim[]){ batch, group, inner, places });
    v = b_matmul(g, b_reshape(g, weight, 3, (Dim[]){ group, dim_div(g, outputs, group), inner }), v);
    v = b_reshape(g, v, 4, (Dim[]){ batch, outputs, out[0], out[1] });
    return o->bias && v ? b_binary(g, OP_Add, v, b_along(g, o->bias, 4, 1)) : v;
}
