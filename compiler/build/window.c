// SPDX-License-Identifier: MIT OR Apache-2.0
// Sliding windows: convolutions and pools, and the arithmetic of kernels, strides, dilations and pads.
//
// In: an input [n, c, space...], a weight, a Window. Out: Conv, WindowSum, WindowMax, with a Pad before them for what
// they cannot do. The idea: every form of padding becomes explicit low and high pads, and a transposed convolution is a
// convolution over an input with zeros between its elements, with mirrored weights.
#include "build/build.h"

#include <string.h>

// ---------------------------------------------------------------- geometry

int64_t window_extent(const Window *w, int i) { return (w->kernel[i] - 1) * w->dilations[i] + 1; }

bool b_known_size(Graph *g, const Value *x, int axis, const char *what) {
    if (dim_is_const(x->type.dim[axis])) return true;
    return graph_fail(g, "%s needs a known size of dimension %d, but that is %s; pin it with --dim NAME=V", what, axis,
               dim_text(g->arena, g, x->type.dim[axis])),
           false;
}

// SAME: as many outputs as strides fit into the input; the odd element of padding goes after (upper) or before (lower).
void window_same(const Value *x, Window *w, bool upper) {
    for (int i = 0; i < w->rank; i++)
        if (w->strides[i] > 1 && window_extent(w, i) > 1 && !dim_is_const(x->type.dim[2 + i])) w->same = upper ? 1 : 2;
    for (int i = 0; i < w->rank && !w->same; i++) {
        int64_t in = w->strides[i] > 1 && window_extent(w, i) > 1 ? x->type.dim[2 + i] : 1;
        int64_t out = (in + w->strides[i] - 1) / w->strides[i];
        int64_t total = (out - 1) * w->strides[i] + window_extent(w, i) - in;
        if (total < 0) total = 0;
        w->pads[i] = upper ? total / 2 : total - total / 2;
        w->pads[w->rank + i] = total - w->pads[i];
    }
}

// ceil_mode: a last window that starts inside the input or its low padding counts even when it reaches past the end.
void window_ceil(const Value *x, Window *w) {
    // then the operation itself sees to it
    for (int i = 0; i < w->rank; i++) w->ceil |= !dim_is_const(x->type.dim[2 + i]);
    for (int i = 0; i < w->rank && !w->ceil; i++) {
        int64_t in = x->type.dim[2 + i], lo = w->pads[i], span = in + lo + w->pads[w->rank + i] - window_extent(w, i);
        if (span < 0) continue;
        int64_t out = (span + w->strides[i] - 1) / w->strides[i] + 1;
        if ((out - 1) * w->strides[i] >= in + lo) out--;
        int64_t extra = (out - 1) * w->strides[i] - span;
        w->extra[i] = extra > 0 ? extra : 0;
        w->pads[w->rank + i] += w->extra[i];
    }
}

// ---------------------------------------------------------------- convolution

static void set_window(Node *node, const Window *w) {
    node_set_ints(node, "strides", w->strides, w->rank);
    node_set_ints(node, "dilations", w->dilations, w->rank);
    node_set_ints(node, "pads", w->pads, 2 * w->rank);
    if (w->ceil) node_set_int(node, "ceil_mode", 1);
    if (w->same) node_set_int(node, "same", w->same);
}

Value *b_convolve(Graph *g, Value *x, Value *w, const Window *win, int64_t group) {
    if (!x || !w) return NULL;
    Node *node = graph_node(g, OP_Conv, 2, (Value *[]){ x, w }, 1);
    set_window(node, win);
    node_set_int(node, "group", group);
    return b_finish(node);
}

bool b_weight_fits(Graph *g, const Value *x, const Value *w) {
    if (w->type.rank != x->type.rank || x->type.rank < 3)
        return graph_fail(g, "input %s and weight %s must have the same rank of at least 3",
                   type_text(g->arena, g, &x->type), type_text(g->arena, g, &w->type)),
               false;
    return true;
}

// conv(pad(x), w): what of the pads is not negative rides in the convolution, cropping and spreading is a Pad of its
// own.
Value *b_conv_padded(Graph *g, Value *x, Value *w, const int64_t *lo, const int64_t *hi, const int64_t *interior,
    const int64_t *strides, const int64_t *dilations, int64_t group) {
    int spatial = x ? x->type.rank - 2 : 0;
    int64_t plo[MAX_RANK] = { 0 }, phi[MAX_RANK] = { 0 }, between[MAX_RANK] = { 0 }, pads[2 * MAX_RANK];
    bool apart = false;
    for (int i = 0; i < spatial; i++) {
        plo[2 + i] = lo[i] < 0 ? lo[i] : 0;
        phi[2 + i] = hi[i] < 0 ? hi[i] : 0;
        between[2 + i] = interior[i];
        pads[i] = lo[i] > 0 ? lo[i] : 0;
        pads[spatial + i] = hi[i] > 0 ? hi[i] : 0;
        apart = apart || plo[2 + i] || phi[2 + i] || interior[i];
    }
    if (apart) x = b_pad(g, x, plo, phi, between, NULL);
    if (!x || !w) return NULL;
    Node *c = graph_node(g, OP_Conv, 2, (Value *[]){ x, w }, 1);
    node_set_ints(c, "strides", strides, spatial);
    node_set_ints(c, "dilations", dilations, spatial);
    node_set_ints(c, "pads", pads, 2 * spatial);
    node_set_int(c, "group", group);
    return b_finish(c);
}

// [g*a, b, k...] -> [g*b, a, k...] with the kernel flipped: the weight of the convolution that runs backwards.
Value *b_conv_backward_weight(Graph *g, Value *w, int64_t group) {
    if (!w) return NULL;
    int r = w->type.rank, perm[MAX_RANK];
    int64_t a = w->type.dim[0] / group, b = w->type.dim[1];
    Dim dims[MAX_RANK];
    bool flip[MAX_RANK] = { false };
    for (int i = 2; i < r; i++) flip[i] = true;
    w = b_flip(g, w, flip);
    if (!w) return NULL;
    for (int i = 2; i < r; i++) dims[i] = w->type.dim[i];
    if (group == 1) {
        for (int i = 0; i < r; i++) perm[i] = i;
        perm[0] = 1;
        perm[1] = 0;
        return b_transpose(g, w, perm);
    }
    // kernel axes as one, so that the group axis fits the largest rank
    int64_t taps = 1;
    for (int i = 2; i < r; i++) taps *= w->type.dim[i];
    w = b_reshape(g, w, 4, (Dim[]){ group, a, b, taps });
    w = b_transpose(g, w, (int[]){ 0, 2, 1, 3 });
    dims[0] = group * b;
    dims[1] = a;
    return b_reshape(g, w, r, dims);
}

// ---------------------------------------------------------------- columns back to an image

// A transposed convolution with unit weights.
Value *b_col2im(Graph *g, Value *x, const int64_t *size, const Window *w) {
    int64_t output_padding[MAX_RANK] = { 0 }, taps = 1, places = 1;
    const int rank = w->rank;
    Dim dims[MAX_RANK] = { x->type.dim[0], x->type.dim[1] };
    for (int i = 0; i < rank; i++) {
        int64_t span = size[i] + w->pads[i] + w->pads[rank + i] - window_extent(w, i);
        if (span < 0) return graph_fail(g, "the block is larger than the image");
        dims[2 + i] = span / w->strides[i] + 1;
        output_padding[i] = span % w->strides[i];
        taps *= w->kernel[i];
        places = places > INT64_MAX / dims[2 + i] ? INT64_MAX : places * dims[2 + i];
    }
    if (taps > 1 << 20 || x->type.dim[1] % taps || places != x->type.dim[2])
        return graph_fail(g, "the input's dimensions do not fit image_shape and block_shape");
    int64_t channels = x->type.dim[1] / taps;
    Value *unit = b_reshape(g, b_iota(g, 1, &taps, 0, DT_I64), 2, (Dim[]){ taps, 1 });
    unit = b_cast(g, b_binary(g, OP_Equal, unit, b_iota(g, 1, &taps, 0, DT_I64)), x->type.dtype);
    Dim expanded[MAX_RANK + 2] = { channels, taps, taps }, weight[MAX_RANK] = { channels * taps, 1 };
    memcpy(weight + 2, w->kernel, sizeof *weight * (size_t)rank);
    unit = b_reshape(g, b_expand(g, unit, 3, expanded), rank + 2, weight);
    x = b_reshape(g, x, rank + 2, dims);
    return unit ? b_convolve_transposed(g, x, unit, w, output_padding, channels) : NULL;
}

// ---------------------------------------------------------------- pools

Value *b_window_op(Graph *g, Op op, Value *x, const Window *w) {
    if (!x) return NULL;
    Node *node = graph_node(g, op, 1, &x, 1);
    node_set_ints(node, "kernel", w->kernel, w->rank);
    set_window(node, w);
    return b_finish(node);
}

// How many elements each window covers: [1, 1, out...]. With `padding` the model's own pads count too, what ceil_mode
// added never does.
static Value *window_counts(Graph *g, const Value *x, const Window *w, bool padding) {
    Type t = { .dtype = x->type.dtype, .rank = w->rank + 2, .dim = { 1, 1 } };
    Window counted = *w;
    for (int i = 0; i < w->rank; i++) {
        t.dim[2 + i] = x->type.dim[2 + i];
        if (!padding) continue;
        int64_t more = w->pads[i] + w->pads[w->rank + i] - w->extra[i];
        t.dim[2 + i] = more < 0 ? dim_sub(g, x->type.dim[2 + i], -more) : dim_add(g, x->type.dim[2 + i], more);
        if (dim_is_const(x->type.dim[2 + i]) && !dim_is_const(t.dim[2 + i]))
            return graph_fail(g, "the pads of axis %d leave nothing of %s", 2 + i, type_text(g->arena, g, &x->type));
        counted.pads[i] = 0;
        counted.pads[w->rank + i] = w->extra[i];
    }
    return b_window_op(g, OP_WindowSum, b_filled(g, x->type.dtype, 1, t.rank, t.dim), &counted);
}

Value *b_average_pool(Graph *g, Value *x, const Window *w, bool padding) {
    if (!x) return NULL;
    bool extra = false;
    for (int i = 0; i < w->rank; i++) extra = extra || w->extra[i];
    if (extra) {
        Value *sum = b_window_op(g, OP_WindowSum, x, w);
        return b_binary(g, OP_Div, sum, window_counts(g, x, w, padding));
    }
    Node *node = graph_node(g, OP_AveragePool, 1, &x, 1);
    node_set_ints(node, "kernel", w->kernel, w->rank);
    set_window(node, w);
    node_set_int(node, "count_include_pad", padding);
    return b_finish(node);
}

// Row-major flat indices -> column-major within the last two dimensions (storage_order 1).
Value *b_column_major(Graph *g, Value *indices, const Type *image) {
    int64_t w = image->dim[image->rank - 1], h = image->rank > 3 ? image->dim[image->rank - 2] : 1;
    if (!dim_is_const(w) || !dim_is_const(h)) return graph_fail(g, "storage_order 1 needs known sizes");
    const char *text = arena_printf(g->arena, "x - x %% %lld + x %% %lld * %lld + x %% %lld / %lld",
        (long long)(h * w), (long long)w, (long long)h, (long long)(h * w), (long long)w);
    return B_MAP(g, text, "x", indices);
}

// |x|^p, and its inverse after summing.
Value *b_lp_before(Graph *g, Value *x, double p) {
    if (p == 2) return b_unary(g, OP_Square, x);
    x = b_unary(g, OP_Abs, x);
    return p == 1 || !x ? x : b_binary(g, OP_Pow, x, b_like(g, x, p));
}

Value *b_lp_after(Graph *g, Value *x, double p) {
    if (p == 2) return b_unary(g, OP_Sqrt, x);
    return p == 1 || !x ? x : b_binary(g, OP_Pow, x, b_like(g, x, 1 / p));
}

Value *b_over_space(Graph *g, Op op, Value *x) {
    int64_t axes[MAX_RANK];
    if (!x) return NULL;
    if (x->type.rank < 3)
        return graph_fail(g, "the input must have at least 3 dimensions (batch, channels, space), got "
                             "%d", x->type.rank);
    for (int i = 2; i < x->type.rank; i++) axes[i - 2] = i;
    return b_reduce(g, op, x, x->type.rank - 2, axes, true);
}
