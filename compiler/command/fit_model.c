// SPDX-License-Identifier: MIT OR Apache-2.0
// What a model and data have to do with each other. In: the imported graph, the fields of a dataset. Out: sizes for
// what the model leaves open, a loss, metrics.
//
// The idea: the first axis of the first input is the batch's, the rest is an item. Input i is the field of its name,
// else field i; what is predicted is the field behind the inputs'.
#include "fit.h"

#include <string.h>

static bool has_dim(const Options *o, const char *name) {
    for (int i = 0; i < o->dims.n; i++)
        if (!strcmp(o->dims.at[i].name, name)) return true;
    return false;
}

static const DimOption *dim_given(const Options *o, const char *name) {
    for (int i = 0; i < o->dims.n; i++)
        if (!strcmp(o->dims.at[i].name, name)) return &o->dims.at[i];
    return NULL;
}

// A size, or 0 where it is open: --dim counts.
static int64_t size_of(Arena *a, const Options *o, const Graph *g, Dim d) {
    if (dim_is_const(d)) return d;
    const DimOption *given = dim_given(o, dim_text(a, g, d));
    return given && given->lo == given->hi ? given->lo : 0;
}

bool fit_model(Arena *a, const Options *o, FitModel *m) {
    *m = (FitModel){ 0 };
    Options *own = arena_copy(a, o, sizeof *o);
    own->train = false;
    const Model *file = model_open(a, own);
    Graph *g = m->graph = file ? model_graph(a, file, own) : NULL;
    if (!g) return false;
    m->settings = file->settings;
    if (!g->inputs.n || !g->outputs.n) {
        diag_error(&(Loc){ .file = o->model, .node = -1 }, "a model learns from inputs, and gives outputs");
        return false;
    }
    const Type *in = &g->inputs.at[0]->type, *out = &g->outputs.at[0]->type;
    if (in->rank && !dim_is_const(in->dim[0])) m->batch = dim_text(a, g, in->dim[0]);
    else m->fixed = in->rank ? in->dim[0] : 1;
    m->asked.rank = in->rank ? in->rank - 1 : 0;
    for (int i = 0; i < m->asked.rank && i < BURN_FIELD_RANK; i++)
        m->asked.shape[i] = size_of(a, o, g, in->dim[i + 1]);
    if (out->rank) m->classes = size_of(a, o, g, out->dim[out->rank - 1]);
    return true;
}

static const burn_field *field_of(const FitModel *m, const burn_dataset *data, int input) {
    int f = burn_data_field(data, m->graph->inputs.at[input]->name);
    return f >= 0 ? &data->fields[f] : input < data->field_count ? &data->fields[input] : NULL;
}

static bool set_size(Arena *a, Options *o, const FitModel *m, const char *name, int64_t size) {
    for (int i = 0; i < o->settings.n; i++)
        if (!strcmp(o->settings.at[i].name, name)) return false;
    if (o->config || !m->settings || !strstr(m->settings, arena_printf(a, "\"%s\":", name))) return false;
    VEC_PUSH(a, o->settings, (SetOption){ arena_strdup(a, name), arena_printf(a, "%lld", (long long)size) });
    diag_note(NULL, "--set %s=%lld, as the data has it", name, (long long)size);
    return true;
}

bool fit_settings(Arena *a, Options *o, const FitModel *m, const burn_dataset *data) {
    const burn_field *features = field_of(m, data, 0), *target = fit_target(m, data);
    bool set = false;
    if (target && target->class_count && target->class_count != m->classes)
        set = set_size(a, o, m, "classes", target->class_count);
    if (target && !target->class_count && !target->rank && m->classes != 1) set = set_size(a, o, m, "classes", 1);
    if (features && features->rank == 1 && features->shape[0] != m->asked.shape[0])
        set = set_size(a, o, m, "features", features->shape[0]) || set;
    return set;
}

static void bind_size(Arena *a, Options *o, const char *name, int64_t size) {
    if (!has_dim(o, name)) VEC_PUSH(a, o->dims, (DimOption){ name, size, size });
}

void fit_bind(Arena *a, Options *o, const FitModel *m, const burn_dataset *data, int64_t batch) {
    const Graph *g = m->graph;
    DimOption *given = o->dims.at;
    int n = o->dims.n;
    o->dims.at = NULL;
    o->dims.n = o->dims.cap = 0;
    for (int i = 0; i < n; i++) VEC_PUSH(a, o->dims, given[i]);
    if (m->batch) bind_size(a, o, m->batch, batch);
    for (int i = 0; i < g->inputs.n; i++) {
        const Type *t = &g->inputs.at[i]->type;
        const burn_field *f = field_of(m, data, i);
        for (int k = 1; f && k < t->rank; k++) {
            int at = f->rank - (t->rank - k);           // from the end, as a field may lack a dimension of 1
            if (!dim_is_const(t->dim[k]) && at >= 0) bind_size(a, o, dim_text(a, g, t->dim[k]), f->shape[at]);
        }
    }
}

const burn_field *fit_target(const FitModel *m, const burn_dataset *data) {
    const burn_field *found = NULL;
    for (int f = 0; f < data->field_count && !found; f++) {
        bool is_input = false;
        for (int i = 0; i < m->graph->inputs.n; i++) is_input = is_input || field_of(m, data, i) == &data->fields[f];
        if (!is_input) found = &data->fields[f];
    }
    if (!found)
        diag_error(NULL, "the data has nothing that could be predicted: no classes, no target; "
            "images and sounds want a folder for each class");
    return found;
}

static bool behind(const Graph *g, Op op) {
    const Node *n = g->outputs.at[0]->def;
    return n && n->op == op;
}

static bool loss_of_classes(Arena *a, Options *o, const FitModel *m, const burn_field *target, const char **metrics) {
    bool binary = m->classes == 1 && target->class_count == 2;
    if (m->classes && !binary && target->class_count > m->classes) {
        diag_error(NULL,
            "the data has %d classes, the model's output %lld: --replace-head %d makes a new last layer, as does "
            "--set classes=%d where a model described in C has that setting",
            target->class_count, (long long)m->classes, target->class_count, target->class_count);
        return false;
    }
    if (behind(m->graph, OP_Softmax) && !o->losses.n)
        diag_warn(WARN_softmax, NULL,
            "the model's output is one of a softmax, but cross_entropy takes what is in front of it: it will learn "
            "slowly");
    const char *usual = binary ? "binary_cross_entropy" : behind(m->graph, OP_LogSoftmax) ? "nll" : "cross_entropy";
    if (!o->losses.n) VEC_PUSH(a, o->losses, usual);
    if (!*metrics) *metrics = binary ? "accuracy(threshold=0)" : "accuracy";
    return true;
}

bool fit_loss(Arena *a, Options *o, const FitModel *m, const burn_field *target, const char **metrics) {
    if (target->class_count) return loss_of_classes(a, o, m, target, metrics);
    if (!o->losses.n) VEC_PUSH(a, o->losses, "mse");
    if (!*metrics) *metrics = "mae";
    return true;
}

Words fit_words(Arena *a, const char *list) {
    Words words = { 0 };
    int depth = 0;
    const char *from = list;
    for (const char *p = list;; p++) {
        depth += (*p == '(') - (*p == ')');
        if (*p && (*p != ',' || depth)) continue;
        if (p > from) VEC_PUSH(a, words, arena_strndup(a, from, (size_t)(p - from)));
        if (!*p) return words;
        from = p + 1;
    }
}
