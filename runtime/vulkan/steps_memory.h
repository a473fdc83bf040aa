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

/* A place with so much room; -1: there is none. What calls take lies together, and so in the largest; constants, which
 * kernels see for themselves, where they are in nobody's way: in the last. */
static ptrdiff_t place_find(const Steps *s, size_t bytes, Use use)
{
    ptrdiff_t best = -1;
    for (size_t i = 0; i < s->place_count; i++) {
        if (s->places[i].used || s->places[i].bytes < bytes)
            continue;
        if (best < 0 || use == FOR_CONSTANTS || (use == FOR_A_CALL && s->places[i].bytes > s->places[best].bytes))
            best = (ptrdiff_t)i;
        if (use == FOR_THE_CALLER)
            break;
    }
    return best;
}

/* Of such a place the first bytes, or for constants the last; NULL with the error. */
static unsigned char *place_take(Steps *s, size_t bytes, Use use)
{
    const size_t whole = bytes > ALIGNMENT ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    const ptrdiff_t i = place_find(s, whole, use);
    if (i < 0) {
        if (s->code == BURN_OK)
            snprintf(error_text, sizeof error_text, "no room for %lu bytes in a buffer of %lu", (unsigned long)whole,
                (unsigned long)s->bytes);
        s->code = s->code == BURN_OK ? BURN_ENOMEM : s->code;
        return NULL;
    }
    if (!grown(s, (void **)&s->places, s->place_count, &s->place_room, sizeof *s->places))
        return NULL;
    Place *p = &s->places[i];
    const size_t left = p->bytes - whole, from = p->at;
    const bool last = use == FOR_CONSTANTS;
    const Place taken = { last ? from + left : from, whole, true, use == FOR_A_CALL };
    const Place rest = { last ? from : from + whole, left, false, false };
    if (left > 0) {
        memmove(p + 2, p + 1, (s->place_count - (size_t)i - 1) * sizeof *p);
        s->place_count++;
        p[last ? 0 : 1] = rest;
    }
    p[left > 0 && last ? 1 : 0] = taken;
    s->used += whole;
    s->used_most = s->used > s->used_most ? s->used : s->used_most;
    return s->map + taken.at;
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
static VkResult memory_allocate(Steps *s)
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
                return vkBindBufferMemory(s->gpu.device, s->buffer, s->memory, 0);
        }
    return result;
}

/* After an error there is neither the buffer nor memory. */
static VkResult buffer_make(Steps *s)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = s->bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
            VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkResult result = vkCreateBuffer(s->gpu.device, &info, NULL, &s->buffer);
    if (result == VK_SUCCESS && (result = memory_allocate(s)) == VK_SUCCESS)
        return result;
    vkDestroyBuffer(s->gpu.device, s->buffer, NULL);
    vkFreeMemory(s->gpu.device, s->memory, NULL);
    s->buffer = VK_NULL_HANDLE;
    s->memory = VK_NULL_HANDLE;
    return result;
}

static size_t at_most(size_t bytes, VkDeviceSize limit)
{
    return bytes > limit ? (size_t)(limit / ALIGNMENT * ALIGNMENT) : bytes;
}

/* A buffer of half the memory of the heap that it comes from, and at most of two ranges that kernels see, or 4 GiB.
 * Drivers may give more at once than what they say is certain. */
static bool buffer_open(Steps *s)
{
    static const VkDeviceSize gib = (VkDeviceSize)1 << 30;
    size_t most = 0;
    for (uint32_t i = 0; i < s->kinds.memoryHeapCount; i++)
        if (s->kinds.memoryHeaps[i].size > most)
            most = (size_t)s->kinds.memoryHeaps[i].size;
    VkPhysicalDeviceVulkan11Properties allocations = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES
    };
    VkPhysicalDeviceProperties2 all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &allocations };
    vkGetPhysicalDeviceProperties2(s->gpu.physical, &all);
    s->stride = all.properties.limits.maxStorageBufferRange / (ALIGNMENT * WINDOWS_PER_RANGE) * ALIGNMENT;
    s->range = s->stride * WINDOWS_PER_RANGE;
    const VkDeviceSize two = 2 * (VkDeviceSize)s->range;
    s->bytes = at_most(most / 2 / ALIGNMENT * ALIGNMENT, two > 4 * gib ? two : 4 * gib);
    s->bytes = at_most(s->bytes, s->stride * (WINDOWS_MAX - 1) + s->range);
    VkResult result = buffer_make(s);
    if (result != VK_SUCCESS && s->bytes > allocations.maxMemoryAllocationSize) {
        s->bytes = at_most(s->bytes, allocations.maxMemoryAllocationSize);
        result = buffer_make(s);
    }
    void *map = NULL;
    if (!succeeds(s, result, "memory for the buffer") ||
        !succeeds(s, vkMapMemory(s->gpu.device, s->memory, 0, VK_WHOLE_SIZE, 0, &map), "vkMapMemory") ||
        !grown(s, (void **)&s->places, 0, &s->place_room, sizeof *s->places))
        return false;
    s->map = map;
    s->places[s->place_count++] = (Place){ 0, s->bytes, false, false };
    s->counters = (uint32_t *)(void *)place_take(s, COUNTERS * sizeof *s->counters, FOR_CONSTANTS);
    if (s->counters != NULL)
        memset(s->counters, 0, COUNTERS * sizeof *s->counters);
    return s->counters != NULL;
}

static bool sets_open(Steps *s)
{
    s->window_count = (s->bytes + s->stride - 1) / s->stride;
    return succeeds(s, layouts_make(s->gpu.device, &s->set_layout, &s->layout), "the layout of kernels") &&
        succeeds(s, sets_pool(s->gpu.device, SETS_MAX, &s->descriptors), "vkCreateDescriptorPool");
}

static bool commands_open(Steps *s)
{
    const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    VkCommandBuffer commands[RECORDED];
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(s->gpu.physical, &properties);
    s->spins = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    if (!succeeds(s, commands_make(s->gpu.device, s->gpu.family, RECORDED, &s->pool, commands), "a pool of commands"))
        return false;
    for (size_t i = 0; i < RECORDED; i++)
        s->recorded[i].commands = commands[i];
    s->share = FIRST_SHARE;
    return succeeds(s, vkCreateFence(s->gpu.device, &fence, NULL, &s->fence), "vkCreateFence");
}
