// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions by one point become products where they have kept their channels first: those of sizes that only the
// running program knows, by weights that are no constants. Contract: the channels stay first; the same numbers.
//
//   before   %2: f32[2,8,9,9] = Conv(%0, %1)          %0: f32[2,3,9,9]   %1: f32[8,3,1,1], an input
//   after    %3: f32[8,3] = Reshape(%1)
//            %4: f32[2,3,81] = Reshape(%0)
//            %5: f32[2,8,81] = MatMul(%3, %4)
//            %6: f32[2,8,9,9] = Reshape(%5)
//
// Strides leave out points first.
#include "layout.h"

static bool is_point(const Node *n) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    if (n->in[1]->data || node_int(n, "channels_last", 0) || x->rank < 3) return false;
    if (x->dtype != w->dtype) return false;             // bytes, whose product has the signed ones on the right
    for (int i = 2; i < w->rank; i++)
        if (w->dim[i] != 1) return false;
    return node_int(n, "group", 1) == 1 && all_ints(n, "pads", 0);
}

// The points that the convolution reads.
static Value *points(Graph *g, const Node *n) {
    int count;
    const int64_t *strides = node_ints(n, "strides", &count), starts[MAX_RANK] = { 0 };
    int64_t steps[MAX_RANK];
    Type t = n->in[0]->type;
    for (int i = 0; i < t.rank; i++) {
        steps[i] = i >= 2 && count ? strides[i - 2] : 1;
        if (i >= 2) t.dim[i] = n->out[0]->type.dim[i];
    }
    return b_slice(g, n->in[0], starts, steps, t.dim);
}

static void multiply(Rewrite *r, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) multiply(r, n->bodies[i]);
        if (n->op != OP_Conv || !is_point(n)) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *x = points(g, n), *y = x ? layout_product(g, x, n->in[1], &n->out[0]->type) : NULL;
        if (y) rewrite_set(r, n->out[0], y);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_point_conv(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    multiply(&r, g);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
