// SPDX-License-Identifier: MIT OR Apache-2.0
// An If whose condition is a constant is replaced by the nodes of the branch it takes.
//
//   before   %1 = const bool[] {1}
//            %4: f32[2] = If(%1)  body then() { %2: f32[2] = Neg(%0) return %2 }  body else() { ... }
//   after    %2: f32[2] = Neg(%0)
//
// A body has no inputs and sees the values around it, so its nodes move as they are.
#include "passes.h"

// Moves the body's nodes before n; they and their values now belong to n's graph.
static void splice(Node *n, Graph *body) {
    Graph *g = n->graph;
    for (Node *m = body->first; m; m = m->next) {
        m->graph = g;
        for (int i = 0; i < m->n_out; i++) m->out[i]->graph = g;
        for (int i = 0; i < m->n_bodies; i++) m->bodies[i]->parent = g;
    }
    if (!body->first) return;
    body->first->prev = n->prev;
    body->last->next = n;
    if (n->prev) n->prev->next = body->first;
    else g->first = body->first;
    n->prev = body->last;
    body->first = body->last = NULL;
}

static void inline_graph(Rewrite *r, Graph *g) {
    for (Node *n = g->first, *next; n; n = next) {
        rewrite_operands(r, n);
        next = n->next;
        double condition;
        if (n->op != OP_If || !const_splat(n->in[0], &condition)) {
            for (int i = 0; i < n->n_bodies; i++) inline_graph(r, n->bodies[i]);
            continue;
        }
        Graph *body = n->bodies[condition != 0 ? 0 : 1];
        Node *before = n->prev;
        splice(n, body);
        for (int i = 0; i < n->n_out; i++) rewrite_set(r, n->out[i], body->outputs.at[i]);
        graph_remove(g, n);
        next = before ? before->next : g->first;        // the branch's own Ifs
    }
    rewrite_outputs(r, g);
}

bool pass_inline_if(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    inline_graph(&r, g);
    arena_free(r.scratch);
    return r.changed;
}
