// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Runs a burn_vk_program. In: SPIR-V kernels in levels, an arena of known size, weights. Out: sessions whose runs
// cost one submission. The one idea: everything is allocated and recorded at load time (two storage buffers, one
// descriptor set, one pipeline a kernel, one command buffer with a barrier between levels), so a run only copies
// inputs in, submits, waits and copies outputs out. Where the host reaches device memory (integrated GPUs, CPU
// devices) the arena itself is mapped and the copies touch it directly; elsewhere they go through an upload and a
// read-back buffer, and the transfers are part of the recorded commands.

#include "burn.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vulkan.h>

enum {
    SPIRV_MAGIC = 0x07230203,
    SPIRV_HEADER_WORDS = 5,
    PUSH_WORDS_MAX = 32,            /* 128 bytes: what every Vulkan device has */
    STAGING_ALIGN = 64,             /* a cache line, so that memcpy starts well */
    WEIGHTS_STAGING = 16 << 20,     /* weights travel in pieces of this size */
};

struct burn_vk {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    VkDeviceSize allocation_max; /* bytes of one allocation */
    bool is_shared;              /* host and device share their memory: map instead of copy */
    char error[256];
};

/* A buffer with memory of its own. */
typedef struct {
    VkBuffer buffer;
    VkDeviceMemory memory;
    unsigned char *map; /* NULL: out of the host's reach */
    bool is_coherent;
    bool is_cached; /* the host reads it at full speed */
} Block;

struct burn_vk_session {
    burn_vk *vk;
    const burn_vk_program *program;
    Block arena, weights;
    Block upload;   /* the inputs one after the other; unused if the arena is mapped */
    Block readback; /* the outputs likewise; unused if the arena is mapped and cached */
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkPipeline *pipelines; /* kernel_count; kernels with the same module hold the same one */
    VkCommandPool command_pool;
    VkCommandBuffer commands; /* one run */
    VkFence fence;
};

/* Preferred kinds of memory, best first; 0 ends a list. */
static const VkMemoryPropertyFlags memory_device[] = { VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0 };
static const VkMemoryPropertyFlags memory_shared[] = {
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
        VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    0,
};
static const VkMemoryPropertyFlags memory_upload[] = {
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    0,
};
static const VkMemoryPropertyFlags memory_readback[] = {
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    0,
};

/* --- errors ------------------------------------------------------------------------------------------------------ */

#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
static int vk_fail(burn_vk *vk, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(vk->error, sizeof vk->error, format, args);
    va_end(args);
    return code;
}

/* 0 for success, else the code for `result` with a text saying which call it was. */
static int vk_result(burn_vk *vk, VkResult result, const char *call)
{
    switch (result) {
    case VK_SUCCESS: return BURN_OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY: return vk_fail(vk, BURN_ENOMEM, "%s: out of host memory", call);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return vk_fail(vk, BURN_ENOMEM, "%s: out of device memory", call);
    case VK_ERROR_DEVICE_LOST: return vk_fail(vk, BURN_EDEVICE, "%s: the device was lost", call);
    default: return vk_fail(vk, BURN_EDEVICE, "%s failed: VkResult %d", call, (int)result);
    }
}

const char *burn_vk_last_error(const burn_vk *vk)
{
    return vk != NULL ? vk->error : "";
}

/* --- the device -------------------------------------------------------------------------------------------------- */

/* strstr, with the letters a-z and A-Z alike. */
static bool text_contains(const char *text, const char *part)
{
    for (;; text++) {
        size_t i = 0;
        while (part[i] != '\0') {
            int a = (unsigned char)text[i], b = (unsigned char)part[i];
            a += a >= 'A' && a <= 'Z' ? 'a' - 'A' : 0;
            b += b >= 'A' && b <= 'Z' ? 'a' - 'A' : 0;
            if (a != b)
                break;
            i++;
        }
        if (part[i] == '\0')
            return true;
        if (*text == '\0')
            return false;
    }
}

/* The first queue family that can compute, or UINT32_MAX. */
static uint32_t family_find(VkPhysicalDevice physical)
{
    VkQueueFamilyProperties families[32];
    uint32_t count = 32;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)
            return i;
    return UINT32_MAX;
}

/* How much we like a device if nobody named one; 0: unfit. */
static int device_rank(VkPhysicalDevice physical, const VkPhysicalDeviceProperties *properties)
{
    if (properties->apiVersion < VK_API_VERSION_1_2 || family_find(physical) == UINT32_MAX)
        return 0;
    switch (properties->deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 5;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 4;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 3;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 2;
    default: return 1;
    }
}

static int device_choose(burn_vk *vk, const char *name)
{
    uint32_t count = 0;
    if (vkEnumeratePhysicalDevices(vk->instance, &count, NULL) != VK_SUCCESS || count == 0)
        return vk_fail(vk, BURN_ENODEV, "there is no Vulkan device");
    VkPhysicalDevice *all = calloc(count, sizeof(VkPhysicalDevice));
    if (all == NULL)
        return vk_fail(vk, BURN_ENOMEM, "out of host memory");
    VkResult result = vkEnumeratePhysicalDevices(vk->instance, &count, all);
    int best = 0;
    for (uint32_t i = 0; i < count && (result == VK_SUCCESS || result == VK_INCOMPLETE); i++) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(all[i], &properties);
        int rank = device_rank(all[i], &properties);
        if (name != NULL && !text_contains(properties.deviceName, name))
            continue;
        if (rank > 0 && (best == 0 || (name == NULL && rank > best))) {
            best = rank;
            vk->physical = all[i];
            vk->properties = properties;
        }
    }
    free(all);
    if (best == 0)
        return vk_fail(vk, BURN_ENODEV, "no Vulkan 1.2 device is called \"%s\"", name != NULL ? name : "");
    vkGetPhysicalDeviceMemoryProperties(vk->physical, &vk->memory);
    vk->family = family_find(vk->physical);
    return BURN_OK;
}

/* Opens the chosen device with every feature on that kernels may use and the device has. */
static int device_create(burn_vk *vk)
{
    VkPhysicalDeviceVulkan12Features has12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES };
    VkPhysicalDeviceVulkan11Features has11 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &has12 };
    VkPhysicalDeviceFeatures2 has = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &has11 };
    vkGetPhysicalDeviceFeatures2(vk->physical, &has);
    VkPhysicalDeviceVulkan12Features use12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .storageBuffer8BitAccess = has12.storageBuffer8BitAccess,
        .shaderFloat16 = has12.shaderFloat16,
        .shaderInt8 = has12.shaderInt8,
        .scalarBlockLayout = has12.scalarBlockLayout,
        .shaderSubgroupExtendedTypes = has12.shaderSubgroupExtendedTypes,
        .vulkanMemoryModel = has12.vulkanMemoryModel,
        .vulkanMemoryModelDeviceScope = has12.vulkanMemoryModelDeviceScope,
    };
    VkPhysicalDeviceVulkan11Features use11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &use12,
        .storageBuffer16BitAccess = has11.storageBuffer16BitAccess,
    };
    VkPhysicalDeviceFeatures2 use = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &use11,
        .features = {
            .shaderFloat64 = has.features.shaderFloat64,
            .shaderInt64 = has.features.shaderInt64,
            .shaderInt16 = has.features.shaderInt16,
        },
    };
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = vk->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &use,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
    };
    int rc = vk_result(vk, vkCreateDevice(vk->physical, &info, NULL, &vk->device), "vkCreateDevice");
    if (rc != BURN_OK)
        return rc;
    vkGetDeviceQueue(vk->device, vk->family, 0, &vk->queue);
    return BURN_OK;
}

int burn_vk_open(burn_vk **out, const char *device)
{
    if (out == NULL)
        return BURN_EINVAL;
    *out = NULL;
    if (device == NULL)
        device = getenv("BURN_VK_DEVICE");
    if (device != NULL && device[0] == '\0')
        device = NULL;
    burn_vk *vk = calloc(1, sizeof *vk);
    if (vk == NULL)
        return BURN_ENOMEM;
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "burncc",
        .apiVersion = VK_API_VERSION_1_2,
    };
    VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application };
    VkResult result = vkCreateInstance(&info, NULL, &vk->instance);
    int rc = result == VK_ERROR_INCOMPATIBLE_DRIVER ? BURN_ENODEV : vk_result(vk, result, "vkCreateInstance");
    if (rc != BURN_OK)
        goto fail;
    rc = device_choose(vk, device);
    if (rc != BURN_OK)
        goto fail;
    VkPhysicalDeviceVulkan11Properties properties11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES
    };
    VkPhysicalDeviceProperties2 properties = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &properties11 };
    vkGetPhysicalDeviceProperties2(vk->physical, &properties);
    vk->allocation_max = properties11.maxMemoryAllocationSize;
    const char *staging = getenv("BURN_VK_STAGING");
    vk->is_shared = (vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                     vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) &&
                    (staging == NULL || staging[0] == '\0');
    rc = device_create(vk);
    if (rc != BURN_OK)
        goto fail;
    *out = vk;
    return BURN_OK;
fail:
    burn_vk_close(vk);
    return rc;
}

const char *burn_vk_device_name(const burn_vk *vk)
{
    return vk != NULL ? vk->properties.deviceName : "";
}

void burn_vk_close(burn_vk *vk)
{
    if (vk == NULL)
        return;
    if (vk->device != VK_NULL_HANDLE)
        vkDestroyDevice(vk->device, NULL);
    if (vk->instance != VK_NULL_HANDLE)
        vkDestroyInstance(vk->instance, NULL);
    free(vk);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void block_destroy(burn_vk *vk, Block *block)
{
    vkDestroyBuffer(vk->device, block->buffer, NULL);
    vkFreeMemory(vk->device, block->memory, NULL); /* unmaps too */
    memset(block, 0, sizeof *block);
}

/* Memory for `block` of the first kind in `kinds` that exists and has room. */
static int block_allocate(burn_vk *vk, Block *block, const VkMemoryPropertyFlags *kinds)
{
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(vk->device, block->buffer, &needs);
    if (needs.size > vk->allocation_max)
        return vk_fail(vk, BURN_ELIMIT, "a buffer of %llu bytes: %s allocates %llu at most",
            (unsigned long long)needs.size, vk->properties.deviceName, (unsigned long long)vk->allocation_max);
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    for (; *kinds != 0; kinds++) {
        for (uint32_t type = 0; type < vk->memory.memoryTypeCount; type++) {
            VkMemoryPropertyFlags flags = vk->memory.memoryTypes[type].propertyFlags;
            if ((needs.memoryTypeBits >> type & 1) == 0 || (flags & *kinds) != *kinds)
                continue;
            VkMemoryAllocateInfo info = {
                .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                .allocationSize = needs.size,
                .memoryTypeIndex = type,
            };
            result = vkAllocateMemory(vk->device, &info, NULL, &block->memory);
            if (result != VK_SUCCESS)
                continue;
            block->is_coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
            block->is_cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
            void *map = NULL;
            if (*kinds & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
                result = vkMapMemory(vk->device, block->memory, 0, VK_WHOLE_SIZE, 0, &map);
            block->map = map;
            return vk_result(vk, result, "vkMapMemory");
        }
    }
    return vk_result(vk, result, "vkAllocateMemory");
}

/* After an error the block may be half made; block_destroy() takes it. */
static int block_create(
    burn_vk *vk, Block *block, size_t bytes, VkBufferUsageFlags usage, const VkMemoryPropertyFlags *kinds) {
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = bytes < STAGING_ALIGN ? STAGING_ALIGN : bytes,
        .usage = usage | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    int rc = vk_result(vk, vkCreateBuffer(vk->device, &info, NULL, &block->buffer), "vkCreateBuffer");
    if (rc == BURN_OK)
        rc = block_allocate(vk, block, kinds);
    if (rc == BURN_OK)
        rc = vk_result(vk, vkBindBufferMemory(vk->device, block->buffer, block->memory, 0), "vkBindBufferMemory");
    return rc;
}

/* Where tensor `i` of `ios` lies in its staging buffer; at `count`, the size of that buffer. */
static size_t staging_offset(const burn_vk_io *ios, int i)
{
    size_t offset = 0;
    for (int k = 0; k < i; k++)
        offset += (ios[k].tensor.bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
    return offset;
}

static int session_allocate(burn_vk_session *s)
{
    const burn_vk_program *p = s->program;
    const VkMemoryPropertyFlags *kinds = s->vk->is_shared ? memory_shared : memory_device;
    int rc = block_create(s->vk, &s->arena, p->arena_bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, kinds);
    if (rc == BURN_OK)
        rc = block_create(s->vk, &s->weights, p->weights_bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, kinds);
    if (rc == BURN_OK && s->arena.map == NULL)
        rc = block_create(s->vk, &s->upload, staging_offset(p->inputs, p->input_count), 0, memory_upload);
    if (rc == BURN_OK && (s->arena.map == NULL || !s->arena.is_cached))
        rc = block_create(s->vk, &s->readback, staging_offset(p->outputs, p->output_count), 0, memory_readback);
    return rc;
}

/* --- commands ---------------------------------------------------------------------------------------------------- */

/* What the commands of these stages write, or do to memory at all. */
static VkAccessFlags stage_access(VkPipelineStageFlags stages, bool writes_only)
{
    VkAccessFlags access = 0;
    if (stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT)
        access |= VK_ACCESS_SHADER_WRITE_BIT | (writes_only ? 0 : VK_ACCESS_SHADER_READ_BIT);
    if (stages & VK_PIPELINE_STAGE_TRANSFER_BIT)
        access |= VK_ACCESS_TRANSFER_WRITE_BIT | (writes_only ? 0 : VK_ACCESS_TRANSFER_READ_BIT);
    if (stages & VK_PIPELINE_STAGE_HOST_BIT)
        access |= VK_ACCESS_HOST_READ_BIT;
    return access;
}

static void command_barrier(VkCommandBuffer commands, VkPipelineStageFlags before, VkPipelineStageFlags after)
{
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = stage_access(before, true),
        .dstAccessMask = stage_access(after, false),
    };
    vkCmdPipelineBarrier(commands, before, after, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static void command_copy(
    VkCommandBuffer commands, const Block *from, size_t from_offset, const Block *to, size_t to_offset, size_t bytes) {
    VkBufferCopy region = { .srcOffset = from_offset, .dstOffset = to_offset, .size = bytes };
    if (bytes > 0)
        vkCmdCopyBuffer(commands, from->buffer, to->buffer, 1, &region);
}

/* Submits the session's commands and waits for their end. */
static int session_submit(burn_vk_session *s)
{
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &s->commands,
    };
    int rc = vk_result(s->vk, vkResetFences(s->vk->device, 1, &s->fence), "vkResetFences");
    if (rc == BURN_OK)
        rc = vk_result(s->vk, vkQueueSubmit(s->vk->queue, 1, &info, s->fence), "vkQueueSubmit");
    if (rc == BURN_OK)
        rc = vk_result(s->vk, vkWaitForFences(s->vk->device, 1, &s->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    return rc;
}

static int session_begin(burn_vk_session *s)
{
    VkCommandBufferBeginInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
    return vk_result(s->vk, vkBeginCommandBuffer(s->commands, &info), "vkBeginCommandBuffer");
}

static int session_create_commands(burn_vk_session *s)
{
    burn_vk *vk = s->vk;
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = vk->family,
    };
    int rc = vk_result(vk, vkCreateCommandPool(vk->device, &pool, NULL, &s->command_pool), "vkCreateCommandPool");
    if (rc != BURN_OK)
        return rc;
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = s->command_pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    rc = vk_result(vk, vkAllocateCommandBuffers(vk->device, &commands, &s->commands), "vkAllocateCommandBuffers");
    if (rc != BURN_OK)
        return rc;
    VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    return vk_result(vk, vkCreateFence(vk->device, &fence, NULL, &s->fence), "vkCreateFence");
}

/* Weights go straight into mapped memory, or in pieces through a staging buffer that lives only here. */
static int session_upload_weights(burn_vk_session *s, const unsigned char *weights)
{
    size_t total = s->program->weights_bytes;
    if (total == 0)
        return BURN_OK;
    if (s->weights.map != NULL) {
        memcpy(s->weights.map, weights, total);
        return BURN_OK;
    }
    Block staging = { 0 };
    size_t piece = total < WEIGHTS_STAGING ? total : WEIGHTS_STAGING;
    int rc = block_create(s->vk, &staging, piece, 0, memory_upload);
    for (size_t at = 0; rc == BURN_OK && at < total; at += piece) {
        piece = total - at < piece ? total - at : piece;
        memcpy(staging.map, weights + at, piece);
        rc = session_begin(s);
        if (rc != BURN_OK)
            break;
        command_copy(s->commands, &staging, 0, &s->weights, at, piece);
        rc = vk_result(s->vk, vkEndCommandBuffer(s->commands), "vkEndCommandBuffer");
        if (rc == BURN_OK)
            rc = session_submit(s);
    }
    block_destroy(s->vk, &staging);
    return rc;
}

/* All kernels, with a barrier between two levels. times: query 0 is the time at which they begin; with `each`, which
 * lets them run one at a time, query k + 1 the time at which kernel k has ended, else query 1 that of the last. */
static void command_kernels(burn_vk_session *s, VkQueryPool times, bool each)
{
    const burn_vk_program *p = s->program;
    const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    const size_t count = p->kernel_count;
    vkCmdBindDescriptorSets(s->commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->layout, 0, 1, &s->set, 0, NULL);
    if (times != VK_NULL_HANDLE)
        vkCmdWriteTimestamp(s->commands, compute, times, 0);
    for (size_t k = 0; k < count; k++) {
        const burn_vk_kernel *kernel = &p->kernels[k];
        if (k > 0 && (each || kernel->level != p->kernels[k - 1].level))
            command_barrier(s->commands, compute, compute);
        vkCmdBindPipeline(s->commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->pipelines[k]);
        if (kernel->push_words > 0)
            vkCmdPushConstants(
                s->commands, s->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->push_words * 4, kernel->push);
        vkCmdDispatch(s->commands, kernel->groups[0], kernel->groups[1], kernel->groups[2]);
        if (times != VK_NULL_HANDLE && (each || k + 1 == count))
            vkCmdWriteTimestamp(s->commands, compute, times, each ? (uint32_t)k + 1 : 1);
    }
}

/* One run: inputs in, the levels with a barrier between two, outputs out. The first barrier orders it after
 * whatever ran before (the previous run, the upload of the weights). */
static int session_record(burn_vk_session *s)
{
    const burn_vk_program *p = s->program;
    const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
    int rc = session_begin(s);
    if (rc != BURN_OK)
        return rc;
    command_barrier(s->commands, compute | transfer, compute | transfer);
    if (s->upload.buffer != VK_NULL_HANDLE) {
        for (int i = 0; i < p->input_count; i++)
            command_copy(s->commands, &s->upload, staging_offset(p->inputs, i), &s->arena, p->inputs[i].offset,
                         p->inputs[i].tensor.bytes);
        command_barrier(s->commands, transfer, compute | transfer);
    }
    command_kernels(s, VK_NULL_HANDLE, false);
    if (s->readback.buffer != VK_NULL_HANDLE) {
        command_barrier(s->commands, compute | transfer, transfer);
        for (int i = 0; i < p->output_count; i++)
            command_copy(s->commands, &s->arena, p->outputs[i].offset, &s->readback, staging_offset(p->outputs, i),
                         p->outputs[i].tensor.bytes);
    }
    command_barrier(s->commands, compute | transfer, VK_PIPELINE_STAGE_HOST_BIT);
    return vk_result(s->vk, vkEndCommandBuffer(s->commands), "vkEndCommandBuffer");
}

/* --- pipelines --------------------------------------------------------------------------------------------------- */

static int session_create_layout(burn_vk_session *s)
{
    burn_vk *vk = s->vk;
    VkDescriptorSetLayoutBinding bindings[2];
    memset(bindings, 0, sizeof bindings);
    for (uint32_t i = 0; i < 2; i++) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    int rc = vk_result(
        vk, vkCreateDescriptorSetLayout(vk->device, &set, NULL, &s->set_layout), "vkCreateDescriptorSetLayout");
    if (rc != BURN_OK)
        return rc;
    VkPushConstantRange push = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = PUSH_WORDS_MAX * 4 };
    VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &s->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    return vk_result(vk, vkCreatePipelineLayout(vk->device, &layout, NULL, &s->layout), "vkCreatePipelineLayout");
}

/* The descriptor set: binding 0 is the arena, binding 1 the weights. */
static int session_bind_blocks(burn_vk_session *s)
{
    burn_vk *vk = s->vk;
    VkDescriptorPoolSize size = { .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 2 };
    VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    int rc = vk_result(vk, vkCreateDescriptorPool(vk->device, &pool, NULL, &s->descriptors), "vkCreateDescriptorPool");
    if (rc != BURN_OK)
        return rc;
    VkDescriptorSetAllocateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = s->descriptors,
        .descriptorSetCount = 1,
        .pSetLayouts = &s->set_layout,
    };
    rc = vk_result(vk, vkAllocateDescriptorSets(vk->device, &set, &s->set), "vkAllocateDescriptorSets");
    if (rc != BURN_OK)
        return rc;
    const VkDescriptorBufferInfo buffers[2] = {
        { .buffer = s->arena.buffer, .offset = 0, .range = VK_WHOLE_SIZE },
        { .buffer = s->weights.buffer, .offset = 0, .range = VK_WHOLE_SIZE },
    };
    VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = s->set,
        .dstBinding = 0, /* the second buffer goes on to binding 1 */
        .descriptorCount = 2,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = buffers,
    };
    vkUpdateDescriptorSets(vk->device, 1, &write, 0, NULL);
    return BURN_OK;
}

/* The first kernel with the module of kernel k. */
static size_t kernel_first(const burn_vk_program *p, size_t k)
{
    size_t first = 0;
    while (p->kernels[first].spirv != p->kernels[k].spirv)
        first++;
    return first;
}

static int session_create_pipeline(burn_vk_session *s, size_t k)
{
    burn_vk *vk = s->vk;
    const burn_vk_kernel *kernel = &s->program->kernels[k];
    size_t first = kernel_first(s->program, k);
    if (first < k) {
        s->pipelines[k] = s->pipelines[first];
        return BURN_OK;
    }
    VkShaderModule module = VK_NULL_HANDLE;
    VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = kernel->spirv_words * 4,
        .pCode = kernel->spirv,
    };
    int rc = vk_result(vk, vkCreateShaderModule(vk->device, &code, NULL, &module), kernel->name);
    if (rc != BURN_OK)
        return rc;
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = module,
            .pName = "main",
        },
        .layout = s->layout,
    };
    rc = vk_result(
        vk, vkCreateComputePipelines(vk->device, VK_NULL_HANDLE, 1, &info, NULL, &s->pipelines[k]), kernel->name);
    vkDestroyShaderModule(vk->device, module, NULL);
    return rc;
}

/* --- sessions ---------------------------------------------------------------------------------------------------- */

static int ios_check(burn_vk *vk, const burn_vk_program *p, const burn_vk_io *ios, int count, const char *what)
{
    if (count < 0 || (count > 0 && ios == NULL))
        return vk_fail(vk, BURN_EINVAL, "program without %ss", what);
    for (int i = 0; i < count; i++)
        if (ios[i].tensor.bytes > p->arena_bytes || ios[i].offset > p->arena_bytes - ios[i].tensor.bytes)
            return vk_fail(vk, BURN_EINVAL, "%s %d \"%s\" does not lie in the arena", what, i,
                ios[i].tensor.name != NULL ? ios[i].tensor.name : "");
    return BURN_OK;
}

static int kernel_check(burn_vk *vk, const burn_vk_program *p, size_t k)
{
    const burn_vk_kernel *kernel = &p->kernels[k];
    const char *name = kernel->name;
    if (name == NULL)
        return vk_fail(vk, BURN_EINVAL, "kernel %lu has no name", (unsigned long)k);
    if (kernel->spirv == NULL || kernel->spirv_words < SPIRV_HEADER_WORDS || kernel->spirv[0] != SPIRV_MAGIC)
        return vk_fail(vk, BURN_EINVAL, "kernel \"%s\" has no SPIR-V module", name);
    if (kernel->push_words > PUSH_WORDS_MAX || (kernel->push_words > 0 && kernel->push == NULL))
        return vk_fail(vk, BURN_EINVAL, "kernel \"%s\": bad push constants", name);
    if (k > 0 && kernel->level < p->kernels[k - 1].level)
        return vk_fail(vk, BURN_EINVAL, "kernel \"%s\" is of level %lu, after one of level %lu", name,
                       (unsigned long)kernel->level, (unsigned long)p->kernels[k - 1].level);
    for (int axis = 0; axis < 3; axis++) {
        uint32_t limit = vk->properties.limits.maxComputeWorkGroupCount[axis];
        if (kernel->groups[axis] == 0)
            return vk_fail(vk, BURN_EINVAL, "kernel \"%s\" has no groups along axis %d", name, axis);
        if (kernel->groups[axis] > limit)
            return vk_fail(vk, BURN_ELIMIT, "kernel \"%s\" has %lu groups along axis %d: %s takes %lu", name,
                           (unsigned long)kernel->groups[axis], axis, vk->properties.deviceName, (unsigned long)limit);
    }
    return BURN_OK;
}

static int program_check(burn_vk *vk, const burn_vk_program *p)
{
    if (p->version < 1)
        return vk_fail(vk, BURN_EINVAL, "a program of version %d", p->version);
    if (p->kernel_count > 0 && p->kernels == NULL)
        return vk_fail(vk, BURN_EINVAL, "program without kernels");
    size_t limit = vk->properties.limits.maxStorageBufferRange;
    size_t most = p->arena_bytes > p->weights_bytes ? p->arena_bytes : p->weights_bytes;
    if (most > limit)
        return vk_fail(vk, BURN_ELIMIT, "the %s take %lu bytes: a buffer of %s has %lu at most",
            most == p->arena_bytes ? "activations" : "weights", (unsigned long)most, vk->properties.deviceName,
            (unsigned long)limit);
    int rc = ios_check(vk, p, p->inputs, p->input_count, "input");
    if (rc == BURN_OK)
        rc = ios_check(vk, p, p->outputs, p->output_count, "output");
    for (size_t k = 0; rc == BURN_OK && k < p->kernel_count; k++)
        rc = kernel_check(vk, p, k);
    return rc;
}

int burn_vk_load(burn_vk *vk, const burn_vk_program *program, const void *weights, burn_vk_session **out)
{
    if (out == NULL)
        return BURN_EINVAL;
    *out = NULL;
    if (vk == NULL)
        return BURN_EINVAL;
    if (program == NULL || (weights == NULL && program->weights_bytes > 0))
        return vk_fail(vk, BURN_EINVAL, "burn_vk_load: no program, or no weights for one that wants them");
    int rc = program_check(vk, program);
    if (rc != BURN_OK)
        return rc;
    burn_vk_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return vk_fail(vk, BURN_ENOMEM, "out of host memory");
    s->vk = vk;
    s->program = program;
    s->pipelines = calloc(program->kernel_count + 1, sizeof(VkPipeline));
    if (s->pipelines == NULL) {
        rc = vk_fail(vk, BURN_ENOMEM, "out of host memory");
        goto fail;
    }
    rc = session_allocate(s);
    if (rc == BURN_OK)
        rc = session_create_commands(s);
    if (rc == BURN_OK)
        rc = session_upload_weights(s, weights);
    if (rc == BURN_OK)
        rc = session_create_layout(s);
    if (rc == BURN_OK)
        rc = session_bind_blocks(s);
    for (size_t k = 0; rc == BURN_OK && k < program->kernel_count; k++)
        rc = session_create_pipeline(s, k);
    if (rc == BURN_OK)
        rc = session_record(s);
    if (rc != BURN_OK)
        goto fail;
    *out = s;
    return BURN_OK;
fail:
    burn_vk_session_free(s);
    return rc;
}

static int tensors_check(burn_vk *vk, const burn_vk_io *ios, const burn_tensor *tensors, int count, int output)
{
    for (int i = 0; i < count; i++) {
        const int rc = tensors != NULL ? burn_tensor_check(&ios[i].tensor, &tensors[i], output) : BURN_EINVAL;
        if (rc != BURN_OK && (tensors == NULL || ios[i].tensor.bytes > 0 || rc != BURN_EINVAL))
            return vk_fail(vk, rc, "burn_vk_run: %s %d \"%s\": %s", output ? "output" : "input", i,
                ios[i].tensor.name != NULL ? ios[i].tensor.name : "", burn_strerror(rc));
    }
    return BURN_OK;
}

static void give_shape(const burn_tensor_info *info, const burn_tensor *to)
{
    for (int d = 0; to->shape != NULL && d < info->rank; d++)
        to->shape[d] = info->shape[d];
}

int burn_vk_run(burn_vk_session *s, const burn_tensor *inputs, const burn_tensor *outputs)
{
    if (s == NULL)
        return BURN_EINVAL;
    const burn_vk_program *p = s->program;
    int rc = tensors_check(s->vk, p->inputs, inputs, p->input_count, 0);
    if (rc == BURN_OK)
        rc = tensors_check(s->vk, p->outputs, outputs, p->output_count, 1);
    if (rc != BURN_OK)
        return rc;

    for (int i = 0; i < p->input_count; i++) {
        unsigned char *to = s->arena.map != NULL ? s->arena.map + p->inputs[i].offset
                                                 : s->upload.map + staging_offset(p->inputs, i);
        if (p->inputs[i].tensor.bytes > 0)
            memcpy(to, inputs[i].data, p->inputs[i].tensor.bytes);
    }
    rc = session_submit(s);
    if (rc != BURN_OK)
        return rc;
    bool is_staged = s->readback.map != NULL;
    if (is_staged && !s->readback.is_coherent) {
        VkMappedMemoryRange range = {
            .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
            .memory = s->readback.memory,
            .size = VK_WHOLE_SIZE,
        };
        rc = vk_result(
            s->vk, vkInvalidateMappedMemoryRanges(s->vk->device, 1, &range), "vkInvalidateMappedMemoryRanges");
        if (rc != BURN_OK)
            return rc;
    }
    for (int i = 0; i < p->output_count; i++) {
        const unsigned char *from = is_staged ? s->readback.map + staging_offset(p->outputs, i)
                                              : s->arena.map + p->outputs[i].offset;
        if (p->outputs[i].tensor.bytes > 0)
            memcpy(outputs[i].data, from, p->outputs[i].tensor.bytes);
        give_shape(&p->outputs[i].tensor, &outputs[i]);
    }
    return BURN_OK;
}

/* Submits the kernels with a clock around them, into ticks[0..count]. */
static int session_time(burn_vk_session *s, VkQueryPool times, bool each, uint32_t count, uint64_t *ticks)
{
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    int rc = session_begin(s);
    if (rc != BURN_OK)
        return rc;
    vkCmdResetQueryPool(s->commands, times, 0, count + 1);
    command_barrier(s->commands, all, all);
    command_kernels(s, times, each);
    rc = vk_result(s->vk, vkEndCommandBuffer(s->commands), "vkEndCommandBuffer");
    if (rc == BURN_OK)
        rc = session_submit(s);
    if (rc == BURN_OK)
        rc = vk_result(s->vk,
            vkGetQueryPoolResults(s->vk->device, times, 0, count + 1, (count + 1) * sizeof *ticks, ticks, sizeof *ticks,
                VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
            "vkGetQueryPoolResults");
    return rc;
}

int burn_vk_time(burn_vk_session *s, double *run_ms, double *kernel_ms)
{
    if (s == NULL || run_ms == NULL || kernel_ms == NULL)
        return BURN_EINVAL;
    burn_vk *vk = s->vk;
    const uint32_t count = (uint32_t)s->program->kernel_count;
    *run_ms = 0;
    if (count == 0)
        return BURN_OK;
    if (!vk->properties.limits.timestampComputeAndGraphics)
        return vk_fail(vk, BURN_ELIMIT, "%s has no clock for kernels", vk->properties.deviceName);
    const double tick = 1e-6 * (double)vk->properties.limits.timestampPeriod;
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = count + 1,
    };
    VkQueryPool times = VK_NULL_HANDLE;
    uint64_t *ticks = malloc((count + 1) * sizeof *ticks);
    if (ticks == NULL)
        return vk_fail(vk, BURN_ENOMEM, "out of host memory");
    int rc = vk_result(vk, vkCreateQueryPool(vk->device, &info, NULL, &times), "vkCreateQueryPool");
    if (rc == BURN_OK)
        rc = session_time(s, times, false, 1, ticks);
    if (rc == BURN_OK) {
        *run_ms = tick * (double)(ticks[1] - ticks[0]);
        rc = session_time(s, times, true, count, ticks);
    }
    for (uint32_t k = 0; rc == BURN_OK && k < count; k++)
        kernel_ms[k] = tick * (double)(ticks[k + 1] - ticks[k]);
    vkDestroyQueryPool(vk->device, times, NULL);
    free(ticks);
    const int again = session_record(s); /* the commands of a run */
    return rc != BURN_OK ? rc : again;
}

void burn_vk_session_free(burn_vk_session *s)
{
    if (s == NULL)
        return;
    VkDevice device = s->vk->device;
    vkDestroyFence(device, s->fence, NULL);
    vkDestroyCommandPool(device, s->command_pool, NULL); /* its command buffer goes with it */
    for (size_t k = 0; s->pipelines != NULL && k < s->program->kernel_count; k++)
        if (kernel_first(s->program, k) == k)
            vkDestroyPipeline(device, s->pipelines[k], NULL);
    free(s->pipelines);
    vkDestroyDescriptorPool(device, s->descriptors, NULL);
    vkDestroyPipelineLayout(device, s->layout, NULL);
    vkDestroyDescriptorSetLayout(device, s->set_layout, NULL);
    block_destroy(s->vk, &s->readback);
    block_destroy(s->vk, &s->upload);
    block_destroy(s->vk, &s->weights);
    block_destroy(s->vk, &s->arena);
    free(s);
}
