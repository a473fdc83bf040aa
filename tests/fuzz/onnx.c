// SPDX-License-Identifier: MIT OR Apache-2.0
// The fuzz target: bytes as an ONNX file, through the importer and as far as BURN_FUZZ says.
//
// In: bytes, and BURN_FUZZ=import, passes (the default), code or tensor (the bytes are a recorded .pb tensor). Out:
// nothing, or the end of the process: a sanitizer's report, bug(), or more memory than MEMORY_BYTES + 2 times the
// file. The idea: what a user's file meets, from the path on. The bytes lie in a folder of their own beside data.bin,
// which external data may name, sub/data.bin and `link`, a symbolic link. replay.c drives the same function over the
// files in crashers/.
#define _GNU_SOURCE
#include "fuzz.h"
#include "passes/passes.h"
#include "import/import.h"

#include "../../codegen/codegen.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COUNTS_MEMORY 1
#include <sanitizer/allocator_interface.h>
#endif
#endif

#define MEMORY_BYTES ((size_t)64 << 20)
#define CONSTANT_BYTES ((int64_t)4 << 20)       // of constants in a text, which passes may copy
#define DATA_BYTES 4096

typedef enum Stage { STAGE_IMPORT, STAGE_PASSES, STAGE_CODE, STAGE_TENSOR } Stage;

static char folder[64];
static int model_file = -1;
static pid_t owner;                                     // of the folder: children leave it alone
static Stage stage = STAGE_PASSES;

// ---------------------------------------------------------------- memory
#if COUNTS_MEMORY
// A compilation frees all it has at its end: what is freed need not lie in quarantine for the 256 MB that are usual,
// pages that are fetched anew by each of thousands of short runs. Nor need each allocation remember much of its stack.
// Before strstr it would measure the whole text, however near the word is.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "quarantine_size_mb=2:malloc_context_size=2:intercept_strstr=0";
}

// libFuzzer keeps what strings were compared with, for mutations of bytes: an eighth of the time, and mutate.c has
// names of its own. The linker puts this in the place of its functions; strings are checked as before.
void fuzz_compared(void);
void fuzz_compared(void) {}

// bytes allocated and not freed since the input began; 0: not counting
static size_t live, allowed;

static void count_malloc(const volatile void *p, size_t n) {
    if (!allowed || !p) return;
    live += n;
    if (live > allowed) {
        size_t limit = allowed;
        allowed = 0;
        fprintf(stderr, "burncc fuzz: more than %zu bytes of memory for one input\n", limit);
        abort();
    }
}

static void count_free(const volatile void *p) {
    if (!allowed || !p) return;
    size_t n = __sanitizer_get_allocated_size(p);
    live -= n < live ? n : live;
}

static void memory_open(size_t file) {
    live = 0;
    allowed = MEMORY_BYTES + 2 * (file + DATA_BYTES);
}
static void memory_close(void) { allowed = 0; }
#else
static void memory_open(size_t file) { (void)file; }
static void memory_close(void) {}
#endif

// ---------------------------------------------------------------- files

static const char *path_of(char path[128], const char *name) {
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static void remove_files(void) {
    static const char *const names[] = { "model.onnx", "data.bin", "sub/data.bin", "link", "out.c", "out.h",
        "out.bin" };
    char path[128];
    if (getpid() != owner) return;
    for (size_t i = 0; i < COUNT(names); i++) unlink(path_of(path, names[i]));
    rmdir(path_of(path, "sub"));
    rmdir(folder);
}

static void write_data(const char *name) {
    char path[128];
    uint8_t bytes[DATA_BYTES];
    // small numbers as f32 and as integers
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 % 251 * (i % 4 != 3));
    int fd = open(path_of(path, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes || close(fd))
        fatal(EXIT_IO, "cannot write %s", path);
}

static void make_folder(void) {
    char path[128];
    snprintf(folder, sizeof folder, "%s/burncc-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(folder) || mkdir(path_of(path, "sub"), 0700)) fatal(EXIT_IO, "cannot make a folder in %s", folder);
    owner = getpid();
    atexit(remove_files);
    write_data("data.bin");
    write_data("sub/data.bin");
    if (symlink("data.bin", path_of(path, "link"))) fatal(EXIT_IO, "cannot make a link in %s", folder);
    model_file = open(path_of(path, "model.onnx"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (model_file < 0) fatal(EXIT_IO, "cannot write %s", path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    static const char *const names[] = { "import", "passes", "code", "tensor" };
    const char *want = getenv("BURN_FUZZ");
    for (size_t i = 0; want && i < COUNT(names); i++)
        if (!strcmp(want, names[i])) stage = (Stage)i;
    make_folder();
#if COUNTS_MEMORY
    __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
#endif
    return 0;
}

// ---------------------------------------------------------------- one input

static void compile_code(Arena *a, Options *o, Graph *g) {
    char path[128];
    o->output = path_of(path, "out.c");
    o->embed_limit = 1 << 16;
    Plan *plan = plan_make(g, o);
    if (!plan) return;
    Program program = { .name = "out_run", .name_of_workspace = "out", .prefix = "out", .plan = plan,
        .descriptor = true };
    o->machine.backend->write(a, o, "out", 1, &program, NULL);
}

static void compile_bytes(Arena *a, size_t size) {
    char path[128];
    path_of(path, "model.onnx");
    if (stage == STAGE_TENSOR) {
        EndData data;
        end_data_read(a, path, NULL, &data);
        return;
    }
    Options o = { .model = path,
        .name = "out",
        .target = size % 2 ? "portable" : "generic",
        .quiet = true,
        .constant_bytes = CONSTANT_BYTES,
        .string_bytes = 256 };
    backend_target(o.target, &o.machine);
    Graph *g = import_graph(a, &o);
    if (!g || stage == STAGE_IMPORT) return;
    if (passes_run(g, &o) && stage == STAGE_CODE) compile_code(a, &o, g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (pwrite(model_file, data, size, 0) != (ssize_t)size || ftruncate(model_file, (off_t)size))
        fatal(EXIT_IO, "cannot write the input");
    memory_open(size);
    Arena *a = arena_new();
    Text said;
    text_init(&said, a);
    diag_reset();
    diag_capture(&said);
    compile_bytes(a, size);
    diag_capture(NULL);
    arena_free(a);
    memory_close();
    return 0;
}
