// SPDX-License-Identifier: MIT OR Apache-2.0
// What of the data is remembered beside a model, MODEL.json beside MODEL.onnx; see fit_memory.c.
#ifndef BURNCC_COMMAND_FIT_MEMORY_H
#define BURNCC_COMMAND_FIT_MEMORY_H
#include "base/base.h"
#include "runtime/learn/source.h"

typedef struct FitMemory {
    const char *kind, *settings;                        // of the source
    bool logits, binary;                                // the output: logits of classes; of one class against none
    int class_count; const char *const *classes;        // names; NULL: numbers
    int loss_count; const char *const *losses;          // of --loss, or what is usual
    int column_count; const burn_column *columns;       // of a table
} FitMemory;
// Of a source before a part of it is split off: all but the classes. Columns are the source's.
FitMemory fit_remember(Arena *a, const burn_source *source);
bool fit_memory_write(Arena *a, const char *path, const FitMemory *m);  // false with diagnostics
// Of the model at `path`; *m is zero where there is no file. False with diagnostics.
bool fit_memory_read(Arena *a, const char *path, FitMemory *m);
// An error of the learning library as a diagnostic; was there one?
bool fit_failed(int error, const burn_said *said);
// Data as it was when the model learnt. text: a source, or files without its kind and options.
bool fit_source(Arena *a, const FitMemory *m, const burn_asked *model, const char *text, burn_source *source);

#endif
