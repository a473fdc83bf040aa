// SPDX-License-Identifier: MIT OR Apache-2.0
/* Packs weights that are no constants, those of a training step, as the compiler packs constants (pack_conv_w).
 * Copied once, whole, into a generated file that has any. Strides are in floats and may be negative: a filter that
 * runs backwards is packed from where the model has it. */
#include <stddef.h>
#include <string.h>

/* A panel's rows of the channels c0..c1-1: weights o0..o0+nr-1 of each tap, from where o's are `stride` apart. Few
 * channels and few o's at a time, so that the lines that they are read from stay near from tap to tap. */
static void burn_pack_taps(float *restrict to, const float *restrict from, ptrdiff_t first, ptrdiff_t end,
                           ptrdiff_t channels, ptrdiff_t row, ptrdiff_t plane, const ptrdiff_t *taps,
                           const ptrdiff_t *stride)
{
    enum { WIDE = 8 };
    for (ptrdiff_t d = 0; d < taps[0]; d++)
        for (ptrdiff_t h = 0; h < taps[1]; h++, to += taps[2] * plane) {
            const float *const line = from + d * stride[3] + h * stride[4];
            for (ptrdiff_t w = 0; w < taps[2] && stride[1] == 1; w++)
                for (ptrdiff_t c = 0; c < channels; c++)
                    memcpy(to + w * plane + c * row + first, line + w * stride[5] + c * stride[2] + first,
                           (size_t)(end - first) * sizeof *to);
            for (ptrdiff_t o = first; o < end && stride[1] != 1; o += WIDE)
                for (ptrdiff_t i = 0; i < taps[2] * channels; i++) {
                    const ptrdiff_t w = i / channels, c = i % channels, count = end - o < WIDE ? end - o : WIDE;
                    const float *const tap = line + o * stride[1] + c * stride[2] + w * stride[5];
                    float *const place = to + w * plane + c * row + o;
                    for (ptrdiff_t j = 0; j < count; j++)
                        place[j] = tap[j * stride[1]];
                }
        }
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
    enum { CHANNELS = 8 };
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
                for (ptrdiff_t c = 0; c < ic && first < end; c += CHANNELS)
                    burn_pack_taps(to + (m * ic + c) * nr, group + c * stride[2], first, end,
                                    ic - c < CHANNELS ? ic - c : CHANNELS, nr, depth * nr, taps, stride);
            }
        }
}
