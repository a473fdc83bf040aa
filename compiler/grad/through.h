// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients through QuantizeLinear and DequantizeLinear; see through.c.
#ifndef BURNCC_THROUGH_H
#define BURNCC_THROUGH_H
#include "ir.h"

void straight_through(Graph *g);                        // of a model, before it is differentiated
#endif
