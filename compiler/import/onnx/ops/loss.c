// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's losses.
//
// In: an OnnxNode. Out: gathers, maps and reductions. Formula: loss[i] = -w[t[i]] * x[i, t[i]], where x holds
// log-probabilities with classes on axis 1; targets equal to ignore_index weigh 0; the mean divides by the sum of the
// weights.
#include "import/onnx/onnx.h"

#include <string.h>

static Value *sum_all(OnnxNode *n, Value *v) {
    int64_t axes[MAX_RANK];
    if (!v) return NULL;
    for (int i = 0; i < v->type.rank; i++) axes[i] = i;
    return b_reduce(n->g, OP_ReduceSum, v, v->type.rank, axes, false);
}

// The weight of each target, shaped as the targets; NULL and ok when all are 1.
static bool target_weights(OnnxNode *n, Value *target, Value *weight, DType d, Value **out) {
    *out = NULL;
    if (weight) *out = b_gather(n->g, weight, target, 0);
    else if (onnx_has(n, "ignore_index")) *out = b_filled(n->g, d, 1, target->type.rank, target->type.dim);
    else return true;
    return *out != NULL;
}

static Value *nll(OnnxNode *n, Value *x, Value *target, Value *weight) {
    const char *how = onnx_string(n, "reduction", "mean");
    if (x->type.rank < 2 || target->type.rank != x->type.rank - 1)
        return onnx_fail(n, "wants scores [N, C, ...] and targets [N, ...]");
    target = b_cast(n->g, target, DT_I64);
    Value *ignored = NULL, *w;
    if (onnx_has(n, "ignore_index")) {
        Value *index = b_scalar(n->g, DT_I64, (double)onnx_int(n, "ignore_index", 0));
        ignored = b_binary(n->g, OP_Equal, target, index);
        target = b_where(n->g, ignored, b_like(n->g, target, 0), target);
    }
    Value *picked = b_remove(n->g, b_gather_elements(n->g, x, b_insert(n->g, target, 1), 1), 1);
    if (!picked || !target_weights(n, target, weight, x->type.dtype, &w)) return NULL;
    if (ignored) w = b_where(n->g, ignored, b_like(n->g, w, 0), w);
    Value *loss = w ? B_MAP(n->g, "0 - x * y", "x y", picked, w) : b_unary(n->g, OP_Neg, picked);
    if (!strcmp(how, "none")) return loss;
    Value *sum = sum_all(n, loss);
    if (!strcmp(how, "sum") || !sum) return sum;
    if (strcmp(how, "mean")) return onnx_fail(n, "attribute \"reduction\" is \"%s\"", how);
    if (w) return b_binary(n->g, OP_Div, sum, sum_all(n, w));
    if (type_is_static(&loss->type))
        return b_binary(n->g, OP_Div, sum, b_like(n->g, sum, (double)type_count(&loss->type)));
    return b_binary(n->g, OP_Div, sum, sum_all(n, b_filled(n->g, x->type.dtype, 1, loss->type.rank, loss->type.dim)));
}

Value *onnx_nll_loss(OnnxNode *n) {
    return onnx_inputs(n, 2) ? nll(n, n->in[0], n->in[1], onnx_optional(n, 2)) : NULL;
}

// Outputs the loss and the log-probabilities.
Value *onnx_cross_entropy(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Node *node = graph_node(n->g, OP_LogSoftmax, 1, n->in, 1);
    node_set_int(node, "axis", 1);
    if (n->in[0]->type.rank < 2) return onnx_fail(n, "wants scores [N, C, ...]");
    Value *log_prob = b_finish(node);
    if (!log_prob) return NULL;
    n->out[1] = log_prob;
    return nll(n, log_prob, n->in[1], onnx_optional(n, 2));
}
