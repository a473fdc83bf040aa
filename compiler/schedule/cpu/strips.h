// SPDX-License-Identifier: MIT OR Apache-2.0
// Groups of kernels that may go strip by strip, for those who choose some: for caches (strips.c), for a budget
// (strips_ram.c).
#ifndef BURNCC_SCHEDULE_STRIPS_H
#define BURNCC_SCHEDULE_STRIPS_H
#include "schedule/schedule.h"

enum { MOST_MEMBERS = 12 };

// What of a value a loop kernel reads at step i of an axis: elements per*i+low to per*i+high, as far as there are such.
typedef struct Reach { int axis; int64_t per, low, high, count; } Reach;

typedef struct Member {
    Kernel *k;
    // its result: pixels, what they are computed in multiples of (or up to the last), elements of one and their bytes
    int64_t total, grain, width, bytes;
    int64_t before;                                     // pixels before those that it computes that it reads again
    const Convolution *window;                          // its rows, or NULL
    // of a loop: steps of its axis for `grain` pixels; what it reads
    int64_t steps; Reach reach;
    // the members whose pixels it reads: as its input, and to be added to its own result; -1: none's
    int from, beside;
    bool planes;                                        // its pixels are whole planes of channels
} Member;

typedef struct Trial {
    const Plan *p;
    Member m[MOST_MEMBERS]; int n;
    int parts;
    int64_t most[MOST_MEMBERS];                         // pixels alive at once between a member and the next
    int64_t steps, moved;                               // of all parts; bytes
    double again;                                       // operations that several parts do
} Trial;

int strips_reach(Trial *t, int i);                      // members that a group may have that begins with kernel i
bool strips_closed(const Trial *t);                     // is what lies between these members read by them alone?
// All parts in steps of so many pixels of the last member; out: where the lines go, or NULL.
void strips_walk(Arena *a, Trial *t, int64_t pixels, Strips *out);
int64_t strips_unit(const Trial *t);                    // pixels that steps are multiples of
int64_t strips_buffer(const Trial *t, int i);           // bytes between member i and the next
Strips *strips_make(const Plan *p, Trial *t, int64_t pixels);
// strips_loop.c: does a loop kernel compute its result row by row, along which axis, so many elements a step? What of a
// value it reads then.
bool loop_rows(const Kernel *k, int *axis, int64_t *step);
bool loop_reach(const Kernel *k, const Value *v, Reach *out);
int64_t reach_low(const Reach *r, int64_t step);        // the first element that step and those behind it read
int64_t reach_high(const Reach *r, int64_t step);       // behind the last one that step reads
#endif
