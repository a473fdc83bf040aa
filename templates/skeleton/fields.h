// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the header says of saving and loading a struct of tensors: parameters, or an optimizer's state.
 *
 *   MODEL TYPE   prefix of the model's names; of the struct: params, state
 */
typedef struct MODEL_TYPE { float w; } MODEL_TYPE;
// holes
#define MODEL lenet
#define TYPE params
// end holes
/* As a .safetensors file under the model's tensor names. 0, -1 (BURN_EINVAL), -3 (BURN_EIO: errno says why), -6
 * (BURN_EFORMAT: a tensor is missing or has another type or shape). */
int MODEL_TYPE_save(const MODEL_TYPE *TYPE, const char *path);
int MODEL_TYPE_load(MODEL_TYPE *TYPE, const char *path);
