// SPDX-License-Identifier: MIT OR Apache-2.0
/* Depthwise convolution with the channels last, fp32, where memory and code are dear: as window.c, without scratch
 * memory. C output channels, MULT of each input channel. Y[n][p][c] = EPILOGUE(sum over the taps of W * X).
 *
 *   KERNEL              name of the function
 *   N C MULT            batch, output channels, those of one input channel
 *   IH IW OH OW  KH KW  SH SW  DH DW  PH PW  XN XH XW XC  YC   as in window.c
 *   STRIP               as in window.c, whole rows
 *   NR                  channels together: 1, or 4, of one pixel 8, where MULT and XC are 1
 *   EDGE                0: C is a multiple of NR, which is 4
 *   BACK                1: from the last pixel to the first
 *   WEIGHT SUMS         as in window.c
 *   EPILOGUE_PARAMS EPILOGUE(acc, n, p, c)   as in conv.c
 *
 * W is of WEIGHT, packed by the compiler (pack_window_dw_w): [kh][kw][C].
 * Y may lie over X as in window.c: pixels are finished in order, two at a time where NR is 4.
 */
#include "window.h"
#define BURN_SUMS BURN_WINDOW_FLOATS
#define BURN_WEIGHT burn_window_weight
#define BURN_WEIGHT_AT burn_window_weight_at
#define BURN_WEIGHTS BURN_WINDOW_WEIGHTS
#include "window_sums.h"
// holes
#define KERNEL window_dw
#define N 1
#define C 32
#define MULT 1
#define IH 32
#define IW 32
#define OH 32
#define OW 32
#define KH 3
#define KW 3
#define SH 1
#define SW 1
#define DH 1
#define DW 1
#define PH 1
#define PW 1
#define XN 32768
#define XH 1024
#define XW 32
#define XC 1
#define YC 32
#define NR 4
#define EDGE 0
#define STRIP 0
#define BACK 0
#define WEIGHT burn_window_weight
#define SUMS BURN_WINDOW_FLOATS
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, p, c) (acc)
// end holes

BURN_KERNEL static void KERNEL(const WEIGHT *W, const float *X, float *Y EPILOGUE_PARAMS
#if STRIP
                               , ptrdiff_t strip, ptrdiff_t strip_end, ptrdiff_t x_at, ptrdiff_t y_at
#endif
                               )
{
#if STRIP
    const ptrdiff_t first_row = strip / OW, end_row = strip_end / OW;
    X -= x_at * XW;
    Y -= y_at * YC;
#else
    const ptrdiff_t first_row = 0, end_row = N * OH;
#endif
#if BACK
    for (ptrdiff_t row = end_row - 1; row >= first_row; row--) {
#else
    for (ptrdiff_t row = first_row; row < end_row; row++) {
#endif
        const ptrdiff_t n = row / OH, oh = row - n * OH, ih = oh * SH - PH;
        const ptrdiff_t h0 = ih < 0 ? (DH - 1 - ih) / DH : 0, low = (IH - ih + DH - 1) / DH, h1 = low < KH ? low : KH;
#if BACK
        for (ptrdiff_t left = OW, many; left > 0; left -= many) {
            const ptrdiff_t begin = (left - 2) * SW - PW;
            const bool two = NR > 1 && left > 1 && begin >= 0 && begin + SW + (KW - 1) * DW < IW;
            const ptrdiff_t ow = two ? left - 2 : left - 1;
#else
        for (ptrdiff_t ow = 0, many; ow < OW; ow += many) {
#endif
            const ptrdiff_t iw = ow * SW - PW, p = oh * OW + ow;
            const ptrdiff_t w0 = iw < 0 ? (DW - 1 - iw) / DW : 0, right = (IW - iw + DW - 1) / DW,
                w1 = right < KW ? right : KW;
            const burn_window g = {h1 - h0, w1 - w0, 1, DH * XH, DW * XW, 0, KW * C, 1};
            const float *const x = X + n * XN + (ih + h0 * DH) * XH + (iw + w0 * DW) * XW;
            const WEIGHT *const weights = W + (h0 * KW + w0) * C;
            float *const y = Y + (n * OH * OW + p) * YC;
            ptrdiff_t c = 0;
#if BACK
            many = two ? 2 : 1;
#else
            many = NR > 1 && iw >= 0 && ow + 1 < OW && iw + SW + (KW - 1) * DW < IW ? 2 : 1;
#endif
#if NR > 1
            for (; many == 1 && c + 2 * NR <= C; c += 2 * NR) {
                float sums[2 * NR];
                SUMS(depth_wide)(sums, x + c, weights + c, g, C);
                for (ptrdiff_t j = 0; j < 2 * NR; j++)
                    y[c + j] = EPILOGUE(sums[j], n, p, (c + j));
            }
            for (; c + NR <= C; c += NR) {
                float sums[2 * NR];
                if (many > 1)
                    SUMS(depth_8)(sums, x + c, weights + c, g, C, SW * XW);
                else
                    SUMS(depth_4)(sums, x + c, weights + c, g, C);
                for (ptrdiff_t i = 0; i < many; i++)
                    for (ptrdiff_t j = 0; j < NR; j++)
                        y[i * YC + c + j] = EPILOGUE(sums[i * NR + j], n, (p + i), (c + j));
            }
#endif
#if EDGE
            for (; c < C; c++)
                for (ptrdiff_t i = 0; i < many; i++) {
                    const float sum = SUMS(depth_1)(x + i * SW * XW + c / MULT * XC, weights + c, g, C);
                    y[i * YC + c] = EPILOGUE(sum, n, (p + i), c);
                }
#endif
        }
    }
}
