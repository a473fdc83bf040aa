// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: the memory and the commands of one run. The arena, staging memory where the host does not
// reach it, and a command buffer that is recorded again only when it is bound otherwise, or other outputs are wanted.

/* Where an input comes from or an output goes: the caller's tensor, or memory of the device. */
typedef struct {
    const burn_vk_buffer *buffer; /* NULL: the caller's tensor */
    size_t offset;
    bool is_wanted; /* of an output, for the caller's tensor: as recorded */
    burn_tensor to; /* where the run under way writes it */
} Bound;

struct burn_vk_workspace {
    burn_vk_session *session;
    burn_vk_buffer arena;
    Block upload;   /* the inputs one after the other; unused if the arena is mapped */
    Block readback; /* the outputs likewise; unused if the arena is mapped and cached */
    VkDescriptorPool descriptors;
    VkDescriptorSet *sets; /* one; or one for each window of the weights */
    VkCommandPool pool;
    VkCommandBuffer commands; /* one run */
    Clock clock;
    Bound *inputs, *outputs;
    bool is_recorded;
    bool is_clear; /* do the counters hold 0? */
};

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Where tensor `i` of `ios` lies in its staging buffer; at `count`, the size of that buffer. */
static size_t staging_offset(const burn_vk_io *ios, int i)
{
    size_t offset = 0;
    for (int k = 0; k < i; k++)
        offset += (ios[k].tensor.bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
    return offset;
}

/* Staging memory is made when first wanted: what is bound to the device needs none. */
static int staging_create(burn_vk_workspace *w)
{
    const burn_vk_program *p = w->session->program;
    burn_vk *vk = w->session->vk;
    const bool reads = w->arena.block.map == NULL, writes = reads || !w->arena.block.is_cached;
    bool in = false, out = false;
    for (int i = 0; i < p->input_count; i++)
        in = in || w->inputs[i].buffer == NULL;
    for (int i = 0; i < p->output_count; i++)
        out = out || w->outputs[i].is_wanted;
    int rc = BURN_OK;
    if (reads && in && w->upload.buffer == VK_NULL_HANDLE)
        rc = block_create(vk, &w->upload, staging_offset(p->inputs, p->input_count), 0, memory_upload);
    if (rc == BURN_OK && writes && out && w->readback.buffer == VK_NULL_HANDLE)
        rc = block_create(vk, &w->readback, staging_offset(p->outputs, p->output_count), 0, memory_readback);
    return rc;
}

/* The descriptor sets: binding 0 is the arena, binding 1 the weights, or a window of them. */
static int workspace_bind_blocks(burn_vk_workspace *w)
{
    burn_vk *vk = w->session->vk;
    const burn_vk_program *p = w->session->program;
    const uint32_t count = window_count(p) > 0 ? (uint32_t)window_count(p) : 1;
    w->sets = calloc(count, sizeof *w->sets);
    if (w->sets == NULL)
        return vk_no_memory(vk);
    int rc = vk_result(vk, sets_pool(vk->device, count, &w->descriptors), "vkCreateDescriptorPool");
    for (uint32_t i = 0; rc == BURN_OK && i < count; i++) {
        VkDescriptorBufferInfo buffers[2] = {
            { w->arena.block.buffer, 0, VK_WHOLE_SIZE },
            { w->session->weights.buffer, 0, VK_WHOLE_SIZE },
        };
        if (window_count(p) > 0) {
            buffers[1].offset = p->windows[i].offset;
            buffers[1].range = p->windows[i].bytes;
        }
        rc = vk_result(vk, set_make(vk->device, w->descriptors, w->session->set_layout, buffers, 2, &w->sets[i]),
            "vkAllocateDescriptorSets");
    }
    return rc;
}

int burn_vk_workspace_new(burn_vk_session *s, burn_vk_workspace **out)
{
    if (out == NULL)
        return BURN_EINVAL;
    *out = NULL;
    if (s == NULL)
        return BURN_EINVAL;
    burn_vk *vk = s->vk;
    const burn_vk_program *p = s->program;
    burn_vk_workspace *w = calloc(1, sizeof *w);
    if (w == NULL)
        return vk_no_memory(vk);
    w->session = s;
    w->arena.vk = vk;
    w->arena.bytes = p->arena_bytes;
    w->inputs = calloc((size_t)p->input_count + 1, sizeof *w->inputs);
    w->outputs = calloc((size_t)p->output_count + 1, sizeof *w->outputs);
    int rc = w->inputs != NULL && w->outputs != NULL ? BURN_OK : vk_no_memory(vk);
    if (rc == BURN_OK)
        rc = block_create_storage(vk, &w->arena.block, p->arena_bytes);
    if (rc == BURN_OK)
        rc = commands_create(vk, &w->pool, &w->commands);
    if (rc == BURN_OK)
        rc = clock_create(vk, &w->clock);
    if (rc == BURN_OK)
        rc = workspace_bind_blocks(w);
    if (rc == BURN_OK)
        *out = w;
    else
        burn_vk_workspace_free(w);
    return rc;
}

void burn_vk_workspace_free(burn_vk_workspace *w)
{
    if (w == NULL)
        return;
    burn_vk *vk = w->session->vk;
    clock_settle(vk, &w->clock);
    vkDestroySemaphore(vk->device, w->clock.timeline, NULL);
    vkDestroyCommandPool(vk->device, w->pool, NULL); /* its command buffer goes with it */
    vkDestroyDescriptorPool(vk->device, w->descriptors, NULL);
    block_destroy(vk, &w->readback);
    block_destroy(vk, &w->upload);
    block_destroy(vk, &w->arena.block);
    free(w->sets);
    free(w->inputs);
    free(w->outputs);
    free(w);
}

burn_vk_buffer *burn_vk_workspace_buffer(burn_vk_workspace *w)
{
    return w != NULL ? &w->arena : NULL;
}

/* --- what is bound ------------------------------------------------------------------------------------------------ */

static int workspace_bind(burn_vk_workspace *w, bool output, int i, burn_vk_buffer *buffer, size_t offset)
{
    if (w == NULL)
        return BURN_EINVAL;
    const burn_vk_program *p = w->session->program;
    const burn_vk *vk = w->session->vk;
    const char *side = output ? "output" : "input";
    if (clock_runs(&w->clock))
        return vk_fail(vk, BURN_EINVAL, "burn_vk_bind: a run is under way");
    if (i < 0 || i >= (output ? p->output_count : p->input_count))
        return vk_fail(vk, BURN_EINVAL, "burn_vk_bind: there is no %s %d", side, i);
    const burn_vk_io *io = output ? &p->outputs[i] : &p->inputs[i];
    if (buffer != NULL && (buffer->vk != vk || !range_fits(buffer, offset, io->tensor.bytes) || offset % 4 != 0))
        return vk_fail(vk, BURN_EINVAL, "burn_vk_bind: %s %d \"%s\": %s", side, i, io->tensor.name,
            buffer->vk != vk ? "a buffer of another device" :
            offset % 4 != 0  ? "an offset that is no multiple of 4" :
                               "the buffer is too short");
    Bound *b = output ? &w->outputs[i] : &w->inputs[i];
    b->buffer = buffer;
    b->offset = offset;
    b->is_wanted = false;
    w->is_recorded = false;
    return BURN_OK;
}

int burn_vk_bind_input(burn_vk_workspace *w, int input, burn_vk_buffer *from, size_t offset)
{
    return workspace_bind(w, false, input, from, offset);
}

int burn_vk_bind_output(burn_vk_workspace *w, int output, burn_vk_buffer *to, size_t offset)
{
    return workspace_bind(w, true, output, to, offset);
}

/* --- one run, recorded -------------------------------------------------------------------------------------------- */

/* The counters, where nobody has set them to 0 yet: kernels leave them so. Behind a barrier, and before one. */
static void record_clearing(const burn_vk_workspace *w)
{
    const burn_vk_program *p = w->session->program;
    const size_t bytes = counters_bytes(p);
    if (w->is_clear || bytes == 0)
        return;
    vkCmdFillBuffer(w->commands, w->arena.block.buffer, p->arena_bytes - bytes, bytes, 0);
    command_barrier(w->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
}

/* What the counters hold after a run, or one that failed. */
static void counters_settle(burn_vk_workspace *w, bool is_clear)
{
    if (counters_bytes(w->session->program) > 0 && w->is_clear != is_clear)
        w->is_recorded = false; /* with the clearing, or without it */
    w->is_clear = is_clear;
}

/* All kernels, with a barrier between two levels. times: query 0 is the time at which they begin; with `each`, which
 * lets them run one at a time, query k + 1 the time at which kernel k has ended, else query 1 that of the last. */
static void record_kernels(const burn_vk_workspace *w, VkQueryPool times, bool each)
{
    const burn_vk_session *s = w->session;
    const burn_vk_program *p = s->program;
    const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    const size_t count = p->kernel_count;
    if (times != VK_NULL_HANDLE)
        vkCmdWriteTimestamp(w->commands, compute, times, 0);
    for (size_t k = 0; k < count; k++) {
        const burn_vk_kernel *kernel = kernel_chosen(s->vk, p, k);
        if (k > 0 && (each || p->kernels[k].level != p->kernels[k - 1].level))
            command_barrier(w->commands, compute, compute);
        const uint32_t window = kernel_window(p, k);
        if (k == 0 || window != kernel_window(p, k - 1))
            vkCmdBindDescriptorSets(
                w->commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->layout, 0, 1, &w->sets[window], 0, NULL);
        vkCmdBindPipeline(w->commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->pipelines[k]);
        if (kernel->push_words > 0)
            vkCmdPushConstants(
                w->commands, s->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->push_words * 4, kernel->push);
        vkCmdDispatch(w->commands, kernel->groups[0], kernel->groups[1], kernel->groups[2]);
        if (times != VK_NULL_HANDLE && (each || k + 1 == count))
            vkCmdWriteTimestamp(w->commands, compute, times, each ? (uint32_t)k + 1 : 1);
    }
}

/* Inputs into the arena; false: there was nothing to copy, since they lie there or the host writes them there. */
static bool record_inputs(const burn_vk_workspace *w)
{
    const burn_vk_program *p = w->session->program;
    const VkBuffer arena = w->arena.block.buffer;
    bool any = false;
    for (int i = 0; i < p->input_count; i++) {
        const Bound *b = &w->inputs[i];
        if (b->buffer == &w->arena && b->offset == p->inputs[i].offset)
            continue;
        if (b->buffer == NULL && w->arena.block.map != NULL)
            continue;
        command_copy(w->commands, b->buffer != NULL ? b->buffer->block.buffer : w->upload.buffer,
            b->buffer != NULL ? b->offset : staging_offset(p->inputs, i), arena, p->inputs[i].offset,
            p->inputs[i].tensor.bytes);
        any = true;
    }
    return any;
}

/* Outputs out of the arena, behind a barrier if there are any. */
static void record_outputs(const burn_vk_workspace *w)
{
    const burn_vk_program *p = w->session->program;
    const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
    bool any = false;
    for (int i = 0; i < p->output_count; i++) {
        const Bound *b = &w->outputs[i];
        const bool staged = b->buffer == NULL && b->is_wanted && w->readback.buffer != VK_NULL_HANDLE;
        const bool moves = b->buffer != NULL && (b->buffer != &w->arena || b->offset != p->outputs[i].offset);
        if (!staged && !moves)
            continue;
        if (!any)
            command_barrier(w->commands, compute | transfer, transfer);
        any = true;
        command_copy(w->commands, w->arena.block.buffer, p->outputs[i].offset,
            staged ? w->readback.buffer : b->buffer->block.buffer, staged ? staging_offset(p->outputs, i) : b->offset,
            p->outputs[i].tensor.bytes);
    }
}

/* One run: inputs in, the levels with a barrier between two, outputs out. The first barrier orders it after
 * whatever the queue was given before (the previous run, the upload of the weights). */
static int workspace_record(burn_vk_workspace *w)
{
    burn_vk *vk = w->session->vk;
    const VkPipelineStageFlags work = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    int rc = staging_create(w);
    if (rc == BURN_OK)
        rc = commands_begin(vk, w->commands);
    if (rc != BURN_OK)
        return rc;
    command_barrier(w->commands, work, work);
    if (record_inputs(w))
        command_barrier(w->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, work);
    record_clearing(w);
    record_kernels(w, VK_NULL_HANDLE, false);
    record_outputs(w);
    command_barrier(w->commands, work, VK_PIPELINE_STAGE_HOST_BIT);
    rc = vk_result(vk, vkEndCommandBuffer(w->commands), "vkEndCommandBuffer");
    w->is_recorded = rc == BURN_OK;
    return rc;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

/* A tensor that says nothing: of an output, that it is not asked for. */
static bool is_absent(const burn_tensor *t)
{
    return t == NULL || (t->data == NULL && t->bytes == 0 && t->dtype == BURN_UNDEFINED);
}

static int tensors_check(const burn_vk_workspace *w, const burn_tensor *tensors, bool output)
{
    const burn_vk_program *p = w->session->program;
    const burn_vk_io *ios = output ? p->outputs : p->inputs;
    const Bound *bound = output ? w->outputs : w->inputs;
    for (int i = 0; i < (output ? p->output_count : p->input_count); i++) {
        const burn_tensor *t = tensors != NULL ? &tensors[i] : NULL;
        if (bound[i].buffer != NULL || (is_absent(t) && (output || ios[i].tensor.bytes == 0)))
            continue;
        const int rc = t != NULL ? burn_tensor_check(&ios[i].tensor, t, output) : BURN_EINVAL;
        if (rc != BURN_OK && (ios[i].tensor.bytes > 0 || rc != BURN_EINVAL))
            return vk_fail(w->session->vk, rc, "a run: %s %d \"%s\": %s", output ? "output" : "input", i,
                ios[i].tensor.name != NULL ? ios[i].tensor.name : "", burn_strerror(rc));
    }
    return BURN_OK;
}

static void give_shape(const burn_tensor_info *info, const burn_tensor *to)
{
    for (int d = 0; to->shape != NULL && d < info->rank; d++)
        to->shape[d] = info->shape[d];
}

/* Which outputs are asked for; what was recorded for others is recorded again. */
static void outputs_want(burn_vk_workspace *w, const burn_tensor *outputs)
{
    for (int i = 0; i < w->session->program->output_count; i++) {
        Bound *b = &w->outputs[i];
        const bool wanted = b->buffer == NULL && outputs != NULL && !is_absent(&outputs[i]);
        if (wanted != b->is_wanted)
            w->is_recorded = false;
        b->is_wanted = wanted;
        b->to = wanted ? outputs[i] : (burn_tensor){ 0 };
    }
}

static void inputs_copy(const burn_vk_workspace *w, const burn_tensor *inputs)
{
    const burn_vk_program *p = w->session->program;
    for (int i = 0; i < p->input_count; i++) {
        if (w->inputs[i].buffer != NULL || p->inputs[i].tensor.bytes == 0)
            continue;
        unsigned char *to = w->arena.block.map != NULL ? w->arena.block.map + p->inputs[i].offset
                                                       : w->upload.map + staging_offset(p->inputs, i);
        porters_copy(w->session->vk, to, inputs[i].data, p->inputs[i].tensor.bytes);
    }
}

static void outputs_copy(const burn_vk_workspace *w)
{
    const burn_vk_program *p = w->session->program;
    for (int i = 0; i < p->output_count; i++) {
        const Bound *b = &w->outputs[i];
        if (!b->is_wanted)
            continue;
        const unsigned char *from = w->readback.map != NULL ? w->readback.map + staging_offset(p->outputs, i)
                                                            : w->arena.block.map + p->outputs[i].offset;
        porters_copy(w->session->vk, b->to.data, from, p->outputs[i].tensor.bytes);
        give_shape(&p->outputs[i].tensor, &b->to);
    }
}

int burn_vk_submit_between(burn_vk_workspace *w, const burn_tensor *inputs, const burn_tensor *outputs,
    const burn_vk_semaphore *waits, int wait_count, const burn_vk_semaphore *signals, int signal_count)
{
    if (w == NULL)
        return BURN_EINVAL;
    burn_vk *vk = w->session->vk;
    if (clock_runs(&w->clock))
        return vk_fail(vk, BURN_EINVAL, "burn_vk_submit: the run before has not been waited for");
    if (wait_count < 0 || signal_count < 0 || (wait_count > 0 && waits == NULL) ||
        (signal_count > 0 && signals == NULL))
        return vk_fail(vk, BURN_EINVAL, "burn_vk_submit: no semaphores");
    if (wait_count > SEMAPHORES_MAX || signal_count > SEMAPHORES_MAX)
        return vk_fail(vk, BURN_ELIMIT, "burn_vk_submit: more than %d semaphores", (int)SEMAPHORES_MAX);
    int rc = tensors_check(w, inputs, false);
    if (rc == BURN_OK)
        rc = tensors_check(w, outputs, true);
    if (rc != BURN_OK)
        return rc;
    outputs_want(w, outputs);
    if (!w->is_recorded)
        rc = workspace_record(w);
    if (rc != BURN_OK)
        return rc;
    inputs_copy(w, inputs);
    rc = clock_submit(vk, &w->clock, w->commands, waits, wait_count, signals, signal_count);
    counters_settle(w, rc == BURN_OK);
    return rc;
}

int burn_vk_submit(burn_vk_workspace *w, const burn_tensor *inputs, const burn_tensor *outputs)
{
    return burn_vk_submit_between(w, inputs, outputs, NULL, 0, NULL, 0);
}

int burn_vk_wait(burn_vk_workspace *w)
{
    if (w == NULL)
        return BURN_EINVAL;
    if (!clock_runs(&w->clock))
        return BURN_OK;
    const int rc = clock_wait(w->session->vk, &w->clock);
    if (rc == BURN_OK)
        outputs_copy(w);
    else
        counters_settle(w, false);
    return rc;
}

int burn_vk_poll(burn_vk_workspace *w)
{
    if (w == NULL)
        return BURN_EINVAL;
    if (!clock_runs(&w->clock))
        return 1;
    burn_vk *vk = w->session->vk;
    uint64_t tick = 0;
    VkResult result = vkGetSemaphoreCounterValue(vk->device, w->clock.timeline, &tick);
    if (result == VK_SUCCESS && tick < w->clock.tick)
        return 0;
    if (result == VK_SUCCESS)
        outputs_copy(w);
    else
        counters_settle(w, false);
    if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST)
        w->clock.seen = w->clock.tick;
    return result == VK_SUCCESS ? 1 : vk_result(vk, result, "vkGetSemaphoreCounterValue");
}

/* The session's own workspace; the caller holds its lock. */
static int session_own(burn_vk_session *s)
{
    return s->own != NULL ? BURN_OK : burn_vk_workspace_new(s, &s->own);
}

int burn_vk_run(burn_vk_session *s, const burn_tensor *inputs, const burn_tensor *outputs)
{
    if (s == NULL)
        return BURN_EINVAL;
    pthread_mutex_lock(&s->lock);
    int rc = session_own(s);
    if (rc == BURN_OK)
        rc = burn_vk_submit(s->own, inputs, outputs);
    if (rc == BURN_OK)
        rc = burn_vk_wait(s->own);
    if (rc != BURN_OK && s->own != NULL)
        clock_settle(s->vk, &s->own->clock);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
