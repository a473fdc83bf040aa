// SPDX-License-Identifier: MIT OR Apache-2.0
// Strings in upper or lower case: unicode.c.
#ifndef BURNCC_OPS_UNICODE_H
#define BURNCC_OPS_UNICODE_H
#include "ops/lower.h"

const char *string_to_case(Arena *a, const char *s, bool upper);            // a copy; what has no other case stays
#endif
