// SPDX-License-Identifier: MIT OR Apache-2.0
/* Non-maximum suppression: of the boxes [BATCH, BOXES, 4] those with the highest SCORES [BATCH, CLASSES, BOXES],
 * leaving out what overlaps one already taken. CHOSEN: rows (batch, class, box) in the order in which they are taken;
 * *FOUND: how many. What follows is 0.
 *
 *   KERNEL BEFORE CORNERS OVERLAPS NEAR     names of the function and of its helpers
 *   BATCH CLASSES BOXES        sizes
 *   MOST                       boxes of a class of an image that there is room for; PER_CLASS[0] may ask for fewer
 *   CENTERED                   1: a box is (x, y, width, height) around its centre; 0: (y, x, y, x) of two opposite
 *                              corners
 *   BLOCK                      boxes that are compared at a time
 *   SIZES                      further parameters that the sizes are made of
 *
 * The candidates, whose score is above LEAST[0], form a heap with the best on top, so that only those that are looked
 * at are put in order. A box goes when its overlap with one taken before, intersection over union, is above OVERLAP[0].
 * Those taken lie in blocks of five planes: two low corners, two high ones, areas. A block is looked at box by box only
 * where NEAR, which takes a few operations for a vector of them, finds one.
 *
 * scratch: BOXES int64_t, then 5*BLOCK floats for each BLOCK boxes of MOST.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// holes
#define KERNEL nms
#define BEFORE nms_before
#define CORNERS nms_corners
#define OVERLAPS nms_overlaps
#define NEAR nms_near
#define BATCH 1
#define CLASSES 2
#define BOXES 100
#define MOST 10
#define CENTERED 0
#define BLOCK 32
#define SIZES
// end holes

/* Among equal scores the box that stands first comes first. */
static inline bool BEFORE(const float *score, int64_t a, int64_t b)
{
    return score[a] > score[b] || (score[a] == score[b] && a < b);
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

static void KERNEL(const float *X, const float *SCORES, const int64_t *PER_CLASS, const float *OVERLAP,
                   const float *LEAST, int64_t *CHOSEN, int64_t *FOUND SIZES, unsigned char *scratch)
{
    const int64_t batches = BATCH, classes = CLASSES, boxes = BOXES, room = MOST;
    const int64_t most = PER_CLASS[0] < room ? PER_CLASS[0] : room;
    int64_t *heap = (int64_t *)(void *)scratch, found = 0;
    float *const taken = (float *)(void *)(heap + boxes);
    for (int64_t b = 0; b < batches; b++)
        for (int64_t c = 0; c < classes; c++) {
            const float *const box = X + b * boxes * 4, *const score = SCORES + (b * classes + c) * boxes;
            const int64_t before = found;
            int64_t n = 0;
            for (int64_t i = 0; i < boxes; i++)
                if (score[i] > LEAST[0]) heap[n++] = i;
            for (int64_t start = n / 2; n > 0 && found - before < most;) {
                /* first every inner node sinks, from the last one up; then the last leaf comes to the top and sinks */
                const bool building = start > 0;
                const int64_t top = heap[0], sinks = building ? heap[start - 1] : heap[--n];
                int64_t at = building ? --start : 0;
                for (int64_t child; (child = 2 * at + 1) < n; at = child) {
                    if (child + 1 < n && BEFORE(score, heap[child + 1], heap[child])) child++;
                    if (!BEFORE(score, heap[child], sinks)) break;
                    heap[at] = heap[child];
                }
                if (at < n) heap[at] = sinks;
                if (building) continue;
                float candidate[5 * BLOCK];
                bool free = true;
                CORNERS(box + top * 4, candidate);
                for (int64_t k = 0; k < found - before && free; k += BLOCK) {
                    const float *const block = taken + k * 5;
                    const int64_t count = found - before - k;
                    if (!NEAR(block, candidate, OVERLAP[0])) continue;
                    for (int64_t l = 0; l < BLOCK && l < count && free; l++)
                        free = !OVERLAPS(block + l, candidate, OVERLAP[0]);
                }
                if (!free) continue;
                float *const place = taken + (found - before) / BLOCK * BLOCK * 5 + (found - before) % BLOCK;
                if ((found - before) % BLOCK == 0) memset(place, 0, 5 * BLOCK * sizeof *place);
                CORNERS(box + top * 4, place);
                CHOSEN[3 * found] = b;
                CHOSEN[3 * found + 1] = c;
                CHOSEN[3 * found++ + 2] = top;
            }
        }
    *FOUND = found;
    for (int64_t k = 3 * found; k < 3 * batches * classes * room; k++) CHOSEN[k] = 0;
}
