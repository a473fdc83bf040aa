// SPDX-License-Identifier: MIT OR Apache-2.0
// Constant folding: nodes whose operands are all constants are computed by the evaluators and become constants.
//
//   before   %1 = const f32[2] {1.0, 2.0}
//            %2: f32[2] = Neg(%1)
//   after    %3 = const f32[2] {-1.0, -2.0}
//
// Results that are much larger than their operands (an Expand, an Iota) stay: views and coordinates cost nothing in a
// fused kernel, while their elements would cost memory. value_const has limits of its own for what nobody should
// compute at all.
#include "passes.h"

#define SMALL_BYTES ((int64_t)64 << 10)         // always folded
#define RELEASE_BYTES ((int64_t)16 << 20)       // folded since constants were released
#define GROWTH 2                                // larger results: at most this many times their operands

static bool worth_folding(const Node *n) {
    int64_t in = 0, out = 0;
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        if (!n->in[i]->data && n->op != OP_Shape) return false;
        in += type_is_static(&n->in[i]->type) ? type_bytes(&n->in[i]->type) : 0;
    }
    for (int i = 0; i < n->n_out; i++) {
        if (!type_is_static(&n->out[i]->type)) return false;
        out += type_bytes(&n->out[i]->type);
    }
    return out <= SMALL_BYTES || out / GROWTH <= in;
}

static void rewrite_all(const Rewrite *r, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) rewrite_all(r, n->bodies[i]);
    }
    rewrite_outputs(r, g);
}

// The operands of what has been folded go before there is a second copy of all weights.
static void release(const Rewrite *r, Graph *root, int64_t *since) {
    rewrite_all(r, root);
    graph_release(root);
    *since = 0;
}

static void fold_graph(Rewrite *r, Graph *g, int64_t *since) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) fold_graph(r, n->bodies[i], since);
        if (n->n_out == 0 || !worth_folding(n) || !value_const(n->out[0])) continue;
        for (int i = 0; i < n->n_out; i++) {
            rewrite_set(r, n->out[i], graph_const(g, value_const(n->out[i]), n->out[i]->name));
            *since += type_bytes(&n->out[i]->type);
        }
        graph_remove(g, n);
        if (*since > RELEASE_BYTES) release(r, graph_root(g), since);
    }
    rewrite_outputs(r, g);
}

bool pass_fold(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    int64_t folded = 0;
    fold_graph(&r, g, &folded);
    arena_free(r.scratch);
    return r.changed;
}
