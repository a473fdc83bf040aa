// SPDX-License-Identifier: MIT OR Apache-2.0
// runtime/threads.c: every part is done once, what tasks write is there afterwards, however many threads, parts,
// callers and naps there are. In: nothing; with an argument, the number of rounds. Out: nothing and status 0, or the
// line that does not hold. Built with and without -fsanitize=thread.
#define _POSIX_C_SOURCE 200809L
#include "threads.h"

#include <pthread.h>
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

int main(int argc, char **argv)
{
    burn_threads t;
    if (argc > 1)
        rounds = atoi(argv[1]);
    for (int count = 1; count <= 5; count++)
        for (unsigned flags = 0; flags < 4; flags++)
            check_pool(count, flags);
    CHECK(burn_threads_open(&t, 0, 0) == BURN_OK);
    run_once(&t, 9, 1);
    burn_threads_close(&t);
    burn_threads_close(NULL);
    CHECK(burn_threads_open(NULL, 2, 0) == BURN_EINVAL);
    CHECK(burn_threads_open(&t, -1, 0) == BURN_EINVAL && !t.pool);
    CHECK(burn_threads_open(&t, 1025, 0) == BURN_EINVAL);
    return 0;
}
