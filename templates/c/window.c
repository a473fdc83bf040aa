// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution with the channels last, and product with constant weights, fp32, where memory and code are dear: no
 * scratch memory, weights no larger than the model's, one function for all sizes where they are arguments.
 * Y[n][p][c] = EPILOGUE(sum over the taps (kh, kw) and channels of X * W), p an output pixel.
 *
 * The idea: padding is in the loops' bounds. A pixel's window is cut to what of it lies inside the input, so there is
 * nothing to copy, and taps outside cost nothing. MR pixels whose windows are whole are computed together, four
 * channels at a time; others one by one, eight at a time. Sums are over taps, then channels, as in conv.c.
 *
 *   KERNEL              name of the function
 *   N G IC OC           batch, groups, input and output channels of one group
 *   IH IW OH OW         input and output sizes;  KH KW kernel;  SH SW strides;  DH DW dilations;  PH PW padding before
 *   XN XH XW XC         strides of X in floats, XC between channels
 *   YC                  floats of Y from pixel to pixel, >= G*OC
 *   MR                  pixels together: 1, 2 or 4
 *   DENSE               1: what a tap row reads is one run: G, XC and DW are 1, XW is IC
 *   SINGLE              1: N, G and MR are 1 and YC is OC: floats of Y follow each other as they are stored
 *   APART               1: with MR 1: its sums are a function that the kernels of a file share
 *   RELU LEAST          1: what is stored is no less than 0, where LEAST is 0, or -infinity, where it is 511
 *   STRIP               1: output pixels strip..strip_end-1; X, dense, and Y begin at pixels x_at and y_at of theirs
 *   BACK                1: from the last pixel to the first
 *   WEIGHT SUMS         what W is of, and which sums (window_sums.h) go with it: burn_window_weight and
 *                       BURN_WINDOW_FLOATS, or burn_window_byte and BURN_WINDOW_WHOLE
 *   EPILOGUE_PARAMS EPILOGUE(acc, n, p, c)   as in conv.c
 *
 * W, of floats, of halves where BURN_WINDOW_HALVES is defined, or of bytes, is packed by the compiler (pack_window_w):
 * [group][ceil(OC/4)][KH][KW][IC][4], the last panel as narrow as what is left, and three elements that are read and
 * not used.
 * Y may lie over X where no element is stored before all that read its place have: pixels are finished in order, MR at
 * a time (window_distance in templates_window.c).
 */
#include "window.h"
#define BURN_SUMS BURN_WINDOW_FLOATS
#define BURN_WEIGHT burn_window_weight
#define BURN_WEIGHT_AT burn_window_weight_at
#define BURN_WEIGHTS BURN_WINDOW_WEIGHTS
#include "window_sums.h"
// holes
#define KERNEL window
#define N 1
#define G 1
#define IC 16
#define OC 32
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
#define XN 16384
#define XH 512
#define XW 16
#define XC 1
#define YC 32
#define MR 4
#define DENSE 1
#define SINGLE 0
#define APART 0
#define RELU 0
#define LEAST 0
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
#if RELU
    const float least = burn_window_least(LEAST);
#endif
#if STRIP
    const ptrdiff_t first_row = strip / OW, end_row = (strip_end + OW - 1) / OW;
    X -= x_at * XW;
#if SINGLE
    Y += (strip - y_at) * YC;
#else
    Y -= y_at * YC;
#endif
#else
    const ptrdiff_t first_row = 0, end_row = N * OH;
#endif
#if BACK
    for (ptrdiff_t row = end_row - 1; row >= first_row; row--) {
#else
    for (ptrdiff_t row = first_row; row < end_row; row++) {
#endif
#if STRIP
        const ptrdiff_t first = row == first_row ? strip - row * OW : 0, end = row + 1 == end_row ? strip_end - row * OW
                                                                                                  : OW;
#else
        const ptrdiff_t first = 0, end = OW;
#endif
#if SINGLE
        const ptrdiff_t n = 0, oh = row, ih = oh * SH - PH;
#else
        const ptrdiff_t n = row / OH, oh = row - n * OH, ih = oh * SH - PH;
#endif
        const ptrdiff_t h0 = ih < 0 ? (DH - 1 - ih) / DH : 0, low = (IH - ih + DH - 1) / DH, h1 = low < KH ? low : KH;
#if BACK
        for (ptrdiff_t left = end, many; left > first; left -= many) {
            const ptrdiff_t begin = (left - MR) * SW - PW;
            const bool whole = left - MR >= first && begin >= 0 && begin + (MR - 1) * SW + (KW - 1) * DW < IW;
            const ptrdiff_t ow = whole ? left - MR : left - 1;
            (void)whole;
#else
        for (ptrdiff_t ow = first, many; ow < end; ow += many) {
#endif
            const ptrdiff_t iw = ow * SW - PW, p = oh * OW + ow;
            const ptrdiff_t w0 = iw < 0 ? (DW - 1 - iw) / DW : 0, right = (IW - iw + DW - 1) / DW,
                w1 = right < KW ? right : KW;
            const float *const x = X + n * XN + (ih + h0 * DH) * XH + (iw + w0 * DW) * XW;
#if !SINGLE
            float *const y = Y + (n * OH * OW + p) * YC;
#endif
            many = 1;
            (void)p;
#if MR > 1 && !BACK
            const bool whole = iw >= 0 && ow + MR <= end && iw + (MR - 1) * SW + (KW - 1) * DW < IW;
#endif
            for (ptrdiff_t panel = 0; panel < G * OC;) {
#if SINGLE
                const ptrdiff_t rest = OC - panel;
                const float *const at = x;
#else
                const ptrdiff_t rest = OC - panel % OC;
                const float *const at = x + panel / OC * IC * XC;
#endif
                ptrdiff_t width = rest < 4 ? rest : 4;
                const WEIGHT *const weights = W + (panel * KH * KW + (h0 * KW + w0) * width) * IC;
#if DENSE
                const burn_window g = {h1 - h0, 1, (w1 - w0) * IC, DH * XH, 0, 1, KW * IC * width, width};
#else
                const burn_window g = {h1 - h0, w1 - w0, IC, DH * XH, DW * XW, XC, KW * IC * width, width};
#endif
                float sums[MR * 4];
#if MR > 1
                if (whole && width == 4) {
                    many = MR;
#if MR == 2
                    SUMS(2)(sums, at, weights, g, SW * XW);
#else
                    SUMS(4)(sums, at, weights, g, SW * XW);
#endif
                } else if (!whole && rest >= 8) {
                    SUMS(8)(sums, at, weights, g, KH * KW * IC * 4);
                    width = 8;
                } else {
                    for (ptrdiff_t i = 0; i < (whole ? MR : 1); i++)
                        SUMS(1)(sums + i * 4, at + i * SW * XW, weights, g);
                    many = whole ? MR : 1;
                }
#elif APART && DENSE
                SUMS(dense)(sums, at, weights, &g);
#elif APART
                SUMS(apart)(sums, at, weights, &g);
#else
                SUMS(1)(sums, at, weights, g);
#endif
                for (ptrdiff_t i = 0; i < many; i++)
                    for (ptrdiff_t j = 0; j < width; j++) {
                        const float v = EPILOGUE(sums[i * 4 + j], n, (p + i), (panel + j));
#if SINGLE
                        float *const to = Y++;
#else
                        float *const to = &y[i * YC + panel + j];
#endif
#if RELU
                        *to = v < least ? least : v;
#else
                        *to = v;
#endif
                    }
                panel += width;
            }
        }
    }
}
