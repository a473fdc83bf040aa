// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the sums of window.c (window_sums.h) and window_blocks.c are made of: four numbers, each a variable of its own,
 * which compilers keep in a register at -O2 and at -Os, where they unroll nothing that is an array; and the weights
 * that they come of. Where there are vectors of four floats that multiply and add with one rounding (arm_mve.h,
 * riscv_vector.h), four sums are one: the same bits.
 */
#ifndef BURN_WINDOW_H
#define BURN_WINDOW_H
#include "vec.h"

#include <stdbool.h>
#include <stdint.h>
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

/* Names of sums, over weights that are floats (or halves) and over whole numbers from -128 to 127 in bytes, whose scale
 * stands behind the sum. In two steps, so that what they begin with is the file's own. */
#define BURN_WINDOW_JOINED(begin, which) begin##which
#define BURN_WINDOW_NAME(begin, which) BURN_WINDOW_JOINED(begin, which)
#define BURN_WINDOW_FLOATS(which) BURN_WINDOW_NAME(burn_window_, which)
#define BURN_WINDOW_WHOLE(which) BURN_WINDOW_NAME(burn_window_whole_, which)
typedef int8_t burn_window_byte;
BURN_INLINE float burn_window_byte_at(const burn_window_byte *p)
{
    return (float)*p;
}

#if defined(BURN_WINDOW_VECTORS)
#define BURN_WINDOW_BYTES(s, p) const float32x4_t s##0 = vcvtq_f32_s32(vldrbq_s32(p));
#elif defined(BURN_WINDOW_RVV)
#define BURN_WINDOW_BYTES(s, p)                                                \
    const vfloat32m1_t s##0 = __riscv_vfcvt_f_x_v_f32m1(                       \
        __riscv_vsext_vf4_i32m1(__riscv_vle8_v_i8mf4((p), 4), 4), 4);
#else
#define BURN_WINDOW_BYTES(s, p)                                                         \
    const float s##0 = burn_window_byte_at(p), s##1 = burn_window_byte_at((p) + 1),     \
                s##2 = burn_window_byte_at((p) + 2), s##3 = burn_window_byte_at((p) + 3);
#endif

/* Numbers from -8 to 7, the lower halves of four bytes, and the upper ones. */
#if defined(BURN_WINDOW_VECTORS)
#define BURN_WINDOW_LOW(s, p) \
    const float32x4_t s##0 = vcvtq_f32_s32(vshrq_n_s32(vshlq_n_s32(vldrbq_s32(p), 28), 28));
#define BURN_WINDOW_HIGH(s, p) const float32x4_t s##0 = vcvtq_f32_s32(vshrq_n_s32(vldrbq_s32(p), 4));
#elif defined(BURN_WINDOW_RVV)
#define BURN_WINDOW_LOW(s, p)                                                                                   \
    const vfloat32m1_t s##0 = __riscv_vfcvt_f_x_v_f32m1(                                                        \
        __riscv_vsra_vx_i32m1(                                                                                  \
            __riscv_vsll_vx_i32m1(__riscv_vsext_vf4_i32m1(__riscv_vle8_v_i8mf4((p), 4), 4), 28, 4), 28, 4),     \
        4);
#define BURN_WINDOW_HIGH(s, p)                                                                                  \
    const vfloat32m1_t s##0 = __riscv_vfcvt_f_x_v_f32m1(                                                        \
        __riscv_vsra_vx_i32m1(__riscv_vsext_vf4_i32m1(__riscv_vle8_v_i8mf4((p), 4), 4), 4, 4), 4);
#else
BURN_INLINE float burn_window_low(const burn_window_byte *p)
{
    return (float)(((int32_t)((uint32_t)(int32_t)*p & 15u) ^ 8) - 8);
}

BURN_INLINE float burn_window_high(const burn_window_byte *p)
{
    return (float)(((int32_t)((uint32_t)(int32_t)*p >> 4 & 15u) ^ 8) - 8);
}

#define BURN_WINDOW_LOW(s, p)                                                   \
    const float s##0 = burn_window_low(p), s##1 = burn_window_low((p) + 1),     \
                s##2 = burn_window_low((p) + 2), s##3 = burn_window_low((p) + 3);
#define BURN_WINDOW_HIGH(s, p)                                                  \
    const float s##0 = burn_window_high(p), s##1 = burn_window_high((p) + 1),   \
                s##2 = burn_window_high((p) + 2), s##3 = burn_window_high((p) + 3);
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

/* Where the next number of a row is: `step` floats further, but after the last of a run of `run`, of which `left` are
 * to come, `back` further. */
typedef struct burn_window_walk {
    const float *at;
    ptrdiff_t step, run, left, back;
} burn_window_walk;

BURN_INLINE float burn_window_next(burn_window_walk *x)
{
    const float f = *x->at;
    x->left--;
    const bool last = x->left == 0;
    x->at += last ? x->back : x->step;
    if (last) x->left = x->run;
    return f;
}

/* One row of window_blocks.c by a panel of `width` columns, of `depth` bytes each, of which `block` share a scale. */
BURN_INLINE void burn_window_blocks(float *to, burn_window_walk x, const float *scales, const burn_window_byte *w,
                                    ptrdiff_t depth, ptrdiff_t block, ptrdiff_t width)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    for (ptrdiff_t left = depth; left > 0; left -= block, scales += width) {
        BURN_WINDOW_ZERO(b)
        for (ptrdiff_t i = left < block ? left : block; i > 0; i--, w += width) {
            const float f = burn_window_next(&x);
            BURN_WINDOW_BYTES(v, w)
            BURN_WINDOW_FOUR(b, f, v)
        }
        BURN_WINDOW_LOAD(s, scales)
        BURN_WINDOW_EACH(a, s, b)
    }
    BURN_WINDOW_PUT(to, a)
}

/* Of numbers of 4 bits, two of a column in a byte. */
BURN_INLINE void burn_window_nibbles(float *to, burn_window_walk x, const float *scales, const burn_window_byte *w,
                                     ptrdiff_t depth, ptrdiff_t block, ptrdiff_t width)
{
    BURN_CONTRACT
    BURN_WINDOW_ZERO(a)
    for (ptrdiff_t left = depth; left > 0; left -= block, scales += width) {
        BURN_WINDOW_ZERO(b)
        for (ptrdiff_t i = left < block ? left : block; i > 0; i -= 2, w += width) {
            const float e = burn_window_next(&x), f = i > 1 ? burn_window_next(&x) : 0.0f;
            BURN_WINDOW_LOW(v, w)
            BURN_WINDOW_FOUR(b, e, v)
            BURN_WINDOW_HIGH(u, w)
            BURN_WINDOW_FOUR(b, f, u)
        }
        BURN_WINDOW_LOAD(s, scales)
        BURN_WINDOW_EACH(a, s, b)
    }
    BURN_WINDOW_PUT(to, a)
}
#endif
