// SPDX-License-Identifier: MIT OR Apache-2.0
// Constants as C arrays or as a file; see weights.c.
#ifndef BURNCC_WEIGHTS_H
#define BURNCC_WEIGHTS_H
#include "plan.h"

enum { WEIGHTS_HEADER = 64 };                           // bytes before the data: magic, size, checksum
#define WEIGHTS_SEED 0xcbf29ce484222325u
#define WEIGHTS_PRIME 0x100000001b3u

// int MODEL_weights_check(...)
void weights_print_check(Text *c, const char *model, uint64_t sum, int64_t weight_bytes);
// Those of programs, at their offsets, as words of an array of so many bytes
void weights_print_words(Text *out, int n, const Program *programs, int64_t bytes, const char *name);
uint64_t weights_sum(int n, const Program *programs);    // of all that file or array has
void weights_print_array(Text *out, const Buffer *b, const char *name);
// is it a constant of the file? Strings never are: their elements are addresses
bool weights_in_file(const Buffer *b);
// Those of several functions that have the same bytes become one (Buffer.same), the others follow one another in one
// file: their bytes in all.
int64_t weights_share(int n, const Program *programs);
// not committed yet; NULL with diag
OutFile *weights_write_file(
    Arena *a, int n, const Program *programs, int64_t bytes, const char *path, uint64_t *sum);
#endif
