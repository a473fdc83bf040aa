// SPDX-License-Identifier: MIT OR Apache-2.0
// Operations of a description's own: an expression of C for each element, or a Custom node with kernels, a formula and
// a gradient (ops/custom.c).
//
// The functions that say shapes, a formula and a gradient are called at once. The latter two describe bodies, graphs
// whose inputs are what they are given: they make no parameters and see no tensors of the model around them. What a
// gradient is made of has no gradient of its own described, as it may be the same operation again.
#include "import/describe/describe.h"

#include <string.h>

enum { MAX_RESULTS = 16 };

// What custom() is describing. in_gradient: within a gradient, whose own gradients nobody asks for
typedef struct Making {
    Graph *outer;
    bool says_shape, in_gradient;
    int n; Type type[MAX_RESULTS];
} Making;
static Making *making;

static const char *kind_of(const Making *m) { return m->in_gradient ? "a gradient" : "a formula"; }

bool of_model(const Graph *g, const char *what) {
    return !g->parent || graph_fail(g, "%s makes no %s; give it as an input", kind_of(making), what);
}

// ---------------------------------------------------------------- an expression
burn_value *language_formula(const burn_place *at, const char *text, int n, const burn_arg *args) {
    static const char *const names[] = { "x", "y", "z" };
    Graph *g = here(at, NULL);
    Value *in[COUNT(names)];
    Expr *bound[COUNT(names)];
    const char *error = NULL;
    if (!operands(g, n, args, in)) return NULL;
    for (int i = 0; i < n; i++) bound[i] = expr_arg(g->exprs, i, in[i]->type.dtype);
    Expr *e = expr_parse(g->exprs, text, n, names, bound, DT_NONE, &error);
    if (!e) return graph_fail(g, "\"%s\": %s", text, error);
    Node *node = graph_node(g, OP_Map, n, in, 1);
    node->expr = e;
    return b_finish(node);
}

// ---------------------------------------------------------------- results
static void add_result(Graph *g, const Type *t) {
    Making *m = making;
    if (!m || !m->says_shape) graph_fail(g, "a result is said in a function .shape of custom()");
    else if (m->n == MAX_RESULTS) graph_fail(g, "a custom operation has at most %d results", MAX_RESULTS);
    else m->type[m->n++] = *t;
}

void language_result(const burn_place *at, int dtype, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Type t;
    if (type_in(g, dtype, rank, dims, &t)) add_result(g, &t);
}

void language_result_like(const burn_place *at, burn_value *x) {
    Graph *g = here(at, NULL);
    if (x) add_result(g, &x->type);
}

// ---------------------------------------------------------------- bodies
static void inputs_like(Graph *body, int n, Value *const *like, Value **to) {
    for (int i = 0; i < n; i++) to[i] = graph_input(body, NULL, like[i]->type);
}

static bool inside(const Graph *g, const Graph *body) {
    while (g && g != body) g = g->parent;
    return g == body;
}

// Does it use what it makes and is given, and nothing else?
static bool closed(const Graph *g, const Graph *body) {
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && !n->in[i]->data && !inside(n->in[i]->graph, body)) return false;
        for (int i = 0; i < n->n_bodies; i++)
            if (!closed(n->bodies[i], body)) return false;
    }
    for (int i = 0; i < g->outputs.n; i++)
        if (!g->outputs.at[i]->data && !inside(g->outputs.at[i]->graph, body)) return false;
    return true;
}

static Graph *body_begin(Making *m, Making **outer, const char *name, bool gradient) {
    Description *d = describing;
    *outer = making;
    *m = (Making){ .outer = d->g, .in_gradient = gradient || (making && making->in_gradient) };
    making = m;
    return d->g = graph_body(m->outer, name);
}

// Back where custom() was called; false: what is described is no body.
static bool body_end(const Making *m, Making *outer, const Loc *loc, const Graph *body) {
    describing->g = m->outer;
    m->outer->loc = loc;
    bool ok = closed(body, body);
    if (!ok) graph_fail(m->outer, "%s uses a tensor that it is not given; make it an input", kind_of(m));
    making = outer;
    return ok;
}

static Graph *formula_body(int n, Value *const *x, const struct burn_custom *o) {
    const Loc *loc = describing->g->loc;
    int errors = diag_errors();
    Making m, *outer;
    Value *in[MAX_RESULTS], *y[MAX_RESULTS + 1] = { NULL };
    Graph *body = body_begin(&m, &outer, "formula", false);
    inputs_like(body, n, x, in);
    o->formula(in, y);
    int results = 0;
    for (; results < MAX_RESULTS && y[results]; results++) graph_output(body, y[results], NULL);
    if (!body_end(&m, outer, loc, body) || diag_errors() != errors) return NULL;
    if (!results) return graph_fail(describing->g, "the formula gives no result: y[0] = ...");
    return body;
}

static Graph *gradient_body(const Node *n, const struct burn_custom *o) {
    const Loc *loc = describing->g->loc;
    int errors = diag_errors();
    Making m, *outer;
    Value *x[MAX_RESULTS], *y[MAX_RESULTS], *dy[MAX_RESULTS] = { NULL }, *dx[MAX_RESULTS] = { NULL };
    Graph *body = body_begin(&m, &outer, "gradient", true);
    inputs_like(body, n->n_in, n->in, x);
    inputs_like(body, n->n_out, n->out, y);
    for (int i = 0; i < n->n_out; i++)
        if (dtype_is_float(n->out[i]->type.dtype)) inputs_like(body, 1, &n->out[i], &dy[i]);
    o->gradient(x, y, dy, dx);
    for (int i = 0; i < n->n_in; i++)
        if (dx[i]) graph_output(body, dx[i], arena_printf(body->arena, "%d", i));
    return body_end(&m, outer, loc, body) && diag_errors() == errors ? body : NULL;
}

// ---------------------------------------------------------------- the node
// The results' types: what .shape says, else what the formula gives, else that of the first input.
static bool said_results(int n, Value *const *x, const struct burn_custom *o, const Graph *formula, Making *m) {
    Graph *g = describing->g;
    const Loc *loc = g->loc;
    int errors = diag_errors();
    Making *outer = making;
    *m = (Making){ .outer = g, .says_shape = true };
    making = m;
    if (o->shape) o->shape(x);
    else if (formula)
        for (int i = 0; i < formula->outputs.n; i++) m->type[m->n++] = formula->outputs.at[i]->type;
    else m->type[m->n++] = x[0]->type;
    making = outer;
    g->loc = loc;
    (void)n;
    if (!m->n && diag_errors() == errors) graph_fail(g, "its function .shape says no result: result(F32, 2, 3)");
    return diag_errors() == errors;
}

static void set_types(Node *n, const Making *m) {
    int64_t dtypes[MAX_RESULTS], ranks[MAX_RESULTS];
    Dim dims[MAX_RESULTS * MAX_RANK];
    int at = 0;
    for (int i = 0; i < m->n; i++) {
        dtypes[i] = m->type[i].dtype;
        ranks[i] = m->type[i].rank;
        for (int k = 0; k < m->type[i].rank; k++) dims[at++] = m->type[i].dim[k];
    }
    node_set_ints(n, "dtypes", dtypes, m->n);
    node_set_ints(n, "ranks", ranks, m->n);
    if (at) node_set_ints(n, "shape", dims, at);
}

static bool set_given(Node *n, const struct burn_custom *o) {
    const Graph *g = n->graph;
    Dim sizes[MAX_RESULTS], points;
    if (o->sizes.n > MAX_RESULTS || o->numbers.n > MAX_RESULTS)
        return graph_fail(g, "a kernel is given at most %d sizes and %d numbers", MAX_RESULTS, MAX_RESULTS);
    for (int i = 0; i < o->sizes.n; i++)
        if (!dim_in(o->sizes.at[i], "a size", &sizes[i])) return false;
    if (!dim_in(o->points, ".points", &points)) return false;
    if (o->sizes.n) node_set_ints(n, "sizes", sizes, o->sizes.n);
    if (o->numbers.n) node_set_floats(n, "numbers", o->numbers.at, o->numbers.n);
    if (o->points) node_set_ints(n, "trips", &points, 1);
    return true;
}

static void set_kernel(Node *n, const struct burn_kernel *k, const char *language) {
    Arena *a = n->graph->arena;
    int line;
    if (!k->text) return;
    const char *text = kernel_text(a, source_text(k->file), k, &line);
    node_set_string(n, language, text);
    node_set_string(n, arena_printf(a, "%s_params", language), k->parameters);
    if (!strcmp(language, "glsl") && n->loc && !strcmp(n->loc->file, k->file)) node_set_int(n, "glsl_line", line);
}

static bool set_bodies(Node *n, Graph *formula, const struct burn_custom *o) {
    n->bodies = NEW_ARRAY(n->graph->arena, Graph *, 2);
    if (formula) n->bodies[n->n_bodies++] = formula;
    if (!node_infer(n)) return false;
    if (!o->gradient || (making && making->in_gradient)) return true;
    Graph *gradient = gradient_body(n, o);
    if (gradient) n->bodies[n->n_bodies++] = gradient;
    return gradient && node_infer(n);
}

burn_value *language_custom(
    const burn_place *at, const char *name, int n, burn_value *const *x, const struct burn_custom *o) {
    Graph *g = here(at, name), *formula = NULL;
    Making m;
    for (int i = 0; i < n; i++)
        if (!x[i]) return NULL;
    if (n > MAX_RESULTS) return graph_fail(g, "a custom operation has at most %d inputs", MAX_RESULTS);
    if (!o->kernel.text && !o->glsl.text && !o->formula)
        return graph_fail(g, "it computes nothing: it wants .kernel, .glsl or .formula");
    if (o->formula && !(formula = formula_body(n, x, o))) return NULL;
    if (!said_results(n, x, o, formula, &m)) return NULL;
    Node *node = graph_node(g, OP_Custom, n, x, m.n);
    set_types(node, &m);
    set_kernel(node, &o->kernel, "c");
    set_kernel(node, &o->glsl, "glsl");
    if (!set_given(node, o) || !set_bodies(node, formula, o)) return NULL;
    for (int i = 0; o->results && i < m.n; i++) o->results[i] = node->out[i];
    return node->out[0];
}
