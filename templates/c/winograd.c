// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution 3x3, stride 1, fp32, NCHW, one group, by Winograd's F(4x4, 3x3): a tile of 4x4 output pixels takes 36 products
 * per pair of channels instead of 144.  Y = A' [ (G w G') * (B' d B) ] A per tile, with the points 0, 1, -1, 2, -2, infinity.
 *
 * The idea: TB tiles at a time. Their input tiles are transformed for all input channels (V), and the 36 numbers of a tile are 36
 * independent matrix products  M[x] = U[x] V[x]  of [OC x IC] by [IC x TB], made by the register tile that every contraction uses,
 * MR output channels at a time, which are transformed back while they are in cache. All transforms run over tiles as vectors:
 * a row of pixels is dealt into four planes (pixel 4t + k is plane k, element t), so that a tile's columns 4 and 5 are the
 * next tile's 0 and 1, and nothing is read with a stride.
 *
 *   KERNEL            name of the function
 *   N IC OC           batch, input and output channels
 *   IH IW OH OW       input and output sizes;  PH PW padding before
 *   MR NV             tile of the products, as in conv.c
 *   TB                tiles in a block, a multiple of NV * 16
 *   IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, n, c, p)      as in conv.c
 *
 * W is transformed and packed by the compiler (pack_winograd_w): [36][ceil(OC/MR)][IC][MR], zeros past OC.
 * scratch: 64-byte aligned, winograd_scratch_bytes in tiles.c.
 * Error: about 20 times that of the direct sum, whose terms it weighs by up to 8; relative to the largest output some 1e-6.
 */
#include "winograd.h"
// holes
#define KERNEL winograd
#define N 1
#define IC 64
#define OC 64
#define IH 56
#define IW 56
#define OH 56
#define OW 56
#define PH 1
#define PW 1
#define MR 12
#define NV 2
#define TB 64
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, c, p) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
                               unsigned char *scratch)
{
    enum { WIDTH = NV * BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? MR : MR / 2, ROWS_EDGE = OC % ROWS, PANELS = (OC + MR - 1) / MR };
    enum { TILES_Y = (OH + 3) / 4, TILES_X = (OW + 3) / 4, TILES = TILES_Y * TILES_X, PLANE = (TILES_X + 15) / 16 * 16 + 16 };
    float *const v = (float *)(void *)scratch, *const m = v + (ptrdiff_t)36 * IC * TB, *const part = m + (ptrdiff_t)36 * MR * TB;
    float *const half = part + 36 * (TB + 16), *const plane = half + 24 * 16, *const line = plane + 4 * PLANE;
    memset(part, 0, (size_t)(36 * (TB + 16) + 24 * 16 + 8 * PLANE) * sizeof *part); /* numbers everywhere, also where no tile is */
    for (ptrdiff_t n = 0; n < N; n++)
        for (ptrdiff_t t0 = 0; t0 < TILES; t0 += TB) {
            const ptrdiff_t t1 = t0 + TB < TILES ? t0 + TB : TILES;
            for (ptrdiff_t c = 0; c < IC; c++) {
                const float *const x = X + (n * IC + c) * (ptrdiff_t)(IH * IW);
                for (ptrdiff_t t = t0; t < t1;) { /* what the block has of each row of tiles */
                    const ptrdiff_t ty = t / TILES_X, tx = t % TILES_X, left = TILES_X - tx, count = left < t1 - t ? left : t1 - t;
                    for (ptrdiff_t r = 0; r < 6; r++)
                        burn_winograd_row(part + r * 6 * (TB + 16) + t - t0, TB + 16, plane, PLANE, line, x, IH, IW, 4 * ty + r - PH,
                                          4 * tx - PW, count);
                    t += count;
                }
                burn_winograd_in(v + c * TB, IC * TB, part, TB + 16, TB);
            }
            for (ptrdiff_t o = 0; o < OC; o += ROWS) {
                const int row_edge = o + ROWS > OC;
                const ptrdiff_t rows = row_edge ? ROWS_EDGE : ROWS;
                for (ptrdiff_t k = 0; k < 36; k++) {
                    const float *const w = W + ((k * PANELS + o / MR) * IC) * MR + o % MR;
                    for (ptrdiff_t j = 0; j < t1 - t0; j += WIDTH)
                        burn_tile_at(ROWS, ROWS_EDGE, NV, NV, row_edge, IC, w, 1, MR, v + k * IC * TB + j, TB, m + k * ROWS * TB + j, TB,
                                     0, w + PANELS * IC * MR);
                }
                for (ptrdiff_t i = 0; i < rows; i++) {
                    burn_winograd_out(part, m + i * TB, ROWS * TB, half, TB);
                    for (ptrdiff_t t = t0; t < t1;) {
                        const ptrdiff_t ty = t / TILES_X, tx = t % TILES_X, left = TILES_X - tx, count = left < t1 - t ? left : t1 - t;
                        const ptrdiff_t columns = 4 * (tx + count) < OW ? 4 * count : OW - 4 * tx;
                        for (ptrdiff_t r = 0; r < 4 && 4 * ty + r < OH; r++) {
                            const ptrdiff_t p = (4 * ty + r) * OW + 4 * tx;
                            float *const y = Y + (n * OC + o + i) * (ptrdiff_t)(OH * OW) + p;
                            burn_winograd_deal(line, part + r * 4 * TB + t - t0, TB, count);
                            BURN_LOOP
                            for (ptrdiff_t j = 0; j < columns; j++)
                                y[j] = EPILOGUE(line[j], n, (o + i), (p + j));
                        }
                        t += count;
                    }
                }
            }
        }
}
