// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: the memory of one run. The arena, staging memory where the host does not reach it, what
// is bound, and the objects whose commands runs.h records.

/* Where an input comes from or an output goes: the caller's tensor, or memory of the device. */
typedef struct {
    const burn_vk_buffer *buffer; /* NULL: the caller's tensor */
    size_t offset;
    bool is_wanted; /* of an output, for the caller's tensor: as recorded */
    burn_tensor to; /* where the run under way writes it */
} Bound;

/* The way of large inputs, or outputs, between memory of the host and the arena: submissions of their own, which the
 * carrier's queue copies while kernels of other runs compute. Each copies one part of the staging memory, so that the
 * host copies one while the next is on its way. */
typedef struct {
    VkCommandPool pool;
    VkCommandBuffer commands[PARTS_MAX];
    int parts;    /* 0: what there is to copy is among the commands of the run */
    size_t bytes; /* of a part */
} Way;

struct burn_vk_workspace {
    burn_vk_session *session;
    burn_vk_buffer arena;
    Block upload;   /* the inputs one after the other; unused if the arena is mapped */
    Block readback; /* the outputs likewise; unused if the arena is mapped and cached */
    VkDescriptorPool descriptors;
    VkDescriptorSet *sets; /* one; or one for each window of the weights */
    VkCommandPool pool;
    VkCommandBuffer commands; /* one run */
    Way in, out;
    Clock clock;
    Bound *inputs, *outputs;
    bool is_recorded;
    bool is_broken; /* a part of the run was submitted, and then one was refused */
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
        rc = commands_create(vk, &vk->work, 1, &w->pool, &w->commands);
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
    vkDestroyCommandPool(vk->device, w->in.pool, NULL);
    vkDestroyCommandPool(vk->device, w->out.pool, NULL);
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
