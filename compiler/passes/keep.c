// SPDX-License-Identifier: MIT OR Apache-2.0
// For `burncc verify --trace`: what every node of the imported graph computes becomes an output behind the model's own,
// named %ID; and with KEEP_ALONE every node takes what other nodes compute from an input of that name.
//
//   before              %1: f32[4] = Exp(%0)      %2: f32[4] = Neg(%1)       return %2
//   after, KEEP_NODES   %1: f32[4] = Exp(%0)      %2: f32[4] = Neg(%1)       return %2, %1, %2
//   after, KEEP_ALONE   %1: f32[4] = Exp(%0)      %2: f32[4] = Neg(%3)       return %2, %1, %2      (%3 "%1": an input)
//
// A node is one of the model's: what the importer made of it, told by its place, stays together. What only depends on
// constants is computed by the compiler and is no value of the program; and what has a size that the run finds out
// stays where it is.
#include "passes.h"

#include <stdio.h>

static bool is_computed(Value *v) { return v && v->def && v->type.dtype != DT_NONE && !value_const(v); }

// Does v go from one node of the model's to another?
static bool crosses(const Value *v, const Node *to) { return v->def->loc != to->loc || !to->loc; }

static bool is_measured(Graph *g, const Type *t) {
    int n;
    const Symbol *all = graph_symbols(g, &n);
    for (int i = 0; i < n; i++)
        if (all[i].from && type_uses(g, t, i)) return true;
    return false;
}

typedef struct Keeper {
    Graph *root;
    bool *kept;                                         // by value id: goes to another node or is an output
    Value **cut;                                        // by value id: the input that stands for it
    int count;
    bool alone;
} Keeper;

// In g, the root or a body inside `user`, a node of the root.
static void visit(Keeper *k, Graph *g, const Node *user);

static Value *visit_use(Keeper *k, Value *v, const Node *user) {
    if (!v || v->graph != k->root || v->id >= k->count || !is_computed(v) || !crosses(v, user)) return v;
    k->kept[v->id] = true;
    if (!k->alone || is_measured(k->root, &v->type)) return v;
    if (!k->cut[v->id]) {
        char name[16];
        snprintf(name, sizeof name, "%%%d", v->id);
        k->cut[v->id] = graph_input(k->root, name, v->type);
    }
    return k->cut[v->id];
}

static void visit(Keeper *k, Graph *g, const Node *user) {
    for (Node *n = g->first; n; n = n->next) {
        const Node *of = user ? user : n;
        for (int i = 0; i < n->n_in; i++) n->in[i] = visit_use(k, n->in[i], of);
        for (int i = 0; i < n->n_bodies; i++) {
            Graph *body = n->bodies[i];
            visit(k, body, of);
            for (int o = 0; o < body->outputs.n; o++) body->outputs.at[o] = visit_use(k, body->outputs.at[o], of);
        }
    }
}

void keep_values(Graph *g, Keep how) {
    Arena *scratch = arena_new();
    Keeper k = { .root = g, .count = g->value_count, .alone = how == KEEP_ALONE };
    k.kept = NEW_ARRAY(scratch, bool, k.count);
    k.cut = NEW_ARRAY(scratch, Value *, k.count);
    for (int i = 0; i < g->outputs.n; i++)
        if (is_computed(g->outputs.at[i])) k.kept[g->outputs.at[i]->id] = true;
    visit(&k, g, NULL);
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (k.kept[n->out[i]->id]) graph_output(g, n->out[i], arena_printf(scratch, "%%%d", n->out[i]->id));
    arena_free(scratch);
}
