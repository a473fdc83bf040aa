// SPDX-License-Identifier: MIT OR Apache-2.0
// Which nodes use which parameters; see uses.c.
#ifndef BURNCC_USES_H
#define BURNCC_USES_H
#include "ir.h"

// v is n's input i. stays: a running statistic that is not to run. idle: nothing that is trained for depends on it.
typedef struct Use { Value *v; Node *n; int i; bool stays, idle; } Use;
// at: of the model and its bodies, in their order; values: in the order of their first uses; places: for each of at
// where it meets what is computed (select.c); groups: and the one of --group that it is of, from 1 (update.c)
typedef struct Uses {
    Arena *scratch;
    bool frozen;
    VEC(Use) at; VEC(Value *) values;
    const Use *places; const int *groups;
} Uses;

void uses_find(Uses *u, const Graph *model, const Graph *g);    // appends; g: the model or a body in it
// Those that none of the model's outputs that are marked depends on are idle from here on.
void uses_idle(Uses *u, const Graph *model, const bool *outputs);
bool use_is_statistic(const Use *u);                    // of a batch normalization: its mean or variance
bool use_is_running(const Uses *all, const Use *u);     // one that a step of training moves
bool use_opens_module(const Uses *all, const Use *u);   // the first use of its value in its module?
int uses_modules(const Uses *all, const Value *v);      // how many modules use it
const char *use_own_name(Arena *a, const Use *u);       // as PyTorch would call the parameter: "layers.0.norm.weight"
#endif
