// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution with the channels last, fp32, two-dimensional, one group, tap by tap: for windows many of whose taps lie
 * in the padding, as those of dilated convolutions and of small maps do.
 *
 * The idea: tap (kh, kw) meets the input for a rectangle of output pixels and for no other. It is a product [pixels of
 * the rectangle x IC] by [IC x OC], made by the register tile that every contraction uses and added to these pixels'
 * sums, so that no product with padding is computed and no padded image is made. Tiles go on from row to row of a
 * rectangle: its pixels are copied side by side, unless they lie so.
 *
 *   KERNEL            name of the function
 *   N IC OC           batch, input and output channels
 *   IH IW OH OW       input and output sizes;  KH KW kernel;  SH SW strides;  DH DW dilations;  PH PW padding before
 *   XN XH XW          strides of X in floats; channels are neighbours.   YC: floats of Y from pixel to pixel
 *   MR MF NV          tile of the products: MR or, on machines of 16 vector registers, MF pixels by NV vectors
 *   PITCH             floats from one copied pixel to the next, >= IC; if it is SW*XW, rectangles of whole rows may be
 *                     read where they lie
 *   TB                pixels of a rectangle taken at a time, so that they stay in cache while the panels pass
 *   RC                output rows whose sums are kept at a time
 *   PARTS SHARES      0: everything. Else `part` says which of SHARES shares of the output's channels
 *   IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, n, p, c)      as in conv.c
 *
 * W is packed by the compiler (pack_conv_w): [ceil(OC/NR)][KH][KW][IC][NR] with NR = NV*16, zeros past OC.
 * scratch: 64-byte aligned, conv_taps_scratch_bytes in tiles_taps.c.
 */
#include "taps.h"
// holes
#define KERNEL conv_taps
#define N 1
#define IC 64
#define OC 64
#define IH 28
#define IW 28
#define OH 28
#define OW 28
#define KH 3
#define KW 3
#define SH 1
#define SW 1
#define DH 12
#define DW 12
#define PH 12
#define PW 12
#define XN 50176
#define XH 1792
#define XW 64
#define YC 64
#define MR 14
#define MF 6
#define NV 2
#define PITCH 64
#define TB 56
#define RC 28
#define PARTS 0
#define SHARES 1
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, p, c) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { PANEL = NV * 16, WIDTH = NV * BURN_VF_LANES, PANELS = (OC + PANEL - 1) / PANEL,
           ROWS = BURN_MANY_REGISTERS ? MR : MF, FEW = ROWS < 4 ? ROWS : 4 };
    enum { IN_PLACE = PITCH == SW * XW && SH * XH == OW * SW * XW };
    float *const tile = (float *)(void *)scratch, *const copy = tile + ROWS * PANEL,
        *const sums = copy + (TB + FEW) * PITCH;
#if PARTS
    const ptrdiff_t first_panel = (ptrdiff_t)PANELS * part / SHARES,
        end_panel = (ptrdiff_t)PANELS * (part + 1) / SHARES;
#else
    const ptrdiff_t first_panel = 0, end_panel = PANELS;
#endif
    for (ptrdiff_t unit = 0; unit < (ptrdiff_t)N * OH && first_panel < end_panel;
         unit += unit % OH + RC < OH ? RC : OH - unit % OH) {
        const ptrdiff_t n = unit / OH, oh0 = unit % OH, oh1 = oh0 + RC < OH ? oh0 + RC : OH;
        memset(sums + first_panel * (RC * OW * PANEL), 0,
               (size_t)((end_panel - first_panel) * (RC * OW * PANEL)) * sizeof *sums);
        for (ptrdiff_t tap = 0; tap < KH * KW; tap++) {
            /* from an output pixel's place to what its tap reads */
            const ptrdiff_t high = tap / KW * DH - PH, left = tap % KW * DW - PW;
            const ptrdiff_t y0 = burn_taps_first(high, SH, oh0, oh1), y1 = burn_taps_first(high - IH, SH, y0, oh1);
            const ptrdiff_t x0 = burn_taps_first(left, SW, 0, OW), x1 = burn_taps_first(left - IW, SW, x0, OW);
            const ptrdiff_t wide = x1 - x0, pixels = (y1 - y0) * wide;
            if (pixels == 0)
                continue;
            const float *const x = X + n * XN + (y0 * SH + high) * XH + (x0 * SW + left) * XW;
            for (ptrdiff_t q0 = 0; q0 < pixels; q0 += TB) {
                const ptrdiff_t q1 = q0 + TB < pixels ? q0 + TB : pixels, count = q1 - q0,
                    lie = IN_PLACE && wide == OW ? count / ROWS * ROWS : 0;
                /* rows of the last tile that repeat the last pixel */
                const ptrdiff_t past = (FEW - (count - lie) % ROWS % FEW) % FEW;
                const ptrdiff_t tiles = count / ROWS + (count % ROWS + FEW - 1) / FEW;
                for (ptrdiff_t q = q0 + lie; q < q1 + past; q++) {
                    const ptrdiff_t p = q < q1 ? q : q1 - 1;
                    memcpy(copy + (q - q0 - lie) * PITCH, x + p / wide * SH * XH + p % wide * SW * XW, IC * sizeof *x);
                }
                for (ptrdiff_t panel = first_panel; panel < end_panel; panel++)
                    for (ptrdiff_t o = 0; o < PANEL; o += WIDTH) {
                        const float *const w = W + (panel * (KH * KW) + tap) * (IC * PANEL) + o;
                        /* what comes next: of the next panel, or of the next tap, or another part's */
                        const bool across = panel + 1 < end_panel, goes_on = tap + 1 < KH * KW;
                        const ptrdiff_t then = across ? panel + 1 : goes_on ? first_panel : end_panel % PANELS;
                        const float *const next = W + (then * (KH * KW) + (across ? tap : goes_on ? tap + 1 : 0))
                            * (IC * PANEL);
                        float *const to = sums + panel * (RC * OW * PANEL) + o;
                        /* its shares, a tile's each, come near evenly spread over the tiles */
                        ptrdiff_t due = 0, share = 0;
                        for (ptrdiff_t q = 0, done; q < count; q += done) {
                            const float *const from = q < lie ? x + (q0 + q) * PITCH : copy + (q - lie) * PITCH;
                            const bool turn = due <= 0;
                            const float *const ahead = turn ? next + share * (IC * 16) : w;
                            share += turn;
                            due += (turn ? tiles : 0) - PANEL / 16;
                            const bool few = count - q < ROWS;
                            burn_tile_at(ROWS, FEW, NV, NV, few, IC, from, PITCH, 1, w, PANEL, tile, WIDTH, 0, ahead);
                            done = few ? FEW : ROWS;
                            for (ptrdiff_t i = q; i < q + done && i < count; i++) {
                                float *const sum = to + (((q0 + i) / wide + y0 - oh0) * OW + x0 + (q0 + i) % wide)
                                    * PANEL;
                                BURN_LOOP
                                for (ptrdiff_t j = 0; j < WIDTH; j++)
                                    sum[j] += tile[(i - q) * WIDTH + j];
                            }
                        }
                    }
            }
        }
        for (ptrdiff_t p = oh0 * OW; p < oh1 * OW; p++)
            for (ptrdiff_t panel = first_panel; panel < end_panel; panel++) {
                const ptrdiff_t width = OC - panel * PANEL < PANEL ? OC - panel * PANEL : PANEL;
                const float *const sum = sums + (panel * (RC * OW) + p - oh0 * OW) * PANEL;
                float *const y = Y + (n * (OH * OW) + p) * YC + panel * PANEL;
                if (width < PANEL)
                    for (ptrdiff_t j = 0; j < width; j++)
                        y[j] = EPILOGUE(sum[j], n, p, (panel * PANEL + j));
                else {
                    BURN_LOOP
                    for (ptrdiff_t j = 0; j < PANEL; j++)
                        y[j] = EPILOGUE(sum[j], n, p, (panel * PANEL + j));
                }
            }
    }
}
