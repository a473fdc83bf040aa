// SPDX-License-Identifier: MIT OR Apache-2.0
// A product with weights of few bits reads an image whose channels lie last as it lies. The rows of plain weights are
// turned once instead (layout.c); those of blocks stay where their scales are. Contract: the same bits.
//
//   before   %2: f32[1,16,7,7] = Transpose(%1)           %1: f32[1,7,7,16]
//            %3: f32[1,784] = Reshape(%2)
//            %4: f32[1,10] = MatMulBits(%3, %w, %s)
//   after    %3': f32[1,784] = Reshape(%1)               a view
//            %4: f32[1,10] = MatMulBits(%3', %w, %s) {run=49}
#include "passes.h"

// x [n, p..., c] when v is [n, c * p...], made of x by bringing its last axis behind the first.
static Value *unturned(const Value *v, int64_t *run) {
    const Node *flat = v->def, *turn = flat && flat->op == OP_Reshape ? flat->in[0]->def : NULL;
    if (!turn || turn->op != OP_Transpose || v->type.rank != 2) return NULL;
    Value *x = turn->in[0];
    int rank;
    const int64_t *perm = node_ints(turn, "perm", &rank);
    if (rank < 3 || !type_is_static(&x->type) || v->type.dim[0] != x->type.dim[0]) return NULL;
    *run = 1;
    for (int i = 0; i < rank; i++) {
        if (perm[i] != (i == 0 ? 0 : i == 1 ? rank - 1 : i - 1)) return NULL;
        if (i > 0 && i < rank - 1) *run *= x->type.dim[i];
    }
    return x;
}

bool pass_turned_bits(Graph *g) {
    bool changed = false;
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_bodies; i++) changed |= pass_turned_bits(n->bodies[i]);
        // as window_blocks.c has them
        if (n->op != OP_MatMulBits || n->n_in > 3 || node_int(n, "bits", 4) < 4 || node_int(n, "run", 0)) continue;
        int64_t run;
        Value *x = unturned(n->in[0], &run);
        if (!x) continue;
        g->cursor = n;
        g->loc = n->loc;
        n->in[0] = b_reshape(g, x, 2, n->in[0]->type.dim);
        node_set_int(n, "run", run);
        changed = true;
    }
    g->cursor = NULL;
    return changed && pass_dce(g);
}
