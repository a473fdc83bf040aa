// SPDX-License-Identifier: MIT OR Apache-2.0
/* The generic descriptor: a run over arrays of tensors, and the struct that has it with names and shapes.
 *
 *   MODEL RUN SPACE    prefix of the model's names; the run function; prefix of the workspace's type
 *   FILE HAS_SPACE     prefix of the weights' check; the block that it is given as a workspace is RUN_space: it has a
 *                      state, too, or several parts.  SPACE_TYPE WORK: that struct; the workspace in it
 *   INFOS              tables of the inputs, outputs, sizes, metadata and steps, whose names INPUTS, OUTPUTS, METADATA
 *                      and STEPS are, or null pointers
 *   HAS_BOUNDS BOUNDS  sizes are only known when it runs: what checks the inputs' shapes and tells the outputs'
 *   CHECKS             of the tensors, and the sizes that follow from them
 *   ROOM ARGUMENTS     for the shapes that the run finds out; what it is given after the workspace
 *   RESULTS            sets the outputs' shapes
 *   N_INPUTS N_OUTPUTS N_SIZES N_THREADS
 *   N_WEIGHTS          bytes of the weights' file; 0: there is none
 */
#include "../../runtime/burn.h"
typedef union SPACE_workspace { double align; } SPACE_workspace;
int lenet_run(SPACE_workspace *ws);
// holes
#define MODEL lenet
#define FILE lenet
#define HAS_SPACE 0
#define SPACE_TYPE
#define WORK &space->workspace
#define RUN lenet_run
#define SPACE lenet
#define INFOS
#define HAS_BOUNDS 0
#define BOUNDS
#define CHECKS
#define ROOM
#define ARGUMENTS
#define RESULTS
#define N_INPUTS 0
#define N_OUTPUTS 0
#define N_SIZES 0
#define INPUTS (const burn_tensor_info *)0
#define OUTPUTS (const burn_tensor_info *)0
#define METADATA (const char *const *)0
#define STEPS (const burn_steps *)0
#define N_WEIGHTS 0
#define N_THREADS 0
// end holes
INFOS
#if HAS_SPACE
SPACE_TYPE
#endif
#if HAS_BOUNDS
static int RUN_shapes(const burn_tensor *inputs, const burn_tensor *outputs)
{
BOUNDS
    return 0;
}
#endif
static int RUN_generic(const struct burn_threads *threads, void *workspace, const void *weights,
                       const burn_tensor *inputs, const burn_tensor *outputs)
{
#if !N_THREADS
    (void)threads;
#endif
#if N_WEIGHTS
    if ((uintptr_t)weights % 64) return -1; /* BURN_EINVAL */
#else
    (void)weights;
#endif
CHECKS
ROOM
#if HAS_SPACE
    const int code = RUN(WORK ARGUMENTS);
#else
    const int code = RUN((SPACE_workspace *)workspace ARGUMENTS);
#endif
RESULTS
    return code;
}

const burn_model MODEL_model = {
    1, "MODEL", N_INPUTS, N_OUTPUTS, INPUTS, OUTPUTS,
#if HAS_SPACE
    sizeof(RUN_space),
#else
    sizeof(SPACE_workspace),
#endif
#if N_WEIGHTS
    N_WEIGHTS, FILE_weights_check,
#else
    0, NULL,
#endif
    N_THREADS, RUN_generic,
#if N_SIZES
    N_SIZES, RUN_sizes,
#else
    0, NULL,
#endif
#if HAS_BOUNDS
    RUN_shapes,
#else
    NULL,
#endif
    METADATA, STEPS
};
