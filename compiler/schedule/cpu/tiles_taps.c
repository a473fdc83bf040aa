// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a convolution and what is known of the machine. Out: the block sizes of conv_taps.c, and
 * whether it is to be preferred.
 *
 * Half-cycles, as in tiles_conv.c: each tap's rectangle in whole tiles and tiles of four for the rest, each tile's
 * sums added in memory, and the copies of pixels. Beside it stands conv.c's, of which the rows of taps in the
 * padding and the copies for its padded image are counted, too. */
#include "tiles_cost.h"

enum { FEW = 4, COPY = 4 }; /* rows of the smaller tile; half-cycles to copy 16 floats */

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

/* Half-cycles of one image, by tiles of r pixels and v vectors. */
static int64_t taps_cost(const ConvShape *s, bool in_place, int64_t r, int64_t v, int64_t lanes)
{
    const int64_t few = tile_min(r, FEW), panels = tile_ceil(s->oc, PANEL * v) * (PANEL / lanes), add = 3 * v;
    int64_t cost = panels * s->out[1] * s->out[2] * add;
    for (int64_t h = 0; h < s->kernel[1]; h++)
        for (int64_t w = 0; w < s->kernel[2]; w++) {
            const int64_t wide = inside(s, 2, w), pixels = inside(s, 1, h) * wide;
            cost += panels
                * (pixels / r * tile_cost(r, v, s->ic) + tile_ceil(pixels % r, few) * tile_cost(few, v, s->ic)
                    + pixels * add);
            cost += in_place && wide == s->out[2] ? 0 : pixels * tile_ceil(s->ic, 16) * COPY;
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
    const int64_t high = (s->kernel[1] - 1) * s->dilation[1] + 1,
                  wide = (s->out[2] - 1) * s->stride[2] + (s->kernel[2] - 1) * s->dilation[2] + 1;
    const int64_t copied = tile_ceil(s->out[1], t.rc) * ((tile_min(t.rc, s->out[1]) - 1) * s->stride[1] + high) * wide;
    return cost + (t.image ? copied * tile_ceil(s->ic, 16) * COPY : 0);
}

TapTiles conv_taps_tiles(const ConvLayout *shape, const TileTarget *target)
{
    const ConvShape *s = &shape->conv;
    const int64_t l2 = target->l2 ? (int64_t)target->l2 : 512 << 10, beside = s->stride[2] * shape->xw,
                  pixels = s->out[1] * s->out[2];
    const bool in_place = beside % 1024 && s->stride[1] * shape->xh == s->out[2] * beside;
    TapTiles t = {.pitch = in_place ? beside : s->ic % 1024 ? s->ic : s->ic + PANEL, .cost = INT64_MAX};
    for (int v = 1; v <= 4; v++) {
        const int64_t many = tile_ceil(pixels, tile_ceil(pixels, tile_rows(v, 32))),
                      few = tile_ceil(pixels, tile_ceil(pixels, tile_rows(v, 16)));
        const int64_t cost = target->lanes == 0 ?
            (2 * taps_cost(s, in_place, many, v, 16) + taps_cost(s, in_place, few, v, 8)) / 3 :
            target->vector_registers >= 32 ? taps_cost(s, in_place, many, v, target->lanes) :
                                             taps_cost(s, in_place, few, v, target->lanes);
        const bool idle = shape->parts > 1 && v > 1
            && tile_ceil(s->oc, PANEL * v) % shape->parts; /* threads that wait for the last panels */
        if (cost < t.cost && !idle) {
            t.cost = cost;
            t.mr = (int)many;
            t.mf = (int)few;
            t.nv = v;
        }
    }
    const int64_t most = tile_max(t.mr, t.mf), room = tile_max(l2 / 2 / 4 / t.pitch, most);
    t.rc = tile_max(1, tile_min(s->out[1], l2 / 2 / 4 / (s->out[2] * tile_ceil(s->oc, PANEL * t.nv) * PANEL * t.nv)));
    t.tb = tile_ceil(t.rc * s->out[2], tile_ceil(t.rc * s->out[2], room));
    t.tb = tile_ceil(t.tb, most) * most;
    t.preferred = s->groups == 1 && s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && shape->xc == 1
        && s->kernel[1] * s->kernel[2] > 1 && s->ic >= PANEL && t.cost * 10 < whole_cost(shape, target) * 9;
    return t;
}

size_t conv_taps_scratch_bytes(const ConvLayout *shape, const TapTiles *t)
{
    const ConvShape *s = &shape->conv;
    const int64_t panel = PANEL * t->nv, sums = t->rc * s->out[2] * tile_ceil(s->oc, panel) * panel;
    return (size_t)(4 * (tile_max(t->mr, t->mf) * panel + (t->tb + FEW) * t->pitch + sums));
}
