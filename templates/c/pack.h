// SPDX-License-Identifier: MIT OR Apache-2.0
/* Packs weights that are no constants, those of a training step, as the compiler packs constants (pack_conv_w).
 * Copied once, whole, into a generated file that has any. Strides are in floats and may be negative: a filter that
 * runs backwards is packed from where the model has it. */
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

/* Depthwise weights are one group of one input channel and one panel.
 *
 * Weight (g, o, c, d, h, w) lies at from[g*stride[0] + o*stride[1] + ... + w*stride[5]] for `groups` groups of oc by ic
 * channels and taps[0] by taps[1] by taps[2] taps. `merge` neighbouring groups become one, whose other weights are
 * zeros:
 * [groups/merge][ceil(merge*oc/nr)][taps][merge*ic][nr], zeros past the channels. */
static void burn_pack_conv(float *restrict to, const float *restrict from, ptrdiff_t groups, ptrdiff_t merge,
                           ptrdiff_t oc, ptrdiff_t ic, ptrdiff_t nr, const ptrdiff_t *taps, const ptrdiff_t *stride)
{
    const ptrdiff_t all = taps[0] * taps[1] * taps[2], depth = merge * ic, panel = all * depth * nr;
    const ptrdiff_t line[3] = {1, 1, all};
    if (stride[4] == taps[2] * stride[5] && (taps[0] == 1 || stride[3] == taps[1] * stride[4])) taps = line;
    for (ptrdiff_t g = 0; g < groups; g += merge)
        for (ptrdiff_t o0 = 0; o0 < merge * oc; o0 += nr, to += panel) {
            const ptrdiff_t count = merge * oc - o0 < nr ? merge * oc - o0 : nr;
            if (merge > 1 || count < nr) memset(to, 0, (size_t)panel * sizeof *to);
            for (ptrdiff_t m = 0; m < merge; m++) {
                const ptrdiff_t low = m * oc - o0, first = low > 0 ? low : 0, end = low + oc < count ? low + oc : count;
                const float *const group = from + (g + m) * stride[0] - low * stride[1];
                for (ptrdiff_t t = 0; t < taps[0] * taps[1] && first < end; t++)
                    burn_pack_panel_taps(to + t * taps[2] * depth * nr + m * ic * nr + first,
                                         group + t / taps[1] * stride[3] + t % taps[1] * stride[4] + first * stride[1],
                                         ic, taps[2], end - first, nr, depth * nr, stride[2], stride[5], stride[1]);
            }
        }
}
