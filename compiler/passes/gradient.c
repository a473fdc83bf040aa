// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradient nodes are replaced by the backward graph, Tangent nodes by what carries a direction forward. Contract:
// nothing that they differentiate holds a composite; afterwards no node is either, or there are diagnostics.
//
//   before   %1: f32[] = ...(%0)
//            %2: f32[4] = Gradient(%1, %0)
//   after    %1: f32[] = ...(%0)
//            %3 ...                      d%1/d%0, by the gradients of the operations in between, last to first
//
// A Gradient with a body differentiates the body by its inputs; it stands for a part of the graph that is computed once
// more from other values, and is put in the node's place with its backward graph.
#include "passes.h"

#include "grad/grad.h"

static void replace_graph(Rewrite *r, Graph *g);

// The gradients of the body's output by its first inputs, inlined before n; NULL with diagnostics.
static Value *const *of_body(Rewrite *r, Node *n) {
    Graph *body = n->bodies[0];
    replace_graph(r, body);
    Value *y = body->outputs.at[0], *one = b_full(body, &y->type, 1);
    Value *const *d = one ? graph_pullback(body, 1, &y, &one, n->n_out, body->inputs.at) : NULL;
    if (!d) return NULL;
    body->outputs.n = body->output_names.n = 0;
    for (int i = 0; i < n->n_out; i++) graph_output(body, d[i], NULL);
    Value **out = NEW_ARRAY(n->graph->arena, Value *, n->n_out);
    graph_inline(body, n->graph, n->in, out);
    return out;
}

static Value *const *derivatives(Rewrite *r, Node *n) {
    int moved = (n->n_in - n->n_out) / 2;
    Value **in = n->in;
    if (n->op == OP_Tangent)
        return graph_tangent(n->graph, n->n_out, in, moved, in + n->n_out, in + n->n_out + moved);
    return n->n_bodies ? of_body(r, n) : graph_gradient(n->graph, in[0], n->n_out, in + 1);
}

static void replace_graph(Rewrite *r, Graph *g) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_operands(r, n);
        if (n->op != OP_Gradient && n->op != OP_Tangent) {
            for (int i = 0; i < n->n_bodies; i++) replace_graph(r, n->bodies[i]);
            continue;
        }
        g->cursor = n;
        g->loc = n->loc;
        Value *const *d = derivatives(r, n);
        g->cursor = NULL;
        if (!d) continue;
        for (int i = 0; i < n->n_out; i++) rewrite_set(r, n->out[i], d[i]);
        graph_remove(g, n);
    }
    rewrite_outputs(r, g);
}

bool pass_gradient(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    replace_graph(&r, g);
    arena_free(r.scratch);
    return r.changed;
}
