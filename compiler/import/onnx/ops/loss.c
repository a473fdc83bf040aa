// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's losses.
//
// In: an OnnxNode. Out: what build/loss.c makes of its inputs and attributes by the row of losses.def.
#include "build/loss.h"
#include "import/onnx/onnx.h"

static Value *loss_of_classes(OnnxNode *n, const char *row, Value *x) {
    LossOptions o = { .axis = 1,
        .weight = onnx_optional(n, 2),
        .ignores = onnx_has(n, "ignore_index"),
        .ignored = onnx_int64(n, "ignore_index", 0),
        .reduction = onnx_string(n, "reduction", "mean") };
    Value *in[2] = { x, n->in[1] };
    return b_cast(n->g, b_loss(n->g, loss_find(row), in, &o), n->in[0]->type.dtype);
}

Value *onnx_nll_loss(OnnxNode *n) { return onnx_inputs(n, 2) ? loss_of_classes(n, "nll", n->in[0]) : NULL; }

// Outputs the loss and the log-probabilities.
Value *onnx_cross_entropy(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Node *node = graph_node(n->g, OP_LogSoftmax, 1, n->in, 1);
    node_set_int(node, "axis", 1);
    if (n->in[0]->type.rank < 2) return onnx_fail(n, "wants scores [N, C, ...]");
    Value *log_prob = b_finish(node);
    if (!log_prob) return NULL;
    n->out[1] = log_prob;
    return loss_of_classes(n, "nll", log_prob);
}
