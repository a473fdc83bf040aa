// SPDX-License-Identifier: MIT OR Apache-2.0
// runtime/threads.c: every part is done once, what tasks write is there afterwards, however many threads, parts,
// callers and naps there are. In: nothing; with an argument, the number of rounds. Out: nothing and status 0, or the
// line that does not hold. Built with and without -fsanitize=thread.
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 97, CALLERS = 3 };
static int rounds = 300;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

typedef struct Job { int parts, seed, times[MOST], values[MOST]; const burn_threads *inner; } Job;

static void part_done(void *argument, int part)
{
    Job *j = argument;
    j->times[part]++;
    j->values[part] = j->seed * 31 + part;
}

static void run_once(const burn_threads *t, int parts, int seed)
{
    Job j = {.parts = parts, .seed = seed};
    t->run(t->pool, parts, part_done, &j);
    for (int i = 0; i < MOST; i++) {
        CHECK(j.times[i] == (i < parts));
        CHECK(j.values[i] == (i < parts ? seed * 31 + i : 0));
    }
}

static void outer_part(void *argument, int part)
{
    Job *j = argument;
    run_once(j->inner, 5, part);
    j->times[part]++;
}

static void *caller(void *argument)
{
    for (int i = 0; i < rounds; i++)
        run_once(argument, 1 + i % 7, i);
    return NULL;
}

static void nap(long ns)
{
    const struct timespec t = {0, ns};
    nanosleep(&t, NULL);
}

static void check_pool(int count, unsigned flags)
{
    burn_threads t;
    pthread_t callers[CALLERS];
    CHECK(burn_threads_open(&t, count, flags) == BURN_OK);
    for (int i = 0; i < rounds; i++)
        run_once(&t, i % (MOST + 1), i);
    for (int i = 0; i < 8; i++) { // asleep by then, or about to be
        nap(450000 + 50000 * i);
        run_once(&t, 1 + count, i);
    }
    Job nested = {.inner = &t};
    t.run(t.pool, 6, outer_part, &nested);
    for (int i = 0; i < 6; i++)
        CHECK(nested.times[i] == 1);
    for (int i = 0; i < CALLERS; i++)
        CHECK(!pthread_create(&callers[i], NULL, caller, &t));
    for (int i = 0; i < CALLERS; i++)
        CHECK(!pthread_join(callers[i], NULL));
    burn_threads_close(&t);
    CHECK(!t.pool && !t.run);
    burn_threads_close(&t);
}

/* A sleeping worker is woken on another processor than the caller's, and may be moved to any afterwards. */
#ifdef __linux__
typedef struct Meeting { _Atomic int here, processor[2]; cpu_set_t may[2]; } Meeting;

static void meet(void *argument, int part)
{
    Meeting *m = argument;
    m->processor[part] = sched_getcpu();
    CHECK(!sched_getaffinity(0, sizeof m->may[part], &m->may[part]));
    m->here++;
    for (int i = 0; i < 1000 && m->here < 2; i++)
        nap(1000000);
}

static void work_alone(long ns)
{
    struct timespec from, now;
    CHECK(!clock_gettime(CLOCK_MONOTONIC, &from));
    do
        CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
    while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}

static void check_places(void)
{
    enum { TIMES = 20 };
    burn_threads t;
    cpu_set_t before, one;
    int apart = 0;
    CHECK(!sched_getaffinity(0, sizeof before, &before));
    if (CPU_COUNT(&before) < 2)
        return;
    CHECK(burn_threads_open(&t, 2, 0) == BURN_OK);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK(!sched_setaffinity(0, sizeof one, &one));
    for (int i = 0; i < TIMES; i++) {
        Meeting m = {.here = 0};
        work_alone(3000000);
        t.run(t.pool, 2, meet, &m);
        CHECK(m.here == 2 && CPU_EQUAL(&m.may[0], &one) && CPU_EQUAL(&m.may[1], &before));
        apart += m.processor[0] != m.processor[1];
    }
    CHECK(apart > TIMES / 2);
    CHECK(!sched_setaffinity(0, sizeof before, &before));
    burn_threads_close(&t);
}
#else
static void check_places(void) {}
#endif

int main(int argc, char **argv)
{
    burn_threads t;
    if (argc > 1)
        rounds = atoi(argv[1]);
    for (int count = 1; count <= 5; count++)
        for (unsigned flags = 0; flags < 4; flags++)
            check_pool(count, flags);
    check_places();
    CHECK(burn_threads_open(&t, 0, 0) == BURN_OK);
    run_once(&t, 9, 1);
    burn_threads_close(&t);
    burn_threads_close(NULL);
    CHECK(burn_threads_open(NULL, 2, 0) == BURN_EINVAL);
    CHECK(burn_threads_open(&t, -1, 0) == BURN_EINVAL && !t.pool);
    CHECK(burn_threads_open(&t, 1025, 0) == BURN_EINVAL);
    return 0;
}
