// SPDX-License-Identifier: MIT OR Apache-2.0
// The commands and the options, a row each; parsing, help, hints, the manual page and shells read them.
#include "option.h"

#include <ctype.h>
#include <string.h>

const Command commands[] = {
    { "compile", COMPILE, command_compile, "burncc MODEL [-o model.c] [options]",
        "Compiles an ONNX model, a model described in C, or the text of a graph (what --dump prints), into C: "
        "model.c, model.h, and\n"
        "model.bin when the weights are large. -o model.onnx writes the model as ONNX, -o model.safetensors its "
        "parameters.",
        "  burncc lenet.onnx -o lenet.c                     then: cc -O3 -march=native -c lenet.c\n"
        "  burncc bert.onnx -o bert.c --dim batch=4 --dim seq=128 --report\n"
        "  burncc bert.onnx -o bert.c --dim batch=1..8 --dim seq=1..512     one file for all these sizes\n"
        "  burncc lenet.onnx -o lenet.c --target portable   plain C99, for any compiler\n"
        "  burncc lenet.onnx -o lenet.c --train --optimizer adam --dim batch=32\n"
        "  burncc models/resnet.c --weights resnet18.pth -o resnet18.onnx\n" },
    { "verify", VERIFY, command_verify, "burncc verify MODEL [--data DIR]... [options]",
        "Builds the model with $CC, runs it on recorded inputs and compares: a line a data set, `pass max_abs=... "
        "max_rel=... ulp=...`\n"
        "or `FAIL ...` with the worst elements. Data sets are folders test_data_set_N (input_0.pb, output_0.pb, ...) "
        "beside the\n"
        "model or in --data. A file tolerance.txt (`rtol atol`) beside the data is obeyed. Exit status 0 only if all "
        "pass.\n"
        "--trace says from which node on a difference grows. --gradients checks training instead: a line a parameter, "
        "then\n"
        "`pass gradients=... worst=...`.",
        "  burncc verify lenet.onnx\n"
        "  burncc verify lenet.onnx --data recorded/ --rtol 1e-4 --atol 1e-6\n"
        "  burncc verify lenet.onnx --data recorded/test_data_set_0 --trace\n"
        "  burncc verify lenet.onnx --gradients --loss mse --dim batch=4\n" },
    { "run", RUN, command_run, "burncc run MODEL [--input NAME=FILE]... [--output DIR]",
        "Builds the model with $CC and runs it once. Inputs: .npy, ONNX .pb, images (.pgm, .ppm, .png, ...), or text "
        "(numbers). Outputs: a\n"
        "summary, or NAME.npy files in --output DIR.",
        "  burncc run digits.onnx --input image=seven.pgm\n"
        "  burncc run bert.onnx --input ids=ids.npy --input mask=mask.txt --output out/\n" },
    { "bench", BENCH, command_bench, "burncc bench MODEL [--seconds S] [options]",
        "Builds the model with $CC and times it on random inputs: `median_ms=... min_ms=... gflops=... "
        "workspace_bytes=...`.\n"
        "--train times a training step: `median_ms=... gradients_ms=... update_ms=...`.",
        "  burncc bench resnet.onnx --target native --seconds 5\n"
        "  burncc bench resnet.onnx --train --optimizer adam --threads 2 --dim batch=8\n"
        "  burncc bench resnet.onnx --json\n"
        "  burncc bench resnet.onnx --profile -o trace.json\n" },
    { "inspect", INSPECT, command_inspect, "burncc inspect MODEL [options]",
        "Prints inputs, outputs, symbolic dimensions, operators, parameters, multiply-adds, memory, and whether all "
        "is supported.\n"
        "--train: what learns, and the memory of each program of training.",
        "  burncc inspect bert.onnx --dim seq=128\n"
        "  burncc inspect lenet.onnx --html lenet.html --profile\n"
        "  burncc inspect lenet.onnx --dot --stage kernels | dot -Tsvg -o lenet.svg\n"
        "  burncc inspect lenet.onnx --train --optimizer adam --train-last 2\n" },
    { "tune", TUNE, command_tune, "burncc tune MODEL [--target T] [--seconds S] [-o FILE]",
        "Measures other algorithms and blocks for the model's kernels on this machine, for about S seconds, and "
        "writes what is fastest\n"
        "as records: a text file that compile, verify, run and bench take with --records. Kernels that the file has "
        "already are not\n"
        "measured again, so that more time goes on where the last ended. The same records give the same code, on "
        "any machine.\n"
        "Convolutions, attention and matrix products have choices, of floats and of bytes, with weights of few bits "
        "too. They are measured on one\n"
        "thread; --threads takes the same records. A file of several targets takes none.\n"
        "--target vulkan: blocks of products, on the GPU that BURN_VK_DEVICE chooses; its records go by its name.",
        "  burncc tune resnet.onnx --target native --seconds 120 -o resnet.records\n"
        "  burncc resnet.onnx --target native --records resnet.records\n" },
    { "fit", FIT, command_fit,
        "burncc fit MODEL --data SOURCE [--valid SOURCE] [--epochs N] [--artifacts DIR] [options]",
        "Learns: compiles the model's training code with $CC, goes through the data epoch after epoch, and keeps the "
        "best epoch as\n"
        "DIR/model.onnx, model.safetensors, model.c and model.h. The last line is for machines: `epochs=... "
        "valid_loss=...\n"
        "valid_accuracy=... seconds=...`. Without --valid a part of the data stands in for it. Loss and metrics follow "
        "from the\n"
        "data, the optimizer is adam; all options of training say otherwise.",
        "  burncc fit models/lenet.c --data mnist:mnist --epochs 3 --target native\n"
        "  burncc fit mobilenet.onnx --data photos --replace-head 3 --train-last 2 --epochs 5 --artifacts pets\n"
        "  burncc predict pets/model.onnx cat.jpg\n" },
    { "quantize", QUANTIZE, command_quantize, "burncc quantize MODEL --data SOURCE -o q.onnx [options]",
        "Makes integers of a trained model: runs it over the data, takes ranges from what it sees, and writes an ONNX "
        "file with\n"
        "QuantizeLinear and DequantizeLinear around what computes on integers, which ONNX Runtime runs, too. Weights "
        "have a scale\n"
        "for each channel. The last line is for machines: `layers=... sqnr_db=... float_accuracy=... accuracy=... "
        "items=...`;\n"
        "--report has a row for each layer. --weights-only stores weights in few bits and computes on floats.",
        "  burncc quantize lenet.onnx --data mnist:mnist -o lenet-int8.onnx --report\n"
        "  burncc quantize net.onnx --data photos -o q.onnx --method percentile --bias-correction --accuracy 0.01\n"
        "  burncc quantize gpt.onnx -o gpt-int4.onnx --weights-only int4\n" },
    { "predict", PREDICT, command_predict, "burncc predict MODEL FILE|FOLDER|SOURCE... [options]",
        "Says what a model that `burncc fit` made sees in files: a line each, with tabs between the file, the class "
        "and its\n"
        "probability, or the numbers; of a text, how it goes on.",
        "  burncc predict pets/model.onnx cat.jpg dog.jpg\n"
        "  burncc predict pets/model.onnx photos/ --json\n" },
    { "evaluate", EVALUATE, command_evaluate, "burncc evaluate MODEL SOURCE [options]",
        "Measures a model that `burncc fit` made on other data of the same kind: one line, `items=... loss=... "
        "accuracy=...`.",
        "  burncc evaluate pets/model.onnx more_photos --metrics accuracy,f_beta\n" },
    { "report", REPORT, command_report, "burncc report DIR... [-o PAGE]",
        "Puts the reports of several runs of `burncc fit` on one page, whose curves then have a colour for each run: "
        "report.html of\n"
        "folders of artifacts, or files.",
        "  burncc report lenet-run wider-run -o runs.html\n" },
    { "new", PROJECT, command_new, "burncc new DIR [--model MODEL] [--lang c|cpp]",
        "Makes a project that builds with CMake and predicts as it stands: a model (a copy of MODEL, or a small "
        "example described in C),\na program, numbers to try it with, and a README with the commands.",
        "  burncc new flowers\n  burncc new reader --model digits.onnx --lang cpp\n" },
    { "help", HELP, command_help, "burncc help [TOPIC]",
        "Tells what belongs to a matter, such as shapes, targets or training, of a command or of an option; without "
        "one which there are.",
        "  burncc help shapes\n  burncc help dim\n" },
    { "ops", OPS, command_ops, "burncc ops [--markdown | --json]",
        "Prints the support table: operators, versions, gradients, back ends.", "  burncc ops --markdown\n" },
    { "manual", MANUAL, command_manual, "burncc manual",
        "Prints the manual page: every command and option, as roff.", "  burncc manual | man -l -\n" },
    { "completions", COMPLETIONS, command_completions, "burncc completions bash|zsh|fish",
        "Prints what lets a shell complete commands, options and their values.",
        "  burncc completions bash >~/.local/share/bash-completion/completions/burncc\n"
        "  burncc completions fish >~/.config/fish/completions/burncc.fish\n" },
    { 0 },
};

const Fact environment[] = {
    { "CC", "the C compiler of verify, run, bench and tune (cc)" },
    { "BURNCC_CFLAGS", "more flags for it" },
    { "BURNCC_RUNNER", "the runner where --runner is not given" },
    { "TMPDIR", "where they build (/tmp)" },
    { "MPICC", "the C compiler of `mpirun -n N burncc fit` (mpicc)" },
    { "BURN_VK_DEVICE", "part of the GPU's name" },
    { 0 },
};

const Fact exit_statuses[] = {
    { "0", "fine" },
    { "1", "the model is invalid or uses what is not supported, or a comparison failed" },
    { "2", "usage" },
    { "3", "a limit was passed" },
    { "4", "input or output failed" },
    { "5", "out of memory" },
    { 0 },
};

#define LOSS(op, name, ...) " " #name
#define SEQUENCE_LOSS(name, options) " " #name
static const char losses[] =
#include "losses.def"
    ;
static const char loss_help[] =
    "what is trained for, [OUTPUT=]NAME(option=value, ...)*FACTOR, or output:NAME for one that the model computes; "
    "repeatable: they are summed. Options are reduction=mean|sum|batchmean, weight=[...]|FILE and ignore_index=N where "
    "targets are classes, and those of docs/training.md. The first is the default:"
#include "losses.def"
    ;
#undef SEQUENCE_LOSS
#undef LOSS
#define OPTIMIZER(op, name, ...) " " #name
static const char optimizers[] =
#include "optimizers.def"
    ;
static const char optimizer_help[] =
    "what updates the parameters, NAME(parameter=value, ...); L-BFGS is a function that calls what --train writes "
    "(lbfgs.h). The first is the default:"
#include "optimizers.def"
    ;
#undef OPTIMIZER
#define SCHEDULE(name, ...) " " #name
static const char schedules[] =
#include "schedules.def"
    ;
static const char schedule_help[] =
    "adds NAME_learning_rate(step, ...). NAME(parameter=value, ...), or of several product(S, S), mean(S, S), "
    "sum(S, S), sequential(S, S; STEP). NAME is one of"
#include "schedules.def"
    ;
#undef SCHEDULE
#define FIELD(kind, name) kind, offsetof(CommandOptions, name), NULL, NULL
#define SET(f) SPECIAL, 0, f, NULL
#define SET_ONE_OF(f, values) SPECIAL, 0, f, values

const Option options[] = {
    { "output", 'o', "PATH", COMPILE | EXPORT | QUANTIZE | RUN | BENCH | INSPECT | TUNE | REPORT, "Output",
        "the C file to write (default: MODEL.c here), or MODEL.onnx, MODEL.safetensors; "
        "run, inspect of weights: a folder for NAME.npy files; inspect --dot: its file; bench "
        "--profile: the trace; "
        "tune: MODEL.records",
        FIELD(TEXT, compile.output) },
    { "model", 0, "MODEL", PROJECT, "Output", "the model that the project is for", FIELD(TEXT, new_model) },
    { "lang", 0, "LANGUAGE", PROJECT, "Output", "what its program is written in: c (default), cpp",
        TEXT, offsetof(CommandOptions, language), NULL, "c cpp" },
    { "package", 0, "KIND", COMPILE, "Output",
        "write a folder (-o DIR; default NAME-KIND) that other tools build: npm (WebAssembly and typed JavaScript, for "
        "node and browsers), cargo (a Rust crate), cmake (a package with a static library); for firmware arduino, "
        "platformio, zephyr, esp-idf; all but the first two as an archive, too, -o NAME.zip",
        SET_ONE_OF(set_package, "npm cargo cmake arduino platformio zephyr esp-idf") },
    { "opset", 0, "N", COMPILE | EXPORT | QUANTIZE, "Output",
        "-o MODEL.onnx: the version of ONNX's operators, 13 to 28 (default 21)", SET(set_opset) },
    { "optimized", 0, NULL, COMPILE | EXPORT, "Output",
        "-o MODEL.onnx: folded, simplified, and with the composites that are recognised; else as imported",
        FIELD(FLAG, compile.optimized) },
    { "depfile", 0, "FILE", COMPILE | EXPORT, "Output",
        "write what was read (model, its data and headers, weights, settings) as a rule for make, ninja and CMake",
        FIELD(TEXT, compile.depfile) },
    { "name", 0, "NAME", COMPILE | EXPORT, "Output",
        "prefix of the generated symbols (default: from the output's file name)",
        FIELD(TEXT, compile.name) },
    { "force", 'f', NULL, COMPILE | EXPORT | QUANTIZE, "Output", "replace files that burncc did not write",
        FIELD(FLAG, force) },
    { "embed-limit", 0, "BYTES", COMPILE | BUILDS | EXPORT, "Output",
        "weights up to this size become C arrays, larger ones a .bin file, .safetensors of --train (default 1M), "
        ".onnx.data (2G); 2G for microcontrollers' targets",
        SET(set_embed_limit) },
    { "string-bytes", 0, "N", COMPILE | BUILDS, "Output",
        "room for each string that the program makes; they share it (default 256)", SET(set_string_bytes) },
    { "check", 0, NULL, COMPILE, "Output", "parse the result with libclang, all warnings on, and report what it finds",
        FIELD(FLAG, check) },
    { "report", 0, NULL, COMPILE | INSPECT | TUNE | QUANTIZE, "Output",
        "print kernels, operations, traffic and memory over time; tune: every choice and its time; quantize: every "
        "layer and its error",
        FIELD(FLAG, report) },
    { "dump", 0, "STAGE", COMPILE | INSPECT, "Output",
        "print each program's graph or plan after a stage (their names are below); without -o stop there",
        FIELD(TEXT, compile.dump) },
    { "target", 0, "TARGET", COMPILES, "Code",
        "what to compile for (default generic), several with commas; `--target list` shows them", SET(set_target) },
    { "dim", 0, "NAME=V|LO..HI", MODELS, "Code",
        "the size of a symbolic dimension, or its bounds (the run is told the size); 1 without it", SET(set_dim) },
    { "shape", 0, "INPUT=SIZE,...", MODELS, "Code",
        "other sizes for an input of an ONNX model than the file gives it: numbers, or names, which --dim then knows "
        "(the file's size without it)",
        SET(set_shape) },
    { "sequence", 0, "NAME=N|LO..HI", MODELS, "Code",
        "the length of a sequence input, or its elements' shapes: [2,3],[4,3]; 1 without it", SET(set_sequence) },
    { "absent", 0, "NAME", MODELS, "Code", "compile for an optional input that holds nothing", SET(set_absent) },
    { "freeze", 0, "NAME=FILE | WHAT", MODELS, "Code",
        "make an input a constant of the value in FILE; with --train, and without a file, parameters that do not learn "
        "(as --train-only names them)",
        SET(set_freeze) },
    { "set", 0, "NAME=VALUE", MODELS, "Code", "a setting of a model described in C", SET(set_setting) },
    { "config", 0, "FILE", MODELS, "Code", "settings of a model described in C as JSON; --set wins over it. "
        "-o model.c writes model.config.json, which has all of them",
        FIELD(TEXT, compile.config) },
    { "function", 0, "NAME", COMPILES, "Code",
        "one of the functions of a model described in C, as a model of its own (compile: all of them without it)",
        FIELD(TEXT, compile.function) },
    { "weights", 0, "FILE", MODELS, "Weights",
        "parameters take the tensors of their names from this .safetensors, .pt, .pth or .npz; repeatable, the last "
        "wins",
        SET(set_weights) },
    { "weights-key", 0, "KEY", MODELS, "Weights", "where a file of several dictionaries has the weights",
        FIELD(TEXT, compile.weights_key) },
    { "map", 0, "RE=TO", MODELS, "Weights", "rename the file's tensors: an extended regular expression, \\1 in TO",
        SET(set_map) },
    { "strict", 0, NULL, MODELS, "Weights",
        "every parameter has a tensor and every tensor a parameter, or it is an error", FIELD(FLAG, compile.strict) },
    { "seed", 0, "N", MODELS, "Weights",
        "of parameters that begin as random numbers, and of dropout in training (default 0)", SET(set_seed) },
    { "replace-head", 0, "N", MODELS, "Weights",
        "a new last layer of N classes in the place of the model's: numbers from --weights, else random by --seed, "
        "as PyTorch begins a layer",
        FIELD(COUNTED, compile.replace_head) },
    { "lora", 0, "R[:ALPHA]", MODELS, "Weights",
        "matrices of rank R beside linear layers, times ALPHA / R (default 1): with --train they and a new head learn, "
        "else they are merged into the weights",
        SET(set_lora) },
    { "lora-on", 0, "RE", MODELS, "Weights", "which layers, by names of their nodes or weights; all without it",
        FIELD(TEXT, compile.lora_on) },
    { "threads", 0, "N[:US]", COMPILE | BUILDS | FIT, "Code",
        "runs can go in N parts, on threads that they are given; parts take at least US microseconds",
        SET(set_threads) },
    { "records", 0, "FILE", COMPILE | BUILDS | INSPECT | FIT | APPLIES, "Code",
        "algorithms and blocks that `burncc tune` found; repeatable", SET(set_records) },
    { "optimize", 0, "speed|size", COMPILES, "Code",
        "size: the least code, weights no larger than the model's; speed: as without it, and weights of 4 bits are "
        "bytes where that takes fewer instructions",
        SET_ONE_OF(set_optimize, "speed size") },
    { "share", 0, NULL, COMPILE | BUILDS, "Code",
        "kernels that are the same code in several files of an image are there once, by the linker: weak functions, "
        "named by what they compute; most are with --optimize size",
        FIELD(FLAG, compile.share) },
    { "io", 0, "TYPE", COMPILE | BUILDS | INSPECT, "Code",
        "int8, uint8 or int16: inputs and outputs that the model quantizes to it are these integers, with their scale "
        "and zero point in the header; bytes are signed or not as is said here",
        SET_ONE_OF(set_io, "int8 uint8 int16") },
    { "ram", 0, "BYTES", COMPILES, "Code",
        "the workspace that a run may take; 64K. Kernels go row by row where that helps; if it takes more nothing is "
        "written. quantize: the most sensitive layers stay float as far as it goes",
        SET(set_ram) },
    { "region", 0, "NAME:SIZE", COMPILE | BUILDS | INSPECT, "Code",
        "a memory of a microcontroller, the fastest first; repeatable. The workspace is shared out to them, what is "
        "used most in the first. NAME:SIZE=code, =weights, =work (without it), or several joined by +, says what else "
        "lies there. If they are too small nothing is written",
        SET(set_region) },
    { "io-in-workspace", 0, NULL, COMPILE | BUILDS | INSPECT, "Code",
        "inputs and outputs lie in the workspace, whose macros in the header say where; their room is used again",
        FIELD(FLAG, compile.io_inside) },
    { "flash", 0, "BYTES", COMPILES, "Code",
        "what code and constants may take; 256K. If they take more nothing is written. Microcontrollers' code is "
        "compiled to know, elsewhere constants alone count",
        SET(set_flash) },
    { "stack", 0, "BYTES", COMPILE | BUILDS, "Code",
        "what a run's calls may take on a microcontroller; 1K. If they take more nothing is written or run",
        SET(set_stack) },
    { "fast-math", 0, NULL, COMPILES, "Code", "let floating point be reordered; the default is strict IEEE",
        FIELD(FLAG, compile.fast_math) },
    { "precision", 0, "TYPE", COMPILES, "Code",
        "bf16: matrix products of bfloat16 (each number rounded by 2^-8 at most), sums in f32: half the memory, "
        "faster; f32 (default). --target vulkan: weights and values between kernels of bf16 or f16. Targets without an "
        "operating system: f16, weights of convolutions and products: half the flash. --train: what the forward pass "
        "keeps is of bf16 or f16",
        SET_ONE_OF(set_precision, "f32 f16 bf16") },
    { "blas", 0, "LIBRARY", COMPILE | BUILDS | INSPECT | FIT | APPLIES, "Code",
        "openblas: large matrix products call cblas_sgemm and the like; link with -lopenblas",
        SET_ONE_OF(set_blas, "openblas") },
    { "no-fuse", 0, NULL, COMPILES, "Code", "one kernel per operation, to find where a difference comes from",
        FIELD(FLAG, compile.no_fuse) },
    { "no-matrix-units", 0, NULL, COMPILES, "Code",
        "--target vulkan: no kernels for a GPU's matrix units, to find where a difference comes from, and for smaller "
        "programs",
        FIELD(FLAG, compile.no_units) },
    { "train", 0, NULL, PROGRAMS, "Training",
        "loss and gradients, an optimizer's step, parameters as a struct, save and load", FIELD(FLAG, compile.train) },
    { "loss", 0, "LOSS", TRAINS, "Training", loss_help, SET_ONE_OF(set_loss, losses) },
    { "class-axis", 0, "N", TRAINS, "Training",
        "the axis of the classes in an output of several: the last without it, 1 as PyTorch has images",
        SET(set_class_axis) },
    { "optimizer", 0, "NAME", TRAINS, "Training", optimizer_help, TEXT,
        offsetof(CommandOptions, compile.optimizer), NULL, optimizers },
    { "schedule", 0, "SCHEDULE", TRAINS, "Training", schedule_help, TEXT,
        offsetof(CommandOptions, compile.schedule), NULL, schedules },
    { "frozen-norm", 0, NULL, TRAINS, "Training",
        "batch normalization by its recorded statistics, which stay, and not by those of the batch",
        FIELD(FLAG, compile.frozen_norm) },
    { "no-dropout", 0, NULL, TRAINS, "Training", "dropout passes its input on", FIELD(FLAG, compile.no_dropout) },
    { "train-only", 0, "WHAT", TRAINS, "Training",
        "what learns, with commas: biases, norms, regular expressions on names of parameters or nodes; the rest are "
        "constants, statistics of batch normalization too",
        FIELD(TEXT, compile.train_only) },
    { "train-last", 0, "K", TRAINS, "Training", "the last K layers with weights learn, and what is behind them",
        FIELD(COUNTED, compile.train_last) },
    { "input-gradients", 0, "NAMES", PROGRAMS, "Training",
        "NAME_gradients also gives the gradients by these inputs, with commas, or by all",
        FIELD(TEXT, compile.input_gradients) },
    { "jvp", 0, NULL, PROGRAMS, "Training",
        "adds NAME_jvp: how the outputs move when inputs and parameters move in given directions",
        FIELD(FLAG, compile.jvp) },
    { "clip-value", 0, NULL, TRAINS, "Training",
        "updates take clip_value, and each gradient is cut to what is between -clip_value and clip_value",
        FIELD(FLAG, compile.clip_value) },
    { "clip-norm", 0, NULL, TRAINS, "Training",
        "updates take clip_norm, and gradients are scaled down to that norm, of all as one vector",
        FIELD(FLAG, compile.clip_norm) },
    { "loss-scale", 0, "SCALE", TRAINS, "Training",
        "the loss times this number is differentiated, and gradients are divided by it; steps with gradients that are "
        "not finite are skipped. dynamic(initial=65536, growth=2, backoff=0.5, interval=2000): found as it goes (the "
        "default with --precision f16); none",
        FIELD(TEXT, compile.loss_scale) },
    { "group", 0, "WHAT:NAME=V", TRAINS, "Training",
        "parameters (as --train-only names them) whose hyper-parameters are V, or NAME*V: the caller's times V; "
        "with commas, repeatable",
        SET(set_group) },
    { "untie", 0, "WHICH", TRAINS | EXPORT, "Training",
        "each module gets its own of a parameter that several share: merged (those of one number throughout, which "
        "exporters merge), all, or a regular expression on names of parameters or nodes; with --weights, of what was "
        "trained so",
        FIELD(TEXT, compile.untie) },
    { "train-memory", 0, "BYTES", TRAINS, "Training",
        "the workspace of gradients and of train_step: values are computed again rather than kept until they fit; 256K",
        SET(set_train_memory) },
    { "data", 0, "DIR|SOURCE", VERIFY | FIT | QUANTIZE, "Data",
        "verify: a data set, or a folder of test_data_set_N folders, repeatable; fit: what is learnt from; quantize: "
        "what ranges are taken from (see below)",
        SET(set_data) },
    { "valid", 0, "SOURCE", FIT | QUANTIZE, "Data",
        "what it is measured on; without it what the data keeps for that, or a part of it",
        FIELD(TEXT, fit.valid) },
    { "split", 0, "SHARE", FIT, "Data", "how large a part (default 0.1), drawn by --seed; the end of a text",
        FIELD(REAL, fit.split) },
    { "workers", 0, "N", FIT, "Data", "threads that get items ahead (default 1); 0: none",
        FIELD(WHOLE, fit.workers) },
    { "skip-bad", 0, NULL, FIT, "Data", "items that cannot be read are left out and counted, not the end",
        FIELD(FLAG, fit.skip_bad) },
    { "epochs", 0, "N", FIT, "Learning", "passes over the data (default 10)", FIELD(COUNTED, fit.epochs) },
    { "batch", 0, "B", FIT, "Learning", "items of a step (default 32)", FIELD(COUNTED, fit.batch) },
    { "lr", 0, "X", FIT, "Learning", "the learning rate, of the schedule too (default: the optimizer's usual one)",
        FIELD(REAL, fit.lr) },
    { "hyper", 0, "NAME=X", FIT, "Learning",
        "another number that updates or the schedule are given, such as weight_decay or steps (default: all); "
        "repeatable",
        SET(set_hyper) },
    { "metrics", 0, "NAMES", FIT | EVALUATE | QUANTIZE, "Learning",
        "what is measured besides the loss, with commas (default accuracy, of numbers mae)", FIELD(TEXT, fit.metrics) },
    { "train-metrics", 0, NULL, FIT, "Learning",
        "they are measured of training, too, which computes each batch once more without learning from it",
        FIELD(FLAG, fit.train_metrics) },
    { "artifacts", 0, "DIR", FIT, "Learning", "where all that comes of it is kept (default NAME-run)",
        FIELD(TEXT, fit.artifacts) },
    { "resume", 0, NULL, FIT, "Learning", "go on from the newest checkpoint there, with the same bits",
        FIELD(FLAG, fit.resume) },
    { "best-by", 0, "FIGURE", FIT, "Learning",
        "what the best epoch is best by, such as 'valid accuracy' (default: the loss)",
        FIELD(TEXT, fit.best_by) },
    { "patience", 0, "N", FIT, "Learning", "end after N epochs without a better one", FIELD(COUNTED, fit.patience) },
    { "keep", 0, "N", FIT, "Learning", "checkpoints that are kept besides the best (default 2)",
        FIELD(COUNTED, fit.keep) },
    { "checkpoint-steps", 0, "N", FIT, "Learning", "one every N steps, not at ends of epochs alone",
        FIELD(COUNTED, fit.checkpoint_steps) },
    { "plain", 0, NULL, FIT, "Reporting", "lines on a terminal, too, where there is a dashboard without",
        FIELD(FLAG, fit.plain) },
    { "length", 0, "N", PREDICT, "Data", "of a text: so many tokens more (default 200)", FIELD(COUNTED, fit.length) },
    { "temperature", 0, "X", PREDICT, "Data", "how freely they are drawn, by --seed (default 0.8); 0: the likeliest",
        FIELD(REAL, fit.temperature) },
    { "input", 0, "NAME=FILE", BUILDS, "Data",
        "the value of an input; repeatable (bench, verify --gradients: random without it)", SET(set_input) },
    { "normalize", 0, "HOW", BUILDS, "Data",
        "what images given to --input become: numbers of 0 to 1 without it; none: 0 to 255; MEAN/SCALE: of 0 to 1 the "
        "mean subtracted, then divided, a number or one for each channel; imagenet: those of torchvision's classifiers",
        SET_ONE_OF(set_normalize, "imagenet none") },
    { "rtol", 0, "X", VERIFY, "Data", "allowed relative difference (default 1e-3)", FIELD(REAL, rtol) },
    { "atol", 0, "X", VERIFY, "Data", "allowed absolute difference (default 1e-7, or --ulp if that is more)",
        FIELD(REAL, atol) },
    { "ulp", 0, "N", VERIFY, "Data",
        "the same in units in the last place of the tensor's largest element (default: f32 and f64 128, f16 and "
        "bf16 4; 0 if --rtol, --atol or tolerance.txt says what to allow)",
        FIELD(REAL, ulp) },
    { "trace", 0, NULL, VERIFY, "Data",
        "a table before each line: every node's value against the evaluator's, and the first bad node",
        FIELD(FLAG, trace) },
    { "golden", 0, NULL, VERIFY, "Data",
        "with --runner: the same code runs here as well, compiled by cc, and gives the same bits",
        FIELD(FLAG, golden) },
    { "gradients", 0, NULL, VERIFY, "Data",
        "no data sets: the gradients of --train against differences of the loss, which is computed in double precision",
        FIELD(FLAG, gradients) },
    { "elements", 0, "N", VERIFY, "Data",
        "--gradients: so many elements of each parameter (default: up to 32, as many as 20 s allow)",
        FIELD(COUNTED, elements) },
    { "profile", 0, NULL, BENCH | INSPECT, "Running",
        "the time of each kernel beside what the machine can do, as a table; -o trace.json: the fastest run for "
        "chrome://tracing and Perfetto", FIELD(FLAG, profile) },
    { "seconds", 0, "S", BENCH | INSPECT | TUNE, "Running",
        "time to measure for (default 2; tune: 60)", FIELD(REAL, seconds) },
    { "timeout", 0, "S", BUILDS, "Running", "give up on a run of generated code after this long (default 300)",
        FIELD(COUNTED, timeout) },
    { "runner", 0, "COMMAND", BUILDS, "Running",
        "runs the program that $CC makes, for processors that are not this one", FIELD(TEXT, runner) },
    { "method", 0, "METHOD", QUANTIZE, "Quantizing",
        "how a value's range follows from what is seen: mse (the least square error; default), minmax, percentile "
        "(99.99), entropy",
        SET_ONE_OF(set_method, "mse minmax percentile entropy") },
    { "calibrate", 0, "N", QUANTIZE, "Quantizing", "items of the data that ranges are taken from (default 256)",
        FIELD(COUNTED, quantize.calibrate) },
    { "unsigned", 0, NULL, QUANTIZE, "Quantizing",
        "values between layers are bytes from 0 to 255, not from -128 to 127",
        FIELD(FLAG, quantize.unsigned_bytes) },
    { "per-channel", 0, NULL, QUANTIZE, "Quantizing", "weights have a scale for each output channel, as without it",
        FIELD(FLAG, quantize.per_channel) },
    { "per-tensor", 0, NULL, QUANTIZE, "Quantizing", "weights have one scale", FIELD(FLAG, quantize.per_tensor) },
    { "bias-correction", 0, NULL, QUANTIZE, "Quantizing", "biases take back what rounding the weights adds on average",
        FIELD(FLAG, quantize.bias_correction) },
    { "equalize", 0, NULL, QUANTIZE, "Quantizing",
        "first bring channels of neighbouring layers to like ranges; helps --per-tensor",
        FIELD(FLAG, quantize.equalize) },
    { "keep", 0, "RE", QUANTIZE, "Quantizing",
        "layers that stay float: a regular expression of their nodes' names; repeatable", SET(set_keep) },
    { "accuracy", 0, "X", QUANTIZE, "Quantizing",
        "the most that the first metric may lose, such as 0.01: the most sensitive layers stay float for it",
        FIELD(REAL, quantize.accuracy) },
    { "budget", 0, "BYTES", QUANTIZE, "Quantizing",
        "what weights may take: the most sensitive layers stay float as far as it goes", SET(set_budget) },
    { "activations", 0, "TYPE", QUANTIZE, "Quantizing",
        "int8 (default), uint8 (as --unsigned) or int16, around 0: what values between layers are",
        SET_ONE_OF(set_activations, "int8 uint8 int16") },
    { "weight-type", 0, "TYPE", QUANTIZE, "Quantizing",
        "int8 (default) or int4: what weights are between values of bytes; depthwise ones are int8",
        SET_ONE_OF(set_weight_type, "int8 int4") },
    { "weights-only", 0, "TYPE", QUANTIZE, "Quantizing",
        "int8, int4 or f16: weights are stored so, and what computes stays float; needs no data",
        SET_ONE_OF(set_weights_only, "int8 int4 f16") },
    { "block", 0, "N", QUANTIZE, "Quantizing", "--weights-only: weights of a matrix that share a scale (default 32)",
        FIELD(COUNTED, quantize.block) },
    { "dot", 0, NULL, INSPECT, "Reporting",
        "the graph for Graphviz, on standard output or in -o FILE: operators, names, shapes", FIELD(FLAG, dot) },
    { "html", 0, "FILE", INSPECT, "Reporting",
        "a page to look at: graph, memory, kernels and their C, weights; with --profile their times",
        FIELD(TEXT, html) },
    { "stage", 0, "STAGE", INSPECT, "Reporting",
        "--dot: the graph as of import (default), behind the passes, or as kernels", FIELD(TEXT, stage) },
    { "json", 0, NULL, BUILDS | INSPECT | OPS | APPLIES | QUANTIZE, "Reporting", "results as JSON on standard output",
        FIELD(FLAG, json) },
    { "markdown", 0, NULL, OPS, "Reporting", "the table as Markdown", FIELD(FLAG, markdown) },
    { "quiet", 'q', NULL, EVERY, "Reporting", "no progress and no notes", FIELD(FLAG, compile.quiet) },
    { "verbose", 'v', NULL, EVERY, "Reporting",
        "what is done, a line a stage with its time; what compiling has written, as on a terminal",
        FIELD(FLAG, verbose) },
    { "silence", 0, "WARNING", EVERY, "Reporting",
        "no warnings of this name, which stands behind each; all: none at all; repeatable", SET(set_silence) },
    { "help", 'h', NULL, EVERY, "Reporting", "this text", SET(NULL) },
    { "version", 'V', NULL, EVERY, "Reporting", "version, licence and what is built in", SET(NULL) },
    { 0 },
};

const char *option_values(Arena *a, const Options *o, const Option *option) {
    if (!strcmp(option->name, "dump")) return dump_names(a, o);
    if (option->set != set_target) return option->values;
    Text t;
    text_init(&t, a);
    for (int i = 0; target_at(i); i++) text_printf(&t, "%s ", target_at(i)->name);
    text_printf(&t, "list");
    return t.at;
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

const char *nearest_option(const char *word) {
    const char *best = NULL;
    int distance = 1000;
    for (int i = 0; options[i].name; i++) consider(word, options[i].name, &best, &distance);
    return best;
}

const char *nearest_command(const char *word) {
    const char *best = NULL;
    int distance = 1000;
    for (int i = 0; commands[i].name; i++) consider(word, commands[i].name, &best, &distance);
    return best;
}
