// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: the shape of a convolution and what is known of the machine. Out: the tile of Winograd's algorithm and the
 * block sizes of winograd.c, and whether it is to be preferred.
 *
 * Half-cycles, as in tiles_conv.c: the products, the transforms, and the weights, which grow with the tile: where
 * a model has more of them than the cache keeps from run to run they come from far memory every time, beside the
 * products, and a smaller tile, of more products, often takes less time. Their price says so; it is higher where they
 * would take too much memory (templates.c).
 */
#include "tiles_cost.h"

enum {
    LINE = 6, /* half-cycles between two cache lines of weights from L2 */
    AGAIN = 8, /* bytes a half-cycle of weights from beyond it, after the first pass */
    /* weights that each run packs: half-cycles for 16 filters' transform, a 1024 bytes written within L2, and beyond */
    TRANSFORM = 640, PACKED = 256, PACKED_FAR = 768,
    WINOGRAD_RUN = 4, /* as BURN_WINO_RUN in winograd.h */
    MEMORY_SHARED = 2, /* half-cycles of all threads together, of which two share what one can fetch from far memory */
    LEARNING = 4 /* largest size where weights are learnt: gradients would carry the errors of larger ones on */
};

int winograd_forms(const ConvShape *s, WinogradTile form[9])
{
    static const int64_t size[3] = {4, 6, 8};
    int n = 0;
    for (int h = 0; h < 3; h++)
        for (int w = 0; w < 3; w++) {
            const WinogradTile f = { s->kernel[1] == 1 ? 1 : size[h] - s->kernel[1] + 1,
                s->kernel[2] == 1 ? 1 : size[w] - s->kernel[2] + 1 };
            const bool again = (s->kernel[1] == 1 && h > 0) || (s->kernel[2] == 1 && w > 0),
                       one = s->kernel[1] * s->kernel[2] == 1;
            if (!again && !one && (f.h >= 2 || s->kernel[1] == 1) && (f.w >= 2 || s->kernel[2] == 1))
                form[n++] = f;
        }
    return n;
}

int64_t winograd_points(const ConvShape *s, WinogradTile f)
{
    return (f.h + s->kernel[1] - 1) * (f.w + s->kernel[2] - 1);
}

int64_t winograd_count(const ConvShape *s, WinogradTile f)
{
    return tile_ceil(s->out[1], f.h) * tile_ceil(s->out[2], f.w);
}

/* A tile of products whose weights stream from L2. */
static int64_t product_cost(const TileMachine *t, int64_t r, int64_t v, int64_t depth)
{
    return r == 0 ? 0 : tile_max(tile_cost(t, r, v, depth), LINE * tile_ceil(v * t->lanes, PANEL) * depth);
}

/* `work` half-cycles and the weights that stream to it meanwhile; of the shorter of the two a fifth is left over
 * (measured). What the price has above that of far memory is for the room. */
static int64_t work_beside(const ConvLayout *l, int64_t work, int64_t weights)
{
    const int64_t shared = l->parts > 1 ? MEMORY_SHARED : 1,
                  far = weights / 1024 * tile_min(l->price, WEIGHTS_FAR) * shared;
    return tile_max(work, far) + tile_min(work, far) / 5 + weights / 1024 * tile_max(l->price - WEIGHTS_FAR, 0);
}

/* Half-cycles to pack `bytes` of weights, where that is no constant's. */
static int64_t packing_cost(const ConvLayout *l, const TileTarget *target, int64_t bytes)
{
    const int64_t l2 = target->l2 ? (int64_t)target->l2 : 512 << 10;
    return l->images ? bytes / 1024 * (bytes > l2 * 3 / 4 ? PACKED_FAR : PACKED) : 0;
}

typedef struct WinogradWork {
    const ConvShape *conv;
    int64_t images, parts;
    WinogradTile tile;
} WinogradWork;

/* `work` of so many units, which threads share, as if all had as much as who has most. */
static int64_t shared_work(int64_t work, int64_t units, int64_t parts)
{
    return work / units * tile_ceil(units, parts) * parts;
}

static int64_t winograd_work(const void *shape, const TileMachine *t, int64_t r, int64_t v)
{
    const WinogradWork *w = shape;
    const ConvShape *s = w->conv;
    const int64_t tiles = w->images * winograd_count(s, w->tile), blocks = tile_ceil(s->oc, PANEL * v),
                  panels = blocks * (PANEL / t->lanes);
    if (r > tiles)
        return TILE_NONE;
    const int64_t work = panels * winograd_points(s, w->tile)
        * (tiles / r * product_cost(t, r, v, s->ic) + product_cost(t, tiles % r, v, s->ic));
    return w->parts > 1 ? shared_work(work, tile_max(s->n, 1) * tile_ceil(tiles, r) * blocks, w->parts) : work;
}

static int64_t winograd_cost(const ConvLayout *l, WinogradTiles *w, const TileTarget *target)
{
    const ConvShape *s = &l->conv;
    const int64_t images = l->images ? l->images : 1, tiles = images * winograd_count(s, w->tile),
                  points = winograd_points(s, w->tile), l2 = target->l2 ? (int64_t)target->l2 : 512 << 10,
                  wide = 16 / (target->lanes ? target->lanes : 16);
    const TileChoice best = tile_choose(target, winograd_work, &(WinogradWork){s, images, 1, w->tile}),
                     tile = tile_choose(target, winograd_work, &(WinogradWork){s, images, l->parts, w->tile});
    w->mr = tile.many;
    w->mf = tile.few;
    w->nv = tile.nv;
    w->vp = s->ic % 1024 == 0 ? s->ic + PANEL : s->ic;
    const int64_t most = tile_max(w->mr, w->mf), room = l2 * 2 / 3 / 4 / points / (w->vp + PANEL * w->nv);
    w->tb = tile_max(most, tile_min(tile_ceil(tiles, most) * most, room / most * most));
    const int64_t blocks = tile_ceil(tiles, w->tb), weights = points * s->ic * s->oc * 4;
    const int64_t passes = s->kernel[1] == 1 || s->kernel[2] == 1 ? 1 : 2,
                  pixels = w->tile.h * w->tile.w; /* of a transform */
    const int64_t transforms = tiles * wide
        * (tile_ceil(s->ic, 16) * points * (3 * passes + 1)
            + tile_ceil(s->oc, 16) * (points * 2 * passes + pixels * 4));
    return work_beside(l, best.cost + transforms, weights) + packing_cost(l, target, weights)
        + (l->images ? tile_ceil(s->oc, 16) * s->ic * TRANSFORM : 0)
        + (weights > l2 * 3 / 4 ? (l->price ? blocks - 1 : blocks) * weights / AGAIN : 0);
}

static WinogradTiles winograd_by(const ConvLayout *shape, const TileTarget *target, WinogradTile tile, int64_t *cost)
{
    WinogradTiles w = {.tile = tile};
    *cost = winograd_cost(shape, &w, target);
    return w;
}

WinogradTiles winograd_tiles_by(const ConvLayout *shape, const TileTarget *target, WinogradTile tile)
{
    int64_t cost;
    return winograd_by(shape, target, tile, &cost);
}

WinogradTiles winograd_tiles(const ConvLayout *shape, const TileTarget *target)
{
    const ConvShape *s = &shape->conv;
    const bool fits = s->groups == 1 && s->kernel[0] == 1 && s->stride[1] == 1 && s->stride[2] == 1
        && s->dilation[1] == 1 && s->dilation[2] == 1 && s->in[0] == 1 && s->ic >= WINOGRAD_CHANNELS && s->oc >= PANEL
        && shape->xc == 1;
    const int64_t weights = s->kernel[1] * s->kernel[2] * s->ic * s->oc * 4,
                  l2 = target->l2 ? (int64_t)target->l2 : 512 << 10;
    const TapTiles taps = conv_taps_tiles(shape, target);
    const int64_t sums = (shape->images ? shape->images : 1)
        * tile_min(conv_tiles(shape, target).cost, taps.preferred ? taps.cost : INT64_MAX),
                  plain = work_beside(shape, sums, weights) + packing_cost(shape, target, weights)
        + (!shape->price && weights > l2 ? weights / AGAIN : 0);
    WinogradTile form[9];
    WinogradTiles best = {0};
    int64_t best_cost = INT64_MAX;
    for (int i = 0, n = fits ? winograd_forms(s, form) : 0; i < n; i++) {
        int64_t cost;
        if (shape->images && tile_max(form[i].h + s->kernel[1], form[i].w + s->kernel[2]) > LEARNING + 1)
            continue;
        const WinogradTiles w = winograd_by(shape, target, form[i], &cost);
        cost += winograd_points(s, form[i]) == 64 ? cost / 10 : 0; /* its larger errors want a reason */
        if (cost < best_cost) {
            best_cost = cost;
            best = w;
        }
    }
    best.preferred = best_cost < INT64_MAX && best_cost * 10 < plain * 9;
    return best;
}

size_t winograd_scratch_bytes(const ConvLayout *shape, const WinogradTiles *w)
{
    const int64_t points = winograd_points(&shape->conv, w->tile), most = tile_max(w->mr, w->mf),
                  tiles = tile_max(w->tb, most),
                  run = points + (w->tile.h + shape->conv.kernel[1] - 1) * (WINOGRAD_RUN - 1) * w->tile.w;
    return (size_t)(4
        * (tile_ceil(shape->conv.ic, 16) * 16 + run * 16 + w->tile.h * w->tile.w * PANEL * w->nv
            + points * (tiles * (PANEL * w->nv + w->vp) + 32)));
}
