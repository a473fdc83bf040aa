// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: runs. Their commands, which are recorded again only when it is bound otherwise, or other
// outputs are wanted; submitting them, and taking what they computed.

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

/* Inputs into the arena; false: there was nothing to copy, since they lie there, or come there otherwise. */
static bool record_inputs(const burn_vk_workspace *w)
{
    const burn_vk_program *p = w->session->program;
    bool any = false;
    for (int i = 0; i < p->input_count; i++) {
        const Bound *b = &w->inputs[i];
        if (b->buffer == &w->arena && b->offset == p->inputs[i].offset)
            continue;
        if ((b->buffer == NULL && w->arena.block.map != NULL) || way_carries(w, false, i))
            continue;
        record_copy(w, w->commands, false, i, 0, p->inputs[i].tensor.bytes);
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
        if ((!staged && !moves) || way_carries(w, true, i))
            continue;
        if (!any)
            command_barrier(w->commands, compute | transfer, transfer);
        any = true;
        record_copy(w, w->commands, true, i, 0, p->outputs[i].tensor.bytes);
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
        rc = way_record(w, false);
    if (rc == BURN_OK)
        rc = way_record(w, true);
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

/* What the host copies before the run begins. */
static void inputs_copy(const burn_vk_workspace *w, const burn_tensor *inputs)
{
    const burn_vk_program *p = w->session->program;
    for (int i = 0; i < p->input_count; i++) {
        if (w->inputs[i].buffer != NULL || p->inputs[i].tensor.bytes == 0 || way_carries(w, false, i))
            continue;
        unsigned char *to = w->arena.block.map != NULL ? w->arena.block.map + p->inputs[i].offset
                                                       : w->upload.map + staging_offset(p->inputs, i);
        porters_copy(w->session->vk, to, inputs[i].data, p->inputs[i].tensor.bytes);
    }
}

/* What it copies when the run has ended; parts of a way it has then. */
static void outputs_copy(const burn_vk_workspace *w)
{
    const burn_vk_program *p = w->session->program;
    for (int i = 0; i < p->output_count; i++) {
        const Bound *b = &w->outputs[i];
        if (!b->is_wanted)
            continue;
        give_shape(&p->outputs[i].tensor, &b->to);
        if (way_carries(w, true, i))
            continue;
        const unsigned char *from = w->readback.map != NULL ? w->readback.map + staging_offset(p->outputs, i)
                                                            : w->arena.block.map + p->outputs[i].offset;
        porters_copy(w->session->vk, b->to.data, from, p->outputs[i].tensor.bytes);
    }
}

/* Semaphores of the caller: the run begins behind `waits`, and signals `signals` at its end. */
typedef struct {
    const burn_vk_semaphore *waits, *signals;
    int wait_count, signal_count;
} Ends;

/* The inputs' way, the kernels, the outputs' way, each submission behind the one before: which on one queue the
 * barriers see to. */
static int run_submit(burn_vk_workspace *w, const burn_tensor *inputs, const Ends *ends)
{
    burn_vk *vk = w->session->vk;
    const int kernels = w->in.parts, count = kernels + 1 + w->out.parts, apart = vk->carrier.family != vk->work.family;
    int rc = BURN_OK;
    for (int i = 0; rc == BURN_OK && i < count; i++) {
        const burn_vk_semaphore before = { w->clock.timeline, w->clock.tick };
        const VkCommandBuffer commands = i < kernels ? w->in.commands[i] :
                                         i > kernels ? w->out.commands[i - kernels - 1] : w->commands;
        const bool last = i + 1 == count;
        if (i < kernels)
            parts_stage(w, false, i, i + 1, inputs);
        rc = clock_submit(vk, i == kernels ? &vk->work : &vk->carrier, &w->clock, commands,
            i > 0 ? &before : ends->waits, i > 0 ? apart : ends->wait_count, last ? ends->signals : NULL,
            last ? ends->signal_count : 0);
        w->is_broken = rc != BURN_OK && i > 0;
    }
    return rc;
}

/* Waits for what was submitted of a run that could not be submitted whole. */
static void run_mend(burn_vk_workspace *w)
{
    if (w->is_broken)
        clock_settle(w->session->vk, &w->clock);
    w->is_broken = false;
}

int burn_vk_submit_between(burn_vk_workspace *w, const burn_tensor *inputs, const burn_tensor *outputs,
    const burn_vk_semaphore *waits, int wait_count, const burn_vk_semaphore *signals, int signal_count)
{
    if (w == NULL)
        return BURN_EINVAL;
    burn_vk *vk = w->session->vk;
    run_mend(w);
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
    rc = run_submit(w, inputs, &(Ends){ waits, signals, wait_count, signal_count });
    counters_settle(w, rc == BURN_OK);
    return rc;
}

int burn_vk_submit(burn_vk_workspace *w, const burn_tensor *inputs, const burn_tensor *outputs)
{
    return burn_vk_submit_between(w, inputs, outputs, NULL, 0, NULL, 0);
}

/* Takes the parts of the outputs' way as they come: all that have come at once. */
static int parts_take(burn_vk_workspace *w)
{
    const uint64_t kernels = w->clock.tick - (uint64_t)w->out.parts;
    int rc = BURN_OK;
    for (int i = 0, end; rc == BURN_OK && i < w->out.parts; i = end) {
        rc = clock_wait_until(w->session->vk, &w->clock, kernels + (uint64_t)i + 1);
        end = w->clock.seen > kernels + (uint64_t)i ? (int)(w->clock.seen - kernels) : i + 1;
        if (rc == BURN_OK)
            parts_stage(w, true, i, end, NULL);
    }
    return rc;
}

int burn_vk_wait(burn_vk_workspace *w)
{
    if (w == NULL)
        return BURN_EINVAL;
    run_mend(w);
    if (!clock_runs(&w->clock))
        return BURN_OK;
    int rc = parts_take(w);
    if (rc == BURN_OK)
        rc = clock_wait(w->session->vk, &w->clock);
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
    if (w->is_broken || !clock_runs(&w->clock))
        return burn_vk_wait(w) == BURN_OK;
    burn_vk *vk = w->session->vk;
    uint64_t tick = 0;
    VkResult result = vkGetSemaphoreCounterValue(vk->device, w->clock.timeline, &tick);
    if (result == VK_SUCCESS && tick < w->clock.tick)
        return 0;
    if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST)
        w->clock.seen = w->clock.tick;
    if (result != VK_SUCCESS) {
        counters_settle(w, false);
        return vk_result(vk, result, "vkGetSemaphoreCounterValue");
    }
    const int rc = parts_take(w);
    outputs_copy(w);
    return rc == BURN_OK ? 1 : rc;
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
