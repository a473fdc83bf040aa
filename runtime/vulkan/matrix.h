/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A part of runtime/vulkan.c: which cooperative matrices a device has, of those that kernels may use, and whether it
 * has dot products of bytes. Headers of Vulkan 1.2 and 1.3 may lack the extensions: structures and numbers are the
 * registry's. */

enum {
    TYPE_MATRIX_FEATURES = 1000506000, TYPE_MATRIX_PROPERTIES = 1000506001, TYPE_BF16_FEATURES = 1000141000,
    TYPE_DOT_FEATURES = 1000280000,
    COMPONENT_F16 = 0, COMPONENT_F32 = 1, COMPONENT_BF16 = 1000141000, COMPONENT_I8 = 3,
    COMPONENT_I32 = 5, SCOPE_SUBGROUP = 3,
    MATRIX_SUBGROUP = 32, MATRIX_SIDE = 16, MATRIX_SHAPES = 128
};

typedef struct { VkStructureType sType; void *pNext; VkBool32 matrix, robust; } MatrixFeatures;
typedef struct { VkStructureType sType; void *pNext; VkBool32 type, dot, matrix; } Bf16Features;
typedef struct { VkStructureType sType; void *pNext; VkBool32 dot; } DotFeatures;
typedef struct {
    VkStructureType sType;
    void *pNext;
    uint32_t m, n, k, a, b, c, result;
    VkBool32 saturates;
    uint32_t scope;
} MatrixShape;
typedef VkResult(VKAPI_PTR *MatrixShapes)(VkPhysicalDevice physical, uint32_t *count, MatrixShape *shapes);

/* Extensions and features of them to turn on: VkDeviceCreateInfo takes `names`, and `next` goes into its chain. */
typedef struct {
    MatrixFeatures matrix;
    Bf16Features bf16;
    DotFeatures dot;
    const char *names[3];
    uint32_t count;
    void *next; /* NULL: none */
} MatrixChain;

static int extensions_find(VkPhysicalDevice physical, VkExtensionProperties **out, uint32_t *count)
{
    *out = NULL;
    VkResult result = vkEnumerateDeviceExtensionProperties(physical, NULL, count, NULL);
    if (result == VK_SUCCESS) {
        *out = calloc((size_t)*count + 1, sizeof **out);
        if (*out == NULL)
            return vk_no_memory(NULL);
        result = vkEnumerateDeviceExtensionProperties(physical, NULL, count, *out);
    }
    return result == VK_INCOMPLETE ? BURN_OK : vk_result(NULL, result, "vkEnumerateDeviceExtensionProperties");
}

static bool extension_exists(const VkExtensionProperties *all, uint32_t count, const char *name)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++)
        found = found || strcmp(all[i].extensionName, name) == 0;
    return found;
}

/* Are there matrices of 16 x 16 x k of this component, with sums of that one, of subgroups? */
static bool matrix_exists(const burn_vk *vk, uint32_t component, uint32_t k, uint32_t sum)
{
    /* through void (*)(void): the loader's own type of all functions */
    const MatrixShapes shapes_of = (MatrixShapes)(void (*)(void))vkGetInstanceProcAddr(
        vk->instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    MatrixShape shapes[MATRIX_SHAPES];
    uint32_t count = MATRIX_SHAPES;
    bool found = false;
    memset(shapes, 0, sizeof shapes);
    for (uint32_t i = 0; i < MATRIX_SHAPES; i++)
        shapes[i].sType = (VkStructureType)TYPE_MATRIX_PROPERTIES;
    if (shapes_of == NULL || shapes_of(vk->physical, &count, shapes) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const MatrixShape *s = &shapes[i];
        found = found || (s->m == MATRIX_SIDE && s->n == MATRIX_SIDE && s->k == k && s->a == component &&
                          s->b == component && s->c == sum && s->result == sum &&
                          s->scope == SCOPE_SUBGROUP);
    }
    return found;
}

static uint32_t subgroup_size(const burn_vk *vk)
{
    VkPhysicalDeviceSubgroupProperties subgroup = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES };
    VkPhysicalDeviceProperties2 properties = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &subgroup };
    vkGetPhysicalDeviceProperties2(vk->physical, &properties);
    return subgroup.subgroupSize;
}

/* With the extensions that there are, sets vk->has_f16_matrices, has_bf16_matrices and has_i8_matrices, and `chain` to
 * what turns them on. */
static void matrices_choose(burn_vk *vk, MatrixChain *chain, const VkExtensionProperties *all, uint32_t count)
{
    if (subgroup_size(vk) != MATRIX_SUBGROUP || !extension_exists(all, count, "VK_KHR_cooperative_matrix"))
        return;
    const bool has_bf16 = extension_exists(all, count, "VK_KHR_shader_bfloat16");
    chain->matrix.sType = (VkStructureType)TYPE_MATRIX_FEATURES;
    chain->bf16.sType = (VkStructureType)TYPE_BF16_FEATURES;
    chain->matrix.pNext = has_bf16 ? &chain->bf16 : NULL;
    VkPhysicalDeviceFeatures2 has = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &chain->matrix };
    vkGetPhysicalDeviceFeatures2(vk->physical, &has);
    if (!chain->matrix.matrix)
        return;
    chain->names[chain->count++] = "VK_KHR_cooperative_matrix";
    chain->next = &chain->matrix;
    chain->matrix.robust = VK_FALSE;
    vk->has_f16_matrices = matrix_exists(vk, COMPONENT_F16, MATRIX_SIDE, COMPONENT_F32);
    vk->has_i8_matrices = matrix_exists(vk, COMPONENT_I8, 2 * MATRIX_SIDE, COMPONENT_I32);
    if (!has_bf16)
        return;
    chain->names[chain->count++] = "VK_KHR_shader_bfloat16";
    vk->has_bf16_matrices = chain->bf16.type && chain->bf16.matrix &&
                            matrix_exists(vk, COMPONENT_BF16, MATRIX_SIDE, COMPONENT_F32);
}

/* The same of dot products. */
static void dots_choose(burn_vk *vk, MatrixChain *chain, const VkExtensionProperties *all, uint32_t count)
{
    static const char extension[] = "VK_KHR_shader_integer_dot_product";
    chain->dot.sType = (VkStructureType)TYPE_DOT_FEATURES;
    VkPhysicalDeviceFeatures2 has = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &chain->dot };
    if (!extension_exists(all, count, extension))
        return;
    vkGetPhysicalDeviceFeatures2(vk->physical, &has);
    if (!chain->dot.dot)
        return;
    chain->names[chain->count++] = extension;
    chain->dot.pNext = chain->next;
    chain->next = &chain->dot;
    vk->has_dots = true;
}

static int matrices_find(burn_vk *vk, MatrixChain *chain)
{
    VkExtensionProperties *all;
    uint32_t count;
    memset(chain, 0, sizeof *chain);
    vk->has_f16_matrices = vk->has_bf16_matrices = vk->has_i8_matrices = vk->has_dots = false;
    const char *plain = getenv("BURN_VK_PLAIN");
    if (plain != NULL && plain[0] != '\0')
        return BURN_OK;
    const int rc = extensions_find(vk->physical, &all, &count);
    if (rc == BURN_OK) {
        matrices_choose(vk, chain, all, count);
        dots_choose(vk, chain, all, count);
    }
    free(all);
    return rc;
}
