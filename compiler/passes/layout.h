// SPDX-License-Identifier: MIT OR Apache-2.0
// What layout.c, which turns convolutions, layout_stay.c, which says what is not worth turning, and point_conv.c share.
#ifndef BURNCC_LAYOUT_H
#define BURNCC_LAYOUT_H
#include "passes.h"

bool layout_turns(const Node *n);                       // a convolution that can have its channels last
bool layout_is_product(const Node *n);                  // ... and is a matrix product
// y[n] = w x[n] of type t, of one point each: the weights on the left, the channels first
Value *layout_product(Graph *g, Value *x, Value *w, const Type *t);
// By id of what a convolution gives: true where it keeps its channels first for this back end. For all of g, not its
// bodies. sinks: does a transpose of an operand commute with the node, at least mostly?
bool *layout_stay(Arena *scratch, Graph *g, const Backend *b, bool (*sinks)(const Node *n));
#endif
