// SPDX-License-Identifier: MIT OR Apache-2.0
// Training programs made from a model; see train.c.
#ifndef BURNCC_TRAIN_H
#define BURNCC_TRAIN_H
#include "plan.h"

// name: the model's; field: of the generated struct
typedef struct Parameter { const char *name, *field; Type type; Tensor *initial; } Parameter;
typedef struct Training {
    VEC(Parameter) params;
    VEC(Parameter) state;                               // of the optimizer; zero at the start
    Program programs[4];
    int n_programs;
} Training;

Training *train_programs(Graph *model, const Options *o);       // takes the imported graph apart; NULL with diagnostics
#endif
