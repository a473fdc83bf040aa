// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution of at most 8 output channels, fp32, two-dimensional, one group, Y's channels last, any kernel, stride,
 * dilation and padding, for machines of whose vectors conv.c would fill at most half.
 *
 * The idea: a vector holds the channels of two output pixels, channel c of the one in lane 2*c, of the other beside it.
 * They lie at the same place of the upper and of the lower half of the output rows, so that what a tap reads for both
 * are the same places of two halves of the input, whose padded image has them side by side: one load of 64 bits that
 * fills a vector. The weights lie twice, too.
 *
 *   KERNEL              name of the function
 *   N IC OC             batch, input and output channels
 *   IH IW OH OW         input and output sizes;  KH KW kernel;  SH SW strides;  DH DW dilations;  PH PW padding before
 *   XN XH XW XC         strides of X in floats, XC between channels;  YC: floats of Y from pixel to pixel
 *   MR                  pairs of pixels in a tile, neighbours in their rows, <= 16
 *   RC                  pairs of output rows whose image is made at a time
 *   PARTS SHARES        PARTS 0: everything. Else `part` says which of SHARES shares of the pairs of rows
 *   IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, n, p, c)      as in conv.c
 *
 * W is packed by the compiler (pack_conv_pairs_w): [KH][KW][IC][8][2], zeros past OC.
 * scratch: 64-byte aligned, conv_pairs_scratch_bytes in tiles_pairs.c.
 */
#include "taps.h"
#include "pairs.h"
// holes
#define KERNEL conv_pairs
#define N 1
#define IC 3
#define OC 8
#define IH 96
#define IW 96
#define OH 48
#define OW 48
#define KH 3
#define KW 3
#define SH 2
#define SW 2
#define DH 1
#define DW 1
#define PH 0
#define PW 0
#define XN 27648
#define XH 96
#define XW 1
#define XC 9216
#define YC 8
#define MR 12
#define RC 24
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
    enum { HALF = (OH + 1) / 2, WIDTH = (OW - 1) * SW + (KW - 1) * DW + 1, LINE = WIDTH * IC,
           HIGH = (KH - 1) * DH + 1, EDGE = OW % MR, RUNS = DW == 1 ? 1 : KW };
    float *const tile = (float *)(void *)scratch, *const upper = tile + MR * 16,
        *const lower = upper + (LINE + 15) / 16 * 16, *const image = lower + (LINE + 15) / 16 * 16;
    const ptrdiff_t size[3] = {1, IH, IW}, stride[3] = {0, XH, XW};
#if PARTS
    const ptrdiff_t units = (ptrdiff_t)N * HALF, first_unit = units * part / SHARES,
        end_unit = units * (part + 1) / SHARES;
#else
    const ptrdiff_t first_unit = 0, end_unit = (ptrdiff_t)N * HALF;
#endif
    for (ptrdiff_t unit = first_unit, chunk; unit < end_unit; unit += chunk) {
        const ptrdiff_t n = unit / HALF, oh = unit % HALF;
        chunk = HALF - oh < RC ? HALF - oh : RC;
        chunk = end_unit - unit < chunk ? end_unit - unit : chunk;
        for (ptrdiff_t h = 0; h < (chunk - 1) * SH + HIGH; h++) {
            const ptrdiff_t ih = oh * SH - PH + h;
            burn_taps_image(upper, 0, 0, IC, WIDTH, X + n * XN, size, stride, XC, IC, 0, 1, 1, ih, 1, -PW);
            burn_taps_image(lower, 0, 0, IC, WIDTH, X + n * XN, size, stride, XC, IC, 0, 1, 1, ih + HALF * SH, 1, -PW);
            burn_pair_weave(image + h * (2 * LINE), upper, lower, LINE);
        }
        for (ptrdiff_t r = 0; r < chunk; r++)
            for (ptrdiff_t w = 0; w < OW; w += MR) {
                const float *const from = image + r * (SH * 2 * LINE) + w * (SW * IC * 2);
                const int count = w + MR > OW ? EDGE : MR;
                if (w + MR <= OW)
                    burn_pair_tile(MR, OC, KH, DH * 2 * LINE, RUNS, DW * IC * 2, KW / RUNS * IC, from, SW * IC * 2,
                                   W, tile);
                else if (EDGE > 0)
                    burn_pair_tile(EDGE, OC, KH, DH * 2 * LINE, RUNS, DW * IC * 2, KW / RUNS * IC, from,
                                   SW * IC * 2, W, tile);
                for (int low = 0; low < 2; low++)
                    for (int i = 0; i < count && oh + r + low * HALF < OH; i++) {
                        const ptrdiff_t p = (oh + r + low * HALF) * OW + w + i;
                        float *const y = Y + (n * (OH * OW) + p) * YC;
                        BURN_LOOP
                        for (ptrdiff_t j = 0; j < OC; j++)
                            y[j] = EPILOGUE(tile[i * 16 + low * 8 + j], n, p, j);
                    }
            }
    }
}
