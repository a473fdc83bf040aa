// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory of constants that a pass has replaced. Folding makes new weights out of all weights, more than once: without
// this a compilation would hold every version of them to its end.
//
// In: a graph between two passes. Out: the bytes of large constants that nothing in it or in its bodies mentions are
// given back. Constants may share bytes, so what counts is whether an address that is in use lies among them.
#include "ir.h"

#include <stdlib.h>

typedef struct Used { Arena *scratch; VEC(uintptr_t) at; } Used;

static void use_tensor(Used *u, const Tensor *t) {
    if (t) VEC_PUSH(u->scratch, u->at, (uintptr_t)t->data);
}

static void use_value(Used *u, const Value *v) {
    if (!v) return;
    use_tensor(u, v->data);
    use_tensor(u, v->folded);
}

static void use_graph(Used *u, const Graph *g) {
    for (int i = 0; i < g->inputs.n; i++) use_value(u, g->inputs.at[i]);
    for (int i = 0; i < g->outputs.n; i++) use_value(u, g->outputs.at[i]);
    for (int i = 0; i < g->symbols.n; i++) use_value(u, g->symbols.at[i].from);
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) use_value(u, n->in[i]);
        for (int i = 0; i < n->n_out; i++) use_value(u, n->out[i]);
        for (int i = 0; i < n->n_attrs; i++) use_tensor(u, n->attrs[i].tensor);
        for (int i = 0; i < n->n_bodies; i++) use_graph(u, n->bodies[i]);
    }
}

static int by_address(const void *x, const void *y) {
    uintptr_t a = *(const uintptr_t *)x, b = *(const uintptr_t *)y;
    return (a > b) - (a < b);
}

static bool is_used(const Used *u, const Tensor *t) {
    uintptr_t from = (uintptr_t)t->data, to = from + (uintptr_t)type_bytes(&t->type);
    int low = 0, high = u->at.n;                        // the first address that is not below
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (u->at.at[mid] < from) low = mid + 1;
        else high = mid;
    }
    return low < u->at.n && u->at.at[low] < to;
}

void graph_release(Graph *g) {
    if (!g->large.n || g->shared) return;
    Used u = { .scratch = arena_new() };
    int kept = 0;
    use_graph(&u, g);
    if (u.at.n) qsort(u.at.at, (size_t)u.at.n, sizeof *u.at.at, by_address);
    for (int i = 0; i < g->large.n; i++) {
        Tensor *t = g->large.at[i];
        if (is_used(&u, t)) g->large.at[kept++] = t;
        else arena_release(g->arena, t->data);
    }
    g->large.n = kept;
    arena_free(u.scratch);
}
