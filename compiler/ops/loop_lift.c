// SPDX-License-Identifier: MIT OR Apache-2.0
// Values that a loop's body captures become carried values that never change, so that they have adjoints like any
// other (control_grad.c); and results that a loop gets besides its own.
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

void loop_lift(Node *n, const bool *marked, int count) {
    Graph *g = n->graph, *body = n->bodies[0];
    Arena *scratch = arena_new();
    Values found = { 0 };
    captures(body, marked, count, scratch, &found);
    Value **in = NEW_ARRAY(g->arena, Value *, n->n_in + found.n);
    for (int i = 0; i < n->n_in; i++) in[i] = n->in[i];
    for (int i = 0; i < found.n; i++) {
        Value *v = found.at[i], *inside = graph_input(body, v->name, v->type);
        graph_replace(body, v, inside);
        loop_add_result(n, n->n_in - 2, inside)->type = v->type;
        in[n->n_in++] = v;
    }
    n->in = in;
    arena_free(scratch);
}
