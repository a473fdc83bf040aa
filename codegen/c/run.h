// SPDX-License-Identifier: MIT OR Apache-2.0
// What program.c (programs and their run functions), calls.c and parts.c (the calls in them) share.
#ifndef BURNCC_CODEGEN_C_RUN_H
#define BURNCC_CODEGEN_C_RUN_H
#include "c.h"

typedef struct Ends {                                   // inputs or outputs with the names they have in the signature
    const char **name;                                  // of the parameter or the struct's field
    const char **at;                                    // the expression for its first element
} Ends;

typedef enum Base { BASE_STATIC, BASE_WORK, BASE_CONSTANTS, BASE_INPUT, BASE_OUTPUT, BASE_COUNT } Base;
// Where elements lie in a run: so many bytes, then strings, from what the base is.
typedef struct Address {
    Base base; int index;                               // which array of constants, input or output
    const Value *value;                                 // that this is; NULL: scratch memory
    const char *type;                                   // of the elements; NULL: bytes
    int64_t offset, strings;
} Address;
typedef enum ArgumentKind { ARG_ADDRESS, ARG_SIZE, ARG_NUMBER, ARG_WORD } ArgumentKind;
typedef struct Argument {
    ArgumentKind kind;
    // elements further: a size, and as many for each part before this one
    Address at; Dim plus; int64_t part_step;
    int64_t value;                                      // the number, or that of the symbol whose size it is
    const char *word;                                   // a variable of the call's own surroundings: part, now[1]
} Argument;
typedef VEC(Argument) Arguments;

typedef struct Run {
    Gen *g;
    const Program *p;
    const Ends *in, *outs;
    Text body;
    Text tables;                                        // how far strips go
    // functions that compute a part; fields of the frame that they get, and what sets them
    Text tasks, fields, settings;
    VEC(const char *) framed;                           // those fields' names
    bool uses[BASE_COUNT];                              // bases that some address is counted from
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

// calls.c
// where a value's elements are, as an expression of the run function
const char *c_value_place(Run *r, const Value *v);
Arguments c_arguments(const Run *r, const Kernel *k);   // of its call; where it goes in parts, of the part `part`
Argument c_strip_rows(const Run *r, const Strips *s, int i);            // what member i stores for the next one
const char *c_arguments_text(Run *r, const Arguments *all, bool framed);
// makes the variables that they mention fields of the frame, which is filled by the line before the call at the latest
void c_arguments_frame(Run *r, const Arguments *all, int depth);

// parts.c
void c_line(Run *r, int depth);                         // begins one of the run function
void c_call(Run *r, const Kernel *k, int depth);        // the call of a kernel, whole or in parts
void c_strips(Run *r, const Strips *s, int depth);      // the loop over the steps of kernels that go strip by strip
#endif
