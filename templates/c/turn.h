// SPDX-License-Identifier: MIT OR Apache-2.0
/* Turns blocks of a matrix. Copied once, whole, into a generated file with a loop that reads along one axis and writes
 * along another, or that packs weights. */
#ifndef BURN_TURN_H
#define BURN_TURN_H
#include "vec.h"

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
