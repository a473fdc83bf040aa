// SPDX-License-Identifier: MIT OR Apache-2.0
// CNames in generated C, read off its text.
#ifndef BURNCC_CODEGEN_C_NAMES_H
#define BURNCC_CODEGEN_C_NAMES_H
#include "c.h"

typedef struct CNames { Arena *arena; StrMap *known; VEC(const char *) list; } CNames;    // each once, in order
void c_names_init(CNames *n, Arena *a);
bool c_names_add(CNames *to, const char *name, size_t length);     // false: it is there
// every identifier of a C text (NULL: none) outside comments and literals
void c_names_each(const char *text, void (*found)(void *ctx, const char *name, size_t length), void *ctx);
void c_names_macros(CNames *to, const char *code);         // that the code defines

// What stands around a file's texts (the head, then what comes behind it), so that a translation unit may include
// several generated files: the first renames what all of them have, the second undoes that and the macros.
void c_names_apart(const CFile *g, int n, const char *const *texts, Text *begin, Text *end);
#endif
