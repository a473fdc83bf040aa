// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's quantisation operators.
//
// In: an OnnxNode. Out: what build/quant.c makes: q = saturate(round(x / scale) + zero), x = (q - zero) * scale.
#include "import/onnx/onnx.h"

static bool quant_axis(OnnxNode *n, const Value *x, const Value *scale, int *axis, int64_t *block) {
    *axis = 0;
    *block = onnx_int(n, "block_size", 0);
    if (*block < 0) return onnx_fail(n, "attribute \"block_size\" is negative"), false;
    int64_t given = onnx_int(n, "axis", 1);
    if (scale->type.rank == 0 || (scale->type.rank == 1 && scale->type.dim[0] == 1 && !*block)) return true;
    return onnx_axis(n, given, x->type.rank, axis);
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
    bool saturate = !dtype_is_float(d) || onnx_int(n, "saturate", 1) != 0;
    return b_quantize(n->g, x, &(Quant){ scale, zero, axis, block }, d, wide, saturate);
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
    return b_dequantize(n->g, x, &(Quant){ scale, zero, axis, block }, d);
}

Value *onnx_dynamic_quantize(OnnxNode *n) {
    return onnx_inputs(n, 1) ? b_quantized_u8(n->g, n->in[0], &n->out[1], &n->out[2]) : NULL;
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
    if (!b_weight_fits(n->g, x, w) || !onnx_window(n, x, w->type.dim + 2, &win)) return NULL;
    Value *from = b_centred(n->g, x, b_scalar_of(n->g, in[2])),
          *by = b_centred(n->g, w, b_spread(n->g, in[5], w, 0, 0));
    Value *sum = onnx_convolution(n, from, by, &win);
    if (sum && onnx_optional(n, 8)) sum = b_binary(n->g, OP_Add, sum, b_along(n->g, in[8], x->type.rank, 1));
    Value *sx = b_scalar_of(n->g, in[1]), *sw = b_spread(n->g, in[4], x, 1, 0), *sy = b_scalar_of(n->g, in[6]);
    return b_rescale(n->g, sum, sx, sw, sy, b_scalar_of(n->g, in[7]));
}
