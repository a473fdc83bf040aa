/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Programs of a kernel or two, written by hand: what the tests of runtime/vulkan.c run. */
#ifndef BURNCC_TESTS_VULKAN_H
#define BURNCC_TESTS_VULKAN_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/gpu/spirv.h"
#include "runtime/burn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define HEAD                                                          \
    "#version 450\n"                                                  \
    "layout(local_size_x = 64) in;\n"                                 \
    "layout(set = 0, binding = 0) buffer ArenaF { float f[]; };\n"    \
    "layout(set = 0, binding = 0) buffer ArenaI { int i[]; };\n"      \
    "layout(set = 0, binding = 1) readonly buffer WeightsF { float w[]; };\n"

static inline SpirvModule compile(const char *glsl, const char *name)
{
    SpirvModule module;
    if (!spirv_compile(glsl, name, &module))
        fail_msg("%s", module.log != NULL ? module.log : "out of memory");
    return module;
}

static inline burn_vk_kernel kernel(const char *name, const SpirvModule *module, uint32_t groups, uint32_t level)
{
    burn_vk_kernel k = { name, module->words, module->count, { groups, 1, 1 }, level, NULL, 0, NULL };
    return k;
}

static inline burn_vk *open_or_skip(void)
{
    burn_vk *vk = NULL;
#ifdef HAVE_GLSLANG
    int rc = burn_vk_open(&vk, NULL);
    if (rc == BURN_ENODEV && getenv("BURN_VK_DEVICE") == NULL) {
        print_message("skipped: there is no Vulkan device\n");
        skip();
    }
    assert_int_equal(rc, BURN_OK);
#else
    print_message("skipped: built without glslang\n");
    skip();
#endif
    return vk;
}

static const int64_t bytes_256[] = { 256 };

/* A vector of so many bytes; what they are only the kernels know. */
static inline burn_vk_io io(const char *name, size_t offset, size_t bytes)
{
    return (burn_vk_io){ { .name = name, .dtype = BURN_FLOAT, .rank = bytes == 256, .shape = bytes_256,
        .bytes = bytes }, offset };
}

static inline burn_tensor at(void *data, size_t bytes)
{
    return (burn_tensor){ .data = data, .bytes = bytes };
}

static inline burn_vk_program program_of(const char *name, const burn_vk_kernel *kernels, size_t n, size_t arena,
    size_t weights, const burn_vk_io *inputs, int n_in, const burn_vk_io *outputs, int n_out)
{
    return (burn_vk_program){ .version = 1, .name = name, .kernels = kernels, .kernel_count = n, .arena_bytes = arena,
        .weights_bytes = weights, .inputs = inputs, .input_count = n_in, .outputs = outputs, .output_count = n_out };
}

static inline void expect_ok(burn_vk *vk, int rc)
{
    if (rc != BURN_OK)
        fail_msg("%d: %s", rc, burn_vk_last_error(vk));
}

/* Runs this program again under the validation layer, where that is; its words, if any, are on the outputs. */
static inline void silent_under_validation(void **state)
{
    static const char layer[] = "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json";
    (void)state;
    if (getenv("VK_INSTANCE_LAYERS") != NULL || access(layer, F_OK) != 0) {
        print_message("skipped: %s is not there\n", layer);
        skip();
    }
    char self[4096] = { 0 }, command[5000], line[1024];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    /* what the layer itself leaves when it is unloaded is not ours */
    snprintf(command, sizeof command, "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 "
        "VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation "
        "VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT '%s' 2>&1", self);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    bool said = false;
    while (fgets(line, sizeof line, out)) {
        if (strncmp(line, "[ RUN", 5) == 0)
            said = true;
        if (strstr(line, "Validation") || strstr(line, "VUID") || strstr(line, "SYNC-"))
            fail_msg("%s", line);
    }
    assert_int_equal(pclose(out), 0);
    assert_true(said);
}
#endif
