// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of command/ share: the table of commands, and the way from a model to code that runs.
//
//   Options -> compile_programs (../compile.c) -> compile_write -> C -> build_model ($CC, dlopen) -> sandbox_run (a
//       child process)
#ifndef BURNCC_COMMAND_H
#define BURNCC_COMMAND_H

#include "runtime/burn.h"
#include "compile.h"
#include "import/import.h"

// ---------------------------------------------------------------- options.c
// fit; 0 and NULL: as usual
struct FitOptions {
    const char *valid; double split;                    // a source; the share of --data that stands in for it
    int epochs, batch, patience, workers, keep, checkpoint_steps;
    double lr;                                          // negative: as usual
    VEC(SetOption) hypers;                              // numbers that updates and the schedule are given
    const char *metrics, *artifacts, *best_by;          // with commas; a folder; "valid accuracy"
    bool resume, skip_bad, plain, train_metrics;
    int length; double temperature;                     // predict: of a text that goes on
};
// quantize; 0 and NULL: as usual
struct QuantizeOptions {
    int method, calibrate, block;                       // items that ranges are taken from; of weights alone
    bool unsigned_bytes, halves, per_channel, per_tensor, bias_correction, equalize;
    int only, weights;                                  // --weights-only, --weight-type: QuantOnly
    double accuracy; int64_t budget;                    // what may be lost; bytes of weights
    VEC(const char *) keep;                             // regular expressions of nodes
};
// --normalize: (x - mean) / scale of each channel of an image, whose white is `white`; n: 1, or one for each channel
typedef struct Normalize { double white, mean[4], scale[4]; int n; } Normalize;
typedef struct PackageKind PackageKind;
typedef struct CommandOptions {
    Options compile;                                    // what the compiler is asked for
    bool report, check;                                 // compile, inspect, tune
    const char *html;                                   // inspect: the page's file; NULL: none
    bool dot; const char *stage;                        // inspect: a picture, of the model behind this stage
    bool profile;                                       // bench
    bool trace, gradients, golden;                      // verify
    int elements;                                       // verify --gradients: of each parameter; 0: as time allows
    bool force;                                         // compile
    bool verbose;                                       // what is done, and how long it takes
    bool json, markdown;                                // what results are printed as
    VEC(const char *) data;                             // verify: folders; fit, evaluate: sources; predict: files too
    VEC(const char *) inputs;                           // run, bench: NAME=FILE
    const Normalize *normalize;                         // of images among them; NULL: 0 to 1
    double seconds;                                     // bench, tune
    // verify; negative: tolerance.txt beside the data, else as compare.c has it
    double rtol, atol, ulp;
    int timeout;                                        // seconds that one run of generated code may take
    // the first option given that says how code is made, which -o model.onnx makes none of; NULL: none
    const char *of_code;
    // the command that runs programs for another processor; NULL: code is loaded into this process
    const char *runner;
    const char *shell;                                  // completions: whose
    const char *dir, *new_model, *language;             // new: where, of which model; NULL: an example, in C
    const char *topic;                                  // help: of what; NULL: of which there is
    struct FitOptions fit;
    struct QuantizeOptions quantize;
    const PackageKind *package;                         // --package; NULL: C files
} CommandOptions;
typedef int CommandFn(Arena *a, CommandOptions *c);     // returns the exit status
typedef struct Command {
    const char *name;
    unsigned bit;                                       // in an option's set of commands
    CommandFn *run;
    const char *usage, *summary, *examples;
} Command;
// NULL: nothing left to do, see diag_status()
const Command *options_parse(Arena *a, CommandOptions *o, int argc, char **argv);
void options_version(void);                             // version.c: prints the version and what is built in

CommandFn command_compile, command_verify, command_run, command_bench, command_inspect, command_tune, command_ops,
    command_manual, command_completions, command_fit, command_quantize, command_predict, command_evaluate,
    command_report, command_help, command_new;

// ---------------------------------------------------------------- compile.c
// the generated files; false with diagnostics and no file left
bool compile_write(Arena *a, const Options *o, Programs *p);
// --check on what was written; files that libclang finds fault with do not stay
bool compile_check(Arena *a, const Options *o, const Programs *p);
// --report: kernels, memory, and what the back end says besides
void compile_report(Arena *a, const Options *o, const Programs *p, Text *out);
void tell_files(Arena *a);                              // those that there are now, for who looks on
bool dump_known(const Options *o, const char *stage);   // a name that --dump takes
const char *dump_names(Arena *a, const Options *o);     // all of them

// ---------------------------------------------------------------- depfile.c
bool depfile_write(Arena *a, const Options *o);         // --depfile, if it is given: o->output and all that was read

// ---------------------------------------------------------------- package.c
const PackageKind *package_find(const char *name);       // NULL: there is none
const char *package_names(Arena *a);
const char *package_target(const PackageKind *k);        // which stands for no --target
bool package_embeds(const PackageKind *k);       // its weights are arrays however large, without --embed-limit
CommandFn command_package;                              // compile --package

// ---------------------------------------------------------------- inspect_weights.c
bool weights_file(const char *path);                    // does it hold weights alone? false with or without diagnostics
int inspect_weights(Arena *a, const CommandOptions *c); // the exit status

// ---------------------------------------------------------------- inspect_train.c: of the model as imported
void inspect_training(Text *t, Arena *a, const Options *o, Graph *model, const Programs *p);
void inspect_training_json(Text *t, Arena *a, const Options *o, Graph *model, const Programs *p);

// ---------------------------------------------------------------- output.c: text for people and for machines
void json_quoted(Text *t, const char *s);               // quoted and escaped; invalid UTF-8 becomes U+FFFD
void json_number(Text *t, double v);                    // null when not finite
void json_type(Text *t, Arena *a, const Graph *g, const Type *type);  // "dtype":"f32","shape":[1,"batch"]
const char *text_name(Arena *a, const char *s);         // a name of the model's, control characters as '?'
const char *node_words(Arena *a, const Node *n);        // of the model that it comes from: node 4 "fc2" (Gemm)
const char *text_bytes(Arena *a, int64_t bytes);        // 12.3 MiB
const char *text_count(Arena *a, double n);             // 12.3 M
int print_text(const Text *t, int status);              // to standard output; returns status
bool text_write(Arena *a, const char *path, const Text *t);     // a file that appears whole; false with diagnostics
// flushes standard output: status, or EXIT_IO with a diagnostic if a write failed
int output_finish(int status);

// ---------------------------------------------------------------- tensors.c
// Reads .pb, .npy, .pgm, .ppm and text (else). `want`: the model's type, whose symbolic dimensions take the file's
// sizes (NULL: as it is). normalize: of images, NULL: 0 to 1
Tensor *tensor_read(Arena *a, const Graph *g, const char *path, const Type *want, const Normalize *normalize);
// writes FOLDER/NAME.npy, with '_' for what is not fit for a file's name; the folder is made unless it is there
bool tensor_write(Arena *a, const char *folder, const char *name, const Tensor *t);
// sizes at their upper bounds; the same for the same state
Tensor *tensor_random(Arena *a, const Value *v, uint64_t *state);
bool tensor_fits(const Tensor *t, const Type *want);    // same dtype and rank, constant dimensions equal

// ---------------------------------------------------------------- compare.c
// ulps: of the largest element, which atol is at least; negative: as usual for the type. precision: of --precision
// against: what the right values are called
typedef struct Tolerance { double rtol, atol, ulps; const char *precision, *against; } Tolerance;
// ulps: max_abs in ULP of the largest element; differ: elements that do not pass; fault NULL: all pass
typedef struct Difference { double max_abs, max_rel, largest, ulps; int64_t differ; const char *fault; } Difference;
Tolerance usual_tolerance(const char *precision);
Difference compare_tensors(Arena *a, const Tensor *got, const Tensor *want, Tolerance allowed);

// ---------------------------------------------------------------- build.c: generated code in this process
typedef struct Built {
    Arena *arena;                                       // its own: the compilation
    Plan *plan;
    const Options *options;                             // those that it was compiled with
    const char *dir;                                    // temporary, removed by build_free, at exit and on signals
    void *library;
    const burn_model *model;                            // NULL on the GPU and with a runner
    const burn_vk_program *gpu;                         // else NULL
    const char *program, *runner;                       // its path, and the command that runs it; else NULL
    const void *weights;
    File weights_file;
} Built;
// the stages, then $CC; NULL with diagnostics; *compiled: the stages went well
// runner: as in CommandOptions
Built *build_model(const Options *o, const char *runner, bool *compiled);
// of a C file for a target without an operating system, what object.c reads: an object file, and -fstack-usage's list
typedef struct Unlinked { const char *object, *frames; } Unlinked;
Unlinked unlinked_of(Arena *a, const char *stem);
// cc's exit status; silent: nobody sees what it says
int build_unlinked(Arena *a, const Options *o, const char *cc, const char *source, const Unlinked *to, bool silent);
// the same of a program that is planned, for these options, in this arena, which goes with it
Built *build_program(Arena *a, Options *o, Programs *p);
void build_free(Built *b);
// what stands before generated code with marks (Options.profile), whose kernels are so many; "" for other code
const char *profile_marks(Arena *a, const Options *o, int kernels);
int profile_tracks(const Options *o);
// $CC as for the target; false with diagnostics
bool build_object(Arena *a, const Options *o, const char *runner, const char *source, const char *object);
// Text for the end of a wrapper, and what is done for what it becomes: burn_gpu_begin is this process's.
extern const char build_steps_call[];
void build_give_steps(void *library);

// ---------------------------------------------------------------- bind.c: models and the tensors that go in
typedef struct Inputs { int n; Tensor **at; } Inputs;
// A model may be built several times, for different sizes; what was built stays here.
typedef struct BuildCache {
    Arena *arena;
    const char *runner;                                 // as in CommandOptions
    VEC(Built *) built;
    VEC(const char *) keys;
    VEC(const char *) frozen;
} BuildCache;
// Builds the model for these inputs (in the signature's order, NULL where unknown): symbolic dimensions take their
// sizes, and when that is not enough because shapes depend on values, small inputs become constants; *frozen names
// them ("" when none). NULL with diagnostics.
Built *build_for_inputs(
    BuildCache *cache, const Options *o, const Graph *signature, const Inputs *in, const char **frozen);
// The options, with the symbolic dimensions at the sizes of these inputs; NULL with diagnostics.
Options *inputs_bind(Arena *a, const Options *o, const Graph *signature, const Inputs *in);
// those that the built model still has, in its order
Inputs inputs_select(Arena *a, const Built *b, const Graph *signature, const Inputs *in);
// the same, with random values for those that are not given: bench.c
Inputs inputs_random(Arena *a, const Built *b, const Graph *signature, const Inputs *in);
// What the integers of a quantized output stand for (--io); other outputs are as they are.
Tensor *output_real(Arena *a, const Graph *g, const char *name, Tensor *q);
void build_cache_free(BuildCache *cache);
// The bytes of an output for these inputs, or the most that it can have.
size_t output_bytes(Graph *g, const Inputs *in, const Type *output);

// The model's inputs alone, with their symbolic dimensions: a graph without nodes; and in its order what --input
// NAME=FILE (or FILE alone, when there is one input) gives, NULL where it gives none. all: optional inputs that are
// not given are absent. NULL with diagnostics.
Graph *inputs_read(Arena *a, CommandOptions *c, bool all, Inputs *out);
// else a diagnostic that lists the missing ones
bool inputs_complete(Arena *a, const Options *o, const Graph *signature, const Inputs *in);

// ---------------------------------------------------------------- ends.c: sequences and optionals among the ends
typedef struct Recorded { int n; EndData *at; } Recorded;    // what the files of a data set hold
bool recorded_read(
    Arena *a, const char *set, const char *prefix, int n_declared, const ModelEnd *declared, Recorded *out);
// A data set's inputs, and the model's inputs as they are for it; *own, in `kept`: the options, which say what the
// data says of sequences and optionals.
Graph *recorded_inputs(
    Arena *a, Arena *kept, const Options *o, const Model *m, const char *set, Options **own, Inputs *in);
// Takes what is given for sequences and optionals out of c->inputs: tensors by "NAME\nK", and what they say of NAME
// as options.
bool ends_given(Arena *a, CommandOptions *c, const Model *m, bool all, StrMap *tensors);

// ---------------------------------------------------------------- sandbox.c: generated code runs in a child process
// on a board without a clock: what its counter counted in a run, counts says of what (NULL: it has a clock), and the
// bytes of stack that a run took, and that it can take (-1: not known)
// bench_gpu.c: of a run on a GPU the kernels' time, and that of a run whose inputs and outputs stay on the device.
typedef struct GpuSplit { bool known; double device_ms, resident_ms; } GpuSplit;
typedef struct Timing {
    double median_ms, min_ms, counted;
    const char *counts;
    int64_t runs, stack, stack_bound;
    GpuSplit gpu;
} Timing;
// One run; inputs in the built model's order. Outputs are new tensors of the plan's types. NULL: fine; else what went
// wrong (a crash, no end, bytes written outside).
const char *sandbox_run(Arena *a, const Built *b, const Inputs *in, Tensor **outputs, int timeout);
// Many runs, for about `seconds`.
const char *sandbox_time(Arena *a, const Built *b, const Inputs *in, double seconds, int timeout, Timing *out);
// the same here and not through a runner; in the child ran(argument) follows each run but those that warm up
const char *sandbox_watch(Arena *a, const Built *b, const Inputs *in, double seconds, int timeout,
    void (*ran)(void *argument), void *argument, Timing *out);

// Memory that a child shares; NULL: there is none. And any code in a child: what it returns is 0, or an error's number.
void *sandbox_memory(size_t bytes);
void sandbox_release(void *p, size_t bytes);
const char *sandbox_call(Arena *a, int (*call)(void *), void *argument, int timeout);

// ---------------------------------------------------------------- bench_gpu.c
// In a child, behind runs of that session with those inputs; the code of what failed. Each part takes `seconds`.
int gpu_split(
    const burn_vk_program *p, burn_vk_session *session, const burn_tensor *inputs, double seconds, GpuSplit *out);

// ---------------------------------------------------------------- bench_train.c
int bench_training(Arena *a, CommandOptions *c);        // the exit status

// ---------------------------------------------------------------- verify_gradients.c, differences.c
int verify_gradients(Arena *a, CommandOptions *c);      // the exit status

// ---------------------------------------------------------------- trace.c: verify --trace
// outputs: the model's, as the evaluator computes them, or NULL; why: what the table lacks, or NULL
typedef struct Trace { struct Tracing *tracing; Tensor **outputs; const char *why; } Trace;
// of a data set's inputs, in the signature's order; false with diagnostics
bool trace_start(Trace *trace, Arena *a, const CommandOptions *c, const Options *o, const Graph *signature,
    const Inputs *in, Tolerance allowed);
// the table and the first bad node, or members of a JSON object; of_model, of_evaluator: what is wrong with the
// model's outputs, and with those that the evaluator computes, or NULL
void trace_print(Text *out, const Trace *trace, const char *of_model, const char *of_evaluator, bool json);

// ---------------------------------------------------------------- board.c: targets without an operating system
const char *board_emulator(const Target *t, const char *runner);  // the right one if it is QEMU for others, else NULL
bool board_bare(const Target *t);                       // is it one? The rest is for these
const char *board_link_script(Arena *a, const Target *t, int64_t constants);  // of so many bytes
void board_words(Arena *a, const Target *t, const char *runner, Argv *out);    // but the program's path
// what the processor's counter counts under this runner; *unit: so many of them are one tick of it
const char *board_count(const Target *t, const char *runner, double *unit);

// ---------------------------------------------------------------- stack.c
int64_t stack_bound(Arena *a, const Unlinked *program);         // of a board's program; -1: not known

// ---------------------------------------------------------------- footprint.c
// --flash and --stack of the C file that was written, for targets without an operating system: are they kept? false
// with diagnostics; report: what it takes, to *out
bool footprint_check(Arena *a, const Options *o, const Programs *p, bool report, Text *out);

// ---------------------------------------------------------------- remote.c: the same through a runner
// templates/driver.c is the other side. samples: milliseconds, or what a board's counter counted
typedef struct Remote { Tensor **outputs; int n_samples; double *samples; int64_t runs, stack; } Remote;
const char *remote_request(Arena *a, const char *dir), *remote_answer(Arena *a, const char *dir);    // their paths
// seconds 0: one run
const char *remote_run(Arena *a, const Built *b, const Inputs *in, double seconds, int timeout, Remote *out);

#endif
