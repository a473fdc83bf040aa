// SPDX-License-Identifier: MIT OR Apache-2.0
// What run.c (run functions), calls.c and parts.c (the calls in them) share.
#ifndef BURNCC_CODEGEN_C_RUN_H
#define BURNCC_CODEGEN_C_RUN_H
#include "signature.h"

typedef enum Base { BASE_STATIC, BASE_WORK, BASE_CONSTANTS, BASE_INPUT, BASE_OUTPUT, BASE_COUNT } Base;
// Where elements lie in a run: so many bytes, then strings, from what the base is.
typedef struct Address {
    Base base; int index;                               // which array of constants, input, output or bank
    const Value *value;                                 // that this is; NULL: scratch memory
    const char *type;                                   // of the elements; NULL: bytes
    int64_t offset, strings;
    const char *array;                                  // BASE_STATIC: its name
} Address;
// ARG_TABLE: a constant array of sizes; ARG_FIRST, ARG_LAST: where the part begins and ends, of `value` points
typedef enum ArgumentKind {
    ARG_ADDRESS, ARG_SIZE, ARG_NUMBER, ARG_WORD, ARG_TABLE, ARG_FIRST, ARG_LAST
} ArgumentKind;
typedef struct Argument {
    ArgumentKind kind;
    // elements further: a size, and as many for each worker before this one; written: the kernel writes there
    Address at; Dim plus; const char *minus; int64_t worker_step; bool written;
    int64_t value;                                      // the number, or that of the symbol whose size it is;
    int line, parts;                                    // ARG_FIRST and ARG_LAST: of that many parts, in such lines
    const char *word;                                   // a variable of the surroundings: part, now[1]; or the table
} Argument;
typedef VEC(Argument) Arguments;

typedef struct RunText {
    CFile *g;
    const Signature *s;
    Text body;
    Text tables;                                        // how far strips go
    Text tasks;                                         // functions that compute a part, and that hand parts out
    bool ran;                                           // what is called has been before: its table is there
    bool uses[BASE_COUNT];                              // bases that some address is counted from,
    unsigned banks;                                     // and parts of the workspace, a bit each
    int loops;
    bool *known;                                        // symbols that are variables by now
    VEC(size_t) cuts;                                   // of many calls: where in the body kernels end
} RunText;

// calls.c
// where a value's elements are, as an expression of the run function
const char *c_value_place(RunText *r, const Value *v);
void c_pack(RunText *r, const Kernel *k, int depth);        // the call that packs its weights
Arguments c_arguments(RunText *r, const Kernel *k);   // of its call; where it goes in parts, of the part `part`
Argument c_strip_rows(const RunText *r, const Strips *s, int i);            // what member i stores for the next one
const char *c_arguments_text(RunText *r, const Arguments *all);
const char *c_argument_text(RunText *r, const Argument *a);
// the same of a size or an address in two pieces: what the run function knows, and what the surroundings add to that,
// a step for each worker
const char *c_argument_origin(RunText *r, const Argument *a);
void c_argument_further(Text *out, const Argument *a, const char *step);

// steps.c: where the function begins that does the work on a GPU; its constants; and the user's, which calls it
void c_steps_begin(CFile *g, const Signature *s);
void c_steps_constants(CFile *g);
void c_steps_end(CFile *g, const Signature *s);

// stretches.c: many calls as functions of some calls each; does the run become that, and their text
bool c_has_stretches(const RunText *r);
void c_stretches(RunText *r);
const char *c_work(const RunText *r);                       // run.c: what the variables `work` and `constants` are
const char *c_constants(const RunText *r);

// rolled.c: a loop over calls from the plan's kernel i on, if they repeat; how many kernels it has
int c_rolled(RunText *r, const Plan *plan, int i, int depth);
bool c_losses_after(const Plan *p, const Kernel *k);        // run.c: is it before parameters are updated?

// parts.c
void c_line(RunText *r, int depth);                         // begins one of the run function
#define C_RUN_TRACK "0"
// of `burncc bench --profile`: the kernel's time begins, or (k NULL) ends, on a track: an expression
void c_mark(const RunText *r, Text *out, int depth, const char *track, const Kernel *k);
void c_call(RunText *r, const Kernel *k, int depth);        // the call of a kernel, whole or in parts
void c_strips(RunText *r, const Strips *s, int depth);      // the loop over the steps of kernels that go strip by strip
#endif
