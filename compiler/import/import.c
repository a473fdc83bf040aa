// SPDX-License-Identifier: MIT OR Apache-2.0
// The door: picks the front end by what a file holds. In: a path. Out: a Model, from it a Graph.
#include "import/import.h"
#include "grad/parameters.h"
#include "import/foreign.h"
#include "import/head.h"
#include "import/lora.h"
#include "import/weights/weights.h"

static const FrontEnd *const formats[] = { &text_front_end, &c_front_end, &onnx_front_end };

const FrontEnd *const *front_ends(int *n) {
    *n = (int)COUNT(formats);
    return formats;
}

// Options that this format has no use for.
static bool options_fit(const FrontEnd *f, const Options *o) {
    const char *option = f->has_settings ? NULL : o->settings.n ? "--set" : o->config ? "--config" : NULL;
    if (!option && !f->draws && o->function) option = "--function";
    if (!option && !f->draws && !o->train && !o->replace_head && !o->lora_rank && o->seeded) option = "--seed";
    Loc file = { .file = o->model, .node = -1 };
    if (option) diag_error_as(EXIT_USAGE, &file, "%s is for models described in C; this is %s", option, f->name);
    return !option;
}

Model *model_open(Arena *a, const Options *o) {
    File f;
    size_t format = 0;
    progress_stage("reading %s", o->model);
    int errors = diag_errors();
    const char *folder = foreign_folder(a, o->model);
    if (folder) diag_error_as(EXIT_IO, &(Loc){ .file = o->model, .node = -1 }, "no model: this is %s", folder);
    if (folder || !file_map(&f, o->model)) return NULL;
    while (format + 1 < COUNT(formats) && !formats[format]->claims(&f)) format++;     // the last says what is wrong
    Model *m = NEW(a, Model);
    *m = (Model){ .format = formats[format], .file = arena_strdup(a, o->model) };
    bool ok = options_fit(m->format, o) && m->format->open(a, &f, o, m);
    file_unmap(&f);
    m->damaged = diag_errors() != errors;
    return ok ? m : NULL;
}

Graph *model_graph(Arena *a, const Model *m, const Options *o) {
    int errors = diag_errors();
    Graph *g = m->format->graph(a, m, o);
    if (m->damaged || diag_errors() != errors || !g) return NULL;
    const Node *head;
    Lora lora = { 0 };
    if (o && o->weights.n && (o->untie || o->train) && !parameters_part(g, o)) return NULL;
    lora_freeze(g, o);
    if (!head_replace(g, o, &head) || !lora_add(&lora, g, o, head) || !weights_give(a, g, o)) return NULL;
    if (o && o->unseen) graph_draw_unseen(g);
    else graph_draw(g, o ? (uint64_t)o->seed : 0);
    return lora_merge(&lora, g, o) ? g : NULL;
}

Graph *import_graph(Arena *a, const Options *o) {
    const Model *m = model_open(a, o);
    return m ? model_graph(a, m, o) : NULL;
}
