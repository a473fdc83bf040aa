// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: operators on 8-bit tensors, and products that quantise their input while they run.
//
// In: an OnnxNode. Out: maps and integer contractions. A quantised tensor comes as three inputs: q, scale, zero
// point; it stands for (q - zero) * scale. Most operators are: dequantise, do what the plain operator does, quantise;
// the builder of the plain operator does the middle.
#include "import/onnx/onnx.h"

#include <string.h>

// Inputs at..at+2 as a number each element, in f32; the zero point may be absent.
static Value *plain(OnnxNode *n, int at) {
    if (!onnx_input(n, at) || !onnx_input(n, at + 1)) return NULL;
    Value *zero = b_scalar_of(n->g, onnx_optional(n, at + 2)), *q = b_centred(n->g, n->in[at], zero);
    q = b_cast(n->g, q, DT_F32);
    return b_binary(n->g, OP_Mul, q, b_scalar_of(n->g, n->in[at + 1]));
}

// y quantised by the scale and zero point at inputs at, at + 1; without a zero point, to type d.
static Value *quantised(OnnxNode *n, Value *y, int at, DType d) {
    if (!y || !onnx_input(n, at)) return NULL;
    Value *zero = b_scalar_of(n->g, onnx_optional(n, at + 1));
    return b_round_to(
        n->g, b_binary(n->g, OP_Div, y, b_scalar_of(n->g, n->in[at])), zero, zero ? zero->type.dtype : d, true);
}

// ---------------------------------------------------------------- elementwise

// A zero point in f32; 0 where it is absent.
static Value *zero_f32(OnnxNode *n, int at) {
    Value *zero = onnx_optional(n, at);
    return zero ? b_cast(n->g, b_scalar_of(n->g, zero), DT_F32) : b_scalar(n->g, DT_F32, 0);
}

// a, b and their quantisations, c's. Rounded once, zero points included and in this order, as ONNX Runtime does: ties
// fall the same way.
Value *onnx_ms_qlinear_binary(OnnxNode *n) {
    if (!onnx_input(n, 0) || !onnx_input(n, 1) || !onnx_input(n, 3) || !onnx_input(n, 4) || !onnx_input(n, 6))
        return NULL;
    DType d = n->in[0]->type.dtype;
    Value *in[8] = { b_cast(n->g, n->in[0], DT_F32), b_cast(n->g, n->in[3], DT_F32), b_scalar_of(n->g, n->in[1]),
        b_scalar_of(n->g, n->in[4]), b_scalar_of(n->g, n->in[6]), zero_f32(n, 2), zero_f32(n, 5), zero_f32(n, 7) };
    bool product = !strcmp(n->argument, "mul");
    const char *text = product ? "(x - za) * (y - zb) * (sa * sb / sc) + zc" :
                                 "x * (sa / sc) + (y * (sb / sc) + (zc - (sa / sc * za + sb / sc * zb)))";
    return b_round_to(n->g, b_map(n->g, text, "x y sa sb sc za zb zc", 8, in), NULL,
        onnx_optional(n, 7) ? n->in[7]->type.dtype : d, true);
}

// The row's argument is the operation.
Value *onnx_ms_qlinear_map(OnnxNode *n) {
    Op op;
    Value *x = plain(n, 0);
    if (!op_find(n->argument, &op)) bug("onnx_ops.def names the unknown operation %s", n->argument);
    if (!x) return NULL;
    Node *node = graph_node(n->g, op, 1, &x, 1);
    if (op == OP_LeakyRelu) node_set_float(node, "alpha", onnx_float(n, "alpha", 0.01));
    return quantised(n, b_finish(node), 3, n->in[0]->type.dtype);
}

// Each of x, y by its own quantisation into z's, then chosen.
Value *onnx_ms_qlinear_where(OnnxNode *n) {
    if (!onnx_input(n, 0)) return NULL;
    Value *x = plain(n, 1), *y = plain(n, 4);
    if (!x || !y) return NULL;
    DType d = n->in[1]->type.dtype;
    x = quantised(n, x, 7, d);
    return b_where(n->g, n->in[0], x, quantised(n, y, 7, d));
}

// y's scale and zero point, then three inputs of each part.
Value *onnx_ms_qlinear_concat(OnnxNode *n) {
    int count = (n->n_in - 2) / 3, axis;
    if (!onnx_inputs(n, 3) || n->n_in % 3 != 2 || !onnx_axis(n, onnx_int(n, "axis", 0), n->in[2]->type.rank, &axis))
        return onnx_fail(n, "wants a scale and a zero point, then three inputs of each part");
    Value **part = NEW_ARRAY(n->g->arena, Value *, count);
    for (int i = 0; i < count; i++)
        if (!(part[i] = quantised(n, plain(n, 2 + 3 * i), 0, DT_U8))) return NULL;
    return b_concat(n->g, axis, count, part);
}

// Before opset 13 the dimensions from axis on count as one.
Value *onnx_ms_qlinear_softmax(OnnxNode *n) {
    int axis;
    Value *x = plain(n, 0);
    int64_t opset = onnx_int(n, "opset", 13);
    if (!x || !onnx_axis(n, onnx_int(n, "axis", -1), x->type.rank, &axis)) return NULL;
    const Type t = x->type;
    if (opset < 13)
        x = b_reshape(n->g, x, 2, (Dim[]){ type_product(n->g, &t, 0, axis), type_product(n->g, &t, axis, t.rank) });
    if (!x) return NULL;
    return quantised(
        n, b_reshape(n->g, b_softmax(n->g, x, opset < 13 ? 1 : axis), t.rank, t.dim), 3, n->in[0]->type.dtype);
}

// ---------------------------------------------------------------- means

// The mean over some axes, from an exact sum of integers.
static Value *quantised_mean(OnnxNode *n, int count, const int64_t *axes, bool keep) {
    if (!onnx_input(n, 0) || !onnx_input(n, 1) || !onnx_input(n, 3)) return NULL;
    Value *zero = b_scalar_of(n->g, onnx_optional(n, 4));
    Value *sum = b_reduce(
        n->g, OP_ReduceSum, b_centred(n->g, n->in[0], b_scalar_of(n->g, onnx_optional(n, 2))), count, axes, keep);
    Dim size = 1;
    for (int i = 0; i < count; i++) size = dim_mul(n->g, size, n->in[0]->type.dim[axes[i]]);
    if (!dim_is_const(size))
        return onnx_fail(n, "a quantised mean wants known sizes; pin the dimensions with --dim NAME=V");
    const char *text = arena_printf(n->g->arena, "x * (y / (z * %lld))", (long long)size);
    Value *y = B_MAP(
        n->g, text, "x y z", b_cast(n->g, sum, DT_F32), b_scalar_of(n->g, n->in[1]), b_scalar_of(n->g, n->in[3]));
    return b_round_to(n->g, y, zero, zero ? zero->type.dtype : n->in[0]->type.dtype, true);
}

Value *onnx_ms_qlinear_global_pool(OnnxNode *n) {
    int64_t axes[MAX_RANK];
    if (!onnx_inputs(n, 1)) return NULL;
    int rank = n->in[0]->type.rank, first = onnx_int(n, "channels_last", 0) ? 1 : 2;
    if (rank < 3) return onnx_fail(n, "the input must have at least 3 dimensions");
    for (int i = 0; i < rank - 2; i++) axes[i] = first + i;
    return quantised_mean(n, rank - 2, axes, true);
}

Value *onnx_ms_qlinear_mean(OnnxNode *n) {
    int64_t axes[MAX_RANK];
    int count;
    bool given;
    if (!onnx_inputs(n, 1) || !onnx_axes(n, 99, n->in[0]->type.rank, axes, &count, &given)) return NULL;
    return quantised_mean(n, count, axes, onnx_int(n, "keepdims", 1) != 0);
}

Value *onnx_ms_qlinear_average_pool(OnnxNode *n) {
    Value *x = plain(n, 0), *q = x ? n->in[0] : NULL;
    bool last = onnx_int(n, "channels_last", 0) != 0;
    if (!x) return NULL;
    n->in[0] = last ? b_channels_first(n->g, x) : x;
    Value *y = onnx_average_pool(n);
    n->in[0] = q;
    return quantised(n, last ? b_channels_last(n->g, y) : y, 3, q->type.dtype);
}

// ---------------------------------------------------------------- contractions

Value *onnx_ms_qlinear_conv(OnnxNode *n) {
    bool last = onnx_int(n, "channels_last", 0) != 0;
    if (!onnx_inputs(n, 1)) return NULL;
    if (last) n->in[0] = b_channels_first(n->g, n->in[0]);
    return last ? b_channels_last(n->g, onnx_qlinear_conv(n)) : onnx_qlinear_conv(n);
}

// The integer product of two factors with their zero points, in f32.
static Value *product(OnnxNode *n, Value *a, Value *a_zero, Value *b, Value *b_zero) {
    a = b_centred(n->g, a, a_zero);
    b = b_centred(n->g, b, b_of_columns(n->g, b_zero));
    return b_cast(n->g, b_matmul(n->g, a, b), DT_F32);
}

// A one-element vector of whatever rank as a number, a vector as it is.
static Value *scaled(OnnxNode *n, Value *sum, Value *sa, Value *sb, Value *bias) {
    Value *y = sum && sa && sb ? B_MAP(n->g, "x * (y * z)", "x y z", sum, sa, sb) : NULL;
    return y && bias ? b_binary(n->g, OP_Add, y, bias) : y;
}

// a is quantised by its own range. b, its scale and zero point, bias.
Value *onnx_ms_dynamic_matmul(OnnxNode *n) {
    Value *scale = NULL, *zero = NULL;
    if (!onnx_inputs(n, 3)) return NULL;
    Value *q = b_quantized_u8(n->g, n->in[0], &scale, &zero);
    Value *sum = product(n, q, zero, n->in[1], onnx_optional(n, 3));
    return scaled(n, sum, scale, b_of_columns(n->g, n->in[2]), onnx_optional(n, 4));
}

// a, b, their scales, their zero points, bias.
Value *onnx_ms_matmul_to_float(OnnxNode *n) {
    if (!onnx_inputs(n, 4)) return NULL;
    DType d = n->in[2]->type.dtype;
    Value *sum = product(n, n->in[0], b_of_columns(n->g, onnx_optional(n, 4)), n->in[1], onnx_optional(n, 5));
    Value *sa = b_cast(n->g, b_of_columns(n->g, n->in[2]), DT_F32),
          *sb = b_cast(n->g, b_of_columns(n->g, n->in[3]), DT_F32), *bias = b_cast(n->g, onnx_optional(n, 6), DT_F32);
    return b_cast(n->g, scaled(n, sum, sa, sb, bias), d);
}

// alpha a b + c: a and b with scale and zero point, c in i32, y's scale and zero point. Without y's scale the result
// is in floats.
Value *onnx_ms_qgemm(OnnxNode *n) {
    Value *factor[2];
    if (!onnx_inputs(n, 5)) return NULL;
    for (int i = 0; i < 2; i++) {
        Value *zero = onnx_optional(n, 2 + 3 * i);
        bool swapped = onnx_int(n, i ? "transB" : "transA", 0) != 0;
        if (n->in[3 * i]->type.rank != 2) return onnx_fail(n, "both factors must be matrices");
        factor[i] = swapped ? b_swap(n->g, n->in[3 * i], 0, 1) : n->in[3 * i];
        factor[i] = b_centred(n->g, factor[i], i ? b_of_columns(n->g, zero) : b_scalar_of(n->g, zero));
    }
    Value *sum = b_matmul(n->g, factor[0], factor[1]);
    if (onnx_optional(n, 6)) sum = b_binary(n->g, OP_Add, sum, n->in[6]);
    Value *sa = b_scalar_of(n->g, n->in[1]), *sb = b_of_columns(n->g, n->in[4]),
          *sy = b_scalar_of(n->g, onnx_optional(n, 7)), *zero = b_scalar_of(n->g, onnx_optional(n, 8));
    const char *alpha = arena_printf(n->g->arena, "%.9g", onnx_float(n, "alpha", 1));
    sum = b_cast(n->g, sum, DT_F32);
    if (!sum || !sa || !sb) return NULL;
    if (!sy) return B_MAP(n->g, arena_printf(n->g->arena, "x * (%s * y * z)", alpha), "x y z", sum, sa, sb);
    Value *y = B_MAP(n->g, arena_printf(n->g->arena, "x * (%s * y * z / w)", alpha), "x y z w", sum, sa, sb, sy);
    return b_round_to(n->g, y, zero, zero ? zero->type.dtype : n->in[0]->type.dtype, true);
}

// ---------------------------------------------------------------- integers

// (a - its zero point) * (b - its zero point), in i32.
Value *onnx_ms_mul_integer(OnnxNode *n) {
    if (!onnx_input(n, 0) || !onnx_input(n, 2)) return NULL;
    Value *a = b_centred(n->g, n->in[0], b_scalar_of(n->g, onnx_optional(n, 1)));
    return b_binary(n->g, OP_Mul, a, b_centred(n->g, n->in[2], b_scalar_of(n->g, onnx_optional(n, 3))));
}

Value *onnx_ms_matmul_integer16(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    DType d = dtype_class(n->in[0]->type.dtype) == CLASS_UINT && dtype_class(n->in[1]->type.dtype) == CLASS_UINT ?
        DT_U32 :
        DT_I32;
    Value *a = b_cast(n->g, n->in[0], d);
    return b_matmul(n->g, a, b_cast(n->g, n->in[1], d));
}

Value *onnx_ms_sum_integer(OnnxNode *n) {
    int64_t axes[MAX_RANK];
    int count;
    bool given;
    if (!onnx_inputs(n, 1) || !onnx_axes(n, 99, n->in[0]->type.rank, axes, &count, &given)) return NULL;
    DType d = dtype_class(n->in[0]->type.dtype) == CLASS_UINT ? DT_U32 : DT_I32;
    return b_reduce(n->g, OP_ReduceSum, b_cast(n->g, n->in[0], d), count, axes, onnx_int(n, "keepdims", 1) != 0);
}
