// SPDX-License-Identifier: MIT OR Apache-2.0
// LSTM, GRU and RNN: each becomes the composite of its name, which takes ONNX's operands as they are (ops/recurrent.c).
//
// In: an OnnxNode. Out: the node's outputs; absent trailing ones exist all the same. The activations of a node that
// names none are spelled out.
#include "import/onnx/onnx.h"

#include <string.h>

// activations: of one direction, of two
typedef struct Recurrent { const char *op; Op as; int gates, n_in, n_out; const char *activations[2]; } Recurrent;
static const Recurrent recurrents[] = {
    { "RNN", OP_RNN, 1, 6, 2, { "Tanh", "Tanh Tanh" } },
    { "GRU", OP_GRU, 3, 6, 2, { "Sigmoid Tanh", "Sigmoid Tanh Sigmoid Tanh" } },
    { "LSTM", OP_LSTM, 4, 8, 3, { "Sigmoid Tanh Tanh", "Sigmoid Tanh Tanh Sigmoid Tanh Tanh" } },
};

static void floats_attr(OnnxNode *n, Node *node, const char *name) {
    const OnnxAttr *a = onnx_attr(n, name, ONNX_FLOATS);
    if (!a || !a->n) return;
    double *v = NEW_ARRAY(n->g->arena, double, a->n);
    for (int i = 0; i < a->n; i++) v[i] = (double)a->floats[i];
    node_set_floats(node, name, v, a->n);
}

static const char *activations(OnnxNode *n, const Recurrent *r, bool both) {
    const OnnxAttr *a = onnx_attr(n, "activations", ONNX_STRINGS);
    if (!a || !a->n) return r->activations[both];
    Text t;
    text_init(&t, n->g->arena);
    for (int i = 0; i < a->n; i++) text_printf(&t, "%s%s", i ? " " : "", a->strings[i]);
    return t.at;
}

static void attributes(OnnxNode *n, Node *node, const Recurrent *r) {
    static const char *const flags[] = { "layout", "input_forget", "linear_before_reset" };
    const char *direction = onnx_string(n, "direction", "forward");
    node_set_string(node, "direction", direction);
    node_set_string(node, "activations", activations(n, r, !strcmp(direction, "bidirectional")));
    floats_attr(n, node, "activation_alpha");
    floats_attr(n, node, "activation_beta");
    double clip = onnx_float(n, "clip", 0);
    if (clip > 0) node_set_float(node, "clip", clip);
    for (size_t i = 0; i < COUNT(flags); i++) {
        int64_t v = onnx_int(n, flags[i], 0);
        if (v) node_set_int(node, flags[i], v);
    }
    // of version 1: whether the first output exists, which its name says too
    onnx_int(n, "output_sequence", 0);
}

Value *onnx_recurrent(OnnxNode *n) {
    const Recurrent *r = recurrents;
    while (strcmp(r->op, n->def->op)) r++;
    if (!onnx_inputs(n, 3)) return NULL;
    if (n->n_in > r->n_in || n->n_out > r->n_out)
        return onnx_fail(n, "takes at most %d inputs and gives %d outputs", r->n_in, r->n_out);
    const Type *w = &n->in[2]->type;
    int64_t hidden = w->rank == 3 ? w->dim[2] : 0, said = onnx_int(n, "hidden_size", hidden);
    if (said != hidden)
        return onnx_fail(n, "attribute \"hidden_size\" is %lld, the recurrent weights are %s", (long long)said,
            type_text(n->g->arena, n->g, w));
    Node *node = graph_node(n->g, r->as, n->n_in, n->in, r->n_out);
    attributes(n, node, r);
    Value *v = b_finish(node);
    for (int i = 0; v && i < n->n_out; i++) n->out[i] = node->out[i];
    return v;
}
