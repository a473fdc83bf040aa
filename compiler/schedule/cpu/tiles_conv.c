// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a convolution with the channels last and what is known of the machine. Out: the block sizes of
 * its template.
 *
 * The cost model is in half-cycles, as in tiles.c: a step of a tile of r pixels by v vectors takes r*v half-cycles
 * of multiply-adds, and its sums are stored, loaded, finished and stored again. Shapes are tried, and the least
 * sum over a map's tiles, edges included, is taken. */
#include "tiles_cost.h"

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t m = a;
    while (m % b)
        m += a;
    return m;
}

static int64_t extent(int64_t outputs, int64_t stride, int64_t kernel, int64_t dilation)
{
    return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
}

/* Tiles are pixels of a row, or some whole short rows. */
static int64_t map_work(const void *shape, const TileMachine *t, int64_t pixels, int64_t v)
{
    const ConvShape *s = shape;
    const int64_t depth = s->ic * s->kernel[0] * s->kernel[1] * s->kernel[2], ow = s->out[2], oh = s->out[1];
    if (pixels > ow && (pixels % ow || pixels / ow > oh))
        return TILE_NONE;
    const int64_t tall = pixels > ow ? pixels / ow : 1, edge = tall > 1 ? oh % tall * ow : ow % pixels;
    const int64_t whole = tall > 1 ? oh / tall : oh * (ow / pixels), edges = tall > 1 ? edge > 0 : edge > 0 ? oh : 0;
    const int64_t width = v * t->lanes, panels = s->oc / width, rest = tile_ceil(s->oc % width, t->lanes);
    return panels * (whole * tile_cost(t, pixels, v, depth) + edges * tile_cost(t, edge, v, depth))
        + whole * tile_cost(t, pixels, rest, depth) + edges * tile_cost(t, edge, rest, depth);
}

static bool reads_outside(const ConvShape *s, int axis)
{
    return s->pad[axis] > 0 || extent(s->out[axis], s->stride[axis], s->kernel[axis], s->dilation[axis]) > s->in[axis];
}

/* Do rows of pixels `stride` floats apart share too few sets of a cache? */
static bool rows_collide(int64_t stride)
{
    return stride % 1024 == 0;
}

/* Floats of the padded image of a chunk. */
static int64_t image_floats(const ConvShape *s, int64_t rows, int64_t columns, int64_t pixel)
{
    return s->kernel[0] * extent(rows, s->stride[1], s->kernel[1], s->dilation[1])
        * extent(columns, s->stride[2], s->kernel[2], s->dilation[2]) * pixel;
}

/* Rows that chunks are made of: where tiles are longer than a row, as many as make whole ones. */
static int64_t chunk_unit(const ConvShape *s, const ConvTiles *t)
{
    const int64_t ow = s->out[2];
    return t->mr > ow || t->mf > ow ? common_multiple(tile_max(t->mr / ow, 1), tile_max(t->mf / ow, 1)) : 1;
}

ConvTiles conv_tiles(const ConvLayout *shape, const TileTarget *target)
{
    const ConvShape *s = &shape->conv;
    const int64_t l2 = target->l2 ? (int64_t)target->l2 : 512 << 10, tap_rows = s->kernel[0] * s->kernel[1],
                  oh = s->out[1], ow = s->out[2];
    const TileChoice tile = tile_choose(target, map_work, s);
    ConvTiles t = {.mr = tile.many, .mf = tile.few, .nv = tile.nv, .pixel = s->ic, .cc = ow, .cost = tile.cost};
    const bool tall = t.mr > ow || t.mf > ow;
    const int64_t run = s->kernel[2] * s->ic;
    t.image = shape->xc != 1 || reads_outside(s, 2) || reads_outside(s, 0)
        || (reads_outside(s, 1) && (tall || s->kernel[0] > 1)) || rows_collide(s->stride[2] * shape->xw);
    if (rows_collide(s->stride[2] * t.pixel))
        t.pixel += PANEL;
    const int64_t panel = run * PANEL * t.nv * 4; /* bytes of a tap row's */
    t.kb = tile_max(1, tile_min(tap_rows, l2 / 2 / panel));
    t.kb = tile_ceil(tap_rows, tile_ceil(tap_rows, t.kb));
    const int64_t unit = chunk_unit(s, &t),
                  room = tile_max(l2 / 2 - t.kb * panel, l2 / 4) / 4;
    t.rc = unit;
    while (t.rc < oh && image_floats(s, t.rc + unit, ow, t.pixel) <= room)
        t.rc += unit;
    if (t.rc < oh)
        t.rc = tile_ceil(tile_ceil(oh, tile_ceil(oh, t.rc)), unit) * unit;
    if (oh == 1 && !tall) {
        const int64_t whole = tile_max(t.mr, t.mf),
                      most = room / tile_max(1, s->kernel[0] * s->kernel[1] * s->stride[2] * t.pixel);
        t.cc = ow <= tile_max(most, 4 * whole) && shape->parts <= 1 ?
            ow :
            tile_max(4 * whole, tile_min(most, tile_ceil(ow, 4 * tile_max(shape->parts, 1))));
        t.cc = tile_min(t.cc, ow);
    }
    return t;
}

size_t conv_scratch_bytes(const ConvLayout *shape, const ConvTiles *t)
{
    const ConvShape *s = &shape->conv;
    const int64_t most = tile_max(t->mr, t->mf), ow = s->out[2], rows = tile_max(t->rc, tile_max(1, most / ow)),
                  columns = t->cc < ow ? tile_max(t->cc, most) : ow;
    const int64_t sums = t->kb < s->kernel[0] * s->kernel[1] ? rows * (columns + most) : most;
    return (size_t)(4 * (sums * PANEL * t->nv + (t->image ? image_floats(s, rows, columns, t->pixel) : 0)));
}

void conv_within(const ConvLayout *shape, int64_t bytes, ConvTiles *t)
{
    const int64_t unit = chunk_unit(&shape->conv, t);
    while (t->rc > unit && (int64_t)conv_scratch_bytes(shape, t) > bytes)
        t->rc = tile_ceil(t->rc / 2, unit) * unit;
}

int64_t conv_merge(int64_t groups, int64_t oc)
{
    int64_t by = 1;
    for (int64_t f = 2; f <= groups && f * oc <= PANEL; f++)
        if (groups % f == 0)
            by = f;
    return oc < PANEL ? by : 1;
}

ConvDwTiles conv_dw_tiles(const ConvLayout *shape, const TileTarget *target)
{
    const ConvShape *s = &shape->conv;
    const int64_t ow = s->out[2], sw = s->stride[2], l1 = target->l1 ? (int64_t)target->l1 : 32 << 10, c = s->groups;
    ConvDwTiles t = {.rc = 1, .cb = tile_ceil(c, PANEL) * PANEL};
    const int64_t l2 = target->l2 ? (int64_t)target->l2 : 512 << 10;
    const bool far = 4 * c * (s->in[0] * s->in[1] * s->in[2] + s->oc * s->out[0] * s->out[1] * s->out[2])
        > l2 * 3 / 4; /* few long lines of memory at a time */
    const int64_t most = !far ? 14 :
        sw == 1               ? 8 :
                                6,
                  many = tile_ceil(ow, tile_ceil(ow, most)), few = tile_ceil(ow, tile_ceil(ow, 8));
    t.image = shape->xc != 1 || c < PANEL;
    for (int i = 0; i < 2; i++) {
        const int64_t block = i ? few : many, blocks = tile_ceil(ow, block),
                      last = ((blocks - 1) * block - 1) * sw - s->pad[2] + (s->kernel[2] - 1) * s->dilation[2];
        if (blocks > 2 && (block * sw < s->pad[2] || last >= s->in[2]))
            t.image = 1;
    }
    t.br = (int)many;
    t.bf = (int)few;
    if (t.image) {
        const int64_t row = s->stride[1] * s->kernel[0] * extent(ow, sw, s->kernel[2], s->dilation[2]) * c;
        t.rc = tile_max(1, tile_min(s->out[1], l1 / 4 / tile_max(row, 1)));
    } else if (!far) {
        const int64_t rows = s->kernel[0] * ((s->kernel[1] - 1) * s->dilation[1] + 1) * s->in[2]
            * 4; /* bytes of a channel's rows that are read again */
        const int64_t room = tile_max(l1 * 3 / 8 / rows / PANEL * PANEL, 2 * PANEL),
                      blocks = tile_ceil(t.cb, tile_min(room, t.cb));
        t.cb = tile_ceil(tile_ceil(t.cb, blocks), PANEL) * PANEL;
    }
    return t;
}

size_t conv_dw_scratch_bytes(const ConvLayout *shape, const ConvDwTiles *t)
{
    const ConvShape *s = &shape->conv;
    const int64_t slack = (tile_max(t->br, t->bf) * PANEL + 1) * s->stride[2] * s->groups + 16;
    return (size_t)(4 * (16 * PANEL + (t->image ? image_floats(s, t->rc, s->out[2], s->groups) + slack : 0)));
}
