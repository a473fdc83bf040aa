// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution KH x KW, stride 1, fp32, channels last, one group, by Winograd's F(TH x TW, KH x KW): a tile of TH*TW
 * output pixels takes
 * (TH+KH-1)*(TW+KW-1) products per pair of channels instead of KH*KW*TH*TW.  Y = A' [ (G w G') * (B' d B) ] A per tile,
 *                                                                            each axis with matrices of its own
 * size (winograd.h): TH+KH-1 and TW+KW-1 are 4, 6 or 8, or 1 on the axis of one tap of a window 1 x K or K x 1.
 *
 * The idea: some tiles at a time. Their input is transformed for all input channels (V[x][tile][IC]), and the POINTS
 * numbers of a tile are as many
 * independent products  M[x] = V[x] U[x]  of [tiles x IC] by [IC x OC], made by the register tile that every
 *                       contraction uses, NR output channels
 * at a time, which are transformed back while they are in cache. Vectors run over channels everywhere, so that
 * transforms are plain sums of vectors; pixels outside of the input are read from a line of zeros.
 *
 *   KERNEL            name of the function
 *   N IC OC           batch, input channels (at least 8) and output channels (at least 16)
 *   IH IW OH OW       input and output sizes;  PH PW padding before
 *   XN XH XW          strides of X in floats; channels are neighbours.   YC: floats of Y from pixel to pixel
 *   KH KW TH TW       window and tile
 *   MR MF NV          tile of the products: MR or, on machines of 16 vector registers, MF tiles by NV vectors
 *   TB                tiles in a block;  TOGETHER: images, of N, whose tiles go on from one to the next
 *   VP                floats from tile to tile of V, >= IC and no multiple of 1024
 *   PARTS SHARES PART_PANELS PART_TALL IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, n, p, c)     as in conv.c, with
 *                     tiles for rows
 *   KEEPS             1: scratch begins with 64 bytes more, of which the first ptrdiff_t is 0 before a worker's first
 *                     part: the transformed tiles stay for its next one
 *
 * W is transformed and packed by the compiler (pack_winograd_w): [ceil(OC/NR)][POINTS][IC][NR] with NR = NV*16, zeros
 * past OC. scratch: 64-byte aligned, winograd_scratch_bytes in tiles_winograd.c.
 * Error in units of 1e-7 for random normal numbers, root mean square relative to the outputs' and, in brackets, the
 * largest of 3,000 relative to the largest output (about four times their root mean square), for 64, 256 and 512 input
 * channels; `plain` is conv.c's sum:
 *   3x3  plain  4  6  7 (4 4 4)    F(2x2)  3  5  7 (1 3 4)    F(4x4)  17 31 45 (19 48 65)    F(6x6)  32 59 83 (50 65
 *        88)    F(2x4)  7 12 18 (5 8 16)
 *   5x5  plain  7  6  9 (7 3 5)    F(2x2) 19 36 51 (18 28 43)  F(4x4)  32 58 81 (22 35 63)
 *   1x7  plain  4  7 10 (3 5 12)   F(2)     8 15 21 (5 10 11)
 *   1x3  plain  2  5  7 (2 4 4)    F(2)     2  4  5 (1 2 3)     F(4)    5 10 13 (5 9 15)    F(6)  7 13 18 (8 15 14)
 */
#include "winograd.h"
// holes
#define KERNEL winograd
#define N 1
#define IC 64
#define OC 64
#define IH 56
#define IW 56
#define OH 56
#define OW 56
#define PH 1
#define PW 1
#define XN 200704
#define XH 3584
#define XW 64
#define YC 64
#define KH 3
#define KW 3
#define TH 4
#define TW 4
#define MR 14
#define MF 6
#define NV 2
#define TB 56
#define TOGETHER 1
#define VP 64
#define PARTS 0
#define SHARES 1
#define PART_PANELS 1
#define PART_TALL 1
#define KEEPS 0
#define INPUTS winograd_inputs
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, p, c) (acc)
// end holes

/* Tiles t0 to t1 of images from X on, through B'. A function of its own: its pointers would take registers of the
 * products. image, down, right: XN, XH, XW, which kernels that share the code have as arguments. */
BURN_OUTLINE void INPUTS(const float *restrict X, ptrdiff_t image, ptrdiff_t down, ptrdiff_t right, float *restrict v,
                         ptrdiff_t step, const float *zeros, float *restrict half, ptrdiff_t t0, ptrdiff_t t1)
{
    enum { SIZE_H = TH + KH - 1, SIZE_W = TW + KW - 1, ACROSS = (OW + TW - 1) / TW,
           IMAGE = (OH + TH - 1) / TH * ACROSS };
    for (ptrdiff_t t = t0, run; t < t1; t += run) { /* along a row of tiles */
        const float *row[SIZE_H];
        ptrdiff_t apart[SIZE_H];
        const ptrdiff_t n = t / IMAGE, top = t % IMAGE / ACROSS * TH - PH, left = t % ACROSS * TW - PW;
        run = ACROSS - t % ACROSS < t1 - t ? ACROSS - t % ACROSS : t1 - t;
        run = run < BURN_WINO_RUN ? run : BURN_WINO_RUN;
        for (ptrdiff_t i = 0; i < SIZE_H; i++) {
            const bool inside = top + i >= 0 && top + i < IH;
            row[i] = inside ? X + n * image + (top + i) * down : zeros;
            apart[i] = inside ? right : 0;
        }
        burn_wino_in(SIZE_H, SIZE_W, TW, run, v + (t - t0) * VP, VP, step, row, apart, left, IW, zeros, IC, half);
    }
}

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { SIZE_H = TH + KH - 1, SIZE_W = TW + KW - 1, POINTS = SIZE_H * SIZE_W, PANEL = NV * 16,
           WIDTH = NV * BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? MR : MF };
    enum { PANELS = (OC + PANEL - 1) / PANEL, ACROSS = (OW + TW - 1) / TW, IMAGE = (OH + TH - 1) / TH * ACROSS,
           TILES = TOGETHER * IMAGE, TEAMS = (TILES + ROWS - 1) / ROWS, BLOCK = TB < ROWS ? 1 : TB / ROWS };
    enum { V_STEP = BLOCK * ROWS * VP + 16, M_STEP = BLOCK * ROWS * PANEL + 16 };
#if KEEPS
    ptrdiff_t *const kept = (ptrdiff_t *)(void *)scratch; /* the unit that v begins with, and 1 */
    scratch += 64;
#endif
    float *const zeros = (float *)(void *)scratch, *const half = zeros + (IC + 15) / 16 * 16,
        *const out = half + SIZE_H * ((BURN_WINO_RUN - 1) * TW + SIZE_W) * 16;
    float *const m = out + TH * TW * PANEL, *const v = m + (ptrdiff_t)POINTS * M_STEP;
    memset(zeros, 0, IC * sizeof *zeros);
    const ptrdiff_t units = (ptrdiff_t)(N / TOGETHER) * TEAMS; /* a team is as many tiles as a register tile has rows */
#if PARTS
    const ptrdiff_t down_shares = SHARES / PART_PANELS;
    const ptrdiff_t down = burn_part_down(part, PART_PANELS, PART_TALL),
        across = burn_part_across(part, PART_PANELS, PART_TALL);
    const ptrdiff_t first_unit = units * down / down_shares, end_unit = units * (down + 1) / down_shares,
        first_panel = (ptrdiff_t)PANELS * across / PART_PANELS,
        end_panel = (ptrdiff_t)PANELS * (across + 1) / PART_PANELS;
#else
    const ptrdiff_t first_unit = 0, end_unit = units, first_panel = 0, end_panel = PANELS;
#endif
    for (ptrdiff_t unit = first_unit, block; unit < end_unit; unit += block) {
        const ptrdiff_t n0 = unit / TEAMS * TOGETHER, team = unit % TEAMS, t0 = team * ROWS;
        block = TEAMS - team < BLOCK ? TEAMS - team : BLOCK;
        block = end_unit - unit < block ? end_unit - unit : block;
        const ptrdiff_t t1 = t0 + block * ROWS < TILES ? t0 + block * ROWS : TILES;
#if KEEPS
        if (first_panel < end_panel && *kept != unit + 1) {
            INPUTS(X + n0 * XN, XN, XH, XW, v, V_STEP, zeros, half, t0, t1);
            *kept = unit + 1;
        }
#else
        if (first_panel < end_panel)
            INPUTS(X + n0 * XN, XN, XH, XW, v, V_STEP, zeros, half, t0, t1);
#endif
        for (ptrdiff_t panel = first_panel; panel < end_panel; panel++) {
            const ptrdiff_t width = OC - panel * PANEL < PANEL ? OC - panel * PANEL : PANEL;
            for (ptrdiff_t i = 0; i < POINTS; i++)
                for (ptrdiff_t o = 0; o < PANEL; o += WIDTH) {
                    const float *const w = W + (panel * POINTS + i) * (ptrdiff_t)(IC * PANEL) + o;
                    for (ptrdiff_t t = 0; t < t1 - t0; t += ROWS)
                        burn_tile_at(ROWS, TILES % ROWS, NV, NV, t0 + t + ROWS > TILES, IC, v + i * V_STEP + t * VP, VP,
                                     1, w, PANEL, m + i * M_STEP + t * PANEL + o, PANEL, 0,
                                     t < ROWS * (PANEL / 16) ? w + (IC * PANEL) + t / ROWS * (IC * 16) : w);
                }
            for (ptrdiff_t t = t0; t < t1; t++) {
                const ptrdiff_t n = n0 + t / IMAGE, oh = t % IMAGE / ACROSS * TH, ow = t % ACROSS * TW;
                for (ptrdiff_t j = 0; j < PANEL; j += 16)
                    burn_wino_out(SIZE_H, SIZE_W, TH, TW, out + j, PANEL, m + (t - t0) * PANEL + j, M_STEP, half);
                for (ptrdiff_t r = 0; r < TH && oh + r < OH; r++)
                    for (ptrdiff_t k = 0; k < TW && ow + k < OW; k++) {
                        const ptrdiff_t p = (oh + r) * OW + ow + k;
                        const float *const from = out + (r * TW + k) * PANEL;
                        float *const y = Y + (n * (OH * OW) + p) * YC + panel * PANEL;
                        if (width < PANEL)
                            for (ptrdiff_t j = 0; j < width; j++)
                                y[j] = EPILOGUE(from[j], n, p, (panel * PANEL + j));
                        else {
                            BURN_LOOP
                            for (ptrdiff_t j = 0; j < PANEL; j++)
                                y[j] = EPILOGUE(from[j], n, p, (panel * PANEL + j));
                        }
                    }
            }
        }
    }
}
