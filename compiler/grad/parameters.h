// SPDX-License-Identifier: MIT OR Apache-2.0
// Parameters of training programs; see parameters.c.
#ifndef BURNCC_PARAMETERS_H
#define BURNCC_PARAMETERS_H
#include "train.h"

// Gives modules the parameters of their own that training gives them, under the names that it saves them by: shared
// ones as --untie says, and statistics. Before a file of weights is read into the model; false with diagnostics.
bool parameters_part(Graph *model, const Options *o);
// Fills t->params, with inputs of the model; false with diagnostics.
bool parameters_make(Training *t, Graph *model, const Options *o);
#endif
