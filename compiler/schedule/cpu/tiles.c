// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a contraction and what is known of the machine. Out: the block sizes of its template.
 *
 * The register tile is the one of least cost (tiles_cost.h), summed over all tiles of the result, edges included.
 * Cache blocks are fractions of L1 and L2 that were measured to work: where a block of B fits L2, few rows of A
 * pass over all of it at a time, so that rows of the result are written whole, one after the other; else many rows
 * pass over each panel, so that B is read from far memory once. */
#include "tiles_cost.h"

const TileTarget TILE_GENERIC = {0, 0, 0, 32 << 10, 512 << 10, 8 << 20};

/* bytes: that one way of L1 holds; of a block of B in the L3, of which a core has a share */
enum { SETS = 4 << 10, WIDE = 3 << 20 };

/* of a product's time: with the copy of its rows for each of several workers */
static const double COPY = 1.05;

/* As many rows of A may share the sets of L1, whose ways are 8 or more: of 12 the panel of B takes one. */
static int64_t ways(const TileTarget *target)
{
    const int64_t all = target->l1 ? (int64_t)target->l1 / SETS : 8;
    return all > 8 ? tile_min(all, 12) - 1 : 8;
}

/* n split into parts of at most `most`, as even as multiples of `unit` allow. */
static int64_t part_of(int64_t n, int64_t most, int64_t unit)
{
    const int64_t parts = tile_ceil(n, most < unit ? unit : most);
    return tile_ceil(tile_ceil(n, parts), unit) * unit;
}

/* The longest block along k, in elements: L2 / 820 bytes. A panel then streams from L2, which the few loads of a
 * tile step allow; shorter blocks that stay in L1 measured slower, because they read and write the sums again. */
static int64_t depth_limit(const TileTarget *target)
{
    const int64_t most = target->l2 ? (int64_t)target->l2 * 5 / 4096 : 320;
    return most < 128 ? 128 : tile_min(most, 1280);
}

/* Half-cycles of C in tiles of r rows by v vectors, all of k at once. Where m is open, tiles of a multiple of 4 rows
 * alone, which its last rows go in. */
static int64_t gemm_work(const void *shape, const TileMachine *t, int64_t r, int64_t v)
{
    const GemmShape *s = shape;
    if (r > s->m || (s->most_rows && r > s->most_rows) || (s->open_m && r > 4 && r % 4))
        return TILE_NONE;
    const int64_t m = tile_min(s->m, LONG), n = tile_min(s->n, LONG), k = tile_min(s->k, LONG), width = v * t->lanes,
                  panels = n / width, rest = tile_ceil(n % width, t->lanes), whole = m / r, edge = m % r;
    return panels * (whole * tile_cost(t, r, v, k) + tile_cost(t, edge, v, k)) + whole * tile_cost(t, r, rest, k)
        + tile_cost(t, edge, rest, k);
}

/* Rows that share cache sets are read where they lie, in tiles that the ways hold, if these cost less than the copy. */
static TileChoice in_sets(const GemmShape *s, const TileTarget *target, TileChoice most)
{
    GemmShape few = *s;
    few.most_rows = ways(target);
    if (!s->shared || s->ak != 1 || s->am % 1024 || most.many <= few.most_rows)
        return most;
    const TileChoice tile = tile_choose_halves(target, gemm_work, &few);
    return tile.cost < TILE_NONE && (double)tile.cost <= COPY * (double)most.cost ? tile : most;
}

GemmTiles gemm_tiles(const GemmShape *s, const TileTarget *target)
{
    const TileChoice tile = in_sets(s, target, tile_choose_halves(target, gemm_work, s));
    GemmTiles t = {.mr = tile.many, .nv = tile.nv};
    const int64_t nr = PANEL * t.nv, l1 = target->l1 ? (int64_t)target->l1 : 32 << 10,
                  l2 = target->l2 ? (int64_t)target->l2 : 512 << 10, l3 = (int64_t)target->l3;
    t.kc = part_of(s->k, depth_limit(target), 1);
    t.pack_b = !s->b_packed && (s->bn != 1 || s->open_n || s->m >= 4 * t.mr);
    const bool pass = !s->b_packed && s->bn == 1 && !s->open_m && !s->open_n && s->m >= 2 * t.mr
        && tile_min(s->m, LONG) * t.kc * 4 <= l2 / 2; /* all of A stays near while panels pass by */
    if (pass)
        t.pack_b = 2;
    t.pack_a = s->n > 2 * nr && (s->ak != 1 || (s->am % 1024 == 0 && t.mr > ways(target))) && s->m > 1;
    /* rows that are copied are so for each block: it is wide, of the L3 */
    const int64_t near = t.pack_a ? tile_max(l2 / 2, tile_min(l3 / 4, WIDE)) : l2 / 2;
    t.nc = t.pack_b == 1 ? part_of(s->n, near / (t.kc * 4), nr) : tile_ceil(tile_min(s->n, INT64_MAX / 2), nr) * nr;
    if (pass)
        t.mc = s->m;
    else if (t.nc < l2 / 2 / (t.kc * 4) + nr) /* B stays near: rows of A are read, rows of C written, once and whole */
        t.mc = tile_max(l1 / 2 / 4 / (t.kc + t.nc) / t.mr, 4) * t.mr;
    else
        t.mc = part_of(s->m, l2 / 2 / (t.kc * 4), t.mr);
    t.mc = tile_min(tile_ceil(t.mc, t.mr), tile_ceil(s->m, t.mr)) * t.mr;
    return t;
}

GemvTiles gemv_tiles(int64_t n, int64_t k, const TileTarget *target, int near)
{
    const int64_t most = target->lanes == 16                 ? 8 :
        target->vector_registers >= 32 || target->lanes == 8 ? 4 :
                                                               2,
                  vectors = tile_ceil(n, PANEL);
    if (n <= GEMV_FEW && k >= 256) /* panels would be padded; the sums over lanes take as long as some 100 terms */
        return (GemvTiles){0, 1};
    return near ? (GemvTiles){(int)tile_ceil(vectors, tile_ceil(vectors, most)), 1} : (GemvTiles){1, GEMV_SIDE};
}

size_t gemm_scratch_bytes(const GemmShape *s, const GemmTiles *t)
{
    const int64_t nr = PANEL * t->nv;
    const int64_t b = s->b_packed ? 0 : t->pack_b == 1 ? t->kc * t->nc : t->pack_b || s->n % nr ? t->kc * nr : 0;
    return (size_t)(4 * (b + (t->pack_a ? (t->mc + t->mr % 2 * t->mr) * (t->kc + 16) : 0)));
}

void gemm_within(const GemmShape *s, int64_t bytes, GemmTiles *t)
{
    while ((int64_t)gemm_scratch_bytes(s, t) > bytes) {
        const int64_t nr = PANEL * t->nv;
        if (t->pack_b == 1 && t->nc > nr)
            t->nc = tile_ceil(t->nc / 2, nr) * nr;
        else if (t->pack_a && t->mc > t->mr)
            t->mc = tile_ceil(t->mc / 2, t->mr) * t->mr;
        else if (t->nv > 1)
            t->nv--;
        else
            return;
    }
}
