// SPDX-License-Identifier: MIT OR Apache-2.0
// What the order of kernels and what is computed again are decided by; see steps.c.
#ifndef BURNCC_STEPS_H
#define BURNCC_STEPS_H
#include "schedule.h"

typedef struct Access { int buffer; bool write; } Access;
typedef struct Step {
    // the first of its kernels, and how many: members of strips stay together
    int kernel, kernels;
    VEC(Access) uses;                                   // each buffer once
    VEC(int) reuse;                                     // buffers that its result may take the bytes of
    // steps that come before and after it, by number in the model's order
    VEC(int) before, after;
    int64_t scratch;
} Step;
typedef struct Steps {
    Arena *a;
    Step *at; int n;
    VEC(Buffer *) buffers;                              // by number from 1
    VEC(bool) in_work;                                  // by number: it takes bytes of the workspace
} Steps;

const Steps *steps_read(Arena *a, const Plan *p);
// Does one of them write what the other uses, buffer number `but` (or -1) aside?
bool step_meets(const Step *x, const Step *y, int but);
void step_use_too(Arena *a, Step *into, const Step *from);      // what `from` uses, `into` uses too
static inline int64_t steps_bytes(const Steps *s, int buffer) {
    return s->in_work.at[buffer] ? s->buffers.at[buffer]->bytes : 0;
}
#endif
