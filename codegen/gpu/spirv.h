// SPDX-License-Identifier: MIT OR Apache-2.0
//
// GLSL compute source in, a checked SPIR-V module out, in process. spirv.c is the only file that knows
// glslang and SPIRV-Tools. Without HAVE_GLSLANG both are absent: spirv_compile() then fails and its log says so.

#ifndef BURNCC_SPIRV_H
#define BURNCC_SPIRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Modules are for Vulkan 1.2 (SPIR-V 1.5); runtime/vulkan.c asks devices for the same. */

typedef struct {
    uint32_t *words; /* the module in host byte order; NULL after a failure */
    size_t count;    /* of words */
    /* after a failure: the tools' messages, each line ended by '\n'; NULL after success or when memory ran out */
    char *log;
} SpirvModule;

/* Compiles one compute shader (entry point main), optimises and validates it. `name` is what the log calls it.
 * The same source gives the same words. true: out->words holds the module; false: out->log says why.
 * Either way the caller ends with spirv_free(). Not for two threads at once. */
bool spirv_compile(const char *glsl, const char *name, SpirvModule *out);

/* Releases what spirv_compile() put in `module` and clears it; a cleared module is fine. */
void spirv_free(SpirvModule *module);

/* "glslang 12.0.0, SPIRV-Tools v2023.1", or "none"; static storage. */
const char *spirv_versions(void);

#endif
