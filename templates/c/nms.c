// SPDX-License-Identifier: MIT OR Apache-2.0
/* Non-maximum suppression: of the boxes [BATCH, BOXES, 4] those with the highest SCORES [BATCH, CLASSES, BOXES], leaving out what overlaps
 * one already taken. CHOSEN: rows (batch, class, box) in the order in which they are taken; *FOUND: how many. What follows is 0.
 *
 *   KERNEL BEFORE OVERLAPS     names of the function and of its helpers
 *   BATCH CLASSES BOXES        sizes
 *   MOST                       boxes of a class of an image that there is room for; PER_CLASS[0] may ask for fewer
 *   CENTERED                   1: a box is (x, y, width, height) around its centre; 0: (y, x, y, x) of two opposite corners
 *   SIZES                      further parameters that the sizes are made of
 *
 * The candidates, whose score is above LEAST[0], form a heap with the best on top, so that only those that are looked at are put in order. A box
 * goes when its overlap with one taken before, intersection over union, is above OVERLAP[0].
 *
 * scratch: BOXES int64_t.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
// holes
#define KERNEL nms
#define BEFORE nms_before
#define OVERLAPS nms_overlaps
#define BATCH 1
#define CLASSES 2
#define BOXES 100
#define MOST 10
#define CENTERED 0
#define SIZES
// end holes

/* Among equal scores the box that stands first comes first. */
static inline bool BEFORE(const float *score, int64_t a, int64_t b)
{
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

static inline bool OVERLAPS(const float *a, const float *b, float limit)
{
    float low[2][2], high[2][2], shared = 1.0f, area[2] = {1.0f, 1.0f};
    const float *const box[2] = {a, b};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) {
#if CENTERED
            const float half = box[k][2 + i] / 2.0f, from = box[k][i] - half, to = box[k][i] + half;
#else
            const float from = box[k][i], to = box[k][2 + i];
#endif
            low[k][i] = from < to ? from : to;
            high[k][i] = from < to ? to : from;
            area[k] *= high[k][i] - low[k][i];
        }
    for (int i = 0; i < 2; i++) {
        const float from = low[0][i] > low[1][i] ? low[0][i] : low[1][i], to = high[0][i] < high[1][i] ? high[0][i] : high[1][i];
        if (!(from < to)) return false;
        shared *= to - from;
    }
    const float all = area[0] + area[1] - shared;
    return area[0] > 0.0f && area[1] > 0.0f && all > 0.0f && shared / all > limit;
}

static void KERNEL(const float *X, const float *SCORES, const int64_t *PER_CLASS, const float *OVERLAP, const float *LEAST, int64_t *CHOSEN, int64_t *FOUND SIZES, unsigned char *scratch)
{
    const int64_t batches = BATCH, classes = CLASSES, boxes = BOXES, room = MOST;
    const int64_t most = PER_CLASS[0] < room ? PER_CLASS[0] : room;
    int64_t *heap = (int64_t *)(void *)scratch, found = 0;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t c = 0; c < classes; c++) {
            const float *const box = X + b * boxes * 4, *const score = SCORES + (b * classes + c) * boxes;
            const int64_t before = found;
            int64_t n = 0;
            for (int64_t i = 0; i < boxes; i++)
                if (score[i] > LEAST[0]) heap[n++] = i;
            for (int64_t start = n / 2; n > 0 && found - before < most;) {
                /* first every inner node sinks, from the last one up; then the last leaf takes the place of the top and sinks */
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
                bool free = true;
                for (int64_t k = before; k < found && free; k++) free = !OVERLAPS(box + CHOSEN[3 * k + 2] * 4, box + top * 4, OVERLAP[0]);
                if (!free) continue;
                CHOSEN[3 * found] = b;
                CHOSEN[3 * found + 1] = c;
                CHOSEN[3 * found++ + 2] = top;
            }
        }
    *FOUND = found;
    for (int64_t k = 3 * found; k < 3 * batches * classes * room; k++) CHOSEN[k] = 0;
}
