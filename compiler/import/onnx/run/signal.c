// SPDX-License-Identifier: MIT OR Apache-2.0
// Fourier transforms, window functions and mel filters whose sizes or axes only the running program knows.
//
// In: an OnnxNode with parameters that are computed. Out: the same products and formulas as in ops/signal.c, whose
// matrices are values of f64 computed from coordinates instead of constants.
#include "import/onnx/ops/signal.h"

#include <string.h>

// Of `in` (real or complex) elements into `out`, as a transform over `length`.
typedef struct RunTransform { Dim in, length, out; int64_t in_parts, out_parts; bool inverse, onesided; } RunTransform;

static Value *number_at(OnnxNode *n, int i, const char *what) {
    int count;
    Value *list = onnx_list(n, i, what, &count);
    if (list && count != 1) return onnx_fail(n, "%s must be a single number", what);
    return list;
}

static Value *real(OnnxNode *n, Value *v) { return b_cast(n->g, v, DT_F64); }
static Value *real_number(OnnxNode *n, Dim d) { return real(n, b_number(n->g, d)); }

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n).
Value *onnx_window_run(OnnxNode *n, const double *a, DType d) {
    Dim size;
    Value *list = number_at(n, 0, "the size");
    if (!list || !onnx_measure(n, list, 0, 0, 0, 0, NO_LIMIT, &size)) return NULL;
    Value *span = B_MAP(n->g, onnx_int(n, "periodic", 1) ? "x" : "x - 1", "x", real_number(n, size));
    const char *text = arena_printf(n->g->arena,
        "y == 0 ? 1 : %.17g - %.17g * cos(6.283185307179586476925 * x / y) + %.17g * cos(12.56637061435917295385 * x / y)",
        a[0], a[1], a[2]);
    return b_cast(n->g, B_MAP(n->g, text, "x y", b_iota(n->g, 1, &size, 0, DT_F64), span), d);
}

// Row (i, part), column (k, part): how much element i adds to result k.
static Value *transform_matrix(OnnxNode *n, const RunTransform *t, DType d) {
    Dim dims[4] = { t->in, t->in_parts, t->out, t->out_parts };
    Value *at[4], *length = real_number(n, t->length);
    for (int i = 0; i < 4; i++) at[i] = b_iota(n->g, 4, dims, i, DT_F64);
    Value *angle = B_MAP(n->g, "6.283185307179586476925 * floormod(x * y, z) / z", "x y z", at[0], at[2], length);
    const char *part = t->inverse && t->onesided ? "y == 0 ? cos(x) : -sin(x)" :
        t->inverse                               ? "y == z ? cos(x) : (y == 0 ? sin(x) : -sin(x))" :
                                                   "y == z ? cos(x) : (y == 0 ? -sin(x) : sin(x))";
    Value *m = B_MAP(n->g, part, "x y z", angle, at[1], at[3]);
    // the other half of a real result's spectrum is the conjugate of this one
    if (t->inverse && t->onesided) m = B_MAP(n->g, "x * (y == 0 || 2 * y == z ? 1 : 2)", "x y z", m, at[0], length);
    if (t->inverse) m = b_binary(n->g, OP_Div, m, length);
    Dim rows = dim_mul(n->g, t->in, t->in_parts), columns = dim_mul(n->g, t->out, t->out_parts);
    return b_reshape(n->g, b_cast(n->g, m, d), 2, (Dim[]){ rows, columns });
}

// x [rows, length, parts] -> [rows, out, parts]: what is missing of `in` elements is 0.
static Value *transform(OnnxNode *n, Value *x, const RunTransform *t) {
    if (!x) return NULL;
    Dim rows = x->type.dim[0];
    if (x->type.dim[1] != t->in) x = b_gather(n->g, x, b_iota(n->g, 1, &t->in, 0, DT_I64), 1);
    x = b_reshape(n->g, x, 2, (Dim[]){ rows, dim_mul(n->g, t->in, t->in_parts) });
    return b_reshape(n->g, b_matmul(n->g, x, transform_matrix(n, t, x ? x->type.dtype : DT_F32)), 3,
        (Dim[]){ rows, t->out, t->out_parts });
}

// The sizes of a transform over `length`.
static void set_sizes(Graph *g, RunTransform *t, Dim length) {
    Dim half = dim_add(g, dim_div(g, length, 2), 1);
    t->length = length;
    t->in = t->inverse && t->onesided ? half : length;
    t->out = t->onesided && !t->inverse ? half : length;
    t->out_parts = t->inverse && t->onesided ? 1 : 2;
}

// [outer, axis, inner, parts] around the axis, transformed as rows [outer * inner, axis, parts].
Value *onnx_dft_run(OnnxNode *n, Value *axis, bool inverse, bool onesided) {
    Value *x = n->in[0], *list = NULL;
    int rank = x->type.rank;
    RunTransform t = { .inverse = inverse, .onesided = onesided, .in_parts = rank ? x->type.dim[rank - 1] : 0 };
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
    set_sizes(n->g, &t, wanted);
    Value *v = b_transpose(
        n->g, b_reshape(n->g, lines, 4, (Dim[]){ outer, length, inner, t.in_parts }), (int[]){ 0, 2, 1, 3 });
    v = transform(n, b_reshape(n->g, v, 3, (Dim[]){ dim_mul(n->g, outer, inner), length, t.in_parts }), &t);
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
    Dim batch = x->type.dim[0], dims[2] = { frames, length };
    Value *at = B_MAP(
        n->g, "x * z + y", "x y z", b_iota(n->g, 2, dims, 0, DT_I64), b_iota(n->g, 2, dims, 1, DT_I64), step);
    Value *v = b_gather(n->g, x, at, 1);
    RunTransform t = { .onesided = onnx_int(n, "onesided", 1) != 0, .in_parts = x->type.dim[2] };
    if (window) v = b_binary(n->g, OP_Mul, v, b_along(n->g, window, 4, 2));
    set_sizes(n->g, &t, length);
    v = transform(n, b_reshape(n->g, v, 3, (Dim[]){ dim_mul(n->g, batch, frames), length, t.in_parts }), &t);
    return b_reshape(n->g, v, 4, (Dim[]){ batch, frames, t.out, 2 });
}

// Triangles over the bins of a spectrum: [dft_length / 2 + 1, bins].
Value *onnx_mel_weights_run(OnnxNode *n, DType d) {
    Value *in[5], *edge[3];
    Dim bins, length;
    for (int i = 0; i < 5; i++)
        if (!onnx_input(n, i) || !(in[i] = real(n, b_scalar_of(n->g, n->in[i])))) return NULL;
    Value *count = number_at(n, 0, "num_mel_bins"),
          *half = B_MAP(n->g, "x / 2 + 1", "x", number_at(n, 1, "dft_length"));
    if (!count || !half || !onnx_measure(n, count, 0, 0, 1, 1, NO_LIMIT, &bins)
        || !onnx_measure(n, half, 0, 0, 0, 1, NO_LIMIT, &length))
        return NULL;
    static const char mel[] = "2595 * log(1 + x / 700) / 2.302585092994045684";
    Value *low = B_MAP(n->g, mel, "x", in[3]), *high = B_MAP(n->g, mel, "x", in[4]);
    Value *step = B_MAP(n->g, "(y - x) / (z + 2)", "x y z", low, high, in[0]),
          *last = B_MAP(n->g, "x - 1", "x", real_number(n, length));
    Value *j = b_iota(n->g, 2, (Dim[]){ length, 1 }, 0, DT_F64), *i = b_iota(n->g, 2, (Dim[]){ 1, bins }, 1, DT_F64);
    for (int k = 0; k < 3; k++) {
        Value *hertz = B_MAP(n->g, arena_printf(n->g->arena, "700 * (pow(10, (x + y * (z + %d)) / 2595) - 1)", k),
            "x y z", low, step, i);
        edge[k] = B_MAP(n->g, "max(min(floor((y + 1) * x / z), w), 0)", "x y z w", hertz, in[1], in[2], last);
    }
    Value *up = B_MAP(
        n->g, "y == z ? (x == z ? 1 : 0) : x >= y && x <= z ? (x - y) / (z - y) : 0", "x y z", j, edge[0], edge[1]);
    return b_cast(n->g, B_MAP(n->g, "x >= y && x < z ? (z - x) / (z - y) : w", "x y z w", j, edge[1], edge[2], up), d);
}
