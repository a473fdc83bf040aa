// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the header says of saving and loading.
 *
 *   MODEL       prefix of the model's names
 *   HAS_STATE   the optimizer remembers something
 */
#include <stdint.h>
typedef struct MODEL_params { float w; } MODEL_params;
typedef struct MODEL_state { float w; } MODEL_state;
// holes
#define MODEL lenet
#define HAS_STATE 1
// end holes
#ifndef BURN_NO_FILES
/* As a .safetensors file under the model's tensor names. Saving replaces the file as a whole: whatever happens in
 * between, the path names the old one or the new one. Loading looks at everything, then changes the struct. 0, -1
 * (BURN_EINVAL), -3 (BURN_EIO: errno says why), -6 (BURN_EFORMAT: the file is damaged, a tensor is missing or has
 * another type or shape). */
int MODEL_params_save(const MODEL_params *params, const char *path);
int MODEL_params_load(MODEL_params *params, const char *path);

#if HAS_STATE
/* The same of what the optimizer remembers, under names that begin with `optimizer.`. */
int MODEL_state_save(const MODEL_state *state, const char *path);
int MODEL_state_load(MODEL_state *state, const char *path);

#endif
/* The same of all that training goes on from, in one file: parameters, state (NULL where the optimizer has none) and
 * the number of steps done. */
int MODEL_checkpoint_save(const MODEL_params *params, const MODEL_state *state, int64_t step, const char *path);
int MODEL_checkpoint_load(MODEL_params *params, MODEL_state *state, int64_t *step, const char *path);
#endif
