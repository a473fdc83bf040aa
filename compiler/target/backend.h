// SPDX-License-Identifier: MIT OR Apache-2.0
// A back end: what plans a graph's kernels and writes the files. Its row says what a program of it can have and what
// is worth doing to its graphs, which importers, passes, the scheduler and the commands read; and it has the functions
// that they call. Nobody asks for a back end by its name but a target (target.h).
//
// Rows stand beside what they call, in codegen/; codegen/backends.def lists them.
#ifndef BURNCC_BACKEND_H
#define BURNCC_BACKEND_H

#include "base/base.h"

struct Graph;
struct Kernel;
struct Node;
struct Options;
struct Plan;
struct Program;
struct Training;

// What the written file exports for programs that drive any model: verify, run and bench do.
typedef enum Descriptor {
    DESCRIPTOR_NONE,                                    // nothing that runs
    DESCRIPTOR_MODEL,                                   // burn_model: a C function over an array of tensors
    DESCRIPTOR_VULKAN                                   // burn_vk_program: kernels for runtime/vulkan.c
} Descriptor;

typedef struct Backend {
    const char *name;
    const char *extension;                              // of the file that it writes
    OutMark mark;                                       // of such a file

    // ---- what a program can have
    bool sizes;                                         // that only the running program knows
    bool training;                                      // --train
    bool states;                                        // several functions, and what the caller keeps between runs
    bool threads;                                       // --threads
    bool blas;                                          // --blas
    bool halves;                                        // --precision f16: values of 16 bits between kernels
    bool choices;                                       // kernels that `burncc tune` measures and records choose for
    bool source;                                        // what it writes is C: --check
    Descriptor descriptor;

    // ---- what is worth doing to a graph
    // Is this product or convolution a kernel of its own, from a template that reads operands at any strides? NULL:
    // none is.
    bool (*has_template)(const struct Node *n, const struct Options *o);
    bool packs_weights;                                 // of many rows' products, in an order of their templates' own
    bool channels_last;                                 // of convolutions: its vectors run over channels
    bool channels_last_in_halves;                       // the same where --precision keeps values in 16 bits
    bool channels_last_of_bytes;                        // the same of those of bytes: products go by words of four
    // has it a kernel for this convolution with the channels first all the same? NULL where neither is so
    bool (*channels_first)(const struct Node *conv);
    bool byte_products;                                 // u8 by i8, summed in i32
    bool columns;                                       // kernels store into columns of a larger value
    // threads share out the points of a kernel: a product inside another reduction has too few of its own
    bool spread_points;
    // Is each element of this kernel's rows read and stored by one thread, which has seen what the reductions along the
    // row come to when it stores? NULL: so it is in all kernels.
    bool (*keeps_rows)(Arena *a, const struct Kernel *k);
    // convolutions that have a template are loop nests all the same, in which the back end finds the product
    bool windows_in_loops;
    // into how many shares of its terms should this product be cut, to be summed by another kernel? NULL: none is
    int64_t (*shares)(const struct Node *product);
    // has it a template for attention of this shape? NULL: for any
    bool (*attends)(const struct Kernel *attention, const struct Options *o);
    // is this a product of a softmax, without a template of its own, whose attention may have one? NULL: none is
    bool (*attends_few)(const struct Node *product);
    // is the backward pass of this attention, by the product that gives its scores, a kernel of its own, which computes
    // them again? depth: elements of a value; masked: where they stand hides some keys. NULL: none is
    bool (*attends_back)(const struct Node *scores, int64_t depth, bool masked, const struct Options *o);
    // the language of the kernels that models bring along: the attribute of Custom that has them; NULL: it takes none
    const char *kernels;
    // Does it take this composite whole? What it does not claim is expanded into primitives.
    bool (*claims)(const struct Node *n, const struct Options *o);

    // ---- what it does
    // Fills p: kernels in order, and where everything lies; a body's plan has a parent. false with diagnostics.
    bool (*plan)(struct Plan *p);
    // Writes o->output and what goes with it. training: the programs share its structs, else NULL. false with
    // diagnostics, and no file left.
    bool (*write)(Arena *a, const struct Options *o, const char *model, int n, struct Program *programs,
        const struct Training *training);
    // --report, behind the rows of each program's kernels: what memory the device needs; NULL: they say it all
    void (*report)(Arena *a, const struct Options *o, int n, const struct Program *programs,
        const struct Training *training, Text *out);
    // --dump STAGE: a stage of its own after the schedule, as text; NULL: it has none
    const char *dump_stage;
    bool (*dump)(Arena *a, const struct Options *o, const struct Plan *p, Text *out);
} Backend;
#endif
