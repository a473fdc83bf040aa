// SPDX-License-Identifier: MIT OR Apache-2.0
/* What gen.c and kernels_bench.c must agree on for convolutions: how a case's variant lies in memory. */
#include "../../../compiler/schedule/cpu/tiles.h"

enum {
    PLANES = 1,   /* X is [n][c][d][h][w] */
    WIDE_X = 2,   /* X's pixels are 5 floats apart */
    WIDE_Y = 4,   /* Y's pixels are 3 floats apart */
    SHARED = 8    /* by 3 parts */
};

static inline ConvShape merged_of(ConvShape s)
{
    const int64_t by = conv_merge(s.groups, s.oc);
    s.groups /= by, s.ic *= by, s.oc *= by;
    return s;
}

static inline ConvLayout layout_of(ConvShape s, int variant)
{
    const int64_t c = s.groups * s.ic, pixels = s.in[0] * s.in[1] * s.in[2];
    ConvLayout l = {
        .conv = s, .xc = 1, .xw = c + (variant & WIDE_X ? 5 : 0), .yc = s.groups * s.oc + (variant & WIDE_Y ? 3 : 0)
    };
    l.xh = s.in[2] * l.xw, l.xd = s.in[1] * l.xh, l.xn = s.in[0] * l.xd;
    if (variant & PLANES)
        l.xc = pixels, l.xw = 1, l.xh = s.in[2], l.xd = s.in[1] * s.in[2], l.xn = c * pixels;
    l.parts = variant & SHARED ? 3 : 0;
    return l;
}

#define TILE(h, w) ((h) * 256 + (w) * 4096) /* Winograd's */

static inline WinogradTiles winograd_of(const ConvLayout *s, const TileTarget *target, int variant)
{
    return winograd_tiles_by(s, target, (WinogradTile){variant / 256 % 16, variant / 4096});
}
