// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: a program on a device. It is checked, its weights are copied, its pipelines made.

/* --- checks ------------------------------------------------------------------------------------------------------- */

static int ios_check(burn_vk *vk, const burn_vk_program *p, const burn_vk_io *ios, int count, const char *what)
{
    if (count < 0 || (count > 0 && ios == NULL))
        return vk_fail(vk, BURN_EINVAL, "program without %ss", what);
    for (int i = 0; i < count; i++)
        if (ios[i].tensor.bytes > p->arena_bytes || ios[i].offset > p->arena_bytes - ios[i].tensor.bytes)
            return vk_fail(vk, BURN_EINVAL, "%s %d \"%s\" does not lie in the arena", what, i,
                ios[i].tensor.name != NULL ? ios[i].tensor.name : "");
    return BURN_OK;
}

/* Of the end of the arena, what kernels count in. */
static size_t counters_bytes(const burn_vk_program *p)
{
    return p->version >= 2 ? p->counters_bytes : 0;
}

/* Kernel k as this device runs it. */
static const burn_vk_kernel *kernel_chosen(const burn_vk *vk, const burn_vk_program *p, size_t k)
{
    const burn_vk_kernel *chosen = &p->kernels[k];
    for (const burn_vk_kernel *way = chosen->instead; way != NULL; way = way->instead)
        if (way->spirv != NULL && way->spirv_words > SPIRV_HEADER_WORDS &&
            module_lacks(vk, way->spirv, way->spirv_words) == NULL)
            chosen = way;
    return chosen;
}

static int kernel_check(burn_vk *vk, const burn_vk_program *p, size_t k)
{
    const burn_vk_kernel *kernel = kernel_chosen(vk, p, k);
    const char *name = kernel->name;
    if (name == NULL)
        return vk_fail(vk, BURN_EINVAL, "kernel %lu has no name", (unsigned long)k);
    if (kernel->spirv == NULL || kernel->spirv_words < SPIRV_HEADER_WORDS || kernel->spirv[0] != SPIRV_MAGIC)
        return vk_fail(vk, BURN_EINVAL, "kernel \"%s\" has no SPIR-V module", name);
    if (kernel->push_words > PUSH_WORDS_MAX || (kernel->push_words > 0 && kernel->push == NULL))
        return vk_fail(vk, BURN_EINVAL, "kernel \"%s\": bad push constants", name);
    if (k > 0 && p->kernels[k].level < p->kernels[k - 1].level)
        return vk_fail(vk, BURN_EINVAL, "kernel \"%s\" is of level %lu, after one of level %lu", name,
                       (unsigned long)p->kernels[k].level, (unsigned long)p->kernels[k - 1].level);
    const char *lacks = module_lacks(vk, kernel->spirv, kernel->spirv_words);
    if (lacks != NULL)
        return vk_fail(vk, BURN_ENODEV, "kernel \"%s\" wants %s, which %s has not", name, lacks,
                       vk->properties.deviceName);
    for (int axis = 0; axis < 3; axis++) {
        uint32_t limit = vk->properties.limits.maxComputeWorkGroupCount[axis];
        if (kernel->groups[axis] == 0)
            return vk_fail(vk, BURN_EINVAL, "kernel \"%s\" has no groups along axis %d", name, axis);
        if (kernel->groups[axis] > limit)
            return vk_fail(vk, BURN_ELIMIT, "kernel \"%s\" has %lu groups along axis %d: %s takes %lu", name,
                           (unsigned long)kernel->groups[axis], axis, vk->properties.deviceName, (unsigned long)limit);
    }
    return BURN_OK;
}

static int window_count(const burn_vk_program *p)
{
    return p->version >= 3 ? p->window_count : 0;
}

/* Which of the workspace's descriptor sets kernel k runs with. */
static uint32_t kernel_window(const burn_vk_program *p, size_t k)
{
    return window_count(p) > 0 ? p->window_of[k] : 0;
}

static int windows_check(burn_vk *vk, const burn_vk_program *p, size_t limit)
{
    const int count = window_count(p);
    if (count < 0 || (count > 0 && (p->windows == NULL || p->window_of == NULL)))
        return vk_fail(vk, BURN_EINVAL, "program without windows");
    for (int i = 0; i < count; i++) {
        const burn_vk_window *w = &p->windows[i];
        if (w->offset % BLOCK_ALIGN || w->bytes == 0 || w->bytes > p->weights_bytes ||
            w->offset > p->weights_bytes - w->bytes)
            return vk_fail(vk, BURN_EINVAL, "window %d does not lie in the weights", i);
        if (w->bytes > limit)
            return vk_fail(vk, BURN_ELIMIT, "a kernel reads %lu bytes of weights: a buffer of %s has %lu at most",
                (unsigned long)w->bytes, vk->properties.deviceName, (unsigned long)limit);
    }
    for (size_t k = 0; count > 0 && k < p->kernel_count; k++)
        if (p->window_of[k] >= (uint32_t)count)
            return vk_fail(vk, BURN_EINVAL, "kernel \"%s\" has no window", p->kernels[k].name);
    return BURN_OK;
}

static int program_check(burn_vk *vk, const burn_vk_program *p)
{
    if (p->version < 1)
        return vk_fail(vk, BURN_EINVAL, "a program of version %d", p->version);
    if (p->kernel_count > 0 && p->kernels == NULL)
        return vk_fail(vk, BURN_EINVAL, "program without kernels");
    if (counters_bytes(p) > 0 && (counters_bytes(p) > p->arena_bytes || counters_bytes(p) % 4 || p->arena_bytes % 4))
        return vk_fail(vk, BURN_EINVAL, "the counters do not lie in the arena");
    size_t limit = vk->properties.limits.maxStorageBufferRange;
    const size_t weights = window_count(p) > 0 ? 0 : p->weights_bytes;
    size_t most = p->arena_bytes > weights ? p->arena_bytes : weights;
    if (most > limit)
        return vk_fail(vk, BURN_ELIMIT, "the %s take %lu bytes: a buffer of %s has %lu at most",
            most == p->arena_bytes ? "activations" : "weights", (unsigned long)most, vk->properties.deviceName,
            (unsigned long)limit);
    int rc = ios_check(vk, p, p->inputs, p->input_count, "input");
    if (rc == BURN_OK)
        rc = ios_check(vk, p, p->outputs, p->output_count, "output");
    for (size_t k = 0; rc == BURN_OK && k < p->kernel_count; k++)
        rc = kernel_check(vk, p, k);
    return rc == BURN_OK ? windows_check(vk, p, limit) : rc;
}

#include "pipelines.h"

/* --- sessions ----------------------------------------------------------------------------------------------------- */

int burn_vk_load(burn_vk *vk, const burn_vk_program *program, const void *weights, burn_vk_session **out)
{
    if (out == NULL)
        return BURN_EINVAL;
    *out = NULL;
    if (vk == NULL)
        return BURN_EINVAL;
    if (program == NULL || (weights == NULL && program->weights_bytes > 0))
        return vk_fail(vk, BURN_EINVAL, "burn_vk_load: no program, or no weights for one that wants them");
    int rc = program_check(vk, program);
    if (rc != BURN_OK)
        return rc;
    burn_vk_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return vk_no_memory(vk);
    s->vk = vk;
    s->program = program;
    pthread_mutex_init(&s->lock, NULL);
    s->pipelines = calloc(program->kernel_count + 1, sizeof(VkPipeline));
    rc = s->pipelines != NULL ? block_create_storage(vk, &s->weights, program->weights_bytes) : vk_no_memory(vk);
    if (rc == BURN_OK)
        rc = block_copy(
            vk, &vk->loader, &s->weights, 0, (void *)(uintptr_t)weights, program->weights_bytes, true);
    if (rc == BURN_OK)
        rc = vk_result(vk, layouts_make(vk->device, &s->set_layout, &s->layout), "the layout of kernels");
    if (rc == BURN_OK)
        rc = pipelines_create(s);
    if (rc == BURN_OK)
        burn_vk_pipelines_keep(vk);
    if (rc == BURN_OK)
        *out = s;
    else
        burn_vk_session_free(s);
    return rc;
}

void burn_vk_session_free(burn_vk_session *s)
{
    if (s == NULL)
        return;
    VkDevice device = s->vk->device;
    burn_vk_workspace_free(s->own);
    for (size_t k = 0; s->pipelines != NULL && k < s->program->kernel_count; k++)
        if (kernel_first(s->vk, s->program, k) == k)
            vkDestroyPipeline(device, s->pipelines[k], NULL);
    free(s->pipelines);
    vkDestroyPipelineLayout(device, s->layout, NULL);
    vkDestroyDescriptorSetLayout(device, s->set_layout, NULL);
    block_destroy(s->vk, &s->weights);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
