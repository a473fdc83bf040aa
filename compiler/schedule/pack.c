// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: constant weights in their model's order. Out: the same numbers in panels, so that a kernel reads them once, in a
 * straight line, at any vector width. Padding is zeros, so kernels may compute whole panels and store less. */
#include "pack.h"

size_t pack_gemm_b_floats(size_t n, size_t k, size_t nr)
{
    return (n + nr - 1) / nr * nr * k;
}

void pack_gemm_b(const float *src, size_t n, size_t k, size_t row_stride, size_t column_stride, size_t nr, float *dst)
{
    for (size_t n0 = 0; n0 < n; n0 += nr)
        for (size_t i = 0; i < k; i++)
            for (size_t j = n0; j < n0 + nr; j++)
                *dst++ = j < n ? src[i * row_stride + j * column_stride] : 0.0f;
}

size_t pack_conv_w_floats(size_t groups, size_t oc, size_t taps, size_t mr)
{
    return groups * pack_gemm_b_floats(oc, taps, mr);
}

void pack_conv_w(const float *src, size_t groups, size_t oc, size_t taps, size_t mr, float *dst)
{
    for (size_t g = 0; g < groups; g++) /* a panel of mr output channels is one of mr columns of the transposed matrix */
        pack_gemm_b(src + g * oc * taps, oc, taps, 1, taps, mr, dst + g * pack_gemm_b_floats(oc, taps, mr));
}

size_t pack_winograd_w_floats(size_t oc, size_t ic, size_t mr)
{
    return 36 * pack_gemm_b_floats(oc, ic, mr);
}

/* In double, so that the transform adds one rounding and no more. */
void pack_winograd_w(const float *src, size_t oc, size_t ic, size_t mr, float *dst)
{
    static const double G[6][3] = {{1.0 / 4, 0, 0},          {-1.0 / 6, -1.0 / 6, -1.0 / 6}, {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                   {1.0 / 24, 1.0 / 12, 1.0 / 6}, {1.0 / 24, -1.0 / 12, 1.0 / 6}, {0, 0, 1}};
    const size_t panels = (oc + mr - 1) / mr;
    for (size_t o = 0; o < panels * mr; o++)
        for (size_t c = 0; c < ic; c++)
            for (size_t k = 0; k < 36; k++) {
                const float *w = src + (o * ic + c) * 9;
                double sum = 0;
                for (size_t y = 0; y < 3 && o < oc; y++)
                    for (size_t x = 0; x < 3; x++)
                        sum += G[k / 6][y] * G[k % 6][x] * (double)w[y * 3 + x];
                dst[((k * panels + o / mr) * ic + c) * mr + o % mr] = (float)sum;
            }
}
