// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of random tensors.
//
// In: a type, a seed. Out: RandomUniform, a function of seed and element index, and maps. Normal numbers by Box and
// Muller: sqrt(-2 log u1) cos(2 pi u2).
#include "build/build.h"

// step: mixed into the seed, or NULL
static Value *uniform(Graph *g, const Type *shape, int64_t seed, Value *step) {
    Node *node = graph_node(g, OP_RandomUniform, step ? 1 : 0, &step, 1);
    node_set_ints(node, "shape", shape->dim, shape->rank);
    node_set_int(node, "dtype", DT_F32);
    node_set_int(node, "seed", seed);
    return b_finish(node);
}

Value *b_uniform(Graph *g, const Type *shape, int64_t seed) { return uniform(g, shape, seed, NULL); }

Value *b_random_uniform(Graph *g, const Type *t, int64_t seed, double low, double high) {
    const char *text = arena_printf(g->arena, "x * %.17g + %.17g", high - low, low);
    return b_cast(g, B_MAP(g, text, "x", b_uniform(g, t, seed * 2)), t->dtype);
}

Value *b_random_normal(Graph *g, const Type *t, int64_t seed, double mean, double deviation) {
    const char *text = arena_printf(
        g->arena, "sqrt(log(1 - x) * -2) * cos(y * 6.283185307179586) * %.17g + %.17g", deviation, mean);
    Value *radius = b_uniform(g, t, seed * 2), *angle = b_uniform(g, t, seed * 2 + 1);
    return b_cast(g, B_MAP(g, text, "x y", radius, angle), t->dtype);
}

Value *b_bernoulli(Graph *g, Value *p, DType d, int64_t seed) {
    Value *u = b_uniform(g, &p->type, seed * 2);
    return b_cast(g, b_binary(g, OP_Less, u, b_cast(g, p, DT_F32)), d);
}

// How many of the sums of the first probabilities a number u does not reach.
Value *b_multinomial(Graph *g, Value *x, int64_t samples, DType d, int64_t seed) {
    const int64_t last = 2;
    if (!(x = b_cast(g, x, DT_F32))) return NULL;
    if (x->type.rank != 2 || samples < 1 || samples > INT32_MAX || !dtype_is_int(d))
        return graph_fail(g, "wants a matrix, a positive sample_size and a dtype of integers");
    const Type t = { .rank = 2, .dim = { x->type.dim[0], samples } };
    Value *p = b_softmax(g, x, 1), *u = b_insert(g, b_uniform(g, &t, seed * 2), 2);
    Node *running = p ? graph_node(g, OP_CumSum, 1, &p, 1) : NULL;
    if (!running) return NULL;
    node_set_int(running, "axis", 1);
    Value *sums = b_insert(g, b_finish(running), 1);
    Value *below = b_cast(g, B_MAP(g, "x <= y", "x y", sums, u), DT_I32),
          *passed = b_reduce(g, OP_ReduceSum, below, 1, &last, false);
    if (!passed || !dim_is_const(x->type.dim[1]))
        return passed ? graph_fail(g, "the number of classes must be known") : NULL;
    // the last sum may round to less than 1
    const char *text = arena_printf(g->arena, "min(x, %lld)", (long long)x->type.dim[1] - 1);
    return b_cast(g, B_MAP(g, text, "x", passed), d);
}

// ---------------------------------------------------------------- dropout

Value *b_dropout(Graph *g, Value *x, const Drop *o, DType mask_type, Value **mask) {
    double factor = o->ratio < 1 ? 1 / (1 - o->ratio) : 0;
    Value *u = uniform(g, &x->type, o->seed, o->step);
    Value *kept = u ? b_binary(g, OP_GreaterOrEqual, u, b_like(g, u, o->ratio)) : NULL;
    *mask = b_cast(g, kept, mask_type);
    Value *scaled = b_binary(g, OP_Mul, x, b_like(g, x, factor));
    return b_where(g, kept, scaled, b_like(g, x, 0));
}

Value *b_dropout_trained(Graph *g, Value *x, double ratio) {
    if (!x) return NULL;
    Node *n = graph_node(g, OP_Dropout, 1, &x, 1);
    node_set_float(n, "ratio", ratio);
    return b_finish(n);
}

Value *b_dropout_run(
    Graph *g, Value *x, Value *ratio, Value *training, int64_t seed, DType mask_type, Value **mask) {
    ratio = b_cast(g, b_scalar_of(g, ratio), DT_F32);
    training = b_cast(g, b_scalar_of(g, training), DT_BOOL);
    Value *u = b_uniform(g, &x->type, seed);
    ratio = training && ratio ? b_where(g, training, ratio, b_scalar(g, DT_F32, 0)) : NULL;
    Value *kept = u && ratio ? b_binary(g, OP_GreaterOrEqual, u, ratio) : NULL;
    Value *factor = b_cast(g, B_MAP(g, "1 / (1 - x)", "x", ratio), x->type.dtype);
    *mask = b_cast(g, kept, mask_type);
    Value *scaled = b_binary(g, OP_Mul, x, factor);
    return kept && scaled ? b_where(g, kept, scaled, b_like(g, x, 0)) : NULL;
}
