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

#define BURN_WINDOW_FOUR(s, f, w)         \
    s##0 = BURN_MULADD(s##0, (f), (w)[0]); \
    s##1 = BURN_MULADD(s##1, (f), (w)[1]); \
    s##2 = BURN_MULADD(s##2, (f), (w)[2]); \
    s##3 = BURN_MULADD(s##3, (f), (w)[3]);

#define BURN_WINDOW_PUT(to, s) \
    (to)[0] = s##0;            \
    (to)[1] = s##1;            \
    (to)[2] = s##2;            \
    (to)[3] = s##3;

#if defined(__GNUC__)
#define BURN_SHARED __attribute__((unused)) BURN_KERNEL static
#else
#define BURN_SHARED static
#endif

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
                BURN_WINDOW_FOUR(a, a, w)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
}

/* One pixel by two panels of four, `other` floats apart: fewer loads and branches for each product. */
BURN_INLINE void burn_window_8(float *to, const float *x, const float *weights, burn_window g, ptrdiff_t other)
{
    BURN_CONTRACT
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    float b0 = 0.0f, b1 = 0.0f, b2 = 0.0f, b3 = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x, *w = weights, *v = weights + other;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at = from;
            for (ptrdiff_t i = g.depth; i > 0; i--, at += g.step, w += 4, v += 4) {
                const float f = *at;
                BURN_WINDOW_FOUR(a, f, w)
                BURN_WINDOW_FOUR(b, f, v)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

/* The same, once for all kernels of a file. */
BURN_OUTLINE void burn_window_apart(float *to, const float *x, const float *weights, const burn_window *g)
{
    burn_window_1(to, x, weights, *g);
}

/* Its two loops that are left where runs are one leave registers for what is around them: inlined where one calls. */
BURN_SHARED void burn_window_dense(float *to, const float *x, const float *weights, const burn_window *g)
{
    burn_window_1(to, x, weights, *g);
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
            const float *at_a = from, *at_b = at_a + beside;
            for (ptrdiff_t i = g.depth; i > 0; i--, at_a += g.step, at_b += g.step, w += 4) {
                const float a = *at_a, b = *at_b;
                BURN_WINDOW_FOUR(a, a, w)
                BURN_WINDOW_FOUR(b, b, w)
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
            const float *at_a = from, *at_b = at_a + beside, *at_c = at_b + beside, *at_d = at_c + beside;
            for (ptrdiff_t i = g.depth; i > 0; i--, w += 4) {
                const float a = *at_a, b = *at_b, c = *at_c, d = *at_d;
                at_a += g.step;
                at_b += g.step;
                at_c += g.step;
                at_d += g.step;
                BURN_WINDOW_FOUR(a, a, w)
                BURN_WINDOW_FOUR(b, b, w)
                BURN_WINDOW_FOUR(c, c, w)
                BURN_WINDOW_FOUR(d, d, w)
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
            sum = BURN_MULADD(sum, x[i * g.run], w[i * taps]);
    return sum;
}

BURN_INLINE void burn_window_depth_4(float *to, const float *x, const float *weights, burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *a = x, *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, a += g.run, w += taps) {
            a0 = BURN_MULADD(a0, a[0], w[0]);
            a1 = BURN_MULADD(a1, a[1], w[1]);
            a2 = BURN_MULADD(a2, a[2], w[2]);
            a3 = BURN_MULADD(a3, a[3], w[3]);
        }
    }
    BURN_WINDOW_PUT(to, a)
}

/* Eight channels: half as many steps of the loops around them. */
BURN_INLINE void burn_window_depth_wide(float *to, const float *x, const float *weights, burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    float b0 = 0.0f, b1 = 0.0f, b2 = 0.0f, b3 = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *a = x, *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, a += g.run, w += taps) {
            a0 = BURN_MULADD(a0, a[0], w[0]);
            a1 = BURN_MULADD(a1, a[1], w[1]);
            a2 = BURN_MULADD(a2, a[2], w[2]);
            a3 = BURN_MULADD(a3, a[3], w[3]);
            b0 = BURN_MULADD(b0, a[4], w[4]);
            b1 = BURN_MULADD(b1, a[5], w[5]);
            b2 = BURN_MULADD(b2, a[6], w[6]);
            b3 = BURN_MULADD(b3, a[7], w[7]);
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

/* Four at two pixels, `beside` floats of X apart: their weights are loaded once. */
BURN_INLINE void burn_window_depth_8(float *to, const float *x, const float *weights, burn_window g, ptrdiff_t taps,
                                     ptrdiff_t beside)
{
    BURN_CONTRACT
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    float b0 = 0.0f, b1 = 0.0f, b2 = 0.0f, b3 = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *a = x, *b = x + beside, *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, a += g.run, b += g.run, w += taps) {
            const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
            a0 = BURN_MULADD(a0, a[0], w0);
            a1 = BURN_MULADD(a1, a[1], w1);
            a2 = BURN_MULADD(a2, a[2], w2);
            a3 = BURN_MULADD(a3, a[3], w3);
            b0 = BURN_MULADD(b0, b[0], w0);
            b1 = BURN_MULADD(b1, b[1], w1);
            b2 = BURN_MULADD(b2, b[2], w2);
            b3 = BURN_MULADD(b3, b[3], w3);
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}
#endif
