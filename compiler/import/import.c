// SPDX-License-Identifier: MIT OR Apache-2.0
// The door: picks the front end by what a file holds. In: a path. Out: a Model, from it a Graph.
#include "import/import.h"
#include "grad/parameters.h"
#include "import/foreign.h"
#include "import/integers.h"
#include "import/head.h"
#include "import/lora.h"
#include "import/weights/weights.h"

#include <string.h>

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
    if (o->shapes.n && !f->takes_shapes) {
        diag_error_as(EXIT_USAGE, &file, "--shape is for ONNX models; the sizes of %s are %s", f->name,
            f->has_settings ? "settings (--set) and symbols (--dim) of the description" : "in the text");
        return false;
    }
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

// ---------------------------------------------------------------- sizes that cannot be left open

// The options with the usual size of each dimension of the inputs that none gives one; NULL: all have one.
static Options *sized(Arena *a, const Model *m, const Options *o, Text *names) {
    DiagHold held = diag_hold(names);
    Graph *inputs = m->format->inputs(a, m, o);
    diag_release(held);
    names->n = 0;
    Options *own = arena_copy(a, o, sizeof *o);
    own->dims.at = NULL;
    own->dims.n = own->dims.cap = 0;
    for (int i = 0; i < o->dims.n; i++) VEC_PUSH(a, own->dims, o->dims.at[i]);
    int n = 0;
    const Symbol *all = inputs ? graph_symbols(inputs, &n) : NULL;
    for (int i = 0; i < n; i++) {
        bool given = false;
        for (int k = 0; k < o->dims.n; k++) given = given || !strcmp(o->dims.at[k].name, all[i].name);
        if (given) continue;
        int64_t usual = all[i].usual ? all[i].usual : 1;
        VEC_PUSH(a, own->dims, (DimOption){ all[i].name, usual, usual });
        text_printf(names, " --dim %s=N", all[i].name);
    }
    return own->dims.n > o->dims.n ? own : NULL;
}

// A graph whose shapes do not come out while dimensions are open may be one with sizes: without --dim they are 1.
static Graph *graph_of(Arena *a, const Model *m, const Options *o) {
    Text open, said, other;
    text_init(&open, a);
    text_init(&said, a);
    text_init(&other, a);
    const Options *own = o && m->format->again ? sized(a, m, o, &open) : NULL;
    if (!own) return m->format->graph(a, m, o);
    Loc file = { .file = m->file, .node = -1 };
    DiagHold held = diag_hold(&said);
    Graph *g = m->format->graph(a, m, o);
    int errors = diag_errors() - held.errors, status = diag_status();
    diag_release(held);
    if (errors) {
        DiagHold again = diag_hold(&other);
        Graph *fixed = m->format->graph(a, m, own);
        if (diag_release(again)) {
            for (int i = o->dims.n; i < own->dims.n; i++)
                diag_note(&file, "dimension %s is taken as %lld, as shapes do not come out while it is open; "
                    "--dim %s=N gives it another size", own->dims.at[i].name, (long long)own->dims.at[i].lo,
                    own->dims.at[i].name);
            diag_replay(&other);
            return fixed;
        }
    }
    diag_replay(&said);
    if (errors) {
        diag_passed_on(errors, status);
        diag_note(&file, "dimensions without a size may be why;%s gives them one", open.at);
    }
    return g;
}

Graph *model_graph(Arena *a, const Model *m, const Options *o) {
    int errors = diag_errors();
    Graph *g = graph_of(a, m, o);
    if (m->damaged || diag_errors() != errors || !g) return NULL;
    const Node *head;
    Lora lora = { 0 };
    for (int i = 0; o && i < o->metadata.n; i++) VEC_PUSH(a, g->metadata, o->metadata.at[i]);
    bool integers = o && (o->train || o->learnt);
    if (integers) integers_open(g);
    if (o && o->weights.n && (o->untie || o->train) && !parameters_part(g, o)) return NULL;
    lora_freeze(g, o);
    if (!head_replace(g, o, &head) || !lora_add(&lora, g, o, head) || !weights_give(a, g, o)) return NULL;
    if (o && o->unseen) graph_draw_unseen(g);
    else graph_draw(g, o ? (uint64_t)o->seed : 0);
    if (integers && !o->train && o->written != WRITTEN_SAFETENSORS) integers_close(g);
    return lora_merge(&lora, g, o) ? g : NULL;
}

Graph *import_graph(Arena *a, const Options *o) {
    const Model *m = model_open(a, o);
    return m ? model_graph(a, m, o) : NULL;
}
