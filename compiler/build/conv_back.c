// SPDX-License-Identifier: MIT OR Apache-2.0
// The gradient of a convolution's input, which is what a transposed convolution computes. In: that of its result, and
// the weights. Out: [n,c,...] as the input.
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
        if (!image) return NULL;
        dx = dx ? b_binary(g, OP_Add, dx, image) : image;
    }
    return dx ? dx : spread_image(g, c, dy, w);
}

// ---------------------------------------------------------------- transposed convolutions
// [g*a, b, k...] -> [g*taps*b, a, 1...], taps the product of k...: the weight that makes a pixel's tile.
static Value *tile_weight(Graph *g, Value *w, int64_t group, int64_t taps) {
    const int rank = w->type.rank;
    const int64_t a = w->type.dim[0] / group, b = w->type.dim[1];
    Dim dims[MAX_RANK] = { group * taps * b, a };
    for (int i = 2; i < rank; i++) dims[i] = 1;
    w = b_reshape(g, w, 4, (Dim[]){ group, a, b, taps });
    return b_reshape(g, b_transpose(g, w, (int[]){ 0, 3, 2, 1 }), rank, dims);
}

// Strides of the kernel's sizes: a convolution by one point, whose result is put together tile by tile. The channels of
// a tile's pixels lie together, so that with channels last whole rows of them are moved. NULL: too many axes.
static Value *tiles(Graph *g, Value *x, Value *w, int64_t group) {
    const int spatial = x->type.rank - 2, rank = 3 + 2 * spatial;
    const int64_t zero[MAX_RANK] = { 0 };
    int64_t ones[MAX_RANK], taps = 1;
    Dim apart[MAX_RANK], whole[MAX_RANK] = { x->type.dim[0], group * w->type.dim[1] };
    int perm[MAX_RANK] = { 0, 1, 2 + spatial };
    if (rank > MAX_RANK) return NULL;
    apart[0] = x->type.dim[0];
    apart[1] = group;
    apart[2 + spatial] = w->type.dim[1];
    for (int i = 0; i < spatial; i++) {
        ones[i] = 1;
        taps *= w->type.dim[2 + i];
        apart[2 + i] = w->type.dim[2 + i];
        apart[3 + spatial + i] = x->type.dim[2 + i];
        perm[3 + 2 * i] = 3 + spatial + i;
        perm[4 + 2 * i] = 2 + i;
        whole[2 + i] = dim_mul(g, x->type.dim[2 + i], w->type.dim[2 + i]);
    }
    Value *y = b_conv_padded(g, x, tile_weight(g, w, group, taps), zero, zero, zero, ones, ones, group);
    return b_reshape(g, b_transpose(g, b_reshape(g, y, rank, apart), perm), 2 + spatial, whole);
}

static bool makes_tiles(const Window *win) {
    for (int i = 0; i < win->rank; i++)
        if (win->strides[i] != win->kernel[i] || (win->dilations[i] != 1 && win->kernel[i] != 1)) return false;
    return true;
}

// Of sizes that the run chooses: x spread by the strides and padded to the full overlap, convolved with the flipped
// weight whose channels change places.
static Value *spread_transposed(
    Graph *g, Value *x, Value *w, const Window *win, const int64_t *output_padding, int64_t group) {
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 }, between[MAX_RANK] = { 0 };
    Window plain = { .rank = win->rank };
    for (int i = 0; i < win->rank; i++) {
        lo[2 + i] = window_extent(win, i) - 1 - win->pads[i];
        hi[2 + i] = window_extent(win, i) - 1 - win->pads[win->rank + i] + output_padding[i];
        between[2 + i] = win->strides[i] - 1;
        plain.kernel[i] = win->kernel[i];
        plain.strides[i] = 1;
        plain.dilations[i] = win->dilations[i];
    }
    Value *weight = b_conv_backward_weight(g, w, group);
    return weight ? b_convolve(g, b_pad(g, x, lo, hi, between, NULL), weight, &plain, group) : NULL;
}

Value *b_convolve_transposed(
    Graph *g, Value *x, Value *w, const Window *win, const int64_t *output_padding, int64_t group) {
    ConvBack c = { .spatial = win->rank, .group = group };
    int64_t before[MAX_RANK] = { 0 }, after[MAX_RANK] = { 0 };
    bool fixed = true;
    if (!x || !w) return NULL;
    if (group < 1 || w->type.dim[0] % group)
        return graph_fail(
            g, "%lld channels do not divide into %lld groups", (long long)w->type.dim[0], (long long)group);
    for (int i = 0; i < win->rank; i++) {
        const int64_t size = x->type.dim[2 + i], more = output_padding[i] - win->pads[win->rank + i];
        c.stride[i] = win->strides[i];
        c.dilation[i] = win->dilations[i];
        c.pad[i] = win->pads[i];
        before[2 + i] = -win->pads[i];
        after[2 + i] = more;
        fixed = fixed && dim_is_const(size) && size > 0;
        if (!fixed) continue;
        const __int128 whole = (__int128)(size - 1) * win->strides[i] + window_extent(win, i) - win->pads[i] + more;
        fixed = whole > 0 && whole <= INT64_MAX / 4;    // sums of a few such sizes fit
        if (fixed) c.size[i] = (int64_t)whole;
    }
    Value *y = makes_tiles(win) ? tiles(g, x, w, group) : NULL;
    if (y) return b_pad(g, y, before, after, NULL, NULL);
    return fixed ? b_conv_back(g, &c, x, w) : spread_transposed(g, x, w, win, output_padding, group);
}
