// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a contraction or convolution and what is known of the machine. Out: the block sizes of its template.
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

static bool is_pointwise(const ConvShape *s)
{
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != 1 || s->stride[i] != 1 || s->pad[i] != 0)
            return false;
    return true;
}

/* Floats of the padded image of one input channel for a chunk of rc rows and cc columns. */
static int64_t image_floats(const ConvShape *s, int64_t rc, int64_t cc)
{
    return s->kernel[0] * ((rc - 1) * s->stride[1] + (s->kernel[1] - 1) * s->dilation[1] + 1) * s->stride[2] *
           (cc + (s->kernel[2] - 1) * s->dilation[2] / s->stride[2]);
}

/* Chunk rows with the least cost for a tile: what edges waste, what of the image is copied again, and reading the weights
 * again, at 8 bytes a cycle, if they do not stay in L2. */
static int64_t chunk_rows(const ConvShape *s, int mr, int nv, const TileTarget *target, int64_t kc, int64_t *cost)
{
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2], oh = s->out[1], ow = s->out[2];
    const int64_t room = target->l2 ? (int64_t)target->l2 / 2 / 4 : 32 << 10;
    const size_t weights = (size_t)(s->ic * s->oc * taps * 4);
    int64_t best = 1;
    *cost = INT64_MAX;
    for (int64_t rc = 1; rc <= oh && (rc == 1 || kc * image_floats(s, rc, ow) <= room); rc++) {
        int64_t c = oh / rc * target_cost(s->oc, rc * ow, mr, nv, target);
        if (oh % rc)
            c += target_cost(s->oc, oh % rc * ow, mr, nv, target);
        c *= target->lanes == 0 ? 1 : 4;
        c += ceil_div(oh, rc) * (image_floats(s, rc, ow) / taps + (weights > target->l2 ? 4 * s->oc : 4));
        if (c <= *cost) {
            *cost = c;
            best = rc;
        }
    }
    return best;
}

ConvTiles conv_tiles(const ConvShape *s, const TileTarget *target)
{
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    ConvTiles best = {12, 2, is_pointwise(s), 0, 0, 1, s->out[2]};
    int64_t best_cost = INT64_MAX;
    for (size_t i = 0; i < sizeof TILES / sizeof *TILES; i++) {
        const int mr = TILES[i].mr, nv = TILES[i].nv;
        const int64_t kc = part_of(s->ic, depth_limit(target) / taps, 1);
        int64_t cost, rc = 1;
        if (best.pointwise)
            cost = target_cost(s->oc, s->out[0] * s->out[1] * s->out[2], mr, nv, target);
        else
            rc = chunk_rows(s, mr, nv, target, kc, &cost);
        if (tile_fits(mr, nv, target) && cost < best_cost) {
            best_cost = cost;
            best.mr = mr;
            best.nv = nv;
            best.rc = rc;
            best.kc = kc;
        }
    }
    if (best.pointwise) {
        best.cc = s->out[0] * s->out[1] * s->out[2];
        best.pack_x = s->oc >= 4 * best.mr || best.cc % 256 == 0;
    } else if (best.rc == 1 && s->out[1] == 1) { /* 1-D: long rows are cut */
        best.cc = part_of(s->out[2], 2048, 16 * best.nv);
        best.cc = min64(best.cc, s->out[2]);
    }
    return best;
}

size_t conv_scratch_bytes(const ConvShape *s, const ConvTiles *t)
{
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    const int64_t image = t->pointwise ? 0 : t->kc * image_floats(s, t->rc, t->cc) + 16;
    return (size_t)(4 * (t->kc * taps * PANEL * t->nv + 16 + image));
}

ConvRowsTiles conv_rows_tiles(const ConvShape *s, const TileTarget *target)
{
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2], pixels = s->out[1] * s->out[2];
    const int64_t room = target->l2 ? (int64_t)target->l2 / 2 / 4 : 32 << 10;
    ConvRowsTiles best = {12, 2, 0, 0};
    int64_t best_cost = INT64_MAX, other = INT64_MAX;
    for (size_t i = 0; i < sizeof TILES / sizeof *TILES; i++) {
        const int mr = TILES[i].mr, nv = TILES[i].nv;
        if (!tile_fits(mr, nv, target))
            continue;
        const int64_t columns = ceil_div(s->oc, PANEL * nv) * PANEL * nv, cost = target_cost(pixels, columns, mr, nv, target);
        other = min64(other, target_cost(s->oc, pixels, mr, nv, target));
        if (cost < best_cost) {
            best_cost = cost;
            best.mr = mr;
            best.nv = nv;
        }
    }
    best.kc = part_of(s->ic, min64(depth_limit(target), room / pixels) / taps, 1);
    best.preferred = pixels <= 256 && s->ic * taps >= 128 && best_cost * 10 < other * 9;
    return best;
}

size_t conv_rows_scratch_bytes(const ConvShape *s, const ConvRowsTiles *t)
{
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2], pixels = s->out[1] * s->out[2], nr = PANEL * t->nv;
    return (size_t)(4 * (pixels * ceil_div(s->oc, nr) * nr + ceil_div(t->kc * taps * pixels + 16, 16) * 16 +
                         t->kc * image_floats(s, s->out[1], s->out[2]) + 16));
}

/* In the units of target_cost: the products of all blocks, what the transforms take per tile and channel (cycles, measured), and
 * reading weights that do not stay in L2 once a block, at 12 bytes a cycle. */
static int64_t winograd_cost(const ConvShape *s, int mr, int nv, int64_t tb, int64_t tiles, const TileTarget *target)
{
    const int64_t blocks = ceil_div(tiles, tb), columns = ceil_div(tiles - (blocks - 1) * tb, PANEL * nv) * PANEL * nv;
    const int64_t full = target_cost(s->oc, tb, mr, nv, target), last = target_cost(s->oc, columns, mr, nv, target);
    const int64_t weights = 36 * s->ic * s->oc * 4, room = target->l2 ? (int64_t)target->l2 : 512 << 10, cycle = target->lanes ? 2 : 8;
    const int64_t cycles = tiles * (45 * s->ic + 30 * s->oc) + (weights > room ? blocks * weights / 12 : 0);
    return 36 * s->ic * ((blocks - 1) * full + last) + cycle * cycles;
}

WinogradTiles winograd_tiles(const ConvShape *s, const TileTarget *target)
{
    const int64_t tiles = ceil_div(s->out[1], 4) * ceil_div(s->out[2], 4);
    const int64_t room = (target->l2 ? (int64_t)target->l2 : 1 << 20) / 4 / 36; /* of V, in L2 */
    WinogradTiles best = {12, 2, 0, 32};
    int64_t best_cost = INT64_MAX;
    for (size_t i = 0; i < sizeof TILES / sizeof *TILES; i++) {
        const int mr = TILES[i].mr, nv = TILES[i].nv;
        const int64_t width = PANEL * nv, most = room / s->ic < width ? width : room / s->ic;
        const int64_t tb = part_of(tiles, most, width), cost = winograd_cost(s, mr, nv, tb, tiles, target);
        if (tile_fits(mr, nv, target) && cost < best_cost) {
            best_cost = cost;
            best = (WinogradTiles){mr, nv, 0, tb};
        }
    }
    const ConvTiles t = conv_tiles(s, target);
    const int64_t direct = 9 * s->ic * target_cost(s->oc, s->out[1] * s->out[2], t.mr, t.nv, target);
    best.preferred = s->groups == 1 && s->kernel[0] == 1 && s->kernel[1] == 3 && s->kernel[2] == 3 && s->stride[1] == 1 && s->stride[2] == 1 &&
                     s->dilation[1] == 1 && s->dilation[2] == 1 && s->in[0] == 1 && s->ic >= 8 && s->oc >= 8 && best_cost * 6 < direct * 5;
    return best;
}

size_t winograd_scratch_bytes(const ConvShape *s, const WinogradTiles *t)
{
    const int64_t plane = ceil_div(ceil_div(s->out[2], 4), 16) * 16 + 16;
    return (size_t)(4 * (36 * s->ic * t->tb + 36 * t->mr * t->tb + 36 * (t->tb + 16) + 24 * 16 + 8 * plane));
}

ConvDwTiles conv_dw_tiles(const ConvShape *s, const TileTarget *target)
{
    const int64_t room = target->l1 ? (int64_t)target->l1 * 3 / 4 / 4 : 4096, oh = s->out[1], rt = min64(oh, 4);
    int64_t rc = oh;
    for (int64_t chunks = 2; rc > rt && image_floats(s, rc, s->out[2]) > room; chunks++)
        rc = ceil_div(oh, chunks);
    return (ConvDwTiles){(int)rt, rc < rt ? rt : rc};
}

size_t conv_dw_scratch_bytes(const ConvShape *s, const ConvDwTiles *t)
{
    return (size_t)(4 * (image_floats(s, t->rc, s->out[2]) + 16));
}
