// SPDX-License-Identifier: MIT OR Apache-2.0
// Training code in this process: the stages, then $CC into a shared object, then dlopen. In: Options with --train. Out:
// the programs with their plans, and a table by which any of them is called (templates/module.h).
#define _DEFAULT_SOURCE
#include "module.h"

#include "build/build.h"
#include "codegen/module.h"
#include "config.h"
#include "grad/train.h"
#include "ops/formulas.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t seed = 0x6275726e63630a31;

static bool write_wrapper(const Module *m, const Options *o, const char *path) {
    Text t;
    text_init(&t, m->arena);
    int kernels = 0;
    for (int i = 0; i < m->programs->n; i++)
        if (m->programs->at[i].plan->numbered > kernels) kernels = m->programs->at[i].plan->numbered;
    text_printf(&t, "%s#include \"%s.c\"\n", profile_marks(m->arena, o, kernels), o->name);
    codegen_module(m->arena, o, m->programs->n, m->programs->at, m->programs->training, &t);
    text_printf(&t,
        "extern const burn_training *const burncc_learns;\nconst burn_training *const burncc_learns = &%s_training;\n",
        o->name);
    if (options_gpu(o)) text_printf(&t, "%s", build_steps_call);
    return text_write(m->arena, path, &t);
}

static bool load(Module *m) {
    m->library = dlopen(m->object, RTLD_NOW | RTLD_LOCAL);
    if (m->library) build_give_steps(m->library);
    m->code = m->library ? dlsym(m->library, "burncc_training") : NULL;
    const void *training = m->code ? dlsym(m->library, "burncc_learns") : NULL;
    if (training) m->training = *(const burn_training *const *)training;
    if (m->training) return true;
    const char *why = dlerror();
    diag_error_as(EXIT_IO, NULL, "cannot load the compiled training code: %s", why ? why : "its table is missing");
    return false;
}

static bool build(Module *m, Options *o) {
    Arena *a = m->arena;
    if (!(m->programs = compile_programs(a, o)) || !(m->dir = folder_make())) return false;
    const char *wrapper = arena_printf(a, "%s/wrapper-.c", m->dir);
    m->object = arena_printf(a, "%s/wrapper-.so", m->dir);
    o->output = arena_printf(a, "%s/%s.c", m->dir, o->name);
    m->initial = arena_printf(a, "%s/%s.safetensors", m->dir, o->name);
    if (!compile_write(a, o, m->programs)) return false;
    const char *constants = arena_printf(a, "%s/%s.bin", m->dir, o->name);
    if (!access(constants, F_OK) && !file_map(&m->weights, constants)) return false;
    return write_wrapper(m, o, wrapper) && build_object(a, o, NULL, wrapper, m->object) && load(m);
}

static Module *module_new(void) {
    Arena *a = arena_new();
    Module *m = NEW(a, Module);
    m->arena = a;
    return m;
}

Module *module_build(const Options *o) {
    const char *arch = o->machine.arch;
    if (arch && strcmp(arch, target_host())) {
        diag_error_as(EXIT_USAGE, NULL, "training code for %s cannot be loaded here", arch);
        return NULL;
    }
    Module *m = module_new();
    if (build(m, arena_copy(m->arena, o, sizeof *o))) return m;
    module_free(m);
    return NULL;
}

bool module_open(Arena *a, CommandOptions *c, const char *what, OpenModule *out) {
    if (c->runner) {
        diag_error_as(EXIT_USAGE, NULL, "%s on this machine alone, without --runner", what);
        return false;
    }
    out->signature = inputs_read(a, c, false, &out->in);
    out->options = out->signature ? inputs_bind(a, &c->compile, out->signature, &out->in) : NULL;
    out->module = out->options ? module_build(out->options) : NULL;
    return out->module != NULL;
}

Module *module_received(const void *object, size_t object_bytes, const void *weights, size_t weights_bytes) {
    Module *m = module_new();
    bool ok = (m->dir = folder_make()) != NULL;
    m->object = arena_printf(m->arena, "%s/wrapper-.so", ok ? m->dir : "");
    const char *constants = arena_printf(m->arena, "%s/constants.bin", ok ? m->dir : "");
    ok = ok && out_whole(m->arena, m->object, object, object_bytes);
    if (weights_bytes)
        ok = ok && out_whole(m->arena, constants, weights, weights_bytes) && file_map(&m->weights, constants);
    ok = ok && load(m);
    folder_remove(m->dir);                              // at once: a rank may be killed
    m->dir = NULL;
    if (ok) return m;
    module_free(m);
    return NULL;
}

void module_free(Module *m) {
    if (m->library) dlclose(m->library);
    file_unmap(&m->weights);
    folder_remove(m->dir);
    arena_free(m->arena);
}

// ---------------------------------------------------------------- what programs are given

// What is large begins at a huge page and asks for such: kernels that walk over megabytes then wait less for the pages'
// places.
void *module_memory(size_t bytes) {
    enum { ALIGNMENT = 64, HUGE_PAGE = 1 << 21 };
    size_t whole = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    size_t alignment = whole < HUGE_PAGE ? ALIGNMENT : HUGE_PAGE;
    void *p = aligned_alloc(alignment, (whole + alignment - 1) / alignment * alignment);
#ifdef MADV_HUGEPAGE
    if (p && alignment == HUGE_PAGE) madvise(p, whole, MADV_HUGEPAGE);      // where the system has none, small ones do
#endif
    return p ? memset(p, 0, whole) : NULL;
}

bool options_gpu(const Options *o) { return o->machine.backend->descriptor == DESCRIPTOR_VULKAN; }

#if HAVE_VULKAN
void *module_room(const Options *o, size_t bytes) {
    return options_gpu(o) ? burn_gpu_memory(bytes) : module_memory(bytes);
}

int module_watch(const Options *o, burn_gpu_watcher *watcher, void *context) {
    return options_gpu(o) ? burn_gpu_watch(watcher, context) : 0;
}
#else
void *module_room(const Options *o, size_t bytes) {
    (void)o;
    return module_memory(bytes);
}

int module_watch(const Options *o, burn_gpu_watcher *watcher, void *context) {
    (void)watcher, (void)context;
    return options_gpu(o) ? BURN_ENODEV : 0;
}
#endif

// Usual values of an optimizer's hyper-parameters, but for the learning rate.
static float usual(Arena *a, const Training *t, const char *name) {
    const char *list = optimizer_usual(t, a), *word;
    double value;
    while (row_word(a, &list, &word, &value))
        if (!strcmp(word, name) && strcmp(name, "learning_rate")) return (float)value;
    return 0;
}

static void *value_for(Arena *a, const Training *t, const Value *v, const Tensor *given, uint64_t *random) {
    if (given) return given->data;
    if (v->role != ROLE_VALUE) return tensor_random(a, v, random)->data;
    Tensor *number = tensor_new(a, v->type);
    tensor_set_f(number, 0, usual(a, t, v->name));
    return number->data;
}

ModuleCall module_call(Arena *a, const Module *m, const char *name, const Graph *signature, const Inputs *in) {
    const Programs *p = m->programs;
    uint64_t random = seed;
    for (int i = 0; i < p->n; i++) {
        const Graph *g = p->at[i].plan->graph;
        if (strcmp(m->code->programs[i].name, name)) continue;
        ModuleCall s = { .program = &m->code->programs[i], .graph = g };
        s.call.weights = m->weights.data;
        s.call.in = NEW_ARRAY(a, void *, g->inputs.n + 1);
        s.call.out = NEW_ARRAY(a, void *, g->outputs.n + 1);
        for (int k = 0; k < g->inputs.n; k++) {
            const Value *v = g->inputs.at[k];
            const Tensor *given = NULL;
            for (int n = 0; n < in->n; n++)
                if (v->role == ROLE_NONE && !strcmp(signature->inputs.at[n]->name, v->name)) given = in->at[n];
            if (v->role == ROLE_NONE || v->role == ROLE_VALUE)
                s.call.in[k] = value_for(a, p->training, v, given, &random);
        }
        for (int k = 0; k < g->outputs.n; k++) {
            const Value *v = g->outputs.at[k];
            bool apart = v->role == ROLE_NONE || v->role == ROLE_LOSS;
            if (apart) s.call.out[k] = arena_alloc(a, (size_t)type_bytes_upper(g, &v->type) + 1);
        }
        return s;
    }
    bug("the training code has no program %s", name);
}
