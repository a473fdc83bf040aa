// SPDX-License-Identifier: MIT OR Apache-2.0
// Weights packed by a training step: templates/c/pack.h gives the bytes that the compiler packs constants to, from
// where the model has them, the other way round, and with every second tap.
#include "schedule/cpu/pack.h"
#include "../../templates/c/pack.h"
#include "../../templates/c/pack_winograd.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned state = 1;
static int64_t draw(int64_t low, int64_t high) {
    state = state * 1664525 + 1013904223;
    return low + (state >> 8) % (high - low + 1);
}

// Weights [groups, oc, ic, kh, kw] of a convolution, which lie in `from` in another order.
typedef struct Weights { int64_t groups, oc, ic, kernel[3], at; ptrdiff_t stride[6]; } Weights;

static Weights any_weights(int order) {
    Weights w = { draw(1, 3), draw(1, 70), draw(1, 40), { 1, draw(1, 4), draw(1, 4) }, 0, { 0 } };
    int64_t taps = w.kernel[1] * w.kernel[2], step = order == 2 ? 2 : 1;
    bool back = order > 0;                              // of the gradient: output channels for input ones, taps flipped
    w.stride[0] = w.oc * w.ic * taps * step * step;
    w.stride[1] = (back ? 1 : w.ic) * taps * step * step;
    w.stride[2] = (back ? w.oc : 1) * taps * step * step;
    w.stride[4] = (back ? -1 : 1) * w.kernel[2] * step * step;
    w.stride[5] = (back ? -1 : 1) * step;
    if (back) w.at = -(w.kernel[1] - 1) * w.stride[4] - (w.kernel[2] - 1) * w.stride[5];
    return w;
}

static float *in_order(const Weights *w, const float *from) {
    int64_t n = 0;
    float *to = malloc((size_t)(w->groups * w->oc * w->ic * w->kernel[1] * w->kernel[2]) * sizeof *to);
    for (int64_t g = 0; g < w->groups; g++)
        for (int64_t o = 0; o < w->oc; o++)
            for (int64_t c = 0; c < w->ic; c++)
                for (int64_t h = 0; h < w->kernel[1]; h++)
                    for (int64_t k = 0; k < w->kernel[2]; k++)
                        to[n++] = from[w->at + g * w->stride[0] + o * w->stride[1] + c * w->stride[2]
                            + h * w->stride[4] + k * w->stride[5]];
    return to;
}

static void test_conv(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 300; trial++) {
        Weights w = any_weights(trial % 3);
        size_t groups = (size_t)w.groups, oc = (size_t)w.oc, ic = (size_t)w.ic,
               taps = (size_t)(w.kernel[1] * w.kernel[2]), nr = 16 * (size_t)draw(1, 4),
               merge = groups == 2 ? (size_t)draw(1, 2) : 1, room = 5 * groups * oc * ic * taps + 64;
        float *from = malloc(room * sizeof *from);
        for (size_t i = 0; i < room; i++) from[i] = (float)draw(-9999, 9999);
        float *one = in_order(&w, from);
        size_t bytes = pack_conv_w_floats(groups, oc, ic, taps, merge, nr) * sizeof(float);
        float *want = malloc(bytes), *got = malloc(bytes);
        pack_conv_w(one, groups, oc, ic, taps, merge, nr, want);
        burn_pack_w_conv(got, from + w.at, w.groups, (ptrdiff_t)merge, w.oc, w.ic, (ptrdiff_t)nr,
            (ptrdiff_t[]){ 1, w.kernel[1], w.kernel[2] }, w.stride);
        assert_memory_equal(got, want, bytes);
        free(from);
        free(one);
        free(want);
        free(got);
    }
}

// The compiler sums in double, so the last bits differ.
static void test_winograd(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 200; trial++) {
        Weights w = any_weights(trial % 3);
        const int64_t *k = w.kernel, size[] = { k[1] == 1 ? 1 : draw(k[1] / 3 + 2, 4) * 2,
            k[2] == 1 ? 1 : draw(k[2] / 3 + 2, 4) * 2 };
        WinogradForm form = { (size_t)(size[0] - k[1] + 1), (size_t)(size[1] - k[2] + 1), (size_t)k[1], (size_t)k[2] };
        size_t oc = (size_t)w.oc, ic = (size_t)w.ic, nr = 16 * (size_t)draw(1, 4), room = 15 * 70 * 40 * 16;
        float *from = malloc(room * sizeof *from);
        for (size_t i = 0; i < room; i++) from[i] = (float)draw(-9999, 9999) / 9999;
        w.groups = 1;
        float *one = in_order(&w, from);
        size_t n = pack_winograd_w_floats(oc, ic, &form, nr);
        float *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
        pack_winograd_w(one, oc, ic, &form, nr, want);
        burn_pack_w_winograd(got, from + w.at, w.oc, w.ic, (ptrdiff_t)nr, (ptrdiff_t[]){ 1, k[1], k[2] },
            (ptrdiff_t[]){ size[0], size[1] }, w.stride);
        for (size_t i = 0; i < n; i++) assert_true(fabsf(got[i] - want[i]) < 2e-6f);
        free(from);
        free(one);
        free(want);
        free(got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_conv), cmocka_unit_test(test_winograd) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
