// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of the command line share: its two tables (options_table.c), what sets an option's value
// (options_set.c), and what is printed of them: help (options_help.c), the manual page (manual.c), completions for
// shells (completions.c). options.c parses.
#ifndef BURNCC_OPTION_H
#define BURNCC_OPTION_H
#include "command.h"

enum {
    COMPILE = 1,
    VERIFY = 2,
    RUN = 4,
    BENCH = 8,
    INSPECT = 16,
    OPS = 32,
    TUNE = 64,
    EXPORT = 128,                                       // -o model.onnx, model.safetensors: `compile` without code
    MANUAL = 256,
    COMPLETIONS = 512,
    FIT = 1024,
    PREDICT = 2048,
    EVALUATE = 4096,
    REPORT = 8192,
    HELP = 16384,
    QUANTIZE = 32768,
    PROJECT = 65536,
    EVERY = 131071,
    BUILDS = VERIFY | RUN | BENCH,
    MODELS = EVERY & ~(OPS | MANUAL | COMPLETIONS | REPORT | HELP | PROJECT),    // all that read a model
    COMPILES = MODELS & ~EXPORT,
    PROGRAMS = COMPILE | BENCH | VERIFY | INSPECT,      // of --train
    TRAINS = PROGRAMS | FIT,
    APPLIES = PREDICT | EVALUATE
};

enum { MAX_THREADS = 256 };                             // --threads

typedef bool SetFn(Arena *a, CommandOptions *o, const char *text);      // false with a diagnostic
typedef enum Kind { FLAG, TEXT, COUNTED, WHOLE, REAL, SPECIAL } Kind;   // COUNTED: from 1; WHOLE: from 0
typedef struct Option {
    const char *name;
    char letter;                                        // 0: none
    const char *argument;                               // NULL: takes none
    unsigned commands;
    const char *group, *help;
    Kind kind;
    size_t offset;                                      // of the field that kinds but SPECIAL set
    SetFn *set;                                         // SPECIAL; NULL: options.c sees to it
    const char *values;                                 // words with spaces between, which the argument is one of
} Option;
typedef struct Fact { const char *name, *text; } Fact;

// options_table.c: the first is what `burncc MODEL` does; tables end with a row without name
extern const Command commands[];
extern const Option options[];
extern const Fact environment[];                        // variables that are asked for
extern const Fact exit_statuses[];
// what an argument is one of, with spaces and commas between; NULL: no such list
const char *option_values(Arena *a, const Options *o, const Option *option);
const char *nearest_option(const char *word);           // NULL: none is near
const char *nearest_command(const char *word);

// options_set.c
SetFn set_dim, set_target, set_embed_limit, set_train_memory, set_ram, set_optimize, set_string_bytes, set_threads,
    set_data, set_input, set_freeze, set_sequence, set_absent, set_weights, set_group, set_lora, set_setting,
    set_map, set_seed, set_records, set_precision, set_loss, set_class_axis, set_blas, set_opset, set_silence,
    set_hyper, set_flash, set_region, set_stack, set_package, set_shape, set_method, set_weights_only,
    set_weight_type, set_activations, set_keep, set_budget, set_normalize, set_io;
bool option_set(Arena *a, CommandOptions *o, const Option *option, const char *text);
bool usage_error(const char *fmt, ...) PRINTF_LIKE(1, 2);       // false

// options_help.c
void help_general(Text *t, Arena *a, const Options *o);
void help_command(Text *t, Arena *a, const Options *o, const Command *c);
void help_option(Text *t, const Option *option);        // a row
void help_takers(Text *t, unsigned takers);             // (verify, run), or nothing for what all take
void help_stages(Text *t, Arena *a, const Options *o);
void help_facts(Text *t, const char *title, const Fact *facts);
void help_targets(Text *t);
void help_sources(Text *t);

// topics.c
const char *topic_names(Arena *a);                      // with spaces between
#endif
