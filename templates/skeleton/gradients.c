// SPDX-License-Identifier: MIT OR Apache-2.0
/* Gradients as values: they are summed and scaled by the caller.
 *
 *   MODEL         prefix of the model's names
 *   ADDS SCALES   a loop for each row of fields of one type
 */
#include <string.h>
typedef struct MODEL_params { float w; } MODEL_params;
// holes
#define MODEL lenet
#define ADDS
#define SCALES
// end holes
int MODEL_grads_zero(MODEL_params *sum)
{
    if (!sum) return -1; /* BURN_EINVAL */
    memset(sum, 0, sizeof *sum);
    return 0;
}

int MODEL_grads_add(MODEL_params *sum, const MODEL_params *grads)
{
    if (!sum || !grads) return -1; /* BURN_EINVAL */
ADDS
    return 0;
}

int MODEL_grads_scale(MODEL_params *sum, float factor)
{
    if (!sum) return -1; /* BURN_EINVAL */
SCALES
    return 0;
}
