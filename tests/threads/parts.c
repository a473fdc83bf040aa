// SPDX-License-Identifier: MIT OR Apache-2.0
// templates/c/parts.h: every part is done once, by one worker at a time under each number, whose scratch memory it is;
// and what a worker that is late has not begun, others do. In: nothing. Out: nothing and status 0, or the line that
// does not hold. Built with -DNO_ATOMICS too: shares stay as they are then.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef NO_ATOMICS
#undef __GNUC__
#endif
#define BURN_WORKERS 8
#include "../../templates/c/parts.h"
#include "threads.h"

enum { MOST = 96, ROUNDS = 50 };

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

typedef struct Job {
    int parts, late;         /* the part that comes last, or -1 */
    int times[MOST];
    _Atomic int done, begun[BURN_WORKERS];
} Job;

static void part_done(void *argument, int worker, int part)
{
    Job *j = argument;
    const time_t from = time(NULL);
    CHECK(worker >= 0 && worker < BURN_WORKERS && part >= 0 && part < j->parts);
    CHECK(!atomic_exchange(&j->begun[worker], 1));
    while (part == j->late && j->done < j->parts - 1) {
        CHECK(time(NULL) - from < 60);
        sched_yield();
    }
    j->times[part]++;
    j->done++;
    j->begun[worker] = 0;
}

static void check(const burn_threads *threads, int workers, int parts, int late)
{
    Job j = {.parts = parts, .late = late};
    burn_parts(threads, workers, parts, part_done, &j);
    for (int i = 0; i < MOST; i++)
        CHECK(j.times[i] == (i < parts));
}

/* Somebody's pool: the last worker comes first. */
static void reverse(void *pool, int parts, void (*task)(void *argument, int part), void *argument)
{
    (void)pool;
    while (parts--)
        task(argument, parts);
}

int main(void)
{
    const burn_threads backwards = {NULL, reverse};
    burn_threads pool;
    CHECK(!burn_threads_open(&pool, 3, 0));
    for (int workers = 1; workers <= BURN_WORKERS; workers++)
        for (int parts = 1; parts <= MOST; parts += 19) {
            check(NULL, workers, parts, -1);
            check(&backwards, workers, parts, -1);
            for (int i = 0; i < ROUNDS; i++)
                check(&pool, workers, parts, -1);
        }
#ifdef __GNUC__
    for (int i = 0; i < ROUNDS; i++)
        check(&pool, 3, 24, i % 24);
#endif
    burn_threads_close(&pool);
    return 0;
}
