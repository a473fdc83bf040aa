// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: what all the work of a template costs in tiles of one size. Out: the size of least cost on a target.
 *
 * A file for the generic target meets machines of both kinds; it is chosen for by the cost on an AVX-512 and an AVX2
 * machine, where the first counts twice. */
#include "tiles_cost.h"

enum {
    LATENCY = 8, /* half-cycles from a sum to the next, which as many sums fill */
    FULL = 12    /* fewer sums leave the units idle for a moment, measured: half a cycle */
};

static const TileMachine WIDE = {16, 32, true}, NARROW = {8, 16, true};

int64_t tile_rows(const TileMachine *m, int64_t v)
{
    return tile_min((m->registers - v - (m->fused && m->registers > 16 ? 1 : 2)) / v, MOST_ROWS);
}

/* Where products and sums are two instructions, each of them has two units at best, a product copies its row first, a
 * broadcast is two instructions, and four begin in a cycle. */
static int64_t tile_step(const TileMachine *m, int64_t r, int64_t v)
{
    const int64_t sums = r * v, loads = r + v + 1,
                  busy = tile_max(m->fused ? sums : tile_max(2 * sums, (3 * sums + 2 * r + v + 4) / 2), loads);
    return sums < LATENCY ? tile_max(busy, LATENCY) : sums < FULL ? busy + 1 : busy;
}

int64_t tile_cost(const TileMachine *m, int64_t r, int64_t v, int64_t depth)
{
    return r * v == 0 ? 0 : depth * tile_step(m, r, v) + 6 * r * v + 40;
}

/* The rows of least cost for v vectors; of several the least, which are even shares. */
static int64_t best_rows(const TileMachine *m, TileWork *work, const void *shape, int64_t v, int64_t *cost)
{
    int64_t best = 1;
    *cost = TILE_NONE;
    for (int64_t r = 1; r <= tile_rows(m, v); r++) {
        const int64_t c = work(shape, m, r, v);
        if (c < *cost) {
            *cost = c;
            best = r;
        }
    }
    return best;
}

static TileMachine own_machine(const TileTarget *t)
{
    const int registers = t->vector_registers >= 32 ? 32 : (int)tile_min(t->vector_registers, 16);
    return (TileMachine){t->lanes, registers, !t->unfused};
}

TileChoice tile_choose(const TileTarget *target, TileWork *work, const void *shape)
{
    const TileMachine own = own_machine(target);
    const bool both = target->lanes == 0;
    const TileMachine *many = !both && own.registers == 32 ? &own : &WIDE,
                      *few = !both && own.registers <= 16 ? &own : &NARROW;
    TileChoice best = {.many = 1, .few = 1, .nv = 1, .cost = TILE_NONE};
    for (int v = 1; v <= 4; v++) {
        int64_t on_many, on_few;
        const int64_t rows = best_rows(many, work, shape, v, &on_many), half = best_rows(few, work, shape, v, &on_few);
        if (on_many == TILE_NONE || on_few == TILE_NONE)
            continue;
        const int64_t cost = both ? (2 * on_many + on_few) / 3 : many == &own ? on_many : on_few;
        if (cost < best.cost)
            best = (TileChoice){(int)rows, (int)half, v, cost};
    }
    return best;
}

/* Half-cycles with `rows`, or TILE_NONE where the target's registers do not hold them. */
static int64_t halves_cost(const TileTarget *target, TileWork *work, const void *shape, int64_t rows, int64_t v)
{
    const TileMachine own = own_machine(target);
    const int64_t half = tile_ceil(rows, 2);
    if (target->lanes)
        return own.registers == 32 ? (rows <= tile_rows(&own, v) ? work(shape, &own, rows, v) : TILE_NONE) :
            half <= tile_rows(&own, v) && rows % 2 == 0 ? work(shape, &own, half, v) : TILE_NONE;
    if (rows % 2 || rows > tile_rows(&WIDE, v) || half > tile_rows(&NARROW, v))
        return TILE_NONE;
    const int64_t on_many = work(shape, &WIDE, rows, v), on_few = work(shape, &NARROW, half, v);
    return on_many == TILE_NONE || on_few == TILE_NONE ? TILE_NONE : (2 * on_many + on_few) / 3;
}

TileChoice tile_choose_halves(const TileTarget *target, TileWork *work, const void *shape)
{
    TileChoice best = {.many = 2, .few = 1, .nv = 1, .cost = TILE_NONE};
    for (int v = 1; v <= 4; v++)
        for (int rows = 1; rows <= MOST_ROWS; rows++) {
            const int64_t cost = halves_cost(target, work, shape, rows, v);
            if (cost < best.cost)
                best = (TileChoice){rows, (rows + 1) / 2, v, cost};
        }
    return best;
}
