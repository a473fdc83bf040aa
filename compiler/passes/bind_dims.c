// SPDX-License-Identifier: MIT OR Apache-2.0
// Gives every dimension symbol its size or its bounds: contract: afterwards the dimensions of every type are
// constants or expressions of symbols that the running program knows (Symbol.runtime), or there are diagnostics.
//
//   before (--dim n=4)   graph g(%0: f32[n,3]) { %1: f32[3*n] = Reshape(%0) {shape=[3*n]} return %1 }
//   after                graph g(%0: f32[4,3]) { %1: f32[12] = Reshape(%0) {shape=[12]} return %1 }
//
// `--dim n=1..8`, or such bounds in a text, keep n as a size of the running program. Another symbol of an input that no
// option names has its usual size, which mostly is 1, with a note that names the option. A symbol that stands in no
// input and is not measured by the program must be named. The idea: pin the symbols, put constants for the expressions
// in input types and in the attributes that hold dimensions, and let the shape rules do the rest.
#include "passes.h"

#include <inttypes.h>
#include <string.h>

static Loc place_of(const Graph *g) { return (Loc){ .file = g->file, .node = -1 }; }

static const char *symbol_list(Graph *g) {
    Text t;
    int n;
    const Symbol *all = graph_symbols(g, &n);
    text_init(&t, g->arena);
    for (int i = 0; i < n; i++) text_printf(&t, "%s%s", i ? ", " : "", all[i].name);
    return n ? t.at : "none";
}

static void pin(Symbol *s, int64_t size) {
    s->lo = s->hi = size;
    s->pinned = true;
}

bool keeps_sizes(const Options *o) { return o->machine.backend->sizes; }

static void pin_by_options(Graph *g, const Options *o) {
    int n;
    Symbol *all = graph_symbols(g, &n);
    Loc loc = place_of(g);
    for (int k = 0; k < o->dims.n; k++) {
        const DimOption *d = &o->dims.at[k];
        int i = 0;
        while (i < n && strcmp(all[i].name, d->name)) i++;
        if (i == n) {
            diag_error_as(EXIT_USAGE, &loc, "--dim %s: the model has no such dimension; its dimensions: %s", d->name,
                symbol_list(g));
            continue;
        }
        if (d->lo != d->hi && keeps_sizes(o)) {
            all[i].lo = d->lo;
            all[i].hi = d->hi;
            all[i].runtime = true;
            continue;
        }
        if (d->lo != d->hi)
            diag_note(&loc, "this code has one size: dimension %s is %" PRId64, d->name, d->hi);
        pin(&all[i], d->hi);
    }
}

static void pin_by_default(Graph *g, const Options *o) {
    int n;
    Symbol *all = graph_symbols(g, &n);
    Loc loc = place_of(g);
    for (int i = 0; i < n; i++) {
        if (all[i].pinned || (all[i].runtime && (all[i].from || keeps_sizes(o)))) continue;
        bool in_input = false;
        for (int k = 0; k < g->inputs.n && !in_input; k++) in_input = type_uses(g, &g->inputs.at[k]->type, i);
        if (!in_input) continue;
        pin(&all[i], all[i].runtime ? all[i].hi : all[i].usual ? all[i].usual : 1);
        diag_note(&loc, "dimension %s is taken as %" PRId64 "; --dim %s=N gives it another size", all[i].name,
            all[i].hi, all[i].name);
    }
}

static void bind_type(const Graph *g, Type *t) {
    for (int i = 0; i < t->rank; i++) t->dim[i] = dim_bound(g, t->dim[i]);
}

static void bind_attr(Node *n, const char *name) {
    int count;
    const int64_t *old = node_ints(n, name, &count);
    if (!old) return;
    Dim *dims = NEW_ARRAY(n->graph->arena, Dim, count + 1);
    for (int i = 0; i < count; i++) dims[i] = dim_bound(n->graph, old[i]);
    node_set_ints(n, name, dims, count);
}

// A symbol of its dimensions that the running program will not know; NULL when there is none.
static const Symbol *unknown_size(Graph *g, const Type *t) {
    int count;
    const Symbol *all = graph_symbols(g, &count);
    for (int k = 0; k < count; k++)
        if (!all[k].runtime && type_uses(g, t, k)) return &all[k];
    return NULL;
}

static bool bind_graph(Graph *g);

static bool bind_node(Node *n) {
    bind_attr(n, "shape");
    bind_attr(n, "starts");
    bind_attr(n, "sizes");
    bind_attr(n, "trips");
    for (int i = 0; i < n->n_bodies; i++)
        if (!bind_graph(n->bodies[i])) return false;
    if (!node_infer(n)) return false;
    for (int i = 0; i < n->n_out; i++) {
        Type *t = &n->out[i]->type;
        bind_type(n->graph, t);
        const Symbol *s = unknown_size(n->graph, t);
        if (!s) continue;
        const char *type = type_text(n->graph->arena, n->graph, t);
        if (s->from)
            diag_error(n->loc,
                "the size %s of its result %s is only known to the running program; --dim %s=N fixes it, --target "
                "generic measures it",
                s->name, type, s->name);
        else diag_error(n->loc, "the size of its result is not known while compiling: %s; --dim NAME=N fixes it", type);
        return false;
    }
    return true;
}

// A size to be measured in what turns out to be a constant is one.
static bool pin_measured(const Node *n) {
    int count;
    Symbol *all = graph_symbols(n->graph, &count);
    for (int i = 0; i < count; i++) {
        Symbol *s = &all[i];
        Tensor *t = s->from && s->from->def == n && !s->pinned ? value_const(s->from) : NULL;
        if (!t) continue;
        int64_t size = tensor_get_i(t, s->at);
        if (size < s->lo || size > s->hi) {
            diag_error(n->loc, "dimension %s is %" PRId64 ", outside its bounds %" PRId64 "..%" PRId64, s->name, size,
                s->lo, s->hi);
            return false;
        }
        pin(s, size);
    }
    return true;
}

// What follows a node without a type cannot be judged, so the first fault of each graph ends its walk.
static bool bind_graph(Graph *g) {
    for (int i = 0; i < g->inputs.n; i++) {
        Type *t = &g->inputs.at[i]->type;
        bind_type(g, t);
        if (!type_too_large(t)) continue;
        Loc loc = place_of(graph_root(g));
        diag_error_as(EXIT_LIMIT, &loc, "input %d is too large: %s; a tensor may have %lld GiB", i,
            type_text(g->arena, g, t), (long long)(MAX_TENSOR_BYTES >> 30));
        return false;
    }
    for (Node *n = g->first; n; n = n->next)
        if (!bind_node(n) || !pin_measured(n)) return false;
    return true;
}

static int pinned_sizes(Graph *g) {
    int count, pinned = 0;
    const Symbol *all = graph_symbols(g, &count);
    for (int i = 0; i < count; i++) pinned += all[i].pinned;
    return pinned;
}

// A size that turns out to be a constant may stand in nodes before the one that it is measured in.
static bool bind_all(Graph *g) {
    int before;
    do {
        before = pinned_sizes(g);
        if (!bind_graph(g)) return false;
    } while (pinned_sizes(g) != before);
    return true;
}

// The bounds of measured sizes follow from those of the sizes before them. Programs whose sizes are fixed measure none.
static void bound_measured(Graph *g, const Options *o) {
    int n;
    Symbol *all = graph_symbols(g, &n);
    for (int i = 0; i < n; i++) {
        if (all[i].from && !keeps_sizes(o)) all[i].runtime = false;
        int64_t most = all[i].from ? dim_upper(g, all[i].limit) : INT64_MAX;
        if (most < all[i].hi) all[i].hi = most > all[i].lo ? most : all[i].lo;
    }
}

// The symbol that d = coef*symbol + rest is made of; NULL when d is another expression.
static Symbol *lone_symbol(Graph *g, Dim d, int64_t *coef, int64_t *rest) {
    int64_t coefs[2];
    Dim mono[2];
    int count = dim_terms(g, d, 2, coefs, mono);
    if (!count || (count == 2 && mono[1] != 1)) return NULL;
    *coef = coefs[0];
    *rest = count == 2 ? coefs[1] : 0;
    return dim_as_symbol(g, mono[0]);
}

// A size of the running program that must be equal to a constant is that constant.
static bool pin_required(Graph *g) {
    bool any = false;
    for (int i = 0; i < g->required.n; i++) {
        Dim a = dim_bound(g, g->required.at[i].a), b = dim_bound(g, g->required.at[i].b), of = dim_is_const(a) ? b : a;
        int64_t coef, rest, size = dim_is_const(a) ? a : b;
        if (dim_is_const(a) == dim_is_const(b)) continue;
        Symbol *s = lone_symbol(g, of, &coef, &rest);
        if (!s || __builtin_sub_overflow(size, rest, &size) || size % coef) continue;
        size /= coef;
        if (size < s->lo || size > s->hi) continue;
        s->lo = s->hi = size;
        any = true;
    }
    return any;
}

static void forget_required(Graph *g) {
    g->required.n = 0;
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_bodies; i++) forget_required(n->bodies[i]);
}

// Says anew which sizes must agree: nodes that are gone ask for nothing.
bool bind_required(Graph *g) {
    do {
        forget_required(g);
        if (!bind_all(g)) return false;
    } while (pin_required(g));
    return true;
}

// Gives the sizes that the options name and leaves the others to whoever runs what becomes of the graph.
bool bind_given(Graph *g, const Options *o) {
    int n, errors = diag_errors();
    Symbol *all = graph_symbols(g, &n);
    pin_by_options(g, o);
    for (int i = 0; i < n; i++) all[i].runtime = all[i].runtime || !all[i].pinned;
    while (diag_errors() == errors && bind_all(g) && pin_required(g)) {}
    return diag_errors() == errors;
}

bool pass_bind_dims(Graph *g, const Options *o) {
    int n;
    graph_symbols(g, &n);
    if (!g->bound) pin_by_options(g, o);
    pin_by_default(g, o);
    bound_measured(g, o);
    g->bound = true;
    while (bind_all(g) && pin_required(g)) {}
    return n > 0;
}
