// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan_steps.c: the one buffer, and who has which place in it; errors, which stay until a call
// ends.

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
    const char *staging = getenv("BURN_VK_STAGING"); /* as burn_vk_open has it */
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
            s->is_cached = (s->kinds.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0 &&
                (staging == NULL || staging[0] == '\0');
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
    const VkDescriptorBufferInfo whole = { s->buffer, 0, VK_WHOLE_SIZE }, both[2] = { whole, whole };
    const VkDevice device = s->gpu.device;
    return succeeds(s, layouts_make(device, &s->set_layout, &s->layout), "the layout of kernels") &&
        succeeds(s, sets_pool(device, 1, &s->descriptors), "vkCreateDescriptorPool") &&
        succeeds(s, set_make(device, s->descriptors, s->set_layout, both, &s->set), "vkAllocateDescriptorSets");
}

static bool commands_open(Steps *s)
{
    const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    return succeeds(s, commands_make(s->gpu.device, s->gpu.family, &s->pool, &s->commands), "a pool of commands") &&
        succeeds(s, vkCreateFence(s->gpu.device, &fence, NULL, &s->fence), "vkCreateFence");
}
