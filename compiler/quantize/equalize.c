// SPDX-License-Identifier: MIT OR Apache-2.0
// Channels of like ranges: what one unit multiplies a channel by, the next one takes back.
//
// In: units. Out: other weights and biases of the same function. Where Relu and windows alone stand between two
// products, f(s x) = s f(x) for s > 0, so the rows of the first can be scaled and the columns of the second by as much
// less; the factor that makes both of a channel's ranges equal is sqrt(r2 / r1) (cross-layer equalization).
#include "quantize/quantize.h"

#include <math.h>

typedef struct Pair { QuantUnit *from, *to; } Pair;
enum { ROUNDS = 8 };

static int uses_of(const Quantizer *q, const Value *v) {
    int n = 0;
    for (const Node *m = q->graph->first; m; m = m->next)
        for (int i = 0; i < m->n_in; i++) n += m->in[i] == v;
    for (int i = 0; i < q->graph->outputs.n; i++) n += q->graph->outputs.at[i] == v;
    return n;
}

static QuantUnit *unit_reading(const Quantizer *q, const Value *v) {
    for (int i = 0; i < q->units.n; i++)
        if (q->units.at[i].first->in[0] == v) return &q->units.at[i];
    return NULL;
}

// Is f(s x) = s f(x) for what stands behind the bias, and are the channels told apart?
static bool keeps_factors(const QuantUnit *u) {
    const Node *product = u->sum ? u->sum : u->first;
    return u->last == product || (u->last->op == OP_Relu && u->last->prev && u->last->in[0] == product->out[0]);
}

// The input channel of the second unit's weight i.
static int64_t column_of(const QuantUnit *u, int64_t i) {
    const Type *t = &u->w->type;
    bool conv = u->first->op == OP_Conv;
    if (conv && node_int(u->first, "group", 1) != 1) return unit_channel(u, i);
    int64_t inner = 1;
    for (int k = conv ? 2 : t->rank - 1; k < t->rank; k++) inner *= t->dim[k];
    return i / inner % (conv ? t->dim[1] : t->dim[t->rank - 2]);
}

static bool fits(const QuantUnit *from, const QuantUnit *to) {
    if (to->kind != QUANT_WEIGHTED || (from->first->op == OP_Conv) != (to->first->op == OP_Conv)) return false;
    if (to->first->op != OP_Conv) return to->w->type.rank == 2;
    return node_int(to->first, "group", 1) == 1 || (to->w->type.dim[1] == 1 && to->channels == from->channels);
}

static QuantUnit *next_product(const Quantizer *q, const QuantUnit *from) {
    const Value *v = from->last->out[0];
    QuantUnit *to = NULL;
    while (uses_of(q, v) == 1 && (to = unit_reading(q, v)) != NULL) {
        bool passes = to->first == to->last && (to->first->op == OP_WindowMax || to->first->op == OP_AveragePool);
        if (!passes) break;
        v = to->last->out[0];
        to = NULL;
    }
    return to && fits(from, to) ? to : NULL;
}

static void scale_pair(Arena *a, const Pair *p) {
    int64_t n = p->from->channels;
    double *r1 = NEW_ARRAY(a, double, n), *r2 = NEW_ARRAY(a, double, n), *f = NEW_ARRAY(a, double, n);
    float *w1 = p->from->w->data, *w2 = p->to->w->data, *b = p->from->b ? p->from->b->data : NULL;
    int64_t n1 = type_count(&p->from->w->type), n2 = type_count(&p->to->w->type);
    for (int64_t i = 0; i < n1; i++) r1[unit_channel(p->from, i)] = fmax(r1[unit_channel(p->from, i)], fabsf(w1[i]));
    for (int64_t i = 0; i < n2; i++) r2[column_of(p->to, i)] = fmax(r2[column_of(p->to, i)], fabsf(w2[i]));
    for (int64_t c = 0; c < n; c++) f[c] = r1[c] > 0 && r2[c] > 0 ? fmin(fmax(sqrt(r2[c] / r1[c]), 0.01), 100) : 1;
    for (int64_t i = 0; i < n1; i++) w1[i] = (float)(w1[i] * f[unit_channel(p->from, i)]);
    for (int64_t c = 0; c < n && b; c++) b[c] = (float)(b[c] * f[c]);
    for (int64_t i = 0; i < n2; i++) w2[i] = (float)(w2[i] / f[column_of(p->to, i)]);
}

// The new numbers into the graph, in the form that the old ones had.
static void give_back(Quantizer *q, QuantUnit *u) {
    Graph *g = q->graph;
    Tensor *w = arena_copy(g->arena, u->w, sizeof *u->w);
    w->data = arena_copy(g->arena, u->w->data, (size_t)type_bytes(&u->w->type));
    Value *v = graph_const(g, w, u->weight->name);
    v->trainable = u->weight->trainable;
    u->first->in[1] = v;
    if (!u->b) return;
    Value *old = u->sum->in[1];
    int rank = u->sum->out[0]->type.rank, axis = u->first->op == OP_Conv ? 1 : rank - 1;
    Type t = type_make(DT_F32, rank, (Dim[MAX_RANK]){ 1, 1, 1, 1, 1, 1, 1, 1 });
    t.dim[axis] = u->channels;
    Tensor *b = tensor_new(g->arena, t);
    for (int64_t c = 0; c < u->channels; c++) tensor_set_f(b, c, tensor_get_f(u->b, c));
    u->sum->in[1] = graph_const(g, b, old->name);
    u->sum->in[1]->trainable = old->trainable;
}

int quant_equalize(Quantizer *q) {
    VEC(Pair) pairs = { 0 };
    for (int i = 0; i < q->units.n; i++) {
        QuantUnit *u = &q->units.at[i], *to = NULL;
        if (u->kind == QUANT_WEIGHTED && keeps_factors(u)) to = next_product(q, u);
        if (to) VEC_PUSH(q->arena, pairs, (Pair){ u, to });
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < pairs.n; i++) scale_pair(q->arena, &pairs.at[i]);
    for (int i = 0; i < pairs.n; i++) {
        give_back(q, pairs.at[i].from);
        give_back(q, pairs.at[i].to);
    }
    return pairs.n;
}
