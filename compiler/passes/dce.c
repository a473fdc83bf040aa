// SPDX-License-Identifier: MIT OR Apache-2.0
// Removes nodes whose results nobody uses. Inputs stay, used or not: they are the model's interface.
//
//   before   %1: f32[2] = Neg(%0)
//            %2: f32[2] = Exp(%0)
//            return %1
//   after    %1: f32[2] = Neg(%0)
//            return %1
//
// One walk backwards: a node is live when a result of it is, and then so are its operands and what its bodies use.
#include "passes/passes.h"

static bool sweep(Graph *g, bool *live) {
    bool changed = false;
    for (int i = 0; i < g->outputs.n; i++) live[g->outputs.at[i]->id] = true;
    for (Node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        bool used = false;
        for (int i = 0; i < n->n_out; i++) used |= live[n->out[i]->id];
        if (!used) {
            graph_remove(g, n);
            changed = true;
            continue;
        }
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) live[n->in[i]->id] = true;
        for (int i = 0; i < n->n_bodies; i++) changed |= sweep(n->bodies[i], live);
    }
    return changed;
}

bool pass_dce(Graph *g) {
    Arena *scratch = arena_new();
    bool changed = sweep(g, NEW_ARRAY(scratch, bool, graph_root(g)->value_count));
    arena_free(scratch);
    return changed;
}
