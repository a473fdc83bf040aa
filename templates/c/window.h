// SPDX-License-Identifier: MIT OR Apache-2.0
/* Sums of window.c: a few pixels by four neighbouring output channels, each sum a variable of its own, which compilers
 * keep in a register at -O2 and at -Os, where they unroll nothing that is an array. No vectors, no scratch memory.
 */
#ifndef BURN_WINDOW_H
#define BURN_WINDOW_H
#include "vec.h"

/* What of a window lies inside the input: `rows` tap rows, in each `runs` runs of `depth` floats. In floats, what is
 * between those of X, and from tap row to tap row of W, and how many channels its panel has. */
typedef struct burn_window {
    ptrdiff_t rows, runs, depth, row, run, step, w_row, width;
} burn_window;

#define BURN_WINDOW_FOUR(s, f) \
    s##0 += (f) * w[0];        \
    s##1 += (f) * w[1];        \
    s##2 += (f) * w[2];        \
    s##3 += (f) * w[3];

#define BURN_WINDOW_PUT(to, s) \
    (to)[0] = s##0;            \
    (to)[1] = s##1;            \
    (to)[2] = s##2;            \
    (to)[3] = s##3;

/* One pixel. A last panel is narrower: what is read past it belongs to the next step, and nobody stores those sums. */
BURN_INLINE void burn_window_1(float *to, const float *x, const float *weights, burn_window g)
{
    BURN_CONTRACT
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x, *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at = from;
            for (ptrdiff_t i = g.depth; i > 0; i--, at += g.step, w += g.width) {
                const float a = *at;
                BURN_WINDOW_FOUR(a, a)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
}

/* Two and four pixels, `beside` floats of X apart, by a panel of four. */
BURN_INLINE void burn_window_2(float *to, const float *x, const float *weights, burn_window g, ptrdiff_t beside)
{
    BURN_CONTRACT
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    float b0 = 0.0f, b1 = 0.0f, b2 = 0.0f, b3 = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x, *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at = from;
            for (ptrdiff_t i = g.depth; i > 0; i--, at += g.step, w += 4) {
                const float a = at[0], b = at[beside];
                BURN_WINDOW_FOUR(a, a)
                BURN_WINDOW_FOUR(b, b)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

BURN_INLINE void burn_window_4(float *to, const float *x, const float *weights, burn_window g, ptrdiff_t beside)
{
    BURN_CONTRACT
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    float b0 = 0.0f, b1 = 0.0f, b2 = 0.0f, b3 = 0.0f;
    float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
    float d0 = 0.0f, d1 = 0.0f, d2 = 0.0f, d3 = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x, *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at = from;
            for (ptrdiff_t i = g.depth; i > 0; i--, at += g.step, w += 4) {
                const float a = at[0], b = at[beside], c = at[2 * beside], d = at[3 * beside];
                BURN_WINDOW_FOUR(a, a)
                BURN_WINDOW_FOUR(b, b)
                BURN_WINDOW_FOUR(c, c)
                BURN_WINDOW_FOUR(d, d)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
    BURN_WINDOW_PUT(to + 8, c)
    BURN_WINDOW_PUT(to + 12, d)
}

/* A depthwise window at one pixel: one channel, or four, of `taps` channels each. */
BURN_INLINE float burn_window_depth_1(const float *x, const float *w, burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    float sum = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, w += g.w_row)
        for (ptrdiff_t i = 0; i < g.runs; i++)
            sum += x[i * g.run] * w[i * taps];
    return sum;
}

BURN_INLINE void burn_window_depth_4(float *to, const float *x, const float *weights, burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *a = x, *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, a += g.run, w += taps) {
            a0 += a[0] * w[0];
            a1 += a[1] * w[1];
            a2 += a[2] * w[2];
            a3 += a[3] * w[3];
        }
    }
    BURN_WINDOW_PUT(to, a)
}
#endif
