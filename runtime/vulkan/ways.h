// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: the ways of inputs and outputs between memory of the host and the arena. What is on its
// way lies as in the staging memory, one tensor after the other, and is cut there into parts, whatever tensors they
// cut; a tensor that is bound to memory of the host has its place there, too, though nobody stages it.

static const burn_vk_io *way_ios(const burn_vk_workspace *w, bool out, int *count)
{
    const burn_vk_program *p = w->session->program;
    *count = out ? p->output_count : p->input_count;
    return out ? p->outputs : p->inputs;
}

/* Does the device copy tensor `i` from, or to, memory of the host? */
static bool way_takes(const burn_vk_workspace *w, bool out, int i)
{
    const Bound *b = out ? &w->outputs[i] : &w->inputs[i];
    if (b->buffer != NULL)
        return b->buffer->is_host;
    return out ? b->is_wanted && w->readback.buffer != VK_NULL_HANDLE : w->arena.block.map == NULL;
}

/* Is tensor `i` copied by a submission of its own? */
static bool way_carries(const burn_vk_workspace *w, bool out, int i)
{
    return (out ? w->out.parts : w->in.parts) > 0 && way_takes(w, out, i);
}

/* What of tensor `i` lies in the parts from `part` up to `end`: its offset in the tensor, and its bytes; 0: nothing. */
static size_t part_of(const burn_vk_workspace *w, bool out, int part, int end, int i, size_t *bytes)
{
    int count;
    const burn_vk_io *ios = way_ios(w, out, &count);
    const size_t size = out ? w->out.bytes : w->in.bytes, from = (size_t)part * size, to = (size_t)end * size,
                 begin = staging_offset(ios, i), behind = begin + ios[i].tensor.bytes,
                 first = begin > from ? begin : from, last = behind < to ? behind : to;
    *bytes = first < last ? last - first : 0;
    return first - begin;
}

/* Copies what the host stages of these parts. */
static void parts_stage(const burn_vk_workspace *w, bool out, int part, int end, const burn_tensor *inputs)
{
    int count;
    const burn_vk_io *ios = way_ios(w, out, &count);
    for (int i = 0; i < count; i++) {
        size_t bytes;
        const Bound *b = out ? &w->outputs[i] : &w->inputs[i];
        const size_t at = part_of(w, out, part, end, i, &bytes);
        if (b->buffer != NULL || bytes == 0 || !way_takes(w, out, i))
            continue;
        unsigned char *staged = (out ? w->readback.map : w->upload.map) + staging_offset(ios, i) + at,
                      *tensor = (unsigned char *)(out ? b->to.data : inputs[i].data) + at;
        porters_copy(w->session->vk, out ? tensor : staged, out ? staged : tensor, bytes);
    }
}

/* Copies tensor `i`, or some bytes of it, by the device. */
static void record_copy(
    const burn_vk_workspace *w, VkCommandBuffer commands, bool out, int i, size_t at, size_t bytes)
{
    int count;
    const burn_vk_io *ios = way_ios(w, out, &count);
    const Bound *b = out ? &w->outputs[i] : &w->inputs[i];
    const VkBuffer arena = w->arena.block.buffer,
                   other = b->buffer != NULL ? b->buffer->block.buffer : out ? w->readback.buffer : w->upload.buffer;
    const size_t inside = ios[i].offset + at,
                 outside = (b->buffer != NULL ? b->offset : staging_offset(ios, i)) + at;
    if (out)
        command_copy(commands, arena, inside, other, outside, bytes);
    else
        command_copy(commands, other, outside, arena, inside, bytes);
}

static int part_record(const burn_vk_workspace *w, bool out, int part)
{
    burn_vk *vk = w->session->vk;
    int count;
    (void)way_ios(w, out, &count);
    const VkCommandBuffer commands = out ? w->out.commands[part] : w->in.commands[part];
    int rc = commands_begin(vk, commands);
    if (rc != BURN_OK)
        return rc;
    command_barrier(commands, vk->carrier.stages, VK_PIPELINE_STAGE_TRANSFER_BIT);
    for (int i = 0; i < count; i++) {
        size_t bytes;
        const size_t at = part_of(w, out, part, part + 1, i, &bytes);
        if (bytes > 0 && way_takes(w, out, i))
            record_copy(w, commands, out, i, at, bytes);
    }
    if (out)
        command_barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
    return vk_result(vk, vkEndCommandBuffer(commands), "vkEndCommandBuffer");
}

/* Records a way that is worth submissions of its own. Behind staging_create. */
static int way_record(burn_vk_workspace *w, bool out)
{
    burn_vk *vk = w->session->vk;
    Way *way = out ? &w->out : &w->in;
    int count, rc = BURN_OK;
    const burn_vk_io *ios = way_ios(w, out, &count);
    size_t taken = 0, all = 0;
    for (int i = 0; i < count; i++)
        if (way_takes(w, out, i)) {
            taken += ios[i].tensor.bytes;
            all = staging_offset(ios, i) + ios[i].tensor.bytes;
        }
    way->parts = 0;
    if (taken < vk->carried_least || taken == 0)
        return BURN_OK;
    const size_t least = (all + PARTS_MAX - 1) / PARTS_MAX;
    way->bytes = least > PART_LEAST ? (least + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN : PART_LEAST;
    if (way->pool == VK_NULL_HANDLE)
        rc = commands_create(vk, &vk->carrier, PARTS_MAX, &way->pool, way->commands);
    for (; rc == BURN_OK && (size_t)way->parts * way->bytes < all; way->parts++)
        rc = part_record(w, out, way->parts);
    return rc;
}
