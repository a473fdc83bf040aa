// SPDX-License-Identifier: MIT OR Apache-2.0
// What a compilation is asked for.
#ifndef BURNCC_OPTIONS_H
#define BURNCC_OPTIONS_H

#include "ir.h"
#include "target/target.h"

typedef struct Options Options;

typedef struct DimOption { const char *name; int64_t lo, hi; } DimOption;
typedef struct SetOption { const char *name, *value; } SetOption;
typedef struct FrozenInput { const char *name; Tensor *value; } FrozenInput;
// elements: shapes, without element types; NULL: as the model has them. stacked: the program takes any length lo..hi,
// elements of one shape (elements[0])
typedef struct SequenceOption {
    const char *name;
    int n;
    const Type *elements;
    bool stacked;
    int64_t lo, hi;
} SequenceOption;
// --shape: an input's sizes; a dimension has a name, or else the size
typedef struct ShapeOption { const char *input; int rank; DimOption *dim; } ShapeOption;
// What programs give besides the model's outputs; see passes/keep.c.
typedef enum Keep { KEEP_OUTPUTS, KEEP_NODES, KEEP_ALONE } Keep;
// What -o asks for: code, or the model itself in another format.
typedef enum Written { WRITTEN_CODE, WRITTEN_ONNX, WRITTEN_SAFETENSORS } Written;
// --region: a memory by its name, the fastest first, and what may lie in it
enum { BANK_WORK = 1, BANK_WEIGHTS = 2, BANK_CODE = 4, MOST_BANKS = 8 };
typedef struct Bank { const char *name; int64_t bytes; unsigned holds; } Bank;
struct Options {
    const char *model, *output, *name;                  // name: C prefix, from the output's or model's file name
    const char *target;                                 // "generic" by default
    VEC(DimOption) dims;
    Keep keep;                                          // verify --trace; else KEEP_OUTPUTS
    VEC(SetOption) settings;                            // --set: of a model described in C
    const char *function;                               // --function: of several; NULL: all, or the only one
    const char *config;                                 // --config: a JSON file of them; NULL: none
    const char *depfile;                                // --depfile: what was read, as a rule of Make; NULL: none
    int lora_rank; double lora_alpha; const char *lora_on;      // rank 0: none (import/lora.c)
    int replace_head;                                   // classes of a new last layer; 0: it stays
    VEC(const char *) weights; const char *weights_key; // --weights: files of them
    VEC(SetOption) maps;                                // --map: a regular expression and what it becomes
    bool strict;                                        // every parameter has a tensor, every tensor a parameter
    int64_t seed; bool seeded;                          // of parameters that begin as random numbers; --seed says it
    bool unseen;                                        // inspect: nobody looks at those numbers, so others will do
    VEC(const char *) metadata;                         // behind the file's: keys and values by turns
    Written written;                                    // by the suffix of output
    int opset;                                          // --opset, of ONNX's operators; 0: not given
    bool optimized;                                     // --optimized: behind CANON, not as imported
    bool learnt;                                        // --weights has floats for weights of integers
    bool train; const char *optimizer, *schedule;       // --train; NULL: the first row, no schedule
    VEC(const char *) losses;                           // --loss, which are summed; none: the first row
    int64_t class_axis; bool has_class_axis;            // --class-axis
    bool no_dropout;                                    // dropout passes its input on, as in inference
    bool frozen_norm;                                   // batch normalization as in inference
    const char *input_gradients;                        // inputs, with commas, or all; NULL: none
    bool jvp;                                           // forward mode as a program
    const char *train_only; int train_last;             // selections of parameters (grad/select.c); NULL, 0: all
    bool clip_value, clip_norm; VEC(const char *) groups;       // of updates (grad/update.c)
    const char *loss_scale;                             // grad/scale.c; NULL: dynamic with f16, else none
    VEC(const char *) frozen_params;                    // --freeze without a file: selections of what stays
    const char *untie;                                  // merged, all or a regular expression; NULL: nothing
    int64_t train_memory;                               // workspace of a training program; 0: what it takes
    DType io;                                           // --io: of inputs and outputs that it quantizes; 0: as they are
    const char *precision;                              // bf16, f16; NULL: as the model has it
    bool share;                                         // --share: files of one image have kernels in common
    // --optimize size: the smallest code, and weights no larger than the model's
    bool small, fast;                                   // fast: --optimize speed, where that was said
    // what a program's workspace, its code with constants, and its calls may take; 0: what they do
    int64_t ram, flash, stack;
    VEC(Bank) banks;                                    // --region; none: one workspace, constants and code anywhere
    bool io_inside;                                     // --io-in-workspace: inputs and outputs lie in it
    bool no_fuse, no_units, fast_math, quiet;           // no_units: no kernels for a GPU's matrix units
    bool plain_cc;                                      // built by cc alone: $CC and BURNCC_CFLAGS are a runner's
    bool profile;                                       // marks around kernels' calls (templates/profile.h)
    int64_t constant_bytes;                             // that constants of a graph given as text may take; 0: many
    int64_t string_bytes;                               // room for each string that the program makes; they share it
    // weights up to this many bytes become C arrays; larger go to .bin
    int64_t embed_limit;
    const char *dump;                                   // stage or pass name
    Target machine;
    VEC(SequenceOption) sequences;                      // --sequence
    VEC(ShapeOption) shapes;                            // --shape
    VEC(const char *) absent;                           // --absent: optional inputs that hold nothing
    // verify: of the recorded outputs; the bound of sizes that nothing else bounds is at least this
    int64_t largest_size;
    // --freeze: inputs that import turns into constants of these values
    VEC(FrozenInput) frozen;
    // --threads: parts that a run can go in; below 2: the program knows of no threads
    int threads;
    double part_us;                                     // the least that a part is to take, as the schedule reckons
    struct Records *records;                            // schedule/cpu/tune.h: --records; NULL: the cost model chooses
    // --blas: the library whose cblas_ functions large products call; NULL: none
    const char *blas;
};
#endif
