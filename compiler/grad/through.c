// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients through QuantizeLinear and DequantizeLinear.
//
// In: a graph to train. Out: of each pair y = DequantizeLinear(QuantizeLinear(x)) the same numbers, with the gradient
// of a straight line: dy/dx = 1 where x is within the range of the integers, 0 where it is cut off (the
// straight-through estimator). Rounding's own gradient is 0 everywhere, so that nothing in front of it would learn.
//
//   before   q = clamp(round(x / s) + z, lo, hi)         y = (q - z) * s
//   after    t = x, without a gradient                   y = (clamp(round(t / s) + z, lo, hi) - z) * s + m * (x - t)
//            m = 1 where lo <= round(t / s) + z <= hi, else 0
//
// Scales and zero points are not trained. Where nothing in front of a pair learns (--train-last, --freeze), it stays
// what it is, and constants that do not learn are integers there: that part of the model computes on bytes, as in
// inference.
#include "grad/through.h"

#include "build/build.h"
#include "ir/expr.h"

static Value *stopped(Graph *g, Value *x) {
    Node *n = graph_node(g, OP_Identity, 1, &x, 1);
    node_set_int(n, "stop_gradient", 1);
    return b_finish(n);
}

static bool const_zero(Value *v) {
    const Tensor *t = value_const(v);
    for (int64_t i = 0, n = t ? type_count(&t->type) : 0; i < n; i++)
        if (tensor_get_f(t, i) != 0) return false;
    return t != NULL;
}

// Are both by the same numbers? Zeros may be there or not.
static bool same_numbers(Value *a, Value *b) {
    if (a && const_zero(a)) a = NULL;
    if (b && const_zero(b)) b = NULL;
    if (a == b) return true;
    const Tensor *x = a ? value_const(a) : NULL, *y = b ? value_const(b) : NULL;
    if (!x || !y || !type_equal(&x->type, &y->type)) return false;
    for (int64_t i = 0, n = type_count(&x->type); i < n; i++)
        if (tensor_get_f(x, i) != tensor_get_f(y, i)) return false;
    return true;
}

static Value *straight(Graph *g, Value *x, Quant by, DType d) {
    int64_t lo, hi;
    int_bounds(d, &lo, &hi);
    if (by.axis < 0) by.axis = 0;
    Value *s = b_spread(g, by.scale, x, by.axis, by.block), *t = stopped(g, x);
    Value *z = by.zero ? b_spread(g, b_cast(g, by.zero, DT_F32), x, by.axis, by.block) : b_scalar(g, DT_F32, 0);
    const char *q = "round(t / s) + z";
    const char *text = arena_printf(g->arena,
        "(min(max(%s, %lld), %lld) - z) * s + (%s < %lld ? 0 : %s > %lld ? 0 : x - t)", q, (long long)lo,
        (long long)hi, q, (long long)lo, q, (long long)hi);
    return b_map(g, text, "x t s z", 4, (Value *[]){ x, t, s, z });
}

// y = DequantizeLinear(QuantizeLinear(x)), where both are by the same numbers
typedef struct Pair { Value *x, *q; Quant by; } Pair;
static bool pair_read(const Node *n, Pair *p) {
    Quant back;
    if (!quant_read_back(n, &p->q, &back) || !p->q->def || !quant_read(p->q->def, &p->x, &p->by)) return false;
    return same_numbers(p->by.scale, back.scale) && p->by.axis == back.axis && p->by.block == back.block
        && same_numbers(p->by.zero, back.zero);
}

void straight_scales(Graph *g) {
    Pair p;
    for (Node *n = g->first; n; n = n->next)
        if (pair_read(n, &p)) p.by.scale->trainable = false;
}

// By value id: does a gradient go through it? Values in bodies may be anything.
static bool *mark_learning(const Graph *g, Arena *scratch, bool inputs) {
    bool *learns = NEW_ARRAY(scratch, bool, g->value_count + 1);
    for (const Node *n = g->first; n; n = n->next) {
        bool any = n->n_bodies > 0;
        for (int i = 0; i < n->n_in; i++) {
            const Value *v = n->in[i];
            any = any || (v && (learns[v->id] || v->trainable || (v->is_input && inputs)));
        }
        for (int i = 0; i < n->n_out; i++) learns[n->out[i]->id] = any;
    }
    return learns;
}

void straight_through(Graph *g, bool inputs) {
    Arena *scratch = arena_new();
    const bool *learns = mark_learning(g, scratch, inputs);
    for (Node *n = g->first; n; n = n->next) {
        Pair p;
        if (!pair_read(n, &p)) continue;
        g->cursor = n;
        g->loc = n->loc;
        if (learns[p.q->id]) {
            Value *y = straight(g, p.x, p.by, p.q->type.dtype);
            if (y) graph_replace(g, n->out[0], y);
        } else if (p.x->data) graph_replace(g, p.q, graph_const(g, value_const(p.q), p.x->name));
    }
    g->cursor = NULL;
    arena_free(scratch);
}
