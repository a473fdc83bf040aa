// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders for transformers: heads, attention with its masks, rotary embedding, and their linear relatives.
//
// In: queries, keys and values [b, heads, s or t, d] (b batch, s queries, t keys, d elements of a head). Out: matrix
// products, maps and a softmax. The idea: query heads that share a key head become rows of one product, so keys and
// values are never repeated; every mask is a bool, and one choice of -inf applies all of them; the rows that it leaves
// empty give 0.
#include "build/build.h"

#include <math.h>

// ---------------------------------------------------------------- heads

// [b, s, heads * d] -> [b, heads, s, d]; 4-D values already are.
Value *b_split_heads(Graph *g, Value *x, int64_t heads) {
    if (!x || x->type.rank == 4) return x;
    const Dim *d = x->type.dim;
    if (x->type.rank != 3 || heads < 1 || (dim_is_const(d[2]) && d[2] % heads))
        return graph_fail(g, "%s cannot be split into %lld heads", type_text(g->arena, g, &x->type), (long long)heads);
    return b_swap(g, b_reshape(g, x, 4, (Dim[]){ d[0], d[1], heads, dim_div(g, d[2], heads) }), 1, 2);
}

// [b, heads, s, d] -> [b, s, heads * d].
Value *b_join_heads(Graph *g, Value *x) {
    if (!x) return NULL;
    const Dim *d = x->type.dim;
    return b_reshape(g, b_swap(g, x, 1, 2), 3, (Dim[]){ d[0], d[2], dim_mul(g, d[1], d[3]) });
}

// x [b, hq, l, m] times y [b, hkv, m, s]: the hq / hkv query heads of a key head are stacked as rows.
Value *b_grouped_matmul(Graph *g, Value *x, Value *y) {
    if (!x || !y) return NULL;
    const Dim *a = x->type.dim, *c = y->type.dim;
    if (a[1] == c[1]) return b_matmul(g, x, y);
    if (!dim_is_const(a[1]) || !dim_is_const(c[1]) || c[1] < 1 || a[1] % c[1])
        return graph_fail(g, "%lld query heads do not divide by %lld key heads", (long long)a[1], (long long)c[1]);
    Dim rows = dim_mul(g, a[1] / c[1], a[2]);
    Value *v = b_matmul(g, b_reshape(g, x, 4, (Dim[]){ a[0], c[1], rows, a[3] }), y);
    return b_reshape(g, v, 4, (Dim[]){ a[0], a[1], a[2], c[3] });
}

static Value *minus_infinity(Graph *g, DType d) { return b_scalar(g, d, -INFINITY); }

static Value *both(Graph *g, Value *x, Value *y) { return x && y ? b_binary(g, OP_And, x, y) : x ? x : y; }

// Softmax over the last axis; rows without any finite element give 0.
Value *b_masked_softmax(Graph *g, Value *x, bool may_be_empty) {
    if (!x) return NULL;
    Node *node = graph_node(g, OP_Softmax, 1, &x, 1);
    node_set_int(node, "axis", x->type.rank - 1);
    if (may_be_empty) node_set_int(node, "empty", EMPTY_ZERO);
    return b_finish(node);
}

// Q and K each times sqrt(scale), as the standard says, where rounding could tell the difference; else Q times scale.
Value *b_scores(Graph *g, Value *q, Value *k, double scale) {
    if (!q || !k) return NULL;
    bool small = dtype_is_small_float(q->type.dtype);
    q = b_binary(g, OP_Mul, q, b_like(g, q, small ? sqrt(scale) : scale));
    k = b_swap(g, k, 2, 3);
    if (small) k = b_binary(g, OP_Mul, k, b_like(g, k, sqrt(scale)));
    return b_grouped_matmul(g, q, k);
}

// ---------------------------------------------------------------- masks

// The model's mask, its last axis filled up to the number of keys.
bool b_mask(Graph *g, Masks *m, Value *mask, Dim keys, DType d) {
    if (!mask) return true;
    int rank = mask->type.rank;
    bool choice = mask->type.dtype == DT_BOOL;
    if (rank < 1 || rank > 4) return graph_fail(g, "the mask has %d dimensions", rank), false;
    Dim have = mask->type.dim[rank - 1];
    if (dim_is_const(have) && dim_is_const(keys) && have < keys && have != 1) {
        int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
        hi[rank - 1] = keys - have;
        mask = b_pad(g, mask, lo, hi, NULL, choice ? NULL : minus_infinity(g, mask->type.dtype));
    }
    if (choice) m->allowed = both(g, m->allowed, mask);
    else m->added = b_cast(g, mask, d);
    m->may_be_empty = true;
    return mask != NULL;
}

bool b_mask_positions(Graph *g, Masks *m, const KeyRange *r, Dim queries, Dim keys) {
    Value *past = r->past, *lengths = r->lengths;
    Dim shape[2] = { queries, keys };
    Value *key = b_iota(g, 2, shape, 1, DT_I64);
    if (lengths) lengths = b_reshape(g, b_cast(g, lengths, DT_I64), 4, (Dim[]){ lengths->type.dim[0], 1, 1, 1 });
    if (r->causal || r->left >= 0 || r->right >= 0) {
        Value *at = b_iota(g, 2, shape, 0, DT_I64);
        if (past && !dim_is_const(past->type.dim[2]))
            return graph_fail(g, "the causal mask needs a known cache size; pin the dimension with --dim NAME=V"),
                   false;
        if (past) at = b_binary(g, OP_Add, at, b_scalar(g, DT_I64, (double)past->type.dim[2]));
        else if (lengths && dim_is_const(queries))
            at = b_binary(g, OP_Add, at, b_binary(g, OP_Sub, lengths, b_scalar(g, DT_I64, (double)queries)));
        if (r->causal) m->allowed = both(g, m->allowed, b_binary(g, OP_LessOrEqual, key, at));
        if (r->left >= 0)
            m->allowed = both(g, m->allowed,
                b_binary(g, OP_GreaterOrEqual, key, b_binary(g, OP_Sub, at, b_scalar(g, DT_I64, (double)r->left))));
        if (r->right >= 0)
            m->allowed = both(g, m->allowed,
                b_binary(g, OP_LessOrEqual, key, b_binary(g, OP_Add, at, b_scalar(g, DT_I64, (double)r->right))));
        m->may_be_empty = m->may_be_empty || r->left >= 0 || r->right >= 0;
    }
    if (lengths) {
        m->allowed = both(g, m->allowed, b_binary(g, OP_Less, key, lengths));
        m->may_be_empty = true;
    }
    return true;
}

Value *b_causal(Graph *g, Dim queries, Dim keys, Value *past) {
    Dim shape[2] = { queries, keys };
    Value *query = b_iota(g, 2, shape, 0, DT_I64), *key = b_iota(g, 2, shape, 1, DT_I64);
    if (past) query = b_binary(g, OP_Add, query, past);
    return b_binary(g, OP_LessOrEqual, key, query);
}

// ---------------------------------------------------------------- attention

Value *b_masked_attention(Graph *g, MaskedAttention *a) {
    DType d = a->q->type.dtype;
    Value *scores = a->scores = a->capped = b_scores(g, a->q, a->k, a->scale);
    if (a->softcap > 0)
        a->capped = scores = B_MAP(
            g, arena_printf(g->arena, "tanh(x / %.17g) * %.17g", a->softcap, a->softcap), "x", scores);
    if (a->masks.added) scores = b_binary(g, OP_Add, scores, a->masks.added);
    if (a->masks.allowed) scores = b_where(g, a->masks.allowed, scores, minus_infinity(g, d));
    a->masked = scores;
    Value *p = b_masked_softmax(g, b_cast(g, scores, a->soft), a->masks.may_be_empty);
    a->probabilities = p = b_cast(g, p, d);
    return b_grouped_matmul(g, p, b_cast(g, a->v, d));
}

// The softmax with one more key, whose score is the sink's.
static Value *sunk_softmax(Graph *g, Value *scores, Value *sink) {
    if (!scores || !sink) return NULL;
    const Dim *d = scores->type.dim;
    if (!(sink = b_cast(g, sink, scores->type.dtype))) return NULL;
    if (sink->type.rank == 1) sink = b_along(g, sink, 4, 1);
    Value *column = b_expand(g, sink, 4, (Dim[]){ d[0], d[1], d[2], 1 });
    Value *p = b_masked_softmax(g, b_concat(g, 3, 2, (Value *[]){ column, scores }), false);
    return b_part(g, p, 3, 1, d[3]);
}

Value *b_attend(Graph *g, Attend *a) {
    if (!a->q || !a->k || !a->v) return NULL;
    DType d = a->q->type.dtype, wide = dtype_wide(d);
    Dim size = a->q->type.dim[3];
    if (!dim_is_const(size)) return graph_fail(g, "wants a known head size; pin the dimension with --dim NAME=V");
    double scale = a->scale != 0 ? a->scale : 1 / sqrt((double)size);
    Value *q = b_cast(g, a->q, wide), *k = b_swap(g, b_cast(g, a->k, wide), 2, 3);
    q = b_binary(g, OP_Mul, q, b_like(g, q, scale));
    Value *scores = b_grouped_matmul(g, q, k);
    if (a->softcap > 0)
        scores = B_MAP(g, arena_printf(g->arena, "tanh(x / %.17g) * %.17g", a->softcap, a->softcap), "x", scores);
    for (size_t i = 0; i < COUNT(a->added); i++)
        if (a->added[i]) scores = b_binary(g, OP_Add, scores, b_cast(g, a->added[i], wide));
    if (a->allowed) scores = b_where(g, a->allowed, scores, b_scalar(g, wide, -INFINITY));
    Value *p = a->sink ? sunk_softmax(g, scores, a->sink) : b_masked_softmax(g, scores, a->may_be_empty);
    a->scores = b_cast(g, scores, d);
    a->probabilities = b_cast(g, p, d);
    return b_cast(g, b_join_heads(g, b_grouped_matmul(g, p, b_cast(g, a->v, wide))), d);
}

// ---------------------------------------------------------------- rotary embedding

// x [b, heads, s, d]: pairs (a, b) of the first `size` elements turn by an angle: (a cos - b sin, a sin + b cos).
// Pairs are halves, or neighbours when interleaved; cos and sin broadcast to [b, heads, s, size / 2].
Value *b_rotated(Graph *g, Value *x, Value *cosine, Value *sine, int64_t size, bool interleaved) {
    if (!x || !cosine || !sine) return NULL;
    const Type t = x->type;
    if (t.rank != 4 || !dim_is_const(t.dim[3]))
        return graph_fail(g, "wants an input of rank 3 or 4 with a known head size");
    if (size < 2 || size > t.dim[3] || size % 2)
        return graph_fail(g, "rotates %lld of %lld elements", (long long)size, (long long)t.dim[3]);
    Value *rotated = b_part(g, x, 3, 0, size), *part[2];
    Dim half[5] = { t.dim[0], t.dim[1], t.dim[2], interleaved ? size / 2 : 2, interleaved ? 2 : size / 2 };
    int axis = interleaved ? 4 : 3;
    rotated = b_reshape(g, rotated, 5, half);
    for (int i = 0; i < 2; i++) part[i] = b_remove(g, b_part(g, rotated, axis, i, 1), axis);
    Value *real = B_MAP(g, "x * z - y * w", "x y z w", part[0], part[1], cosine, sine);
    Value *imag = B_MAP(g, "x * w + y * z", "x y z w", part[0], part[1], cosine, sine);
    if (!real || !imag) return NULL;
    Value *y = b_concat(g, axis, 2, (Value *[]){ b_insert(g, real, axis), b_insert(g, imag, axis) });
    y = b_reshape(g, y, 4, (Dim[]){ t.dim[0], t.dim[1], t.dim[2], size });
    return size < t.dim[3] ? b_concat(g, 3, 2, (Value *[]){ y, b_part(g, x, 3, size, t.dim[3] - size) }) : y;
}

// ---------------------------------------------------------------- linear attention

static Value *step_of(Graph *g, Value *x, int64_t t) { return x ? b_part(g, x, 2, t, 1) : NULL; }

static Value *linear_step(Graph *g, LinearAttention *l, int64_t t) {
    Value *k = step_of(g, l->k, t), *v = step_of(g, l->v, t), *key = b_swap(g, k, 2, 3);
    if (l->decay) l->state = B_MAP(g, "x * exp(y)", "x y", l->state, b_swap(g, step_of(g, l->decay, t), 2, 3));
    if (l->beta) {
        Value *known = b_matmul(g, k, l->state), *beta = step_of(g, l->beta, t);
        v = B_MAP(g, "(x - y) * z", "x y z", v, known, beta);
    }
    l->state = b_binary(g, OP_Add, l->state, b_binary(g, OP_Mul, key, v));
    Value *y = b_grouped_matmul(g, step_of(g, l->q, t), l->state);
    return y ? b_binary(g, OP_Mul, y, b_like(g, y, l->scale)) : NULL;
}

Value *b_linear_attention(Graph *g, LinearAttention *l) {
    int64_t steps = l->q->type.dim[2];
    if (steps < 1 || steps > 256) {
        diag_error_as(
            EXIT_LIMIT, g->loc, "%lld steps of linear attention; between 1 and 256 are supported", (long long)steps);
        return NULL;
    }
    Value **y = NEW_ARRAY(g->arena, Value *, steps);
    for (int64_t t = 0; t < steps; t++)
        if (!(y[t] = linear_step(g, l, t))) return NULL;
    return b_concat(g, 2, (int)steps, y);
}

// ---------------------------------------------------------------- a convolution with a state

// Of sizes that the run chooses: each channel's windows are gathered, and what they meet of its taps added up.
static Value *causal_windows(Graph *g, Value *whole, Value *w, Dim steps) {
    const Dim taps = w->type.dim[2], size[2] = { steps, taps };
    const DType d = whole->type.dtype;
    Value *step = b_iota(g, 2, size, 0, DT_I64), *tap = b_iota(g, 2, size, 1, DT_I64);
    Value *v = b_wide(g, b_gather(g, whole, b_binary(g, OP_Add, step, tap), 2));            // [n, c, steps, taps]
    w = b_wide(g, b_reshape(g, w, 4, (Dim[]){ 1, w->type.dim[0], 1, taps }));
    return b_cast(g, b_reduce(g, OP_ReduceSum, b_binary(g, OP_Mul, v, w), 1, (int64_t[]){ 3 }, false), d);
}

Value *b_causal_conv(Graph *g, Value *x, Value *w, Value *bias, Value *past, Value **state) {
    const Dim before = dim_sub(g, w->type.dim[2], 1), none[3] = { x->type.dim[0], x->type.dim[1], before };
    int64_t lo[MAX_RANK] = { 0, 0, before }, hi[MAX_RANK] = { 0 };
    const bool pads = !past && dim_is_const(before);
    if (!past && !pads) past = b_filled(g, x->type.dtype, 0, 3, none);
    Value *whole = pads ? b_pad(g, x, lo, hi, NULL, NULL) : b_concat(g, 2, 2, (Value *[]){ past, x }), *y;
    if (!whole) return NULL;
    const Dim all = whole->type.dim[2], steps = dim_sub(g, all, before);
    const bool known = dim_is_const(all) && dim_is_const(before);
    if (known && all < before)
        return graph_fail(g, "the state and the input have %lld steps, fewer than the %lld to keep", (long long)all,
            (long long)before);
    Window win = { .rank = 1, .kernel = { w->type.dim[2] }, .strides = { 1 }, .dilations = { 1 } };
    if (type_is_static(&w->type) && dim_is_const(x->type.dim[1])) y = b_convolve(g, whole, w, &win, x->type.dim[1]);
    else y = causal_windows(g, whole, w, steps);
    if (bias && y) y = b_binary(g, OP_Add, y, b_along(g, bias, 3, 1));
    if (known) *state = b_part(g, whole, 2, steps, before);
    else *state = b_take(g, whole, 2, b_number(g, steps), NULL, before);
    return y;
}
