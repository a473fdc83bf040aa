// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a contraction and what is known of the machine. Out: the block sizes of its template.
 *
 * The register tile comes from a small cost model: a step of k of a tile of r rows by v vectors takes r*v/2 cycles of
 * multiply-adds (two a cycle), at least (r + v)/2 of loads and at least 4 of latency. Summed over a shape's tiles, edges
 * included, this prefers the tile that wastes least. Cache blocks are fractions of L1 and L2 that were measured to work. */
#include "tiles.h"
#include <stdbool.h>

const TileTarget TILE_GENERIC = {0, 0, 32 << 10, 512 << 10, 8 << 20};

enum { PANEL = 16 }; /* floats of a panel per vector of a tile: the widest vector */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* n split into parts of at most `most`, as even as multiples of `unit` allow. */
static int64_t part_of(int64_t n, int64_t most, int64_t unit)
{
    const int64_t parts = ceil_div(n, most < unit ? unit : most);
    return ceil_div(ceil_div(n, parts), unit) * unit;
}

/* The longest block along k, in elements: L2 / 820 bytes. A panel then streams from L2, which the few loads of a tile step allow;
 * shorter blocks that stay in L1 measured slower, because they read and write the sums again. */
static int64_t depth_limit(const TileTarget *target)
{
    const int64_t most = target->l2 ? (int64_t)target->l2 * 5 / 4096 : 320;
    return most < 128 ? 128 : min64(most, 1280);
}

/* Half-cycles a step of k takes for a tile of r rows by v vectors. */
static int64_t tile_cost(int64_t r, int64_t v)
{
    int64_t cost = r * v;
    if (r == 0 || v == 0)
        return 0;
    if (cost < r + v)
        cost = r + v;
    return cost < 8 ? 8 : cost;
}

static int64_t rows_cost(int64_t rows, int64_t mr, int64_t v)
{
    return rows / mr * tile_cost(mr, v) + tile_cost(rows % mr, v);
}

/* Half-cycles for a step of k over rows x columns in tiles of mr x nv. */
static int64_t area_cost(int64_t rows, int64_t columns, int64_t mr, int64_t nv, int64_t lanes)
{
    const int64_t edge = ceil_div(columns % (nv * lanes), lanes);
    return columns / (nv * lanes) * rows_cost(rows, mr, nv) + rows_cost(rows, mr, edge);
}

/* The cost on the target, scaled to 16 lanes; for the generic target the sum of an AVX-512 and an AVX2 machine's. */
static int64_t target_cost(int64_t rows, int64_t columns, int mr, int nv, const TileTarget *target)
{
    if (target->lanes == 0)
        return area_cost(rows, columns, mr, nv, 16) * 2 + area_cost(rows, columns, mr / 2, nv, 8);
    return area_cost(rows, columns, target->vector_registers >= 32 ? mr : mr / 2, nv, target->lanes);
}

/* Tiles that fit the registers with their columns and one broadcast: mr*nv + nv + 1 <= 32, and the same for mr/2 and 16. */
static const struct {
    int mr, nv;
} TILES[] = {{12, 2}, {8, 3}, {14, 2}, {10, 2}, {8, 2}, {6, 4}, {14, 1}};

static bool tile_fits(int mr, int nv, const TileTarget *target)
{
    const bool many = target->lanes != 0 && target->vector_registers >= 32;
    return many ? mr * nv + nv + 1 <= 32 : mr / 2 * nv + nv + 1 <= 16 && mr * nv + nv + 1 <= 32;
}

GemmTiles gemm_tiles(const GemmShape *s, const TileTarget *target)
{
    GemmTiles best = {12, 2, 0, 0, 0, 0, 0};
    int64_t best_cost = INT64_MAX;
    for (size_t i = 0; i < sizeof TILES / sizeof *TILES; i++) {
        const int64_t cost = target_cost(s->m, s->n, TILES[i].mr, TILES[i].nv, target);
        if (tile_fits(TILES[i].mr, TILES[i].nv, target) && cost < best_cost) {
            best.mr = TILES[i].mr;
            best.nv = TILES[i].nv;
            best_cost = cost;
        }
    }
    const int64_t nr = PANEL * best.nv, l2 = (int64_t)target->l2;
    best.kc = part_of(s->k, depth_limit(target), 1);
    best.mc = part_of(s->m, l2 ? l2 / 2 / (best.kc * 4) : 240, best.mr);
    best.pack_b = !s->b_packed && (s->bn != 1 || s->m >= 4 * best.mr);
    best.nc = best.pack_b && l2 ? part_of(s->n, l2 / 2 / (best.kc * 4), nr) : ceil_div(s->n, nr) * nr;
    best.pack_a = s->n > 2 * nr && (s->ak != 1 || s->am % 256 == 0) && s->m > 1;
    return best;
}

size_t gemm_scratch_bytes(const GemmShape *s, const GemmTiles *t)
{
    const int64_t nr = PANEL * t->nv;
    const int64_t b = s->b_packed ? 0 : t->pack_b ? t->kc * t->nc : s->n % nr ? t->kc * nr : 0;
    return (size_t)(4 * (b + (t->pack_a ? t->mc * (t->kc + 16) : 0)));
}
