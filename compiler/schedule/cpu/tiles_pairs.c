// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a convolution and what is known of the machine. Out: the block sizes of conv_pairs.c, and whether it
 * is to be preferred.
 *
 * Half-cycles, as in tiles_conv.c: half of its tiles, and an image that it always makes, of rows woven in pairs. */
#include "tiles_cost.h"

enum {
    COPY = 8, /* half-cycles for 16 floats of an image, measured; of the pairs a half more */
    ROWS = 16 /* the most of a tile: pairs take no vector of weights beside */
};

PairTiles conv_pairs_tiles(const ConvLayout *shape, const TileTarget *target)
{
    const ConvShape *s = &shape->conv;
    const TileMachine own = {target->lanes, target->vector_registers >= 32 ? 32 : 16, !target->unfused};
    const int64_t most = tile_min(s->out[2], own.registers == 32 ? ROWS : tile_rows(&own, 1));
    const int64_t half = tile_ceil(s->out[1], 2), depth = s->kernel[1] * s->kernel[2] * s->ic,
                  l2 = target->l2 ? (int64_t)target->l2 : 512 << 10, line = tile_span(s, 2, s->out[2]) * s->ic;
    PairTiles t = {.mr = 1, .rc = 1};
    int64_t best = INT64_MAX;
    for (int r = 1; r <= most; r++) {
        const int64_t cost = s->out[2] / r * tile_cost(&own, r, 1, depth)
            + (s->out[2] % r ? tile_cost(&own, s->out[2] % r, 1, depth) : 0);
        if (cost <= best) {
            best = cost;
            t.mr = r;
        }
    }
    while (t.rc < half && tile_span(s, 1, t.rc + 1) * line * 8 <= l2 / 4)
        t.rc++;
    t.rc = tile_ceil(half, tile_ceil(half, t.rc));
    const ConvTiles direct = conv_tiles(shape, target);
    const int64_t copies = tile_ceil(tile_span(s, 1, s->out[1]) * line, 16) * COPY,
                  cost = half * best + copies + copies / 2, plain = direct.cost + (direct.image ? copies : 0);
    t.preferred = s->oc <= PAIRS_CHANNELS && 2 * s->oc <= target->lanes && s->groups == 1 && s->in[0] == 1
        && s->out[0] == 1 && s->kernel[0] == 1 && s->pad[0] == 0 && s->out[1] > 1 && cost * 10 < plain * 9;
    return t;
}

size_t conv_pairs_scratch_bytes(const ConvLayout *shape, const PairTiles *t)
{
    const ConvShape *s = &shape->conv;
    const int64_t line = tile_span(s, 2, s->out[2]) * s->ic;
    return (size_t)(4 * (t->mr * PANEL + 2 * tile_ceil(line, 16) * 16 + tile_span(s, 1, t->rc) * 2 * line));
}
