// SPDX-License-Identifier: MIT OR Apache-2.0
// Derivatives on request; see request.c.
#ifndef BURNCC_REQUEST_H
#define BURNCC_REQUEST_H
#include "step.h"

// Are the inputs of --input-gradients the model's? Else a diagnostic.
bool request_check(Training *t, const Graph *model, const Options *o);
// Is the gradient by this input of the model asked for?
bool request_takes(const Training *t, const Value *input);
const char *request_gradient_name(Arena *a, const Value *input);
// The graph of NAME_jvp; NULL with diagnostics.
Graph *jvp_graph(const Training *t, Graph *model);
#endif
