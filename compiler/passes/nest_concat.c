// SPDX-License-Identifier: MIT OR Apache-2.0
// A concatenation that begins like an earlier one takes that one as its first part. Contract: the same bits.
//
//   before   %4: f32[1,9,9,96] = Concat(%1, %2) {axis=3}
//            %7: f32[1,9,9,128] = Concat(%1, %2, %6) {axis=3}
//   after    %7: f32[1,9,9,128] = Concat(%4, %6) {axis=3}
//
// The schedule can then let %4 be the first columns of %7, so that each part is stored once (concat.c): dense blocks
// of convolutions.
#include "passes.h"

#include <string.h>

static bool begins_like(const Node *n, const Node *first) {
    return first->n_in > 1 && first->n_in < n->n_in && !memcmp(n->in, first->in, sizeof(Value *) * (size_t)first->n_in)
        && node_int(n, "axis", 0) == node_int(first, "axis", 0);
}

static bool nest(Graph *g) {
    bool changed = false;
    // the last first, while those before it still list all their parts
    for (Node *n = g->last; n; n = n->prev) {
        const Node *longest = NULL;
        for (int i = 0; i < n->n_bodies; i++) changed |= nest(n->bodies[i]);
        for (Node *first = g->first; n->op == OP_Concat && first != n; first = first->next)
            if (first->op == OP_Concat && begins_like(n, first) && (!longest || first->n_in > longest->n_in))
                longest = first;
        if (!longest) continue;
        n->n_in -= longest->n_in - 1;
        memmove(n->in + 1, n->in + longest->n_in, sizeof(Value *) * (size_t)(n->n_in - 1));
        n->in[0] = longest->out[0];
        changed = true;
    }
    return changed;
}

bool pass_nest_concat(Graph *g) { return nest(g); }
