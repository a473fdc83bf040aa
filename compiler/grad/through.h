// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients through QuantizeLinear and DequantizeLinear; see through.c.
#ifndef BURNCC_THROUGH_H
#define BURNCC_THROUGH_H
#include "ir.h"

// Of a model, before it is differentiated: once scales do not learn, and it is known what does; inputs: they are what
// something is differentiated by, too.
void straight_scales(Graph *g);
void straight_through(Graph *g, bool inputs);
#endif
