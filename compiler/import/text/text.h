// SPDX-License-Identifier: MIT OR Apache-2.0
// A model that is a graph already: what the text front end reads, and what a description in C hands over.
#ifndef BURNCC_TEXT_H
#define BURNCC_TEXT_H
#include "import/import.h"

bool text_model(Arena *a, Graph *g, const Options *o, Model *m);          // its ends; false with diagnostics
// of such a model, as FrontEnd has them
Graph *text_graph(Arena *a, const Model *m, const Options *o);
Graph *text_inputs(Arena *a, const Model *m, const Options *o);
#endif
