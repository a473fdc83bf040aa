// SPDX-License-Identifier: MIT OR Apache-2.0
// The command line. In: argv. Out: Options and the command to run.
//
// One table lists the commands, one the options; parsing (getopt_long), help, and the nearest-name hints all read
// these two. A mistake is a diagnostic with status 2; --help and --version print to standard output and leave nothing
// to do.
#define _POSIX_C_SOURCE 200809L
#include "command.h"
#include "codegen/codegen.h"
#include "schedule/cpu/tune.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPILE = 1,
    VERIFY = 2,
    RUN = 4,
    BENCH = 8,
    INSPECT = 16,
    OPS = 32,
    TUNE = 64,
    EVERY = 127,
    BUILDS = VERIFY | RUN | BENCH,
    COMPILES = EVERY & ~OPS
};

static const Command commands[] = {
    { "compile", COMPILE, command_compile, "burncc MODEL [-o model.c] [options]",
        "Compiles an ONNX model into C (model.c, model.h, and model.bin when the weights are large).",
        "  burncc lenet.onnx -o lenet.c                     then: cc -O3 -march=native -c lenet.c\n"
        "  burncc bert.onnx -o bert.c --dim batch=4 --dim seq=128 --report\n"
        "  burncc bert.onnx -o bert.c --dim batch=1..8 --dim seq=1..512     one file for all these sizes\n"
        "  burncc lenet.onnx -o lenet.c --target portable   plain C99, for any compiler\n"
        "  burncc lenet.onnx -o lenet.c --train --optimizer adam --dim batch=32\n" },
    { "verify", VERIFY, command_verify, "burncc verify MODEL [--data DIR]... [options]",
        "Builds the model with $CC, runs it on recorded inputs and compares: a line a data set, `pass max_abs=... max_rel=...` or\n"
        "`FAIL ...`. Data sets are folders test_data_set_N (input_0.pb, output_0.pb, ...) beside the model or in --data. A file\n"
        "tolerance.txt (`rtol atol`) beside the data is obeyed. Exit status 0 only if all pass.",
        "  burncc verify lenet.onnx\n"
        "  burncc verify lenet.onnx --data recorded/ --rtol 1e-4 --atol 1e-6\n" },
    { "run", RUN, command_run, "burncc run MODEL [--input NAME=FILE]... [--output DIR]",
        "Builds the model with $CC and runs it once. Inputs: .npy, ONNX .pb, .pgm and .ppm images, or text (numbers). Outputs: a\n"
        "summary, or NAME.npy files in --output DIR.",
        "  burncc run digits.onnx --input image=seven.pgm\n"
        "  burncc run bert.onnx --input ids=ids.npy --input mask=mask.txt --output out/\n" },
    { "bench", BENCH, command_bench, "burncc bench MODEL [--seconds S] [options]",
        "Builds the model with $CC and times it on random inputs: `median_ms=... min_ms=... gflops=... workspace_bytes=...`.",
        "  burncc bench resnet.onnx --target native --seconds 5\n"
        "  burncc bench resnet.onnx --json\n" },
    { "inspect", INSPECT, command_inspect, "burncc inspect MODEL [options]",
        "Prints inputs, outputs, symbolic dimensions, operators, parameters, multiply-adds, memory, and whether all is supported.",
        "  burncc inspect bert.onnx --dim seq=128\n" },
    { "tune", TUNE, command_tune, "burncc tune MODEL [--target T] [--seconds S] [-o FILE]",
        "Measures other algorithms and blocks for the model's kernels on this machine, for about S seconds, and writes what is fastest\n"
        "as records: a text file that compile, verify, run and bench take with --records. Kernels that the file has already are not\n"
        "measured again, so that more time goes on where the last ended. The same records give the same code, on any machine.\n"
        "Convolutions, attention and matrix products have choices, of floats and of bytes, with weights of few bits too. They are measured on one\n"
        "thread; --threads takes the same records. A file of several targets takes none.",
        "  burncc tune resnet.onnx --target native --seconds 120 -o resnet.records\n"
        "  burncc resnet.onnx --target native --records resnet.records\n" },
    { "ops", OPS, command_ops, "burncc ops [--markdown | --json]",
        "Prints the support table: operators, versions, gradients, back ends.", "  burncc ops --markdown\n" },
};

enum { MAX_THREADS = 256 };

typedef enum Kind { FLAG, TEXT, COUNTED, REAL, LIST, SPECIAL } Kind;
typedef struct Option {
    const char *name;
    char letter;                                        // 0: none
    const char *argument;                               // NULL: takes none
    unsigned commands;
    const char *group, *help;
    Kind kind;
    size_t offset;                                      // of the field that FLAG, TEXT, COUNTED and REAL set
    bool (*set)(Arena *a, Options *o, const char *text);
} Option;

static bool set_dim(Arena *a, Options *o, const char *text);
static bool set_target(Arena *a, Options *o, const char *text);
static bool set_embed_limit(Arena *a, Options *o, const char *text);
static bool set_string_bytes(Arena *a, Options *o, const char *text);
static bool set_threads(Arena *a, Options *o, const char *text);
static bool set_data(Arena *a, Options *o, const char *text);
static bool set_input(Arena *a, Options *o, const char *text);
static bool set_freeze(Arena *a, Options *o, const char *text);
static bool set_sequence(Arena *a, Options *o, const char *text);
static bool set_absent(Arena *a, Options *o, const char *text);
static bool set_records(Arena *a, Options *o, const char *text);
static bool set_precision(Arena *a, Options *o, const char *text);
static bool set_blas(Arena *a, Options *o, const char *text);
// The rows of a table, of which the first is the default.
#define LOSS(op, name, ...) " " #name
static const char loss_help[] = "of the model's first output; the first is the default:"
#include "losses.def"
    ;
#undef LOSS
#define OPTIMIZER(op, name, ...) " " #name
static const char optimizer_help[] = "what updates the parameters; the first is the default:"
#include "optimizers.def"
    ;
#undef OPTIMIZER
#define SCHEDULE(name, ...) " " #name
static const char schedule_help[] = "adds NAME_learning_rate(step, ...):"
#include "schedules.def"
    ;
#undef SCHEDULE
#define FIELD(kind, name) kind, offsetof(Options, name), NULL
#define SET(f) SPECIAL, 0, f

static const Option options[] = {
    { "output", 'o', "PATH", COMPILE | RUN | TUNE, "Output",
        "the C file to write (default: MODEL.c here); run: a folder for NAME.npy files; tune: MODEL.records",
        FIELD(TEXT, output) },
    { "name", 0, "NAME", COMPILE, "Output", "prefix of the generated symbols (default: from the output's file name)",
        FIELD(TEXT, name) },
    { "embed-limit", 0, "BYTES", COMPILE | BUILDS, "Output",
        "weights up to this size become C arrays, larger ones a .bin file (default 1M)", SET(set_embed_limit) },
    { "string-bytes", 0, "N", COMPILE | BUILDS, "Output",
        "room for each string that the program makes; they share it (default 256)", SET(set_string_bytes) },
    { "check", 0, NULL, COMPILE, "Output", "parse the result with libclang, all warnings on, and report what it finds",
        FIELD(FLAG, check) },
    { "report", 0, NULL, COMPILE | INSPECT | TUNE, "Output",
        "print kernels, operations, traffic and memory over time; tune: every choice and its time",
        FIELD(FLAG, report) },
    { "dump", 0, "STAGE", COMPILE | INSPECT, "Output",
        "print the graph after import, a pass, or the plan; without -o stop there", FIELD(TEXT, dump) },
    { "target", 0, "TARGET", COMPILES, "Code",
        "what to compile for (default generic), several with commas; `--target list` shows them", SET(set_target) },
    { "dim", 0, "NAME=V|LO..HI", COMPILES, "Code",
        "the size of a symbolic dimension, or its bounds (the run is told the size); 1 without it", SET(set_dim) },
    { "sequence", 0, "NAME=N|LO..HI", COMPILES, "Code",
        "the length of a sequence input, or its elements' shapes: [2,3],[4,3]; 1 without it", SET(set_sequence) },
    { "absent", 0, "NAME", COMPILES, "Code", "compile for an optional input that holds nothing", SET(set_absent) },
    { "freeze", 0, "NAME=FILE", COMPILES, "Code", "make an input a constant of the value in FILE", SET(set_freeze) },
    { "threads", 0, "N[:US]", COMPILE | BUILDS, "Code",
        "runs can go in N parts, on threads that they are given; parts take at least US microseconds",
        SET(set_threads) },
    { "records", 0, "FILE", COMPILE | BUILDS | INSPECT, "Code",
        "algorithms and blocks that `burncc tune` found; repeatable", SET(set_records) },
    { "fast-math", 0, NULL, COMPILES, "Code", "let floating point be reordered; the default is strict IEEE",
        FIELD(FLAG, fast_math) },
    { "precision", 0, "TYPE", COMPILES, "Code",
        "bf16: matrix products of bfloat16 (each number rounded by 2^-9 at most), sums in f32: half the memory, faster; f32 (default)",
        SET(set_precision) },
    { "blas", 0, "LIBRARY", COMPILE | BUILDS | INSPECT, "Code",
        "openblas: large matrix products call cblas_sgemm and the like; link with -lopenblas", SET(set_blas) },
    { "no-fuse", 0, NULL, COMPILES, "Code", "one kernel per operation, to find where a difference comes from",
        FIELD(FLAG, no_fuse) },
    { "train", 0, NULL, COMPILE, "Training",
        "loss and gradients, an optimizer's step, parameters as a struct, save and load", FIELD(FLAG, train) },
    { "loss", 0, "LOSS", COMPILE, "Training", loss_help,
        FIELD(TEXT, loss) },
    { "optimizer", 0, "NAME", COMPILE, "Training",
        optimizer_help, FIELD(TEXT, optimizer) },
    { "schedule", 0, "NAME", COMPILE, "Training", schedule_help, FIELD(TEXT, schedule) },
    { "data", 0, "DIR", VERIFY, "Data", "a data set, or a folder of test_data_set_N folders; repeatable",
        SET(set_data) },
    { "input", 0, "NAME=FILE", RUN | BENCH, "Data", "the value of an input; repeatable (bench: random without it)",
        SET(set_input) },
    { "rtol", 0, "X", VERIFY, "Data", "allowed relative difference (default 1e-3)", FIELD(REAL, rtol) },
    { "atol", 0, "X", VERIFY, "Data", "allowed absolute difference (default 1e-7)", FIELD(REAL, atol) },
    { "seconds", 0, "S", BENCH | TUNE, "Running", "time to measure for (default 2; tune: 60)", FIELD(REAL, seconds) },
    { "timeout", 0, "S", BUILDS, "Running", "give up on a run of generated code after this long (default 300)",
        FIELD(COUNTED, timeout) },
    { "runner", 0, "COMMAND", BUILDS, "Running",
        "runs the program that $CC makes, for processors that are not this one", FIELD(TEXT, runner) },
    { "json", 0, NULL, BUILDS | INSPECT | OPS, "Reporting", "results as JSON on standard output", FIELD(FLAG, json) },
    { "markdown", 0, NULL, OPS, "Reporting", "the table as Markdown", FIELD(FLAG, markdown) },
    { "quiet", 'q', NULL, EVERY, "Reporting", "no progress", FIELD(FLAG, quiet) },
    { "help", 'h', NULL, EVERY, "Reporting", "this text", SPECIAL, 0, NULL },
    { "version", 'V', NULL, EVERY, "Reporting", "version, licence and what is built in", SPECIAL, 0, NULL },
};

static bool usage_error(const char *fmt, ...) PRINTF_LIKE(1, 2);

static bool usage_error(const char *fmt, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    diag_error_as(EXIT_USAGE, NULL, "%s", line);
    return false;
}

// ---------------------------------------------------------------- nearest names

static int least(int x, int y) { return x < y ? x : y; }

// Levenshtein's distance of two short words, row by row.
static int word_distance(const char *x, const char *y) {
    enum { LONGEST = 40 };
    int row[LONGEST + 1];
    int n = (int)strlen(y);
    if (n > LONGEST || strlen(x) > LONGEST) return LONGEST;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; x[i - 1]; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = corner + (tolower((unsigned char)x[i - 1]) != tolower((unsigned char)y[j - 1]));
            corner = row[j];
            row[j] = least(change, 1 + least(row[j], row[j - 1]));
        }
    }
    return row[n];
}

// Remembers the name that is nearest to `word`, if it is near at all.
static void consider(const char *word, const char *name, const char **best, int *distance) {
    int d = word_distance(word, name);
    int length = (int)strlen(name);
    bool prefix = strlen(word) >= 3 && strncmp(word, name, strlen(word)) == 0;
    if (prefix) d = least(d, 1);
    if (d <= length / 3 + 1 && d < length && d < *distance) {
        *best = name;
        *distance = d;
    }
}

static const char *nearest_option(const char *word) {
    const char *best = NULL;
    int distance = 1000;
    for (size_t i = 0; i < COUNT(options); i++) consider(word, options[i].name, &best, &distance);
    return best;
}

static const char *nearest_command(const char *word) {
    const char *best = NULL;
    int distance = 1000;
    for (size_t i = 0; i < COUNT(commands); i++) consider(word, commands[i].name, &best, &distance);
    return best;
}

// ---------------------------------------------------------------- options that take more than a plain value

static bool parse_int(const char *s, const char *end, int64_t *out) {
    char *stop = NULL;
    if (s == end || !isdigit((unsigned char)*s)) return false;
    errno = 0;
    *out = strtoll(s, &stop, 10);
    return stop == end && !errno;
}

static bool set_dim(Arena *a, Options *o, const char *text) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text) return usage_error("--dim wants NAME=V or NAME=LO..HI, not '%s'", text);
    const char *dots = strstr(equals, ".."), *end = text + strlen(text);
    DimOption d = { .name = arena_strndup(a, text, (size_t)(equals - text)) };
    bool ok = dots ? parse_int(equals + 1, dots, &d.lo) && parse_int(dots + 2, end, &d.hi) :
                     parse_int(equals + 1, end, &d.lo);
    if (!dots) d.hi = d.lo;
    if (!ok || d.hi > INT32_MAX || d.lo > d.hi)
        return usage_error("--dim %s: wants a size or a range LO..HI, each 0 to 2147483647", text);
    for (int i = 0; i < o->dims.n; i++)
        if (strcmp(o->dims.at[i].name, d.name) == 0) return usage_error("--dim %s is given twice", d.name);
    VEC_PUSH(a, o->dims, d);
    return true;
}

static bool set_target(Arena *a, Options *o, const char *text) {
    if (backend_target(text, &o->machine)) {
        o->target = text;
        return true;
    }
    Text names, several;
    text_init(&names, a);
    text_init(&several, a);
    for (int i = 0; target_at(i); i++) {
        const Target *t = target_at(i);
        text_printf(&names, "%s%s", i ? ", " : "", t->name);
        if (t->features) text_printf(&several, "%s%s", several.n ? ", " : "", t->name);
    }
    if (strchr(text, ','))
        return usage_error("--target %s: several in one file can be, once each, of %s", text, several.at);
    return usage_error("unknown target '%s'; the targets are %s", text, names.at);
}

static bool set_embed_limit(Arena *a, Options *o, const char *text) {
    (void)a;
    const char *end = text + strlen(text), *unit = end > text && strchr("kKmMgG", end[-1]) ? end - 1 : end;
    int64_t n;
    if (!parse_int(text, unit, &n) || n > INT64_MAX >> 30)
        return usage_error("--embed-limit wants a number of bytes such as 65536, 64K or 4M, not '%s'", text);
    int shift = unit == end                  ? 0 :
        tolower((unsigned char)*unit) == 'k' ? 10 :
        tolower((unsigned char)*unit) == 'm' ? 20 :
                                               30;
    o->embed_limit = n << shift;
    return true;
}

static bool set_string_bytes(Arena *a, Options *o, const char *text) {
    (void)a;
    if (parse_int(text, text + strlen(text), &o->string_bytes) && o->string_bytes > 0 && o->string_bytes <= INT32_MAX)
        return true;
    return usage_error("--string-bytes wants a number of bytes such as 256, not '%s'", text);
}

static bool set_threads(Arena *a, Options *o, const char *text) {
    (void)a;
    const char *colon = strchr(text, ':'), *end = text + strlen(text);
    int64_t n = 0, us = 0;
    bool ok = parse_int(text, colon ? colon : end, &n) && n >= 1 && n <= MAX_THREADS
        && (!colon || parse_int(colon + 1, end, &us)) && us <= 1000000;
    if (!ok)
        return usage_error(
            "--threads wants a number of parts, 1 to %d, and may be the microseconds that a part takes at least, as in 4:20, not '%s'",
            MAX_THREADS, text);
    o->threads = (int)n;
    if (colon) o->part_us = (double)us;
    return true;
}

static bool set_data(Arena *a, Options *o, const char *text) {
    VEC_PUSH(a, o->data, text);
    return true;
}

static bool set_input(Arena *a, Options *o, const char *text) {
    VEC_PUSH(a, o->inputs, text);
    return true;
}

static bool set_freeze(Arena *a, Options *o, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1]) return usage_error("--freeze wants NAME=FILE, not '%s'", text);
    Tensor *t = tensor_read(a, NULL, equals + 1, NULL);
    if (!t) return false;
    VEC_PUSH(a, o->frozen, (FrozenInput){ arena_strndup(a, text, (size_t)(equals - text)), t });
    return true;
}

// The sizes of one shape after its bracket, and what follows the closing one; NULL when they cannot be read.
static const char *parse_shape(const char *s, Type *out) {
    out->rank = 0;
    while (*s != ']') {
        size_t digits = strspn(s, "0123456789");
        if (out->rank == MAX_RANK || !parse_int(s, s + digits, &out->dim[out->rank])
            || out->dim[out->rank] > INT32_MAX)
            return NULL;
        out->rank++;
        s += digits;
        if (*s == ',') s++;
        else if (*s != ']') return NULL;
    }
    return s + 1;
}

// NAME=LO..HI, or NAME=LO..HI[2,3] with the shape of every element: a length that the program takes, as it takes the
// size NAME_length.
static bool parse_range(Arena *a, Options *o, const char *s, const char *dots, SequenceOption *given) {
    const char *bracket = strchr(dots, '['), *end = bracket ? bracket : dots + strlen(dots);
    Type *shape = NEW(a, Type);
    if (!parse_int(s, dots, &given->lo) || !parse_int(dots + 2, end, &given->hi) || given->lo > given->hi
        || given->hi > INT32_MAX)
        return false;
    if (bracket && (!(end = parse_shape(bracket + 1, shape)) || *end)) return false;
    given->stacked = true;
    given->elements = bracket ? shape : NULL;
    VEC_PUSH(a, o->dims, (DimOption){ arena_printf(a, "%s_length", given->name), given->lo, given->hi });
    return true;
}

static bool parse_shapes(Arena *a, const char *s, int64_t most, SequenceOption *given, int64_t *n) {
    VEC(Type) types = { 0 };
    while (s && *s == '[' && types.n < most) {
        Type t = { 0 };
        s = parse_shape(s + 1, &t);
        VEC_PUSH(a, types, t);
        if (s && *s == ',' && s[1] == '[') s++;
    }
    given->elements = types.at;
    *n = types.n;
    return s && !*s;
}

static bool set_sequence(Arena *a, Options *o, const char *text) {
    enum { LONGEST = 4096 };
    const char *equals = strchr(text, '='), *end = text + strlen(text);
    if (!equals || equals == text)
        return usage_error("--sequence wants NAME=N, NAME=LO..HI or NAME=[2,3],[4,3], not '%s'", text);
    SequenceOption given = { .name = arena_strndup(a, text, (size_t)(equals - text)) };
    int64_t n = 0;
    const char *s = equals + 1, *dots = strstr(s, "..");
    bool ok = dots ? parse_range(a, o, s, dots, &given) :
        *s == '['  ? parse_shapes(a, s, LONGEST, &given, &n) :
                     parse_int(s, end, &n);
    if (!ok || n > LONGEST)
        return usage_error("--sequence %s: wants a length up to %d, a range of lengths, or shapes such as [2,3],[4,3]",
            text, LONGEST);
    for (int i = 0; i < o->sequences.n; i++)
        if (!strcmp(o->sequences.at[i].name, given.name))
            return usage_error("--sequence %s is given twice", given.name);
    given.n = (int)n;
    VEC_PUSH(a, o->sequences, given);
    return true;
}

static bool set_absent(Arena *a, Options *o, const char *text) {
    VEC_PUSH(a, o->absent, text);
    return true;
}

static bool set_precision(Arena *a, Options *o, const char *text) {
    (void)a;
    if (strcmp(text, "bf16") && strcmp(text, "f32"))
        return usage_error("--precision wants f32 or bf16, not '%s'", text);
    o->precision = strcmp(text, "f32") ? text : NULL;
    return true;
}

static bool set_blas(Arena *a, Options *o, const char *text) {
    (void)a;
    if (strcmp(text, "openblas")) return usage_error("--blas knows openblas alone, not '%s'", text);
    o->blas = text;
    return true;
}

static bool set_records(Arena *a, Options *o, const char *text) {
    if (!o->records) records_init(o->records = NEW(a, Records), a);
    return records_read(o->records, a, text);
}

static bool set_number(const Option *option, void *field, const char *text) {
    char *end = NULL;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0) || v > 1e9)
        return usage_error("--%s wants a number, not '%s'", option->name, text);
    if (option->kind == REAL) {
        *(double *)field = v;
        return true;
    }
    if (v < 1 || v > 1e6 || v != (double)(int)v)
        return usage_error("--%s wants a whole number from 1, not '%s'", option->name, text);
    *(int *)field = (int)v;
    return true;
}

static bool option_set(Arena *a, Options *o, const Option *option, const char *text) {
    void *field = (char *)o + option->offset;
    switch (option->kind) {
    case FLAG: *(bool *)field = true; return true;
    case TEXT:
        if (!*text) return usage_error("--%s wants a value", option->name);
        *(const char **)field = text;
        return true;
    case COUNTED: case REAL: return set_number(option, field, text);
    default: return option->set(a, o, text);
    }
}

// ---------------------------------------------------------------- help

static void help_options(Text *t, unsigned bit) {
    const char *group = "";
    for (size_t i = 0; i < COUNT(options); i++) {
        const Option *option = &options[i];
        if (!(option->commands & bit)) continue;
        if (strcmp(option->group, group)) text_printf(t, "\n%s:\n", option->group);
        group = option->group;
        char left[64], letter[8] = "    ";
        if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
            option->argument ? option->argument : "");
        text_printf(t, "  %-26s %s\n", left, option->help);
    }
}

static void help_general(Text *t) {
    text_printf(t, "burncc: compiles neural networks into C that stands alone\n\nUsage:\n");
    for (size_t i = 0; i < COUNT(commands); i++) text_printf(t, "  %s\n", commands[i].usage);
    text_printf(t, "\n`burncc COMMAND --help` tells more about one. Compiling is the default command:\n");
    help_options(t, COMPILE);
    text_printf(t, "\nExamples:\n%s  burncc verify lenet.onnx\n  burncc bench lenet.onnx --target native\n",
        commands[0].examples);
    text_printf(t,
        "\nEnvironment: CC (the C compiler of verify, run and bench), BURNCC_CFLAGS (more flags for it), BURNCC_RUNNER (where\n"
        "--runner is not given), TMPDIR, BURN_VK_DEVICE (part of the GPU's name).\n"
        "Exit status: 0 fine, 1 invalid model or failed comparison, 2 usage, 3 a limit, 4 input or output, 5 out of memory.\n");
}

static void help_command(Text *t, const Command *c) {
    text_printf(t, "Usage: %s\n\n%s\n", c->usage, c->summary);
    help_options(t, c->bit);
    text_printf(t, "\nExamples:\n%s", c->examples);
}

static void help_targets(Text *t) {
    text_printf(t, "  %-14s %-24s %s\n", "--target", "compile with", "");
    for (int i = 0; target_at(i); i++) {
        const Target *one = target_at(i);
        text_printf(t, "  %-14s %-24s %s\n", one->name, one->flags ? one->flags : "", one->about);
    }
    text_printf(t,
        "\nSeveral of x86-64's, such as --target x86-64-v2,x86-64-v3,x86-64-v4, are one file for -O3, which finds out at run time\n"
        "what the processor has. Without FMA (x86-64-v2) and with it results may differ in the last bits.\n");
}

// ---------------------------------------------------------------- parsing

static const Command *find_command(const char *name) {
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static void report_unknown(const Command *c, const char *given) {
    const char *word = given + strspn(given, "-");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (size_t i = 0; i < COUNT(options); i++)
        if (strcmp(options[i].name, name) == 0) {
            usage_error("--%s is not an option of `burncc %s`; see `burncc %s --help`", name, c->name, c->name);
            return;
        }
    const char *near = nearest_option(name);
    if (near) usage_error("unknown option '%s'; did you mean --%s?", given, near);
    else usage_error("unknown option '%s'; see `burncc %s --help`", given, c->name);
}

enum { FIRST_LONG = 256 };                              // getopt_long's value of options[i] is FIRST_LONG + i

static const Option *option_of(int value) {
    if (value >= FIRST_LONG) return &options[value - FIRST_LONG];
    for (size_t i = 0; i < COUNT(options); i++)
        if (options[i].letter == value) return &options[i];
    return NULL;
}

// Sets every option; the operands stay in argv[optind..]. *quit: --help or --version was there.
static bool parse_options(Arena *a, Options *o, const Command *c, bool general, int argc, char **argv, bool *quit) {
    struct option longs[COUNT(options) + 1] = { { 0 } };
    char shorts[2 * COUNT(options) + 2] = ":";
    int n = 0;
    for (size_t i = 0; i < COUNT(options); i++) {
        if (!(options[i].commands & c->bit)) continue;
        longs[n++] = (struct option){ options[i].name, options[i].argument ? required_argument : no_argument, NULL,
            FIRST_LONG + (int)i };
        if (options[i].letter) {
            size_t end = strlen(shorts);
            shorts[end] = options[i].letter;
            if (options[i].argument) shorts[end + 1] = ':';
        }
    }
    opterr = 0;
    for (int value; (value = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (value == '?' || value == ':') {
            const char *given = argv[optind - 1];
            if (value == ':') usage_error("%s wants a value", given);
            else report_unknown(c, given);
            continue;
        }
        const Option *option = option_of(value);
        bool targets = strcmp(option->name, "target") == 0 && strcmp(optarg, "list") == 0;
        if (targets || strcmp(option->name, "help") == 0) {
            Text t;
            text_init(&t, a);
            if (targets) help_targets(&t);
            else if (general) help_general(&t);
            else help_command(&t, c);
            print_text(&t, EXIT_OK);
            *quit = true;
            return false;
        }
        if (strcmp(option->name, "version") == 0) {
            options_version();
            *quit = true;
            return false;
        }
        option_set(a, o, option, optarg);
    }
    return !diag_errors();
}

static bool is_identifier(const char *s) {
    if (!isalpha((unsigned char)*s) && *s != '_') return false;
    while (isalnum((unsigned char)*s) || *s == '_') s++;
    return !*s;
}

// The file name without folder and last suffix.
static const char *file_stem(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    return arena_strndup(a, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static bool records_of(Arena *a, const Options *o) {
    const char *machine = tune_machine(a, &o->machine);
    for (int i = 0; i < o->records->at.n; i++)
        if (!strcmp(o->records->at.at[i].machine, machine)) return true;
    return false;
}

// What follows from other options, and what does not go together.
static bool options_finish(Arena *a, Options *o, const Command *c) {
    if (c->bit == OPS) return o->json && o->markdown ? usage_error("--json or --markdown, not both") : true;
    if (!o->target && !set_target(a, o, "generic")) return false;
    if (o->dump && !dump_known(o, o->dump))
        return usage_error("--dump: no stage or pass is called '%s'; there are %s", o->dump, dump_names(a, o));
    const char *file = c->bit == COMPILE ? o->output : NULL, *dot = file ? strrchr(file, '.') : NULL;
    const Backend *b = o->machine.backend;
    if (file && (!dot || strcmp(dot, b->extension) || dot == file || dot[-1] == '/'))
        return usage_error("-o wants the name of a file such as model%s, not '%s'", b->extension, file);
    if (o->name && !is_identifier(o->name)) return usage_error("--name wants a C identifier, not '%s'", o->name);
    if (!o->name) o->name = name_c(a, file_stem(a, file ? file : o->model));
    if ((o->loss || o->optimizer || o->schedule) && !o->train)
        return usage_error("--loss, --optimizer and --schedule go with --train");
    const char *runner = getenv("BURNCC_RUNNER");
    if (!o->runner && runner && *runner) o->runner = runner;
    if (o->records && o->machine.n_parts)
        diag_note(NULL, "a file of several targets takes no records: its blocks are for all of them");
    else if (o->records && !records_of(a, o))
        diag_note(NULL, "none of the records is for %s; `burncc tune` makes some", tune_machine(a, &o->machine));
    if (c->bit & BUILDS && b->descriptor == DESCRIPTOR_NONE)
        return usage_error("what is written for --target %s does not run", o->target);
    const char *lacks = o->train && !b->training ? "train" :
        o->check && !b->source                   ? "check" :
        o->threads > 1 && !b->threads            ? "threads" :
        o->blas && !b->blas                      ? "blas" :
                                                   NULL;
    return !lacks || usage_error("--%s is for programs in C, not for --target %s", lacks, o->target);
}

const Command *options_parse(Arena *a, Options *o, int argc, char **argv) {
    const Command *c = argc > 1 ? find_command(argv[1]) : NULL;
    bool general = !c, quit = false;
    if (c) {
        argc--;
        argv++;
    } else c = &commands[0];
    *o = (Options){ .embed_limit = 1 << 20, .string_bytes = 256, .seconds = 2, .rtol = -1, .atol = -1, .timeout = 300, .part_us = 6 };
    if (c->bit == TUNE) o->seconds = 60;
    if (argc < 2 && c->bit != OPS) {
        usage_error("no model; usage: %s (or `burncc --help`)", c->usage);
        return NULL;
    }
    if (!parse_options(a, o, c, general, argc, argv, &quit) || quit) return NULL;
    int operands = argc - optind;
    if (c->bit == OPS) {
        if (operands) usage_error("`burncc ops` takes no model");
    } else if (!operands) {
        usage_error("no model; usage: %s", c->usage);
    } else if (operands > 1) {
        bool word = general && !strpbrk(argv[optind], "./");    // `burncc verfy m.onnx`
        const char *near = word ? nearest_command(argv[optind]) : NULL;
        if (near) usage_error("unknown command '%s'; did you mean %s?", argv[optind], near);
        else if (word) usage_error("unknown command '%s'; see `burncc --help`", argv[optind]);
        else usage_error("one model at a time: '%s' is too many", argv[optind + 1]);
    } else {
        o->model = argv[optind];
    }
    return !diag_errors() && options_finish(a, o, c) ? c : NULL;
}
