// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction in bfloat16 of two factors that are no constants: C[b][m][n] = EPILOGUE(sum over k of A[b][m][k] *
 * B[b][k][n]), A, B, the sums and C in fp32. Sizes and strides are constants or expressions.
 *
 * The idea: that of gemm.c, with both factors rounded while they are packed, as pairs of neighbours along k. Packed
 * blocks end in zeros, so that all tiles are whole ones.
 *
 *   KERNEL            name of the function
 *   BATCH M N K       sizes, all >= 1
 *   AB AM AK          strides of A in floats; one of AM, AK is 1 for speed, any value is right
 *   BB BK BN          strides of B in floats; likewise
 *   CB CM             strides of C in floats
 *   MR NV             tile of rows and vectors as in gemm.c
 *   KC NC MC          blocks: KC along k, even; NC along n, a multiple of NV*16; MC along m, a multiple of MR
 *   PARTS SHARES      0, or the shares, of panels of columns, of which the function does the part'th
 *   FINISH EPILOGUE_PARAMS FINISH_PARAMS FINISH_ARGS EPILOGUE(acc, b, m, n)   as in gemm.c
 *
 * scratch: at least 4 * (KC/2 * NC + (MC in whole tiles) * max(KC, KC/2 + 8)) bytes. When K > KC, C holds partial
 * sums in between; so nothing that EPILOGUE reads may share memory with C.
 */
#include "vec.h"
#include "vec_bf16.h"
// holes
#define KERNEL gemm_pairs
#define BATCH 1
#define M 128
#define N 1536
#define K 384
#define AB 0
#define AM 384
#define AK 1
#define BB 0
#define BK 1536
#define BN 1
#define CB 0
#define CM 1536
#define MR 12
#define NV 2
#define KC 384
#define NC 1536
#define MC 132
#define PARTS 0
#define SHARES 1
#define IDENTITY_EPILOGUE 1
#define FINISH gemm_pairs_finish
#define EPILOGUE_PARAMS
#define FINISH_PARAMS
#define FINISH_ARGS
#define EPILOGUE(acc, b, m, n) (acc)
// end holes

/* A tile of sums, and what C has so far where `add`, becomes `count` rows of results or, not yet, of sums. A function
 * of its own: its constants would take the tile's registers. */
BURN_OUTLINE void FINISH(float *restrict tile, float *restrict c, ptrdiff_t count, ptrdiff_t columns, int add, int last,
                         ptrdiff_t b, ptrdiff_t m, ptrdiff_t n FINISH_PARAMS)
{
    enum { WIDTH = NV * BURN_VF_LANES };
    (void)b, (void)m, (void)n;
    for (ptrdiff_t i = 0; i < count && add; i++)
        for (ptrdiff_t j = 0; j < columns; j++)
            tile[i * WIDTH + j] += c[i * CM + j];
    for (ptrdiff_t i = 0; i < count; i++) {
        BURN_ROW
        if (!last || IDENTITY_EPILOGUE)
            memcpy(c + i * CM, tile + i * WIDTH, (size_t)columns * sizeof *c);
        else if (columns < WIDTH)
            for (ptrdiff_t j = 0; j < columns; j++)
                c[i * CM + j] = EPILOGUE(tile[i * WIDTH + j], b, (m + i), (n + j));
        else {
            BURN_LOOP
            for (ptrdiff_t j = 0; j < WIDTH; j++)
                c[i * CM + j] = EPILOGUE(tile[i * WIDTH + j], b, (m + i), (n + j));
        }
    }
}

BURN_KERNEL static void KERNEL(const float *restrict A, const float *restrict B, float *restrict C EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { PANEL = NV * 16, WIDTH = NV * BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? MR : (MR + 1) / 2 };
    const ptrdiff_t block = (MC + ROWS - 1) / ROWS * ROWS;
    uint32_t *const panels = (uint32_t *)(void *)scratch;
    burn_bf16 *const rows = (burn_bf16 *)(void *)(scratch + (ptrdiff_t)sizeof *panels * (KC / 2 * NC));
#if PARTS
    const ptrdiff_t units = (N + PANEL - 1) / PANEL, from = units * part / SHARES * PANEL,
        to = units * (part + 1) / SHARES * PANEL, end = to < N ? to : N;
#else
    const ptrdiff_t from = 0, end = N;
#endif
    for (ptrdiff_t b = 0; b < BATCH; b++)
        for (ptrdiff_t n0 = from; n0 < end; n0 += NC)
            for (ptrdiff_t k0 = 0; k0 < K; k0 += KC) {
                const ptrdiff_t n1 = n0 + NC < end ? n0 + NC : end, depth = k0 + KC < K ? KC : K - k0,
                    pairs = (depth + 1) / 2;
                for (ptrdiff_t n = n0; n < n1; n += PANEL)
                    burn_bf16_panel(panels + (n - n0) * pairs, PANEL, B + b * BB + k0 * BK + n * BN, BK, BN, depth,
                                    n1 - n < PANEL ? n1 - n : PANEL);
                for (ptrdiff_t m0 = 0; m0 < M; m0 += block) {
                    const ptrdiff_t m1 = m0 + block < M ? m0 + block : M;
                    burn_bf16_rows(rows, ROWS, A + b * AB + m0 * AM + k0 * AK, AM, AK, m1 - m0, depth);
                    for (ptrdiff_t n = n0; n < n1; n += WIDTH) {
                        const uint32_t *const column = panels + (n - n0) / PANEL * PANEL * pairs + n % PANEL;
                        const ptrdiff_t columns = n1 - n < WIDTH ? n1 - n : WIDTH;
                        for (ptrdiff_t m = m0; m < m1; m += ROWS) {
                            float tile[ROWS * WIDTH];
                            burn_bf16_tile(ROWS, NV, pairs, rows + (m - m0) * BURN_BF16_PITCH(depth),
                                           AM == 1 ? 1 : BURN_BF16_PITCH(depth), AM == 1 ? ROWS : 1, column, PANEL,
                                           tile, WIDTH);
                            FINISH(tile, C + b * CB + m * CM + n, m1 - m < ROWS ? m1 - m : ROWS, columns, k0 > 0,
                                   k0 + KC >= K, b, m, n FINISH_ARGS);
                        }
                    }
                }
            }
}
