// SPDX-License-Identifier: MIT OR Apache-2.0
/* Saving and loading a struct of tensors: parameters, or an optimizer's state.
 *
 *   MODEL TYPE   prefix of the model's names; of the struct: params, state
 *   N_FIELDS     tensors in it, which the table MODEL_TYPE_fields tells of
 */
#include "../c/params.h"
typedef struct MODEL_TYPE { float w; } MODEL_TYPE;
static const burn_field MODEL_TYPE_fields[1];
// holes
#define MODEL lenet
#define TYPE params
#define N_FIELDS 1
// end holes
int MODEL_TYPE_save(const MODEL_TYPE *TYPE, const char *path)
{
    return burn_params_save(path, TYPE, MODEL_TYPE_fields, N_FIELDS);
}

int MODEL_TYPE_load(MODEL_TYPE *TYPE, const char *path)
{
    uint64_t at[N_FIELDS];
    return burn_params_load(path, TYPE, MODEL_TYPE_fields, N_FIELDS, at);
}
