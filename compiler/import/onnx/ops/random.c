// SPDX-License-Identifier: MIT OR Apache-2.0
// Random tensors.
//
// In: an OnnxNode. Out: what build/random.c makes of its attributes. Without a seed the node's number is one, so that
// two nodes differ and the same model always gives the same code.
#include "import/onnx/onnx.h"

#include <string.h>

// A seed is a float32, and may be a fraction: its bits tell it from all others.
static int64_t seed_of(OnnxNode *n) {
    float given = (float)onnx_float(n, "seed", 0);
    uint32_t bits;
    memcpy(&bits, &given, sizeof bits);
    return onnx_has(n, "seed") ? (int64_t)bits : 0x9e37 + (int64_t)n->loc->node * 7919;
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
    return b_random_uniform(n->g, &t, seed_of(n), low, high);
}

Value *onnx_random_normal(OnnxNode *n) {
    Type t;
    if (!random_type(n, &t)) return NULL;
    double deviation = onnx_float(n, "scale", 1), mean = onnx_float(n, "mean", 0);
    return b_random_normal(n->g, &t, seed_of(n), mean, deviation);
}

Value *onnx_bernoulli(OnnxNode *n) {
    Type t;
    if (!random_type(n, &t)) return NULL;
    return b_bernoulli(n->g, n->in[0], t.dtype, seed_of(n));
}

Value *onnx_multinomial(OnnxNode *n) {
    DType d;
    if (!onnx_inputs(n, 1)) return NULL;
    int64_t samples = onnx_int(n, "sample_size", 1);
    return onnx_dtype(n, "dtype", DT_I32, &d) ? b_multinomial(n->g, n->in[0], samples, d, seed_of(n)) : NULL;
}
