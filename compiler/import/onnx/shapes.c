// SPDX-License-Identifier: MIT OR Apache-2.0
// --shape: a model's inputs with other sizes than the file has.
//
// In: the decoded model, and shapes of inputs. Out: a graph for these shapes, or diagnostics and what the graph does
// take. The idea: the model is built twice. First as the file has it, which tells for each node what its inputs were;
// then with the sizes asked for, where resized.c compares what a node's inputs are and were, and puts the new sizes
// into the constants that came from the old ones. Sizes that the file leaves open count as 1 in the first.
#include "import/onnx/names.h"

#include <string.h>

static bool is_name(const DimOption *d) { return d->name != NULL; }

// The dimension with what the option says of it.
static EndDim given_dim(const EndDim *was, const DimOption *d) {
    bool same = was->known && was->value == d->lo;
    if (!is_name(d)) return same ? *was : (EndDim){ .known = true, .value = d->lo, .symbol = "" };
    return (EndDim){ .symbol = d->name, .usual = was->known && was->value > 0 ? was->value : 0 };
}

static bool give(Arena *a, const OnnxModel *m, ModelEnd *in, const ShapeOption *s) {
    Loc file = { .file = m->file, .node = -1 };
    if (strcmp(in->kind, "tensor") || in->sequence) {
        diag_error_as(EXIT_USAGE, &file, "--shape %s: this input is no tensor", s->input);
        return false;
    }
    if (in->has_shape && in->rank != s->rank) {
        diag_error_as(EXIT_USAGE, &file, "--shape %s: the input has %d dimensions, not %d", s->input, in->rank,
            s->rank);
        return false;
    }
    EndDim *dim = NEW_ARRAY(a, EndDim, s->rank + 1);
    for (int i = 0; i < s->rank; i++)
        dim[i] = given_dim(in->has_shape ? &in->dim[i] : &(EndDim){ .symbol = "" }, &s->dim[i]);
    in->has_shape = true;
    in->rank = s->rank;
    in->dim = dim;
    return true;
}

static const char *input_names(Arena *a, const OnnxModel *m) {
    int n;
    const ModelEnd *const *in = onnx_true_inputs(a, m, &n);
    Text t;
    text_init(&t, a);
    for (int i = 0; i < n; i++) text_printf(&t, "%s%s", i ? ", " : "", in[i]->name);
    return n ? t.at : "none";
}

bool onnx_shapes_give(Arena *a, OnnxModel *m, const Options *o) {
    if (!o || !o->shapes.n) return true;
    int count = m->graph->n_inputs;
    ModelEnd *ends = arena_copy(a, m->graph->inputs, sizeof *ends * (size_t)count);
    for (int k = 0; k < o->shapes.n; k++) {
        const ShapeOption *s = &o->shapes.at[k];
        int i = 0;
        while (i < count && strcmp(ends[i].name, s->input)) i++;
        if (i < count && give(a, m, &ends[i], s)) continue;
        if (i == count)
            diag_error_as(EXIT_USAGE, &(Loc){ .file = m->file, .node = -1 },
                "--shape %s: the model has no such input; its inputs: %s", s->input, input_names(a, m));
        return false;
    }
    OnnxGraphDef *g = arena_copy(a, m->graph, sizeof *g);
    m->was = g->inputs;
    g->inputs = ends;
    m->graph = g;
    return true;
}

// ---------------------------------------------------------------- twice

static const OnnxModel *with_inputs(Arena *a, const OnnxModel *m, const ModelEnd *inputs) {
    OnnxModel *copy = arena_copy(a, m, sizeof *m);
    OnnxGraphDef *g = arena_copy(a, m->graph, sizeof *g);
    g->inputs = inputs;
    copy->graph = g;
    return copy;
}

static ModelEnd *with_dim(Arena *a, ModelEnd *end, int axis, EndDim d) {
    EndDim *dim = arena_copy(a, end->dim, sizeof *dim * (size_t)end->rank);
    dim[axis] = d;
    end->dim = dim;
    return end;
}

// As the file has it, with numbers for all sizes.
static ModelEnd *ends_before(Arena *a, const OnnxModel *m) {
    int count = m->graph->n_inputs;
    ModelEnd *ends = arena_copy(a, m->was, sizeof *ends * (size_t)count);
    for (int i = 0; i < count; i++)
        for (int k = 0; ends[i].has_shape && k < ends[i].rank && k < MAX_RANK; k++)
            if (!ends[i].dim[k].known || ends[i].dim[k].value < 0)
                with_dim(a, &ends[i], k, (EndDim){ .known = true, .value = 1, .symbol = "" });
    return ends;
}

// What comes of the model with these inputs is not looked at, but whether anything does.
static bool trial(Import *im) {
    Text said;
    text_init(&said, im->arena);
    DiagHold held = diag_hold(&said);
    onnx_import(im);
    return diag_release(held);
}

static bool dim_moved(const EndDim *was, const EndDim *now) {
    return was->known && (!now->known || was->value != now->value);
}

static void end_print(Text *t, const ModelEnd *end) {
    text_printf(t, " --shape %s=", end->name);
    for (int i = 0; i < end->rank; i++) {
        if (end->dim[i].known) text_printf(t, "%s%lld", i ? "," : "", (long long)end->dim[i].value);
        else text_printf(t, "%s%s", i ? "," : "", *end->dim[i].symbol ? end->dim[i].symbol : "N");
    }
}

// Says which of the changes the graph does take: each is tried beside those before it that went well.
static void remedy(const Import *im) {
    const OnnxModel *m = im->model;
    Arena *a = im->arena;
    int count = m->graph->n_inputs;
    ModelEnd *good = arena_copy(a, m->was, sizeof *good * (size_t)count);
    Text takes;
    text_init(&takes, a);
    for (int i = 0; i < count; i++) {
        bool any = false;
        for (int k = 0; m->was[i].has_shape && k < m->was[i].rank && k < MAX_RANK; k++) {
            const EndDim *now = &m->graph->inputs[i].dim[k];
            if (!dim_moved(&m->was[i].dim[k], now)) continue;
            ModelEnd *ends = arena_copy(a, good, sizeof *ends * (size_t)count);
            with_dim(a, &ends[i], k, *now);
            Import one = { .arena = a, .model = with_inputs(a, m, ends), .options = im->options, .was = im->was };
            if (!trial(&one)) continue;
            good = ends;
            any = true;
        }
        if (any) end_print(&takes, &good[i]);
    }
    Loc file = { .file = m->file, .node = -1 };
    if (takes.n) diag_note(&file, "of the sizes that --shape changes the graph takes these:%s", takes.at);
    else diag_note(&file, "the graph takes none of the sizes that --shape changes; export the model with them");
}

Graph *onnx_import_resized(Import *im) {
    const OnnxModel *m = im->model;
    Import was = { .arena = im->arena, .model = with_inputs(im->arena, m, ends_before(im->arena, m)),
        .options = im->options, .inputs = strmap_new(im->arena) };
    bool sound = trial(&was);
    int errors = diag_errors();
    im->was = &was;
    Graph *g = onnx_import(im);
    if (sound && diag_errors() != errors) remedy(im);
    im->was = NULL;
    return g;
}
