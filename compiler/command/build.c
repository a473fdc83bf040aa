// SPDX-License-Identifier: MIT OR Apache-2.0
// From a model to code loaded in this process: the stages, then $CC into a shared object, then dlopen; with --runner,
// into a program.
//
// In: Options. Out: the plan, and the generated file's descriptor, or the program's path. Everything lies in a
// temporary folder (base/process.c). $CC and BURNCC_CFLAGS are split at spaces and run without a shell.
#define _DEFAULT_SOURCE
#include "command.h"
#include "codegen/codegen.h"
#include "config.h"

#include "runtime/image.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

// ---------------------------------------------------------------- the C compiler

// One machine's flags mean nothing on another: not this one's in a program for that, and not that one's here.
// WebAssembly's stack is 64 KiB unless one asks for more.
static const char *target_flags(Arena *a, const Options *o, const char *runner) {
    bool foreign = runner ? strstr(o->machine.flags, "-march=native") != NULL : o->machine.cc != NULL,
         wasm = o->machine.arch && !strcmp(o->machine.arch, "wasm32");
    const char *kind = !runner           ? "-fPIC -shared" :
        wasm                             ? "-Wl,-z,stack-size=1048576" :
        board_bare(&o->machine)          ? "-nostartfiles -ffunction-sections -fdata-sections" :
                                           "";
    const char *relaxed = o->fast_math ?
        "-fno-math-errno -fno-trapping-math -fno-signed-zeros -fassociative-math -freciprocal-math -ffp-contract=fast" :
        "-ffp-contract=off";
    const char *size = o->small && o->machine.ram_first ? "-Os" : "";
    return arena_printf(a, "-std=c99 %s %s %s -w %s", foreign ? "-O3" : o->machine.flags, size, relaxed, kind);
}

static bool write_text(Arena *a, const char *path, const char *text) {
    return out_whole(a, path, text, strlen(text));
}

// Of a program without an operating system.
static const char *link_script(Arena *a, const char *program) { return arena_printf(a, "%s.ld", program); }

// Is there less room beside this file than a compiler may want? It has removed by now what did not fit.
static bool disk_full(Arena *a, const char *file) {
    enum { LEAST = 4 << 20 };
    struct statvfs disk;
    const char *folder = arena_strndup(a, file, (size_t)(strrchr(file, '/') - file));
    return !statvfs(folder, &disk) && disk.f_bavail < LEAST / disk.f_frsize;
}

static Argv words_begin(Arena *a, const Options *o, const char *runner, const char *cc) {
    Argv argv = { 0 };
    argv_add(a, &argv, cc);
    argv_add(a, &argv, target_flags(a, o, runner));
    argv_add(a, &argv, o->plain_cc ? NULL : getenv("BURNCC_CFLAGS"));
    return argv;
}

static void words_files(Arena *a, Argv *argv, const char *to, const char *from) {
    VEC_PUSH(a, *argv, "-o");
    VEC_PUSH(a, *argv, to);
    VEC_PUSH(a, *argv, from);
}

// Does the command do without the model what a C compiler does? Then the model's code is at fault.
static bool compiles(Arena *a, const Options *o, const char *runner, const char *cc, const char *source) {
    const char *empty = arena_printf(a, "%s.empty.c", source), *object = arena_printf(a, "%s.o", empty);
    static const char nothing[] = "#include <stdint.h>\nint burncc_nothing;\n";
    Argv argv = words_begin(a, o, runner, cc);
    VEC_PUSH(a, argv, "-c");
    words_files(a, &argv, object, empty);
    return write_text(a, empty, nothing) && !process_run(a, &argv)
        && !access(object, F_OK);
}

int build_unlinked(Arena *a, const Options *o, const char *cc, const char *source, const Unlinked *to, bool silent) {
    Argv argv = words_begin(a, o, o->machine.cc, cc);
    VEC_PUSH(a, argv, "-fstack-usage");
    for (int i = 0; i < o->banks.n; i++) {              // a section for each, or they would be one
        const char *model = text_upper(a, o->name), *name = o->banks.at[i].name;
        VEC_PUSH(a, argv, arena_printf(a, "-D%s_CODE_%s=", model, name));
        VEC_PUSH(a, argv, arena_printf(a, "-D%s_WEIGHTS_%s=", model, name));
    }
    VEC_PUSH(a, argv, "-c");
    words_files(a, &argv, to->object, source);
    return silent ? process_try(a, &argv) : process_run(a, &argv);
}

Unlinked unlinked_of(Arena *a, const char *stem) {
    return (Unlinked){ arena_printf(a, "%s.o", stem), arena_printf(a, "%s.su", stem) };
}

bool build_object(Arena *a, const Options *o, const char *runner, const char *source, const char *object) {
    const bool bare = runner && board_bare(&o->machine);
    const char *own = o->plain_cc ? NULL : getenv("CC"), *usual = runner && o->machine.cc ? o->machine.cc : "cc",
               *cc = own && *own ? own : usual;
    const Unlinked unlinked = unlinked_of(a, object);
    Argv argv = words_begin(a, o, runner, cc);
    words_files(a, &argv, object, bare ? unlinked.object : source);
    if (bare) argv_add(a, &argv, "-Wl,--gc-sections -T");
    if (bare) VEC_PUSH(a, argv, link_script(a, object));
    VEC_PUSH(a, argv, "-lm");
    if (o->blas) VEC_PUSH(a, argv, arena_printf(a, "-l%s", o->blas));
    progress_stage("%s: %s compiles it", o->name, argv.at[0]);
    int status = bare ? build_unlinked(a, o, cc, source, &unlinked, false) : 0;
    const bool links = bare && !status;
    if (!status) status = process_run(a, &argv);
    bool made = !status && !access(object, F_OK);
    if (made) return true;
    if (status == PROCESS_NONE) diag_error_as(EXIT_IO, NULL, "cannot run the C compiler '%s'; set CC", argv.at[0]);
    else if (disk_full(a, object))
        diag_error_as(EXIT_IO, NULL,
            "the C compiler '%s' fails, and the disk of the temporary folder is full; set TMPDIR", argv.at[0]);
    else if (links)
        diag_error_as(EXIT_IO, NULL,
            "the C compiler '%s' does not link a program for this board: its linker says above what it lacks, room for "
            "the model or a library", argv.at[0]);
    else if (!compiles(a, o, runner, cc, source))
        diag_error_as(EXIT_IO, NULL,
            "the C compiler '%s' compiles not even a file that includes <stdint.h> (status %d); set CC or "
            "BURNCC_CFLAGS%s%s%s", argv.at[0], status, strcmp(cc, usual) ? ": without CC it is '" : "",
            strcmp(cc, usual) ? usual : "", strcmp(cc, usual) ? "'" : "");
    else
        diag_error(NULL, "the C compiler '%s' rejects the generated code%s", argv.at[0],
            o->blas ? "; does it find cblas.h and -lopenblas (libopenblas-dev)?" : "");
    return false;
}

// ---------------------------------------------------------------- images
// The model's code calls runtime/image.c, which is in this process: functions of the same names pass the calls on.
typedef int ImageSize(const uint8_t *data, size_t bytes, int64_t size[2]);
typedef int ImageDecode(const uint8_t *data, size_t bytes, int layout, int64_t height, int64_t width, uint8_t *pixels);

static const char image_calls[] =
    "int (*burncc_image_size)(const uint8_t *, size_t, int64_t *);\n"
    "int (*burncc_image_decode)(const uint8_t *, size_t, int, int64_t, int64_t, uint8_t *);\n"
    "int burn_image_size(const uint8_t *data, size_t bytes, int64_t size[2]) { return burncc_image_size(data, "
    "bytes, size); }\n"
    "int burn_image_decode(const uint8_t *data, size_t bytes, int layout, int64_t height, int64_t width, uint8_t "
    "*pixels) {\n"
    "    return burncc_image_decode(data, bytes, layout, height, width, pixels);\n}\n";

static bool decodes_images(const Graph *g) {
    for (const Node *n = g->first; n; n = n->next) {
        if (n->op == OP_ImageSize || n->op == OP_ImageDecode) return true;
        for (int i = 0; i < n->n_bodies; i++)
            if (decodes_images(n->bodies[i])) return true;
    }
    return false;
}

#if HAVE_VULKAN
static int steps_begin(burn_gpu_call **out) { return burn_gpu_begin(out); }
#else
static int steps_begin(burn_gpu_call **out) {
    *out = NULL;
    return BURN_ENODEV;
}
#endif

static void give_images(void *library) {
    ImageSize **size = dlsym(library, "burncc_image_size");
    ImageDecode **decode = dlsym(library, "burncc_image_decode");
    if (size) *size = burn_image_size;
    if (decode) *decode = burn_image_decode;
}

// ---------------------------------------------------------------- GPUs
// And so with runtime/vulkan_steps.c.
const char build_steps_call[] =
    "#ifdef BURN_GPU_TYPES\nint (*burncc_gpu_begin)(burn_gpu_call **);\n"
    "int burn_gpu_begin(burn_gpu_call **out) { return burncc_gpu_begin(out); }\n#endif\n";

void build_give_steps(void *library) {
    int (**begin)(burn_gpu_call **) = dlsym(library, "burncc_gpu_begin");
    if (begin) *begin = steps_begin;
}

// ---------------------------------------------------------------- loading

// The descriptor and the plan are written by different code; what drives the model relies on both.
static bool descriptor_agrees(const burn_tensor_info *info, int n, Value *const *values, int m) {
    if (n != m) return false;
    for (int i = 0; i < n; i++) {
        const Type *t = &values[i]->type;
        if ((int)info[i].dtype != (int)t->dtype || info[i].rank != t->rank) return false;
        for (int d = 0; d < t->rank; d++)
            if (info[i].shape[d] != dim_upper(values[i]->graph, t->dim[d])) return false;
    }
    return true;
}

static bool load_weights(Built *b, const char *stem, size_t bytes) {
    if (!bytes) return true;
    const char *path = arena_printf(b->arena, "%s.bin", stem);
    if (!file_map(&b->weights_file, path)) return false;
    if (b->weights_file.size < bytes)
        bug("the weights file has %zu bytes, the program wants %zu", b->weights_file.size, bytes);
    b->weights = b->weights_file.data;
    return true;
}

static bool load(Built *b, const Options *o, const char *object, const char *stem) {
    b->library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (b->library) give_images(b->library);
    if (b->library) build_give_steps(b->library);
    const void *program = b->library ? dlsym(b->library, "burncc_program") : NULL;
    const bool gpu = program != NULL;
    const void *symbol = b->library && !gpu ? dlsym(b->library, "burncc_model") : program;
    if (!symbol) {
        const char *why = dlerror();
        diag_error_as(EXIT_IO, NULL, "cannot load the compiled model: %s", why ? why : "its descriptor is missing");
        return false;
    }
    const void *descriptor = *(const void *const *)symbol;
    const Graph *g = b->plan->graph;
    if (gpu) {
        b->gpu = descriptor;
        if (b->gpu->input_count != g->inputs.n || b->gpu->output_count != g->outputs.n)
            bug("the GPU program's descriptor disagrees with the plan");
        const void *const *embedded = dlsym(b->library, arena_printf(b->arena, "%s_weights", o->name));
        if (embedded) b->weights = *embedded;
        return embedded || load_weights(b, stem, b->gpu->weights_bytes);
    }
    b->model = descriptor;
    if (!descriptor_agrees(b->model->inputs, b->model->input_count, g->inputs.at, g->inputs.n) ||
        !descriptor_agrees(b->model->outputs, b->model->output_count, g->outputs.at, g->outputs.n))
        bug("the descriptor disagrees with the plan");
    return load_weights(b, stem, b->model->weights_bytes);
}

// Without an operating system the program opens the request and the answer by their paths, here in octal.
static const char *request_paths(Arena *a, const char *dir) {
    const char *const names[] = { "BURNCC_REQUEST", "BURNCC_ANSWER" };
    const char *const paths[] = { remote_request(a, dir), remote_answer(a, dir) };
    Text t;
    text_init(&t, a);
    for (size_t i = 0; i < COUNT(names); i++) {
        text_printf(&t, "#define %s \"", names[i]);
        for (const char *s = paths[i]; *s; s++) text_printf(&t, "\\%03o", (unsigned)(unsigned char)*s);
        text_printf(&t, "\"\n");
    }
    return t.at;
}

static bool write_program(
    const Built *b, const Options *o, const char *path, const char *generated, const char *program) {
    Arena *a = b->arena;
    bool bare = board_bare(&o->machine);
    if (bare
        && !write_text(a, link_script(a, program), board_link_script(a, &o->machine, b->plan->weight_bytes)))
        return false;
    return write_text(a, path,
        arena_printf(a, "#define _POSIX_C_SOURCE 200809L\n#include \"%s\"\n#define MODEL %s_model\n%s%s%s", generated,
            o->name, bare ? request_paths(a, b->dir) : "", template_text("driver.c"),
            template_text(bare ? "firmware/driver.c" : "driver_hosted.c")));
}

int profile_tracks(const Options *o) { return 1 + (o->threads > 1 ? o->threads : 0); }

const char *profile_marks(Arena *a, const Options *o, int kernels) {
    if (!o->profile) return "";
    return arena_printf(a, "#define _POSIX_C_SOURCE 200809L\n#define BURNCC_KERNELS %d\n#define BURNCC_TRACKS %d\n%s\n",
        kernels + 1, profile_tracks(o), template_text("profile.h"));
}

// A second source file includes the generated one and exports its descriptor, which may be static, under a fixed name.
// With --runner it is a program instead.
static bool write_wrapper(
    const Built *b, const Options *o, const char *path, const char *generated, const char *object) {
    Arena *a = b->arena;
    const Graph *g = b->plan->graph;
    if (b->runner) return write_program(b, o, path, generated, object);
    static const char model[] = "extern const burn_model *const burncc_model;\n"
                                "const burn_model *const burncc_model = &%s_model;\n",
                      program[] = "extern const burn_vk_program *const burncc_program;\n"
                                  "const burn_vk_program *const burncc_program = &%s_program;\n";
    const bool gpu = o->machine.backend->descriptor == DESCRIPTOR_VULKAN;
    const char *exported = arena_printf(a, model, o->name);
    if (gpu)                                            // which of both it is, the file says
        exported = arena_printf(a, "#ifdef BURN_GPU_TYPES\n%s#else\n%s#endif\n%s", exported,
            arena_printf(a, program, o->name), build_steps_call);
    const char *text = arena_printf(a, "%s#include \"%s\"\n%s%s", profile_marks(a, o, b->plan->numbered), generated,
        exported, decodes_images(g) ? image_calls : "");
    return write_text(a, path, text);
}

// Is there a way to run what will be built?
static bool runs_somewhere(const Options *o, const char *runner, const Graph *g) {
    const char *arch = o->machine.arch;
    if (runner && (o->machine.backend->descriptor != DESCRIPTOR_MODEL || decodes_images(g)))
        diag_error_as(EXIT_USAGE, NULL, "--runner: models for GPUs and those that decode images run here only");
    else if (!runner && arch && strcmp(arch, target_host()))
        diag_error_as(EXIT_USAGE, NULL,
            "%s code cannot be loaded here: set CC to a compiler for it, and --runner to what runs its programs, "
            "such as 'qemu-aarch64 -L /usr/aarch64-linux-gnu' or 'wasmtime'",
            arch);
    else return true;
    return false;
}

static bool build(Built *b, Options *o, Programs *programs, bool *compiled) {
    Arena *a = b->arena;
    if (!programs) return false;
    b->plan = programs->at[0].plan;
    if (!runs_somewhere(o, b->runner, b->plan->graph) || !(b->dir = folder_make())) return false;
    const char *stem = arena_printf(a, "%s/%s", b->dir, o->name);
    const char *wrapper = arena_printf(a, "%s/wrapper-.c", b->dir),
               *object = arena_printf(a, "%s/wrapper-%s", b->dir, b->runner ? "" : ".so");
    o->output = arena_printf(a, "%s.c", stem);
    if (!compile_write(a, o, programs) || !footprint_check(a, o, programs, false, NULL)) return false;
    *compiled = true;
    const char *generated = arena_printf(a, "%s.c", o->name);
    if (!write_wrapper(b, o, wrapper, generated, object)) return false;
    if (!build_object(a, o, b->runner, wrapper, object)) return false;
    if (!b->runner) return load(b, o, object, stem);
    b->program = object;
    return load_weights(b, stem, !access(arena_printf(a, "%s.bin", stem), R_OK));
}

static Built *built_new(Arena *a, Options *own, const char *runner) {
    Built *b = NEW(a, Built);
    b->arena = a;
    b->runner = runner;
    b->options = own;
    return b;
}

Built *build_model(const Options *o, const char *runner, bool *compiled) {
    *compiled = false;
    Arena *a = arena_new();
    Options *own = arena_copy(a, o, sizeof *o);          // the plan points at it
    Built *b = built_new(a, own, runner);
    if (build(b, own, compile_programs(a, own), compiled)) return b;
    build_free(b);
    return NULL;
}

Built *build_program(Arena *a, Options *o, Programs *p) {
    Built *b = built_new(a, o, NULL);
    bool compiled;
    if (build(b, o, p, &compiled)) return b;
    build_free(b);
    return NULL;
}

void build_free(Built *b) {
    if (b->library) dlclose(b->library);
    file_unmap(&b->weights_file);
    folder_remove(b->dir);
    arena_free(b->arena);
}
