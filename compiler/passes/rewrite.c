// SPDX-License-Identifier: MIT OR Apache-2.0
// What passes share: replacing values while walking a graph once, and small questions about constants and attributes
// (passes.h says what each function promises).
#include "passes.h"

#include <string.h>

void rewrite_set(Rewrite *r, Value *old, Value *with) {
    if (old == with) bug("%%%d replaced by itself", old->id);
    while (r->to.n <= old->id) VEC_PUSH(r->scratch, r->to, NULL);
    r->to.at[old->id] = with;
    r->changed = true;
    if (!with->name && !with->is_input) with->name = old->name;
    int n;
    Symbol *all = graph_symbols(old->graph, &n);
    for (int i = 0; i < n; i++)
        if (all[i].from == old) all[i].from = rewrite_get(r, with);
}

Value *rewrite_get(const Rewrite *r, Value *v) {
    while (v && v->id < r->to.n && r->to.at[v->id]) v = r->to.at[v->id];
    return v;
}

void rewrite_operands(const Rewrite *r, Node *n) {
    for (int i = 0; i < n->n_in; i++) n->in[i] = rewrite_get(r, n->in[i]);
}

void rewrite_outputs(const Rewrite *r, Graph *g) {
    for (int i = 0; i < g->outputs.n; i++) g->outputs.at[i] = rewrite_get(r, g->outputs.at[i]);
}

Node *node_like(Graph *g, const Node *n, Value *const *in) {
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && !in[i]) return NULL;
    Node *m = graph_node(g, n->op, n->n_in, in, n->n_out);
    m->attrs = arena_copy(g->arena, n->attrs, sizeof(Attr) * (size_t)n->n_attrs);
    m->n_attrs = n->n_attrs;
    m->expr = n->expr;
    return m;
}

bool all_ints(const Node *n, const char *name, int64_t is) {
    int count;
    const int64_t *v = node_ints(n, name, &count);
    for (int i = 0; i < count; i++)
        if (v[i] != is) return false;
    return true;
}

bool const_splat(const Value *v, double *number) {
    if (!v || !v->data || (!dtype_is_float(v->type.dtype) && !dtype_is_int(v->type.dtype) && v->type.dtype != DT_BOOL))
        return false;
    size_t size = dtype_size(v->type.dtype), bytes = (size_t)type_bytes(&v->type);
    const char *p = v->data->data;
    if (!bytes || memcmp(p, p + size, bytes - size)) return false;
    *number = tensor_get_f(v->data, 0);
    return true;
}

bool has_gradient(const Graph *g) {
    for (const Node *n = g->first; n; n = n->next) {
        if (n->op == OP_Gradient || n->op == OP_Tangent) return true;
        for (int i = 0; i < n->n_bodies; i++)
            if (has_gradient(n->bodies[i])) return true;
    }
    return false;
}

static void find_users(const Graph *g, Node **user) {
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->graph == g) user[n->in[i]->id] = n;
        for (int i = 0; i < n->n_bodies; i++) find_users(n->bodies[i], user);
    }
}

Node **value_users(Graph *g, Arena *scratch) {
    Node **user = NEW_ARRAY(scratch, Node *, graph_root(g)->value_count);
    find_users(g, user);
    return user;
}
