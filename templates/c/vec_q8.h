// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the kernels on signed bytes, or (wide) integers of 16 bits, by bytes on machines in fixed point: copied
 * once, whole, behind vec.h into a generated file that uses it. It has no holes.
 *
 * Out: burn_q8_tile, exact 32-bit sums of the products of a few rows by a few columns, and burn_q8_taps, of a few
 * pixels' taps channel by channel. What one instruction gives and no expression of C does is here, for each kind of
 * machine, by arm_mve.h, arm_acle.h and riscv_vector.h: sixteen products into one sum (Helium: VMLADAVA), two products
 * of half words (the DSP extension: SMLAD, and SMLABB with its like), as many products into as many sums as the
 * processor's registers hold (RISC-V's vectors: VWMACC), and plain C. All give the same bits. Of wide ones the compiler
 * has made sure that no sum leaves 32 bits, whatever the numbers.
 */
#ifndef BURN_VEC_Q8_H
#define BURN_VEC_Q8_H
#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#define BURN_Q8_MVE 1
#define BURN_Q8_LANES(n) ((n) < 8 ? 4 : 8)
#elif defined(__ARM_FEATURE_SIMD32) && defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#define BURN_Q8_DSP 1
#elif defined(__riscv_v_intrinsic) && defined(__riscv_zve32x)
#if __riscv_v_intrinsic >= 11000 && __riscv_v_min_vlen >= 128
#include <riscv_vector.h>
#define BURN_Q8_RVV 1
#define BURN_Q8_LANES(n) ((n) % 16 == 0 ? 16 : (n) < 8 ? 4 : 8)
#endif
#endif
/* Channels at a time of n, for burn_q8_taps. */
#ifndef BURN_Q8_LANES
#define BURN_Q8_LANES(n) 4
#endif
/* Loops over the rows and columns of a tile: their sums are to be in registers. */
#if defined(__clang__)
#define BURN_Q8_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define BURN_Q8_UNROLL _Pragma("GCC unroll 8")
#else
#define BURN_Q8_UNROLL
#endif

/* The compiler knows nothing of the pointer p but its value: else gcc computes the rows' places from one another. */
#if defined(__GNUC__)
#define BURN_Q8_OPAQUE(p) __asm__("" : "+r"(p))
#else
#define BURN_Q8_OPAQUE(p) ((void)0)
#endif

/* Goes before a kernel: gcc would make vectors, in memory, of sums that stand in registers. */
#if defined(BURN_Q8_MVE) && defined(__GNUC__) && !defined(__clang__)
#define BURN_Q8_SCALAR __attribute__((optimize("no-tree-slp-vectorize")))
#else
#define BURN_Q8_SCALAR
#endif

#if defined(BURN_Q8_DSP)
BURN_INLINE uint32_t burn_q8_word(const void *p)
{
    uint32_t w;
    memcpy(&w, p, 4);
    return w;
}

/* Bytes 0 and 2 of a word as half words, and 1 and 3. */
BURN_INLINE int16x2_t burn_q8_even(uint32_t w)
{
    return __sxtb16((int32_t)w);
}

BURN_INLINE int16x2_t burn_q8_odd(uint32_t w)
{
#if defined(__GNUC__) && defined(__arm__)
    int16x2_t d; /* compilers do not see the rotation that the instruction has */
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(d) : "r"(w));
    return d;
#else
    return __sxtb16((int32_t)__ror(w, 8));
#endif
}

/* Four elements as two pairs of half words: the first two and the others, or of bytes the even and the odd ones; and
 * four bytes as they meet these. */
BURN_INLINE void burn_q8_row(bool wide, const void *p, int16x2_t *first, int16x2_t *second)
{
    *first = wide ? (int16x2_t)burn_q8_word(p) : burn_q8_even(burn_q8_word(p));
    *second = wide ? (int16x2_t)burn_q8_word((const unsigned char *)p + 4) : burn_q8_odd(burn_q8_word(p));
}

BURN_INLINE void burn_q8_column(bool wide, const int8_t *p, int16x2_t *first, int16x2_t *second)
{
    const uint32_t w = burn_q8_word(p), even = (uint32_t)burn_q8_even(w), odd = (uint32_t)burn_q8_odd(w);
    *first = (int16x2_t)(wide ? (even & 0xffffu) | odd << 16 : even); /* one instruction: PKHBT, PKHTB */
    *second = (int16x2_t)(wide ? (odd & 0xffff0000u) | even >> 16 : odd);
}
#endif

/* The place of element i, and its value. */
BURN_INLINE const void *burn_q8_at(bool wide, const void *p, ptrdiff_t i)
{
    return (const unsigned char *)p + (wide ? 2 : 1) * i;
}

BURN_INLINE int32_t burn_q8_value(bool wide, const void *p, ptrdiff_t i)
{
    return wide ? ((const int16_t *)p)[i] : ((const int8_t *)p)[i];
}

#if defined(BURN_Q8_RVV)
/* n elements of 1 or 2 bytes as 16 bits. */
BURN_INLINE vint16m2_t burn_q8_halves(bool wide, const void *p, size_t n)
{
    return wide ? __riscv_vle16_v_i16m2(p, n) : __riscv_vsext_vf2_i16m2(__riscv_vle8_v_i8m1(p, n), n);
}

/* 0 of which the compiler does not know: vectors of it are made where they stand, and not kept, which is to say
 * spilled, from one tile to the next. */
BURN_INLINE int32_t burn_q8_zero(void)
{
    int32_t zero = 0;
    __asm__ volatile("" : "+r"(zero));
    return zero;
}

BURN_INLINE vint32m4_t burn_q8_zeros(void)
{
    return __riscv_vmv_v_x_i32m4(burn_q8_zero(), __riscv_vsetvlmax_e32m4());
}

/* sum += the first n products; the sums beyond stay. */
BURN_INLINE vint32m4_t burn_q8_add(vint32m4_t sum, vint16m2_t x, vint16m2_t y, size_t n)
{
    return __riscv_vwmacc_vv_i32m4_tu(sum, x, y, n);
}

BURN_INLINE int32_t burn_q8_total(vint32m4_t sum, vint32m1_t zero)
{
    return __riscv_vmv_x_s_i32m1_i32(__riscv_vredsum_vs_i32m4_i32m1(sum, zero, __riscv_vsetvlmax_e32m4()));
}

/* burn_q8_tile below. Vectors whose length the processor knows are in no array: a tile has up to four sums. */
BURN_INLINE void burn_q8_tile_sums(bool wide, int rows, int columns, ptrdiff_t n, const void *a, ptrdiff_t am,
                                   const int8_t *b, ptrdiff_t bm, int32_t *s)
{
    const int apart = rows == 2 ? columns : 1; /* of the second row's sums from the first's */
    const ptrdiff_t step = wide ? 2 : 1;
    const unsigned char *x = a, *x1 = burn_q8_at(wide, a, rows == 2 ? am : 0);
    vint32m4_t s0 = burn_q8_zeros(), s1 = s0, s2 = s0, s3 = s0;
    for (ptrdiff_t k = n; k > 0;) {
        const size_t now = __riscv_vsetvl_e16m2((size_t)k);
        const vint16m2_t row = burn_q8_halves(wide, x, now), y = burn_q8_halves(0, b, now);
        s0 = burn_q8_add(s0, row, y, now);
        if (rows == 2) {
            const vint16m2_t row1 = burn_q8_halves(wide, x1, now);
            s2 = burn_q8_add(s2, row1, y, now);
            if (columns > 1) {
                const vint16m2_t y1 = burn_q8_halves(0, b + bm, now);
                s1 = burn_q8_add(s1, row, y1, now);
                s3 = burn_q8_add(s3, row1, y1, now);
            }
            x1 += (ptrdiff_t)now * step;
        } else {
            if (columns > 1)
                s1 = burn_q8_add(s1, row, burn_q8_halves(0, b + bm, now), now);
            if (columns > 2)
                s2 = burn_q8_add(s2, row, burn_q8_halves(0, b + 2 * bm, now), now);
            if (columns > 3)
                s3 = burn_q8_add(s3, row, burn_q8_halves(0, b + 3 * bm, now), now);
        }
        x += (ptrdiff_t)now * step;
        b += now;
        k -= (ptrdiff_t)now;
    }
    const vint32m1_t zero = __riscv_vmv_s_x_i32m1(burn_q8_zero(), 1);
    s[0] = burn_q8_total(s0, zero);
    if (columns > 1)
        s[1] = burn_q8_total(s1, zero);
    if (rows == 2)
        s[apart] = burn_q8_total(s2, zero);
    else if (columns > 2)
        s[2] = burn_q8_total(s2, zero);
    if (rows == 2 && columns > 1)
        s[apart + 1] = burn_q8_total(s3, zero);
    else if (columns > 3)
        s[3] = burn_q8_total(s3, zero);
}

/* burn_q8_taps below. */
BURN_INLINE void burn_q8_taps_sums(bool wide, int rows, int lanes, int taps, const void *const *x, const int8_t *w,
                                   ptrdiff_t g, ptrdiff_t c, int32_t *s)
{
    const size_t n = (size_t)lanes;
    vint32m4_t s0 = burn_q8_zeros(), s1 = s0;
    w += c;
    for (int t = 0; t < taps; t++, w += g) {
        const vint16m2_t v = burn_q8_halves(0, w, n);
        s0 = burn_q8_add(s0, burn_q8_halves(wide, burn_q8_at(wide, x[t], c), n), v, n);
        if (rows == 2)
            s1 = burn_q8_add(s1, burn_q8_halves(wide, burn_q8_at(wide, x[taps + t], c), n), v, n);
    }
    __riscv_vse32_v_i32m4(s, s0, n);
    if (rows == 2)
        __riscv_vse32_v_i32m4(s + n, s1, n);
}
#endif

/* s[i*columns + j] = sum over k of a[i*am + k] * b[j*bm + k]. wide, rows and columns (at most 4), n, am and bm are
 * constants where this is inlined. */
BURN_INLINE void burn_q8_tile(bool wide, int rows, int columns, ptrdiff_t n, const void *a, ptrdiff_t am,
                              const int8_t *b, ptrdiff_t bm, int32_t *s)
{
#if defined(BURN_Q8_RVV)
    burn_q8_tile_sums(wide, rows, columns, n, a, am, b, bm, s);
#else
    int32_t sum[16];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * columns; i++)
        sum[i] = 0;
#if defined(BURN_Q8_MVE)
    const int step = wide ? 8 : 16;
    const unsigned char *x[4];
    const int8_t *y[4];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows; i++)
        x[i] = burn_q8_at(wide, a, i * am);
    BURN_Q8_UNROLL
    for (int j = 0; j < columns; j++)
        y[j] = b + j * bm;
    for (ptrdiff_t k = 0; k < n; k += step) {
        const mve_pred16_t in = wide ? vctp16q((uint32_t)(n - k)) : vctp8q((uint32_t)(n - k));
        const bool whole = n % step == 0;
        int8x16_t row[4];
        int16x8_t wide_row[4];
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            BURN_Q8_OPAQUE(x[i]);
            if (wide)
                wide_row[i] = whole ? vldrhq_s16((const void *)x[i]) : vldrhq_z_s16((const void *)x[i], in);
            else
                row[i] = whole ? vldrbq_s8((const void *)x[i]) : vldrbq_z_s8((const void *)x[i], in);
            x[i] += 16;
        }
        BURN_Q8_UNROLL
        for (int j = 0; j < columns; j++) {
            BURN_Q8_OPAQUE(y[j]);
            int8x16_t column;
            int16x8_t wide_column;
            if (wide)
                wide_column = whole ? vldrbq_s16(y[j]) : vldrbq_z_s16(y[j], in);
            else
                column = whole ? vldrbq_s8(y[j]) : vldrbq_z_s8(y[j], in);
            y[j] += step;
            BURN_Q8_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i * columns + j] = wide ? vmladavaq_s16(sum[i * columns + j], wide_row[i], wide_column)
                                            : vmladavaq_s8(sum[i * columns + j], row[i], column);
        }
    }
#else
    ptrdiff_t k = 0;
#if defined(BURN_Q8_DSP)
    for (; k + 4 <= n; k += 4) {
        int16x2_t first[4], second[4];
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++)
            burn_q8_row(wide, burn_q8_at(wide, a, i * am + k), &first[i], &second[i]);
        BURN_Q8_UNROLL
        for (int j = 0; j < columns; j++) {
            int16x2_t column_first, column_second;
            burn_q8_column(wide, b + j * bm + k, &column_first, &column_second);
            BURN_Q8_UNROLL
            for (int i = 0; i < rows; i++) {
                sum[i * columns + j] = __smlad(first[i], column_first, sum[i * columns + j]);
                sum[i * columns + j] = __smlad(second[i], column_second, sum[i * columns + j]);
            }
        }
    }
#endif
    for (; k < n; k++) {
        int32_t row[4];
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++)
            row[i] = burn_q8_value(wide, a, i * am + k);
        BURN_Q8_UNROLL
        for (int j = 0; j < columns; j++) {
            const int32_t column = b[j * bm + k];
            BURN_Q8_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i * columns + j] += row[i] * column;
        }
    }
#endif
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * columns; i++)
        s[i] = sum[i];
#endif
}

#if defined(BURN_Q8_MVE)
/* Sums of eight neighbours: those of even and of odd places. */
typedef struct burn_q8_pair {
    int32x4_t even, odd;
} burn_q8_pair;

BURN_INLINE int32x4_t burn_q8_four(int32_t s0, int32_t s1, int32_t s2, int32_t s3)
{
    return vsetq_lane_s32(s3, vsetq_lane_s32(s2, vsetq_lane_s32(s1, vdupq_n_s32(s0), 1), 2), 3);
}

/* burn_q8_taps below, of eight channels. */
BURN_INLINE void burn_q8_pairs(bool wide, int rows, int taps, const void *const *x, const int8_t *w, ptrdiff_t g,
                               ptrdiff_t c, burn_q8_pair *s)
{
    int32x4_t even[2], odd[2];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows; i++)
        even[i] = odd[i] = vdupq_n_s32(0);
    w += c;
    for (int t = 0; t < taps; t++, w += g) {
        const int16x8_t v = vldrbq_s16(w);
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            const void *const p = burn_q8_at(wide, x[i * taps + t], c);
            const int16x8_t u = wide ? vldrhq_s16(p) : vldrbq_s16(p);
            even[i] = vaddq_s32(even[i], vmullbq_int_s16(u, v));
            odd[i] = vaddq_s32(odd[i], vmulltq_int_s16(u, v));
        }
    }
    BURN_Q8_UNROLL
    for (int i = 0; i < rows; i++) {
        s[i].even = even[i];
        s[i].odd = odd[i];
    }
}

/* Eight elements of 1 or 2 bytes, but for the first `from`. */
BURN_INLINE void burn_q8_put_pairs(void *p, int bytes, ptrdiff_t from, int16x8_t v)
{
    const mve_pred16_t in = (mve_pred16_t)~vctp16q((uint32_t)from);
    if (from == 0 && bytes == 1)
        vstrbq_s16(p, v);
    else if (from == 0)
        vstrhq_s16(p, v);
    else if (bytes == 1)
        vstrbq_p_s16(p, v, in);
    else
        vstrhq_p_s16(p, v, in);
}

/* Four elements of 1, 2 or 4 bytes, but for the first `from`. */
BURN_INLINE void burn_q8_put_four(void *p, int bytes, ptrdiff_t from, int32x4_t v)
{
    const mve_pred16_t in = (mve_pred16_t)~vctp32q((uint32_t)from);
    if (from == 0 && bytes == 1)
        vstrbq_s32(p, v);
    else if (from == 0 && bytes == 2)
        vstrhq_s32(p, v);
    else if (from == 0)
        vstrwq_s32(p, v);
    else if (bytes == 1)
        vstrbq_p_s32(p, v, in);
    else if (bytes == 2)
        vstrhq_p_s32(p, v, in);
    else
        vstrwq_p_s32(p, v, in);
}
#endif

/* s[i*lanes + j] = sum over t of x[i*taps + t][c + j] * w[t*g + c + j]: pixel i's taps begin at x[i*taps]. wide,
 * rows, lanes (of BURN_Q8_LANES) and taps are constants where this is inlined. */
BURN_INLINE void burn_q8_taps(bool wide, int rows, int lanes, int taps, const void *const *x, const int8_t *w,
                              ptrdiff_t g, ptrdiff_t c, int32_t *s)
{
    (void)lanes;
#if defined(BURN_Q8_MVE)
    if (lanes == 8) {
        burn_q8_pair sum[2];
        burn_q8_pairs(wide, rows, taps, x, w, g, c, sum);
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            int32x4x2_t both;
            both.val[0] = sum[i].even;
            both.val[1] = sum[i].odd;
            vst2q_s32(s + i * lanes, both);
        }
        return;
    }
#endif
#if defined(BURN_Q8_RVV)
    burn_q8_taps_sums(wide, rows, lanes, taps, x, w, g, c, s);
#else
    w += c;
    int32_t sum[8];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * 4; i++)
        sum[i] = 0;
    for (int t = 0; t < taps; t++, w += g) {
#if defined(BURN_Q8_DSP)
        if (!wide) {
            const uint32_t v = burn_q8_word(w);
            const int16x2_t even = burn_q8_even(v), odd = burn_q8_odd(v);
            BURN_Q8_UNROLL
            for (int i = 0; i < rows; i++) {
                const uint32_t u = burn_q8_word((const int8_t *)x[i * taps + t] + c);
                const int16x2_t x_even = burn_q8_even(u), x_odd = burn_q8_odd(u);
                sum[i * 4] = __smlabb(x_even, even, sum[i * 4]);
                sum[i * 4 + 1] = __smlabb(x_odd, odd, sum[i * 4 + 1]);
                sum[i * 4 + 2] = __smlatt(x_even, even, sum[i * 4 + 2]);
                sum[i * 4 + 3] = __smlatt(x_odd, odd, sum[i * 4 + 3]);
            }
            continue;
        }
#endif
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            const void *const u = burn_q8_at(wide, x[i * taps + t], c);
            BURN_Q8_UNROLL
            for (int j = 0; j < 4; j++)
                sum[i * 4 + j] += burn_q8_value(wide, u, j) * w[j];
        }
    }
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * 4; i++)
        s[i] = sum[i];
#endif
}

/* n elements, the place behind them. Word by word where machines read words anywhere: the pieces are short, and a
 * library's function, which compilers make of loops over bytes, takes longer to begin. */
BURN_INLINE void *burn_q8_copy(bool wide, void *to, const void *from, ptrdiff_t n)
{
    unsigned char *const q = to;
    const unsigned char *const p = from;
    const ptrdiff_t bytes = wide ? 2 * n : n;
    ptrdiff_t i = 0;
#if defined(BURN_Q8_MVE)
    for (; i < bytes; i += 16) {
        const mve_pred16_t in = vctp8q((uint32_t)(bytes - i));
        vstrbq_p_u8(q + i, vldrbq_z_u8(p + i, in), in);
    }
#elif defined(BURN_Q8_RVV)
    while (i < bytes) {
        const size_t now = __riscv_vsetvl_e8m8((size_t)(bytes - i));
        __riscv_vse8_v_u8m8(q + i, __riscv_vle8_v_u8m8(p + i, now), now);
        i += (ptrdiff_t)now;
    }
#elif defined(__ARM_FEATURE_UNALIGNED)
    for (; i + 4 <= bytes; i += 4)
        memcpy(q + i, p + i, 4);
    if (i < bytes) {
        if (bytes & 2)
            memcpy(q + i, p + i, 2);
        if (bytes & 1)
            q[bytes - 1] = p[bytes - 1];
    }
#else
    for (; wide && i < bytes; i += 2)
        *(int16_t *)(void *)(q + i) = *(const int16_t *)(const void *)(p + i);
    for (; i < bytes; i++)
        q[i] = p[i];
#endif
    return q + bytes;
}

BURN_INLINE void *burn_q8_fill(bool wide, void *to, int16_t with, ptrdiff_t n)
{
    int16_t *const halves = to;
    int8_t *const bytes = to;
#if defined(BURN_Q8_MVE)
    const int16x8_t v = wide ? vdupq_n_s16(with) : (int16x8_t)vdupq_n_s8((int8_t)with);
    for (ptrdiff_t i = 0, size = wide ? 2 * n : n; i < size; i += 16)
        vstrbq_p_s8(bytes + i, (int8x16_t)v, vctp8q((uint32_t)(size - i)));
#elif defined(BURN_Q8_RVV)
    for (ptrdiff_t i = 0; i < n;) {
        const size_t now = __riscv_vsetvl_e16m8((size_t)(n - i));
        if (wide)
            __riscv_vse16_v_i16m8(halves + i, __riscv_vmv_v_x_i16m8(with, now), now);
        else
            __riscv_vse8_v_i8m4(bytes + i, __riscv_vmv_v_x_i8m4((int8_t)with, now), now);
        i += (ptrdiff_t)now;
    }
#else
    for (ptrdiff_t i = 0; i < n; i++) {
        if (wide)
            halves[i] = with;
        else
            bytes[i] = (int8_t)with;
    }
#endif
    return wide ? (void *)(halves + n) : (void *)(bytes + n);
}
#endif
