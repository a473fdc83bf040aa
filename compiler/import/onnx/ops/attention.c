// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's operators for transformers: attention with its caches and masks, rotary embedding, and their linear relatives.
//
// In: an OnnxNode. Out: what build/attention.c makes of its inputs and attributes.
#include "import/onnx/onnx.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- Attention

// The cache in front of the new keys or values.
static Value *with_past(OnnxNode *n, Value *v, int input) {
    Value *past = onnx_optional(n, input);
    return past && v ? b_concat(n->g, 2, 2, (Value *[]){ past, v }) : v;
}

static bool softmax_type(OnnxNode *n, DType d, DType *out) {
    *out = d;
    return !onnx_has(n, "softmax_precision") || onnx_dtype(n, "softmax_precision", d, out);
}

Value *onnx_attention(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    bool flat = n->in[0]->type.rank == 3;
    int64_t heads = onnx_int(n, "q_num_heads", 0), key_heads = onnx_int(n, "kv_num_heads", 0),
            mode = onnx_int(n, "qk_matmul_output_mode", 0);
    Value *q = b_split_heads(n->g, n->in[0], heads), *k = with_past(n, b_split_heads(n->g, n->in[1], key_heads), 4),
          *v = with_past(n, b_split_heads(n->g, n->in[2], key_heads), 5);
    if (!q || !k || !v) return NULL;
    if (q->type.rank != 4 || k->type.rank != 4 || v->type.rank != 4 || !dim_is_const(q->type.dim[3]))
        return onnx_fail(n, "wants queries, keys and values of rank 3 or 4 with a known head size");
    DType d = q->type.dtype;
    double softcap = onnx_float(n, "softcap", 0), scale = onnx_float(n, "scale", 1 / sqrt((double)q->type.dim[3]));
    MaskedAttention a = { .q = q, .k = k, .v = v, .scale = scale, .softcap = softcap };
    KeyRange range = { onnx_int(n, "is_causal", 0) != 0, onnx_int64(n, "left_window_size", -1),
        onnx_int64(n, "right_window_size", -1), onnx_optional(n, 4), onnx_optional(n, 6) };
    if (!softmax_type(n, d, &a.soft) || !b_mask(n->g, &a.masks, onnx_optional(n, 3), k->type.dim[2], d)
        || !b_mask_positions(n->g, &a.masks, &range, q->type.dim[2], k->type.dim[2]))
        return NULL;
    Value *y = b_masked_attention(n->g, &a);
    n->out[1] = k;
    n->out[2] = v;
    n->out[3] = mode == 1 ? a.capped : mode == 2 ? a.masked : mode == 3 ? a.probabilities : a.scores;
    return flat ? b_join_heads(n->g, y) : y;
}

static Value *modified(OnnxNode *n, const char *attr, Value *v) {
    Value *out;
    if (!v || !onnx_has(n, attr)) return v;
    return onnx_subgraph(n, attr, 1, &v, 1, &out) ? out : NULL;
}

// Scores and probabilities pass through graphs of the model's own.
Value *onnx_flex_attention(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    Value *q = n->in[0], *k = n->in[1], *v = n->in[2];
    DType d = q->type.dtype, soft;
    if (q->type.rank != 4 || k->type.rank != 4 || v->type.rank != 4 || !dim_is_const(q->type.dim[3]))
        return onnx_fail(n, "wants queries, keys and values of rank 4 with a known head size");
    if (!softmax_type(n, dtype_wide(d), &soft)) return NULL;
    Value *scores = b_scores(n->g, q, k, onnx_float(n, "scale", 1 / sqrt((double)q->type.dim[3])));
    Value *p = b_masked_softmax(n->g, modified(n, "score_mod", b_cast(n->g, scores, soft)), false);
    return b_grouped_matmul(n->g, b_cast(n->g, modified(n, "prob_mod", p), d), v);
}

// ---------------------------------------------------------------- rotary embedding

Value *onnx_rotary(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    Value *x = b_split_heads(n->g, n->in[0], onnx_int(n, "num_heads", 0)), *ids = onnx_optional(n, 3), *turn[2];
    if (!x) return NULL;
    int64_t size = onnx_int(n, "rotary_embedding_dim", 0);
    for (int i = 0; i < 2; i++) {
        turn[i] = ids ? b_gather(n->g, n->in[1 + i], ids, 0) : n->in[1 + i];
        if (turn[i] && turn[i]->type.rank == 3) turn[i] = b_insert(n->g, turn[i], 1);
    }
    Value *y = b_rotated(
        n->g, x, turn[0], turn[1], size ? size : x->type.dim[x->type.rank - 1], onnx_int(n, "interleaved", 0) != 0);
    return n->in[0]->type.rank == 3 ? b_join_heads(n->g, y) : y;
}

Value *onnx_swiglu(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    return B_MAP(n->g, arena_printf(n->g->arena, "x * sigmoid(x * %.17g) * y", onnx_float(n, "alpha", 1)), "x y",
        n->in[0], n->in[1]);
}

// ---------------------------------------------------------------- linear attention

// [b, t, heads] or [b, t, heads * d] -> [b, heads, t, 1 or d], as wide as the queries.
static Value *gate_heads(OnnxNode *n, int input, int64_t heads) {
    Value *x = onnx_optional(n, input);
    if (!x) return NULL;
    bool shared = x->type.rank == 3 && x->type.dim[2] == 1;
    return b_split_heads(n->g, b_cast(n->g, x, dtype_wide(n->in[0]->type.dtype)), shared ? 1 : heads);
}

Value *onnx_linear_attention(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    int64_t heads = onnx_int(n, "q_num_heads", 0), key_heads = onnx_int(n, "kv_num_heads", 0);
    const char *rule = onnx_string(n, "update_rule", "gated_delta");
    bool gated = !strncmp(rule, "gated", 5), delta = strstr(rule, "delta") != NULL;
    onnx_int(n, "chunk_size", 64);
    const DType wide = dtype_wide(n->in[0]->type.dtype);
    LinearAttention l = { .q = b_split_heads(n->g, b_cast(n->g, n->in[0], wide), heads),
        .k = b_split_heads(n->g, b_cast(n->g, n->in[1], wide), key_heads),
        .v = b_split_heads(n->g, b_cast(n->g, n->in[2], wide), key_heads) };
    if (!l.q || !l.k || !l.v || !b_static(n->g, l.q, "LinearAttention")) return NULL;
    if (gated && !(l.decay = gate_heads(n, 4, key_heads)))
        return onnx_fail(n, "update rule \"%s\" wants a decay", rule);
    if (delta && !(l.beta = gate_heads(n, 5, key_heads))) return onnx_fail(n, "update rule \"%s\" wants a beta", rule);
    Dim shape[4] = { l.k->type.dim[0], l.k->type.dim[1], l.k->type.dim[3], l.v->type.dim[3] };
    Value *past = onnx_optional(n, 3);
    l.state = past ? b_cast(n->g, past, wide) : b_filled(n->g, wide, 0, 4, shape);
    l.scale = onnx_float(n, "scale", 0);
    if (l.scale == 0) l.scale = 1 / sqrt((double)l.q->type.dim[3]);
    Value *y = b_linear_attention(n->g, &l);
    n->out[1] = b_cast(n->g, l.state, past ? past->type.dtype : n->in[0]->type.dtype);
    return b_cast(n->g, b_join_heads(n->g, y), n->in[0]->type.dtype);
}

// A depthwise convolution over time that continues from the last k - 1 inputs of the call before.
Value *onnx_causal_conv(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *w = n->in[1], *bias = onnx_optional(n, 2), *past = onnx_optional(n, 3);
    const char *activation = onnx_string(n, "activation", "none");
    if (x->type.rank != 3 || w->type.rank != 3)
        return onnx_fail(n, "input and weight must have 3 dimensions");
    if (dim_is_const(w->type.dim[2]) && w->type.dim[2] < 1) return onnx_fail(n, "the weight has no taps");
    Value *y = b_causal_conv(n->g, x, w, bias, past, &n->out[1]);
    if (!y) return NULL;
    if (!strcmp(activation, "none")) return y;
    if (strcmp(activation, "silu") && strcmp(activation, "swish"))
        return onnx_fail(n, "attribute \"activation\" is \"%s\"", activation);
    return b_unary(n->g, OP_Swish, y);
}
