// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a convolution and what is known of the machine. Out: the block sizes of conv_taps.c, and
 * whether it is to be preferred.
 *
 * Half-cycles, as in tiles_conv.c: each tap's rectangle in whole tiles and tiles of four for the rest, each tile's
 * sums added in memory, and the copies of pixels. Beside it stands conv.c's, of which the rows of taps in the
 * padding and the copies for its padded image are counted, too. */
#include "tiles_cost.h"

/* rows of the smaller tile; half-cycles to copy 16 floats; taps that are looked at one by one */
enum { FEW = 4, COPY = 4, MOST_TAPS = 1 << 12 };

static int64_t first_inside(int64_t offset, int64_t stride, int64_t end)
{
    return offset < 0 ? tile_min((stride - 1 - offset) / stride, end) : 0;
}

/* Outputs along an axis whose tap k lies in the input. */
static int64_t inside(const ConvShape *s, int axis, int64_t k)
{
    const int64_t offset = k * s->dilation[axis] - s->pad[axis], end = s->out[axis];
    return tile_max(
        first_inside(offset - s->in[axis], s->stride[axis], end) - first_inside(offset, s->stride[axis], end), 0);
}

/* Are the pixels of rectangles of whole rows read where they lie? */
static bool lies_dense(const ConvLayout *l)
{
    const int64_t beside = l->conv.stride[2] * l->xw;
    return beside % 1024 && l->conv.stride[1] * l->xh == l->conv.out[2] * beside;
}

/* One image, by tiles of r pixels and v vectors. */
static int64_t taps_work(const void *shape, const TileMachine *t, int64_t r, int64_t v)
{
    const ConvLayout *l = shape;
    const ConvShape *s = &l->conv;
    const int64_t few = tile_min(r, FEW), blocks = tile_ceil(s->oc, PANEL * v), panels = blocks * (PANEL / t->lanes),
                  add = 3 * v;
    if (l->parts > 1 && v > 1 && blocks % l->parts) /* threads that wait for the last panels */
        return TILE_NONE;
    if (s->kernel[1] > MOST_TAPS / s->kernel[2])
        return TILE_NONE;
    int64_t cost = panels * s->out[1] * s->out[2] * add;
    for (int64_t h = 0; h < s->kernel[1]; h++)
        for (int64_t w = 0; w < s->kernel[2]; w++) {
            const int64_t wide = inside(s, 2, w), pixels = inside(s, 1, h) * wide;
            cost += panels
                * (pixels / r * tile_cost(t, r, v, s->ic) + tile_ceil(pixels % r, few) * tile_cost(t, few, v, s->ic)
                    + pixels * add);
            cost += lies_dense(l) && wide == s->out[2] ? 0 : pixels * tile_ceil(s->ic, 16) * COPY;
        }
    return cost;
}

/* conv.c's cost of a tile's every step, less the rows of taps that it leaves out, and its padded images. */
static int64_t whole_cost(const ConvLayout *shape, const TileTarget *target)
{
    const ConvShape *s = &shape->conv;
    const ConvTiles t = conv_tiles(shape, target);
    int64_t rows = 0, cost = t.cost;
    for (int64_t h = 0; h < s->kernel[1]; h++)
        rows += inside(s, 1, h);
    if (t.mr <= s->out[2] && t.mf <= s->out[2])
        cost = (int64_t)((double)cost * (double)rows / (double)(s->out[1] * s->kernel[1]));
    const int64_t copied = tile_ceil(s->out[1], t.rc) * tile_span(s, 1, tile_min(t.rc, s->out[1]))
        * tile_span(s, 2, s->out[2]);
    return cost + (t.image ? copied * tile_ceil(s->ic, 16) * COPY : 0);
}

TapTiles conv_taps_tiles(const ConvLayout *shape, const TileTarget *target)
{
    const ConvShape *s = &shape->conv;
    const int64_t l2 = target->l2 ? (int64_t)target->l2 : 512 << 10;
    const TileChoice tile = tile_choose(target, taps_work, shape);
    TapTiles t = {.mr = tile.many, .mf = tile.few, .nv = tile.nv, .cost = tile.cost,
        .pitch = lies_dense(shape) ? s->stride[2] * shape->xw : s->ic % 1024 ? s->ic : s->ic + PANEL};
    const int64_t most = tile_max(t.mr, t.mf), room = tile_max(l2 / 2 / 4 / t.pitch, most);
    t.rc = tile_max(1, tile_min(s->out[1], l2 / 2 / 4 / (s->out[2] * tile_ceil(s->oc, PANEL * t.nv) * PANEL * t.nv)));
    t.tb = tile_ceil(t.rc * s->out[2], tile_ceil(t.rc * s->out[2], room));
    t.tb = tile_ceil(t.tb, most) * most;
    t.preferred = s->groups == 1 && s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && shape->xc == 1
        && s->kernel[1] * s->kernel[2] > 1 && s->ic >= PANEL && t.cost != TILE_NONE
        && t.cost * 10 < whole_cost(shape, target) * 9;
    return t;
}

size_t conv_taps_scratch_bytes(const ConvLayout *shape, const TapTiles *t)
{
    const ConvShape *s = &shape->conv;
    const int64_t panel = PANEL * t->nv, sums = t->rc * s->out[2] * tile_ceil(s->oc, panel) * panel;
    return (size_t)(4 * (tile_max(t->mr, t->mf) * panel + (t->tb + FEW) * t->pitch + sums));
}
