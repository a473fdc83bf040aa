// SPDX-License-Identifier: MIT OR Apache-2.0
// The command line. In: argv. Out: CommandOptions and the command to run.
//
// Commands and options are rows of options_table.c, which parsing (getopt_long), help and the nearest-name hints read.
// A mistake is a diagnostic with status 2; --help and --version print to standard output and leave nothing to do.
#define _POSIX_C_SOURCE 200809L
#include "option.h"
#include "picture.h"
#include "schedule/cpu/tune.h"

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const Command *find_command(const char *name) {
    for (int i = 0; commands[i].name; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static void report_unknown(const Command *c, const char *given) {
    const char *word = given + strspn(given, "-");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (int i = 0; options[i].name; i++)
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
    for (int i = 0; options[i].name; i++)
        if (options[i].letter == value) return &options[i];
    return NULL;
}

// The options that a command takes, as getopt_long wants them.
typedef struct Getopt { struct option *longs; char *shorts; } Getopt;

static Getopt getopt_for(Arena *a, const Command *c) {
    int count = 0, n = 0;
    while (options[count].name) count++;
    Getopt g = { NEW_ARRAY(a, struct option, count + 1), NEW_ARRAY(a, char, 2 * count + 2) };
    char *letter = g.shorts;
    *letter++ = ':';
    for (int i = 0; i < count; i++) {
        if (!(options[i].commands & c->bit)) continue;
        int argument = options[i].argument ? required_argument : no_argument;
        g.longs[n++] = (struct option){ options[i].name, argument, NULL, FIRST_LONG + i };
        if (options[i].letter) *letter++ = options[i].letter;
        if (options[i].letter && options[i].argument) *letter++ = ':';
    }
    return g;
}

// Options that print and leave nothing to do. general: no command was named.
static bool prints(Arena *a, const Options *o, const Option *option, const Command *c, bool general) {
    bool targets = !strcmp(option->name, "target") && !strcmp(optarg, "list");
    if (!strcmp(option->name, "version")) {
        options_version();
        return true;
    }
    if (!targets && strcmp(option->name, "help")) return false;
    Text t;
    text_init(&t, a);
    if (targets) help_targets(&t);
    else if (general) help_general(&t, a, o);
    else help_command(&t, a, o, c);
    print_text(&t, EXIT_OK);
    return true;
}

// Sets every option; the operands stay in argv[optind..]. false: an error, or nothing left to do.
static bool parse_options(Arena *a, CommandOptions *o, const Command *c, bool general, int argc, char **argv) {
    const Getopt g = getopt_for(a, c);
    opterr = 0;
    for (int value; (value = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1;) {
        if (value == ':') {
            usage_error("%s wants a value", argv[optind - 1]);
        } else if (value == '?') {
            report_unknown(c, argv[optind - 1]);
        } else {
            const Option *option = option_of(value);
            if (prints(a, &o->compile, option, c, general)) return false;
            option_set(a, o, option, optarg);
            if (!o->of_code && !(option->commands & EXPORT)) o->of_code = option->name;
        }
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

// Is it the name of a file with this suffix?
static bool has_suffix(const char *path, const char *suffix) {
    const char *dot = strrchr(path, '.');
    return dot && !strcmp(dot, suffix) && dot != path && dot[-1] != '/';
}

static bool records_of(Arena *a, const Options *o) {
    if (o->records->machine) return true;
    const char *machine = tune_machine(a, &o->machine);
    for (int i = 0; i < o->records->at.n; i++)
        if (!strcmp(o->records->at.at[i].machine, machine)) return true;
    return false;
}

// Whether any of them holds, which is said.
static bool records_fit(Arena *a, const Options *o) {
    const bool gpu = o->machine.backend->descriptor == DESCRIPTOR_VULKAN;
    if (gpu && !records_choose_device(o->records, a, getenv("BURN_VK_DEVICE"))) return false;
    if (o->machine.n_parts)
        diag_note(NULL, "a file of several targets takes no records: its blocks are for all of them");
    else if (!records_of(a, o))
        diag_note(NULL, "none of the records is for %s; `burncc tune` makes some", tune_machine(a, &o->machine));
    return true;
}

// An option that is given and says how --train does.
static const char *learning_option(const Options *o) {
    return o->losses.n     ? "loss" :
        o->has_class_axis  ? "class-axis" :
        o->optimizer       ? "optimizer" :
        o->schedule        ? "schedule" :
        o->untie && !o->weights.n ? "untie without --weights" :
        o->input_gradients ? "input-gradients" :
        o->jvp             ? "jvp" :
        o->train_only      ? "train-only" :
        o->train_last      ? "train-last" :
        o->clip_value      ? "clip-value" :
        o->clip_norm       ? "clip-norm" :
        o->loss_scale      ? "loss-scale" :
        o->groups.n        ? "group" :
        o->frozen_params.n ? "freeze without =FILE" :
        o->frozen_norm     ? "frozen-norm" :
        o->no_dropout      ? "no-dropout" :
                             NULL;
}

// Would this file's header, found in its folder, be taken for one that generated code or a program includes?
static bool takes_header(const char *stem) {
    static const char *const known[] = { "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646",
        "limits", "locale", "math", "setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef",
        "stdint", "stdio", "stdlib", "stdnoreturn", "string", "strings", "tgmath", "threads", "time", "uchar", "wchar",
        "wctype", "fcntl", "unistd", "pthread", "dirent", "endian", "features", "arm_neon", "cblas", "immintrin",
        "burn" };
    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcasecmp(stem, known[i])) return true;
    return false;
}

// The prefix of the generated symbols. file: what -o gives to code, else NULL.
// package: its files have names of their own.
static bool name_symbols(Arena *a, Options *o, const Command *c, const char *file, bool package) {
    const bool code = c->bit == COMPILE && !o->written;
    if (o->name && !is_identifier(o->name)) return usage_error("--name wants a C identifier, not '%s'", o->name);
    const char *stem = file_stem(a, file ? file : o->model);
    if (code && !package && o->machine.backend->source && takes_header(stem))
        return usage_error("%s.h is a name of the C library's or the runtime's, which a model's header would hide; "
            "-o NAME.c gives another", stem);
    if (!o->name) o->name = name_c(a, stem);
    bool runtimes = !strcmp(o->name, "burn") || !strncmp(o->name, "burn_", 5);
    if (runtimes && code)
        return usage_error(
            "names that begin with burn_ are the runtime's; %s--name gives another than '%s'", package ? "" : "-o or ",
            o->name);
    if (runtimes) o->name = arena_printf(a, "model_%s", o->name);
    return true;
}

static bool quantize_fits(const CommandOptions *all) {
    const struct QuantizeOptions *q = &all->quantize;
    const char *to = all->compile.output;
    if (!to || !has_suffix(to, ".onnx")) return usage_error("quantize wants -o MODEL.onnx");
    if (!q->only && all->data.n != 1)
        return usage_error("quantize wants --data SOURCE, once; see `burncc quantize --help`");
    if (q->only && all->data.n) return usage_error("quantize: --weights-only takes no data");
    if (all->compile.ram && q->only) return usage_error("quantize: --ram is for integers, not for --weights-only");
    if (q->halves && q->unsigned_bytes) return usage_error("quantize: --activations int16 is not --unsigned");
    if (q->only && q->weights) return usage_error("quantize: --weight-type or --weights-only, not both");
    if (q->block && !q->only) return usage_error("quantize: --block goes with --weights-only");
    return !q->per_tensor || !q->per_channel || usage_error("quantize: --per-tensor or --per-channel, not both");
}

// A bound of the stack is what a compiler for a board says; quantized ends have no gradients.
static bool code_known(const Options *o) {
    if (o->precision && !strcmp(o->precision, "f16") && !o->machine.backend->halves && !o->machine.ram_first
        && !o->train)
        return usage_error("--precision f16 is for --train, --target vulkan or targets without an operating system, "
            "not for --target %s", o->target);
    if (o->io && o->train) return usage_error("--io is for inference; gradients want floats");
    return !o->stack || board_bare(&o->machine)
        || usage_error("--stack is for targets without an operating system, not for --target %s", o->target);
}

// Functions that the linker throws away lie in sections of their own, in the names of which no region is.
static bool share_fits(const Options *o) {
    bool placed = false;
    for (int i = 0; i < o->banks.n; i++) placed = placed || o->banks.at[i].holds & BANK_CODE;
    if (o->machine.backend->descriptor != DESCRIPTOR_MODEL)
        return usage_error("--share is for C, not for --target %s", o->target);
    if (o->machine.n_parts)
        return usage_error("--share is for one target: a file of several has its functions once for each");
    return !placed || usage_error("--share and a --region for code do not go together: shared functions have sections "
        "of their own, .text.%s..., for the linker's script", "burn_k_");
}

static bool golden_fits(const CommandOptions *all) {
    if (!all->golden) return true;
    if (!all->runner) return usage_error("--golden compares a --runner's bits with this machine's");
    return !all->compile.fast_math
        || usage_error("--golden: with --fast-math C compilers reorder sums, each in its way; leave one of them out");
}

// What a machine without an operating system has no use for, and who emulates it.
static bool system_fits(const CommandOptions *all) {
    const Options *o = &all->compile;
    const char *emulator = all->runner ? board_emulator(&o->machine, all->runner) : NULL;
    if (emulator)
        return usage_error("--runner %s is not for --target %s, which %s emulates", all->runner, o->target, emulator);
    const char *system = !o->machine.ram_first ? NULL : o->threads > 1 ? "threads" : o->blas ? "blas" : NULL;
    return !system || usage_error("--%s is for machines with an operating system, not for --target %s; --target "
        "portable has it", system, o->target);
}

// What follows from other options, and what does not go together.
static bool options_finish(Arena *a, CommandOptions *all, const Command *c) {
    Options *o = &all->compile;
    if (!(c->bit & MODELS)) return all->json && all->markdown ? usage_error("--json or --markdown, not both") : true;
    if (all->stage && stage_find(all->stage) < 0)
        return usage_error("--stage: there are import, passes and kernels, not '%s'", all->stage);
    if (c->bit == BENCH && o->output && !all->profile) return usage_error("bench: --output goes with --profile");
    if (c->bit == INSPECT && all->profile && o->train) return usage_error("inspect: --profile times inference alone");
    if (all->stage && !all->dot) return usage_error("--stage goes with --dot");
    if (c->bit == FIT) o->train = true;
    if (c->bit == FIT && all->data.n != 1) return usage_error("fit wants --data SOURCE, once; see `burncc fit --help`");
    if (c->bit == QUANTIZE && !quantize_fits(all)) return false;
    if (c->bit == VERIFY && o->train && !all->gradients) return usage_error("verify --train wants --gradients");
    if (all->elements && !all->gradients) return usage_error("--elements goes with --gradients");
    if (all->gradients && all->trace) return usage_error("--gradients or --trace, not both");
    o->train = o->train || all->gradients;
    if (!o->target && !set_target(a, all, all->package ? package_target(all->package) : "generic")) return false;
    if (o->dump && !strcmp(o->dump, "schedule")) o->dump = "plan";     // as it was called
    if (o->dump && !dump_known(o, o->dump))
        return usage_error("--dump: no stage or pass is called '%s'; there are %s", o->dump, dump_names(a, o));
    const Backend *b = o->machine.backend;
    if (all->package && (o->train || all->check || o->dump || o->depfile || b->descriptor != DESCRIPTOR_MODEL))
        return usage_error("--package is for inference in C, without --check, --dump and --depfile");
    const char *file = c->bit == COMPILE && !all->package ? o->output : NULL;
    if (file && has_suffix(file, ".onnx")) o->written = WRITTEN_ONNX;
    if (file && has_suffix(file, ".safetensors")) o->written = WRITTEN_SAFETENSORS;
    if (file && !o->written && !has_suffix(file, b->extension))
        return usage_error("-o wants the name of a file such as model%s, model.onnx or model.safetensors, not '%s'",
            b->extension, file);
    bool embeds = o->written == WRITTEN_ONNX || o->machine.ram_first || (all->package && package_embeds(all->package));
    if (o->embed_limit < 0) o->embed_limit = embeds ? INT32_MAX : 1 << 20;
    if (o->written && all->of_code)
        return usage_error("--%s says how code is made, but -o %s is no code", all->of_code, file);
    if ((o->opset || o->optimized) && o->written != WRITTEN_ONNX && c->bit != QUANTIZE)
        return usage_error("--opset and --optimized go with -o model.onnx");
    if (!code_known(o) || (o->share && !share_fits(o))) return false;
    if (o->depfile && o->dump && !file) return usage_error("--depfile is about a file; --dump without -o writes none");
    if (!name_symbols(a, o, c, file, all->package != NULL)) return false;
    const char *trains = o->train ? NULL : learning_option(o);
    if (trains) return usage_error("--%s goes with --train", trains);
    const char *runner = getenv("BURNCC_RUNNER");
    if (!all->runner && runner && *runner) all->runner = runner;
    if (!golden_fits(all)) return false;
    if (o->records && !records_fit(a, o)) return false;
    if (c->bit == INSPECT && all->profile && !all->html) return usage_error("inspect: --profile goes with --html");
    if (all->html && (all->dot || all->json)) return usage_error("--html, --dot or --json, not two of them");
    if (all->profile && (all->runner || b->descriptor == DESCRIPTOR_NONE))
        return usage_error("--profile times programs on this machine, without --runner and --target %s", o->target);
    if (c->bit & BUILDS && b->descriptor == DESCRIPTOR_NONE)
        return usage_error("what is written for --target %s does not run", o->target);
    const char *lacks = o->train && !b->training ? "train" :
        all->check && !b->source                 ? "check" :
        o->threads > 1 && !b->threads            ? "threads" :
        o->blas && !b->blas                      ? "blas" :
                                                   NULL;
    if (lacks) return usage_error("--%s is for programs in C, not for --target %s", lacks, o->target);
    return system_fits(all);
}

const Command *options_parse(Arena *a, CommandOptions *o, int argc, char **argv) {
    const Command *c = argc > 1 ? find_command(argv[1]) : NULL;
    bool general = !c;
    if (c) {
        argc--;
        argv++;
    } else c = &commands[0];
    *o = (CommandOptions){ .compile = { .embed_limit = -1, .string_bytes = 256, .part_us = 3 },
        .seconds = c->bit == TUNE ? 60 : 2,
        .rtol = -1,
        .atol = -1,
        .ulp = -1,
        .timeout = 300,
        .fit = { .split = 0.1, .lr = -1, .workers = 1, .temperature = 0.8 },
        .quantize = { .accuracy = -1 } };
    files_keep(a);                                      // options name files, too
    if (argc < 2 && c->bit & MODELS) {
        usage_error("no model; usage: %s (or `burncc --help`)", c->usage);
        return NULL;
    }
    if (!parse_options(a, o, c, general, argc, argv)) return NULL;
    if (o->compile.quiet) diag_quiet();
    if (o->force) out_force();
    progress_start(o->compile.quiet, o->verbose);
    int operands = argc - optind;
    if (c->bit == COMPLETIONS) {
        if (operands != 1) usage_error("usage: %s", c->usage);
        else o->shell = argv[optind];
    } else if (c->bit == PROJECT) {
        if (operands != 1) usage_error("usage: %s", c->usage);
        else o->dir = argv[optind];
    } else if (c->bit == HELP) {
        if (operands > 1) usage_error("usage: %s", c->usage);
        else if (operands) o->topic = argv[optind];
    } else if (c->bit == REPORT) {
        if (!operands) usage_error("no run; usage: %s", c->usage);
        for (int i = optind; i < argc; i++) VEC_PUSH(a, o->data, argv[i]);
    } else if (!(c->bit & MODELS)) {
        if (operands) usage_error("`burncc %s` takes no model", c->name);
    } else if (!operands) {
        usage_error("no model; usage: %s", c->usage);
    } else if (c->bit & APPLIES) {
        o->compile.model = argv[optind];
        if (operands == 1) usage_error("no data; usage: %s", c->usage);
        for (int i = optind + 1; i < argc; i++) VEC_PUSH(a, o->data, argv[i]);
    } else if (operands > 1) {
        bool word = general && !strpbrk(argv[optind], "./");    // `burncc verfy m.onnx`
        const char *near = word ? nearest_command(argv[optind]) : NULL;
        if (near) usage_error("unknown command '%s'; did you mean %s?", argv[optind], near);
        else if (word) usage_error("unknown command '%s'; see `burncc --help`", argv[optind]);
        else usage_error("one model at a time: '%s' is too many", argv[optind + 1]);
    } else {
        o->compile.model = argv[optind];
    }
    return !diag_errors() && options_finish(a, o, c) ? c : NULL;
}
