// SPDX-License-Identifier: MIT OR Apache-2.0
// The backward pass of an attention as one operation (passes/attention_grad.c makes it; a back end that has a kernel
// for it never stores the scores that it is computed from): shapes, and what it expands into.
#include "common.h"
#include "table.h"

bool expand_softmax_grad(Node *n, Value **out) {
    return expand_done(n, softmax_gradient(n->graph, n->in[0], n->in[1], n->in[0]->type.rank - 1), out);
}

const int64_t *attention_grad_perm(const Node *n, int which) {
    int count;
    return node_ints(n, arena_printf(n->graph->arena, "perm%d", which), &count);
}

double attention_grad_scale(const Node *n, int which) {
    return node_float(n, arena_printf(n->graph->arena, "scale%d", which), 1);
}

// A list perm0, perm1 or perm2 is an order of the axes, if it is there.
static bool order_fits(Node *n, int which, int rank) {
    const char *name = arena_printf(n->graph->arena, "perm%d", which);
    const int64_t *perm;
    unsigned seen = 0;
    if (!node_attr(n, name)) return true;
    if (!op_ints(n, name, rank, &perm)) return false;
    for (int i = 0; i < rank; i++)
        if (perm[i] >= 0 && perm[i] < rank) seen |= 1u << perm[i];
    if (seen == (1u << rank) - 1) return true;
    diag_error(n->loc, "attribute %s is no order of %d axes", name, rank);
    return false;
}

// ds and p [..,q,k], q [..,q,d], keys [..,d,k], dy [..,q,v]
static bool attention_grad_fits(Node *n) {
    static const struct { int operand, axis, of, of_axis; } equal[] = { { 1, 2, 0, 2 }, { 1, 1, 0, 1 }, { 2, 2, 0, 2 },
        { 3, 1, 0, 1 }, { 4, 2, 0, 2 } };               // axes counted from the last
    const int rank = n->in[0] ? n->in[0]->type.rank : 0;
    bool fits = rank >= 2;
    for (int i = 0; fits && i < n->n_in; i++) {
        fits = n->in[i] && n->in[i]->type.rank == rank && n->in[i]->type.dtype == n->in[0]->type.dtype
            && dtype_is_float(n->in[i]->type.dtype);
        for (int j = 0; fits && j < rank - 2; j++) fits = dims_agree(n, n->in[i]->type.dim[j], n->in[0]->type.dim[j]);
    }
    for (size_t i = 0; fits && i < COUNT(equal); i++)
        fits = dims_agree(n, n->in[equal[i].operand]->type.dim[rank - equal[i].axis],
            n->in[equal[i].of]->type.dim[rank - equal[i].of_axis]);
    if (!fits) diag_error(n->loc, "wants floats [..,q,k] twice, [..,q,d], [..,d,k] and [..,q,v]");
    return fits;
}

bool shape_attention_grad(Node *n) {
    if (!attention_grad_fits(n)) return false;
    for (int i = 0; i < n->n_out; i++)
        if (!order_fits(n, i, n->in[0]->type.rank)) return false;
    for (int i = 0; i < n->n_out; i++) {
        Type t = n->in[0]->type, to;
        const Type *of = &n->in[i == 0 ? 3 : i == 1 ? 2 : 4]->type;     // keys, q, dy
        const int64_t *perm = attention_grad_perm(n, i);
        if (i) t.dim[t.rank - 2] = t.dim[t.rank - 1];
        t.dim[t.rank - 1] = of->dim[of->rank - (i ? 1 : 2)];
        to = t;
        for (int j = 0; perm && j < t.rank; j++) to.dim[j] = t.dim[perm[j]];
        n->out[i]->type = to;
    }
    return true;
}

static Value *swapped(Graph *g, Value *x) { return b_swap(g, x, x->type.rank - 2, x->type.rank - 1); }

bool expand_attention_grad(Node *n, Value **out) {
    Graph *g = n->graph;
    Value *ds = n->in[0], *p = n->in[1], *q = n->in[2], *keys = n->in[3], *dy = n->in[4];
    out[0] = b_matmul(g, ds, swapped(g, keys));
    out[1] = b_matmul(g, swapped(g, ds), q);
    out[2] = b_matmul(g, swapped(g, p), dy);
    for (int i = 0; i < n->n_out; i++) {
        const int64_t *perm = attention_grad_perm(n, i);
        const double scale = attention_grad_scale(n, i);
        int to[MAX_RANK];
        if (!out[i]) return false;
        for (int j = 0; perm && j < out[i]->type.rank; j++) to[j] = (int)perm[j];
        if (scale != 1) out[i] = b_binary(g, OP_Mul, out[i], b_like(g, out[i], scale));
        if (perm) out[i] = b_transpose(g, out[i], to);
        if (!out[i]) return false;
    }
    return true;
}
