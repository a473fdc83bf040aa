// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Calls of C functions whose kernels run on a GPU. In: what a generated function does, step by step (burn_gpu_call).
// Out: command buffers that are submitted where the host wants to look. The one idea: one buffer holds all that
// kernels touch and the host has it mapped, so that the function is the C of any target with its pointers, and a
// kernel's operand is a pointer less the buffer's. Kernels that touch common bytes get a barrier between them; others
// overlap.

#include "vulkan.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 256, /* of what lies in the buffer */
    OPERAND_ALIGNMENT = 16, /* of what kernels may load four floats at a time from */
    PUSH_MAX = 32, /* words: what every Vulkan device has */
    PENDING_MAX = 64, /* ranges that are watched; more: a barrier */
    COUNTERS = 1 << 16, /* words that dispatches count in, by turns */
};

typedef struct Place { /* a part of the buffer; they follow one another */
    size_t at, bytes;
    bool used, temporary; /* temporary: until the call ends */
} Place;

typedef struct { uint64_t key; size_t words; VkPipeline pipeline; } Known;
typedef struct { uint64_t key; size_t bytes; unsigned char *at; } Constants;
typedef struct { void *to; const void *from; size_t bytes; } Back; /* goes back at the end of the call */
typedef struct { size_t from, to; bool written; } Range;

typedef struct {
    burn_gpu_call calls; /* first: what generated code has of it */
    burn_vk *vk;
    burn_vk_own gpu;
    VkPhysicalDeviceMemoryProperties kinds;
    VkBuffer buffer;
    VkDeviceMemory memory;
    unsigned char *map;
    size_t bytes;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    Place *places;
    size_t place_count, place_room;
    size_t used, used_most; /* bytes of the places in use */
    Known *known;
    size_t known_count, known_room;
    Constants *constants;
    size_t constants_count, constants_room;
    Back *backs;
    size_t back_count, back_room;
    uint32_t *counters; /* all 0 when no kernel runs */
    size_t counters_next;
    Range pending[PENDING_MAX];
    int pending_count;
    bool recording;
    int code;
} Steps;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held by the call that runs */
static Steps *open_steps;
static char error_text[256];

/* --- errors ------------------------------------------------------------------------------------------------------ */

static int failed(Steps *s, int code, const char *what, int number)
{
    if (s->code == BURN_OK) {
        s->code = code;
        snprintf(error_text, sizeof error_text, "%s (%d)", what, number);
    }
    return s->code;
}

/* Did a Vulkan call succeed? Else the error stays. */
static bool succeeds(Steps *s, VkResult result, const char *call)
{
    const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (result != VK_SUCCESS)
        failed(s, memory ? BURN_ENOMEM : BURN_EDEVICE, call, (int)result);
    return result == VK_SUCCESS;
}

/* Room for one more element of an array that grows. */
static bool grown(Steps *s, void **array, size_t count, size_t *room, size_t element)
{
    if (count < *room)
        return true;
    const size_t more = *room ? *room * 2 : 16;
    void *to = realloc(*array, more * element);
    if (to == NULL) {
        failed(s, BURN_ENOMEM, "out of host memory", 0);
        return false;
    }
    *array = to;
    *room = more;
    return true;
}

/* --- the buffer -------------------------------------------------------------------------------------------------- */

static bool is_inside(const Steps *s, const void *at)
{
    return (uintptr_t)at >= (uintptr_t)s->map && (uintptr_t)at < (uintptr_t)s->map + s->bytes;
}

/* The first place with room, cut to size; NULL with the error. */
static unsigned char *place_take(Steps *s, size_t bytes, bool temporary)
{
    const size_t whole = bytes > ALIGNMENT ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    for (size_t i = 0; i < s->place_count; i++) {
        if (s->places[i].used || s->places[i].bytes < whole)
            continue;
        if (!grown(s, (void **)&s->places, s->place_count, &s->place_room, sizeof *s->places))
            return NULL;
        Place *p = &s->places[i];
        const Place rest = { p->at + whole, p->bytes - whole, false, false };
        *p = (Place){ p->at, whole, true, temporary };
        if (rest.bytes > 0) {
            memmove(p + 2, p + 1, (s->place_count - i - 1) * sizeof *p);
            p[1] = rest;
            s->place_count++;
        }
        s->used += whole;
        s->used_most = s->used > s->used_most ? s->used : s->used_most;
        return s->map + s->places[i].at;
    }
    if (s->code == BURN_OK)
        snprintf(error_text, sizeof error_text, "no room for %lu bytes in a buffer of %lu", (unsigned long)whole,
            (unsigned long)s->bytes);
    s->code = s->code == BURN_OK ? BURN_ENOMEM : s->code;
    return NULL;
}

static void place_give(Steps *s, Place *p)
{
    s->used -= p->used ? p->bytes : 0;
    p->used = false;
}

/* Joins neighbours that are free. */
static void places_join(Steps *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->place_count; i++) {
        Place *last = n > 0 ? &s->places[n - 1] : NULL;
        if (last != NULL && !last->used && !s->places[i].used)
            last->bytes += s->places[i].bytes;
        else
            s->places[n++] = s->places[i];
    }
    s->place_count = n;
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

/* Memory that the device has and the host reaches, or else the host's that the device reaches. */
static bool memory_allocate(Steps *s)
{
    static const VkMemoryPropertyFlags reached = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags kinds[] = {
        reached | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
        reached | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
        reached | VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
        reached,
    };
    VkMemoryRequirements needs;
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    vkGetBufferMemoryRequirements(s->gpu.device, s->buffer, &needs);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t type = 0; type < s->kinds.memoryTypeCount; type++) {
            const VkMemoryAllocateInfo info = {
                .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                .allocationSize = needs.size,
                .memoryTypeIndex = type,
            };
            if ((needs.memoryTypeBits >> type & 1) == 0 ||
                (s->kinds.memoryTypes[type].propertyFlags & kinds[k]) != kinds[k])
                continue;
            result = vkAllocateMemory(s->gpu.device, &info, NULL, &s->memory);
            if (result == VK_SUCCESS)
                return succeeds(s, vkBindBufferMemory(s->gpu.device, s->buffer, s->memory, 0), "vkBindBufferMemory");
        }
    return succeeds(s, result, "vkAllocateMemory");
}

/* A buffer of half the memory of the heap that it comes from, at most what the device allows for one. */
static bool buffer_open(Steps *s)
{
    VkDeviceSize most = 0;
    for (uint32_t i = 0; i < s->kinds.memoryHeapCount; i++)
        if (s->kinds.memoryHeaps[i].size > most)
            most = s->kinds.memoryHeaps[i].size;
    VkPhysicalDeviceVulkan11Properties allocations = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES
    };
    VkPhysicalDeviceProperties2 all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &allocations };
    vkGetPhysicalDeviceProperties2(s->gpu.physical, &all);
    const VkDeviceSize limits[] = { most / 2, allocations.maxMemoryAllocationSize,
        all.properties.limits.maxStorageBufferRange };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (i == 0 || s->bytes > limits[i])
            s->bytes = (size_t)(limits[i] / ALIGNMENT * ALIGNMENT);
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = s->bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
            VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    void *map = NULL;
    if (!succeeds(s, vkCreateBuffer(s->gpu.device, &info, NULL, &s->buffer), "vkCreateBuffer") || !memory_allocate(s) ||
        !succeeds(s, vkMapMemory(s->gpu.device, s->memory, 0, VK_WHOLE_SIZE, 0, &map), "vkMapMemory") ||
        !grown(s, (void **)&s->places, 0, &s->place_room, sizeof *s->places))
        return false;
    s->map = map;
    s->places[s->place_count++] = (Place){ 0, s->bytes, false, false };
    s->counters = (uint32_t *)(void *)place_take(s, COUNTERS * sizeof *s->counters, false);
    if (s->counters != NULL)
        memset(s->counters, 0, COUNTERS * sizeof *s->counters);
    return s->counters != NULL;
}

/* The buffer as binding 0 and as binding 1: constants lie in it, too. */
static bool set_open(Steps *s)
{
    const VkDevice device = s->gpu.device;
    VkDescriptorSetLayoutBinding bindings[2];
    for (uint32_t i = 0; i < 2; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){ i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
            VK_SHADER_STAGE_COMPUTE_BIT, NULL };
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, PUSH_MAX * 4 };
    const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 };
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    if (!succeeds(s, vkCreateDescriptorSetLayout(device, &set, NULL, &s->set_layout), "vkCreateDescriptorSetLayout") ||
        !succeeds(s, vkCreateDescriptorPool(device, &pool, NULL, &s->descriptors), "vkCreateDescriptorPool"))
        return false;
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &s->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    const VkDescriptorSetAllocateInfo one = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = s->descriptors,
        .descriptorSetCount = 1,
        .pSetLayouts = &s->set_layout,
    };
    if (!succeeds(s, vkCreatePipelineLayout(device, &layout, NULL, &s->layout), "vkCreatePipelineLayout") ||
        !succeeds(s, vkAllocateDescriptorSets(device, &one, &s->set), "vkAllocateDescriptorSets"))
        return false;
    const VkDescriptorBufferInfo whole = { s->buffer, 0, VK_WHOLE_SIZE }, both[2] = { whole, whole };
    const VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = s->set,
        .descriptorCount = 2, /* the second goes on to binding 1 */
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = both,
    };
    vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    return true;
}

static bool commands_open(Steps *s)
{
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = s->gpu.family,
    };
    if (!succeeds(s, vkCreateCommandPool(s->gpu.device, &pool, NULL, &s->pool), "vkCreateCommandPool"))
        return false;
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = s->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    return succeeds(s, vkAllocateCommandBuffers(s->gpu.device, &commands, &s->commands), "vkAllocateCommandBuffers") &&
        succeeds(s, vkCreateFence(s->gpu.device, &fence, NULL, &s->fence), "vkCreateFence");
}

static void steps_free(Steps *s)
{
    const VkDevice device = s->gpu.device;
    if (device != VK_NULL_HANDLE) {
        for (size_t i = 0; i < s->known_count; i++)
            vkDestroyPipeline(device, s->known[i].pipeline, NULL);
        vkDestroyFence(device, s->fence, NULL);
        vkDestroyCommandPool(device, s->pool, NULL);
        vkDestroyPipelineLayout(device, s->layout, NULL);
        vkDestroyDescriptorPool(device, s->descriptors, NULL);
        vkDestroyDescriptorSetLayout(device, s->set_layout, NULL);
        vkDestroyBuffer(device, s->buffer, NULL);
        vkFreeMemory(device, s->memory, NULL);
    }
    burn_vk_close(s->vk);
    free(s->places);
    free(s->known);
    free(s->constants);
    free(s->backs);
    free(s);
}

static const burn_gpu_call steps_calls;

static void device_read(Steps *s)
{
    burn_vk_handles(s->vk, &s->gpu);
    vkGetPhysicalDeviceMemoryProperties(s->gpu.physical, &s->kinds);
}

/* Opens the device, with the lock held. */
static int steps_open(void)
{
    if (open_steps != NULL)
        return BURN_OK;
    Steps *s = calloc(1, sizeof *s);
    if (s == NULL)
        return BURN_ENOMEM;
    s->calls = steps_calls;
    int code = burn_vk_open(&s->vk, NULL);
    if (code != BURN_OK)
        failed(s, code, burn_vk_last_error(NULL), code);
    else
        device_read(s);
    if (s->code == BURN_OK && buffer_open(s) && set_open(s) && commands_open(s))
        open_steps = s;
    code = s->code;
    if (code != BURN_OK)
        steps_free(s);
    return code;
}

/* --- commands ---------------------------------------------------------------------------------------------------- */

static bool record(Steps *s)
{
    const VkCommandBufferBeginInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT };
    if (s->code != BURN_OK)
        return false;
    if (s->recording)
        return true;
    if (!succeeds(s, vkBeginCommandBuffer(s->commands, &info), "vkBeginCommandBuffer"))
        return false;
    vkCmdBindDescriptorSets(s->commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->layout, 0, 1, &s->set, 0, NULL);
    s->recording = true;
    s->pending_count = 0;
    return true;
}

static void barrier(Steps *s, VkPipelineStageFlags after, VkAccessFlags access)
{
    const VkPipelineStageFlags before = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier all = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = access,
    };
    vkCmdPipelineBarrier(s->commands, before, after, 0, 1, &all, 0, NULL, 0, NULL);
    s->pending_count = 0;
}

/* What comes next touches these: a barrier where something before it has to have happened. */
static void touch(Steps *s, int n, const Range *range)
{
    bool meets = s->pending_count + n > PENDING_MAX;
    for (int i = 0; i < n && !meets; i++)
        for (int k = 0; k < s->pending_count && !meets; k++)
            meets = (range[i].written || s->pending[k].written) && range[i].from < s->pending[k].to &&
                s->pending[k].from < range[i].to;
    if (meets)
        barrier(s, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                VK_ACCESS_TRANSFER_WRITE_BIT);
    for (int i = 0; i < n && s->pending_count < PENDING_MAX; i++)
        s->pending[s->pending_count++] = range[i];
}

static size_t offset_of(const Steps *s, const void *at) { return (size_t)((uintptr_t)at - (uintptr_t)s->map); }

static Range range_of(const Steps *s, const void *at, size_t bytes, bool written)
{
    return (Range){ offset_of(s, at), offset_of(s, at) + bytes, written };
}

static int steps_wait(burn_gpu_call *calls)
{
    Steps *s = (Steps *)calls;
    if (s->code != BURN_OK || !s->recording)
        return s->code;
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &s->commands,
    };
    barrier(s, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
    s->recording = false;
    if (succeeds(s, vkEndCommandBuffer(s->commands), "vkEndCommandBuffer") &&
        succeeds(s, vkResetFences(s->gpu.device, 1, &s->fence), "vkResetFences") &&
        succeeds(s, vkQueueSubmit(s->gpu.queue, 1, &info, s->fence), "vkQueueSubmit"))
        succeeds(s, vkWaitForFences(s->gpu.device, 1, &s->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    return s->code;
}

/* The kernel's pipeline, made when it is called first; VK_NULL_HANDLE with the error. */
static VkPipeline pipeline_of(Steps *s, const burn_gpu_kernel *kernel)
{
    for (size_t i = 0; i < s->known_count; i++)
        if (s->known[i].key == kernel->key && s->known[i].words == kernel->spirv_words)
            return s->known[i].pipeline;
    const VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = kernel->spirv_words * 4,
        .pCode = kernel->spirv,
    };
    VkShaderModule module = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;
    if (!grown(s, (void **)&s->known, s->known_count, &s->known_room, sizeof *s->known) ||
        !succeeds(s, vkCreateShaderModule(s->gpu.device, &code, NULL, &module), kernel->name))
        return VK_NULL_HANDLE;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = module,
            .pName = "main",
        },
        .layout = s->layout,
    };
    const VkResult result = vkCreateComputePipelines(s->gpu.device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline);
    vkDestroyShaderModule(s->gpu.device, module, NULL);
    if (succeeds(s, result, kernel->name))
        s->known[s->known_count++] = (Known){ kernel->key, kernel->spirv_words, pipeline };
    return pipeline;
}

/* --- what generated code calls ----------------------------------------------------------------------------------- */

static void *steps_room(burn_gpu_call *calls, size_t bytes)
{
    Steps *s = (Steps *)calls;
    return s->code == BURN_OK ? place_take(s, bytes, true) : NULL;
}

static void *bring(Steps *s, void *at, size_t bytes, bool in, bool back)
{
    if (at == NULL || (is_inside(s, at) && (uintptr_t)at % OPERAND_ALIGNMENT == 0))
        return at;
    void *copy = steps_room(&s->calls, bytes);
    if (copy != NULL && in && bytes > 0)
        memcpy(copy, at, bytes);
    if (copy == NULL || !back || !grown(s, (void **)&s->backs, s->back_count, &s->back_room, sizeof *s->backs))
        return copy;
    s->backs[s->back_count++] = (Back){ at, copy, bytes };
    return copy;
}

static void *steps_in(burn_gpu_call *calls, const void *at, size_t bytes)
{
    return bring((Steps *)calls, (void *)(uintptr_t)at, bytes, true, false);
}

static void *steps_out(burn_gpu_call *calls, void *at, size_t bytes)
{
    return bring((Steps *)calls, at, bytes, false, true);
}

static void *steps_both(burn_gpu_call *calls, void *at, size_t bytes)
{
    return bring((Steps *)calls, at, bytes, true, true);
}

static const unsigned char *steps_constants(burn_gpu_call *calls, const void *at, size_t bytes, uint64_t key)
{
    Steps *s = (Steps *)calls;
    for (size_t i = 0; i < s->constants_count; i++)
        if (s->constants[i].key == key && s->constants[i].bytes == bytes)
            return s->constants[i].at;
    if (at == NULL || s->code != BURN_OK ||
        !grown(s, (void **)&s->constants, s->constants_count, &s->constants_room, sizeof *s->constants))
        return NULL;
    unsigned char *copy = place_take(s, bytes, false);
    if (copy == NULL)
        return NULL;
    memcpy(copy, at, bytes);
    s->constants[s->constants_count++] = (Constants){ key, bytes, copy };
    return copy;
}

static void steps_dispatch(burn_gpu_call *calls, const burn_gpu_kernel *kernel, const uint32_t groups[3], int writes,
    int operands, const burn_gpu_operand *operand, int numbers, const uint32_t *number)
{
    Steps *s = (Steps *)calls;
    uint32_t push[PUSH_MAX];
    Range range[PUSH_MAX];
    if (s->code != BURN_OK || groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return;
    if (operands + numbers > PUSH_MAX) {
        failed(s, BURN_EINVAL, kernel->name, operands + numbers);
        return;
    }
    for (int i = 0; i < operands; i++) {
        const void *at = operand[i].at;
        if (i >= writes && !is_inside(s, at))
            at = steps_in(calls, at, operand[i].bytes);
        if (at == NULL)
            return;
        range[i] = range_of(s, at, operand[i].bytes, i < writes);
        if (range[i].to / operand[i].element > INT32_MAX) {
            failed(s, BURN_ELIMIT, kernel->name, i);
            return;
        }
        push[i] = (uint32_t)(range[i].from / operand[i].element);
    }
    for (int i = 0; i < numbers; i++)
        push[operands + i] = number[i];
    const VkPipeline pipeline = record(s) ? pipeline_of(s, kernel) : VK_NULL_HANDLE;
    if (pipeline == VK_NULL_HANDLE)
        return;
    touch(s, operands, range);
    vkCmdBindPipeline(s->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    if (operands + numbers > 0)
        vkCmdPushConstants(
            s->commands, s->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)(operands + numbers) * 4, push);
    vkCmdDispatch(s->commands, groups[0], groups[1], groups[2]);
}

static void steps_copy(burn_gpu_call *calls, void *to, const void *from, size_t bytes)
{
    Steps *s = (Steps *)calls;
    const Range ranges[2] = { range_of(s, to, bytes, true), range_of(s, from, bytes, false) };
    const VkBufferCopy region = { ranges[1].from, ranges[0].from, bytes };
    if (bytes == 0 || to == from || !record(s))
        return;
    touch(s, 2, ranges);
    vkCmdCopyBuffer(s->commands, s->buffer, s->buffer, 1, &region);
}

static void steps_zero(burn_gpu_call *calls, void *to, size_t bytes)
{
    Steps *s = (Steps *)calls;
    const Range range = range_of(s, to, bytes, true);
    if (bytes == 0)
        return;
    if (bytes % 4 || range.from % 4) { /* which the command does not do */
        if (steps_wait(calls) == BURN_OK)
            memset(to, 0, bytes);
        return;
    }
    if (!record(s))
        return;
    touch(s, 1, &range);
    vkCmdFillBuffer(s->commands, s->buffer, range.from, bytes, 0);
}

static void steps_put(burn_gpu_call *calls, void *to, const void *value, size_t bytes)
{
    Steps *s = (Steps *)calls;
    const Range range = range_of(s, to, bytes, true);
    if (bytes % 4 || range.from % 4) {
        if (steps_wait(calls) == BURN_OK)
            memcpy(to, value, bytes);
        return;
    }
    if (!record(s))
        return;
    touch(s, 1, &range);
    vkCmdUpdateBuffer(s->commands, s->buffer, range.from, bytes, value);
}

/* Two dispatches that have common counters have a barrier between them, like any that write the same bytes. */
static void *steps_counters(burn_gpu_call *calls, size_t words)
{
    Steps *s = (Steps *)calls;
    if (words > COUNTERS) {
        failed(s, BURN_ELIMIT, "too many counters", (int)(words >> 10));
        return NULL;
    }
    const size_t at = s->counters_next + words <= COUNTERS ? s->counters_next : 0;
    s->counters_next = at + words;
    return s->counters + at;
}

static int steps_end(burn_gpu_call *calls, int code)
{
    Steps *s = (Steps *)calls;
    const int own = steps_wait(calls);
    if (own != BURN_OK) { /* kernels may have stopped between counting and the end */
        vkDeviceWaitIdle(s->gpu.device);
        memset(s->counters, 0, COUNTERS * sizeof *s->counters);
    }
    for (size_t i = 0; own == BURN_OK && i < s->back_count; i++)
        memcpy(s->backs[i].to, s->backs[i].from, s->backs[i].bytes);
    s->back_count = 0;
    s->recording = false; /* after an error, too: what is recorded next begins anew */
    for (size_t i = 0; i < s->place_count; i++)
        if (s->places[i].temporary)
            place_give(s, &s->places[i]);
    places_join(s);
    pthread_mutex_unlock(&lock);
    return own != BURN_OK ? own : code;
}

static const burn_gpu_call steps_calls = {
    .in = steps_in,
    .out = steps_out,
    .both = steps_both,
    .room = steps_room,
    .constants = steps_constants,
    .dispatch = steps_dispatch,
    .copy = steps_copy,
    .zero = steps_zero,
    .put = steps_put,
    .counters = steps_counters,
    .wait = steps_wait,
    .end = steps_end,
};

int burn_gpu_begin(burn_gpu_call **out)
{
    *out = NULL;
    pthread_mutex_lock(&lock);
    const int code = steps_open();
    if (code != BURN_OK) {
        pthread_mutex_unlock(&lock);
        return code;
    }
    open_steps->code = BURN_OK;
    *out = &open_steps->calls;
    return BURN_OK;
}

/* --- the caller's memory ----------------------------------------------------------------------------------------- */

void *burn_gpu_memory(size_t bytes)
{
    unsigned char *memory = NULL;
    pthread_mutex_lock(&lock);
    if (steps_open() == BURN_OK) {
        open_steps->code = BURN_OK;
        memory = place_take(open_steps, bytes, false);
    }
    if (memory != NULL)
        memset(memory, 0, bytes);
    pthread_mutex_unlock(&lock);
    return memory;
}

void burn_gpu_memory_free(void *memory)
{
    pthread_mutex_lock(&lock);
    Steps *s = open_steps;
    for (size_t i = 0; s != NULL && memory != NULL && i < s->place_count; i++)
        if (s->map + s->places[i].at == (unsigned char *)memory)
            place_give(s, &s->places[i]);
    if (s != NULL)
        places_join(s);
    pthread_mutex_unlock(&lock);
}

void burn_gpu_usage(size_t *now, size_t *most)
{
    pthread_mutex_lock(&lock);
    *now = open_steps != NULL ? open_steps->used : 0;
    *most = open_steps != NULL ? open_steps->used_most : 0;
    pthread_mutex_unlock(&lock);
}

const char *burn_gpu_error(void) { return error_text; }

void burn_gpu_close(void)
{
    pthread_mutex_lock(&lock);
    if (open_steps != NULL)
        steps_free(open_steps);
    open_steps = NULL;
    pthread_mutex_unlock(&lock);
}
