// SPDX-License-Identifier: MIT OR Apache-2.0
// What descriptors of all back ends say in C; see descriptor.c.
#ifndef BURNCC_CODEGEN_C_DESCRIPTOR_H
#define BURNCC_CODEGEN_C_DESCRIPTOR_H
#include "codegen/codegen.h"

// The initializer of a burn_tensor_info goes to *row, and what it points to to *out; of: prefix of these tables' names.
void c_tensor_info(Text *out, Text *row, const Graph *gr, const Type *t, const char *name, const char *of);
// What the model's file says of itself: the table's name, or a null pointer where it says nothing.
const char *c_metadata(Text *out, const Graph *root, const char *name);
// The most bytes that a tensor can take, as an expression.
const char *c_most_bytes(Arena *a, const Graph *g, const Type *t);
#endif
