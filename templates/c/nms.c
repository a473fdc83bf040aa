// SPDX-License-Identifier: MIT OR Apache-2.0
/* Non-maximum suppression: of the boxes [BATCH, BOXES, 4] those with the highest SCORES [BATCH, CLASSES, BOXES],
 * leaving out what overlaps one already taken. CHOSEN: rows (batch, class, box) in the order in which they are taken;
 * *FOUND: how many. What follows is 0.
 *
 *   KERNEL and others          names of the function and of its helpers
 *   BATCH CLASSES BOXES        sizes; boxes are fewer than 2^32
 *   MOST                       boxes of a class of an image that there is room for; PER_CLASS[0] may ask for fewer
 *   CENTERED                   1: a box is (x, y, width, height) around its centre; 0: (y, x, y, x) of two opposite
 *                              corners
 *   BLOCK                      boxes that are compared at a time
 *   CELLS BLOCKS               cells, and blocks that there is room for: (MOST + CELLS * (BLOCK - 1)) / BLOCK
 *   SIZES                      further parameters that the sizes are made of
 *
 * The candidates, whose score is above LEAST[0], form a heap of numbers that order them, with the best on top, so that
 * only those that are looked at are put in order. A box goes when its overlap with one taken before, intersection over
 * union, is above OVERLAP[0].
 * Those taken lie in cells by where they begin on the first axis, whose range is cut into CELLS: a box meets only what
 * begins no further before it than the longest is long, which is counted in cells. (Many models move the boxes of each
 * class out of the way of the others: few cells are met then.) A cell is a list of blocks of five planes: two low
 * corners, two high ones, areas. A block is looked at box by box only where NEAR, which takes a few operations for a
 * vector of them, finds one.
 *
 * scratch: BOXES uint64_t, then 5*BLOCK floats and an int32_t for each of BLOCKS, then two int32_t for each cell.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// holes
#define KERNEL nms
#define RANK nms_rank
#define SINK nms_sink
#define CELL nms_cell
#define FREE nms_free
#define CORNERS nms_corners
#define OVERLAPS nms_overlaps
#define NEAR nms_near
#define BATCH 1
#define CLASSES 2
#define BOXES 100
#define MOST 10
#define CENTERED 0
#define BLOCK 32
#define CELLS 1
#define BLOCKS 1
#define SIZES
// end holes

/* The higher the sooner: by score, and among equal ones that which stands first. */
static inline uint64_t RANK(float score, int64_t box)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    if (bits == 0x80000000u) bits = 0; /* -0 is 0 */
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~(uint64_t)box;
}

/* A number comes to place `at` of a heap of n whose places below it are in order: larger children rise all the way,
 * and it rises from the bottom, where it mostly belongs. */
static inline void SINK(uint64_t *heap, int64_t n, int64_t at, uint64_t number)
{
    const int64_t top = at;
    int64_t child = 2 * at + 1;
    for (; child + 1 < n; child = 2 * at + 1) {
        child += heap[child + 1] > heap[child];
        heap[at] = heap[child];
        at = child;
    }
    if (child < n) {
        heap[at] = heap[child];
        at = child;
    }
    for (; at > top && heap[(at - 1) / 2] < number; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = number;
}

/* Plane p of a box goes to to[p * BLOCK]. */
static inline void CORNERS(const float *box, float *to)
{
    for (int i = 0; i < 2; i++) {
#if CENTERED
        const float half = box[2 + i] / 2.0f, a = box[i] - half, b = box[i] + half;
#else
        const float a = box[i], b = box[2 + i];
#endif
        to[i * BLOCK] = a < b ? a : b;
        to[(2 + i) * BLOCK] = a < b ? b : a;
    }
    to[4 * BLOCK] = (to[2 * BLOCK] - to[0]) * (to[3 * BLOCK] - to[BLOCK]);
}

static inline bool OVERLAPS(const float *a, const float *b, float limit)
{
    float shared = 1.0f;
    for (int i = 0; i < 2; i++) {
        const float *const low = a + i * BLOCK, *const high = low + 2 * BLOCK, *const low_b = b + i * BLOCK,
            *const high_b = low_b + 2 * BLOCK;
        const float from = *low > *low_b ? *low : *low_b, to = *high < *high_b ? *high : *high_b;
        if (!(from < to)) return false;
        shared *= to - from;
    }
    const float all = a[4 * BLOCK] + b[4 * BLOCK] - shared;
    return a[4 * BLOCK] > 0.0f && b[4 * BLOCK] > 0.0f && all > 0.0f && shared / all > limit;
}

/* Does b perhaps overlap one of a block? Without a division: a limit that is 2^-18 of itself lower makes up for what
 * that rounds otherwise. */
static inline bool NEAR(const float *restrict a, const float *restrict b, float limit)
{
    const float low0 = b[0], low1 = b[BLOCK], high0 = b[2 * BLOCK], high1 = b[3 * BLOCK], area = b[4 * BLOCK];
    const float least = limit - (limit < 0.0f ? -limit : limit) * 0x1p-18f;
    int32_t found = 0;
    for (int l = 0; l < BLOCK; l++) {
        const float from0 = a[l] > low0 ? a[l] : low0, to0 = a[2 * BLOCK + l] < high0 ? a[2 * BLOCK + l] : high0;
        const float from1 = a[BLOCK + l] > low1 ? a[BLOCK + l] : low1,
            to1 = a[3 * BLOCK + l] < high1 ? a[3 * BLOCK + l] : high1;
        const float shared = (to0 - from0) * (to1 - from1), all = a[4 * BLOCK + l] + area - shared;
        found |= (from0 < to0) & (from1 < to1) & (shared >= least * all);
    }
    return found != 0;
}

/* Never less for a larger x; any cell for what is no number, which overlaps nothing. */
static inline int32_t CELL(float x, float from, float scale)
{
    const float at = (x - from) * scale;
    return at >= (float)CELLS ? CELLS - 1 : at > 0.0f ? (int32_t)at : 0;
}

/* Does a candidate overlap none of the blocks of these cells? */
static inline bool FREE(const float *taken, const int32_t *next, const int32_t *newest, int32_t first, int32_t last,
                        const float *candidate, float limit)
{
    for (int32_t cell = first; cell <= last; cell++)
        for (int32_t k = newest[cell]; k >= 0; k = next[k]) {
            const float *const block = taken + (ptrdiff_t)k * (5 * BLOCK);
            if (!NEAR(block, candidate, limit)) continue;
            for (int l = 0; l < BLOCK; l++)
                if (OVERLAPS(block + l, candidate, limit)) return false;
        }
    return true;
}

static void KERNEL(const float *X, const float *SCORES, const int64_t *PER_CLASS, const float *OVERLAP,
                   const float *LEAST, int64_t *CHOSEN, int64_t *FOUND SIZES, unsigned char *scratch)
{
    const int64_t batches = BATCH, classes = CLASSES, boxes = BOXES, room = MOST;
    const int64_t most = PER_CLASS[0] < room ? PER_CLASS[0] : room;
    uint64_t *const heap = (uint64_t *)(void *)scratch;
    float *const taken = (float *)(void *)(heap + boxes);
    int32_t *const next = (int32_t *)(void *)(taken + (ptrdiff_t)(BLOCKS) * (5 * BLOCK)), *const newest = next + BLOCKS,
            *const filled = newest + CELLS;
    int64_t found = 0;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t c = 0; c < classes; c++) {
            const float *const box = X + b * boxes * 4, *const score = SCORES + (b * classes + c) * boxes;
            const int64_t before = found;
            int64_t n = 0;
            float place[5 * BLOCK], from = 0.0f, scale = 0.0f;
#if CELLS > 1
            float to = 0.0f;
#endif
            for (int64_t i = 0; i < boxes; i++) {
                if (!(score[i] > LEAST[0])) continue;
                heap[n++] = RANK(score[i], i);
#if CELLS > 1
                CORNERS(box + i * 4, place);
                from = n == 1 || place[0] < from ? place[0] : from;
                to = n == 1 || place[2 * BLOCK] > to ? place[2 * BLOCK] : to;
#endif
            }
#if CELLS > 1
            scale = (float)CELLS / (to - from);
#endif
            for (int64_t i = n / 2; i-- > 0;) SINK(heap, n, i, heap[i]);
            int32_t blocks = 0, longest = 0; /* in cells */
            for (int i = 0; i < CELLS; i++) {
                newest[i] = -1;
                filled[i] = BLOCK;
            }
            while (n > 0 && found - before < most) {
                const int64_t top = (int64_t)(uint32_t)~heap[0];
                n--;
                SINK(heap, n, 0, heap[n]);
                CORNERS(box + top * 4, place);
                const int32_t first = CELL(place[0], from, scale), last = CELL(place[2 * BLOCK], from, scale);
                if (!FREE(taken, next, newest, first > longest ? first - longest : 0, last, place, OVERLAP[0]))
                    continue;
                if (filled[first] == BLOCK) {
                    memset(taken + (ptrdiff_t)blocks * (5 * BLOCK), 0, 5 * BLOCK * sizeof *taken);
                    next[blocks] = newest[first];
                    newest[first] = blocks++;
                    filled[first] = 0;
                }
                CORNERS(box + top * 4, taken + (ptrdiff_t)newest[first] * (5 * BLOCK) + filled[first]++);
                longest = last - first > longest ? last - first : longest;
                CHOSEN[3 * found] = b;
                CHOSEN[3 * found + 1] = c;
                CHOSEN[3 * found++ + 2] = top;
            }
        }
    *FOUND = found;
    for (int64_t k = 3 * found; k < 3 * batches * classes * room; k++) CHOSEN[k] = 0;
}
