// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The ways of large inputs and outputs in runtime/vulkan.c, which is compiled in here: from and to the host's tensors
// and memory of the host that the device copies by itself, in one queue and in two, where the host reaches the device's
// memory and where it does not; several under way, behind and before semaphores, after a submission that was refused.
// Where Vulkan's validation layer is installed it watches, and is silent.

#define _GNU_SOURCE

#include "vulkan.h"

#include <dlfcn.h>

#include "two_queues.h"

static int refused_at, submissions; /* the submission to refuse, from 1; 0: none */

static VkResult submit_or_refuse(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence)
{
    return ++submissions == refused_at ? VK_ERROR_OUT_OF_HOST_MEMORY : vkQueueSubmit(queue, count, infos, fence);
}

#define vkGetPhysicalDeviceQueueFamilyProperties two_vkGetPhysicalDeviceQueueFamilyProperties
#define vkCreateDevice two_vkCreateDevice
#define vkGetDeviceQueue two_vkGetDeviceQueue
#define vkCreateCommandPool two_vkCreateCommandPool
#define vkCreateBuffer two_vkCreateBuffer
#define vkDestroySemaphore two_vkDestroySemaphore
#define vkQueueSubmit submit_or_refuse

#include "runtime/vulkan.c"

enum { N = 1200000, BYTES = N * 4, SMALL = 256, AT_Y = SMALL + BYTES, AT_Z = AT_Y + BYTES, ARENA = AT_Z + BYTES };

/* y = x + s, z = y * w, with one s and one w for all: x is of two parts, y and z of three. */
static SpirvModule module;
static burn_vk_kernel adds;
static burn_vk_io inputs[2], outputs[2];
static burn_vk_program program;
static float weights[64];

static int make_program(void **state)
{
    (void)state;
#ifdef HAVE_GLSLANG
    module = compile("#version 450\n"
                     "layout(local_size_x = 64) in;\n"
                     "layout(set = 0, binding = 0) buffer ArenaF { float f[]; };\n"
                     "layout(set = 0, binding = 1) readonly buffer WeightsF { float w[]; };\n"
                     "void main() { uint i = gl_GlobalInvocationID.x, n = 1200000u; float y = f[64u + i] + f[0];\n"
                     "f[64u + n + i] = y; f[64u + 2u * n + i] = y * w[0]; }\n", "adds");
    adds = kernel("adds", &module, N / 64, 0);
    inputs[0] = io("s", 0, SMALL);
    inputs[1] = io("x", SMALL, BYTES);
    outputs[0] = io("y", AT_Y, BYTES);
    outputs[1] = io("z", AT_Z, BYTES);
    program = program_of("ways", &adds, 1, ARENA, sizeof weights, inputs, 2, outputs, 2);
#endif
    weights[0] = 3;
    return 0;
}

static int free_program(void **state)
{
    (void)state;
    spirv_free(&module);
    return 0;
}

static float *vector(void)
{
    float *x = malloc(BYTES);
    assert_non_null(x);
    return x;
}

static void fill(float *x, float value)
{
    for (int i = 0; i < N; i++)
        x[i] = value + (float)(i % 1000);
}

static void expect_all(const float *x, float value, float slope)
{
    for (int i = 0; i < N; i++)
        if (x[i] != value + slope * (float)(i % 1000))
            fail_msg("element %d is %g, not %g", i, (double)x[i], (double)(value + slope * (float)(i % 1000)));
}

static const burn_tensor none;

/* One of each: a workspace, its tensors. */
typedef struct { burn_vk_workspace *w; float s[64], *x, *y, *z; } Lap;

static void lap_open(burn_vk *vk, burn_vk_session *session, Lap *lap)
{
    memset(lap, 0, sizeof *lap);
    expect_ok(vk, burn_vk_workspace_new(session, &lap->w));
    lap->x = vector();
    lap->y = vector();
    lap->z = vector();
}

static void lap_close(Lap *lap)
{
    burn_vk_workspace_free(lap->w);
    free(lap->x);
    free(lap->y);
    free(lap->z);
}

static int lap_submit(Lap *lap, float value)
{
    fill(lap->x, value);
    lap->s[0] = 7;
    return burn_vk_submit(lap->w, (burn_tensor[]){ at(lap->s, SMALL), at(lap->x, BYTES) },
        (burn_tensor[]){ at(lap->y, BYTES), at(lap->z, BYTES) });
}

static void lap_expect(Lap *lap, float value)
{
    expect_all(lap->y, value + 7, 1);
    expect_all(lap->z, 3 * (value + 7), 3);
}

/* From and to tensors; three under way, of which one is polled. */
static void check_tensors(burn_vk *vk, burn_vk_session *session)
{
    enum { LAPS = 3 };
    Lap laps[LAPS];
    for (int i = 0; i < LAPS; i++)
        lap_open(vk, session, &laps[i]);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LAPS; i++)
            expect_ok(vk, lap_submit(&laps[i], (float)(10 * round + i)));
        for (int i = 0; i < LAPS; i++) {
            int ended = i > 0;
            while (!ended)
                ended = burn_vk_poll(laps[i].w);
            assert_int_equal(ended, 1);
            expect_ok(vk, burn_vk_wait(laps[i].w));
            lap_expect(&laps[i], (float)(10 * round + i));
        }
    }
    for (int i = 0; i < LAPS; i++)
        lap_close(&laps[i]);
}

/* x and y in memory of the host that is bound, at an offset; z to a tensor, and then not asked for. */
static void check_host(burn_vk *vk, burn_vk_session *session)
{
    Lap lap;
    burn_vk_buffer *host;
    lap_open(vk, session, &lap);
    assert_int_equal(burn_vk_buffer_new_host(vk, 0, &host), BURN_EINVAL);
    expect_ok(vk, burn_vk_buffer_new_host(vk, 2 * BYTES + 64, &host));
    float *x = burn_vk_buffer_map(host), *y = x + N + 16;
    assert_non_null(x);
    expect_ok(vk, burn_vk_bind_input(lap.w, 1, host, 0));
    expect_ok(vk, burn_vk_bind_output(lap.w, 0, host, BYTES + 64));
    lap.s[0] = 1;
    for (int round = 0; round < 4; round++) {
        fill(x, (float)round);
        expect_ok(vk, burn_vk_submit(lap.w, (burn_tensor[]){ at(lap.s, SMALL), none },
            (burn_tensor[]){ none, round < 3 ? at(lap.z, BYTES) : none }));
        expect_ok(vk, burn_vk_wait(lap.w));
        expect_all(y, (float)(round + 1), 1);
        if (round < 3)
            expect_all(lap.z, (float)(3 * (round + 1)), 3);
    }
    /* and from there to the host in the plain way */
    expect_ok(vk, burn_vk_read(host, BYTES + 64, lap.y, BYTES));
    expect_all(lap.y, 4, 1);
    lap_close(&lap);
    burn_vk_buffer_free(host);
}

/* The second run's x is a buffer that the first one's y is bound to, with nothing between them but a semaphore. */
static void check_semaphores(burn_vk *vk, burn_vk_session *session)
{
    Lap a, b;
    Clock clock = { VK_NULL_HANDLE, 0, 0 };
    burn_vk_buffer *shared;
    lap_open(vk, session, &a);
    lap_open(vk, session, &b);
    expect_ok(vk, clock_create(vk, &clock));
    expect_ok(vk, burn_vk_buffer_new(vk, BYTES, &shared));
    expect_ok(vk, burn_vk_bind_output(a.w, 0, shared, 0));
    expect_ok(vk, burn_vk_bind_input(b.w, 1, shared, 0));
    for (uint64_t round = 0; round < 3; round++) {
        const burn_vk_semaphore gate = { clock.timeline, 3 * round + 1 }, first = { clock.timeline, 3 * round + 2 },
                                second = { clock.timeline, 3 * round + 3 };
        fill(a.x, (float)round);
        a.s[0] = b.s[0] = 1;
        expect_ok(vk, burn_vk_submit_between(a.w, (burn_tensor[]){ at(a.s, SMALL), at(a.x, BYTES) },
            (burn_tensor[]){ none, at(a.z, BYTES) }, &gate, 1, &first, 1));
        assert_int_equal(burn_vk_poll(a.w), 0);
        VkSemaphoreSignalInfo open = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = gate.semaphore,
            .value = gate.value };
        assert_int_equal(vkSignalSemaphore(vk->device, &open), VK_SUCCESS);
        expect_ok(vk, burn_vk_submit_between(b.w, (burn_tensor[]){ at(b.s, SMALL), none },
            (burn_tensor[]){ at(b.y, BYTES), none }, &first, 1, &second, 1));
        expect_ok(vk, burn_vk_wait(b.w));
        expect_ok(vk, burn_vk_wait(a.w));
        expect_all(b.y, (float)(round + 2), 1);
        expect_all(a.z, (float)(3 * (round + 1)), 3);
        uint64_t value = 0;
        assert_int_equal(vkGetSemaphoreCounterValue(vk->device, clock.timeline, &value), VK_SUCCESS);
        assert_int_equal(value, second.value);
    }
    lap_close(&b);
    lap_close(&a);
    burn_vk_buffer_free(shared);
    vkDestroySemaphore(vk->device, clock.timeline, NULL);
}

/* Of a run's submissions each is refused in turn; the next run goes well, waited for in between or not. */
static void check_refused(burn_vk *vk, burn_vk_session *session)
{
    Lap lap;
    lap_open(vk, session, &lap);
    submissions = 0;
    expect_ok(vk, lap_submit(&lap, 1));
    expect_ok(vk, burn_vk_wait(lap.w));
    const int each = submissions;
    for (int at = 1; at <= each; at++) {
        submissions = 0;
        refused_at = at;
        assert_int_equal(lap_submit(&lap, 2), BURN_ENOMEM);
        refused_at = 0;
        if (at % 3 == 1)
            expect_ok(vk, burn_vk_wait(lap.w));
        else if (at % 3 == 2)
            assert_int_equal(burn_vk_poll(lap.w), 1);
        expect_ok(vk, lap_submit(&lap, (float)at));
        expect_ok(vk, burn_vk_wait(lap.w));
        lap_expect(&lap, (float)at);
    }
    submissions = 0;
    refused_at = each;
    assert_int_equal(lap_submit(&lap, 3), BURN_ENOMEM);
    refused_at = 0;
    lap_close(&lap); /* as it is */
}

static void check(bool two, bool staged, int submissions_each)
{
    two_queues = two;
    if (staged)
        setenv("BURN_VK_STAGING", "1", 1);
    burn_vk *vk = open_or_skip();
    unsetenv("BURN_VK_STAGING");
    burn_vk_session *session, *first;
    Lap lap;
    uint64_t before, now, most;
    assert_true((vk->carrier.family != vk->work.family) >= two);
    expect_ok(vk, burn_vk_load(vk, &program, weights, &first));
    expect_ok(vk, burn_vk_load(vk, &program, weights, &session)); /* the weights' way, a second time */
    burn_vk_session_free(first);
    lap_open(vk, session, &lap);
    submissions = 0;
    expect_ok(vk, lap_submit(&lap, 4));
    if (staged)
        assert_int_equal(submissions, submissions_each);
    expect_ok(vk, burn_vk_wait(lap.w));
    lap_expect(&lap, 4);
    lap_close(&lap);
    burn_vk_memory(vk, &before, &most);
    check_tensors(vk, session);
    check_host(vk, session);
    check_semaphores(vk, session);
    check_refused(vk, session);
    burn_vk_memory(vk, &now, &most);
    assert_true(now == before);
    burn_vk_session_free(session);
    burn_vk_close(vk);
}

static void test_one_queue(void **state)
{
    (void)state;
    check(false, false, 0);
    check(false, true, 6);
}

static void test_two_queues(void **state)
{
    (void)state;
    check(true, false, 0);
    check(true, true, 6);
}

/* What is small is among the commands of the run: one submission. */
static void test_small(void **state)
{
    (void)state;
    two_queues = true;
    setenv("BURN_VK_STAGING", "1", 1);
    burn_vk *vk = open_or_skip();
    unsetenv("BURN_VK_STAGING");
    burn_vk_session *session;
    Lap lap;
    vk->carried_least = 1 << 30;
    expect_ok(vk, burn_vk_load(vk, &program, weights, &session));
    lap_open(vk, session, &lap);
    submissions = 0;
    expect_ok(vk, lap_submit(&lap, 5));
    assert_int_equal(submissions, 1);
    expect_ok(vk, burn_vk_wait(lap.w));
    lap_expect(&lap, 5);
    lap_close(&lap);
    burn_vk_session_free(session);
    burn_vk_close(vk);
}

int main(void)
{
    /* The software driver stays loaded: what its own variables hold is no leak then. */
    (void)dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_queue),
        cmocka_unit_test(test_two_queues),
        cmocka_unit_test(test_small),
        cmocka_unit_test(silent_under_validation),
    };
    return cmocka_run_group_tests_name("vulkan ways", tests, make_program, free_program);
}
