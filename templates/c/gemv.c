// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction with one row: C[b][n] = EPILOGUE(sum over k of A[b][k] * B[b][k][n]), fp32. Each element of B is used
 * once, so all that counts is to read B in long straight lines: from far memory several at a time, as one alone comes
 * at two thirds of its speed; from a cache of the core one alone, wide panels, as eight come at two thirds of what it
 * gives.
 *
 *   KERNEL            name of the function
 *   BATCH N K         sizes;  AB BB CB: batch strides in floats (0: the same for every b);  A and C are contiguous
 *                     along k and n
 *   LAYOUT            of B. 0: packed by the compiler (pack_gemm_b), [ceil(N/NR)][K][NR] with NR = NV*16, zeros past N;
 *                     1: row-major, element (k, n) at k*LB + n;  2: transposed, at n*LB + k;
 *                     3: packed by the compiler (pack_gemv_w) for at most 12 columns, [ceil(K/16)][N][16], zeros past K
 *   LB                leading dimension of layouts 1 and 2
 *   NV SIDE           width of a panel in units of 16 floats; the most panels that are read side by side (layout 0)
 *   PARTS SHARES PART_COLUMNS    PARTS 0: all of C. Else the function does the part'th of SHARES shares:
 *                     SHARES / PART_COLUMNS of the batches, each in PART_COLUMNS of the columns, in panels (layout 0),
 *                     lines (1) or rows of 4 (2); every element is the same as with PARTS 0
 *   IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, b, m, n)   as in gemm.c, m is 0; nothing that it reads may share
 *                                                              memory with C
 *
 * scratch: none. Layout 1 keeps its sums in C.
 */
#include "vec.h"
// holes
#define KERNEL gemv
#define BATCH 1
#define N 3072
#define K 768
#define AB 0
#define BB 0
#define CB 0
#define LAYOUT 0
#define LB 3072
#define NV 2
#define SIDE 8
#define PARTS 0
#define SHARES 1
#define PART_COLUMNS 1
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, b, m, n) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict A, const float *restrict B, float *restrict C EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    (void)scratch;
#if PARTS
    enum { UNIT = LAYOUT == 0 ? NV * 16 : LAYOUT == 2 ? 4 : 16 };
    const ptrdiff_t down_shares = SHARES / PART_COLUMNS, down = part / PART_COLUMNS, across = part % PART_COLUMNS,
        units = (N + UNIT - 1) / UNIT, to = units * (across + 1) / PART_COLUMNS * UNIT;
    const ptrdiff_t b_from = BATCH * down / down_shares, n_from = units * across / PART_COLUMNS * UNIT;
    const ptrdiff_t b_end = BATCH * (down + 1) / down_shares, n_end = to < N ? to : N;
    for (ptrdiff_t b = b_from; b < b_end; b++) {
#else
    for (ptrdiff_t b = 0; b < BATCH; b++) {
#endif
        const float *const a = A + b * AB;
        float *const c = C + b * CB;
#if LAYOUT == 0
        /* As many panels go side by side as sums fit the registers. Narrow matrices add every STEPS'th term to the same
         * sum instead. */
        enum { PANEL = NV * 16, VECTORS = PANEL / BURN_VF_LANES, SUMS = BURN_MANY_REGISTERS ? 16 : 8 };
        enum { STREAMS = SUMS / VECTORS > SIDE ? SIDE : SUMS / VECTORS > 1 ? SUMS / VECTORS : 1 };
        enum { TOGETHER = N < STREAMS * PANEL ? 1 : STREAMS, STEPS = TOGETHER * VECTORS >= 8 ? 1 : 8 / VECTORS };
#if PARTS
        const ptrdiff_t n_first = n_from, n_last = n_end;
#else
        const ptrdiff_t n_first = 0, n_last = N;
#endif
        for (ptrdiff_t n0 = n_first; n0 < n_last; n0 += TOGETHER * PANEL) {
            const float *panel[TOGETHER];
            burn_vf sum[STEPS][TOGETHER][VECTORS];
            float tile[TOGETHER * PANEL], sums[TOGETHER * PANEL];
            const ptrdiff_t columns = n_last - n0 < TOGETHER * PANEL ? n_last - n0 : TOGETHER * PANEL;
            BURN_UNROLL
            for (int i = 0; i < TOGETHER; i++) /* panels past the end repeat the last one */
                panel[i] = B + b * BB + (n0 + (i * PANEL < columns ? i * PANEL : (columns - 1) / PANEL * PANEL)) * K;
            BURN_UNROLL
            for (int s = 0; s < STEPS; s++) {
                BURN_UNROLL
                for (int i = 0; i < TOGETHER; i++) {
                    BURN_UNROLL
                    for (int v = 0; v < VECTORS; v++)
                        burn_vf_zero(&sum[s][i][v]);
                }
            }
            for (ptrdiff_t k = 0; k + STEPS <= K; k += STEPS) {
                BURN_UNROLL
                for (int s = 0; s < STEPS; s++) {
                    BURN_UNROLL
                    for (int i = 0; i < TOGETHER; i++) {
                        BURN_UNROLL
                        for (int v = 0; v < VECTORS; v++)
                            burn_vf_muladd(&sum[s][i][v], a[k + s], panel[i] + (k + s) * PANEL + v * BURN_VF_LANES);
                    }
                }
            }
            for (ptrdiff_t k = K - K % STEPS; k < K; k++) {
                BURN_UNROLL
                for (int i = 0; i < TOGETHER; i++) {
                    BURN_UNROLL
                    for (int v = 0; v < VECTORS; v++)
                        burn_vf_muladd(&sum[0][i][v], a[k], panel[i] + k * PANEL + v * BURN_VF_LANES);
                }
            }
            BURN_UNROLL
            for (int s = 0; s < STEPS; s++) {
                BURN_UNROLL
                for (int i = 0; i < TOGETHER; i++) {
                    BURN_UNROLL
                    for (int v = 0; v < VECTORS; v++)
                        burn_vf_put((s ? sums : tile) + i * PANEL + v * BURN_VF_LANES, &sum[s][i][v]);
                }
                for (int j = 0; j < TOGETHER * PANEL && s > 0; j++)
                    tile[j] += sums[j];
            }
            for (ptrdiff_t j = 0; j < columns; j++)
                c[n0 + j] = EPILOGUE(tile[j], b, 0, (n0 + j));
        }
#endif
#if LAYOUT == 1
#if PARTS
        for (ptrdiff_t n0 = n_from; n0 < n_end; n0 += 2048) {
            const ptrdiff_t n1 = n0 + 2048 < n_end ? n0 + 2048 : n_end;
#else
        for (ptrdiff_t n0 = 0; n0 < N; n0 += 2048) {
            const ptrdiff_t n1 = n0 + 2048 < N ? n0 + 2048 : N;
#endif
            ptrdiff_t k = 0;
            for (ptrdiff_t n = n0; n < n1; n++)
                c[n] = 0.0f;
            for (; k + 8 <= K; k += 8) {
                const float *const r = B + b * BB + k * LB;
                const float a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
                const float a4 = a[k + 4], a5 = a[k + 5], a6 = a[k + 6], a7 = a[k + 7];
                for (ptrdiff_t n = n0; n < n1; n++)
                    c[n] += (a0 * r[n] + a1 * r[LB + n]) + (a2 * r[2 * LB + n] + a3 * r[3 * LB + n]) +
                            ((a4 * r[4 * LB + n] + a5 * r[5 * LB + n]) + (a6 * r[6 * LB + n] + a7 * r[7 * LB + n]));
            }
            for (; k < K; k++)
                for (ptrdiff_t n = n0; n < n1; n++)
                    c[n] += a[k] * B[b * BB + k * LB + n];
            for (ptrdiff_t n = n0; n < n1 && !IDENTITY_EPILOGUE; n++)
                c[n] = EPILOGUE(c[n], b, 0, n);
        }
#endif
#if LAYOUT == 2
        /* Rows far apart go side by side. */
        enum { LANES = BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? 8 : 4, STEPS = 2 };
#if PARTS
        const ptrdiff_t n_first = n_from, n_last = n_end;
#else
        const ptrdiff_t n_first = 0, n_last = N;
#endif
        const ptrdiff_t apart = (n_last - n_first + ROWS - 1) / ROWS;
        for (ptrdiff_t n0 = n_first; n0 < n_first + apart; n0++) {
            const float *row[ROWS];
            burn_vf sum[ROWS][STEPS];
            BURN_UNROLL
            for (int i = 0; i < ROWS; i++) { /* rows past the end repeat the last one */
                row[i] = B + b * BB + (n0 + i * apart < n_last ? n0 + i * apart : n_last - 1) * LB;
                BURN_UNROLL
                for (int s = 0; s < STEPS; s++)
                    burn_vf_zero(&sum[i][s]);
            }
            for (ptrdiff_t k = 0; k + STEPS * LANES <= K; k += STEPS * LANES) {
                BURN_UNROLL
                for (int i = 0; i < ROWS; i++) {
                    BURN_UNROLL
                    for (int s = 0; s < STEPS; s++)
                        burn_vf_muladd2(&sum[i][s], row[i] + k + s * LANES, a + k + s * LANES);
                }
            }
            for (ptrdiff_t k = K - K % (STEPS * LANES); k + LANES <= K; k += LANES) {
                BURN_UNROLL
                for (int i = 0; i < ROWS; i++)
                    burn_vf_muladd2(&sum[i][0], row[i] + k, a + k);
            }
            float total[ROWS];
            BURN_UNROLL
            for (int i = 0; i < ROWS; i++) {
                total[i] = 0.0f;
                BURN_UNROLL
                for (int s = 0; s < STEPS; s++)
                    total[i] += burn_vf_sum(&sum[i][s]);
            }
            for (ptrdiff_t n = n0, i = 0; n < n_last; n += apart, i++) {
                BURN_ROW
                const float *const rest = B + b * BB + n * LB;
                for (ptrdiff_t k = K - K % LANES; k < K; k++)
                    total[i] += rest[k] * a[k];
                c[n] = EPILOGUE(total[i], b, 0, n);
            }
        }
#endif
#if LAYOUT == 3
        /* Few columns: vectors run along k. Where columns are fewer than sums must be for their latency, each has
         * several. */
        enum { LANES = BURN_VF_LANES, BLOCKS = K / 16, STEPS = N >= 8 ? 1 : 8 / N };
        const float *const blocks = B + b * BB;
        burn_vf sum[STEPS][N];
        BURN_UNROLL
        for (int s = 0; s < STEPS; s++) {
            BURN_UNROLL
            for (int i = 0; i < N; i++)
                burn_vf_zero(&sum[s][i]);
        }
        for (ptrdiff_t k = 0; k + STEPS <= BLOCKS; k += STEPS) {
            BURN_UNROLL
            for (int s = 0; s < STEPS; s++) {
                BURN_UNROLL
                for (int i = 0; i < N; i++) {
                    BURN_UNROLL
                    for (int v = 0; v < 16; v += LANES)
                        burn_vf_muladd2(&sum[s][i], blocks + ((k + s) * N + i) * 16 + v, a + (k + s) * 16 + v);
                }
            }
        }
        for (ptrdiff_t k = BLOCKS - BLOCKS % STEPS; k < BLOCKS; k++) {
            BURN_UNROLL
            for (int i = 0; i < N; i++) {
                BURN_UNROLL
                for (int v = 0; v < 16; v += LANES)
                    burn_vf_muladd2(&sum[0][i], blocks + (k * N + i) * 16 + v, a + k * 16 + v);
            }
        }
#if PARTS
        for (ptrdiff_t i = n_from; i < n_end; i++) { /* all or none */
#else
        for (ptrdiff_t i = 0; i < N; i++) {
#endif
            float total = 0.0f;
            for (ptrdiff_t k = 0; k < K % 16; k++)
                total += blocks[(BLOCKS * N + i) * 16 + k] * a[BLOCKS * 16 + k];
            for (int s = 0; s < STEPS; s++)
                total += burn_vf_sum(&sum[s][i]);
            c[i] = EPILOGUE(total, b, 0, i);
        }
#endif
    }
}
