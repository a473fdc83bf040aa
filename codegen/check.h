// SPDX-License-Identifier: MIT OR Apache-2.0
// --check: what libclang thinks of a generated file.
#ifndef BURNCC_CHECK_H
#define BURNCC_CHECK_H
#include "plan.h"

// Parses the file as C99, and its header as C++, with all warnings on. Diagnostics name the kernel that they lie in;
// false if there is any.
bool check_c(Arena *a, const char *path, const Options *o);
const char *check_version(void);                        // libclang's version, NULL without it
#endif
