// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What runtime/vulkan.c does when a call fails. It is compiled in here with every call of Vulkan, and every allocation
// of the host, taken by a macro that may refuse it and counts what is made and destroyed. Programs run again and again,
// each time with the next call refused, once as out of memory and once as a lost device, until one meets no refusal:
// each of them ends in a code and a reason, and leaves nothing behind. Then 10,000 runs, which leave nothing either.

#define _GNU_SOURCE

#include "vulkan.h"

#include <dlfcn.h>
#include <malloc.h>

#include "two_queues.h"

static struct {
    _Atomic int calls;         // threads that make pipelines count, too
    int refused_at;            // the call to refuse, from 1; 0: none
    VkResult with;
    _Atomic int alive;         // objects of Vulkan, and blocks of memory
    const char *last;          // what was refused
    const char *before;        // the call before: who asks again and again counts once
    VkDevice device;           // on which nothing runs any more when it is lost
    bool lost;                 // what is lost stays lost
} fault;

static bool refuse(const char *call)
{
    const bool again = fault.before != NULL && strcmp(fault.before, call) == 0 &&
                       strcmp(call, "vkGetSemaphoreCounterValue") == 0;
    fault.before = call;
    if (!again && ++fault.calls == fault.refused_at) {
        fault.last = call;
        fault.lost = fault.with == VK_ERROR_DEVICE_LOST;
        if (fault.lost && fault.device != VK_NULL_HANDLE)
            vkDeviceWaitIdle(fault.device);
        return true;
    }
    return fault.lost && (strcmp(call, "vkQueueSubmit") == 0 || strcmp(call, "vkWaitSemaphores") == 0);
}

static VkResult made(VkResult result, int number)
{
    fault.alive += result == VK_SUCCESS ? number : 0;
    return result;
}

static void gone(bool was)
{
    fault.alive -= was;
}

#define CALL(call, ...) (refuse(#call) ? fault.with : call(__VA_ARGS__))
#define MAKE(call, number, ...) made(CALL(call, __VA_ARGS__), number)
#define GONE(object, call) (gone((object) != VK_NULL_HANDLE), call)

// A macro's own name is not replaced again: these call what they are called.
#define vkCreateInstance(...) MAKE(vkCreateInstance, 1, __VA_ARGS__)
#define vkEnumeratePhysicalDevices(...) CALL(vkEnumeratePhysicalDevices, __VA_ARGS__)
#define vkEnumerateDeviceExtensionProperties(...) CALL(vkEnumerateDeviceExtensionProperties, __VA_ARGS__)
#define vkGetPhysicalDeviceQueueFamilyProperties two_vkGetPhysicalDeviceQueueFamilyProperties
#define vkCreateDevice(...) MAKE(two_vkCreateDevice, 1, __VA_ARGS__)
#define vkGetDeviceQueue two_vkGetDeviceQueue
#define vkCreateSemaphore(...) MAKE(vkCreateSemaphore, 1, __VA_ARGS__)
#define vkCreateBuffer(...) MAKE(two_vkCreateBuffer, 1, __VA_ARGS__)
#define vkAllocateMemory(...) MAKE(vkAllocateMemory, 1, __VA_ARGS__)
#define vkBindBufferMemory(...) CALL(vkBindBufferMemory, __VA_ARGS__)
#define vkMapMemory(...) CALL(vkMapMemory, __VA_ARGS__)
#define vkCreateCommandPool(...) MAKE(two_vkCreateCommandPool, 1, __VA_ARGS__)
#define vkAllocateCommandBuffers(...) CALL(vkAllocateCommandBuffers, __VA_ARGS__)
#define vkBeginCommandBuffer(...) CALL(vkBeginCommandBuffer, __VA_ARGS__)
#define vkEndCommandBuffer(...) CALL(vkEndCommandBuffer, __VA_ARGS__)
#define vkCreateDescriptorSetLayout(...) MAKE(vkCreateDescriptorSetLayout, 1, __VA_ARGS__)
#define vkCreatePipelineLayout(...) MAKE(vkCreatePipelineLayout, 1, __VA_ARGS__)
#define vkCreateDescriptorPool(...) MAKE(vkCreateDescriptorPool, 1, __VA_ARGS__)
#define vkAllocateDescriptorSets(...) CALL(vkAllocateDescriptorSets, __VA_ARGS__)
#define vkCreateShaderModule(...) MAKE(vkCreateShaderModule, 1, __VA_ARGS__)
#define vkCreateComputePipelines(...) MAKE(vkCreateComputePipelines, 1, __VA_ARGS__)
#define vkCreatePipelineCache(...) MAKE(vkCreatePipelineCache, 1, __VA_ARGS__)
#define vkGetPipelineCacheData(...) CALL(vkGetPipelineCacheData, __VA_ARGS__)
#define vkCreateQueryPool(...) MAKE(vkCreateQueryPool, 1, __VA_ARGS__)
#define vkGetQueryPoolResults(...) CALL(vkGetQueryPoolResults, __VA_ARGS__)
#define vkQueueSubmit(...) CALL(vkQueueSubmit, __VA_ARGS__)
#define vkWaitSemaphores(...) CALL(vkWaitSemaphores, __VA_ARGS__)
#define vkGetSemaphoreCounterValue(...) CALL(vkGetSemaphoreCounterValue, __VA_ARGS__)
#define vkDestroyInstance(x, a) GONE(x, vkDestroyInstance(x, a))
#define vkDestroyDevice(x, a) GONE(x, vkDestroyDevice(x, a))
#define vkDestroySemaphore(d, x, a) GONE(x, two_vkDestroySemaphore(d, x, a))
#define vkDestroyBuffer(d, x, a) GONE(x, vkDestroyBuffer(d, x, a))
#define vkFreeMemory(d, x, a) GONE(x, vkFreeMemory(d, x, a))
#define vkDestroyCommandPool(d, x, a) GONE(x, vkDestroyCommandPool(d, x, a))
#define vkDestroyDescriptorSetLayout(d, x, a) GONE(x, vkDestroyDescriptorSetLayout(d, x, a))
#define vkDestroyPipelineLayout(d, x, a) GONE(x, vkDestroyPipelineLayout(d, x, a))
#define vkDestroyDescriptorPool(d, x, a) GONE(x, vkDestroyDescriptorPool(d, x, a))
#define vkDestroyShaderModule(d, x, a) GONE(x, vkDestroyShaderModule(d, x, a))
#define vkDestroyPipeline(d, x, a) GONE(x, vkDestroyPipeline(d, x, a))
#define vkDestroyPipelineCache(d, x, a) GONE(x, vkDestroyPipelineCache(d, x, a))
#define vkDestroyQueryPool(d, x, a) GONE(x, vkDestroyQueryPool(d, x, a))

static void *counted(void *block)
{
    fault.alive += block != NULL;
    return block;
}

#undef calloc
#undef malloc
#undef free
#define calloc(n, size) counted(refuse("calloc") ? NULL : calloc(n, size))
#define malloc(size) counted(refuse("malloc") ? NULL : malloc(size))
#define free(block) (gone((block) != NULL), free(block))

#include "runtime/vulkan.c"

#undef calloc
#undef malloc
#undef free

/* --- what runs --------------------------------------------------------------------------------------------------- */

enum { N = 64, BYTES = N * 4 };
static SpirvModule modules[2];
static burn_vk_kernel kernels[3];
static burn_vk_io in, out[2];
static burn_vk_program program;
static float weights[N];

/* c = x * w; y = c + 1; z = c * w: two modules, two levels. */
static int make_program(void **state)
{
    (void)state;
#ifdef HAVE_GLSLANG
    modules[0] = compile(HEAD "void main() { uint x = gl_GlobalInvocationID.x; f[64u + x] = f[x] * w[x]; }\n", "c");
    modules[1] = compile(HEAD "layout(push_constant) uniform Push { uint to; };\n"
                              "void main() { uint x = gl_GlobalInvocationID.x; f[to + x] = f[64u + x] + 1.0; }\n", "y");
    static const uint32_t to[2] = { 128, 192 };
    kernels[0] = kernel("c", &modules[0], 1, 0);
    for (int i = 0; i < 2; i++) {
        kernels[i + 1] = kernel(i ? "z" : "y", &modules[1], 1, 1);
        kernels[i + 1].push = &to[i];
        kernels[i + 1].push_words = 1;
    }
    in = io("x", 0, BYTES);
    out[0] = io("y", 512, BYTES);
    out[1] = io("z", 768, BYTES);
    program = program_of("faults", kernels, 3, 1024, sizeof weights, &in, 1, out, 2);
#endif
    for (int i = 0; i < N; i++)
        weights[i] = 2;
    return 0;
}

static int free_program(void **state)
{
    (void)state;
    spirv_free(&modules[0]);
    spirv_free(&modules[1]);
    return 0;
}

/* Everything that the runtime does, once; the first error, after which the rest is tried no more. */
static int all_of_it(burn_vk *vk, const char *cache)
{
    burn_vk_session *s = NULL;
    burn_vk_workspace *w = NULL;
    burn_vk_buffer *b = NULL, *host = NULL;
    float x[N] = { 0 }, y[N], z[N];
    double ms, each[3];
    const burn_tensor from[] = { at(x, BYTES) }, to[] = { at(y, BYTES), at(z, BYTES) };
    int rc = cache != NULL ? burn_vk_cache(vk, cache) : BURN_OK;
    if (rc == BURN_OK)
        rc = burn_vk_load(vk, &program, weights, &s);
    if (rc == BURN_OK)
        rc = burn_vk_run(s, from, to);
    if (rc == BURN_OK)
        rc = burn_vk_time(s, &ms, each);
    if (rc == BURN_OK)
        rc = burn_vk_run(s, from, to);
    if (rc == BURN_OK)
        rc = burn_vk_workspace_new(s, &w);
    if (rc == BURN_OK)
        rc = burn_vk_buffer_new(vk, BYTES, &b);
    if (rc == BURN_OK)
        rc = burn_vk_write(b, 0, x, BYTES);
    if (rc == BURN_OK)
        rc = burn_vk_bind_input(w, 0, b, 0);
    if (rc == BURN_OK)
        rc = burn_vk_buffer_new_host(vk, BYTES, &host);
    if (rc == BURN_OK)
        rc = burn_vk_bind_output(w, 1, host, 0);
    if (rc == BURN_OK)
        rc = burn_vk_submit(w, NULL, to);
    while (rc == BURN_OK && (rc = burn_vk_poll(w)) == 0) {}
    rc = rc > 0 ? BURN_OK : rc;
    if (rc == BURN_OK)
        rc = burn_vk_submit(w, NULL, to);
    if (rc == BURN_OK)
        rc = burn_vk_read(b, 0, x, BYTES);
    if (rc == BURN_OK)
        assert_true(y[0] == 1 && z[N - 1] == 1);
    burn_vk_workspace_free(w); /* its run may still be under way */
    burn_vk_buffer_free(b);
    burn_vk_buffer_free(host);
    burn_vk_session_free(s);
    return rc;
}

static void refuse_at(int call, VkResult with)
{
    fault.last = NULL;
    fault.calls = 0;
    fault.refused_at = call;
    fault.with = with;
    fault.lost = false;
}

static void expect_refused(const burn_vk *vk, int rc, int alive)
{
    if (rc >= 0 || (rc != BURN_ENOMEM && rc != BURN_EDEVICE))
        fail_msg("%s refused: code %d", fault.last, rc);
    if (burn_vk_last_error(vk)[0] == '\0')
        fail_msg("%s refused: no reason", fault.last);
    if (fault.alive != alive)
        fail_msg("%s refused: %d objects are left", fault.last, fault.alive - alive);
}

/* Every call from opening a device on. */
static void test_opening(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    burn_vk_close(vk);
    assert_int_equal(fault.alive, 0);
    for (int with = 0; with < 2; with++) {
        for (int call = 1;; call++) {
            refuse_at(call, with ? VK_ERROR_DEVICE_LOST : VK_ERROR_OUT_OF_HOST_MEMORY);
            const int rc = burn_vk_open(&vk, NULL);
            if (rc == BURN_OK)
                break;
            assert_null(vk);
            expect_refused(NULL, rc, 0);
        }
        assert_int_equal(fault.calls, fault.refused_at - 1);
        refuse_at(0, VK_SUCCESS);
        burn_vk_close(vk);
        assert_int_equal(fault.alive, 0);
    }
}

/* Some are survived: there is another kind of memory, or pipelines are not kept. */
static void refuse_each(const char *cache, VkResult with)
{
    burn_vk *vk = open_or_skip();
    vk->spins = cache != NULL; /* as of a card */
    vk->carried_least = two_queues ? 0 : CARRIED_LEAST; /* inputs and outputs go by ways of their own there */
    int call = 1, refused = 0;
    fault.device = vk->device;
    for (const char *last = "";; call++) {
        const int alive = fault.alive;
        refuse_at(call, with);
        const int rc = all_of_it(vk, cache);
        last = fault.last;
        /* what was made for the device, and stays until it closes, is made anew each time */
        cache_close(vk);
        couriers_close(vk);
        if (rc != BURN_OK)
            expect_refused(vk, rc, alive);
        else
            assert_int_equal(fault.alive, alive);
        refused += rc != BURN_OK;
        if (last == NULL)
            break;
    }
    fault.device = VK_NULL_HANDLE;
    refuse_at(0, VK_SUCCESS);
    print_message("%d of %d calls refused end in an error\n", refused, call - 1);
    assert_true(refused > 40 && call < 200);
    burn_vk_close(vk);
    assert_int_equal(fault.alive, 0);
}

static void test_each_call(void **state)
{
    (void)state;
    char folder[] = "/tmp/burn-cache-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    refuse_each(NULL, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    refuse_each(folder, VK_ERROR_OUT_OF_HOST_MEMORY);
    refuse_each(NULL, VK_ERROR_DEVICE_LOST);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void test_each_call_staged(void **state)
{
    (void)state;
    setenv("BURN_VK_STAGING", "1", 1);
    for (int two = 0; two < 2; two++) {
        two_queues = two;
        refuse_each(NULL, VK_ERROR_OUT_OF_DEVICE_MEMORY);
        refuse_each(NULL, VK_ERROR_DEVICE_LOST);
    }
    two_queues = false;
    unsetenv("BURN_VK_STAGING");
}

/* Enough modules that several threads make their pipelines, which run, and are gone when one of the calls is refused,
 * by whichever thread. */
static void test_many_pipelines(void **state)
{
    (void)state;
    enum { MODULES = 24 };
    burn_vk *vk = open_or_skip();
    SpirvModule many[MODULES];
    burn_vk_kernel rows[MODULES + 1];
    char text[512];
    float y[N];
    for (int i = 0; i < MODULES; i++) {
        snprintf(text, sizeof text, HEAD "void main() { uint x = gl_GlobalInvocationID.x; f[x] = %s * w[x] + %d.0; }\n",
            i ? "f[x]" : "0.0", i);
        many[i] = compile(text, "one of many");
        rows[i] = kernel("one of many", &many[i], 1, (uint32_t)i);
    }
    rows[MODULES] = kernel("the first again", &many[0], 1, MODULES);
    const burn_vk_io all = io("y", 0, BYTES);
    burn_vk_program p = program_of("many", rows, MODULES + 1, BYTES, sizeof weights, NULL, 0, &all, 1);
    const int alive = fault.alive;
    int call = 1, refused = 0;
    for (bool more = true; more; call++) {
        burn_vk_session *s = NULL;
        p.kernel_count = call % 2 ? MODULES : MODULES + 1;
        refuse_at(call, VK_ERROR_OUT_OF_HOST_MEMORY);
        const int rc = burn_vk_load(vk, &p, weights, &s);
        more = fault.last != NULL;
        refuse_at(0, VK_SUCCESS);
        if (rc != BURN_OK)
            expect_refused(vk, rc, alive);
        else {
            expect_ok(vk, burn_vk_run(s, NULL, (burn_tensor[]){ at(y, BYTES) }));
            float want = 0;
            for (int i = 0; i < MODULES; i++)
                want = want * 2 + (float)i;
            assert_true(y[N - 1] == (call % 2 ? want : 0));
            burn_vk_session_free(s);
        }
        couriers_close(vk);
        assert_int_equal(fault.alive, alive);
        refused += rc != BURN_OK;
    }
    assert_true(refused > 2 * MODULES);
    for (int i = 0; i < MODULES; i++)
        spirv_free(&many[i]);
    burn_vk_close(vk);
}

static size_t heap_bytes(void)
{
    return mallinfo2().uordblks;
}

/* Neither objects, nor memory of the device, nor the heap grow with the number of runs. */
static void test_many_runs(void **state)
{
    (void)state;
    enum { RUNS = 10000, WARM = 500 };
    burn_vk *vk = open_or_skip();
    burn_vk_session *s;
    float x[N] = { 0 }, y[N], z[N];
    expect_ok(vk, burn_vk_load(vk, &program, weights, &s));
    int alive = 0;
    size_t heap = 0;
    uint64_t before = 0, now = 0, most;
    for (int run = 0; run < WARM + RUNS; run++) {
        x[0] = (float)run;
        expect_ok(vk, burn_vk_run(s, (burn_tensor[]){ at(x, BYTES) }, (burn_tensor[]){ at(y, BYTES), at(z, BYTES) }));
        assert_true(y[0] == 2.0f * (float)run + 1.0f);
        if (run == WARM) {
            alive = fault.alive;
            heap = heap_bytes();
            burn_vk_memory(vk, &before, &most);
        }
    }
    burn_vk_memory(vk, &now, &most);
    assert_int_equal(fault.alive, alive);
    assert_true(now == before && now == most);
    /* the driver's own pools may grow by a few blocks */
    if (heap_bytes() > heap + RUNS * 8)
        fail_msg("the heap grew by %zu bytes", heap_bytes() - heap);
    burn_vk_session_free(s);
    burn_vk_close(vk);
    assert_int_equal(fault.alive, 0);
}

/* Sixteen workgroups count themselves, and the last to be done writes how many there were, beside what it was given,
 * and begins anew. One that is given a number below 0 stops there, as if it had been aborted. */
#define COUNTING                                                                          \
    "#version 450\n"                                                                      \
    "layout(local_size_x = 1) in;\n"                                                      \
    "layout(set = 0, binding = 0) coherent buffer ArenaF { float f[]; };\n"               \
    "layout(set = 0, binding = 0) coherent buffer ArenaU { uint u[]; };\n"                \
    "void main() {\n"                                                                     \
    "    uint before = atomicAdd(u[128], 1u);\n"                                          \
    "    if (before != gl_NumWorkGroups.x - 1u) return;\n"                                \
    "    f[64] = f[0] + float(before);\n"                                                 \
    "    if (f[0] >= 0.0) u[128] = 0u;\n"                                                 \
    "}\n"

static void expect_counted(burn_vk *vk, burn_vk_workspace *w, float given)
{
    float x[N] = { given }, y[N] = { 0 };
    expect_ok(vk, burn_vk_submit(w, (burn_tensor[]){ at(x, BYTES) }, (burn_tensor[]){ at(y, BYTES) }));
    expect_ok(vk, burn_vk_wait(w));
    if (y[0] != given + 15)
        fail_msg("given %g it says %g", (double)given, (double)y[0]);
}

/* Counters are 0 before the first run of each workspace, stay so from run to run, and become so after a failure. */
static void test_counters(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    SpirvModule module = compile(COUNTING, "counting");
    vk->spins = false; /* so that on a card, too, vkWaitSemaphores is what waits */
    const burn_vk_kernel counting = kernel("counting", &module, 16, 0);
    const burn_vk_io x_io = io("x", 0, BYTES), y_io = io("y", 256, BYTES);
    burn_vk_program p = program_of("counting", &counting, 1, 768, 0, &x_io, 1, &y_io, 1);
    burn_vk_session *s;
    burn_vk_workspace *w[2];
    float stop[N] = { -1 }, y[2][N];
    double ms, each;
    p.version = 2;
    p.counters_bytes = 1024;
    assert_int_equal(burn_vk_load(vk, &p, NULL, &s), BURN_EINVAL);
    p.counters_bytes = 256;
    for (int staged = 0; staged < 2; staged++) {
        if (staged)
            setenv("BURN_VK_STAGING", "1", 1);
        expect_ok(vk, burn_vk_load(vk, &p, NULL, &s));
        expect_ok(vk, burn_vk_run(s, (burn_tensor[]){ at(y[0], BYTES) }, (burn_tensor[]){ at(y[1], BYTES) }));
        expect_ok(vk, burn_vk_time(s, &ms, &each));
        for (int i = 0; i < 2; i++)
            expect_ok(vk, burn_vk_workspace_new(s, &w[i]));
        for (int run = 0; run < 5; run++) { /* two under way */
            float x[2][N] = { { (float)run }, { (float)(2 * run) } };
            for (int i = 0; i < 2; i++)
                expect_ok(vk, burn_vk_submit(
                                  w[i], (burn_tensor[]){ at(x[i], BYTES) }, (burn_tensor[]){ at(y[i], BYTES) }));
            for (int i = 0; i < 2; i++)
                expect_ok(vk, burn_vk_wait(w[i]));
            assert_true(y[0][0] == (float)(run + 15) && y[1][0] == (float)(2 * run + 15));
        }
        /* the submission, and then the waiting, is refused */
        for (int call = 1; call <= 2; call++) {
            refuse_at(call, VK_ERROR_OUT_OF_HOST_MEMORY);
            int rc = burn_vk_submit(w[0], (burn_tensor[]){ at(stop, BYTES) }, (burn_tensor[]){ at(y[0], BYTES) });
            if (rc == BURN_OK)
                rc = burn_vk_wait(w[0]);
            assert_int_equal(rc, BURN_ENOMEM);
            assert_string_equal(fault.last, call == 1 ? "vkQueueSubmit" : "vkWaitSemaphores");
            refuse_at(0, VK_SUCCESS);
            (void)burn_vk_wait(w[0]);
            expect_counted(vk, w[0], 3);
            expect_counted(vk, w[0], 4);
        }
        for (int i = 0; i < 2; i++)
            burn_vk_workspace_free(w[i]);
        burn_vk_session_free(s);
    }
    unsetenv("BURN_VK_STAGING");
    spirv_free(&module);
    burn_vk_close(vk);
    assert_int_equal(fault.alive, 0);
}

int main(void)
{
    /* The software driver stays loaded: what its own variables hold is no leak then. */
    (void)dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_each_call),
        cmocka_unit_test(test_each_call_staged),
        cmocka_unit_test(test_many_runs),
        cmocka_unit_test(test_many_pipelines),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests_name("vulkan faults", tests, make_program, free_program);
}
