// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan_steps.c: what a call has handed over, as lists of commands. Where pipelines are missing, a
// list goes on until the host wants to look: by then all are known, and several threads make them. Else the device
// begins with the first commands while the host makes the next, each list twice as long as the one before. A list that
// is one of the last word for word, as those of a training step are from the second one on, is submitted as it was
// recorded then.

/* Nothing recorded is true any more. */
static void recorded_forget(Steps *s)
{
    for (size_t i = 0; i < RECORDED; i++)
        s->recorded[i].count = 0;
}

/* --- the list ---------------------------------------------------------------------------------------------------- */

static size_t offset_of(const Steps *s, const void *at) { return (size_t)((uintptr_t)at - (uintptr_t)s->map); }

static Range range_of(const Steps *s, const void *at, size_t bytes, bool written)
{
    return (Range){ offset_of(s, at), offset_of(s, at) + bytes, written };
}

/* Does what touches these have to wait for something before it? From here on only for what is behind it, then. */
static bool meets(Steps *s, int n, const Range *range)
{
    bool apart = s->pending_count + n > PENDING_MAX;
    for (int i = 0; i < n && !apart; i++)
        for (int k = 0; k < s->pending_count && !apart; k++)
            apart = (range[i].written || s->pending[k].written) && range[i].from < s->pending[k].to &&
                s->pending[k].from < range[i].to;
    if (apart)
        s->pending_count = 0;
    for (int i = 0; i < n && s->pending_count < PENDING_MAX; i++)
        s->pending[s->pending_count++] = range[i];
    return apart;
}

/* The next of the list, which touches these ranges; NULL with the error. */
static Command *command_add(Steps *s, CommandKind kind, int n, const Range *range)
{
    if (s->code != BURN_OK || !grown(s, (void **)&s->list, s->count, &s->room, sizeof *s->list))
        return NULL;
    Command *c = &s->list[s->count++];
    memset(c, 0, sizeof *c); /* lists are compared byte by byte */
    c->kind = kind;
    c->apart = meets(s, n, range);
    return c;
}

static void list_clear(Steps *s)
{
    s->count = 0;
    s->pending_count = 0;
}

/* --- pipelines --------------------------------------------------------------------------------------------------- */

typedef struct {
    Steps *steps;
    pthread_mutex_t lock; /* of next */
    size_t next; /* the pipeline that nobody has taken yet */
} StepsMakers;

static void *known_some(void *argument)
{
    StepsMakers *m = argument;
    Steps *s = m->steps;
    for (;;) {
        pthread_mutex_lock(&m->lock);
        const size_t i = m->next++;
        pthread_mutex_unlock(&m->lock);
        if (i >= s->known_count)
            return NULL;
        Known *k = &s->known[i];
        if (k->pipeline == VK_NULL_HANDLE)
            k->result = pipeline_make(s->gpu.device, burn_vk_pipelines(s->vk), s->layout, k->of->spirv,
                k->of->spirv_words, &k->pipeline);
    }
}

/* Those that the list wants and that are not there yet, which is each that is known. false with the error */
static bool pipelines_ready(Steps *s)
{
    StepsMakers m = { .steps = s };
    size_t missing = 0;
    for (size_t i = 0; i < s->known_count; i++)
        missing += s->known[i].pipeline == VK_NULL_HANDLE;
    if (missing == 0)
        return true;
    pthread_mutex_init(&m.lock, NULL);
    makers_run(known_some, &m, missing);
    pthread_mutex_destroy(&m.lock);
    for (size_t i = 0; i < s->known_count; i++)
        if (s->known[i].pipeline == VK_NULL_HANDLE && !succeeds(s, s->known[i].result, s->known[i].of->name))
            return false;
    s->known_made = s->known_count;
    return true;
}

/* --- commands ---------------------------------------------------------------------------------------------------- */

enum { KERNELS = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, COPIES = VK_PIPELINE_STAGE_TRANSFER_BIT };

static VkAccessFlags writes_of(VkPipelineStageFlags stages)
{
    return ((stages & KERNELS) ? VK_ACCESS_SHADER_WRITE_BIT : 0u) |
           ((stages & COPIES) ? VK_ACCESS_TRANSFER_WRITE_BIT : 0u);
}

static VkAccessFlags reads_of(VkPipelineStageFlags stages)
{
    return ((stages & KERNELS) ? VK_ACCESS_SHADER_READ_BIT : 0u) |
           ((stages & COPIES) ? VK_ACCESS_TRANSFER_READ_BIT : 0u);
}

static void barrier(VkCommandBuffer to, VkPipelineStageFlags before, VkPipelineStageFlags after, VkAccessFlags access)
{
    const VkMemoryBarrier all = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = writes_of(before),
        .dstAccessMask = access,
    };
    vkCmdPipelineBarrier(to, before, after, 0, 1, &all, 0, NULL, 0, NULL);
}

/* What command i and those behind it up to the next barrier are. */
static VkPipelineStageFlags stages_from(const Steps *s, size_t i)
{
    VkPipelineStageFlags stages = 0;
    do
        stages |= s->list[i].kind == COMMAND_KERNEL ? KERNELS : COPIES;
    while (++i < s->count && !s->list[i].apart);
    return stages;
}

static void command_record(const Steps *s, const Command *c, VkCommandBuffer to)
{
    const VkBufferCopy *r = &c->region;
    switch (c->kind) {
    case COMMAND_KERNEL:
        vkCmdBindPipeline(to, VK_PIPELINE_BIND_POINT_COMPUTE, s->known[c->known].pipeline);
        if (c->words > 0)
            vkCmdPushConstants(to, s->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, c->words * 4, c->push);
        vkCmdDispatch(to, c->groups[0], c->groups[1], c->groups[2]);
        break;
    case COMMAND_COPY:
        vkCmdCopyBuffer(to, s->buffer, c->to, 1, r);
        break;
    case COMMAND_ZERO:
        vkCmdFillBuffer(to, c->to, r->dstOffset, r->size, 0);
        break;
    case COMMAND_PUT:
        vkCmdUpdateBuffer(to, c->to, r->dstOffset, r->size, c->push);
        break;
    }
}

/* The list as commands; false with the error. */
static bool list_record(Steps *s, VkCommandBuffer to)
{
    const VkCommandBufferBeginInfo info = { /* a call may have the same list twice */
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
    };
    VkDescriptorSet bound = VK_NULL_HANDLE;
    VkPipelineStageFlags near = stages_from(s, 0);
    if (!succeeds(s, vkBeginCommandBuffer(to, &info), "vkBeginCommandBuffer"))
        return false;
    for (size_t i = 0; i < s->count; i++) {
        const Command *c = &s->list[i];
        const bool timed = c->kind == COMMAND_KERNEL && s->watcher != NULL;
        if (c->apart || timed) { /* of kernels alone, mostly: what copies wrote further back, they have seen */
            const VkPipelineStageFlags after = stages_from(s, i);
            barrier(to, ((near | after) & COPIES) ? KERNELS | COPIES : KERNELS, after,
                reads_of(after) | writes_of(after));
            near = after;
        }
        if (c->kind == COMMAND_KERNEL && c->set != bound)
            vkCmdBindDescriptorSets(to, VK_PIPELINE_BIND_POINT_COMPUTE, s->layout, 0, 1, &c->set, 0, NULL);
        bound = c->kind == COMMAND_KERNEL ? c->set : bound;
        if (timed) {
            vkCmdResetQueryPool(to, s->times, 0, 2);
            vkCmdWriteTimestamp(to, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, s->times, 0);
        }
        command_record(s, c, to);
        if (timed)
            vkCmdWriteTimestamp(to, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, s->times, 1);
    }
    barrier(to, KERNELS | COPIES, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
    return succeeds(s, vkEndCommandBuffer(to), "vkEndCommandBuffer");
}

/* Nothing runs any more. */
static void list_ended(Steps *s)
{
    for (size_t i = 0; i < RECORDED; i++)
        s->recorded[i].runs = false;
    s->runs = false;
    s->share = FIRST_SHARE;
}

/* Has all ended, or does it soon? To be woken takes longer than most of a short call's kernels do. */
static bool fence_spin(const Steps *s)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t begin = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    VkResult result;
    do {
        result = vkGetFenceStatus(s->gpu.device, s->fence);
        clock_gettime(CLOCK_MONOTONIC, &t);
    } while (result == VK_NOT_READY && (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - begin < SPIN_NS);
    return result == VK_SUCCESS;
}

/* Until all that was submitted has ended, and these commands. */
static void list_wait(Steps *s, Recorded *last)
{
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = last != NULL ? &last->commands : NULL,
    };
    if (succeeds(s, vkResetFences(s->gpu.device, 1, &s->fence), "vkResetFences") &&
        succeeds(s, vkQueueSubmit(s->gpu.queue, last != NULL ? 1 : 0, &info, s->fence), "vkQueueSubmit") &&
        ((s->spins && fence_spin(s)) ||
            succeeds(s, vkWaitForFences(s->gpu.device, 1, &s->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences")))
        list_ended(s);
}

/* The list's commands, recorded now or before; NULL with the error. */
static Recorded *list_commands(Steps *s)
{
    for (size_t i = 0; i < RECORDED && s->watcher == NULL; i++)
        if (s->recorded[i].count == s->count && !memcmp(s->recorded[i].list, s->list, s->count * sizeof *s->list))
            return &s->recorded[i];
    Recorded *r = &s->recorded[s->recorded_next++ % RECORDED];
    if (r->runs)
        list_wait(s, NULL);
    r->count = 0;
    if (s->code != BURN_OK || !pipelines_ready(s) || !list_record(s, r->commands))
        return NULL;
    if (s->watcher == NULL) { /* it keeps the list, and the next one is written where its last one was */
        const Recorded old = *r;
        r->list = s->list;
        r->count = s->count;
        r->room = s->room;
        s->list = old.list;
        s->room = old.room;
    }
    return r;
}

/* The device begins with the list, and the next one begins. */
static void list_submit(Steps *s)
{
    Recorded *r = list_commands(s);
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = r != NULL ? &r->commands : NULL,
    };
    if (r != NULL && succeeds(s, vkQueueSubmit(s->gpu.queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit"))
        r->runs = s->runs = true;
    s->count = 0; /* what it touches stays pending for the next one */
    s->share = s->share < LAST_SHARE ? 2 * s->share : LAST_SHARE;
}

static int steps_wait(burn_gpu_call *calls)
{
    Steps *s = (Steps *)calls;
    if (s->code != BURN_OK || (s->count == 0 && !s->runs))
        return s->code;
    Recorded *last = s->count > 0 ? list_commands(s) : NULL;
    if (s->code == BURN_OK)
        list_wait(s, last);
    list_clear(s);
    return s->code;
}
