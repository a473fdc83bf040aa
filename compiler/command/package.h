// SPDX-License-Identifier: MIT OR Apache-2.0
// Between package.c, which has the table of the kinds of packages, and the files that say what one kind's files have in
// their holes.
#ifndef BURNCC_COMMAND_PACKAGE_H
#define BURNCC_COMMAND_PACKAGE_H
#include "command.h"

typedef struct Package {
    Arena *arena;
    const Options *options;                             // output: the C file in the package
    const char *dir, *name;
    const Graph *graph;
    int64_t weight_bytes, work_bytes;
    bool weights;                                       // they are a file
    VEC(Word) words;                                    // what is in the holes of its files
} Package;

void package_word(Package *p, const char *name, const char *means);     // NULL: lines with it are left out

// Of one kind: words, and what is done once the files are there; false with diagnostics.
void package_npm_words(Package *p);
bool package_npm_make(Package *p);
void package_cargo_words(Package *p);
void package_c_words(Package *p);
#endif
