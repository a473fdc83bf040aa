// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: products, convolutions and activations that an optimizer has merged.
//
// In: an OnnxNode. Out: the operations that were merged, one after the other, which the schedule fuses again in its
// own way. The idea: where the merged operator extends one of ai.onnx, the builder of that one makes its part.
#include "import/onnx/onnx.h"

#include <string.h>

// Activations by name, with the names of their parameters in order; absent ones have the operation's defaults.
static const struct Activation { const char *name; Op op; const char *parameter[2];
} activations[] = {
    { "Relu", OP_Relu, { NULL } },
    { "Sigmoid", OP_Sigmoid, { NULL } },
    { "Tanh", OP_Tanh, { NULL } },
    { "Softplus", OP_Softplus, { NULL } },
    { "Softsign", OP_Softsign, { NULL } },
    { "HardSwish", OP_HardSwish, { NULL } },
    { "Gelu", OP_Gelu, { NULL } },
    { "Erf", OP_Erf, { NULL } },
    { "LeakyRelu", OP_LeakyRelu, { "alpha" } },
    { "Elu", OP_Elu, { "alpha" } },
    { "Celu", OP_Celu, { "alpha" } },
    { "ThresholdedRelu", OP_ThresholdedRelu, { "alpha" } },
    { "QuickGelu", OP_Swish, { "alpha" } },
    { "HardSigmoid", OP_HardSigmoid, { "alpha", "beta" } },
    { "Selu", OP_Selu, { "alpha", "gamma" } },
};

static Value *activate(OnnxNode *n, Value *x, const char *name, int count, const float *parameter) {
    if (!x || !*name) return x;
    if (!strcmp(name, "Clip") && count == 2)
        return B_MAP(n->g,
            arena_printf(n->g->arena, "min(max(x, %.9g), %.9g)", (double)parameter[0], (double)parameter[1]), "x", x);
    for (size_t i = 0; i < COUNT(activations); i++) {
        const struct Activation *a = &activations[i];
        if (strcmp(a->name, name)) continue;
        Node *node = graph_node(n->g, a->op, 1, &x, 1);
        for (int j = 0; j < 2 && j < count && a->parameter[j]; j++)
            node_set_float(node, a->parameter[j], (double)parameter[j]);
        return b_finish(node);
    }
    return onnx_fail(n, "activation \"%s\" is not supported; run the optimizer without this fusion", name);
}

// The parameters as attributes of their own. Selu's second is called gamma there, HardSigmoid's beta.
static Value *activate_by_attributes(OnnxNode *n, Value *x) {
    static const char *const names[] = { "activation_alpha", "activation_beta", "activation_gamma" };
    const char *name = onnx_string(n, "activation", "");
    float parameter[3];
    int count = 0;
    for (int i = 0; i < 3; i++)
        if (onnx_has(n, names[i]) && count < 2) parameter[count++] = (float)onnx_float(n, names[i], 0);
    if (onnx_has(n, "activation_axis") && !strcmp(name, "Softmax"))
        return onnx_fail(n, "activation \"Softmax\" is not supported; run the optimizer without this fusion");
    return activate(n, x, name, count, parameter);
}

// ---------------------------------------------------------------- matrix products

// Puts the first dimension before the last, so that those between lead, and then swaps the last two.
static Value *transposed(OnnxNode *n, Value *v, bool batch, bool last) {
    int rank = v->type.rank, perm[MAX_RANK];
    if (batch && rank > 2) {
        for (int i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i + 1 : i == rank - 2 ? 0 : i;
        v = b_transpose(n->g, v, perm);
    }
    return last && rank > 1 ? b_swap(n->g, v, rank - 2, rank - 1) : v;
}

Value *onnx_ms_matmul(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *a = transposed(n, n->in[0], onnx_int(n, "transBatchA", 0) != 0, onnx_int(n, "transA", 0) != 0);
    Value *b = transposed(n, n->in[1], onnx_int(n, "transBatchB", 0) != 0, onnx_int(n, "transB", 0) != 0);
    double alpha = onnx_float(n, "alpha", 1);
    Value *y = b_matmul(n->g, a, b);
    if (y && alpha != 1) y = b_binary(n->g, OP_Mul, y, b_like(n->g, y, alpha));
    return activate_by_attributes(n, y);
}

Value *onnx_ms_gemm(OnnxNode *n) { return activate_by_attributes(n, onnx_gemm(n)); }

// gelu(A B + bias), with tanh.
Value *onnx_ms_gemm_fast_gelu(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *y = b_matmul(n->g, n->in[0], n->in[1]), *bias = onnx_optional(n, 2);
    if (bias) y = b_binary(n->g, OP_Add, y, bias);
    return b_unary(n->g, OP_GeluTanh, y);
}

// ---------------------------------------------------------------- convolutions

// y = activation(conv(x, w) + bias + z)
Value *onnx_ms_conv(OnnxNode *n) {
    Value *y = onnx_conv(n), *z = onnx_optional(n, 3);
    int count = 0;
    const float *parameter = onnx_floats(n, "activation_params", &count);
    if (z) y = b_binary(n->g, OP_Add, y, z);
    return activate(n, y, onnx_string(n, "activation", ""), count, parameter);
}

// Channels last: x [N, space..., C], and weights [M, space..., C] where the row's argument says so.
Value *onnx_ms_nhwc_conv(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    if (n->in[0]->type.rank < 3 || n->in[1]->type.rank < 3)
        return onnx_fail(n, "input and weight must have at least 3 dimensions");
    n->in[0] = b_channels_first(n->g, n->in[0]);
    if (!strcmp(n->argument, "weights")) n->in[1] = b_channels_first(n->g, n->in[1]);
    if (onnx_optional(n, 3)) n->in[3] = b_channels_first(n->g, n->in[3]);
    return b_channels_last(n->g, onnx_ms_conv(n));
}

Value *onnx_ms_nhwc_max_pool(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    if (n->in[0]->type.rank < 3) return onnx_fail(n, "the input must have at least 3 dimensions");
    n->in[0] = b_channels_first(n->g, n->in[0]);
    return b_channels_last(n->g, onnx_max_pool(n));
}

// ---------------------------------------------------------------- activations and biases

// The row's argument is the operation; a second input is added to the first before it.
Value *onnx_ms_bias_map(OnnxNode *n) {
    Op op;
    if (!onnx_inputs(n, 1)) return NULL;
    if (!op_find(n->argument, &op)) bug("onnx_ops.def names the unknown operation %s", n->argument);
    Value *x = n->in[0], *bias = onnx_optional(n, 1);
    return b_unary(n->g, op, bias ? b_binary(n->g, OP_Add, x, bias) : x);
}

Value *onnx_ms_quick_gelu(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    float alpha = (float)onnx_float(n, "alpha", 1.702);
    return activate(n, n->in[0], "QuickGelu", 1, &alpha);
}

// x + bias in two halves along the last axis: left * gelu(right).
Value *onnx_ms_bias_split_gelu(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = b_binary(n->g, OP_Add, n->in[0], n->in[1]);
    int last = x ? x->type.rank - 1 : 0;
    if (!x || last < 0 || !dim_is_const(x->type.dim[last]) || x->type.dim[last] % 2)
        return onnx_fail(n, "the last dimension must be known and even");
    int64_t half = x->type.dim[last] / 2;
    Value *first = b_part(n->g, x, last, 0, half);
    return b_binary(n->g, OP_Mul, first, b_unary(n->g, OP_Gelu, b_part(n->g, x, last, half, half)));
}

Value *onnx_ms_bias_add(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    return b_binary(n->g, OP_Add, b_binary(n->g, OP_Add, n->in[0], n->in[1]), n->in[2]);
}

// Nothing is dropped in inference: data + bias + residual, and a mask of ones.
Value *onnx_ms_bias_dropout(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    onnx_has(n, "seed");
    if (onnx_optional(n, 4)) {
        Tensor *training = onnx_const_number(n, 4, "training_mode");
        if (!training) return NULL;
        if (tensor_get_i(training, 0))
            return onnx_fail(n, "dropout in training mode is not supported; export the model for inference");
    }
    Value *y = b_binary(n->g, OP_Add, n->in[0], n->in[1]);
    if (onnx_optional(n, 2)) y = b_binary(n->g, OP_Add, y, n->in[2]);
    if (y && n->n_out > 1) n->out[1] = b_filled(n->g, DT_BOOL, 1, y->type.rank, y->type.dim);
    return y;
}

// softmax(data + bias) over the dimensions from axis on. The bias is broadcast over inner dimensions (of size 1
// there) or over leading ones.
Value *onnx_ms_bias_softmax(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 2) || !onnx_axis(n, onnx_int(n, "axis", 1), n->in[0]->type.rank, &axis)) return NULL;
    Value *x = n->in[0], *bias = n->in[1];
    if (onnx_int(n, "is_inner_broadcast", 0) && bias->type.rank != x->type.rank)
        return onnx_fail(n, "a bias broadcast over inner dimensions must have the rank of the data");
    const Type t = x->type;
    Dim flat[2] = { type_product(n->g, &t, 0, axis), type_product(n->g, &t, axis, t.rank) };
    x = b_reshape(n->g, b_binary(n->g, OP_Add, x, bias), 2, flat);
    if (!x) return NULL;
    return b_reshape(n->g, b_softmax(n->g, x, 1), t.rank, t.dim);
}
