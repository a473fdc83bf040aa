// SPDX-License-Identifier: MIT OR Apache-2.0
/* Stable sort of every line along one axis: Y[o][.][i] = the first COUNT of the elements of X[o][.][i] in order,
 * P[o][.][i] = where they were. Where COUNT is small, select.c is faster.
 *
 *   KERNEL BEFORE     names of the function and of its order
 *   ELEMENT           type of an element in memory;  KEY: type it is compared in;  LOAD(e): an ELEMENT as a KEY
 *   INDEX             integer type that holds positions below AXIS
 *   OUTER AXIS INNER  sizes: element (o, a, i) at (o*AXIS + a)*INNER + i, of the results at (o*COUNT + a)*INNER + i
 *   FLOAT             keys may be NaN, which is above every number
 *   LARGEST           1: downwards; equal keys keep their order either way
 *   VALUES POSITIONS  whether Y, and whether P (int64_t), is wanted
 *   RUN               elements of a run that insertion sorts, a power of two
 *   PARTS SHARES      0: every line. Else the function does the part'th of SHARES shares of them
 *   SIZES             further parameters that the sizes are made of
 *
 * A line is read into runs, each sorted as its elements arrive; then runs are merged in pairs, back and forth between
 * two halves of the scratch memory. Elements move as they lie in memory, so that the result's bits are the input's.
 *
 * scratch: 2*AXIS INDEX, then 2*AXIS ELEMENT.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
// holes
#define KERNEL sort
#define BEFORE sort_before
#define ELEMENT float
#define KEY float
#define LOAD(e) (e)
#define INDEX int32_t
#define OUTER 1
#define AXIS 1000
#define COUNT 1000
#define INNER 1
#define FLOAT 1
#define LARGEST 0
#define VALUES 1
#define POSITIONS 1
#define RUN 16
#define PARTS 0
#define SHARES 1
#define SIZES
// end holes

static inline bool BEFORE(ELEMENT a, ELEMENT b)
{
#if LARGEST
    const KEY x = LOAD(b), y = LOAD(a);
#else
    const KEY x = LOAD(a), y = LOAD(b);
#endif
#if FLOAT
    return x < y || (y != y && x == x); /* NaN is above every number */
#else
    return x < y;
#endif
}

static void KERNEL(const ELEMENT *X
#if VALUES
                   , ELEMENT *Y
#endif
#if POSITIONS
                   , int64_t *P
#endif
#if PARTS
                   SIZES, unsigned char *scratch, ptrdiff_t part)
#else
                   SIZES, unsigned char *scratch)
#endif
{
    const ptrdiff_t lines = (ptrdiff_t)OUTER * INNER;
#if PARTS
    const ptrdiff_t line_from = lines * part / SHARES, line_end = lines * (part + 1) / SHARES;
#else
    const ptrdiff_t line_from = 0, line_end = lines;
#endif
    for (ptrdiff_t line = line_from; line < line_end; line++) {
        const ptrdiff_t base = line / INNER * INNER * AXIS + line % INNER;
        INDEX *at = (INDEX *)(void *)scratch;
        ELEMENT *key = (ELEMENT *)(void *)(at + (ptrdiff_t)2 * AXIS);
        for (ptrdiff_t k = 0; k < AXIS; k++) {
            const ELEMENT x = X[base + k * INNER];
            ptrdiff_t j = k;
            for (; j % RUN != 0 && BEFORE(x, key[j - 1]); j--) {
                key[j] = key[j - 1];
                at[j] = at[j - 1];
            }
            key[j] = x;
            at[j] = (INDEX)k;
        }
        INDEX *to_at = at + AXIS;
        ELEMENT *to = key + AXIS;
        for (ptrdiff_t width = RUN; width < AXIS; width *= 2) {
            for (ptrdiff_t low = 0; low < AXIS; low += 2 * width) {
                const ptrdiff_t mid = low + width < AXIS ? low + width : AXIS,
                    end = mid + width < AXIS ? mid + width : AXIS;
                ptrdiff_t left = low, right = mid;
                for (ptrdiff_t k = low; k < end; k++) {
                    const bool second = left == mid || (right < end && BEFORE(key[right], key[left]));
                    const ptrdiff_t from = second ? right++ : left++;
                    to[k] = key[from];
                    to_at[k] = at[from];
                }
            }
            INDEX *const old_at = at;
            ELEMENT *const old = key;
            at = to_at;
            key = to;
            to_at = old_at;
            to = old;
        }
        const ptrdiff_t result = line / INNER * INNER * COUNT + line % INNER;
        for (ptrdiff_t k = 0; k < COUNT; k++) {
#if VALUES
            Y[result + k * INNER] = key[k];
#endif
#if POSITIONS
            P[result + k * INNER] = at[k];
#endif
        }
    }
}
