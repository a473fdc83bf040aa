// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of mixtures of experts.
//
// In: tokens, weights of all experts, scores of a router. Out: matrix products and maps. The idea: every expert sees
// every token, and the weights of those that the router did not choose are 0, so that nothing depends on the data but
// numbers.
#include "build/build.h"

#include <math.h>
#include <string.h>

// Weights [tokens, experts] of the k experts with the highest scores: the softmax over all, or over the chosen ones,
// or numbers given apart (mixing); 0 for the others.
static Value *routing(Graph *g, const Experts *e, Value *scores) {
    const int64_t k = e->chosen, count = e->count;
    if (k < 1 || k > count) return graph_fail(g, "k is %lld of %lld experts", (long long)k, (long long)count);
    scores = b_cast(g, scores, dtype_wide(scores->type.dtype));
    Value *p = b_softmax(g, scores, 1);
    if (!p) return NULL;
    Node *sort = b_sort(g, p, 1, true, k);
    if (!sort) return NULL;
    Value *best = b_insert(g, sort->out[1], 2);                       // [tokens, k, 1]
    Value *chosen = b_binary(g, OP_Equal, best, b_iota(g, 1, &count, 0, DT_I64));
    chosen = b_reduce(g, OP_ReduceMax, chosen, 1, (int64_t[]){ 1 }, false);
    if (e->mixing) p = b_cast(g, e->mixing, p->type.dtype);
    Value *weight = b_where(g, chosen, p, b_like(g, p, 0));
    if (!e->normalize) return weight;
    return b_binary(g, OP_Div, weight, b_reduce(g, OP_ReduceSum, weight, 1, (int64_t[]){ 1 }, true));
}

// x [1 or experts, tokens, in] times w^T + bias -> [experts, tokens, out].
static Value *layer(Graph *g, const Experts *e, int at, Value *x) {
    Value *y = b_matmul(g, x, b_swap(g, e->w[at], 1, 2));
    return e->bias[at] ? b_binary(g, OP_Add, y, b_insert(g, e->bias[at], 1)) : y;
}

// min(x, limit) * sigmoid(alpha x) * (clamp(y, limit) + beta)
static Value *swiglu(Graph *g, const Experts *e, Value *x, Value *y) {
    const double limit = e->limit;
    if (isfinite(limit)) x = B_MAP(g, arena_printf(g->arena, "min(x, %.9g)", limit), "x", x);
    if (isfinite(limit)) y = B_MAP(g, arena_printf(g->arena, "min(max(x, -%.9g), %.9g)", limit, limit), "x", y);
    const char *text = arena_printf(g->arena, "x * sigmoid(%.9g * x) * (y + %.9g)", e->alpha, e->beta);
    return B_MAP(g, text, "x y", x, y);
}

// The two halves of the last axis, which are interleaved or one behind the other.
static bool halves(Graph *g, Value *v, bool interleaved, Value **a, Value **b) {
    if (!v || v->type.rank != 3 || !dim_is_const(v->type.dim[2]) || v->type.dim[2] % 2)
        return graph_fail(g, "a fused SwiGLU wants an even number of columns"), false;
    const Dim *d = v->type.dim;
    int64_t half = d[2] / 2;
    if (interleaved) v = b_reshape(g, v, 4, (Dim[]){ d[0], d[1], half, 2 });
    int axis = interleaved ? 3 : 2;
    *a = b_part(g, v, axis, 0, interleaved ? 1 : half);
    *b = b_part(g, v, axis, interleaved ? 1 : half, interleaved ? 1 : half);
    if (interleaved) {
        *a = b_remove(g, *a, 3);
        *b = b_remove(g, *b, 3);
    }
    return *a && *b;
}

static Value *hidden_of(Graph *g, const Experts *e, Value *x) {
    const char *kind = e->activation;
    Value *y = layer(g, e, 0, x), *gate, *linear;
    if (!strcmp(kind, "swiglu") && e->fusion)
        return halves(g, y, e->fusion == 1, &gate, &linear) ? swiglu(g, e, gate, linear) : NULL;
    if (!strcmp(kind, "swiglu"))
        return e->w[2] ? swiglu(g, e, y, layer(g, e, 2, x)) :
                         graph_fail(g, "SwiGLU wants the weights fc3 or a fusion");
    if (!strcmp(kind, "relu")) y = b_unary(g, OP_Relu, y);
    else if (!strcmp(kind, "gelu")) y = b_unary(g, OP_GeluTanh, y);
    else if (!strcmp(kind, "silu")) y = b_unary(g, OP_Swish, y);
    else if (strcmp(kind, "identity"))
        return graph_fail(g, "activation \"%s\" is not supported; relu, gelu, silu, swiglu and identity are", kind);
    return e->w[2] ? b_binary(g, OP_Mul, y, layer(g, e, 2, x)) : y;
}

Value *b_experts(Graph *g, const Experts *e, Value *x, Value *scores) {
    const Type t = x->type;
    DType wide = dtype_wide(t.dtype);
    if (t.rank != 2 && t.rank != 3) return graph_fail(g, "the input must have 2 or 3 dimensions");
    Dim tokens = type_product(g, &t, 0, t.rank - 1);
    x = b_reshape(g, b_cast(g, x, wide), 3, (Dim[]){ 1, tokens, t.dim[t.rank - 1] });
    Value *weight = routing(g, e, scores), *y = layer(g, e, 1, hidden_of(g, e, x));
    if (!weight || !y) return NULL;
    y = b_binary(g, OP_Mul, y, b_insert(g, b_swap(g, weight, 0, 1), 2));
    y = b_reduce(g, OP_ReduceSum, y, 1, (int64_t[]){ 0 }, false);
    return b_cast(g, b_reshape(g, y, t.rank, t.dim), t.dtype);
}
