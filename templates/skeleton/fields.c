// SPDX-License-Identifier: MIT OR Apache-2.0
/* Saving and loading the parameters, an optimizer's state, and both with the number of steps that led there.
 *
 *   MODEL        prefix of the model's names
 *   N_PARAMS     tensors of the parameters, which the table MODEL_fields begins with
 *   N_STATE      tensors of the state behind them; the last row is the step's
 *   N_FIELDS     all of them
 */
#include "../c/params.h"
typedef struct MODEL_params { float w; } MODEL_params;
typedef struct MODEL_state { float w; } MODEL_state;
static const burn_saved MODEL_fields[3];
// holes
#define MODEL lenet
#define N_PARAMS 1
#define N_STATE 1
#define N_FIELDS 3
// end holes
int MODEL_params_save(const MODEL_params *params, const char *path)
{
    return burn_params_save(path, (const void *const[]){params}, MODEL_fields, N_PARAMS);
}

int MODEL_params_load(MODEL_params *params, const char *path)
{
    uint64_t at[N_PARAMS];
    return burn_params_load(path, (void *const[]){params}, MODEL_fields, N_PARAMS, at);
}

#if N_STATE
int MODEL_state_save(const MODEL_state *state, const char *path)
{
    return burn_params_save(path, (const void *const[]){NULL, state}, MODEL_fields + N_PARAMS, N_STATE);
}

int MODEL_state_load(MODEL_state *state, const char *path)
{
    uint64_t at[N_STATE];
    return burn_params_load(path, (void *const[]){NULL, state}, MODEL_fields + N_PARAMS, N_STATE, at);
}

#endif
int MODEL_checkpoint_save(const MODEL_params *params, const MODEL_state *state, int64_t step, const char *path)
{
    return burn_params_save(path, (const void *const[]){params, state, &step}, MODEL_fields, N_FIELDS);
}

int MODEL_checkpoint_load(MODEL_params *params, MODEL_state *state, int64_t *step, const char *path)
{
    uint64_t at[N_FIELDS];
    return burn_params_load(path, (void *const[]){params, state, step}, MODEL_fields, N_FIELDS, at);
}
