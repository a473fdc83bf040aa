// SPDX-License-Identifier: MIT OR Apache-2.0
// Graphs: making, linking, replacing and copying nodes and values, their attributes.
//
// In: operations with operands. Out: a doubly linked list of nodes in topological order. The ideas: a value's id is
// unique among a graph and all its bodies, so an array indexed by id serves every walk; a value is an input, a
// constant (data) or a node's output (def) and never two of these.
#include "ir.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define LARGE_CONSTANT ((int64_t)64 << 10)      // bytes; smaller blocks of an arena are freed with it only

Graph *graph_root(const Graph *g) {
    while (g->parent) g = g->parent;
    return (Graph *)(uintptr_t)g;
}

Graph *graph_new(Arena *a, const char *name, const char *file) {
    Graph *g = NEW(a, Graph);
    g->arena = a;
    g->name = name ? arena_strdup(a, name) : "model";
    g->file = file ? arena_strdup(a, file) : NULL;
    g->exprs = expr_pool_new(a);
    g->folding = NEW(a, Folding);
    return g;
}

Graph *graph_body(Graph *parent, const char *name) {
    Graph *g = NEW(parent->arena, Graph);
    g->arena = parent->arena;
    g->name = name ? arena_strdup(g->arena, name) : "body";
    g->file = parent->file;
    g->parent = parent;
    g->exprs = parent->exprs;
    g->loc = parent->loc;
    g->value_count = graph_root(parent)->value_count;
    return g;
}

void *graph_fail(const Graph *g, const char *fmt, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    diag_error(g->loc, "%s", line);
    return NULL;
}

// ---- values

static const char *const role_names[ROLE_COUNT] = { "", "param", "grad", "tangent", "state", "value", "loss" };

const char *role_name(Role r) { return role_names[r]; }

bool role_parse(const char *s, Role *out) {
    int i = ROLE_PARAM;
    while (i < ROLE_COUNT && strcmp(s, role_names[i])) i++;
    *out = (Role)i;
    return i < ROLE_COUNT;
}

static Value *value_new(Graph *g, const char *name) {
    Graph *root = graph_root(g);
    Value *v = NEW(g->arena, Value);
    v->id = root->value_count++;
    for (Graph *around = g; around != root; around = around->parent) around->value_count = root->value_count;
    v->name = name && *name ? arena_strdup(g->arena, name) : NULL;
    v->graph = g;
    return v;
}

Value *graph_input(Graph *g, const char *name, Type t) {
    Value *v = value_new(g, name);
    v->type = t;
    v->is_input = true;
    VEC_PUSH(g->arena, g->inputs, v);
    return v;
}

void graph_output(Graph *g, Value *v, const char *name) {
    if (!v) bug("no value for output \"%s\"", name ? name : "");
    VEC_PUSH(g->arena, g->outputs, v);
    VEC_PUSH(g->arena, g->output_names, name ? arena_strdup(g->arena, name) : NULL);
}

Value *graph_const(Graph *g, Tensor *t, const char *name) {
    Value *v = value_new(g, name);
    v->type = t->type;
    v->data = t;
    if (type_is_static(&t->type) && type_bytes(&t->type) >= LARGE_CONSTANT) {
        Graph *root = graph_root(g);
        VEC_PUSH(root->arena, root->large, t);
    }
    return v;
}

Value *graph_const_again(Graph *g, const Value *v) {
    Value *same = value_new(g, v->name);
    same->type = v->type;
    same->data = v->data;
    return same;
}

// ---- nodes

static void node_link(Graph *g, Node *n) {      // before the cursor
    n->next = g->cursor;
    n->prev = g->cursor ? g->cursor->prev : g->last;
    if (n->prev) n->prev->next = n;
    else g->first = n;
    if (n->next) n->next->prev = n;
    else g->last = n;
}

Node *graph_node(Graph *g, Op op, int n_in, Value *const *in, int n_out) {
    Node *n = NEW(g->arena, Node);
    n->op = op;
    n->n_in = n_in;
    n->in = NEW_ARRAY(g->arena, Value *, n_in + 1);     // and a NULL: walks look at a first operand before they ask
    for (int i = 0; i < n_in; i++) n->in[i] = in[i];
    n->n_out = n_out;
    n->out = NEW_ARRAY(g->arena, Value *, n_out + 1);
    for (int i = 0; i < n_out; i++) {
        n->out[i] = value_new(g, NULL);
        n->out[i]->def = n;
        n->out[i]->def_out = i;
    }
    n->loc = g->loc ? g->loc : g->cursor ? g->cursor->loc : NULL;
    n->graph = g;
    node_link(g, n);
    return n;
}

Value *node_add_output(Node *n, int at) {
    Value **out = NEW_ARRAY(n->graph->arena, Value *, n->n_out + 1);
    for (int i = 0; i <= n->n_out; i++) {
        out[i] = i < at ? n->out[i] : i == at ? value_new(n->graph, NULL) : n->out[i - 1];
        out[i]->def = n;
        out[i]->def_out = i;
    }
    n->out = out;
    n->n_out++;
    return out[at];
}

static bool arity_check(const Node *n) {
    const OpInfo *info = &op_table[n->op];
    if (n->n_in < info->in_min || (info->in_max >= 0 && n->n_in > info->in_max)) {
        if (info->in_min == info->in_max)
            diag_error(n->loc, "%s takes %d inputs, here are %d", info->name, info->in_min, n->n_in);
        else if (info->in_max < 0)
            diag_error(n->loc, "%s takes at least %d inputs, here are %d", info->name, info->in_min, n->n_in);
        else
            diag_error(
                n->loc, "%s takes %d to %d inputs, here are %d", info->name, info->in_min, info->in_max, n->n_in);
        return false;
    }
    const int needed = info->in_max < 0 ? n->n_in : info->in_min;       // of a list, each one
    for (int i = n->op == OP_Loop ? 2 : 0; i < needed; i++)     // only Loop has optional operands in front
        if (!n->in[i]) {
            diag_error(n->loc, "%s needs its input %d", info->name, i);
            return false;
        }
    if (info->n_out >= 0 && n->n_out != info->n_out) bug("%s made with %d outputs", info->name, n->n_out);
    return true;
}

bool node_infer(Node *n) {
    if (n->op <= OP_NONE || n->op >= OP_COUNT) bug("operation %d", n->op);
    if (!arity_check(n) || !op_table[n->op].shape(n)) return false;
    for (int i = 0; i < n->n_out; i++) {
        const Type *t = &n->out[i]->type;
        for (int k = 0; k < t->rank; k++)       // a negative constant is an expression without symbols
            if (dim_upper(n->graph, t->dim[k]) < 0) {
                diag_error(n->loc, "output %d would have a negative dimension: %s", i,
                    type_text(n->graph->arena, n->graph, t));
                return false;
            }
        if (type_too_large(t)) {
            diag_error_as(EXIT_LIMIT, n->loc, "output %d is too large: %s; a tensor may have %lld GiB", i,
                type_text(n->graph->arena, n->graph, t), (long long)(MAX_TENSOR_BYTES >> 30));
            return false;
        }
    }
    return true;
}

void graph_remove(Graph *g, Node *n) {
    if (g->cursor == n) g->cursor = n->next;
    if (n->prev) n->prev->next = n->next;
    else g->first = n->next;
    if (n->next) n->next->prev = n->prev;
    else g->last = n->prev;
    n->prev = n->next = NULL;
}

void graph_replace(Graph *g, Value *old, Value *with) {
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == old) n->in[i] = with;
        for (int i = 0; i < n->n_bodies; i++) graph_replace(n->bodies[i], old, with);
    }
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] == old) g->outputs.at[i] = with;
    Graph *root = graph_root(g);
    for (int i = 0; i < root->symbols.n; i++)
        if (root->symbols.at[i].from == old) root->symbols.at[i].from = with;
}

static void count_uses(const Graph *g, int *uses) {
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) uses[n->in[i]->id]++;
        for (int i = 0; i < n->n_bodies; i++) count_uses(n->bodies[i], uses);
    }
    for (int i = 0; i < g->outputs.n; i++) uses[g->outputs.at[i]->id]++;
    for (int i = 0; !g->parent && i < g->symbols.n; i++)
        if (g->symbols.at[i].from) uses[g->symbols.at[i].from->id]++;
}

int *graph_use_counts(const Graph *g, Arena *scratch) {
    int *uses = NEW_ARRAY(scratch, int, graph_root(g)->value_count);
    count_uses(g, uses);
    return uses;
}

// ---- copies

typedef struct Cloner {
    // by the old id; values from around the graph stay as they are, and constants if share
    Value **to; int n;
    bool share;
    Arena *scratch;
    // by number: what an old symbol is in the copy; NULL while all are the same
    Dim *renamed; int n_symbols;
} Cloner;

static Dim renamed_symbol(void *cloner, int number) {
    const Cloner *c = cloner;
    return c->renamed[number];
}

// What is measured inside a copy beside its original is another size: types and attributes of the copy say so.
static void rename_sizes(Cloner *c, Node *copy) {
    static const char *const of_dims[] = { "shape", "starts", "sizes", "trips" };
    if (!c->renamed) return;
    for (size_t k = 0; k < COUNT(of_dims); k++) {
        int count;
        const int64_t *old = node_ints(copy, of_dims[k], &count);
        if (!old) continue;
        Dim *dims = NEW_ARRAY(c->scratch, Dim, count + 1);
        for (int i = 0; i < count; i++) dims[i] = dim_subst(copy->graph, old[i], renamed_symbol, c);
        node_set_ints(copy, of_dims[k], dims, count);
    }
    for (int i = 0; i < copy->n_out; i++) {
        Type *t = &copy->out[i]->type;
        for (int k = 0; k < t->rank; k++) t->dim[k] = dim_subst(copy->graph, t->dim[k], renamed_symbol, c);
    }
}

static void clone_sizes(Cloner *c, const Value *old, Value *v, Graph *to) {
    Graph *root = graph_root(to);
    for (int i = 0; i < c->n_symbols; i++) {
        const Symbol s = root->symbols.at[i];
        if (s.from != old) continue;
        if (!c->share) {
            root->symbols.at[i].from = v;
            continue;
        }
        if (!c->renamed) {
            c->renamed = NEW_ARRAY(c->scratch, Dim, c->n_symbols);
            for (int k = 0; k < c->n_symbols; k++) c->renamed[k] = dim_symbol(root, root->symbols.at[k].name);
        }
        c->renamed[i] = dim_measured(root, s.name, s.lo, s.hi, v, s.at);
    }
}

static Value *clone_value(Cloner *c, Graph *to, Value *v) {
    if (!v) return NULL;
    if (c->to[v->id]) return c->to[v->id];
    if ((!v->data && !v->draw) || c->share) return v;
    Value *copy = v->draw ? graph_drawn(to, v->name, v->type, v->draw) : graph_const(to, v->data, v->name);
    copy->role = v->role;
    copy->trainable = v->trainable;
    return c->to[v->id] = copy;
}

static void clone_nodes(Cloner *c, const Graph *from, Graph *to);

static void clone_node(Cloner *c, const Node *n, Graph *to) {
    Arena *a = to->arena;
    Value **in = NEW_ARRAY(a, Value *, n->n_in);
    for (int i = 0; i < n->n_in; i++) in[i] = clone_value(c, to, n->in[i]);
    Node *copy = graph_node(to, n->op, n->n_in, in, n->n_out);
    copy->loc = n->loc;
    copy->expr = n->expr;
    copy->n_attrs = n->n_attrs;
    copy->attrs = arena_copy(a, n->attrs, sizeof(Attr) * (size_t)n->n_attrs);
    for (int i = 0; i < n->n_out; i++) {
        Value *v = copy->out[i], *old = n->out[i];
        v->name = old->name;
        v->type = old->type;
        v->role = old->role;
        c->to[old->id] = v;
    }
    rename_sizes(c, copy);
    for (int i = 0; i < n->n_out; i++) clone_sizes(c, n->out[i], copy->out[i], to);
    copy->n_bodies = n->n_bodies;
    copy->bodies = NEW_ARRAY(a, Graph *, n->n_bodies);
    for (int i = 0; i < n->n_bodies; i++) {
        copy->bodies[i] = graph_body(to, n->bodies[i]->name);
        clone_nodes(c, n->bodies[i], copy->bodies[i]);
    }
}

static void clone_nodes(Cloner *c, const Graph *from, Graph *to) {
    for (int i = 0; i < from->inputs.n; i++) {
        Value *old = from->inputs.at[i], *v = graph_input(to, old->name, old->type);
        v->role = old->role;
        v->range = old->range;
        c->to[old->id] = v;
        clone_sizes(c, old, v, to);
    }
    for (const Node *n = from->first; n; n = n->next) clone_node(c, n, to);
    for (int i = 0; i < from->outputs.n; i++)
        graph_output(to, clone_value(c, to, from->outputs.at[i]), from->output_names.at[i]);
}

const Bundle *graph_bundle(const Graph *g, const char *name, bool output) {
    for (int i = 0; i < g->bundles.n; i++)
        if (g->bundles.at[i].output == output && !strcmp(g->bundles.at[i].name, name)) return &g->bundles.at[i];
    return NULL;
}

const QuantizedEnd *graph_quantized(const Graph *g, const char *name, bool output) {
    for (int i = 0; i < g->quantized.n; i++)
        if (g->quantized.at[i].output == output && !strcmp(g->quantized.at[i].name, name)) return &g->quantized.at[i];
    return NULL;
}

Graph *graph_clone(Graph *g, const char *name) {
    Graph *to;
    if (g->parent) to = graph_body(g->parent, name ? name : g->name);
    else {
        to = graph_new(g->arena, name ? name : g->name, g->file);
        to->exprs = g->exprs;
        to->folding = g->folding;
        to->shared = g->shared = true;
        to->loc = g->loc;
        to->bound = g->bound;
        to->dims = dims_clone(g->arena, g);
        for (int i = 0; i < g->bundles.n; i++) VEC_PUSH(g->arena, to->bundles, g->bundles.at[i]);
        for (int i = 0; i < g->functions.n; i++) VEC_PUSH(g->arena, to->functions, g->functions.at[i]);
        for (int i = 0; i < g->symbols.n; i++) VEC_PUSH(g->arena, to->symbols, g->symbols.at[i]);
        for (int i = 0; i < g->required.n; i++) VEC_PUSH(g->arena, to->required, g->required.at[i]);
    }
    Arena *scratch = arena_new();
    Cloner c = { .n = graph_root(g)->value_count, .n_symbols = graph_root(g)->symbols.n, .scratch = scratch };
    c.to = NEW_ARRAY(scratch, Value *, c.n);
    clone_nodes(&c, g, to);
    arena_free(scratch);
    return to;
}

void graph_inline(const Graph *body, Graph *to, Value *const *inputs, Value **outputs) {
    Arena *scratch = arena_new();
    Cloner c = {
        .n = graph_root(to)->value_count, .share = true, .n_symbols = graph_root(to)->symbols.n, .scratch = scratch
    };
    c.to = NEW_ARRAY(scratch, Value *, c.n);
    for (int i = 0; i < body->inputs.n; i++) c.to[body->inputs.at[i]->id] = inputs[i];
    for (const Node *n = body->first; n; n = n->next) clone_node(&c, n, to);
    for (int i = 0; i < body->outputs.n; i++) outputs[i] = clone_value(&c, to, body->outputs.at[i]);
    arena_free(scratch);
}

// ---- attributes

static Attr *attr_slot(Node *n, const char *name, AttrKind kind) {
    Arena *arena = n->graph->arena;
    int i = 0;
    while (i < n->n_attrs && strcmp(n->attrs[i].name, name)) i++;
    if (i == n->n_attrs) {
        Attr *grown = NEW_ARRAY(arena, Attr, n->n_attrs + 1);
        if (i) memcpy(grown, n->attrs, sizeof(Attr) * (size_t)i);
        n->attrs = grown;
        n->n_attrs++;
        name = arena_strdup(arena, name);
    } else name = n->attrs[i].name;
    n->attrs[i] = (Attr){ .name = name, .kind = kind };
    return &n->attrs[i];
}

bool attr_is_dtype(const char *name) { return !strcmp(name, "to") || !strcmp(name, "dtype"); }

void node_set_int(Node *n, const char *name, int64_t v) { attr_slot(n, name, ATTR_INT)->i = v; }
void node_set_float(Node *n, const char *name, double v) { attr_slot(n, name, ATTR_FLOAT)->f = v; }
void node_set_string(Node *n, const char *name, const char *v) {
    attr_slot(n, name, ATTR_STRING)->s = arena_strdup(n->graph->arena, v);
}
void node_set_tensor(Node *n, const char *name, Tensor *t) { attr_slot(n, name, ATTR_TENSOR)->tensor = t; }

void node_set_ints(Node *n, const char *name, const int64_t *v, int count) {
    // first: v may be this attribute's own
    const int64_t *copy = arena_copy(n->graph->arena, v, sizeof *v * (size_t)count);
    Attr *a = attr_slot(n, name, ATTR_INTS);
    a->n = count;
    a->ints = copy;
}

void node_set_floats(Node *n, const char *name, const double *v, int count) {
    const double *copy = arena_copy(n->graph->arena, v, sizeof *v * (size_t)count);
    Attr *a = attr_slot(n, name, ATTR_FLOATS);
    a->n = count;
    a->floats = copy;
}

const Attr *node_attr(const Node *n, const char *name) {
    for (int i = 0; i < n->n_attrs; i++)
        if (!strcmp(n->attrs[i].name, name)) return &n->attrs[i];
    return NULL;
}

int64_t node_int(const Node *n, const char *name, int64_t otherwise) {
    const Attr *a = node_attr(n, name);
    return a && a->kind == ATTR_INT ? a->i : otherwise;
}

double node_float(const Node *n, const char *name, double otherwise) {
    const Attr *a = node_attr(n, name);
    return !a ? otherwise : a->kind == ATTR_FLOAT ? a->f : a->kind == ATTR_INT ? (double)a->i : otherwise;
}

const char *node_string(const Node *n, const char *name, const char *otherwise) {
    const Attr *a = node_attr(n, name);
    return a && a->kind == ATTR_STRING ? a->s : otherwise;
}

const int64_t *node_ints(const Node *n, const char *name, int *count) {
    const Attr *a = node_attr(n, name);
    bool found = a && a->kind == ATTR_INTS;
    *count = found ? a->n : 0;
    return found ? a->ints : NULL;
}
