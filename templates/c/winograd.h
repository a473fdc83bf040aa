// SPDX-License-Identifier: MIT OR Apache-2.0
/* The transforms of winograd.c, over runs of 16 tiles. Copied once, whole, into a generated file that has such a kernel.
 *
 *        | 4  0 -5  0  1  0 |            | 1  1  1  1  1  0 |
 *        | 0 -4 -4  1  1  0 |            | 0  1 -1  2 -2  0 |
 *   B' = | 0  4 -4 -1  1  0 |       A' = | 0  1  1  4  4  0 |
 *        | 0 -2 -1  2  1  0 |            | 0  1 -1  8 -8  1 |
 *        | 0  2 -1 -2  1  0 |
 *        | 0  4  0 -5  0  1 |
 */
#include "vec.h"

/* to[i*pitch + j] = sum over k of B'[i][k] * d[k][j] for j < 16. */
BURN_INLINE void burn_winograd_b(float *restrict to, ptrdiff_t pitch, const float *d0, const float *d1, const float *d2, const float *d3,
                                 const float *d4, const float *d5)
{
    BURN_CONTRACT
    for (int j = 0; j < 16; j++) {
        const float even = d4[j] - 4.0f * d2[j], odd = d3[j] - 4.0f * d1[j], far = d4[j] - d2[j], near = 2.0f * (d3[j] - d1[j]);
        to[j] = 4.0f * d0[j] - 5.0f * d2[j] + d4[j];
        to[pitch + j] = even + odd;
        to[2 * pitch + j] = even - odd;
        to[3 * pitch + j] = far + near;
        to[4 * pitch + j] = far - near;
        to[5 * pitch + j] = 4.0f * d1[j] - 5.0f * d3[j] + d5[j];
    }
}

/* to[i*pitch + j] = sum over k of A'[i][k] * from[k*row + j] for j < 16. */
BURN_INLINE void burn_winograd_a(float *restrict to, ptrdiff_t pitch, const float *from, ptrdiff_t row)
{
    BURN_CONTRACT
    for (int j = 0; j < 16; j++) {
        const float m1 = from[row + j], m2 = from[2 * row + j], m3 = from[3 * row + j], m4 = from[4 * row + j];
        const float s1 = m1 + m2, d1 = m1 - m2, s2 = m3 + m4, d2 = m3 - m4;
        to[j] = from[j] + s1 + s2;
        to[pitch + j] = d1 + 2.0f * d2;
        to[2 * pitch + j] = s1 + 4.0f * s2;
        to[3 * pitch + j] = d1 + 8.0f * d2 + from[5 * row + j];
    }
}

/* One row of pixels, iy, from column ix on, through the columns of B for `count` tiles: to[i*pitch + t], i < 6. Pixels outside of
 * the image are 0. Up to 15 more elements of each row of `to` are written, with numbers of no meaning. */
BURN_INLINE void burn_winograd_row(float *restrict to, ptrdiff_t pitch, float *restrict plane, ptrdiff_t plane_size, float *restrict line,
                                   const float *x, ptrdiff_t height, ptrdiff_t width, ptrdiff_t iy, ptrdiff_t ix, ptrdiff_t count)
{
    const ptrdiff_t end = 4 * count + 4;
    const ptrdiff_t from = ix < 0 ? (-ix < end ? -ix : end) : 0, inside = width - ix < end ? (width - ix > from ? width - ix : from) : end;
    if (iy < 0 || iy >= height) {
        for (ptrdiff_t i = 0; i < 6; i++)
            memset(to + i * pitch, 0, (size_t)(count + 15) / 16 * 16 * sizeof *to);
        return;
    }
    for (ptrdiff_t j = 0; j < from; j++)
        line[j] = 0.0f;
    if (inside > from)
        memcpy(line + from, x + iy * width + ix + from, (size_t)(inside - from) * sizeof *line);
    for (ptrdiff_t j = inside; j < end; j++)
        line[j] = 0.0f;
    float *restrict const p0 = plane, *restrict const p1 = plane + plane_size, *restrict const p2 = plane + 2 * plane_size,
                         *restrict const p3 = plane + 3 * plane_size;
    for (ptrdiff_t t = 0; t <= count; t++) {
        p0[t] = line[4 * t];
        p1[t] = line[4 * t + 1];
        p2[t] = line[4 * t + 2];
        p3[t] = line[4 * t + 3];
    }
    for (ptrdiff_t t = 0; t < count; t += 16)
        burn_winograd_b(to + t, pitch, p0 + t, p1 + t, p2 + t, p3 + t, p0 + t + 1, p1 + t + 1);
}

/* v[(i*6 + k)*step + t] from the rows of part[(r*6 + k)*pitch + t], for t < tiles. */
BURN_INLINE void burn_winograd_in(float *restrict v, ptrdiff_t step, const float *part, ptrdiff_t pitch, ptrdiff_t tiles)
{
    for (ptrdiff_t k = 0; k < 6; k++)
        for (ptrdiff_t t = 0; t < tiles; t += 16) {
            const float *const d = part + k * pitch + t;
            burn_winograd_b(v + k * step + t, 6 * step, d, d + 6 * pitch, d + 12 * pitch, d + 18 * pitch, d + 24 * pitch, d + 30 * pitch);
        }
}

/* to[(r*4 + k)*tiles + t] from m[(i*6 + j)*step + t]; half: 24 * 16 floats. */
BURN_INLINE void burn_winograd_out(float *restrict to, const float *m, ptrdiff_t step, float *restrict half, ptrdiff_t tiles)
{
    for (ptrdiff_t t = 0; t < tiles; t += 16) {
        for (ptrdiff_t j = 0; j < 6; j++)
            burn_winograd_a(half + j * 16, 6 * 16, m + j * step + t, 6 * step);
        for (ptrdiff_t r = 0; r < 4; r++)
            burn_winograd_a(to + r * 4 * tiles + t, tiles, half + r * 6 * 16, 16);
    }
}

/* line[4*t + k] = y[k*pitch + t] for t < count */
BURN_INLINE void burn_winograd_deal(float *restrict line, const float *y, ptrdiff_t pitch, ptrdiff_t count)
{
    const float *const y0 = y, *const y1 = y + pitch, *const y2 = y + 2 * pitch, *const y3 = y + 3 * pitch;
    for (ptrdiff_t t = 0; t < count; t++) {
        line[4 * t] = y0[t];
        line[4 * t + 1] = y1[t];
        line[4 * t + 2] = y2[t];
        line[4 * t + 3] = y3[t];
    }
}
