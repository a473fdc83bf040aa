// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Runs a burn_vk_program. In: SPIR-V kernels in levels, an arena of known size, weights. Out: sessions (a program on a
// device: weights and pipelines) and workspaces (the memory of one run, and its commands). The one idea: everything is
// allocated and recorded before it runs, so a run copies inputs in, submits and copies outputs out; what a caller binds
// to memory of the device stays there. Where the host reaches device memory (integrated GPUs, CPU devices, a BAR as
// large as the card) the arena itself is mapped and the copies touch it; elsewhere they go through staging memory, and
// the transfers are commands of the run, or, where they are large, of a queue of their own.
//
// One file for compilers, so that only what burn.h and vulkan.h declare has a name outside; its parts lie in vulkan/,
// each knowing those above it.

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* fsync */
#endif

#include "burn.h"
#include "vulkan.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SPIRV_MAGIC = 0x07230203,
    SPIRV_HEADER_WORDS = 5,
    BLOCK_ALIGN = 256,              /* bytes of a block: what drivers round them up to, at most */
    STAGING_ALIGN = 64,             /* a cache line, so that memcpy starts well */
    PIECE = 16 << 20,               /* what is written and read beside runs travels in pieces of this size */
    SEMAPHORES_MAX = 8,             /* of the caller, on each side of a run */
    SPIN_NS = 4000000,              /* what is over sooner is waited for awake: being woken costs 40 us and more */
    CARRIED_LEAST = 1 << 20,        /* bytes of inputs, or outputs, that are worth a submission of their own */
    PART_LEAST = 4 << 20, PARTS_MAX = 32, /* of a way: bytes of a part, about; and how many there are */
};

/* A queue, and what the commands that it is given do. */
typedef struct {
    VkQueue queue;
    uint32_t family;
    VkPipelineStageFlags stages;
} Lane;

/* A buffer with memory of its own. */
typedef struct {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceSize bytes;   /* of the memory */
    unsigned char *map;   /* NULL: out of the host's reach */
    bool is_coherent;
    bool is_cached; /* the host reads it at full speed */
} Block;

/* What has been submitted and what has ended: submissions count up, and the semaphore follows. */
typedef struct {
    VkSemaphore timeline;
    uint64_t tick; /* of the latest submission */
    uint64_t seen; /* of the latest that has ended, as far as is known */
} Clock;

/* Copies beside runs: what burn_vk_write, burn_vk_read and the upload of weights go through where memory is out of
 * reach. Made when first wanted, one user at a time. */
typedef struct {
    const Lane *lane;
    pthread_mutex_t lock;
    Block staging;
    VkCommandPool pool;
    VkCommandBuffer commands;
    Clock clock;
} Courier;

/* Threads that share out large copies on the host. */
enum { PORTERS_MAX = 3 };
typedef struct {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wanted, done;
    pthread_t threads[PORTERS_MAX];
    int count, working; /* threads; shares that are being copied */
    bool begun, busy, stops;
    unsigned char *to;
    const unsigned char *from;
    size_t bytes, next; /* of the copy, and what nobody has taken yet */
} Porters;

struct burn_vk {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    Lane work, carrier; /* kernels; and what only copies, beside them: the same where there is one queue */
    bool is_borrowed; /* instance and device are the caller's */
    burn_vk_turns turns; /* the caller's way of taking turns at the queue */
    pthread_mutex_t lock; /* of the queues, and of the counts of memory */
    pthread_mutex_t cache_lock; /* of the file of pipelines */
    burn_vk_features features; /* those that are on */
    bool has_shuffles; /* of values within subgroups, in compute shaders */
    bool has_nearest_f16; /* conversions to 16-bit floats that round to the nearest, where a shader asks for it */
    bool has_f16_matrices, has_bf16_matrices; /* of 16 x 16 x 16, by subgroups of 32, with sums in f32; they are on */
    bool has_i8_matrices; /* of 16 x 16 x 32 signed bytes, with sums in i32 */
    bool has_dots; /* of four bytes by four, in a word each; they are on */
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    VkDeviceSize allocation_max; /* bytes of one allocation */
    VkDeviceSize allocated, allocated_most;
    bool spins; /* of a card of its own, which computes on while the host asks */
    bool is_shared; /* the host reaches the device's memory: map instead of copy */
    size_t carried_least; /* CARRIED_LEAST */
    VkPipelineCache cache; /* what burn_vk_cache read and keeps; VK_NULL_HANDLE: none */
    char *cache_path;
    size_t cache_bytes; /* as in the file */
    Courier courier, loader; /* of buffers, in the order of the runs; of weights, which nobody reads yet */
    Porters porters;
};

struct burn_vk_buffer {
    burn_vk *vk;
    Block block;
    size_t bytes;
    bool is_borrowed; /* the VkBuffer is the caller's */
    bool is_host; /* memory of the host, which the device copies from and to by itself */
};

struct burn_vk_session {
    burn_vk *vk;
    const burn_vk_program *program;
    Block weights;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline *pipelines; /* kernel_count; kernels with the same module hold the same one */
    pthread_mutex_t lock;  /* of own */
    burn_vk_workspace *own; /* of burn_vk_run and burn_vk_time; made when first wanted */
};

/* --- errors ------------------------------------------------------------------------------------------------------ */

/* Of the calling thread: several may use one device. */
static _Thread_local struct { const burn_vk *vk; char text[256]; } error;

#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
static int vk_fail(const burn_vk *vk, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error.text, sizeof error.text, format, args);
    va_end(args);
    error.vk = vk;
    return code;
}

/* 0 for success, else the code for `result` with a text saying which call it was. */
static int vk_result(const burn_vk *vk, VkResult result, const char *call)
{
    switch (result) {
    case VK_SUCCESS: return BURN_OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY: return vk_fail(vk, BURN_ENOMEM, "%s: out of host memory", call);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return vk_fail(vk, BURN_ENOMEM, "%s: out of device memory", call);
    case VK_ERROR_TOO_MANY_OBJECTS: return vk_fail(vk, BURN_ENOMEM, "%s: too many objects", call);
    case VK_ERROR_DEVICE_LOST: return vk_fail(vk, BURN_EDEVICE, "%s: the device was lost", call);
    default: return vk_fail(vk, BURN_EDEVICE, "%s failed: VkResult %d", call, (int)result);
    }
}

static int vk_no_memory(const burn_vk *vk)
{
    return vk_fail(vk, BURN_ENOMEM, "out of host memory");
}

const char *burn_vk_last_error(const burn_vk *vk)
{
    return error.vk == vk ? error.text : "";
}

#include "vulkan/common.h"
#include "vulkan/porters.h"
#include "vulkan/matrix.h"
#include "vulkan/features.h"
#include "vulkan/device.h"
#include "vulkan/queue.h"
#include "vulkan/memory.h"
#include "vulkan/cache.h"
#include "vulkan/session.h"
#include "vulkan/workspace.h"
#include "vulkan/ways.h"
#include "vulkan/runs.h"
#include "vulkan/time.h"
