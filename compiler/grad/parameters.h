// SPDX-License-Identifier: MIT OR Apache-2.0
// Parameters of training programs; see parameters.c.
#ifndef BURNCC_PARAMETERS_H
#define BURNCC_PARAMETERS_H
#include "train.h"

// Fills t->params, with inputs of the model; false with diagnostics.
bool parameters_make(Training *t, Graph *model, const Options *o);
#endif
