// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a depthwise convolution with the channels first. Out: the blocks of conv_planes.c.
 *
 * A tile is as many rows as its sums, the weights and one vector of the image fit in registers: each element
 * loaded then serves all rows that it is in. An image is as many rows as half of L1 holds; the other half is for
 * what is read and written. */
#include "tiles_cost.h"

/* Rows of at most `most`, an even share of the map; where an element serves several rows, no more than the
 * template writes out: 16 rows of the image. */
static int64_t rows_of(const ConvShape *s, int64_t most)
{
    const int64_t window = (s->kernel[1] - 1) * s->dilation[1];
    if (s->kernel[1] * s->kernel[2] <= 25 && window < 16)
        most = tile_min(most, (15 - window) / s->stride[1] + 1);
    return tile_ceil(s->out[1], tile_ceil(s->out[1], most));
}

static int64_t image_floats(const ConvShape *s, int64_t rows)
{
    const int64_t phase = tile_max(s->out[2], PANEL) + (s->kernel[2] - 1) * s->dilation[2] / s->stride[2],
                  high = (rows - 1) * s->stride[1] + (s->kernel[1] - 1) * s->dilation[1] + 1;
    return s->kernel[0] * high * s->stride[2] * (tile_ceil(phase, PANEL) * PANEL);
}

ConvPlanesTiles conv_planes_tiles(const ConvShape *s, const TileTarget *target)
{
    const int64_t l1 = target->l1 ? (int64_t)target->l1 : 32 << 10, taps = s->kernel[1] * s->kernel[2], oh = s->out[1];
    const int64_t many = rows_of(s, 8), few = rows_of(s, taps <= 9 ? 4 : 8);
    ConvPlanesTiles t = {.br = (int)many, .bf = (int)few, .rc = many};
    while (t.rc < oh && image_floats(s, t.rc + many) * 4 <= l1 / 2)
        t.rc += many;
    t.rc = tile_ceil(tile_ceil(oh, tile_ceil(oh, t.rc)), many) * many;
    return t;
}

/* Images are whole tiles high, on either kind of machine. */
size_t conv_planes_scratch_bytes(const ConvShape *s, const ConvPlanesTiles *t)
{
    const int64_t many = tile_ceil(t->rc, t->br) * t->br, few = tile_ceil(t->rc, t->bf) * t->bf;
    return (size_t)(4
        * (tile_ceil(tile_max(t->br, t->bf) * s->out[2] + PANEL, PANEL) * PANEL
            + image_floats(s, tile_max(many, few))));
}
