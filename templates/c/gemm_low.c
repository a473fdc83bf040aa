// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction with weights of few bits: C[m][n] = EPILOGUE(sum over k of A[m][k] * B[k][n]), A and the sums in fp32. A
 * panel of B is turned into floats once, in scratch memory that stays near; then the register tiles of gemm.c pass over
 * it, all of k at once.
 *
 *   KERNEL            name of the function
 *   M N K AM CM       sizes; strides of A's and C's rows in floats. M_FIXED: M where it is constant, else 0
 *   BITS BLOCK ZEROS ZERO NV   B, as in gemv_low.c
 *   MR                rows of a tile, even, <= 16
 *   PARTS SHARES      0, or the shares, of panels, of which the function does the part'th
 *   FINISH EPILOGUE_PARAMS FINISH_PARAMS FINISH_ARGS EPILOGUE(acc, b, m, n)   as in gemm.c, b is 0
 *
 * scratch: 4 * K * NV * 16 bytes.
 */
#include "vec.h"
#include "vec_low.h"
// holes
#define KERNEL gemm_low
#define M 128
#define N 3072
#define K 768
#define M_FIXED 128
#define AM 768
#define CM 3072
#define BITS 4
#define BLOCK 32
#define ZEROS 0
#define ZERO 8
#define MR 12
#define NV 2
#define PARTS 0
#define SHARES 1
#define IDENTITY_EPILOGUE 1
#define FINISH gemm_low_finish
#define EPILOGUE_PARAMS
#define FINISH_PARAMS
#define FINISH_ARGS
#define EPILOGUE(acc, b, m, n) (acc)
// end holes

/* A tile of sums becomes `count` rows of results. A function of its own: its constants would take the tile's registers.
 */
BURN_OUTLINE void FINISH(const float *restrict tile, float *restrict c, ptrdiff_t count, ptrdiff_t columns, ptrdiff_t m,
                         ptrdiff_t n FINISH_PARAMS)
{
    enum { WIDTH = NV * BURN_VF_LANES };
    (void)m, (void)n;
    if (columns < WIDTH) {
        for (ptrdiff_t i = 0; i < count; i++) {
            BURN_ROW
            for (ptrdiff_t j = 0; j < N % WIDTH; j++)
                c[i * CM + j] = EPILOGUE(tile[i * WIDTH + j], 0, (m + i), (n + j));
        }
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        BURN_ROW
        BURN_LOOP
        for (ptrdiff_t j = 0; j < WIDTH; j++)
            c[i * CM + j] = EPILOGUE(tile[i * WIDTH + j], 0, (m + i), (n + j));
    }
}

BURN_KERNEL static void KERNEL(const float *restrict A, const uint32_t *restrict B, float *restrict C EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { PANEL = NV * 16, LANES = BURN_VF_LANES, WIDTH = NV * LANES, PER = 32 / BITS,
           BLOCKS = (K + BLOCK - 1) / BLOCK };
    enum { HEAD = PANEL + ZEROS * PANEL / 4, WORDS = HEAD + (BLOCK + PER - 1) / PER * PANEL };
    enum { ROWS = BURN_MANY_REGISTERS ? MR : (MR + 1) / 2, ROWS_EDGE = M_FIXED % ROWS };
    float *const floats = (float *)(void *)scratch;
#if PARTS
    const ptrdiff_t units = (N + PANEL - 1) / PANEL, from = units * part / SHARES * PANEL,
        to = units * (part + 1) / SHARES * PANEL, end = to < N ? to : N;
#else
    const ptrdiff_t from = 0, end = N;
#endif
    for (ptrdiff_t n0 = from; n0 < end; n0 += PANEL) {
        const uint32_t *const panel = B + n0 / PANEL * (BLOCKS * WORDS);
        for (ptrdiff_t k = 0; k < K; k += PER) {
            const uint32_t *const head = panel + k / BLOCK * WORDS, *const w = head + HEAD + k % BLOCK / PER * PANEL;
            BURN_UNROLL
            for (int v = 0; v < PANEL / LANES; v++) {
                burn_low_words word;
                burn_low_load(&word, w + v * LANES);
                for (int p = 0; p < PER && k + p < K; p++) {
                    float *const row = floats + (k + p) * PANEL + v * LANES;
                    burn_vf one;
                    burn_low_part(&one, &word, BITS, p);
                    burn_vf scaled;
                    burn_vf_zero(&scaled);
                    burn_low_scaled(&scaled, &one, (const float *)(const void *)head + v * LANES,
                                    ZEROS ? (const uint8_t *)(head + PANEL) + v * LANES : (const uint8_t *)0, ZERO,
                                    1.0f);
                    burn_vf_put(row, &scaled);
                }
            }
        }
        for (ptrdiff_t n = n0; n < n0 + PANEL && n < N; n += WIDTH) {
            const ptrdiff_t columns = N - n < WIDTH ? N - n : WIDTH;
            const float *const column = floats + (n - n0);
            for (ptrdiff_t m = 0; m < M; m += ROWS) {
                const bool edge = m + ROWS > M;
                const ptrdiff_t count = edge ? M - m : ROWS;
                const float *const a = A + m * AM;
                float tile[ROWS * WIDTH];
#if M_FIXED
                burn_tile_at(ROWS, ROWS_EDGE, NV, NV, edge, K, a, AM, 1, column, PANEL, tile, WIDTH, 0, column);
#else
                const ptrdiff_t fours = edge ? count / 4 * 4 : 0;
                if (!edge)
                    burn_tile_at(ROWS, 0, NV, NV, 0, K, a, AM, 1, column, PANEL, tile, WIDTH, 0, column);
                for (ptrdiff_t i = 0; i < fours; i += 4)
                    burn_tile_at(4, 0, NV, NV, 0, K, a + i * AM, AM, 1, column, PANEL, tile + i * WIDTH, WIDTH, 0,
                                 column);
                for (ptrdiff_t i = fours; i < count && edge; i++)
                    burn_tile_at(1, 0, NV, NV, 0, K, a + i * AM, AM, 1, column, PANEL, tile + i * WIDTH, WIDTH, 0,
                                 column);
#endif
                FINISH(tile, C + m * CM + n, count, columns, m, n FINISH_ARGS);
            }
        }
    }
}
