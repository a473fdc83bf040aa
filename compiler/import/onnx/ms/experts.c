// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: mixtures of experts, biases by relative position, attention over sequences without padding.
//
// In: an OnnxNode. Out: what build/experts.c and build/attention.c make of it; matrix products, gathers, maps.
#include "import/onnx/onnx.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- MoE

// Of the inputs, attributes and what the caller has set.
static Value *mixture(OnnxNode *n, Experts *e) {
    if (onnx_int(n, "use_sparse_mixer", 0))
        return onnx_fail(n, "use_sparse_mixer is not supported; export the model with a softmax router");
    e->chosen = onnx_int(n, "k", 1);
    e->normalize = onnx_int(n, "normalize_routing_weights", 0) != 0;
    e->activation = onnx_string(n, "activation_type", "relu");
    e->fusion = onnx_int(n, "swiglu_fusion", 0);
    if (!strcmp(e->activation, "swiglu")) {
        e->alpha = onnx_float(n, "activation_alpha", 1);
        e->beta = onnx_float(n, "activation_beta", 0);
        e->limit = onnx_float(n, "swiglu_limit", INFINITY);
    }
    return b_experts(n->g, e, n->in[0], n->in[1]);
}

// input, scores, then weights and bias of fc1, fc2, fc3.
Value *onnx_ms_experts(OnnxNode *n) {
    Experts e = { .count = 0 };
    if (!onnx_inputs(n, 3) || !onnx_input(n, 4)) return NULL;
    for (int i = 0; i < 3; i++) {
        Value *w = onnx_optional(n, 2 + 2 * i);
        if (w && w->type.rank != 3) return onnx_fail(n, "the weights must be [experts, out, in]");
        e.w[i] = b_cast(n->g, w, dtype_wide(n->in[0]->type.dtype));
        e.bias[i] = b_cast(n->g, onnx_optional(n, 3 + 2 * i), dtype_wide(n->in[0]->type.dtype));
    }
    e.count = n->in[2]->type.dim[0];
    if (!dim_is_const(e.count)) return onnx_fail(n, "the number of experts must be known");
    return mixture(n, &e);
}

// Weights of few bits [experts, out, bytes] with a scale each row [experts, out] or each block of a row [experts,
// out, blocks], and zero points packed like the weights: [experts, bytes of out] or [experts, out, bytes of blocks].
static Value *expert_weights(OnnxNode *n, int at, int zero_at, const char *own_bits, DType wide) {
    int64_t bits = onnx_int(n, own_bits, onnx_int(n, "expert_weight_bits", 4)), size = onnx_int(n, "block_size", 0);
    Value *q = onnx_optional(n, at), *scale = onnx_optional(n, at + 1), *zero = onnx_optional(n, zero_at);
    if (!b_known_bits(n->g, bits)) return NULL;
    if (!q || !scale || q->type.dtype != DT_U8 || q->type.rank != 3 || !type_is_static(&q->type)
        || !type_is_static(&scale->type))
        return onnx_fail(n, "the weights must be bytes [experts, out, in] with scales, of known sizes");
    const Dim *d = q->type.dim;
    int64_t columns = d[2] * (8 / bits), blocks = size > 0 ? columns / size : 1;
    if (blocks < 1 || type_count(&scale->type) != d[0] * d[1] * blocks || columns % blocks)
        return onnx_fail(n, "the scales %s do not fit the weights %s", type_text(n->g->arena, n->g, &scale->type),
            type_text(n->g->arena, n->g, &q->type));
    scale = b_reshape(n->g, b_cast(n->g, scale, wide), 4, (Dim[]){ d[0], d[1], blocks, 1 });
    if (zero)
        zero = b_cast(n->g,
            b_reshape(
                n->g, b_unpacked(n->g, zero, bits, size > 0 ? blocks : d[1]), 4, (Dim[]){ d[0], d[1], blocks, 1 }),
            wide);
    else zero = b_scalar(n->g, wide, (double)(1 << (bits - 1)));
    q = b_reshape(n->g, b_unpacked(n->g, q, bits, columns), 4, (Dim[]){ d[0], d[1], blocks, columns / blocks });
    if (!q || !zero || !scale) return NULL;
    return b_reshape(n->g,
        B_MAP(n->g, arena_printf(n->g->arena, "(%s(x) - y) * z", dtype_name(wide)), "x y z", q, zero, scale), 3,
        (Dim[]){ d[0], d[1], columns });
}

// input, scores, then packed weights, scales and bias of fc1, fc2, fc3, their zero points, and mixing weights.
Value *onnx_ms_quantised_experts(OnnxNode *n) {
    static const char *const bits[] = { "fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits" };
    Experts e = { .count = 0 };
    if (!onnx_inputs(n, 4) || !onnx_input(n, 5)) return NULL;
    if (strcmp(onnx_string(n, "quant_type", "int"), "int"))
        return onnx_fail(n, "quant_type \"%s\" is not supported; int is", onnx_string(n, "quant_type", ""));
    if (onnx_int(n, "weights_prepacked", 0) > 0)
        return onnx_fail(n, "weights packed for one device are not supported; quantise the model without prepacking");
    if (!onnx_int(n, "normalize_routing_weights", 0) && !onnx_optional(n, 14))
        return onnx_fail(n,
            "what the routing weights are without normalize_routing_weights depends on the device; export the model "
            "with it");
    onnx_int(n, "accuracy_level", 0);
    DType wide = dtype_wide(n->in[0]->type.dtype);
    for (int i = 0; i < 3; i++) {
        if (!onnx_optional(n, 2 + 3 * i)) continue;
        if (!(e.w[i] = expert_weights(n, 2 + 3 * i, 11 + i, bits[i], wide))) return NULL;
        e.bias[i] = b_cast(n->g, onnx_optional(n, 4 + 3 * i), wide);
    }
    e.count = n->in[2]->type.dim[0];
    e.mixing = onnx_optional(n, 14);
    return mixture(n, &e);
}

// ---------------------------------------------------------------- biases by relative position

// T5's bucket of the distance key - query: exact up to max_exact, then logarithmic up to max_distance (Raffel et al.,
// 2020).
static int64_t bucket_of(int64_t distance, int64_t buckets, int64_t most, bool both_ways) {
    int64_t base = 0;
    if (both_ways) {
        buckets /= 2;
        if (distance > 0) base = buckets;
        distance = distance < 0 ? -distance : distance;
    } else distance = distance < 0 ? -distance : 0;
    int64_t exact = buckets / 2;
    if (distance < exact || exact < 1) return base + (distance < buckets ? distance : buckets - 1);
    float at = logf((float)distance / (float)exact) / logf((float)most / (float)exact) * (float)(buckets - exact);
    return base + (at < (float)(buckets - exact) ? exact + (int64_t)at : buckets - 1);
}

// A table [buckets, heads] -> [1, heads, queries, keys].
Value *onnx_ms_relative_bias(OnnxNode *n) {
    int64_t size[2], most = onnx_int(n, "max_distance", 128);
    bool both_ways = onnx_int(n, "is_bidirectional", 0) != 0;
    if (!onnx_inputs(n, 3)) return NULL;
    for (int i = 0; i < 2; i++) {
        DimValue v;
        if (!onnx_dim_value(n->g, n->in[1 + i], &v) || (v.symbolic && !dim_is_const(v.v)))
            return onnx_fail(n, "the numbers of queries and keys must be known; pin the dimensions with --dim NAME=V");
        size[i] = v.v;
    }
    const Value *table = n->in[0];
    if (table->type.rank != 2 || !dim_is_const(table->type.dim[0]) || most < 2 || size[0] < 1 || size[1] < 1
        || size[0] > INT32_MAX || size[1] > INT32_MAX)
        return onnx_fail(n, "wants a table [buckets, heads] of known size and positive numbers of queries and keys");
    int64_t distances = size[0] + size[1] - 1;
    if (!b_table(n->g, (double)distances)) {
        diag_error_as(EXIT_LIMIT, n->loc, "%lld distances are too many for a table", (long long)distances);
        return NULL;
    }
    Tensor *at = tensor_new(n->g->arena, type_make(DT_I64, 1, &distances));
    for (int64_t i = 0; i < distances; i++)
        tensor_set_i(at, i, bucket_of(i - size[0] + 1, table->type.dim[0], most, both_ways));
    Value *place = B_MAP(n->g, arena_printf(n->g->arena, "y - x + %lld", (long long)(size[0] - 1)), "x y",
        b_iota(n->g, 2, size, 0, DT_I64), b_iota(n->g, 2, size, 1, DT_I64));
    Value *of_distance = b_swap(n->g, n->in[0], 0, 1);
    of_distance = b_gather(n->g, of_distance, graph_const(n->g, at, NULL), 1);
    Value *bias = b_gather(n->g, of_distance, place, 1);
    if (!bias) return NULL;
    return b_insert(n->g, bias, 0);
}

// Queries [b, s, heads * d] + bias decide how much of a bias by position [1, heads, s, s] counts: two gates a query
// and head.
Value *onnx_ms_gated_bias(OnnxNode *n) {
    int64_t heads = onnx_int(n, "num_heads", 0);
    if (!onnx_inputs(n, 6)) return NULL;
    if (onnx_optional(n, 6))
        return onnx_fail(n, "packed sequences (token_offset) are not supported; export the model with padding");
    Value *q = b_split_heads(n->g, b_binary(n->g, OP_Add, n->in[0], n->in[1]), heads),
          *u = b_matmul(n->g, q, n->in[3]);
    u = b_binary(n->g, OP_Add, u, n->in[4]);            // [b, heads, s, gates]
    if (!u || u->type.rank != 4 || !dim_is_const(u->type.dim[3]) || u->type.dim[3] % 2)
        return onnx_fail(n, "the gates' weights must have a known and even number of columns");
    const Dim *d = u->type.dim;
    Value *sum = b_reduce(n->g, OP_ReduceSum, b_reshape(n->g, u, 5, (Dim[]){ d[0], d[1], d[2], 2, d[3] / 2 }), 1,
        (int64_t[]){ 4 }, false);
    Value *gates = b_unary(n->g, OP_Sigmoid, sum), *update = b_part(n->g, gates, 3, 0, 1),
          *reset = b_part(n->g, gates, 3, 1, 1);
    return update && reset ? B_MAP(n->g, "(x * (y * z - 1) + 2) * w", "x y z w", update, reset, n->in[5], n->in[2]) :
                             NULL;
}

// ---------------------------------------------------------------- PackedAttention

// Tokens of all sequences behind each other: input [tokens, features], weights, bias, where each token lies in [b, s]
// (real ones first), and where each sequence begins [b + 1]. The sequences are laid out with padding for the
// attention, and the padding is dropped after it.
Value *onnx_ms_packed_attention(OnnxNode *n) {
    int count;
    int64_t heads = onnx_int(n, "num_heads", 0), size[3];
    if (!onnx_inputs(n, 5)) return NULL;
    Value *offsets = n->in[3], *begins = n->in[4], *part[3];
    Value *projected = b_binary(n->g, OP_Add, b_matmul(n->g, n->in[0], n->in[1]), n->in[2]);
    const int64_t *given = onnx_ints(n, "qkv_hidden_sizes", &count);
    if (!projected || projected->type.rank != 2 || offsets->type.rank != 2 || begins->type.rank != 1
        || !dim_is_const(projected->type.dim[1]) || (given && count != 3))
        return onnx_fail(n, "wants an input [tokens, features], offsets [batch, sequence] and beginnings [batch + 1]");
    Dim batch = offsets->type.dim[0], length = offsets->type.dim[1], tokens = projected->type.dim[0];
    Value *first = b_cast(n->g, b_reshape(n->g, b_part(n->g, begins, 0, 0, batch), 2, (Dim[]){ batch, 1 }), DT_I64);
    Value *end = b_cast(n->g, b_reshape(n->g, b_part(n->g, begins, 0, 1, batch), 2, (Dim[]){ batch, 1 }), DT_I64);
    Value *at = b_binary(n->g, OP_Add, first, b_iota(n->g, 1, &length, 0, DT_I64)),
          *real = b_binary(n->g, OP_Less, at, end);
    // [b, s, features]; padding reads another's tokens, or 0, and is masked
    Value *rows = b_gather(n->g, projected, at, 0);
    int64_t from = 0;
    for (int i = 0; i < 3; from += size[i++]) {
        size[i] = given ? given[i] : projected->type.dim[1] / 3;
        if (size[i] < 1 || size[i] > projected->type.dim[1] - from)
            return onnx_fail(n, "the columns of the weights do not divide into queries, keys and values");
        part[i] = b_split_heads(n->g, b_part(n->g, rows, 2, from, size[i]), heads);
    }
    Attend a = { .q = part[0],
        .k = part[1],
        .v = part[2],
        .scale = onnx_float(n, "scale", 0),
        .allowed = b_reshape(n->g, real, 4, (Dim[]){ batch, 1, 1, length }) };
    a.added[0] = onnx_optional(n, 5);
    if (!real || !a.q || !a.k || !a.v) return NULL;
    a.may_be_empty = true;
    Value *y = b_reshape(n->g, b_attend(n->g, &a), 2, (Dim[]){ dim_mul(n->g, batch, length), size[2] });
    return b_gather(
        n->g, y, b_part(n->g, b_reshape(n->g, offsets, 1, (Dim[]){ dim_mul(n->g, batch, length) }), 0, 0, tokens), 0);
}
