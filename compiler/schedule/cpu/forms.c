// SPDX-License-Identifier: MIT OR Apache-2.0
// Which algorithms and blocks a template allows. In: tiles and a shape. Out: whether they fit; and the forms of
// forms.def.
#include "templates.h"
#include "forms.h"

#include <string.h>

#define OF_WINOGRAD(name, f) { #name, offsetof(WinogradTiles, f), true }
#define CPU_FORM TUNE_FORM
#define GPU_FORM(name, ...)
#include "forms.def"

static bool within(int64_t v, int64_t lo, int64_t hi) { return lo <= v && v <= hi; }

// ---------------------------------------------------------------- what templates allow
bool gemm_fits(const GemmShape *s, bool n_fixed, const GemmTiles *t) {
    int64_t nr = PANEL * t->nv;
    if (!within(t->mr, 1, MAX_ROWS) || !within(t->nv, 1, MAX_VECTORS) || !within(t->pack_a, 0, 1)
        || !within(t->pack_b, 0, 2))
        return false;
    if (s->b_packed ? t->pack_b : t->pack_b != 1 && (s->bn != 1 || !n_fixed)) return false;
    if (t->pack_b == 2 && s->open_m) return false;
    return within(t->kc, 1, s->k) && within(t->nc, nr, ceil_div(s->n, nr) * nr) && t->nc % nr == 0
        && within(t->mc, t->mr, ceil_div(s->m, t->mr) * t->mr) && t->mc % t->mr == 0;
}

bool gemv_fits(const GemmShape *s, const GemvTiles *t) {
    return s->b_packed && within(t->nv, s->n <= GEMV_FEW ? 0 : 1, GEMV_VECTORS) && within(t->side, 1, GEMV_SIDE);
}

bool low_fits(int64_t rows, bool even, const LowTiles *t) {
    return within(t->mr, 1, min64(rows, MAX_ROWS)) && !(even && t->mr % 2) && within(t->nv, 1, MAX_VECTORS);
}

static bool reads_outside(const ConvShape *s, int axis) {
    return s->pad[axis] > 0
        || (s->out[axis] - 1) * s->stride[axis] + (s->kernel[axis] - 1) * s->dilation[axis] >= s->in[axis];
}

// Pixels of a tile: neighbours in a row, or some whole rows.
static bool pixels_fit(const ConvShape *s, int64_t pixels) {
    return within(pixels, 1, MAX_ROWS)
        && (pixels <= s->out[2] || (pixels % s->out[2] == 0 && pixels / s->out[2] <= s->out[1]));
}

static bool direct_in_place(const ConvLayout *l, const ConvTiles *t) {
    const ConvShape *s = &l->conv;
    bool tall = t->mr > s->out[2] || t->mf > s->out[2];
    return l->xc == 1 && !reads_outside(s, 2) && !reads_outside(s, 0)
        && !(reads_outside(s, 1) && (tall || s->kernel[0] > 1));
}

bool direct_fits(const ConvLayout *l, const ConvTiles *t) {
    const ConvShape *s = &l->conv;
    int64_t ow = s->out[2];
    if (!pixels_fit(s, t->mr) || !pixels_fit(s, t->mf) || !within(t->nv, 1, MAX_VECTORS) || !within(t->image, 0, 1))
        return false;
    if (!t->image && !direct_in_place(l, t)) return false;
    bool cut = t->cc < ow;
    return within(t->pixel, s->ic, s->ic + MAX_MARGIN) && within(t->kb, 1, s->kernel[0] * s->kernel[1])
        && within(t->rc, 1, s->out[1] + MAX_ROWS) && within(t->cc, 1, ow)
        && (!cut || (t->rc == 1 && t->mr <= ow && t->mf <= ow));
}

bool taps_fits(const ConvLayout *l, const TapTiles *t) {
    const ConvShape *s = &l->conv;
    bool shape = s->groups == 1 && s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad[0] == 0 && l->xc == 1;
    return shape && within(t->mr, 1, MAX_ROWS) && within(t->mf, 1, MAX_ROWS) && within(t->nv, 1, MAX_VECTORS)
        && within(t->rc, 1, s->out[1]) && within(t->pitch, s->ic, max64(s->ic, s->stride[2] * l->xw) + MAX_MARGIN)
        && within(t->tb, max64(t->mr, t->mf), s->out[1] * s->out[2] + MAX_ROWS);
}

bool pairs_fits(const ConvLayout *l, const PairTiles *t) {
    const ConvShape *s = &l->conv;
    bool shape = s->groups == 1 && s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad[0] == 0
        && s->oc <= PAIRS_CHANNELS;
    return shape && within(t->mr, 1, min64(MAX_ROWS, s->out[2])) && within(t->rc, 1, ceil_div(s->out[1], 2));
}

bool winograd_fits(const ConvLayout *l, const WinogradTiles *t) {
    const ConvShape *s = &l->conv;
    bool shape = s->groups == 1 && s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->ic >= WINOGRAD_CHANNELS
        && s->oc >= PANEL && l->xc == 1 && s->pad[0] == 0,
         has = false;
    for (int i = 1; i < 3; i++) shape = shape && s->stride[i] == 1 && s->dilation[i] == 1;
    WinogradTile form[9];
    for (int i = shape ? winograd_forms(s, form) : 0; i--;)
        has = has || (form[i].h == t->tile.h && form[i].w == t->tile.w);
    if (!has) return false;
    int64_t tiles = winograd_count(s, t->tile);
    return within(t->mr, 1, MAX_ROWS) && within(t->mf, 1, MAX_ROWS) && within(t->nv, 1, MAX_VECTORS)
        && within(t->tb, 1, tiles + MAX_ROWS) && within(t->vp, s->ic, s->ic + MAX_MARGIN) && t->vp % 1024;
}

bool depthwise_fits(const ConvLayout *l, const ConvDwTiles *t) {
    const ConvShape *s = &l->conv;
    int64_t ow = s->out[2], filled = ceil_div(s->groups, PANEL) * PANEL;
    if (!within(t->br, 1, MAX_ROWS) || !within(t->bf, 1, MAX_ROWS) || !within(t->image, 0, 1)
        || !within(t->cb, PANEL, filled) || t->cb % PANEL || !within(t->rc, 1, s->out[1]))
        return false;
    if (t->image) return t->cb == filled;
    bool fits = l->xc == 1 && s->groups >= PANEL && t->br <= ow && t->bf <= ow;
    for (int i = 0; i < 2; i++) {                       // no block but a row's first and last may read outside
        int64_t block = i ? t->bf : t->br, blocks = ceil_div(ow, block),
                last = ((blocks - 1) * block - 1) * s->stride[2] - s->pad[2] + (s->kernel[2] - 1) * s->dilation[2];
        fits = fits && (blocks <= 2 || (block * s->stride[2] >= s->pad[2] && last < s->in[2]));
    }
    return fits;
}
