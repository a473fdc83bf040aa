// SPDX-License-Identifier: MIT OR Apache-2.0
// Quantized weights as parameters; see integers.c.
#ifndef BURNCC_INTEGERS_H
#define BURNCC_INTEGERS_H
#include "options.h"

void integers_open(Graph *g);                           // constants of integers become floats that are quantized
void integers_close(Graph *g);                          // and back
#endif
