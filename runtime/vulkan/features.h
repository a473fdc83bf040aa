// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: features of devices that kernels may use, and what a module wants of them.

static void features_chain(burn_vk_features *f)
{
    f->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->core.pNext = &f->v11;
    f->v11.pNext = &f->v12;
}

void burn_vk_features_of(VkPhysicalDevice physical, burn_vk_features *out)
{
    burn_vk_features has;
    memset(&has, 0, sizeof has);
    memset(out, 0, sizeof *out);
    features_chain(&has);
    features_chain(out);
    vkGetPhysicalDeviceFeatures2(physical, &has.core);
    out->core.features.shaderFloat64 = has.core.features.shaderFloat64;
    out->core.features.shaderInt64 = has.core.features.shaderInt64;
    out->core.features.shaderInt16 = has.core.features.shaderInt16;
    out->v11.storageBuffer16BitAccess = has.v11.storageBuffer16BitAccess;
    out->v12.storageBuffer8BitAccess = has.v12.storageBuffer8BitAccess;
    out->v12.shaderFloat16 = has.v12.shaderFloat16;
    out->v12.shaderInt8 = has.v12.shaderInt8;
    out->v12.scalarBlockLayout = has.v12.scalarBlockLayout;
    out->v12.shaderSubgroupExtendedTypes = has.v12.shaderSubgroupExtendedTypes;
    out->v12.timelineSemaphore = has.v12.timelineSemaphore;
    out->v12.vulkanMemoryModel = has.v12.vulkanMemoryModel;
    out->v12.vulkanMemoryModelDeviceScope = has.v12.vulkanMemoryModelDeviceScope;
}

/* What a module declares to need (OpCapability), and the feature of a device that it is. */
static const struct { uint32_t capability; size_t feature; const char *what; } capabilities[] = {
    { 9, offsetof(burn_vk_features, v12.shaderFloat16), "arithmetic on 16-bit floats" },
    { 10, offsetof(burn_vk_features, core.features.shaderFloat64), "64-bit floats" },
    { 11, offsetof(burn_vk_features, core.features.shaderInt64), "64-bit integers" },
    { 22, offsetof(burn_vk_features, core.features.shaderInt16), "arithmetic on 16-bit integers" },
    { 39, offsetof(burn_vk_features, v12.shaderInt8), "arithmetic on 8-bit integers" },
    { 4433, offsetof(burn_vk_features, v11.storageBuffer16BitAccess), "16-bit values in memory" },
    { 4448, offsetof(burn_vk_features, v12.storageBuffer8BitAccess), "8-bit values in memory" },
    { 5345, offsetof(burn_vk_features, v12.vulkanMemoryModel), "Vulkan's memory model" },
};

static bool feature_is_on(const burn_vk *vk, size_t feature)
{
    VkBool32 on;
    memcpy(&on, (const char *)&vk->features + feature, sizeof on);
    return on != VK_FALSE;
}

/* What a module wants that the device has not; NULL: nothing. Capabilities stand first in a module, each two words. */
static const char *module_lacks(const burn_vk *vk, const uint32_t *words, size_t count)
{
    enum { OP_CAPABILITY = 2 << 16 | 17, BYTES = 39, SHUFFLE = 65, NEAREST = 4467, BF16_MATRICES = 5118, DOTS = 6019,
           MATRICES = 6022 };
    bool matrices = false, bf16 = false, shuffles = false, nearest = false, dots = false, bytes = false;
    for (size_t at = SPIRV_HEADER_WORDS; at + 1 < count && words[at] == OP_CAPABILITY; at += 2) {
        matrices = matrices || words[at + 1] == MATRICES;
        bf16 = bf16 || words[at + 1] == BF16_MATRICES;
        shuffles = shuffles || words[at + 1] == SHUFFLE;
        nearest = nearest || words[at + 1] == NEAREST;
        dots = dots || words[at + 1] == DOTS;
        bytes = bytes || words[at + 1] == BYTES;
    }
    if (shuffles && !vk->has_shuffles)
        return "shuffles within subgroups";
    if (nearest && !vk->has_nearest_f16)
        return "16-bit floats rounded to the nearest";
    if (dots && !vk->has_dots)
        return "dot products of bytes";
    if (matrices && bytes && !vk->has_i8_matrices)
        return "matrices of bytes";
    if (matrices && !bytes && !(bf16 ? vk->has_bf16_matrices : vk->has_f16_matrices))
        return bf16 ? "matrices of bfloat16" : "matrices of 16-bit floats";
    for (size_t at = SPIRV_HEADER_WORDS; at + 1 < count && words[at] == OP_CAPABILITY; at += 2)
        for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++)
            if (capabilities[i].capability == words[at + 1] && !feature_is_on(vk, capabilities[i].feature))
                return capabilities[i].what;
    return NULL;
}

const char *burn_vk_lacks(const burn_vk *vk, const uint32_t *words, size_t count)
{
    if (vk == NULL || words == NULL || count <= SPIRV_HEADER_WORDS)
        return "words";
    return module_lacks(vk, words, count);
}
