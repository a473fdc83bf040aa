// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: the queues, which several threads take turns at. A clock counts what was submitted, and
// what of it has ended.

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

/* Submits commands that begin behind `waits`; the clock's next tick, and `signals`, are their end. Without commands
 * what is submitted to that queue later begins behind `waits`. */
static int clock_submit(burn_vk *vk, const Lane *lane, Clock *clock, VkCommandBuffer commands,
    const burn_vk_semaphore *waits, int wait_count, const burn_vk_semaphore *signals, int signal_count)
{
    VkSemaphore before[SEMAPHORES_MAX], after[SEMAPHORES_MAX + 1];
    uint64_t before_values[SEMAPHORES_MAX], after_values[SEMAPHORES_MAX + 1];
    VkPipelineStageFlags stages[SEMAPHORES_MAX];
    for (int i = 0; i < wait_count; i++) {
        before[i] = waits[i].semaphore;
        before_values[i] = waits[i].value;
        stages[i] = lane->stages;
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
        .commandBufferCount = commands != VK_NULL_HANDLE,
        .pCommandBuffers = &commands,
        .signalSemaphoreCount = (uint32_t)signal_count + 1,
        .pSignalSemaphores = after,
    };
    burn_vk_enter(vk);
    VkResult result = vkQueueSubmit(lane->queue, 1, &info, VK_NULL_HANDLE);
    burn_vk_leave(vk);
    if (result == VK_SUCCESS)
        clock->tick++;
    return vk_result(vk, result, "vkQueueSubmit");
}

static bool clock_runs(const Clock *clock)
{
    return clock->seen < clock->tick;
}

/* Asks again and again, for a while: has the submission of that tick ended, and which have besides? */
static void clock_spin(burn_vk *vk, Clock *clock, uint64_t until)
{
    struct timespec t;
    uint64_t tick = 0;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t begin = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    do {
        if (vkGetSemaphoreCounterValue(vk->device, clock->timeline, &tick) != VK_SUCCESS)
            return;
        clock_gettime(CLOCK_MONOTONIC, &t);
    } while (tick < until && (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - begin < SPIN_NS);
    if (tick >= until)
        clock->seen = tick;
}

/* Until the submission of that tick has ended; on a lost device all have. After other errors it may still run. */
static int clock_wait_until(burn_vk *vk, Clock *clock, uint64_t until)
{
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &clock->timeline,
        .pValues = &until,
    };
    if (vk->spins && clock->seen < until)
        clock_spin(vk, clock, until);
    VkResult result = clock->seen >= until ? VK_SUCCESS : vkWaitSemaphores(vk->device, &info, UINT64_MAX);
    if (result == VK_ERROR_DEVICE_LOST)
        clock->seen = clock->tick;
    else if (result == VK_SUCCESS && clock->seen < until)
        clock->seen = until;
    return vk_result(vk, result, "vkWaitSemaphores");
}

/* Until all that was submitted has. */
static int clock_wait(burn_vk *vk, Clock *clock)
{
    return clock_wait_until(vk, clock, clock->tick);
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
