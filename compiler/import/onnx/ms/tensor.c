// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: operators on tensors in general: older forms of what ai.onnx has now, windows, hashes, distances,
// transforms, crops.
//
// In: an OnnxNode. Out: gathers, maps, reductions and products. Where ai.onnx has the same operator its builder makes
// it, as of the newest version.
#include "import/onnx/run/measure.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- what ai.onnx has, too

// Bicubic sampling beyond a border moves each of the 16 elements inside in one, the place itself in the other.
Value *onnx_ms_grid_sample(OnnxNode *n) {
    if (!strcmp(onnx_string(n, "mode", ""), "bicubic") && !strcmp(onnx_string(n, "padding_mode", ""), "border"))
        return onnx_fail(n, "bicubic sampling with border padding is not supported; reflection and zeros are");
    n->opset = 16;
    return onnx_grid_sample(n);
}

// Pads may come as one row of a matrix.
Value *onnx_ms_pad(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    if (n->in[1]->type.rank == 2)
        n->in[1] = b_reshape(n->g, n->in[1], 1, (Dim[]){ type_product(n->g, &n->in[1]->type, 0, 2) });
    n->opset = 13;
    return onnx_pad(n);
}

// The step may be absent: 1.
Value *onnx_ms_range(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *in[3] = { n->in[0], n->in[1], onnx_optional(n, 2) };
    if (!in[2]) in[2] = b_like(n->g, in[0], 1);
    n->in = in;
    n->n_in = 3;
    return onnx_range(n);
}

Value *onnx_ms_expand_dims(OnnxNode *n) {
    int axis;
    Tensor *at = onnx_const_number(n, 1, "the axis");
    if (!at || !onnx_input(n, 0) || !onnx_axis(n, tensor_get_i(at, 0), n->in[0]->type.rank + 1, &axis)) return NULL;
    return b_insert(n->g, n->in[0], axis);
}

Value *onnx_ms_embedding(OnnxNode *n) { return onnx_inputs(n, 2) ? b_gather(n->g, n->in[0], n->in[1], 0) : NULL; }

// Pads are an input, bias the one after it.
Value *onnx_ms_conv_transpose(OnnxNode *n) {
    int64_t pads[2 * MAX_RANK];
    int count;
    if (!onnx_inputs(n, 2)) return NULL;
    if (!onnx_knows(n, 2)) return onnx_transposed_by(n, 2, 3);
    Value *in[3] = { n->in[0], n->in[1], onnx_optional(n, 3) };
    OnnxNodeDef def = *n->def;
    OnnxAttr *attrs = NEW_ARRAY(n->g->arena, OnnxAttr, def.n_attrs + 1);
    bool *read = NEW_ARRAY(n->g->arena, bool, def.n_attrs + 1);
    memcpy(attrs, def.attrs, sizeof *attrs * (size_t)def.n_attrs);
    if (onnx_optional(n, 2)) {
        if (!onnx_ints_input(n, 2, "pads", pads, &count, 2 * MAX_RANK)) return NULL;
        attrs[def.n_attrs++] = (OnnxAttr){ .name = "pads",
            .type = ONNX_INTS,
            .n = count,
            .ints = arena_copy(n->g->arena, pads, sizeof *pads * (size_t)count) };
    }
    def.attrs = attrs;
    OnnxNode inner = *n;
    inner.def = &def;
    inner.in = in;
    inner.n_in = 3;
    inner.read = read;
    Value *y = onnx_conv_transpose(&inner);
    memcpy(n->read, read, sizeof *read * (size_t)n->def->n_attrs);
    return y;
}

// ---------------------------------------------------------------- what ai.onnx had before version 1

// The row's argument is an expression of x and the attributes alpha and beta.
Value *onnx_ms_alpha_beta(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0],
          *in[3] = { x, b_like(n->g, x, onnx_float(n, "alpha", 1)),
              b_like(n->g, x, onnx_float(n, "beta", strcmp(n->def->op, "Affine") ? 1 : 0)) };
    return b_map(n->g, n->argument, "x alpha beta", 3, in);
}

// scale * x, and a bias per channel.
Value *onnx_ms_image_scaler(OnnxNode *n) {
    int count = 0;
    if (!onnx_inputs(n, 1)) return NULL;
    const float *bias = onnx_floats(n, "bias", &count);
    Value *x = n->in[0], *y = b_binary(n->g, OP_Mul, x, b_like(n->g, x, onnx_float(n, "scale", 1)));
    if (!count) return y;
    int64_t channels = count;
    double *wide = NEW_ARRAY(n->g->arena, double, count);
    for (int i = 0; i < count; i++) wide[i] = (double)bias[i];
    return x->type.rank < 2 ?
        onnx_fail(n, "the input must have at least 2 dimensions") :
        b_binary(
            n->g, OP_Add, y, b_along(n->g, b_floats(n->g, x->type.dtype, 1, &channels, wide), x->type.rank, 1));
}

// Without `border` (left, top, right, bottom), and then only the first `scale` rows and columns when they are given.
Value *onnx_ms_crop(OnnxNode *n) {
    int count, scaled;
    const int64_t *border = onnx_ints(n, "border", &count), *scale = onnx_ints(n, "scale", &scaled);
    if (!onnx_inputs(n, 1) || !b_static(n->g, n->in[0], "Crop")) return NULL;
    Value *x = n->in[0];
    if (x->type.rank != 4 || count != 4 || (scaled && scaled != 2))
        return onnx_fail(n, "wants an image [batch, channels, height, width], a border of 4 and a scale of 2 numbers");
    for (int i = 0; i < 2; i++) {
        const int64_t all = x->type.dim[2 + i], from = border[1 - i], after = border[3 - i];
        const bool inside = from >= 0 && from <= all && (scaled || (after >= 0 && after <= all));
        const int64_t size = scaled ? scale[i] : inside ? all - from - after : 0;
        if (!inside || size < 1 || size > all - from)
            return onnx_fail(n, "the border leaves nothing of the image");
        if (!(x = b_part(n->g, x, 2 + i, from, size))) return NULL;
    }
    return x;
}

// ---------------------------------------------------------------- windows and n-grams

// All windows of `size` elements along `dim`, `step` apart; the window's own axis comes last.
Value *onnx_ms_unfold(OnnxNode *n) {
    int axis;
    int64_t size = onnx_int(n, "size", 0), step = onnx_int(n, "step", 1);
    if (!onnx_inputs(n, 1) || !onnx_axis(n, onnx_int(n, "dim", -1), n->in[0]->type.rank, &axis)
        || !b_static(n->g, n->in[0], "UnfoldTensor"))
        return NULL;
    Value *x = n->in[0];
    int rank = x->type.rank;
    if (size < 1 || step < 1 || size > x->type.dim[axis] || rank == MAX_RANK)
        return onnx_fail(n, "windows of %lld elements, %lld apart, do not fit %s", (long long)size, (long long)step,
            type_text(n->g->arena, n->g, &x->type));
    int64_t count = (x->type.dim[axis] - size) / step + 1;
    Value *windows = b_gather(n->g, x, b_frame_places(n->g, count, size, step), axis);
    return b_move_axes(n->g, windows, axis + 1, 1, rank);
}

// Scores [b, v] of tokens that would end an n-gram that is in ids [b, s] already become -inf.
Value *onnx_ms_ngram_repeat(OnnxNode *n) {
    int64_t size = onnx_int(n, "ngram_size", 0);
    if (!onnx_inputs(n, 2)) return NULL;
    Value *ids = n->in[0], *scores = n->in[1], *same = NULL;
    if (ids->type.rank != 2 || scores->type.rank != 2 || size < 1 || size > 64 || !dim_is_const(ids->type.dim[1]))
        return onnx_fail(
            n, "wants ids and scores with 2 dimensions, a known number of ids and an ngram_size of 1 to 64");
    Dim batch = ids->type.dim[0], length = ids->type.dim[1], places = length - size + 1;
    if (places < 1) return scores;
    for (int64_t i = 0; i + 1 < size; i++) {            // the last size - 1 ids against those before each place
        Value *equal = b_part(n->g, ids, 1, i, places);
        equal = b_binary(n->g, OP_Equal, equal, b_part(n->g, ids, 1, length - size + 1 + i, 1));
        same = same ? b_binary(n->g, OP_And, same, equal) : equal;
    }
    Value *next = b_reshape(n->g, b_part(n->g, ids, 1, size - 1, places), 3, (Dim[]){ batch, places, 1 });
    Value *banned = b_binary(n->g, OP_Equal, next, b_iota(n->g, 1, &scores->type.dim[1], 0, DT_I64));
    if (same) banned = b_binary(n->g, OP_And, banned, b_reshape(n->g, same, 3, (Dim[]){ batch, places, 1 }));
    banned = b_reduce(n->g, OP_ReduceMax, banned, 1, (int64_t[]){ 1 }, false);
    return b_where(n->g, banned, b_like(n->g, scores, -INFINITY), scores);
}

// Words [s, l] of character numbers, 0 after their end; per word the maximum over its places (at least the first) of
// tanh(w * embedded + b).
Value *onnx_ms_word_conv(OnnxNode *n) {
    if (!onnx_inputs(n, 4)) return NULL;
    Value *words = n->in[0], *w = n->in[1], *b = n->in[2];
    onnx_int(n, "embedding_size", 0);
    onnx_int(n, "conv_window_size", 0);
    onnx_int(n, "char_embedding_size", 0);
    if (words->type.rank != 2 || w->type.rank != 4 || n->in[3]->type.rank != 2 || !type_is_static(&words->type)
        || !type_is_static(&w->type) || w->type.dim[2] > words->type.dim[1])
        return onnx_fail(n,
            "wants words [count, characters], weights [filters, 1, window, embedding] that fit a word, and "
            "embeddings of known size");
    int64_t count = words->type.dim[0], length = words->type.dim[1], filters = w->type.dim[0], window = w->type.dim[2],
            places = length - window + 1;
    Value *chars = b_insert(n->g, b_gather(n->g, n->in[3], words, 0), 1);       // [s, 1, l, e]
    Window win = { .rank = 2, .kernel = { window, w->type.dim[3] }, .strides = { 1, 1 }, .dilations = { 1, 1 } };
    Value *y = b_reshape(n->g, b_convolve(n->g, chars, w, &win, 1), 3, (Dim[]){ count, filters, places });
    y = b_unary(n->g, OP_Tanh, b_binary(n->g, OP_Add, y, b_along(n->g, b, 3, 1)));
    Value *letters = b_cast(n->g, b_binary(n->g, OP_Greater, words, b_like(n->g, words, 0)), DT_I64);
    Value *of = b_reshape(
        n->g, b_reduce(n->g, OP_ReduceSum, letters, 1, (int64_t[]){ 1 }, true), 3, (Dim[]){ count, 1, 1 });
    Value *at = b_iota(n->g, 3, (Dim[]){ 1, 1, places }, 2, DT_I64);
    if (!y || !of) return NULL;
    Value *counts = B_MAP(
        n->g, arena_printf(n->g->arena, "x == 0 || x + %lld <= y", (long long)window), "x y", at, of);
    return b_reduce(
        n->g, OP_ReduceMax, b_where(n->g, counts, y, b_like(n->g, y, -INFINITY)), 1, (int64_t[]){ 2 }, false);
}

// ---------------------------------------------------------------- numbers

Value *onnx_ms_all_finite(OnnxNode *n) {
    int64_t axes[MAX_RANK];
    Value *all = NULL;
    if (!onnx_inputs(n, 1) || !onnx_inputs(n, n->n_in)) return NULL;
    const char *text = onnx_int(n, "isnan_only", 0) ? "!isnan(x)" :
        onnx_int(n, "isinf_only", 0)                ? "!isinf(x)" :
                                                      "!isnan(x) && !isinf(x)";
    onnx_has(n, "isinf_only");
    for (int i = 0; i < n->n_in; i++) {
        for (int j = 0; j < n->in[i]->type.rank; j++) axes[j] = j;
        Value *good = b_reduce(n->g, OP_ReduceMin, B_MAP(n->g, text, "x", n->in[i]), n->in[i]->type.rank, axes, false);
        all = all ? b_binary(n->g, OP_And, all, good) : good;
    }
    return all;
}

// Distances of the rows of a [m, d] and b [k, d] -> [m, k].
Value *onnx_ms_distances(OnnxNode *n) {
    const char *metric = onnx_string(n, "metric", "sqeuclidean");
    if (!onnx_inputs(n, 2)) return NULL;
    bool root = !strcmp(metric, "euclidean");
    if (!root && strcmp(metric, "sqeuclidean"))
        return onnx_fail(n, "metric \"%s\" is not supported; euclidean and sqeuclidean are", metric);
    if (n->in[0]->type.rank != 2 || n->in[1]->type.rank != 2) return onnx_fail(n, "both inputs must be matrices");
    Value *apart = b_insert(n->g, n->in[0], 1);
    apart = b_binary(n->g, OP_Sub, apart, b_insert(n->g, n->in[1], 0));
    Value *sum = b_reduce(n->g, OP_ReduceSum, b_unary(n->g, OP_Square, apart), 1, (int64_t[]){ 2 }, false);
    return root ? b_unary(n->g, OP_Sqrt, sum) : sum;
}

// MurmurHash3_x86_32 (Appleby, 2011) of each element's bytes, in words of 32 bits.
Value *onnx_ms_hash(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    DType d = x->type.dtype, same = d == DT_F32 ? DT_U32 : DT_U64;
    int words = (int)dtype_size(d) / 4;
    if (words != 1 && words != 2)
        return onnx_fail(n, "%s cannot be hashed; integers and floats of 32 and 64 bits can", dtype_name(d));
    if (dtype_is_float(d)) x = B_MAP(n->g, arena_printf(n->g->arena, "bits_%s(x)", dtype_name(same)), "x", x);
    x = b_cast(n->g, x, words == 1 ? DT_U32 : DT_U64);
    Value *h = b_scalar(n->g, DT_U32, (double)(uint32_t)onnx_int64(n, "seed", 0));
    for (int i = 0; i < words && x && h; i++) {
        Value *key = words == 1 ? x : B_MAP(n->g, i ? "u32(x >> 32)" : "u32(x & 4294967295)", "x", x);
        key = B_MAP(n->g, "k = x * 3432918353; (k << 15 | k >> 17) * 461845907", "x", key);
        h = B_MAP(n->g, "k = x ^ y; (k << 13 | k >> 19) * 5 + 3864292196", "x y", key, h);
    }
    if (h)
        h = B_MAP(n->g,
            arena_printf(n->g->arena,
                "a = x ^ %d; b = (a ^ a >> 16) * 2246822507; c = (b ^ b >> 13) * 3266489909; c ^ c >> 16", words * 4),
            "x", h);
    return onnx_int(n, "positive", 1) ? h : b_cast(n->g, h, DT_I32);
}

// ---------------------------------------------------------------- complex numbers
// Real and imaginary part lie along the last axis.

// a b, or a times the conjugate of b.
Value *onnx_ms_complex_mul(OnnxNode *n) {
    Value *part[4];
    if (!onnx_inputs(n, 2)) return NULL;
    for (int i = 0; i < 4; i++) {
        Value *v = n->in[i / 2];
        int last = v->type.rank - 1;
        if (last < 0 || !dim_equal(n->g, v->type.dim[last], 2))
            return onnx_fail(n, "the last dimension must be 2: real and imaginary part");
        part[i] = b_part(n->g, v, last, i % 2, 1);
    }
    bool conjugate = !strcmp(n->argument, "conjugate");
    Value *real = B_MAP(
        n->g, conjugate ? "a * c + b * d" : "a * c - b * d", "a b c d", part[0], part[1], part[2], part[3]);
    Value *imaginary = B_MAP(
        n->g, conjugate ? "b * c - a * d" : "a * d + b * c", "a b c d", part[0], part[1], part[2], part[3]);
    return real ? b_concat(n->g, real->type.rank - 1, 2, (Value *[]){ real, imaginary }) : NULL;
}

// The half spectrum [..., size / 2 + 1, 2] of real numbers [..., size], and back.
Value *onnx_ms_real_fft(OnnxNode *n) {
    bool inverse = !strcmp(n->argument, "inverse");
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int rank = x->type.rank, axis = inverse ? rank - 2 : rank - 1;
    if (onnx_int(n, "onesided", 1) != 1 || onnx_int(n, "normalized", 0) || onnx_int(n, "signal_ndim", 1) != 1)
        return onnx_fail(n, "only one-sided transforms of one dimension, not normalised, are supported");
    if (axis < 0 || !dim_is_const(x->type.dim[axis]) || (inverse && !dim_equal(n->g, x->type.dim[rank - 1], 2)))
        return onnx_fail(
            n, "the length of the signal must be known; spectra have real and imaginary parts along the last axis");
    int64_t bins = inverse ? x->type.dim[axis] : x->type.dim[axis] / 2 + 1,
            size = inverse ? 2 * (bins - 1) : x->type.dim[axis];
    if (size < 1) return onnx_fail(n, "a transform of %lld elements", (long long)size);
    Value *y = b_fourier(n->g, inverse ? x : b_insert(n->g, x, rank), axis, size, inverse, true);
    return inverse && y ? b_remove(n->g, y, rank - 1) : y;
}

// ---------------------------------------------------------------- matrices and images

Value *onnx_ms_inverse(OnnxNode *n) { return onnx_inputs(n, 1) ? b_inverse(n->g, n->in[0]) : NULL; }

// Where each of `count` rows (or columns) of a crop lies in an image of `size`: from `lo` to `hi`, both relative and
// both included. [r, count]
static Value *crop_places(OnnxNode *n, Value *boxes, int lo, int64_t count, int64_t size) {
    Value *from = b_part(n->g, boxes, 1, lo, 1), *to = b_part(n->g, boxes, 1, lo + 2, 1),
          *i = b_iota(n->g, 2, (Dim[]){ 1, count }, 1, boxes->type.dtype);
    if (!from || !to || !i) return NULL;
    const char *text = count > 1 ? arena_printf(n->g->arena, "x * %lld + z * ((y - x) * %lld / %lld)",
                           (long long)(size - 1), (long long)(size - 1), (long long)(count - 1)) :
                                   arena_printf(n->g->arena, "0.5 * (x + y) * %lld + z", (long long)(size - 1));
    return B_MAP(n->g, text, "x y z", from, to, i);
}

// x [b, c, h, w] at integer places y [r, rows], x [r, columns] of image [r] -> [r, rows, columns, c].
static Value *crop_pixels(OnnxNode *n, Value *pixels, Value *image, Value *y, Value *x) {
    if (!image || !y || !x) return NULL;
    Dim shape[4] = { y->type.dim[0], y->type.dim[1], x->type.dim[1], 1 };
    Value *at[3] = { b_reshape(n->g, image, 4, (Dim[]){ shape[0], 1, 1, 1 }),
        b_reshape(n->g, y, 4, (Dim[]){ shape[0], shape[1], 1, 1 }),
        b_reshape(n->g, x, 4, (Dim[]){ shape[0], 1, shape[2], 1 }) };
    for (int i = 0; i < 3; i++) at[i] = b_expand(n->g, b_cast(n->g, at[i], DT_I64), 4, shape);
    Value *index = b_concat(n->g, 3, 3, at);
    if (!pixels || !index) return NULL;
    Node *node = graph_node(n->g, OP_GatherND, 2, (Value *[]){ pixels, index }, 1);
    node_set_int(node, "batch_dims", 0);
    return b_finish(node);
}

// Boxes (y1, x1, y2, x2) relative to their images become crops of one size; places outside have extrapolation_value.
Value *onnx_ms_crop_and_resize(OnnxNode *n) {
    int64_t size[2];
    int count;
    if (!onnx_inputs(n, 4) || !onnx_ints_input(n, 3, "crop_size", size, &count, 2)) return NULL;
    Value *x = n->in[0], *boxes = n->in[1], *image = n->in[2];
    const char *mode = onnx_string(n, "mode", "bilinear");
    bool nearest = !strcmp(mode, "nearest");
    if (!nearest && strcmp(mode, "bilinear"))
        return onnx_fail(n, "mode \"%s\" is not supported; bilinear and nearest are", mode);
    if (x->type.rank != 4 || boxes->type.rank != 2 || count != 2 || size[0] < 1 || size[1] < 1
        || !dim_is_const(x->type.dim[2]) || !dim_is_const(x->type.dim[3]))
        return onnx_fail(
            n, "wants images [batch, channels, height, width] of known size, boxes [count, 4] and two positive sizes");
    Value *place[2], *floor[2], *part[2], *outside[2];
    for (int i = 0; i < 2; i++) {
        place[i] = crop_places(n, boxes, i, size[i], x->type.dim[2 + i]);
        if (!place[i]) return NULL;
        floor[i] = B_MAP(n->g, nearest ? "floor(x + 0.5)" : "floor(x)", "x", place[i]);
        outside[i] = B_MAP(n->g,
            arena_printf(n->g->arena, "!(x >= 0 && x <= %lld)", (long long)(x->type.dim[2 + i] - 1)), "x", place[i]);
        part[i] = b_binary(n->g, OP_Sub, place[i], floor[i]);
        Dim wide[4] = { boxes->type.dim[0], i ? 1 : size[0], i ? size[1] : 1, 1 };
        part[i] = b_reshape(n->g, part[i], 4, wide);
        outside[i] = b_reshape(n->g, outside[i], 4, wide);
    }
    Value *pixels = b_transpose(n->g, x, (int[]){ 0, 2, 3, 1 }), *corner[4], *y;
    for (int i = 0; i < (nearest ? 1 : 4); i++) {
        Value *at[2];
        for (int j = 0; j < 2; j++) at[j] = i & (2 >> j) ? b_unary(n->g, OP_Ceil, place[j]) : floor[j];
        if (!(corner[i] = crop_pixels(n, pixels, image, at[0], at[1]))) return NULL;
    }
    if (nearest) y = corner[0];
    else {
        Value *top = B_MAP(n->g, "x + (y - x) * z", "x y z", corner[0], corner[1], part[1]),
              *bottom = B_MAP(n->g, "x + (y - x) * z", "x y z", corner[2], corner[3], part[1]);
        y = B_MAP(n->g, "x + (y - x) * z", "x y z", top, bottom, part[0]);
    }
    Value *out = b_binary(n->g, OP_Or, outside[0], outside[1]);
    y = b_where(n->g, out, b_like(n->g, x, onnx_float(n, "extrapolation_value", 0)), y);
    return y ? b_transpose(n->g, y, (int[]){ 0, 3, 1, 2 }) : NULL;
}
