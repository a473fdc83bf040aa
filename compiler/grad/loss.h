// SPDX-License-Identifier: MIT OR Apache-2.0
// What --loss asks for, and the loss behind a graph; see loss.c.
#ifndef BURNCC_GRAD_LOSS_H
#define BURNCC_GRAD_LOSS_H
#include "build/loss.h"
#include "options.h"

enum { MAX_LOSS_OPERANDS = 3 };
// n 0: the number
typedef struct LossNumbers { const char *name; double number; int n; const float *at; } LossNumbers;
// One of the losses that are summed.
typedef struct LossTerm {
    const LossRow *row;                                 // NULL: the output is the loss
    int n_outputs, outputs[MAX_LOSS_OPERANDS];          // of the model; operands beyond are arguments like the targets
    double factor;
    const char *reduction;                              // NULL: the mean
    int64_t axis; bool has_axis;                        // of the classes
    int64_t ignored; bool ignores;
    LossNumbers weight;                                 // n 0: none
    VEC(LossNumbers) given;                             // options of the row
    // of the graph that they were last made for
    int n_targets; Value *targets[MAX_LOSS_OPERANDS];
} LossTerm;
typedef VEC(LossTerm) LossTerms;

// Reads the options; false with diagnostics.
bool losses_read(LossTerms *terms, const Graph *model, const Options *o);
bool *losses_outputs(Arena *a, const LossTerms *terms, const Graph *model);     // for each output: is one of it?
// Inputs for what the losses want besides the model's outputs; false with diagnostics.
bool losses_targets(LossTerms *terms, Graph *g);
// The sum of the losses of the graph's outputs in f32, once it has these inputs; NULL with diagnostics.
Value *losses_sum(const LossTerms *terms, Graph *g);
// What the header says of them.
const char *losses_doc(const LossTerms *terms, const Graph *g);
#endif
