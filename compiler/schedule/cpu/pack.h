// SPDX-License-Identifier: MIT OR Apache-2.0
/* Constant weights rearranged at compile time into the panels that the C templates read (templates/c/gemm.c,
 * conv.c, gemv.c, winograd.c). */
#ifndef BURNCC_SCHEDULE_PACK_H
#define BURNCC_SCHEDULE_PACK_H
#include <stddef.h>

/* One matrix B of k rows and n columns, element (k, n) at src[k*row_stride + n*column_stride], as
 * [ceil(n/nr)][k][nr] with zeros past column n. nr is 16 * GemmTiles.nv. dst has room for pack_gemm_b_floats. A
 * batch is packed matrix after matrix. */
size_t pack_gemm_b_floats(size_t n, size_t k, size_t nr);
void pack_gemm_b(const float *src, size_t n, size_t k, size_t row_stride, size_t column_stride, size_t nr, float *dst);

/* The same matrix as [ceil(k/16)][n][16], 16 terms of each column in turn, with zeros past k. */
size_t pack_gemv_w_floats(size_t n, size_t k);
void pack_gemv_w(const float *src, size_t n, size_t k, size_t row_stride, size_t column_stride, float *dst);

/* Convolution weights [groups][oc][ic][taps] (oc, ic of one group) as
 * [group/merge][ceil(merge*oc/nr)][taps][merge*ic][nr], where `merge` neighbouring groups have become one whose
 * other products are zeros (conv_merge). */
size_t pack_conv_w_floats(size_t groups, size_t oc, size_t ic, size_t taps, size_t merge, size_t nr);
void pack_conv_w(
    const float *src, size_t groups, size_t oc, size_t ic, size_t taps, size_t merge, size_t nr, float *dst);

/* conv_pairs.c: [taps][ic][8][2], one group of at most 8 output channels: 16*taps*ic floats. */
void pack_conv_pairs_w(const float *src, size_t oc, size_t ic, size_t taps, float *dst);

/* Depthwise weights [channels][mult][taps] as [mult][taps][channels up to a multiple of 16]: past the channels
 * zeros, or the same again if 16 is a multiple of them. */
size_t pack_conv_dw_w_floats(size_t channels, size_t mult, size_t taps);
void pack_conv_dw_w(const float *src, size_t channels, size_t mult, size_t taps, float *dst);

/* For window.c and window_dw.c, no larger than the model's. Element (o, c, t) of a group at src[o*oc_stride +
 * c*ic_stride + t]: [groups][ceil(oc/4)][taps][ic][4], the last panel as narrow as what is left, and three zeros behind
 * all. Depthwise weights [channels][taps] as [taps][channels]. */
void pack_window_w(const float *src, size_t groups, size_t oc, size_t ic, size_t taps, size_t oc_stride,
    size_t ic_stride, float *dst);
void pack_window_dw_w(const float *src, size_t channels, size_t taps, float *dst);

/* Winograd's F(th x tw, kh x kw). */
typedef struct WinogradForm {
    size_t th, tw, kh, kw;
} WinogradForm;

/* Weights [oc][ic][kh][kw] through G w G', as [ceil(oc/nr)][(th+kh-1)*(tw+kw-1)][ic][nr] with zeros past oc. */
size_t pack_winograd_w_floats(size_t oc, size_t ic, const WinogradForm *form, size_t nr);
void pack_winograd_w(const float *src, size_t oc, size_t ic, const WinogradForm *form, size_t nr, float *dst);

#endif
