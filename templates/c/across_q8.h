// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the kernels on signed bytes, or (wide) integers of 16 bits, by bytes whose sums lie across: neighbouring
 * columns are the lanes of one vector, of any length (riscv_vector.h). Copied once, whole, behind vec_q8.h into a
 * generated file that uses it. It has no holes.
 *
 * Out: burn_across_sums, exact 32-bit sums of the products of one or two rows by `now` columns, and
 * burn_across_tile, the same of a constant number of columns in memory, which is plain C elsewhere. The idea: nothing
 * is summed over lanes, and what becomes of sums, their epilogue, is done in vectors as well. Weights lie row by row:
 * column j's weight k at b[k*bm + j], or (packed) of 4 bits, those of two rows in a byte, the first's in its lower
 * half. These stay in the upper half of a byte, 16 times as large, and 16 divides the sum in the end.
 */
#ifndef BURN_ACROSS_Q8_H
#define BURN_ACROSS_Q8_H
#if defined(BURN_Q8_RVV)
#if defined(__clang__)
#define BURN_ACROSS_STEPS _Pragma("clang loop unroll_count(4)")
#define BURN_ACROSS_LOOP _Pragma("clang loop unroll(disable)") /* all loads would go first, and find no registers */
#else
#define BURN_ACROSS_STEPS _Pragma("GCC unroll 4")
#define BURN_ACROSS_LOOP _Pragma("GCC unroll 1")
#endif

/* The upper word of each product, or (rounds) the nearest to what the lower one adds, halves upwards. */
BURN_INLINE vint32m4_t burn_across_high(bool rounds, vint32m4_t x, vint32m4_t y, size_t n)
{
    const vint32m4_t high = __riscv_vmulh_vv_i32m4(x, y, n);
    if (!rounds)
        return high;
    return __riscv_vsub_vv_i32m4(high, __riscv_vsra_vx_i32m4(__riscv_vmul_vv_i32m4(x, y, n), 31, n), n);
}

BURN_INLINE vint32m4_t burn_across_high_by(bool rounds, vint32m4_t x, int32_t y, size_t n)
{
    const vint32m4_t high = __riscv_vmulh_vx_i32m4(x, y, n);
    if (!rounds)
        return high;
    return __riscv_vsub_vv_i32m4(high, __riscv_vsra_vx_i32m4(__riscv_vmul_vx_i32m4(x, y, n), 31, n), n);
}

/* The half `part`, 0 or 1, of one or the other. */
BURN_INLINE vint32m4_t burn_across_half(bool second, bool part, vint32m8_t s0, vint32m8_t s1)
{
    if (part)
        return __riscv_vget_v_i32m8_i32m4(second ? s1 : s0, 1);
    return __riscv_vget_v_i32m8_i32m4(second ? s1 : s0, 0);
}

/* The lower bits of n numbers, as elements of 1, 2 or 4 bytes. */
BURN_INLINE void burn_across_put(void *p, int bytes, vint32m4_t v, size_t n)
{
    if (bytes == 4) {
        __riscv_vse32_v_i32m4(p, v, n);
    } else {
        const vint16m2_t halves = __riscv_vncvt_x_x_w_i16m2(v, n);
        if (bytes == 2)
            __riscv_vse16_v_i16m2(p, halves, n);
        else
            __riscv_vse8_v_i8m1(p, __riscv_vncvt_x_x_w_i8m1(halves, n), n);
    }
}

/* Both sums stand in registers from here on: a compiler else computes one where it is stored, and keeps, in memory, all
 * that goes into it until then. */
#define BURN_ACROSS_HELD(x, y) __asm__("" : "+vr"(x), "+vr"(y))

BURN_INLINE vint32m8_t burn_across_zeros(size_t n)
{
    return __riscv_vmv_v_x_i32m8(burn_q8_zero(), n);
}

/* sum += an element of a row times the weights that meet it. */
BURN_INLINE vint32m8_t burn_across_add(vint32m8_t sum, bool wide, const void *a, ptrdiff_t k, vint16m4_t w, size_t n)
{
    return __riscv_vwmacc_vx_i32m8(sum, (int16_t)burn_q8_value(wide, a, k), w, n);
}

/* Of the row i: lane j of *si = sum over k < n of a[i*am + k] * weight k of column j, j < now. wide, packed, rows (1 or
 * 2), n and the strides are constants where this is inlined; *s1 is another name of *s0 where there is one row. */
BURN_INLINE void burn_across_sums(bool wide, bool packed, int rows, ptrdiff_t n, const void *a, ptrdiff_t am,
                                  const int8_t *b, ptrdiff_t bm, size_t now, vint32m8_t *s0, vint32m8_t *s1)
{
    const void *const a1 = burn_q8_at(wide, a, rows == 2 ? am : 0);
    const ptrdiff_t step = packed ? 2 : 1, end = packed ? n / 2 * 2 : n;
    vint32m8_t x = burn_across_zeros(now), y = x;
    BURN_ACROSS_STEPS
    for (ptrdiff_t k = 0; k < end; k += step) {
        const vint8m2_t w = __riscv_vle8_v_i8m2(b, now);
        const vint16m4_t first = __riscv_vsext_vf2_i16m4(packed ? __riscv_vsll_vx_i8m2(w, 4, now) : w, now);
        b += bm;
        x = burn_across_add(x, wide, a, k, first, now);
        if (rows == 2)
            y = burn_across_add(y, wide, a1, k, first, now);
        if (packed) {
            const vint16m4_t second = __riscv_vsext_vf2_i16m4(__riscv_vand_vx_i8m2(w, -16, now), now);
            x = burn_across_add(x, wide, a, k + 1, second, now);
            if (rows == 2)
                y = burn_across_add(y, wide, a1, k + 1, second, now);
        }
    }
    if (end < n) {
        const vint16m4_t last =
            __riscv_vsext_vf2_i16m4(__riscv_vsll_vx_i8m2(__riscv_vle8_v_i8m2(b, now), 4, now), now);
        x = burn_across_add(x, wide, a, end, last, now);
        if (rows == 2)
            y = burn_across_add(y, wide, a1, end, last, now);
    }
    if (packed) {
        x = __riscv_vsra_vx_i32m8(x, 4, now);
        y = rows == 2 ? __riscv_vsra_vx_i32m8(y, 4, now) : x;
    }
    BURN_ACROSS_HELD(x, y);
    *s0 = x;
    *s1 = y;
}

BURN_INLINE vint16m4_t burn_across_halves(bool wide, const void *p, size_t n)
{
    return wide ? __riscv_vle16_v_i16m4(p, n) : __riscv_vsext_vf2_i16m4(__riscv_vle8_v_i8m2(p, n), n);
}

/* Depthwise: lane j of *si = sum over t of x[i*taps + t][c + j] * w[t*g + c + j], pixel i's taps from x[i*taps] on. */
BURN_INLINE void burn_across_taps(bool wide, int rows, int taps, const void *const *x, const int8_t *w, ptrdiff_t g,
                                  ptrdiff_t c, size_t now, vint32m8_t *s0, vint32m8_t *s1)
{
    vint32m8_t u = burn_across_zeros(now), v = u;
    w += c;
    BURN_ACROSS_LOOP
    for (int t = 0; t < taps; t++, w += g) {
        const vint16m4_t by = burn_across_halves(0, w, now);
        u = __riscv_vwmacc_vv_i32m8(u, burn_across_halves(wide, burn_q8_at(wide, x[t], c), now), by, now);
        if (rows == 2)
            v = __riscv_vwmacc_vv_i32m8(v, burn_across_halves(wide, burn_q8_at(wide, x[taps + t], c), now), by, now);
    }
    BURN_ACROSS_HELD(u, v);
    *s0 = u;
    *s1 = v;
}
#else
/* Weight k of the byte w, 16 times as large where it is packed. */
BURN_INLINE int32_t burn_across_weight(bool packed, ptrdiff_t k, int8_t w)
{
    if (!packed)
        return w;
    return k % 2 ? (int8_t)((uint8_t)w & 0xf0u) : (int8_t)(uint8_t)((uint8_t)w << 4);
}
#endif

/* s[i*columns + j] = sum over k < n of a[i*am + k] * weight k of column j, as burn_across_sums has them; columns is a
 * multiple of 4. */
BURN_INLINE void burn_across_tile(bool wide, bool packed, int rows, int columns, ptrdiff_t n, const void *a,
                                  ptrdiff_t am, const int8_t *b, ptrdiff_t bm, int32_t *s)
{
#if defined(BURN_Q8_RVV)
    for (int j = 0; j < columns;) {
        const size_t now = __riscv_vsetvl_e32m8((size_t)(columns - j));
        vint32m8_t s0, s1;
        burn_across_sums(wide, packed, rows, n, a, am, b + j, bm, now, &s0, &s1);
        __riscv_vse32_v_i32m8(s + j, s0, now);
        if (rows == 2)
            __riscv_vse32_v_i32m8(s + columns + j, s1, now);
        j += (int)now;
    }
#else
    for (int j = 0; j < columns; j += 4) {
        int32_t sum[8];
        BURN_Q8_UNROLL
        for (int i = 0; i < rows * 4; i++)
            sum[i] = 0;
        for (ptrdiff_t k = 0; k < n; k++) {
            const int8_t *const w = b + (packed ? k / 2 : k) * bm + j;
            BURN_Q8_UNROLL
            for (int i = 0; i < rows; i++) {
                const int32_t x = burn_q8_value(wide, a, i * am + k);
                BURN_Q8_UNROLL
                for (int c = 0; c < 4; c++)
                    sum[i * 4 + c] += x * burn_across_weight(packed, k, w[c]);
            }
        }
        BURN_Q8_UNROLL
        for (int i = 0; i < rows * 4; i++)
            s[i / 4 * columns + j + i % 4] = packed ? sum[i] / 16 : sum[i];
    }
#endif
}
#endif
