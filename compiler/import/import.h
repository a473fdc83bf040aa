// SPDX-License-Identifier: MIT OR Apache-2.0
// The door for front ends: a model's file becomes a Graph.
#ifndef BURNCC_IMPORT_H
#define BURNCC_IMPORT_H
#include "options.h"

Graph *import_onnx(Arena *a, const char *path, const Options *o);    // NULL with diagnostics: all of them at once
#endif
