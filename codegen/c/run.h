// SPDX-License-Identifier: MIT OR Apache-2.0
// What program.c (programs and their run functions) and parts.c (the calls in them) share.
#ifndef BURNCC_CODEGEN_C_RUN_H
#define BURNCC_CODEGEN_C_RUN_H
#include "c.h"

typedef struct Ends {                                   // inputs or outputs with the names they have in the signature
    const char **name;                                  // of the parameter or the struct's field
    const char **at;                                    // the expression for its first element
} Ends;

typedef struct Run {
    Gen *g;
    const Program *p;
    const Ends *in, *outs;
    Text body;
    Text tables;                                        // how far strips go
    // functions that compute a part; fields of the frame that they get, and what sets them
    Text tasks, fields, settings;
    VEC(const char *) framed;                           // those fields' names
    int loops;
    bool *known;                                        // symbols that are variables by now
} Run;

// program.c: an end that is a field of a struct. One parameter stands for all of them: its name, its type's, whether one
// of them comes before the end number `upto`, and whether the run writes any.
bool c_in_struct(const Value *v);
const char *c_struct_param(Role r);
const char *c_struct_type(Role r);
bool c_struct_seen(const Graph *gr, int upto, bool outputs, Role r);
bool c_struct_written(const Graph *gr, Role r);

// parts.c
void c_line(Run *r, int depth);                         // begins one of the run function
// where a value's elements are, as an expression of the run function
const char *c_value_place(const Run *r, Value *v);
void c_call(Run *r, const Kernel *k, int depth);        // the call of a kernel, whole or in parts
void c_strips(Run *r, const Strips *s, int depth);      // the loop over the steps of kernels that go strip by strip
#endif
