// SPDX-License-Identifier: MIT OR Apache-2.0
/* Sums for two output pixels in one vector, which conv_pairs.c uses. Copied once, whole, into a generated file that has
 * such a kernel. */
#include "vec.h"

#if !defined(BURN_PORTABLE)
typedef long long burn_pair __attribute__((vector_size(4 * BURN_VF_LANES)));

/* The two floats at p, again and again. */
BURN_INLINE burn_vf burn_pair_load(const float *p)
{
    long long both;
    memcpy(&both, p, sizeof both);
    return (burn_vf)(both + (burn_pair){0});
}
#endif

/* Two lines become one of pairs. */
BURN_INLINE void burn_pair_weave(float *restrict to, const float *restrict first, const float *restrict second,
                                 ptrdiff_t count)
{
    for (ptrdiff_t q = 0; q < count; q++) {
        to[2 * q] = first[q];
        to[2 * q + 1] = second[q];
    }
}

/* c[i*16 + h*8 + j] = sum over tap rows t < rows, runs r and k < depth of a[i*beside + t*row + r*run + 2*k + h] *
 * b[2*j + h], where b goes on by 16 floats from term to term, for i < count and j < channels, at most 8. count and
 * channels are constants. */
BURN_INLINE void burn_pair_tile(int count, int channels, ptrdiff_t rows, ptrdiff_t row, ptrdiff_t runs,
                                ptrdiff_t run, ptrdiff_t depth, const float *a, ptrdiff_t beside, const float *b,
                                float *c)
{
    BURN_CONTRACT
#if defined(BURN_PORTABLE)
    memset(c, 0, (size_t)count * 16 * sizeof *c);
#else
    const int vectors = (2 * channels + BURN_VF_LANES - 1) / BURN_VF_LANES;
    burn_vf sum[BURN_TILE_ROWS][16 / BURN_VF_LANES];
    BURN_UNROLL
    for (int i = 0; i < count; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            burn_vf_zero(&sum[i][v]);
    }
#endif
    for (ptrdiff_t t = 0; t < rows; t++)
        for (ptrdiff_t r = 0; r < runs; r++) {
            const float *const from = a + t * row + r * run;
            for (ptrdiff_t k = 0; k < depth; k++, b += 16) {
#if defined(BURN_PORTABLE)
                for (int i = 0; i < count; i++)
                    for (int j = 0; j < 2 * channels; j++) {
                        float *const to = c + i * 16 + j % 2 * 8 + j / 2;
                        *to = BURN_MULADD(*to, from[i * beside + 2 * k + j % 2], b[j]);
                    }
#else
                burn_vf column[16 / BURN_VF_LANES];
                BURN_UNROLL
                for (int v = 0; v < vectors; v++)
                    column[v] = burn_vf_load(b + v * BURN_VF_LANES);
                BURN_UNROLL
                for (int i = 0; i < count; i++) {
                    const burn_vf s = burn_pair_load(from + i * beside + 2 * k);
                    BURN_UNROLL
                    for (int v = 0; v < vectors; v++)
                        sum[i][v] += s * column[v];
                }
#endif
            }
        }
#if !defined(BURN_PORTABLE)
    BURN_UNROLL
    for (int i = 0; i < count; i++) {
#if BURN_VF_LANES == 16 && (defined(__clang__) || __GNUC__ >= 12)
        burn_vf_store(c + i * 16, __builtin_shufflevector(sum[i][0], sum[i][0], 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7,
                                                          9, 11, 13, 15));
#else
        float lane[16];
        for (int v = 0; v < vectors; v++)
            burn_vf_put(lane + v * BURN_VF_LANES, &sum[i][v]);
        for (int j = 0; j < 2 * channels; j++)
            c[i * 16 + j % 2 * 8 + j / 2] = lane[j];
#endif
    }
#endif
}
