// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the products of bfloat16: copied once, whole, behind vec.h into a generated file that uses it. No holes.
 *
 * Out: burn_bf16_round, which rounds a row, and burn_bf16_tile, a register tile of fp32 sums. Two numbers of a column
 * that follow each other along k are a word of 32 bits, the first in the lower half. Where the machine has dot products
 * of such pairs (AVX512-BF16, Arm's BF16) rows are words, too, and an instruction does twice the work of a fused
 * multiply-add; there subnormal numbers count as zero. Elsewhere rows stay floats, rounded, and the columns become
 * floats in registers, two instructions for each vector and all rows of the tile. Processors with AMX multiply 16 rows
 * by 16 columns at once (BURN_BF16_AMX), where Linux lets the process use its registers; their AVX512-BF16 is slower
 * than floats, and unused.
 */
#ifndef BURN_VEC_BF16_H
#define BURN_VEC_BF16_H
#include <stdint.h>
#include <string.h>

/* The bits of x rounded to bfloat16, whose place is the upper half. */
BURN_INLINE uint32_t burn_bf16_near(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    const uint32_t near = u + 0x7fff + (u >> 16 & 1), nan = u | 0x400000; /* ties to even; a NaN stays one */
    return ((u & 0x7fffffff) > 0x7f800000 ? nan : near) & 0xffff0000;
}

#if !defined(BURN_PORTABLE) && defined(__AVX512BF16__)
#include <immintrin.h>

/* 16 floats, of which `count` are there and the others 0, to 8 words. */
BURN_INLINE void burn_bf16_words(uint32_t *to, const float *from, ptrdiff_t count)
{
    const __mmask16 some = (__mmask16)(0xffffu >> (16 - count));
    _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, from)));
}
#endif

#if !defined(BURN_PORTABLE) && defined(__AVX512BF16__) && !defined(__AMX_BF16__)
#define BURN_BF16_ADD(s, a, b) _mm512_dpbf16_ps(s, a, b)
typedef __m512 burn_bf16_sum;
typedef __m512bh burn_bf16_pairs;
#define BURN_BF16_LOAD(p) ((burn_bf16_pairs)_mm512_loadu_si512(p))
#define BURN_BF16_SPLAT(w) ((burn_bf16_pairs)_mm512_set1_epi32((int)(w)))
#define BURN_BF16_ZERO() _mm512_setzero_ps()
#define BURN_BF16_STORE(p, s) _mm512_storeu_ps(p, s)
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

/* Rounds to pairs along k: word (k/2, j), at to[k/2*panel + j], is from[k*row + j*column] and what follows it along k;
 * zeros past `depth` and from column `width` to `panel`. */
BURN_INLINE void burn_bf16_panel(uint32_t *to, ptrdiff_t panel, const float *from, ptrdiff_t row, ptrdiff_t column,
                                 ptrdiff_t depth, ptrdiff_t width)
{
    enum { BLOCK = 32 }; /* a line of pairs */
    ptrdiff_t k0 = 0;
    if (column == 1 && width == panel)
        for (; k0 + 2 <= depth; k0 += 2)
            for (ptrdiff_t j = 0; j < panel; j++)
                to[k0 / 2 * panel + j] = burn_bf16_near(from[k0 * row + j]) >> 16
                    | burn_bf16_near(from[(k0 + 1) * row + j]);
    for (; k0 < depth; k0 += BLOCK) {
        const ptrdiff_t count = depth - k0 < BLOCK ? depth - k0 : BLOCK;
        uint32_t near[BLOCK] = {0};
        for (ptrdiff_t j = 0; j < panel; j++) {
            for (ptrdiff_t k = 0; k < count; k++)
                near[k] = j < width ? burn_bf16_near(from[(k0 + k) * row + j * column]) : 0;
            for (ptrdiff_t k = 0; k < count; k += 2)
                to[(k0 + k) / 2 * panel + j] = near[k] >> 16 | near[k + 1];
        }
    }
}

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

/* Rounds the rows of a block for tiles of `rows`: row i begins at to + i*BURN_BF16_PITCH(depth); where they are the
 * columns of a matrix (am is 1), those of a tile lie side by side. Zeros up to whole tiles. */
BURN_INLINE void burn_bf16_rows(burn_bf16 *to, ptrdiff_t rows, const float *from, ptrdiff_t am, ptrdiff_t ak,
                                ptrdiff_t count, ptrdiff_t depth)
{
    const ptrdiff_t pitch = BURN_BF16_PITCH(depth);
    for (ptrdiff_t i0 = 0; i0 < count; i0 += rows) {
        const ptrdiff_t left = count - i0 < rows ? count - i0 : rows;
        if (am == 1)
            burn_bf16_panel(to + i0 * pitch, rows, from + i0, ak, 1, depth, left);
        for (ptrdiff_t i = i0; i < i0 + rows && am != 1; i++)
            if (i < count && ak == 1)
                burn_bf16_round(to + i * pitch, from + i * am, depth);
            else
                burn_bf16_panel(to + i * pitch, 1, from + i * am, ak, 1, depth, i < count);
    }
}

/* c[i*cm + j] = the sum over `pairs` pairs of row i of a, which begins at a + i*am and goes on in steps of ak, times
 * column j of b, for i < rows and j < vectors * BURN_VF_LANES; the words of a column lie bk apart. rows and vectors are
 * constants where this is inlined, as in burn_tile. */
BURN_INLINE void burn_bf16_tile(int rows, int vectors, ptrdiff_t pairs, const burn_bf16 *a, ptrdiff_t am,
                                ptrdiff_t ak, const uint32_t *b, ptrdiff_t bk, float *c, ptrdiff_t cm)
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
            const burn_bf16_pairs row = BURN_BF16_SPLAT(a[i * am + k * ak]);
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
        const uint32_t u = burn_bf16_near(from[k]);
        memcpy(to + k, &u, sizeof u);
    }
    if (depth % 2 > 0)
        to[depth] = 0.0f;
}

BURN_INLINE void burn_bf16_rows(burn_bf16 *to, ptrdiff_t rows, const float *from, ptrdiff_t am, ptrdiff_t ak,
                                ptrdiff_t count, ptrdiff_t depth)
{
    const ptrdiff_t pitch = BURN_BF16_PITCH(depth), line = am == 1 ? 1 : pitch, step = am == 1 ? rows : 1;
    for (ptrdiff_t i0 = 0; i0 < count; i0 += rows)
        for (ptrdiff_t i = 0; i < rows; i++)
            for (ptrdiff_t k = 0; k < pitch; k++) {
                const uint32_t u = i0 + i < count && k < depth ? burn_bf16_near(from[(i0 + i) * am + k * ak]) : 0;
                memcpy(to + i0 * pitch + i * line + k * step, &u, sizeof u);
            }
}

#if !defined(BURN_PORTABLE)
typedef uint32_t burn_bf16_memory __attribute__((vector_size(4 * BURN_VF_LANES), aligned(4), may_alias));

BURN_INLINE void burn_bf16_tile(int rows, int vectors, ptrdiff_t pairs, const burn_bf16 *a, ptrdiff_t am,
                                ptrdiff_t ak, const uint32_t *b, ptrdiff_t bk, float *c, ptrdiff_t cm)
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
                const float s = a[i * am + (2 * k + half) * ak];
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
BURN_OUTLINE void burn_bf16_tile(int rows, int vectors, ptrdiff_t pairs, const burn_bf16 *a, ptrdiff_t am,
                                 ptrdiff_t ak, const uint32_t *b, ptrdiff_t bk, float *c, ptrdiff_t cm)
{
    for (int v = 0; v < vectors * BURN_VF_LANES; v += BURN_VF_LANES)
        for (int i = 0; i < rows; i++) {
            float sum[BURN_VF_LANES] = {0};
            for (ptrdiff_t k = 0; k < pairs; k++) {
                const float first = a[i * am + 2 * k * ak], second = a[i * am + (2 * k + 1) * ak];
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
BURN_INLINE void burn_bf16_tile_at(int rows, int max_vectors, int vectors, ptrdiff_t pairs, const burn_bf16 *a,
                                   ptrdiff_t am, const uint32_t *b, ptrdiff_t bk, float *c, ptrdiff_t cm)
{
    if (vectors >= max_vectors)
        burn_bf16_tile(rows, max_vectors, pairs, a, am, 1, b, bk, c, cm);
    else if (vectors == 1)
        burn_bf16_tile(rows, 1, pairs, a, am, 1, b, bk, c, cm);
    else if (vectors == 2 && max_vectors > 2)
        burn_bf16_tile(rows, 2, pairs, a, am, 1, b, bk, c, cm);
    else if (max_vectors > 3)
        burn_bf16_tile(rows, 3, pairs, a, am, 1, b, bk, c, cm);
}

#if !defined(BURN_PORTABLE) && defined(__AVX512BF16__) && defined(__AMX_BF16__) && defined(__x86_64__) \
    && defined(__linux__)
#define BURN_BF16_AMX 1
#define BURN_AMX_PITCH(depth) (((depth) + 31) / 32 * 16)

/* Asks Linux for AMX's registers (arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA); once granted, the process has
 * them) and shapes them as 16 rows of 64 bytes. Is 0 where it is refused. */
BURN_INLINE int burn_amx_open(void)
{
    long code = 158;
    __asm__ volatile("syscall" : "+a"(code) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
    if (code != 0)
        return 0;
    unsigned char shape[64] = {1};
    for (int i = 0; i < 8; i++) {
        shape[16 + 2 * i] = 64;
        shape[48 + i] = 16;
    }
    _tile_loadconfig(shape);
    return 1;
}

/* As burn_bf16_round, to BURN_AMX_PITCH(depth) words. */
BURN_INLINE void burn_amx_round(uint32_t *to, const float *from, ptrdiff_t depth)
{
    ptrdiff_t k = 0;
    for (; k + 16 <= depth; k += 16)
        burn_bf16_words(to + k / 2, from + k, 16);
    if (k < depth) {
        burn_bf16_words(to + k / 2, from + k, depth - k);
        k += 16;
    }
    if (k % 32 > 0)
        memset(to + k / 2, 0, 32);
}

/* The words of a panel past the last whole 16 pairs, with zeros behind them. */
BURN_INLINE void burn_amx_rest(uint32_t *to, const uint32_t *panel, ptrdiff_t pairs, ptrdiff_t width)
{
    memset(to, 0, (size_t)width * 64);
    memcpy(to, panel + pairs / 16 * 16 * width, (size_t)(pairs % 16 * width) * sizeof *to);
}

/* 16 pairs of 32 rows (if `low`, else 16) by 32 columns (if `right`, else 16). */
BURN_INLINE void burn_amx_step(int low, int right, const uint32_t *a, ptrdiff_t am, const uint32_t *b, ptrdiff_t bk)
{
    _tile_loadd(4, a, am * 4);
    _tile_loadd(6, b, bk * 4);
    _tile_dpbf16ps(0, 4, 6);
    if (right) {
        _tile_loadd(7, b + 16, bk * 4);
        _tile_dpbf16ps(1, 4, 7);
    }
    if (low) {
        _tile_loadd(5, a + 16 * am, am * 4);
        _tile_dpbf16ps(2, 5, 6);
    }
    if (low && right)
        _tile_dpbf16ps(3, 5, 7);
}

/* c[i*cm + j] = the sum over `pairs` words of row i of a times column j of b. `rest` is what burn_amx_rest makes of b;
 * cm in floats. */
BURN_INLINE void burn_amx_tile(int low, int right, ptrdiff_t pairs, const uint32_t *a, ptrdiff_t am, const uint32_t *b,
                               ptrdiff_t bk, const uint32_t *rest, float *c, ptrdiff_t cm)
{
    __asm__ volatile("" ::: "memory"); /* the intrinsics do not say what memory they touch */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (ptrdiff_t k = 0; k + 16 <= pairs; k += 16)
        burn_amx_step(low, right, a + k, am, b + k * bk, bk);
    if (pairs % 16 > 0)
        burn_amx_step(low, right, a + pairs / 16 * 16, am, rest, bk);
    _tile_stored(0, c, cm * 4);
    if (right)
        _tile_stored(1, c + 16, cm * 4);
    if (low)
        _tile_stored(2, c + 16 * cm, cm * 4);
    if (low && right)
        _tile_stored(3, c + 16 * cm + 16, cm * 4);
    __asm__ volatile("" ::: "memory");
}

/* 32 rows by `vectors` times 16 columns. */
BURN_INLINE void burn_amx_tiles(int low, int vectors, ptrdiff_t pairs, const uint32_t *a, ptrdiff_t am,
                                const uint32_t *b, ptrdiff_t bk, const uint32_t *rest, float *c, ptrdiff_t cm)
{
    for (int v = 0; v < vectors; v += 2) {
        const int right = v + 1 < vectors;
        if (low && right)
            burn_amx_tile(1, 1, pairs, a, am, b + v * 16, bk, rest + v * 16, c + v * 16, cm);
        else if (low)
            burn_amx_tile(1, 0, pairs, a, am, b + v * 16, bk, rest + v * 16, c + v * 16, cm);
        else if (right)
            burn_amx_tile(0, 1, pairs, a, am, b + v * 16, bk, rest + v * 16, c + v * 16, cm);
        else
            burn_amx_tile(0, 0, pairs, a, am, b + v * 16, bk, rest + v * 16, c + v * 16, cm);
    }
}
#endif
#endif
