// SPDX-License-Identifier: MIT OR Apache-2.0
// Which concatenations are columns of a larger one. In: the graph and who uses its values. Out: ValuePlan.home of
// those: the value whose rows theirs are the pieces of, so that nobody copies them.
//
//   %4: f32[1,9,9,96] = Concat(%1, %2)      stored in columns 0..95 of %7, by the kernels that compute %1 and %2
//   %5: f32[1,9,9,96] = Relu(%4)            reads them there
//   %7: f32[1,9,9,128] = Concat(%4, %6)     stores %6's columns and is complete
//
// Whoever reads such a value must take its elements one by one, at any strides: a loop, a product, a convolution; not
// a function that is called with a whole tensor.
#include "schedule.h"

#include <string.h>

static bool along_rows(const Node *n) {
    const Type *t = &n->out[0]->type;
    return n->op == OP_Concat && t->rank > 1 && node_int(n, "axis", 0) == t->rank - 1;
}

// Does a concatenation of rows that lie apart read v by its elements alone, and only once?
static bool reads_apart(const Node *n, const Value *v) {
    int times = 0;
    if (op_table[n->op].form == FORM_SCATTER || n->n_bodies || op_is_called(n->op)) return false;
    for (int i = 0; i < n->n_in; i++) times += n->in[i] == v;
    return n->op != OP_Concat || (along_rows(n) && times == 1);
}

static bool is_apart(const Graph *g, const Value *v) {
    bool rows = false;
    if (!v->def || v->data || v->graph != g || !along_rows(v->def) || type_count_upper(g, &v->type) < 1) return false;
    // a single row is a run of the larger one's: fuse.c
    for (int i = 0; i < v->type.rank - 1; i++) rows = rows || v->type.dim[i] != 1;
    for (int i = 0; i < g->outputs.n; i++) rows = rows && g->outputs.at[i] != v;
    return rows;
}

void concat_homes(Plan *p, const ConcatUsers *users) {
    Graph *g = p->graph;
    if (!p->options->machine.backend->columns || p->options->no_fuse) return;
    VEC(Node *) all = { 0 };
    for (Node *n = g->first; n; n = n->next)
        if (along_rows(n)) VEC_PUSH(p->arena, all, n);
    for (int i = all.n - 1; i >= 0; i--) {              // the largest first: it is the home of what lies in those
        Value *whole = all.at[i]->out[0];
        const ValuePlan of = plan_value(p, whole);
        Dim at = 0;
        if (users[whole->id].n == 0) continue;
        for (int j = 0; j < all.at[i]->n_in; j++) {
            Value *part = all.at[i]->in[j];
            const ConcatUsers *u = &users[part->id];
            bool fits = is_apart(g, part) && !plan_value(p, part).home;
            for (int k = 0; k < u->n && fits; k++) fits = u->at[k] && reads_apart(u->at[k], part);
            if (fits) plan_set_home(p, part, of.home ? of.home : whole, of.home ? dim_add(g, of.home_at, at) : at);
            at = dim_add(g, at, part->type.dim[part->type.rank - 1]);
        }
    }
}
