// SPDX-License-Identifier: MIT OR Apache-2.0
/* The generic descriptor of training code, behind the functions that call its programs.
 *
 *   MODEL                        prefix of the model's names
 *   LOSS OPTIMIZER SCHEDULE      names; SCHEDULE: with quotes, or NULL
 *   N_WEIGHTS                    bytes of the constants' file
 *   PROGRAMS                     of each program bytes of its workspace, and the function or NULL
 *   N_X and a table for each     what it tells of; NULL where there are none
 *   TAKES_STEP N_PARTS           gradients take a step; parts of a run, 0: it knows of no threads
 *   HAS_INIT                     there are initial values
 */
#include "../../runtime/burn.h"
#include <string.h>
typedef struct MODEL_params { float w; } MODEL_params;
typedef struct MODEL_state { float w; } MODEL_state;
int MODEL_grads_zero(MODEL_params *sum);
static int MODEL_gradients_by_state_generic(const struct burn_threads *threads, void *ws, const void *weights,
                                            const burn_tensor *inputs, const void *params, const void *state,
                                            int64_t step, double *loss, void *grads)
{
    return (void)threads, (void)ws, (void)weights, (void)inputs, (void)params, (void)state, (void)step, (void)loss,
           (void)grads, 0;
}
int MODEL_grads_add(MODEL_params *sum, const MODEL_params *grads);
int MODEL_grads_scale(MODEL_params *sum, float factor);
void MODEL_params_init(MODEL_params *params);
int MODEL_params_save(const MODEL_params *params, const char *path);
int MODEL_params_load(MODEL_params *params, const char *path);
int MODEL_checkpoint_save(const MODEL_params *params, const MODEL_state *state, int64_t step, const char *path);
int MODEL_checkpoint_load(MODEL_params *params, MODEL_state *state, int64_t *step, const char *path);
// holes
#define MODEL lenet
#define LOSS mse
#define OPTIMIZER sgd
#define SCHEDULE NULL
#define N_PARAMS 0
#define N_STATE 0
#define PARAMS NULL
#define STATE NULL
#define N_INPUTS 0
#define N_TARGETS 0
#define N_OUTPUTS 0
#define INPUTS NULL
#define OUTPUTS NULL
#define N_HYPERS 0
#define N_SCHEDULE 0
#define HYPERS NULL
#define SCHEDULED NULL
#define TAKES_STEP 0
#define N_PARTS 0
#define N_WEIGHTS 0
#define PROGRAMS 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL,
#define HAS_INIT 1
// end holes
static int MODEL_zero_generic(void *sum) { return MODEL_grads_zero((MODEL_params *)sum); }

static int MODEL_add_generic(void *sum, const void *grads)
{
    return MODEL_grads_add((MODEL_params *)sum, (const MODEL_params *)grads);
}

static int MODEL_scale_generic(void *sum, float factor) { return MODEL_grads_scale((MODEL_params *)sum, factor); }

#if HAS_INIT
static int MODEL_init_generic(void *params)
{
    if (!params) return -1; /* BURN_EINVAL */
    MODEL_params_init((MODEL_params *)params);
    return 0;
}

#endif
#ifndef BURN_NO_FILES
static int MODEL_save_generic(const void *params, const char *path)
{
    return MODEL_params_save((const MODEL_params *)params, path);
}

static int MODEL_load_generic(void *params, const char *path)
{
    return MODEL_params_load((MODEL_params *)params, path);
}

static int MODEL_checkpoint_save_generic(const void *params, const void *state, int64_t step, const char *path)
{
    return MODEL_checkpoint_save((const MODEL_params *)params, (const MODEL_state *)state, step, path);
}

static int MODEL_checkpoint_load_generic(void *params, void *state, int64_t *step, const char *path)
{
    return MODEL_checkpoint_load((MODEL_params *)params, (MODEL_state *)state, step, path);
}

#endif
const burn_training MODEL_training = {
    2,
    "MODEL",
    "LOSS",
    "OPTIMIZER",
    SCHEDULE,
    sizeof(MODEL_params),
    sizeof(MODEL_state),
    N_WEIGHTS,
    N_PARAMS,
    N_STATE,
    PARAMS,
    STATE,
    N_INPUTS,
    N_TARGETS,
    N_OUTPUTS,
    INPUTS,
    OUTPUTS,
    N_HYPERS,
    N_SCHEDULE,
    HYPERS,
    SCHEDULED,
    TAKES_STEP,
    N_PARTS,
PROGRAMS
    MODEL_zero_generic,
    MODEL_add_generic,
    MODEL_scale_generic,
#if HAS_INIT
    MODEL_init_generic,
#else
    NULL,
#endif
#ifndef BURN_NO_FILES
    MODEL_save_generic,
    MODEL_load_generic,
    MODEL_checkpoint_save_generic,
    MODEL_checkpoint_load_generic,
#else
    NULL,
    NULL,
    NULL,
    NULL,
#endif
    MODEL_gradients_by_state_generic,
};
