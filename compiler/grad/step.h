// SPDX-License-Identifier: MIT OR Apache-2.0
// What the optimizer's step and that which computes its gradients have in common; see train.c and step.c.
#ifndef BURNCC_STEP_H
#define BURNCC_STEP_H
#include "train.h"

enum { MAX_OPERANDS = 16 };                             // of an optimizer's row

// A parameter's value and gradient in the graph of a step.
typedef struct Update { const Parameter *of; Value *param, *gradient; } Update;

// train.c
Value *train_input(Graph *g, const char *name, Type type, Role role);
void train_output(Graph *g, Value *v, const char *name, Role role);
bool train_is_trained(const Training *t, const Value *input);
// The hyper-parameters of a row as inputs that are passed by value; how many.
int train_hyper(Graph *g, const char *list, Value **in);
// One node: the row's operation on this parameter; what it gives has the names of the structs' fields.
bool train_update(Graph *g, const struct OptimizerRow *row, const Update *u, int n_hyper, Value *const *hyper);

// step.c: NULL with diagnostics
Graph *step_graph(Training *t, Graph *gradients);
#endif
