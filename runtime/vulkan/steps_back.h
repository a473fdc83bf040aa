// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan_steps.c: the way back of what a call has computed. The host reads a card's memory where it
// is mapped without a cache, a few bytes at a time: what is longer goes through memory of the host, by a command.

enum { BACK_LEAST = 512 }; /* bytes that are worth a command */

static void back_close(Steps *s)
{
    recorded_forget(s); /* of which some may go there */
    vkDestroyBuffer(s->gpu.device, s->back_buffer, NULL);
    vkFreeMemory(s->gpu.device, s->back_memory, NULL);
    s->back_buffer = VK_NULL_HANDLE;
    s->back_memory = VK_NULL_HANDLE;
    s->back_map = NULL;
    s->back_bytes = 0;
}

static bool back_allocate(Steps *s)
{
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
        VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(s->gpu.device, s->back_buffer, &needs);
    for (uint32_t type = 0; type < s->kinds.memoryTypeCount; type++) {
        const VkMemoryAllocateInfo info = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
            .allocationSize = needs.size,
            .memoryTypeIndex = type,
        };
        if ((needs.memoryTypeBits >> type & 1) != 0 &&
            (s->kinds.memoryTypes[type].propertyFlags & wanted) == wanted &&
            vkAllocateMemory(s->gpu.device, &info, NULL, &s->back_memory) == VK_SUCCESS)
            return true;
        s->back_memory = VK_NULL_HANDLE;
    }
    return false;
}

/* Room for so many bytes; false: there is none, and the host reads for itself. */
static bool back_open(Steps *s, size_t bytes)
{
    void *map = NULL;
    if (s->back_bytes >= bytes)
        return true;
    back_close(s);
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = bytes,
        .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    const VkDevice device = s->gpu.device;
    if (vkCreateBuffer(device, &info, NULL, &s->back_buffer) != VK_SUCCESS) {
        s->back_buffer = VK_NULL_HANDLE;
        return false;
    }
    if (!back_allocate(s) || vkBindBufferMemory(device, s->back_buffer, s->back_memory, 0) != VK_SUCCESS ||
        vkMapMemory(device, s->back_memory, 0, VK_WHOLE_SIZE, 0, &map) != VK_SUCCESS) {
        back_close(s);
        return false;
    }
    s->back_map = map;
    s->back_bytes = bytes;
    return true;
}

/* The last commands of a call; true: what goes back will lie in that memory, one after the other. */
static bool back_record(Steps *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->back_count; i++)
        bytes += s->backs[i].bytes;
    if (s->is_cached || bytes < BACK_LEAST || s->code != BURN_OK || !back_open(s, bytes))
        return false;
    for (size_t i = 0, at = 0; i < s->back_count; at += s->backs[i++].bytes) {
        const Range range = range_of(s, s->backs[i].from, s->backs[i].bytes, false);
        const VkBufferCopy region = { range.from, at, s->backs[i].bytes };
        if (s->backs[i].bytes == 0)
            continue;
        Command *c = command_add(s, COMMAND_COPY, 1, &range);
        if (c == NULL)
            return false;
        c->to = s->back_buffer;
        c->region = region;
    }
    return true;
}

static void back_copy(Steps *s, bool staged)
{
    for (size_t i = 0, at = 0; i < s->back_count; at += s->backs[i++].bytes)
        if (s->backs[i].bytes > 0)
            memcpy(s->backs[i].to, staged ? s->back_map + at : s->backs[i].from, s->backs[i].bytes);
}
