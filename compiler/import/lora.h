// SPDX-License-Identifier: MIT OR Apache-2.0
// --lora: matrices of low rank beside linear layers; see lora.c.
#ifndef BURNCC_LORA_H
#define BURNCC_LORA_H
#include "options.h"

// A linear layer's product, its weights [in, out], and the two matrices; what is computed from them ends in `part`, and
// `sum` has both.
typedef struct LoraPair { Node *product; Value *a, *b, *part, *sum; } LoraPair;
typedef struct Lora { VEC(LoraPair) at; } Lora;

void lora_freeze(Graph *g, const Options *o);           // of the model as it came, nothing learns
// head: a new last layer, which learns as it is, or NULL. False with diagnostics
bool lora_add(Lora *l, Graph *g, const Options *o, const Node *head);
bool lora_merge(const Lora *l, Graph *g, const Options *o);     // where nothing is trained: into the layers' weights
#endif
