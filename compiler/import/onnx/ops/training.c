// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's preview domain of training: Gradient, and the steps of three optimizers.
//
// In: an OnnxNode. Out: operations of optimizers.def, and for Gradient a node of that name, whose body has the nodes
// between its xs and its y once more, from the values given for xs and zs. What is computed twice by this, the passes
// behind the differentiation merge.
#include "import/onnx/onnx.h"
#include "ops/formulas.h"

#include <string.h>

// ---------------------------------------------------------------- Gradient

// The graph from the node's inputs to y alone; NULL with a diagnostic.
static Graph *differentiated(OnnxNode *n, int count, const char *const *names, const char *y) {
    Graph *body = graph_body(n->g, "gradient");
    Value **leaf = NEW_ARRAY(n->g->arena, Value *, count + 1);
    for (int i = 0; i < count; i++) leaf[i] = graph_input(body, names[i], n->in[i]->type);
    body->loc = n->loc;
    Value *v = onnx_recompute(n, body, count, names, leaf, y);
    if (!v) return NULL;
    if (!dtype_is_float(v->type.dtype))
        return onnx_fail(n, "\"%s\" has no gradient: it is %s", y, type_text(n->g->arena, n->g, &v->type)), NULL;
    body->loc = n->loc;
    graph_output(body, b_unary(body, OP_Identity, v), y);
    return body;
}

// dy/dx for each x of xs, where y's elements count alike.
Value *onnx_gradient(OnnxNode *n) {
    Arena *a = n->g->arena;
    const OnnxAttr *xs = onnx_attr(n, "xs", ONNX_STRINGS), *zs = onnx_attr(n, "zs", ONNX_STRINGS);
    const char *y = onnx_string(n, "y", "");
    int n_x = xs ? xs->n : 0, count = n_x + (zs ? zs->n : 0), errors = diag_errors();
    if (!n_x || !*y) return onnx_fail(n, "the attributes \"xs\" and \"y\" are missing");
    if (n->n_in != count || n->n_out > n_x)
        return onnx_fail(n, "has %d inputs and %d outputs; xs and zs name %d, xs %d", n->n_in, n->n_out, count, n_x);
    if (!onnx_inputs(n, count)) return NULL;
    const char **names = NEW_ARRAY(a, const char *, count);
    for (int i = 0; i < count; i++) names[i] = i < n_x ? xs->strings[i] : zs->strings[i - n_x];
    for (int i = 0; i < n_x; i++)
        if (!dtype_is_float(n->in[i]->type.dtype))
            return onnx_fail(n, "\"%s\" has no gradient: it is %s", names[i], type_text(a, n->g, &n->in[i]->type));
    Graph *body = differentiated(n, count, names, y);
    if (!body || diag_errors() != errors) return NULL;
    Node *gradient = graph_node(n->g, OP_Gradient, count, n->in, n->n_out);
    gradient->n_bodies = 1;
    gradient->bodies = NEW(a, Graph *);
    gradient->bodies[0] = body;
    if (!b_finish(gradient)) return NULL;
    for (int i = 0; i < n->n_out; i++) n->out[i] = gradient->out[i];
    return n->out[0];
}

// ---------------------------------------------------------------- optimizer steps

// Inputs: the rate, the step's number, then the tensors p, g and state, each a list of as many; outputs the new p and
// state, lists as well. Every p's step is a node of the row's operation; attributes have the names of its
// hyper-parameters.
static Value *stepped(OnnxNode *n, const char *row_name, int n_state) {
    const OptimizerRow *row = optimizer_find(row_name);
    int groups = 2 + n_state, count = (n->n_in - 2) / groups;
    if (n->n_in < 2 + groups || (n->n_in - 2) % groups || n->n_out != count * (groups - 1))
        return onnx_fail(n, "inputs and outputs do not form groups of equal size");
    if (!onnx_inputs(n, n->n_in)) return NULL;
    Value *in[6];
    in[groups] = b_scalar_of(n->g, n->in[0]);
    in[groups + 1] = b_scalar_of(n->g, n->in[1]);
    if (!in[groups] || !in[groups + 1]) return NULL;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < groups; k++) in[k] = n->in[2 + k * count + i];
        Node *step = graph_node(n->g, row->op, groups + 2, in, groups - 1);
        const char *list = row->hyper, *name;
        double usual;
        while (row_word(n->g->arena, &list, &name, &usual))
            if (onnx_has(n, name)) node_set_float(step, name, onnx_float(n, name, usual));
        if (!b_finish(step)) return NULL;
        for (int k = 0; k < groups - 1; k++) n->out[k * count + i] = step->out[k];
    }
    return n->out[0];
}

Value *onnx_momentum(OnnxNode *n) {
    const char *mode = onnx_string(n, "mode", "standard");
    bool nesterov = !strcmp(mode, "nesterov");
    if (!nesterov && strcmp(mode, "standard")) return onnx_fail(n, "attribute \"mode\" is \"%s\"", mode);
    return stepped(n, nesterov ? "onnx_nesterov" : "onnx_momentum", 1);
}

Value *onnx_adagrad(OnnxNode *n) { return stepped(n, "onnx_adagrad", 1); }
Value *onnx_adam(OnnxNode *n) { return stepped(n, "onnx_adam", 2); }
