// SPDX-License-Identifier: MIT OR Apache-2.0
/* Packs weights that are no constants, those of a training step, as the compiler packs constants (pack_conv_w).
 * Copied once, whole, into a generated file that has any. */
#include "pack_taps.h"

/* Depthwise weights are one group of one input channel and one panel.
 *
 * Weight (g, o, c, d, h, w) lies at from[g*stride[0] + o*stride[1] + ... + w*stride[5]] for `groups` groups of oc by ic
 * channels and taps[0] by taps[1] by taps[2] taps. `merge` neighbouring groups become one, whose other weights are
 * zeros:
 * [groups/merge][ceil(merge*oc/nr)][taps][merge*ic][nr], zeros past the channels. */
static void burn_pack_w_conv(float *restrict to, const float *restrict from, ptrdiff_t groups, ptrdiff_t merge,
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
