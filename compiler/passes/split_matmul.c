// SPDX-License-Identifier: MIT OR Apache-2.0
// Products of few rows and columns and many terms become a batch of products, each of a share of the terms, and their
// sum. Contract: inference only; the sums are rounded in another order.
//
//   before   %2: f32[128,768] = MatMul(%0, %1)          %0: f32[128,3072]   %1: f32[3072,768]
//   after    %3: f32[128,8,384] = Reshape(%0)
//            %4: f32[8,128,384] = Transpose(%3)         a view
//            %5: f32[8,384,768] = Reshape(%1)
//            %6: f32[8,128,768] = MatMul(%4, %5)
//            %7: f32[128,768] = ReduceSum(%6)           with what follows the product
//
// For machines that compute so many blocks of a result at a time that this one has too few.
#include "passes.h"

static Value *split(Graph *g, const Node *n, int64_t shares) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    const int64_t k = w->dim[0], columns = w->dim[1], rows = type_count(x) / k;
    Value *left = b_reshape(g, n->in[0], 3, (Dim[]){ rows, shares, k / shares });
    if (left) left = b_transpose(g, left, (int[]){ 1, 0, 2 });
    Value *right = b_reshape(g, n->in[1], 3, (Dim[]){ shares, k / shares, columns });
    Value *parts = left && right ? b_matmul(g, left, right) : NULL;
    Value *sum = parts ? b_reduce(g, OP_ReduceSum, parts, 1, (int64_t[]){ 0 }, false) : NULL;
    return sum ? b_reshape(g, sum, y->rank, y->dim) : NULL;
}

static void split_all(Rewrite *r, Graph *g, const Options *o) {
    for (Node *n = g->first; n; n = n->next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) split_all(r, n->bodies[i], o);
        const int64_t shares = n->op == OP_MatMul ? o->machine.backend->shares(n) : 1;
        if (shares == 1) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *y = split(g, n, shares);
        if (y) rewrite_set(r, n->out[0], y);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_split_matmul(Graph *g, const Options *o) {
    Rewrite r = { .scratch = arena_new() };
    split_all(&r, g, o);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
