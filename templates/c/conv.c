// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution with the channels last, fp32, any kernel, stride, dilation, padding and groups.
 * Y[n][p][c] = EPILOGUE(sum over the taps (kd, kh, kw) and channels of X * W), p an output pixel.
 *
 * The idea: register tiles of ROWS output pixels by NV vectors of output channels. A pixel's floats are scalars of the
 * product, and as a tap row is one run of KW*IC floats, a tile sums over KD*KH runs; the weights lie in panels in just
 * this order. Pixels of a tile are neighbours in a row, or, where rows are short, some whole rows. Where there is
 * padding (or XC is not 1), what RC output rows (or CC columns of one row) need is first copied into a small padded
 * image; else X is read where it lies. A panel passes over the tiles of the whole chunk, so that it is read from far
 * memory once.
 *
 *   KERNEL              name of the function
 *   N G IC OC           batch, groups, input and output channels of one group
 *   OC_EDGE             OC modulo NV*16, but not 0
 *   ID IH IW OD OH OW   input and output sizes (1-D and 2-D: leading sizes 1)
 *   KD KH KW            kernel;  SD SH SW strides;  DD DH DW dilations;  PD PH PW padding before
 *   XN XD XH XW XC      strides of X in floats, XC between channels
 *   YC                  floats of Y from pixel to pixel, >= G*OC
 *   MR MF NV            tile: MR pixels on machines of 32 vector registers, MF on those of 16, both <= 16 and, if more
 *                       than OW, a multiple of OW; NV <= 4
 *   IMAGE               1: through a padded image; 0: in place: XC is 1 and no column is read outside of X; nor is any
 *                       row, unless KD is 1 and neither MR nor MF exceeds OW
 *   PIXEL               floats from pixel to pixel of the image, >= IC
 *   RUNS                1 where the KW pixels of a tap row lie side by side, else KW
 *   KB                  tap rows (of KD*KH) summed at a time, so that a panel's part stays in cache
 *   RC CC               output rows and columns in a chunk; a CC < OW wants RC 1 and MR, MF <= OW, and is taken in
 *                       whole tiles
 *   PARTS SHARES PART_PANELS    PARTS 0: everything. Else `part` says which of SHARES shares: SHARES / PART_PANELS
 *                       of the output's rows, each in PART_PANELS of its channels
 *   PART_TALL         shares are numbered as in blocks.h, in blocks of so many of their rows
 *   STRIP               1: output pixels strip..strip_end-1, whole rows; X, dense, and Y begin at pixels x_at and y_at
 *                       of theirs; ID and OD are 1, MR and MF at most OW, and PARTS is 0 then
 *   IDENTITY_EPILOGUE   1: EPILOGUE(acc, ...) is acc
 *   EPILOGUE_PARAMS     text after the parameter Y: empty or `, const float *restrict e_bias`; no name of a local here
 *   EPILOGUE(acc, n, p, c)   the value stored; p: output pixel (od*OH + oh)*OW + ow; c: output channel counted over all
 *                            groups
 *
 * W is packed by the compiler (pack_conv_w): [group][ceil(OC/NR)][KD][KH][KW][IC][NR] with NR = NV*16, zeros past OC.
 * scratch: 64-byte aligned, conv_scratch_bytes in tiles_conv.c. Each output element is stored once, after all that it
 * reads was read.
 */
#include "taps.h"
// holes
#define KERNEL conv
#define N 1
#define G 1
#define IC 64
#define OC 64
#define OC_EDGE 32
#define ID 1
#define IH 56
#define IW 56
#define OD 1
#define OH 56
#define OW 56
#define KD 1
#define KH 3
#define KW 3
#define SD 1
#define SH 1
#define SW 1
#define DD 1
#define DH 1
#define DW 1
#define PD 0
#define PH 1
#define PW 1
#define XN 200704
#define XD 200704
#define XH 3584
#define XW 64
#define XC 1
#define YC 64
#define MR 14
#define MF 6
#define NV 2
#define IMAGE 1
#define PIXEL 64
#define RUNS 1
#define KB 3
#define RC 8
#define CC 56
#define PARTS 0
#define SHARES 1
#define PART_PANELS 1
#define PART_TALL 1
#define STRIP 0
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, p, c) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
#if STRIP
                               unsigned char *scratch, ptrdiff_t strip, ptrdiff_t strip_end, ptrdiff_t x_at,
                               ptrdiff_t y_at)
#elif PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { PANEL = NV * 16, WIDTH = NV * BURN_VF_LANES, TILE = BURN_MANY_REGISTERS ? MR : MF,
           TALL = TILE > OW ? TILE / OW : 1 };
    enum { ALONG = TALL > 1 ? OW : TILE, COUNT = ALONG * TALL, COUNT_EDGE = TALL > 1 ? OH % TALL * OW : OW % TILE };
    enum { COLUMNS_EDGE = OC_EDGE % WIDTH, VECTORS_EDGE = (COLUMNS_EDGE + BURN_VF_LANES - 1) / BURN_VF_LANES,
           TAP_ROWS = KD * KH };
    enum { CUT = CC < OW, COLUMNS = CUT ? (CC > TILE ? CC / TILE * TILE : TILE) : OW,
           ACROSS = (OW + COLUMNS - 1) / COLUMNS };
    enum { DOWN = (OH + TALL - 1) / TALL, SUMS = KB < TAP_ROWS, SKIP = KD == 1 && TALL == 1 };
    const ptrdiff_t panels = (OC + WIDTH - 1) / WIDTH, most = CUT || RC < TALL ? 1 : RC / TALL;
    float *const sums = (float *)(void *)scratch;
#if IMAGE
    enum { IMAGE_WIDTH = (COLUMNS - 1) * SW + (KW - 1) * DW + 1 };
    const ptrdiff_t row = IMAGE_WIDTH * PIXEL, slice = ((most * TALL - 1) * SH + (KH - 1) * DH + 1) * row;
    float *const image = sums + (SUMS ? most * TALL * (COLUMNS + TILE) : TILE) * PANEL;
    const ptrdiff_t size[3] = {ID, IH, IW}, stride[3] = {XD, XH, XW};
    const burn_taps taps = {KH, RUNS, KW / RUNS * IC, slice, DH * row, DW * PIXEL};
    const ptrdiff_t beside = SW * PIXEL, below = SH * row;
#else
    const burn_taps taps = {KH, RUNS, KW / RUNS * IC, DD * XD, DH * XH, DW * XW};
    const ptrdiff_t beside = SW * XW, below = SH * XH;
#endif
#if !STRIP
    const ptrdiff_t units = (ptrdiff_t)N * OD * DOWN * ACROSS, x_at = 0, y_at = 0;
#endif
#if STRIP
    const ptrdiff_t first_unit = strip / OW * ACROSS, end_unit = strip_end / OW * ACROSS, first_panel = 0,
        end_panel = G * panels;
#elif PARTS
    const ptrdiff_t down_shares = SHARES / PART_PANELS;
    const ptrdiff_t down = burn_part_down(part, PART_PANELS, PART_TALL),
        across = burn_part_across(part, PART_PANELS, PART_TALL);
    const ptrdiff_t first_unit = units * down / down_shares, end_unit = units * (down + 1) / down_shares,
        first_panel = G * panels * across / PART_PANELS,
        end_panel = G * panels * (across + 1) / PART_PANELS;
#else
    const ptrdiff_t first_unit = 0, end_unit = units, first_panel = 0, end_panel = G * panels;
#endif
    for (ptrdiff_t unit = first_unit, chunk; unit < end_unit; unit += chunk) {
        const ptrdiff_t n = unit / (DOWN * ACROSS) / OD, od = unit / (DOWN * ACROSS) % OD;
        const ptrdiff_t oh0 = unit / ACROSS % DOWN * TALL, ow0 = unit % ACROSS * COLUMNS;
        const ptrdiff_t columns = OW - ow0 < COLUMNS ? OW - ow0 : COLUMNS, left = DOWN - oh0 / TALL;
        chunk = left < most ? left : most;
        chunk = end_unit - unit < chunk ? end_unit - unit : chunk;
        for (ptrdiff_t panel = first_panel; panel < end_panel; panel++) {
            const ptrdiff_t g = panel / panels, o = panel % panels * WIDTH;
            const float *const weights = W + ((g * ((OC + PANEL - 1) / PANEL) + o / PANEL) * TAP_ROWS * KW * IC) * PANEL
                + o % PANEL;
            const bool edge = COLUMNS_EDGE > 0 && o + WIDTH > OC, direct = IDENTITY_EPILOGUE && !edge && !SUMS;
            const float *const x = X + n * XN - x_at * XW + g * IC * XC;
#if IMAGE
            if (panel == first_panel || o == 0)
                burn_taps_image(image, slice, row, PIXEL, (columns - 1) * SW + (KW - 1) * DW + 1, x, size, stride, XC,
                                IC, od * SD - PD, DD, KD,
                                oh0 * SH - PH, (chunk * TALL - 1) * SH + (KH - 1) * DH + 1, ow0 * SW - PW);
            const float *const corner = image;
#else
            const float *const corner = x + (od * SD - PD) * XD + (oh0 * SH - PH) * XH + (ow0 * SW - PW) * XW;
#endif
            for (ptrdiff_t t0 = 0; t0 < TAP_ROWS; t0 += KB) {
                const ptrdiff_t t1 = t0 + KB < TAP_ROWS ? t0 + KB : TAP_ROWS;
                /* the next panel's shares, a tile's each, come near evenly spread over the tiles */
                const ptrdiff_t tiles = chunk * ((columns + ALONG - 1) / ALONG);
                ptrdiff_t done = 0, due = 0, share = 0;
                for (ptrdiff_t r = 0; r < chunk * TALL; r += TALL) {
                    /* tap rows above and from below the input on */
                    const ptrdiff_t oh = oh0 + r, high = PH - oh * SH, low = IH + PH - oh * SH;
                    const ptrdiff_t above = high > 0 ? (high + DH - 1) / DH : 0,
                        inside = low > 0 ? (low + DH - 1) / DH : 0;
                    const ptrdiff_t first = SKIP && above > t0 ? above : t0, last = SKIP && inside < t1 ? inside : t1;
                    for (ptrdiff_t w = 0; w < columns; w += ALONG, done++) {
                        const bool at_edge = TALL > 1 ? oh + TALL > OH : w + ow0 + TILE > OW;
                        const int count = at_edge ? COUNT_EDGE : COUNT;
                        const ptrdiff_t p = (od * OH + oh) * OW + ow0 + w;
                        float *const y = Y + (n * (OD * OH * OW) + p - y_at) * YC + g * OC + o,
                            *const tile = direct ? y : SUMS ? sums + done * TILE * WIDTH : sums;
                        const float *const b = weights + first * KW * IC * PANEL;
                        const bool turn = due <= 0;
                        const float *const ahead = turn
                            ? weights + (TAP_ROWS * KW * IC * (PANEL / 16 + share) + t0 * KW * IC) * 16 : b;
                        share += turn;
                        due += (turn ? tiles : 0) - PANEL / 16;
                        burn_taps_tile_at(COUNT, COUNT_EDGE, NV, VECTORS_EDGE, ALONG, at_edge, edge, first, last, taps,
                                          corner + r * below + w * beside, beside, below,
                                          b, PANEL, tile, direct ? YC : WIDTH, t0 > 0, ahead);
                        for (int i = 0; i < count && !direct && t1 == TAP_ROWS; i++)
                            if (edge) {
                                BURN_LOOP
                                for (ptrdiff_t j = 0; j < COLUMNS_EDGE; j++)
                                    y[i * YC + j] = EPILOGUE(tile[i * WIDTH + j], n, (p + i), (g * OC + o + j));
                            } else {
                                BURN_LOOP
                                for (ptrdiff_t j = 0; j < WIDTH; j++)
                                    y[i * YC + j] = EPILOGUE(tile[i * WIDTH + j], n, (p + i), (g * OC + o + j));
                            }
                    }
                }
            }
        }
    }
}
