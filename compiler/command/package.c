// SPDX-License-Identifier: MIT OR Apache-2.0
// `burncc MODEL --package KIND -o DIR`: the model as a package of another language's tools, or of those that build
// firmware. In: the compiled program. Out: a folder with the generated C, and around it the kind's files, which are
// templates/package/KIND/ with the words of this model in their holes. -o NAME.zip: the same as an archive.
#define _XOPEN_SOURCE 700                               // mkdtemp
#include "import/weights/zip.h"
#include "package.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// A file of a package, with holes in its path too; another kind's template where that is the same.
typedef struct PackageFile { const char *path, *template; } PackageFile;
enum { MOST_FILES = 10 };

struct PackageKind {
    const char *name, *target, *summary;                // target: without --target
    const char *source;                                 // where the generated C lies
    bool embeds;                                        // weights are arrays, as flash wants them
    void (*words)(Package *p);
    bool (*make)(Package *p);                           // NULL: nothing
    PackageFile file[MOST_FILES + 1];                   // up to the first without a path
};

static const PackageKind kinds[] = {
    { "npm", "wasm-simd128", "WebAssembly and typed JavaScript, for node and browsers", "c/model.c", false,
        package_npm_words, package_npm_make,
        { { "c/module.c", "npm/module.c" }, { "index.js", "npm/index.js" }, { "index.d.ts", "npm/index.d.ts" },
            { "package.json", "npm/package.json" }, { "README.md", "npm/README.md" } } },
    { "cargo", "generic", "a Rust crate: the C, built by build.rs, and a safe interface", "c/model.c", false,
        package_cargo_words, NULL,
        { { "src/burn.rs", "cargo/burn.rs" }, { "build.rs", "cargo/build.rs" }, { "src/lib.rs", "cargo/lib.rs" },
            { "Cargo.toml", "cargo/Cargo.toml" } } },
    { "cmake", "generic", "a CMake package with a static library, for any toolchain", "src/@NAME@.c", true,
        package_c_words, NULL,
        { { "CMakeLists.txt", "cmake/CMakeLists.txt" }, { "@NAME@-config.cmake", "cmake/config.cmake" },
            { "example/CMakeLists.txt", "cmake/example.txt" }, { "example/main.c", "cmake/main.c" },
            { "README.md", "cmake/README.md" } } },
    { "arduino", "cortex-m4", "an Arduino library", "src/@NAME@.c", true, package_c_words, NULL,
        { { "library.properties", "arduino/library.properties" }, { "keywords.txt", "arduino/keywords.txt" },
            { "examples/@NAME@_example/@NAME@_example.ino", "arduino/example.ino" },
            { "README.md", "arduino/README.md" } } },
    { "platformio", "cortex-m4", "a PlatformIO library", "src/@NAME@.c", true, package_c_words, NULL,
        { { "library.json", "platformio/library.json" },
            { "examples/@NAME@_example/platformio.ini", "platformio/platformio.ini" },
            { "examples/@NAME@_example/src/main.cpp", "arduino/example.ino" },
            { "README.md", "platformio/README.md" } } },
    { "zephyr", "cortex-m4", "a Zephyr module", "src/@NAME@.c", true, package_c_words, NULL,
        { { "zephyr/module.yml", "zephyr/module.yml" }, { "CMakeLists.txt", "zephyr/CMakeLists.txt" },
            { "Kconfig", "zephyr/Kconfig" }, { "samples/@NAME@/CMakeLists.txt", "zephyr/sample.txt" },
            { "samples/@NAME@/prj.conf", "zephyr/prj.conf" }, { "samples/@NAME@/sample.yaml", "zephyr/sample.yaml" },
            { "samples/@NAME@/src/main.c", "cmake/main.c" }, { "README.md", "zephyr/README.md" } } },
    { "esp-idf", "rv32imc", "an ESP-IDF component", "src/@NAME@.c", true, package_c_words, NULL,
        { { "CMakeLists.txt", "esp-idf/CMakeLists.txt" }, { "idf_component.yml", "esp-idf/idf_component.yml" },
            { "examples/@NAME@/CMakeLists.txt", "esp-idf/project.txt" },
            { "examples/@NAME@/main/CMakeLists.txt", "esp-idf/main.txt" },
            { "examples/@NAME@/main/main.c", "esp-idf/main.c" }, { "README.md", "esp-idf/README.md" } } },
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
bool package_embeds(const PackageKind *k) { return k->embeds; }

void package_word(Package *p, const char *name, const char *means) {
    VEC_PUSH(p->arena, p->words, (Word){ name, means });
}

static const char *filled(Package *p, const char *text) {
    Text t;
    text_init(&t, p->arena);
    text_fill(&t, text, p->words.n, p->words.at);
    return t.at;
}

// The folders that the path is in.
static bool folders(Package *p, const char *path) {
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        const char *folder = arena_strndup(p->arena, path, (size_t)(slash - path));
        if (!mkdir(folder, 0777) || errno == EEXIST) continue;
        diag_error_as(EXIT_IO, NULL, "cannot make the folder '%s': %s", folder, strerror(errno));
        return false;
    }
    return true;
}

static bool put(Package *p, const PackageFile *file) {
    static const OutMark ours = { "burncc", true };     // every file names who wrote it
    const char *path = arena_printf(p->arena, "%s/%s", p->dir, filled(p, file->path));
    const char *template = template_text(arena_printf(p->arena, "package/%s", file->template));
    if (!template) bug("no template %s", file->template);
    const char *text = filled(p, template);
    return folders(p, path) && out_allowed(path, ours) && out_whole(p->arena, path, text, strlen(text));
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

static bool fits(const Package *p, const PackageKind *kind, const Programs *programs) {
    const Loc file = { .file = p->graph->file, .node = -1 };
    if (programs->at[0].function)
        diag_error(&file, "--package wants a model of one function; --function NAME chooses one of several");
    if (p->weights && kind->embeds)
        diag_error_as(EXIT_USAGE, &file, "--package %s wants its weights in the C file: no --embed-limit %lld",
            kind->name, (long long)p->options->embed_limit);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? p->graph->outputs.n : p->graph->inputs.n); i++)
            if ((side ? p->graph->outputs.at : p->graph->inputs.at)[i]->type.dtype == DT_STRING)
                diag_error(&file, "--package: %s \"%s\" is of strings, which packages do not pass",
                    side ? "output" : "input",
                    side ? p->graph->output_names.at[i] : p->graph->inputs.at[i]->name);
    return !diag_errors();
}

static bool write_files(Package *p, const PackageKind *kind, CommandOptions *c) {
    Options *o = &c->compile;
    o->output = arena_printf(p->arena, "%s/%s", p->dir, filled(p, kind->source));
    Programs *programs = compile_programs(p->arena, o);
    if (!programs) return false;
    p->graph = graph_root(programs->at[0].plan->graph);
    p->weight_bytes = programs->at[0].plan->weight_bytes;
    p->work_bytes = programs->at[0].plan->work_bytes;
    p->weights = p->weight_bytes > o->embed_limit;
    if (!fits(p, kind, programs) || !folders(p, o->output) || !compile_write(p->arena, o, programs)) return false;
    package_word(p, "LICENSE", licence_of(p->graph));
    kind->words(p);
    bool ok = true;
    for (const PackageFile *file = kind->file; ok && file->path; file++) ok = put(p, file);
    return ok && (!kind->make || kind->make(p));
}

// ---------------------------------------------------------------- as a zip archive
static bool is_zip(const char *path) {
    const size_t n = path ? strlen(path) : 0;
    return n > 4 && !strcmp(path + n - 4, ".zip");
}

// All that a kind of firmware's packages has: its own files, then the C and its header. In the package.
static int list_files(Package *p, const PackageKind *kind, const char **names) {
    int n = 0;
    const char *source = filled(p, kind->source);
    for (const PackageFile *file = kind->file; file->path; file++) names[n++] = filled(p, file->path);
    names[n++] = source;
    names[n++] = arena_printf(p->arena, "%.*sh", (int)strlen(source) - 1, source);
    return n;
}

static void remove_files(const Package *p, int n, const char *const *names) {
    for (int i = 0; i < n; i++) {
        char *path = arena_printf(p->arena, "%s/%s", p->dir, names[i]);
        remove(path);
        for (char *slash = strrchr(path, '/'); slash && slash > path + strlen(p->dir); slash = strrchr(path, '/')) {
            *slash = 0;
            remove(path);                               // the folders, when the last file is gone
        }
    }
    remove(p->dir);
}

// Everything is written into a folder beside the archive first, which is then gone.
static bool write_zip(Package *p, const PackageKind *kind, CommandOptions *c) {
    static const OutMark ours = { "burncc", true };
    const char *path = c->compile.output, *names[MOST_FILES + 2], *in[MOST_FILES + 2], *from[MOST_FILES + 2];
    char *folder = arena_printf(p->arena, "%s.XXXXXX", path);
    if (!kind->embeds) {
        diag_error_as(EXIT_USAGE, NULL, "--package %s is a folder, not a zip archive: -o DIR", kind->name);
        return false;
    }
    if (!out_allowed(path, ours)) return false;
    if (!mkdtemp(folder)) {
        diag_error_as(EXIT_IO, NULL, "cannot make the folder '%s': %s", folder, strerror(errno));
        return false;
    }
    p->dir = folder;
    bool ok = write_files(p, kind, c);
    const int n = list_files(p, kind, names);
    for (int i = 0; i < n; i++) {
        in[i] = arena_printf(p->arena, "%s/%s", p->name, names[i]);
        from[i] = arena_printf(p->arena, "%s/%s", folder, names[i]);
    }
    ok = ok && zip_write(path, n, in, from);
    remove_files(p, n, names);
    return ok;
}

int command_package(Arena *a, CommandOptions *c) {
    const Options *o = &c->compile;
    const PackageKind *kind = c->package;
    Package p = { .arena = a, .options = o, .name = o->name };
    p.dir = o->output ? o->output : arena_printf(a, "%s-%s", o->name, kind->name);
    package_word(&p, "NAME", p.name);
    if (is_zip(o->output)) write_zip(&p, kind, c);
    else write_files(&p, kind, c);
    return diag_status();
}
