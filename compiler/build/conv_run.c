// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions whose kernels, channels or paddings only the running program knows.
//
// In: an image [n, c, space...], weights of symbolic sizes, a Window whose kernel is theirs. Out: products. The idea: a
// convolution gathers windows into columns, which the weights multiply; a transposed one multiplies first, and each
// pixel gathers and adds what the taps of all columns put there.
#include "build/build.h"

// One axis of columns: `places` windows of `kernel` taps over `image` pixels, the first beginning `before` them.
typedef struct Axis { Dim image, kernel, places; Value *before, *count; } Axis;

// As much padding as makes `image` pixels, and `more`, hold all places; upper: the odd element of it goes behind them.
static Value *same_before(Graph *g, const Window *w, int i, const Axis *a, int64_t more, bool upper) {
    const char *all = arena_printf(g->arena, "max((p - 1) * %lld + (k - 1) * %lld + %lld - x, 0)",
        (long long)w->strides[i], (long long)w->dilations[i], (long long)more + 1);
    Value *total = B_MAP(g, all, "p k x", b_number(g, a->places), b_number(g, a->kernel), b_number(g, a->image));
    return B_MAP(g, upper ? "x / 2" : "(x + 1) / 2", "x", total);
}

static Value *pad_before(Graph *g, const Window *w, int i) { return b_scalar(g, DT_I64, (double)w->pads[i]); }

// From the first tap to the last, less 1.
static Dim reach(Graph *g, const Window *w, int i, Dim kernel) {
    return dim_mul(g, dim_sub(g, kernel, 1), w->dilations[i]);
}

static bool spatial_fits(Graph *g, const Window *w, int most, int64_t group) {
    if (w->rank <= most && group >= 1) return true;
    return graph_fail(g, "weights of unknown sizes want at most %d spatial axes and groups of at least 1; pin their "
                         "sizes with --dim NAME=V", most), false;
}

// ---------------------------------------------------------------- convolution

// Where the taps of all windows lie along axis i of x, i64 [1 or kernel .., 1 or out ..]: place * stride
// + tap * dilation - pad; *inside collects whether they lie in it.
static Value *tap_of_place(Graph *g, const Window *w, int i, const Axis *a, const Dim *dims, Value **inside) {
    const char *text = arena_printf(
        g->arena, "y * %lld + x * %lld - z", (long long)w->strides[i], (long long)w->dilations[i]);
    Value *tap = b_iota(g, 2 * w->rank, dims, i, DT_I64), *place = b_iota(g, 2 * w->rank, dims, w->rank + i, DT_I64),
          *at = B_MAP(g, text, "x y z", tap, place, a->before),
          *ok = B_MAP(g, "x >= 0 && x < n", "x n", at, b_number(g, a->image));
    *inside = *inside && ok ? b_binary(g, OP_And, *inside, ok) : ok;
    return at;
}

static Axis window_axis(Graph *g, const Window *w, int i, Dim image, Dim kernel) {
    Axis a = { .image = image, .kernel = kernel };
    if (w->same) {
        a.places = dim_ceil_div(g, image, w->strides[i]);
        a.before = same_before(g, w, i, &a, 0, w->same == 1);
        return a;
    }
    Dim padded = dim_offset(g, image, w->pads[i] + w->pads[w->rank + i]);
    Dim last = dim_sub(g, dim_sub(g, padded, reach(g, w, i, kernel)), 1);
    a.places = dim_add(g, dim_div(g, last, w->strides[i]), 1);
    a.before = pad_before(g, w, i);
    return a;
}

// Windows of x are gathered into columns [n, group, channels * taps, places], which the weights multiply.
Value *b_convolve_run(Graph *g, Value *x, Value *w, const Window *win, int64_t group) {
    const int rank = win->rank;
    const Dim batch = x->type.dim[0], channels = w->type.dim[1], outputs = w->type.dim[0];
    Dim dims[MAX_RANK], out[MAX_RANK] = { batch, outputs }, taps = 1, places = 1, space = 1;
    if (!spatial_fits(g, win, MAX_RANK / 2, group)) return NULL;
    Axis axes[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        axes[i] = window_axis(g, win, i, x->type.dim[2 + i], w->type.dim[2 + i]);
        dims[i] = axes[i].kernel;
        out[2 + i] = dims[rank + i] = axes[i].places;
        taps = dim_mul(g, taps, axes[i].kernel);
        places = dim_mul(g, places, out[2 + i]);
        space = dim_mul(g, space, axes[i].image);
    }
    Value *flat = NULL, *inside = NULL;
    for (int i = 0; i < rank; i++) {
        Value *at = tap_of_place(g, win, i, &axes[i], dims, &inside);
        flat = flat ? B_MAP(g, "x * n + y", "x n y", flat, b_number(g, axes[i].image), at) : at;
    }
    // outside reads 0
    flat = B_MAP(g, "w ? x : n", "w x n", inside, flat, b_number(g, space));
    flat = b_reshape(g, flat, 2, (Dim[]){ taps, places });
    Value *v = flat ? b_gather(g, b_reshape(g, x, 3, (Dim[]){ batch, x->type.dim[1], space }), flat, 2) : NULL;
    v = b_reshape(g, v, 4, (Dim[]){ batch, group, dim_mul(g, channels, taps), places });
    Value *by = b_reshape(g, w, 3, (Dim[]){ group, dim_div(g, outputs, group), dim_mul(g, channels, taps) });
    return b_reshape(g, b_matmul(g, by, v), rank + 2, out);
}

// ---------------------------------------------------------------- columns back to an image

// One axis of a computed image: where tap `dims[rank + i]` of pixel `dims[i]` lies among the places, and whether it
// lies in one: place = (pixel + pad - tap * dilation) / stride, whole and inside.
typedef struct TapPlace { Value *tap, *place, *ok; } TapPlace;

static TapPlace tap_place(Graph *g, const Window *w, int i, const Axis *a, const Dim *dims) {
    const int rank = w->rank;
    const long long stride = w->strides[i], dilation = w->dilations[i];
    Value *pixel = b_iota(g, 2 * rank, dims, i, DT_I64);
    TapPlace p = { .tap = b_iota(g, 2 * rank, dims, rank + i, DT_I64) };
    Value *from = B_MAP(g, arena_printf(g->arena, "x + z - y * %lld", dilation), "x y z", pixel, p.tap, a->before);
    p.place = B_MAP(g, arena_printf(g->arena, "x / %lld", stride), "x", from);
    const char *inside = arena_printf(g->arena, "x >= 0 && x %% %lld == 0 && y < z", stride);
    p.ok = B_MAP(g, inside, "x y z", from, p.place, a->count);
    return p;
}

// Every element of the image is the sum of what the taps of the columns x [n, channels * taps, places] put there, read
// where they have it.
static Value *image_of_columns(Graph *g, Value *x, Dim channels, const Window *w, const Axis *axes) {
    const int rank = w->rank;
    Value *at[2] = { NULL }, *inside = NULL;
    Dim dims[MAX_RANK], taps = 1;
    for (int i = 0; i < rank; i++) {
        dims[i] = axes[i].image;
        dims[rank + i] = axes[i].kernel;
        taps = dim_mul(g, taps, axes[i].kernel);
    }
    for (int i = 0; i < rank; i++) {
        TapPlace p = tap_place(g, w, i, &axes[i], dims);
        inside = inside && p.ok ? b_binary(g, OP_And, inside, p.ok) : p.ok;
        at[0] = i ? B_MAP(g, "x * y + z", "x y z", at[0], b_number(g, axes[i].kernel), p.tap) : p.tap;
        at[1] = i ? B_MAP(g, "x * y + z", "x y z", at[1], axes[i].count, p.place) : p.place;
    }
    // outside reads 0
    Value *flat = B_MAP(g, "w ? x * y + z : -1 - y * v", "x y z w v", at[0], b_number(g, x->type.dim[2]), at[1],
        inside, b_number(g, taps));
    Value *v = b_reshape(g, x, 3, (Dim[]){ x->type.dim[0], channels, dim_mul(g, taps, x->type.dim[2]) });
    int64_t summed[MAX_RANK];
    for (int i = 0; i < rank; i++) summed[i] = 2 + rank + i;
    return flat && v ? b_reduce(g, OP_ReduceSum, b_gather(g, v, flat, 2), rank, summed, false) : NULL;
}

Value *b_col2im_run(Graph *g, Value *x, const Dim *dims, const Window *w) {
    Axis axes[MAX_RANK];
    Dim taps = 1;
    for (int i = 0; i < w->rank; i++) {
        axes[i] = (Axis){ .image = dims[i], .kernel = dims[w->rank + i], .before = pad_before(g, w, i) };
        const char *places = arena_printf(g->arena, "(x + %lld - (%lld * (y - 1) + 1)) / %lld + 1",
            (long long)(w->pads[i] + w->pads[w->rank + i]), (long long)w->dilations[i], (long long)w->strides[i]);
        Value *image = b_number(g, axes[i].image), *kernel = b_number(g, axes[i].kernel);
        axes[i].count = B_MAP(g, places, "x y", image, kernel);
        taps = dim_mul(g, taps, axes[i].kernel);
    }
    return image_of_columns(g, x, dim_div(g, x->type.dim[1], taps), w, axes);
}

// ---------------------------------------------------------------- transposed convolution

// Of x's axis i; size: what the result is to have, else NULL; before: the padding, NULL: what follows.
static Axis transposed_axis(Graph *g, const Value *x, Dim kernel, const Window *w, int i, const Dim *size,
    Value *const *before, int64_t more) {
    const Dim places = x->type.dim[2 + i], spread = dim_mul(g, places, w->strides[i]);
    Axis a = { .kernel = kernel, .places = places, .count = b_number(g, places) };
    if (size || w->same) {
        a.image = size ? size[i] : spread;
        a.before = before ? before[i] : same_before(g, w, i, &a, more, w->same == 1);
        return a;
    }
    more += 1 - w->strides[i] - w->pads[i] - w->pads[w->rank + i];
    a.image = dim_offset(g, dim_add(g, spread, reach(g, w, i, kernel)), more);
    a.before = pad_before(g, w, i);
    return a;
}

// The weights make columns [n, outputs * taps, space] of the pixels. Those of 16 bits are sums of 32 bits in between.
Value *b_convolve_transposed_run(Graph *g, Value *x, Value *w, const Window *win, const Dim *size,
    Value *const *before, const int64_t *output_padding, int64_t group) {
    const int rank = win->rank;
    const DType d = x->type.dtype;
    const Dim batch = x->type.dim[0], outputs = w->type.dim[1];
    Dim taps = 1, space = 1;
    if (!spatial_fits(g, win, MAX_RANK / 2 - 1, group)) return NULL;
    if (dim_is_const(w->type.dim[0]) && w->type.dim[0] % group)
        return graph_fail(
            g, "%lld channels do not divide into %lld groups", (long long)w->type.dim[0], (long long)group);
    Axis axes[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        axes[i] = transposed_axis(g, x, w->type.dim[2 + i], win, i, size, before, output_padding[i]);
        taps = dim_mul(g, taps, axes[i].kernel);
        space = dim_mul(g, space, axes[i].places);
    }
    if (dtype_is_float(d) && dtype_size(d) == 2) {
        x = b_cast(g, x, DT_F32);
        w = b_cast(g, w, DT_F32);
        if (!w) return NULL;
    }
    const Dim columns = dim_mul(g, outputs, taps), inner = dim_div(g, w->type.dim[0], group);
    w = b_transpose(g, b_reshape(g, w, 3, (Dim[]){ group, inner, columns }), (int[]){ 0, 2, 1 });
    x = b_matmul(g, w, b_reshape(g, x, 4, (Dim[]){ batch, group, inner, space }));
    x = b_reshape(g, x, 3, (Dim[]){ batch, dim_mul(g, group, columns), space });
    return x ? b_cast(g, image_of_columns(g, x, dim_mul(g, group, outputs), win, axes), d) : NULL;
}
