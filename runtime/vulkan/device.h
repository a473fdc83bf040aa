// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: devices. Which there are, which one is meant, opening and closing it.

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

/* The first that does nothing but copy, as the copy engines of cards; without one, `otherwise`. */
static uint32_t carrier_find(VkPhysicalDevice physical, uint32_t otherwise)
{
    const VkQueueFlags besides = VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
    VkQueueFamilyProperties families[32];
    uint32_t count = 32;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if ((families[i].queueFlags & VK_QUEUE_TRANSFER_BIT) && (families[i].queueFlags & ~besides) == 0)
            return i;
    return otherwise;
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
    VkPhysicalDeviceVulkan12Properties properties12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES
    };
    VkPhysicalDeviceVulkan11Properties properties11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &properties12
    };
    VkPhysicalDeviceProperties2 properties = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &properties11 };
    vkGetPhysicalDeviceProperties(vk->physical, &vk->properties);
    if (vk->properties.apiVersion < VK_API_VERSION_1_2)
        return vk_fail(NULL, BURN_ENODEV, "the Vulkan device %s lacks Vulkan 1.2", vk->properties.deviceName);
    vkGetPhysicalDeviceProperties2(vk->physical, &properties);
    vkGetPhysicalDeviceMemoryProperties(vk->physical, &vk->memory);
    vk->allocation_max = properties11.maxMemoryAllocationSize;
    vk->has_shuffles = (properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                       (properties11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
    vk->has_nearest_f16 = properties12.shaderRoundingModeRTEFloat16;
    vk->spins = vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    const char *staging = getenv("BURN_VK_STAGING");
    vk->is_shared = (staging == NULL || staging[0] == '\0') && memory_is_shared(vk);
    vk->carried_least = CARRIED_LEAST;
    return BURN_OK;
}

/* One queue for everything. */
static void lanes_set(burn_vk *vk, VkQueue queue, uint32_t family)
{
    vk->work = (Lane){ queue, family, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT };
    vk->carrier = vk->work;
}

/* Opens the chosen device with every feature on that kernels may use and the device has. */
static int device_create(burn_vk *vk)
{
    const float priority = 1.0f;
    const uint32_t work = family_find(vk->physical), carrier = carrier_find(vk->physical, work);
    VkDeviceQueueCreateInfo queues[2];
    for (int i = 0; i < 2; i++)
        queues[i] = (VkDeviceQueueCreateInfo){
            .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
            .queueFamilyIndex = i == 0 ? work : carrier,
            .queueCount = 1,
            .pQueuePriorities = &priority,
        };
    burn_vk_features_of(vk->physical, &vk->features);
    MatrixChain matrices;
    const int rc = matrices_find(vk, &matrices);
    if (rc != BURN_OK)
        return rc;
    vk->features.v12.pNext = matrices.next;
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &vk->features.core,
        .queueCreateInfoCount = carrier == work ? 1 : 2,
        .pQueueCreateInfos = queues,
        .enabledExtensionCount = matrices.count,
        .ppEnabledExtensionNames = matrices.names,
    };
    VkResult result = vkCreateDevice(vk->physical, &info, NULL, &vk->device);
    vk->features.v12.pNext = NULL;
    if (result != VK_SUCCESS) {
        vk->device = VK_NULL_HANDLE;
        return vk_result(NULL, result, "vkCreateDevice");
    }
    VkQueue queue;
    vkGetDeviceQueue(vk->device, work, 0, &queue);
    lanes_set(vk, queue, work);
    if (carrier != work) {
        vkGetDeviceQueue(vk->device, carrier, 0, &queue);
        vk->carrier = (Lane){ queue, carrier, VK_PIPELINE_STAGE_TRANSFER_BIT };
    }
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
    pthread_mutex_init(&vk->loader.lock, NULL);
    vk->courier.lane = &vk->work;
    vk->loader.lane = &vk->carrier;
    pthread_mutex_init(&vk->cache_lock, NULL);
    porters_open(vk);
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
        lanes_set(vk, own->queue, own->family);
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
    *out = (burn_vk_own){ vk->instance, vk->physical, vk->device, vk->work.queue, vk->work.family, &vk->features,
        vk->turns };
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

static void couriers_close(burn_vk *vk);
static void cache_close(burn_vk *vk);

void burn_vk_close(burn_vk *vk)
{
    if (vk == NULL)
        return;
    porters_close(vk);
    if (vk->device != VK_NULL_HANDLE) {
        cache_close(vk);
        couriers_close(vk);
    }
    if (!vk->is_borrowed && vk->device != VK_NULL_HANDLE)
        vkDestroyDevice(vk->device, NULL);
    if (!vk->is_borrowed && vk->instance != VK_NULL_HANDLE)
        vkDestroyInstance(vk->instance, NULL);
    pthread_mutex_destroy(&vk->cache_lock);
    pthread_mutex_destroy(&vk->courier.lock);
    pthread_mutex_destroy(&vk->loader.lock);
    pthread_mutex_destroy(&vk->lock);
    free(vk);
}
