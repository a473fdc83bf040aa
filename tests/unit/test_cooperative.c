// SPDX-License-Identifier: MIT OR Apache-2.0
//
// codegen/gpu/cooperative.c: a shader with matrices of GL_NV_cooperative_matrix becomes a module of the KHR extension,
// types, loads, stores and products one by one, with bfloat16 if that is asked for, and of bytes; what cannot be
// rewritten stays as it is. No device of the tests has either extension, and their validator knows the first alone.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/gpu/cooperative.h"

#ifdef HAVE_GLSLANG

#define SHADER(ROWS, COLUMNS, TERMS, MORE)                                                              \
    "#version 450\n"                                                                                    \
    "#pragma use_vulkan_memory_model\n"                                                                 \
    "#extension GL_KHR_memory_scope_semantics : require\n"                                              \
    "#extension GL_NV_cooperative_matrix : require\n"                                                   \
    "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"                            \
    "layout(local_size_x = 32) in;\n"                                                                   \
    "layout(set = 0, binding = 0) buffer Arena { uvec4 a[]; };\n"                                       \
    "const int M = " ROWS ", N = " COLUMNS ", K = " TERMS ";\n"                                          \
    "void main() {\n"                                                                                   \
    "    fcoopmatNV<16, gl_ScopeSubgroup, M, K> x;\n"                                                   \
    "    fcoopmatNV<16, gl_ScopeSubgroup, K, N> y;\n"                                                   \
    "    fcoopmatNV<32, gl_ScopeSubgroup, M, N> c = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);\n"     \
    "    coopMatLoadNV(x, a, 0, 2, false);\n"                                                           \
    "    coopMatLoadNV(y, a, 32, 2, true);\n"                                                           \
    "    c = coopMatMulAddNV(x, y, c);\n" MORE                                                          \
    "    coopMatStoreNV(c, a, 64, 4, true);\n"                                                          \
    "}\n"

enum {
    EXTENSION = 10, CAPABILITY = 17, TYPE_FLOAT = 22, CONSTANT = 43,
    NV_FIRST = 5358, NV_LAST = 5362, KHR_TYPE = 4456, KHR_LOAD = 4457, KHR_STORE = 4458, KHR_MUL_ADD = 4459
};

static SpirvModule compile(const char *glsl)
{
    SpirvModule m;
    if (!spirv_compile(glsl, "matrices", &m))
        fail_msg("%s", m.log != NULL ? m.log : "out of memory");
    return m;
}

/* The i'th instruction with this opcode, or NULL. */
static const uint32_t *op(const SpirvModule *m, uint32_t opcode, int i)
{
    for (size_t at = 5; at < m->count; at += m->words[at] >> 16) {
        assert_true(m->words[at] >> 16 != 0);
        assert_true((m->words[at] >> 16) + at <= m->count);
        if ((m->words[at] & 0xFFFF) == opcode && i-- == 0)
            return &m->words[at];
    }
    return NULL;
}

static int count(const SpirvModule *m, uint32_t opcode)
{
    int n = 0;
    while (op(m, opcode, n) != NULL)
        n++;
    return n;
}

static uint32_t constant(const SpirvModule *m, uint32_t id)
{
    assert_true(id < m->words[3]);
    for (int i = 0; op(m, CONSTANT, i) != NULL; i++)
        if (op(m, CONSTANT, i)[2] == id)
            return op(m, CONSTANT, i)[3];
    fail_msg("%u is no constant", (unsigned)id);
    return 0;
}

static bool has_capability(const SpirvModule *m, uint32_t which)
{
    bool found = false;
    for (int i = 0; op(m, CAPABILITY, i) != NULL; i++)
        found = found || op(m, CAPABILITY, i)[1] == which;
    return found;
}

static bool has_extension(const SpirvModule *m, const char *name)
{
    bool found = false;
    for (int i = 0; op(m, EXTENSION, i) != NULL; i++)
        found = found || strcmp((const char *)(op(m, EXTENSION, i) + 1), name) == 0;
    return found;
}

static void check_module(bool bf16)
{
    SpirvModule m = compile(SHADER("0x10010", "0x20008", "0x30020", ""));
    assert_true(cooperative_rewrite(&m, bf16));
    for (uint32_t opcode = NV_FIRST; opcode <= NV_LAST; opcode++)
        assert_int_equal(count(&m, opcode), 0);
    assert_true(has_capability(&m, 6022) && !has_capability(&m, 5357));
    assert_true(has_capability(&m, 5116) == bf16 && has_capability(&m, 5118) == bf16);
    assert_true(has_extension(&m, "SPV_KHR_cooperative_matrix") && !has_extension(&m, "SPV_NV_cooperative_matrix"));
    assert_true(has_extension(&m, "SPV_KHR_bfloat16") == bf16);
    /* x of 16 x 32 is the left factor, y of 32 x 8 the right, c of 16 x 8 the sum */
    static const uint32_t sizes[3][2] = { { 16, 32 }, { 32, 8 }, { 16, 8 } };
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        const uint32_t *type = op(&m, KHR_TYPE, i);
        assert_non_null(type);
        assert_int_equal(type[0] >> 16, 7);
        const uint32_t use = constant(&m, type[6]);
        assert_in_range(use, 0, 2);
        seen |= 1 << use;
        assert_int_equal(constant(&m, type[3]), 3); /* of a subgroup */
        assert_int_equal(constant(&m, type[4]), sizes[use][0]);
        assert_int_equal(constant(&m, type[5]), sizes[use][1]);
    }
    assert_int_equal(seen, 7);
    assert_int_equal(count(&m, KHR_TYPE), 3);
    /* the layout, rows then columns, before the stride */
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(constant(&m, op(&m, KHR_LOAD, (int)i)[4]), i);
        assert_int_equal(constant(&m, op(&m, KHR_LOAD, (int)i)[5]), 2);
    }
    assert_int_equal(constant(&m, op(&m, KHR_STORE, 0)[3]), 1);
    assert_int_equal(constant(&m, op(&m, KHR_STORE, 0)[4]), 4);
    assert_int_equal(count(&m, KHR_MUL_ADD), 1);
    for (int i = 0; op(&m, TYPE_FLOAT, i) != NULL; i++)
        assert_int_equal(op(&m, TYPE_FLOAT, i)[0] >> 16, bf16 && op(&m, TYPE_FLOAT, i)[2] == 16 ? 4 : 3);
    spirv_free(&m);
}

/* Of bytes a product says that all are signed; of floats it says nothing. */
static void test_bytes(void **state)
{
    static const char *const shaders[] = { SHADER("0x10010", "0x20010", "0x30010", ""),
        "#version 450\n"
        "#pragma use_vulkan_memory_model\n"
        "#extension GL_KHR_memory_scope_semantics : require\n"
        "#extension GL_NV_cooperative_matrix : require\n"
        "#extension GL_NV_integer_cooperative_matrix : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require\n"
        "layout(local_size_x = 32) in;\n"
        "layout(set = 0, binding = 0) buffer Arena { uvec4 a[]; };\n"
        "const int M = 0x10010, N = 0x20010, K = 0x30020;\n"
        "void main() {\n"
        "    icoopmatNV<8, gl_ScopeSubgroup, M, K> x;\n"
        "    icoopmatNV<8, gl_ScopeSubgroup, K, N> y;\n"
        "    icoopmatNV<32, gl_ScopeSubgroup, M, N> c = icoopmatNV<32, gl_ScopeSubgroup, M, N>(0);\n"
        "    coopMatLoadNV(x, a, 0, 2, false);\n"
        "    coopMatLoadNV(y, a, 32, 2, true);\n"
        "    coopMatStoreNV(coopMatMulAddNV(x, y, c), a, 64, 4, false);\n"
        "}\n" };
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        SpirvModule m = compile(shaders[i]);
        assert_true(cooperative_rewrite(&m, false));
        assert_int_equal(count(&m, KHR_MUL_ADD), 1);
        assert_int_equal(op(&m, KHR_MUL_ADD, 0)[0] >> 16, 6 + i);
        if (i > 0)
            assert_int_equal(op(&m, KHR_MUL_ADD, 0)[6], 15);
        assert_true(has_capability(&m, 39) == (i > 0));
        spirv_free(&m);
    }
}

static void test_f16(void **state)
{
    (void)state;
    check_module(false);
}

static void test_bf16(void **state)
{
    (void)state;
    check_module(true);
}

static void expect_refusal(const char *glsl)
{
    SpirvModule m = compile(glsl);
    uint32_t *before = malloc(m.count * sizeof *before);
    const size_t words = m.count;
    assert_non_null(before);
    memcpy(before, m.words, words * sizeof *before);
    assert_false(cooperative_rewrite(&m, false));
    assert_int_equal(m.count, words);
    assert_memory_equal(m.words, before, words * sizeof *before);
    free(before);
    spirv_free(&m);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refusal(SHADER("16", "16", "16", ""));             /* no marks */
    expect_refusal(SHADER("0x10010", "0x10010", "0x30010", "")); /* two alike */
    expect_refusal(SHADER("0x10010", "0x20010", "0x30010", "    for (int i = 0; i < c.length(); i++) c[i] += 1.0;\n"));
    expect_refusal("#version 450\nlayout(local_size_x = 1) in;\nvoid main() { }\n"); /* no matrix */
    SpirvModule empty = { NULL, 0, NULL };
    assert_false(cooperative_rewrite(&empty, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("cooperative", tests, NULL, NULL);
}

#else

int main(void) { return 77; } /* nothing to rewrite without glslang: skipped */

#endif
