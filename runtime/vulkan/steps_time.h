// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan_steps.c: kernels on the device's clock. While there is a watcher each kernel is submitted
// alone, and the watcher told when it has ended.

static int times_open(Steps *s, burn_gpu_watcher *watcher, void *context)
{
    VkPhysicalDeviceProperties properties;
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = 2,
    };
    vkGetPhysicalDeviceProperties(s->gpu.physical, &properties);
    if (watcher != NULL && !properties.limits.timestampComputeAndGraphics)
        return failed(s, BURN_ELIMIT, "the device has no clock for kernels", 0);
    if (watcher != NULL && s->times == VK_NULL_HANDLE &&
        !succeeds(s, vkCreateQueryPool(s->gpu.device, &info, NULL, &s->times), "vkCreateQueryPool")) {
        s->times = VK_NULL_HANDLE;
        return s->code;
    }
    s->tick = 1e-6 * (double)properties.limits.timestampPeriod;
    s->watcher = watcher;
    s->watching = context;
    return BURN_OK;
}

/* Of the kernel that was submitted last. */
static void times_tell(Steps *s, const char *name)
{
    uint64_t ticks[2];
    if (succeeds(s, vkGetQueryPoolResults(s->gpu.device, s->times, 0, 2, sizeof ticks, ticks, sizeof *ticks,
            VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT), "vkGetQueryPoolResults"))
        s->watcher(s->watching, name, s->tick * (double)(ticks[1] - ticks[0]));
}
