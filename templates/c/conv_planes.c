// SPDX-License-Identifier: MIT OR Apache-2.0
/* Depthwise convolution on planes, fp32: G channels of input, each a plane of its own, and for each MULT planes of
 * output (1 is the usual number). Y[n][g*MULT + m][p] = EPILOGUE(sum over the taps (kd, kh, kw) of W[g*MULT +
 * m][kd][kh][kw] * X[n][g][...]).
 *
 * The idea: vectors run along a plane's rows. A tile is a vector of columns by some rows below each other: an element
 * that is loaded serves all the windows that it is in.
 *
 * With DIRECT, rows are read where they lie. What a vector reads beside a row is another row's and is masked; instead
 * of rows above and below there is one of zeros. The last vector of a row steps back. A map's first and last row, with
 * nothing beside them, are copied, and tiles with one of these find their rows by pointers.
 *
 * Else what RC output rows of a plane need is copied into a small padded image first, which stays in L1; so no border
 * is a special case, and with a stride the copy puts columns apart by their remainder, so that every tap reads whole
 * vectors. A last vector that is wider than the row is overwritten by the next row. A tile's rows are as dense as Y, so
 * that they are finished in one long loop.
 *
 *   KERNEL              name of the function
 *   N G MULT            batch, input channels, output channels per channel
 *   ID IH IW OD OH OW   input and output sizes (1-D and 2-D: leading sizes 1)
 *   KD KH KW            kernel;  SD SH SW strides;  DD DH DW dilations;  PD PH PW padding before
 *   XN XC XD XH         strides of X in floats, whose rows are dense. Y is dense
 *   BR BF               rows of a tile on machines of 32 vector registers and of 16, both <= 16
 *   RC                  output rows of an image, taken in whole tiles
 *   DIRECT              1: no image, rows are read where they lie; conv_planes_direct in tiles_planes.c says when
 *   PARTS SHARES        PARTS 0: everything. Else `part` says which of SHARES shares of the images
 *   STRIP               1: planes strip..strip_end-1, of all batches, and X and Y begin at planes x_at and y_at of
 *                       theirs; PARTS is 0 and MULT 1 then
 *   IDENTITY_EPILOGUE   1: EPILOGUE(acc, ...) is acc
 *   FINISH              name of a function of the kernel's own
 *   FINISH_PARAMS       what EPILOGUE needs of EPILOGUE_PARAMS; FINISH_ARGS the same as arguments
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
#define DIRECT 1
#define IDENTITY_EPILOGUE 1
#define FINISH conv_planes_finish
#define PARTS 0
#define SHARES 1
#define STRIP 0
#define EPILOGUE_PARAMS
#define FINISH_PARAMS
#define FINISH_ARGS
#define EPILOGUE(acc, n, c, p) (acc)
// end holes

#if DIRECT
/* Sums of a channel's pixels from p on become results. A function of its own: its constants would take the tiles'
 * registers. */
BURN_OUTLINE void FINISH(float *restrict y, ptrdiff_t count, ptrdiff_t n, ptrdiff_t c, ptrdiff_t p FINISH_PARAMS)
{
    (void)n, (void)c, (void)p;
    for (ptrdiff_t i = 0; i < count; i++)
        y[i] = EPILOGUE(y[i], n, c, (p + i));
}
#endif

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
#if STRIP
                               unsigned char *scratch, ptrdiff_t strip, ptrdiff_t strip_end, ptrdiff_t x_at,
                               ptrdiff_t y_at)
#elif PARTS
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
#if !STRIP
    const ptrdiff_t x_at = 0, y_at = 0;
#endif
    float *const sums = (float *)(void *)scratch, *const image = sums + ROWS * ((OW + 15) / 16 * 16) + 16;
#if DIRECT
    enum { TALL = (ROWS - 1) * SH + (KH - 1) * DH + 1, LINE = (IW + 15) / 16 * 16 + 48 };
    const burn_planes_window window = {KD, KH, KW, SH, SW, DH, DW, 0, XH, DD * XD};
#if STRIP
    const ptrdiff_t low = strip, high = strip_end - 1;
#else
    const ptrdiff_t low = 0, high = (ptrdiff_t)N * G - 1;
#endif
    const float *const lowest = X + low / G * XN + (low % G - x_at) * XC,
        *const highest = X + high / G * XN + (high % G - x_at) * XC + (ID - 1) * XD + (IH - 1) * XH;
    memset(image, 0, 3 * LINE * sizeof *image); /* a row of zeros, and the two that have nothing beside them */
    memcpy(image + LINE + 16, lowest, IW * sizeof *image);
    memcpy(image + 2 * LINE + 16, highest, IW * sizeof *image);
#else
    const burn_planes_window window = {KD, KH, KW, SH, SW, DH, DW, PHASE, ROW, SLICE};
    memset(image, 0, KD * SLICE * sizeof *image); /* columns outside stay so */
#endif
#if STRIP
    const ptrdiff_t first = strip * (OD * CHUNKS), end = strip_end * (OD * CHUNKS);
#elif PARTS
    const ptrdiff_t units = (ptrdiff_t)N * G * OD * CHUNKS, first = units * part / SHARES,
        end = units * (part + 1) / SHARES;
#else
    const ptrdiff_t first = 0, end = (ptrdiff_t)N * G * OD * CHUNKS;
#endif
    for (ptrdiff_t unit = first; unit < end; unit++) {
        const ptrdiff_t oh0 = unit % CHUNKS * CHUNK, od = unit / CHUNKS % OD, n = unit / (CHUNKS * OD) / G,
            g = unit / (CHUNKS * OD) % G;
        const ptrdiff_t left = OH - oh0 < CHUNK ? OH - oh0 : CHUNK;
#if !DIRECT
        for (ptrdiff_t d = 0; d < KD; d++)
            for (ptrdiff_t h = 0; h < HIGH; h++) {
                const ptrdiff_t id = od * SD - PD + d * DD, ih = oh0 * SH - PH + h;
                float *const row = image + d * SLICE + h * ROW;
                if (id < 0 || id >= ID || ih < 0 || ih >= IH)
                    memset(row, 0, ROW * sizeof *row);
                else if (COLUMNS > 0)
                    burn_planes_row(row, SW, PHASE, PW, COLUMNS, X + n * XN + (g - x_at) * XC + id * XD + ih * XH);
            }
#endif
        for (ptrdiff_t c = g * MULT; c < (g + 1) * MULT; c++)
            for (ptrdiff_t r = 0; r < left; r += ROWS) {
                const ptrdiff_t p = (od * OH + oh0 + r) * OW, rows = left - r < ROWS ? left - r : ROWS;
                float *const y = Y + (n * (G * MULT) + c - y_at) * (OD * OH * OW) + p;
#if DIRECT
                const ptrdiff_t id0 = od * SD - PD, ih0 = (oh0 + r) * SH - PH;
                const float *const x = X + n * XN + (g - x_at) * XC + id0 * XD + ih0 * XH, *row[KD * TALL];
                const bool whole = id0 >= 0 && id0 + (KD - 1) * DD < ID && ih0 >= 0 && ih0 + TALL <= IH && x != lowest
                    && x + (KD - 1) * (DD * XD) + (TALL - 1) * XH != highest;
                for (ptrdiff_t i = 0; i < KD * TALL && !whole; i++) {
                    const ptrdiff_t id = id0 + i / TALL * DD, ih = ih0 + i % TALL;
                    const float *const from = x + i / TALL * (DD * XD) + i % TALL * XH;
                    row[i] = id < 0 || id >= ID || ih < 0 || ih >= IH ? image + 16
                        : from == lowest                              ? image + LINE + 16
                        : from == highest                             ? image + 2 * LINE + 16
                                                                      : from;
                }
#endif
                for (ptrdiff_t v = 0; v < VECTORS; v++) {
                    const ptrdiff_t ow = v * LANES + LANES <= OW || OW < LANES ? v * LANES : OW - LANES;
#if DIRECT
                    const ptrdiff_t at = ow - PW;
                    const bool edge = at < 0 || at + (KW - 1) * DW + LANES > IW;
                    float *const to = rows == ROWS ? y + ow : sums;
                    const ptrdiff_t step = rows == ROWS ? OW : LANES;
                    if (whole && !edge) {
                        burn_planes_tile_rows(ROWS, window, x + at, NULL, 0, NULL, W + c * TAPS, to, step);
                    } else {
                        burn_planes_lanes inside[KW];
                        for (ptrdiff_t k = 0; k < KW; k++)
                            inside[k] = burn_planes_between(-at - k * DW, IW - at - k * DW);
                        if (whole)
                            burn_planes_tile_rows(ROWS, window, x + at, NULL, 0, inside, W + c * TAPS, to, step);
                        else
                            burn_planes_tile_rows(ROWS, window, NULL, row, at, inside, W + c * TAPS, to, step);
                    }
                    for (ptrdiff_t i = 0; i < rows && rows < ROWS; i++)
                        memcpy(y + i * OW + ow, sums + i * LANES, LANES * sizeof *y);
#else
                    burn_planes_tile(ROWS, window, image + r * (SH * ROW) + ow, W + c * TAPS, sums + ow, OW);
#endif
                }
#if DIRECT
                if (!IDENTITY_EPILOGUE && r + rows == left) /* all at once: the first have left the store queue */
                    FINISH(y - r * OW, left * OW, n, c, p - r * OW FINISH_ARGS);
#else
                for (ptrdiff_t i = 0; i < rows * OW; i++)
                    y[i] = EPILOGUE(sums[i], n, c, (p + i));
#endif
            }
    }
}
