// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the products of bfloat16: copied once, whole, behind vec.h into a generated file that uses it. No holes.
 *
 * Out: burn_bf16_round, which rounds a row, and burn_bf16_tile, a register tile of fp32 sums. Two numbers of a column that follow each other
 * along k are a word of 32 bits, the first in the lower half. Where the machine has dot products of such pairs (AVX512-BF16, Arm's BF16)
 * rows are words, too, and an instruction does twice the work of a fused multiply-add; there subnormal numbers count as zero. Elsewhere
 * rows stay floats, rounded, and the columns become floats in registers, two instructions for each vector and all rows of the tile.
 */
#ifndef BURN_VEC_BF16_H
#define BURN_VEC_BF16_H
#if !defined(BURN_PORTABLE) && defined(__AVX512BF16__)
#include <immintrin.h>
#define BURN_BF16_ADD(s, a, b) _mm512_dpbf16_ps(s, a, b)
typedef __m512 burn_bf16_sum;
typedef __m512bh burn_bf16_pairs;
#define BURN_BF16_LOAD(p) ((burn_bf16_pairs)_mm512_loadu_si512(p))
#define BURN_BF16_SPLAT(w) ((burn_bf16_pairs)_mm512_set1_epi32((int)(w)))
#define BURN_BF16_ZERO() _mm512_setzero_ps()
#define BURN_BF16_STORE(p, s) _mm512_storeu_ps(p, s)

/* 16 floats, of which `count` are there and the others 0, to 8 words. */
BURN_INLINE void burn_bf16_words(uint32_t *to, const float *from, ptrdiff_t count)
{
    const __mmask16 some = (__mmask16)(0xffffu >> (16 - count));
    _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, from)));
}
#elif !defined(BURN_PORTABLE) && defined(__ARM_NEON) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>
#define BURN_BF16_ADD(s, a, b) vbfdotq_f32(s, a, b)
typedef float32x4_t burn_bf16_sum;
typedef bfloat16x8_t burn_bf16_pairs;
#define BURN_BF16_LOAD(p) vreinterpretq_bf16_u32(vld1q_u32(p))
#define BURN_BF16_SPLAT(w) vreinterpretq_bf16_u32(vdupq_n_u32(w))
#define BURN_BF16_ZERO() vdupq_n_f32(0.0f)
#define BURN_BF16_STORE(p, s) vst1q_f32(p, s)

BURN_INLINE void burn_bf16_words(uint32_t *to, const float *from, ptrdiff_t count)
{
    float all[16] = {0};
    memcpy(all, from, (size_t)count * sizeof *from);
    for (int i = 0; i < 16; i += 4)
        vst1_u32(to + i / 2, vreinterpret_u32_bf16(vcvt_bf16_f32(vld1q_f32(all + i))));
}
#endif

#if defined(BURN_BF16_ADD)
typedef uint32_t burn_bf16; /* of a row: a pair */
#define BURN_BF16_PITCH(depth) (((depth) + 15) / 16 * 8)

/* `depth` floats, rounded to nearest, to BURN_BF16_PITCH(depth) words. */
BURN_INLINE void burn_bf16_round(burn_bf16 *to, const float *from, ptrdiff_t depth)
{
    ptrdiff_t k = 0;
    for (; k + 16 <= depth; k += 16)
        burn_bf16_words(to + k / 2, from + k, 16);
    if (k < depth)
        burn_bf16_words(to + k / 2, from + k, depth - k);
}

/* c[i*cm + j] = the sum over `pairs` pairs of row i of a, from a + i*am on, times column j of b, for i < rows and
 * j < vectors * BURN_VF_LANES; the words of a column lie bk apart. rows and vectors are constants where this is inlined, as in burn_tile. */
BURN_INLINE void burn_bf16_tile(int rows, int vectors, ptrdiff_t pairs, const burn_bf16 *a, ptrdiff_t am, const uint32_t *b, ptrdiff_t bk,
                                float *c, ptrdiff_t cm)
{
    burn_bf16_sum sum[BURN_TILE_ROWS][BURN_TILE_VECTORS];
    BURN_UNROLL
    for (int i = 0; i < rows; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = BURN_BF16_ZERO();
    }
    for (ptrdiff_t k = 0; k < pairs; k++) {
        burn_bf16_pairs column[BURN_TILE_VECTORS];
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            column[v] = BURN_BF16_LOAD(b + k * bk + v * BURN_VF_LANES);
        BURN_UNROLL
        for (int i = 0; i < rows; i++) {
            const burn_bf16_pairs row = BURN_BF16_SPLAT(a[i * am + k]);
            BURN_UNROLL
            for (int v = 0; v < vectors; v++)
                sum[i][v] = BURN_BF16_ADD(sum[i][v], row, column[v]);
        }
    }
    BURN_UNROLL
    for (int i = 0; i < rows; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            BURN_BF16_STORE(c + i * cm + v * BURN_VF_LANES, sum[i][v]);
    }
}

#else
typedef float burn_bf16;
#define BURN_BF16_PITCH(depth) (((depth) + 1) / 2 * 2)

BURN_INLINE void burn_bf16_round(burn_bf16 *to, const float *from, ptrdiff_t depth)
{
    for (ptrdiff_t k = 0; k < depth; k++) {
        uint32_t u;
        memcpy(&u, from + k, sizeof u);
        const uint32_t near = u + 0x7fff + (u >> 16 & 1), nan = u | 0x400000; /* ties to even; a NaN stays one */
        u = ((u & 0x7fffffff) > 0x7f800000 ? nan : near) & 0xffff0000;
        memcpy(to + k, &u, sizeof u);
    }
    if (depth % 2 > 0)
        to[depth] = 0.0f;
}

#if !defined(BURN_PORTABLE)
typedef uint32_t burn_bf16_memory __attribute__((vector_size(4 * BURN_VF_LANES), aligned(4), may_alias));

BURN_INLINE void burn_bf16_tile(int rows, int vectors, ptrdiff_t pairs, const burn_bf16 *a, ptrdiff_t am, const uint32_t *b, ptrdiff_t bk,
                                float *c, ptrdiff_t cm)
{
    BURN_CONTRACT
    burn_vf sum[BURN_TILE_ROWS][BURN_TILE_VECTORS];
    BURN_UNROLL
    for (int i = 0; i < rows; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = (burn_vf){0};
    }
    for (ptrdiff_t k = 0; k < pairs; k++) {
        BURN_UNROLL
        for (int half = 0; half < 2; half++) {
            burn_vf column[BURN_TILE_VECTORS];
            BURN_UNROLL
            for (int v = 0; v < vectors; v++) {
                const burn_bf16_memory *const words = (const burn_bf16_memory *)(b + k * bk + v * BURN_VF_LANES);
                if (half)
                    column[v] = (burn_vf)(*words & 0xffff0000u);
                else
                    column[v] = (burn_vf)(*words << 16);
            }
            BURN_UNROLL
            for (int i = 0; i < rows; i++) {
                const float s = a[i * am + 2 * k + half];
                BURN_UNROLL
                for (int v = 0; v < vectors; v++)
                    sum[i][v] += s * column[v];
            }
        }
    }
    BURN_UNROLL
    for (int i = 0; i < rows; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            burn_vf_store(c + i * cm + v * BURN_VF_LANES, sum[i][v]);
    }
}

#else
BURN_OUTLINE void burn_bf16_tile(int rows, int vectors, ptrdiff_t pairs, const burn_bf16 *a, ptrdiff_t am, const uint32_t *b, ptrdiff_t bk,
                                 float *c, ptrdiff_t cm)
{
    for (int v = 0; v < vectors * BURN_VF_LANES; v += BURN_VF_LANES)
        for (int i = 0; i < rows; i++) {
            float sum[BURN_VF_LANES] = {0};
            for (ptrdiff_t k = 0; k < pairs; k++) {
                const float first = a[i * am + 2 * k], second = a[i * am + 2 * k + 1];
                uint32_t low[BURN_VF_LANES], high[BURN_VF_LANES];
                float x[BURN_VF_LANES], y[BURN_VF_LANES];
                for (int j = 0; j < BURN_VF_LANES; j++) {
                    low[j] = b[k * bk + v + j] << 16;
                    high[j] = b[k * bk + v + j] & 0xffff0000;
                }
                memcpy(x, low, sizeof x);
                memcpy(y, high, sizeof y);
                for (int j = 0; j < BURN_VF_LANES; j++)
                    sum[j] += first * x[j] + second * y[j];
            }
            memcpy(c + i * cm + v, sum, sizeof sum);
        }
}
#endif
#endif

/* The tile with as many vectors as a column edge wants; each possible one is compiled. */
BURN_INLINE void burn_bf16_tile_at(int rows, int max_vectors, int vectors, ptrdiff_t pairs, const burn_bf16 *a, ptrdiff_t am, const uint32_t *b,
                                   ptrdiff_t bk, float *c, ptrdiff_t cm)
{
    if (vectors >= max_vectors)
        burn_bf16_tile(rows, max_vectors, pairs, a, am, b, bk, c, cm);
    else if (vectors == 1)
        burn_bf16_tile(rows, 1, pairs, a, am, b, bk, c, cm);
    else if (vectors == 2 && max_vectors > 2)
        burn_bf16_tile(rows, 2, pairs, a, am, b, bk, c, cm);
    else if (max_vectors > 3)
        burn_bf16_tile(rows, 3, pairs, a, am, b, bk, c, cm);
}
#endif
