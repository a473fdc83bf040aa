/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What generated training code is to a program that drives any model's: a table of its functions, all called alike.
 * codegen/c/module.c writes the table behind the generated code, compiler/command/module.c loads it.
 */
#ifndef BURNCC_MODULE_H
#define BURNCC_MODULE_H

#include <stddef.h>

/* What a call is given. The structs are of the module's sizes; `in` and `out` have a pointer for each input and output
 * of the program's graph, of which those of fields of structs are not looked at; numbers that are passed by value are
 * pointed at too. `weights`: the file of constants, if there is one. `threads`: a burn_threads, or null. */
typedef struct burncc_call {
    void *work, *params, *grads, *tangents, *state;
    void **in, **out;
    const void *weights, *threads;
} burncc_call;

typedef struct burncc_program {
    const char *name; /* gradients, update, ... */
    size_t work_bytes;
    int (*run)(const burncc_call *call);
} burncc_program;

typedef struct burncc_module {
    size_t params_bytes, state_bytes;
    const size_t *fields; /* where the parameters lie in their struct, in order */
    int (*begin)(void *params, const char *path); /* the model's own weights; path: where they lie in a file, that */
    int program_count;
    const burncc_program *programs;
} burncc_module;

#endif
