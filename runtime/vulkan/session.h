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
    const burn_vk_kernel *kernel = &p->kernels[k], *instead = kernel->instead;
    const bool can = instead != NULL && instead->spirv != NULL && instead->spirv_words > SPIRV_HEADER_WORDS &&
                     module_lacks(vk, instead->spirv, instead->spirv_words) == NULL;
    return can ? instead : kernel;
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

static int program_check(burn_vk *vk, const burn_vk_program *p)
{
    if (p->version < 1)
        return vk_fail(vk, BURN_EINVAL, "a program of version %d", p->version);
    if (p->kernel_count > 0 && p->kernels == NULL)
        return vk_fail(vk, BURN_EINVAL, "program without kernels");
    if (counters_bytes(p) > 0 && (counters_bytes(p) > p->arena_bytes || counters_bytes(p) % 4 || p->arena_bytes % 4))
        return vk_fail(vk, BURN_EINVAL, "the counters do not lie in the arena");
    size_t limit = vk->properties.limits.maxStorageBufferRange;
    size_t most = p->arena_bytes > p->weights_bytes ? p->arena_bytes : p->weights_bytes;
    if (most > limit)
        return vk_fail(vk, BURN_ELIMIT, "the %s take %lu bytes: a buffer of %s has %lu at most",
            most == p->arena_bytes ? "activations" : "weights", (unsigned long)most, vk->properties.deviceName,
            (unsigned long)limit);
    int rc = ios_check(vk, p, p->inputs, p->input_count, "input");
    if (rc == BURN_OK)
        rc = ios_check(vk, p, p->outputs, p->output_count, "output");
    for (size_t k = 0; rc == BURN_OK && k < p->kernel_count; k++)
        rc = kernel_check(vk, p, k);
    return rc;
}

/* --- pipelines ---------------------------------------------------------------------------------------------------- */

static int session_create_layout(burn_vk_session *s)
{
    burn_vk *vk = s->vk;
    VkDescriptorSetLayoutBinding bindings[2];
    memset(bindings, 0, sizeof bindings);
    for (uint32_t i = 0; i < 2; i++) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    VkResult result = vkCreateDescriptorSetLayout(vk->device, &set, NULL, &s->set_layout);
    if (result != VK_SUCCESS) {
        s->set_layout = VK_NULL_HANDLE;
        return vk_result(vk, result, "vkCreateDescriptorSetLayout");
    }
    VkPushConstantRange push = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = PUSH_WORDS_MAX * 4 };
    VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &s->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    result = vkCreatePipelineLayout(vk->device, &layout, NULL, &s->layout);
    if (result != VK_SUCCESS)
        s->layout = VK_NULL_HANDLE;
    return vk_result(vk, result, "vkCreatePipelineLayout");
}

/* The first kernel with the module of kernel k. */
static size_t kernel_first(const burn_vk *vk, const burn_vk_program *p, size_t k)
{
    size_t first = 0;
    while (kernel_chosen(vk, p, first)->spirv != kernel_chosen(vk, p, k)->spirv)
        first++;
    return first;
}

static int session_create_pipeline(burn_vk_session *s, size_t k)
{
    burn_vk *vk = s->vk;
    const burn_vk_kernel *kernel = kernel_chosen(vk, s->program, k);
    size_t first = kernel_first(vk, s->program, k);
    if (first < k) {
        s->pipelines[k] = s->pipelines[first];
        return BURN_OK;
    }
    VkShaderModule module = VK_NULL_HANDLE;
    VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = kernel->spirv_words * 4,
        .pCode = kernel->spirv,
    };
    int rc = vk_result(vk, vkCreateShaderModule(vk->device, &code, NULL, &module), kernel->name);
    if (rc != BURN_OK)
        return rc;
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = module,
            .pName = "main",
        },
        .layout = s->layout,
    };
    rc = vk_result(
        vk, vkCreateComputePipelines(vk->device, vk->cache, 1, &info, NULL, &s->pipelines[k]), kernel->name);
    vkDestroyShaderModule(vk->device, module, NULL);
    return rc;
}

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
        rc = block_copy(vk, &s->weights, 0, (void *)(uintptr_t)weights, program->weights_bytes, true);
    if (rc == BURN_OK)
        rc = session_create_layout(s);
    for (size_t k = 0; rc == BURN_OK && k < program->kernel_count; k++)
        rc = session_create_pipeline(s, k);
    if (rc == BURN_OK)
        cache_keep(vk);
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
