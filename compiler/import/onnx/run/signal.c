// SPDX-License-Identifier: MIT OR Apache-2.0
// Fourier transforms, window functions and mel filters whose sizes or axes only the running program knows.
//
// In: an OnnxNode with parameters that are computed. Out: their sizes, measured, and what build/fourier_run.c makes of
// them.
#include "import/onnx/ops/signal.h"

static Value *number_at(OnnxNode *n, int i, const char *what) {
    int count;
    Value *list = onnx_list(n, i, what, &count);
    if (list && count != 1) return onnx_fail(n, "%s must be a single number", what);
    return list;
}

Value *onnx_window_run(OnnxNode *n, const double *a, DType d) {
    Dim size;
    Value *list = number_at(n, 0, "the size");
    if (!list || !onnx_measure(n, list, 0, 0, 0, 0, NO_LIMIT, &size)) return NULL;
    return b_cosine_window_run(n->g, d, size, onnx_int(n, "periodic", 1) != 0, a);
}

// Along a known axis, of a size or over a length that is symbolic: as rows [rows, axis, parts].
Value *onnx_dft_along(OnnxNode *n, int axis, bool inverse, bool onesided) {
    Value *x = n->in[0], *list = NULL;
    int last = x->type.rank - 1, at = last - 1;
    Fourier t = { .inverse = inverse, .onesided = onesided, .in_parts = x->type.dim[last] };
    if (t.in_parts != 1 && t.in_parts != 2)
        return onnx_fail(n, "the last dimension must be 1 (real) or 2 (complex)");
    Value *v = b_swap(n->g, x, axis, at);
    if (!v || (onnx_optional(n, 1) && !(list = number_at(n, 1, "dft_length")))) return NULL;
    Type out = v->type;
    Dim length = out.dim[at], wanted = length, rows = type_product(n->g, &out, 0, at);
    if (list && !onnx_measure(n, list, 0, onesided && !inverse ? -1 : 0, axis, 1, NO_LIMIT, &wanted)) return NULL;
    if (!list && inverse && onesided) wanted = dim_mul(n->g, 2, dim_sub(n->g, length, 1));
    fourier_sizes(n->g, &t, wanted);
    t.most = onnx_dim_most(n, wanted);
    v = b_fourier_rows(n->g, b_reshape(n->g, v, 3, (Dim[]){ rows, length, t.in_parts }), &t);
    out.dim[at] = t.out;
    out.dim[last] = t.out_parts;
    return b_swap(n->g, b_reshape(n->g, v, last + 1, out.dim), axis, at);
}

// Along an axis that is computed: [outer, axis, inner, parts] around it, transformed as rows [outer * inner, axis,
// parts].
Value *onnx_dft_run(OnnxNode *n, Value *axis, bool inverse, bool onesided) {
    Value *x = n->in[0], *list = NULL;
    int rank = x->type.rank;
    Fourier t = { .inverse = inverse, .onesided = onesided, .in_parts = rank ? x->type.dim[rank - 1] : 0 };
    if (rank < 2 || (t.in_parts != 1 && t.in_parts != 2))
        return onnx_fail(n, "the last dimension must be 1 (real) or 2 (complex)");
    Type out = x->type;
    if (onnx_optional(n, 1) && !(list = number_at(n, 1, "dft_length"))) return NULL;
    axis = b_normal_axes(n->g, b_cast(n->g, b_scalar_of(n->g, axis), DT_I64), rank);
    Value *lines = onnx_lines_run(n, x, axis);          // the parts count as inner
    if (!lines) return NULL;
    Dim outer = lines->type.dim[0], length = lines->type.dim[1], inner = dim_div(n->g, lines->type.dim[2], t.in_parts),
        wanted = length;
    if (list && !onnx_measure(n, list, 0, -1, 0, 1, NO_LIMIT, &wanted)) return NULL;
    if (!list && inverse && onesided) wanted = dim_mul(n->g, 2, dim_sub(n->g, length, 1));
    fourier_sizes(n->g, &t, wanted);
    t.most = onnx_dim_most(n, wanted);
    Value *v = b_transpose(
        n->g, b_reshape(n->g, lines, 4, (Dim[]){ outer, length, inner, t.in_parts }), (int[]){ 0, 2, 1, 3 });
    v = b_fourier_rows(n->g, b_reshape(n->g, v, 3, (Dim[]){ dim_mul(n->g, outer, inner), length, t.in_parts }), &t);
    v = b_transpose(n->g, b_reshape(n->g, v, 4, (Dim[]){ outer, inner, t.out, t.out_parts }), (int[]){ 0, 2, 1, 3 });
    out.dim[rank - 1] = t.out_parts;
    if (t.out != length) {
        Value *dims = B_MAP(n->g, "x == y ? z : w", "x y z w", b_iota(n->g, 1, (Dim[]){ rank - 1 }, 0, DT_I64), axis,
            b_number(n->g, t.out), b_numbers(n->g, rank - 1, x->type.dim));
        for (int i = 0; i < rank - 1; i++)
            if (!onnx_measure(n, dims, i, 0, i, 0, list ? NO_LIMIT : dim_mul(n->g, 2, x->type.dim[i]), &out.dim[i]))
                return NULL;
    }
    return b_reshape(n->g, v, rank, out.dim);
}

// Frames of the signal [b, t, parts], every `step` samples.
Value *onnx_stft_run(OnnxNode *n, Value *window) {
    Value *x = n->in[0], *step = number_at(n, 1, "frame_step");
    Dim length = window ? window->type.dim[0] : x->type.dim[1], frames;
    if (!step) return NULL;
    if (onnx_optional(n, 3)) {
        Value *list = number_at(n, 3, "frame_length");
        if (!list || !onnx_measure(n, list, 0, -1, 0, 1, x->type.dim[1], &length)) return NULL;
    }
    Value *count = B_MAP(
        n->g, "x < 1 ? -1 : (y - z) / x + 1", "x y z", step, b_number(n->g, x->type.dim[1]), b_number(n->g, length));
    if (!count || !onnx_measure(n, count, 0, 0, 1, 0, x->type.dim[1], &frames)) return NULL;
    Dim batch = x->type.dim[0];
    Value *v = b_frames_run(n->g, x, frames, length, step);
    Fourier t = { .onesided = onnx_int(n, "onesided", 1) != 0, .in_parts = x->type.dim[2] };
    if (window) v = b_binary(n->g, OP_Mul, v, b_along(n->g, window, 4, 2));
    fourier_sizes(n->g, &t, length);
    t.most = onnx_dim_most(n, length);
    v = b_fourier_rows(n->g, b_reshape(n->g, v, 3, (Dim[]){ dim_mul(n->g, batch, frames), length, t.in_parts }), &t);
    return b_reshape(n->g, v, 4, (Dim[]){ batch, frames, t.out, 2 });
}

// Triangles over the bins of a spectrum: [dft_length / 2 + 1, bins].
Value *onnx_mel_weights_run(OnnxNode *n, DType d) {
    Value *in[5];
    Dim bins, length;
    for (int i = 0; i < 5; i++)
        if (!onnx_input(n, i) || !(in[i] = b_cast(n->g, b_scalar_of(n->g, n->in[i]), DT_F64))) return NULL;
    Value *count = number_at(n, 0, "num_mel_bins"),
          *half = B_MAP(n->g, "x / 2 + 1", "x", number_at(n, 1, "dft_length"));
    if (!count || !half || !onnx_measure(n, count, 0, 0, 1, 1, NO_LIMIT, &bins)
        || !onnx_measure(n, half, 0, 0, 0, 1, NO_LIMIT, &length))
        return NULL;
    return b_mel_weights_run(n->g, d, bins, length, in);
}
