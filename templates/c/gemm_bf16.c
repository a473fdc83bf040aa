// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction in bfloat16: C[m][n] = EPILOGUE(sum over k of A[m][k] * B[k][n]), A, the sums and C in fp32. Blocks of
 * rows of A are rounded into scratch memory; the panels of B, rounded by the compiler, pass over a block, all of k at
 * once, so that C is written once.
 *
 *   KERNEL            name of the function
 *   M N K AM CM       sizes; strides of A's and C's rows in floats. M_FIXED: M where it is constant, else 0
 *   NV                B comes in panels of NV*16 columns (pack_bf16): [ceil(K/2)][NV*16] words of two numbers along k
 *   MR MC             rows of a tile, even, <= 16; of a block, a multiple of MR
 *   PARTS SHARES      0, or the shares, of panels, of which the function does the part'th
 *   FINISH EPILOGUE_PARAMS FINISH_PARAMS FINISH_ARGS EPILOGUE(acc, b, m, n)   as in gemm.c, b is 0
 *
 * scratch: at least 4 * MC * K rounded up to 16, and 2 * MC * K rounded up to 32 both. The last tile of a block begins
 * earlier where rows are missing; it stores only what the one before has not.
 */
#include "vec.h"
#include "vec_bf16.h"
// holes
#define KERNEL gemm_bf16
#define M 128
#define N 3072
#define K 768
#define M_FIXED 128
#define AM 768
#define CM 3072
#define MR 12
#define NV 2
#define MC 132
#define PARTS 0
#define SHARES 1
#define IDENTITY_EPILOGUE 1
#define FINISH gemm_bf16_finish
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
    enum { PANEL = NV * 16, LANES = BURN_VF_LANES, WIDTH = NV * LANES, PAIRS = (K + 1) / 2,
           PITCH = BURN_BF16_PITCH(K) };
    enum { ROWS = BURN_MANY_REGISTERS ? MR : (MR + 1) / 2, FEW = M_FIXED > 0 && M_FIXED < ROWS ? M_FIXED : 1 };
#if defined(BURN_BF16_AMX)
    enum { AMX_PITCH = BURN_AMX_PITCH(K), AMX_ROWS = 32, MOST_ROWS = ROWS > AMX_ROWS ? ROWS : AMX_ROWS };
    const int amx = burn_amx_open();
    uint32_t *const words = (uint32_t *)(void *)scratch;
#else
    enum { amx = 0, AMX_ROWS = ROWS, MOST_ROWS = ROWS };
#endif
    burn_bf16 *const rows = (burn_bf16 *)(void *)scratch;
#if PARTS
    const ptrdiff_t units = (N + PANEL - 1) / PANEL, from = units * part / SHARES * PANEL,
        to = units * (part + 1) / SHARES * PANEL, end = to < N ? to : N;
#else
    const ptrdiff_t from = 0, end = N;
#endif
    for (ptrdiff_t m0 = 0; m0 < M; m0 += MC) {
        const ptrdiff_t m1 = m0 + MC < M ? m0 + MC : M, first = m0 + ROWS <= m1 ? m0 : m1 < ROWS ? 0 : m1 - ROWS;
#if defined(BURN_BF16_AMX)
        for (ptrdiff_t m = m0; m < m1 && amx; m++)
            burn_amx_round(words + (m - m0) * AMX_PITCH, A + m * AM, K);
#endif
        for (ptrdiff_t m = first; m < m1 && !amx; m++)
            burn_bf16_round(rows + (m - first) * PITCH, A + m * AM, K);
        for (ptrdiff_t n = from; n < end; n += WIDTH) {
            const uint32_t *const column = B + n / PANEL * (PAIRS * PANEL) + n % PANEL;
            const ptrdiff_t columns = N - n < WIDTH ? N - n : WIDTH;
            const int vectors = (int)((columns + LANES - 1) / LANES);
#if defined(BURN_BF16_AMX)
            uint32_t rest[16 * PANEL];
            if (amx)
                burn_amx_rest(rest, column, PAIRS, PANEL);
#endif
            for (ptrdiff_t m = m0; m < m1; m += amx ? AMX_ROWS : ROWS) {
                const ptrdiff_t at = m + ROWS <= m1 || amx ? m : first < m ? m1 - ROWS : first,
                    most = amx ? AMX_ROWS : ROWS;
                const ptrdiff_t count = m1 - at < most ? m1 - at : most;
                float tile[MOST_ROWS * WIDTH];
#if defined(BURN_BF16_AMX)
                if (amx)
                    burn_amx_tiles(count > 16, vectors, PAIRS, words + (m - m0) * AMX_PITCH, AMX_PITCH, column, PANEL,
                                   rest, tile, WIDTH);
                else
#endif
                {
                    const burn_bf16 *const row = rows + (at - first) * PITCH;
                    for (ptrdiff_t i = 0; i < count && count < ROWS; i += FEW)
                        burn_bf16_tile_at(FEW, NV, vectors, PAIRS, row + i * PITCH, PITCH, column, PANEL,
                                          tile + i * WIDTH, WIDTH);
                    if (count == ROWS)
                        burn_bf16_tile_at(ROWS, NV, vectors, PAIRS, row, PITCH, column, PANEL, tile, WIDTH);
                }
                FINISH(tile + (m - at) * WIDTH, C + m * CM + n, count - (m - at), columns, m, n FINISH_ARGS);
            }
        }
    }
#if defined(BURN_BF16_AMX)
    if (amx)
        _tile_release();
#endif
}
