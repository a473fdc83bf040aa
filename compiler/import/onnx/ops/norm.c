// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's normalisations.
//
// In: an OnnxNode. Out: BatchNorm and LayerNorm composites where they fit, else means and maps. Formula of all of
// them: y = (x - mean) / sqrt(var + epsilon) * scale + bias; they differ in the axes of the mean and in the shape of
// scale and bias.
#include "import/onnx/onnx.h"

#include <string.h>

typedef struct Moments { Value *mean, *rstd, *centred; } Moments;

// mean, x - mean and 1 / sqrt(mean((x - mean)^2) + epsilon), axes kept.
static Moments moments(OnnxNode *n, Value *x, int count, const int64_t *axes, double epsilon) {
    Moments m = { b_reduce(n->g, OP_ReduceMean, x, count, axes, true), NULL, NULL };
    m.centred = b_binary(n->g, OP_Sub, x, m.mean);
    Value *var = b_reduce(n->g, OP_ReduceMean, b_unary(n->g, OP_Square, m.centred), count, axes, true);
    if (var) m.rstd = B_MAP(n->g, "1 / sqrt(x + y)", "x y", var, b_like(n->g, var, epsilon));
    return m;
}

static int axes_from(int first, int rank, int64_t *axes) {
    for (int i = first; i < rank; i++) axes[i - first] = i;
    return rank - first;
}

// Batch statistics, as in training: outputs y, the running mean and variance and, before version 14, the batch's own.
static Value *batch_norm_training(OnnxNode *n, Value *x, double epsilon) {
    double momentum = onnx_float(n, "momentum", 0.9);
    int64_t axes[MAX_RANK] = { 0 };
    int count = 1;
    for (int i = 2; i < x->type.rank; i++) axes[count++] = i;
    Moments m = moments(n, x, count, axes, epsilon);
    if (!m.rstd) return NULL;
    Dim channels = x->type.dim[1];
    Value *var = b_reduce(n->g, OP_ReduceMean, b_unary(n->g, OP_Square, m.centred), count, axes, true);
    Value *now[2] = { b_reshape(n->g, m.mean, 1, &channels), b_reshape(n->g, var, 1, &channels) };
    for (int i = 0; i < 2; i++) {
        Value *past = n->in[3 + i];
        const char *text = arena_printf(n->g->arena, "x * %.17g + y * %.17g", momentum, 1 - momentum);
        n->out[1 + i] = B_MAP(n->g, text, "x y", past, b_cast(n->g, now[i], past->type.dtype));
        n->out[3 + i] = now[i];
    }
    Value *scale = b_along(n->g, n->in[1], x->type.rank, 1), *bias = b_along(n->g, n->in[2], x->type.rank, 1);
    scale = b_cast(n->g, scale, x->type.dtype);
    bias = b_cast(n->g, bias, x->type.dtype);
    return B_MAP(n->g, "x * y * z + w", "x y z w", m.centred, m.rstd, scale, bias);
}

// Whether batch statistics are asked for: by an attribute or, before version 14, by a use of the outputs that only
// training has.
static bool is_training(const OnnxNode *n) {
    if (n->opset >= 14) return onnx_int(n, "training_mode", 0) != 0;
    bool test = onnx_int(n, "is_test", 0) != 0, used = false;
    for (int i = 1; i < n->n_out; i++) used = used || n->asked[i];
    return used && !test;
}

// spatial = 0: statistics for each element of a sample.
static Value *batch_norm_each(OnnxNode *n, Value *x, double epsilon) {
    Value *m = B_MAP(n->g, "x - y", "x y", x, n->in[3]);
    if (is_training(n)) return onnx_fail(n, "spatial = 0 is not supported in training");
    return m ? B_MAP(n->g, arena_printf(n->g->arena, "x / sqrt(y + %.17g) * z + w", epsilon), "x y z w", m, n->in[4],
               n->in[1], n->in[2]) :
               NULL;
}

Value *onnx_batch_norm(OnnxNode *n) {
    if (!onnx_inputs(n, 5)) return NULL;
    Value *x = n->in[0];
    double epsilon = onnx_float(n, "epsilon", 1e-5);
    if (x->type.rank < 2) return onnx_fail(n, "the input must have at least 2 dimensions");
    n->in[3]->trainable = n->in[4]->trainable = false;
    if (n->opset < 9 && !onnx_int(n, "spatial", 1)) return batch_norm_each(n, x, epsilon);
    if (is_training(n)) return batch_norm_training(n, x, epsilon);
    onnx_float(n, "momentum", 0.9);
    Value *in[5] = { x };
    for (int i = 1; i < 5; i++) in[i] = b_cast(n->g, n->in[i], x->type.dtype);
    Node *node = graph_node(n->g, OP_BatchNorm, 5, in, 1);
    node_set_float(node, "epsilon", epsilon);
    return b_finish(node);
}

// Outputs y, mean and 1 / sqrt(var + epsilon). stash_type says what the statistics are computed in.
Value *onnx_layer_norm(OnnxNode *n) {
    int axis, count;
    int64_t axes[MAX_RANK];
    DType stash;
    if (!onnx_inputs(n, 2) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)
        || !onnx_dtype(n, "stash_type", DT_F32, &stash))
        return NULL;
    Value *x = n->in[0], *scale = n->in[1], *bias = onnx_optional(n, 2);
    double epsilon = onnx_float(n, "epsilon", 1e-5);
    bool statistics = (n->n_out > 1 && n->asked[1]) || (n->n_out > 2 && n->asked[2]);
    if (!statistics && (x->type.dtype == stash || dtype_is_small_float(x->type.dtype))) {
        Node *node = graph_node(n->g, OP_LayerNorm, bias ? 3 : 2, (Value *[]){ x, scale, bias }, 1);
        node_set_int(node, "axis", axis);
        node_set_float(node, "epsilon", epsilon);
        return b_finish(node);
    }
    count = axes_from(axis, x->type.rank, axes);
    Moments m = moments(n, b_cast(n->g, x, stash), count, axes, epsilon);
    n->out[1] = m.mean;
    n->out[2] = m.rstd;
    Value *y = b_binary(n->g, OP_Mul, b_cast(n->g, b_binary(n->g, OP_Mul, m.centred, m.rstd), x->type.dtype), scale);
    return bias ? b_binary(n->g, OP_Add, y, bias) : y;
}

Value *onnx_rms_norm(OnnxNode *n) {
    int axis, count;
    int64_t axes[MAX_RANK];
    DType stash;
    if (!onnx_inputs(n, 2) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)
        || !onnx_dtype(n, "stash_type", DT_F32, &stash))
        return NULL;
    Value *x = b_cast(n->g, n->in[0], stash);
    if (!x) return NULL;
    count = axes_from(axis, x->type.rank, axes);
    Value *square = b_reduce(n->g, OP_ReduceMean, b_unary(n->g, OP_Square, x), count, axes, true);
    if (!square) return NULL;
    Value *y = B_MAP(
        n->g, "x / sqrt(y + z)", "x y z", x, square, b_like(n->g, square, onnx_float(n, "epsilon", 1e-5)));
    return b_binary(n->g, OP_Mul, b_cast(n->g, y, n->in[1]->type.dtype), n->in[1]);
}

// Over space, per batch element and channel.
Value *onnx_instance_norm(OnnxNode *n) {
    int64_t axes[MAX_RANK];
    if (!onnx_inputs(n, 3)) return NULL;
    Value *x = n->in[0];
    if (x->type.rank < 3) return onnx_fail(n, "the input must have at least 3 dimensions (batch, channels, space)");
    Moments m = moments(n, x, axes_from(2, x->type.rank, axes), axes, onnx_float(n, "epsilon", 1e-5));
    Value *scale = b_along(n->g, n->in[1], x->type.rank, 1), *bias = b_along(n->g, n->in[2], x->type.rank, 1);
    return B_MAP(n->g, "x * y * z + w", "x y z w", m.centred, m.rstd, scale, bias);
}

// Over groups of channels and space: x as [n, groups, c/groups, rest]. Scale and bias per channel, before opset 21
// per group.
Value *onnx_group_norm(OnnxNode *n) {
    DType stash = DT_F32;
    if (!onnx_inputs(n, 3)) return NULL;
    Value *x = n->in[0];
    const Type t = x->type;
    int64_t groups = onnx_int(n, "num_groups", 0);
    if (n->opset >= 21 && !onnx_dtype(n, "stash_type", DT_F32, &stash)) return NULL;
    if (t.rank < 2 || groups < 1 || !dim_is_const(t.dim[1]) || t.dim[1] % groups)
        return onnx_fail(n, "num_groups (%lld) must divide the channels", (long long)groups);
    Dim each = t.dim[1] / groups, dims[4] = { t.dim[0], groups, each, type_product(n->g, &t, 2, t.rank) };
    x = b_reshape(n->g, b_cast(n->g, x, n->opset >= 21 ? stash : t.dtype), 4, dims);
    Moments m = moments(n, x, 2, (int64_t[]){ 2, 3 }, onnx_float(n, "epsilon", 1e-5));
    Value *y = b_cast(n->g, b_binary(n->g, OP_Mul, m.centred, m.rstd), t.dtype), *v[2];
    bool per_group = n->opset < 21 && n->in[1]->type.rank == 1 && n->in[1]->type.dim[0] == groups;
    for (int i = 0; i < 2; i++) v[i] = b_reshape(n->g, n->in[1 + i], 4, (Dim[]){ 1, groups, per_group ? 1 : each, 1 });
    return b_reshape(n->g, B_MAP(n->g, "x * y + z", "x y z", y, v[0], v[1]), t.rank, t.dim);
}

// x / norm along axis; 0 where the norm is 0.
Value *onnx_lp_norm(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 1) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)) return NULL;
    Value *x = n->in[0];
    int64_t p = onnx_int(n, "p", 2), at = axis;
    if (p != 1 && p != 2) return onnx_fail(n, "attribute \"p\" is %lld; 1 and 2 are known", (long long)p);
    Value *norm = b_reduce(n->g, OP_ReduceSum, b_unary(n->g, p == 1 ? OP_Abs : OP_Square, x), 1, &at, true);
    if (p == 2) norm = b_unary(n->g, OP_Sqrt, norm);
    return B_MAP(n->g, "y == 0 ? 0 : x / y", "x y", x, norm);
}

// The deviation is sqrt(E(x^2) - E(x)^2), and 1e-9 keeps it from 0.
Value *onnx_mean_variance_norm(OnnxNode *n) {
    static const int64_t usual[] = { 0, 2, 3 };
    int64_t axes[MAX_RANK];
    int count;
    bool given;
    if (!onnx_inputs(n, 1) || !onnx_axes(n, 99, n->in[0]->type.rank, axes, &count, &given)) return NULL;
    if (!given) memcpy(axes, usual, sizeof usual), count = 3;
    if (!given && n->in[0]->type.rank < 4) return onnx_fail(n, "the default axes want 4 dimensions");
    Value *x = n->in[0], *mean = b_reduce(n->g, OP_ReduceMean, x, count, axes, true);
    // E(x - m)^2, where E x^2 - m^2 may round below zero
    Value *centred = mean ? b_binary(n->g, OP_Sub, x, mean) : NULL;
    Value *variance = b_reduce(n->g, OP_ReduceMean, b_unary(n->g, OP_Square, centred), count, axes, true);
    return B_MAP(n->g, "x / (sqrt(y) + 1e-9)", "x y", centred, variance);
}

// Across channels: y = x / (bias + alpha / size * sum of squares of the size channels around)^beta.
Value *onnx_lrn(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    const Type t = x->type;
    int64_t size = onnx_int(n, "size", 0);
    if (t.rank < 2 || size < 1 || size > 1 << 20)
        return onnx_fail(n, "wants at least 2 dimensions and a positive size");
    double alpha = onnx_float(n, "alpha", 1e-4), beta = onnx_float(n, "beta", 0.75), bias = onnx_float(n, "bias", 1);
    Window w = { .rank = 2,
        .kernel = { size, 1 },
        .strides = { 1, 1 },
        .dilations = { 1, 1 },
        .pads = { (size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0 } };
    Value *square = b_reshape(
        n->g, b_unary(n->g, OP_Square, x), 4, (Dim[]){ t.dim[0], 1, t.dim[1], type_product(n->g, &t, 2, t.rank) });
    Value *sum = b_window_op(n->g, OP_WindowSum, square, &w);
    const char *text = arena_printf(
        n->g->arena, "x / pow(%.17g + y * %.17g, %.17g)", bias, alpha / (double)size, beta);
    return sum ? B_MAP(n->g, text, "x y", x, b_reshape(n->g, sum, t.rank, t.dim)) : NULL;
}
