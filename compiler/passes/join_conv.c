// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions of one value that are added become one. Contract: inference only; results differ in rounding.
//
//   before   %3: f32[1,8,9,9] = Conv(%0, %1)            %1: f32[8,8,3,3], pads 1
//            %4: f32[1,8,9,9] = Conv(%0, %2)            %2: f32[8,8,1,1]
//            %5: f32[1,8,9,9] = Add(%3, %4)
//   after    %7: f32[1,8,9,9] = Conv(%0, %6)            %6: %1 with %2 added to its middle taps
//
// The idea: a sum of windows is a window. Of each of the two operands of an Add, a term is what is left without
// constants of one number for each channel: a convolution, or the value itself times such a constant, which is a
// window of one tap. Terms of one value are joined where the one's window lies in the other's. (RepVGG and its like
// are trained with branches and meant to run so.)
#include "passes.h"

// conv(x, w) + t, or, with no conv, x * s + t; one number for each channel
typedef struct Term { Node *conv; Value *x; double *s, *t; } Term;

typedef struct Joiner {
    Rewrite r;
    const int *uses;            // by value id, of those that were there before
    Node **user;
    int n_uses;
} Joiner;

static bool used_once(const Joiner *j, const Value *v) { return v->id >= j->n_uses || j->uses[v->id] == 1; }

// The operand of n, an op of two, that is no constant of one number for each channel; NULL: there is none such.
static Value *beside_channels(const Node *n, double *number) {
    for (int i = 0; i < 2; i++)
        if (n->in[0] != n->in[1] && numbers_per_channel(n->in[i], &n->out[0]->type, number)
            && type_equal(&n->in[1 - i]->type, &n->out[0]->type))
            return n->in[1 - i];
    return NULL;
}

// Is there a convolution with known weights below v's constants? Then no more channels than numbers in memory.
static bool adds_conv(const Joiner *j, const Value *v) {
    while (used_once(j, v) && v->def && v->def->op == OP_Add && !v->def->in[0]->data != !v->def->in[1]->data)
        v = v->def->in[v->def->in[0]->data ? 1 : 0];
    return v->def && v->def->op == OP_Conv && v->def->in[1]->data;
}

static bool term_of(const Joiner *j, Value *v, Term *term) {
    const int64_t channels = v->type.dim[1];
    double *number = NEW_ARRAY(j->r.scratch, double, channels);
    *term = (Term){ .t = NEW_ARRAY(j->r.scratch, double, channels) };
    for (Value *inner; used_once(j, v) && v->def && v->def->op == OP_Add
         && (inner = beside_channels(v->def, number)); v = inner)
        for (int64_t c = 0; c < channels; c++) term->t[c] += number[c];
    Node *n = v->def;
    if (!n || !used_once(j, v)) return false;
    if (n->op == OP_Mul && (term->x = beside_channels(n, number))) {
        term->s = number;
        return true;
    }
    if (n->op != OP_Conv || n->n_in != 2 || !n->in[1]->data) return false;
    term->conv = n;
    term->x = n->in[0];
    return true;
}

typedef struct Taps {
    int axes;
    const int64_t *kernel, *strides, *dilations, *pads;
    int64_t group;
} Taps;

static Taps placed_taps(const Node *conv) {
    int count;
    return (Taps){ .axes = conv->in[1]->type.rank - 2, .kernel = conv->in[1]->type.dim + 2,
        .strides = node_ints(conv, "strides", &count), .dilations = node_ints(conv, "dilations", &count),
        .pads = node_ints(conv, "pads", &count), .group = node_int(conv, "group", 1) };
}

// Where the small window's first tap lies in the big one, tap by tap; false: not all of its taps are taps of that.
static bool lies_in(const Term *small, const Term *big, int64_t at[MAX_RANK]) {
    static const int64_t one[MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 }, none[MAX_RANK] = { 0 };
    if (!big->conv || small->x != big->x) return false;
    const Taps b = placed_taps(big->conv);
    const Taps s = small->conv ? placed_taps(small->conv) :
        (Taps){ .axes = b.axes, .kernel = one, .strides = one, .dilations = one, .pads = none, .group = b.group };
    if (s.axes != b.axes || s.group != b.group || !b.strides || !b.dilations || !b.pads) return false;
    if (!s.strides || !s.dilations || !s.pads) return false;
    for (int i = 0; i < b.axes; i++) {
        const int64_t ahead = b.pads[i] - s.pads[i];
        if (s.strides[i] != b.strides[i] || (s.kernel[i] > 1 && s.dilations[i] != b.dilations[i]) || ahead < 0
            || ahead % b.dilations[i] || ahead / b.dilations[i] + s.kernel[i] > b.kernel[i])
            return false;
        at[i] = ahead / b.dilations[i];
    }
    return small->conv || type_equal(&big->x->type, &big->conv->out[0]->type);
}

static int64_t taps_of(const Type *weights) {
    int64_t n = 1;
    for (int i = 2; i < weights->rank; i++) n *= weights->dim[i];
    return n;
}

// The index, among the taps of the big window, of the small one's tap number `tap`.
static int64_t tap_in(const int64_t *kernel, const int64_t *small, const int64_t *at, int axes, int64_t tap) {
    int64_t index = 0, step = 1;
    for (int i = axes - 1; i >= 0; i--) {
        index += (at[i] + tap % small[i]) * step;
        tap /= small[i];
        step *= kernel[i];
    }
    return index;
}

static Value *joined_weights(Graph *g, const Term *big, const Term *small, const int64_t *at) {
    static const int64_t one[MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    const Tensor *w = big->conv->in[1]->data, *v = small->conv ? small->conv->in[1]->data : NULL;
    const Type *type = &w->type;
    const int axes = type->rank - 2;
    const int64_t taps = taps_of(type), few = v ? taps_of(&v->type) : 1,
                  rows = type->dim[0] * type->dim[1];
    Tensor *sum = tensor_new(g->arena, *type);
    for (int64_t i = 0; i < rows * taps; i++) tensor_set_f(sum, i, tensor_get_f(w, i));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t tap = 0; tap < few; tap++) {
            const int64_t to = i * taps + tap_in(type->dim + 2, v ? v->type.dim + 2 : one, at, axes, tap),
                          channel = i / type->dim[1];
            const double add = v ? tensor_get_f(v, i * few + tap) :
                channel % type->dim[1] == i % type->dim[1] ? small->s[channel] : 0;
            tensor_set_f(sum, to, tensor_get_f(w, to) + add);
        }
    return graph_const(g, sum, NULL);
}

static Value *join(Graph *g, Node *sum, const Term *big, const Term *small, const int64_t *at) {
    const Type *type = &big->conv->out[0]->type;
    g->cursor = sum;
    g->loc = big->conv->loc;
    Value *w = joined_weights(g, big, small, at);
    Node *conv = node_like(g, big->conv, (Value *[]){ big->x, w });
    if (!conv || !node_infer(conv)) return NULL;
    bool shifted = false;
    for (int64_t c = 0; c < type->dim[1]; c++) {
        big->t[c] += small->t[c];
        shifted |= big->t[c] != 0;
    }
    if (!shifted) return conv->out[0];
    g->loc = sum->loc;
    Value *t = channel_constant(g, type->dtype, big->t, type->dim[1], type->rank, 1);
    return b_binary(g, OP_Add, conv->out[0], t);
}

static void join_graph(Joiner *j, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        const bool once = n->op == OP_Add && n->in[0] != n->in[1] && used_once(j, n->in[0]) && used_once(j, n->in[1]);
        rewrite_operands(&j->r, n);
        for (int i = 0; i < n->n_bodies; i++) join_graph(j, n->bodies[i]);
        const Type *type = &n->out[0]->type;
        if (!once || !dtype_is_float(type->dtype) || type->rank < 3 || !dim_is_const(type->dim[1])) continue;
        if (!type_equal(&n->in[0]->type, type) || !type_equal(&n->in[1]->type, type)) continue;
        const int id = n->out[0]->id;
        if (id < j->n_uses && j->user[id] && j->user[id]->op == OP_Round) continue;     // see fold_conv.c
        if (!adds_conv(j, n->in[0]) && !adds_conv(j, n->in[1])) continue;
        Term a, b;
        int64_t at[MAX_RANK];
        if (!term_of(j, n->in[0], &a) || !term_of(j, n->in[1], &b)) continue;
        Value *v = lies_in(&b, &a, at) ? join(g, n, &a, &b, at) : lies_in(&a, &b, at) ? join(g, n, &b, &a, at) : NULL;
        if (v) rewrite_set(&j->r, n->out[0], v);
    }
    g->cursor = NULL;
    rewrite_outputs(&j->r, g);
}

bool pass_join_conv(Graph *g) {
    Joiner j = { .r = { .scratch = arena_new() }, .n_uses = graph_root(g)->value_count };
    j.uses = graph_use_counts(g, j.r.scratch);
    j.user = value_users(g, j.r.scratch);
    join_graph(&j, g);
    arena_free(j.r.scratch);
    return pass_dce(g) || j.r.changed;
}
