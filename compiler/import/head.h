// SPDX-License-Identifier: MIT OR Apache-2.0
// --replace-head: a new last layer; see head.c.
#ifndef BURNCC_HEAD_H
#define BURNCC_HEAD_H
#include "options.h"

bool head_replace(Graph *g, const Options *o);          // o->replace_head classes; 0: as it is. False with diagnostics
// is `to` as --replace-head makes it of a parameter of type `from`?
bool head_resized(const Type *from, const Type *to, const Options *o);
#endif
