// SPDX-License-Identifier: MIT OR Apache-2.0
// Gives a model's parameters the tensors of a file of weights, by name.
//
// In: a graph whose constants have names, a file, and --map. Out: constants with the file's data in the parameter's
// element type. The idea: after the renames of --map names are compared as they are; where a prefix in front of all
// names of one side (module., bert., _orig_mod.) makes more of them agree, it is taken for granted. Tensors are copied
// into the graph's arena only if their type or order differs.
#define _POSIX_C_SOURCE 200809L
#include "import/weights/weights.h"
#include "import/head.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 6 };                                     // names in a list of them

static const WeightFormat *const formats[] = { &safetensors_format, &safetensors_index_format,
    &npz_format, &torch_zip_format, &torch_legacy_format, &torch_tar_format, &record_format };

bool weights_claimed(const File *f) {
    for (size_t i = 0; i < COUNT(formats); i++)
        if (formats[i]->claims(f)) return true;
    return false;
}

static bool names_differ(Arena *a, const Weights *w) {
    StrMap *seen = strmap_new(a);
    Loc file = { .file = w->file, .node = -1 };
    for (int i = 0; i < w->at.n; i++) {
        if (strmap_get(seen, w->at.at[i].name)) {
            diag_error(&file, "tensor \"%s\" is there twice", w->at.at[i].name);
            return false;
        }
        strmap_put(seen, w->at.at[i].name, w->at.at[i].tensor);
    }
    return true;
}

Weights *weights_read(Arena *a, const char *path, const File *f, const char *key) {
    Weights *w = NEW(a, Weights);
    w->file = arena_strdup(a, path);
    VEC_PUSH(a, w->maps, *f);
    for (size_t i = 0; i < COUNT(formats); i++) {
        if (!formats[i]->claims(f)) continue;
        w->format = formats[i]->name;
        if (formats[i]->read(a, path, f, key, w) && names_differ(a, w)) return w;
        weights_close(w);
        return NULL;
    }
    Loc file = { .file = path, .node = -1 };
    diag_error(&file, "this is no file of weights that is known (.safetensors or its .index.json, .pt, .pth, .npz, "
                      "records, Burn's .mpk and .bpk)");
    weights_close(w);
    return NULL;
}

Weights *weights_open(Arena *a, const char *path, const char *key) {
    File f;
    return file_map(&f, path) ? weights_read(a, path, &f, key) : NULL;
}

void weights_close(Weights *w) {
    for (int i = 0; i < w->maps.n; i++) file_unmap(&w->maps.at[i]);
    w->maps.n = 0;
}

// ---------------------------------------------------------------- names

// The name after one rename, in which \1 .. \9 stand for what the parentheses matched; NULL: it does not match.
static const char *renamed(Arena *a, const regex_t *re, const char *to, const char *name) {
    regmatch_t m[10];
    Text t;
    if (regexec(re, name, COUNT(m), m, 0)) return NULL;
    text_init(&t, a);
    text_append(&t, name, (size_t)m[0].rm_so);
    for (; *to; to++) {
        if (*to == '\\' && to[1] >= '0' && to[1] <= '9') {
            const regmatch_t *part = &m[*++to - '0'];
            if (part->rm_so >= 0) text_append(&t, name + part->rm_so, (size_t)(part->rm_eo - part->rm_so));
        } else text_append(&t, to, 1);
    }
    text_append(&t, name + m[0].rm_eo, strlen(name + m[0].rm_eo));
    return t.at;
}

static bool rename_all(Arena *a, Weights *w, const Options *o) {
    for (int k = 0; k < o->maps.n; k++) {
        regex_t re;
        int bad = regcomp(&re, o->maps.at[k].name, REG_EXTENDED), n = 0;
        if (bad) {
            char why[128];
            regerror(bad, &re, why, sizeof why);
            diag_error_as(EXIT_USAGE, NULL, "--map %s: %s", o->maps.at[k].name, why);
            return false;
        }
        for (int i = 0; i < w->at.n; i++) {
            const char *name = renamed(a, &re, o->maps.at[k].value, w->at.at[i].name);
            if (!name) continue;
            w->at.at[i].name = name;
            n++;
        }
        regfree(&re);
        if (!n) diag_warn(WARN_map, NULL, "--map %s matches no tensor of %s", o->maps.at[k].name, w->file);
    }
    return names_differ(a, w);
}

// ---------------------------------------------------------------- what finds what

// weight: of the file at hand; given: by that or one before it
typedef struct Slot { Value *value; const Weight *weight; bool given; } Slot;
typedef struct Match {
    Arena *a;
    const Weights *w;
    StrMap *weights;                                    // by name
    VEC(Slot) slots;                                    // the model's parameters
    const char *strip, *add;                            // prefixes: that the file's names have and ours lack, and back
} Match;

typedef struct Search { Arena *a; StrMap *seen; Parameters found; } Search;

static void collect(Search *s, Value *v) {
    if (!v || v->def || v->is_input || !v->name || !*v->name || strmap_get(s->seen, v->name)) return;
    if (!v->draw && !(v->data && (v->trainable || dtype_is_float(v->type.dtype)))) return;
    strmap_put(s->seen, v->name, v);
    VEC_PUSH(s->a, s->found.at, v);
}

static void collect_all(Search *s, const Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) collect(s, n->in[i]);
        for (int i = 0; i < n->n_bodies; i++) collect_all(s, n->bodies[i]);
    }
    for (int i = 0; i < g->outputs.n; i++) collect(s, g->outputs.at[i]);
}

Parameters weights_parameters(Arena *a, const Graph *g) {
    Search s = { .a = a, .seen = strmap_new(a) };
    collect_all(&s, g);
    return s.found;
}

static void forget_computed(const Graph *g) {           // of the weights that were there
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_bodies; i++) forget_computed(n->bodies[i]);
        for (int i = 0; i < n->n_out; i++) n->out[i]->folded = NULL;
    }
}

static const Weight *found(const Match *m, const char *name, const char *strip, const char *add) {
    size_t n = strlen(add);
    if (n && strncmp(name, add, n)) return NULL;        // ours begin so, the file's do not
    return strmap_get(m->weights, *strip ? arena_printf(m->a, "%s%s", strip, name) : name + n);
}

static int matches(const Match *m, const char *strip, const char *add) {
    int n = 0;
    for (int i = 0; i < m->slots.n; i++) n += found(m, m->slots.at[i].value->name, strip, add) != NULL;
    return n;
}

// Tries every prefix that ends at a dot of one name; the best stays.
static void try_prefixes(Match *m, const char *name, bool of_file, int *best) {
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        const char *prefix = arena_strndup(m->a, name, (size_t)(dot + 1 - name));
        int n = matches(m, of_file ? prefix : "", of_file ? "" : prefix);
        if (n <= *best) continue;
        *best = n;
        m->strip = of_file ? prefix : "";
        m->add = of_file ? "" : prefix;
    }
}

// Only prefixes that a first or last name shows are worth a try: those that all names have, or nearly all.
static void find_prefix(Match *m) {
    int best = matches(m, "", "");
    m->strip = m->add = "";
    if (best == m->slots.n) return;
    for (int i = 0; i < m->w->at.n; i += m->w->at.n > 8 ? m->w->at.n / 8 : 1)
        try_prefixes(m, m->w->at.at[i].name, true, &best);
    for (int i = 0; i < m->slots.n; i += m->slots.n > 8 ? m->slots.n / 8 : 1)
        try_prefixes(m, m->slots.at[i].value->name, false, &best);
}

// ---------------------------------------------------------------- giving

static Tensor *converted(Arena *a, const Tensor *t, const Type *to) {
    Tensor *out = tensor_new(a, *to);
    int64_t n = type_count(to);
    if (t->type.dtype == to->dtype) {
        if (n) memcpy(out->data, t->data, (size_t)type_bytes(to));
        return out;
    }
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(to->dtype)) tensor_set_f(out, i, tensor_get_f(t, i));
        else tensor_set_i(out, i, tensor_get_i(t, i));
    }
    return out;
}

static void give(Graph *g, Slot *s) {
    graph_fill(g, s->value, converted(g->arena, s->weight->tensor, &s->value->type));
}

// Is it the [out, in] of a linear layer, which its product reads turned around?
static bool is_turned(const Graph *g, const Value *v) {
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == OP_Transpose && n->in[0] == v && v->type.rank == 2) return true;
    return false;
}

static Tensor *turned(Arena *a, const Tensor *t) {
    const Type *from = &t->type;
    const size_t one = dtype_size(from->dtype);
    Tensor *out = tensor_new(a, (Type){ .dtype = from->dtype, .rank = 2, .dim = { from->dim[1], from->dim[0] } });
    for (Dim i = 0; i < from->dim[0]; i++)
        for (Dim k = 0; k < from->dim[1]; k++)
            memcpy((char *)out->data + (size_t)(k * from->dim[0] + i) * one,
                (const char *)t->data + (size_t)(i * from->dim[1] + k) * one, one);
    return out;
}

// ---------------------------------------------------------------- the report

static size_t distance(const char *a, const char *b) {  // characters that begin or end both alike, less is better
    size_t n = strlen(a), m = strlen(b), head = 0, tail = 0;
    while (head < n && head < m && a[head] == b[head]) head++;
    while (tail < n - head && tail < m - head && a[n - 1 - tail] == b[m - 1 - tail]) tail++;
    return n + m - 2 * (head + tail);
}

static const char *nearest_weight(const Match *m, const bool *used, const char *name) {
    const char *best = NULL;
    size_t least = strlen(name);
    for (int i = 0; i < m->w->at.n; i++) {
        size_t d = distance(name, m->w->at.at[i].name);
        if (used[i] || d >= least) continue;
        least = d;
        best = m->w->at.at[i].name;
    }
    return best;
}

static void complain(const Options *o, const char *text) {
    if (o->strict) diag_error(NULL, "%s", text);
    else diag_warn(WARN_weights, NULL, "%s", text);
}

static void report_missing(const Match *m, const Options *o, const bool *used) {
    Text t;
    int n = 0;
    text_init(&t, m->a);
    for (int i = 0; i < m->slots.n; i++) {
        const Slot *s = &m->slots.at[i];
        if (s->given || n++ >= SHOWN) continue;
        const char *near = nearest_weight(m, used, s->value->name);
        text_printf(&t, "%s \"%s\"", n > 1 ? "," : "", s->value->name);
        if (near) text_printf(&t, " (there is \"%s\")", near);
    }
    if (n)
        complain(o, arena_printf(m->a, "%s: no tensor for %d parameters:%s%s; --map 'RE=TO' renames the file's tensors",
            m->w->file, n, t.at, n > SHOWN ? ", ..." : ""));
}

static void report_unused(const Match *m, const Options *o, const bool *used) {
    static const char counter[] = "num_batches_tracked";        // of batch norms: nothing that a model needs
    Text t;
    int n = 0;
    text_init(&t, m->a);
    for (int i = 0; i < m->w->at.n; i++) {
        const char *name = m->w->at.at[i].name, *end = strrchr(name, '.');
        if (used[i] || !strcmp(end ? end + 1 : name, counter) || n++ >= SHOWN) continue;
        text_printf(&t, "%s \"%s\"", n > 1 ? "," : "", name);
    }
    if (n)
        complain(o, arena_printf(m->a, "%s: %d tensors belong to no parameter:%s%s", m->w->file, n, t.at,
            n > SHOWN ? ", ..." : ""));
}

static void fill_slots(Match *m, Graph *g, const Options *o, bool *used) {
    for (int i = 0; i < m->slots.n; i++) {
        Slot *s = &m->slots.at[i];
        s->weight = found(m, s->value->name, m->strip, m->add);
        if (!s->weight) continue;
        used[s->weight - m->w->at.at] = s->given = true;
        if (m->w->in_out && s->weight->tensor->type.rank == 2 && is_turned(g, s->value)) {
            const Weight other_way = { s->weight->name, turned(m->a, s->weight->tensor) };
            s->weight = arena_copy(m->a, &other_way, sizeof other_way);
        }
        if (type_same_shape(&s->value->type, &s->weight->tensor->type)) {
            give(g, s);
            continue;
        }
        if (head_resized(&s->weight->tensor->type, &s->value->type, o)) continue;
        complain(o, arena_printf(m->a, "%s: \"%s\" is %s, the model's \"%s\" is %s", m->w->file, s->weight->name,
            type_text(m->a, g, &s->weight->tensor->type), s->value->name, type_text(m->a, g, &s->value->type)));
    }
}

// last: no other file follows, so what lacks a tensor is missing
static bool give_all(Match *m, Graph *g, const Options *o, Weights *w, bool last) {
    Arena *a = m->a;
    m->w = w;
    m->weights = strmap_new(a);
    if (!rename_all(a, w, o)) return false;
    for (int i = 0; i < w->at.n; i++) strmap_put(m->weights, w->at.at[i].name, &w->at.at[i]);
    find_prefix(m);
    bool *used = NEW_ARRAY(a, bool, w->at.n + 1);
    int errors = diag_errors(), n = matches(m, m->strip, m->add);
    Loc file = { .file = w->file, .node = -1 };
    fill_slots(m, g, o, used);
    if (last) report_missing(m, o, used);
    report_unused(m, o, used);
    if (!n)
        diag_error(&file,
            "no tensor has the name of a parameter%s%s%s; `burncc inspect` lists the tensors, --map renames them",
            m->slots.n ? ", such as \"" : "", m->slots.n ? m->slots.at[0].value->name : "", m->slots.n ? "\"" : "");
    else
        diag_note(&file, "%d of the model's %d parameters%s%s%s", n, m->slots.n,
            *m->strip || *m->add ? "; prefix \"" : "", *m->strip ? m->strip : m->add, *m->strip || *m->add ? "\"" : "");
    return diag_errors() == errors;
}

bool weights_give(Arena *a, Graph *g, const Options *o) {
    if (!o || !o->weights.n) return true;
    Match m = { .a = a };
    const Parameters parameters = weights_parameters(a, g);
    for (int i = 0; i < parameters.at.n; i++) VEC_PUSH(a, m.slots, (Slot){ .value = parameters.at.at[i] });
    forget_computed(g);
    bool ok = true;
    for (int i = 0; i < o->weights.n && ok; i++) {
        Weights *w = weights_open(a, o->weights.at[i], o->weights_key);
        ok = w && give_all(&m, g, o, w, i + 1 == o->weights.n);
        if (w) weights_close(w);
    }
    return ok;
}
