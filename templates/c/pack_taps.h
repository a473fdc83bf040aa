// SPDX-License-Identifier: MIT OR Apache-2.0
/* What packing weights that are no constants is made of. Copied once, whole, into a generated file that packs any.
 * Strides are in floats and may be negative: a filter that runs backwards is packed from where the model has it. */
#ifndef BURN_PACK_TAPS_H
#define BURN_PACK_TAPS_H
#include "turn.h"

/* to[t*plane + o] = from[t + o*step] for t < taps and o < count. One tap's panel is often a power of two from the
 * next, where lines share a cache set: four taps at a time are written, each line to its end. */
BURN_INLINE void burn_pack_turned(float *restrict to, ptrdiff_t plane, const float *restrict from, ptrdiff_t step,
                                  ptrdiff_t taps, ptrdiff_t count)
{
    ptrdiff_t fours = 0;
#if defined(BURN_TURNS_FOUR)
    fours = taps < 4 ? 0 : count / 4 * 4;
    for (ptrdiff_t t = 0; t < taps && fours; t += 4) {
        const ptrdiff_t at = t + 4 > taps ? taps - 4 : t; /* the last four step back */
        for (ptrdiff_t o = 0; o < fours; o += 4)
            burn_turn_four(to + at * plane + o, plane, from + at + o * step, step);
    }
#endif
    for (ptrdiff_t t = 0; t < taps; t++)
        for (ptrdiff_t o = fours; o < count; o++)
            to[t * plane + o] = from[t + o * step];
}

/* to[c*row + t*plane + o] = from[c*channel + t*tap + o*step] for c < channels, t < taps and o < count, `tap` 1 or -1.
 * Where a filter's weights lie together (step is the number of taps), whole rows of filters are read at once, else
 * 16 lines side by side. */
static void burn_pack_taps(float *restrict to, const float *restrict from, ptrdiff_t channels, ptrdiff_t taps,
                           ptrdiff_t count, ptrdiff_t row, ptrdiff_t plane, ptrdiff_t channel, ptrdiff_t tap,
                           ptrdiff_t step)
{
    enum { AHEAD = 4 }; /* channels: the processor does not see where so many lines go on */
    const ptrdiff_t wide = step > taps ? 16 : count, last = tap < 0 ? taps - 1 : 0;
    for (ptrdiff_t o0 = 0; o0 < count; o0 += wide) {
        const ptrdiff_t some = count - o0 < wide ? count - o0 : wide;
        for (ptrdiff_t c = 0; c < channels; c++) {
            const float *const line = from + c * channel + last * tap + o0 * step;
            float *const place = to + c * row + last * plane + o0;
            for (ptrdiff_t t = 0; t < taps; t++)
                for (ptrdiff_t o = 0; o < some && c + AHEAD < channels; o += 16)
                    BURN_PREFETCH(place + tap * t * plane + AHEAD * row + o);
            burn_pack_turned(place, tap * plane, line, step, taps, some);
        }
    }
}

/* The same of any strides. Without neighbours along the taps there may be some along the channels, or the o's. */
static void burn_pack_panel_taps(float *restrict to, const float *restrict from, ptrdiff_t channels, ptrdiff_t taps,
                                 ptrdiff_t count, ptrdiff_t row, ptrdiff_t plane, ptrdiff_t channel, ptrdiff_t tap,
                                 ptrdiff_t step)
{
    if (step == 1)
        for (ptrdiff_t t = 0; t < taps; t++)
            for (ptrdiff_t c = 0; c < channels; c++)
                memcpy(to + t * plane + c * row, from + c * channel + t * tap, (size_t)count * sizeof *to);
    else if ((tap == 1 || tap == -1) && taps > 1)
        burn_pack_taps(to, from, channels, taps, count, row, plane, channel, tap, step);
    else if (channel == 1)
        burn_pack_taps(to, from, taps, channels, count, plane, row, tap, channel, step);
    else
        for (ptrdiff_t c = 0; c < channels; c++)
            for (ptrdiff_t t = 0; t < taps; t++)
                for (ptrdiff_t o = 0; o < count; o++)
                    to[t * plane + c * row + o] = from[t * tap + c * channel + o * step];
}
#endif
