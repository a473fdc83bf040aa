// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls the typed functions of two models, whose headers come first, twice and together with burn.h. Out: status 0
// when each null pointer gives -1 and weights that are not the model's are refused. Built by run.sh from
// models/digits and the small model matmul_bias with its weights in a file.
#include "digits_portable.h"
#include "digits_portable.h"
#include "matmul_bias_portable.h"
#include "burn.h"
#include "matmul_bias_portable.h"

static digits_portable_workspace digits;
static matmul_bias_portable_workspace matmul;
static float image[784], logits[10], x[3 * 5 * 17], y[3 * 5 * 33];
static unsigned char weights[MATMUL_BIAS_PORTABLE_WEIGHTS_BYTES];

int main(void) {
    int bad = 0;
    bad += digits_portable_run(0, image, logits) != BURN_EINVAL;
    bad += digits_portable_run(&digits, 0, logits) != BURN_EINVAL;
    bad += digits_portable_run(&digits, image, 0) != BURN_EINVAL;
    bad += digits_portable_run(&digits, image, logits) != BURN_OK;
    bad += matmul_bias_portable_run(0, weights, x, y) != BURN_EINVAL;
    bad += matmul_bias_portable_run(&matmul, 0, x, y) != BURN_EINVAL;
    bad += matmul_bias_portable_run(&matmul, weights, 0, y) != BURN_EINVAL;
    bad += matmul_bias_portable_run(&matmul, weights, x, 0) != BURN_EINVAL;
    bad += matmul_bias_portable_weights_check(0, sizeof weights) != BURN_EINVAL;
    bad += matmul_bias_portable_weights_check(weights, sizeof weights - 1) != BURN_EINVAL;
    bad += matmul_bias_portable_weights_check(weights, sizeof weights) != BURN_EFORMAT;
    return bad;
}
