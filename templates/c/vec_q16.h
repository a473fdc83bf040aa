// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the kernels on integers of 16 bits by weights of 8: copied once, whole, behind vec_q8.h into a generated
 * file that uses it. It has no holes.
 *
 * Out: what vec_q8.h has for bytes. The compiler has made sure that no sum leaves 32 bits, whatever the numbers.
 */
#ifndef BURN_VEC_Q16_H
#define BURN_VEC_Q16_H

#if defined(BURN_Q8_DSP)
BURN_INLINE int16x2_t burn_q16_word(const int16_t *p)
{
    int16x2_t w;
    memcpy(&w, p, 4);
    return w;
}
#endif

/* s[i*columns + j] = sum over k of a[i*am + k] * b[j*bm + k], as burn_q8_tile. */
BURN_INLINE void burn_q16_tile(int rows, int columns, ptrdiff_t n, const int16_t *a, ptrdiff_t am, const int8_t *b,
                               ptrdiff_t bm, int32_t *s)
{
    int32_t sum[16];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * columns; i++)
        sum[i] = 0;
#if defined(BURN_Q8_MVE)
    for (ptrdiff_t k = 0; k < n; k += 8) {
        const mve_pred16_t in = vctp16q((uint32_t)(n - k));
        int16x8_t row[4];
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++)
            row[i] = n % 8 ? vldrhq_z_s16(a + i * am + k, in) : vldrhq_s16(a + i * am + k);
        BURN_Q8_UNROLL
        for (int j = 0; j < columns; j++) {
            const int16x8_t column = n % 8 ? vldrbq_z_s16(b + j * bm + k, in) : vldrbq_s16(b + j * bm + k);
            BURN_Q8_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i * columns + j] = vmladavaq_s16(sum[i * columns + j], row[i], column);
        }
    }
#else
    ptrdiff_t k = 0;
#if defined(BURN_Q8_DSP)
    for (; k + 4 <= n; k += 4) {
        int16x2_t first[4], second[4];
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            first[i] = burn_q16_word(a + i * am + k);
            second[i] = burn_q16_word(a + i * am + k + 2);
        }
        BURN_Q8_UNROLL
        for (int j = 0; j < columns; j++) {
            const uint32_t w = burn_q8_word(b + j * bm + k);
            const uint32_t even = (uint32_t)burn_q8_even(w), odd = (uint32_t)burn_q8_odd(w);
            const int16x2_t low = (int16x2_t)((even & 0xffffu) | odd << 16); /* one instruction: PKHBT, PKHTB */
            const int16x2_t high = (int16x2_t)((odd & 0xffff0000u) | even >> 16);
            BURN_Q8_UNROLL
            for (int i = 0; i < rows; i++) {
                sum[i * columns + j] = __smlad(first[i], low, sum[i * columns + j]);
                sum[i * columns + j] = __smlad(second[i], high, sum[i * columns + j]);
            }
        }
    }
#endif
    for (; k < n; k++) {
        int32_t row[4];
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++)
            row[i] = a[i * am + k];
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
}

#if defined(BURN_Q8_MVE)
/* burn_q16_taps below, of eight channels. */
BURN_INLINE void burn_q16_pairs(int rows, int taps, const int16_t *const *x, const int8_t *w, ptrdiff_t g, ptrdiff_t c,
                                burn_q8_pair *s)
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
            const int16x8_t u = vldrhq_s16(x[i * taps + t] + c);
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
#endif

/* s[i*lanes + j] = sum over t of x[i*taps + t][c + j] * w[t*g + c + j], as burn_q8_taps. */
BURN_INLINE void burn_q16_taps(int rows, int lanes, int taps, const int16_t *const *x, const int8_t *w, ptrdiff_t g,
                               ptrdiff_t c, int32_t *s)
{
    (void)lanes;
#if defined(BURN_Q8_MVE)
    if (lanes == 8) {
        burn_q8_pair sum[2];
        burn_q16_pairs(rows, taps, x, w, g, c, sum);
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
    w += c;
    int32_t sum[8];
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * 4; i++)
        sum[i] = 0;
    for (int t = 0; t < taps; t++, w += g) {
        BURN_Q8_UNROLL
        for (int i = 0; i < rows; i++) {
            const int16_t *const u = x[i * taps + t] + c;
            BURN_Q8_UNROLL
            for (int j = 0; j < 4; j++)
                sum[i * 4 + j] += u[j] * w[j];
        }
    }
    BURN_Q8_UNROLL
    for (int i = 0; i < rows * 4; i++)
        s[i] = sum[i];
}

/* Word by word where machines read words anywhere, as burn_q8_copy. */
BURN_INLINE int16_t *burn_q16_copy(int16_t *to, const int16_t *from, ptrdiff_t n)
{
    ptrdiff_t i = 0;
#if defined(__ARM_FEATURE_UNALIGNED)
    for (; i + 2 <= n; i += 2)
        memcpy(to + i, from + i, 4);
#endif
    for (; i < n; i++)
        to[i] = from[i];
    return to + n;
}

BURN_INLINE int16_t *burn_q16_fill(int16_t *to, int16_t with, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        to[i] = with;
    return to + n;
}
#endif
