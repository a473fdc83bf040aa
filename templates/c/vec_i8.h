// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the kernels on bytes: copied once, whole, behind vec.h into a generated file that uses it. It has no
 * holes.
 *
 * Out: burn_dot_tile, a register tile of exact 32-bit sums of products of unsigned by signed bytes. Vector extensions
 * have no form for dot products of bytes, so here are the few intrinsics, one group per kind of machine: four products
 * into each 32-bit lane at once (VNNI, NEON's usdot), the same on signed bytes (NEON's sdot: a - 128 instead of a, and
 * 128 times b's sum added), pairs of 16-bit products (SSE2, AVX2, AVX-512BW: exact, where the instruction on bytes
 * would saturate), and plain C. All give the same bits. Columns are packed in groups of four along k: [k/4][column][4],
 * zeros past k.
 */
#ifndef BURN_VEC_I8_H
#define BURN_VEC_I8_H
#if !defined(BURN_PORTABLE) && defined(__SSE2__)
#include <immintrin.h>
#elif !defined(BURN_PORTABLE) && defined(__ARM_NEON) && \
    (defined(__ARM_FEATURE_DOTPROD) || defined(__ARM_FEATURE_MATMUL_INT8))
#include <arm_neon.h>
#endif

/* burn_dot_sum: BURN_DOT_LANES sums; burn_dot_row: four bytes of a row for every lane; burn_dot_column: four bytes of
 * each column. */
#define BURN_DOT_SIGNED 0
#if !defined(BURN_PORTABLE) && defined(__AVX512VNNI__)
#define BURN_DOT_LANES 16
#define BURN_DOT_X(name) _mm512_##name
#define BURN_DOT_BITS __m512i
#define BURN_DOT_ADD(s, a, b) ((burn_dot_sum)_mm512_dpbusd_epi32((__m512i)(s), a, b))
#elif !defined(BURN_PORTABLE) && defined(__AVXVNNI__)
#define BURN_DOT_LANES 8
#define BURN_DOT_X(name) _mm256_##name
#define BURN_DOT_BITS __m256i
#define BURN_DOT_ADD(s, a, b) ((burn_dot_sum)_mm256_dpbusd_avx_epi32((__m256i)(s), a, b))
#elif !defined(BURN_PORTABLE) && defined(__AVX512BW__)
#define BURN_DOT_LANES 16
#define BURN_DOT_X(name) _mm512_##name
#define BURN_DOT_BITS __m512i
#elif !defined(BURN_PORTABLE) && defined(__AVX2__)
#define BURN_DOT_LANES 8
#define BURN_DOT_X(name) _mm256_##name
#define BURN_DOT_BITS __m256i
#elif !defined(BURN_PORTABLE) && defined(__SSE2__)
#define BURN_DOT_LANES 4
#define BURN_DOT_X(name) _mm_##name
#define BURN_DOT_BITS __m128i
#endif

#if defined(BURN_DOT_BITS)
typedef int32_t burn_dot_sum __attribute__((vector_size(4 * BURN_DOT_LANES)));
typedef int32_t burn_dot_memory __attribute__((vector_size(4 * BURN_DOT_LANES), aligned(1), may_alias));
#define BURN_DOT_STORE(p, s) (*(burn_dot_memory *)(void *)(p) = (s))
#define BURN_DOT_LOAD_BITS(p) ((BURN_DOT_BITS) * (const burn_dot_memory *)(const void *)(p))
#if defined(BURN_DOT_ADD)
typedef BURN_DOT_BITS burn_dot_row, burn_dot_column;
#define BURN_DOT_SPLAT(w) BURN_DOT_X(set1_epi32)((int)(w))
#define BURN_DOT_LOAD(p) BURN_DOT_LOAD_BITS(p)
#else
/* In 16 bits: bytes 0 and 2 of each group, and 1 and 3. */
typedef struct burn_dot_pairs {
    BURN_DOT_BITS even, odd;
} burn_dot_row, burn_dot_column;

BURN_INLINE burn_dot_row burn_dot_splat(uint32_t w)
{
    const BURN_DOT_BITS even = BURN_DOT_X(set1_epi32)(0xff00ff);
    BURN_DOT_BITS all = BURN_DOT_X(set1_epi32)((int)w);
    BURN_HELD(all); /* gcc would take it apart as a scalar, and move two from there */
    return (burn_dot_row){(BURN_DOT_BITS)((burn_dot_sum)all & (burn_dot_sum)even), BURN_DOT_X(srli_epi16)(all, 8)};
}

BURN_INLINE burn_dot_column burn_dot_load(const int8_t *p)
{
    const BURN_DOT_BITS b = BURN_DOT_LOAD_BITS(p);
    return (burn_dot_column){BURN_DOT_X(srai_epi16)(BURN_DOT_X(slli_epi16)(b, 8), 8), BURN_DOT_X(srai_epi16)(b, 8)};
}

BURN_INLINE burn_dot_sum burn_dot_add(burn_dot_sum s, burn_dot_row a, burn_dot_column b)
{
    return s + (burn_dot_sum)BURN_DOT_X(madd_epi16)(a.even, b.even)
        + (burn_dot_sum)BURN_DOT_X(madd_epi16)(a.odd, b.odd);
}
#define BURN_DOT_SPLAT(w) burn_dot_splat(w)
#define BURN_DOT_LOAD(p) burn_dot_load(p)
#define BURN_DOT_ADD(s, a, b) burn_dot_add(s, a, b)
#endif
#elif !defined(BURN_PORTABLE) && defined(__ARM_NEON) && defined(__ARM_FEATURE_MATMUL_INT8)
#define BURN_DOT_LANES 4
typedef int32x4_t burn_dot_sum;
typedef uint8x16_t burn_dot_row;
typedef int8x16_t burn_dot_column;
#define BURN_DOT_SPLAT(w) vreinterpretq_u8_u32(vdupq_n_u32(w))
#define BURN_DOT_LOAD(p) vld1q_s8(p)
#define BURN_DOT_ADD(s, a, b) vusdotq_s32(s, a, b)
#define BURN_DOT_STORE(p, s) vst1q_s32(p, s)
#elif !defined(BURN_PORTABLE) && defined(__ARM_NEON) && defined(__ARM_FEATURE_DOTPROD)
#undef BURN_DOT_SIGNED
#define BURN_DOT_SIGNED 1
#define BURN_DOT_LANES 4
typedef int32x4_t burn_dot_sum;
typedef int8x16_t burn_dot_row, burn_dot_column;
#define BURN_DOT_SPLAT(w) vreinterpretq_s8_u32(vdupq_n_u32((w) ^ 0x80808080u))
#define BURN_DOT_LOAD(p) vld1q_s8(p)
#define BURN_DOT_ADD(s, a, b) vdotq_s32(s, a, b)
#define BURN_DOT_STORE(p, s) vst1q_s32(p, s)
#endif

#if defined(BURN_DOT_LANES)
/* s[i][v] += the dot products of `count` (4, or less where k ends) bytes of row i with group b of the columns. */
BURN_INLINE void burn_dot_step(int rows, int vectors, burn_dot_sum (*s)[BURN_TILE_VECTORS], const uint8_t *a,
                               ptrdiff_t am, int count,
                              const int8_t *b)
{
    burn_dot_column column[BURN_TILE_VECTORS];
    BURN_UNROLL
    for (int v = 0; v < vectors; v++)
        column[v] = BURN_DOT_LOAD(b + v * BURN_DOT_LANES * 4);
    BURN_UNROLL
    for (int i = 0; i < rows; i++) {
        uint32_t w = 0;
        memcpy(&w, a + i * am, (size_t)count);
        const burn_dot_row row = BURN_DOT_SPLAT(w);
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            s[i][v] = BURN_DOT_ADD(s[i][v], row, column[v]);
    }
#if BURN_DOT_SIGNED
    const burn_dot_row ones = vdupq_n_s8(1);
    BURN_UNROLL
    for (int v = 0; v < vectors; v++)
        s[rows][v] = BURN_DOT_ADD(s[rows][v], ones, column[v]);
#endif
}

/* c[i*cm + j] = the sum over all bytes of row i of a, times column j of b, for i < rows and j < vectors *
 * BURN_DOT_LANES. A row is ys * xs runs of `run` bytes, the one at (y, x) from a + i*am + y*ay + x*ax on; b holds each
 * run's groups in turn, `bk` bytes each. rows and vectors are constants where this is inlined, as in burn_tile. */
BURN_INLINE void burn_dot_tile(int rows, int vectors, const uint8_t *a, ptrdiff_t am, ptrdiff_t run, ptrdiff_t ys,
                               ptrdiff_t ay,
                              ptrdiff_t xs, ptrdiff_t ax, const int8_t *b, ptrdiff_t bk, int32_t *c, ptrdiff_t cm)
{
    burn_dot_sum s[BURN_TILE_ROWS + 1][BURN_TILE_VECTORS];
    BURN_UNROLL
    for (int i = 0; i < rows + BURN_DOT_SIGNED; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            s[i][v] = (burn_dot_sum){0};
    }
    for (ptrdiff_t y = 0; y < ys; y++)
        for (ptrdiff_t x = 0; x < xs; x++) {
            const uint8_t *const from = a + y * ay + x * ax;
            for (ptrdiff_t k = 0; k + 4 <= run; k += 4, b += bk)
                burn_dot_step(rows, vectors, s, from + k, am, 4, b);
            if (run % 4 > 0) {
                burn_dot_step(rows, vectors, s, from + run / 4 * 4, am, (int)(run % 4), b);
                b += bk;
            }
        }
    BURN_UNROLL
    for (int i = 0; i < rows; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++) {
#if BURN_DOT_SIGNED
            s[i][v] = vaddq_s32(s[i][v], vshlq_n_s32(s[rows][v], 7));
#endif
            BURN_DOT_STORE(c + i * cm + v * BURN_DOT_LANES, s[i][v]);
        }
    }
}

#else
#define BURN_DOT_LANES 16

BURN_OUTLINE void burn_dot_tile(int rows, int vectors, const uint8_t *a, ptrdiff_t am, ptrdiff_t run, ptrdiff_t ys,
                                ptrdiff_t ay,
                               ptrdiff_t xs, ptrdiff_t ax, const int8_t *b, ptrdiff_t bk, int32_t *c, ptrdiff_t cm)
{
    for (int v = 0; v < vectors; v++)
        for (int i = 0; i < rows; i++) {
            const int8_t *column = b + v * BURN_DOT_LANES * 4;
            int32_t s[BURN_DOT_LANES] = {0};
            for (ptrdiff_t y = 0; y < ys; y++)
                for (ptrdiff_t x = 0; x < xs; x++)
                    for (ptrdiff_t k = 0; k < run; k += 4, column += bk) {
                        uint8_t w[4] = {0};
                        memcpy(w, a + i * am + y * ay + x * ax + k, run - k < 4 ? (size_t)(run - k) : 4);
                        const int w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
                        for (int j = 0; j < BURN_DOT_LANES; j++)
                            s[j] += w0 * column[4 * j] + w1 * column[4 * j + 1]
                                + (w2 * column[4 * j + 2] + w3 * column[4 * j + 3]);
                    }
            memcpy(c + i * cm + v * BURN_DOT_LANES, s, sizeof s);
        }
}
#endif

/* The tile with as many vectors as a column edge wants; each possible one is compiled. */
BURN_INLINE void burn_dot_tile_at(int rows, int max_vectors, int vectors, const uint8_t *a, ptrdiff_t am, ptrdiff_t run,
                                  ptrdiff_t ys,
                                 ptrdiff_t ay, ptrdiff_t xs, ptrdiff_t ax, const int8_t *b, ptrdiff_t bk, int32_t *c,
                                 ptrdiff_t cm)
{
    if (vectors >= max_vectors)
        burn_dot_tile(rows, max_vectors, a, am, run, ys, ay, xs, ax, b, bk, c, cm);
    else if (vectors == 1)
        burn_dot_tile(rows, 1, a, am, run, ys, ay, xs, ax, b, bk, c, cm);
    else if (vectors == 2 && max_vectors > 2)
        burn_dot_tile(rows, 2, a, am, run, ys, ay, xs, ax, b, bk, c, cm);
    else if (max_vectors > 3)
        burn_dot_tile(rows, 3, a, am, run, ys, ay, xs, ax, b, bk, c, cm);
}

/* Packs a matrix of bytes as panels of columns: element (k, n) from from[k*bk + n*bn] to panel n/panel, group k/4. */
BURN_INLINE void burn_dot_pack(int8_t *to, ptrdiff_t panel, const int8_t *from, ptrdiff_t bk, ptrdiff_t bn,
                               ptrdiff_t depth, ptrdiff_t columns)
{
    for (ptrdiff_t n0 = 0; n0 < columns; n0 += panel)
        for (ptrdiff_t k0 = 0; k0 < depth; k0 += 4, to += 4 * panel)
            for (ptrdiff_t j = 0; j < panel; j++)
                for (ptrdiff_t k = 0; k < 4; k++)
                    to[4 * j + k] = (int8_t)(k0 + k < depth && n0 + j < columns ? from[(k0 + k) * bk + (n0 + j) * bn]
                                             : 0);
}
#endif
