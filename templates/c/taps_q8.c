// SPDX-License-Identifier: MIT OR Apache-2.0
/* Depthwise convolution of signed bytes, or integers of 16 bits by bytes, on machines in fixed point, channels last:
 * C[b][m][n] = EPILOGUE(sum over taps of A[b][pixel of m and the tap][n] * B[tap][n]), exact sums in 32 bits.
 *
 * The idea: for MR pixels beside each other the places of all taps are found once, those in the padding in a row of
 * FILL; then a few channels at a time pass over the taps.
 *
 *   KERNEL            name of the function
 *   AT CT             type of A's and of C's elements
 *   WIDE              1: A's elements have 16 bits
 *   BATCH H W N       images; lines and pixels of a line of the result; channels, at least 4
 *   AB AY AX          strides of A in elements: of an image, a line, a pixel
 *   IH IW             the image;  KH KW taps;  SH SW strides;  DH DW dilations;  PH PW padding
 *   FILL              what padding counts as;  PADDED 1: a window reaches into padding
 *   CB CM             strides of C in elements: of an image, of a pixel
 *   MR                pixels at a time: 1 or 2, at most W
 *   STRIP             1: rows strip..strip_end-1 of all, whole lines; A, of pixels of XW elements, and C begin at
 *                     pixels x_at and y_at of theirs
 *   BACK              1: from the last row to the first
 *   EPILOGUE_PARAMS   text after the parameter C
 *   EPILOGUE(acc, b, m, n)  the value stored; acc is an int32_t
 *   ACROSS            1: VECTORS are those of across_q8.h
 *   VECTORS           a condition, 0 or of the preprocessor: sums are stored eight at a time, N is 8 or more; or with
 *                     ACROSS as many as there are lanes
 *   VECTOR_EPILOGUE(acc, b, m, n)  their values, from n on, elements of 16 bits; acc is a burn_q8_pair. With ACROSS
 *                     they have 32 bits, and acc is the first `now` of a vint32m4_t
 *
 * B: [KH][KW][N]. scratch: N elements where PADDED is 1. What lies at the end of a line and of the channels is done
 * from further back, and stored once. C may lie over A as in dot_q8.c.
 */
#include "vec.h"
#include "vec_q8.h"
#include "across_q8.h"
// holes
#define KERNEL taps_q8
#define AT int8_t
#define CT int32_t
#define WIDE 0
#define BATCH 1
#define H 8
#define W 8
#define N 64
#define AB 0
#define AY 512
#define AX 64
#define IH 8
#define IW 8
#define KH 3
#define KW 3
#define SH 1
#define SW 1
#define DH 1
#define DW 1
#define PH 1
#define PW 1
#define FILL 0
#define PADDED 1
#define CB 0
#define CM 64
#define MR 2
#define STRIP 0
#define BACK 0
#define XW 64
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, b, m, n) (acc)
#define ACROSS 0
#define VECTORS 0
#define VECTOR_EPILOGUE(acc, b, m, n) ((int16x8_t)(acc).even)
// end holes

BURN_KERNEL BURN_Q8_SCALAR static void KERNEL(const AT *A, const int8_t *restrict B,
                                              CT *C EPILOGUE_PARAMS, unsigned char *scratch
#if STRIP
                                              , ptrdiff_t strip, ptrdiff_t strip_end, ptrdiff_t x_at, ptrdiff_t y_at
#endif
                                              )
{
    enum { TAPS = KH * KW };
#if PADDED
    AT *const padding = (AT *)(void *)scratch;
    (void)burn_q8_fill(WIDE, padding, FILL, N);
#else
    (void)scratch;
#endif
#if STRIP
    const ptrdiff_t first_line = strip / W, end_line = strip_end / W;
    A -= x_at * XW;
    C -= y_at * CM;
#elif !BACK
    const ptrdiff_t first_line = 0, end_line = H;
#endif
#if BACK
    for (ptrdiff_t b = BATCH - 1; b >= 0; b--)
        for (ptrdiff_t y = H - 1; y >= 0; y--)
            for (ptrdiff_t x = (W - 1) / MR * MR; x >= 0; x -= MR) {
#else
    for (ptrdiff_t b = 0; b < BATCH; b++)
        for (ptrdiff_t y = first_line; y < end_line; y++)
            for (ptrdiff_t x = 0; x < W; x += MR) {
#endif
                const ptrdiff_t at = x + MR <= W ? x : W - MR;
                const void *tap[MR * TAPS];
                for (int i = 0, t = 0; i < MR; i++)
                    for (ptrdiff_t h = y * SH - PH; h < y * SH - PH + KH * DH; h += DH)
                        for (ptrdiff_t w = (at + i) * SW - PW; w < (at + i) * SW - PW + KW * DW; w += DW, t++)
#if PADDED
                            tap[t] = h < 0 || h >= IH || w < 0 || w >= IW ? padding : A + b * AB + h * AY + w * AX;
#else
                            tap[t] = A + b * AB + h * AY + w * AX;
#endif
#if VECTORS
#if ACROSS
                for (ptrdiff_t n = 0, all = 0; n < N; n += all) {
                    all = (ptrdiff_t)__riscv_vsetvl_e32m8((size_t)(N - n));
                    const ptrdiff_t half = (ptrdiff_t)__riscv_vsetvlmax_e32m4();
                    vint32m8_t sum0, sum1;
                    burn_across_taps(WIDE, MR, TAPS, tap, B, N, n, (size_t)all, &sum0, &sum1);
                    BURN_Q8_UNROLL
                    for (ptrdiff_t i = 0; i < MR; i++) {
                        const ptrdiff_t m = y * W + at + i;
#if W % MR
                        if (at + i < x)
                            continue;
#endif
                        BURN_Q8_UNROLL
                        for (ptrdiff_t part = 0; part < 2; part++) {
                            const ptrdiff_t from = part * half, c = n + from;
                            if (from >= all)
                                break;
                            const size_t now = (size_t)(all - from < half ? all - from : half);
                            burn_across_put(C + b * CB + m * CM + c, sizeof *C,
                                VECTOR_EPILOGUE(burn_across_half(i > 0, part > 0, sum0, sum1), b, m, c), now);
                        }
                    }
                }
#else
                for (ptrdiff_t c = 0; c < N; c += 8) {
                    const ptrdiff_t n = c + 8 <= N ? c : N - 8;
                    burn_q8_pair sum[MR];
                    burn_q8_pairs(WIDE, MR, TAPS, tap, B, N, n, sum);
                    BURN_Q8_UNROLL
                    for (ptrdiff_t i = 0; i < MR; i++) {
                        const ptrdiff_t m = y * W + at + i;
#if W % MR
                        if (at + i < x)
                            continue;
#endif
                        burn_q8_put_pairs(C + b * CB + m * CM + n, sizeof *C, N % 8 ? c - n : 0,
                            VECTOR_EPILOGUE(sum[i], b, m, n));
                    }
                }
#endif
#else
                enum { LANES = BURN_Q8_LANES(N) };
                for (ptrdiff_t c = 0; c < N; c += LANES) {
                    const ptrdiff_t first = c + LANES <= N ? c : N - LANES;
                    int32_t sum[MR * LANES];
                    burn_q8_taps(WIDE, MR, LANES, TAPS, tap, B, N, first, sum);
#if W % MR || N % BURN_Q8_LANES(N)
                    if (at < x || first < c) {
                        for (ptrdiff_t j = c - first; j < LANES; j++)
                            for (ptrdiff_t i = x - at; i < MR; i++) {
                                const ptrdiff_t m = y * W + at + i, n = first + j;
                                C[b * CB + m * CM + n] = EPILOGUE(sum[i * LANES + j], b, m, n);
                            }
                        continue;
                    }
#endif
                    BURN_Q8_UNROLL
                    for (ptrdiff_t j = 0; j < LANES; j++) {
                        BURN_Q8_UNROLL
                        for (ptrdiff_t i = 0; i < MR; i++) {
                            const ptrdiff_t m = y * W + x + i, n = c + j;
                            C[b * CB + m * CM + n] = EPILOGUE(sum[i * LANES + j], b, m, n);
                        }
                    }
                }
#endif
            }
}
