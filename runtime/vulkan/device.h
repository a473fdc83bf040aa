// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: devices. Which there are, which one is meant, its features, opening and closing it; the
// queue, which several threads take turns at.

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

/* --- which -------------------------------------------------------------------------------------------------------- */

static burn_vk_kind kind_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return BURN_VK_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return BURN_VK_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return BURN_VK_VIRTUAL;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return BURN_VK_PROCESSOR;
    default: return BURN_VK_OTHER;
    }
}

static void device_describe(VkPhysicalDevice physical, burn_vk_device *out)
{
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    memset(out, 0, sizeof *out);
    vkGetPhysicalDeviceProperties(physical, &properties);
    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    snprintf(out->name, sizeof out->name, "%s", properties.deviceName);
    out->kind = kind_of(properties.deviceType);
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            out->bytes += memory.memoryHeaps[i].size;
    if (properties.apiVersion < VK_API_VERSION_1_2)
        out->lacks = "Vulkan 1.2";
    else if (family_find(physical) == UINT32_MAX)
        out->lacks = "a queue that computes";
}

static int instance_open(VkInstance *out)
{
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "burncc",
        .apiVersion = VK_API_VERSION_1_2,
    };
    VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application };
    VkResult result = vkCreateInstance(&info, NULL, out);
    if (result == VK_SUCCESS)
        return BURN_OK;
    *out = VK_NULL_HANDLE;
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return vk_fail(NULL, BURN_ENODEV, "there is no Vulkan device: no driver is installed");
    return vk_result(NULL, result, "vkCreateInstance");
}

/* All there are, in the driver's order; the caller frees *out. A system without any is BURN_OK. */
static int devices_find(VkInstance instance, VkPhysicalDevice **out, uint32_t *count)
{
    *out = NULL;
    *count = 0;
    VkResult result = vkEnumeratePhysicalDevices(instance, count, NULL);
    if (result == VK_SUCCESS && *count > 0) {
        *out = calloc(*count, sizeof **out);
        if (*out == NULL)
            return vk_no_memory(NULL);
        result = vkEnumeratePhysicalDevices(instance, count, *out);
    }
    if (result == VK_SUCCESS || result == VK_INCOMPLETE)
        return BURN_OK;
    free(*out);
    *out = NULL;
    return vk_result(NULL, result, "vkEnumeratePhysicalDevices");
}

int burn_vk_devices(burn_vk_device *out, int room)
{
    error.vk = NULL;
    error.text[0] = '\0';
    if (room < 0 || (room > 0 && out == NULL))
        return vk_fail(NULL, BURN_EINVAL, "burn_vk_devices: no room");
    VkInstance instance;
    int rc = instance_open(&instance);
    if (rc == BURN_ENODEV)
        return 0;
    if (rc != BURN_OK)
        return rc;
    VkPhysicalDevice *all;
    uint32_t count;
    rc = devices_find(instance, &all, &count);
    for (uint32_t i = 0; rc == BURN_OK && i < count && i < (uint32_t)room; i++)
        device_describe(all[i], &out[i]);
    free(all);
    vkDestroyInstance(instance, NULL);
    return rc == BURN_OK ? (int)count : rc;
}

/* "#2" is the number of a device; UINT32_MAX: it is not such a text. */
static uint32_t device_number(const char *text)
{
    if (text == NULL || text[0] != '#' || text[1] == '\0' || strlen(text) > 4)
        return UINT32_MAX;
    uint32_t n = 0;
    for (text++; *text >= '0' && *text <= '9'; text++)
        n = n * 10 + (uint32_t)(*text - '0');
    return *text == '\0' ? n : UINT32_MAX;
}

/* How much we like a device of a kind if nobody named one. */
static int kind_rank(burn_vk_kind kind)
{
    switch (kind) {
    case BURN_VK_DISCRETE: return 5;
    case BURN_VK_INTEGRATED: return 4;
    case BURN_VK_VIRTUAL: return 3;
    case BURN_VK_PROCESSOR: return 2;
    default: return 1;
    }
}

/* The error, and behind it the devices that there are. */
static int device_unknown(const VkPhysicalDevice *all, uint32_t count, const char *name)
{
    vk_fail(NULL, BURN_ENODEV, "no Vulkan device is called \"%.64s\"", name);
    for (uint32_t i = 0; i < count; i++) {
        burn_vk_device device;
        device_describe(all[i], &device);
        const size_t at = strlen(error.text);
        snprintf(error.text + at, sizeof error.text - at, "%s#%lu %.60s", i > 0 ? ", " : "; there are ",
            (unsigned long)i, device.name);
    }
    return BURN_ENODEV;
}

static int device_choose(burn_vk *vk, const char *name)
{
    VkPhysicalDevice *all;
    uint32_t count, number = device_number(name);
    int rc = devices_find(vk->instance, &all, &count);
    if (rc != BURN_OK)
        return rc;
    int best = 0;
    const char *lacks = NULL;
    for (uint32_t i = 0; i < count; i++) {
        burn_vk_device device;
        device_describe(all[i], &device);
        if (name != NULL && (number != UINT32_MAX ? i != number : !text_contains(device.name, name)))
            continue;
        if (device.lacks != NULL)
            lacks = device.lacks;
        else if (best == 0 || (name == NULL && kind_rank(device.kind) > best)) {
            best = kind_rank(device.kind);
            vk->physical = all[i];
        }
    }
    if (best > 0)
        rc = BURN_OK;
    else if (lacks != NULL)
        rc = vk_fail(NULL, BURN_ENODEV, "the Vulkan device%s%s lacks %s", name != NULL ? " " : "",
            name != NULL ? name : "", lacks);
    else if (name != NULL && count > 0)
        rc = device_unknown(all, count, name);
    else
        rc = vk_fail(NULL, BURN_ENODEV, "there is no Vulkan device");
    free(all);
    return rc;
}

/* --- features ----------------------------------------------------------------------------------------------------- */

static void features_chain(burn_vk_features *f)
{
    f->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->core.pNext = &f->v11;
    f->v11.pNext = &f->v12;
}

void burn_vk_features_of(VkPhysicalDevice physical, burn_vk_features *out)
{
    burn_vk_features has;
    memset(&has, 0, sizeof has);
    memset(out, 0, sizeof *out);
    features_chain(&has);
    features_chain(out);
    vkGetPhysicalDeviceFeatures2(physical, &has.core);
    out->core.features.shaderFloat64 = has.core.features.shaderFloat64;
    out->core.features.shaderInt64 = has.core.features.shaderInt64;
    out->core.features.shaderInt16 = has.core.features.shaderInt16;
    out->v11.storageBuffer16BitAccess = has.v11.storageBuffer16BitAccess;
    out->v12.storageBuffer8BitAccess = has.v12.storageBuffer8BitAccess;
    out->v12.shaderFloat16 = has.v12.shaderFloat16;
    out->v12.shaderInt8 = has.v12.shaderInt8;
    out->v12.scalarBlockLayout = has.v12.scalarBlockLayout;
    out->v12.shaderSubgroupExtendedTypes = has.v12.shaderSubgroupExtendedTypes;
    out->v12.timelineSemaphore = has.v12.timelineSemaphore;
    out->v12.vulkanMemoryModel = has.v12.vulkanMemoryModel;
    out->v12.vulkanMemoryModelDeviceScope = has.v12.vulkanMemoryModelDeviceScope;
}

/* What a module declares to need (OpCapability), and the feature of a device that it is. */
static const struct { uint32_t capability; size_t feature; const char *what; } capabilities[] = {
    { 9, offsetof(burn_vk_features, v12.shaderFloat16), "arithmetic on 16-bit floats" },
    { 10, offsetof(burn_vk_features, core.features.shaderFloat64), "64-bit floats" },
    { 11, offsetof(burn_vk_features, core.features.shaderInt64), "64-bit integers" },
    { 22, offsetof(burn_vk_features, core.features.shaderInt16), "arithmetic on 16-bit integers" },
    { 39, offsetof(burn_vk_features, v12.shaderInt8), "arithmetic on 8-bit integers" },
    { 4433, offsetof(burn_vk_features, v11.storageBuffer16BitAccess), "16-bit values in memory" },
    { 4448, offsetof(burn_vk_features, v12.storageBuffer8BitAccess), "8-bit values in memory" },
    { 5345, offsetof(burn_vk_features, v12.vulkanMemoryModel), "Vulkan's memory model" },
};

static bool feature_is_on(const burn_vk *vk, size_t feature)
{
    VkBool32 on;
    memcpy(&on, (const char *)&vk->features + feature, sizeof on);
    return on != VK_FALSE;
}

/* What a module wants that the device has not; NULL: nothing. Capabilities stand first in a module, each two words. */
static const char *module_lacks(const burn_vk *vk, const uint32_t *words, size_t count)
{
    enum { OP_CAPABILITY = 2 << 16 | 17, MATRICES = 6022, BF16_MATRICES = 5118 };
    bool matrices = false, bf16 = false;
    for (size_t at = SPIRV_HEADER_WORDS; at + 1 < count && words[at] == OP_CAPABILITY; at += 2) {
        matrices = matrices || words[at + 1] == MATRICES;
        bf16 = bf16 || words[at + 1] == BF16_MATRICES;
    }
    if (matrices && !(bf16 ? vk->has_bf16_matrices : vk->has_f16_matrices))
        return bf16 ? "matrices of bfloat16" : "matrices of 16-bit floats";
    for (size_t at = SPIRV_HEADER_WORDS; at + 1 < count && words[at] == OP_CAPABILITY; at += 2)
        for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++)
            if (capabilities[i].capability == words[at + 1] && !feature_is_on(vk, capabilities[i].feature))
                return capabilities[i].what;
    return NULL;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Does the host reach all of the device's memory? */
static bool memory_is_shared(const burn_vk *vk)
{
    const VkMemoryPropertyFlags both = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkDeviceSize most = 0, reached = 0;
    for (uint32_t i = 0; i < vk->memory.memoryTypeCount; i++) {
        const VkMemoryType *type = &vk->memory.memoryTypes[i];
        const VkDeviceSize size = vk->memory.memoryHeaps[type->heapIndex].size;
        if ((type->propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) && size > most)
            most = size;
        if ((type->propertyFlags & both) == both && size > reached)
            reached = size;
    }
    return reached > 0 && reached == most;
}

/* What there is to know of a device, whoever made it. */
static int device_read(burn_vk *vk)
{
    VkPhysicalDeviceVulkan11Properties properties11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES
    };
    VkPhysicalDeviceProperties2 properties = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &properties11 };
    vkGetPhysicalDeviceProperties(vk->physical, &vk->properties);
    if (vk->properties.apiVersion < VK_API_VERSION_1_2)
        return vk_fail(NULL, BURN_ENODEV, "the Vulkan device %s lacks Vulkan 1.2", vk->properties.deviceName);
    vkGetPhysicalDeviceProperties2(vk->physical, &properties);
    vkGetPhysicalDeviceMemoryProperties(vk->physical, &vk->memory);
    vk->allocation_max = properties11.maxMemoryAllocationSize;
    vk->spins = vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    const char *staging = getenv("BURN_VK_STAGING");
    vk->is_shared = (staging == NULL || staging[0] == '\0') && memory_is_shared(vk);
    return BURN_OK;
}

/* Opens the chosen device with every feature on that kernels may use and the device has. */
static int device_create(burn_vk *vk)
{
    const float priority = 1.0f;
    vk->family = family_find(vk->physical);
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = vk->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    burn_vk_features_of(vk->physical, &vk->features);
    MatrixChain matrices;
    matrices_find(vk, &matrices);
    vk->features.v12.pNext = matrices.next;
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &vk->features.core,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = matrices.count,
        .ppEnabledExtensionNames = matrices.names,
    };
    VkResult result = vkCreateDevice(vk->physical, &info, NULL, &vk->device);
    vk->features.v12.pNext = NULL;
    if (result != VK_SUCCESS) {
        vk->device = VK_NULL_HANDLE;
        return vk_result(NULL, result, "vkCreateDevice");
    }
    vkGetDeviceQueue(vk->device, vk->family, 0, &vk->queue);
    return BURN_OK;
}

static burn_vk *device_new(void)
{
    error.vk = NULL;
    error.text[0] = '\0';
    burn_vk *vk = calloc(1, sizeof *vk);
    if (vk == NULL) {
        vk_no_memory(NULL);
        return NULL;
    }
    pthread_mutex_init(&vk->lock, NULL);
    pthread_mutex_init(&vk->courier.lock, NULL);
    pthread_mutex_init(&vk->cache_lock, NULL);
    return vk;
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
    burn_vk *vk = device_new();
    if (vk == NULL)
        return BURN_ENOMEM;
    int rc = instance_open(&vk->instance);
    if (rc == BURN_OK)
        rc = device_choose(vk, device);
    if (rc == BURN_OK)
        rc = device_read(vk);
    if (rc == BURN_OK)
        rc = device_create(vk);
    const char *cache = getenv("BURN_VK_CACHE");
    if (rc == BURN_OK && cache != NULL && cache[0] != '\0') {
        rc = burn_vk_cache(vk, cache);
        error.vk = NULL;
    }
    if (rc == BURN_OK)
        *out = vk;
    else
        burn_vk_close(vk);
    return rc;
}

int burn_vk_adopt(burn_vk **out, const burn_vk_own *own)
{
    if (out == NULL)
        return BURN_EINVAL;
    *out = NULL;
    burn_vk *vk = device_new();
    if (vk == NULL)
        return BURN_ENOMEM;
    vk->is_borrowed = true;
    int rc = BURN_OK;
    if (own == NULL || own->physical == VK_NULL_HANDLE || own->device == VK_NULL_HANDLE || own->queue == VK_NULL_HANDLE
        || (own->turns.enter == NULL) != (own->turns.leave == NULL))
        rc = vk_fail(NULL, BURN_EINVAL, "burn_vk_adopt: a handle is null");
    if (rc == BURN_OK) {
        vk->instance = own->instance;
        vk->physical = own->physical;
        vk->device = own->device;
        vk->queue = own->queue;
        vk->family = own->family;
        vk->turns = own->turns;
        rc = device_read(vk);
    }
    if (rc == BURN_OK && own->features != NULL) {
        vk->features = *own->features;
        features_chain(&vk->features);
    } else if (rc == BURN_OK) {
        burn_vk_features_of(vk->physical, &vk->features);
    }
    if (rc == BURN_OK && !vk->features.v12.timelineSemaphore)
        rc = vk_fail(NULL, BURN_ENODEV, "burn_vk_adopt: the device was made without timelineSemaphore");
    if (rc == BURN_OK)
        *out = vk;
    else
        burn_vk_close(vk);
    return rc;
}

void burn_vk_handles(const burn_vk *vk, burn_vk_own *out)
{
    *out = (burn_vk_own){ vk->instance, vk->physical, vk->device, vk->queue, vk->family, &vk->features, vk->turns };
}

const char *burn_vk_device_name(const burn_vk *vk)
{
    return vk != NULL ? vk->properties.deviceName : "";
}

void burn_vk_memory(burn_vk *vk, uint64_t *now, uint64_t *most)
{
    pthread_mutex_lock(&vk->lock);
    *now = vk->allocated;
    *most = vk->allocated_most;
    pthread_mutex_unlock(&vk->lock);
}

static void courier_close(burn_vk *vk);
static void cache_close(burn_vk *vk);

void burn_vk_close(burn_vk *vk)
{
    if (vk == NULL)
        return;
    if (vk->device != VK_NULL_HANDLE) {
        cache_close(vk);
        courier_close(vk);
    }
    if (!vk->is_borrowed && vk->device != VK_NULL_HANDLE)
        vkDestroyDevice(vk->device, NULL);
    if (!vk->is_borrowed && vk->instance != VK_NULL_HANDLE)
        vkDestroyInstance(vk->instance, NULL);
    pthread_mutex_destroy(&vk->cache_lock);
    pthread_mutex_destroy(&vk->courier.lock);
    pthread_mutex_destroy(&vk->lock);
    free(vk);
}

/* --- the queue ---------------------------------------------------------------------------------------------------- */

void burn_vk_enter(burn_vk *vk)
{
    pthread_mutex_lock(&vk->lock);
    if (vk->turns.enter != NULL)
        vk->turns.enter(vk->turns.argument);
}

void burn_vk_leave(burn_vk *vk)
{
    if (vk->turns.leave != NULL)
        vk->turns.leave(vk->turns.argument);
    pthread_mutex_unlock(&vk->lock);
}

static int clock_create(burn_vk *vk, Clock *clock)
{
    VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type };
    VkResult result = vkCreateSemaphore(vk->device, &info, NULL, &clock->timeline);
    if (result != VK_SUCCESS)
        clock->timeline = VK_NULL_HANDLE;
    return vk_result(vk, result, "vkCreateSemaphore");
}

/* Submits commands that begin behind `waits`; the clock's next tick, and `signals`, are their end. */
static int clock_submit(burn_vk *vk, Clock *clock, VkCommandBuffer commands, const burn_vk_semaphore *waits,
    int wait_count, const burn_vk_semaphore *signals, int signal_count)
{
    VkSemaphore before[SEMAPHORES_MAX], after[SEMAPHORES_MAX + 1];
    uint64_t before_values[SEMAPHORES_MAX], after_values[SEMAPHORES_MAX + 1];
    VkPipelineStageFlags stages[SEMAPHORES_MAX];
    for (int i = 0; i < wait_count; i++) {
        before[i] = waits[i].semaphore;
        before_values[i] = waits[i].value;
        stages[i] = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    }
    for (int i = 0; i < signal_count; i++) {
        after[i] = signals[i].semaphore;
        after_values[i] = signals[i].value;
    }
    after[signal_count] = clock->timeline;
    after_values[signal_count] = clock->tick + 1;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = (uint32_t)wait_count,
        .pWaitSemaphoreValues = before_values,
        .signalSemaphoreValueCount = (uint32_t)signal_count + 1,
        .pSignalSemaphoreValues = after_values,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = (uint32_t)wait_count,
        .pWaitSemaphores = before,
        .pWaitDstStageMask = stages,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
        .signalSemaphoreCount = (uint32_t)signal_count + 1,
        .pSignalSemaphores = after,
    };
    burn_vk_enter(vk);
    VkResult result = vkQueueSubmit(vk->queue, 1, &info, VK_NULL_HANDLE);
    burn_vk_leave(vk);
    if (result == VK_SUCCESS)
        clock->tick++;
    return vk_result(vk, result, "vkQueueSubmit");
}

static bool clock_runs(const Clock *clock)
{
    return clock->seen < clock->tick;
}

/* Has all ended, or does it soon? false: it takes long, or the device does not say. */
static bool clock_spin(burn_vk *vk, const Clock *clock)
{
    struct timespec t;
    uint64_t tick = 0;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t begin = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    do {
        if (vkGetSemaphoreCounterValue(vk->device, clock->timeline, &tick) != VK_SUCCESS)
            return false;
        clock_gettime(CLOCK_MONOTONIC, &t);
    } while (tick < clock->tick && (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - begin < SPIN_NS);
    return tick >= clock->tick;
}

/* Until all that was submitted has ended; on a lost device it has. After other errors it may still run. */
static int clock_wait(burn_vk *vk, Clock *clock)
{
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &clock->timeline,
        .pValues = &clock->tick,
    };
    const bool ended = !clock_runs(clock) || (vk->spins && clock_spin(vk, clock));
    VkResult result = ended ? VK_SUCCESS : vkWaitSemaphores(vk->device, &info, UINT64_MAX);
    if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST)
        clock->seen = clock->tick;
    return vk_result(vk, result, "vkWaitSemaphores");
}

/* The same with no way to fail: before what it uses is freed. */
static void clock_settle(burn_vk *vk, Clock *clock)
{
    if (clock_runs(clock) && clock_wait(vk, clock) != BURN_OK && clock_runs(clock)) {
        burn_vk_enter(vk);
        (void)vkDeviceWaitIdle(vk->device); /* what fails again here, and is not lost, is the driver's fault */
        burn_vk_leave(vk);
        clock->seen = clock->tick;
    }
}
