// SPDX-License-Identifier: MIT OR Apache-2.0
// Training code in this process: the stages, then $CC into a shared object, then dlopen. In: Options with --train. Out:
// the programs with their plans, and a table by which any of them is called (templates/module.h).
#define _DEFAULT_SOURCE
#include "command.h"

#include "codegen/module.h"
#include "templates/module.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static bool write_wrapper(const Module *m, const Options *o, const char *path) {
    Text t;
    text_init(&t, m->arena);
    text_printf(&t, "#include \"%s.c\"\n", o->name);
    codegen_module(m->arena, o, m->programs->n, m->programs->at, m->programs->training, &t);
    OutFile *out = out_open(m->arena, path);
    return out && out_write(out, t.at, t.n) && out_commit(out);
}

static bool load(Module *m, const char *object) {
    m->library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    m->code = m->library ? dlsym(m->library, "burncc_training") : NULL;
    if (m->code) return true;
    const char *why = dlerror();
    diag_error_as(EXIT_IO, NULL, "cannot load the compiled training code: %s", why ? why : "its table is missing");
    return false;
}

static bool build(Module *m, Options *o) {
    Arena *a = m->arena;
    if (!(m->programs = compile_programs(a, o)) || !(m->dir = folder_make())) return false;
    const char *wrapper = arena_printf(a, "%s/wrapper-.c", m->dir), *object = arena_printf(a, "%s/wrapper-.so", m->dir);
    o->output = arena_printf(a, "%s/%s.c", m->dir, o->name);
    m->initial = arena_printf(a, "%s/%s.safetensors", m->dir, o->name);
    if (!compile_write(a, o, m->programs)) return false;
    const char *constants = arena_printf(a, "%s/%s.bin", m->dir, o->name);
    if (!access(constants, F_OK) && !file_map(&m->weights, constants)) return false;
    return write_wrapper(m, o, wrapper) && build_object(a, o, NULL, wrapper, object) && load(m, object);
}

Module *module_build(const Options *o) {
    Arena *a = arena_new();
    Module *m = NEW(a, Module);
    m->arena = a;
    if (build(m, arena_copy(a, o, sizeof *o))) return m;
    module_free(m);
    return NULL;
}

void module_free(Module *m) {
    if (m->library) dlclose(m->library);
    file_unmap(&m->weights);
    folder_remove(m->dir);
    arena_free(m->arena);
}
