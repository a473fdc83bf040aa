/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The public header of burncc's runtime: C99, valid C++. First the types that a generated model describes itself with
 * (one generic descriptor per model, so that one program can drive any model), then the part that runs models on a GPU
 * through Vulkan.
 *
 * Everywhere: functions return 0 (BURN_OK) or a negative BURN_E... code; they print nothing, never exit and keep no
 * global state but the text of each thread's last error on a GPU. Sizes and offsets are in bytes unless a name says
 * otherwise. Tensors are dense, row major (the last axis is contiguous), in the host's byte order, with no padding
 * between elements.
 */
#ifndef BURN_H
#define BURN_H

/* The text between the two markers stands alone, and generated C repeats it word for word: a generated file needs no
 * header of ours, and includes in any order with this one. */
/* burn-model-types begin */
#ifndef BURN_MODEL_TYPES
#define BURN_MODEL_TYPES

#include <stddef.h>
#include <stdint.h>

/* What functions return: BURN_OK or one of these. */
#define BURN_ERRORS(E) \
    E(BURN_EINVAL, -1, "a bad argument: a null pointer, a buffer too short, a malformed descriptor") \
    E(BURN_ENOMEM, -2, "memory of the host or the device ran out") \
    E(BURN_EIO, -3, "a file could not be read or written") \
    E(BURN_EDEVICE, -4, "the device or its driver failed") \
    E(BURN_ELIMIT, -5, "more than the device or a stated bound allows") \
    E(BURN_EFORMAT, -6, "a file is not what it should be: wrong magic, checksum or model") \
    E(BURN_ENODEV, -7, "no such device, or a processor without what the code was compiled for") \
    E(BURN_ERANGE, -8, "a number that makes no sense there: a class that the model has not, a step before the first") \
    E(BURN_ENAN, -9, "a loss is infinite or not a number") \
    E(BURN_ETYPE, -10, "a tensor of another element type than the model's") \
    E(BURN_ESHAPE, -11, "a tensor of another rank or of other dimensions than the model's")

enum {
    BURN_OK = 0,
#define BURN_ERROR(name, number, text) name = number,
    BURN_ERRORS(BURN_ERROR)
#undef BURN_ERROR
};

static inline const char *burn_strerror(int code)
{
    switch (code) {
    case BURN_OK: return "no error";
#define BURN_ERROR(name, number, text) case name: return text;
    BURN_ERRORS(BURN_ERROR)
#undef BURN_ERROR
    default: return "an unknown error";
    }
}

/* Element types, with the numbers of ONNX's TensorProto.DataType. BOOL is one byte, 0 or 1; elements of the
 * types below a byte take one each, integers sign- or zero-extended. */
typedef enum burn_dtype {
    BURN_UNDEFINED = 0,
    BURN_FLOAT = 1,
    BURN_UINT8 = 2,
    BURN_INT8 = 3,
    BURN_UINT16 = 4,
    BURN_INT16 = 5,
    BURN_INT32 = 6,
    BURN_INT64 = 7,
    BURN_STRING = 8,
    BURN_BOOL = 9,
    BURN_FLOAT16 = 10,
    BURN_DOUBLE = 11,
    BURN_UINT32 = 12,
    BURN_UINT64 = 13,
    BURN_COMPLEX64 = 14,
    BURN_COMPLEX128 = 15,
    BURN_BFLOAT16 = 16,
    BURN_FLOAT8E4M3FN = 17,
    BURN_FLOAT8E4M3FNUZ = 18,
    BURN_FLOAT8E5M2 = 19,
    BURN_FLOAT8E5M2FNUZ = 20,
    BURN_UINT4 = 21,
    BURN_INT4 = 22,
    BURN_FLOAT4E2M1 = 23,
    BURN_FLOAT8E8M0 = 24,
    BURN_UINT2 = 25,
    BURN_INT2 = 26,
    BURN_FLOAT6E2M3 = 27,
    BURN_FLOAT6E3M2 = 28
} burn_dtype;

/* An element of a BURN_STRING tensor: UTF-8 that ends in a zero byte. An input's strings are the caller's, none
 * may be null. Those of an output point into the inputs, the model's constants or its workspace: they hold until
 * either is written again. */
typedef const char *burn_string;

/* Elements of BURN_COMPLEX64 and BURN_COMPLEX128 tensors. */
typedef struct burn_complex64 { float re, im; } burn_complex64;
typedef struct burn_complex128 { double re, im; } burn_complex128;

/* Of an element in memory. */
static inline size_t burn_element_bytes(burn_dtype dtype)
{
    switch (dtype) {
    case BURN_STRING: return sizeof(burn_string);
    case BURN_COMPLEX128: return 16;
    case BURN_COMPLEX64: case BURN_DOUBLE: case BURN_INT64: case BURN_UINT64: return 8;
    case BURN_FLOAT: case BURN_INT32: case BURN_UINT32: return 4;
    case BURN_FLOAT16: case BURN_BFLOAT16: case BURN_INT16: case BURN_UINT16: return 2;
    default: return 1;
    }
}

/* A caller's buffer: `bytes` at `data`, aligned for its element type. The caller owns it; a model reads its inputs
 * and writes its outputs, and keeps neither pointer. `shape` matters where a model takes sizes at run time: of an
 * input, the dimensions of what lies at `data` (NULL: those of its info); of an output, where the run writes the
 * dimensions of its result (NULL: nowhere). `dtype` and `rank` are what the caller takes data and shape for, and are
 * compared with the model's; BURN_UNDEFINED, which is 0: nothing is said, and nothing compared. */
typedef struct burn_tensor {
    void *data;
    size_t bytes;
    int64_t *shape;
    burn_dtype dtype;
    int rank;
} burn_tensor;

/* One input or output of a model. */
typedef struct burn_tensor_info {
    const char *name;     /* as the model's file has it */
    burn_dtype dtype;
    int rank;             /* 0: a scalar */
    const int64_t *shape; /* `rank` dimensions, outermost first, the largest allowed; may be NULL at rank 0 */
    size_t bytes;         /* of the whole tensor at that shape */
    const int64_t *least; /* the smallest dimensions allowed; NULL where all are fixed */
    const char *const *dims; /* what dimensions are called: a size's name, a term of such names, or of what the run
                                finds out; NULL for those that are fixed, and where all are */
} burn_tensor_info;

/* Does a tensor's type, and of an input its shape, fit? BURN_OK, BURN_ETYPE, BURN_ESHAPE, BURN_ELIMIT. */
static inline int burn_shape_check(const burn_tensor_info *info, const burn_tensor *t, int output)
{
    if (t->dtype != BURN_UNDEFINED && t->dtype != info->dtype) return BURN_ETYPE;
    if (t->dtype != BURN_UNDEFINED && t->rank != info->rank) return BURN_ESHAPE;
    for (int i = 0; !output && t->shape && i < info->rank; i++) {
        const int64_t most = info->shape[i], least = info->least ? info->least[i] : most;
        if (t->shape[i] < least || t->shape[i] > most) return least == most ? BURN_ESHAPE : BURN_ELIMIT;
    }
    return BURN_OK;
}

/* And is its buffer there? Of a tensor whose sizes are fixed it has to have its bytes, too. */
static inline int burn_tensor_check(const burn_tensor_info *info, const burn_tensor *t, int output)
{
    const int code = burn_shape_check(info, t, output);
    return code ? code : t->data && (info->least || t->bytes >= info->bytes) ? BURN_OK : BURN_EINVAL;
}

/* A size that the run is told by the shapes of its inputs. */
typedef struct burn_size {
    const char *name; /* as the model's file or --dim has it */
    int64_t least, most;
} burn_size;

/* What the integers q of an input or output stand for: (q - zero) * scale. scale 0: for themselves. */
typedef struct burn_steps {
    float scale;
    int32_t zero;
} burn_steps;

struct burn_threads; /* BURN_THREADS_TYPES; known where a program takes threads */

/* A model: constant data in the generated file, and its entry points. They return BURN_OK or another code. */
typedef struct burn_model {
    int version; /* 1; what later versions have besides comes behind what this one has */
    const char *name;
    int input_count, output_count;
    const burn_tensor_info *inputs, *outputs;
    size_t workspace_bytes; /* scratch memory of one run; may be 0 */
    size_t weights_bytes;   /* 0: the weights are part of the program, and run() takes NULL for them */
    /* Are these the weights that this code was made for? BURN_EINVAL: another size; BURN_EFORMAT: other content.
     * NULL where weights_bytes is 0. */
    int (*weights_check)(const void *weights, size_t bytes);
    int parts; /* more threads than this do not help; 0: it knows of none, and takes NULL */
    /* One inference. `threads`: what computes its parts; NULL: the calling thread. `workspace`: workspace_bytes,
     * aligned to 8; its content means nothing before and after, and each concurrent run needs its own. `weights`:
     * weights_bytes, aligned to 64, only read. `inputs` and `outputs`: input_count and output_count buffers in the
     * order above, each of at least the bytes that its shape takes (outputs whose sizes only the run finds out: its
     * info's bytes); none may overlap an output. BURN_EINVAL: a null, short or badly aligned buffer; BURN_ETYPE,
     * BURN_ESHAPE, BURN_ELIMIT: a tensor is not as its info says; after an error the outputs hold nothing of use. */
    int (*run)(const struct burn_threads *threads, void *workspace, const void *weights, const burn_tensor *inputs,
        const burn_tensor *outputs);
    int size_count;
    const burn_size *sizes; /* in the order in which the typed function takes them */
    /* The dimensions that the outputs of a run will have, for inputs of these shapes: they go to the outputs' `shape`;
     * those that only the run finds out are the largest that they can be. Data is not looked at, and may be NULL. The
     * codes are run's. NULL where all sizes are fixed. */
    int (*shapes)(const burn_tensor *inputs, const burn_tensor *outputs);
    const char *const *metadata; /* what the model's file says of itself (its licence, say): keys and values by turns,
                                    and NULL; NULL: nothing */
    const burn_steps *steps; /* of the inputs, then of the outputs; NULL: all stand for themselves */
} burn_model;

#endif
/* burn-model-types end */

/* Runs in parts: what a program compiled with --threads N is given so that it computes on several threads. The
 * same rule: generated C repeats the text between the markers. */
/* burn-threads-types begin */
#ifndef BURN_THREADS_TYPES
#define BURN_THREADS_TYPES

/* Somebody's threads. run() calls task(argument, part) once for each part from 0 to parts - 1, in any order, on
 * any threads, one after the other or at the same time, and returns when all calls have returned; what a task
 * wrote is then there for the caller to read, and what the caller wrote before is there for the tasks. Tasks never
 * fail, throw or call run() themselves. A program calls run() from the thread that called the program; when
 * several threads call programs with one burn_threads, run() is called by all of them, and brings its own order
 * into that. A program's parts share its work out among themselves while they run: one that comes late, or after
 * all others, finds less to do or nothing. How parts are laid onto threads changes no bit of a result. The pool of
 * runtime/threads.c fills one in. */
typedef struct burn_threads {
    void *pool;
    void (*run)(void *pool, int parts, void (*task)(void *argument, int part), void *argument);
} burn_threads;

#endif
/* burn-threads-types end */

/* A model that learns: what a program compiled with --train describes itself with, so that one learner drives any. The
 * same rule: generated C repeats the text between the markers. */
/* burn-training-types begin */
#ifndef BURN_TRAINING_TYPES
#define BURN_TRAINING_TYPES

/* What training makes of a field of the parameters. */
typedef enum burn_role {
    BURN_TRAINED = 0, /* the step changes it by its gradient */
    BURN_RUNNING = 1, /* a running statistic: where it is, gradients have the batch's, which the step mixes in */
    BURN_BATCHES = 2  /* of gradients: how many batches they are the sum of; in parameters it means nothing */
} burn_role;

/* A tensor in a struct of parameters or of an optimizer's state. */
typedef struct burn_part {
    burn_tensor_info tensor; /* its name is that in files */
    size_t offset;           /* in the struct */
    burn_role role;
} burn_part;

/* A number that a step is given, and what it usually is. */
typedef struct burn_hyper {
    const char *name;
    double usual;
} burn_hyper;

/* Constant data in the generated file. The structs are the caller's: params_bytes of parameters, as many of
 * gradients, and state_bytes of what the optimizer remembers, zero before the first step; each aligned to 8. What does
 * not learn is no parameter. `work`: the function's bytes of scratch memory, aligned to 8, whose content means nothing
 * before and after. `weights`: weights_bytes, aligned to 64, the content of the file of constants. No struct or tensor
 * may overlap what a function writes, but for those that it changes. Any number of threads may be in these functions at
 * once, each with work and outputs of its own; parameters and gradients are then only read. They return 0 or a negative
 * BURN_E... code, as the functions of the generated header that they call. Pointers to functions that a program has not
 * are null. */
typedef struct burn_training {
    int version; /* 2; what later versions have besides comes behind what this one has */
    const char *name;
    const char *loss, *optimizer, *schedule; /* as the options name them, losses as a sum; NULL: no schedule */
    size_t params_bytes, state_bytes;
    size_t weights_bytes; /* 0: what does not learn is part of the program, and functions take NULL for weights */
    int param_count, state_count;
    const burn_part *params, *state;
    int input_count, target_count, output_count;
    const burn_tensor_info *inputs; /* input_count of the model's, then target_count of the loss's */
    const burn_tensor_info *outputs;
    int hyper_count, schedule_count;
    const burn_hyper *hypers;          /* what an update is given, in this order; one is called learning_rate */
    const burn_hyper *schedule_hypers; /* and what learning_rate is given */
    int takes_step; /* gradients are a function of a step's number, too: something drops out */
    int parts;      /* more threads than this do not help; 0: it knows of none, and takes NULL */
    /* The model as it is used. inputs: input_count buffers; of models whose sizes the run says, with their shapes. */
    size_t predict_bytes;
    int (*predict)(const struct burn_threads *threads, void *work, const void *weights, const burn_tensor *inputs,
        const void *params, const burn_tensor *outputs);
    /* The same with its loss. inputs: the targets come behind the model's. */
    size_t evaluate_bytes;
    int (*evaluate)(const struct burn_threads *threads, void *work, const void *weights, const burn_tensor *inputs,
        const void *params, double *loss, const burn_tensor *outputs);
    /* The loss of a batch as it is trained, and the gradients. BURN_ENAN: they are there, but the loss is none. */
    size_t gradients_bytes;
    int (*gradients)(const struct burn_threads *threads, void *work, const void *weights, const burn_tensor *inputs,
        const void *params, int64_t step, double *loss, void *grads);
    /* One step. hypers: hyper_count numbers, of which `step` counts from 1. */
    size_t update_bytes;
    int (*update)(const struct burn_threads *threads, void *work, const void *weights, const float *hypers,
        void *params, const void *grads, void *state);
    /* Both. step: what dropout and the hyper-parameter of that name are, where something drops out. */
    size_t train_step_bytes;
    int (*train_step)(const struct burn_threads *threads, void *work, const void *weights, const burn_tensor *inputs,
        int64_t step, const float *hypers, void *params, void *state, double *loss);
    int (*learning_rate)(float step, const float *schedule_hypers, float *rate); /* step: from 0 */
    int (*grads_zero)(void *sum);
    int (*grads_add)(void *sum, const void *grads);
    int (*grads_scale)(void *sum, float factor);
    int (*params_init)(void *params); /* NULL: the file beside the code has them, and params_load reads it */
    /* Null where the code is compiled with -DBURN_NO_FILES. step: how many are done. */
    int (*params_save)(const void *params, const char *path);
    int (*params_load)(void *params, const char *path);
    int (*checkpoint_save)(const void *params, const void *state, int64_t step, const char *path);
    int (*checkpoint_load)(void *params, void *state, int64_t *step, const char *path);
    /* From version 2 on: gradients of any module. Those of a loss whose scale is part of the state read it, and their
     * `gradients`, which is not given it, returns BURN_EINVAL. */
    int (*gradients_by_state)(const struct burn_threads *threads, void *work, const void *weights,
        const burn_tensor *inputs, const void *params, const void *state, int64_t step, double *loss, void *grads);
} burn_training;

#endif
/* burn-training-types end */

/* A model as GPU kernels. The same rule: generated C repeats the text between the markers, behind that of a model. */
/* burn-vk-types begin */
#ifndef BURN_VK_TYPES
#define BURN_VK_TYPES

/* One dispatch. The module's entry point is `main`; it is SPIR-V 1.5 or older for Vulkan 1.2 and uses two storage
 * buffers of descriptor set 0 and nothing else: binding 0 is the arena, binding 1 the weights. Each may be declared
 * several times with other element types if the declarations say Aliased. Push constants are there to let dispatches
 * that differ in offsets only share one module: equal `spirv` pointers share one pipeline. */
typedef struct burn_vk_kernel {
    const char *name;
    const uint32_t *spirv;
    size_t spirv_words;
    uint32_t groups[3]; /* workgroups along x, y, z; 65,535 each is what every device takes */
    uint32_t level;     /* kernels of one level do not depend on each other; levels never go down along the array, and a
                           memory barrier stands between two of them */
    const uint32_t *push; /* push constants, offset 0; NULL: none */
    uint32_t push_words;  /* at most 32 */
    /* NULL, or what runs in this kernel's place where the device has all that its module wants; at the same level. It
     * may have another one: the last that the device can run does. */
    const struct burn_vk_kernel *instead;
} burn_vk_kernel;

/* An input or output, all sizes fixed, and where it lies in the arena. */
typedef struct burn_vk_io {
    burn_tensor_info tensor;
    size_t offset;
} burn_vk_io;

/* A part of the weights: what binding 1 is for some kernels. offset: a multiple of 256. */
typedef struct burn_vk_window {
    size_t offset, bytes;
} burn_vk_window;

/* A program; `kernels` in an order that respects their dependencies. */
typedef struct burn_vk_program {
    int version; /* 3; what later versions have besides comes behind what this one has */
    const char *name;
    const burn_vk_kernel *kernels;
    size_t kernel_count;
    /* inputs, outputs and everything between; undefined before the first run, kept from run to run */
    size_t arena_bytes;
    size_t weights_bytes; /* may be 0 */
    /* Of the file of weights, as burn_model's; NULL where the weights are part of the program. */
    int (*weights_check)(const void *weights, size_t bytes);
    const burn_vk_io *inputs;
    int input_count;
    const burn_vk_io *outputs;
    int output_count;
    const char *const *metadata; /* as burn_model's */
    /* From version 2 on: of the end of the arena, a multiple of 4. They are 0 before the first run, and kernels leave
     * them so; the runtime sets them to 0 once, and again after a run that failed. */
    size_t counters_bytes;
    /* From version 3 on. Weights of which devices let a kernel see a part only: kernel k sees windows[window_of[k]],
     * where its push constants count from. window_count 0: all kernels see all weights. */
    const burn_vk_window *windows;
    const uint32_t *window_of;
    int window_count;
} burn_vk_program;

#endif
/* burn-vk-types end */

/* A program whose control is C and whose kernels run on a GPU: what is compiled for --target vulkan and is more than
 * one list of kernels (sizes at run time, loops, sorting, training, several functions). The generated functions are
 * those of other C targets. The same rule: generated C repeats the text between the markers. */
/* burn-gpu-types begin */
#ifndef BURN_GPU_TYPES
#define BURN_GPU_TYPES

/* A kernel: a SPIR-V module as burn_vk_kernel's, whose push constants are where each operand begins in the buffer, in
 * elements, then numbers. `key`: a hash of the words. `instead`: the same in a way that not all devices have, in so
 * many groups, which runs where it can, and may have another one; NULL: there is none. */
typedef struct burn_gpu_kernel {
    const char *name;
    const uint32_t *spirv;
    size_t spirv_words;
    uint64_t key;
    const struct burn_gpu_kernel *instead;
    uint32_t groups[3]; /* of one that runs instead of others */
} burn_gpu_kernel;

/* What a kernel reads or writes: `bytes` from `at` on, in the GPU's memory. What is only read may be elsewhere, too:
 * then its bytes are taken when the kernel is called. A device lets kernels see so much of each binding at once:
 * 0 is tensors and workspaces, 1 constants and counters, 2 structs of parameters, 3 of gradients and state. */
typedef struct burn_gpu_operand {
    const void *at;
    size_t bytes, element, binding;
} burn_gpu_operand;

/* One call of a generated function. Kernels, copies and numbers go to the GPU in the order of the calls and have
 * happened after wait() only; the host reads and writes the same memory in between. An error stays: nothing is done
 * any more, and wait() and end() return it. */
typedef struct burn_gpu_call burn_gpu_call;
struct burn_gpu_call {
    /* Where the GPU sees `bytes` at `at`: there, or in a copy for this call. out: the copy's content goes back at the
     * end of the call; both: it is copied in first, too. NULL for NULL. */
    void *(*in)(burn_gpu_call *call, const void *at, size_t bytes);
    void *(*out)(burn_gpu_call *call, void *at, size_t bytes);
    void *(*both)(burn_gpu_call *call, void *at, size_t bytes);
    /* `at`, or where the GPU does not see it memory for this call, whose content means nothing. NULL for NULL. */
    void *(*room)(burn_gpu_call *call, void *at, size_t bytes);
    /* Constants, copied once a process: those of one key are the same. */
    const unsigned char *(*constants)(burn_gpu_call *call, const void *at, size_t bytes, uint64_t key);
    /* Of the operands the first `writes` are written. Without groups along an axis nothing happens. */
    void (*dispatch)(burn_gpu_call *call, const burn_gpu_kernel *kernel, const uint32_t groups[3], int writes,
        int operands, const burn_gpu_operand *operand, int numbers, const uint32_t *number);
    void (*copy)(burn_gpu_call *call, void *to, const void *from, size_t bytes);
    void (*zero)(burn_gpu_call *call, void *to, size_t bytes);
    void (*put)(burn_gpu_call *call, void *to, const void *value, size_t bytes); /* up to 8 bytes */
    /* An operand for one dispatch, which writes it: so many words that are 0, and that it leaves so. At most 65536. */
    void *(*counters)(burn_gpu_call *call, size_t words);
    int (*wait)(burn_gpu_call *call);
    int (*end)(burn_gpu_call *call, int code); /* code, or if that is 0 an error of the call */
};

/* Begins a call; runtime/vulkan_steps.c has it. One call runs at a time, others wait. */
#ifdef __cplusplus
extern "C"
#endif
int burn_gpu_begin(burn_gpu_call **out);

#endif
/* burn-gpu-types end */

#ifdef __cplusplus
extern "C" {
#endif

/* --- Vulkan (runtime/vulkan.c; link with -lvulkan) -------------------------------------------------------------------
 *
 * burn_vk is an open device; burn_vk_session a program loaded on it: its weights and pipelines; burn_vk_workspace the
 * memory of one run, and the recorded commands that every run submits again; burn_vk_buffer memory of the device that
 * outlives runs. What is made of something is freed before it.
 *
 * Threads: any number of them may use a device and its sessions at once. A device begins up to three of its own for
 * large copies, which end with burn_vk_close. A workspace or a buffer is for one thread at a time; burn_vk_run and
 * burn_vk_time, which use the session's own workspace, take turns. Runs of several workspaces may be under way
 * together, in any order: what one reads and another writes is waited for in between. Large inputs and outputs travel
 * beside the kernels of other runs where the device has a queue for copies (as cards have).
 *
 * Errors: BURN_EINVAL: a null or wrong argument, and nothing has changed; BURN_ENOMEM: memory of the host or the device
 * ran out; BURN_EDEVICE: the driver failed or the device was lost, of which burn_vk_last_error says more. After any
 * error everything can be freed, and nothing stays behind. */
typedef struct burn_vk burn_vk;
typedef struct burn_vk_session burn_vk_session;
typedef struct burn_vk_workspace burn_vk_workspace;
typedef struct burn_vk_buffer burn_vk_buffer;

typedef enum burn_vk_kind {
    BURN_VK_OTHER = 0,
    BURN_VK_DISCRETE = 1,
    BURN_VK_INTEGRATED = 2,
    BURN_VK_VIRTUAL = 3,
    BURN_VK_PROCESSOR = 4 /* a driver that computes on the processor */
} burn_vk_kind;

typedef struct burn_vk_device {
    char name[256];
    burn_vk_kind kind;
    uint64_t bytes;    /* of memory of its own */
    const char *lacks; /* what burn_vk_open wants and it has not; NULL: nothing */
} burn_vk_device;

/* The devices there are, the first `room` of them in `out` (which may be NULL for none): their number, 0 where no
 * driver is installed, or a negative code. The order is that of "#0", "#1", ... of burn_vk_open. */
int burn_vk_devices(burn_vk_device *out, int room);

/* Opens the first device whose name contains `device` (letter case does not matter), or of "#2" that with number 2.
 * NULL: what the environment variable BURN_VK_DEVICE says, and without it the first discrete GPU, else an integrated
 * one, else any. The device must offer Vulkan 1.2. With BURN_VK_STAGING set and not empty, memory is treated as out of
 * the host's reach even where it is not (tests of the copying path); with BURN_VK_PLAIN, matrix units and dot products
 * of bytes are not used (to find where a difference comes from). *out is NULL after an error: BURN_ENODEV when
 * there is no such device; burn_vk_last_error(NULL) says why. */
int burn_vk_open(burn_vk **out, const char *device);

/* The device's name as its driver tells it; lives as long as `vk`. NULL gives "". */
const char *burn_vk_device_name(const burn_vk *vk);

/* One line about the last error that the calling thread met with `vk`, its sessions, workspaces and buffers, "" if
 * there was none; NULL: with opening a device, or listing them. It is valid until the thread's next error. */
const char *burn_vk_last_error(const burn_vk *vk);

/* Keeps what the driver makes of kernels in a file of the folder `path`, which is there: compiling them is most of
 * the time of a first burn_vk_load, and is done once for each device, driver and model. The file is named by both, is
 * written anew behind a burn_vk_load that met something new, beside itself and then renamed, and one that is damaged
 * or another driver's counts as none. Call it before burn_vk_load; burn_vk_open does with what BURN_VK_CACHE says.
 * BURN_EIO: there is no such folder. That a file cannot be written later is no error. */
int burn_vk_cache(burn_vk *vk, const char *path);

/* Memory that is allocated for `vk` now, and the most that ever was, in bytes; staging memory included. */
void burn_vk_memory(burn_vk *vk, uint64_t *now, uint64_t *most);

/* Loads `program`, which must outlive the session; `weights` (program->weights_bytes, NULL if 0) are copied and may go.
 * BURN_EINVAL: a malformed program; BURN_ELIMIT: more than the device allows (buffer size, workgroups); BURN_ENODEV: a
 * kernel wants a feature that the device lacks. *out is NULL after an error. */
int burn_vk_load(burn_vk *vk, const burn_vk_program *program, const void *weights, burn_vk_session **out);

/* One run: checks the tensors as a burn_model's run does and copies the inputs in, runs every kernel, waits, and copies
 * the outputs out. The caller owns all tensors. An output whose burn_tensor is all zero is not asked for, and not
 * copied. The codes of a burn_model's run, and those above. */
int burn_vk_run(burn_vk_session *session, const burn_tensor *inputs, const burn_tensor *outputs);

/* Frees a session; NULL is fine. */
void burn_vk_session_free(burn_vk_session *session);

/* Times the kernels on the device's own clock, in milliseconds, over what the last run's inputs left in memory: all of
 * them as a run has them (run_ms, without the way of inputs and outputs), and each alone (kernel_ms[kernel_count] of
 * the program). BURN_ELIMIT: the device has no such clock. */
int burn_vk_time(burn_vk_session *session, double *run_ms, double *kernel_ms);

/* Memory and commands for runs of their own, beside those of burn_vk_run. *out is NULL after an error. */
int burn_vk_workspace_new(burn_vk_session *session, burn_vk_workspace **out);

/* Waits for the run under way, without its outputs, and frees the workspace; NULL is fine. */
void burn_vk_workspace_free(burn_vk_workspace *workspace);

/* Starts a run and returns. The inputs have been copied by then; the tensors of outputs are written by burn_vk_poll or
 * burn_vk_wait, and are the workspace's until then. Nothing is asked of inputs and outputs that are bound (below), and
 * where all are, `inputs` or `outputs` may be NULL. BURN_EINVAL: the run before has not been waited for. */
int burn_vk_submit(burn_vk_workspace *workspace, const burn_tensor *inputs, const burn_tensor *outputs);

/* Has the run ended? 1: yes (or there was none), and its outputs are written; 0: not yet; negative: it failed. */
int burn_vk_poll(burn_vk_workspace *workspace);

/* Waits until it has, awake for the first milliseconds where a card computes; BURN_OK where there was none. After
 * BURN_ENOMEM it may still be under way: wait again. */
int burn_vk_wait(burn_vk_workspace *workspace);

/* From the next run on, input `input` is what lies in `from` at `offset` (bytes, a multiple of 4), or output `output`
 * goes there: over the device's own memory, the host sees nothing of it. `from` and `to` may be a workspace's memory
 * (burn_vk_workspace_buffer), this one's too, and so
 *   an output that only the device reads is bound to its own place, and nothing is copied;
 *   an input that stays is bound to its own place, where burn_vk_write puts it;
 *   a state is an input that is bound to the place of the output which it is next time;
 *   a second model's input is bound to the place of the first one's output.
 * Buffers outlive what is bound to them. NULL: the caller's tensor, as in the beginning. */
int burn_vk_bind_input(burn_vk_workspace *workspace, int input, burn_vk_buffer *from, size_t offset);
int burn_vk_bind_output(burn_vk_workspace *workspace, int output, burn_vk_buffer *to, size_t offset);

/* The memory of a workspace: what lies between runs at the `offset` of the program's inputs and outputs is theirs. It
 * belongs to the workspace. */
burn_vk_buffer *burn_vk_workspace_buffer(burn_vk_workspace *workspace);

/* Memory of the device, `bytes` of it, with nothing in it; *out is NULL after an error. NULL is freed, too. */
int burn_vk_buffer_new(burn_vk *vk, size_t bytes, burn_vk_buffer **out);
void burn_vk_buffer_free(burn_vk_buffer *buffer);
size_t burn_vk_buffer_bytes(const burn_vk_buffer *buffer);

/* The same of the host's memory, which the device copies from and to by itself: what a large input is bound to that the
 * host then writes at burn_vk_buffer_map, or a large output that it reads there, costs the host no copy. As a tensor it
 * is a run's from burn_vk_submit until that has ended. */
int burn_vk_buffer_new_host(burn_vk *vk, size_t bytes, burn_vk_buffer **out);

/* Where the host reaches it; NULL: it does not, and burn_vk_write and burn_vk_read are the way. */
void *burn_vk_buffer_map(burn_vk_buffer *buffer);

/* Copies `bytes` between the host and `offset` on, behind what was submitted before; when they return it is done. No
 * run that writes there may be under way. */
int burn_vk_write(burn_vk_buffer *to, size_t offset, const void *data, size_t bytes);
int burn_vk_read(const burn_vk_buffer *from, size_t offset, void *data, size_t bytes);

/* Closes a device; NULL is fine. */
void burn_vk_close(burn_vk *vk);

/* --- C functions whose kernels run on the GPU (runtime/vulkan_steps.c with runtime/vulkan.c; link with -lvulkan) -----
 *
 * They take any memory, and copy what the GPU does not see for each call. Memory of burn_gpu_memory() it does see:
 * parameters, optimizer state and tensors there stay on the device between calls, and a workspace there saves the call
 * its own. The host reads and writes it as any other while no call runs. All of it, workspaces and constants lie in one
 * buffer on one device, the one that BURN_VK_DEVICE names, which the first call opens; or on several, of which each
 * thread uses one. */

/* From now on this thread uses the device that burn_vk_open finds by this name or number; NULL: the one that threads
 * use without it. Opens it. Calls of threads that use different devices run at the same time. To a call memory of
 * another device is the host's; what is allocated, counted, watched or closed is the thread's device's. A device by two
 * names is two, each with memory of its own. 0 or a negative code, with which the thread stays where it was. */
int burn_gpu_use(const char *device);

/* burn_vk_cache for this thread's device, before the first call; burn_vk_open, and so a first call, does it with what
 * BURN_VK_CACHE says. The file is written at the end of a call whose kernels were new. */
int burn_gpu_cache(const char *folder);

/* Copies between devices and the host, whose memory both may be, when no call runs there: what a device has is slow to
 * read for the host itself. 0 or a negative code. */
int burn_gpu_copy(void *to, const void *from, size_t bytes);

/* Aligned to 256 bytes, zeroed; NULL: there is no device, or no room (burn_gpu_error says why). */
void *burn_gpu_memory(size_t bytes);
void burn_gpu_memory_free(void *memory); /* NULL is fine */

/* Bytes that are taken now (constants, burn_gpu_memory, and what a call that runs copies), and the most that ever were
 * since the device was opened; 0 before. Blocks count as multiples of 256. `burncc --report` says what a call takes. */
void burn_gpu_usage(size_t *now, size_t *most);

/* Tells each kernel's time on the device's clock, when the generated code hands it over: while somebody watches kernels
 * run alone, and calls take longer. `name` lasts as long as the generated code. Opens the device; NULL: nobody watches
 * any more. 0 or a negative code: BURN_ELIMIT where the device has no clock. */
typedef void burn_gpu_watcher(void *context, const char *name, double ms);
int burn_gpu_watch(burn_gpu_watcher *watcher, void *context);

/* One line about the last error of such a call, "" if there was none. */
const char *burn_gpu_error(void);

/* Closes the device with all its memory; no call may run, and the next one opens it again. */
void burn_gpu_close(void);

#ifdef __cplusplus
}
#endif

#endif
