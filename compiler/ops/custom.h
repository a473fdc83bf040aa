// SPDX-License-Identifier: MIT OR Apache-2.0
// What is known of a custom operation: its bodies, and what its kernels are given (ops/custom.c).
#ifndef BURNCC_OPS_CUSTOM_H
#define BURNCC_OPS_CUSTOM_H
#include "ir.h"

enum { MAX_CUSTOM_PARAMS = 32 };                        // of a kernel

// A parameter of a kernel; of GLSL's the name alone is known.
typedef struct CustomParam { const char *type, *name; bool is_const, is_pointer; } CustomParam;

// "formula": what it computes, in the language's operations; "gradient": of its inputs, its results and their
// gradients to those of the inputs that its outputs' names count. NULL: it has none
Graph *custom_body(const Node *n, const char *name);
bool custom_points(const Node *n, Dim *out);            // how many shares its kernels can be cut into; false: it is one
// The words of "(const float *x, float *y, int64_t rows)"; their number, or -1
int custom_params(Arena *a, const char *text, CustomParam *to);
#endif
