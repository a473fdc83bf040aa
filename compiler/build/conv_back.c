// SPDX-License-Identifier: MIT OR Apache-2.0
// The gradient of a convolution's input. In: that of its result, and the weights. Out: [n,c,...] as the input.
//
// The idea: dx[i] sums w[k] * dy[o] over stride * o + dilation * k = i + pad. Without strides that is a convolution by
// the flipped filter. With them every pixel meets only each stride'th tap: pixels of one residue of i + pad modulo the
// strides are a convolution of their own, by the taps of that residue, and no products with zeros between dy's pixels
// are computed (3 of 4 with strides of 2). The residues' images are put between each other in the end.
#include "build/build.h"

enum { MOST_RESIDUES = 16 };    // of strides that a sum over them is worth

typedef struct Residue {
    int64_t lo[MAX_RANK], hi[MAX_RANK];                 // padding of dy
    int64_t first[MAX_RANK], after[MAX_RANK];           // pixels of dx before and after its own
    int64_t starts[MAX_RANK], steps[MAX_RANK];          // its taps among the weights, [o,c,...]
    Dim taps[MAX_RANK];
} Residue;

// Along axis i, the pixels p of dx with (p + pad) modulo the stride = r; false: no tap reaches them, or there are none.
static bool residue_axis(const ConvBack *c, int i, int64_t r, int64_t dy, int64_t kernel, Residue *one) {
    int64_t s = c->stride[i], size = c->size[i], most = size - 1 + c->pad[i] - r, from = ceil_div(c->pad[i] - r, s),
            count = most < 0 ? 0 : most / s - from + 1, taps = ceil_div(kernel - r, s);
    if (r >= kernel || count <= 0) return false;
    one->starts[2 + i] = r;
    one->steps[2 + i] = s;
    one->taps[2 + i] = taps;
    one->lo[i] = taps - 1 - from;
    one->hi[i] = count + taps - 1 - dy - one->lo[i];
    one->first[2 + i] = s * from + r - c->pad[i];
    one->after[2 + i] = size - ((count - 1) * s + 1) - one->first[2 + i];
    return true;
}

static Value *residue_image(Graph *g, const ConvBack *c, Value *dy, Value *w, const Residue *one) {
    int64_t zero[MAX_RANK] = { 0 }, ones[MAX_RANK], between[MAX_RANK] = { 0 };
    bool spread = false;
    for (int i = 0; i < c->spatial; i++) {
        ones[i] = 1;
        between[2 + i] = c->stride[i] - 1;
        spread = spread || between[2 + i];
    }
    Value *part = spread ? b_slice(g, w, one->starts, one->steps, one->taps) : w;
    Value *back = b_conv_backward_weight(g, part, c->group);
    Value *dx = b_conv_padded(g, dy, back, one->lo, one->hi, zero, ones, ones, c->group);
    return spread ? b_pad(g, dx, one->first, one->after, between, NULL) : dx;
}

// Strides and dilations at once: zeros between dy's pixels.
static Value *spread_image(Graph *g, const ConvBack *c, Value *dy, Value *w) {
    int64_t lo[MAX_RANK], hi[MAX_RANK], between[MAX_RANK], ones[MAX_RANK];
    for (int i = 0; i < c->spatial; i++) {
        int64_t reach = c->dilation[i] * (w->type.dim[2 + i] - 1);
        between[i] = c->stride[i] - 1;
        ones[i] = 1;
        lo[i] = reach - c->pad[i];
        hi[i] = c->size[i] + reach - lo[i] - ((dy->type.dim[2 + i] - 1) * c->stride[i] + 1);
    }
    return b_conv_padded(g, dy, b_conv_backward_weight(g, w, c->group), lo, hi, between, ones, c->dilation, c->group);
}

Value *b_conv_back(Graph *g, const ConvBack *c, Value *dy, Value *w) {
    int64_t residues = 1;
    bool dilated = false;
    for (int i = 0; i < c->spatial; i++) {
        residues = min64(residues * min64(c->stride[i], MOST_RESIDUES + 1), MOST_RESIDUES + 1);
        dilated = dilated || c->dilation[i] > 1;
    }
    if (dilated || residues > MOST_RESIDUES) return spread_image(g, c, dy, w);
    Value *dx = NULL;
    for (int64_t r = 0; r < residues; r++) {
        Residue one = { 0 };
        bool some = true;
        one.taps[0] = w->type.dim[0];
        one.taps[1] = w->type.dim[1];
        one.steps[0] = one.steps[1] = 1;
        int64_t left = r;
        for (int i = 0; i < c->spatial; left /= c->stride[i++])
            some = some && residue_axis(c, i, left % c->stride[i], dy->type.dim[2 + i], w->type.dim[2 + i], &one);
        if (!some) continue;
        Value *image = residue_image(g, c, dy, w, &one);
        dx = dx ? b_binary(g, OP_Add, dx, image) : image;
    }
    return dx ? dx : spread_image(g, c, dy, w);
}
