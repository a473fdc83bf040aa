// SPDX-License-Identifier: MIT OR Apache-2.0
//
// GLSL compute source -> SPIR-V words. Four steps: glslang parses and links, glslang's back end emits and runs
// SPIRV-Tools' optimizer (that route is plain C everywhere; the optimizer's own C interface is missing from
// SPIRV-Tools before 2023.2), views of one buffer are marked as aliases, and the validator has the last word.
// Names and debug lines are stripped, so the words depend on the source and the tools' versions alone.

#include "spirv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* out->log = "NAME: STAGE: TEXT\n", TEXT without the blank lines at its end. Always false, for
 * `return spirv_fail(...)`. */
static bool spirv_fail(SpirvModule *out, const char *name, const char *stage, const char *text)
{
    if (text == NULL || text[0] == '\0')
        text = "no message";
    size_t length = strlen(text);
    while (length > 1 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    size_t size = strlen(name) + strlen(stage) + length + sizeof ": : \n";
    out->log = malloc(size);
    if (out->log != NULL)
        snprintf(out->log, size, "%s: %s: %.*s\n", name, stage, (int)length, text);
    free(out->words);
    out->words = NULL;
    out->count = 0;
    return false;
}

void spirv_free(SpirvModule *module)
{
    free(module->words);
    free(module->log);
    memset(module, 0, sizeof *module);
}

#ifdef HAVE_GLSLANG

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>
#include <glslang/build_info.h>
#include <spirv-tools/libspirv.h>

const char *spirv_versions(void)
{
    static char text[96];
    snprintf(text, sizeof text, "glslang %d.%d.%d, SPIRV-Tools %s", GLSLANG_VERSION_MAJOR, GLSLANG_VERSION_MINOR,
             GLSLANG_VERSION_PATCH, spvSoftwareVersionString());
    return text;
}

static bool words_copy(SpirvModule *out, glslang_program_t *program)
{
    out->count = glslang_program_SPIRV_get_size(program);
    out->words = malloc((out->count + 1) * sizeof *out->words);
    if (out->words == NULL)
        return false;
    glslang_program_SPIRV_get(program, out->words);
    return true;
}

/* glslang from source to optimised words. glslang_initialize_process() builds the tables of built-in functions
 * (about 50 ms), so it is called once and they are kept to the end of the process. */
static bool glsl_to_words(const char *glsl, const char *name, SpirvModule *out)
{
    static bool started;
    if (!started && !glslang_initialize_process())
        return spirv_fail(out, name, "glslang", "cannot start");
    started = true;

    const glslang_input_t input = {
        .language = GLSLANG_SOURCE_GLSL,
        .stage = GLSLANG_STAGE_COMPUTE,
        .client = GLSLANG_CLIENT_VULKAN,
        .client_version = GLSLANG_TARGET_VULKAN_1_2,
        .target_language = GLSLANG_TARGET_SPV,
        .target_language_version = GLSLANG_TARGET_SPV_1_5,
        .code = glsl,
        .default_version = 450,
        .default_profile = GLSLANG_NO_PROFILE,
        .messages = GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT,
        .resource = glslang_default_resource(),
    };
    bool done = false;
    glslang_shader_t *shader = glslang_shader_create(&input);
    glslang_program_t *program = glslang_program_create();
    if (shader == NULL || program == NULL) {
        spirv_fail(out, name, "glslang", "out of memory");
    } else if (!glslang_shader_preprocess(shader, &input) || !glslang_shader_parse(shader, &input)) {
        spirv_fail(out, name, "glslang", glslang_shader_get_info_log(shader));
    } else {
        glslang_program_add_shader(program, shader);
        if (!glslang_program_link(program, GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT)) {
            spirv_fail(out, name, "glslang link", glslang_program_get_info_log(program));
        } else {
            /* optimize_size is what makes glslang run the optimizer: the same passes as spirv-opt -O. Where matrices
             * are added (SUM_OF, gemm_pieces.comp) its rules for OpFAdd ask for a matrix's width, and crash. */
            glslang_spv_options_t options = { .optimize_size = strstr(glsl, "SUM_OF(") == NULL,
                .strip_debug_info = true };
            glslang_program_SPIRV_generate_with_options(program, GLSLANG_STAGE_COMPUTE, &options);
            if (glslang_program_SPIRV_get_size(program) == 0)
                spirv_fail(out, name, "glslang back end", glslang_program_SPIRV_get_messages(program));
            else if (!words_copy(out, program))
                spirv_fail(out, name, "glslang back end", "out of memory");
            else
                done = true;
        }
    }
    if (program != NULL)
        glslang_program_delete(program);
    if (shader != NULL)
        glslang_shader_delete(shader);
    return done;
}

/* From the SPIR-V specification: word 0 of an instruction is (length << 16 | opcode), the header has five words
 * and word 3 of it is the bound of all ids. */
enum {
    SPV_HEADER_WORDS = 5,
    SPV_OP_VARIABLE = 59,
    SPV_OP_DECORATE = 71,
    SPV_DECORATION_RESTRICT = 19,
    SPV_DECORATION_ALIASED = 20,
    SPV_DECORATION_BINDING = 33,
    SPV_DECORATION_SET = 34,
    SPV_STORAGE_BUFFER = 12,
};

/* What the module says of one id. */
typedef struct {
    uint32_t set, binding;
    bool is_bound;   /* has a Binding decoration */
    bool is_storage; /* is a storage buffer variable */
    bool is_settled; /* says Restrict or Aliased already */
    bool is_aliased; /* found here: another storage buffer has its set and binding */
} SpirvId;

/* Words of the instruction at `at`; a broken one takes the rest, and the validator will report it. */
static size_t op_length(const SpirvModule *module, size_t at)
{
    size_t length = module->words[at] >> 16;
    return length == 0 || length > module->count - at ? module->count - at : length;
}

/* Fills `ids` from the module; storage variables go to `buffers` too (room for every id). Their number is returned. */
static size_t ids_read(const SpirvModule *module, SpirvId *ids, uint32_t bound, uint32_t *buffers)
{
    size_t buffer_count = 0;
    const uint32_t *words = module->words;
    for (size_t at = SPV_HEADER_WORDS; at < module->count;) {
        size_t length = op_length(module, at);
        uint32_t opcode = words[at] & 0xFFFF;
        if (opcode == SPV_OP_DECORATE && length >= 3 && words[at + 1] < bound) {
            SpirvId *id = &ids[words[at + 1]];
            if (words[at + 2] == SPV_DECORATION_SET && length == 4)
                id->set = words[at + 3];
            if (words[at + 2] == SPV_DECORATION_BINDING && length == 4) {
                id->binding = words[at + 3];
                id->is_bound = true;
            }
            if (words[at + 2] == SPV_DECORATION_RESTRICT || words[at + 2] == SPV_DECORATION_ALIASED)
                id->is_settled = true;
        }
        if (opcode == SPV_OP_VARIABLE && length >= 4 && words[at + 3] == SPV_STORAGE_BUFFER && words[at + 2] < bound) {
            ids[words[at + 2]].is_storage = true;
            buffers[buffer_count++] = words[at + 2];
        }
        at += length;
    }
    return buffer_count;
}

/* Marks storage buffers that share a set and binding; returns how many. */
static size_t ids_mark_aliases(SpirvId *ids, const uint32_t *buffers, size_t buffer_count)
{
    size_t marked = 0;
    for (size_t i = 0; i < buffer_count; i++) {
        SpirvId *a = &ids[buffers[i]];
        for (size_t j = 0; j < buffer_count && !a->is_aliased; j++) {
            const SpirvId *b = &ids[buffers[j]];
            a->is_aliased = i != j && a->is_bound && b->is_bound && !a->is_settled && a->set == b->set &&
                            a->binding == b->binding;
        }
        marked += a->is_aliased;
    }
    return marked;
}

/* Kernels see the arena as `float f[]`, `int i[]` and more, all on one binding. SPIR-V (section 2.18.2) lets a driver
 * assume that two variables never overlap unless both say Aliased, which glslang does not write for GLSL: so it is
 * written here, `OpDecorate %v Aliased` next to `OpDecorate %v Binding`. */
static bool words_alias(SpirvModule *module)
{
    uint32_t bound = module->count >= SPV_HEADER_WORDS ? module->words[3] : 0;
    SpirvId *ids = calloc((size_t)bound + 1, sizeof *ids);
    uint32_t *buffers = malloc(module->count * sizeof *buffers);
    uint32_t *wider = NULL;
    bool done = false;
    if (ids == NULL || buffers == NULL)
        goto end;
    size_t marked = ids_mark_aliases(ids, buffers, ids_read(module, ids, bound, buffers));
    done = marked == 0;
    if (done)
        goto end;
    wider = malloc((module->count + 3 * marked) * sizeof *wider);
    if (wider == NULL)
        goto end;
    memcpy(wider, module->words, SPV_HEADER_WORDS * sizeof *wider);
    size_t count = SPV_HEADER_WORDS;
    for (size_t at = SPV_HEADER_WORDS; at < module->count;) {
        const uint32_t *op = &module->words[at];
        size_t length = op_length(module, at);
        memcpy(&wider[count], op, length * sizeof *wider);
        count += length;
        at += length;
        if (op[0] == (4u << 16 | SPV_OP_DECORATE) && length == 4 && op[2] == SPV_DECORATION_BINDING && op[1] < bound &&
            ids[op[1]].is_aliased) {
            wider[count++] = 3u << 16 | SPV_OP_DECORATE;
            wider[count++] = op[1];
            wider[count++] = SPV_DECORATION_ALIASED;
        }
    }
    free(module->words);
    module->words = wider;
    module->count = count;
    done = true;
end:
    free(ids);
    free(buffers);
    return done;
}

static bool words_validate(const char *name, SpirvModule *out)
{
    spv_context context = spvContextCreate(SPV_ENV_VULKAN_1_2);
    if (context == NULL)
        return spirv_fail(out, name, "spirv-val", "out of memory");
    spv_diagnostic diagnostic = NULL;
    bool valid = spvValidateBinary(context, out->words, out->count, &diagnostic) == SPV_SUCCESS;
    if (!valid)
        spirv_fail(out, name, "spirv-val", diagnostic != NULL ? diagnostic->error : NULL);
    spvDiagnosticDestroy(diagnostic);
    spvContextDestroy(context);
    return valid;
}

bool spirv_compile(const char *glsl, const char *name, SpirvModule *out)
{
    memset(out, 0, sizeof *out);
    if (!glsl_to_words(glsl, name, out))
        return false;
    if (!words_alias(out))
        return spirv_fail(out, name, "spirv", "out of memory");
    return words_validate(name, out);
}

#else

const char *spirv_versions(void)
{
    return "none";
}

bool spirv_compile(const char *glsl, const char *name, SpirvModule *out)
{
    (void)glsl;
    memset(out, 0, sizeof *out);
    return spirv_fail(out, name, "spirv", "burncc was built without glslang");
}

#endif
