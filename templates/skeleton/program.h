// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the header says of one program.
 *
 *   MODEL SPACE  prefix of the model's names, and of the workspace's type
 *   N_BYTES      of the workspace; 0: it has none.  KEPT: what of it means something after a run
 *   BANKS        the workspace, where it has a part in each of several memories
 *   STEPS        macros: what the integers of quantized inputs and outputs stand for
 *   DOC ENDS     what the run does; a line for each input, output and size
 *   HAS_WEIGHTS  it takes a pointer to the weights' file
 *   N_THREADS    parts that it goes in; 0: it knows of no threads
 *   HAS_GPU      its kernels run on a GPU
 *   LIMITS       what else it may return, and when
 *   SIGNATURE    of the run function
 */
// holes
#define MODEL lenet
#define SPACE lenet
#define N_BYTES 64
#define KEPT
#define BANKS
#define STEPS
#define DOC One inference.
#define ENDS
#define HAS_WEIGHTS 1
#define N_THREADS 4
#define HAS_GPU 0
#define LIMITS
#define SIGNATURE int lenet_run(SPACE_workspace *ws)
// end holes
#if N_BYTES
/* Scratch memory of one run; its content means nothing before and after KEPT. Concurrent runs need one each. */
typedef union SPACE_workspace {
    double align;
    unsigned char bytes[N_BYTES];
} SPACE_workspace;

#endif
BANKS
STEPS
/* DOC
ENDS
#if HAS_WEIGHTS
 *   weights  the bytes of MODEL.bin, aligned to 64; check them once with MODEL_weights_check
#endif
#if N_THREADS
 *   threads  what computes the parts of the run, up to N_THREADS at a time; NULL: the calling thread, one after the
 *            other
#endif
#if HAS_GPU
 * No input may overlap an output. Its kernels run on the GPU: link with runtime/vulkan.c and runtime/vulkan_steps.c.
 * Any thread may call it; one call runs at a time. -2 (BURN_ENOMEM), -4 (BURN_EDEVICE), -5 (BURN_ELIMIT) and -7
 * (BURN_ENODEV) are the device's.
#else
 * No input may overlap an output. Reentrant; allocates nothing.
#endif
 * Returns 0, or -1 (BURN_EINVAL) when a pointer is null LIMITS. */
SIGNATURE;
