// SPDX-License-Identifier: MIT OR Apache-2.0
// State of one generated C file, shared by c.c and filled.c (kernels), program.c (run functions) and file.c (header,
// assembly, writing).
#ifndef BURNCC_CODEGEN_C_H
#define BURNCC_CODEGEN_C_H
#include "codegen/codegen.h"
#include "codegen/weights.h"
#include "grad/train.h"

enum { MAX_PARAMS = 64, MAX_HOLES = 80 };

typedef struct Functions Functions;
struct CFile;
struct KernelText;
struct RunText;

// What makes a C file of a program whose kernels run on a GPU (gpu/steps.c): prints a kernel's function as one that
// hands it over, or false: it is C for the host
typedef struct Handover {
    bool (*kernel)(const struct Handover *h, struct CFile *g, struct KernelText *t);
    // is this loop one kernel? Then its body's have no functions, and the run function what hands it over, to run
    // `trips` times
    bool (*takes_loop)(const struct CFile *g, const Kernel *k);
    void (*loop)(struct RunText *r, const Kernel *k, int depth, const char *trips);
    void *ctx;
} Handover;

typedef struct CFile {
    Arena *arena;
    const Options *options;
    const char *model;                                  // prefix of every public name
    int n; const Program *programs;
    const Plan *plan;                                   // of the program or body being printed
    Functions *functions;                               // that the programs so far have
    StrMap *tasks;                                      // that hand out parts of these, by what they do: their names
    // declarations; constants; kernels and run functions; what is there once whatever the targets
    Text h, data, c, ends;
    bool descriptor;                                    // some program has the generic `const burn_model`
    // extents, and steps from element to element, are arguments, so that many kernels share a function
    bool numbers;
    bool training;                                      // programs over structs of parameters: --train
    bool threads;                                       // runs can go in parts: they take a `threads` pointer
    // constants come from a file: run functions take a `weights` pointer
    bool external;
    int64_t weight_bytes;                               // of all programs
    uint64_t sum;                                       // of their constants, where they are in a file
    bool state;                                         // the model has one: run functions take a `state` pointer
    // run functions do what they do through burn_gpu_call, and constants lie in one piece; NULL: there is no GPU
    const Handover *handover;
} CFile;

// at: element where the parameter begins; name: while the kernel is printed
typedef struct Param { Value *value; const char *name; bool written; Dim at; } Param;
// name: while the kernel is printed; used: in what has been printed since that was last set to false
typedef struct Number { int64_t value; const char *name; bool used; } Number;
typedef struct KernelText {
    CFile *file;
    const Kernel *kernel;
    const char *name;                                   // of its own
    const char *function;                               // the C function, perhaps another kernel's
    const bool *varies;                                 // do that one's calls differ in more than operands?
    const char *prefix;                                 // of parameter names: "e_" in template kernels, else NULL
    Param *params;                                      // room for MAX_PARAMS while it is printed
    int n_params, first_shared;                         // the first parameters of a template are its own names
    VEC(Number) numbers;                                // parameters after the sizes,
    int hole_numbers;                                   // first those that fill holes,
    bool table;                                         // which come as an array (--optimize size)
    const int *sizes; int n_sizes;                      // of the kernel, when it has been printed
    bool handed;                                        // it runs on a GPU: the function takes burn_gpu_call first
} KernelText;

// variable of the kernel's i-th size, a parameter after its pointers
const char *c_size(const CFile *g, const Kernel *k, int i);
void c_kernel(CFile *g, KernelText *t);                   // prints the function and leaves its parameters in *t
void c_custom(CFile *g, KernelText *t);                   // custom.c: the same of a Custom node's
// is v, or what lies at the same bytes, the i-th parameter?
bool c_is_param(const KernelText *k, int i, const Value *v);
// its parameters are what it writes and then what it reads, values of the same bytes being one
void c_take_params(CFile *g, KernelText *t);
bool c_takes_range(const Kernel *k);                      // of a loop in parts: is it given the range of one?
int c_part_line(const Kernel *k);                         // elements that each part but the last is a multiple of
void c_print_params(CFile *g, const KernelText *t, Text *out, int from);    // of the pointers those from `from` on
bool c_is_file_name(const char *model, const char *s);     // is it like those that the file itself declares?
void c_add_param(CFile *g, KernelText *t, Value *v, bool written);
const char *c_param_name(const KernelText *t, const Value *v);              // of an operand
const char *c_address(void *ctx, Value *v, const char *index);
Dialect c_dialect(KernelText *t);                         // of the loop printer
void c_template_kernel(CFile *g, KernelText *t);          // filled.c: of a kernel with an epilogue
void c_call_kernel(CFile *g, KernelText *t);              // the same of one without
// offsets.c: of a loop kernel: params[].at, and `kernel` is what is left
void c_take_offsets(CFile *g, KernelText *t);
// share.c: the functions of a file, those of the same text once; of *t stays what its calls take
Functions *c_functions_new(CFile *g);
void c_functions_add(Functions *f, CFile *g, KernelText *t);
void c_functions_print(Functions *f, CFile *g);            // those that have been added since the last time
void c_functions_free(Functions *f);
Listing c_functions_list(const Functions *f, Arena *a);      // all, with their comments
// share.c: the line where the definition of the function of this name begins, after those of its helpers
const char *c_definition(const char *text, const char *name);
// linked.c: of kernel t's function, which is `text`, and `key` without names of its own, the text of which an image has
// one, and its *name; NULL: it is this file's own
const char *c_linked(CFile *g, const KernelText *t, const char *text, const char *key, const char **name);
// how these names, and the macros that say that they are there, begin
#define C_LINKED "burn_k_"
#define C_LINKED_MARK "BURN_K_"
// file.c: what this code calls: the vector prelude, files of templates/, functions of expressions that are not above
void c_prelude(CFile *g, Text *out, const Text *above, const Text *code);
// state.c: the struct of the model's state, before the programs that name it; what is told of several functions
void c_state_declare(CFile *g);
void c_functions_declare(CFile *g);
int64_t c_work_bytes(const CFile *g, const Program *p);   // of its workspace, which functions have in common
void c_train_declare(CFile *g, const Training *t);        // structs, before the programs that name them
void c_train_define(CFile *g, const Training *t);         // initial values, saving and loading
void c_gradients(CFile *g, const Training *t);            // gradients.c: their sums
void c_training(CFile *g, const Training *t);             // training.c: the generic descriptor
// the initial values that do not stand in the C file, not committed yet; *file NULL: they do; false with diag
bool c_train_initial(Arena *a, const Options *o, const Training *t, OutFile **file);
void c_train_release(CFile *g, const Training *t);        // their memory, when they have been written
void c_program(CFile *g, const Program *p);    // kernels, run function and declarations of one program
// file.c: writes o->output (.c), its .h, and .bin and .safetensors when weights are large. handover: as of CFile
bool c_write(Arena *a, const Options *o, const char *model, int n, Program *programs, const Training *training,
    const Handover *handover);
// compound.c: the same code with all bodies in braces
void c_compound(Text *out, const char *code);
// targets.c: a file for several targets. `head` and `before` stand once at its head, `code` (prelude, kernels, run
// functions) once for each.
void c_targets(CFile *g, Text *out, const char *header, const Text *head, const Text *before, const Text *code);
// of names in a target's own copy; t NULL: in the only one elsewhere
const char *c_target_suffix(Arena *a, const Target *t);
// an expression: does the processor have what the target asks for?
const char *c_target_test(Arena *a, const Target *t);

// Is it a word of the text? Where is the first, or NULL?
bool c_says_word(const char *text, const char *word);
const char *c_find_word(const char *text, const char *word);
#endif
