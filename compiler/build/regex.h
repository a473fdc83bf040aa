// SPDX-License-Identifier: MIT OR Apache-2.0
// Regular expressions as automata: build/regex.c reads the text, build/automaton.c makes the table.
#ifndef BURNCC_REGEX_H
#define BURNCC_REGEX_H
#include "base/base.h"

// Reads bytes of UTF-8 from state 0 on. The next state: next[state * n_classes + class_of[byte]].
typedef struct Automaton {
    int n_states, n_classes;
    uint8_t class_of[256];
    const int *next;
    const bool *accepts;
} Automaton;

// Does the whole of a string match the pattern? NULL, or why there is no such automaton, for the user.
const char *regex_compile(Arena *a, const char *pattern, Automaton *out);

// ---- between the two files: the pattern as a tree
typedef enum RegexKind { RE_EMPTY, RE_SET, RE_CAT, RE_ALT, RE_REPEAT, RE_ASSERT } RegexKind;
typedef enum RegexAssert { AT_BEGIN, AT_END, AT_LINE_BEGIN, AT_LINE_END, AT_WORD_EDGE, AT_NO_EDGE } RegexAssert;
typedef struct CodeRange { uint32_t lo, hi; } CodeRange;
typedef struct Regex Regex;
struct Regex {
    RegexKind kind;
    // RE_SET: code points, in ascending ranges apart from each other
    VEC(CodeRange) set;
    Regex *a, *b;                                       // RE_CAT, RE_ALT: both; RE_REPEAT: a
    int min, max;                                       // RE_REPEAT; max -1: any number
    RegexAssert assertion;
};
const char *automaton_make(Arena *a, const Regex *re, Automaton *out);
#endif
