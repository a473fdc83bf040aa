// SPDX-License-Identifier: MIT OR Apache-2.0
// What a C compiler made of generated code for a board: object.c reads it.
#ifndef BURNCC_OBJECT_H
#define BURNCC_OBJECT_H
#include "command.h"

enum { MACHINE_ARM = 40, MACHINE_RISCV = 243 };         // of ELF
enum { LIBRARY_FRAME = 96 };                            // bytes of stack that a library's function is taken to need
typedef enum ObjectKind { OBJECT_TEXT, OBJECT_RODATA, OBJECT_DATA, OBJECT_BSS, OBJECT_KINDS } ObjectKind;
// A section, which holds one function or one array.
typedef struct ObjectSection {
    const char *name, *symbol;                          // symbol NULL: strings, and what is not in memory
    ObjectKind kind;
    int64_t bytes, alignment;                           // in memory
    int64_t frame;                                      // of a function, of stack; -1: not known
    bool unbounded;                                     // the run decides how much that is
    bool open, wanted;                                  // a function that others can call; reached from one
    VEC(int) wants; VEC(const char *) outside;          // sections, and names that are not in this file
    int64_t depth; int deepest; bool entered, known;    // object_depth's; deepest: the call that makes it so, or -1
} ObjectSection;
typedef struct Object { int machine; int n_sections; ObjectSection *sections; bool frames; } Object;

Object *object_read(Arena *a, const Unlinked *from);    // NULL: it is none
int object_function(const Object *o, const char *name);                 // its section; -1: there is none
// bytes of the deepest chain of calls from this function on, its own frame among them; -1: there is no bound
int64_t object_depth(Object *o, int at);
// stack.c: the same of a function by its name, and who is in it, with their bytes
int64_t stack_of(Object *o, const char *function, Text *chain);
#endif
