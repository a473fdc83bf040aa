// SPDX-License-Identifier: MIT OR Apache-2.0
// .safetensors files on their way out: of --train's parameters, and of -o model.safetensors.
#ifndef BURNCC_EXPORT_SAFETENSORS_H
#define BURNCC_EXPORT_SAFETENSORS_H
#include "options.h"

typedef struct SafeTensor { const char *name; const Tensor *tensor; } SafeTensor;

const char *safetensors_name(Arena *a, const char *s);  // as JSON has it between its quotes
const char *safetensors_shape(Arena *a, const Type *t); // [2,3]
extern const OutMark safetensors_mark;                  // of files that may be replaced
// Not committed yet; NULL with a diagnostic.
OutFile *safetensors_write(Arena *a, const char *path, int n, const SafeTensor *tensors);
// The parameters of an imported graph, by the names that --weights knows them by; false with diagnostics.
bool export_safetensors(Arena *a, const Options *o, const Graph *g);
#endif
