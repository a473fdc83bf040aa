/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A pool of threads for programs compiled with --threads N (link runtime/threads.c with -pthread; POSIX). In: the
 * number of threads. Out: a burn_threads to hand to run functions. Whoever has a pool already fills in a
 * burn_threads instead, and needs nothing of this.
 */
#ifndef BURN_THREADS_H
#define BURN_THREADS_H

#include "burn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BURN_THREADS_PIN =
        1, /* each worker stays on a processor of its own, counted on from the one that opens the pool (Linux; else
                                nothing). The caller's own thread is left as it is. */
    /* workers sleep at once when there is nothing to do: for machines with other work, at 50 us a wake-up */
    BURN_THREADS_NO_SPIN = 2
};

/* Starts `count` - 1 workers, the calling thread being one of `count`; 0: as many as processors that this process
 * may use. Fills in *out.
 *
 * Part p of a run is for thread p modulo count, the caller being thread 0, so that each processor finds in its
 * caches what it wrote before; a thread that is through with its parts takes those that another has not begun.
 * Workers look for work for half a millisecond after the last one, giving way to other processes after a tenth of
 * it, then sleep; one that is woken begins on a processor that no other thread of the pool is on, where the system
 * has one for it (Linux), and may then be moved as before. Any number of threads may run programs with one pool:
 * while it works for one of them, the others do their parts themselves, and so does a task that calls run().
 * Workers keep the floating-point environment of the thread that opens the pool, block all signals, and do not
 * survive a fork.
 *
 * BURN_EINVAL: out is null or the count beyond 0 to 1024; BURN_ENOMEM: no memory, or no thread to be had. *out is
 * zero after an error. */
int burn_threads_open(burn_threads *out, int count, unsigned flags);

/* Ends the workers and clears *threads; no run may be going on. Null or cleared: nothing. */
void burn_threads_close(burn_threads *threads);

#ifdef __cplusplus
}
#endif

#endif
