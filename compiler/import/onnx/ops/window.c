// SPDX-License-Identifier: MIT OR Apache-2.0
// Sliding windows: convolutions and pools, and the arithmetic of kernel_shape, strides, dilations, pads, auto_pad and
// ceil_mode.
//
// In: an OnnxNode. Out: Conv, WindowSum, WindowMax. The idea: every form of padding becomes explicit low and high
// pads (Window), and a transposed convolution is a convolution over an input with zeros between its elements, with
// mirrored weights.
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

static int64_t extent(const Window *w, int i) { return (w->kernel[i] - 1) * w->dilations[i] + 1; }

static bool known_size(OnnxNode *n, const Value *x, int axis, const char *what) {
    if (dim_is_const(x->type.dim[axis])) return true;
    return onnx_fail(n, "%s needs a known size of dimension %d, but that is %s; pin it with --dim NAME=V", what, axis,
               dim_text(n->g->arena, n->g, x->type.dim[axis])),
           false;
}

// SAME: as many outputs as strides fit into the input; the odd element of padding goes after (upper) or before (lower).
static bool same_pads(OnnxNode *n, const Value *x, Window *w, bool upper) {
    for (int i = 0; i < w->rank; i++) {
        if (w->strides[i] > extent(w, i) && !known_size(n, x, 2 + i, "auto_pad with a stride over elements"))
            return false;
        if (w->strides[i] > 1 && !dim_is_const(x->type.dim[2 + i])) w->same = upper ? 1 : 2;
    }
    for (int i = 0; i < w->rank && !w->same; i++) {
        int64_t in = w->strides[i] > 1 ? x->type.dim[2 + i] : 1, out = (in + w->strides[i] - 1) / w->strides[i];
        int64_t total = (out - 1) * w->strides[i] + extent(w, i) - in;
        if (total < 0) total = 0;
        w->pads[i] = upper ? total / 2 : total - total / 2;
        w->pads[w->rank + i] = total - w->pads[i];
    }
    return true;
}

// ceil_mode: a last window that starts inside the input or its low padding counts even when it reaches past the end.
static void ceil_pads(const Value *x, Window *w) {
    // then the operation itself sees to it
    for (int i = 0; i < w->rank; i++) w->ceil |= !dim_is_const(x->type.dim[2 + i]);
    for (int i = 0; i < w->rank && !w->ceil; i++) {
        int64_t in = x->type.dim[2 + i], lo = w->pads[i], span = in + lo + w->pads[w->rank + i] - extent(w, i);
        if (span < 0) continue;
        int64_t out = (span + w->strides[i] - 1) / w->strides[i] + 1;
        if ((out - 1) * w->strides[i] >= in + lo) out--;
        int64_t extra = (out - 1) * w->strides[i] - span;
        w->extra[i] = extra > 0 ? extra : 0;
        w->pads[w->rank + i] += w->extra[i];
    }
}

bool onnx_window(OnnxNode *n, const Value *x, const int64_t *kernel, Window *w) {
    *w = (Window){ .rank = x->type.rank - 2 };
    if (w->rank < 1)
        return onnx_fail(
                   n, "the input must have at least 3 dimensions (batch, channels, space), got %d", x->type.rank),
               false;
    if (!onnx_has(n, "kernel_shape") && kernel) memcpy(w->kernel, kernel, sizeof *kernel * (size_t)w->rank);
    else if (!onnx_has(n, "kernel_shape")) return onnx_fail(n, "attribute \"kernel_shape\" is missing"), false;
    else if (!sizes_attr(n, "kernel_shape", w->rank, 1, 1, w->kernel)) return false;
    for (int i = 0; i < w->rank && kernel; i++)
        if (w->kernel[i] != kernel[i])
            return onnx_fail(n, "attribute \"kernel_shape\" says %lld along axis %d, the weight has %lld",
                       (long long)w->kernel[i], i, (long long)kernel[i]),
                   false;
    if (!sizes_attr(n, "strides", w->rank, 1, 1, w->strides)
        || !sizes_attr(n, "dilations", w->rank, 1, 1, w->dilations))
        return false;
    if (!sizes_attr(n, "pads", 2 * w->rank, 0, -MAX_EXTENT, w->pads)) return false;
    const char *how = onnx_string(n, "auto_pad", "NOTSET");
    if (!strcmp(how, "VALID")) memset(w->pads, 0, sizeof w->pads);
    else if (!strncmp(how, "SAME_", 5)) return same_pads(n, x, w, !strcmp(how, "SAME_UPPER"));
    else if (strcmp(how, "NOTSET") && *how) return onnx_fail(n, "attribute \"auto_pad\" is \"%s\"", how), false;
    if (onnx_int(n, "ceil_mode", 0)) ceil_pads(x, w);
    return true;
}

// ---------------------------------------------------------------- convolution

static void set_window(Node *node, const Window *w) {
    node_set_ints(node, "strides", w->strides, w->rank);
    node_set_ints(node, "dilations", w->dilations, w->rank);
    node_set_ints(node, "pads", w->pads, 2 * w->rank);
    if (w->ceil) node_set_int(node, "ceil_mode", 1);
    if (w->same) node_set_int(node, "same", w->same);
}

Value *onnx_convolve(OnnxNode *n, Value *x, Value *w, const Window *win, int64_t group) {
    if (!x || !w) return NULL;
    Node *node = graph_node(n->g, OP_Conv, 2, (Value *[]){ x, w }, 1);
    set_window(node, win);
    node_set_int(node, "group", group);
    return b_finish(node);
}

static Value *add_bias(OnnxNode *n, Value *y, int input) {
    Value *bias = onnx_optional(n, input);
    return y && bias ? b_binary(n->g, OP_Add, y, b_along(n->g, bias, y->type.rank, 1)) : y;
}

static bool weight_fits(OnnxNode *n, const Value *x, const Value *w) {
    if (w->type.rank != x->type.rank || x->type.rank < 3)
        return onnx_fail(n, "input %s and weight %s must have the same rank of at least 3",
                   type_text(n->g->arena, n->g, &x->type), type_text(n->g->arena, n->g, &w->type)),
               false;
    return b_static(n->g, w, "a weight");
}

Value *onnx_conv(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 2) || !weight_fits(n, n->in[0], n->in[1])
        || !onnx_window(n, n->in[0], n->in[1]->type.dim + 2, &w))
        return NULL;
    return add_bias(n, onnx_convolve(n, n->in[0], n->in[1], &w, onnx_int(n, "group", 1)), 2);
}

// Integer convolution of (x - zero) with (w - zero): exact in i32.
Value *onnx_conv_integer(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 2) || !weight_fits(n, n->in[0], n->in[1])
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
    return onnx_convolve(n, v[0], v[1], &w, onnx_int(n, "group", 1));
}

// Weights [C, M/g, k...] -> [M, C/g, k...], mirrored along space.
static Value *transposed_weight(OnnxNode *n, Value *w, int64_t group) {
    const Type t = w->type;
    int spatial = t.rank - 2;
    if (group < 1 || t.dim[0] % group)
        return onnx_fail(n, "%lld channels do not divide into %lld groups", (long long)t.dim[0], (long long)group);
    Dim split[MAX_RANK] = { group, t.dim[0] / group, t.dim[1] },
        merged[MAX_RANK] = { group * t.dim[1], t.dim[0] / group };
    int perm[MAX_RANK] = { 0, 2, 1 };
    if (spatial + 3 > MAX_RANK) return onnx_fail(n, "too many dimensions");
    for (int i = 0; i < spatial; i++) {
        split[3 + i] = merged[2 + i] = t.dim[2 + i];
        perm[3 + i] = 3 + i;
    }
    Value *v = b_reshape(n->g, w, spatial + 3, split);
    v = b_reshape(n->g, b_transpose(n->g, v, perm), spatial + 2, merged);
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK] = { 1, 1 };
    for (int i = 0; i < spatial; i++) {
        starts[2 + i] = t.dim[2 + i] - 1;
        steps[2 + i] = t.dim[2 + i] > 1 ? -1 : 1;
    }
    return b_slice(n->g, v, starts, steps, merged);
}

Value *onnx_convolve_transposed(
    OnnxNode *n, Value *x, Value *w, const Window *win, const int64_t *output_padding, int64_t group) {
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 }, between[MAX_RANK] = { 0 };
    Window plain = { .rank = win->rank };
    for (int i = 0; i < win->rank; i++) {
        lo[2 + i] = extent(win, i) - 1 - win->pads[i];
        hi[2 + i] = extent(win, i) - 1 - win->pads[win->rank + i] + output_padding[i];
        between[2 + i] = win->strides[i] - 1;
        plain.kernel[i] = win->kernel[i];
        plain.strides[i] = 1;
        plain.dilations[i] = win->dilations[i];
    }
    Value *weight = transposed_weight(n, w, group);
    return weight ? onnx_convolve(n, b_pad(n->g, x, lo, hi, between, NULL), weight, &plain, group) : NULL;
}

// The pads that make the output as large as output_shape asks for, or as SAME does.
static bool transposed_pads(OnnxNode *n, const Value *x, Window *w, int64_t *output_padding) {
    int count;
    const int64_t *shape = onnx_ints(n, "output_shape", &count);
    const char *how = onnx_string(n, "auto_pad", "NOTSET");
    bool same = !strncmp(how, "SAME_", 5);
    if (!shape && !same) return true;
    for (int i = 0; i < w->rank; i++)
        if (shape && !known_size(n, x, 2 + i, "output_shape")) return false;
    if (shape && count != w->rank && count != w->rank + 2)
        return onnx_fail(n, "attribute \"output_shape\" has %d elements, expected %d", count, w->rank), false;
    if (count == w->rank + 2) shape += 2;
    for (int i = 0; i < w->rank; i++) {
        int64_t in = shape ? x->type.dim[2 + i] : 1, want = shape ? shape[i] : in * w->strides[i];
        int64_t total = w->strides[i] * (in - 1) + output_padding[i] + extent(w, i) - want;
        if (total < 0) {
            output_padding[i] -= total;
            total = 0;
        }
        w->pads[i] = !strcmp(how, "SAME_UPPER") ? total / 2 : total - total / 2;
        w->pads[w->rank + i] = total - w->pads[i];
    }
    return true;
}

Value *onnx_conv_transpose(OnnxNode *n) {
    if (!onnx_inputs(n, 2) || !weight_fits(n, n->in[0], n->in[1])) return NULL;
    Value *x = n->in[0], *weight = n->in[1];
    Window w = { .rank = x->type.rank - 2 };
    int64_t output_padding[MAX_RANK];
    memcpy(w.kernel, weight->type.dim + 2, sizeof *w.kernel * (size_t)w.rank);
    onnx_has(n, "kernel_shape");
    if (!sizes_attr(n, "strides", w.rank, 1, 1, w.strides) || !sizes_attr(n, "dilations", w.rank, 1, 1, w.dilations))
        return NULL;
    if (!sizes_attr(n, "pads", 2 * w.rank, 0, -MAX_EXTENT, w.pads)
        || !sizes_attr(n, "output_padding", w.rank, 0, 0, output_padding))
        return NULL;
    if (!transposed_pads(n, x, &w, output_padding)) return NULL;
    return add_bias(n, onnx_convolve_transposed(n, x, weight, &w, output_padding, onnx_int(n, "group", 1)), 2);
}

// Columns [N, C*k, L] back to an image [N, C, size...]: overlapping elements add up. A transposed convolution with
// unit weights. Of sizes that the program computes: every element of the image is the sum of what the taps of the
// block put there, read where they have it.
static Value *col2im_run(OnnxNode *n) {
    Value *x = n->in[0], *at[2] = { NULL }, *inside = NULL;
    int rank, count;
    Value *image = onnx_list(n, 1, "image_shape", &rank), *block = onnx_list(n, 2, "block_shape", &count);
    Window w = { .rank = rank };
    if (!image || !block) return NULL;
    if (count != rank || rank < 1 || 2 + 2 * rank > MAX_RANK || x->type.rank != 3 || !dim_is_const(x->type.dim[1]))
        return onnx_fail(n, "image_shape, block_shape and the input's rank do not fit each other");
    if (!sizes_attr(n, "strides", rank, 1, 1, w.strides) || !sizes_attr(n, "dilations", rank, 1, 1, w.dilations)
        || !sizes_attr(n, "pads", 2 * rank, 0, 0, w.pads))
        return NULL;
    Dim dims[MAX_RANK], taps = 1, out[MAX_RANK] = { x->type.dim[0] };
    for (int i = 0; i < rank; i++) {
        if (!onnx_measure(n, image, i, 0, 2 + i, 0, NO_LIMIT, &dims[i])
            || !onnx_measure(n, block, i, -1, i, 1, x->type.dim[1], &dims[rank + i]))
            return NULL;
        taps = dim_mul(n->g, taps, dims[rank + i]);
        out[2 + i] = dims[i];
    }
    out[1] = dim_div(n->g, x->type.dim[1], taps);
    // place = (pixel + pad - tap * dilation) / stride where that is whole and inside
    for (int i = 0; i < rank; i++) {
        Value *pixel = b_iota(n->g, 2 * rank, dims, i, DT_I64), *tap = b_iota(n->g, 2 * rank, dims, rank + i, DT_I64);
        Value *kernel = b_number(n->g, dims[rank + i]), *size = b_number(n->g, dims[i]);
        Value *from = B_MAP(n->g,
            arena_printf(n->g->arena, "x + %lld - y * %lld", (long long)w.pads[i], (long long)w.dilations[i]), "x y",
            pixel, tap);
        const char *places = arena_printf(n->g->arena, "(x + %lld - (%lld * (y - 1) + 1)) / %lld + 1",
            (long long)(w.pads[i] + w.pads[rank + i]), (long long)w.dilations[i], (long long)w.strides[i]);
        Value *most = B_MAP(n->g, places, "x y", size, kernel),
              *place = B_MAP(n->g, arena_printf(n->g->arena, "x / %lld", (long long)w.strides[i]), "x", from);
        Value *ok = B_MAP(n->g,
            arena_printf(n->g->arena, "x >= 0 && x %% %lld == 0 && y < z", (long long)w.strides[i]), "x y z", from,
            place, most);
        inside = inside && ok ? b_binary(n->g, OP_And, inside, ok) : ok;
        at[0] = i ? B_MAP(n->g, "x * y + z", "x y z", at[0], kernel, tap) : tap;
        at[1] = i ? B_MAP(n->g, "x * y + z", "x y z", at[1], most, place) : place;
    }
    // outside reads 0
    Value *flat = B_MAP(n->g, "w ? x * y + z : -1 - y * v", "x y z w v", at[0], b_number(n->g, x->type.dim[2]), at[1],
        inside, b_number(n->g, taps));
    Value *v = b_reshape(n->g, x, 3, (Dim[]){ out[0], out[1], dim_mul(n->g, taps, x->type.dim[2]) });
    int64_t axes[MAX_RANK];
    for (int i = 0; i < rank; i++) axes[i] = 2 + rank + i;
    return flat && v ? b_reduce(n->g, OP_ReduceSum, b_gather(n->g, v, flat, 2), rank, axes, false) : NULL;
}

Value *onnx_col2im(OnnxNode *n) {
    int64_t size[MAX_RANK], kernel[MAX_RANK], output_padding[MAX_RANK] = { 0 };
    int rank, count;
    if (onnx_inputs(n, 3) && (!onnx_knows(n, 1) || !onnx_knows(n, 2))) return col2im_run(n);
    if (!onnx_inputs(n, 3) || !onnx_ints_input(n, 1, "image_shape", size, &rank, MAX_RANK - 2)
        || !onnx_ints_input(n, 2, "block_shape", kernel, &count, MAX_RANK - 2))
        return NULL;
    Value *x = n->in[0];
    Window w = { .rank = rank };
    if (count != rank || rank < 1 || x->type.rank != 3 || !b_static(n->g, x, "Col2Im"))
        return onnx_fail(n, "image_shape, block_shape and the input's rank do not fit each other");
    if (!sizes_attr(n, "strides", rank, 1, 1, w.strides) || !sizes_attr(n, "dilations", rank, 1, 1, w.dilations)
        || !sizes_attr(n, "pads", 2 * rank, 0, 0, w.pads))
        return NULL;
    int64_t taps = 1, places = 1;
    Dim dims[MAX_RANK] = { x->type.dim[0], x->type.dim[1] };
    for (int i = 0; i < rank; i++) {
        if (kernel[i] < 1 || kernel[i] > 1024) return onnx_fail(n, "block_shape holds %lld", (long long)kernel[i]);
        if (size[i] < 0 || size[i] > MAX_EXTENT) return onnx_fail(n, "image_shape holds %lld", (long long)size[i]);
        w.kernel[i] = kernel[i];
        int64_t span = size[i] + w.pads[i] + w.pads[rank + i] - extent(&w, i);
        if (span < 0) return onnx_fail(n, "the block is larger than the image");
        dims[2 + i] = span / w.strides[i] + 1;
        output_padding[i] = span % w.strides[i];
        taps *= kernel[i];
        places = places > INT64_MAX / dims[2 + i] ? INT64_MAX : places * dims[2 + i];
    }
    if (taps > 1 << 20 || x->type.dim[1] % taps || places != x->type.dim[2])
        return onnx_fail(n, "the input's dimensions do not fit image_shape and block_shape");
    int64_t channels = x->type.dim[1] / taps;
    Value *unit = b_reshape(n->g, b_iota(n->g, 1, &taps, 0, DT_I64), 2, (Dim[]){ taps, 1 });
    unit = b_cast(n->g, b_binary(n->g, OP_Equal, unit, b_iota(n->g, 1, &taps, 0, DT_I64)), x->type.dtype);
    Dim expanded[MAX_RANK + 2] = { channels, taps, taps }, weight[MAX_RANK] = { channels * taps, 1 };
    memcpy(weight + 2, kernel, sizeof *kernel * (size_t)rank);
    unit = b_reshape(n->g, b_expand(n->g, unit, 3, expanded), rank + 2, weight);
    return unit ? onnx_convolve_transposed(n, b_reshape(n->g, x, rank + 2, dims), unit, &w, output_padding, channels) :
                  NULL;
}

// ---------------------------------------------------------------- pools

Value *onnx_window_op(OnnxNode *n, Op op, Value *x, const Window *w) {
    if (!x) return NULL;
    Node *node = graph_node(n->g, op, 1, &x, 1);
    node_set_ints(node, "kernel", w->kernel, w->rank);
    set_window(node, w);
    return b_finish(node);
}

// Row-major flat indices -> column-major within the last two dimensions (storage_order 1).
static Value *column_major(OnnxNode *n, Value *indices, const Type *image) {
    int64_t w = image->dim[image->rank - 1], h = image->rank > 3 ? image->dim[image->rank - 2] : 1;
    if (!dim_is_const(w) || !dim_is_const(h)) return onnx_fail(n, "storage_order 1 needs known sizes");
    const char *text = arena_printf(n->g->arena, "x - x %% %lld + x %% %lld * %lld + x %% %lld / %lld",
        (long long)(h * w), (long long)w, (long long)h, (long long)(h * w), (long long)w);
    return B_MAP(n->g, text, "x", indices);
}

Value *onnx_max_pool(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 1) || !onnx_window(n, n->in[0], NULL, &w)) return NULL;
    if (n->n_out > 1 && n->asked[1]) {
        n->out[1] = onnx_window_op(n, OP_WindowArgMax, n->in[0], &w);
        if (n->out[1] && onnx_int(n, "storage_order", 0)) n->out[1] = column_major(n, n->out[1], &n->in[0]->type);
        if (!n->out[1]) return NULL;
    }
    return onnx_window_op(n, OP_WindowMax, n->in[0], &w);
}

// How many elements each window covers: [1, 1, out...]. With `padding` the model's own pads count too, what ceil_mode
// added never does.
static Value *window_counts(OnnxNode *n, const Value *x, const Window *w, bool padding) {
    Type t = { .dtype = x->type.dtype, .rank = w->rank + 2, .dim = { 1, 1 } };
    Window counted = *w;
    for (int i = 0; i < w->rank; i++) {
        t.dim[2 + i] = x->type.dim[2 + i];
        if (!padding) continue;
        t.dim[2 + i] += w->pads[i] + w->pads[w->rank + i] - w->extra[i];
        counted.pads[i] = 0;
        counted.pads[w->rank + i] = w->extra[i];
    }
    return onnx_window_op(n, OP_WindowSum, b_filled(n->g, x->type.dtype, 1, t.rank, t.dim), &counted);
}

Value *onnx_average_pool(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 1) || !onnx_window(n, n->in[0], NULL, &w)) return NULL;
    Value *x = n->in[0];
    bool padding = onnx_int(n, "count_include_pad", 0) != 0, extra = false;
    for (int i = 0; i < w.rank; i++) extra = extra || w.extra[i];
    if (extra) {
        Value *sum = onnx_window_op(n, OP_WindowSum, x, &w);
        return b_binary(n->g, OP_Div, sum, window_counts(n, x, &w, padding));
    }
    Node *node = graph_node(n->g, OP_AveragePool, 1, &x, 1);
    node_set_ints(node, "kernel", w.kernel, w.rank);
    set_window(node, &w);
    node_set_int(node, "count_include_pad", padding);
    return b_finish(node);
}

// |x|^p, and its inverse after summing.
static Value *lp_before(OnnxNode *n, Value *x, double p) {
    if (p == 2) return b_unary(n->g, OP_Square, x);
    x = b_unary(n->g, OP_Abs, x);
    return p == 1 || !x ? x : b_binary(n->g, OP_Pow, x, b_like(n->g, x, p));
}

static Value *lp_after(OnnxNode *n, Value *x, double p) {
    if (p == 2) return b_unary(n->g, OP_Sqrt, x);
    return p == 1 || !x ? x : b_binary(n->g, OP_Pow, x, b_like(n->g, x, 1 / p));
}

static double lp_order(OnnxNode *n) { return n->opset < 2 ? onnx_float(n, "p", 2) : (double)onnx_int(n, "p", 2); }

Value *onnx_lp_pool(OnnxNode *n) {
    Window w;
    if (!onnx_inputs(n, 1) || !onnx_window(n, n->in[0], NULL, &w)) return NULL;
    double p = lp_order(n);
    return lp_after(n, onnx_window_op(n, OP_WindowSum, lp_before(n, n->in[0], p), &w), p);
}

static Value *over_space(OnnxNode *n, Op op, Value *x) {
    int64_t axes[MAX_RANK];
    if (!x) return NULL;
    if (x->type.rank < 3)
        return onnx_fail(
            n, "the input must have at least 3 dimensions (batch, channels, space), got %d", x->type.rank);
    for (int i = 2; i < x->type.rank; i++) axes[i - 2] = i;
    return b_reduce(n->g, op, x, x->type.rank - 2, axes, true);
}

Value *onnx_global_pool(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    return over_space(n, !strcmp(n->argument, "max") ? OP_ReduceMax : OP_ReduceMean, n->in[0]);
}

Value *onnx_global_lp_pool(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    double p = lp_order(n);
    return lp_after(n, over_space(n, OP_ReduceSum, lp_before(n, n->in[0], p)), p);
}
