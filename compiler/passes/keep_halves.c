// SPDX-License-Identifier: MIT OR Apache-2.0
// --train --precision: what is kept from the forward to the backward pass is kept in 16 bits.
//
//   before   %3: f32[8,64] = MatMul(%0, %1)            forward, stored
//            %9: f32[8,64] = Map(%8, %3)               backward
//   after    %3: f32[8,64] = MatMul(%0, %1)
//            %20: bf16[8,64] = Cast(%3)
//            %21: bf16[8,64] = Identity(%20) {stored=1}
//            ...
//            %22: f32[8,64] = Cast(%21)
//            %9: f32[8,64] = Map(%8, %22)
//
// In: a graph behind all passes, with a backward part, and which values a plan of it has stored. Out: the backward
// part reads roundings of these, and computes again from them what the plan did not store. The forward part reads what
// it computed, so the loss is that of f32, and its values need no more memory than inference's. Nothing here asks what
// the graph is compiled for.
//
// f32 stays what is read by anything but scalar expressions, views, sums and products, or compared for equality: an
// extreme would not be found again among roundings. So do small values, which are not worth a kernel.
#include "passes.h"

#include "ir/expr.h"

enum { LEAST = 1024 };                                  // elements of what becomes 16 bits

typedef struct Halves {
    Graph *g;
    DType to;
    StoredFn *stored; void *context;
    bool *exact;                                        // by value id: the backward part has to see it as it is
    Value **seen;                                       // by value id: what the backward part reads in its place
    int count;                                          // of values that the two lists know
    bool changed;
} Halves;

static bool is_backward(const Node *n) { return n && n->loc && n->loc->backward; }

static bool compares(const Expr *e) {
    if (e->op == E_Eq || e->op == E_Ne) return dtype_is_float(e->a[0]->dtype);
    for (int i = 0; i < 3; i++)
        if (e->a[i] && compares(e->a[i])) return true;
    return false;
}

// May its operands be off by a rounding?
static bool bears_rounding(const Node *n) {
    if (n->n_bodies || n->n_out != 1 || !dtype_is_float(n->out[0]->type.dtype)) return false;
    if (op_is_map(n->op)) return n->op == OP_Cast || !compares(node_expr(n));
    return op_is_view(n->op) || op_table[n->op].form == FORM_CONTRACT || n->op == OP_ReduceSum
        || n->op == OP_ReduceSumSquare || n->op == OP_ReduceMean;
}

static void mark_body(Halves *h, const Graph *body) {
    for (int i = 0; i < body->outputs.n; i++) h->exact[body->outputs.at[i]->id] = true;
    for (const Node *n = body->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) h->exact[n->in[i]->id] = true;
        for (int i = 0; i < n->n_bodies; i++) mark_body(h, n->bodies[i]);
    }
}

static void mark_exact(Halves *h) {
    for (const Node *n = h->g->first; n; n = n->next) {
        for (int i = 0; i < n->n_bodies; i++) mark_body(h, n->bodies[i]);
        if (!is_backward(n) || bears_rounding(n)) continue;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) h->exact[n->in[i]->id] = true;
    }
}

// Of a stored value, before its first reader in the backward part.
static Value *rounded(Halves *h, Value *v) {
    Node *at = h->g->cursor;
    h->g->cursor = v->def->next;
    Value *half = b_cast(h->g, v, h->to), *kept = half ? b_stored(h->g, half) : NULL;
    h->g->cursor = at;
    Value *wide = kept ? b_cast(h->g, kept, DT_F32) : NULL;
    if (!wide) bug("%s cannot be rounded", op_table[v->def->op].name);
    h->changed = true;
    return wide;
}

// v as the backward part sees it; the cursor is where it is read first.
static Value *seen(Halves *h, Value *v) {
    Node *n = v ? v->def : NULL;
    if (!n || v->id >= h->count || v->graph != h->g || is_backward(n) || h->exact[v->id]) return v;
    if (h->seen[v->id]) return h->seen[v->id];
    Value *now = v;
    if (h->stored(h->context, v)) {
        if (v->type.dtype == DT_F32 && type_count_upper(h->g, &v->type) >= LEAST) now = rounded(h, v);
    } else if (bears_rounding(n)) {
        Value **in = NEW_ARRAY(h->g->arena, Value *, n->n_in + 1);
        bool other = false;
        for (int i = 0; i < n->n_in; i++) {
            in[i] = seen(h, n->in[i]);
            other = other || in[i] != n->in[i];
        }
        if (other) now = b_finish(node_like(h->g, n, in));
    }
    return h->seen[v->id] = now;
}

bool keep_halves(Graph *g, DType to, StoredFn *stored, void *context) {
    Arena *scratch = arena_new();
    Halves h = { .g = g, .to = to, .stored = stored, .context = context, .count = graph_root(g)->value_count };
    h.exact = NEW_ARRAY(scratch, bool, h.count);
    h.seen = NEW_ARRAY(scratch, Value *, h.count);
    mark_exact(&h);
    for (Node *n = g->first; n; n = n->next) {
        if (!is_backward(n) || !bears_rounding(n)) continue;
        g->cursor = n;
        g->loc = n->loc;
        for (int i = 0; i < n->n_in; i++) n->in[i] = seen(&h, n->in[i]);
    }
    g->cursor = NULL;
    g->loc = NULL;
    arena_free(scratch);
    return h.changed;
}
