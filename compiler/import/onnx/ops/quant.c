// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's quantisation operators.
//
// In: an OnnxNode. Out: maps and integer contractions. Formulas: q = saturate(round(x / scale) + zero), x = (q -
// zero) * scale. Products of quantised tensors are summed exactly in i32 and scaled once. Scales and zero points are
// per tensor, per axis, or per block along an axis.
#include "import/onnx/onnx.h"

#include <string.h>

// A scale or zero point in a shape that broadcasts against x.
Value *b_spread(Graph *g, Value *v, const Value *x, int axis, int64_t block) {
    if (!v || v->type.rank == 0) return v;
    if (v->type.rank == 1 && v->type.dim[0] == 1) return b_scalar_of(g, v);
    if (!block && v->type.rank == 1) return b_along(g, v, x->type.rank, axis);
    if (!block) return v;
    if (v->type.rank != x->type.rank) return graph_fail(g, "a blocked scale must have the input's rank");
    Dim wide[MAX_RANK + 1], merged[MAX_RANK], size = x->type.dim[axis];
    Value *split = b_insert(g, v, axis + 1);
    if (!split) return NULL;
    memcpy(wide, split->type.dim, sizeof *wide * (size_t)split->type.rank);
    memcpy(merged, v->type.dim, sizeof merged);
    wide[axis + 1] = block;
    merged[axis] = dim_mul(g, merged[axis], block);
    if (dim_is_const(size) && dim_is_const(merged[axis]) && merged[axis] < size)
        return graph_fail(g, "the scale has too few blocks of %lld for axis %d", (long long)block, axis);
    return b_part(g, b_reshape(g, b_expand(g, split, split->type.rank, wide), v->type.rank, merged), axis, 0, size);
}

static bool quant_axis(OnnxNode *n, const Value *x, const Value *scale, int *axis, int64_t *block) {
    *axis = 0;
    *block = onnx_int(n, "block_size", 0);
    if (*block < 0) return onnx_fail(n, "attribute \"block_size\" is negative"), false;
    int64_t given = onnx_int(n, "axis", 1);
    if (scale->type.rank == 0 || (scale->type.rank == 1 && scale->type.dim[0] == 1 && !*block)) return true;
    return onnx_axis(n, given, x->type.rank, axis);
}

static bool all_zero(Value *v) {
    Tensor *t = v ? value_const(v) : NULL;
    for (int64_t i = 0; t && i < type_count(&t->type); i++)
        if (tensor_get_f(t, i) != 0) return false;
    return t != NULL;
}

// y: x / scale in f32 or wider. zero: of type d, or NULL.
Value *b_round_to(Graph *g, Value *y, Value *zero, DType d, bool saturate) {
    if (!y) return NULL;
    if (dtype_is_float(d)) {
        if (zero) y = b_binary(g, OP_Add, y, b_cast(g, zero, y->type.dtype));
        if (!y) return NULL;
        Node *node = graph_node(g, OP_Cast, 1, &y, 1);
        node_set_int(node, "to", d);
        node_set_int(node, "saturate", saturate);
        return b_finish(node);
    }
    if (!dtype_is_int(d) || dtype_size(d) > 4) return graph_fail(g, "cannot quantise to %s", dtype_name(d));
    y = b_unary(g, OP_Round, y);
    if (zero && !all_zero(zero)) y = b_binary(g, OP_Add, y, b_cast(g, zero, y ? y->type.dtype : DT_F32));
    return b_cast(g, y, d);                          // which gives the nearest end of d's range to what is out of it
}

// In which type the division happens: that of the wider of both, f32 at least, unless `precision` asks for another.
static DType division_type(OnnxNode *n, const Value *x, const Value *scale) {
    DType d = dtype_wide(scale->type.dtype);
    if (!dtype_is_float(d)) d = DT_F32;
    if (x->type.dtype == DT_F64) d = DT_F64;
    int64_t precision = onnx_int(n, "precision", 0);
    return precision == DT_F64 ? DT_F64 : d;
}

Value *onnx_quantize(OnnxNode *n) {
    int axis;
    int64_t block;
    DType d;
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *scale = n->in[1], *zero = onnx_optional(n, 2);
    if (!quant_axis(n, x, scale, &axis, &block)) return NULL;
    DType otherwise = zero ? zero->type.dtype : DT_U8;
    if (onnx_int(n, "output_dtype", 0) == 0) d = otherwise;
    else if (!onnx_dtype(n, "output_dtype", otherwise, &d)) return NULL;
    DType wide = division_type(n, x, scale);
    scale = b_spread(n->g, b_cast(n->g, scale, wide), x, axis, block);
    if (zero) zero = b_spread(n->g, b_cast(n->g, zero, wide), x, axis, block);
    bool saturate = !dtype_is_float(d) || onnx_int(n, "saturate", 1) != 0;
    return b_round_to(n->g, b_binary(n->g, OP_Div, b_cast(n->g, x, wide), scale), zero, d, saturate);
}

// Subtracts the zero point without loss: in i32 for integers, in f32 for small floats.
Value *b_centred(Graph *g, Value *x, Value *zero) {
    if (!x) return NULL;
    DType d = dtype_is_float(x->type.dtype) ? dtype_wide(x->type.dtype) : DT_I32;
    x = b_cast(g, x, d);
    return zero ? b_binary(g, OP_Sub, x, b_cast(g, zero, d)) : x;
}

Value *onnx_dequantize(OnnxNode *n) {
    int axis;
    int64_t block;
    DType d;
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *scale = n->in[1], *zero = onnx_optional(n, 2);
    if (!quant_axis(n, x, scale, &axis, &block)) return NULL;
    if (onnx_int(n, "output_dtype", 0) == 0) d = scale->type.dtype;
    else if (!onnx_dtype(n, "output_dtype", scale->type.dtype, &d)) return NULL;
    DType wide = dtype_wide(d);
    if (zero) zero = b_spread(n->g, zero, x, axis, block);
    scale = b_spread(n->g, b_cast(n->g, scale, wide), x, axis, block);
    Value *y = b_centred(n->g, x, zero);
    return b_cast(n->g, b_binary(n->g, OP_Mul, b_cast(n->g, y, wide), scale), d);
}

// scale = (max(x, 0) - min(x, 0)) / 255, zero = saturate(round(-min / scale)).
Value *b_quantized_u8(Graph *g, Value *x, Value **scale, Value **zero) {
    int64_t axes[MAX_RANK];
    if (!x) return NULL;
    for (int i = 0; i < x->type.rank; i++) axes[i] = i;
    Value *lo = b_reduce(g, OP_ReduceMin, x, x->type.rank, axes, false),
          *hi = b_reduce(g, OP_ReduceMax, x, x->type.rank, axes, false);
    *scale = B_MAP(g, "(max(y, 0) - min(x, 0)) / 255", "x y", lo, hi);
    Value *at = B_MAP(g, "min(max(round((0 - min(x, 0)) / y), 0), 255)", "x y", lo, *scale);
    *zero = b_cast(g, at, DT_U8);
    return b_round_to(g, b_binary(g, OP_Div, x, *scale), at, DT_U8, true);
}

Value *onnx_dynamic_quantize(OnnxNode *n) {
    return onnx_inputs(n, 1) ? b_quantized_u8(n->g, n->in[0], &n->out[1], &n->out[2]) : NULL;
}

// A zero point or scale of the first factor: a vector goes with its rows.
Value *b_of_rows(Graph *g, Value *v) {
    if (!v || v->type.rank != 1) return v;
    return v->type.dim[0] == 1 ? b_scalar_of(g, v) : b_insert(g, v, 1);
}

Value *b_of_columns(Graph *g, Value *v) {
    return v && v->type.rank == 1 && v->type.dim[0] == 1 ? b_scalar_of(g, v) : v;
}

// The sum in i32, times sa * sb / sy, rounded to y's type.
Value *b_rescale(Graph *g, Value *sum, Value *sa, Value *sb, Value *sy, Value *zero) {
    if (!sum || !sa || !sb || !sy || !zero) return NULL;
    DType wide = dtype_wide(sa->type.dtype);
    sum = b_cast(g, sum, wide);
    sa = b_cast(g, sa, wide);
    sb = b_cast(g, sb, wide);
    sy = b_cast(g, sy, wide);
    return b_round_to(g, B_MAP(g, "x * (y * z / w)", "x y z w", sum, sa, sb, sy), zero, zero->type.dtype, true);
}

// a, its scale and zero point, b, its scale and zero point, y's scale and zero point.
Value *onnx_qlinear_matmul(OnnxNode *n) {
    if (!onnx_inputs(n, 8)) return NULL;
    Value **in = n->in;
    Value *a = b_centred(n->g, in[0], b_of_rows(n->g, in[2])),
          *b = b_centred(n->g, in[3], b_of_columns(n->g, in[5]));
    if (a && b && a->type.dtype != b->type.dtype) {         // one of them is of 8-bit floats
        a = b_cast(n->g, a, DT_F32);
        b = b_cast(n->g, b, DT_F32);
    }
    Value *sum = b_matmul(n->g, a, b), *sa = b_of_rows(n->g, in[1]), *sb = b_of_columns(n->g, in[4]),
          *sy = b_scalar_of(n->g, in[6]);
    return b_rescale(n->g, sum, sa, sb, sy, b_scalar_of(n->g, in[7]));
}

// x, its scale and zero point, w, its scales and zero points (per output channel), y's scale and zero point, bias in
// i32.
Value *onnx_qlinear_conv(OnnxNode *n) {
    Window win;
    if (!onnx_inputs(n, 8)) return NULL;
    Value **in = n->in, *x = in[0], *w = in[3];
    if (w->type.rank != x->type.rank || x->type.rank < 3 || !b_static(n->g, w, "a weight"))
        return onnx_fail(n, "input and weight must have the same rank of at least 3");
    if (!onnx_window(n, x, w->type.dim + 2, &win)) return NULL;
    Value *from = b_centred(n->g, x, b_scalar_of(n->g, in[2])),
          *by = b_centred(n->g, w, b_spread(n->g, in[5], w, 0, 0));
    Value *sum = onnx_convolve(n, from, by, &win, onnx_int(n, "group", 1));
    if (sum && onnx_optional(n, 8)) sum = b_binary(n->g, OP_Add, sum, b_along(n->g, in[8], x->type.rank, 1));
    Value *sx = b_scalar_of(n->g, in[1]), *sw = b_spread(n->g, in[4], x, 1, 0), *sy = b_scalar_of(n->g, in[6]);
    return b_rescale(n->g, sum, sx, sw, sy, b_scalar_of(n->g, in[7]));
}
