// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the files tiles*.c share: the cost of a register tile, from which block sizes are chosen, and the choice.
 *
 * The cost is in half-cycles. Two multiply-adds and two loads begin in a cycle, and a sum waits four cycles for the
 * one before it: a step of a tile of r rows by v vectors takes r*v for its multiply-adds, at least r + v + 1 for what
 * it loads and brings near, and at least 8. Then its sums are stored, loaded, finished and stored again. */
#ifndef BURNCC_SCHEDULE_TILES_COST_H
#define BURNCC_SCHEDULE_TILES_COST_H
#include "tiles.h"
#include <stdbool.h>

enum {
    LONG = 1 << 19, /* sizes beyond change no choice, and their products would overflow */
    PANEL = 16, /* floats of a panel per vector of a tile: the widest vector */
    MOST_ROWS = 14 /* of a tile */
};

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
    return a / b + (a % b > 0);
}

/* Pixels along an axis of the padded input that so many outputs read. */
static inline int64_t tile_span(const ConvShape *s, int axis, int64_t outputs)
{
    return (outputs - 1) * s->stride[axis] + (s->kernel[axis] - 1) * s->dilation[axis] + 1;
}

/* What a tile's registers and instructions are. fused: a multiply-add is one instruction; else a product takes a
 * register of its own. */
typedef struct TileMachine {
    int lanes, registers;
    bool fused;
} TileMachine;

/* The most rows by v vectors that its registers hold with v vectors of weights, one broadcast, and a product where it
 * has no multiply-add. Of 16 registers one is spared even so: where all are taken, clang 18 brings the next broadcast
 * near before the last sums have used this one, and a sum lies on the stack, at half the speed (4 rows by 3 vectors for
 * AVX2; gcc 12 and other clangs have both within 2 %). */
int64_t tile_rows(const TileMachine *m, int64_t v);

/* Half-cycles of a tile of r rows by v vectors that sums `depth` products. */
int64_t tile_cost(const TileMachine *m, int64_t r, int64_t v, int64_t depth);

/* Half-cycles of all of `shape` in tiles of r rows by v vectors; TILE_NONE where there is no such tile. */
typedef int64_t TileWork(const void *shape, const TileMachine *m, int64_t r, int64_t v);
#define TILE_NONE INT64_MAX

/* Rows on machines of 32 vector registers (many) and of 16 (few), vectors, and what they cost on the target. */
typedef struct TileChoice {
    int many, few, nv;
    int64_t cost;
} TileChoice;

TileChoice tile_choose(const TileTarget *target, TileWork *work, const void *shape);

/* The same where a tile has half the rows, up, on machines of 16 registers; many alone is set. */
TileChoice tile_choose_halves(const TileTarget *target, TileWork *work, const void *shape);

#endif
