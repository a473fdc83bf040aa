// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of control flow: a choice between two values, a loop over carried ones.
//
// In: values of the graph, and what makes a body's nodes. Out: an If or a Loop. A body is a graph of its own that may
// use the values around it.
#include "build/build.h"

Value *b_choose(Graph *g, Value *condition, Branch *yes, Branch *no, void *of) {
    Graph *branch[2] = { graph_body(g, "then"), graph_body(g, "else") };
    for (int i = 0; i < 2; i++) {
        Value *v = (i ? no : yes)(branch[i], of);
        if (!v) return NULL;
        graph_output(branch[i], v->def && v->graph == branch[i] ? v : b_unary(branch[i], OP_Identity, v), NULL);
    }
    if (!condition) return NULL;
    Node *node = graph_node(g, OP_If, 1, &condition, 1);
    node->bodies = arena_copy(g->arena, branch, sizeof branch);
    node->n_bodies = 2;
    return b_finish(node);
}

Graph *b_loop_body(Graph *g, const char *name, int carried, Value *const *from, Value **in) {
    Graph *body = graph_body(g, name);
    Type t = type_make(DT_I64, 0, NULL);
    in[0] = graph_input(body, "i", t);
    t.dtype = DT_BOOL;
    in[1] = graph_input(body, "go", t);
    for (int i = 0; i < carried; i++) in[2 + i] = from[i] ? graph_input(body, "carried", from[i]->type) : NULL;
    return body;
}

Node *b_loop(Graph *g, Graph *body, Value *trips, int carried, Value *const *from, Value *const *out) {
    Value *in[8] = { trips, NULL };
    for (int i = 0; i < carried; i++) in[2 + i] = from[i];
    for (int i = 0; i <= carried; i++) {
        if (!out[i] || (i < carried && !from[i])) return NULL;
        graph_output(body, out[i]->def ? out[i] : b_unary(body, OP_Identity, out[i]), "");
    }
    Node *loop = graph_node(g, OP_Loop, 2 + carried, in, carried);
    loop->bodies = NEW_ARRAY(g->arena, Graph *, 1);
    loop->bodies[0] = body;
    loop->n_bodies = 1;
    return node_infer(loop) ? loop : NULL;
}
