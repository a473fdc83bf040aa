// SPDX-License-Identifier: MIT OR Apache-2.0
// Training graphs made from a model; see train.c.
#ifndef BURNCC_TRAIN_H
#define BURNCC_TRAIN_H
#include "options.h"

// name: the model's; field: of the generated struct
typedef struct Parameter { const char *name, *field; Type type; Tensor *initial; } Parameter;
// A program's graph, which has its name; roles: of the outputs, which passes may replace
typedef struct TrainGraph { Graph *graph; const char *doc; Role *roles; } TrainGraph;
enum { MAX_TRAIN_GRAPHS = 4 };
typedef struct Training {
    VEC(Parameter) params;
    VEC(Parameter) state;                               // of the optimizer; zero at the start
    TrainGraph graphs[MAX_TRAIN_GRAPHS];
    int n_graphs;
} Training;

Training *train_graphs(Graph *model, const Options *o); // takes the imported graph apart; NULL with diagnostics
// Do the parameters' initial values go into a file of their own?
bool train_apart(const Training *t, const Options *o);
// Behind the passes: outputs have their roles again, gradients each a value of its own (parameters may share one).
void train_ends(const TrainGraph *t);
#endif
