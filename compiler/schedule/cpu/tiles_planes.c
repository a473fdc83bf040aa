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
                  high = tile_span(s, 1, rows);
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

/* Where whole vectors fit a row, and what they read beside it is less than a vector: DIRECT in conv_planes.c. */
int conv_planes_direct(const ConvLayout *l)
{
    const ConvShape *s = &l->conv;
    const int64_t window = (s->kernel[1] - 1) * s->dilation[1], wide = (s->kernel[2] - 1) * s->dilation[2];
    return s->stride[2] == 1 && s->out[2] >= PANEL && s->in[2] >= PANEL && s->pad[2] < PANEL
        && s->out[2] - s->pad[2] + wide - s->in[2] < PANEL && s->kernel[1] * s->kernel[2] <= 25 && window < 16
        && (s->n == 1 || l->xn >= s->groups * l->xc) && l->xd >= 0 && l->xh >= 0 && l->xc >= 0;
}

/* Images are whole tiles high, on either kind of machine. */
size_t conv_planes_scratch_bytes(const ConvShape *s, const ConvPlanesTiles *t)
{
    const int64_t many = tile_ceil(t->rc, t->br) * t->br, few = tile_ceil(t->rc, t->bf) * t->bf;
    const int64_t rows = 3 * (tile_ceil(s->in[2], PANEL) + 3) * PANEL;
    return (size_t)(4
        * ((tile_max(t->br, t->bf) * tile_ceil(s->out[2], PANEL) + 1) * PANEL
            + tile_max(rows, image_floats(s, tile_max(many, few)))));
}
