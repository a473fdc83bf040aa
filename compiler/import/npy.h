// SPDX-License-Identifier: MIT OR Apache-2.0
// NumPy's .npy files, in and out.
#ifndef BURNCC_NPY_H
#define BURNCC_NPY_H
#include "ir.h"

Tensor *npy_decode(Arena *a, const File *f, const char *path);         // NULL with a diagnostic about path
Tensor *npy_read(Arena *a, const char *path);
bool npy_write(Arena *a, const char *path, const Tensor *t);
#endif
