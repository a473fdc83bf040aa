// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c and of runtime/vulkan_steps.c: what both make of Vulkan's objects. Kernels see up to four
// storage buffers and push constants, so there is one layout, one kind of descriptor set and one kind of pipeline.
// After an error the handle asked for is VK_NULL_HANDLE, which Vulkan destroys without a complaint: the ends of both
// need not know how far their beginnings came.

enum {
    PUSH_WORDS_MAX = 32, /* 128 bytes: what every Vulkan device has */
    BINDINGS = 4, /* what every Vulkan device has; the last two are of programs with control on the host */
    MAKERS_MAX = 8, MODULES_EACH = 4, /* threads that make pipelines; fewer modules than this are not worth one */
};

static VkResult layouts_make(VkDevice device, VkDescriptorSetLayout *set_layout, VkPipelineLayout *layout)
{
    VkDescriptorSetLayoutBinding bindings[BINDINGS];
    memset(bindings, 0, sizeof bindings);
    for (uint32_t i = 0; i < BINDINGS; i++) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = BINDINGS,
        .pBindings = bindings,
    };
    *layout = VK_NULL_HANDLE;
    VkResult result = vkCreateDescriptorSetLayout(device, &set_info, NULL, set_layout);
    if (result != VK_SUCCESS) {
        *set_layout = VK_NULL_HANDLE;
        return result;
    }
    const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, PUSH_WORDS_MAX * 4 };
    const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    result = vkCreatePipelineLayout(device, &info, NULL, layout);
    if (result != VK_SUCCESS)
        *layout = VK_NULL_HANDLE;
    return result;
}

/* Room for so many sets. */
static VkResult sets_pool(VkDevice device, uint32_t count, VkDescriptorPool *out)
{
    const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BINDINGS * count };
    const VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = count,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    const VkResult result = vkCreateDescriptorPool(device, &info, NULL, out);
    if (result != VK_SUCCESS)
        *out = VK_NULL_HANDLE;
    return result;
}

/* A set of the pool, with the first so many buffers as binding 0, 1, ...; it goes with the pool. */
static VkResult set_make(VkDevice device, VkDescriptorPool pool, VkDescriptorSetLayout layout,
    const VkDescriptorBufferInfo *buffers, uint32_t count, VkDescriptorSet *out)
{
    const VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = pool,
        .descriptorSetCount = 1,
        .pSetLayouts = &layout,
    };
    const VkResult result = vkAllocateDescriptorSets(device, &info, out);
    if (result != VK_SUCCESS)
        return result;
    const VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = *out,
        .dstBinding = 0, /* the others go on to the bindings behind it */
        .descriptorCount = count,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = buffers,
    };
    vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    return VK_SUCCESS;
}

static VkResult pipeline_make(VkDevice device, VkPipelineCache cache, VkPipelineLayout layout, const uint32_t *words,
    size_t count, VkPipeline *out)
{
    const VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = count * 4,
        .pCode = words,
    };
    VkShaderModule module = VK_NULL_HANDLE;
    *out = VK_NULL_HANDLE;
    VkResult result = vkCreateShaderModule(device, &code, NULL, &module);
    if (result != VK_SUCCESS)
        return result;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = module,
            .pName = "main",
        },
        .layout = layout,
    };
    result = vkCreateComputePipelines(device, cache, 1, &info, NULL, out);
    vkDestroyShaderModule(device, module, NULL);
    if (result != VK_SUCCESS)
        *out = VK_NULL_HANDLE;
    return result;
}

/* Calls make(of) in this thread, and in others if they can be had: as many as so many modules are worth. What a driver
 * makes of kernels is most of the time of a first run, and is done for one module as well as for the next. */
static void makers_run(void *(*make)(void *), void *of, size_t modules)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t most = processors < 1 ? 1 : processors > MAKERS_MAX ? MAKERS_MAX : (size_t)processors;
    pthread_t threads[MAKERS_MAX];
    size_t n = 0;
    while (n + 1 < most && n + 1 < modules / MODULES_EACH && pthread_create(&threads[n], NULL, make, of) == 0)
        n++;
    make(of);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* A pool with so many command buffers, which go with it. */
static VkResult commands_make(
    VkDevice device, uint32_t family, uint32_t count, VkCommandPool *pool, VkCommandBuffer *out)
{
    const VkCommandPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = family,
    };
    const VkResult result = vkCreateCommandPool(device, &info, NULL, pool);
    if (result != VK_SUCCESS) {
        *pool = VK_NULL_HANDLE;
        return result;
    }
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = *pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = count,
    };
    return vkAllocateCommandBuffers(device, &commands, out);
}
