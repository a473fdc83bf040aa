// SPDX-License-Identifier: MIT OR Apache-2.0
/* Block sizes for the contraction templates (templates/c), from a shape and a machine. All sizes are in elements. */
#ifndef BURNCC_SCHEDULE_TILES_H
#define BURNCC_SCHEDULE_TILES_H
#include <stddef.h>
#include <stdint.h>

/* lanes: floats in a vector, 0 if the generated file decides by its compiler's flags (generic target).
 * vector_registers: 32, 16 or fewer; unfused: a multiply-add is two instructions; both ignored when lanes is 0. Cache
 * sizes in bytes, of one core; 0 where there is no such cache or it is not known. */
typedef struct TileTarget {
    int lanes, vector_registers, unfused;
    size_t l1, l2, l3;
} TileTarget;

extern const TileTarget TILE_GENERIC;

/* Strides as the holes of gemm.c; b_packed: B is constant and will be packed by pack_gemm_b with nr = 16*nv;
 * open_m, open_n: m, n is the most it may be. Where n is open panels are copied, whole past its end, so that no tile
 * needs an edge of its own. */
typedef struct GemmShape {
    int64_t batch, m, n, k, am, ak, bk, bn;
    int b_packed, open_m, open_n;
    int shared; /* by so many workers that none should copy rows which another copies, too */
    int64_t most_rows; /* of a tile; 0: as many as pay */
} GemmShape;

typedef struct GemmTiles {
    int mr, nv, pack_a, pack_b;
    int64_t kc, nc, mc;
} GemmTiles;

GemmTiles gemm_tiles(const GemmShape *shape, const TileTarget *target);
/* Smaller blocks, of the same sums in the same order, until copies of operands take no more than so many bytes, or as
 * few as they can. */
void gemm_within(const GemmShape *shape, int64_t bytes, GemmTiles *tiles);
size_t gemm_scratch_bytes(const GemmShape *shape, const GemmTiles *tiles);

/* Index 0, 1, 2 = d, h, w. ic and oc are of one group. */
typedef struct ConvShape {
    int64_t n, groups, ic, oc, in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
} ConvShape;

enum { WEIGHTS_FAR = 2 * 1024 / 7 }; /* half-cycles that 1024 bytes take from far memory: 3.5 bytes in each */

/* A convolution with the channels last, and where it lies (tiles_conv.c). Strides of X in floats, yc of Y from
 * pixel to pixel; parts: how many threads share the work, 0 or 1: none; price: half-cycles that 1024 bytes of
 * weights cost: 0 where they are near, WEIGHTS_FAR where they come from far memory, beside the work with them, and
 * what is above it where room is short; images: 0 where the compiler packs the weights, else they are packed in
 * every run, for so many images. groups, ic and oc are those after conv_merge. */
typedef struct ConvLayout {
    ConvShape conv;
    int64_t xn, xd, xh, xw, xc, yc;
    int parts, price;
    int64_t images;
} ConvLayout;

/* Holes of conv.c by these names in capitals; weights packed by pack_conv_w with nr = 16*nv. cost: estimate,
 * half-cycles. */
typedef struct ConvTiles {
    int mr, mf, nv, image;
    int64_t pixel, kb, rc, cc, cost;
} ConvTiles;

ConvTiles conv_tiles(const ConvLayout *shape, const TileTarget *target);
/* Smaller chunks, of the same sums in the same order, that copy no more than so many bytes, or as few as they can. */
void conv_within(const ConvLayout *shape, int64_t bytes, ConvTiles *tiles);
size_t conv_scratch_bytes(const ConvLayout *shape, const ConvTiles *tiles);

/* conv_taps.c: two-dimensional, one group, channels last; weights packed by pack_conv_w with nr = 16*nv. cost: as
 * ConvTiles', and comparable with it. `preferred`: clearly less work than conv.c's. */
typedef struct TapTiles {
    int mr, mf, nv, preferred;
    int64_t pitch, tb, rc, cost;
} TapTiles;

TapTiles conv_taps_tiles(const ConvLayout *shape, const TileTarget *target);
size_t conv_taps_scratch_bytes(const ConvLayout *shape, const TapTiles *tiles);

/* conv_pairs.c: two-dimensional, one group, at most 8 output channels, which fill half of a vector at most; weights
 * packed by pack_conv_pairs_w. `preferred`: clearly less work than conv.c's. */
enum { PAIRS_CHANNELS = 8 };

typedef struct PairTiles {
    int mr, preferred;
    int64_t rc;
} PairTiles;

PairTiles conv_pairs_tiles(const ConvLayout *shape, const TileTarget *target);
size_t conv_pairs_scratch_bytes(const ConvLayout *shape, const PairTiles *tiles);

/* How many neighbouring groups to make one of, so that their output channels fill a vector; each then has that
 * many times the channels. */
int64_t conv_merge(int64_t groups, int64_t oc);

/* conv_dw.c: a shape with ic = 1, oc = the multiplier and groups = the channels; weights packed by pack_conv_dw_w. */
typedef struct ConvDwTiles {
    int br, bf, image;
    int64_t cb, rc;
} ConvDwTiles;

ConvDwTiles conv_dw_tiles(const ConvLayout *shape, const TileTarget *target);
size_t conv_dw_scratch_bytes(const ConvLayout *shape, const ConvDwTiles *tiles);

/* conv_planes.c: the same shapes with the channels first, weights as they are. */
typedef struct ConvPlanesTiles {
    int br, bf;
    int64_t rc;
} ConvPlanesTiles;

/* May conv_planes.c read rows where they lie? */
int conv_planes_direct(const ConvLayout *layout);
ConvPlanesTiles conv_planes_tiles(const ConvShape *shape, const TileTarget *target);
size_t conv_planes_scratch_bytes(const ConvShape *shape, const ConvPlanesTiles *tiles);

/* winograd.c: stride 1, one group, at least 8 input channels and 16 output channels. tile: output pixels of one, down
 * and across; weights packed by pack_winograd_w with nr = 16*nv. `preferred`: clearly less work than conv.c's and
 * conv_taps.c's, the transforms and the larger weights counted. */
enum { WINOGRAD_CHANNELS = 8 };

typedef struct WinogradTile {
    int64_t h, w;
} WinogradTile;

typedef struct WinogradTiles {
    WinogradTile tile;
    int mr, mf, nv, preferred;
    int64_t tb, vp;
} WinogradTiles;

int winograd_forms(const ConvShape *shape, WinogradTile form[9]); /* those that the window has; how many */
int64_t winograd_count(const ConvShape *shape, WinogradTile form); /* tiles of an image */
int64_t winograd_points(const ConvShape *shape, WinogradTile form); /* products of a tile, and matrices of weights */
WinogradTiles winograd_tiles(const ConvLayout *shape, const TileTarget *target);
WinogradTiles winograd_tiles_by(
    const ConvLayout *shape, const TileTarget *target, WinogradTile form); /* for this form */
size_t winograd_scratch_bytes(const ConvLayout *shape, const WinogradTiles *tiles);

/* gemv.c: panels of nv vectors of 16, `side` of them side by side. `near`: all weights that a run reads between
 * two reads of this matrix fit a cache of the core, which gives most to one long line; far memory gives most to
 * several. Weights packed by pack_gemm_b with nr = 16*nv. nv 0: of GEMV_FEW columns at most, vectors along k;
 * weights packed by pack_gemv_w. */
typedef struct GemvTiles {
    int nv, side;
} GemvTiles;

enum { GEMV_SIDE = 8, GEMV_VECTORS = 8, GEMV_FEW = 12 }; /* the most */
GemvTiles gemv_tiles(int64_t n, int64_t k, const TileTarget *target, int near);

/* Register tiles of the templates of low precision: gemm_i8.c and gemm_low.c. */
typedef struct LowTiles {
    int mr, nv;
} LowTiles;

/* attention.c: direct: a few queries; mr rows of a tile, kb keys in a block. */
typedef struct AttentionTiles {
    int direct, mr;
    int64_t kb;
} AttentionTiles;

/* NV of gemv_low.c for n columns: no panel is wider than the matrix. */
static inline int64_t gemv_nv(int64_t n) { return n < 48 ? (n + 15) / 16 : 4; }

#endif
