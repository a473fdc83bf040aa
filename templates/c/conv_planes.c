// SPDX-License-Identifier: MIT OR Apache-2.0
/* Depthwise convolution on planes, fp32: G channels of input, each a plane of its own, and for each MULT planes of
 * output (1 is the usual number). Y[n][g*MULT + m][p] = EPILOGUE(sum over the taps (kd, kh, kw) of W[g*MULT +
 * m][kd][kh][kw] * X[n][g][...]).
 *
 * The idea: vectors run along a plane's rows. What RC output rows of a plane need is copied into a small padded image
 * first, which stays in L1; so no border is a special case, and with a stride the copy puts columns apart by their
 * remainder, so that every tap reads whole vectors. A tile is a vector of columns by some rows below each other: an
 * element that is loaded serves all the windows that it is in. The last vector of a row steps back; one that is wider
 * than the row is overwritten by the next row. A tile's rows are as dense as Y, so that they are finished in one long
 * loop.
 *
 *   KERNEL              name of the function
 *   N G MULT            batch, input channels, output channels per channel
 *   ID IH IW OD OH OW   input and output sizes (1-D and 2-D: leading sizes 1)
 *   KD KH KW            kernel;  SD SH SW strides;  DD DH DW dilations;  PD PH PW padding before
 *   XN XC XD XH         strides of X in floats, whose rows are dense. Y is dense
 *   BR BF               rows of a tile on machines of 32 vector registers and of 16, both <= 16
 *   RC                  output rows of an image, taken in whole tiles
 *   PARTS               PARTS 0: everything. Else `part` says which of PARTS shares of the images
 *   EPILOGUE_PARAMS     text after the parameter Y: empty or `, const float *restrict e_bias`; no name of a local here
 *   EPILOGUE(acc, n, c, p)   the value stored; c: output channel; p: output pixel (od*OH + oh)*OW + ow; nothing that it
 *                            reads may share memory with Y
 *
 * scratch: 64-byte aligned, conv_planes_scratch_bytes in tiles_planes.c.
 */
#include "planes.h"
// holes
#define KERNEL conv_planes
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
#define XN 451584
#define XC 3136
#define XD 3136
#define XH 56
#define BR 8
#define BF 4
#define RC 56
#define PARTS 0
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, c, p) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { LANES = BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? BR : BF, CHUNK = (RC + ROWS - 1) / ROWS * ROWS,
           CHUNKS = (OH + CHUNK - 1) / CHUNK };
    enum { VECTORS = (OW + LANES - 1) / LANES, WIDE = (OW - 1) * SW + (KW - 1) * DW + 1,
           COLUMNS = WIDE - PW < IW ? WIDE - PW : IW };
    enum { PHASE = ((OW > LANES ? OW : LANES) + (KW - 1) * DW / SW + 15) / 16 * 16, ROW = SW * PHASE };
    enum { HIGH = (CHUNK - 1) * SH + (KH - 1) * DH + 1, SLICE = HIGH * ROW, TAPS = KD * KH * KW };
    const burn_planes_window window = {KD, KH, KW, SH, SW, DH, DW, PHASE, ROW, SLICE};
    float *const sums = (float *)(void *)scratch, *const image = sums + (ROWS * OW + 31) / 16 * 16;
    memset(image, 0, KD * SLICE * sizeof *image); /* columns outside stay so */
#if PARTS
    const ptrdiff_t units = (ptrdiff_t)N * G * OD * CHUNKS, first = units * part / PARTS,
        end = units * (part + 1) / PARTS;
#else
    const ptrdiff_t first = 0, end = (ptrdiff_t)N * G * OD * CHUNKS;
#endif
    for (ptrdiff_t unit = first; unit < end; unit++) {
        const ptrdiff_t oh0 = unit % CHUNKS * CHUNK, od = unit / CHUNKS % OD, n = unit / (CHUNKS * OD) / G,
            g = unit / (CHUNKS * OD) % G;
        const ptrdiff_t left = OH - oh0 < CHUNK ? OH - oh0 : CHUNK;
        for (ptrdiff_t d = 0; d < KD; d++)
            for (ptrdiff_t h = 0; h < HIGH; h++) {
                const ptrdiff_t id = od * SD - PD + d * DD, ih = oh0 * SH - PH + h;
                float *const row = image + d * SLICE + h * ROW;
                if (id < 0 || id >= ID || ih < 0 || ih >= IH)
                    memset(row, 0, ROW * sizeof *row);
                else if (COLUMNS > 0)
                    burn_planes_row(row, SW, PHASE, PW, COLUMNS, X + n * XN + g * XC + id * XD + ih * XH);
            }
        for (ptrdiff_t c = g * MULT; c < (g + 1) * MULT; c++)
            for (ptrdiff_t r = 0; r < left; r += ROWS) {
                const ptrdiff_t p = (od * OH + oh0 + r) * OW, count = (left - r < ROWS ? left - r : ROWS) * OW;
                float *const y = Y + (n * (G * MULT) + c) * (OD * OH * OW) + p;
                for (ptrdiff_t v = 0; v < VECTORS; v++) {
                    const ptrdiff_t ow = v * LANES + LANES <= OW || OW < LANES ? v * LANES : OW - LANES;
                    burn_planes_tile(ROWS, window, image + r * (SH * ROW) + ow, W + c * TAPS, sums + ow, OW);
                }
                for (ptrdiff_t i = 0; i < count; i++)
                    y[i] = EPILOGUE(sums[i], n, c, (p + i));
            }
    }
}
