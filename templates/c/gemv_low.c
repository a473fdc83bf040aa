// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction of a few rows with weights of few bits: C[m][n] = EPILOGUE(sum over k of A[m][k] * B[k][n]), A and the
 * sums in fp32. B is read once, in long straight lines, and turned into floats in registers.
 *
 *   KERNEL            name of the function
 *   M N K AM CM       sizes; strides of A's and C's rows in floats
 *   BITS              of a number of B: 16, bfloat16; 8, 4 or 2, integers q that stand for scale * (q - zero)
 *   BLOCK             rows of B that share scales, a multiple of 32/BITS; K for bfloat16, which has none
 *   ZEROS ZERO        0: the zero point is ZERO; 1: each block brings one for each column
 *   NV                B comes in panels of NV*16 columns (pack_low): of each block its scales (float), its zero points
 *                     (bytes), its words
 *   PARTS SHARES      0, or the shares, of panels, of which the function does the part'th
 *   EPILOGUE_PARAMS EPILOGUE(acc, b, m, n)   as in gemm.c, b is 0; nothing that it reads may share memory with C
 *
 * scratch: 4 * M * ceil(K/BLOCK) bytes unless BITS is 16, the sums of A's rows over the blocks.
 */
#include "vec.h"
#include "vec_low.h"
// holes
#define KERNEL gemv_low
#define M 1
#define N 3072
#define K 768
#define AM 768
#define CM 3072
#define BITS 16
#define BLOCK 768
#define ZEROS 0
#define ZERO 8
#define NV 1
#define PARTS 0
#define SHARES 1
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, b, m, n) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict A, const uint32_t *restrict B, float *restrict C EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    /* So many panels go side by side, each a stream of memory of its own, as sums fit the registers. With one row there
     * are two sums of each. */
    enum { PANEL = NV * 16, LANES = BURN_VF_LANES, VECTORS = PANEL / LANES, SUMS = M == 1 ? 2 : 1,
           MOST = BURN_MANY_REGISTERS && BITS == 16 ? 16 : 8 };
    enum { STREAMS = MOST / (M * VECTORS * SUMS) < 1 ? 1 : MOST / (M * VECTORS * SUMS),
           TOGETHER = N < STREAMS * PANEL ? 1 : STREAMS };
    enum { PER = 32 / BITS, BLOCKS = (K + BLOCK - 1) / BLOCK };
    enum { HEAD = BITS == 16 ? 0 : PANEL + ZEROS * PANEL / 4, WORDS = HEAD + (BLOCK + PER - 1) / PER * PANEL };
#if PARTS
    const ptrdiff_t units = (N + PANEL - 1) / PANEL, from = units * part / SHARES * PANEL,
        to = units * (part + 1) / SHARES * PANEL, end = to < N ? to : N;
#else
    const ptrdiff_t from = 0, end = N;
#endif
#if BITS == 16
    (void)scratch;
#else
    float *const of_row = (float *)(void *)scratch;
    for (ptrdiff_t m = 0; m < M; m++)
        for (ptrdiff_t i = 0; i < BLOCKS; i++) {
            float sum = 0.0f;
            for (ptrdiff_t k = i * BLOCK; k < (i + 1) * BLOCK && k < K; k++)
                sum += A[m * AM + k];
            of_row[m * BLOCKS + i] = sum;
        }
#endif
    for (ptrdiff_t n0 = from; n0 < end; n0 += TOGETHER * PANEL) {
        const ptrdiff_t columns = end - n0 < TOGETHER * PANEL ? end - n0 : TOGETHER * PANEL;
        const uint32_t *panel[TOGETHER];
        burn_vf acc[TOGETHER][M][VECTORS];
        float tile[PANEL];
        BURN_UNROLL
        for (int t = 0; t < TOGETHER; t++) { /* panels past the end repeat the last one */
            panel[t] = B + (n0 + (t * PANEL < columns ? t * PANEL : columns - 1)) / PANEL * (BLOCKS * WORDS);
            BURN_UNROLL
            for (int m = 0; m < M; m++) {
                BURN_UNROLL
                for (int v = 0; v < VECTORS; v++)
                    burn_vf_zero(&acc[t][m][v]);
            }
        }
        for (ptrdiff_t i = 0; i < BLOCKS; i++) {
            const float *const a = A + i * BLOCK;
            const ptrdiff_t depth = K - i * BLOCK < BLOCK ? K - i * BLOCK : BLOCK;
            burn_low_words word[VECTORS];
            burn_vf sum[TOGETHER][M][SUMS][VECTORS], one;
            BURN_UNROLL
            for (int t = 0; t < TOGETHER; t++) {
                BURN_UNROLL
                for (int m = 0; m < M; m++) {
                    BURN_UNROLL
                    for (int s = 0; s < SUMS; s++) {
                        BURN_UNROLL
                        for (int v = 0; v < VECTORS; v++)
                            burn_vf_zero(&sum[t][m][s][v]);
                    }
                }
            }
            for (ptrdiff_t k = 0, at = i * WORDS + HEAD; k + PER <= depth; k += PER, at += PANEL) {
                BURN_UNROLL
                for (int t = 0; t < TOGETHER; t++) {
                    BURN_UNROLL
                    for (int v = 0; v < VECTORS; v++)
                        burn_low_load(&word[v], panel[t] + at + v * LANES);
                    BURN_UNROLL
                    for (int p = 0; p < PER; p++) {
                        BURN_UNROLL
                        for (int v = 0; v < VECTORS; v++) {
                            burn_low_part(&one, &word[v], BITS, p);
                            BURN_UNROLL
                            for (int m = 0; m < M; m++)
                                burn_low_muladd(&sum[t][m][p % SUMS][v], a[m * AM + k + p], &one);
                        }
                    }
                }
            }
#if K % (32 / BITS)
            if (depth % PER != 0) {
                BURN_UNROLL
                for (int t = 0; t < TOGETHER; t++) {
                    BURN_UNROLL
                    for (int v = 0; v < VECTORS; v++)
                        burn_low_load(&word[v], panel[t] + i * WORDS + HEAD + depth / PER * PANEL + v * LANES);
                    BURN_UNROLL
                    for (int p = 0; p < K % PER; p++) {
                        BURN_UNROLL
                        for (int v = 0; v < VECTORS; v++) {
                            burn_low_part(&one, &word[v], BITS, p);
                            BURN_UNROLL
                            for (int m = 0; m < M; m++)
                                burn_low_muladd(&sum[t][m][0][v], a[m * AM + depth / PER * PER + p], &one);
                        }
                    }
                }
            }
#endif
            BURN_UNROLL
            for (int t = 0; t < TOGETHER; t++) {
                BURN_UNROLL
                for (int m = 0; m < M; m++) {
                    BURN_UNROLL
                    for (int v = 0; v < VECTORS; v++) {
                        if (SUMS > 1)
                            burn_low_muladd(&sum[t][m][0][v], 1.0f, &sum[t][m][SUMS - 1][v]);
#if BITS == 16
                        burn_low_muladd(&acc[t][m][v], 1.0f, &sum[t][m][0][v]);
#else
                        const uint32_t *const head = panel[t] + i * WORDS;
                        burn_low_scaled(&acc[t][m][v], &sum[t][m][0][v], (const float *)(const void *)head + v * LANES,
                                        ZEROS ? (const uint8_t *)(head + PANEL) + v * LANES : (const uint8_t *)0, ZERO,
                                        of_row[m * BLOCKS + i]);
#endif
                    }
                }
            }
        }
        BURN_UNROLL
        for (int t = 0; t < TOGETHER; t++) {
            const ptrdiff_t rest = columns - t * PANEL, width = rest < PANEL ? rest : PANEL;
            BURN_UNROLL
            for (int m = 0; m < M; m++) {
                BURN_UNROLL
                for (int v = 0; v < VECTORS; v++)
                    burn_vf_put(tile + v * LANES, &acc[t][m][v]);
                for (ptrdiff_t j = 0; j < width; j++)
                    C[m * CM + n0 + t * PANEL + j] = EPILOGUE(tile[j], 0, m, (n0 + t * PANEL + j));
            }
        }
    }
}
