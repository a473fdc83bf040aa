// SPDX-License-Identifier: MIT OR Apache-2.0
// --train: which of a model's constants are parameters, and whose.
//
// In: an imported graph, whose float initializers are marked trainable. Out: inputs of the role ROLE_PARAM, and notes
// of what a user may not expect. What batch normalization keeps as statistics is not trained, even where the same
// constant is elsewhere: running statistics (mode.c) are parameters of another kind, each module's its own; with
// --frozen-norm, and where they are in a body, they are constants.
//
// Exporters merge initializers that are equal: the layer normalizations of a new model, all ones, share one weight,
// and trained so they stay one. --untie gives each module its own again. The idea: nodes tell their module by the path
// in their name, as PyTorch writes it ("/layers/layers.0/norm/LayerNormalization" is of layers.0.norm), and constants
// that are one number throughout are what gets merged, while weights that were tied on purpose (an embedding and the
// head behind it) are not. Uses of one module stay one parameter.
#define _POSIX_C_SOURCE 200809L
#include "parameters.h"
#include "build/build.h"
#include "mode.h"
#include "select.h"
#include "step.h"
#include "through.h"
#include "uses.h"

#include <regex.h>
#include <string.h>

enum { MOST_NOTES = 10, MOST_NAMES = 6 };

typedef struct Which { bool all, merged; regex_t re; bool hit; } Which;     // of --untie

static bool is_one_number(const Tensor *t) {
    size_t size = dtype_size(t->type.dtype), bytes = (size_t)type_bytes(&t->type);
    return bytes > size && !memcmp(t->data, (const char *)t->data + size, bytes - size);
}

static const char *free_name(const Uses *all, Arena *a, const char *name) {
    for (int k = 1;; k++) {
        const char *given = k > 1 ? arena_printf(a, "%s_%d", name, k) : name;
        bool taken = false;
        for (int i = 0; i < all->values.n && !taken; i++)
            taken = all->values.at[i]->name && !strcmp(all->values.at[i]->name, given);
        if (!taken) return given;
    }
}

// ---------------------------------------------------------------- --untie

static bool matches(const Which *w, const char *s) { return s && *s && !regexec(&w->re, s, 0, NULL, 0); }

// Does --untie mean what the module of u shares with others?
static bool selects(const Which *w, const Uses *all, const Use *u) {
    if (w->all || (w->merged && is_one_number(u->v->data))) return true;
    if (w->merged) return false;
    if (matches(w, u->v->name)) return true;
    for (int i = 0; i < all->at.n; i++) {
        const Use *x = &all->at.at[i];
        bool same = x->v == u->v && !use_is_statistic(x) && same_module(x->n, u->n);
        if (same && matches(w, node_label(x->n))) return true;
    }
    return false;
}

// The module that keeps v: the one that v is named after, else the first.
static const Use *owner_of(const Uses *all, Arena *a, const Value *v) {
    const Use *first = NULL;
    for (int i = 0; i < all->at.n; i++) {
        const Use *u = &all->at.at[i];
        if (u->v != v || !use_opens_module(all, u)) continue;
        if (v->name && !strcmp(use_own_name(a, u), v->name)) return u;
        first = first ? first : u;
    }
    return first;
}

// A constant like v, of a name of its own, for all uses of u's module.
static Value *split(Uses *all, Graph *model, const Use *u) {
    const Node *of = u->n;
    Value *old = u->v, *own = graph_const_again(model, old);
    own->name = free_name(all, model->arena, use_own_name(model->arena, u));
    own->trainable = true;
    VEC_PUSH(all->scratch, all->values, own);
    for (int i = 0; i < all->at.n; i++) {
        Use *x = &all->at.at[i];
        if (x->v == old && !use_is_statistic(x) && same_module(x->n, of)) x->v = x->n->in[x->i] = own;
    }
    return own;
}

static void untie(Uses *all, Graph *model, Which *w) {
    for (int k = 0, n = all->values.n; k < n; k++) {
        const Value *v = all->values.at[k];
        if (uses_modules(all, v) < 2) continue;
        const Node *owner = owner_of(all, model->arena, v)->n;
        for (int i = 0; i < all->at.n; i++) {
            Use *u = &all->at.at[i];
            if (u->v != v || use_is_statistic(u) || !selects(w, all, u)) continue;
            w->hit = true;
            if (!same_module(u->n, owner)) split(all, model, u);
        }
    }
}

static bool which_open(Which *w, const char *text) {
    char why[128];
    *w = (Which){ .all = !strcmp(text, "all"), .merged = !strcmp(text, "merged") };
    int code = w->all || w->merged ? 0 : regcomp(&w->re, text, REG_EXTENDED | REG_NOSUB);
    if (!code) return true;
    regerror(code, &w->re, why, sizeof why);
    diag_error_as(EXIT_USAGE, NULL, "--untie wants merged, all or a regular expression, not '%s': %s", text, why);
    return false;
}

static bool untie_by_options(Uses *all, Graph *model, const Options *o) {
    Which w;
    if (!o->untie) return true;
    if (!which_open(&w, o->untie)) return false;
    untie(all, model, &w);
    if (!w.all && !w.merged) regfree(&w.re);
    if (!w.hit && !w.all && !w.merged)
        diag_error_as(EXIT_USAGE, NULL,
            "--untie %s: matches no parameter that several modules share, and none of their nodes", o->untie);
    return w.hit || w.all || w.merged;
}

// ---------------------------------------------------------------- running statistics
// Is the value of u anything else, too, than this statistic of this module?
static bool is_shared(const Uses *all, const Use *u) {
    for (int i = 0; i < all->at.n; i++) {
        const Use *w = &all->at.at[i];
        if (w->v == u->v && (!use_is_statistic(w) || w->i != u->i || !same_module(w->n, u->n))) return true;
    }
    return false;
}

// The statistic of u's module as a constant of its own.
static void split_statistic(Uses *all, Graph *model, int at) {
    const Use u = all->at.at[at];
    Value *own = graph_const_again(model, u.v);
    own->name = free_name(all, model->arena, use_own_name(model->arena, &u));
    VEC_PUSH(all->scratch, all->values, own);
    for (int k = at; k < all->at.n; k++) {
        Use *x = &all->at.at[k];
        bool same = x->v == u.v && x->i == u.i && same_module(x->n, u.n);
        if (same && use_is_running(all, x)) x->v = x->n->in[x->i] = own;
    }
}

// Exporters merge them as they merge weights, but they are never the same number for long; all but the one that is
// named after its module get a name that is. In a description (not trainable there) sharing is meant: one module,
// called twice.
static void split_statistics(Uses *all, Graph *model) {
    bool *shared = NEW_ARRAY(all->scratch, bool, all->at.n + 1);
    for (int i = 0; i < all->at.n; i++) {
        const Use *u = &all->at.at[i];
        shared[i] = use_is_running(all, u) && u->v->trainable && is_shared(all, u)
            && strcmp(u->v->name ? u->v->name : "", use_own_name(model->arena, u));
    }
    for (int i = 0; i < all->at.n; i++)
        if (shared[i] && all->at.at[i].v->trainable) split_statistic(all, model, i);
}

// Statistics that do not run are constants, whatever else trains their number.
static void part_still(Uses *all, Graph *model) {
    for (int i = 0; i < all->at.n; i++) {
        Use *u = &all->at.at[i];
        bool shared = use_is_statistic(u) && !use_is_running(all, u) && u->n->in[u->i] == u->v;
        if (shared) u->n->in[u->i] = graph_const_again(model, u->v);
    }
}

// What is left of it after a step: each of the nodes that share it takes its part.
static double kept_of(const Uses *all, const Value *v) {
    double keep = 1;
    for (int i = 0; i < all->at.n; i++)
        if (all->at.at[i].v == v && use_is_running(all, &all->at.at[i])) keep *= mode_momentum(all->at.at[i].n);
    return keep;
}

// ---------------------------------------------------------------- notes

// By its name, or by its number and operator: exporters may leave names out.
static void list_node(Text *t, int i, const Node *n) {
    if (i == MOST_NAMES) text_printf(t, ", ...");
    if (i >= MOST_NAMES) return;
    const char *name = node_label(n), *op = n->loc && n->loc->op ? n->loc->op : op_table[n->op].name;
    text_printf(t, "%s%s", i ? ", " : "", name);
    if (!*name && n->loc && n->loc->node >= 0) text_printf(t, "node %d ", n->loc->node);
    if (!*name) text_printf(t, "%s", op);
}

static void note_shared(const Uses *all, const Graph *model) {
    Loc file = { .file = model->file, .node = -1 };
    int said = 0, more = 0;
    for (int k = 0; k < all->values.n; k++) {
        const Value *v = all->values.at[k];
        if (!v->trainable || uses_modules(all, v) < 2) continue;
        if (said++ >= MOST_NOTES && ++more) continue;
        Text t;
        text_init(&t, all->scratch);
        for (int i = 0, n = 0; i < all->at.n; i++)
            if (all->at.at[i].v == v && use_opens_module(all, &all->at.at[i]))
                list_node(&t, n++, all->at.at[i].n);
        diag_note(&file, "parameter %s is one of several nodes (%s), trained as one; %s", v->name ? v->name : "", t.at,
            is_one_number(v->data) ? "exporters merge equal ones: --untie merged gives each its own" :
                                     "--untie NAME gives each its own");
    }
    if (more) diag_note(&file, "%d more parameters are shared so", more);
}

static bool learns(const Node *n) {
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->trainable) return true;
    return false;
}

// Nodes of this operation that stay as in inference: all, or those in bodies and whose statistics cannot run; of batch
// normalizations those that learn.
static void list_still(const Graph *g, Op op, bool all, Text *names, int *n) {
    for (const Node *node = g->first; node; node = node->next) {
        bool turns = op == OP_BatchNorm ? mode_runs(node) : !g->parent;
        bool still = node->op == op && (all || !turns) && (op != OP_BatchNorm || learns(node));
        if (still) list_node(names, (*n)++, node);
        for (int i = 0; i < node->n_bodies; i++) list_still(node->bodies[i], op, all, names, n);
    }
}

static void note_still(Arena *scratch, const Graph *model, const Options *o) {
    Loc file = { .file = model->file, .node = -1 };
    Text norms, drops;
    int n_norms = 0, n_drops = 0;
    text_init(&norms, scratch);
    text_init(&drops, scratch);
    list_still(model, OP_BatchNorm, o->frozen_norm, &norms, &n_norms);
    list_still(model, OP_Dropout, o->no_dropout, &drops, &n_drops);
    if (n_norms)
        diag_note(&file,
            "batch normalization keeps its statistics, as in inference (%s); scale and shift are trained%s", norms.at,
            o->frozen_norm ? "" : "; only constants outside of branches and loops can run with the batches");
    if (n_drops) diag_note(&file, "dropout passes its input on, as in inference (%s)", drops.at);
}

// ---------------------------------------------------------------- parameters

static bool field_taken(const Training *t, const char *field) {
    for (int i = 0; i < t->params.n; i++) if (!strcmp(t->params.at[i].field, field)) return true;
    return false;
}

// p with a field of its own
static const char *add_parameter(Training *t, Arena *a, Parameter p) {
    const char *base = name_c(a, p.name && *p.name ? p.name : "weight");
    p.field = base;
    for (int i = 2; field_taken(t, p.field); i++) p.field = arena_printf(a, "%s_%d", base, i);
    p.name = p.name ? p.name : p.field;
    VEC_PUSH(a, t->params, p);
    return p.field;
}

// as: its kind
static void promote(Training *t, Graph *g, Value *v, Parameter as) {
    as.name = v->name;
    as.type = v->type;
    as.initial = v->data;
    v->name = add_parameter(t, g->arena, as);
    v->data = NULL;
    v->is_input = true;
    v->trainable = false;
    v->role = ROLE_PARAM;
    VEC_PUSH(g->arena, g->inputs, v);
}

// A parameter of 16 bits is kept in f32, for small steps would be lost in rounding, and rounded where it is used.
static bool promote_small(Training *t, Graph *g, Value *v, Parameter as) {
    Tensor *wide = tensor_new(g->arena, type_make(DT_F32, v->type.rank, v->type.dim));
    for (int64_t i = 0, n = type_count(&v->type); i < n; i++) tensor_set_f(wide, i, tensor_get_f(v->data, i));
    Value *own = graph_const(g, wide, v->name);
    promote(t, g, own, as);
    v->trainable = false;
    g->cursor = g->first;
    Value *rounded = b_cast(g, own, v->type.dtype);
    g->cursor = NULL;
    if (rounded) graph_replace(g, v, rounded);
    return rounded;
}

static bool promote_all(Training *t, Graph *model, const Uses *all) {
    bool ok = true, runs = false, trains = false;
    for (int i = 0; i < all->at.n && ok; i++) {
        const Use *u = &all->at.at[i];
        Parameter as = { .kind = PARAMETER_TRAINED, .group = all->groups[i] };
        if (u->v->is_input || u->n->in[u->i] != u->v) continue;      // another use has made it one
        if (use_is_running(all, u)) as = (Parameter){ .kind = PARAMETER_RUNNING, .keep = kept_of(all, u->v) };
        else if (use_is_statistic(u) || !u->v->trainable) continue;
        runs = runs || as.kind == PARAMETER_RUNNING;
        trains = trains || as.kind == PARAMETER_TRAINED;
        if (dtype_is_small_float(u->v->type.dtype)) ok = promote_small(t, model, u->v, as);
        else promote(t, model, u->v, as);
    }
    if (runs)
        t->runs = add_parameter(t, model->arena,
            (Parameter){ .name = "batches", .type = type_make(DT_F32, 0, NULL), .kind = PARAMETER_BATCHES });
    if (ok && !trains) diag_error(NULL, "the model has no float weights to train");
    return ok && trains;
}

bool parameters_part(Graph *model, const Options *o) {
    Arena *scratch = arena_new();
    Uses all = { .scratch = scratch, .frozen = o->frozen_norm || o->lora_rank };
    uses_find(&all, model, model);
    bool ok = untie_by_options(&all, model, o);
    if (ok) part_still(&all, model);
    if (ok) split_statistics(&all, model);
    arena_free(scratch);
    return ok;
}

bool parameters_make(Training *t, Graph *model, const Options *o) {
    Arena *scratch = arena_new();
    Uses all = { .scratch = scratch, .frozen = o->frozen_norm || o->lora_rank };
    uses_find(&all, model, model);
    bool ok = o->weights.n || untie_by_options(&all, model, o);          // for a file it has been done
    if (ok) part_still(&all, model);
    if (ok) split_statistics(&all, model);
    if (ok && !t->jvp) select_used(&all, model, losses_outputs(scratch, &t->losses, model));    // tangents: of all
    all.places = select_places(&all, model);
    ok = ok && select_learning(&all, model, o) && groups_find(t, &all);
    if (ok) part_still(&all, model);
    if (ok) {
        note_shared(&all, model);
        note_still(scratch, model, o);
    }
    if (ok) straight_through(model, t->jvp || t->input_gradients);
    ok = ok && promote_all(t, model, &all);
    arena_free(scratch);
    return ok;
}
