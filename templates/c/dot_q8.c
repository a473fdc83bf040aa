// SPDX-License-Identifier: MIT OR Apache-2.0
/* Products of signed bytes, or integers of 16 bits by bytes, on machines in fixed point: C[b][m][n] = EPILOGUE(sum
 * over k of A[b][m][k] * B[b][n][k]), exact sums in 32 bits. Matrices, and convolutions with the channels last, whose
 * row m is the window of pixel (y, x).
 *
 * The idea: MR rows by NC columns at a time, so that what is loaded is used more than once and the sums stay in the
 * registers of a small processor. Rows that lie in one piece are read where they are; windows are copied, MR of them,
 * with FILL where they reach into the padding, and meet all columns then.
 *
 *   KERNEL            name of the function
 *   AT CT             type of A's and of C's elements
 *   BATCH G           matrices, and groups of columns with operands of their own (else 1)
 *   H W N             rows in H lines of W, columns of a group
 *   K KP              elements of a row, and of its copy where WINDOW is 1: KP is K or more
 *   KB                bytes of a column in B
 *   WIDE              1: A's elements have 16 bits
 *   PACKED            1: weights have 4 bits and lie two to a byte, in the order of vec_q4.h; not with WIDE
 *   ACROSS            1: weights lie row by row, in the order of across_q8.h, and NC is a multiple of 4
 *   AB AG AY AX       strides of A in elements: of a matrix, a group, a line, a row
 *   WINDOW            1: rows are windows. A line is SH lines of the image apart from the next, a row SW pixels; AY and
 *                     AX are strides of the image then
 *   IH IW IC          the image, channels of a group;  KH KW taps;  SH SW strides;  DH DW dilations;  PH PW padding
 *   RUNS              1: taps of a row follow each other in memory
 *   FILL              what padding counts as
 *   BB CB CM          strides of B in bytes (of a matrix, or 0), of C in elements
 *   MR NC             tile: MR <= 2 rows, at most W; NC <= 4 columns, at most N
 *   STRIP             1: rows strip..strip_end-1 of all, whole tiles or lines; A, of pixels of XW elements, and
 *                     C begin at pixels x_at and y_at of theirs
 *   BACK              1: from the last row to the first
 *   EPILOGUE_PARAMS   text after the parameter C
 *   EPILOGUE(acc, b, m, n)  the value stored; acc is an int32_t, n counts over all groups
 *   VECTORS           a condition, 0 or of the preprocessor: sums are stored four at a time, N is 4 or more; or with
 *                     ACROSS as many as there are lanes
 *   VECTOR_EPILOGUE(acc, b, m, n)  their values, from n on, of which the lower bits are stored; acc is an int32x4_t, or
 *                     the first `now` of a vint32m4_t
 *
 * B is packed by the compiler: [b][g][n][KB], zeros past K, or [b][g][KB][n] with ACROSS. scratch: MR * KP elements
 * where WINDOW is 1.
 * The last tile of a line and of the columns begins earlier where some are missing; it stores what no other has.
 * C may lie over A where no element is stored before all that read its place have: tiles go in order (q8_distance in
 * templates_q8.c).
 */
#include "vec.h"
#include "vec_q8.h"
#include "vec_q4.h"
#include "across_q8.h"
// holes
#define KERNEL dot_q8
#define AT int8_t
#define CT int32_t
#define WIDE 0
#define PACKED 0
#define ACROSS 0
#define BATCH 1
#define G 1
#define H 1
#define W 64
#define N 64
#define K 64
#define KP 64
#define KB 64
#define AB 0
#define AG 0
#define AY 0
#define AX 64
#define WINDOW 0
#define IH 1
#define IW 1
#define IC 1
#define KH 1
#define KW 1
#define SH 1
#define SW 1
#define DH 1
#define DW 1
#define PH 0
#define PW 0
#define RUNS 0
#define FILL 0
#define BB 0
#define CB 0
#define CM 64
#define MR 2
#define NC 2
#define STRIP 0
#define BACK 0
#define XW 64
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, b, m, n) (acc)
#define VECTORS 0
#define VECTOR_EPILOGUE(acc, b, m, n) (acc)
// end holes

BURN_KERNEL BURN_Q8_SCALAR static void KERNEL(const AT *A, const int8_t *restrict B,
                                              CT *C EPILOGUE_PARAMS, unsigned char *scratch
#if STRIP
                                              , ptrdiff_t strip, ptrdiff_t strip_end, ptrdiff_t x_at, ptrdiff_t y_at
#endif
                                              )
{
    (void)scratch;
#if STRIP
    const ptrdiff_t first_line = strip / W, end_line = (strip_end + W - 1) / W;
    A -= x_at * XW;
    C -= y_at * CM;
#elif !BACK
    const ptrdiff_t first_line = 0, end_line = H;
#endif
#if BACK
    for (ptrdiff_t b = BATCH - 1; b >= 0; b--)
#else
    for (ptrdiff_t b = 0; b < BATCH; b++)
#endif
        for (ptrdiff_t g = 0; g < G; g++)
#if BACK
            for (ptrdiff_t y = H - 1; y >= 0; y--)
                for (ptrdiff_t x = (W - 1) / MR * MR; x >= 0; x -= MR) {
#else
            for (ptrdiff_t y = first_line; y < end_line; y++)
#if STRIP
                for (ptrdiff_t x = y == first_line ? strip - y * W : 0; x < W && y * W + x < strip_end; x += MR) {
#else
                for (ptrdiff_t x = 0; x < W; x += MR) {
#endif
#endif
                    const AT *const from = A + b * AB + g * AG;
                    const int8_t *const columns = B + b * BB + g * N * KB;
                    const ptrdiff_t at = x + MR <= W ? x : W - MR;
#if WINDOW
                    AT *const rows = (AT *)(void *)scratch, *to = rows;
                    for (ptrdiff_t i = at; i < at + MR; i++) {
                        for (ptrdiff_t h = y * SH - PH; h < y * SH - PH + KH * DH; h += DH) {
                            const AT *const line = from + h * AY;
                            const ptrdiff_t first = i * SW - PW;
                            if (h < 0 || h >= IH) {
                                to = burn_q8_fill(WIDE, to, FILL, KW * IC);
                                continue;
                            }
#if RUNS
                            const ptrdiff_t left = first < 0 ? -first : 0,
                                right = first + KW > IW ? IW - first : KW;
                            to = burn_q8_fill(WIDE, to, FILL, left * IC);
                            to = burn_q8_copy(WIDE, to, line + (first + left) * IC, (right - left) * IC);
                            to = burn_q8_fill(WIDE, to, FILL, (KW - right) * IC);
#else
                            for (ptrdiff_t w = first; w < first + KW * DW; w += DW)
                                to = w < 0 || w >= IW ? burn_q8_fill(WIDE, to, FILL, IC)
                                                      : burn_q8_copy(WIDE, to, line + w * AX, IC);
#endif
                        }
                        to = burn_q8_fill(WIDE, to, 0, KP - K);
                    }
                    const ptrdiff_t pitch = KP;
#else
                    const AT *const rows = from + y * AY + at * AX;
                    const ptrdiff_t pitch = AX;
#endif
#if VECTORS
#if ACROSS
                    for (ptrdiff_t n = 0, all = 0; n < N; n += all) {
                        all = (ptrdiff_t)__riscv_vsetvl_e32m8((size_t)(N - n));
                        const ptrdiff_t half = (ptrdiff_t)__riscv_vsetvlmax_e32m4();
                        vint32m8_t sum0, sum1;
                        burn_across_sums(WIDE, PACKED, MR, K, rows, pitch, columns + n, N, (size_t)all, &sum0, &sum1);
                        BURN_Q8_UNROLL
                        for (ptrdiff_t i = 0; i < MR; i++) {
                            const ptrdiff_t m = y * W + at + i;
#if W % MR
                            if (at + i < x)
                                continue;
#endif
                            BURN_Q8_UNROLL
                            for (ptrdiff_t part = 0; part < 2; part++) {
                                const ptrdiff_t from = part * half, column = g * N + n + from;
                                if (from >= all)
                                    break;
                                const size_t now = (size_t)(all - from < half ? all - from : half);
                                burn_across_put(C + b * CB + m * CM + column, sizeof *C,
                                    VECTOR_EPILOGUE(burn_across_half(i > 0, part > 0, sum0, sum1), b, m, column), now);
                            }
                        }
                    }
#else
                    for (ptrdiff_t n = 0; n < N; n += 4) {
                        const ptrdiff_t first = n + 4 <= N ? n : N - 4;
                        int32_t sum[4 * MR];
                        BURN_Q8_UNROLL
                        for (ptrdiff_t j = 0; j < 4; j += NC)
#if PACKED
                            burn_q4_tile(MR, NC, WINDOW ? KP : K, rows, pitch, columns + (first + j) * KB, KB,
                                sum + j * MR);
#else
                            burn_q8_tile(WIDE, MR, NC, WINDOW ? KP : K, rows, pitch, columns + (first + j) * KB, KB,
                                sum + j * MR);
#endif
                        BURN_Q8_UNROLL
                        for (ptrdiff_t i = 0; i < MR; i++) {
                            const ptrdiff_t m = y * W + at + i, column = g * N + first;
#if W % MR
                            if (at + i < x)
                                continue;
#endif
                            const int32_t *const s = sum + i * NC;
                            const int32x4_t four = burn_q8_four(s[0], s[1], s[MR == 2 ? 4 : 2],
                                s[MR == 2 ? 5 : 3]);
                            burn_q8_put_four(C + b * CB + m * CM + column, sizeof *C, N % 4 ? n - first : 0,
                                VECTOR_EPILOGUE(four, b, m, column));
                        }
                    }
#endif
#else
                    for (ptrdiff_t n = 0; n < N; n += NC) {
                        const ptrdiff_t first = n + NC <= N ? n : N - NC;
                        int32_t sum[MR * NC];
#if ACROSS
                        burn_across_tile(WIDE, PACKED, MR, NC, K, rows, pitch, columns + first, N, sum);
#elif PACKED
                        burn_q4_tile(MR, NC, WINDOW ? KP : K, rows, pitch, columns + first * KB, KB, sum);
#else
                        burn_q8_tile(WIDE, MR, NC, WINDOW ? KP : K, rows, pitch, columns + first * KB, KB, sum);
#endif
#if W % MR || N % NC
                        if (at < x || first < n) {
                            for (ptrdiff_t j = n - first; j < NC; j++)
                                for (ptrdiff_t i = x - at; i < MR; i++) {
                                    const ptrdiff_t m = y * W + at + i, column = g * N + first + j;
                                    C[b * CB + m * CM + column] = EPILOGUE(sum[i * NC + j], b, m, column);
                                }
                            continue;
                        }
#endif
                        BURN_Q8_UNROLL
                        for (ptrdiff_t j = 0; j < NC; j++) {
                            BURN_Q8_UNROLL
                            for (ptrdiff_t i = 0; i < MR; i++) {
                                const ptrdiff_t m = y * W + x + i, column = g * N + n + j;
                                C[b * CB + m * CM + column] = EPILOGUE(sum[i * NC + j], b, m, column);
                            }
                        }
                    }
#endif
                }
}
