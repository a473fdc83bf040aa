// SPDX-License-Identifier: MIT OR Apache-2.0
/* Depthwise convolution with the channels last, fp32: G channels of input, each with MULT output channels of its own
 * (MULT 1 is the usual one). Y[n][p][g*MULT + m] = EPILOGUE(sum over the taps (kd, kh, kw) of W * X[n][...][g]).
 *
 * The idea: vectors run over channels. A block of BLOCK neighbours of an output row is computed together, so that a
 * weight is loaded once for the block, and a pixel once for all the windows that it is in. Borders cost nothing: the
 * first and the last block of a row are compiled apart, with the taps that lie outside left out; rows that lie outside
 * are left out of the loop over kh. CB channels go through the whole map at a time, so that input rows are in L1 when
 * the next output row reads them again. The last block and the last vector step back and compute some outputs twice,
 * the same both times.
 *
 *   KERNEL              name of the function
 *   N G MULT            batch, channels, output channels per channel
 *   ID IH IW OD OH OW  KD KH KW  SD SH SW  DD DH DW  PD PH PW  XN XD XH XW XC  YC   as in conv.c
 *   BR BF               columns (or vectors of columns, see FOLD) in a block, on machines of 32 vector registers and of
 *                       16; both <= 16 and, without IMAGE, <= OW
 *   CB                  channels in a block, a multiple of 16; with IMAGE all
 *   IMAGE               1: through a padded image of RC output rows, for XC != 1, G < 16, or where a block that is
 *                       neither the first nor the last of a row reads outside. There a vector of more lanes than
 *                       channels holds FOLD neighbouring pixels if SW is 1
 *   PARTS SHARES        PARTS 0: everything. Else `part` says which of SHARES shares: of the rows, as the products
 *                       before and after share their pixels out, so that most of what a core reads is what it wrote; of
 *                       the rows of all channel blocks where there are few
 *   STRIP               1: output pixels strip..strip_end-1, whole rows; X, dense, and Y begin at pixels x_at and y_at
 *                       of theirs; ID and OD are 1 and PARTS is 0 then
 *   EPILOGUE_PARAMS EPILOGUE(acc, n, p, c)   as in conv.c; nothing that EPILOGUE reads may share memory with Y
 *
 * W is packed by the compiler (pack_conv_dw_w): [m][kd][kh][kw][G up to a multiple of 16], past G zeros, or
 * the channels again where 16 is a multiple of G.
 * scratch: 64-byte aligned, conv_dw_scratch_bytes in tiles_conv.c.
 */
#include "taps.h"
// holes
#define KERNEL conv_dw
#define N 1
#define G 144
#define MULT 1
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
#define XN 451584
#define XD 451584
#define XH 8064
#define XW 144
#define XC 1
#define YC 144
#define BR 14
#define BF 8
#define CB 48
#define IMAGE 0
#define RC 1
#define PARTS 0
#define SHARES 1
#define STRIP 0
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
    enum { LANES = BURN_VF_LANES, BLOCK = BURN_MANY_REGISTERS ? BR : BF, FILLED = (G + 15) / 16 * 16,
           C_BLOCKS = (G + CB - 1) / CB };
    enum { FOLD = IMAGE && SW == 1 && MULT == 1 && G < LANES && LANES % G == 0 ? LANES / G : 1, COLUMNS = BLOCK * FOLD,
           BLOCKS = (OW + COLUMNS - 1) / COLUMNS };
    float *const tile = (float *)(void *)scratch;
#if IMAGE
    enum { WIDE = (OW - 1) * SW + (KW - 1) * DW + 1, ROW = WIDE * G,
           SLICE = ((RC - 1) * SH + (KH - 1) * DH + 1) * ROW };
    float *const image = tile + 16 * LANES;
    const ptrdiff_t size[3] = {ID, IH, IW}, stride[3] = {XD, XH, XW};
    const burn_taps_depth taps = {KH, KW, 0, 0, 0, 0, FOLD * SW * G, DW * G, DH * ROW, SLICE, FILLED};
    const bool inside = true;
    memset(image + KD * SLICE, 0, (COLUMNS * SW * G + 16) * sizeof *image); /* what is read past the last row */
#else
    const burn_taps_depth taps = {KH, KW, SW, DW, PW, IW, SW * XW, DW * XW, DH * XH, DD * XD, FILLED};
    const bool inside = PW == 0 && (OW - 1) * SW + (KW - 1) * DW < IW;
#endif
#if !STRIP
    const ptrdiff_t x_at = 0, y_at = 0;
#endif
#if STRIP
    const ptrdiff_t row0 = strip / OW, rows = strip_end / OW - row0, first = 0, end = C_BLOCKS * rows;
#elif PARTS && OD * OH >= PARTS
    const ptrdiff_t all = (ptrdiff_t)N * OD * OH, row0 = all * part / SHARES, rows = all * (part + 1) / SHARES - row0,
        first = 0, end = C_BLOCKS * rows;
#elif PARTS
    const ptrdiff_t row0 = 0, rows = (ptrdiff_t)N * OD * OH;
    const ptrdiff_t first = C_BLOCKS * rows * part / SHARES, end = C_BLOCKS * rows * (part + 1) / SHARES;
#else
    const ptrdiff_t rows = (ptrdiff_t)N * OD * OH;
    const ptrdiff_t first = 0, end = C_BLOCKS * rows;
#endif
#if IMAGE
    ptrdiff_t filled = first, image_row = 0; /* up to which unit the image is; this unit's row of it */
#endif
    for (ptrdiff_t unit = first; unit < end; unit++) {
        const ptrdiff_t c_block = unit / rows * CB, c_end = c_block + CB < G ? c_block + CB : G;
#if STRIP || PARTS
        const ptrdiff_t row = row0 + unit % rows, n = row / (OD * OH), od = row / OH % OD, oh = row % OH;
#else
        const ptrdiff_t row = unit % rows, n = row / (OD * OH), od = row / OH % OD, oh = row % OH;
#endif
        const ptrdiff_t zd = od * SD - PD, zh = oh * SH - PH;
        const float *const x = X + n * XN - x_at * XW;
#if IMAGE
        const ptrdiff_t d0 = 0, d1 = KD, h0 = 0, h1 = KH;
        if (unit == filled) {
            const ptrdiff_t left = OH - oh < RC ? OH - oh : RC, count = end - unit < left ? end - unit : left;
            burn_taps_image(image, SLICE, ROW, G, WIDE, x, size, stride, XC, G, zd, DD, KD, zh,
                            (count - 1) * SH + (KH - 1) * DH + 1, -PW);
            filled += count;
            image_row = 0;
        }
        const float *const corner = image + image_row++ * SH * ROW;
#else
        const ptrdiff_t d0 = zd < 0 ? (-zd + DD - 1) / DD : 0,
            d1 = zd + (KD - 1) * DD < ID ? KD : zd < ID ? (ID - zd + DD - 1) / DD : 0;
        const ptrdiff_t h0 = zh < 0 ? (-zh + DH - 1) / DH : 0,
            h1 = zh + (KH - 1) * DH < IH ? KH : zh < IH ? (IH - zh + DH - 1) / DH : 0;
        const float *const corner = x + zd * XD + zh * XH - PW * XW;
#endif
        for (ptrdiff_t block = 0; block < BLOCKS; block++) {
            const ptrdiff_t ow = IMAGE || block * COLUMNS + COLUMNS < OW ? block * COLUMNS : OW - COLUMNS,
                p = (od * OH + oh) * OW + ow;
            const ptrdiff_t columns = OW - ow < COLUMNS ? OW - ow : COLUMNS;
            for (ptrdiff_t at = c_block; at < c_end; at += LANES) {
                const ptrdiff_t c = IMAGE || at + LANES <= G ? at : G - LANES, lanes = c + LANES <= G ? LANES : G - c;
                for (ptrdiff_t m = 0; m < MULT; m++) {
                    const float *const w = W + m * (KD * KH * KW * FILLED) + c,
                        *const from = corner + ow * (taps.beside / FOLD) + c;
                    if (!inside && block == 0)
                        burn_taps_depthwise(BLOCK, 1, 0, taps, d0, d1, h0, h1, from, w, tile);
                    else if (!inside && block == BLOCKS - 1)
                        burn_taps_depthwise(BLOCK, 1, OW - BLOCK, taps, d0, d1, h0, h1, from, w, tile);
                    else
                        burn_taps_depthwise(BLOCK, 0, 0, taps, d0, d1, h0, h1, from, w, tile);
                    float *const y = Y + (n * (OD * OH * OW) + p - y_at) * YC + c * MULT + m;
                    for (ptrdiff_t j = 0; j < columns; j++)
                        if (FOLD > 1)
                            for (ptrdiff_t i = 0; i < G; i++)
                                y[j * YC + i] = EPILOGUE(tile[j * G + i], n, (p + j), i);
                        else if (MULT > 1 || lanes < LANES)
                            for (ptrdiff_t i = 0; i < lanes; i++)
                                y[j * YC + i * MULT] = EPILOGUE(tile[j * LANES + i], n, (p + j), ((c + i) * MULT + m));
                        else {
                            BURN_LOOP
                            for (ptrdiff_t i = 0; i < LANES; i++)
                                y[j * YC + i] = EPILOGUE(tile[j * LANES + i], n, (p + j), (c + i));
                        }
                }
            }
        }
    }
}
