/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * For programs that use Vulkan themselves: models of runtime/vulkan.c on the program's own device and queue, over its
 * buffers, before and behind its semaphores. C99, valid C++; burn.h alone needs no header of Vulkan. */
#ifndef BURN_VULKAN_H
#define BURN_VULKAN_H

#include "burn.h"

#include <vulkan/vulkan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The features that kernels may use. Each chain begins with `core`, which goes into VkDeviceCreateInfo.pNext. */
typedef struct burn_vk_features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
} burn_vk_features;

/* Those of them that `physical` has, chained. burn_vk_open turns all of these on. */
void burn_vk_features_of(VkPhysicalDevice physical, burn_vk_features *out);

/* How threads take turns at a queue that others submit to, too: enter() and leave() are called around each
 * submission. NULL: nobody else submits while functions of this device run. */
typedef struct burn_vk_turns {
    void (*enter)(void *argument);
    void (*leave)(void *argument);
    void *argument;
} burn_vk_turns;

/* A device of the caller, for Vulkan 1.2 or later. It has timelineSemaphore on and what else of burn_vk_features_of
 * the programs want; `features` says which are on (NULL: all that the device has). Commands go to `queue`, of a family
 * that can compute. All of it outlives the burn_vk, which destroys none of it. */
typedef struct burn_vk_own {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    const burn_vk_features *features;
    burn_vk_turns turns;
} burn_vk_own;

/* As burn_vk_open, on the caller's device. */
int burn_vk_adopt(burn_vk **out, const burn_vk_own *own);

/* What a burn_vk runs on, its own or the caller's: for further Vulkan calls. It lives as long as `vk`, whose
 * submissions the caller's must not meet: call burn_vk_enter before vkQueueSubmit, and burn_vk_leave behind it. */
void burn_vk_handles(const burn_vk *vk, burn_vk_own *out);
void burn_vk_enter(burn_vk *vk);
void burn_vk_leave(burn_vk *vk);

/* What a SPIR-V module of so many words wants that the device has not, or has not turned on; NULL: nothing. */
const char *burn_vk_lacks(const burn_vk *vk, const uint32_t *words, size_t count);

/* What burn_vk_cache keeps, to make pipelines with, by any number of threads; VK_NULL_HANDLE: nothing is kept. Its file
 * follows with burn_vk_pipelines_keep. */
VkPipelineCache burn_vk_pipelines(const burn_vk *vk);
void burn_vk_pipelines_keep(burn_vk *vk);

/* A buffer of the caller as one to bind, write and read: `bytes` from its beginning. It was made with
 * VK_BUFFER_USAGE_TRANSFER_SRC_BIT and VK_BUFFER_USAGE_TRANSFER_DST_BIT, for the queue's family, and outlives *out;
 * burn_vk_buffer_free leaves it. */
int burn_vk_buffer_adopt(burn_vk *vk, VkBuffer buffer, size_t bytes, burn_vk_buffer **out);

/* The handle of a buffer; of a workspace's memory it may be bound as storage of the caller's own kernels. */
VkBuffer burn_vk_buffer_handle(const burn_vk_buffer *buffer);

/* A semaphore to wait for or to signal; `value` is that of a timeline semaphore, and means nothing of others. */
typedef struct burn_vk_semaphore {
    VkSemaphore semaphore;
    uint64_t value;
} burn_vk_semaphore;

/* As burn_vk_submit: the run begins when all of `waits` are signalled, and signals all of `signals` when what it was
 * bound to is written. At most 8 each: BURN_ELIMIT. */
int burn_vk_submit_between(burn_vk_workspace *workspace, const burn_tensor *inputs, const burn_tensor *outputs,
    const burn_vk_semaphore *waits, int wait_count, const burn_vk_semaphore *signals, int signal_count);

#ifdef __cplusplus
}
#endif

#endif
