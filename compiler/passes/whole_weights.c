// SPDX-License-Identifier: MIT OR Apache-2.0
// Weights that are multiples of one number for each output channel are whole numbers, and the factor stands behind the
// sum. Contract: inference only; results differ in rounding.
//
//   before   %3: f32[1,14,14,16] = Conv(%0, %1)          %1: constant f32[16,8,3,3], q * s[oc], q from -128 to 127
//   after    %3: f32[1,14,14,16] = Conv(%0, %1')         %1': constant f32[16,8,3,3], q
//            %4: f32[1,14,14,16] = Mul(%3, %s)           %s: constant f32[16]
//
// For templates that keep whole numbers in bytes. What was quantized is found by its numbers and not by the nodes that
// made it: by then other passes have multiplied, turned and merged it.
#include "passes.h"

#include <math.h>
#include <string.h>

enum { LEAST_TERMS = 8, MOST = 128 };                   // fewer terms are multiples of a number by chance
#define NEAR 0x1p-21                                    // two roundings and what the estimate of a factor is off

// Weight i of channel c: at c * channel + i / inner * outer + i % inner.
typedef struct Weights { const float *at; int64_t channels, terms, channel, inner, outer; } Weights;

static double weight(const Weights *w, int64_t c, int64_t i) {
    return (double)w->at[c * w->channel + i / w->inner * w->outer + i % w->inner];
}

static Weights weights_of(const Node *n) {
    const Type *t = &n->in[1]->type;
    Weights w = { .at = n->in[1]->data->data, .inner = 1 };
    if (n->op == OP_Conv) {
        w.channels = t->dim[0];
        w.terms = w.channel = type_count(t) / w.channels;
        w.inner = w.terms;
    } else {
        w.channels = w.outer = t->dim[1];
        w.terms = t->dim[0];
        w.channel = 1;
    }
    return w;
}

// Are all weights of channel c whole multiples of s? The factor that suits them best, then.
static bool are_multiples(const Weights *w, int64_t c, double s, double *best) {
    double products = 0, squares = 0;
    for (int64_t i = 0; i < w->terms; i++) {
        const double v = weight(w, c, i), q = rint(v / s);
        if (q < -MOST || q > MOST - 1 || fabs(v - q * s) > fabs(v) * NEAR) return false;
        products += v * q;
        squares += q * q;
    }
    *best = products / squares;
    return true;
}

// The largest factor of channel c's weights; false: there is none.
static bool find_factor(const Weights *w, int64_t c, float *s) {
    double most = 0;
    for (int64_t i = 0; i < w->terms; i++) {
        const double v = fabs(weight(w, c, i));
        if (!isfinite(v)) return false;
        most = fmax(most, v);
    }
    *s = 1;
    if (most == 0) return true;
    for (int q = 1; q <= MOST; q++) {
        double best;
        if (!are_multiples(w, c, most / q, &best)) continue;
        *s = (float)best;
        return true;
    }
    return false;
}

static bool is_candidate(const Node *n) {
    if (n->op != OP_Conv && n->op != OP_MatMul) return false;
    const Value *v = n->in[1];
    return v->data && v->type.dtype == DT_F32 && type_is_static(&v->type) && type_count(&v->type)
        && n->out[0]->type.dtype == DT_F32 && (n->op == OP_Conv || v->type.rank == 2);
}

static Value *whole(Graph *g, const Node *n, const Weights *w, const float *s) {
    Tensor *t = tensor_new(g->arena, n->in[1]->type);
    float *to = t->data;
    for (int64_t c = 0; c < w->channels; c++)
        for (int64_t i = 0; i < w->terms; i++)
            to[c * w->channel + i / w->inner * w->outer + i % w->inner] = (float)rint(weight(w, c, i) / (double)s[c]);
    return graph_const(g, t, n->in[1]->name);
}

// n over whole numbers, times their factors; NULL: they are none, or all factors are 1.
static Value *split(Arena *scratch, Graph *g, const Node *n) {
    const Weights w = weights_of(n);
    bool scaled = false;
    if (w.terms < LEAST_TERMS) return NULL;
    float *factors = NEW_ARRAY(scratch, float, w.channels);
    for (int64_t c = 0; c < w.channels; c++) {
        if (!find_factor(&w, c, &factors[c])) return NULL;
        scaled |= factors[c] != 1;
    }
    if (!scaled) return NULL;
    Value *in[] = { n->in[0], whole(g, n, &w, factors) };
    const int rank = n->out[0]->type.rank, axis = n->op == OP_Conv && !node_int(n, "channels_last", 0) ? 1 : rank - 1;
    Dim along[MAX_RANK];
    for (int i = 0; i < rank; i++) along[i] = i == axis ? w.channels : 1;
    Tensor *kept = tensor_new(g->arena, type_make(DT_F32, rank, along));
    memcpy(kept->data, factors, sizeof *factors * (size_t)w.channels);
    Value *y = b_finish(node_like(g, n, in));
    return y ? b_binary(g, OP_Mul, y, graph_const(g, kept, NULL)) : NULL;
}

static void visit(Rewrite *r, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) visit(r, n->bodies[i]);
        if (!is_candidate(n)) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *y = split(r->scratch, g, n);
        if (y) rewrite_set(r, n->out[0], y);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_whole_weights(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    visit(&r, g);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
