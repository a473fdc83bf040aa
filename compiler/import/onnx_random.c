// SPDX-License-Identifier: MIT OR Apache-2.0
// Random tensors, and the optimizer steps of ONNX's preview domain.
//
// In: an OnnxNode. Out: RandomUniform, a function of seed and element index, and maps. Without a seed the node's number is one, so that two nodes
// differ and the same model always gives the same code. Normal numbers by Box and Muller: sqrt(-2 log u1) cos(2 pi u2).
#include "import/onnx.h"

#include <string.h>

static int64_t seed_of(OnnxNode *n, int64_t salt) {
    int64_t seed = onnx_has(n, "seed") ? (int64_t)onnx_float(n, "seed", 0) : 0x9e37 + (int64_t)n->loc->node * 7919;
    return seed * 2 + salt;
}

static Value *uniform(OnnxNode *n, const Type *shape, int64_t salt) {
    Node *node = graph_node(n->g, OP_RandomUniform, 0, NULL, 1);
    node_set_ints(node, "shape", shape->dim, shape->rank);
    node_set_int(node, "dtype", DT_F32);
    node_set_int(node, "seed", seed_of(n, salt));
    return onnx_finish(node);
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
    return b_cast(n->g, ONNX_MAP(n, text, "x", uniform(n, &t, 0)), t.dtype);
}

Value *onnx_random_normal(OnnxNode *n) {
    Type t;
    if (!random_type(n, &t)) return NULL;
    const char *text = arena_printf(n->g->arena, "sqrt(log(1 - x) * -2) * cos(y * 6.283185307179586) * %.17g + %.17g", onnx_float(n, "scale", 1), onnx_float(n, "mean", 0));
    Value *radius = uniform(n, &t, 0), *angle = uniform(n, &t, 1);
    return b_cast(n->g, ONNX_MAP(n, text, "x y", radius, angle), t.dtype);
}

// 1 with the probability that the input gives.
Value *onnx_bernoulli(OnnxNode *n) {
    Type t;
    if (!random_type(n, &t)) return NULL;
    Value *u = uniform(n, &t, 0);
    return b_cast(n->g, b_binary(n->g, OP_Less, u, b_cast(n->g, n->in[0], DT_F32)), t.dtype);
}

// ---------------------------------------------------------------- optimizer steps: rate, step count, then groups of tensors

// Input `group` of the i-th of `count` tensors.
static Value *member(OnnxNode *n, int group, int i, int count) { return onnx_input(n, 2 + group * count + i); }

static Value *regularised(OnnxNode *n, Value *x, Value *g) {
    return ONNX_MAP(n, arena_printf(n->g->arena, "x * %.17g + y", onnx_float(n, "norm_coefficient", 0)), "x y", x, g);
}

static int member_count(OnnxNode *n, int in_groups, int out_groups) {
    int count = (n->n_in - 2) / in_groups;
    if (n->n_in < 2 + in_groups || (n->n_in - 2) % in_groups || n->n_out != count * out_groups) return onnx_fail(n, "inputs and outputs do not form groups of equal size"), 0;
    return count;
}

// v = alpha v + beta g, x = x - rate v (or rate (g + alpha v)).
Value *onnx_momentum(OnnxNode *n) {
    int count = member_count(n, 3, 2);
    if (!count || !onnx_inputs(n, n->n_in)) return NULL;
    double alpha = onnx_float(n, "alpha", 0), beta = onnx_float(n, "beta", 1);
    bool nesterov = !strcmp(onnx_string(n, "mode", "standard"), "nesterov");
    Value *rate = onnx_scalar_of(n, n->in[0]), *step = onnx_scalar_of(n, n->in[1]);
    for (int i = 0; i < count; i++) {
        Value *x = member(n, 0, i, count), *g = regularised(n, x, member(n, 1, i, count));
        Value *grown = ONNX_MAP(n, arena_printf(n->g->arena, "x > 0 ? %.17g : 1", beta), "x", b_cast(n->g, step, x->type.dtype));
        Value *v = ONNX_MAP(n, arena_printf(n->g->arena, "x * %.17g + y * z", alpha), "x y z", member(n, 2, i, count), g, grown);
        Value *move = nesterov ? ONNX_MAP(n, arena_printf(n->g->arena, "x + y * %.17g", alpha), "x y", g, v) : v;
        n->out[i] = ONNX_MAP(n, "x - y * z", "x y z", x, rate, move);
        n->out[count + i] = v;
    }
    return n->out[0];
}

// h = h + g^2, x = x - rate / (1 + step decay) g / (sqrt(h) + epsilon).
Value *onnx_adagrad(OnnxNode *n) {
    int count = member_count(n, 3, 2);
    if (!count || !onnx_inputs(n, n->n_in)) return NULL;
    double epsilon = onnx_float(n, "epsilon", 1e-6), decay = onnx_float(n, "decay_factor", 0);
    Value *rate = onnx_scalar_of(n, n->in[0]), *step = onnx_scalar_of(n, n->in[1]);
    for (int i = 0; i < count; i++) {
        Value *x = member(n, 0, i, count), *g = regularised(n, x, member(n, 1, i, count));
        Value *h = ONNX_MAP(n, "x + y * y", "x y", member(n, 2, i, count), g);
        Value *slow = ONNX_MAP(n, arena_printf(n->g->arena, "x / (1 + y * %.17g)", decay), "x y", rate, b_cast(n->g, step, x->type.dtype));
        n->out[i] = ONNX_MAP(n, arena_printf(n->g->arena, "x - y * z / (sqrt(w) + %.17g)", epsilon), "x y z w", x, slow, g, h);
        n->out[count + i] = h;
    }
    return n->out[0];
}

// v = a v + (1 - a) g, h = b h + (1 - b) g^2, x = x - rate sqrt(1 - b^t) / (1 - a^t) v / (sqrt(h) + epsilon).
Value *onnx_adam(OnnxNode *n) {
    int count = member_count(n, 4, 3);
    if (!count || !onnx_inputs(n, n->n_in)) return NULL;
    double a = onnx_float(n, "alpha", 0.9), b = onnx_float(n, "beta", 0.999), epsilon = onnx_float(n, "epsilon", 1e-6), post = onnx_float(n, "norm_coefficient_post", 0);
    Value *rate = onnx_scalar_of(n, n->in[0]), *step = onnx_scalar_of(n, n->in[1]);
    for (int i = 0; i < count; i++) {
        Value *x = member(n, 0, i, count), *g = regularised(n, x, member(n, 1, i, count));
        Value *v = ONNX_MAP(n, arena_printf(n->g->arena, "x * %.17g + y * %.17g", a, 1 - a), "x y", member(n, 2, i, count), g);
        Value *h = ONNX_MAP(n, arena_printf(n->g->arena, "x * %.17g + y * y * %.17g", b, 1 - b), "x y", member(n, 3, i, count), g);
        const char *adjust = arena_printf(n->g->arena, "y > 0 ? x * sqrt(1 - pow(%.17g, y)) / (1 - pow(%.17g, y)) : x", b, a);
        Value *now = ONNX_MAP(n, adjust, "x y", rate, b_cast(n->g, step, x->type.dtype));
        const char *move = arena_printf(n->g->arena, "(x - y * z / (sqrt(w) + %.17g)) * %.17g", epsilon, 1 - post);
        n->out[i] = ONNX_MAP(n, move, "x y z w", x, now, v, h);
        n->out[count + i] = v;
        n->out[2 * count + i] = h;
    }
    return n->out[0];
}
