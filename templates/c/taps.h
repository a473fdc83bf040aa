// SPDX-License-Identifier: MIT OR Apache-2.0
/* What convolutions with the channels last share: sums over the taps of a window. Copied once, whole, into a generated
 * file that has any.
 *
 * A window's taps lie in rows: tap row t = d*KH + h holds KW pixels, and where pixels are dense the row is one run of
 * KW * channels floats, so that a window's sum is a few long runs. burn_taps_tile is burn_tile over such runs: the
 * accumulators stay in registers from the first to the last. */
#ifndef BURN_TAPS_H
#define BURN_TAPS_H
#include "vec.h"

/* Tap row t lies t / rows * slice + t % rows * row floats from a window's first pixel and is `runs` runs of `depth`
 * floats, `run` floats apart. One input image: what the taps of pixel (0, 0) begin at is given beside it. */
typedef struct burn_taps {
    int rows, runs;
    ptrdiff_t depth, slice, row, run;
} burn_taps;

#if !defined(BURN_PORTABLE)
/* c[i*cm + j] = sum over the tap rows first..last-1 of a pixel's floats times b, plus the old c if `add`, for pixels i
 * < count. Pixel i begins at a + i / width * below + i % width * beside. b goes on by bk floats from float to float,
 * through all taps. As burn_tile, count, vectors and width are constants, and one line of `ahead` is brought near for
 * each step. */
BURN_INLINE void burn_taps_tile(int count, int vectors, int width, ptrdiff_t first, ptrdiff_t last, burn_taps g,
                                const float *a, ptrdiff_t beside,
                                ptrdiff_t below, const float *b, ptrdiff_t bk, float *c, ptrdiff_t cm, int add,
                                const float *ahead)
{
    BURN_CONTRACT
    burn_vf sum[BURN_TILE_ROWS][BURN_TILE_VECTORS];
    BURN_UNROLL
    for (int i = 0; i < count; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = (burn_vf){0};
    }
    for (ptrdiff_t t = first; t < last; t++)
        for (ptrdiff_t r = 0; r < g.runs; r++) {
            const float *from = a + t / g.rows * g.slice + t % g.rows * g.row + r * g.run;
            for (ptrdiff_t k = 0; k < g.depth; k++, b += bk, ahead += 16) {
                BURN_PREFETCH(ahead);
                burn_vf column[BURN_TILE_VECTORS];
                BURN_UNROLL
                for (int v = 0; v < vectors; v++) {
                    column[v] = burn_vf_load(b + v * BURN_VF_LANES);
                    if (count > 1)
                        BURN_HELD(column[v]);
                }
                BURN_UNROLL
                for (int i = 0; i < count; i++) {
                    const float s = from[i / width * below + i % width * beside + k];
                    BURN_UNROLL
                    for (int v = 0; v < vectors; v++)
                        sum[i][v] += s * column[v];
                }
            }
        }
    BURN_UNROLL
    for (int i = 0; i < count; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++) {
            float *const to = c + i * cm + v * BURN_VF_LANES;
            burn_vf_store(to, add ? burn_vf_load(to) + sum[i][v] : sum[i][v]);
        }
    }
}
#else
/* The same in plain C: a row of pixels and a run at a time. */
BURN_OUTLINE void burn_taps_tile(int count, int vectors, int width, ptrdiff_t first, ptrdiff_t last, burn_taps g,
                                 const float *a, ptrdiff_t beside,
                                 ptrdiff_t below, const float *b, ptrdiff_t bk, float *c, ptrdiff_t cm, int add,
                                 const float *ahead)
{
    for (int i = 0; i < count && !add && first >= last; i++)
        memset(c + i * cm, 0, (size_t)vectors * BURN_VF_LANES * sizeof *c);
    for (int i = 0; i < count; i += width) {
        const float *column = b;
        int more = add;
        for (ptrdiff_t t = first; t < last; t++)
            for (ptrdiff_t r = 0; r < g.runs; r++, column += g.depth * bk, more = 1)
                burn_tile(count - i < width ? count - i : width, vectors, g.depth,
                          a + i / width * below + t / g.rows * g.slice + t % g.rows * g.row + r * g.run,
                          beside, 1, column, bk, c + i * cm, cm, more, ahead);
    }
}
#endif

/* burn_taps_tile for a tile that may be at an edge: `count` pixels, or count_edge where at_edge, by max_vectors or, at
 * the last columns, vectors_edge vectors. Each tile that can be is compiled once. */
BURN_INLINE void burn_taps_tile_at(int count, int count_edge, int max_vectors, int vectors_edge, int width,
                                   bool at_edge, bool at_columns_edge,
                                   ptrdiff_t first, ptrdiff_t last, burn_taps g, const float *a, ptrdiff_t beside,
                                   ptrdiff_t below, const float *b,
                                   ptrdiff_t bk, float *c, ptrdiff_t cm, int add, const float *ahead)
{
    if (at_columns_edge && vectors_edge > 0 && vectors_edge != max_vectors) {
        if (!at_edge)
            burn_taps_tile(count, vectors_edge, width, first, last, g, a, beside, below, b, bk, c, cm, add, ahead);
        else if (count_edge > 0)
            burn_taps_tile(count_edge, vectors_edge, width, first, last, g, a, beside, below, b, bk, c, cm, add, ahead);
    } else {
        if (!at_edge)
            burn_taps_tile(count, max_vectors, width, first, last, g, a, beside, below, b, bk, c, cm, add, ahead);
        else if (count_edge > 0)
            burn_taps_tile(count_edge, max_vectors, width, first, last, g, a, beside, below, b, bk, c, cm, add, ahead);
    }
}

/* The first of the outputs from..end-1 that reads at or after its input's first element, else `end`; output i reads i *
 * stride + offset. */
BURN_INLINE ptrdiff_t burn_taps_first(ptrdiff_t offset, ptrdiff_t stride, ptrdiff_t from, ptrdiff_t end)
{
    const ptrdiff_t first = offset < 0 ? (stride - 1 - offset) / stride : 0;
    return first < from ? from : first < end ? first : end;
}

/* A row of a padded image: pixel q of `to`, pitch floats from the next, is pixel at + q of `from` where that is in
 * 0..limit-1, else 0. A pixel is `channels` floats, those of `from` xc apart and its pixels xw apart. What lies between
 * pixels of `to` becomes 0. */
BURN_INLINE void burn_taps_row(float *restrict to, ptrdiff_t pitch, ptrdiff_t width, const float *restrict from,
                               ptrdiff_t at, ptrdiff_t limit, ptrdiff_t channels, ptrdiff_t xw, ptrdiff_t xc)
{
    const ptrdiff_t left = at < 0 ? (-at < width ? -at : width) : 0, inside = limit - at < width ? limit - at : width;
    const ptrdiff_t right = inside > left ? inside : left;
    memset(to, 0, (size_t)(left * pitch) * sizeof *to);
    from += (at + left) * xw;
    if (xc == 1 && xw == channels && pitch == channels && right > left)
        memcpy(to + left * pitch, from, (size_t)((right - left) * pitch) * sizeof *to);
    else if (xc == 1)
        for (ptrdiff_t q = left; q < right; q++, from += xw) {
            memcpy(to + q * pitch, from, (size_t)channels * sizeof *to);
            memset(to + q * pitch + channels, 0, (size_t)(pitch - channels) * sizeof *to);
        }
    else if (channels == 3 && pitch == 3 && xw == 1) /* a picture: woven whole vectors at a time */
        for (ptrdiff_t q = 0; q < right - left; q++) {
            const float r = from[q], g = from[q + xc], b = from[q + 2 * xc];
            to[(left + q) * 3] = r;
            to[(left + q) * 3 + 1] = g;
            to[(left + q) * 3 + 2] = b;
        }
    else
        /* pieces whose lines stay near while the channels are woven in */
        for (ptrdiff_t q0 = left; q0 < right; q0 += 64) {
            const ptrdiff_t q1 = q0 + 64 < right ? q0 + 64 : right;
            for (ptrdiff_t c = 0; c < pitch; c++)
                for (ptrdiff_t q = q0; q < q1; q++)
                    to[q * pitch + c] = c < channels ? from[(q - left) * xw + c * xc] : 0.0f;
        }
    memset(to + right * pitch, 0, (size_t)((width - right) * pitch) * sizeof *to);
}

/* The padded image that `rows` input rows from ih on of `slices` slices, each dd below the one before, from id on,
 * make: columns from iw on. */
BURN_INLINE void burn_taps_image(float *restrict image, ptrdiff_t slice, ptrdiff_t row, ptrdiff_t pitch,
                                 ptrdiff_t width, const float *restrict x, const ptrdiff_t size[3],
                                 const ptrdiff_t stride[3], ptrdiff_t xc, ptrdiff_t channels, ptrdiff_t id,
                                 ptrdiff_t dd, ptrdiff_t slices, ptrdiff_t ih, ptrdiff_t rows, ptrdiff_t iw)
{
    for (ptrdiff_t d = 0; d < slices; d++)
        for (ptrdiff_t h = 0; h < rows; h++) {
            float *const to = image + d * slice + h * row;
            const ptrdiff_t zd = id + d * dd, zh = ih + h;
            if (zd >= 0 && zd < size[0] && zh >= 0 && zh < size[1])
                burn_taps_row(to, pitch, width, x + zd * stride[0] + zh * stride[1], iw, size[2], channels, stride[2],
                              xc);
            else
                memset(to, 0, (size_t)(width * pitch) * sizeof *to);
        }
}

/* A depthwise window: taps, and in pixels what is between outputs and between taps of a row, the padding before and the
 * width of the input (these for edges only); in floats of the input what is between outputs, taps of a row, tap rows
 * and slices; floats from tap to tap of the weights. */
typedef struct burn_taps_depth {
    int kh, kw, sw, dw, pw, iw;
    ptrdiff_t beside, next, row, slice, tap;
} burn_taps_depth;

/* to[j][lane] = the sums of one vector of channels for the `columns` outputs from column ow on, over the taps d0..d1-1,
 * h0..h1-1 and all of a row. x: where output ow's window begins (perhaps outside). With `edge` ow is a constant, and
 * taps outside of the row are left out when this is compiled; else none is outside. */
BURN_INLINE void burn_taps_depthwise(int columns, bool edge, int ow, burn_taps_depth g, ptrdiff_t d0, ptrdiff_t d1,
                                     ptrdiff_t h0, ptrdiff_t h1, const float *x, const float *w, float *to)
{
    burn_vf sum[BURN_TILE_ROWS];
    BURN_UNROLL
    for (int j = 0; j < columns; j++)
        burn_vf_zero(&sum[j]);
    for (ptrdiff_t d = d0; d < d1; d++) {
        const float *row = x + d * g.slice + h0 * g.row, *taps = w + (d * g.kh + h0) * g.kw * g.tap;
        for (ptrdiff_t h = h0; h < h1; h++, row += g.row, taps += g.kw * g.tap) {
            /* measured: longer blocks and strides are slower by it, these a fifth faster */
            if (columns <= 6 && g.sw == 1) {
                BURN_OPAQUE(row);
                BURN_OPAQUE(taps);
            }
            if (g.kw <= 7) {
                BURN_UNROLL
                for (int j = 0; j < columns; j++) {
                    BURN_UNROLL
                    for (int k = 0; k < g.kw; k++)
                        if (!edge || ((ow + j) * g.sw - g.pw + k * g.dw >= 0
                                      && (ow + j) * g.sw - g.pw + k * g.dw < g.iw))
                            burn_vf_muladd2(&sum[j], row + j * g.beside + k * g.next, taps + k * g.tap);
                }
            } else {
                for (int k = 0; k < g.kw; k++) {
                    BURN_UNROLL
                    for (int j = 0; j < columns; j++)
                        if (!edge || ((ow + j) * g.sw - g.pw + k * g.dw >= 0
                                      && (ow + j) * g.sw - g.pw + k * g.dw < g.iw))
                            burn_vf_muladd2(&sum[j], row + j * g.beside + k * g.next, taps + k * g.tap);
                }
            }
        }
    }
    BURN_UNROLL
    for (int j = 0; j < columns; j++)
        burn_vf_put(to + j * BURN_VF_LANES, &sum[j]);
}
#endif
