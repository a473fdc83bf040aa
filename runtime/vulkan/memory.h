// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: memory of the device, and how the host writes and reads it.

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
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    0,
};

static void memory_count(burn_vk *vk, VkDeviceSize more, VkDeviceSize less)
{
    pthread_mutex_lock(&vk->lock);
    vk->allocated += more - less;
    if (vk->allocated > vk->allocated_most)
        vk->allocated_most = vk->allocated;
    pthread_mutex_unlock(&vk->lock);
}

static void block_destroy(burn_vk *vk, Block *block)
{
    vkDestroyBuffer(vk->device, block->buffer, NULL);
    vkFreeMemory(vk->device, block->memory, NULL); /* unmaps too */
    memory_count(vk, 0, block->bytes);
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
            if (result != VK_SUCCESS) {
                block->memory = VK_NULL_HANDLE;
                continue;
            }
            block->bytes = needs.size;
            memory_count(vk, needs.size, 0);
            block->is_coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
            block->is_cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
            void *map = NULL;
            if (*kinds & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
                result = vkMapMemory(vk->device, block->memory, 0, VK_WHOLE_SIZE, 0, &map);
            block->map = result == VK_SUCCESS ? map : NULL;
            return vk_result(vk, result, "vkMapMemory");
        }
    }
    return vk_fail(vk, vk_result(vk, result, "vkAllocateMemory"), "%llu bytes: %s", (unsigned long long)needs.size,
        result == VK_ERROR_DEVICE_LOST ? "the device was lost" : "memory ran out");
}

/* After an error there is nothing in the block. */
static int block_create(
    burn_vk *vk, Block *block, size_t bytes, VkBufferUsageFlags usage, const VkMemoryPropertyFlags *kinds)
{
    const uint32_t families[] = { vk->work.family, vk->carrier.family };
    const bool is_concurrent = families[0] != families[1];
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = bytes > BLOCK_ALIGN ? (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN : BLOCK_ALIGN,
        .usage = usage | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = is_concurrent ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
        .queueFamilyIndexCount = is_concurrent ? 2 : 0,
        .pQueueFamilyIndices = families,
    };
    memset(block, 0, sizeof *block);
    VkResult result = vkCreateBuffer(vk->device, &info, NULL, &block->buffer);
    if (result != VK_SUCCESS) {
        block->buffer = VK_NULL_HANDLE;
        return vk_result(vk, result, "vkCreateBuffer");
    }
    int rc = block_allocate(vk, block, kinds);
    if (rc == BURN_OK)
        rc = vk_result(vk, vkBindBufferMemory(vk->device, block->buffer, block->memory, 0), "vkBindBufferMemory");
    if (rc != BURN_OK)
        block_destroy(vk, block);
    return rc;
}

/* Storage that kernels work on. */
static int block_create_storage(burn_vk *vk, Block *block, size_t bytes)
{
    return block_create(
        vk, block, bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, vk->is_shared ? memory_shared : memory_device);
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

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
    VkCommandBuffer commands, VkBuffer from, size_t from_offset, VkBuffer to, size_t to_offset, size_t bytes)
{
    VkBufferCopy region = { .srcOffset = from_offset, .dstOffset = to_offset, .size = bytes };
    if (bytes > 0)
        vkCmdCopyBuffer(commands, from, to, 1, &region);
}

static int commands_begin(burn_vk *vk, VkCommandBuffer commands)
{
    VkCommandBufferBeginInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
    return vk_result(vk, vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
}

/* After an error there is no pool. */
static int commands_create(burn_vk *vk, const Lane *lane, uint32_t count, VkCommandPool *pool, VkCommandBuffer *out)
{
    const int rc = vk_result(vk, commands_make(vk->device, lane->family, count, pool, out), "a pool of commands");
    if (rc != BURN_OK) {
        vkDestroyCommandPool(vk->device, *pool, NULL);
        *pool = VK_NULL_HANDLE;
    }
    return rc;
}

/* --- copies beside runs ------------------------------------------------------------------------------------------- */

static void courier_close(burn_vk *vk, Courier *c)
{
    clock_settle(vk, &c->clock);
    vkDestroySemaphore(vk->device, c->clock.timeline, NULL);
    vkDestroyCommandPool(vk->device, c->pool, NULL); /* its command buffer goes with it */
    block_destroy(vk, &c->staging);
    c->clock = (Clock){ VK_NULL_HANDLE, 0, 0 };
    c->pool = VK_NULL_HANDLE;
}

static void couriers_close(burn_vk *vk)
{
    courier_close(vk, &vk->courier);
    courier_close(vk, &vk->loader);
}

/* The staging memory comes last: where it is, all is. */
static int courier_open(burn_vk *vk, Courier *c)
{
    if (c->staging.map != NULL)
        return BURN_OK;
    int rc = clock_create(vk, &c->clock);
    if (rc == BURN_OK)
        rc = commands_create(vk, c->lane, 1, &c->pool, &c->commands);
    if (rc == BURN_OK)
        rc = block_create(vk, &c->staging, PIECE, 0, memory_readback);
    if (rc != BURN_OK)
        courier_close(vk, c);
    return rc;
}

/* A piece between staging memory and `buffer`, ordered behind all that its queue was given before. */
static int courier_carry(burn_vk *vk, Courier *c, VkBuffer buffer, size_t offset, size_t bytes, bool in)
{
    const VkPipelineStageFlags work = c->lane->stages;
    int rc = commands_begin(vk, c->commands);
    if (rc != BURN_OK)
        return rc;
    command_barrier(c->commands, work, VK_PIPELINE_STAGE_TRANSFER_BIT);
    if (in) {
        command_copy(c->commands, c->staging.buffer, 0, buffer, offset, bytes);
        command_barrier(c->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, work);
    } else {
        command_copy(c->commands, buffer, offset, c->staging.buffer, 0, bytes);
        command_barrier(c->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
    }
    rc = vk_result(vk, vkEndCommandBuffer(c->commands), "vkEndCommandBuffer");
    if (rc == BURN_OK)
        rc = clock_submit(vk, c->lane, &c->clock, c->commands, NULL, 0, NULL, 0);
    if (rc == BURN_OK)
        rc = clock_wait(vk, &c->clock);
    clock_settle(vk, &c->clock);
    return rc;
}

/* What was copied by another queue is there for whatever kernels' queue is given from now on. */
static int courier_hand_over(burn_vk *vk, Courier *c)
{
    const burn_vk_semaphore copied = { c->clock.timeline, c->clock.tick };
    if (c->lane->family == vk->work.family)
        return BURN_OK;
    return clock_submit(vk, &vk->work, &c->clock, VK_NULL_HANDLE, &copied, 1, NULL, 0);
}

/* Copies to or from `block`: by the host where it reaches it (and reads it at speed), else in pieces. */
static int block_copy(burn_vk *vk, Courier *c, const Block *block, size_t offset, void *data, size_t bytes, bool in)
{
    unsigned char *host = data;
    if (block->map != NULL && (in || block->is_cached)) {
        porters_copy(vk, in ? block->map + offset : host, in ? host : block->map + offset, bytes);
        return BURN_OK;
    }
    if (bytes == 0)
        return BURN_OK;
    pthread_mutex_lock(&c->lock);
    int rc = courier_open(vk, c);
    clock_settle(vk, &c->clock); /* what was handed over last time */
    for (size_t at = 0, piece; rc == BURN_OK && at < bytes; at += piece) {
        piece = bytes - at < PIECE ? bytes - at : PIECE;
        if (in)
            porters_copy(vk, c->staging.map, host + at, piece);
        rc = courier_carry(vk, c, block->buffer, offset + at, piece, in);
        if (rc == BURN_OK && !in)
            porters_copy(vk, host + at, c->staging.map, piece);
    }
    if (rc == BURN_OK)
        rc = courier_hand_over(vk, c);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

static int buffer_new(burn_vk *vk, size_t bytes, bool on_host, burn_vk_buffer **out)
{
    if (out == NULL)
        return BURN_EINVAL;
    *out = NULL;
    if (vk == NULL || bytes == 0)
        return vk_fail(vk, BURN_EINVAL, "a buffer: no device, or no bytes");
    burn_vk_buffer *b = calloc(1, sizeof *b);
    if (b == NULL)
        return vk_no_memory(vk);
    b->vk = vk;
    b->bytes = bytes;
    b->is_host = on_host;
    int rc = on_host ? block_create(vk, &b->block, bytes, 0, memory_readback) :
                       block_create_storage(vk, &b->block, bytes);
    if (rc == BURN_OK)
        *out = b;
    else
        free(b);
    return rc;
}

int burn_vk_buffer_new(burn_vk *vk, size_t bytes, burn_vk_buffer **out)
{
    return buffer_new(vk, bytes, false, out);
}

int burn_vk_buffer_new_host(burn_vk *vk, size_t bytes, burn_vk_buffer **out)
{
    return buffer_new(vk, bytes, true, out);
}

int burn_vk_buffer_adopt(burn_vk *vk, VkBuffer buffer, size_t bytes, burn_vk_buffer **out)
{
    if (out == NULL)
        return BURN_EINVAL;
    *out = NULL;
    if (vk == NULL || buffer == VK_NULL_HANDLE)
        return vk_fail(vk, BURN_EINVAL, "burn_vk_buffer_adopt: no device, or no buffer");
    burn_vk_buffer *b = calloc(1, sizeof *b);
    if (b == NULL)
        return vk_no_memory(vk);
    *b = (burn_vk_buffer){ .vk = vk, .block = { .buffer = buffer }, .bytes = bytes, .is_borrowed = true };
    *out = b;
    return BURN_OK;
}

void burn_vk_buffer_free(burn_vk_buffer *b)
{
    if (b == NULL)
        return;
    if (!b->is_borrowed)
        block_destroy(b->vk, &b->block);
    free(b);
}

size_t burn_vk_buffer_bytes(const burn_vk_buffer *b)
{
    return b != NULL ? b->bytes : 0;
}

void *burn_vk_buffer_map(burn_vk_buffer *b)
{
    return b != NULL ? b->block.map : NULL;
}

VkBuffer burn_vk_buffer_handle(const burn_vk_buffer *b)
{
    return b != NULL ? b->block.buffer : VK_NULL_HANDLE;
}

static bool range_fits(const burn_vk_buffer *b, size_t offset, size_t bytes)
{
    return offset <= b->bytes && bytes <= b->bytes - offset;
}

static int buffer_copy(const burn_vk_buffer *b, size_t offset, void *data, size_t bytes, bool in)
{
    if (b == NULL || (data == NULL && bytes > 0))
        return BURN_EINVAL;
    if (!range_fits(b, offset, bytes))
        return vk_fail(b->vk, BURN_EINVAL, "%lu bytes from %lu on do not lie in a buffer of %lu", (unsigned long)bytes,
            (unsigned long)offset, (unsigned long)b->bytes);
    return block_copy(b->vk, &b->vk->courier, &b->block, offset, data, bytes, in);
}

int burn_vk_write(burn_vk_buffer *to, size_t offset, const void *data, size_t bytes)
{
    return buffer_copy(to, offset, (void *)(uintptr_t)data, bytes, true);
}

int burn_vk_read(const burn_vk_buffer *from, size_t offset, void *data, size_t bytes)
{
    return buffer_copy(from, offset, data, bytes, false);
}
