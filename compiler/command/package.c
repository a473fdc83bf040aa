// SPDX-License-Identifier: MIT OR Apache-2.0
// `burncc MODEL --package KIND -o DIR`: the model as a package of another language's tools. In: the compiled program.
// Out: a folder with the generated C in c/, and around it what that language builds and calls.
#include "package.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const PackageKind kinds[] = {
    { "npm", "wasm-simd128", "WebAssembly and typed JavaScript, for node and browsers", package_npm },
    { "cargo", "generic", "a Rust crate: the C, built by build.rs, and a safe interface", package_cargo },
};

const PackageKind *package_find(const char *name) {
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (!strcmp(kinds[i].name, name)) return &kinds[i];
    return NULL;
}

const char *package_names(Arena *a) {
    Text t;
    text_init(&t, a);
    for (size_t i = 0; i < COUNT(kinds); i++)
        text_printf(&t, "%s%s (%s)", i ? ", " : "", kinds[i].name, kinds[i].summary);
    return t.at;
}

const char *package_target(const PackageKind *k) { return k->target; }

bool package_put(Package *p, const char *file, const char *text) {
    static const OutMark ours = { "burncc", true };     // every file names who wrote it
    OutFile *out = out_replace(p->arena, arena_printf(p->arena, "%s/%s", p->dir, file), ours);
    if (!out) return false;
    if (out_write(out, text, strlen(text))) return out_commit(out);
    out_abandon(out);
    return false;
}

bool package_template(Package *p, const char *file, const char *name) {
    const char *text = template_text(arena_printf(p->arena, "package/%s", name));
    if (!text) bug("no template %s", name);
    return package_put(p, file, text);
}

bool package_folder(Package *p, const char *folder) {
    const char *path = *folder ? arena_printf(p->arena, "%s/%s", p->dir, folder) : p->dir;
    if (!mkdir(path, 0777) || errno == EEXIST) return true;
    diag_error_as(EXIT_IO, NULL, "cannot make the folder '%s': %s", path, strerror(errno));
    return false;
}

// What a package's own description may say: words as SPDX has them.
static const char *licence_of(const Graph *g) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.+() ";
    for (int i = 0; i + 1 < g->metadata.n; i += 2) {
        const char *key = g->metadata.at[i], *value = g->metadata.at[i + 1];
        bool is = !strcmp(key, "license") || !strcmp(key, "License") || !strcmp(key, "licence");
        if (is && strlen(value) < 80 && strspn(value, letters) == strlen(value)) return value;
    }
    return NULL;
}

static bool fits(const Package *p, const Programs *programs) {
    const Loc file = { .file = p->graph->file, .node = -1 };
    if (programs->at[0].function)
        diag_error(&file, "--package wants a model of one function; --function NAME chooses one of several");
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? p->graph->outputs.n : p->graph->inputs.n); i++)
            if ((side ? p->graph->outputs.at : p->graph->inputs.at)[i]->type.dtype == DT_STRING)
                diag_error(&file, "--package: %s \"%s\" is of strings, which packages do not pass",
                    side ? "output" : "input",
                    side ? p->graph->output_names.at[i] : p->graph->inputs.at[i]->name);
    return !diag_errors();
}

int command_package(Arena *a, CommandOptions *c) {
    Options *o = &c->compile;
    const PackageKind *kind = c->package;
    Package p = { .arena = a, .options = o, .name = o->name };
    p.dir = o->output ? o->output : arena_printf(a, "%s-%s", o->name, kind->name);
    o->output = arena_printf(a, "%s/c/model.c", p.dir);
    Programs *programs = compile_programs(a, o);
    if (!programs) return diag_status();
    p.graph = graph_root(programs->at[0].plan->graph);
    p.weights = programs->at[0].plan->weight_bytes > o->embed_limit;
    p.licence = licence_of(p.graph);
    if (!fits(&p, programs) || !package_folder(&p, "") || !package_folder(&p, "c") || !compile_write(a, o, programs))
        return diag_status();
    kind->write(&p);
    return diag_status();
}
