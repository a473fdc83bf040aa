// SPDX-License-Identifier: MIT OR Apache-2.0
// The way from a model to the plans of its programs; see compile.c.
#ifndef BURNCC_COMPILE_H
#define BURNCC_COMPILE_H
#include "plan.h"

struct Training;
struct Model;

enum { MAX_PROGRAMS = 16 };
typedef struct Programs {
    int n;
    Program at[MAX_PROGRAMS];
    const struct Training *training;                    // of --train: what the programs share, else NULL
    int64_t model_bytes;                                // of the constants that the model came with
    const char *settings;                               // of the model's description, as JSON; NULL: it has none
} Programs;

Programs *compile_programs(Arena *a, const Options *o); // NULL with diagnostics
// of a model that is open, from its graph, which passes change
Programs *compile_graph(Arena *a, const Options *o, const struct Model *m, Graph *model);
#endif
