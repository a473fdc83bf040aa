// SPDX-License-Identifier: MIT OR Apache-2.0
/* Sums of window.c: a few pixels by four neighbouring output channels. No scratch memory. Included for each type that
 * weights have in a file: BURN_SUMS(1), ... are the functions' names, BURN_WEIGHT is the type, BURN_WEIGHT_AT(p) and
 * BURN_WEIGHTS(s, p) are one and four of them as floats.
 */
#include "window.h"

/* One pixel. A last panel is narrower: what is read past it belongs to the next step, and nobody stores those sums. */
BURN_INLINE void BURN_SUMS(1)(float *to, const float *x, const BURN_WEIGHT *weights, burn_window g)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x;
        const BURN_WEIGHT *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at = from;
            for (ptrdiff_t i = g.depth; i > 0; i--, at += g.step, w += g.width) {
                const float f = *at;
                BURN_WEIGHTS(v, w)
                BURN_WINDOW_FOUR(a, f, v)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
}

/* One pixel by two panels of four, `other` floats apart: fewer loads and branches for each product. */
BURN_INLINE void BURN_SUMS(8)(float *to, const float *x, const BURN_WEIGHT *weights,
                               burn_window g, ptrdiff_t other)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x;
        const BURN_WEIGHT *w = weights, *beyond = weights + other;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at = from;
            for (ptrdiff_t i = g.depth; i > 0; i--, at += g.step, w += 4, beyond += 4) {
                const float f = *at;
                BURN_WEIGHTS(v, w)
                BURN_WEIGHTS(u, beyond)
                BURN_WINDOW_FOUR(a, f, v)
                BURN_WINDOW_FOUR(b, f, u)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

/* The same, once for all kernels of a file. */
BURN_OUTLINE void BURN_SUMS(apart)(float *to, const float *x, const BURN_WEIGHT *weights, const burn_window *g)
{
    BURN_SUMS(1)(to, x, weights, *g);
}

/* Its two loops that are left where runs are one leave registers for what is around them: inlined where one calls. */
BURN_SHARED void BURN_SUMS(dense)(float *to, const float *x, const BURN_WEIGHT *weights, const burn_window *g)
{
    BURN_SUMS(1)(to, x, weights, *g);
}

/* Two and four pixels, `beside` floats of X apart, by a panel of four. */
BURN_INLINE void BURN_SUMS(2)(float *to, const float *x, const BURN_WEIGHT *weights,
                               burn_window g, ptrdiff_t beside)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x;
        const BURN_WEIGHT *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at_a = from, *at_b = at_a + beside;
            for (ptrdiff_t i = g.depth; i > 0; i--, at_a += g.step, at_b += g.step, w += 4) {
                const float f = *at_a, e = *at_b;
                BURN_WEIGHTS(v, w)
                BURN_WINDOW_FOUR(a, f, v)
                BURN_WINDOW_FOUR(b, e, v)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

BURN_INLINE void BURN_SUMS(4)(float *to, const float *x, const BURN_WEIGHT *weights,
                               burn_window g, ptrdiff_t beside)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    BURN_WINDOW_ZERO(c)
    BURN_WINDOW_ZERO(d)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x;
        const BURN_WEIGHT *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at_a = from, *at_b = at_a + beside, *at_c = at_b + beside, *at_d = at_c + beside;
            for (ptrdiff_t i = g.depth; i > 0; i--, w += 4) {
                const float e = *at_a, f = *at_b, l = *at_c, k = *at_d;
                BURN_WEIGHTS(v, w)
                at_a += g.step;
                at_b += g.step;
                at_c += g.step;
                at_d += g.step;
                BURN_WINDOW_FOUR(a, e, v)
                BURN_WINDOW_FOUR(b, f, v)
                BURN_WINDOW_FOUR(c, l, v)
                BURN_WINDOW_FOUR(d, k, v)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
    BURN_WINDOW_PUT(to + 8, c)
    BURN_WINDOW_PUT(to + 12, d)
}

/* A depthwise window at one pixel: one channel, or four, of `taps` channels each. */
BURN_INLINE float BURN_SUMS(depth_1)(const float *x, const BURN_WEIGHT *w, burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    float sum = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, w += g.w_row)
        for (ptrdiff_t i = 0; i < g.runs; i++)
            sum = BURN_MULADD(sum, x[i * g.run], BURN_WEIGHT_AT(w + i * taps));
    return sum;
}

BURN_INLINE void BURN_SUMS(depth_4)(float *to, const float *x, const BURN_WEIGHT *weights,
                                     burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *at = x;
        const BURN_WEIGHT *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, at += g.run, w += taps) {
            BURN_WINDOW_LOAD(x, at)
            BURN_WEIGHTS(v, w)
            BURN_WINDOW_EACH(a, x, v)
        }
    }
    BURN_WINDOW_PUT(to, a)
}

/* Eight channels: half as many steps of the loops around them. */
BURN_INLINE void BURN_SUMS(depth_wide)(float *to, const float *x, const BURN_WEIGHT *weights,
                                        burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *at = x;
        const BURN_WEIGHT *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, at += g.run, w += taps) {
            BURN_WINDOW_LOAD(x, at)
            BURN_WEIGHTS(v, w)
            BURN_WINDOW_LOAD(y, at + 4)
            BURN_WEIGHTS(u, w + 4)
            BURN_WINDOW_EACH(a, x, v)
            BURN_WINDOW_EACH(b, y, u)
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

/* Four at two pixels, `beside` floats of X apart: their weights are loaded once. */
BURN_INLINE void BURN_SUMS(depth_8)(float *to, const float *x, const BURN_WEIGHT *weights,
                                     burn_window g, ptrdiff_t taps, ptrdiff_t beside)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *at_a = x, *at_b = x + beside;
        const BURN_WEIGHT *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, at_a += g.run, at_b += g.run, w += taps) {
            BURN_WEIGHTS(v, w)
            BURN_WINDOW_LOAD(x, at_a)
            BURN_WINDOW_LOAD(y, at_b)
            BURN_WINDOW_EACH(a, x, v)
            BURN_WINDOW_EACH(b, y, v)
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}
