// SPDX-License-Identifier: MIT OR Apache-2.0
// Differentiation of graphs, reverse and forward.
#ifndef BURNCC_GRAD_H
#define BURNCC_GRAD_H
#include "ir.h"

// Puts the backward graph before the cursor; NULL with diagnostics.
Value *const *graph_gradient(Graph *g, Value *loss, int n, Value *const *wrt);
// The same from outputs y whose gradients dy are given: the sum over y of dy * (dy/dwrt).
Value *const *graph_pullback(Graph *g, int n_y, Value *const *y, Value *const *dy, int n, Value *const *wrt);
// The derivatives of y where x moves by v: forward mode.
Value *const *graph_tangent(Graph *g, int n_y, Value *const *y, int n, Value *const *x, Value *const *v);
#endif
