// SPDX-License-Identifier: MIT OR Apache-2.0
// Layers over sequences: attention, rotary positions, recurrent layers.
//
// In: tensors and a layer's options. Out: what build/attention.c makes of them, or the composites LSTM, GRU and RNN, to
// whose order of gates PyTorch's parameters are brought by views of them.
#include "import/describe/describe.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- attention

static Value *attend(Graph *g, Value *q, Value *k, Value *v, Value *mask, bool causal, double scale) {
    DType d = q->type.dtype;
    MaskedAttention a = { .q = q, .k = k, .v = v, .soft = d, .scale = scale };
    KeyRange range = { .causal = causal, .left = -1, .right = -1 };
    if (!b_mask(g, &a.masks, mask, k->type.dim[2], d)
        || !b_mask_positions(g, &a.masks, &range, q->type.dim[2], k->type.dim[2]))
        return NULL;
    return b_masked_attention(g, &a);
}

burn_value *language_sdpa(
    const burn_place *at, burn_value *q, burn_value *k, burn_value *v, const struct burn_sdpa *o) {
    Graph *g = here(at, NULL);
    if (!q || !k || !v) return NULL;
    if (q->type.rank != 4 || k->type.rank != 4 || v->type.rank != 4 || !dim_is_const(q->type.dim[3]))
        return graph_fail(g, "wants [batch, heads, length, size] thrice, not %s, %s and %s", shown(g, q), shown(g, k),
            shown(g, v));
    double scale = o->scale > 0 ? o->scale : 1 / sqrt((double)q->type.dim[3]);
    return attend(g, q, k, v, o->mask, o->causal == 1, scale);
}

burn_value *language_heads(const burn_place *at, burn_value *x, int64_t heads) {
    Graph *g = here(at, NULL);
    bool split = at->call[0] == 's';
    if (!x) return NULL;
    if (x->type.rank != (split ? 3 : 4))
        return graph_fail(g, "wants [batch, %s], not %s", split ? "length, features" : "heads, length, size",
            shown(g, x));
    return split ? b_split_heads(g, x, heads) : b_join_heads(g, x);
}

// One of the projections: rows from..from+size-1 of in_proj_weight.
static Value *projected(Graph *g, Value *x, Value *w, Value *bias, int64_t from, int64_t size) {
    Value *part = b_part(g, w, 0, from, size), *turned = b_swap(g, part, 0, 1), *y = b_matmul(g, x, turned);
    return y && bias ? b_binary(g, OP_Add, y, b_part(g, bias, 0, from, size)) : y;
}

static burn_init glorot(void) { return (burn_init){ BURN_INIT_XAVIER_UNIFORM, 1, 0 }; }

burn_value *language_attention(const burn_place *at, burn_value *x, const struct burn_attention *o) {
    Graph *g = here(at, o->name);
    Value *key = o->key ? o->key : x, *value = o->value ? o->value : key;
    int64_t e;
    if (!x || !key || !value) return NULL;
    if (x->type.rank != 3) return graph_fail(g, "wants [batch, length, features], not %s", shown(g, x));
    if (!number_in(dim_out(x->type.dim[2]), "the number of features", &e)) return NULL;
    if (o->heads < 1 || e % o->heads)
        return graph_fail(g, "%lld features in %lld heads: they must be a multiple", (long long)e, (long long)o->heads);
    bool bias = yes(o->bias);
    const char *out = arena_printf(g->arena, "%s.out_proj", o->name ? o->name : "");
    double bound = 1 / sqrt((double)e);
    Type in3 = type_make(x->type.dtype, 2, (Dim[]){ 3 * e, e }), square = type_make(x->type.dtype, 2, (Dim[]){ e, e });
    Type row3 = type_make(x->type.dtype, 1, (Dim[]){ 3 * e }), row = type_make(x->type.dtype, 1, (Dim[]){ e });
    Value *w = layer_parameter(o->name, "in_proj_weight", in3, glorot(), (Fan){ e, 3 * e });
    Value *b = bias ? layer_parameter(o->name, "in_proj_bias", row3, (burn_init){ 0 }, (Fan){ 1, 1 }) : NULL;
    Value *wo = layer_parameter(out, "weight", square, (burn_init){ BURN_INIT_UNIFORM, -bound, bound }, (Fan){ e, e });
    Value *bo = bias ? layer_parameter(out, "bias", row, (burn_init){ 0 }, (Fan){ 1, 1 }) : NULL;
    if (!w || !wo || (bias && (!b || !bo))) return NULL;
    Value *q = projected(g, x, w, b, 0, e), *k = projected(g, key, w, b, e, e),
          *v = projected(g, value, w, b, 2 * e, e);
    q = b_split_heads(g, q, o->heads);
    k = b_split_heads(g, k, o->heads);
    v = b_split_heads(g, v, o->heads);
    if (!q || !k || !v) return NULL;
    Value *y = attend(g, q, k, v, o->mask, o->causal == 1, 1 / sqrt((double)(e / o->heads)));
    y = b_join_heads(g, y);
    y = b_matmul(g, y, b_swap(g, wo, 0, 1));
    return y && bias ? b_binary(g, OP_Add, y, bo) : y;
}

// angle of pair i at position p: p * base^(-2 i / size)
burn_value *language_rotary(
    const burn_place *at, burn_value *x, burn_value *positions, double base, bool interleaved) {
    Graph *g = here(at, NULL);
    int64_t size;
    if (!x || !positions) return NULL;
    if (x->type.rank != 4 || positions->type.rank != 2)
        return graph_fail(g, "wants [batch, heads, length, size] and positions [batch, length], not %s and %s",
            shown(g, x), shown(g, positions));
    if (!number_in(dim_out(x->type.dim[3]), "the size of a head", &size)) return NULL;
    if (size % 2) return graph_fail(g, "the size of a head is %lld, which has no halves", (long long)size);
    Dim half = size / 2;
    double *turns = NEW_ARRAY(g->arena, double, half);
    for (int64_t i = 0; i < half; i++) turns[i] = pow(base, -2.0 * (double)i / (double)size);
    Value *rate = b_floats(g, DT_F32, 1, &half, turns), *p = b_cast(g, positions, DT_F32);
    p = b_insert(g, p, 2);
    Value *angle = b_binary(g, OP_Mul, p, rate);
    angle = b_insert(g, angle, 1);
    Value *cosine = b_unary(g, OP_Cos, angle), *sine = b_unary(g, OP_Sin, angle);
    cosine = b_cast(g, cosine, x->type.dtype);
    sine = b_cast(g, sine, x->type.dtype);
    return b_rotated(g, x, cosine, sine, size, interleaved);
}

// ---------------------------------------------------------------- recurrent layers

// order: where gate i of the composite stands among PyTorch's (LSTM i o f c of i f g o; GRU z r h of r z n)
typedef struct Cell { const char *name; Op op; int gates, order[4]; const char *activations; } Cell;
static const Cell cells[] = {
    { "lstm", OP_LSTM, 4, { 0, 3, 1, 2 }, "Sigmoid Tanh Tanh" },
    { "gru", OP_GRU, 3, { 1, 0, 2 }, "Sigmoid Tanh" },
    { "rnn", OP_RNN, 1, { 0 }, "Tanh" },
};

// A parameter of one direction with its gates in the composite's order.
static Value *in_order(Graph *g, const Cell *c, Value *w, int64_t hidden) {
    Value *part[4];
    if (!w || c->gates == 1) return w;
    for (int i = 0; i < c->gates; i++) part[i] = b_part(g, w, 0, c->order[i] * hidden, hidden);
    return b_concat(g, 0, c->gates, part);
}

typedef struct Recurrent {
    const Cell *cell;
    const struct burn_recurrent *o;
    int64_t hidden;
    int directions;
    bool relu;
} Recurrent;

static Value *recurrent_parameter(
    Graph *g, const Recurrent *r, const char *kind, int layer, int reverse, int64_t columns) {
    const char *name = arena_printf(g->arena, "%s_l%d%s", kind, layer, reverse ? "_reverse" : "");
    double bound = 1 / sqrt((double)r->hidden);
    Type t = type_make(DT_F32, columns ? 2 : 1, (Dim[]){ r->cell->gates * r->hidden, columns });
    Value *w = layer_parameter(r->o->name, name, t, (burn_init){ BURN_INIT_UNIFORM, -bound, bound }, (Fan){ 1, 1 });
    return in_order(g, r->cell, w, r->hidden);
}

// One layer: x [t, b, features] -> [t, b, directions * hidden]; state: h and c of it, in and out.
static Value *one_layer(Graph *g, const Recurrent *r, Value *x, int layer, Value **state) {
    Value *w[2], *rw[2], *bias[2];
    for (int d = 0; d < r->directions; d++) {
        w[d] = recurrent_parameter(g, r, "weight_ih", layer, d, x->type.dim[2]);
        rw[d] = recurrent_parameter(g, r, "weight_hh", layer, d, r->hidden);
        if (!w[d] || !rw[d]) return NULL;
        if (!yes(r->o->bias)) continue;
        Value *both[2];
        both[0] = recurrent_parameter(g, r, "bias_ih", layer, d, 0);
        both[1] = recurrent_parameter(g, r, "bias_hh", layer, d, 0);
        bias[d] = both[0] && both[1] ? b_concat(g, 0, 2, both) : NULL;
    }
    bool lstm = r->cell->op == OP_LSTM;
    Value *weights = b_stack(g, 0, r->directions, w), *recurrent = b_stack(g, 0, r->directions, rw);
    Value *b = yes(r->o->bias) ? b_stack(g, 0, r->directions, bias) : NULL;
    Value *in[7] = { x, weights, recurrent, b, NULL, state[0], state[1] };
    Node *n = graph_node(g, r->cell->op, lstm ? 7 : 6, in, lstm ? 3 : 2);
    const char *once = r->relu ? "Relu" : r->cell->activations, *twice = arena_printf(g->arena, "%s %s", once, once);
    node_set_string(n, "direction", r->directions == 2 ? "bidirectional" : "forward");
    node_set_string(n, "activations", r->directions == 2 ? twice : once);
    if (r->cell->op == OP_GRU) node_set_int(n, "linear_before_reset", 1);
    Value *y = b_finish(n);
    if (!y) return NULL;
    state[0] = n->out[1];
    state[1] = lstm ? n->out[2] : NULL;
    y = r->directions == 1 ? b_remove(g, y, 1) : b_transpose(g, y, (int[]){ 0, 2, 1, 3 });
    Dim flat[3] = { x->type.dim[0], x->type.dim[1], r->directions * r->hidden };
    return b_reshape(g, y, 3, flat);
}

static bool recurrent_fits(
    Graph *g, const burn_place *at, const Value *x, const struct burn_recurrent *o, Recurrent *r) {
    int64_t features;
    if (x->type.rank != 3) return graph_fail(g, "wants [time, batch, features], not %s", shown(g, x));
    if (!number_in(dim_out(x->type.dim[2]), "the number of features", &features)
        || !number_in(o->hidden, "the number of hidden units", &r->hidden))
        return false;
    return r->hidden > 0 || graph_fail(g, "wants a number of hidden units: %s(x, \"rnn\", 64)", at->call);
}

// Layer i of a state of all layers, [layers * directions, b, hidden]; NULL: none was given.
static Value *state_of(Graph *g, Value *all, int layer, int directions) {
    return all ? b_part(g, all, 0, layer * directions, directions) : NULL;
}

burn_value *language_recurrent(const burn_place *at, burn_value *x, const struct burn_recurrent *o) {
    Graph *g = here(at, o->name);
    int layers = o->layers ? (int)o->layers : 1, directions = o->bidirectional == 1 ? 2 : 1;
    Recurrent r = { .cell = cells, .o = o, .directions = directions };
    while (strcmp(r.cell->name, at->call)) r.cell++;
    if (!x || !recurrent_fits(g, at, x, o, &r)) return NULL;
    r.relu = o->activation && !strcmp(o->activation, "relu");
    if (o->activation && (r.cell->op != OP_RNN || (!r.relu && strcmp(o->activation, "tanh"))))
        return graph_fail(g, "only rnn has .activation, \"tanh\" or \"relu\"");
    if (layers < 1 || layers > 64) return graph_fail(g, "%d layers", layers);
    bool turned = o->batch_first == 1;
    Value *h[64], *c[64];
    if (turned) x = b_swap(g, x, 0, 1);
    for (int i = 0; i < layers && x; i++) {
        Value *state[2] = { state_of(g, o->h0, i, directions), state_of(g, o->c0, i, directions) };
        x = one_layer(g, &r, x, i, state);
        h[i] = state[0];
        c[i] = state[1];
    }
    if (!x) return NULL;
    if (o->h) *o->h = b_concat(g, 0, layers, h);
    if (o->c) *o->c = r.cell->op == OP_LSTM ? b_concat(g, 0, layers, c) : graph_fail(g, "only lstm has a state .c");
    return turned ? b_swap(g, x, 0, 1) : x;
}
