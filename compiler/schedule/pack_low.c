// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: constant weights in their model's order. Out: the same numbers, or as many of their bits as are wanted, in panels that a kernel
 * reads once in a straight line. Padding is zeros. */
#include "pack_low.h"

size_t pack_i8_bytes(size_t n, size_t runs, size_t run, size_t nr)
{
    return (n + nr - 1) / nr * nr * runs * ((run + 3) / 4 * 4);
}

void pack_i8(const int8_t *src, size_t n, size_t runs, const size_t *offset, size_t run, size_t row_stride, size_t column_stride, size_t nr, int8_t *dst)
{
    for (size_t n0 = 0; n0 < n; n0 += nr)
        for (size_t r = 0; r < runs; r++)
            for (size_t i0 = 0; i0 < run; i0 += 4)
                for (size_t j = n0; j < n0 + nr; j++)
                    for (size_t i = i0; i < i0 + 4; i++)
                        *dst++ = (int8_t)(j < n && i < run ? src[offset[r] + i * row_stride + j * column_stride] : 0);
}
