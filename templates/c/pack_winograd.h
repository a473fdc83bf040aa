// SPDX-License-Identifier: MIT OR Apache-2.0
/* Packs weights that are no constants for winograd.c, as the compiler packs constants (pack_winograd_w). Copied once,
 * whole, into a generated file that has any.
 *
 * The idea: sixteen filters side by side, one channel at a time: G w G' then is plain sums of vectors. */
#include "pack_taps.h"
#include "winograd_g.h"

/* to[i*plane + j] = sum over k of g[i*8 + k] * from[k*step + j] for i < size, k < taps and j < 16. */
BURN_INLINE void burn_pack_points(float *restrict to, ptrdiff_t plane, const float *restrict from, ptrdiff_t step,
                                  const float *restrict g, ptrdiff_t size, ptrdiff_t taps)
{
    for (ptrdiff_t i = 0; i < size; i++) {
        float sum[16] = {0};
        for (ptrdiff_t k = 0; k < taps; k++)
            for (ptrdiff_t j = 0; j < 16; j++)
                sum[j] += g[i * 8 + k] * from[k * step + j];
        for (ptrdiff_t j = 0; j < 16; j++)
            to[i * plane + j] = sum[j];
    }
}

/* Weight (o, c, h, w) lies at from[o*stride[1] + c*stride[2] + h*stride[4] + w*stride[5]] for oc by ic channels of taps
 * [1][taps[1]][taps[2]]; size: points down and across. To [ceil(oc/nr)][size[0]*size[1]][ic][nr], zeros past oc. */
BURN_KERNEL static void burn_pack_w_winograd(float *restrict to, const float *restrict from, ptrdiff_t oc, ptrdiff_t ic,
                                           ptrdiff_t nr, const ptrdiff_t *taps, const ptrdiff_t *size,
                                           const ptrdiff_t *stride)
{
    const ptrdiff_t all = taps[1] * taps[2], points = size[0] * size[1], plane = ic * nr;
    const int line = stride[4] == taps[2] * stride[5];
    const ptrdiff_t wide = line ? all : taps[2];
    float g[2][64], filter[64 * 16], half[64 * 16];
    for (int axis = 0; axis < 2; axis++) {
        double exact[8][8] = {{0}};
        burn_winograd_g((size_t)size[axis], (size_t)taps[1 + axis], exact);
        for (int i = 0; i < 64; i++)
            g[axis][i] = (float)exact[i / 8][i % 8];
    }
    memset(filter, 0, sizeof filter);
    for (ptrdiff_t o0 = 0; o0 < (oc + nr - 1) / nr * nr; o0 += 16)
        for (ptrdiff_t c = 0; c < ic; c++) {
            const ptrdiff_t count = oc - o0 < 0 ? 0 : oc - o0 < 16 ? oc - o0 : 16;
            float *const place = to + o0 / nr * points * plane + c * nr + o0 % nr;
            if (count < 16)
                memset(filter, 0, (size_t)all * 16 * sizeof *filter);
            for (ptrdiff_t t = 0; t < all && count; t += wide)
                burn_pack_panel_taps(filter + t * 16, from + o0 * stride[1] + c * stride[2] + t / wide * stride[4], 1,
                                     wide, count, 0, 16, stride[2], stride[5], stride[1]);
            for (ptrdiff_t w = 0; w < taps[2]; w++) /* half: [size[0]][taps[2]][16] */
                burn_pack_points(half + w * 16, taps[2] * 16, filter + w * 16, taps[2] * 16, g[0], size[0], taps[1]);
            for (ptrdiff_t i = 0; i < size[0]; i++)
                burn_pack_points(place + i * size[1] * plane, plane, half + i * taps[2] * 16, 16, g[1], size[1],
                                 taps[2]);
        }
}
