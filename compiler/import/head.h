// SPDX-License-Identifier: MIT OR Apache-2.0
// --replace-head: a new last layer; see head.c.
#ifndef BURNCC_HEAD_H
#define BURNCC_HEAD_H
#include "options.h"

// o->replace_head classes; 0: as it is. *layer: the new layer, or NULL. False with diagnostics
bool head_replace(Graph *g, const Options *o, const Node **layer);
Value *head_constant(Value *v);                         // that v is, perhaps turned, reshaped or cast; NULL: none
// is `to` as --replace-head makes it of a parameter of type `from`?
bool head_resized(const Type *from, const Type *to, const Options *o);
#endif
