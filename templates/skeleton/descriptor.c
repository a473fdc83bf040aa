// SPDX-License-Identifier: MIT OR Apache-2.0
/* The generic descriptor: a run over arrays of tensors, and the struct that has it with names and shapes.
 *
 *   MODEL RUN SPACE    prefix of the model's names; the run function; prefix of the workspace's type
 *   STATE HAS_STATE    prefix of the state's type; it has a state, for which the workspace has room
 *   INFOS              tables of the inputs and outputs, whose names INPUTS and OUTPUTS are, or null pointers
 *   CHECKS             of the tensors, and the sizes that follow from them
 *   SHAPES ARGUMENTS   room for the shapes that the run finds out; what it is given after the workspace
 *   RESULTS            sets the outputs' shapes
 *   N_INPUTS N_OUTPUTS N_THREADS
 *   N_WEIGHTS          bytes of the weights' file; 0: there is none
 */
#include "../../runtime/burn.h"
typedef union SPACE_workspace { double align; } SPACE_workspace;
int lenet_run(SPACE_workspace *ws);
typedef struct STATE_state { float h; } STATE_state;
// holes
#define MODEL lenet
#define STATE lenet
#define HAS_STATE 0
#define RUN lenet_run
#define SPACE lenet
#define INFOS
#define CHECKS
#define SHAPES
#define ARGUMENTS
#define RESULTS
#define N_INPUTS 0
#define N_OUTPUTS 0
#define INPUTS (const burn_tensor_info *)0
#define OUTPUTS (const burn_tensor_info *)0
#define N_WEIGHTS 0
#define N_THREADS 0
// end holes
INFOS
#if HAS_STATE
typedef struct RUN_space {
    SPACE_workspace workspace;
    STATE_state state;
} RUN_space;
#endif
#if N_THREADS
static int RUN_generic_threads(const burn_threads *threads, void *workspace, const void *weights,
                               const burn_tensor *inputs, const burn_tensor *outputs)
#else
static int RUN_generic(void *workspace, const void *weights, const burn_tensor *inputs, const burn_tensor *outputs)
#endif
{
#if !N_WEIGHTS
    (void)weights;
#endif
CHECKS
SHAPES
#if HAS_STATE
    const int code = RUN(&space->workspace ARGUMENTS);
#else
    const int code = RUN((SPACE_workspace *)workspace ARGUMENTS);
#endif
RESULTS
    return code;
}

#if N_THREADS
static int RUN_generic(void *workspace, const void *weights, const burn_tensor *inputs, const burn_tensor *outputs)
{
    return RUN_generic_threads((const burn_threads *)0, workspace, weights, inputs, outputs);
}
#endif
const burn_model MODEL_model = {
    "MODEL", N_INPUTS, N_OUTPUTS, INPUTS, OUTPUTS,
#if HAS_STATE
    sizeof(RUN_space), N_WEIGHTS, RUN_generic
#else
    sizeof(SPACE_workspace), N_WEIGHTS, RUN_generic
#endif
};
#if N_THREADS
const burn_threaded_model MODEL_threaded = {&MODEL_model, N_THREADS, RUN_generic_threads};
#endif
