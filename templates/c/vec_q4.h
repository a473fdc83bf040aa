// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the kernels on signed bytes by weights of 4 bits: copied once, whole, behind vec_q8.h into a generated
 * file that uses it. It has no holes.
 *
 * Out: burn_q4_tile, exact 32-bit sums as burn_q8_tile gives them, of columns that lie two weights to a byte. The idea:
 * a weight is not shifted down to its value but stays in the upper half of a byte, 16 times as large, where one mask
 * leaves it alone; 16 divides the sum in the end. 32768 terms of 128 * 8 * 16 are below 2^31.
 *
 * A column is pieces of 32 weights and a shorter one. In a piece of n weights, byte i has weight i in its lower half
 * and weight i + h in its upper one, where h is n / 2 up to a multiple of 4: words of weights meet words of bytes.
 */
#ifndef BURN_VEC_Q4_H
#define BURN_VEC_Q4_H

/* The weights of a byte, times 16. */
BURN_INLINE int32_t burn_q4_low(int8_t w)
{
    return (int8_t)(uint8_t)((uint8_t)w << 4);
}

BURN_INLINE int32_t burn_q4_high(int8_t w)
{
    return (int8_t)((uint8_t)w & 0xf0u);
}

#if defined(BURN_Q8_DSP)
/* sum[i][j] += 16 times the products of a word of each row and the lower or upper weights of one of each column. */
BURN_INLINE void burn_q4_words(int rows, int columns, int upper, const int8_t *a, ptrdiff_t am, const int8_t *b,
                               ptrdiff_t bm, int32_t *sum)
{
    int16x2_t even[4], odd[4];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows; i++) {
        const uint32_t u = burn_q8_word(a + i * am);
        even[i] = burn_q8_even(u);
        odd[i] = burn_q8_odd(u);
    }
    BURN_Q8_UNROLL
    for (int j = 0; j < columns; j++) {
        const uint32_t both = burn_q8_word(b + j * bm), w = (upper ? both : both << 4) & 0xf0f0f0f0u;
        const int16x2_t column_even = burn_q8_even(w), column_odd = burn_q8_odd(w);
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            sum[i * columns + j] = __smlad(even[i], column_even, sum[i * columns + j]);
            sum[i * columns + j] = __smlad(odd[i], column_odd, sum[i * columns + j]);
        }
    }
}
#endif

#if !defined(BURN_Q8_MVE) && !defined(BURN_Q8_RVV)
/* The same of one byte of each row, or of two, `half` apart. */
BURN_INLINE void burn_q4_bytes(int rows, int columns, bool both, ptrdiff_t half, const int8_t *a, ptrdiff_t am,
                               const int8_t *b, ptrdiff_t bm, int32_t *sum)
{
    BURN_Q8_UNROLL
    for (int j = 0; j < columns; j++) {
        const int32_t low = burn_q4_low(b[j * bm]), high = burn_q4_high(b[j * bm]);
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            sum[i * columns + j] += a[i * am] * low;
            if (both)
                sum[i * columns + j] += a[i * am + half] * high;
        }
    }
}
#endif

/* sum[i][j] += 16 times the products of a piece of n. */
BURN_INLINE void burn_q4_piece(int rows, int columns, ptrdiff_t n, const int8_t *a, ptrdiff_t am, const int8_t *b,
                               ptrdiff_t bm, int32_t *sum)
{
    const ptrdiff_t half = (n + 7) / 8 * 4, above = n > half ? n - half : 0, below = n - above;
#if defined(BURN_Q8_MVE)
    const mve_pred16_t in = vctp8q((uint32_t)below), in_above = vctp8q((uint32_t)above);
    int8x16_t low[4], high[4];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows; i++) {
        low[i] = n == 32 ? vldrbq_s8(a + i * am) : vldrbq_z_s8(a + i * am, in);
        high[i] = n == 32 ? vldrbq_s8(a + i * am + half) : vldrbq_z_s8(a + i * am + half, in_above);
    }
    BURN_Q8_UNROLL
    for (int j = 0; j < columns; j++) {
        const int8x16_t w = n == 32 ? vldrbq_s8(b + j * bm) : vldrbq_z_s8(b + j * bm, in);
        const int8x16_t w_low = vshlq_n_s8(w, 4), w_high = vandq_s8(w, vdupq_n_s8(-16));
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            sum[i * columns + j] = vmladavaq_s8(sum[i * columns + j], low[i], w_low);
            sum[i * columns + j] = vmladavaq_s8(sum[i * columns + j], high[i], w_high);
        }
    }
#elif defined(BURN_Q8_RVV)
    const size_t in = (size_t)below, in_above = (size_t)above; /* 16 at most, which two registers hold */
    BURN_Q8_UNROLL
    for (int j = 0; j < columns; j++) {
        const vint8m1_t w = __riscv_vle8_v_i8m1(b + j * bm, in);
        const vint16m2_t w_low = __riscv_vsext_vf2_i16m2(__riscv_vsll_vx_i8m1(w, 4, in), in),
            w_high = __riscv_vsext_vf2_i16m2(__riscv_vand_vx_i8m1(w, -16, in), in);
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            const vint16m2_t low = burn_q8_halves(0, a + i * am, in);
            const vint16m2_t high = burn_q8_halves(0, a + i * am + half, in_above);
            const vint32m4_t both = burn_q8_add(burn_q8_add(burn_q8_zeros(), low, w_low, in), high, w_high, in_above);
            sum[i * columns + j] += burn_q8_total(both, __riscv_vmv_s_x_i32m1(burn_q8_zero(), 1));
        }
    }
#else
    ptrdiff_t k = 0;
#if defined(BURN_Q8_DSP)
    for (; k + 4 <= above; k += 4) {
        burn_q4_words(rows, columns, 0, a + k, am, b + k, bm, sum);
        burn_q4_words(rows, columns, 1, a + k + half, am, b + k, bm, sum);
    }
    for (; above % 4 == 0 && k + 4 <= below; k += 4)
        burn_q4_words(rows, columns, 0, a + k, am, b + k, bm, sum);
#endif
    for (; k < above; k++)
        burn_q4_bytes(rows, columns, 1, half, a + k, am, b + k, bm, sum);
    for (; k < below; k++)
        burn_q4_bytes(rows, columns, 0, half, a + k, am, b + k, bm, sum);
#endif
}

/* s[i*columns + j] = sum over k < n of a[i*am + k] * weight k of the column at b + j*bm. rows and columns (at most 4),
 * n, am and bm are constants where this is inlined. */
BURN_INLINE void burn_q4_tile(int rows, int columns, ptrdiff_t n, const int8_t *a, ptrdiff_t am, const int8_t *b,
                              ptrdiff_t bm, int32_t *s)
{
    int32_t sum[16];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * columns; i++)
        sum[i] = 0;
    for (ptrdiff_t k = 0; k + 32 <= n; k += 32)
        burn_q4_piece(rows, columns, 32, a + k, am, b + k / 2, bm, sum);
    if (n % 32 > 0)
        burn_q4_piece(rows, columns, n % 32, a + n / 32 * 32, am, b + n / 32 * 16, bm, sum);
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * columns; i++)
        s[i] = sum[i] / 16;
}
#endif
