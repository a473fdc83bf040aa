// SPDX-License-Identifier: MIT OR Apache-2.0
// What the bodies of a node to be differentiated capture becomes operands of the node, so that gradients come to it as
// to any other: of a Loop as carried values that never change (control_grad.c), of an If as values behind its
// condition, which it does not read itself (if_grad.c). And results that a loop gets besides its own.
#include "common.h"

typedef VEC(Value *) Values;

static void captures(const Graph *body, const bool *marked, int count, Arena *scratch, Values *out);

static void capture(Value *v, const bool *marked, int count, Arena *scratch, Values *out) {
    if (!v || v->id >= count || !marked[v->id]) return;
    for (int i = 0; i < out->n; i++)
        if (out->at[i] == v) return;
    VEC_PUSH(scratch, *out, v);
}

static void captures(const Graph *body, const bool *marked, int count, Arena *scratch, Values *out) {
    for (const Node *n = body->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) capture(n->in[i], marked, count, scratch, out);
        for (int i = 0; i < n->n_bodies; i++) captures(n->bodies[i], marked, count, scratch, out);
    }
    for (int i = 0; i < body->outputs.n; i++) capture(body->outputs.at[i], marked, count, scratch, out);
}

// Adds a result of the node at place `at`, with the body's output for it.
Value *loop_add_result(Node *n, int at, Value *output) {
    Graph *body = n->bodies[0];
    graph_output(body, output, NULL);
    for (int i = n->n_out; i > at; i--) {
        body->outputs.at[1 + i] = body->outputs.at[i];
        body->output_names.at[1 + i] = body->output_names.at[i];
    }
    body->outputs.at[1 + at] = output;
    body->output_names.at[1 + at] = NULL;
    return node_add_output(n, at);
}

// v, an operand of the loop from now on, as a carried value.
static void carry(Node *loop, Value *v) {
    Graph *body = loop->bodies[0];
    Value *inside = graph_input(body, v->name, v->type);
    graph_replace(body, v, inside);
    loop_add_result(loop, loop->n_in - 2, inside)->type = v->type;
}

int control_lift(Node *n, const bool *marked, int count) {
    Arena *scratch = arena_new();
    Values found = { 0 };
    int before = n->n_in;
    for (int i = 0; i < n->n_bodies; i++) captures(n->bodies[i], marked, count, scratch, &found);
    Value **in = NEW_ARRAY(n->graph->arena, Value *, n->n_in + found.n);
    for (int i = 0; i < n->n_in; i++) in[i] = n->in[i];
    for (int i = 0; i < found.n; i++) {
        if (n->op == OP_Loop) carry(n, found.at[i]);
        in[n->n_in++] = found.at[i];
    }
    n->in = in;
    arena_free(scratch);
    return n->op == OP_Loop ? n->n_in : before;
}
