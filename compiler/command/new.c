// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc new DIR: a project around a model, which builds and predicts as it stands.
//
// In: a folder that is not there, or is empty; a model's file, or none: then a small description is the model. Out: the
// model, a program, CMakeLists.txt, a README with the commands, numbers to try it with. The texts are templates/new/,
// with @NAMES@ in them.
#include "option.h"
#include "codegen/codegen.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Tongue { const char *name, *main, *languages, *compiler; } Tongue;
static const Tongue tongues[] = {
    { "c", "main.c", "C", "cc" },
    { "cpp", "main.cpp", "C CXX", "c++ -std=c++17" },
};

typedef struct Project {
    Arena *arena;
    const char *dir, *name, *model;                     // the prefix of symbols; the model's file in the project
    const Tongue *language;
    Text inputs;                                        // the files that the program is given
} Project;

static bool put(const Project *p, const char *file, const char *text, size_t n) {
    return out_whole(p->arena, arena_printf(p->arena, "%s/%s", p->dir, file), text, n);
}

static bool put_template(const Project *p, const char *file, const char *name) {
    const Word words[] = {
        { "NAME", p->name }, { "MODEL", p->model }, { "INPUT", p->inputs.at }, { "MAIN", p->language->main },
        { "LANGUAGES", p->language->languages }, { "COMPILER", p->language->compiler },
    };
    Text t;
    text_init(&t, p->arena);
    text_fill(&t, template_text(arena_printf(p->arena, "new/%s", name)), COUNT(words), words);
    return put(p, file, t.at, t.n);
}

static bool empty_folder(const char *dir) {
    if (!mkdir(dir, 0777)) return true;
    DIR *d = errno == EEXIST ? opendir(dir) : NULL;
    int entries = 0;
    if (!d) {
        diag_error_as(EXIT_IO, NULL, "cannot make the folder '%s': %s", dir, strerror(errno));
        return false;
    }
    while (readdir(d)) entries++;
    closedir(d);
    if (entries > 2) diag_error_as(EXIT_USAGE, NULL, "'%s' is not empty; burncc new wants a folder of its own", dir);
    return entries <= 2;
}

// Numbers to try the program with: a flower; zeros for other models, which the program goes on with.
static bool put_inputs(Project *p, const Options *o) {
    if (!o->model) {
        text_printf(&p->inputs, "flower.txt");
        return put(p, "flower.txt", "6.3 2.9 5.6 1.8\n", 16);
    }
    const Model *m = model_open(p->arena, o);
    if (!m) return false;
    for (int i = 0; i < m->n_inputs; i++) {
        const char *file = arena_printf(p->arena, "%s.txt", name_c(p->arena, m->inputs[i].name));
        text_printf(&p->inputs, "%s%s", i ? " " : "", file);
        if (!put(p, file, "0\n", 2)) return false;
    }
    return true;
}

// The model's file: a copy, or the description that burncc has.
static bool put_model(const Project *p, const Options *o) {
    File f;
    if (!o->model) return put_template(p, p->model, "iris.c");
    if (!file_map(&f, o->model)) return false;
    bool ok = put(p, p->model, (const char *)f.data, f.size);
    file_unmap(&f);
    return ok;
}

int command_new(Arena *a, CommandOptions *c) {
    Options *o = &c->compile;
    o->model = c->new_model;
    const char *slash = o->model ? strrchr(o->model, '/') : NULL, *file = slash ? slash + 1 : o->model;
    const char *dot = file ? strrchr(file, '.') : NULL;
    Project p = { .arena = a, .dir = c->dir };
    const char *word = c->language ? c->language : "c";
    for (size_t i = 0; i < COUNT(tongues); i++)
        if (!strcmp(tongues[i].name, word)) p.language = &tongues[i];
    if (!p.language) usage_error("--lang: there are c and cpp, not '%s'", word);
    if (!p.language || !empty_folder(p.dir)) return diag_status();
    p.name = file ? name_c(a, arena_strndup(a, file, dot ? (size_t)(dot - file) : strlen(file))) : "iris";
    // a description's file is not to be the code that is made of it
    p.model = arena_printf(a, "%s_model%s", p.name, file ? dot ? dot : "" : ".c");
    text_init(&p.inputs, a);
    if (put_inputs(&p, o) && put_model(&p, o) && put_template(&p, p.language->main, p.language->main)
        && put_template(&p, "CMakeLists.txt", "CMakeLists.txt") && put_template(&p, "README.md", "README.md"))
        put_template(&p, ".gitignore", "gitignore");
    if (!diag_errors()) tell_files(a);
    return diag_status();
}
