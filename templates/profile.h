/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The marks in generated code that `burncc bench --profile` times: burncc_mark and burncc_unmark around each kernel's
 * call. build.c puts this text before such code, with BURNCC_KERNELS, how many kernels there are, and BURNCC_TRACKS;
 * command/profile.c includes the types alone. Code that is compiled otherwise has no marks.
 *
 * A track is what one thread does at a time: track 0 the run function, track 1 + i worker i of --threads. A kernel may
 * hold others, as If and Loop do; `inner` is the time of these. Times are nanoseconds.
 */
#ifndef BURNCC_PROFILE_H
#define BURNCC_PROFILE_H

#include <stdint.h>

enum { BURNCC_SPANS = 1 << 14, BURNCC_DEPTH = 64 };

typedef struct burncc_span {
    int64_t begin, end;
    int64_t kernel;
} burncc_span;

typedef struct burncc_track {
    int64_t *total, *inner; /* by kernel */
    burncc_span *span; /* those that ended, the first BURNCC_SPANS */
    int64_t spans; /* how many ended */
    int depth;
    burncc_span open[BURNCC_DEPTH];
} burncc_track;

#ifdef BURNCC_KERNELS
#include <time.h>

extern burncc_track burncc_tracks[BURNCC_TRACKS];
static int64_t burncc_times[BURNCC_TRACKS][2][BURNCC_KERNELS];
static burncc_span burncc_spans[BURNCC_TRACKS][BURNCC_SPANS];
burncc_track burncc_tracks[BURNCC_TRACKS];

static int64_t burncc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void burncc_mark(int track, int kernel)
{
    burncc_track *const t = &burncc_tracks[track];
    if (!t->span) {
        t->total = burncc_times[track][0];
        t->inner = burncc_times[track][1];
        t->span = burncc_spans[track];
    }
    if (t->depth++ >= BURNCC_DEPTH)
        return;
    t->open[t->depth - 1].kernel = kernel;
    t->open[t->depth - 1].begin = burncc_now();
}

static void burncc_unmark(int track)
{
    burncc_track *const t = &burncc_tracks[track];
    const int64_t now = burncc_now();
    burncc_span *s;
    if (--t->depth >= BURNCC_DEPTH)
        return;
    s = &t->open[t->depth];
    s->end = now;
    t->total[s->kernel] += now - s->begin;
    if (t->depth > 0)
        t->inner[t->open[t->depth - 1].kernel] += now - s->begin;
    if (t->spans < BURNCC_SPANS)
        t->span[t->spans] = *s;
    t->spans++;
}
#endif
#endif
