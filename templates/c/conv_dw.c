// SPDX-License-Identifier: MIT OR Apache-2.0
/* Depthwise convolution, NCDHW, fp32: G channels of input, each with MULT output channels of its own (MULT 1 is the usual one).
 * Y[n][g*MULT + m][p] = EPILOGUE(sum over taps (kd, kh, kw) of W[g*MULT + m][tap] * X[n][g][...]).
 *
 * The idea: RC output rows at a time, what they need of a channel is copied into a small padded image in L1 whose columns are
 * sorted by their phase modulo SW, so that borders and strides disappear and every tap of a vector of output columns is one load;
 * RT output rows are computed together and share the loads of input rows. Instead of edges there is overlap: the last vector of
 * a row, the last rows and the last chunk step back and compute some outputs twice, the same both times.
 *
 *   KERNEL              name of the function
 *   N G MULT            batch, channels, output channels per channel
 *   ID IH IW OD OH OW  KD KH KW  SD SH SW  DD DH DW  PD PH PW   sizes, kernel, strides, dilations, padding before, as in conv.c
 *   RT RC               output rows in a register tile and in a chunk: RT <= RC <= OH, RT <= 8
 *   IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, n, c, p)   as in conv.c; nothing that it reads may share memory with Y
 *
 * W: [G*MULT][KD*KH*KW], in the model's order, not packed.
 * scratch: 64-byte aligned, 4 * (KD * ((RC-1)*SH + (KH-1)*DH + 1) * SW * (OW + (KW-1)*DW/SW) + 16) bytes
 * (conv_dw_scratch_bytes in tiles.c).
 */
#include "vec.h"
// holes
#define KERNEL conv_dw
#define N 1
#define G 144
#define MULT 1
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
#define RT 4
#define RC 56
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, c, p) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
                               unsigned char *scratch)
{
    enum { LANES = BURN_VF_LANES, COLUMNS = OW < LANES ? OW : LANES, TAPS = KD * KH * KW };
    enum { PHASE = OW + (KW - 1) * DW / SW, ROW = SW * PHASE, SLICE = ((RC - 1) * SH + (KH - 1) * DH + 1) * ROW };
    const burn_window window = {ID, IH, IW, KD, KH, KW, SD, SH, SW, DD, DH, DW, PD, PH, PW, KD * SLICE, SLICE, ROW, PHASE};
    float *const image = (float *)(void *)scratch;
    memset(image + KD * SLICE, 0, 16 * sizeof *image);
    for (ptrdiff_t ng = 0; ng < N * G; ng++)
        for (ptrdiff_t od = 0; od < OD; od++)
            for (ptrdiff_t chunk = 0; chunk < OH; chunk += RC) {
                const ptrdiff_t oh0 = chunk + RC < OH ? chunk : OH - RC;
                burn_window_image(image, X + ng * (ptrdiff_t)(ID * IH * IW), window, 1, od, oh0, 0, RC);
                for (ptrdiff_t c = ng * MULT; c < (ng + 1) * MULT; c++)
                    for (ptrdiff_t r0 = 0; r0 < RC; r0 += RT)
                        for (ptrdiff_t w0 = 0; w0 < OW; w0 += LANES) {
                            const ptrdiff_t r = r0 + RT < RC ? r0 : RC - RT, ow = w0 + COLUMNS < OW ? w0 : OW - COLUMNS;
                            const ptrdiff_t p = (od * OH + oh0 + r) * OW + ow;
                            const float *const weights = W + c % (G * MULT) * TAPS;
                            float *const y = Y + c * (ptrdiff_t)(OD * OH * OW) + p;
                            burn_vf sum[RT];
                            float tile[RT][LANES];
                            BURN_UNROLL
                            for (int i = 0; i < RT; i++)
                                burn_vf_zero(&sum[i]);
                            for (int d = 0; d < KD; d++)
#if KH * KW <= 49
                                BURN_UNROLL
#endif
                                for (int h = 0; h < (RT - 1) * SH + (KH - 1) * DH + 1; h++)
#if KH * KW <= 49
                                    BURN_UNROLL
#endif
                                    for (int w = 0; w < KW; w++) {
                                        const float *const from =
                                            image + d * SLICE + (r * SH + h) * ROW + w * DW % SW * PHASE + w * DW / SW + ow;
                                        BURN_UNROLL
                                        for (int i = 0; i < RT; i++)
                                            if (h >= i * SH && (h - i * SH) % DH == 0 && (h - i * SH) / DH < KH)
                                                burn_vf_muladd(&sum[i], weights[(d * KH + (h - i * SH) / DH) * KW + w], from);
                                    }
                            BURN_UNROLL
                            for (int i = 0; i < RT; i++)
                                burn_vf_put(tile[i], &sum[i]);
                            for (ptrdiff_t i = 0; i < RT; i++) {
                                BURN_LOOP
                                for (ptrdiff_t j = 0; j < COLUMNS; j++)
                                    y[i * OW + j] = EPILOGUE(tile[i][j], (c / (G * MULT)), (c % (G * MULT)), (p + i * OW + j));
                            }
                        }
            }
}
