// SPDX-License-Identifier: MIT OR Apache-2.0
/* What tiles.c and tiles_conv.c share: the cost of a register tile, from which block sizes are chosen.
 *
 * The cost is in half-cycles. A step of a tile of r rows by v vectors takes r*v of them for multiply-adds (two a
 * cycle), at least r + v for loads and at least 8 for latency; then its sums are stored, loaded, finished and
 * stored again. */
#ifndef BURNCC_SCHEDULE_TILES_COST_H
#define BURNCC_SCHEDULE_TILES_COST_H
#include "tiles.h"
#include <stdbool.h>

enum { PANEL = 16 }; /* floats of a panel per vector of a tile: the widest vector */

static inline int64_t tile_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tile_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t tile_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Half-cycles of a tile of r rows by v vectors that sums `depth` products. */
static inline int64_t tile_cost(int64_t r, int64_t v, int64_t depth)
{
    const int64_t step = tile_max(tile_max(r * v, r + v), 8);
    return r * v == 0 ? 0 : depth * step + 6 * r * v + 40;
}

/* The most rows by v vectors that `registers` hold with v vectors of weights and one broadcast. */
static inline int64_t tile_rows(int64_t v, int64_t registers)
{
    return tile_min((registers - 1 - v) / v, 14);
}

#endif
