// SPDX-License-Identifier: MIT OR Apache-2.0
// The way from a model to the plans of its programs; see compile.c.
#ifndef BURNCC_COMPILE_H
#define BURNCC_COMPILE_H
#include "plan.h"

struct Training;

enum { MAX_PROGRAMS = 4 };
typedef struct Programs {
    int n;
    Program at[MAX_PROGRAMS];
    const struct Training *training;                    // of --train: what the programs share, else NULL
} Programs;

Programs *compile_programs(Arena *a, const Options *o); // NULL with diagnostics
#endif
