// SPDX-License-Identifier: MIT OR Apache-2.0
//
// codegen/gpu/spirv.c: a kernel compiles to a valid module, twice to the same words; two views of one buffer are marked
// as aliases; bad GLSL is answered with a log that names the kernel and the line. Without glslang: the refusal.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/gpu/spirv.h"

#ifdef HAVE_GLSLANG

static const char two_views[] =
    "#version 450\n"
    "layout(local_size_x = 64) in;\n"
    "layout(set = 0, binding = 0) buffer ArenaF { float f[]; };\n"
    "layout(set = 0, binding = 0) buffer ArenaI { int i[]; };\n"
    "layout(set = 0, binding = 1) readonly buffer WeightsF { float w[]; };\n"
    "float twice(float x) { float y = x; y *= 2.0; return y; }\n"
    "void main() {\n"
    "    uint x = gl_GlobalInvocationID.x;\n"
    "    f[x + 64u] = twice(f[x]) + w[x];\n"
    "    i[x + 128u] = i[x + 64u] + 1;\n"
    "}\n";

/* Instructions with this opcode whose word `at` is `value` (at 0: any). */
static int count_ops(const SpirvModule *m, uint32_t opcode, size_t at, uint32_t value)
{
    int found = 0;
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        assert_true(m->words[i] >> 16 != 0);
        found += (m->words[i] & 0xFFFF) == opcode && (at == 0 || m->words[i + at] == value);
    }
    return found;
}

static void test_compiles(void **state)
{
    (void)state;
    SpirvModule a, b;
    assert_true(spirv_compile(two_views, "two_views", &a));
    assert_null(a.log);
    assert_int_equal(a.words[0], 0x07230203);
    assert_int_equal(a.words[1], 0x00010500);      /* SPIR-V 1.5 */
    assert_int_equal(count_ops(&a, 5, 0, 0), 0);   /* no OpName is left */
    assert_int_equal(count_ops(&a, 57, 0, 0), 0);  /* optimised: the call was inlined */
    assert_true(spirv_compile(two_views, "again", &b));
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.words, b.words, a.count * sizeof *a.words);
    spirv_free(&a);
    spirv_free(&b);
    assert_null(a.words);
    spirv_free(&a);
}

static void test_aliases(void **state)
{
    (void)state;
    SpirvModule m;
    assert_true(spirv_compile(two_views, "two_views", &m));
    assert_int_equal(count_ops(&m, 71, 2, 20), 2); /* both views of binding 0, not the weights */
    spirv_free(&m);
    assert_true(spirv_compile("#version 450\n"
                              "layout(local_size_x = 64) in;\n"
                              "layout(set = 0, binding = 0) buffer A { float a[]; };\n"
                              "layout(set = 0, binding = 1) buffer B { float b[]; };\n"
                              "void main() { b[gl_GlobalInvocationID.x] = a[gl_GlobalInvocationID.x]; }\n",
                              "apart", &m));
    assert_int_equal(count_ops(&m, 71, 2, 20), 0);
    spirv_free(&m);
}

static void expect_log(const char *glsl, const char *part)
{
    SpirvModule m;
    assert_false(spirv_compile(glsl, "my_kernel", &m));
    assert_null(m.words);
    assert_int_equal(m.count, 0);
    assert_non_null(m.log);
    assert_non_null(strstr(m.log, "my_kernel: "));
    if (strstr(m.log, part) == NULL)
        fail_msg("\"%s\" is not in the log: %s", part, m.log);
    assert_int_equal(m.log[strlen(m.log) - 1], '\n');
    spirv_free(&m);
}

static void test_bad_glsl(void **state)
{
    (void)state;
    expect_log(
        "#version 450\nlayout(local_size_x = 64) in;\nvoid main() {\n    float x = nothing;\n}\n", "0:4: 'nothing'");
    expect_log("", "entry point");
    expect_log("#version 450\nlayout(local_size_x = 64) in;\nfloat f(float x);\nvoid main() { f(1.0); }\n", "f(f1;");
    expect_log("#version 450\nlayout(local_size_x = 64) in;\nbuffer float x;\nvoid main() { }\n", "buffer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiles),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_bad_glsl),
    };
    print_message("%s\n", spirv_versions());
    return cmocka_run_group_tests_name("spirv", tests, NULL, NULL);
}

#else

static void test_refuses(void **state)
{
    (void)state;
    SpirvModule m;
    assert_false(spirv_compile("#version 450\nvoid main() { }\n", "k", &m));
    assert_null(m.words);
    assert_string_equal(m.log, "k: spirv: burncc was built without glslang\n");
    spirv_free(&m);
    assert_string_equal(spirv_versions(), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_refuses) };
    return cmocka_run_group_tests_name("spirv", tests, NULL, NULL);
}

#endif
