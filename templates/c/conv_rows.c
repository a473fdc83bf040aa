// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution of small maps: as conv.c, NCDHW, fp32, any kernel, stride, dilation, padding and groups, but with output pixels as
 * rows of the matrix product and output channels as columns. Y[n][c][p] = EPILOGUE(sum over taps of W * X).
 *
 * The idea: 49 pixels fill three vectors and a sixteenth of a fourth, and four rows of tiles and a twelfth of a fifth; rows that
 * are not there cost nothing. So vectors run over output channels, of which there are many when maps are small, and every weight
 * is read once per image. Sums lie in scratch as [pixel][channel] and are turned round when they are final.
 *
 *   KERNEL              name of the function
 *   N G IC OC           batch, groups, input and output channels of one group
 *   ID IH IW OD OH OW  KD KH KW  SD SH SW  DD DH DW  PD PH PW   sizes, kernel, strides, dilations, padding before, as in conv.c
 *   MR NV               tile, MR even and <= 16, NV <= 4; on machines of 16 vector registers MR/2 rows are used at a time
 *   KC                  input channels in a block
 *   IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, n, c, p)   as in conv.c
 *
 * W is packed by the compiler: per group pack_gemm_b(w, n = OC, k = taps, row_stride 1, column_stride taps, nr = NV*16), which is
 * [group][ceil(OC/NR)][IC*KD*KH*KW][NR], zeros past OC (pack_conv_w with mr = NR does the same).
 * scratch: 64-byte aligned, 4 * (OH*OW * round_up(OC, NR) + round_up(KC*KD*KH*KW * OH*OW + 16, 16) + KC * KD * image + 16) bytes,
 * where image is ((OH-1)*SH + (KH-1)*DH + 1) * SW * (OW + (KW-1)*DW/SW)  (conv_rows_scratch_bytes in tiles.c).
 */
#include "vec.h"
// holes
#define KERNEL conv_rows
#define N 1
#define G 1
#define IC 512
#define OC 512
#define ID 1
#define IH 7
#define IW 7
#define OD 1
#define OH 7
#define OW 7
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
#define MR 12
#define NV 2
#define KC 64
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, c, p) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
                               unsigned char *scratch)
{
    enum { WIDTH = NV * BURN_VF_LANES, PANEL = NV * 16, CHANNELS = (OC + PANEL - 1) / PANEL * PANEL, TAPS = KD * KH * KW };
    enum { ROWS = BURN_MANY_REGISTERS ? MR : MR / 2, PIXELS = OH * OW, ROWS_EDGE = PIXELS % ROWS };
    enum { PHASE = OW + (KW - 1) * DW / SW, ROW = SW * PHASE, SLICE = ((OH - 1) * SH + (KH - 1) * DH + 1) * ROW };
    const burn_window window = {ID, IH, IW, KD, KH, KW, SD, SH, SW, DD, DH, DW, PD, PH, PW, KD * SLICE, SLICE, ROW, PHASE};
    float *const sums = (float *)(void *)scratch;
    float *const panel = sums + PIXELS * CHANNELS;
    float *const image = panel + (KC * TAPS * PIXELS + 31) / 16 * 16;
    memset(image + KC * KD * SLICE, 0, 16 * sizeof *image);
    ptrdiff_t from_at[PIXELS], to_at[PIXELS];
    const int runs = burn_window_runs(from_at, to_at, window, 0, PIXELS, OW);
    for (ptrdiff_t ng = 0; ng < N * G; ng++)
        for (ptrdiff_t od = 0; od < OD; od++) {
            for (ptrdiff_t c0 = 0; c0 < IC; c0 += KC) {
                const ptrdiff_t channels = c0 + KC < IC ? KC : IC - c0;
                burn_window_image(image, X + (ng * IC + c0) * (ptrdiff_t)(ID * IH * IW), window, channels, od, 0, 0, OH);
                burn_window_panel(panel, PIXELS, image, window, channels, runs, from_at, to_at);
                for (ptrdiff_t c = 0; c < OC; c += WIDTH) {
                    const float *const column =
                        W + (ng % G * CHANNELS + c / PANEL * PANEL) * (ptrdiff_t)(IC * TAPS) + c0 * TAPS * PANEL + c % PANEL;
                    for (ptrdiff_t p = 0; p < PIXELS; p += ROWS)
                        burn_tile_at(ROWS, ROWS_EDGE, NV, NV, p + ROWS > PIXELS, channels * TAPS, panel + p, 1, PIXELS, column,
                                     PANEL, sums + p * CHANNELS + c, CHANNELS, c0 > 0,
                                     column + IC * TAPS * PANEL + p / ROWS * channels * TAPS * 16);
                }
            }
            for (ptrdiff_t c = 0; c < OC; c++) {
                float *const y = Y + ((ng * OC + c) * OD + od) * PIXELS;
                for (ptrdiff_t p = 0; p < PIXELS; p++)
                    y[p] = EPILOGUE(sums[p * CHANNELS + c], (ng / G), (ng % G * OC + c), (od * PIXELS + p));
            }
        }
}
