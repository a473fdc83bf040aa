// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of normalisations.
//
// In: x, scale and bias. Out: composites (BatchNorm, LayerNorm, ...) where they fit, else means and maps. Formula of
// all of them: y = (x - mean) / sqrt(var + epsilon) * scale + bias; they differ in the axes of the mean and in the
// shape of scale and bias.
#include "build/build.h"

// mean, x - mean and 1 / sqrt(mean((x - mean)^2) + epsilon), axes kept.
Moments b_moments(Graph *g, Value *x, int count, const int64_t *axes, double epsilon) {
    Moments m = { b_reduce(g, OP_ReduceMean, x, count, axes, true), NULL, NULL };
    m.centred = b_binary(g, OP_Sub, x, m.mean);
    Value *var = b_reduce(g, OP_ReduceMean, b_unary(g, OP_Square, m.centred), count, axes, true);
    if (var) m.rstd = B_MAP(g, "1 / sqrt(x + y)", "x y", var, b_like(g, var, epsilon));
    return m;
}

static int axes_from(int first, int rank, int64_t *axes) {
    for (int i = first; i < rank; i++) axes[i - first] = i;
    return rank - first;
}

static Value *mean_of(Graph *g, Value *x, int count, const int64_t *axes) {
    return b_reduce(g, OP_ReduceMean, x, count, axes, true);
}

Value *b_batch_norm(Graph *g, Value *x, Value *const parameters[4], double epsilon, double momentum) {
    Value *in[5] = { x };
    if (!x) return NULL;
    for (int i = 0; i < 4; i++)
        if (!(in[1 + i] = i < 2 ? b_cast(g, parameters[i], x->type.dtype) : parameters[i])) return NULL;
    Node *node = graph_node(g, OP_BatchNorm, 5, in, 1);
    node_set_float(node, "epsilon", epsilon);
    if ((float)momentum != 0.9f) node_set_float(node, "momentum", momentum);
    return b_finish(node);
}

Value *b_batch_norm_training(Graph *g, Value *x, Value *const parameters[2], double epsilon, Value **now) {
    Value *in[3] = { x };
    if (!x) return NULL;
    for (int i = 0; i < 2; i++)
        if (!(in[1 + i] = b_cast(g, parameters[i], x->type.dtype))) return NULL;
    Node *node = graph_node(g, OP_BatchNormTraining, 3, in, 3);
    node_set_float(node, "epsilon", epsilon);
    if (!node_infer(node)) return NULL;
    for (int i = 0; i < 2; i++) now[i] = node->out[1 + i];
    return node->out[0];
}

Value *b_layer_norm(Graph *g, Value *x, Value *scale, Value *bias, int axis, double epsilon) {
    if (!x || !scale) return NULL;
    Node *node = graph_node(g, OP_LayerNorm, bias ? 3 : 2, (Value *[]){ x, scale, bias }, 1);
    node_set_int(node, "axis", axis);
    node_set_float(node, "epsilon", epsilon);
    return b_finish(node);
}

Value *b_layer_norm_in(
    Graph *g, Value *x, Value *scale, Value *bias, int axis, double epsilon, DType stash, Moments *m) {
    int64_t axes[MAX_RANK];
    int count = axes_from(axis, x->type.rank, axes);
    *m = b_moments(g, b_cast(g, x, stash), count, axes, epsilon);
    Value *y = b_binary(g, OP_Mul, b_cast(g, b_binary(g, OP_Mul, m->centred, m->rstd), x->type.dtype), scale);
    return bias ? b_binary(g, OP_Add, y, bias) : y;
}

Value *b_rms_norm_in(Graph *g, Value *x, Value *scale, int axis, double epsilon, DType stash) {
    int64_t axes[MAX_RANK];
    x = b_cast(g, x, stash);
    if (!x) return NULL;
    int count = axes_from(axis, x->type.rank, axes);
    Value *square = mean_of(g, b_unary(g, OP_Square, x), count, axes);
    if (!square) return NULL;
    Value *y = B_MAP(g, "x / sqrt(y + z)", "x y z", x, square, b_like(g, square, epsilon));
    return b_binary(g, OP_Mul, b_cast(g, y, scale->type.dtype), scale);
}

Value *b_rms_norm(Graph *g, Value *x, Value *scale, int axis, double epsilon) {
    if (!x || !scale) return NULL;
    Node *node = graph_node(g, OP_RMSNorm, 2, (Value *[]){ x, scale }, 1);
    node_set_int(node, "axis", axis);
    node_set_float(node, "epsilon", epsilon);
    return b_finish(node);
}

// Means over the axes from `axis` on: of the value, and the reciprocal deviation, which is around 0 without a mean.
Value *b_reciprocal_deviation(Graph *g, Value *x, int axis, double epsilon, Value **mean) {
    int64_t axes[MAX_RANK];
    if (!x) return NULL;
    int count = axes_from(axis, x->type.rank, axes);
    if (mean) x = b_binary(g, OP_Sub, x, *mean = mean_of(g, x, count, axes));
    Value *square = mean_of(g, b_unary(g, OP_Square, x), count, axes);
    return square ? B_MAP(g, "1 / sqrt(x + y)", "x y", square, b_like(g, square, epsilon)) : NULL;
}

Value *b_instance_norm(Graph *g, Value *x, Value *scale, Value *bias, double epsilon) {
    if (x->type.rank < 3) return graph_fail(g, "the input must have at least 3 dimensions (batch, channels, space)");
    Node *node = graph_node(g, OP_InstanceNorm, 3, (Value *[]){ x, scale, bias }, 1);
    node_set_float(node, "epsilon", epsilon);
    return b_finish(node);
}

// x as [n, groups, c / groups, rest]
Value *b_group_norm(Graph *g, Value *x, Value *scale, Value *bias, const GroupNorm *o) {
    const Type t = x->type;
    if (t.rank < 2 || o->groups < 1 || !dim_is_const(t.dim[1]) || t.dim[1] % o->groups)
        return graph_fail(g, "num_groups (%lld) must divide the channels", (long long)o->groups);
    Dim each = t.dim[1] / o->groups, dims[4] = { t.dim[0], o->groups, each, type_product(g, &t, 2, t.rank) };
    x = b_reshape(g, b_cast(g, x, o->stash), 4, dims);
    Moments m = b_moments(g, x, 2, (int64_t[]){ 2, 3 }, o->epsilon);
    Value *y = b_cast(g, b_binary(g, OP_Mul, m.centred, m.rstd), t.dtype);
    scale = b_reshape(g, scale, 4, (Dim[]){ 1, o->groups, o->per_group ? 1 : each, 1 });
    bias = b_reshape(g, bias, 4, (Dim[]){ 1, o->groups, o->per_group ? 1 : each, 1 });
    return b_reshape(g, B_MAP(g, "x * y + z", "x y z", y, scale, bias), t.rank, t.dim);
}

Value *b_lp_norm(Graph *g, Value *x, int axis, int64_t p) {
    int64_t at = axis;
    Value *norm = b_reduce(g, OP_ReduceSum, b_unary(g, p == 1 ? OP_Abs : OP_Square, x), 1, &at, true);
    if (p == 2) norm = b_unary(g, OP_Sqrt, norm);
    return B_MAP(g, "y == 0 ? 0 : x / y", "x y", x, norm);
}

Value *b_mean_variance_norm(Graph *g, Value *x, int count, const int64_t *axes) {
    Value *mean = mean_of(g, x, count, axes);
    // E(x - m)^2, where E x^2 - m^2 may round below zero
    Value *centred = mean ? b_binary(g, OP_Sub, x, mean) : NULL;
    Value *variance = mean_of(g, b_unary(g, OP_Square, centred), count, axes);
    return B_MAP(g, "x / (sqrt(y) + 1e-9)", "x y", centred, variance);
}

Value *b_local_response_norm(Graph *g, Value *x, int64_t size, double alpha, double beta, double bias) {
    const Type t = x->type;
    Window w = { .rank = 2,
        .kernel = { size, 1 },
        .strides = { 1, 1 },
        .dilations = { 1, 1 },
        .pads = { (size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0 } };
    Value *square = b_reshape(
        g, b_unary(g, OP_Square, x), 4, (Dim[]){ t.dim[0], 1, t.dim[1], type_product(g, &t, 2, t.rank) });
    Value *sum = b_window_op(g, OP_WindowSum, square, &w);
    const char *text = arena_printf(g->arena, "x / pow(%.17g + y * %.17g, %.17g)", bias, alpha / (double)size, beta);
    return sum ? B_MAP(g, text, "x y", x, b_reshape(g, sum, t.rank, t.dim)) : NULL;
}
