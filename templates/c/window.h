// SPDX-License-Identifier: MIT OR Apache-2.0
/* Sums of window.c: a few pixels by four neighbouring output channels, each sum a variable of its own, which compilers
 * keep in a register at -O2 and at -Os, where they unroll nothing that is an array. No scratch memory. Where there are
 * vectors of four floats that multiply and add with one rounding (arm_mve.h, riscv_vector.h), four sums are one: the
 * same bits.
 */
#ifndef BURN_WINDOW_H
#define BURN_WINDOW_H
#include "vec.h"
#if defined(BURN_FUSES) && defined(__ARM_FEATURE_MVE)
#if __ARM_FEATURE_MVE & 2
#include <arm_mve.h>
#define BURN_WINDOW_VECTORS 1
#endif
#elif defined(BURN_FUSES) && defined(__riscv_zve32f) && defined(__riscv_v_intrinsic)
#if __riscv_v_intrinsic >= 11000 && __riscv_v_min_vlen >= 128
#include <riscv_vector.h>
#define BURN_WINDOW_RVV 1
#endif
#endif

/* What of a window lies inside the input: `rows` tap rows, in each `runs` runs of `depth` floats. In floats, what is
 * between those of X, and from tap row to tap row of W, and how many channels its panel has. */
typedef struct burn_window {
    ptrdiff_t rows, runs, depth, row, run, step, w_row, width;
} burn_window;

/* Four sums s, from 0; and four numbers s, those at p. */
#if defined(BURN_WINDOW_VECTORS)
#define BURN_WINDOW_ZERO(s) float32x4_t s##0 = vdupq_n_f32(0.0f);
#define BURN_WINDOW_LOAD(s, p) const float32x4_t s##0 = vldrwq_f32(p);
#define BURN_WINDOW_EACH(s, x, v) s##0 = vfmaq_f32(s##0, x##0, v##0);
#define BURN_WINDOW_FOUR(s, f, v) s##0 = vfmaq_n_f32(s##0, v##0, (f));
#define BURN_WINDOW_PUT(to, s) vstrwq_f32((to), s##0);
#elif defined(BURN_WINDOW_RVV)
#define BURN_WINDOW_ZERO(s) vfloat32m1_t s##0 = __riscv_vfmv_v_f_f32m1(0.0f, 4);
#define BURN_WINDOW_LOAD(s, p) const vfloat32m1_t s##0 = __riscv_vle32_v_f32m1((p), 4);
#define BURN_WINDOW_EACH(s, x, v) s##0 = __riscv_vfmacc_vv_f32m1(s##0, x##0, v##0, 4);
#define BURN_WINDOW_FOUR(s, f, v) s##0 = __riscv_vfmacc_vf_f32m1(s##0, (f), v##0, 4);
#define BURN_WINDOW_PUT(to, s) __riscv_vse32_v_f32m1((to), s##0, 4);
#else
#define BURN_WINDOW_ZERO(s) float s##0 = 0.0f, s##1 = 0.0f, s##2 = 0.0f, s##3 = 0.0f;

#define BURN_WINDOW_LOAD(s, p) const float s##0 = (p)[0], s##1 = (p)[1], s##2 = (p)[2], s##3 = (p)[3];

#define BURN_WINDOW_EACH(s, x, v)          \
    s##0 = BURN_MULADD(s##0, x##0, v##0); \
    s##1 = BURN_MULADD(s##1, x##1, v##1); \
    s##2 = BURN_MULADD(s##2, x##2, v##2); \
    s##3 = BURN_MULADD(s##3, x##3, v##3);

#define BURN_WINDOW_FOUR(s, f, v)         \
    s##0 = BURN_MULADD(s##0, (f), v##0); \
    s##1 = BURN_MULADD(s##1, (f), v##1); \
    s##2 = BURN_MULADD(s##2, (f), v##2); \
    s##3 = BURN_MULADD(s##3, (f), v##3);

#define BURN_WINDOW_PUT(to, s) \
    (to)[0] = s##0;            \
    (to)[1] = s##1;            \
    (to)[2] = s##2;            \
    (to)[3] = s##3;
#endif

/* Weights: floats, or halves (BURN_WINDOW_HALVES, by the file), which hold no infinity and no NaN and which floats hold
 * exactly: one by one, and four as BURN_WINDOW_LOAD. */
#if !defined(BURN_WINDOW_HALVES)
typedef float burn_window_weight;
#define BURN_WINDOW_WEIGHTS(s, p) BURN_WINDOW_LOAD(s, p)
BURN_INLINE float burn_window_weight_at(const burn_window_weight *p)
{
    return *p;
}
#else
typedef uint16_t burn_window_weight;
/* Every Cortex-M with floats has this conversion; gcc's __ARM_FP says so of some. */
#if defined(__ARM_FP) && defined(__GNUC__)
#if __ARM_ARCH_PROFILE == 'M'
#define BURN_WINDOW_CONVERTS 1
#endif
#endif
BURN_INLINE float burn_window_weight_at(const burn_window_weight *p)
{
#if defined(BURN_WINDOW_CONVERTS)
    float value;
    const uint32_t half = *p;
    __asm__("vmov %0, %1\n\tvcvtb.f32.f16 %0, %0" : "=t"(value) : "r"(half));
    return value;
#elif defined(__riscv_flen) /* the half's bits where a float has them are 2^-112 of it, below 2^-14 as well */
    const union { uint32_t from; float to; } small = {((uint32_t)(int32_t)(int16_t)*p << 13) & 0x8fffffffu};
    return small.to * 0x1p112f;
#else
    const uint32_t half = *p, sign = (half & 0x8000u) << 16, word = (half & 0x7fffu) << 13;
    const union { uint32_t from; float to; } whole = {word + (112u << 23) + sign};
    if (word < 1u << 23) return (float)(int32_t)(half & 0x3ffu) * (sign ? -0x1p-24f : 0x1p-24f);
    return whole.to;
#endif
}

#if defined(BURN_WINDOW_VECTORS)
BURN_INLINE float32x4_t burn_window_widened(const burn_window_weight *p)
{
#if defined(__clang__)
    return vcvtbq_f32_f16(vreinterpretq_f16_u32(vldrhq_u32(p)));
#else
    /* the GNU assembler doubles these registers' numbers (seen in binutils 2.40): only q0 is what it says */
    register uint32x4_t four __asm__("q0") = vldrhq_u32(p);
    __asm__("vcvtb.f32.f16 q0, q0" : "+w"(four));
    return vreinterpretq_f32_u32(four);
#endif
}
#define BURN_WINDOW_WEIGHTS(s, p) const float32x4_t s##0 = burn_window_widened(p);
#elif defined(BURN_WINDOW_RVV)
/* 2^112 times the float whose bits these are, moved to where a float has them, and their sign. */
BURN_INLINE vfloat32m1_t burn_window_widened(const burn_window_weight *p)
{
    const vint32m1_t wide = __riscv_vsext_vf2_i32m1(__riscv_vle16_v_i16mf2((const int16_t *)p, 4), 4);
    const vuint32m1_t bits = __riscv_vreinterpret_v_i32m1_u32m1(wide);
    const vuint32m1_t size = __riscv_vsrl_vx_u32m1(__riscv_vsll_vx_u32m1(bits, 17, 4), 4, 4);
    return __riscv_vfsgnj_vv_f32m1(
        __riscv_vfmul_vf_f32m1(__riscv_vreinterpret_v_u32m1_f32m1(size), 0x1p112f, 4),
        __riscv_vreinterpret_v_i32m1_f32m1(wide), 4);
}
#define BURN_WINDOW_WEIGHTS(s, p) const vfloat32m1_t s##0 = burn_window_widened(p);
#else
#define BURN_WINDOW_WEIGHTS(s, p)                                                                 \
    const float s##0 = burn_window_weight_at(p), s##1 = burn_window_weight_at((p) + 1),           \
                s##2 = burn_window_weight_at((p) + 2), s##3 = burn_window_weight_at((p) + 3);
#endif
#endif

/* The float whose sign and exponent these are, the rest 0: a table of sizes has them. */
BURN_INLINE float burn_window_least(ptrdiff_t top)
{
    const union { uint32_t from; float to; } least = {(uint32_t)top << 23};
    return least.to;
}

#if defined(__GNUC__)
#define BURN_SHARED __attribute__((unused)) BURN_KERNEL static
#else
#define BURN_SHARED static
#endif

/* One pixel. A last panel is narrower: what is read past it belongs to the next step, and nobody stores those sums. */
BURN_INLINE void burn_window_1(float *to, const float *x, const burn_window_weight *weights, burn_window g)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x;
        const burn_window_weight *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at = from;
            for (ptrdiff_t i = g.depth; i > 0; i--, at += g.step, w += g.width) {
                const float f = *at;
                BURN_WINDOW_WEIGHTS(v, w)
                BURN_WINDOW_FOUR(a, f, v)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
}

/* One pixel by two panels of four, `other` floats apart: fewer loads and branches for each product. */
BURN_INLINE void burn_window_8(float *to, const float *x, const burn_window_weight *weights,
                               burn_window g, ptrdiff_t other)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x;
        const burn_window_weight *w = weights, *beyond = weights + other;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at = from;
            for (ptrdiff_t i = g.depth; i > 0; i--, at += g.step, w += 4, beyond += 4) {
                const float f = *at;
                BURN_WINDOW_WEIGHTS(v, w)
                BURN_WINDOW_WEIGHTS(u, beyond)
                BURN_WINDOW_FOUR(a, f, v)
                BURN_WINDOW_FOUR(b, f, u)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

/* The same, once for all kernels of a file. */
BURN_OUTLINE void burn_window_apart(float *to, const float *x, const burn_window_weight *weights, const burn_window *g)
{
    burn_window_1(to, x, weights, *g);
}

/* Its two loops that are left where runs are one leave registers for what is around them: inlined where one calls. */
BURN_SHARED void burn_window_dense(float *to, const float *x, const burn_window_weight *weights, const burn_window *g)
{
    burn_window_1(to, x, weights, *g);
}

/* Two and four pixels, `beside` floats of X apart, by a panel of four. */
BURN_INLINE void burn_window_2(float *to, const float *x, const burn_window_weight *weights,
                               burn_window g, ptrdiff_t beside)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x;
        const burn_window_weight *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at_a = from, *at_b = at_a + beside;
            for (ptrdiff_t i = g.depth; i > 0; i--, at_a += g.step, at_b += g.step, w += 4) {
                const float f = *at_a, e = *at_b;
                BURN_WINDOW_WEIGHTS(v, w)
                BURN_WINDOW_FOUR(a, f, v)
                BURN_WINDOW_FOUR(b, e, v)
            }
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

BURN_INLINE void burn_window_4(float *to, const float *x, const burn_window_weight *weights,
                               burn_window g, ptrdiff_t beside)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    BURN_WINDOW_ZERO(c)
    BURN_WINDOW_ZERO(d)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *from = x;
        const burn_window_weight *w = weights;
        for (ptrdiff_t r = g.runs; r > 0; r--, from += g.run) {
            const float *at_a = from, *at_b = at_a + beside, *at_c = at_b + beside, *at_d = at_c + beside;
            for (ptrdiff_t i = g.depth; i > 0; i--, w += 4) {
                const float e = *at_a, f = *at_b, l = *at_c, k = *at_d;
                BURN_WINDOW_WEIGHTS(v, w)
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
BURN_INLINE float burn_window_depth_1(const float *x, const burn_window_weight *w, burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    float sum = 0.0f;
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, w += g.w_row)
        for (ptrdiff_t i = 0; i < g.runs; i++)
            sum = BURN_MULADD(sum, x[i * g.run], burn_window_weight_at(w + i * taps));
    return sum;
}

BURN_INLINE void burn_window_depth_4(float *to, const float *x, const burn_window_weight *weights,
                                     burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *at = x;
        const burn_window_weight *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, at += g.run, w += taps) {
            BURN_WINDOW_LOAD(x, at)
            BURN_WINDOW_WEIGHTS(v, w)
            BURN_WINDOW_EACH(a, x, v)
        }
    }
    BURN_WINDOW_PUT(to, a)
}

/* Eight channels: half as many steps of the loops around them. */
BURN_INLINE void burn_window_depth_wide(float *to, const float *x, const burn_window_weight *weights,
                                        burn_window g, ptrdiff_t taps)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *at = x;
        const burn_window_weight *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, at += g.run, w += taps) {
            BURN_WINDOW_LOAD(x, at)
            BURN_WINDOW_WEIGHTS(v, w)
            BURN_WINDOW_LOAD(y, at + 4)
            BURN_WINDOW_WEIGHTS(u, w + 4)
            BURN_WINDOW_EACH(a, x, v)
            BURN_WINDOW_EACH(b, y, u)
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}

/* Four at two pixels, `beside` floats of X apart: their weights are loaded once. */
BURN_INLINE void burn_window_depth_8(float *to, const float *x, const burn_window_weight *weights,
                                     burn_window g, ptrdiff_t taps, ptrdiff_t beside)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    BURN_WINDOW_ZERO(b)
    for (ptrdiff_t h = g.rows; h > 0; h--, x += g.row, weights += g.w_row) {
        const float *at_a = x, *at_b = x + beside;
        const burn_window_weight *w = weights;
        for (ptrdiff_t i = g.runs; i > 0; i--, at_a += g.run, at_b += g.run, w += taps) {
            BURN_WINDOW_WEIGHTS(v, w)
            BURN_WINDOW_LOAD(x, at_a)
            BURN_WINDOW_LOAD(y, at_b)
            BURN_WINDOW_EACH(a, x, v)
            BURN_WINDOW_EACH(b, y, v)
        }
    }
    BURN_WINDOW_PUT(to, a)
    BURN_WINDOW_PUT(to + 4, b)
}
#endif
