// SPDX-License-Identifier: MIT OR Apache-2.0
// The gradient of If: an If by the same condition, whose branches compute those of the model again and then the
// gradients by what these capture.
//
//   y = c ? f(v) : g(v)        dv = c ? f(v), dy * df/dv : g(v), dy * dg/dv
//
// What is captured are operands behind the condition for as long as the node is differentiated (control_lift). A branch
// that has no use for one of them gives zeros. Nothing of the branch that was not taken is computed, nothing is kept.
#include "common.h"
#include "grad/grad.h"
#include "table.h"

static Graph *backward_branch(const Node *n, const Graph *branch, Value *const *dout) {
    Graph *body = graph_body(n->graph, branch->name);
    Arena *a = body->arena;
    Value **result = NEW_ARRAY(a, Value *, n->n_out), **y = NEW_ARRAY(a, Value *, n->n_out),
          **dy = NEW_ARRAY(a, Value *, n->n_out);
    int n_y = 0;
    graph_inline(branch, body, NULL, result);
    for (int i = 0; i < n->n_out; i++) {
        if (!dout[i]) continue;
        y[n_y] = result[i];
        dy[n_y++] = dout[i];
    }
    Value *const *d = graph_pullback(body, n_y, y, dy, n->n_in - 1, n->in + 1);
    if (!d) return NULL;
    for (int i = 0; i < n->n_in - 1; i++) graph_output(body, b_unary(body, OP_Identity, d[i]), NULL);
    return body;
}

bool grad_if(Node *n, Value *const *dout, Value **din) {
    Node *back = graph_node(n->graph, OP_If, 1, n->in, n->n_in - 1);
    back->bodies = NEW_ARRAY(n->graph->arena, Graph *, 2);
    back->n_bodies = 2;
    for (int i = 0; i < 2; i++)
        if (!(back->bodies[i] = backward_branch(n, n->bodies[i], dout))) return false;
    for (int i = 1; i < n->n_in; i++) din[i] = back->out[i - 1];
    return node_infer(back);
}
