// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: attention of encoders and of decoders that cache keys and values; the input projections may be part
// of it.
//
// In: an OnnxNode. Out: matrix products, maps and a softmax. Letters: b batch, s queries, t keys (cached ones first),
// d elements of a head. The idea: each operator finds queries, keys and values of shape [b, heads, s or t, d] and its
// mask as numbers to add: 0, mask_filter_value, and the least float for keys after the query, so that a row with
// nothing but filtered keys still has its own; one function does the rest.
#include "import/onnx/onnx.h"

#include <float.h>
#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- the common part

// 0 where the condition holds, else mask_filter_value.
static Value *filtered(OnnxNode *n, Value *keep) {
    Value *zero = b_scalar(n->g, DT_F32, 0);
    return b_where(n->g, keep, zero, b_scalar(n->g, DT_F32, onnx_float(n, "mask_filter_value", -10000)));
}

// mask[0..b) says where the keys of each row end, mask[b..2b), when there, where they begin.
static Value *range_mask(OnnxNode *n, Value *mask, Dim batch, Dim keys) {
    Dim shape[4] = { 1, 1, 1, keys };
    Value *key = b_iota(n->g, 4, shape, 3, DT_I32),
          *end = b_reshape(n->g, b_part(n->g, mask, 0, 0, batch), 4, (Dim[]){ batch, 1, 1, 1 });
    Value *keep = b_binary(n->g, OP_Less, key, end);
    if (!dim_equal(n->g, mask->type.dim[0], batch)) {
        Value *begin = b_reshape(n->g, b_part(n->g, mask, 0, batch, batch), 4, (Dim[]){ batch, 1, 1, 1 });
        keep = b_binary(n->g, OP_And, keep, b_binary(n->g, OP_GreaterOrEqual, key, begin));
    }
    return filtered(n, keep);
}

// A mask of the model as numbers to add to scores [batch, heads, queries, keys].
static bool mask_added(OnnxNode *n, Value *mask, Dim batch, Dim queries, Dim keys, Value **out) {
    *out = NULL;
    if (!mask) return true;
    const Dim *d = mask->type.dim;
    int rank = mask->type.rank;
    const char *shape = type_text(n->g->arena, n->g, &mask->type);
    if (rank == 1) {
        if (dim_equal(n->g, d[0], batch) || (dim_is_const(batch) && dim_equal(n->g, d[0], dim_mul(n->g, batch, 2))))
            *out = range_mask(n, mask, batch, keys);
        else
            onnx_fail(
                n, "a mask %s, neither [batch] nor [2 * batch], is not supported; a mask [batch, keys] is", shape);
    } else if ((rank == 2 || rank == 3) && dim_equal(n->g, d[rank - 1], keys)
        && (rank == 2 || dim_equal(n->g, d[1], queries))) {
        Value *m = b_reshape(n->g, mask, 4, (Dim[]){ d[0], 1, rank == 2 ? 1 : d[1], keys });
        *out = filtered(n, b_binary(n->g, OP_Greater, m, b_like(n->g, m, 0)));
    } else {
        onnx_fail(n,
            "a mask %s is not supported; masks [batch], [2 * batch], [batch, keys] and [batch, queries, keys] with "
            "all %s keys are",
            shape, dim_text(n->g->arena, n->g, keys));
    }
    return *out != NULL;
}

static bool set_masks(OnnxNode *n, Attend *a, Value *mask, Value *bias, bool causal, Value *past) {
    Dim batch = a->q->type.dim[0], queries = a->q->type.dim[2], keys = a->k->type.dim[2];
    if (!mask_added(n, mask, batch, queries, keys, &a->added[0])) return false;
    a->added[1] = bias;
    if (causal && !dim_equal(n->g, queries, 1)) {
        Value *seen = a->added[0] ? a->added[0] : b_scalar(n->g, DT_F32, 0);
        Value *before = b_causal(n->g, queries, keys, past);
        a->added[0] = b_where(n->g, before, seen, b_scalar(n->g, DT_F32, -FLT_MAX));
        if (!a->added[0]) return false;
    }
    a->scale = onnx_float(n, "scale", 0);
    onnx_has(n, "mask_filter_value");
    return true;
}

static bool only_default(OnnxNode *n, const char *attr, const char *remedy) {
    if (!onnx_int(n, attr, 0)) return true;
    onnx_fail(n, "attribute \"%s\" is not supported; %s", attr, remedy);
    return false;
}

// ---------------------------------------------------------------- Attention, QAttention
// With the projections of queries, keys and values.

static bool hidden_sizes(OnnxNode *n, const Value *projected, int64_t *size) {
    int count;
    const int64_t *given = onnx_ints(n, "qkv_hidden_sizes", &count);
    Dim all = projected->type.dim[2];
    if (given && count != 3)
        return onnx_fail(n, "attribute \"qkv_hidden_sizes\" has %d elements, expected 3", count), false;
    if (!dim_is_const(all)) return onnx_fail(n, "the weights must have known sizes"), false;
    for (int i = 0; i < 3; i++) size[i] = given ? given[i] : all / 3;
    if (size[0] < 1 || size[1] != size[0] || size[2] < 1 || size[0] > all || size[2] > all
        || size[0] + size[1] + size[2] != all)
        return onnx_fail(n, "%lld columns of weights do not divide into queries, keys and values", (long long)all),
               false;
    return true;
}

// past: [2, b, heads, t, d], keys before values. Output 1 is the same with the new ones behind.
static Value *projected_attention(OnnxNode *n, Value *projected, Value *mask, Value *past, Value *bias) {
    int64_t size[3], heads = onnx_int(n, "num_heads", 0);
    if (!projected || !only_default(n, "do_rotary", "export the rotary embedding as an operator of its own")
        || !only_default(n, "past_present_share_buffer", "export the model without shared buffers"))
        return NULL;
    if (projected->type.rank != 3) return onnx_fail(n, "the input must have 3 dimensions (batch, sequence, features)");
    if (!hidden_sizes(n, projected, size)) return NULL;
    Value *part[3], *cached = NULL;
    for (int i = 0; i < 3; i++)
        part[i] = b_split_heads(n->g,
            b_part(n->g, projected, 2,
                i == 0     ? 0 :
                    i == 1 ? size[0] :
                             size[0] + size[1],
                size[i]),
            heads);
    if (past && past->type.rank != 5)
        return onnx_fail(n, "the past must have 5 dimensions (2, batch, heads, sequence, head size)");
    for (int i = 1; i < 3 && past; i++) {
        Value *before = b_remove(n->g, b_part(n->g, past, 0, i - 1, 1), 0);
        part[i] = b_concat(n->g, 2, 2, (Value *[]){ before, part[i] });
        cached = before;
    }
    Attend a = { .q = part[0], .k = part[1], .v = part[2] };
    if (!a.q || !a.k || !a.v
        || !set_masks(n, &a, mask, bias, onnx_int(n, "unidirectional", 0) != 0, b_size_of(n->g, cached, 2)))
        return NULL;
    if (n->n_out > 1 && n->asked[1])
        n->out[1] = b_concat(n->g, 0, 2, (Value *[]){ b_insert(n->g, a.k, 0), b_insert(n->g, a.v, 0) });
    return b_attend(n->g, &a);
}

Value *onnx_ms_attention(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *projected = b_matmul(n->g, n->in[0], n->in[1]);
    if (onnx_optional(n, 2)) projected = b_binary(n->g, OP_Add, projected, n->in[2]);
    onnx_int(n, "rotary_embedding_dim", 0);
    return projected_attention(n, projected, onnx_optional(n, 3), onnx_optional(n, 4), onnx_optional(n, 5));
}

// A zero point or scale: one number, or one of each column.
static Value *column_number(OnnxNode *n, Value *v) {
    return v && v->type.rank == 1 && v->type.dim[0] == 1 ? b_scalar_of(n->g, v) : v;
}

// input, weight, bias, their scales, mask, their zero points, past.
Value *onnx_ms_qattention(OnnxNode *n) {
    if (!onnx_inputs(n, 5)) return NULL;
    Value *factor[2], *zero[2] = { onnx_optional(n, 6), onnx_optional(n, 7) };
    for (int i = 0; i < 2; i++) {
        factor[i] = b_cast(n->g, n->in[i], DT_I32);
        if (zero[i]) factor[i] = b_binary(n->g, OP_Sub, factor[i], b_cast(n->g, column_number(n, zero[i]), DT_I32));
    }
    Value *scale = b_scalar_of(n->g, n->in[3]), *sum = b_matmul(n->g, factor[0], factor[1]);
    scale = b_binary(n->g, OP_Mul, scale, column_number(n, n->in[4]));
    if (!scale || !sum) return NULL;
    Value *projected = B_MAP(n->g, "x * y + z", "x y z", b_cast(n->g, sum, scale->type.dtype), scale, n->in[2]);
    return projected_attention(n, projected, onnx_optional(n, 5), onnx_optional(n, 8), NULL);
}

// ---------------------------------------------------------------- MultiHeadAttention and one for decoders
// Queries, keys and values are projected before.

typedef struct MultiHead { Value *q, *k, *v, *bias, *mask, *added, *past[2], *length; int64_t heads; } MultiHead;

// [b, l, heads, parts, d]: part `at` as [b, l, heads * d].
static Value *unpacked(OnnxNode *n, Value *x, int at) {
    const Dim *d = x->type.dim;
    return b_reshape(n->g, b_part(n->g, x, 3, at, 1), 3, (Dim[]){ d[0], d[1], dim_mul(n->g, d[2], d[4]) });
}

// Queries, keys and values apart from each other, [b, l, heads * d]; keys and values may be [b, heads, l, d] already.
static bool unpack(OnnxNode *n, MultiHead *m, bool decoder) {
    Value *q = m->q, *k = m->k;
    if (q->type.rank == 5 && !k && !m->v) {
        m->k = unpacked(n, q, 1);
        m->v = unpacked(n, q, 2);
        m->q = unpacked(n, q, 0);
    } else if (k && k->type.rank == 5 && !m->v) {
        m->v = unpacked(n, k, 1);
        m->k = unpacked(n, k, 0);
    } else if (decoder && q->type.rank == 3 && !k && !m->v) {
        Dim all = q->type.dim[2];
        if (!dim_is_const(all) || all % 3)
            return onnx_fail(n, "packed queries, keys and values want a known size that 3 divides"), false;
        m->k = b_part(n->g, q, 2, all / 3, all / 3);
        m->v = b_part(n->g, q, 2, all / 3 * 2, all / 3);
        m->q = b_part(n->g, q, 2, 0, all / 3);
    }
    if (!m->q || !m->k || !m->v)
        return onnx_fail(n, "key and value are missing, and the query does not hold them"), false;
    if (m->q->type.rank != 3 || m->k->type.rank != m->v->type.rank || (m->k->type.rank != 3 && m->k->type.rank != 4))
        return onnx_fail(n, "query must have 3 dimensions, key and value 3 or 4"), false;
    return true;
}

// Each gets its part of the bias, unless it is a cache of keys or values that have it already.
static bool add_biases(OnnxNode *n, MultiHead *m) {
    Value **part[3] = { &m->q, &m->k, &m->v };
    int64_t at = 0;
    for (int i = 0; i < 3 && m->bias; i++) {
        bool cached = (*part[i])->type.rank == 4;
        Dim size = cached ? dim_mul(n->g, (*part[i])->type.dim[1], (*part[i])->type.dim[3]) : (*part[i])->type.dim[2];
        if (!dim_is_const(size)) return onnx_fail(n, "a bias wants known hidden sizes"), false;
        if (!cached) *part[i] = b_binary(n->g, OP_Add, *part[i], b_part(n->g, m->bias, 0, at, size));
        at += size;
        if (!*part[i]) return false;
    }
    return true;
}

// A cache with room for more: the one new row goes to place `length`, and later places are not looked at.
static bool shared_cache(OnnxNode *n, MultiHead *m, Attend *a) {
    Value *fresh[2] = { a->k, a->v }, *length = b_cast(n->g, b_scalar_of(n->g, m->length), DT_I64);
    if (!m->past[0] || !m->past[1] || !length)
        return onnx_fail(n, "shared buffers want past_key, past_value and past_sequence_length"), false;
    Dim room = m->past[0]->type.dim[2], shape[4] = { 1, 1, room, 1 };
    Value *place = b_iota(n->g, 4, shape, 2, DT_I64);
    for (int i = 0; i < 2; i++) {
        if (!dim_equal(n->g, fresh[i]->type.dim[2], 1))
            return onnx_fail(n, "shared buffers take one new key at a time"), false;
        n->out[1 + i] = b_where(n->g, b_binary(n->g, OP_Equal, place, length), fresh[i], m->past[i]);
    }
    a->k = n->out[1];
    a->v = n->out[2];
    a->allowed = b_binary(n->g, OP_LessOrEqual, b_iota(n->g, 4, (Dim[]){ 1, 1, 1, room }, 3, DT_I64), length);
    const int last = m->mask ? m->mask->type.rank - 1 : 0;
    if (m->mask && (last < 0 || !dim_equal(n->g, m->mask->type.dim[last], room)))
        return onnx_fail(n, "with shared buffers the mask must have a column for each place of the buffer"), false;
    return true;
}

static Value *multi_head(OnnxNode *n, MultiHead *m, bool decoder, bool shares, int scores_output) {
    if (!unpack(n, m, decoder) || !add_biases(n, m)) return NULL;
    m->heads = onnx_int(n, "num_heads", 0);
    Attend a = { .q = b_split_heads(n->g, m->q, m->heads),
        .k = b_split_heads(n->g, m->k, m->heads),
        .v = b_split_heads(n->g, m->v, m->heads) };
    if (!a.q || !a.k || !a.v) return NULL;
    if (shares && m->past[0]) {
        if (!shared_cache(n, m, &a)) return NULL;
    } else {
        if (m->past[0]) a.k = b_concat(n->g, 2, 2, (Value *[]){ m->past[0], a.k });
        if (m->past[1]) a.v = b_concat(n->g, 2, 2, (Value *[]){ m->past[1], a.v });
        n->out[1] = a.k;
        n->out[2] = a.v;
    }
    if (!a.k || !a.v
        || !set_masks(n, &a, m->mask, m->added, onnx_int(n, "unidirectional", 0) != 0, b_size_of(n->g, m->past[0], 2)))
        return NULL;
    Value *y = b_attend(n->g, &a);
    n->out[scores_output] = a.scores;
    return y;
}

Value *onnx_ms_multi_head_attention(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    if (onnx_optional(n, 8) || onnx_optional(n, 9))
        return onnx_fail(n,
            "shared buffers (past_sequence_length, cache_indirection) are not supported; export the model without "
            "them");
    MultiHead m = { .q = n->in[0],
        .k = onnx_optional(n, 1),
        .v = onnx_optional(n, 2),
        .bias = onnx_optional(n, 3),
        .mask = onnx_optional(n, 4),
        .added = onnx_optional(n, 5),
        .past = { onnx_optional(n, 6), onnx_optional(n, 7) } };
    return multi_head(n, &m, false, false, 3);
}

// One query at a time, with the same parts in another order.
Value *onnx_ms_decoder_attention(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    if (onnx_optional(n, 9))
        return onnx_fail(n, "beams (cache_indirection) are not supported; export the model for a beam width of 1");
    MultiHead m = { .q = n->in[0],
        .k = onnx_optional(n, 1),
        .v = onnx_optional(n, 2),
        .mask = onnx_optional(n, 3),
        .added = onnx_optional(n, 4),
        .past = { onnx_optional(n, 5), onnx_optional(n, 6) },
        .length = onnx_optional(n, 7),
        .bias = onnx_optional(n, 10) };
    if (onnx_optional(n, 8)) {
        Tensor *beams = onnx_const_number(n, 8, "beam_width");
        if (!beams) return NULL;
        if (tensor_get_i(beams, 0) > 1)
            return onnx_fail(n, "beams are not supported; export the model for a beam width of 1");
    }
    onnx_int(n, "output_qk", 0);
    return multi_head(n, &m, true, onnx_int(n, "past_present_share_buffer", 0) != 0, 3);
}
