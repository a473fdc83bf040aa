// SPDX-License-Identifier: MIT OR Apache-2.0
// Scales and shifts behind a convolution go into its weights and one shift. Contract: inference only; results differ
// in rounding.
//
//   before   %3: f32[1,8,9,9] = Conv(%0, %1)
//            %4: f32[1,8,9,9] = Mul(%3, %scale)          scale, shift: constants, one number for each output channel
//                or for all
//            %5: f32[1,8,9,9] = Add(%4, %shift)
//   after    %6: f32[8,3,3,3] = Mul(%1, %scale')         folded by pass_fold: the weights are constants
//            %7: f32[1,8,9,9] = Conv(%0, %6)
//            %8: f32[1,8,9,9] = Add(%7, %shift)
//
// The idea: follow the chain of Add, Sub, Mul and Div behind the Conv while each is the only user of the one before
// and its other operand is such a constant; then value = conv * s + t with s, t of one number for each channel. Batch
// normalisation, expanded, is such a chain, with or without a bias before it.
#include "passes.h"

#include <string.h>

typedef struct Chain {
    Node *conv, *last;                          // last: whose result is conv * s + t
    int64_t channels;
    double *s, *t;                              // in double: the folded constants are rounded once
    bool scaled;                                // s is not 1 everywhere
} Chain;

// The numbers of v for each channel, when v is a constant that varies along axis 1 of an [n, c, ...] result at most.
bool numbers_per_channel(const Value *v, const Type *result, double *number) {
    if (!v || !v->data || v->type.dtype != result->dtype || v->type.rank > result->rank) return false;
    int channel = 1 - (result->rank - v->type.rank);           // axis of v that lies on axis 1; negative: none
    for (int i = 0; i < v->type.rank; i++)
        if (i != channel && v->type.dim[i] != 1) return false;
    bool varies = channel >= 0 && v->type.dim[channel] != 1;
    for (int64_t c = 0; c < result->dim[1]; c++) number[c] = tensor_get_f(v->data, varies ? c : 0);
    return true;
}

// Takes n into the chain when it is conv*s + t (op) constant.
static bool chain_step(Arena *scratch, Chain *c, Node *n) {
    if ((n->op != OP_Add && n->op != OP_Sub && n->op != OP_Mul && n->op != OP_Div) || n->in[0] == n->in[1])
        return false;
    int at = n->in[0] == c->last->out[0] ? 0 : 1;
    if (!type_equal(&n->out[0]->type, &c->conv->out[0]->type) || (n->op == OP_Div && at == 1)) return false;
    double *k = NEW_ARRAY(scratch, double, c->channels);
    if (!numbers_per_channel(n->in[1 - at], &n->out[0]->type, k)) return false;
    for (int64_t i = 0; i < c->channels; i++) {
        double sign = n->op == OP_Sub && at == 1 ? -1 : 1,
               factor = n->op == OP_Mul ? k[i] :
            n->op == OP_Div             ? 1 / k[i] :
                                          sign;
        c->s[i] *= factor;
        c->t[i] *= factor;
        c->t[i] += n->op == OP_Add || (n->op == OP_Sub && at == 1) ? k[i] : n->op == OP_Sub ? -k[i] : 0;
        c->scaled |= factor != 1;
    }
    c->last = n;
    return true;
}

Value *channel_constant(Graph *g, DType d, const double *v, int64_t n, int rank, int axis) {
    Dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? n : 1;
    Tensor *t = tensor_new(g->arena, type_make(d, rank, dims));
    for (int64_t i = 0; i < n; i++) tensor_set_f(t, i, v[i]);
    return graph_const(g, t, NULL);
}

// Conv(x, w)*s + t -> Conv(x, w*s) + t, before the chain's last node.
static Value *rebuild(Graph *g, const Chain *c) {
    Node *conv = c->conv;
    DType d = conv->out[0]->type.dtype;
    int rank = conv->out[0]->type.rank;
    g->cursor = c->last;
    g->loc = conv->loc;
    Value *w = b_binary(g, OP_Mul, conv->in[1], channel_constant(g, d, c->s, c->channels, conv->in[1]->type.rank, 0));
    if (!w) return NULL;
    Node *scaled = graph_node(g, OP_Conv, 2, (Value *[]){ conv->in[0], w }, 1);
    scaled->attrs = arena_copy(g->arena, conv->attrs, sizeof(Attr) * (size_t)conv->n_attrs);
    scaled->n_attrs = conv->n_attrs;
    if (!node_infer(scaled)) return NULL;
    bool shifted = false;
    for (int64_t i = 0; i < c->channels; i++) shifted |= c->t[i] != 0;
    if (!shifted) return scaled->out[0];
    g->loc = c->last->loc;
    return b_binary(g, OP_Add, scaled->out[0], channel_constant(g, d, c->t, c->channels, rank, 1));
}

// A quantizer rounds what comes: computed in another order it may fall on the other side, which is a whole step then.
static bool before_round(const Chain *c, Node **user, int n_uses) {
    int id = c->last->out[0]->id;
    return id < n_uses && user[id] && user[id]->op == OP_Round;
}

static void fold_conv_graph(Rewrite *r, Graph *g, const int *uses, Node **user, int n_uses) {
    for (Node *n = g->first; n; n = n->next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) fold_conv_graph(r, n->bodies[i], uses, user, n_uses);
        if (n->op != OP_Conv || !n->in[1]->data || !dtype_is_float(n->out[0]->type.dtype))
            continue;
        Chain c = { .conv = n, .last = n, .channels = n->out[0]->type.dim[1] };
        c.s = NEW_ARRAY(r->scratch, double, c.channels);
        c.t = NEW_ARRAY(r->scratch, double, c.channels);
        for (int64_t i = 0; i < c.channels; i++) c.s[i] = 1;
        for (int id; (id = c.last->out[0]->id) < n_uses && uses[id] == 1 && user[id];)
            if (!chain_step(r->scratch, &c, user[id])) break;
        if (!c.scaled || before_round(&c, user, n_uses)) continue;
        Value *v = rebuild(g, &c);
        if (v) rewrite_set(r, c.last->out[0], v);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_fold_conv(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    fold_conv_graph(
        &r, g, graph_use_counts(g, r.scratch), value_users(g, r.scratch), graph_root(g)->value_count);
    arena_free(r.scratch);
    return pass_dce(g) || r.changed;
}
