// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions of images of a few points, by weights that learn, become products by all their windows. Contract: the
// same sums, in another order.
//
//   before   %2: f32[8,512,2,2] = Conv(%0, %1) {pads=[1,1,1,1]}     %0: f32[8,512,2,2]   %1: f32[512,512,3,3], learns
//   after    %3 .. %6: f32[32,4608], the window of each point: Transpose, Pad, Gather, Transpose, Reshape
//            %7: f32[4608,512] = Transpose(Reshape(%1))
//            %8: f32[32,512] = MatMul(%6, %7)
//            %9: f32[8,512,2,2] = Reshape(Transpose(Reshape(%8)))
//
// The idea: a kernel for convolutions goes along an image's rows, and where those are short its tiles are small and the
// weights are read again for each. The points of all images together are rows enough for the tiles of a product, which
// reads the weights once, as they lie; so do the gradients, which are products too. The windows are copies, so there
// must be fewer of them than there are filters.
#include "ops/common.h"
#include "passes.h"

enum {
    MOST_ACROSS = 4,                                    // points of a row: a tile of as many rows leaves units idle
    LEAST_DEPTH = 128, LEAST_FILTERS = 32               // of the product, for copies to be little of its time
};

typedef struct Windows { int space; int64_t points, taps, from, to; } Windows;    // from, to: points of the image

static bool all_static(const Type *t) {
    for (int i = 0; i < t->rank; i++)
        if (!dim_is_const(t->dim[i])) return false;
    return true;
}

static bool takes(const Node *n, Windows *w) {
    const Type *x = &n->in[0]->type, *f = &n->in[1]->type, *y = &n->out[0]->type;
    if (n->in[1]->role != ROLE_PARAM || n->in[1]->data || x->dtype != DT_F32 || x->rank < 3) return false;
    if (node_int(n, "channels_last", 0) || node_int(n, "group", 1) != 1) return false;
    if (!all_static(x) || !all_static(f) || !all_static(y)) return false;
    *w = (Windows){ .space = x->rank - 2, .points = 1, .taps = 1, .from = 1 };
    for (int i = 2; i < x->rank; i++) {
        if (y->dim[i] > MOST_ACROSS) return false;
        w->points *= y->dim[i];
        w->taps *= f->dim[i];
        w->from *= x->dim[i];
    }
    return w->taps > 1 && f->dim[0] >= LEAST_FILTERS && f->dim[1] * w->taps >= LEAST_DEPTH
        && x->dim[0] * w->points <= f->dim[0];
}

// For each point and tap the point of the image that it reads, row by row; behind the last: none, it lies in the pads.
static Value *places(Graph *g, const Node *n, const Windows *w) {
    const Type *x = &n->in[0]->type, *f = &n->in[1]->type, *y = &n->out[0]->type;
    int count;
    const int64_t *pads = node_ints(n, "pads", &count), *strides = node_ints(n, "strides", &count),
                  *dilations = node_ints(n, "dilations", &count);
    Arena *scratch = arena_new();
    int64_t *at = NEW_ARRAY(scratch, int64_t, w->points * w->taps);
    for (int64_t i = 0; i < w->points * w->taps; i++) {
        int64_t point = i / w->taps, tap = i % w->taps, from = 0, size = 1;
        bool inside = true;
        for (int axis = w->space - 1; axis >= 0; axis--) {
            const int64_t p = point % y->dim[2 + axis] * (strides ? strides[axis] : 1) - (pads ? pads[axis] : 0)
                + tap % f->dim[2 + axis] * (dilations ? dilations[axis] : 1);
            point /= y->dim[2 + axis];
            tap /= f->dim[2 + axis];
            inside = inside && p >= 0 && p < x->dim[2 + axis];
            from += p * size;
            size *= x->dim[2 + axis];
        }
        at[i] = inside ? from : w->from;
    }
    Value *v = b_ints(g, (int)(w->points * w->taps), at);
    arena_free(scratch);
    return v;
}

// [images * points, channels * taps]
static Value *windows(Graph *g, const Node *n, const Windows *w) {
    const Dim images = n->in[0]->type.dim[0], channels = n->in[0]->type.dim[1];
    const int64_t none[3] = { 0 }, one[3] = { 1, 0, 0 };
    Value *x = b_reshape(g, n->in[0], 3, (Dim[]){ images, channels, w->from });
    x = b_pad(g, b_transpose(g, x, (int[]){ 2, 0, 1 }), none, one, NULL, NULL);
    x = b_gather(g, x, places(g, n, w), 0);
    x = b_reshape(g, x, 4, (Dim[]){ w->points, w->taps, images, channels });
    x = b_transpose(g, x, (int[]){ 2, 0, 3, 1 });
    return b_stored(g, b_reshape(g, x, 2, (Dim[]){ images * w->points, channels * w->taps }));
}

static Value *product(Graph *g, const Node *n, const Windows *w) {
    const Type *f = &n->in[1]->type, *y = &n->out[0]->type;
    Value *filters = b_reshape(g, n->in[1], 2, (Dim[]){ f->dim[0], f->dim[1] * w->taps });
    filters = b_swap(g, filters, 0, 1);
    Value *v = b_matmul(g, windows(g, n, w), filters);
    v = b_swap(g, b_reshape(g, v, 3, (Dim[]){ y->dim[0], w->points, y->dim[1] }), 1, 2);
    return b_reshape(g, v, y->rank, y->dim);
}

static void unfold(Rewrite *r, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        Windows w;
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) unfold(r, n->bodies[i]);
        if (n->op != OP_Conv || !takes(n, &w)) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *y = product(g, n, &w);
        if (y) rewrite_set(r, n->out[0], y);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_unfold_conv(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    unfold(&r, g);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
