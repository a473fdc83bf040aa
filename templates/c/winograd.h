// SPDX-License-Identifier: MIT OR Apache-2.0
/* The transforms of winograd.c for 16 channels: F(4x4, 3x3) with the points 0, 1, -1, 2, -2, infinity, and F(2x2, 3x3) with 0, 1, -1,
 * infinity. Copied once, whole, into a generated file that has such a kernel.
 *
 *        | 4  0 -5  0  1  0 |            | 1  1  1  1  1  0 |             | 1  0 -1  0 |         | 1  1  1  0 |
 *        | 0 -4 -4  1  1  0 |            | 0  1 -1  2 -2  0 |        B' = | 0  1  1  0 |    A' = | 0  1 -1 -1 |
 *   B' = | 0  4 -4 -1  1  0 |       A' = | 0  1  1  4  4  0 |             | 0 -1  1  0 |
 *        | 0 -2 -1  2  1  0 |            | 0  1 -1  8 -8  1 |             | 0  1  0 -1 |
 *        | 0  2 -1 -2  1  0 |
 *        | 0  4  0 -5  0  1 |
 */
#include "vec.h"

/* to[i*pitch + j] = sum over k of B'[i][k] * d[k*step][j] for j < 16, d pointers. */
BURN_INLINE void burn_wino_b(int size, float *restrict to, ptrdiff_t pitch, const float *const *d, ptrdiff_t step, ptrdiff_t at)
{
    BURN_CONTRACT
    const float *const d0 = d[0] + at, *const d1 = d[step] + at, *const d2 = d[2 * step] + at, *const d3 = d[3 * step] + at;
    if (size == 6) {
        const float *const d4 = d[4 * step] + at, *const d5 = d[5 * step] + at;
        for (int j = 0; j < 16; j++) {
            const float even = d4[j] - 4.0f * d2[j], odd = d3[j] - 4.0f * d1[j], far = d4[j] - d2[j], near = 2.0f * (d3[j] - d1[j]);
            to[j] = 4.0f * d0[j] - 5.0f * d2[j] + d4[j];
            to[pitch + j] = even + odd;
            to[2 * pitch + j] = even - odd;
            to[3 * pitch + j] = far + near;
            to[4 * pitch + j] = far - near;
            to[5 * pitch + j] = 4.0f * d1[j] - 5.0f * d3[j] + d5[j];
        }
    } else
        for (int j = 0; j < 16; j++) {
            const float v0 = d0[j], v1 = d1[j], v2 = d2[j], v3 = d3[j];
            to[j] = v0 - v2;
            to[pitch + j] = v1 + v2;
            to[2 * pitch + j] = v2 - v1;
            to[3 * pitch + j] = v1 - v3;
        }
}

/* to[i*pitch + j] = sum over k of A'[i][k] * from[k*row + j] for j < 16. */
BURN_INLINE void burn_wino_a(int size, float *restrict to, ptrdiff_t pitch, const float *restrict from, ptrdiff_t row)
{
    BURN_CONTRACT
    if (size == 6)
        for (int j = 0; j < 16; j++) {
            const float m1 = from[row + j], m2 = from[2 * row + j], m3 = from[3 * row + j], m4 = from[4 * row + j];
            const float s1 = m1 + m2, d1 = m1 - m2, s2 = m3 + m4, d2 = m3 - m4;
            to[j] = from[j] + s1 + s2;
            to[pitch + j] = d1 + 2.0f * d2;
            to[2 * pitch + j] = s1 + 4.0f * s2;
            to[3 * pitch + j] = d1 + 8.0f * d2 + from[5 * row + j];
        }
    else
        for (int j = 0; j < 16; j++) {
            const float m1 = from[row + j], m2 = from[2 * row + j];
            to[j] = from[j] + m1 + m2;
            to[pitch + j] = m1 - m2 - from[3 * row + j];
        }
}

/* One tile's input through B' on both sides: v[(i*size + k)*step + c] for c < channels (at least 16; what is left over of 16 is done with
 * some of the last again). pixel[r*size + k] points at the channels of each pixel; half: size*size*16 floats. */
BURN_INLINE void burn_wino_in(int size, float *restrict v, ptrdiff_t step, const float *const *pixel, ptrdiff_t channels, float *restrict half)
{
    for (ptrdiff_t at = 0; at < channels; at += 16) {
        const ptrdiff_t c = at + 16 <= channels ? at : channels - 16;
        const float *row[6];
        for (int k = 0; k < size; k++)
            burn_wino_b(size, half + k * 16, size * 16, pixel + k, size, c);
        for (int i = 0; i < size; i++) {
            for (int k = 0; k < size; k++)
                row[k] = half + (i * size + k) * 16;
            burn_wino_b(size, v + i * size * step + c, step, row, 1, 0);
        }
    }
}

/* 16 channels of one tile's products back to its pixels: to[(r*tile + k)*pitch + j], tile = size - 2, from m[(i*size + k)*step + j]. */
BURN_INLINE void burn_wino_out(int size, float *restrict to, ptrdiff_t pitch, const float *restrict m, ptrdiff_t step, float *restrict half)
{
    for (int k = 0; k < size; k++)
        burn_wino_a(size, half + k * 16, size * 16, m + k * step, size * step);
    for (int r = 0; r < size - 2; r++)
        burn_wino_a(size, to + r * (size - 2) * pitch, pitch, half + r * size * 16, 16);
}
