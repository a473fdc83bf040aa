// SPDX-License-Identifier: MIT OR Apache-2.0
/* Products of bytes: C[b][m][n] = EPILOGUE(sum over k of A[b][m][k] * B[b][k][n]), A unsigned, B signed, exact sums in
 * 32 bits. Matrices, and convolutions with the channels last whose image is padded already: there row m is the pixel
 * (y, x) and its elements lie in a run for each tap, or for each row of taps where those follow each other.
 *
 * The idea: register tiles of MR rows by NV vectors of 16 columns; the whole of k goes through a tile at once, so that
 * C is written once and may have any type. Element k of row m = y*W + x lies in run (ky, kx) at A + b*AB + g*AG + y*AY
 * + x*AX + ky*KY + kx*KX.
 *
 *   KERNEL            name of the function
 *   CT                type of C's elements
 *   BATCH G           matrices, and groups of columns with operands of their own (else 1)
 *   H W N             rows in H lines of W, columns of a group; W_FIXED: W where it is constant, else 0
 *   RUN RUNS_Y RUNS_X bytes of a run, and the runs: k is RUNS_Y * RUNS_X * RUN
 *   AB AG AY AX KY KX strides of A in bytes
 *   PACK_A AK         1: elements of a run lie AK bytes apart (RUNS_Y, RUNS_X, H 1): blocks of MC rows are copied first
 *   B_PACKED          1: the compiler packed B (pack_i8): [b][g][panel][run][ceil(RUN/4)][NV*16][4], zeros past RUN and
 *                     N; BB is the size of one matrix with all its groups, or 0. 0: element (k, n) is B[b*BB + k*BK +
 *                     n*BN]; G, RUNS_Y, RUNS_X are 1
 *   BB BK BN CB CM    strides of B in bytes, of C in elements
 *   MR NV             tile: MR <= 16 rows, at most W_FIXED unless that is 0; NV <= 4. Machines of 16 registers take
 *                     half the rows
 *   YC MC             block of A that the columns pass over: YC lines of MC rows; MC is a multiple of MR and at least W
 *                     if H > 1
 *   PARTS SHARES      PARTS 0: all of C. Else the function does the part'th of SHARES shares: of the lines; where those
 *                     are few, of tiles of rows, and where those are, of panels of columns
 *   EPILOGUE_PARAMS   text after the parameter C
 *   EPILOGUE(acc, b, m, n)  the value stored; acc is an int32_t, n counts over all groups
 *
 * scratch: 64-byte aligned, of the bytes that templates_low.c plans. The last tile of a line begins earlier where rows
 * are missing; it stores only what the one before has not.
 */
#include "vec.h"
#include "vec_i8.h"
// holes
#define KERNEL gemm_i8
#define CT int32_t
#define BATCH 1
#define G 1
#define H 1
#define W 256
#define N 1024
#define W_FIXED 256
#define RUN 1024
#define RUNS_Y 1
#define RUNS_X 1
#define AB 0
#define AG 0
#define AY 0
#define AX 1024
#define KY 0
#define KX 0
#define PACK_A 0
#define AK 1
#define B_PACKED 1
#define BB 0
#define BK 1024
#define BN 1
#define CB 0
#define CM 1024
#define MR 12
#define NV 2
#define YC 1
#define MC 256
#define PARTS 0
#define SHARES 1
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, b, m, n) (acc)
// end holes

BURN_KERNEL static void KERNEL(const uint8_t *restrict A, const int8_t *restrict B, CT *restrict C EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { PANEL = NV * 16, LANES = BURN_DOT_LANES, WIDTH = NV * LANES };
    enum { ROWS = BURN_MANY_REGISTERS ? MR : (MR + 1) / 2, GROUP = PANEL * 4,
           DEPTH = RUNS_Y * RUNS_X * ((RUN + 3) / 4) };
    (void)scratch;
#if PARTS
    const bool by_line = H >= SHARES, by_row = !by_line && W >= SHARES * ROWS, by_column = !by_line && !by_row;
    const ptrdiff_t size = by_line ? H : by_row ? W : N, unit = by_line ? 1 : by_row ? ROWS : PANEL,
        units = (size + unit - 1) / unit;
    const ptrdiff_t from_unit = units * part / SHARES * unit, to_unit = units * (part + 1) / SHARES * unit,
        share_end = to_unit < size ? to_unit : size;
    const ptrdiff_t y_from = by_line ? from_unit : 0, x_from = by_row ? from_unit : 0,
        n_from = by_column ? from_unit : 0;
    const ptrdiff_t y_end = by_line ? share_end : H, x_end = by_row ? share_end : W, n_end = by_column ? share_end : N;
#endif
    for (ptrdiff_t b = 0; b < BATCH; b++)
        for (ptrdiff_t g = 0; g < G; g++) {
#if B_PACKED
            const int8_t *const matrix = B + b * BB + g * ((N + PANEL - 1) / PANEL * DEPTH * GROUP);
#else
            int8_t *const matrix = (int8_t *)scratch;
            burn_dot_pack(matrix, PANEL, B + b * BB, BK, BN, RUN, N);
#endif
#if PARTS
            for (ptrdiff_t y0 = y_from; y0 < y_end; y0 += YC)
                for (ptrdiff_t x0 = x_from; x0 < x_end; x0 += MC) {
                    const ptrdiff_t y1 = y0 + YC < y_end ? y0 + YC : y_end, x1 = x0 + MC < x_end ? x0 + MC : x_end;
#else
            for (ptrdiff_t y0 = 0; y0 < H; y0 += YC)
                for (ptrdiff_t x0 = 0; x0 < W; x0 += MC) {
                    const ptrdiff_t y1 = y0 + YC < H ? y0 + YC : H, x1 = x0 + MC < W ? x0 + MC : W;
#endif
#if PACK_A
                    uint8_t *const rows = scratch + (B_PACKED ? 0 : (N + PANEL - 1) / PANEL * DEPTH * GROUP);
                    const ptrdiff_t pitch = (RUN + 3) / 4 * 4, first = x0 + ROWS <= x1 || x1 < ROWS ? x0 : x1 - ROWS;
                    for (ptrdiff_t x = first; x < x1; x++)
                        for (ptrdiff_t k = 0; k < RUN; k++)
                            rows[(x - first) * pitch + k] = A[b * AB + x * AX + k * AK];
                    const uint8_t *const from = rows - first * pitch;
#else
                    const ptrdiff_t pitch = AX;
                    const uint8_t *const from = A + b * AB + g * AG;
#endif
#if PARTS
                    for (ptrdiff_t n0 = n_from; n0 < n_end; n0 += WIDTH)
#else
                    for (ptrdiff_t n0 = 0; n0 < N; n0 += WIDTH)
#endif
                        for (ptrdiff_t y = y0; y < y1; y++)
                            for (ptrdiff_t x = x0; x < x1; x += ROWS) {
                                const int8_t *const column = matrix + n0 / PANEL * (DEPTH * GROUP) + n0 % PANEL * 4;
                                const int vectors = n0 + WIDTH > N ? (int)((N - n0 + LANES - 1) / LANES) : NV;
                                const ptrdiff_t columns = n0 + WIDTH > N ? N - n0 : WIDTH;
                                int32_t tile[ROWS * WIDTH];
                                const ptrdiff_t at = x + ROWS <= x1 ? x : x1 < ROWS ? 0 : x1 - ROWS;
                                const uint8_t *const row = from + y * AY + at * pitch;
#if W_FIXED == 0
                                const ptrdiff_t count = x1 - at < ROWS ? x1 - at : ROWS;
                                for (ptrdiff_t i = 0; i < count && count < ROWS; i++)
                                    burn_dot_tile_at(1, NV, vectors, row + i * pitch, pitch, RUN, RUNS_Y, KY, RUNS_X,
                                                     KX, column, GROUP,
                                                    tile + i * WIDTH, WIDTH);
                                if (count == ROWS)
#else
                                const ptrdiff_t count = ROWS;
#endif
                                    burn_dot_tile_at(ROWS, NV, vectors, row, pitch, RUN, RUNS_Y, KY, RUNS_X, KX, column,
                                                     GROUP, tile, WIDTH);
                                for (ptrdiff_t i = x - at; i < count; i++) {
                                    const ptrdiff_t m = y * W + at + i;
                                    CT *const to = C + b * CB + m * CM + g * N + n0;
                                    if (columns == WIDTH) {
                                        BURN_LOOP
                                        for (ptrdiff_t j = 0; j < WIDTH; j++)
                                            to[j] = EPILOGUE(tile[i * WIDTH + j], b, m, (g * N + n0 + j));
                                    } else
                                        for (ptrdiff_t j = 0; j < columns; j++)
                                            to[j] = EPILOGUE(tile[i * WIDTH + j], b, m, (g * N + n0 + j));
                                }
                            }
                }
        }
}
