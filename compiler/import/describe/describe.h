// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of the C front end share: the state of the description that runs, and where a call of it stands.
//
//   model.c -- $CC --> shared object -- a child process: language.c's table --> Graph -- its text --> Graph
//
// The idea: the calls of language/model.h are thin: each notes its place, looks at its operands and calls the builders
// of build/, so shapes and types are known while the description runs and a mistake is told at its line.
#ifndef BURNCC_DESCRIBE_H
#define BURNCC_DESCRIBE_H

#include "build/build.h"
#include "import/import.h"
#include "language/language.h"

// Shared with the parent: where the description is, and how many mistakes it has told.
typedef struct Progress { int line, errors, status; char call[64], file[256]; } Progress;

// What of the graph belongs to the function that is described, or to one before: values from first to before end.
typedef struct FunctionPart {
    const char *name;
    const Loc *loc;
    int first, end;                                     // ids
    int inputs, outputs;                                // there were so many before it
    const Node *before;                                 // the last node before it
    StrMap *parameters;                                 // that it has named
} FunctionPart;
typedef struct DeclaredState { const char *name, *field; Type type; const Loc *loc; bool set; } DeclaredState;

typedef struct Description {
    Arena *arena;
    const Options *options;
    Graph *g;
    VEC(const char *) scopes;                           // each with those around it: "layer1.0."
    int shared;                                         // so many shared() are around
    StrMap *parameters;                                 // full name -> Value
    StrMap *sources;                                    // file -> its text, to look for columns
    VEC(SetOption) settings;                            // that it has asked for, and what it took, as JSON
    VEC(SetOption) file_settings;                       // what --config says
    VEC(Dim) symbols;                                   // what burn_dims below 0 stand for
    int64_t draws;                                      // random tensors so far
    FunctionPart part;                                  // that is described; without functions: all, and no name
    VEC(FunctionPart) functions;                        // those before
    VEC(DeclaredState) states;                          // of all functions
    Progress *progress;
} Description;

// One at a time, in a process of its own: the description's calls have no place for it among their operands.
extern Description *describing;
extern const struct burn_language language_table;       // language.c

// describe.c: ends the child, whose mistakes were told
NORETURN void child_end(void);

// ---------------------------------------------------------------- session.c
// Notes where the call stands: what is built next is of this place. name: of a layer, or NULL.
Graph *here(const burn_place *at, const char *name);
const char *source_text(const char *file);              // of a file of the description; "" where it cannot be read
const char *full_name(const char *name);                // behind the scopes'
const char *shown(const Graph *g, const Value *x);      // its type, for diagnostics
// an element type of model.h, with sizes; false with a diagnostic
bool dtype_in(const Graph *g, int dtype);
bool type_in(Graph *g, int dtype, int rank, const burn_dim *dims, Type *out);
// a size as the compiler knows it; false with a diagnostic
bool dim_in(burn_dim d, const char *what, Dim *out);
burn_dim dim_out(Dim d);
bool dims_in(int n, const burn_dim *d, const char *what, Dim *out);
bool number_in(burn_dim d, const char *what, int64_t *out);         // the same of what cannot be a symbol
bool axis_in(const Value *x, int64_t axis, int *out);   // from the end if negative; false with a diagnostic
bool yes(int option);                                   // of options that are YES by default
double given(double number, double otherwise);          // of numbers of which 0 means the default, and ZERO 0
// Its full name is taken: a diagnostic. share: a full name to take instead, or NULL. fan: of init.
typedef struct Fan { int64_t in, out; } Fan;
Value *layer_parameter(const char *layer, const char *name, Type t, burn_init init, Fan fan);
void begin_padded(Value *w, int64_t row);               // a parameter of normal numbers begins with a row of zeros
Value *layer_buffer(const char *layer, const char *name, Type t, double value);
Value *shared_parameter(const char *name, const Type *t);
// numbers for each of n axes from one number or hw(...); 0: `otherwise`
bool sizes_in(int64_t packed, int n, int64_t otherwise, const char *what, int64_t *out);
// Each once or not at all, `seen` marks them; false with a diagnostic.
bool axes_in(const Value *x, int n, const int64_t *axes, bool *seen, int *out);
// tensors and numbers in one element type, as PyTorch promotes them; false: a mistake, or one before
bool operands(Graph *g, int n, const burn_arg *args, Value **out);

// bools [rows, columns]: column = row + diagonal, or '<' and '>': or less, or more (tables.c)
Value *diagonal_mask(Graph *g, Dim rows, Dim columns, char which, int64_t diagonal);

// (sum of |x|^p)^(1/p) over axes (measures.c)
Value *length_over(Graph *g, Value *x, double p, int n, const int64_t *axes, bool keep);

// ---------------------------------------------------------------- custom.c, kernel_text.c
// Within a formula or a gradient of custom() there is no input, output, parameter or symbol: false with a diagnostic.
bool of_model(const Graph *g, const char *what);
const char *kernel_text(Arena *a, const char *source, const struct burn_kernel *k, int *line);

// ---------------------------------------------------------------- functions.c
bool end_inside(Graph *g, const char *what);            // may an input or output stand here? false with a diagnostic
void functions_check(const char *file);                 // what is to be told when all is described

// ---------------------------------------------------------------- settings.c
bool settings_read(const char *path);                   // the file of --config; false with a diagnostic
void settings_check(void);                              // a name of --set that nobody asked for is a mistake
void settings_print(Text *out);                         // what it took, as JSON; nothing if it asked for none

// ---------------------------------------------------------------- the calls, a file for each section of model.h
#define CALL(type, name, ...) type language_##name(__VA_ARGS__);
#include "language/language.def"
#undef CALL
#endif
