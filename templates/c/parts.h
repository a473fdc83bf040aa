// SPDX-License-Identifier: MIT OR Apache-2.0
/* A kernel in parts: on the caller's threads, or one part after the other. Part of generated code that is compiled with
 * --threads.
 *
 * The idea: there are more parts than workers, the tasks that are handed to threads. Each worker first does its own
 * share of the parts, neighbours, whose memory its processor has near; then it takes from the ends of the others'
 * shares what nobody has begun. So a thread that is late, or never comes, holds up the rest by one part at most. Where
 * the C compiler offers no atomic operations, shares stay as they are.
 */
#include "../../runtime/burn.h"

#ifndef BURN_WORKERS
#define BURN_WORKERS 256 /* at most */
#endif

typedef struct burn_share {
    uint32_t left; /* parts that nobody has begun: the first, and in the upper half the one after the last */
    unsigned char apart[60];
} burn_share;

typedef struct burn_work {
    void (*task)(void *argument, int worker, int part);
    void *argument;
    int workers;
    unsigned char apart[64]; /* those above are only read */
    burn_share share[BURN_WORKERS];
} burn_work;

/* A part of the share, the first for its own worker, the last for others; -1: none is left. */
static int burn_take(burn_share *share, int own)
{
#ifdef __GNUC__
    uint32_t left = __atomic_load_n(&share->left, __ATOMIC_RELAXED), first, end;
    do {
        first = left & 0xffff;
        end = left >> 16;
        if (first >= end)
            return -1;
    } while (!__atomic_compare_exchange_n(&share->left, &left, own ? left + 1 : left - 0x10000, 1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return (int)(own ? first : end - 1);
#else
    return own && (share->left & 0xffff) < share->left >> 16 ? (int)(share->left++ & 0xffff) : -1;
#endif
}

static void burn_worker(void *argument, int worker)
{
    burn_work *w = (burn_work *)argument;
    for (int i = 0; i < w->workers; i++)
        for (int part; (part = burn_take(&w->share[(worker + i) % w->workers], i == 0)) >= 0;)
            w->task(w->argument, worker, part);
}

/* Where each worker has one part, it is that of its number: there is nothing to take but whole workers, which the pool
 * does. */
static void burn_worker_part(void *argument, int worker)
{
    const burn_work *const w = (const burn_work *)argument;
    w->task(w->argument, worker, worker);
}

/* Where the part of so many begins, in whole lines of memory of `line` elements. */
static inline ptrdiff_t burn_begin(ptrdiff_t extent, ptrdiff_t line, ptrdiff_t part, ptrdiff_t parts)
{
    const ptrdiff_t at = (extent + line - 1) / line * part / parts * line;
    return at < extent ? at : extent;
}

static void burn_parts(const burn_threads *threads, int workers, int parts,
                       void (*task)(void *argument, int worker, int part), void *argument)
{
    burn_work w;
    w.task = task;
    w.argument = argument;
    w.workers = workers;
    for (int i = 0; i < workers && parts != workers; i++)
        w.share[i].left = (uint32_t)(parts * (i + 1) / workers) << 16 | (uint32_t)(parts * i / workers);
    void (*const worker)(void *, int) = parts == workers ? burn_worker_part : burn_worker;
    if (threads)
        threads->run(threads->pool, workers, worker, &w);
    else
        for (int i = 0; i < workers; i++)
            worker(&w, i);
}
