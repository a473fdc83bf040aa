// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions of images of a few channels, by weights that learn, become ones of blocks of points, each of which is a
// point of more channels. Contract: the same sums, in another order, and some products with zeros.
//
//   before   %2: f32[8,64,112,112] = Conv(%0, %1) {strides=[2,2], pads=[3,3,3,3]}    %0: f32[8,3,224,224]
//                                                                                    %1: f32[64,3,7,7], learns
//   after    %3: f32[8,115,2,115,2,3], padded, as blocks of 2 x 2: Pad, Reshape, Transpose
//            %4: f32[8,115,115,16] = Identity(Pad(Reshape(%3))) {stored=1}            12 channels, and 4 of zeros
//            %5: f32[64,16,4,4] = Pad, Reshape, Transpose of %1
//            %2: f32[8,64,112,112] = Conv(Transpose(%4), %5)
//
// The idea: three channels are no vector, and a stride takes every second point of a row, so that a product would read
// such images number by number. In blocks of as many points as the strides eight numbers lie together, nothing is
// skipped and nothing lies outside. The gradient by the weights, a product of as many terms as there are points, goes
// back through the same views.
#include "ops/common.h"
#include "passes.h"

enum { SPACE = 2, RANK = 2 + SPACE, VECTOR = 8, MOST_CHANNELS = 16 };

// stride of both axes; taps: of each axis, in blocks; blocks: that the image has; lo, hi: what is added to it
typedef struct Blocks { int64_t stride, channels, taps[SPACE], blocks[SPACE], lo[RANK], hi[RANK]; } Blocks;

static bool takes(const Node *n, Blocks *b) {
    if (n->op != OP_Conv) return false;
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    if (n->in[1]->role != ROLE_PARAM || n->in[1]->data || x->dtype != DT_F32 || x->rank != RANK)
        return false;
    if (node_int(n, "channels_last", 0) || node_int(n, "group", 1) != 1 || !all_ints(n, "dilations", 1)) return false;
    if (!type_is_static(x) || !type_is_static(w) || !type_is_static(y) || !type_count(y)) return false;
    const Geometry geo = geometry_of(n, SPACE, w->dim + 2);
    const int64_t s = geo.stride[0], channels = x->dim[1] * s * s;
    if (geo.stride[1] != s || s < 1 || x->dim[1] % VECTOR == 0 || channels > MOST_CHANNELS) return false;
    *b = (Blocks){ .stride = s, .channels = ceil_div(channels, VECTOR) * VECTOR };
    for (int i = 0; i < SPACE; i++) {
        if (geo.kernel[i] <= s) return false;           // windows do not meet: a product of patches
        b->taps[i] = ceil_div(geo.kernel[i], s);
        b->blocks[i] = y->dim[2 + i] - 1 + b->taps[i];
        b->lo[2 + i] = geo.lo[i];
        b->hi[2 + i] = b->blocks[i] * s - x->dim[2 + i] - geo.lo[i];
    }
    return true;
}

// [a, c, h * s, w * s] -> [a, h, w, channels]: the points of a block and their channels, and zeros
static Value *blocked(Graph *g, Value *x, const Blocks *b, const int64_t *count) {
    const Dim rows = x->type.dim[0], channels = x->type.dim[1], all = channels * b->stride * b->stride;
    const int64_t none[RANK] = { 0 }, more[RANK] = { 0, 0, 0, b->channels - all };
    x = b_reshape(g, x, 6, (Dim[]){ rows, channels, count[0], b->stride, count[1], b->stride });
    x = b_transpose(g, x, (int[]){ 0, 2, 4, 3, 5, 1 });
    x = b_reshape(g, x, RANK, (Dim[]){ rows, count[0], count[1], all });
    return b->channels == all ? x : b_pad(g, x, none, more, NULL, NULL);
}

static Value *channels_first(Graph *g, Value *x) { return b_transpose(g, x, (int[]){ 0, 3, 1, 2 }); }

static Value *convolution(Graph *g, const Node *n, const Blocks *b) {
    const int64_t none[RANK] = { 0 }, ones[SPACE] = { 1, 1 }, *taps = n->in[1]->type.dim + 2;
    int64_t more[RANK] = { 0 };
    for (int i = 0; i < SPACE; i++) more[2 + i] = b->taps[i] * b->stride - taps[i];
    Value *image = b_pad(g, n->in[0], b->lo, b->hi, NULL, NULL), *weights = b_pad(g, n->in[1], none, more, NULL, NULL);
    image = image ? blocked(g, image, b, b->blocks) : NULL;
    weights = weights ? blocked(g, weights, b, b->taps) : NULL;
    Value *kept = image ? b_stored(g, image) : NULL;
    if (!kept || !weights) return NULL;
    image = channels_first(g, kept);
    weights = channels_first(g, weights);
    return b_conv_padded(g, image, weights, none, none, none, ones, ones, 1);
}

static void block(Rewrite *r, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        Blocks b;
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) block(r, n->bodies[i]);
        if (!takes(n, &b)) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *y = convolution(g, n, &b);
        if (y) rewrite_set(r, n->out[0], y);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_block_conv(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    block(&r, g);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
