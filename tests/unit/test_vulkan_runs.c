// SPDX-License-Identifier: MIT OR Apache-2.0
//
// runtime/vulkan.c beyond one run after the other, on whatever device is there: values that stay on the device, several
// runs under way, several threads and models on one device, a device, a buffer and semaphores of the caller, and what
// is listed. Where Vulkan's validation layer is installed it watches, and is silent.

#define _GNU_SOURCE

#include "vulkan.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/vulkan.h"

enum { N = 64, BYTES = N * 4 };

/* y = x * 2 + s, t = s + 1: s is a state that goes from t to s. Arena, in bytes: x 0, s 256, y 512, t 768. */
static const char step_text[] = HEAD "void main() { uint x = gl_GlobalInvocationID.x;\n"
                                     "f[128u + x] = f[x] * 2.0 + f[64u + x]; f[192u + x] = f[64u + x] + 1.0; }\n";
static SpirvModule step_module;
static burn_vk_kernel step_kernel;
static burn_vk_io step_inputs[2], step_outputs[2];
static burn_vk_program step;

static int make_step(void **state)
{
    (void)state;
#ifdef HAVE_GLSLANG
    step_module = compile(step_text, "step");
    step_kernel = kernel("step", &step_module, 1, 0);
    step_inputs[0] = io("x", 0, BYTES);
    step_inputs[1] = io("s", 256, BYTES);
    step_outputs[0] = io("y", 512, BYTES);
    step_outputs[1] = io("t", 768, BYTES);
    step = program_of("step", &step_kernel, 1, 1024, 0, step_inputs, 2, step_outputs, 2);
#endif
    return 0;
}

static int free_step(void **state)
{
    (void)state;
    spirv_free(&step_module);
    return 0;
}

static void fill(float *x, float value)
{
    for (int i = 0; i < N; i++)
        x[i] = value + (float)i;
}

static void expect_all(const float *x, float value, float slope)
{
    for (int i = 0; i < N; i++)
        if (x[i] != value + slope * (float)i)
            fail_msg("element %d is %g, not %g", i, (double)x[i], (double)(value + slope * (float)i));
}

static const burn_tensor none; /* not asked for, or bound */

/* --- values on the device ---------------------------------------------------------------------------------------- */

/* A state that never leaves the device, an output that nobody asks for, an input that stays. */
static void check_state(burn_vk *vk)
{
    burn_vk_session *session;
    burn_vk_workspace *w;
    float x[N], y[N], zero[N] = { 0 }, t[N];
    expect_ok(vk, burn_vk_load(vk, &step, NULL, &session));
    expect_ok(vk, burn_vk_workspace_new(session, &w));
    burn_vk_buffer *memory = burn_vk_workspace_buffer(w);
    assert_int_equal(burn_vk_buffer_bytes(memory), 1024);
    expect_ok(vk, burn_vk_bind_input(w, 1, memory, step_outputs[1].offset));
    expect_ok(vk, burn_vk_bind_output(w, 1, memory, step_outputs[1].offset));
    expect_ok(vk, burn_vk_write(memory, step_outputs[1].offset, zero, BYTES));
    for (int run = 0; run < 5; run++) {
        fill(x, (float)run);
        expect_ok(vk, burn_vk_submit(w, (burn_tensor[]){ at(x, BYTES), none }, (burn_tensor[]){ at(y, BYTES), none }));
        expect_ok(vk, burn_vk_wait(w));
        expect_all(y, 3.0f * (float)run, 2);
    }
    /* x stays as it is; y is not asked for, then goes to a buffer; t is read from where it is */
    burn_vk_buffer *kept;
    expect_ok(vk, burn_vk_buffer_new(vk, 2 * BYTES, &kept));
    expect_ok(vk, burn_vk_bind_input(w, 0, memory, step_inputs[0].offset));
    fill(x, 100);
    expect_ok(vk, burn_vk_write(memory, step_inputs[0].offset, x, BYTES));
    expect_ok(vk, burn_vk_submit(w, NULL, NULL));
    expect_ok(vk, burn_vk_wait(w));
    expect_ok(vk, burn_vk_bind_output(w, 0, kept, BYTES));
    expect_ok(vk, burn_vk_submit(w, NULL, NULL));
    expect_ok(vk, burn_vk_wait(w));
    expect_ok(vk, burn_vk_read(kept, BYTES, y, BYTES));
    expect_all(y, 206, 2);
    expect_ok(vk, burn_vk_read(memory, step_outputs[1].offset, t, BYTES));
    expect_all(t, 7, 0);
    /* and from the buffer in again, y to the caller */
    expect_ok(vk, burn_vk_bind_input(w, 0, kept, BYTES));
    expect_ok(vk, burn_vk_bind_output(w, 0, NULL, 0));
    expect_ok(vk, burn_vk_submit(w, NULL, (burn_tensor[]){ at(y, BYTES), none }));
    expect_ok(vk, burn_vk_wait(w));
    expect_all(y, 2 * 206 + 7, 4);
    burn_vk_workspace_free(w);
    burn_vk_buffer_free(kept);
    burn_vk_session_free(session);
}

/* Two models: the second reads what the first wrote, where it lies. */
static void check_chain(burn_vk *vk)
{
    burn_vk_session *first, *second;
    burn_vk_workspace *a, *b;
    float x[N], s[N] = { 0 }, y[N];
    expect_ok(vk, burn_vk_load(vk, &step, NULL, &first));
    expect_ok(vk, burn_vk_load(vk, &step, NULL, &second));
    expect_ok(vk, burn_vk_workspace_new(first, &a));
    expect_ok(vk, burn_vk_workspace_new(second, &b));
    expect_ok(vk, burn_vk_bind_input(b, 0, burn_vk_workspace_buffer(a), step_outputs[0].offset));
    fill(x, 3);
    expect_ok(vk, burn_vk_submit(a, (burn_tensor[]){ at(x, BYTES), at(s, BYTES) }, NULL));
    expect_ok(vk, burn_vk_wait(a));
    expect_ok(vk, burn_vk_submit(b, (burn_tensor[]){ none, at(s, BYTES) }, (burn_tensor[]){ at(y, BYTES), none }));
    expect_ok(vk, burn_vk_wait(b));
    expect_all(y, 12, 4);
    burn_vk_workspace_free(b);
    burn_vk_workspace_free(a);
    burn_vk_session_free(second);
    burn_vk_session_free(first);
}

static void expect_no_memory_left(burn_vk *vk, uint64_t before)
{
    uint64_t now, most;
    burn_vk_memory(vk, &now, &most);
    assert_true(now == before && most > before);
}

static void test_stays(void **state)
{
    (void)state;
    for (int staged = 0; staged < 2; staged++) {
        if (staged)
            setenv("BURN_VK_STAGING", "1", 1);
        burn_vk *vk = open_or_skip();
        unsetenv("BURN_VK_STAGING");
        uint64_t before, most;
        check_state(vk);
        check_chain(vk);
        burn_vk_memory(vk, &before, &most); /* what a card's copies go through stays until it is closed */
        check_state(vk);
        check_chain(vk);
        expect_no_memory_left(vk, before);
        assert_string_equal(burn_vk_last_error(vk), "");
        burn_vk_close(vk);
    }
}

/* --- several runs ------------------------------------------------------------------------------------------------ */

static void test_in_flight(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    enum { LANES = 4 };
    burn_vk_session *session;
    burn_vk_workspace *w[LANES];
    float x[N], s[N] = { 0 }, y[LANES][N], t[LANES][N];
    expect_ok(vk, burn_vk_load(vk, &step, NULL, &session));
    for (int i = 0; i < LANES; i++)
        expect_ok(vk, burn_vk_workspace_new(session, &w[i]));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < LANES; i++) {
            fill(x, (float)(round * LANES + i)); /* the run has it when submit returns */
            expect_ok(vk, burn_vk_submit(w[i], (burn_tensor[]){ at(x, BYTES), at(s, BYTES) },
                (burn_tensor[]){ at(y[i], BYTES), at(t[i], BYTES) }));
        }
        for (int i = LANES - 1; i >= 0; i--) {
            int ended = 0;
            while (i % 2 == 0 && (ended = burn_vk_poll(w[i])) == 0)
                usleep(10);
            if (i % 2 == 0)
                assert_int_equal(ended, 1);
            else
                expect_ok(vk, burn_vk_wait(w[i]));
            expect_all(y[i], 2.0f * (float)(round * LANES + i), 2);
            expect_all(t[i], 1, 0);
        }
    }
    assert_int_equal(burn_vk_poll(w[0]), 1); /* there is none */
    assert_int_equal(burn_vk_wait(w[0]), BURN_OK);
    /* one at a time each; a workspace may go while its run is under way */
    const burn_tensor in[] = { at(x, BYTES), at(s, BYTES) };
    expect_ok(vk, burn_vk_submit(w[0], in, NULL));
    assert_int_equal(burn_vk_submit(w[0], in, NULL), BURN_EINVAL);
    assert_int_equal(burn_vk_bind_input(w[0], 0, NULL, 0), BURN_EINVAL);
    for (int i = 0; i < LANES; i++)
        burn_vk_workspace_free(w[i]);
    burn_vk_session_free(session);
    burn_vk_close(vk);
}

typedef struct Work { burn_vk *vk; burn_vk_session *session; int number; const char *wrong; } Work;

/* A model of its own, a workspace of the shared model, and turns with its burn_vk_run; errors are this thread's. */
static void *work(void *argument)
{
    Work *job = argument;
    burn_vk_session *own = NULL;
    burn_vk_workspace *w = NULL;
    float x[N], s[N] = { 0 }, y[N], z[N];
    int rc = burn_vk_load(job->vk, &step, NULL, &own);
    if (rc == BURN_OK)
        rc = burn_vk_workspace_new(job->session, &w);
    for (int run = 0; rc == BURN_OK && run < 100; run++) {
        const float value = (float)(1000 * job->number + run);
        fill(x, value);
        rc = burn_vk_submit(w, (burn_tensor[]){ at(x, BYTES), at(s, BYTES) }, (burn_tensor[]){ at(y, BYTES), none });
        if (rc == BURN_OK)
            rc = burn_vk_run(run % 2 ? own : job->session, (burn_tensor[]){ at(x, BYTES), at(s, BYTES) },
                (burn_tensor[]){ at(z, BYTES), none });
        if (rc == BURN_OK)
            rc = burn_vk_wait(w);
        for (int i = 0; i < N; i++)
            if (y[i] != 2 * x[i] || z[i] != 2 * x[i])
                job->wrong = "another thread's values";
    }
    if (rc != BURN_OK || burn_vk_last_error(job->vk)[0] != '\0')
        job->wrong = "an error";
    if (job->number == 2 && burn_vk_submit(w, NULL, NULL) != BURN_EINVAL)
        job->wrong = "no error";
    burn_vk_workspace_free(w);
    burn_vk_session_free(own);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    burn_vk *vk = open_or_skip();
    burn_vk_session *session;
    Work jobs[THREADS];
    pthread_t threads[THREADS];
    expect_ok(vk, burn_vk_load(vk, &step, NULL, &session));
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (Work){ vk, session, i, NULL };
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        if (jobs[i].wrong)
            fail_msg("thread %d: %s", i, jobs[i].wrong);
    assert_string_equal(burn_vk_last_error(vk), ""); /* that of thread 2 was its own */
    burn_vk_session_free(session);
    burn_vk_close(vk);
}

/* --- the caller's Vulkan ----------------------------------------------------------------------------------------- */

static void turn(void *count)
{
    ++*(int *)count;
}

static VkSemaphore semaphore(VkDevice device, VkSemaphoreType type)
{
    VkSemaphoreTypeCreateInfo of = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = type };
    VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &of };
    VkSemaphore out;
    assert_int_equal(vkCreateSemaphore(device, &info, NULL, &out), VK_SUCCESS);
    return out;
}

static VkBuffer buffer(const burn_vk_own *own, VkDeviceMemory *memory)
{
    VkBufferCreateInfo info = { .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = BYTES,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT };
    VkBuffer out;
    VkMemoryRequirements needs;
    assert_int_equal(vkCreateBuffer(own->device, &info, NULL, &out), VK_SUCCESS);
    vkGetBufferMemoryRequirements(own->device, out, &needs);
    uint32_t type = 0;
    while ((needs.memoryTypeBits >> type & 1) == 0)
        type++;
    VkMemoryAllocateInfo allocate = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size,
        .memoryTypeIndex = type };
    assert_int_equal(vkAllocateMemory(own->device, &allocate, NULL, memory), VK_SUCCESS);
    assert_int_equal(vkBindBufferMemory(own->device, out, *memory, 0), VK_SUCCESS);
    return out;
}

/* Two runs with nothing between but a semaphore's value: the second reads the buffer that the first wrote, which waits
 * for a value that the host sets later. A third waits for a semaphore without values. */
static void check_semaphores(burn_vk *vk, const burn_vk_own *own)
{
    burn_vk_session *session;
    burn_vk_workspace *a, *b;
    burn_vk_buffer *shared;
    VkDeviceMemory memory;
    VkBuffer raw = buffer(own, &memory);
    VkSemaphore between = semaphore(own->device, VK_SEMAPHORE_TYPE_BINARY),
                gate = semaphore(own->device, VK_SEMAPHORE_TYPE_TIMELINE);
    float x[N], s[N] = { 0 }, y[N];
    fill(x, 5);
    expect_ok(vk, burn_vk_load(vk, &step, NULL, &session));
    expect_ok(vk, burn_vk_buffer_adopt(vk, raw, BYTES, &shared));
    assert_true(burn_vk_buffer_handle(shared) == raw && burn_vk_buffer_map(shared) == NULL);
    expect_ok(vk, burn_vk_workspace_new(session, &a));
    expect_ok(vk, burn_vk_workspace_new(session, &b));
    expect_ok(vk, burn_vk_bind_output(a, 0, shared, 0));
    expect_ok(vk, burn_vk_bind_input(b, 0, shared, 0));
    const burn_vk_semaphore opened = { gate, 7 }, first = { gate, 8 }, ended[] = { { gate, 9 }, { between, 0 } };
    VkSemaphoreSignalInfo open = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = gate, .value = 7 };
    expect_ok(vk, burn_vk_submit_between(a, (burn_tensor[]){ at(x, BYTES), at(s, BYTES) }, NULL, &opened, 1, &first,
        1));
    expect_ok(vk, burn_vk_submit_between(b, (burn_tensor[]){ none, at(s, BYTES) },
        (burn_tensor[]){ at(y, BYTES), none }, &first, 1, ended, 2));
    assert_int_equal(burn_vk_poll(b), 0);
    assert_int_equal(vkSignalSemaphore(own->device, &open), VK_SUCCESS);
    expect_ok(vk, burn_vk_wait(b));
    expect_ok(vk, burn_vk_wait(a));
    expect_all(y, 20, 4);
    uint64_t value = 0;
    assert_int_equal(vkGetSemaphoreCounterValue(own->device, gate, &value), VK_SUCCESS);
    assert_int_equal(value, 9);
    expect_ok(vk, burn_vk_read(shared, 0, y, BYTES)); /* by way of staging memory */
    expect_all(y, 10, 2);
    expect_ok(vk, burn_vk_submit_between(
        a, (burn_tensor[]){ at(x, BYTES), at(s, BYTES) }, NULL, &ended[1], 1, NULL, 0));
    expect_ok(vk, burn_vk_wait(a));
    assert_int_equal(burn_vk_submit_between(a, NULL, NULL, NULL, 1, NULL, 0), BURN_EINVAL);
    assert_int_equal(burn_vk_submit_between(a, NULL, NULL, &first, 9, NULL, 0), BURN_ELIMIT);
    burn_vk_workspace_free(b);
    burn_vk_workspace_free(a);
    burn_vk_buffer_free(shared);
    burn_vk_session_free(session);
    vkDestroySemaphore(own->device, gate, NULL);
    vkDestroySemaphore(own->device, between, NULL);
    vkDestroyBuffer(own->device, raw, NULL);
    vkFreeMemory(own->device, memory, NULL);
}

static void test_own(void **state)
{
    (void)state;
    burn_vk *maker = open_or_skip(), *vk = NULL;
    burn_vk_own own;
    int turns = 0;
    burn_vk_handles(maker, &own); /* somebody's device and queue */
    check_semaphores(maker, &own);
    own.turns = (burn_vk_turns){ turn, turn, &turns };
    assert_int_equal(burn_vk_adopt(&vk, &own), BURN_OK);
    assert_string_equal(burn_vk_device_name(vk), burn_vk_device_name(maker));
    check_semaphores(vk, &own);
    assert_true(turns > 0 && turns % 2 == 0);
    burn_vk_enter(vk);
    burn_vk_leave(vk);
    burn_vk_close(vk);
    check_semaphores(maker, &own); /* the device is still there */

    burn_vk_features bare = *own.features;
    bare.v12.timelineSemaphore = VK_FALSE;
    own.features = &bare;
    assert_int_equal(burn_vk_adopt(&vk, &own), BURN_ENODEV);
    assert_null(vk);
    assert_non_null(strstr(burn_vk_last_error(NULL), "timelineSemaphore"));
    assert_int_equal(burn_vk_adopt(&vk, NULL), BURN_EINVAL);
    burn_vk_close(maker);
}

/* A kernel in 64-bit floats, on a device whose maker left them off. */
static void test_features(void **state)
{
    (void)state;
    burn_vk *maker = open_or_skip(), *vk = NULL;
    burn_vk_own own;
    SpirvModule wide = compile("#version 450\nlayout(local_size_x = 64) in;\n"
                               "layout(set = 0, binding = 0) buffer ArenaD { double d[]; };\n"
                               "void main() { d[gl_GlobalInvocationID.x] *= 2.0LF; }\n", "wide");
    const burn_vk_kernel kernels[] = { kernel("wide", &wide, 1, 0) };
    const burn_vk_program program = program_of("wide", kernels, 1, 512, 0, NULL, 0, NULL, 0);
    burn_vk_session *session;
    burn_vk_handles(maker, &own);
    burn_vk_features narrow = *own.features;
    narrow.core.features.shaderFloat64 = VK_FALSE;
    own.features = &narrow;
    assert_int_equal(burn_vk_adopt(&vk, &own), BURN_OK);
    assert_int_equal(burn_vk_load(vk, &program, NULL, &session), BURN_ENODEV);
    assert_null(session);
    assert_non_null(strstr(burn_vk_last_error(vk), "kernel \"wide\" wants 64-bit floats, which "));
    burn_vk_close(vk);
    spirv_free(&wide);
    burn_vk_close(maker);
}

/* --- compiled pipelines ------------------------------------------------------------------------------------------ */

/* The one file of a folder; its size, or -1. */
static long only_file(const char *folder, char *path, size_t room)
{
    long bytes = -1;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat of;
        if (e->d_name[0] == '.')
            continue;
        assert_int_equal(bytes, -1);
        snprintf(path, room, "%s/%s", folder, e->d_name);
        assert_int_equal(stat(path, &of), 0);
        bytes = of.st_size;
    }
    closedir(d);
    return bytes;
}

static void load_once(const char *folder)
{
    burn_vk *vk = open_or_skip();
    burn_vk_session *session;
    float x[N], s[N] = { 0 }, y[N];
    expect_ok(vk, burn_vk_cache(vk, folder));
    expect_ok(vk, burn_vk_load(vk, &step, NULL, &session));
    fill(x, 1);
    expect_ok(vk, burn_vk_run(session, (burn_tensor[]){ at(x, BYTES), at(s, BYTES) },
        (burn_tensor[]){ at(y, BYTES), none }));
    expect_all(y, 2, 2);
    burn_vk_session_free(session);
    burn_vk_close(vk);
}

/* It is written once; cut short, changed in any place, or unwritable, it is as if there were none. */
static void test_cache(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    char folder[] = "/tmp/burn-cache-XXXXXX", path[512] = "";
    assert_non_null(mkdtemp(folder));
    load_once(folder);
    const long bytes = only_file(folder, path, sizeof path);
    assert_true(bytes > 0 && strstr(path, "/burn-") && strstr(path, ".vkcache"));
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    load_once(folder);
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino); /* nothing was new */
    const long places[] = { 0, 9, 20, 40, bytes - 1 };
    for (size_t i = 0; i < COUNT(places); i++) {
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        fseek(file, places[i], SEEK_SET);
        const int was = getc(file);
        fseek(file, places[i], SEEK_SET);
        putc(was ^ 0x55, file);
        fclose(file);
        load_once(folder); /* and mends it */
        assert_int_equal(only_file(folder, path, sizeof path), bytes);
    }
    assert_int_equal(truncate(path, bytes / 2), 0);
    load_once(folder);
    assert_int_equal(only_file(folder, path, sizeof path), bytes);
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(burn_vk_cache(vk, folder), BURN_EIO);
    assert_int_equal(burn_vk_cache(NULL, folder), BURN_EINVAL);
    burn_vk_close(vk);
}

/* --- refusals ---------------------------------------------------------------------------------------------------- */

static void test_bindings_refused(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip(), *other = open_or_skip();
    burn_vk_session *session;
    burn_vk_workspace *w, *no_workspace = NULL;
    burn_vk_buffer *small, *foreign, *no_buffer = NULL;
    char byte[4];
    expect_ok(vk, burn_vk_load(vk, &step, NULL, &session));
    expect_ok(vk, burn_vk_workspace_new(session, &w));
    expect_ok(vk, burn_vk_buffer_new(vk, BYTES, &small));
    expect_ok(other, burn_vk_buffer_new(other, BYTES, &foreign));
    assert_int_equal(burn_vk_bind_input(w, 2, small, 0), BURN_EINVAL);
    assert_int_equal(burn_vk_bind_output(w, -1, small, 0), BURN_EINVAL);
    assert_int_equal(burn_vk_bind_input(w, 0, small, 4), BURN_EINVAL);
    assert_non_null(strstr(burn_vk_last_error(vk), "input 0 \"x\": the buffer is too short"));
    assert_int_equal(burn_vk_bind_input(w, 0, small, (size_t)-4), BURN_EINVAL);
    assert_int_equal(burn_vk_bind_output(w, 0, burn_vk_workspace_buffer(w), 2), BURN_EINVAL);
    assert_int_equal(burn_vk_bind_output(w, 0, foreign, 0), BURN_EINVAL);
    assert_non_null(strstr(burn_vk_last_error(vk), "of another device"));
    assert_int_equal(burn_vk_write(small, BYTES - 2, byte, 4), BURN_EINVAL);
    assert_int_equal(burn_vk_read(small, 0, NULL, 4), BURN_EINVAL);
    assert_int_equal(burn_vk_write(NULL, 0, byte, 4), BURN_EINVAL);
    assert_int_equal(burn_vk_buffer_new(vk, 0, &no_buffer), BURN_EINVAL);
    assert_null(no_buffer);
    assert_int_equal(burn_vk_submit(NULL, NULL, NULL), BURN_EINVAL);
    assert_int_equal(burn_vk_poll(NULL), BURN_EINVAL);
    assert_int_equal(burn_vk_wait(NULL), BURN_EINVAL);
    assert_int_equal(burn_vk_workspace_new(NULL, &no_workspace), BURN_EINVAL);
    assert_null(no_workspace);
    burn_vk_buffer_free(small);
    burn_vk_workspace_free(w);
    burn_vk_session_free(session);
    burn_vk_close(vk);
    burn_vk_buffer_free(foreign);
    burn_vk_buffer_free(NULL);
    burn_vk_workspace_free(NULL);
    burn_vk_close(other);
}

static void test_devices(void **state)
{
    (void)state;
    burn_vk *vk = open_or_skip();
    burn_vk_close(vk);
    const int n = burn_vk_devices(NULL, 0);
    assert_true(n > 0);
    burn_vk_device *list = calloc((size_t)n, sizeof *list);
    assert_non_null(list);
    assert_int_equal(burn_vk_devices(list, n), n);
    for (int i = 0; i < n; i++) {
        char number[16];
        assert_true(list[i].name[0] != '\0' && list[i].bytes > 0);
        if (list[i].lacks != NULL)
            continue;
        snprintf(number, sizeof number, "#%d", i);
        assert_int_equal(burn_vk_open(&vk, number), BURN_OK);
        assert_string_equal(burn_vk_device_name(vk), list[i].name);
        burn_vk_close(vk);
    }
    free(list);
    assert_int_equal(burn_vk_open(&vk, "#77"), BURN_ENODEV);
    assert_non_null(strstr(burn_vk_last_error(NULL), "no Vulkan device is called \"#77\"; there are #0 "));
    assert_int_equal(burn_vk_devices(NULL, 1), BURN_EINVAL);
}

int main(void)
{
    /* The software driver stays loaded: what its own variables hold is no leak then. */
    (void)dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stays),
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_bindings_refused),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(silent_under_validation),
    };
    return cmocka_run_group_tests_name("vulkan runs", tests, make_step, free_step);
}
