// SPDX-License-Identifier: MIT OR Apache-2.0
// Checks that a graph is one: run after every pass, so that a broken graph is caught where it breaks.
//
// In: a graph and the name of what ran before. Out: nothing, or a bug report naming the pass and the value. Checked:
// list links, every use after its definition and in scope, ids in range and unique, a value is exactly one of input,
// constant and result, arity, and that the shape rules give the types that stand there.
#include "ir.h"

typedef struct Checker {
    const char *after;
    Arena *scratch;
    const Value **seen;                         // by id
    bool *visible;                              // by id: may be used at this point
    int n;
} Checker;

static const char *op_of(const Node *n) { return n ? op_table[n->op].name : "the outputs"; }

static void check_use(const Checker *c, const Value *v, const Node *user) {
    if (v->id < 0 || v->id >= c->n)
        bug("after %s: %%%d used by %s has an id out of range", c->after, v->id, op_of(user));
    if (v->data || v->draw) {                   // constants may be used everywhere
        if (v->def || v->is_input) bug("after %s: constant %%%d is also something else", c->after, v->id);
        if (v->data && !type_equal(&v->type, &v->data->type))
            bug("after %s: constant %%%d and its data differ in type", c->after, v->id);
        if (c->seen[v->id] && c->seen[v->id] != v) bug("after %s: two values have the id %%%d", c->after, v->id);
        c->seen[v->id] = v;
        return;
    }
    if (c->seen[v->id] != v || !c->visible[v->id])
        bug("after %s: %s uses %%%d before its definition or out of its scope", c->after, op_of(user), v->id);
}

static void check_define(const Checker *c, const Value *v) {
    if (v->id < 0 || v->id >= c->n || c->seen[v->id])
        bug("after %s: %%%d is defined twice or out of range", c->after, v->id);
    if (v->data) bug("after %s: %%%d is a result or input and a constant", c->after, v->id);
    c->seen[v->id] = v;
    c->visible[v->id] = true;
}

static bool types_agree(const Type *a, const Type *b) {
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i] && dim_is_const(a->dim[i]) && dim_is_const(b->dim[i])) return false;
    return true;
}

static void check_types(const Checker *c, Node *n) {
    Type *old = NEW_ARRAY(c->scratch, Type, n->n_out);
    for (int i = 0; i < n->n_out; i++) old[i] = n->out[i]->type;
    if (!node_infer(n)) bug("after %s: %%%d = %s(...) is ill-typed", c->after, n->n_out ? n->out[0]->id : -1, op_of(n));
    for (int i = 0; i < n->n_out; i++) {
        if (!types_agree(&old[i], &n->out[i]->type))
            bug("after %s: %%%d of %s is %s but infers as %s", c->after, n->out[i]->id, op_of(n),
                type_text(c->scratch, n->graph, &old[i]), type_text(c->scratch, n->graph, &n->out[i]->type));
        n->out[i]->type = old[i];
    }
}

static void check_graph(const Checker *c, const Graph *g) {
    for (int i = 0; i < g->inputs.n; i++) check_define(c, g->inputs.at[i]);
    const Node *prev = NULL;
    for (Node *n = g->first; n; prev = n, n = n->next) {
        if (n->prev != prev || n->graph != g) bug("after %s: the list of nodes is broken at %s", c->after, op_of(n));
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) check_use(c, n->in[i], n);
        for (int i = 0; i < n->n_bodies; i++) {
            if (n->bodies[i]->parent != g) bug("after %s: body %d of %s has another parent", c->after, i, op_of(n));
            check_graph(c, n->bodies[i]);
        }
        check_types(c, n);
        for (int i = 0; i < n->n_out; i++) {
            if (n->out[i]->def != n || n->out[i]->def_out != i)
                bug("after %s: result %%%d of %s points elsewhere", c->after, n->out[i]->id, op_of(n));
            check_define(c, n->out[i]);
        }
    }
    if (g->last != prev) bug("after %s: the list of nodes does not end with its last", c->after);
    for (int i = 0; i < g->outputs.n; i++) check_use(c, g->outputs.at[i], NULL);
    for (const Node *n = g->first; n && g->parent; n = n->next)         // a body's values end with it
        for (int i = 0; i < n->n_out; i++) c->visible[n->out[i]->id] = false;
    for (int i = 0; i < g->inputs.n && g->parent; i++) c->visible[g->inputs.at[i]->id] = false;
}

bool graph_validate(const Graph *g, const char *after) {
    Checker c = { .after = after, .scratch = arena_new(), .n = g->value_count };
    c.seen = NEW_ARRAY(c.scratch, const Value *, c.n);
    c.visible = NEW_ARRAY(c.scratch, bool, c.n);
    check_graph(&c, g);
    arena_free(c.scratch);
    return true;
}
