// SPDX-License-Identifier: MIT OR Apache-2.0
// Random tensors.
//
// In: an OnnxNode. Out: RandomUniform, a function of seed and element index, and maps. Without a seed the node's
// number is one, so that two nodes differ and the same model always gives the same code. Normal numbers by Box and
// Muller: sqrt(-2 log u1) cos(2 pi u2).
#include "import/onnx/onnx.h"

#include <string.h>

// A seed is a float32, and may be a fraction: its bits tell it from all others.
static int64_t seed_of(OnnxNode *n, int64_t salt) {
    float given = (float)onnx_float(n, "seed", 0);
    uint32_t bits;
    memcpy(&bits, &given, sizeof bits);
    int64_t seed = onnx_has(n, "seed") ? (int64_t)bits : 0x9e37 + (int64_t)n->loc->node * 7919;
    return seed * 2 + salt;
}

static Value *uniform(OnnxNode *n, const Type *shape, int64_t salt) {
    Node *node = graph_node(n->g, OP_RandomUniform, 0, NULL, 1);
    node_set_ints(node, "shape", shape->dim, shape->rank);
    node_set_int(node, "dtype", DT_F32);
    node_set_int(node, "seed", seed_of(n, salt));
    return b_finish(node);
}

// The shape from an attribute, or (…Like) from input 0, whose type is the default.
static bool random_type(OnnxNode *n, Type *t) {
    DType d, otherwise = DT_F32;
    int count;
    const int64_t *shape = onnx_ints(n, "shape", &count);
    if (n->n_in) {
        if (!onnx_inputs(n, 1)) return false;
        *t = n->in[0]->type;
        otherwise = t->dtype;
    } else if (!onnx_type(t, DT_F32, count, shape, "output", "0", n->loc)) {
        return false;
    }
    if (!onnx_dtype(n, "dtype", otherwise, &d)) return false;
    t->dtype = d;
    return true;
}

Value *onnx_random_uniform(OnnxNode *n) {
    Type t;
    if (!random_type(n, &t)) return NULL;
    double low = onnx_float(n, "low", 0), high = onnx_float(n, "high", 1);
    const char *text = arena_printf(n->g->arena, "x * %.17g + %.17g", high - low, low);
    return b_cast(n->g, B_MAP(n->g, text, "x", uniform(n, &t, 0)), t.dtype);
}

Value *onnx_random_normal(OnnxNode *n) {
    Type t;
    if (!random_type(n, &t)) return NULL;
    const char *text = arena_printf(n->g->arena, "sqrt(log(1 - x) * -2) * cos(y * 6.283185307179586) * %.17g + %.17g",
        onnx_float(n, "scale", 1), onnx_float(n, "mean", 0));
    Value *radius = uniform(n, &t, 0), *angle = uniform(n, &t, 1);
    return b_cast(n->g, B_MAP(n->g, text, "x y", radius, angle), t.dtype);
}

// 1 with the probability that the input gives.
Value *onnx_bernoulli(OnnxNode *n) {
    Type t;
    if (!random_type(n, &t)) return NULL;
    Value *u = uniform(n, &t, 0);
    return b_cast(n->g, b_binary(n->g, OP_Less, u, b_cast(n->g, n->in[0], DT_F32)), t.dtype);
}

// Classes drawn for each row of unnormalised log-probabilities [b, c]: how many of the sums of the first
// probabilities a number u does not reach.
Value *onnx_multinomial(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = b_cast(n->g, n->in[0], DT_F32);
    const int64_t samples = onnx_int(n, "sample_size", 1), last = 2;
    DType d;
    if (!onnx_dtype(n, "dtype", DT_I32, &d)) return NULL;
    if (!x) return NULL;
    if (x->type.rank != 2 || samples < 1 || samples > INT32_MAX || !dtype_is_int(d))
        return onnx_fail(n, "wants a matrix, a positive sample_size and a dtype of integers");
    const Type t = { .rank = 2, .dim = { x->type.dim[0], samples } };
    Node *soft = graph_node(n->g, OP_Softmax, 1, &x, 1);
    node_set_int(soft, "axis", 1);
    Value *p = b_finish(soft), *u = b_insert(n->g, uniform(n, &t, 0), 2);
    Node *running = p ? graph_node(n->g, OP_CumSum, 1, &p, 1) : NULL;
    if (!running) return NULL;
    node_set_int(running, "axis", 1);
    Value *sums = b_insert(n->g, b_finish(running), 1);
    Value *passed = sums && u ?
        b_reduce(n->g, OP_ReduceSum, b_cast(n->g, B_MAP(n->g, "x <= y", "x y", sums, u), DT_I32), 1, &last, false) :
        NULL;
    if (!passed || !dim_is_const(x->type.dim[1]))
        return passed ? onnx_fail(n, "the number of classes must be known") : NULL;
    // the last sum may round to less than 1
    return b_cast(
        n->g, B_MAP(n->g, arena_printf(n->g->arena, "min(x, %lld)", (long long)x->type.dim[1] - 1), "x", passed), d);
}
