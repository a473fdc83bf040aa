// SPDX-License-Identifier: MIT OR Apache-2.0
//
// runtime/vulkan.c: copies of many megabytes, which several threads of the runtime share out (vulkan/porters.h): to
// every byte what was written comes back, from several threads of the caller at once, of odd sizes, where the host
// reaches the device's memory and where it does not; and a device that is closed has none of these threads left.

#define _GNU_SOURCE

#include "vulkan.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MIB = 1 << 20, CALLERS = 3, ROUNDS = 4 };

typedef struct { burn_vk *vk; unsigned seed; const char *wrong; } Caller;

static unsigned char byte_of(unsigned seed, size_t i)
{
    return (unsigned char)((seed + i * 2654435761u) >> 13);
}

static void *call(void *argument)
{
    Caller *c = argument;
    static const size_t sizes[ROUNDS] = { 9 * MIB + 7, 2 * MIB, 2 * MIB - 1, 17 * MIB + 513 };
    unsigned char *there = malloc(18 * MIB), *back = malloc(18 * MIB);
    burn_vk_buffer *buffer = NULL;
    if (there == NULL || back == NULL || burn_vk_buffer_new(c->vk, 18 * MIB, &buffer) != BURN_OK)
        c->wrong = "no memory";
    for (int round = 0; round < ROUNDS && !c->wrong; round++) {
        const size_t bytes = sizes[round];
        for (size_t i = 0; i < bytes; i++)
            there[i] = byte_of(c->seed + (unsigned)round, i);
        memset(back, 0xa5, bytes + 1);
        if (burn_vk_write(buffer, 4, there, bytes) != BURN_OK || burn_vk_read(buffer, 4, back, bytes) != BURN_OK)
            c->wrong = "an error";
        else if (memcmp(there, back, bytes) != 0)
            c->wrong = "other bytes";
        else if (back[bytes] != 0xa5)
            c->wrong = "more bytes";
    }
    burn_vk_buffer_free(buffer);
    free(there);
    free(back);
    return NULL;
}

static int threads_now(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks != NULL && readdir(tasks) != NULL)
        n++;
    if (tasks != NULL)
        closedir(tasks);
    return n;
}

static void copies(void)
{
    burn_vk *vk = open_or_skip();
    Caller callers[CALLERS];
    pthread_t threads[CALLERS];
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){ vk, 1000 * i, NULL };
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    burn_vk_close(vk);
    for (int i = 0; i < CALLERS; i++)
        if (callers[i].wrong)
            fail_msg("caller %d: %s", i, callers[i].wrong);
}

static void test_mapped(void **state)
{
    (void)state;
    const int before = threads_now();
    copies();
    for (int i = 0; i < 1000 && threads_now() != before; i++)
        usleep(1000); /* the kernel may still count those that have ended */
    assert_int_equal(threads_now(), before);
}

static void test_staged(void **state)
{
    (void)state;
    setenv("BURN_VK_STAGING", "1", 1);
    copies();
    unsetenv("BURN_VK_STAGING");
}

int main(void)
{
    /* The software driver stays loaded: what its own variables hold is no leak then. */
    (void)dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_staged), cmocka_unit_test(test_mapped) };
    return cmocka_run_group_tests_name("vulkan large", tests, NULL, NULL);
}
