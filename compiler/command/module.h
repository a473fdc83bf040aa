// SPDX-License-Identifier: MIT OR Apache-2.0
// Training code in this process; see module.c.
#ifndef BURNCC_COMMAND_MODULE_H
#define BURNCC_COMMAND_MODULE_H
#include "command.h"

#include "templates/module.h"

typedef struct Module {
    Arena *arena;                                       // its own: the compilation
    Programs *programs;
    const burncc_module *code;
    const burn_training *training;                      // the same as any learner drives it
    const char *initial;                                // the file of initial weights, if code wants one
    File weights;                                       // the file of constants, if there is one
    const char *dir;                                    // as of Built
    const char *object;                                 // what is loaded
    void *library;
} Module;
// Of a command's model for what --input gives: its inputs, and the options that they bind.
typedef struct OpenModule { const Graph *signature; Inputs in; const Options *options; Module *module; } OpenModule;
// false with diagnostics; what: is done, for who asks for --runner: "--train is timed"
bool module_open(Arena *a, CommandOptions *c, const char *what, OpenModule *out);
Module *module_build(const Options *o);                 // the stages, then $CC; NULL with diagnostics
// The object and the constants of a module that another process has built; programs are NULL. NULL with diagnostics.
Module *module_received(const void *object, size_t object_bytes, const void *weights, size_t weights_bytes);
void module_free(Module *m);

// A program, with its inputs and outputs: inputs as given (in the signature's order), else random numbers; what is
// passed by value as usual, a learning rate 0. Structs, workspace and threads are for the caller to add.
typedef struct ModuleCall { const burncc_program *program; const Graph *graph; burncc_call call; } ModuleCall;
ModuleCall module_call(Arena *a, const Module *m, const char *name, const Graph *signature, const Inputs *in);
void *module_memory(size_t bytes);                      // zeroed, of malloc; NULL: there is none
bool options_gpu(const Options *o);                     // do kernels run on a GPU?
void *module_room(const Options *o, size_t bytes);      // zeroed, where the kernels' device has it; NULL: there is none
// Has somebody told how long each kernel takes on a GPU (burn_gpu_watch); 0 or an error's number, 0 where there is none
int module_watch(const Options *o, burn_gpu_watcher *watcher, void *context);

// differences.c: central differences of a loss in double precision
enum { MOST_ELEMENTS = 32 };
typedef struct Element {
    int64_t at;
    double gradient, difference;
    bool smooth;                                        // else no difference is to be had
} Element;
typedef struct DiffParameter {
    const char *name;
    const char *node;                                   // that uses it, in words
    Type type;
    size_t offset;                                      // in the structs
    bool trained;                                       // else it is no gradient that is in its place
    int input;                                          // of the loss; -1: the loss does not know it
    int n; Element element[MOST_ELEMENTS];
    double largest, rounding;                           // that errors are relative to; errors that rounding explains
} DiffParameter;
typedef struct Differences {
    const Module *module; const Options *options;
    ModuleCall gradients;
    const Built *loss; burn_tensor *in;                 // those that are no parameters
    int rounds; double seconds;                         // elements of each parameter, in so much time
    double allowed;                                     // relative error
    int n; DiffParameter *at;                           // shared with the child
    double *losses;                                     // of the code, in double precision
} Differences;
int differences_take(void *differences);                // in a child; 0 or an error's number

#endif
