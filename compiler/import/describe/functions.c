// SPDX-License-Identifier: MIT OR Apache-2.0
// A description's functions, and what its caller keeps between runs.
//
// In: function("step") { ... }, state(...), state_set(...). Out: one graph with the inputs and outputs of all functions
// one after the other (ir/function.c takes them apart); a state is an input of ROLE_STATE, and its new value an output
// of that name. The idea: parameters and what is computed from them belong to the model, and everything that depends on
// an input to the function that has this input.
#include "import/describe/describe.h"

#include <string.h>

bool end_inside(Graph *g, const char *what) {
    const Description *d = describing;
    return d->part.name || !d->functions.n
        || graph_fail(g, "%s of a model with functions stands inside one of them", what);
}

static bool is_word(const char *s) { return name_is_plain(s) && !strchr(s, '.'); }

void language_function(const burn_place *at, const char *name) {
    Description *d = describing;
    Graph *g = here(at, NULL);
    if (!of_model(g, "function")) return;
    if (d->part.name) graph_fail(g, "a function stands in no other, here in \"%s\"", d->part.name);
    else if (!is_word(name)) graph_fail(g, "a function is called like one of C, not \"%s\"", name);
    else if (!d->functions.n && g->inputs.n + g->outputs.n)
        graph_fail(g, "the model has inputs and outputs outside of functions; they stand inside");
    for (int i = 0; i < d->functions.n; i++)
        if (!strcmp(d->functions.at[i].name, name)) graph_fail(g, "there is a function \"%s\" already", name);
    d->part = (FunctionPart){ .name = arena_strdup(d->arena, name), .loc = g->loc, .first = g->value_count,
        .inputs = g->inputs.n, .outputs = g->outputs.n, .before = g->last, .parameters = strmap_new(d->arena) };
}

// The name of the other function that a value belongs to; NULL: it is no other's.
static const char *owner(const Value *v) {
    const Description *d = describing;
    for (int i = 0; v && (v->def || v->is_input) && i < d->functions.n; i++)
        if (v->id >= d->functions.at[i].first && v->id < d->functions.at[i].end) return d->functions.at[i].name;
    return NULL;
}

static void check_owners(const FunctionPart *f) {
    static const char text[] = "uses a tensor of function \"%s\"; a function has what it computes from its own inputs";
    const Graph *g = describing->g;
    for (const Node *n = f->before ? f->before->next : g->first; n; n = n->next) {
        const char *other = NULL;
        for (int i = 0; i < n->n_in && !other; i++) other = owner(n->in[i]);
        if (other) diag_error(n->loc, text, other);
        if (other) return;
    }
    for (int i = f->outputs; i < g->outputs.n; i++)
        if (owner(g->outputs.at[i])) diag_error(f->loc, text, owner(g->outputs.at[i]));
}

void language_function_end(void) {
    Description *d = describing;
    Graph *g = d->g;
    FunctionPart f = d->part;
    if (!f.name) return;
    f.end = g->value_count;
    check_owners(&f);
    if (g->outputs.n == f.outputs && !diag_errors())
        diag_error(f.loc, "function \"%s\" has no output: output(\"name\", x)", f.name);
    VEC_PUSH(d->arena, d->functions, f);
    VEC_PUSH(g->arena, g->functions,
        (GraphFunction){ f.name, g->inputs.n - f.inputs, g->outputs.n - f.outputs });
    d->part = (FunctionPart){ .parameters = strmap_new(d->arena) };
}

void functions_check(const char *file) {
    const Description *d = describing;
    Loc at = { .file = file, .node = -1 };
    if (!d->g->outputs.n) diag_error(&at, "the model has no output: output(\"name\", x)");
    for (int i = 0; i < d->states.n; i++)
        if (!d->states.at[i].set)
            diag_error(d->states.at[i].loc, "state \"%s\" is never set: state_set(x, to)", d->states.at[i].name);
}

// ---------------------------------------------------------------- states

static DeclaredState *state_named(const char *name) {
    Description *d = describing;
    for (int i = 0; i < d->states.n; i++)
        if (!strcmp(d->states.at[i].name, name)) return &d->states.at[i];
    return NULL;
}

// Notes it, or finds the one of another function; false with a diagnostic.
static bool declare(Graph *g, const char *name, const Type *t) {
    Description *d = describing;
    const DeclaredState *other = state_named(name);
    const char *field = name_c(d->arena, name);
    if (!type_is_static(t)) return graph_fail(g, "its sizes must be numbers, not %s", type_text(d->arena, g, t));
    if (t->dtype == DT_STRING) return graph_fail(g, "strings are no state");
    for (int i = d->part.inputs; i < g->inputs.n; i++)
        if (!strcmp(g->inputs.at[i]->name, name))
            return graph_fail(g, "there is a state or input \"%s\" already", name);
    for (int i = 0; i < d->states.n && !other; i++)
        if (!strcmp(d->states.at[i].field, field))
            return graph_fail(g, "\"%s\" and \"%s\" are both %s in C", name, d->states.at[i].name, field);
    if (other && !type_equal(&other->type, t))
        return graph_fail(g, "\"%s\" is %s in another function, here %s", name,
            type_text(d->arena, g, &other->type), type_text(d->arena, g, t));
    if (other) return true;
    VEC_PUSH(d->arena, d->states, (DeclaredState){ .name = name, .field = field, .type = *t, .loc = g->loc });
    return true;
}

static Value *declared(Graph *g, const char *name, const Type *t) {
    if (!of_model(g, "state") || !end_inside(g, "a state") || !declare(g, name, t)) return NULL;
    Value *v = graph_input(g, name, *t);
    v->role = ROLE_STATE;
    return v;
}

burn_value *language_state(const burn_place *at, const char *name, int dtype, int rank, const burn_dim *dims) {
    Graph *g = here(at, name);
    Type t;
    return type_in(g, dtype, rank, dims, &t) ? declared(g, full_name(name), &t) : NULL;
}

static Value *set(Graph *g, Value *state, Value *x) {
    Description *d = describing;
    if (!x) return NULL;
    if (!state->is_input || state->role != ROLE_STATE || owner(state))
        return graph_fail(g, "wants what state() gave, and its new value");
    if (!type_equal(&state->type, &x->type))
        return graph_fail(g, "\"%s\" is %s and becomes no %s", state->name, shown(g, state), shown(g, x));
    for (int i = d->part.outputs; i < g->outputs.n; i++)
        if (!strcmp(g->output_names.at[i], state->name)) return graph_fail(g, "\"%s\" is set already", state->name);
    state_named(state->name)->set = true;
    graph_output(g, x, state->name);
    return x;
}

burn_value *language_state_set(const burn_place *at, burn_value *state, burn_value *x) {
    Graph *g = here(at, NULL);
    if (state) return set(g, state, x);
    return NULL;
}

burn_value *language_cached(const burn_place *at, burn_value *x, const char *name, int64_t axis, burn_dim capacity,
    burn_dim past) {
    Graph *g = here(at, name);
    Dim room, before;
    int i;
    if (!x || !axis_in(x, axis, &i) || !dim_in(capacity, "the capacity", &room) || !dim_in(past, "the past", &before))
        return NULL;
    Type t = x->type;
    t.dim[i] = room;
    Value *old = declared(g, full_name(name), &t);
    Value *all = old ? b_slice_scatter(g, old, x, i, before) : NULL;
    return all && set(g, old, all) ? b_part(g, all, i, 0, dim_add(g, before, x->type.dim[i])) : NULL;
}
