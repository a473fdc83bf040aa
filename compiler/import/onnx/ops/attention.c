// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's operators for transformers: attention with its caches and masks, rotary embedding, and their linear relatives.
//
// In: an OnnxNode. Out: matrix products, maps and a softmax. The idea: query heads that share a key head become rows
// of one product, so keys and values are never repeated; every mask is a bool, and one choice of -inf applies all of
// them; the rows that it leaves empty give 0.
#include "import/onnx/onnx.h"

#include <math.h>
#include <string.h>

// [b, s, heads * d] -> [b, heads, s, d]; 4-D values already are.
Value *onnx_split_heads(OnnxNode *n, Value *x, int64_t heads) {
    if (!x || x->type.rank == 4) return x;
    const Dim *d = x->type.dim;
    if (x->type.rank != 3 || heads < 1 || (dim_is_const(d[2]) && d[2] % heads))
        return onnx_fail(
            n, "%s cannot be split into %lld heads", type_text(n->g->arena, n->g, &x->type), (long long)heads);
    return b_swap(n->g, b_reshape(n->g, x, 4, (Dim[]){ d[0], d[1], heads, dim_div(n->g, d[2], heads) }), 1, 2);
}

// [b, heads, s, d] -> [b, s, heads * d].
Value *onnx_join_heads(OnnxNode *n, Value *x) {
    if (!x) return NULL;
    const Dim *d = x->type.dim;
    return b_reshape(n->g, b_swap(n->g, x, 1, 2), 3, (Dim[]){ d[0], d[2], dim_mul(n->g, d[1], d[3]) });
}

// x [b, hq, l, m] times y [b, hkv, m, s]: the hq / hkv query heads of a key head are stacked as rows.
Value *onnx_grouped_matmul(OnnxNode *n, Value *x, Value *y) {
    if (!x || !y) return NULL;
    const Dim *a = x->type.dim, *c = y->type.dim;
    if (a[1] == c[1]) return b_matmul(n->g, x, y);
    if (!dim_is_const(a[1]) || !dim_is_const(c[1]) || c[1] < 1 || a[1] % c[1])
        return onnx_fail(n, "%lld query heads do not divide by %lld key heads", (long long)a[1], (long long)c[1]);
    Dim rows = dim_mul(n->g, a[1] / c[1], a[2]);
    Value *v = b_matmul(n->g, b_reshape(n->g, x, 4, (Dim[]){ a[0], c[1], rows, a[3] }), y);
    return b_reshape(n->g, v, 4, (Dim[]){ a[0], a[1], a[2], c[3] });
}

static Value *minus_infinity(OnnxNode *n, DType d) { return b_scalar(n->g, d, -INFINITY); }

static Value *both(OnnxNode *n, Value *x, Value *y) { return x && y ? b_binary(n->g, OP_And, x, y) : x ? x : y; }

// Softmax over the last axis; rows without any finite element give 0.
Value *onnx_masked_softmax(OnnxNode *n, Value *x, bool may_be_empty) {
    if (!x) return NULL;
    int64_t last = x->type.rank - 1;
    Node *node = graph_node(n->g, OP_Softmax, 1, &x, 1);
    node_set_int(node, "axis", last);
    if (may_be_empty) node_set_int(node, "empty", EMPTY_ZERO);
    return b_finish(node);
}

// Q and K each times sqrt(scale), as the standard says, where rounding could tell the difference; else Q times scale.
static Value *scaled_scores(OnnxNode *n, Value *q, Value *k, double scale) {
    if (!q || !k) return NULL;
    bool small = dtype_is_small_float(q->type.dtype);
    q = b_binary(n->g, OP_Mul, q, b_like(n->g, q, small ? sqrt(scale) : scale));
    k = b_swap(n->g, k, 2, 3);
    if (small) k = b_binary(n->g, OP_Mul, k, b_like(n->g, k, sqrt(scale)));
    return onnx_grouped_matmul(n, q, k);
}

// ---------------------------------------------------------------- Attention

typedef struct Masks { Value *allowed, *added; bool may_be_empty; } Masks;

// The model's mask, its last axis filled up to the number of keys.
static bool given_mask(OnnxNode *n, Dim keys, DType d, Masks *m) {
    Value *mask = onnx_optional(n, 3);
    if (!mask) return true;
    int rank = mask->type.rank;
    bool choice = mask->type.dtype == DT_BOOL;
    if (rank < 1 || rank > 4) return onnx_fail(n, "the mask has %d dimensions", rank), false;
    Dim have = mask->type.dim[rank - 1];
    if (dim_is_const(have) && dim_is_const(keys) && have < keys && have != 1) {
        int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
        hi[rank - 1] = keys - have;
        mask = b_pad(n->g, mask, lo, hi, NULL, choice ? NULL : minus_infinity(n, mask->type.dtype));
    }
    if (choice) m->allowed = both(n, m->allowed, mask);
    else m->added = b_cast(n->g, mask, d);
    m->may_be_empty = true;
    return mask != NULL;
}

// Which keys j a query i may see: j <= i + offset, and a window around i + offset. Offset: cached keys before the
// first query, per batch or for all.
static bool position_masks(OnnxNode *n, Dim queries, Dim keys, Masks *m) {
    bool causal = onnx_int(n, "is_causal", 0) != 0;
    int64_t left = onnx_int(n, "left_window_size", -1), right = onnx_int(n, "right_window_size", -1);
    Value *past = onnx_optional(n, 4), *lengths = onnx_optional(n, 6);
    Dim shape[2] = { queries, keys };
    Value *key = b_iota(n->g, 2, shape, 1, DT_I64);
    if (lengths) lengths = b_reshape(n->g, b_cast(n->g, lengths, DT_I64), 4, (Dim[]){ lengths->type.dim[0], 1, 1, 1 });
    if (causal || left >= 0 || right >= 0) {
        Value *at = b_iota(n->g, 2, shape, 0, DT_I64);
        if (past && !dim_is_const(past->type.dim[2]))
            return onnx_fail(n, "the causal mask needs a known cache size; pin the dimension with --dim NAME=V"),
                   false;
        if (past) at = b_binary(n->g, OP_Add, at, b_scalar(n->g, DT_I64, (double)past->type.dim[2]));
        else if (lengths && dim_is_const(queries))
            at = b_binary(n->g, OP_Add, at, b_binary(n->g, OP_Sub, lengths, b_scalar(n->g, DT_I64, (double)queries)));
        if (causal) m->allowed = both(n, m->allowed, b_binary(n->g, OP_LessOrEqual, key, at));
        if (left >= 0)
            m->allowed = both(n, m->allowed,
                b_binary(
                    n->g, OP_GreaterOrEqual, key, b_binary(n->g, OP_Sub, at, b_scalar(n->g, DT_I64, (double)left))));
        if (right >= 0)
            m->allowed = both(n, m->allowed,
                b_binary(
                    n->g, OP_LessOrEqual, key, b_binary(n->g, OP_Add, at, b_scalar(n->g, DT_I64, (double)right))));
        m->may_be_empty = m->may_be_empty || left >= 0 || right >= 0;
    }
    if (lengths) {
        m->allowed = both(n, m->allowed, b_binary(n->g, OP_Less, key, lengths));
        m->may_be_empty = true;
    }
    return true;
}

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
    Value *q = onnx_split_heads(n, n->in[0], heads), *k = with_past(n, onnx_split_heads(n, n->in[1], key_heads), 4),
          *v = with_past(n, onnx_split_heads(n, n->in[2], key_heads), 5);
    if (!q || !k || !v) return NULL;
    if (q->type.rank != 4 || k->type.rank != 4 || v->type.rank != 4 || !dim_is_const(q->type.dim[3]))
        return onnx_fail(n, "wants queries, keys and values of rank 3 or 4 with a known head size");
    DType d = q->type.dtype, soft;
    double softcap = onnx_float(n, "softcap", 0), scale = onnx_float(n, "scale", 1 / sqrt((double)q->type.dim[3]));
    Masks m = { 0 };
    if (!softmax_type(n, d, &soft) || !given_mask(n, k->type.dim[2], d, &m)
        || !position_masks(n, q->type.dim[2], k->type.dim[2], &m))
        return NULL;
    Value *scores = scaled_scores(n, q, k, scale), *shown = scores;
    if (softcap > 0)
        scores = B_MAP(n->g, arena_printf(n->g->arena, "tanh(x / %.17g) * %.17g", softcap, softcap), "x", scores);
    if (mode == 1) shown = scores;
    if (m.added) scores = b_binary(n->g, OP_Add, scores, m.added);
    if (m.allowed) scores = b_where(n->g, m.allowed, scores, minus_infinity(n, d));
    if (mode == 2) shown = scores;
    Value *p = b_cast(n->g, onnx_masked_softmax(n, b_cast(n->g, scores, soft), m.may_be_empty), d);
    if (mode == 3) shown = p;
    Value *y = onnx_grouped_matmul(n, p, b_cast(n->g, v, d));
    n->out[1] = k;
    n->out[2] = v;
    n->out[3] = shown;
    return flat ? onnx_join_heads(n, y) : y;
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
    Value *scores = scaled_scores(n, q, k, onnx_float(n, "scale", 1 / sqrt((double)q->type.dim[3])));
    Value *p = onnx_masked_softmax(n, modified(n, "score_mod", b_cast(n->g, scores, soft)), false);
    return onnx_grouped_matmul(n, b_cast(n->g, modified(n, "prob_mod", p), d), v);
}

// ---------------------------------------------------------------- rotary embedding

// x [b, heads, s, d]: pairs (a, b) of the first `size` elements turn by an angle: (a cos - b sin, a sin + b cos).
// Pairs are halves, or neighbours when interleaved; cos and sin broadcast to [b, heads, s, size / 2].
Value *onnx_rotated(OnnxNode *n, Value *x, Value *cosine, Value *sine, int64_t size, bool interleaved) {
    if (!x || !cosine || !sine) return NULL;
    const Type t = x->type;
    if (t.rank != 4 || !dim_is_const(t.dim[3]))
        return onnx_fail(n, "wants an input of rank 3 or 4 with a known head size");
    if (size < 2 || size > t.dim[3] || size % 2)
        return onnx_fail(n, "rotates %lld of %lld elements", (long long)size, (long long)t.dim[3]);
    Value *rotated = b_part(n->g, x, 3, 0, size), *part[2];
    Dim half[5] = { t.dim[0], t.dim[1], t.dim[2], interleaved ? size / 2 : 2, interleaved ? 2 : size / 2 };
    int axis = interleaved ? 4 : 3;
    rotated = b_reshape(n->g, rotated, 5, half);
    for (int i = 0; i < 2; i++) part[i] = b_remove(n->g, b_part(n->g, rotated, axis, i, 1), axis);
    Value *real = B_MAP(n->g, "x * z - y * w", "x y z w", part[0], part[1], cosine, sine);
    Value *imag = B_MAP(n->g, "x * w + y * z", "x y z w", part[0], part[1], cosine, sine);
    if (!real || !imag) return NULL;
    Value *y = b_concat(n->g, axis, 2, (Value *[]){ b_insert(n->g, real, axis), b_insert(n->g, imag, axis) });
    y = b_reshape(n->g, y, 4, (Dim[]){ t.dim[0], t.dim[1], t.dim[2], size });
    return size < t.dim[3] ? b_concat(n->g, 3, 2, (Value *[]){ y, b_part(n->g, x, 3, size, t.dim[3] - size) }) : y;
}

Value *onnx_rotary(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    Value *x = onnx_split_heads(n, n->in[0], onnx_int(n, "num_heads", 0)), *ids = onnx_optional(n, 3), *turn[2];
    if (!x) return NULL;
    int64_t size = onnx_int(n, "rotary_embedding_dim", 0);
    for (int i = 0; i < 2; i++) {
        turn[i] = ids ? b_gather(n->g, n->in[1 + i], ids, 0) : n->in[1 + i];
        if (turn[i] && turn[i]->type.rank == 3) turn[i] = b_insert(n->g, turn[i], 1);
    }
    Value *y = onnx_rotated(
        n, x, turn[0], turn[1], size ? size : x->type.dim[x->type.rank - 1], onnx_int(n, "interleaved", 0) != 0);
    return n->in[0]->type.rank == 3 ? onnx_join_heads(n, y) : y;
}

Value *onnx_swiglu(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    return B_MAP(n->g, arena_printf(n->g->arena, "x * sigmoid(x * %.17g) * y", onnx_float(n, "alpha", 1)), "x y",
        n->in[0], n->in[1]);
}

// ---------------------------------------------------------------- linear attention

// One state matrix [dk, dv] per head: S = exp(g) S + k (beta (v - S^T k))^T or k v^T, y = scale q^T S. Steps are
// unrolled.
typedef struct Linear { Value *state, *q, *k, *v, *decay, *beta; double scale; } Linear;

static Value *step_of(OnnxNode *n, Value *x, int64_t t) { return x ? b_part(n->g, x, 2, t, 1) : NULL; }

static Value *linear_step(OnnxNode *n, Linear *l, int64_t t) {
    Value *k = step_of(n, l->k, t), *v = step_of(n, l->v, t), *key = b_swap(n->g, k, 2, 3);
    if (l->decay) l->state = B_MAP(n->g, "x * exp(y)", "x y", l->state, b_swap(n->g, step_of(n, l->decay, t), 2, 3));
    if (l->beta) {
        Value *known = b_matmul(n->g, k, l->state), *beta = step_of(n, l->beta, t);
        v = B_MAP(n->g, "(x - y) * z", "x y z", v, known, beta);
    }
    l->state = b_binary(n->g, OP_Add, l->state, b_binary(n->g, OP_Mul, key, v));
    Value *y = onnx_grouped_matmul(n, step_of(n, l->q, t), l->state);
    return y ? b_binary(n->g, OP_Mul, y, b_like(n->g, y, l->scale)) : NULL;
}

// [b, t, heads] or [b, t, heads * d] -> [b, heads, t, 1 or d] in f32.
static Value *gate_heads(OnnxNode *n, int input, int64_t heads) {
    Value *x = onnx_optional(n, input);
    if (!x) return NULL;
    bool shared = x->type.rank == 3 && x->type.dim[2] == 1;
    return onnx_split_heads(n, b_cast(n->g, x, DT_F32), shared ? 1 : heads);
}

Value *onnx_linear_attention(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    int64_t heads = onnx_int(n, "q_num_heads", 0), key_heads = onnx_int(n, "kv_num_heads", 0);
    const char *rule = onnx_string(n, "update_rule", "gated_delta");
    bool gated = !strncmp(rule, "gated", 5), delta = strstr(rule, "delta") != NULL;
    onnx_int(n, "chunk_size", 64);
    Linear l = { .q = onnx_split_heads(n, b_cast(n->g, n->in[0], DT_F32), heads),
        .k = onnx_split_heads(n, b_cast(n->g, n->in[1], DT_F32), key_heads),
        .v = onnx_split_heads(n, b_cast(n->g, n->in[2], DT_F32), key_heads) };
    if (!l.q || !l.k || !l.v || !b_static(n->g, l.q, "LinearAttention")) return NULL;
    if (gated && !(l.decay = gate_heads(n, 4, key_heads)))
        return onnx_fail(n, "update rule \"%s\" wants a decay", rule);
    if (delta && !(l.beta = gate_heads(n, 5, key_heads))) return onnx_fail(n, "update rule \"%s\" wants a beta", rule);
    Dim shape[4] = { l.k->type.dim[0], l.k->type.dim[1], l.k->type.dim[3], l.v->type.dim[3] };
    Value *past = onnx_optional(n, 3);
    l.state = past ? b_cast(n->g, past, DT_F32) : b_filled(n->g, DT_F32, 0, 4, shape);
    l.scale = onnx_float(n, "scale", 0);
    if (l.scale == 0) l.scale = 1 / sqrt((double)l.q->type.dim[3]);
    int64_t steps = l.q->type.dim[2];
    if (steps < 1 || steps > 256) {
        diag_error_as(
            EXIT_LIMIT, n->loc, "%lld steps of linear attention; between 1 and 256 are supported", (long long)steps);
        return NULL;
    }
    Value **y = NEW_ARRAY(n->g->arena, Value *, steps);
    for (int64_t t = 0; t < steps; t++)
        if (!(y[t] = linear_step(n, &l, t))) return NULL;
    n->out[1] = b_cast(n->g, l.state, past ? past->type.dtype : n->in[0]->type.dtype);
    return b_cast(n->g, onnx_join_heads(n, b_concat(n->g, 2, (int)steps, y)), n->in[0]->type.dtype);
}

// A depthwise convolution over time that continues from the last k - 1 inputs of the call before.
Value *onnx_causal_conv(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *w = n->in[1], *bias = onnx_optional(n, 2), *past = onnx_optional(n, 3);
    const char *activation = onnx_string(n, "activation", "none");
    if (x->type.rank != 3 || w->type.rank != 3 || !b_static(n->g, x, "CausalConvWithState")
        || !b_static(n->g, w, "a weight"))
        return onnx_fail(n, "input and weight must have 3 dimensions");
    if (w->type.dim[2] < 1) return onnx_fail(n, "the weight has no taps");
    int64_t before = w->type.dim[2] - 1, lo[MAX_RANK] = { 0, 0, before }, hi[MAX_RANK] = { 0 };
    Value *whole = past ? b_concat(n->g, 2, 2, (Value *[]){ past, x }) : b_pad(n->g, x, lo, hi, NULL, NULL);
    Window win = { .rank = 1, .kernel = { w->type.dim[2] }, .strides = { 1 }, .dilations = { 1 } };
    Value *y = onnx_convolve(n, whole, w, &win, x->type.dim[1]);
    if (bias && y) y = b_binary(n->g, OP_Add, y, b_along(n->g, bias, 3, 1));
    if (!whole || !b_static(n->g, whole, "CausalConvWithState")) return NULL;
    if (whole->type.dim[2] < before)
        return onnx_fail(n, "the state and the input have %lld steps, fewer than the %lld to keep",
            (long long)whole->type.dim[2], (long long)before);
    n->out[1] = b_part(n->g, whole, 2, whole->type.dim[2] - before, before);
    if (!strcmp(activation, "none")) return y;
    if (strcmp(activation, "silu") && strcmp(activation, "swish"))
        return onnx_fail(n, "attribute \"activation\" is \"%s\"", activation);
    return b_unary(n->g, OP_Swish, y);
}
