// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the header says of gradients as values.
 *
 *   MODEL   prefix of the model's names
 */
typedef struct MODEL_params { float w; } MODEL_params;
// holes
#define MODEL lenet
// end holes
/* Gradients of several batches or threads: sum = 0, sum += grads, sum *= factor. The mean of n batches of one size is
 * their sum, scaled by 1 / n. Returns 0, or -1 (BURN_EINVAL) when a pointer is null. */
int MODEL_grads_zero(MODEL_params *sum);
int MODEL_grads_add(MODEL_params *sum, const MODEL_params *grads);
int MODEL_grads_scale(MODEL_params *sum, float factor);
