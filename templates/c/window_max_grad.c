// SPDX-License-Identifier: MIT OR Apache-2.0
/* Gradient of a maximum over sliding windows: DX = 0, and DY of each window added where its largest element is, the
 * first of equal ones; NaN is above every number.
 *
 *   KERNEL VECTOR ELEMENT WINDOW BOUND   names of the function and of its own
 *   OUTER CHANNELS             sizes: X and DX are [OUTER, D, H, W, CHANNELS], DY [OUTER, OD, OH, OW, CHANNELS]
 *   D H W  OD OH OW            planes have one channel, and count among OUTER; what has fewer axes has sizes of 1
 *   KD SD LD PD ...            of each axis: taps, stride, dilation, and positions of padding before the first
 *   APART                      no element is in two windows
 *   UNROLL                     BURN_UNROLL where windows are small, or nothing
 *   LANES                      a power of two, CHANNELS at most: a vector has as many, or what the machine has
 *   PARTS SHARES               0: all of it. Else the function does the part'th of SHARES shares of OUTER
 *   SIZES                      further parameters that the sizes are made of
 *
 * A window is read once, a vector of channels at a time, which keeps the greatest element and the number of its tap;
 * then each tap gets DY or nothing. Where windows lie apart that is all: X and DY are read once and DX is written once.
 * Else they add up, in the order of the windows. The last vector of a pixel reaches back over channels that are done.
 */
#include "vec.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
// holes
#define KERNEL window_max_grad
#define VECTOR window_max_grad_vector
#define ELEMENT window_max_grad_element
#define WINDOW window_max_grad_window
#define BOUND window_max_grad_bound
#define OUTER 4
#define CHANNELS 24
#define D 1
#define H 9
#define W 9
#define OD 1
#define OH 4
#define OW 4
#define KD 1
#define KH 3
#define KW 3
#define SD 1
#define SH 2
#define SW 2
#define LD 1
#define LH 1
#define LW 1
#define PD 0
#define PH 0
#define PW 0
#define APART 0
#define UNROLL BURN_UNROLL
#define LANES 16
#define PARTS 0
#define SHARES 1
#define SIZES
// end holes

/* Of so many taps, from which one on they lie `left` or more behind the first. */
BURN_INLINE int BOUND(int taps, ptrdiff_t dilation, ptrdiff_t left)
{
    const ptrdiff_t n = left > 0 ? (left + dilation - 1) / dilation : 0;
    return n < taps ? (int)n : taps;
}

/* The taps d0 <= i < d1, h0 <= j < h1, w0 <= k < w1 of a window are inside; its first one is `at` behind x and dx, or
 * would be. */
#if LANES > 1
#if !defined(BURN_PORTABLE)
/* A vector of channels, of which the first `done` add nothing. */
BURN_INLINE void VECTOR(const float *x, const float *dy, float *dx, ptrdiff_t at, int done, ptrdiff_t plane,
                        ptrdiff_t row, ptrdiff_t pixel, int d0, int d1, int h0, int h1, int w0, int w1)
{
    enum { lanes = LANES < BURN_VF_LANES ? LANES : BURN_VF_LANES };
    typedef float vf __attribute__((vector_size(4 * lanes)));
    typedef int vi __attribute__((vector_size(4 * lanes)));
    typedef float vf_memory __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
    vf best = *(const vf_memory *)(x + at + d0 * LD * plane + h0 * LH * row + w0 * LW * pixel);
    vi tap = (vi){0} + ((d0 * KH + h0) * KW + w0);
    UNROLL
    for (int i = 0; i < KD; i++) {
        UNROLL
        for (int j = 0; j < KH; j++) {
            UNROLL
            for (int k = 0; k < KW; k++) {
                if (i < d0 || i >= d1 || j < h0 || j >= h1 || k < w0 || k >= w1)
                    continue;
                const vf v = *(const vf_memory *)(x + at + i * LD * plane + j * LH * row + k * LW * pixel);
                const vi more = (best == best) & ~(v <= best);
                best = (vf)(((vi)v & more) | ((vi)best & ~more));
                tap = (((vi){0} + ((i * KH + j) * KW + k)) & more) | (tap & ~more);
            }
        }
    }
    vf g = *(const vf_memory *)dy;
    if (done > 0) {
        float each[lanes];
        *(vf_memory *)each = g;
        for (int j = 0; j < done; j++)
            each[j] = 0.0f;
        g = *(const vf_memory *)each;
    }
    UNROLL
    for (int i = 0; i < KD; i++) {
        UNROLL
        for (int j = 0; j < KH; j++) {
            UNROLL
            for (int k = 0; k < KW; k++) {
                if (i < d0 || i >= d1 || j < h0 || j >= h1 || k < w0 || k >= w1)
                    continue;
                vf_memory *to = (vf_memory *)(dx + at + i * LD * plane + j * LH * row + k * LW * pixel);
                const vf put = (vf)((vi)g & (tap == (vi){0} + ((i * KH + j) * KW + k)));
#if APART
                *to = put;
#else
                *to += put;
#endif
            }
        }
    }
}
#endif
#endif

BURN_INLINE void ELEMENT(const float *x, const float *dy, float *dx, ptrdiff_t at, ptrdiff_t plane, ptrdiff_t row,
                         ptrdiff_t pixel, int d0, int d1, int h0, int h1, int w0, int w1)
{
    ptrdiff_t there = at + d0 * LD * plane + h0 * LH * row + w0 * LW * pixel;
    float best = x[there];
    UNROLL
    for (int i = 0; i < KD; i++) {
        UNROLL
        for (int j = 0; j < KH; j++) {
            UNROLL
            for (int k = 0; k < KW; k++) {
                if (i < d0 || i >= d1 || j < h0 || j >= h1 || k < w0 || k >= w1)
                    continue;
                const ptrdiff_t here = at + i * LD * plane + j * LH * row + k * LW * pixel;
                const float v = x[here];
                const int more = (best == best) & !(v <= best);
                best = more ? v : best;
                there = more ? here : there;
#if APART
                dx[here] = 0.0f;
#endif
            }
        }
    }
#if APART
    dx[there] = *dy;
#else
    dx[there] += *dy;
#endif
}

/* All channels of a window. */
BURN_INLINE void WINDOW(const float *x, const float *dy, float *dx, ptrdiff_t at, ptrdiff_t plane, ptrdiff_t row,
                        ptrdiff_t pixel, int d0, int d1, int h0, int h1, int w0, int w1)
{
    ptrdiff_t c = 0;
#if LANES > 1
#if !defined(BURN_PORTABLE)
    enum { lanes = LANES < BURN_VF_LANES ? LANES : BURN_VF_LANES };
    for (; c + lanes <= pixel; c += lanes)
        VECTOR(x + c, dy + c, dx + c, at, 0, plane, row, pixel, d0, d1, h0, h1, w0, w1);
    if (c < pixel) {
        const ptrdiff_t last = pixel - lanes;
        const int done = APART ? 0 : (int)(c - last);
        VECTOR(x + last, dy + last, dx + last, at, done, plane, row, pixel, d0, d1, h0, h1, w0, w1);
        c = pixel;
    }
#endif
#endif
    for (; c < pixel; c++)
        ELEMENT(x + c, dy + c, dx + c, at, plane, row, pixel, d0, d1, h0, h1, w0, w1);
}

#if PARTS
BURN_KERNEL static void KERNEL(const float *restrict X, const float *restrict DY, float *restrict DX SIZES,
                               ptrdiff_t part)
#else
BURN_KERNEL static void KERNEL(const float *restrict X, const float *restrict DY, float *restrict DX SIZES)
#endif
{
    const ptrdiff_t pixel = CHANNELS, row = W * pixel, plane = H * row;
#if PARTS
    const ptrdiff_t from = (ptrdiff_t)OUTER * part / SHARES, end = (ptrdiff_t)OUTER * (part + 1) / SHARES;
#else
    const ptrdiff_t from = 0, end = OUTER;
#endif
    const bool covered = APART && KD == SD && KH == SH && KW == SW && PD + PH + PW == 0 && OD * SD == D && OH * SH == H
        && OW * SW == W;
    const float *x = X + from * D * plane, *dy = DY + from * OD * OH * OW * pixel;
    float *dx = DX + from * D * plane;
    for (ptrdiff_t o = from; o < end; o++) {
        if (!covered)
            memset(dx, 0, (size_t)(D * plane) * sizeof *dx);
        for (ptrdiff_t i = 0; i < OD; i++) {
            const ptrdiff_t d = i * SD - PD;
            const int d0 = BOUND(KD, LD, -d), d1 = BOUND(KD, LD, D - d);
            for (ptrdiff_t j = 0; j < OH; j++) {
                const ptrdiff_t h = j * SH - PH;
                const int h0 = BOUND(KH, LH, -h), h1 = BOUND(KH, LH, H - h);
                for (ptrdiff_t k = 0; k < OW; k++, dy += pixel) {
                    const ptrdiff_t w = k * SW - PW, at = d * plane + h * row + w * pixel;
                    const int w0 = BOUND(KW, LW, -w), w1 = BOUND(KW, LW, W - w);
                    if (d1 - d0 == KD && h1 - h0 == KH && w1 - w0 == KW)
                        WINDOW(x, dy, dx, at, plane, row, pixel, 0, KD, 0, KH, 0, KW);
                    else if (d0 < d1 && h0 < h1 && w0 < w1)
                        WINDOW(x, dy, dx, at, plane, row, pixel, d0, d1, h0, h1, w0, w1);
                }
            }
        }
        x += D * plane;
        dx += D * plane;
    }
}
