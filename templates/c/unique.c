// SPDX-License-Identifier: MIT OR Apache-2.0
/* The rows of X [ROWS, COLUMNS] that differ from each other: FIRST[k] = where the k-th of them stands first, COUNTS[k]
 * = how often it stands, INVERSE[i] = which of them row i is, *FOUND = how many there are. What follows in FIRST and
 * COUNTS is 0.
 *
 *   KERNEL BEFORE     names of the function and of the order of rows
 *   ELEMENT           type of an element in memory;  KEY: type it is compared in;  LOAD(e): an ELEMENT as a KEY
 *   ROWS COLUMNS      sizes
 *   FLOAT             keys may be NaN, which equals itself and is above every number
 *   STRING            keys are strings
 *   SORTED            1: in ascending order, first column first; 0: in the order in which they stand first
 *   SIZES             further parameters that the sizes are made of
 *
 * A stable merge sort of row numbers brings equal rows together, the first of each in front. Where the order is that of
 * the first appearances, the groups are then numbered again by walking over the rows.
 *
 * scratch: 2*ROWS int64_t.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// holes
#define KERNEL unique
#define BEFORE unique_before
#define ELEMENT float
#define KEY float
#define LOAD(e) (e)
#define ROWS 100
#define COLUMNS 3
#define FLOAT 1
#define STRING 0
#define SORTED 1
#define SIZES
// end holes

/* Below 0: row a comes before row b; 0: they are equal. */
static inline int BEFORE(const ELEMENT *a, const ELEMENT *b, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const KEY x = LOAD(a[i]), y = LOAD(b[i]);
#if STRING
        const int order = strcmp(x, y);
        if (order != 0) return order;
#elif FLOAT
        if (x < y || (y != y && x == x)) return -1; /* NaN is above every number */
        if (y < x || (x != x && y == y)) return 1;
#else
        if (x < y) return -1;
        if (y < x) return 1;
#endif
    }
    return 0;
}

static void KERNEL(const ELEMENT *X, int64_t *FIRST, int64_t *INVERSE, int64_t *COUNTS, int64_t *FOUND SIZES,
                   unsigned char *scratch)
{
    const ptrdiff_t n = (ptrdiff_t)(ROWS), m = (ptrdiff_t)(COLUMNS);
    int64_t *order = (int64_t *)(void *)scratch, *spare = order + n;
    int64_t found = 0;
    for (ptrdiff_t i = 0; i < n; i++) order[i] = i;
    for (ptrdiff_t width = 1; width < n; width *= 2) {
        for (ptrdiff_t low = 0; low < n; low += 2 * width) {
            const ptrdiff_t mid = low + width < n ? low + width : n, end = mid + width < n ? mid + width : n;
            ptrdiff_t left = low, right = mid;
            for (ptrdiff_t k = low; k < end; k++) {
                const bool second = left == mid || (right < end
                                                    && BEFORE(X + order[right] * m, X + order[left] * m, m) < 0);
                spare[k] = second ? order[right++] : order[left++];
            }
        }
        int64_t *const old = order;
        order = spare;
        spare = old;
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        if (k == 0 || BEFORE(X + order[k - 1] * m, X + order[k] * m, m) != 0) {
            FIRST[found] = order[k];
            COUNTS[found++] = 0;
        }
        COUNTS[found - 1]++;
        INVERSE[order[k]] = found - 1;
    }
#if !SORTED
    int64_t next = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const int64_t group = INVERSE[i];
        if (FIRST[group] == i) {
            order[group] = next;
            spare[next++] = COUNTS[group];
        }
        INVERSE[i] = order[group];
    }
    for (ptrdiff_t i = n; i-- > 0;) FIRST[INVERSE[i]] = i;
    for (ptrdiff_t k = 0; k < found; k++) COUNTS[k] = spare[k];
#endif
    *FOUND = found;
    for (ptrdiff_t k = (ptrdiff_t)found; k < n; k++) {
        FIRST[k] = 0;
        COUNTS[k] = 0;
    }
}
