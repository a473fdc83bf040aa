// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of convolutions whose padding is of any kind: negative, or zeros between the elements.
//
// In: an input [n, c, space...] and a weight. Out: a Conv, with a Pad before it for what a Conv cannot do.
#include "build/build.h"

// conv(pad(x), w): what of the pads is not negative rides in the convolution, cropping and spreading is a Pad of its
// own.
Value *b_conv_padded(Graph *g, Value *x, Value *w, const int64_t *lo, const int64_t *hi, const int64_t *interior,
    const int64_t *strides, const int64_t *dilations, int64_t group) {
    int spatial = x ? x->type.rank - 2 : 0;
    int64_t plo[MAX_RANK] = { 0 }, phi[MAX_RANK] = { 0 }, between[MAX_RANK] = { 0 }, pads[2 * MAX_RANK];
    bool apart = false;
    for (int i = 0; i < spatial; i++) {
        plo[2 + i] = lo[i] < 0 ? lo[i] : 0;
        phi[2 + i] = hi[i] < 0 ? hi[i] : 0;
        between[2 + i] = interior[i];
        pads[i] = lo[i] > 0 ? lo[i] : 0;
        pads[spatial + i] = hi[i] > 0 ? hi[i] : 0;
        apart = apart || plo[2 + i] || phi[2 + i] || interior[i];
    }
    if (apart) x = b_pad(g, x, plo, phi, between, NULL);
    if (!x || !w) return NULL;
    Node *c = graph_node(g, OP_Conv, 2, (Value *[]){ x, w }, 1);
    node_set_ints(c, "strides", strides, spatial);
    node_set_ints(c, "dilations", dilations, spatial);
    node_set_ints(c, "pads", pads, 2 * spatial);
    node_set_int(c, "group", group);
    return b_finish(c);
}

// [g*a, b, k...] -> [g*b, a, k...] with the kernel flipped: the weight of the convolution that runs backwards.
Value *b_conv_backward_weight(Graph *g, Value *w, int64_t group) {
    if (!w) return NULL;
    int r = w->type.rank, perm[MAX_RANK];
    int64_t a = w->type.dim[0] / group, b = w->type.dim[1];
    Dim dims[MAX_RANK];
    bool flip[MAX_RANK] = { false };
    for (int i = 2; i < r; i++) flip[i] = true;
    w = b_flip(g, w, flip);
    if (!w) return NULL;
    for (int i = 2; i < r; i++) dims[i] = w->type.dim[i];
    if (group == 1) {
        for (int i = 0; i < r; i++) perm[i] = i;
        perm[0] = 1;
        perm[1] = 0;
        return b_transpose(g, w, perm);
    }
    // kernel axes as one, so that the group axis fits the largest rank
    int64_t taps = 1;
    for (int i = 2; i < r; i++) taps *= w->type.dim[i];
    w = b_reshape(g, w, 4, (Dim[]){ group, a, b, taps });
    w = b_transpose(g, w, (int[]){ 0, 2, 1, 3 });
    dims[0] = group * b;
    dims[1] = a;
    return b_reshape(g, w, r, dims);
}
