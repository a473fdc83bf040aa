// SPDX-License-Identifier: MIT OR Apache-2.0
/* The transforms of winograd.c for up to 16 channels. Copied once, whole, into a generated file that has such a kernel.
 *
 * F(m, r) makes m outputs of a window of r from size = m + r - 1 inputs and as many products. It evaluates polynomials
 * at size - 1 points and takes their leading coefficient: 0, 1, -1 and infinity for size 4, also 2, -2 for size 6, also
 * 1/2, -1/2 for size 8, in this order, infinity last.
 *
 *   B' (inputs): the row of point p holds the coefficients of the product of (x - q) over the other points q; that of
 *   infinity, over all of them.
 *   A' (outputs): row i holds p^i, i < m; infinity's column is 1 in the last row, else 0.    G (weights):
 *                                                                                            pack_winograd_w.
 *
 * B' depends on the size alone. The rows of p and -p are e + p*o and e - p*o, where e has even powers of x and o odd
 * ones.
 */
#include "vec.h"

/* to[i*pitch + j] = sum over k of B'[i][k] * d[k*step][at + j] for j < lanes, d pointers. size: 4, 6 or 8. */
BURN_INLINE void burn_wino_b(int size, int lanes, float *restrict to, ptrdiff_t pitch, const float *const *d,
                             ptrdiff_t step, ptrdiff_t at)
{
    BURN_CONTRACT
    const float *const d0 = d[0] + at, *const d1 = d[step] + at, *const d2 = d[2 * step] + at,
        *const d3 = d[3 * step] + at;
    if (size == 8) {
        const float *const d4 = d[4 * step] + at, *const d5 = d[5 * step] + at, *const d6 = d[6 * step] + at,
            *const d7 = d[7 * step] + at;
        for (int j = 0; j < lanes; j++) {
            const float x1 = d1[j], x2 = d2[j], x3 = d3[j], x4 = d4[j], x5 = d5[j], x6 = d6[j];
            const float e1 = x6 + x2 - 4.25f * x4, o1 = x5 + x1 - 4.25f * x3;
            const float e2 = x6 - 1.25f * x4 + 0.25f * x2, o2 = 2.0f * x5 - 2.5f * x3 + 0.5f * x1;
            const float e3 = x6 - 5.0f * x4 + 4.0f * x2, o3 = 0.5f * x5 - 2.5f * x3 + 2.0f * x1;
            to[j] = x6 - d0[j] + 5.25f * (x2 - x4);
            to[pitch + j] = e1 + o1;
            to[2 * pitch + j] = e1 - o1;
            to[3 * pitch + j] = e2 + o2;
            to[4 * pitch + j] = e2 - o2;
            to[5 * pitch + j] = e3 + o3;
            to[6 * pitch + j] = e3 - o3;
            to[7 * pitch + j] = d7[j] - x1 + 5.25f * (x3 - x5);
        }
    } else if (size == 6) {
        const float *const d4 = d[4 * step] + at, *const d5 = d[5 * step] + at;
        for (int j = 0; j < lanes; j++) {
            const float e1 = d4[j] - 4.0f * d2[j], o1 = d3[j] - 4.0f * d1[j], e2 = d4[j] - d2[j],
                o2 = 2.0f * (d3[j] - d1[j]);
            to[j] = 4.0f * d0[j] - 5.0f * d2[j] + d4[j];
            to[pitch + j] = e1 + o1;
            to[2 * pitch + j] = e1 - o1;
            to[3 * pitch + j] = e2 + o2;
            to[4 * pitch + j] = e2 - o2;
            to[5 * pitch + j] = 4.0f * d1[j] - 5.0f * d3[j] + d5[j];
        }
    } else
        for (int j = 0; j < lanes; j++) {
            const float x0 = d0[j], x1 = d1[j], x2 = d2[j], x3 = d3[j];
            to[j] = x2 - x0;
            to[pitch + j] = x2 + x1;
            to[2 * pitch + j] = x2 - x1;
            to[3 * pitch + j] = x3 - x1;
        }
}

/* to[i*pitch + j] = sum over k of A'[i][k] * from[k*row + j] for i < m, j < 16. */
BURN_INLINE void burn_wino_a(int size, int m, float *restrict to, ptrdiff_t pitch, const float *restrict from,
                             ptrdiff_t row)
{
    BURN_CONTRACT
    for (int j = 0; j < 16; j++) {
        const float m1 = from[row + j], m2 = from[2 * row + j], last = from[(size - 1) * row + j];
        float sum[2] = {m1 + m2, m1 - m2}, twice[2] = {0, 0}, half[2] = {0, 0};
        if (size > 4) {
            const float m3 = from[3 * row + j], m4 = from[4 * row + j];
            twice[0] = m3 + m4, twice[1] = m3 - m4;
        }
        if (size > 6) {
            const float m5 = from[5 * row + j], m6 = from[6 * row + j];
            half[0] = m5 + m6, half[1] = m5 - m6;
        }
        BURN_UNROLL
        for (int i = 0; i < m; i++) {
            float y = sum[i % 2];
            if (i == 0)
                y += from[j];
            if (size > 4)
                y += (float)(1 << i) * twice[i % 2];
            if (size > 6)
                y += 1.0f / (float)(1 << i) * half[i % 2];
            if (i == m - 1)
                y += last;
            to[i * pitch + j] = y;
        }
    }
}

#define BURN_WINO_RUN 4 /* tiles whose inputs are transformed together: they share columns */

/* The inputs of `tiles` neighbours, tw pixels apart in a row of tiles, through B' on both sides:
 * v[(i*size_w + k)*step + tile*vp + c] for c < channels (what is left over of 16 is done with some of the last again).
 * row[i] + x*apart[i] are the channels of the pixel (i, x); those of x < 0 and x >= iw are zeros; the first tile begins
 * at x = left. An axis of size 1 is not transformed; half: size_h * (BURN_WINO_RUN*tw + size_w - tw) * 16 floats. */
BURN_INLINE void burn_wino_in(int size_h, int size_w, int tw, ptrdiff_t tiles, float *restrict v, ptrdiff_t vp,
                              ptrdiff_t step, const float *const *row, const ptrdiff_t *apart, ptrdiff_t left,
                              ptrdiff_t iw, const float *zeros, ptrdiff_t channels, float *restrict half)
{
    const int lanes = channels < 16 ? (int)channels : 16;
    const ptrdiff_t line = ((BURN_WINO_RUN - 1) * tw + size_w) * 16, columns = (tiles - 1) * tw + size_w;
    for (ptrdiff_t at = 0; at < channels; at += lanes) {
        const ptrdiff_t c = at + lanes <= channels ? at : channels - lanes;
        for (ptrdiff_t k = 0; k < columns && size_h > 1; k++) {
            const ptrdiff_t x = left + k;
            const float *pixel[8];
            for (int i = 0; i < size_h; i++)
                pixel[i] = x >= 0 && x < iw ? row[i] + x * apart[i] : zeros;
            if (size_w == 1)
                burn_wino_b(size_h, lanes, v + k * vp + c, step, pixel, 1, c);
            else
                burn_wino_b(size_h, lanes, half + k * 16, line, pixel, 1, c);
        }
        for (ptrdiff_t t = 0; t < tiles && size_w > 1; t++)
            for (int i = 0; i < size_h; i++) {
                const float *pixel[8];
                for (int k = 0; k < size_w; k++) {
                    const ptrdiff_t x = left + t * tw + k;
                    pixel[k] = size_h > 1 ? half + i * line + (t * tw + k) * 16
                        : x >= 0 && x < iw ? row[0] + x * apart[0] + c : zeros;
                }
                burn_wino_b(size_w, lanes, v + t * vp + i * size_w * step + c, step, pixel, 1, 0);
            }
    }
}

/* 16 channels of one tile's products back to its th x tw pixels: to[(i*tw + k)*pitch + j] from m[(i*size_w + k)*step +
 * j]. */
BURN_INLINE void burn_wino_out(int size_h, int size_w, int th, int tw, float *restrict to, ptrdiff_t pitch,
                               const float *restrict m, ptrdiff_t step, float *restrict half)
{
    if (size_h == 1 || size_w == 1)
        burn_wino_a(size_h * size_w, th * tw, to, pitch, m, step);
    else {
        for (int k = 0; k < size_w; k++)
            burn_wino_a(size_h, th, half + k * 16, size_w * 16, m + k * step, size_w * step);
        for (int i = 0; i < th; i++)
            burn_wino_a(size_w, tw, to + i * tw * pitch, pitch, half + i * size_w * 16, 16);
    }
}
