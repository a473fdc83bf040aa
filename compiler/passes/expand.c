// SPDX-License-Identifier: MIT OR Apache-2.0
// Composites become primitives. Contract: afterwards no node is a composite but those that the back end claims, or
// there are diagnostics. What is differentiated has all of them expanded that have no gradient of their own, and what
// its gradient leaves alone is recognised again behind it.
//
//   before   %1: f32[4] = Softmax(%0) {axis=0}
//   after    %2: f32[1] = ReduceMax(%0) {axes=[0], keepdims=1}
//            %3: f32[4] = Sub(%0, %2)
//            %4: f32[4] = Exp(%3) ...
//
// An expansion stands where its composite stood and is walked again, so composites may expand into composites.
#include "passes.h"

#define MAX_EXPANSIONS 10000000                 // of one graph; more means that two composites expand into each other

static void expand_node(Rewrite *r, Graph *g, Node *n) {
    Value **out = NEW_ARRAY(r->scratch, Value *, n->n_out);
    g->cursor = n;
    g->loc = n->loc;
    if (!op_table[n->op].expand(n, out)) return;
    for (int i = 0; i < n->n_out; i++) {
        if (!out[i]) bug("%s expands without output %d", op_table[n->op].name, i);
        rewrite_set(r, n->out[i], out[i]);
    }
    graph_remove(g, n);
}

// o: whose back end may claim composites; NULL: those with a gradient stay
static void expand_graph(Rewrite *r, Graph *g, const Options *o) {
    int expansions = 0;
    for (Node *n = g->first, *next; n; n = next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) expand_graph(r, n->bodies[i], o);
        next = n->next;
        if (op_table[n->op].kind != KIND_COMPOSITE) continue;
        if (o ? o->machine.backend->claims(n, o) : op_has_gradient(n->op)) continue;
        if (++expansions > MAX_EXPANSIONS) bug("composites expand without end: %s", op_table[n->op].name);
        Node *before = n->prev;
        int errors = diag_errors();
        expand_node(r, g, n);
        if (diag_errors() == errors) next = before ? before->next : g->first;
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

static bool expand(Graph *g, const Options *o) {
    Rewrite r = { .scratch = arena_new() };
    expand_graph(&r, g, o);
    arena_free(r.scratch);
    return r.changed;
}

bool pass_expand(Graph *g, const Options *o) { return expand(g, o); }

// Before differentiation.
bool pass_expand_all(Graph *g) { return expand(g, NULL); }
