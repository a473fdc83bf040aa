// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: constant weights in their model's order. Out: the same numbers in panels, so that a kernel reads them once, in a
 * straight line, at any vector width. Padding is zeros, so kernels may compute whole panels and store less. */
#include "pack.h"
#include "../../../templates/c/winograd_g.h"

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

size_t pack_gemv_w_floats(size_t n, size_t k)
{
    return n * ((k + 15) / 16 * 16);
}

void pack_gemv_w(const float *src, size_t n, size_t k, size_t row_stride, size_t column_stride, float *dst)
{
    for (size_t k0 = 0; k0 < k; k0 += 16)
        for (size_t j = 0; j < n; j++)
            for (size_t i = k0; i < k0 + 16; i++)
                *dst++ = i < k ? src[i * row_stride + j * column_stride] : 0.0f;
}

size_t pack_conv_w_floats(size_t groups, size_t oc, size_t ic, size_t taps, size_t merge, size_t nr)
{
    return groups / merge * pack_gemm_b_floats(merge * oc, merge * ic * taps, nr);
}

void pack_conv_w(
    const float *src, size_t groups, size_t oc, size_t ic, size_t taps, size_t merge, size_t nr, float *dst) {
    for (size_t g = 0; g < groups; g += merge)
        for (size_t o0 = 0; o0 < merge * oc; o0 += nr)
            for (size_t t = 0; t < taps; t++)
                for (size_t c = 0; c < merge * ic; c++)
                    for (size_t o = o0; o < o0 + nr; o++)
                        *dst++ = o < merge * oc && o / oc == c / ic ?
                            src[((g * oc + o) * ic + c % ic) * taps + t] :
                            0.0f;
}

void pack_conv_pairs_w(const float *src, size_t oc, size_t ic, size_t taps, float *dst)
{
    for (size_t t = 0; t < taps; t++)
        for (size_t c = 0; c < ic; c++)
            for (size_t j = 0; j < 16; j++)
                *dst++ = j / 2 < oc ? src[(j / 2 * ic + c) * taps + t] : 0.0f;
}

size_t pack_conv_dw_w_floats(size_t channels, size_t mult, size_t taps)
{
    return mult * taps * ((channels + 15) / 16 * 16);
}

void pack_conv_dw_w(const float *src, size_t channels, size_t mult, size_t taps, float *dst)
{
    for (size_t m = 0; m < mult; m++)
        for (size_t t = 0; t < taps; t++)
            for (size_t c = 0; c < (channels + 15) / 16 * 16; c++)
                *dst++ = c < channels || 16 % channels == 0 ? src[(c % channels * mult + m) * taps + t] : 0.0f;
}

void pack_window_w(const float *src, size_t groups, size_t oc, size_t ic, size_t taps, size_t oc_stride,
    size_t ic_stride, float *dst)
{
    for (size_t g = 0; g < groups; g++, src += oc * oc_stride)
        for (size_t o0 = 0; o0 < oc; o0 += 4)
            for (size_t t = 0; t < taps; t++)
                for (size_t c = 0; c < ic; c++)
                    for (size_t o = o0; o < o0 + 4 && o < oc; o++)
                        *dst++ = src[o * oc_stride + c * ic_stride + t];
    for (int i = 0; i < 3; i++)
        *dst++ = 0.0f;
}

void pack_window_dw_w(const float *src, size_t channels, size_t taps, float *dst)
{
    for (size_t t = 0; t < taps; t++)
        for (size_t c = 0; c < channels; c++)
            *dst++ = src[c * taps + t];
}

size_t pack_winograd_w_floats(size_t oc, size_t ic, const WinogradForm *f, size_t nr)
{
    return (f->th + f->kh - 1) * (f->tw + f->kw - 1) * pack_gemm_b_floats(oc, ic, nr);
}

/* In double, so that the transform adds one rounding and no more. */
void pack_winograd_w(const float *src, size_t oc, size_t ic, const WinogradForm *f, size_t nr, float *dst)
{
    const size_t size_h = f->th + f->kh - 1, size_w = f->tw + f->kw - 1, taps = f->kh * f->kw;
    double down[8][8], across[8][8], g[64];
    burn_winograd_g(size_h, f->kh, down);
    burn_winograd_g(size_w, f->kw, across);
    for (size_t o0 = 0; o0 < oc; o0 += nr)
        for (size_t p = 0; p < size_h * size_w; p++) {
            for (size_t t = 0; t < taps; t++)
                g[t] = down[p / size_w][t / f->kw] * across[p % size_w][t % f->kw];
            for (size_t c = 0; c < ic; c++)
                for (size_t o = o0; o < o0 + nr; o++) {
                    double sum = 0;
                    for (size_t t = 0; t < taps && o < oc; t++)
                        sum += g[t] * (double)src[(o * ic + c) * taps + t];
                    *dst++ = (float)sum;
                }
        }
}
