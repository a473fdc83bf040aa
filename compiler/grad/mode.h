// SPDX-License-Identifier: MIT OR Apache-2.0
// What computes otherwise in training than in inference; see mode.c.
#ifndef BURNCC_MODE_H
#define BURNCC_MODE_H
#include "train.h"

// Is n a batch normalization whose statistics a step of training can update: constants, or parameters by now?
bool mode_runs(const Node *n);
double mode_momentum(const Node *n);                    // what its step keeps of a running statistic

// Turns g, a clone of the model for the gradients, into training mode; false with diagnostics. Where something is
// dropped it has an input more, `step`. The statistics of the
// batch become outputs of the role ROLE_GRAD, in the places of the running ones.
bool mode_train(Training *t, Graph *g);
// What a step makes of a running statistic; batches: of how many the statistic is the sum.
Value *mode_run_on(Graph *g, const Parameter *p, Value *running, Value *sum, Value *batches);
#endif
