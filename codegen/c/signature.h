// SPDX-License-Identifier: MIT OR Apache-2.0
// Between signature.c (what a run function is given) and what prints the function, calls it or tells of it.
#ifndef BURNCC_CODEGEN_C_SIGNATURE_H
#define BURNCC_CODEGEN_C_SIGNATURE_H
#include "c.h"
#include "descriptor.h"

// Inputs or outputs: the name of the parameter or the struct's field, and the expression for the first element.
typedef struct EndNames { const char **name, **at; } EndNames;
typedef struct Sizes { int n; int *at; } Sizes;         // numbers of symbols
typedef struct Signature {
    const Program *program;
    const Graph *graph;
    EndNames in, outs;
    Sizes sizes;                                        // that are parameters
    const char *work;                                   // in calls: the workspace; NULL: ws
} Signature;

// What a generic descriptor takes as an array of tensors: which inputs, or outputs, and the table of their infos; NULL:
// it takes no such array.
typedef struct Tensors { int n; int *at; const char *infos; } Tensors;

Signature c_signature(CFile *g, const Program *p);
// of a run function of this model, with threads?
void c_ends(Arena *a, const Graph *g, const char *model, bool threads, EndNames *in, EndNames *outs);
const char *c_place(Arena *a, const char *prefix, const char *end);     // --io-in-workspace: the macro of its place
void c_signature_print(CFile *g, Text *out, const Signature *s, const char *name);    // int name(...)
// typed: as parameters, else as the arguments of a call
void c_signature_parameters(CFile *g, Text *out, const Signature *s, bool typed);

// An end that is a field of a struct. One parameter stands for all of them: its name, its type's, whether one of them
// comes before the end number `upto`, and whether the run writes any.
bool c_in_struct(const Value *v);
const char *c_struct_param(Role r);
const char *c_struct_type(Role r);
bool c_struct_seen(const Graph *gr, int upto, bool outputs, Role r);
bool c_struct_written(const Graph *gr, Role r);

Sizes c_sizes(Arena *a, const Graph *g);                // that are parameters: those of the inputs that stay open
const Symbol *c_symbol(const Graph *g, int i);
void c_bounds_print(Text *out, const Symbol *s);        // the check that the size is within them
bool c_is_measured(const Graph *g, const Type *t);      // by the program, which tells it through a parameter of its own
const char *c_bytes(Arena *a, const Graph *g, const Type *t);           // expressions
const char *c_scale(Arena *a, double scale);             // of a quantized end, as a C constant
bool c_has_workspace(const Program *p);
// --io-in-workspace: the byte that an end begins at, and the bank of it
int64_t c_inside(const Program *p, const Value *v, int *bank);
bool c_takes_weights(const CFile *g, const Program *p);

// banks.c, --region: is the workspace in parts? How many bytes has that in a bank, whose name is so; what the header
// declares; checks of their addresses
bool c_has_banks(const CFile *g);
int64_t c_bank_bytes(const CFile *g, const Program *p, int bank);
const char *c_bank_name(const CFile *g, int bank);
const char *c_bank_macro(const CFile *g, const char *what, int bank);
const char *c_banks_declare(CFile *g, const Program *p, const char *kept);
void c_banks_check(CFile *g, const Program *p, Text *out);
// The struct of a whole workspace, and of the state where there is one (the prefix of its type). Within a function
// that has it as a block: `space`, and the expression for the run's workspace.
void c_space_declare(CFile *g, const Program *p, Text *out, const char *state);
const char *c_space_open(CFile *g, const Program *p, Text *out, const char *block);
const char *c_weights_section(const CFile *g, const Buffer *b);        // a macro before the array, or ""
const char *c_sections(CFile *g);                                       // those macros
const char *c_in_section(CFile *g, const char *code);                   // its functions in a region's section

// one file each
void c_declare(CFile *g, const Signature *s);             // header.c
void c_run(CFile *g, const Signature *s);                 // run.c
void c_descriptor(CFile *g, const Signature *s);          // descriptor.c
// The same file's, for training's: the table of infos; the checks of such tensors, and the sizes that follow; what is
// told of the outputs' shapes, where `code` is what the run has returned.
void c_tensor_infos(Text *out, const Graph *gr, const Tensors *t, bool outputs);
void c_tensor_checks(Text *out, const Signature *s, const Tensors *in, const Tensors *outs);
void c_tensor_shapes(Text *out, const Graph *gr, const Tensors *outs);
#endif
