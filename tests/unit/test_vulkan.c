// SPDX-License-Identifier: MIT OR Apache-2.0
//
// runtime/vulkan.c on whatever device is there (lavapipe will do): kernels in levels, float and int views of one arena,
// push constants, workgroups along x and y, a session run more than once, memory mapped and copied, and every refusal.
// Skipped only where there is no Vulkan device at all, or no glslang to make kernels with.

#define _GNU_SOURCE

#include "codegen/gpu/cooperative.h"
#include "vulkan.h"

#include <dlfcn.h>

enum { N = 100 }; /* no multiple of 64: the last workgroup is guarded */

/* Level 0: c = a + b and n = index * 3. Level 1: d = c * weight, and the bits of c through the int view; two
 * stores and a load of the same place through both views. Arena, in elements: a 0, b 128, c 256, n 384, d 512,
 * bits 640, both 768. */
static void check_levels(burn_vk *vk)
{
    SpirvModule add = compile(HEAD "void main() { uint x = gl_GlobalInvocationID.x;\n"
                                   "if (x < 100u) f[256u + x] = f[x] + f[128u + x]; }\n", "add");
    SpirvModule count = compile(HEAD "void main() { uint x = gl_GlobalInvocationID.x;\n"
                                     "if (x < 100u) i[384u + x] = int(x) * 3; }\n", "count");
    SpirvModule last = compile(HEAD "void main() { uint x = gl_GlobalInvocationID.x; if (x >= 100u) return;\n"
                                    "f[512u + x] = f[256u + x] * w[x];\n"
                                    "i[640u + x] = i[256u + x];\n"
                                    "f[768u + x] = float(i[384u + x]);\n"
                                    "i[768u + x] = i[768u + x] ^ int(0x80000000);\n"
                                    "f[768u + x] = f[768u + x] + 0.5; }\n", "last");
    const burn_vk_kernel kernels[] = { kernel("add", &add, 2, 0), kernel("count", &count, 2, 0),
        kernel("last", &last, 2, 1) };
    const burn_vk_io inputs[] = { io("a", 0, N * 4), io("b", 512, N * 4) };
    const burn_vk_io outputs[] = { io("d", 2048, N * 4), io("bits", 2560, N * 4), io("both", 3072, N * 4),
        io("a", 0, N * 4) };
    float weights[N];
    for (int i = 0; i < N; i++)
        weights[i] = 1.0f / (float)(i + 1);
    const burn_vk_program program = program_of("levels", kernels, COUNT(kernels), 4096, sizeof weights, inputs, 2,
        outputs, 4);
    burn_vk_session *session;
    expect_ok(vk, burn_vk_load(vk, &program, weights, &session));
    for (int run = 0; run < 3; run++) {
        float a[N], b[N], d[N], both[N], again[N];
        int32_t bits[N];
        for (int i = 0; i < N; i++) {
            a[i] = (float)(i - 50 + run);
            b[i] = 0.25f * (float)(i * run);
        }
        expect_ok(vk, burn_vk_run(session, (burn_tensor[]){ at(a, N * 4), at(b, N * 4) },
            (burn_tensor[]){ at(d, N * 4), at(bits, N * 4), at(both, N * 4), at(again, N * 4) }));
        for (int i = 0; i < N; i++) {
            float c = a[i] + b[i];
            int32_t c_bits;
            memcpy(&c_bits, &c, 4);
            assert_true(d[i] == c * weights[i]);
            assert_int_equal(bits[i], c_bits);
            assert_true(both[i] == 0.5f - (float)(i * 3));
            assert_true(again[i] == a[i]);
        }
    }
    burn_vk_session_free(session);
    spirv_free(&add);
    spirv_free(&count);
    spirv_free(&last);
}

static void test_levels(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    print_message("%s\n", burn_vk_device_name(vk));
    check_levels(vk);
    assert_string_equal(burn_vk_last_error(vk), "");
    burn_vk_close(vk);
}

/* The same with inputs, outputs and weights copied through staging buffers, and weights of more than one piece. */
static void test_staging(void **state)
{
    (void)state;
    setenv("BURN_VK_STAGING", "1", 1);
    burn_vk *vk = open_or_skip();
    unsetenv("BURN_VK_STAGING");
    check_levels(vk);

    const size_t count = (16u << 20) / 4 + 1000;
    SpirvModule tail = compile(HEAD "void main() { uint x = gl_GlobalInvocationID.x;\n"
                                    "f[x] = w[x] + w[(16 << 20) / 4 - 32 + x]; }\n", "tail");
    const burn_vk_kernel kernels[] = { kernel("tail", &tail, 1, 0) };
    const burn_vk_io output = io("y", 0, 256);
    const burn_vk_program program = program_of("tail", kernels, 1, 256, count * 4, NULL, 0, &output, 1);
    float *weights = malloc(count * 4), y[64];
    assert_non_null(weights);
    for (size_t i = 0; i < count; i++)
        weights[i] = (float)(i % 1021);
    burn_vk_session *session;
    expect_ok(vk, burn_vk_load(vk, &program, weights, &session));
    expect_ok(vk, burn_vk_run(session, NULL, (burn_tensor[]){ at(y, 256) }));
    for (size_t i = 0; i < 64; i++)
        assert_true(y[i] == weights[i] + weights[(16u << 20) / 4 - 32 + i]);
    free(weights);
    burn_vk_session_free(session);
    spirv_free(&tail);
    burn_vk_close(vk);
}

/* A chain of 40 dependent dispatches of one module, told apart by push constants, over workgroups along x and y. */
static void test_push_and_groups(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    SpirvModule step = compile(HEAD "layout(push_constant) uniform Push { uint from, to; float scale; };\n"
                                    "void main() { uint x = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * 192u;\n"
                                    "if (x < 500u) f[to + x] = f[from + x] * scale + 1.0; }\n", "step");
    enum { STEPS = 40, LENGTH = 500 };
    burn_vk_kernel kernels[STEPS];
    uint32_t push[STEPS][3];
    for (uint32_t k = 0; k < STEPS; k++) {
        float scale = k % 2 == 0 ? 0.5f : 2.0f;
        push[k][0] = k % 2 * 512;
        push[k][1] = (k + 1) % 2 * 512;
        memcpy(&push[k][2], &scale, 4);
        kernels[k] = kernel("step", &step, 3, k);
        kernels[k].groups[1] = 3;
        kernels[k].push = push[k];
        kernels[k].push_words = 3;
    }
    const burn_vk_io x_io = io("x", 0, LENGTH * 4);
    const burn_vk_program program = program_of("steps", kernels, STEPS, 4096, 0, &x_io, 1, &x_io, 1);
    burn_vk_session *session;
    expect_ok(vk, burn_vk_load(vk, &program, NULL, &session));
    float x[LENGTH], y[LENGTH];
    double all = 0, sum = 0, each[STEPS];
    for (int i = 0; i < LENGTH; i++)
        x[i] = (float)i;
    expect_ok(vk, burn_vk_run(session, (burn_tensor[]){ at(x, sizeof x) }, (burn_tensor[]){ at(y, sizeof y) }));
    /* the clock runs, and a run after it is as before */
    expect_ok(vk, burn_vk_time(session, &all, each));
    for (int k = 0; k < STEPS; k++) {
        assert_true(each[k] >= 0);
        sum += each[k];
    }
    assert_true(all > 0 && sum > 0);
    memset(y, 0, sizeof y);
    expect_ok(vk, burn_vk_run(session, (burn_tensor[]){ at(x, sizeof x) }, (burn_tensor[]){ at(y, sizeof y) }));
    for (int i = 0; i < LENGTH; i++) {
        float want = x[i];
        for (int k = 0; k < STEPS; k++)
            want = want * (k % 2 == 0 ? 0.5f : 2.0f) + 1.0f;
        assert_true(y[i] == want);
    }
    burn_vk_session_free(session);
    spirv_free(&step);
    burn_vk_close(vk);
}

static void expect_refusal_of(
    burn_vk *vk, const burn_vk_program *program, const void *weights, int code, const char *part)
{
    burn_vk_session *session = (burn_vk_session *)vk;
    assert_int_equal(burn_vk_load(vk, program, weights, &session), code);
    assert_null(session);
    if (strstr(burn_vk_last_error(vk), part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, burn_vk_last_error(vk));
}

static void expect_refusal(burn_vk *vk, const burn_vk_program *program, int code, const char *part)
{
    expect_refusal_of(vk, program, NULL, code, part);
}

/* Of a program that copies 256 bytes: tensors that are not as it says. */
static void check_tensors(burn_vk *vk, burn_vk_session *session, void *x, void *y)
{
    int64_t shape[3] = { 256, 0, 0 };
    const burn_tensor from = { x, 256, shape, BURN_FLOAT, 1 }, to = { y, 256, shape + 1, BURN_FLOAT, 1 };
    burn_tensor other = to;
    assert_int_equal(burn_vk_run(session, NULL, &to), BURN_EINVAL);
    assert_int_equal(burn_vk_run(session, (burn_tensor[]){ at(NULL, 256) }, &to), BURN_EINVAL);
    assert_int_equal(burn_vk_run(session, (burn_tensor[]){ at(x, 255) }, &to), BURN_EINVAL);
    assert_int_equal(burn_vk_run(session, &from, (burn_tensor[]){ at(NULL, 256) }), BURN_EINVAL);
    other.dtype = BURN_INT32;
    assert_int_equal(burn_vk_run(session, &from, &other), BURN_ETYPE);
    other = from;
    other.rank = 2;
    assert_int_equal(burn_vk_run(session, &other, &to), BURN_ESHAPE);
    assert_non_null(strstr(burn_vk_last_error(vk), "input 0 \"x\": a tensor of another rank"));
    shape[0] = 255;
    assert_int_equal(burn_vk_run(session, &from, &to), BURN_ESHAPE);
    shape[0] = 256;
    expect_ok(vk, burn_vk_run(session, &from, &to));
    assert_int_equal(shape[1], 256);
}

/* A kernel in place of another, and one that the device may not have matrices for. */
static void test_instead(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    SpirvModule one = compile(HEAD "void main() { f[64] = 1.0; }\n", "one");
    SpirvModule two = compile(HEAD "void main() { f[64] = 2.0; }\n", "two");
    SpirvModule matrices = compile("#version 450\n"
                                   "#extension GL_KHR_memory_scope_semantics : require\n"
                                   "#extension GL_NV_cooperative_matrix : require\n"
                                   "layout(local_size_x = 32) in;\n"
                                   "layout(set = 0, binding = 0) buffer Arena { float f[]; };\n"
                                   "const int M = 0x10010, N = 0x20010;\n"
                                   "void main() {\n"
                                   "    fcoopmatNV<32, gl_ScopeSubgroup, M, N> c;\n"
                                   "    c = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(3.0);\n"
                                   "    coopMatStoreNV(c, f, 64, 16, false);\n"
                                   "}\n", "matrices");
    assert_true(cooperative_rewrite(&matrices, false));
    const burn_vk_io in = io("x", 0, 256), out = io("y", 256, 256);
    burn_vk_kernel better = kernel("better", &two, 1, 0), usual = kernel("usual", &one, 1, 0);
    const burn_vk_program p = program_of("choice", &usual, 1, 2048, 0, &in, 1, &out, 1);
    usual.instead = &better;
    for (int i = 0; i < 2; i++) {
        float x[64] = { 0 }, y[64];
        const burn_tensor from = at(x, sizeof x), to = at(y, sizeof y);
        burn_vk_session *session;
        expect_ok(vk, burn_vk_load(vk, &p, NULL, &session));
        expect_ok(vk, burn_vk_run(session, &from, &to));
        assert_true(i ? y[0] == 1.0f || y[0] == 3.0f : y[0] == 2.0f);
        burn_vk_session_free(session);
        better = kernel("matrices", &matrices, 1, 0);
    }
    if (strstr(burn_vk_device_name(vk), "llvmpipe") != NULL) {
        const burn_vk_program bad = program_of("matrices", &better, 1, 2048, 0, &in, 1, &out, 1);
        expect_refusal(vk, &bad, BURN_ENODEV, "wants matrices of 16-bit floats, which llvmpipe");
    }
    spirv_free(&one);
    spirv_free(&two);
    spirv_free(&matrices);
    burn_vk_close(vk);
}

static void test_refusals(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    SpirvModule copy = compile(
        HEAD "void main() { f[64 + gl_GlobalInvocationID.x] = f[gl_GlobalInvocationID.x]; }\n", "copy");
    const burn_vk_io in = io("x", 0, 256), out = io("y", 256, 256);
    burn_vk_kernel kernels[2] = { kernel("one", &copy, 1, 0), kernel("two", &copy, 1, 1) };
    const burn_vk_program good = program_of("copy", kernels, 2, 512, 0, &in, 1, &out, 1);
    burn_vk_program bad = good;
    bad.weights_bytes = 4;
    expect_refusal(vk, &bad, BURN_EINVAL, "weights");
    bad = good;
    bad.arena_bytes = 500;
    expect_refusal(vk, &bad, BURN_EINVAL, "output 0 \"y\"");
    bad.arena_bytes = SIZE_MAX - 8;
    expect_refusal(vk, &bad, BURN_ELIMIT, "activations");
    bad = good;
    bad.inputs = NULL;
    expect_refusal(vk, &bad, BURN_EINVAL, "inputs");
    bad = good;
    bad.version = 0;
    expect_refusal(vk, &bad, BURN_EINVAL, "version 0");
    kernels[0].level = 2;
    expect_refusal(vk, &good, BURN_EINVAL, "level 1, after one of level 2");
    kernels[0].level = 0;
    kernels[1].groups[2] = 0;
    expect_refusal(vk, &good, BURN_EINVAL, "\"two\" has no groups along axis 2");
    kernels[1].groups[2] = UINT32_MAX;
    expect_refusal(vk, &good, BURN_ELIMIT, "4294967295 groups");
    kernels[1].groups[2] = 1;
    kernels[1].spirv_words = 0;
    expect_refusal(vk, &good, BURN_EINVAL, "SPIR-V");
    kernels[1].spirv_words = copy.count;
    kernels[1].push_words = 33;
    expect_refusal(vk, &good, BURN_EINVAL, "push");
    kernels[1].push_words = 0;
    expect_refusal(vk, NULL, BURN_EINVAL, "no program");

    burn_vk_session *session;
    expect_ok(vk, burn_vk_load(vk, &good, NULL, &session));
    char x[256] = "carried over", y[256];
    check_tensors(vk, session, x, y);
    assert_memory_equal(x, y, sizeof x);
    burn_vk_session_free(session);
    spirv_free(&copy);
    burn_vk_close(vk);
}

/* Kernels that see parts of the weights: the same module finds other weights at the same place. */
static void test_windows(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    SpirvModule first = compile(HEAD "void main() { uint x = gl_GlobalInvocationID.x; f[x] = w[x]; }\n", "first");
    SpirvModule second =
        compile(HEAD "void main() { uint x = gl_GlobalInvocationID.x; f[64 + x] = w[x]; }\n", "second");
    const burn_vk_io out = io("y", 0, 512);
    const burn_vk_kernel kernels[3] = { kernel("first", &first, 1, 0), kernel("second", &second, 1, 0),
        kernel("first again", &first, 1, 1) };
    burn_vk_window windows[2] = { { 0, 512 }, { 768, 256 } };
    uint32_t window_of[3] = { 0, 1, 1 };
    burn_vk_program p = program_of("windows", kernels, 3, 512, 1024, NULL, 0, &out, 1);
    p.windows = windows;
    p.window_of = window_of;
    p.window_count = 2;
    float weights[256], y[128];
    for (int i = 0; i < 256; i++)
        weights[i] = (float)i;
    for (int version = 2; version <= 3; version++) { /* version 2 has none */
        burn_vk_session *session;
        p.version = version;
        expect_ok(vk, burn_vk_load(vk, &p, weights, &session));
        expect_ok(vk, burn_vk_run(session, NULL, (burn_tensor[]){ at(y, 512) }));
        for (int i = 0; i < 128; i++)
            assert_true(y[i] == (float)(i % 64 + (version == 3 ? 192 : 0)));
        burn_vk_session_free(session);
    }
    window_of[2] = 2;
    expect_refusal_of(vk, &p, weights, BURN_EINVAL, "\"first again\" has no window");
    window_of[2] = 0;
    windows[1].offset = 4;
    expect_refusal_of(vk, &p, weights, BURN_EINVAL, "window 1 does not lie");
    windows[1].offset = 1024;
    expect_refusal_of(vk, &p, weights, BURN_EINVAL, "window 1 does not lie");
    windows[1].offset = 768;
    windows[0].bytes = p.weights_bytes = SIZE_MAX / 2;
    expect_refusal_of(vk, &p, weights, BURN_ELIMIT, "bytes of weights");
    p.windows = NULL;
    expect_refusal_of(vk, &p, weights, BURN_EINVAL, "without windows");
    spirv_free(&first);
    spirv_free(&second);
    burn_vk_close(vk);
}

static void test_open(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    char name[300];
    strncpy(name, burn_vk_device_name(vk), sizeof name - 1);
    name[sizeof name - 1] = '\0';
    burn_vk_close(vk);
    for (char *c = name; *c != '\0'; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    assert_int_equal(burn_vk_open(&vk, name), BURN_OK); /* whatever the letters' case */
    burn_vk_close(vk);
    assert_int_equal(burn_vk_open(&vk, "no such card"), BURN_ENODEV);
    assert_null(vk);
    assert_int_equal(burn_vk_open(NULL, NULL), BURN_EINVAL);
    assert_int_equal(burn_vk_load(NULL, NULL, NULL, NULL), BURN_EINVAL);
    assert_int_equal(burn_vk_run(NULL, NULL, NULL), BURN_EINVAL);
    burn_vk_session_free(NULL);
    burn_vk_close(NULL);
}

int main(void)
{
    /* The software driver stays loaded: what its own variables hold is no leak then. */
    (void)dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_staging),
        cmocka_unit_test(test_push_and_groups),
        cmocka_unit_test(test_instead),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests_name("vulkan", tests, NULL, NULL);
}
