// SPDX-License-Identifier: MIT OR Apache-2.0
// The front end of the IR's own text: what --dump prints, or what somebody wrote, is a model.
//
// In: a text that begins with `graph`, behind space and comments. Out: the graph that ir/parse.c reads, with a name
// for every input and output. The idea: such a graph was made for certain lengths of sequences and certain optionals,
// which its bundles tell; so --sequence and --absent may only say the same, and --freeze puts its constant in an
// input's place.
#include "import/text/text.h"

#include <string.h>

static bool claims(const File *f) {
    const char *at = (const char *)f->data, *end = at + f->size;
    static const char word[] = "graph";
    while (at < end && strchr(" \t\r\n;", *at) && *at) {
        if (*at == ';') while (at < end && *at != '\n') at++;
        else at++;
    }
    return (size_t)(end - at) > strlen(word) && !memcmp(at, word, strlen(word)) && strchr(" \t\"", at[strlen(word)]);
}

static const Bundle *bundle_of(const Graph *g, const char *name, bool output) {
    for (int i = 0; i < g->bundles.n; i++) {
        const Bundle *b = &g->bundles.at[i];
        for (int k = 0; k < b->n && b->output == output; k++)
            if (!strcmp(b->names[k], name)) return b;
    }
    return NULL;
}

static ModelEnd tensor_end(Arena *a, const Graph *g, const char *name, const Type *t) {
    EndDim *dims = NEW_ARRAY(a, EndDim, t->rank + 1);
    for (int i = 0; i < t->rank; i++) {
        bool known = dim_is_const(t->dim[i]);
        dims[i] = (EndDim){
            .known = known, .value = known ? t->dim[i] : 0, .symbol = known ? "" : dim_text(a, g, t->dim[i])
        };
    }
    return (ModelEnd){
        .name = name, .kind = "tensor", .dtype = (int)t->dtype, .has_shape = true, .rank = t->rank, .dim = dims
    };
}

// A bundle is one end, at the place of its first tensor; one without tensors comes last.
static const ModelEnd *ends(Arena *a, const Graph *g, bool output, int *n) {
    int count = output ? g->outputs.n : g->inputs.n;
    ModelEnd *all = NEW_ARRAY(a, ModelEnd, count + g->bundles.n + 1);
    *n = 0;
    for (int i = 0; i < count; i++) {
        const Value *v = output ? g->outputs.at[i] : g->inputs.at[i];
        const char *name = output ? g->output_names.at[i] : v->name;
        const Bundle *b = bundle_of(g, name, output);
        if (b && *n && !strcmp(all[*n - 1].name, b->name)) continue;
        ModelEnd *end = &all[(*n)++];
        *end = tensor_end(a, g, b ? b->name : name, &v->type);
        end->optional = b && b->optional;
        end->sequence = b && b->sequence;
    }
    for (int i = 0; i < g->bundles.n; i++) {
        const Bundle *b = &g->bundles.at[i];
        if (!b->n && b->output == output)
            all[(*n)++] = (ModelEnd){
                .name = b->name, .kind = "tensor", .optional = b->optional, .sequence = b->sequence
            };
    }
    return all;
}

static void name_ends(Graph *g) {
    for (int i = 0; i < g->inputs.n; i++)
        if (!g->inputs.at[i]->name) g->inputs.at[i]->name = arena_printf(g->arena, "input_%d", i);
    for (int i = 0; i < g->outputs.n; i++)
        if (!g->output_names.at[i])
            g->output_names.at[i] = g->outputs.n > 1 ? arena_printf(g->arena, "output_%d", i) : "output";
}

// The function that --function names, else all of them; NULL with a diagnostic.
static Graph *chosen(Arena *a, Graph *g, const Options *o) {
    Loc file = { .file = g->file, .node = -1 };
    if (!o->function) return g;
    for (int i = 0; i < g->functions.n; i++)
        if (!strcmp(g->functions.at[i].name, o->function)) return graph_function(g, i);
    diag_error_as(EXIT_USAGE, &file, "--function %s: the model has %s%s", o->function,
        g->functions.n ? "the functions " : "no functions", g->functions.n ? graph_functions(a, g) : "");
    return NULL;
}

bool text_model(Arena *a, Graph *g, const Options *o, Model *m) {
    Loc file = { .file = m->file, .node = -1 };
    if (!(g = chosen(a, g, o))) return false;
    if (!g->outputs.n) diag_error(&file, "the graph has no outputs");
    name_ends(g);
    m->inputs = ends(a, g, false, &m->n_inputs);
    m->outputs = ends(a, g, true, &m->n_outputs);
    m->source = g;
    return true;
}

static bool open_text(Arena *a, const File *f, const Options *o, Model *m) {
    Loc file = { .file = m->file, .node = -1 };
    const char *text = arena_strndup(a, (const char *)f->data, f->size);
    if (strlen(text) < f->size) {
        diag_error(&file, "the text of a graph has no zero bytes");
        return false;
    }
    Graph *g = graph_parse_within(a, text, m->file, o ? o->constant_bytes : 0);
    return g && text_model(a, g, o, m);
}

static const Bundle *input_bundle(const Graph *g, const char *option, const char *name, const Loc *file) {
    const Bundle *b = graph_bundle(g, name, false);
    if (!b) diag_error_as(EXIT_USAGE, file, "%s %s: the graph has no such input", option, name);
    return b;
}

static bool options_fit(const Graph *g, const Options *o) {
    Loc file = { .file = g->file, .node = -1 };
    int errors = diag_errors();
    for (int i = 0; i < o->sequences.n; i++) {
        const SequenceOption *s = &o->sequences.at[i];
        const Bundle *b = input_bundle(g, "--sequence", s->name, &file);
        if (b && (b->stacked != s->stacked || (!b->stacked && b->n != s->n)))
            diag_error_as(EXIT_USAGE, &file, "--sequence %s: the graph was made for %s", s->name,
                b->stacked ? "any length" : arena_printf(g->arena, "%d elements", b->n));
    }
    for (int i = 0; i < o->absent.n; i++) {
        const Bundle *b = input_bundle(g, "--absent", o->absent.at[i], &file);
        if (b && !b->absent) diag_error_as(EXIT_USAGE, &file, "--absent %s: the graph was made with it", b->name);
    }
    return diag_errors() == errors;
}

Graph *text_inputs(Arena *a, const Model *m, const Options *o) {
    Graph *g = (Graph *)(uintptr_t)m->source;
    if (g->functions.n) {
        diag_error_as(EXIT_USAGE, &(Loc){ .file = m->file, .node = -1 },
            "the model has the functions %s; choose one with --function", graph_functions(a, g));
        return NULL;
    }
    return options_fit(g, o) ? g : NULL;
}

// Input i becomes a constant.
static void freeze(Graph *g, int i, const Tensor *t) {
    Loc file = { .file = g->file, .node = -1 };
    Value *v = g->inputs.at[i];
    bool fits = v->type.dtype == t->type.dtype && v->type.rank == t->type.rank;
    for (int d = 0; d < v->type.rank && fits; d++)
        fits = !dim_is_const(v->type.dim[d]) || v->type.dim[d] == t->type.dim[d];
    if (!fits) {
        diag_error(&file, "the value given for input \"%s\" is %s, the model wants %s", v->name,
            type_text(g->arena, g, &t->type), type_text(g->arena, g, &v->type));
        return;
    }
    graph_replace(g, v, graph_const(g, arena_copy(g->arena, t, sizeof *t), v->name));
    for (g->inputs.n--; i < g->inputs.n; i++) g->inputs.at[i] = g->inputs.at[i + 1];
}

Graph *text_graph(Arena *a, const Model *m, const Options *o) {
    Graph *g = (Graph *)(uintptr_t)m->source;
    if (o && !options_fit(g, o)) return NULL;
    if (o && o->name) g->name = arena_strdup(a, o->name);
    for (int k = 0; o && k < o->frozen.n; k++)
        for (int i = 0; i < g->inputs.n; i++)
            if (!strcmp(g->inputs.at[i]->name, o->frozen.at[k].name)) {
                freeze(g, i, o->frozen.at[k].value);
                break;
            }
    return g;
}

const FrontEnd text_front_end = {
    .name = "the compiler's text", .key = "text", .draws = true,
    .claims = claims, .open = open_text, .graph = text_graph, .inputs = text_inputs
};
