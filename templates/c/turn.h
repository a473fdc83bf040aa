// SPDX-License-Identifier: MIT OR Apache-2.0
/* Turns blocks of a matrix. Copied once, whole, into a generated file with a loop that reads along one axis and writes
 * along another, or that packs weights. */
#ifndef BURN_TURN_H
#define BURN_TURN_H
#include "vec.h"

#if !defined(BURN_PORTABLE) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define BURN_TURNS_FOUR 1
#endif
#endif

#if defined(BURN_TURNS_FOUR)
/* to[i*pitch + j] = from[j*step + i] for i, j < 4, by pairs of pairs. */
BURN_INLINE void burn_turn_four(float *restrict to, ptrdiff_t pitch, const float *restrict from, ptrdiff_t step)
{
    typedef float four __attribute__((vector_size(16)));
    typedef float four_memory __attribute__((vector_size(16), aligned(4), may_alias));
    const four a = *(const four_memory *)from, b = *(const four_memory *)(from + step),
        c = *(const four_memory *)(from + 2 * step), d = *(const four_memory *)(from + 3 * step);
    const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const four ba = __builtin_shufflevector(a, b, 2, 6, 3, 7), dc = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(four_memory *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(four_memory *)(to + pitch) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(four_memory *)(to + 2 * pitch) = __builtin_shufflevector(ba, dc, 0, 1, 4, 5);
    *(four_memory *)(to + 3 * pitch) = __builtin_shufflevector(ba, dc, 2, 3, 6, 7);
}
#endif

/* to[i*16 + j] = from[j*step + i] for i < rows and j < columns, both at most 16. */
BURN_INLINE void burn_turn(float *restrict to, const float *restrict from, ptrdiff_t step, ptrdiff_t rows,
                           ptrdiff_t columns)
{
    ptrdiff_t i0 = 0;
#if defined(BURN_TURNS_FOUR)
    for (; i0 + 4 <= rows; i0 += 4) {
        ptrdiff_t j = 0;
        for (; j + 4 <= columns; j += 4) {
            const float *const p = from + j * step + i0;
            for (ptrdiff_t k = 16; k < 20 && i0 == 0; k++) /* of the block that comes next: without, a quarter slower */
                BURN_PREFETCH(p + k * step);
            burn_turn_four(to + i0 * 16 + j, 16, p, step);
        }
        for (; j < columns; j++)
            for (ptrdiff_t i = i0; i < i0 + 4; i++)
                to[i * 16 + j] = from[j * step + i];
    }
#endif
    for (ptrdiff_t j = 0; j < columns; j++)
        for (ptrdiff_t i = i0; i < rows; i++)
            to[i * 16 + j] = from[j * step + i];
}
#endif
