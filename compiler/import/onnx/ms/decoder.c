// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: what decoders of large language models are made of: rotary embeddings, attention over groups of
// heads with a cache, and its linear relatives.
//
// In: an OnnxNode. Out: gathers, maps, matrix products and a softmax. Letters: b batch, s queries, t keys, d elements
// of a head. The idea: the cache is a value like any other. Row j of the new cache is row j of the old one before the
// first new key, and a new key after it; where that is may differ from sequence to sequence (seqlens_k), so both are
// chosen by comparisons.
#include "import/onnx/onnx.h"

#include <string.h>

// ---------------------------------------------------------------- rotary embeddings

// Rows of a table of cosines or sines at positions [b, s] or [s], as [b or 1, 1, s, half].
static Value *turns(OnnxNode *n, Value *table, Value *positions) {
    Value *v = b_gather(n->g, table, positions, 0);
    if (!v) return NULL;
    const Dim *d = v->type.dim;
    return v->type.rank == 2 ? b_reshape(n->g, v, 4, (Dim[]){ 1, 1, d[0], d[1] }) : b_insert(n->g, v, 1);
}

// The heads of x [b, s, heads * d] or [b, heads, s, d] where tables are [positions, half]; *size: how many elements
// of a head turn.
static Value *rotary_heads(OnnxNode *n, Value *table, int64_t *size) {
    Value *x = n->in[0];
    int64_t heads = onnx_int(n, "num_heads", 0);
    if (onnx_int(n, "is_packed_batching", 0))
        return onnx_fail(n, "packed batches are not supported; export the model with a batch dimension");
    if (onnx_float(n, "scale", 1) != 1)
        return onnx_fail(n, "a scale is not supported; scale the tables of cosines and sines");
    if (table->type.rank != 2 || !dim_is_const(table->type.dim[1]))
        return onnx_fail(n, "the tables of cosines and sines must have 2 dimensions of known size");
    *size = onnx_int(n, "rotary_embedding_dim", 0);
    if (*size == 0) *size = 2 * table->type.dim[1];
    else if (!heads && x->type.rank == 3) return onnx_fail(n, "rotary_embedding_dim wants num_heads, too");
    if (*size < 1) return onnx_fail(n, "rotates %lld elements", (long long)*size);
    if (!heads && x->type.rank == 3 && dim_is_const(x->type.dim[2])) heads = x->type.dim[2] / *size;
    return b_split_heads(n->g, x, heads);
}

static Value *rotate_input(OnnxNode *n, Value *x, Value *const *turn, int64_t size) {
    Value *y = b_rotated(n->g, x, turn[0], turn[1], size, onnx_int(n, "interleaved", 0) != 0);
    return n->in[0]->type.rank == 3 ? b_join_heads(n->g, y) : y;
}

// x, positions [b, s] or one number that the first has, cosines, sines.
Value *onnx_ms_rotary(OnnxNode *n) {
    int64_t size;
    if (!onnx_inputs(n, 4)) return NULL;
    Value *x = rotary_heads(n, n->in[2], &size), *at = n->in[1], *turn[2];
    if (!x) return NULL;
    if (at->type.rank < 2) {
        Value *count = b_iota(n->g, 1, &x->type.dim[2], 0, DT_I64);
        at = b_binary(n->g, OP_Add, count, b_cast(n->g, b_scalar_of(n->g, at), DT_I64));
    }
    for (int i = 0; i < 2; i++) turn[i] = turns(n, n->in[2 + i], at);
    return rotate_input(n, x, turn, size);
}

// Positions [3, b, s] in time, height and width; mrope_section says how many columns of the tables each has, in
// chunks or taking turns.
Value *onnx_ms_multi_rotary(OnnxNode *n) {
    int64_t size, half, layout = onnx_int(n, "mrope_layout", 0);
    int count;
    const int64_t *section = onnx_ints(n, "mrope_section", &count);
    if (!onnx_inputs(n, 4)) return NULL;
    Value *x = rotary_heads(n, n->in[2], &size), *turn[2];
    if (!x) return NULL;
    half = n->in[2]->type.dim[1];
    if (count != 3 || section[0] < 0 || section[1] < 0 || section[2] < 0 || section[0] > half || section[1] > half
        || section[2] > half || !b_table(n->g, (double)half)
        || section[0] + section[1] + section[2] != half || n->in[1]->type.rank != 3 || layout < 0 || layout > 1)
        return onnx_fail(n,
            "wants positions [3, batch, sequence], mrope_layout 0 or 1 and an mrope_section of three numbers with "
            "the sum %lld",
            (long long)half);
    Tensor *streams = tensor_new(n->g->arena, type_make(DT_I64, 1, &half));
    for (int64_t i = 0; i < half; i++) {
        int64_t turn_of = i % 3, chunk = i < section[0] ? 0 : i < section[0] + section[1] ? 1 : 2;
        tensor_set_i(streams, i, layout == 0 ? chunk : turn_of && i < section[turn_of] * 3 ? turn_of : 0);
    }
    Value *stream = graph_const(n->g, streams, NULL);
    for (int i = 0; i < 2; i++) {
        Value *of[3];
        for (int j = 0; j < 3; j++) of[j] = turns(n, n->in[2 + i], b_remove(n->g, b_part(n->g, n->in[1], 0, j, 1), 0));
        turn[i] = B_MAP(n->g, "x == 0 ? y : x == 1 ? z : w", "x y z w", stream, of[0], of[1], of[2]);
    }
    return rotate_input(n, x, turn, size);
}

// Angles, q, q with its halves swapped, and the same of k: q cos + swapped sin.
Value *onnx_ms_gemma_rotary(OnnxNode *n) {
    Value *y[2];
    if (!onnx_inputs(n, 5)) return NULL;
    Value *angle = b_insert(n->g, n->in[0], 1);
    DType d = n->in[1]->type.dtype;
    Value *cosine = b_cast(n->g, b_unary(n->g, OP_Cos, angle), d),
          *sine = b_cast(n->g, b_unary(n->g, OP_Sin, angle), d);
    for (int i = 0; i < 2; i++)
        y[i] = B_MAP(n->g, "x * z + y * w", "x y z w", n->in[1 + 2 * i], n->in[2 + 2 * i], cosine, sine);
    n->out[1] = y[1];
    return y[0];
}

// ---------------------------------------------------------------- GroupQueryAttention

typedef struct Group {
    Value *q, *k, *v;                                   // [b, heads, s, d]: the new ones
    Value *length;                                      // keys of each sequence, new ones counted: i64 [b, 1]
    Value *before;                                      // keys before the new ones: i64 [b, 1], or 0
    Dim total, room;                                    // most keys of a sequence; rows of the new cache
    bool prompt;                                        // nothing comes before
    Value *past[2];
} Group;

static bool refuse_options(OnnxNode *n) {
    const char *const kinds[] = { "k_quant_type", "v_quant_type" };
    for (int i = 0; i < 2; i++)
        if (strcmp(onnx_string(n, kinds[i], "NONE"), "NONE"))
            return onnx_fail(n, "a quantised cache (%s) is not supported; export the model with a cache of floats",
                       kinds[i]),
                   false;
    if (onnx_int(n, "kv_cache_bit_width", 0))
        return onnx_fail(n, "a quantised cache is not supported; export the model with a cache of floats"), false;
    if (onnx_int(n, "sliding_window_cache", 0))
        return onnx_fail(n, "sliding_window_cache is not supported; export the model with a cache of all keys"), false;
    return true;
}

// Queries, keys and values, which may come as one value behind each other, with a norm of each head where the model
// has one.
static bool split_group(OnnxNode *n, Group *g) {
    int64_t heads = onnx_int(n, "num_heads", 0), key_heads = onnx_int(n, "kv_num_heads", 0);
    Value *part[3] = { n->in[0], onnx_optional(n, 1), onnx_optional(n, 2) };
    if (part[0]->type.rank != 3 || heads < 1 || key_heads < 1 || !part[1] != !part[2])
        return onnx_fail(n,
                   "wants a query [batch, sequence, features], key and value or neither, num_heads and kv_num_heads"),
               false;
    if (!part[1]) {
        Dim all = part[0]->type.dim[2];
        if (!dim_is_const(all) || all % (heads + 2 * key_heads))
            return onnx_fail(n, "%lld packed features do not divide into %lld heads", (long long)all,
                       (long long)(heads + 2 * key_heads)),
                   false;
        int64_t size = all / (heads + 2 * key_heads);
        part[1] = b_part(n->g, n->in[0], 2, heads * size, key_heads * size);
        part[2] = b_part(n->g, n->in[0], 2, (heads + key_heads) * size, key_heads * size);
        part[0] = b_part(n->g, n->in[0], 2, 0, heads * size);
    }
    for (int i = 0; i < 3; i++) {
        part[i] = b_split_heads(n->g, part[i], i ? key_heads : heads);
        Value *weight = i < 2 ? onnx_optional(n, 14 + i) : NULL;
        if (!part[i]) return false;
        if (!weight) continue;
        Node *node = graph_node(n->g, OP_RMSNorm, 2, (Value *[]){ part[i], weight }, 1);
        node_set_int(node, "axis", 3);
        node_set_float(node, "epsilon", onnx_float(n, "qk_norm_epsilon", 1e-6));
        part[i] = b_finish(node);
    }
    onnx_has(n, "qk_norm_epsilon");
    g->q = part[0];
    g->k = part[1];
    g->v = part[2];
    return g->q && g->k && g->v;
}

static bool known_total(OnnxNode *n, const Group *g, Dim *total) {
    DimValue v;
    if (!n->in[6]) return onnx_fail(n, "total_sequence_length is missing"), false;
    if (onnx_dim_value(n->g, n->in[6], &v)) {
        *total = v.v;
        return v.symbolic || v.v >= 0 ? true : (onnx_fail(n, "total_sequence_length is %lld", (long long)v.v), false);
    }
    *total = g->q->type.dim[2];
    if (!g->past[0]) return true;                       // without a cache there is nothing but the new keys
    onnx_fail(
        n, "total_sequence_length is known only when the program runs; make it constant with --freeze NAME=FILE");
    return false;
}

static bool group_sizes(OnnxNode *n, Group *g) {
    Dim news = g->q->type.dim[2], had = g->past[0] ? g->past[0]->type.dim[2] : 0;
    if (!known_total(n, g, &g->total)) return false;
    g->prompt = dim_equal(n->g, news, g->total);
    if (dim_equal(n->g, dim_add(n->g, had, news), g->total) || (g->prompt && !g->past[0])) g->room = g->total;
    else if (dim_is_const(had) && dim_is_const(g->total)) g->room = had > g->total ? had : g->total;
    else
        return onnx_fail(n,
                   "the sizes of the cache (%s) and of all keys (%s) must be known; pin them with --dim NAME=V",
                   dim_text(n->g->arena, n->g, had), dim_text(n->g->arena, n->g, g->total)),
               false;
    g->length = B_MAP(
        n->g, "x + 1", "x", b_reshape(n->g, b_cast(n->g, n->in[5], DT_I64), 2, (Dim[]){ g->q->type.dim[0], 1 }));
    g->before = g->prompt ? b_scalar(n->g, DT_I64, 0) : b_binary(n->g, OP_Sub, g->length, b_size_of(n->g, g->q, 2));
    return g->length && g->before;
}

// Positions [b, s] of the new keys: given, or counted on from those before. Padding behind the end of a sequence has
// position 1.
static Value *group_positions(OnnxNode *n, const Group *g) {
    Value *given = onnx_optional(n, 9), *step = b_iota(n->g, 1, &g->q->type.dim[2], 0, DT_I64);
    if (given && !g->prompt) return given;
    if (given)
        return b_binary(n->g, OP_Add, step, b_scalar_of(n->g, b_part(n->g, b_part(n->g, given, 0, 0, 1), 1, 0, 1)));
    Value *at = b_binary(n->g, OP_Add, g->before, step);
    return at ? B_MAP(n->g, "x < y ? x : 1", "x y", at, g->length) : NULL;
}

static bool rotate_group(OnnxNode *n, Group *g) {
    Value *tables[2] = { onnx_optional(n, 7), onnx_optional(n, 8) }, *at;
    bool interleaved = onnx_int(n, "rotary_interleaved", 0) != 0;
    if (!onnx_int(n, "do_rotary", 0)) return true;
    if (!tables[0] || !tables[1] || tables[0]->type.rank != 2 || !dim_is_const(tables[0]->type.dim[1]))
        return onnx_fail(n, "do_rotary wants cos_cache and sin_cache of known size"), false;
    if (!(at = group_positions(n, g))) return false;
    for (int i = 0; i < 2; i++) tables[i] = turns(n, tables[i], at);
    int64_t size = tables[0] ? 2 * tables[0]->type.dim[3] : 0;
    g->q = b_rotated(n->g, g->q, tables[0], tables[1], size, interleaved);
    g->k = b_rotated(n->g, g->k, tables[0], tables[1], size, interleaved);
    return g->q && g->k;
}

// v [b, heads, t, d] with zeros behind, up to `room` rows.
static Value *with_room(OnnxNode *n, Value *v, Dim room) {
    const Dim *d = v->type.dim;
    if (dim_equal(n->g, d[2], room)) return v;
    Value *zeros = b_filled(n->g, v->type.dtype, 0, 4, (Dim[]){ d[0], d[1], dim_sub(n->g, room, d[2]), d[3] });
    return b_concat(n->g, 2, 2, (Value *[]){ v, zeros });
}

// Rows before the new keys from the cache, then the new keys, then zeros.
static Value *new_cache(OnnxNode *n, const Group *g, Value *past, Value *fresh) {
    if (g->prompt || !past) return with_room(n, fresh, g->room);
    Dim shape[4] = { fresh->type.dim[0], fresh->type.dim[1], g->room, fresh->type.dim[3] };
    Value *row = b_iota(n->g, 4, (Dim[]){ 1, 1, g->room, 1 }, 2, DT_I64),
          *before = b_reshape(n->g, g->before, 4, (Dim[]){ shape[0], 1, 1, 1 });
    Value *at = b_binary(n->g, OP_Sub, row, before);    // which new key
    if (!at) return NULL;
    Value *index = B_MAP(n->g, "x < 0 ? 0 : x", "x", at);
    Value *moved = b_gather_elements(n->g, fresh, b_expand(n->g, index, 4, shape), 2);      // beyond the last: 0
    return B_MAP(n->g, "x < 0 ? y : z", "x y z", at, with_room(n, past, g->room), moved);
}

// Keys up to the query's own, or all; of these those within the window.
static Value *group_allowed(OnnxNode *n, const Group *g, int64_t window) {
    Dim one[4] = { 1, 1, 1, g->total };
    Value *key = b_iota(n->g, 4, one, 3, DT_I64);
    if (!onnx_int(n, "causal", 1))
        return b_binary(n->g, OP_Less, key, b_reshape(n->g, g->length, 4, (Dim[]){ g->q->type.dim[0], 1, 1, 1 }));
    Value *query = b_iota(n->g, 4, (Dim[]){ 1, 1, g->q->type.dim[2], 1 }, 2, DT_I64), *before = g->before;
    if (before->type.rank) before = b_reshape(n->g, before, 4, (Dim[]){ g->q->type.dim[0], 1, 1, 1 });
    query = b_binary(n->g, OP_Add, query, before);
    if (window <= 0) return b_binary(n->g, OP_LessOrEqual, key, query);
    return query && key ?
        B_MAP(n->g, arena_printf(n->g->arena, "x <= y && x > y - %lld", (long long)window), "x y", key, query) :
        NULL;
}

Value *onnx_ms_group_query_attention(OnnxNode *n) {
    Group g = { .past = { onnx_optional(n, 3), onnx_optional(n, 4) } };
    if (!onnx_input(n, 0) || !onnx_input(n, 5) || !onnx_input(n, 6) || !refuse_options(n) || !split_group(n, &g)
        || !group_sizes(n, &g) || !rotate_group(n, &g))
        return NULL;
    n->out[1] = new_cache(n, &g, g.past[0], g.k);
    n->out[2] = new_cache(n, &g, g.past[1], g.v);
    if (!n->out[1] || !n->out[2]) return NULL;
    Attend a = { .q = g.q, .k = b_part(n->g, n->out[1], 2, 0, g.total), .v = b_part(n->g, n->out[2], 2, 0, g.total) };
    a.scale = onnx_float(n, "scale", 0);
    a.softcap = onnx_float(n, "softcap", 0);
    a.added[0] = onnx_optional(n, 10);
    a.allowed = group_allowed(n, &g, onnx_int(n, "local_window_size", -1));
    a.sink = onnx_optional(n, 11);
    if (!a.sink && onnx_int(n, "smooth_softmax", -1) == 1) a.sink = b_scalar(n->g, DT_F32, 0);
    onnx_has(n, "smooth_softmax");
    int64_t shown = onnx_int(n, "qk_output", 0);
    Value *y = b_attend(n->g, &a);
    if (shown == 1) n->out[3] = b_where(n->g, a.allowed, a.scores, b_like(n->g, a.scores, 0));
    if (shown == 2) n->out[3] = a.probabilities;
    return y;
}

// ---------------------------------------------------------------- operators that ai.onnx has, too

static bool plain_state(OnnxNode *n) {
    if (onnx_int(n, "state_window", 0) == 0) return true;
    onnx_fail(n, "a window of states is not supported; export the model with state_window 0");
    return false;
}

Value *onnx_ms_linear_attention(OnnxNode *n) { return plain_state(n) ? onnx_linear_attention(n) : NULL; }

Value *onnx_ms_causal_conv(OnnxNode *n) {
    if (!plain_state(n)) return NULL;
    if (onnx_int(n, "ndim", 1) != 1 || onnx_int(n, "channels_last", 0) || onnx_int(n, "dilation", 1) != 1)
        return onnx_fail(n, "only one dimension, channels first and dilation 1 are supported");
    return onnx_causal_conv(n);
}
