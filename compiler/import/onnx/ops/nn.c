// SPDX-License-Identifier: MIT OR Apache-2.0
// Contractions of ONNX: matrix products and Einstein sums.
//
// In: an OnnxNode. Out: MatMul with reshapes and transposes around it (Einstein sums: build/matrix.c).
#include "import/onnx/onnx.h"

Value *onnx_matmul(OnnxNode *n) { return onnx_inputs(n, 2) ? b_matmul(n->g, n->in[0], n->in[1]) : NULL; }

// (a - zero) times (b - zero), exact in i32. A vector of zero points goes with a's rows, b's columns.
Value *onnx_matmul_integer(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *v[2];
    for (int i = 0; i < 2; i++) {
        v[i] = b_cast(n->g, n->in[i], DT_I32);
        Value *zero = b_cast(n->g, onnx_optional(n, 2 + i), DT_I32);
        if (zero && i == 0 && zero->type.rank == 1 && zero->type.dim[0] != 1) zero = b_insert(n->g, zero, 1);
        if (zero) v[i] = b_binary(n->g, OP_Sub, v[i], zero);
    }
    return b_matmul(n->g, v[0], v[1]);
}

Value *onnx_gemm(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *a = n->in[0], *b = n->in[1], *c = onnx_optional(n, 2);
    if (a->type.rank != 2 || b->type.rank != 2) return onnx_fail(n, "both factors must be matrices");
    if (onnx_int(n, "transA", 0)) a = b_swap(n->g, a, 0, 1);
    if (onnx_int(n, "transB", 0)) b = b_swap(n->g, b, 0, 1);
    double alpha = onnx_float(n, "alpha", 1), beta = onnx_float(n, "beta", 1);
    onnx_int(n, "broadcast", 0);
    Value *y = b_matmul(n->g, a, b);
    if (y && alpha != 1) y = b_binary(n->g, OP_Mul, y, b_like(n->g, y, alpha));
    if (c && beta != 1) c = b_binary(n->g, OP_Mul, c, b_like(n->g, c, beta));
    return c ? b_binary(n->g, OP_Add, y, c) : y;
}

Value *onnx_einsum(OnnxNode *n) {
    const char *equation = onnx_string(n, "equation", "");
    return n->n_in && onnx_inputs(n, n->n_in) ? b_einsum(n->g, equation, n->n_in, n->in) : NULL;
}
