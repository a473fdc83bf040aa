// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's normalisations.
//
// In: an OnnxNode. Out: what build/norm.c makes of its inputs and attributes.
#include "import/onnx/onnx.h"

#include <string.h>

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

// The running statistics are not trained, though exporters may have merged them with a scale or shift that is.
static void keep_statistics(OnnxNode *n) {
    for (int i = 3; i < 5; i++)
        if (n->in[i]->trainable) n->in[i] = graph_const_again(n->g, n->in[i]);
}

// Of a node in training mode: y by the batch's statistics, the running ones times momentum plus (1 - momentum) times
// the batch's and, before version 14, those.
static Value *batch_norm_training(OnnxNode *n, Value *x, double epsilon, double momentum) {
    Value *now[2], *y = b_batch_norm_training(n->g, x, n->in + 1, epsilon, now);
    const char *text = arena_printf(n->g->arena, "x * %.17g + y * %.17g", momentum, 1 - momentum);
    for (int i = 0; i < 2 && y; i++) {
        Value *past = n->in[3 + i];
        n->out[1 + i] = B_MAP(n->g, text, "x y", past, b_cast(n->g, now[i], past->type.dtype));
        n->out[3 + i] = b_cast(n->g, now[i], x->type.dtype);
    }
    return y;
}

// --train turns BatchNorm to the batch's statistics by itself, where it has the running ones to keep.
static bool trained_later(const OnnxNode *n) {
    bool asked = false;
    for (int i = 1; i < n->n_out; i++) asked = asked || n->asked[i];
    return onnx_trains_norms(n) && !asked;
}

Value *onnx_batch_norm(OnnxNode *n) {
    if (!onnx_inputs(n, 5)) return NULL;
    Value *x = n->in[0];
    double epsilon = onnx_float(n, "epsilon", 1e-5), momentum = onnx_float(n, "momentum", 0.9);
    if (x->type.rank < 2) return onnx_fail(n, "the input must have at least 2 dimensions");
    bool each = n->opset < 9 && !onnx_int(n, "spatial", 1), now = is_training(n) && !trained_later(n);
    // of a BatchNorm everybody knows which operands they are
    if (each || now) keep_statistics(n);
    if (each) return batch_norm_each(n, x, epsilon);
    return now ? batch_norm_training(n, x, epsilon, momentum) : b_batch_norm(n->g, x, n->in + 1, epsilon, momentum);
}

// Outputs y, mean and 1 / sqrt(var + epsilon). stash_type says what the statistics are computed in.
Value *onnx_layer_norm(OnnxNode *n) {
    int axis;
    DType stash;
    if (!onnx_inputs(n, 2) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)
        || !onnx_dtype(n, "stash_type", DT_F32, &stash))
        return NULL;
    Value *x = n->in[0], *scale = n->in[1], *bias = onnx_optional(n, 2);
    double epsilon = onnx_float(n, "epsilon", 1e-5);
    bool statistics = (n->n_out > 1 && n->asked[1]) || (n->n_out > 2 && n->asked[2]);
    if (!statistics && (x->type.dtype == stash || dtype_is_small_float(x->type.dtype)))
        return b_layer_norm(n->g, x, scale, bias, axis, epsilon);
    Moments m;
    Value *y = b_layer_norm_in(n->g, x, scale, bias, axis, epsilon, stash, &m);
    n->out[1] = m.mean;
    n->out[2] = m.rstd;
    return y;
}

Value *onnx_rms_norm(OnnxNode *n) {
    int axis;
    DType stash;
    if (!onnx_inputs(n, 2) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)
        || !onnx_dtype(n, "stash_type", DT_F32, &stash))
        return NULL;
    Value *x = n->in[0], *scale = n->in[1];
    double epsilon = onnx_float(n, "epsilon", 1e-5);
    bool plain = scale->type.dtype == x->type.dtype && (x->type.dtype == stash || dtype_is_small_float(x->type.dtype));
    return plain ? b_rms_norm(n->g, x, scale, axis, epsilon) : b_rms_norm_in(n->g, x, scale, axis, epsilon, stash);
}

Value *onnx_instance_norm(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    return b_instance_norm(n->g, n->in[0], n->in[1], n->in[2], onnx_float(n, "epsilon", 1e-5));
}

// Over groups of channels and space. Scale and bias per channel, before opset 21 per group.
Value *onnx_group_norm(OnnxNode *n) {
    DType stash = DT_F32;
    if (!onnx_inputs(n, 3)) return NULL;
    Value *x = n->in[0];
    GroupNorm o = { .groups = onnx_int(n, "num_groups", 0) };
    if (n->opset >= 21 && !onnx_dtype(n, "stash_type", DT_F32, &stash)) return NULL;
    o.stash = n->opset >= 21 ? stash : x->type.dtype;
    o.epsilon = onnx_float(n, "epsilon", 1e-5);
    o.per_group = n->opset < 21 && n->in[1]->type.rank == 1 && n->in[1]->type.dim[0] == o.groups;
    return b_group_norm(n->g, x, n->in[1], n->in[2], &o);
}

Value *onnx_lp_norm(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 1) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)) return NULL;
    int64_t p = onnx_int(n, "p", 2);
    if (p != 1 && p != 2) return onnx_fail(n, "attribute \"p\" is %lld; 1 and 2 are known", (long long)p);
    return b_lp_norm(n->g, n->in[0], axis, p);
}

Value *onnx_mean_variance_norm(OnnxNode *n) {
    static const int64_t usual[] = { 0, 2, 3 };
    int64_t axes[MAX_RANK];
    int count;
    bool given;
    if (!onnx_inputs(n, 1) || !onnx_axes(n, 99, n->in[0]->type.rank, axes, &count, &given)) return NULL;
    if (!given) {
        memcpy(axes, usual, sizeof usual);
        count = 3;
    }
    if (!given && n->in[0]->type.rank < 4) return onnx_fail(n, "the default axes want 4 dimensions");
    return b_mean_variance_norm(n->g, n->in[0], count, axes);
}

Value *onnx_lrn(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    const Type t = x->type;
    int64_t size = onnx_int(n, "size", 0);
    if (t.rank < 2 || size < 1 || size > 1 << 20)
        return onnx_fail(n, "wants at least 2 dimensions and a positive size");
    double alpha = onnx_float(n, "alpha", 1e-4), beta = onnx_float(n, "beta", 0.75), bias = onnx_float(n, "bias", 1);
    return b_local_response_norm(n->g, x, size, alpha, beta, bias);
}
