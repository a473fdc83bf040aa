// SPDX-License-Identifier: MIT OR Apache-2.0
/* The first COUNT of every line along one axis in order, equal ones as they were, without sorting the others where
 * those are many: Y[o][.][i] = the elements, P[o][.][i] = where they were.
 *
 *   KERNEL BEFORE RANK SIFT SORT   names of the function and of its own
 *   ELEMENT           type of an element in memory;  KEY: type it is compared in;  LOAD(e): an ELEMENT as a KEY
 *   OUTER AXIS INNER  sizes: element (o, a, i) at (o*AXIS + a)*INNER + i, of the results at (o*COUNT + a)*INNER + i;
 *                     AXIS below 2^31
 *   COUNT ROOM        elements that are wanted, at most AXIS; ranks that are kept: COUNT (FEW), or AXIS
 *   FEW
 *   FLOAT             keys are float, perhaps NaN, which is above every number; else integers of at most 32 bits,
 *   SIGNED            with a sign or without
 *   LARGEST           1: downwards; equal keys keep their order either way
 *   VALUES POSITIONS  whether Y, and whether P (int64_t), is wanted
 *   BLOCK             elements that are looked at together
 *   PARTS SHARES      0: every line. Else the function does the part'th of SHARES shares of them
 *   SIZES             further parameters that the sizes are made of
 *
 * An element's rank is one integer, of its key's bits in order above its position, so that no two are equal. The first
 * ROOM are a heap with the last of them in order at its root. Of the others most come behind that, which a block of
 * them tells in a few vector operations; one that does not takes its place. Of n elements in any order about ROOM *
 * (1 + ln(n / ROOM)) go into the heap, whose ranks a merge sort without unforeseen branches puts in order.
 *
 * scratch: 2*ROOM ranks of 8 bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// holes
#define KERNEL select
#define BEFORE select_before
#define RANK select_rank
#define SIFT select_sift
#define SORT select_sort
#define ELEMENT float
#define KEY float
#define LOAD(e) (e)
#define OUTER 1
#define AXIS 1000
#define INNER 1
#define COUNT 10
#define ROOM 10
#define FEW 1
#define FLOAT 1
#define SIGNED 1
#define LARGEST 0
#define VALUES 1
#define POSITIONS 1
#define BLOCK 64
#define PARTS 0
#define SHARES 1
#define SIZES
// end holes

#if FEW
static inline bool BEFORE(ELEMENT a, ELEMENT b)
{
#if LARGEST
    const KEY x = LOAD(b), y = LOAD(a);
#else
    const KEY x = LOAD(a), y = LOAD(b);
#endif
#if FLOAT
    return (x < y) | ((y != y) & (x == x)); /* NaN is above every number */
#else
    return x < y;
#endif
}
#endif

static inline uint64_t RANK(ELEMENT e, ptrdiff_t at)
{
    const KEY x = LOAD(e);
#if FLOAT
    const union { float from; uint32_t to; } bits = {x};
    uint32_t code = x == 0 ? 0u : x != x ? 0x7fc00000u : bits.to;
    code ^= code >> 31 != 0u ? UINT32_MAX : 0x80000000u;
#else
    const uint32_t code = (uint32_t)x ^ (SIGNED ? 0x80000000u : 0u);
#endif
    return (uint64_t)(LARGEST ? ~code : code) << 32 | (uint32_t)at;
}

#if FEW
/* x goes to i of a heap of n, or below. */
static inline void SIFT(uint64_t *heap, ptrdiff_t i, ptrdiff_t n, uint64_t x)
{
    for (ptrdiff_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] < x)
            break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}
#endif

/* n ranks in order: they, or what is behind them. */
static inline const uint64_t *SORT(uint64_t *from, ptrdiff_t n)
{
    enum { RUN = 8 };
    uint64_t *to = from + n;
    for (ptrdiff_t low = 0; low < n; low += RUN)
        for (ptrdiff_t k = low + 1; k < n && k < low + RUN; k++) {
            const uint64_t x = from[k];
            ptrdiff_t j = k;
            for (; j > low && x < from[j - 1]; j--)
                from[j] = from[j - 1];
            from[j] = x;
        }
    for (ptrdiff_t width = RUN; width < n; width *= 2) {
        for (ptrdiff_t low = 0; low < n; low += 2 * width) {
            const ptrdiff_t mid = low + width < n ? low + width : n, end = mid + width < n ? mid + width : n;
            ptrdiff_t left = low, right = mid, k = low;
            while (left < mid && right < end) {
                const uint64_t x = from[left], y = from[right];
                const ptrdiff_t second = y < x;
                to[k++] = second ? y : x;
                left += 1 - second;
                right += second;
            }
            for (; left < mid; left++)
                to[k++] = from[left];
            for (; right < end; right++)
                to[k++] = from[right];
        }
        uint64_t *const old = from;
        from = to;
        to = old;
    }
    return from;
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
    uint64_t *const heap = (uint64_t *)(void *)scratch;
    for (ptrdiff_t line = line_from; ROOM > 0 && line < line_end; line++) {
        const ELEMENT *const x = X + line / INNER * INNER * AXIS + line % INNER;
        for (ptrdiff_t k = 0; k < ROOM; k++)
            heap[k] = RANK(x[k * INNER], k);
#if FEW
        for (ptrdiff_t k = ROOM / 2 - 1; k >= 0; k--)
            SIFT(heap, k, ROOM, heap[k]);
        ELEMENT last = x[(ptrdiff_t)(uint32_t)heap[0] * INNER];
        for (ptrdiff_t k = ROOM; k < AXIS; k += BLOCK) {
            const ptrdiff_t end = k + BLOCK < AXIS ? k + BLOCK : AXIS;
            bool some = end < k + BLOCK;
            if (!some)
                for (ptrdiff_t j = k; j < k + BLOCK; j++)
                    some |= BEFORE(x[j * INNER], last);
            for (ptrdiff_t j = k; some && j < end; j++)
                if (BEFORE(x[j * INNER], last)) {
                    SIFT(heap, 0, ROOM, RANK(x[j * INNER], j));
                    last = x[(ptrdiff_t)(uint32_t)heap[0] * INNER];
                }
        }
#endif
        const uint64_t *const found = SORT(heap, ROOM);
        const ptrdiff_t result = line / INNER * INNER * COUNT + line % INNER;
        for (ptrdiff_t j = 0; j < COUNT; j++) {
#if VALUES
            Y[result + j * INNER] = x[(ptrdiff_t)(uint32_t)found[j] * INNER];
#endif
#if POSITIONS
            P[result + j * INNER] = (int64_t)(uint32_t)found[j];
#endif
        }
    }
}
