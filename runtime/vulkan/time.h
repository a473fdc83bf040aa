// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: kernels on the device's clock.

/* Submits the kernels with a clock around them, into ticks[0..count]. */
static int time_kernels(burn_vk_workspace *w, VkQueryPool times, bool each, uint32_t count, uint64_t *ticks)
{
    burn_vk *vk = w->session->vk;
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    w->is_recorded = false; /* the commands of a run make place */
    int rc = commands_begin(vk, w->commands);
    if (rc != BURN_OK)
        return rc;
    vkCmdResetQueryPool(w->commands, times, 0, count + 1);
    command_barrier(w->commands, all, all);
    record_clearing(w);
    record_kernels(w, times, each);
    rc = vk_result(vk, vkEndCommandBuffer(w->commands), "vkEndCommandBuffer");
    if (rc == BURN_OK)
        rc = clock_submit(vk, &vk->work, &w->clock, w->commands, NULL, 0, NULL, 0);
    if (rc == BURN_OK)
        rc = clock_wait(vk, &w->clock);
    counters_settle(w, rc == BURN_OK);
    if (rc == BURN_OK)
        rc = vk_result(vk,
            vkGetQueryPoolResults(vk->device, times, 0, count + 1, (count + 1) * sizeof *ticks, ticks, sizeof *ticks,
                VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
            "vkGetQueryPoolResults");
    return rc;
}

static int time_both(burn_vk_workspace *w, double *run_ms, double *kernel_ms)
{
    burn_vk *vk = w->session->vk;
    const uint32_t count = (uint32_t)w->session->program->kernel_count;
    const double tick = 1e-6 * (double)vk->properties.limits.timestampPeriod;
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = count + 1,
    };
    VkQueryPool times = VK_NULL_HANDLE;
    uint64_t *ticks = malloc((count + 1) * sizeof *ticks);
    if (ticks == NULL)
        return vk_no_memory(vk);
    int rc = vk_result(vk, vkCreateQueryPool(vk->device, &info, NULL, &times), "vkCreateQueryPool");
    if (rc != BURN_OK) {
        free(ticks);
        return rc;
    }
    rc = time_kernels(w, times, false, 1, ticks);
    if (rc == BURN_OK) {
        *run_ms = tick * (double)(ticks[1] - ticks[0]);
        rc = time_kernels(w, times, true, count, ticks);
    }
    for (uint32_t k = 0; rc == BURN_OK && k < count; k++)
        kernel_ms[k] = tick * (double)(ticks[k + 1] - ticks[k]);
    clock_settle(vk, &w->clock);
    vkDestroyQueryPool(vk->device, times, NULL);
    free(ticks);
    return rc;
}

int burn_vk_time(burn_vk_session *s, double *run_ms, double *kernel_ms)
{
    if (s == NULL || run_ms == NULL || kernel_ms == NULL)
        return BURN_EINVAL;
    *run_ms = 0;
    if (s->program->kernel_count == 0)
        return BURN_OK;
    if (!s->vk->properties.limits.timestampComputeAndGraphics)
        return vk_fail(s->vk, BURN_ELIMIT, "%s has no clock for kernels", s->vk->properties.deviceName);
    pthread_mutex_lock(&s->lock);
    int rc = session_own(s);
    if (rc == BURN_OK)
        rc = time_both(s->own, run_ms, kernel_ms);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
