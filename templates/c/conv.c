// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution, NCDHW, fp32, any kernel, stride, dilation, padding and groups, as an implicit matrix product: output channels
 * are rows, output pixels columns, taps (ic, kd, kh, kw) the sum.  Y[n][c][p] = EPILOGUE(sum over taps of W * X).
 *
 * The idea: chunks of RC whole output rows (or, with RC 1, CC columns of one row) are computed at a time. What a chunk needs of
 * KC input channels is first copied into a small padded image, its columns sorted by their phase modulo the stride, so that every
 * tap of a run of pixels is a contiguous read without a bounds check. From it a panel of KC*taps by NV vectors of pixels is
 * gathered into L1, flattened over rows so that narrow maps fill their vectors, and all output channels pass over it.
 *
 *   KERNEL              name of the function
 *   N G IC OC           batch, groups, input and output channels of one group
 *   ID IH IW OD OH OW   input and output sizes (1-D and 2-D: leading sizes 1)
 *   KD KH KW            kernel;  SD SH SW strides;  DD DH DW dilations;  PD PH PW padding before
 *   POINTWISE           1: all of K* and S* are 1, all padding 0; the caller may then flatten to OD = OH = 1, OW = pixels, and
 *                       must if it sets PACK_X 0. X is then read without the padded image
 *   PACK_X              with POINTWISE: 1 copies the panel first (pays from OC >= 4*MR or where OW is a multiple of 256), 0 not
 *   MR NV               tile, MR even and <= 16, NV <= 4; on machines of 16 vector registers MR/2 rows are used at a time
 *   KC RC CC            input channels in a block; output rows in a chunk; columns in a chunk, OW unless RC is 1
 *   IDENTITY_EPILOGUE EPILOGUE_PARAMS   as in gemm.c
 *   EPILOGUE(acc, n, c, p)              c: output channel counted over all groups; p: output pixel (od*OH + oh)*OW + ow
 *
 * W is packed by the compiler (pack_conv_w): [group][ceil(OC/MR)][IC*KD*KH*KW][MR], zeros past OC.
 * scratch: 64-byte aligned, 4 * (KC*KD*KH*KW * NV*16 + 16 + image) bytes, where image is 0 for POINTWISE, else
 * KC * KD * ((RC-1)*SH + (KH-1)*DH + 1) * SW * (CC + (KW-1)*DW/SW) + 16 (conv_scratch_bytes in tiles.c).
 * When IC > KC, Y holds partial sums in between; so nothing that EPILOGUE reads may share memory with Y.
 */
#include "vec.h"
// holes
#define KERNEL conv
#define N 1
#define G 1
#define IC 64
#define OC 64
#define ID 1
#define IH 56
#define IW 56
#define OD 1
#define OH 56
#define OW 56
#define KD 1
#define KH 3
#define KW 3
#define SD 1
#define SH 1
#define SW 1
#define DD 1
#define DH 1
#define DW 1
#define PD 0
#define PH 1
#define PW 1
#define POINTWISE 0
#define PACK_X 1
#define MR 12
#define NV 2
#define KC 32
#define RC 4
#define CC 56
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, c, p) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
                               unsigned char *scratch)
{
    enum { LANES = BURN_VF_LANES, WIDTH = NV * LANES, ROWS = BURN_MANY_REGISTERS ? MR : MR / 2, ROWS_EDGE = OC % ROWS };
    enum { TAPS = KD * KH * KW, PANEL = (OC + MR - 1) / MR * MR };
    float *const panel = (float *)(void *)scratch;
#if !POINTWISE
    enum { PHASE = CC + (KW - 1) * DW / SW, ROW = SW * PHASE, SLICE = ((RC - 1) * SH + (KH - 1) * DH + 1) * ROW };
    float *const image = panel + KC * TAPS * NV * 16 + 16;
    const burn_window window = {ID, IH, IW, KD, KH, KW, SD, SH, SW, DD, DH, DW, PD, PH, PW, KD * SLICE, SLICE, ROW, PHASE};
    memset(image + KC * KD * SLICE, 0, 16 * sizeof *image);
#endif
    for (ptrdiff_t ng = 0; ng < N * G; ng++)
        for (ptrdiff_t o = 0; o < OD * OH * OW;) {
            const ptrdiff_t oh = o / OW % OH, ow = o % OW;
            const ptrdiff_t chunk_rows = RC < OH - oh ? RC : OH - oh, chunk_columns = CC < OW - ow ? CC : OW - ow;
            const ptrdiff_t pixels = chunk_rows * chunk_columns;
            for (ptrdiff_t c0 = 0; c0 < IC; c0 += KC) {
                const ptrdiff_t channels = c0 + KC < IC ? KC : IC - c0;
                const int first = c0 == 0, last = c0 + KC >= IC;
                const float *const x = X + (ng * IC + c0) * (ptrdiff_t)(ID * IH * IW);
#if !POINTWISE
                burn_window_image(image, x, window, channels, o / (OH * OW), oh, ow, chunk_rows);
#endif
                for (ptrdiff_t q = 0; q < pixels; q += WIDTH) {
                    const ptrdiff_t columns = pixels - q < WIDTH ? pixels - q : WIDTH;
                    const int vectors = (int)((columns + LANES - 1) / LANES);
#if POINTWISE
                    const int in_panel = PACK_X || columns < WIDTH;
                    const float *const column = in_panel ? panel : x + o + q;
                    const ptrdiff_t bk = in_panel ? WIDTH : ID * IH * IW;
                    if (in_panel)
                        burn_pack_panel(panel, WIDTH, x + o + q, ID * IH * IW, 1, channels, columns);
#else
                    const float *const column = panel;
                    const ptrdiff_t bk = WIDTH;
                    ptrdiff_t from_at[WIDTH], to_at[WIDTH];
                    const int runs = burn_window_runs(from_at, to_at, window, q, columns, chunk_columns);
                    burn_window_panel(panel, WIDTH, image, window, channels, runs, from_at, to_at);
#endif
                    for (ptrdiff_t m = 0; m < OC; m += ROWS) {
                        const int row_edge = m + ROWS > OC, to_y = columns == WIDTH && (IDENTITY_EPILOGUE || !last);
                        const ptrdiff_t count = row_edge ? ROWS_EDGE : ROWS;
                        const float *const row =
                            W + (ng % G * PANEL + m / MR * MR) * (ptrdiff_t)(IC * TAPS) + c0 * TAPS * MR + m % MR;
                        float tile[ROWS * WIDTH];
                        float *const y = Y + (ng * OC + m) * (ptrdiff_t)(OD * OH * OW) + o + q, *const out = to_y ? y : tile;
                        for (ptrdiff_t i = 0; i < count && !to_y && !first; i++)
                            for (ptrdiff_t j = 0; j < columns; j++)
                                tile[i * WIDTH + j] = y[i * OD * OH * OW + j];
                        burn_tile_at(ROWS, ROWS_EDGE, NV, vectors, row_edge, channels * TAPS, row, 1, MR, column, bk, out,
                                       to_y ? OD * OH * OW : WIDTH, !first, row + IC * TAPS * ROWS);
                        for (ptrdiff_t i = 0; i < count && !to_y; i++)
                            if (!last)
                                for (ptrdiff_t j = 0; j < columns; j++)
                                    y[i * OD * OH * OW + j] = tile[i * WIDTH + j];
                            else if (columns < WIDTH)
                                for (ptrdiff_t j = 0; j < columns; j++)
                                    y[i * OD * OH * OW + j] =
                                        EPILOGUE(tile[i * WIDTH + j], (ng / G), (ng % G * OC + m + i), (o + q + j));
                            else {
                                BURN_LOOP
                                for (ptrdiff_t j = 0; j < WIDTH; j++)
                                    y[i * OD * OH * OW + j] =
                                        EPILOGUE(tile[i * WIDTH + j], (ng / G), (ng % G * OC + m + i), (o + q + j));
                            }
                    }
                }
            }
            o += pixels;
        }
}
