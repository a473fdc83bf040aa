// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: weights of few bits, quantised in blocks.
//
// In: an OnnxNode. Out: a MatMulBits (ops/bits.c), or one map that unpacks and scales the weights, and a matrix product
// or a gather. Formula: w = (q - zero) * scale, with a scale and a zero point for each block of consecutive elements.
// The idea: the map stays unfolded because its result is several times larger than the packed bytes, so the compiled
// model keeps those.
#include "import/onnx/onnx.h"

#include <string.h>

#define LARGEST (INT64_C(1) << 30)      // N and K: with the bits of a block they come to less than 2^63

// ---------------------------------------------------------------- MatMulNBits

typedef struct Blocks { int64_t n, k, blocks, size, bits; } Blocks;

static bool read_blocks(OnnxNode *n, Blocks *b) {
    *b = (Blocks){ onnx_int(n, "N", 0), onnx_int(n, "K", 0), 0, onnx_int(n, "block_size", 0), onnx_int(n, "bits", 4) };
    onnx_int(n, "accuracy_level", 0);                   // asks for at least so much; floats are the most
    if (onnx_int(n, "weight_prepacked", 0))
        return onnx_fail(n, "weights packed for one device are not supported; quantise the model without prepacking"),
               false;
    if (!b_known_bits(n->g, b->bits)) return false;
    if (b->n < 1 || b->k < 1 || b->n > LARGEST || b->k > LARGEST)
        return onnx_fail(n, "attributes N and K must be between 1 and %lld", (long long)LARGEST), false;
    if (b->size < 8 / b->bits || b->size > INT64_C(1) << 31 || b->size * b->bits % 8)
        return onnx_fail(n, "a block_size of %lld must be positive, and a block whole bytes",
                   (long long)b->size), false;
    b->blocks = (b->k + b->size - 1) / b->size;
    const Value *w = n->in[1], *scale = n->in[2];
    if (w->type.dtype != DT_U8 || !type_is_static(&w->type)
        || type_count(&w->type) != b->n * b->blocks * (b->size * b->bits / 8))
        return onnx_fail(
                   n, "the weights %s are not [N, blocks, bytes of a block]", type_text(n->g->arena, n->g, &w->type)),
               false;
    if (!type_is_static(&scale->type) || type_count(&scale->type) != b->n * b->blocks)
        return onnx_fail(n, "the scales %s are not [N, blocks]", type_text(n->g->arena, n->g, &scale->type)), false;
    return true;
}

// [N, blocks]: bytes that were packed like the weights, or floats.
static Value *zero_points(OnnxNode *n, const Blocks *b, DType wide) {
    Value *zero = onnx_optional(n, 3);
    if (dtype_is_float(zero->type.dtype))
        return b_cast(n->g, b_reshape(n->g, zero, 2, (Dim[]){ b->n, b->blocks }), wide);
    int64_t bytes = (b->blocks * b->bits + 7) / 8;
    if (!type_is_static(&zero->type) || zero->type.dtype != DT_U8 || type_count(&zero->type) != b->n * bytes)
        return onnx_fail(
            n, "the zero points %s are not [N, bytes of a row of blocks]", type_text(n->g->arena, n->g, &zero->type));
    return b_unpacked(n->g, b_reshape(n->g, zero, 2, (Dim[]){ b->n, bytes }), b->bits, b->blocks);
}

// Where each feature goes so that the groups become blocks: order[place] = feature. NULL: they do not, or are not
// known.
static int64_t *block_order(OnnxNode *n, const Blocks *b, Value *group) {
    Tensor *t = value_const(group);
    if (!t || type_count(&t->type) != b->k) return NULL;
    int64_t *order = NEW_ARRAY(n->g->arena, int64_t, b->k), *used = NEW_ARRAY(n->g->arena, int64_t, b->blocks);
    for (int64_t i = 0; i < b->k; i++) {
        int64_t g = tensor_get_i(t, i), room = g < 0 || g >= b->blocks ? 0 : b->k - g * b->size;
        if (room <= 0 || used[g] >= (room < b->size ? room : b->size)) return NULL;
        order[g * b->size + used[g]++] = i;
    }
    return order;
}

// Constant weights whose features take the order of their groups, still packed; so the group indices are the blocks,
// and what multiplies the weights is put into that order instead.
static bool without_groups(OnnxNode *n, const Blocks *b, Value **x, Value **packed, Value *group) {
    const int64_t *order = block_order(n, b, group);
    Tensor *old = value_const(*packed), *new = old && order ? tensor_new(n->g->arena, old->type) : NULL;
    if (!new) return false;
    const int64_t per = 8 / b->bits, row = b->blocks * b->size / per;
    const uint8_t *from = old->data;
    uint8_t *to = memset(new->data, 0, (size_t)(b->n * row));
    for (int64_t r = 0; r < b->n; r++, from += row, to += row)
        for (int64_t k = 0; k < b->k; k++) {
            int q = from[order[k] / per] >> (order[k] % per * b->bits) & ((1 << b->bits) - 1);
            to[k / per] = (uint8_t)(to[k / per] | q << (k % per * b->bits));
        }
    *packed = graph_const(n->g, new, NULL);
    *x = b_gather(n->g, *x, b_ints(n->g, (int)b->k, order), (*x)->type.rank - 1);
    return true;
}

// What zero points that are floats add to a product with those in the middle of the range: the sum over each block of
// x, times (middle - zero) * scale. The product itself then reads its weights as they are packed.
static Value *float_zeros(OnnxNode *n, const Blocks *b, Value *x, Value *scale, Value *zero) {
    const int rank = x->type.rank;
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    Dim dims[MAX_RANK];
    hi[rank - 1] = b->blocks * b->size - b->k;
    if (hi[rank - 1] && !(x = b_pad(n->g, x, lo, hi, NULL, NULL))) return NULL;
    memcpy(dims, x->type.dim, sizeof dims);
    dims[rank - 1] = b->blocks;
    dims[rank] = b->size;
    Value *sums = b_reduce(
        n->g, OP_ReduceSum, b_reshape(n->g, x, rank + 1, dims), 1, (int64_t[]){ rank }, false);
    Value *by = B_MAP(n->g, arena_printf(n->g->arena, "(%d - z) * s", 1 << (b->bits - 1)), "z s", zero, scale);
    return b_matmul(n->g, sums, b_swap(n->g, by, 0, 1));
}

// x w^T in the type of x, a float of at least 32 bits.
static Value *product(OnnxNode *n, const Blocks *b, Value *x) {
    DType wide = x->type.dtype;
    Value *zero = NULL, *group = onnx_optional(n, 4), *more = NULL,
          *packed = b_reshape(n->g, n->in[1], 3, (Dim[]){ b->n, b->blocks, b->size * b->bits / 8 }),
          *scale = b_cast(n->g, b_reshape(n->g, n->in[2], 2, (Dim[]){ b->n, b->blocks }), wide);
    if (onnx_optional(n, 3) && !(zero = zero_points(n, b, wide))) return NULL;
    if (!packed || !scale) return NULL;
    if (zero && group) onnx_note(n, "subtracts the zero points of groups, as documented; ONNX Runtime leaves them out");
    if (group && without_groups(n, b, &x, &packed, group)) group = NULL;
    if (zero && !group && dtype_is_float(zero->type.dtype) && x && x->type.rank > 0 && x->type.rank < MAX_RANK) {
        if (!(more = float_zeros(n, b, x, scale, zero))) return NULL;
        zero = NULL;
    }
    Node *y = graph_node(
        n->g, OP_MatMulBits, group ? 5 : zero ? 4 : 3, (Value *[]){ x, packed, scale, zero, group }, 1);
    node_set_int(y, "bits", b->bits);
    node_set_int(y, "block", b->size);
    node_set_int(y, "k", b->k);
    return more ? b_binary(n->g, OP_Add, b_finish(y), more) : b_finish(y);
}

// y = a w^T + bias: a, packed w, scales, zero points, group indices, bias.
Value *onnx_ms_matmul_bits(OnnxNode *n) {
    Blocks b;
    if (!onnx_inputs(n, 3) || !read_blocks(n, &b)) return NULL;
    DType d = n->in[0]->type.dtype, wide = dtype_wide(d);
    Value *x = b_cast(n->g, n->in[0], wide), *y = x ? product(n, &b, x) : NULL, *bias = onnx_optional(n, 5);
    if (bias) y = b_binary(n->g, OP_Add, y, b_cast(n->g, bias, wide));
    return b_cast(n->g, y, d);
}

// ---------------------------------------------------------------- MatMulBnb4

// The 16 values of a 4-bit float with its sign in the high bit, and of NormalFloat4, the quantiles of a normal
// distribution (Dettmers et al., QLoRA, 2023).
static const double float4[16] = { 0, 0.005208333333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25, -0.0,
    -0.005208333333, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25 };
static const double normal4[16] = {
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
};

// A table entry times the greatest magnitude of its block; elements row by row of [N, K], the high half of a byte
// first.
Value *onnx_ms_matmul_bnb4(OnnxNode *n) {
    int64_t rows = onnx_int(n, "N", 0), columns = onnx_int(n, "K", 0), size = onnx_int(n, "block_size", 0),
            kind = onnx_int(n, "quant_type", 0);
    onnx_int(n, "training_mode", 0);
    if (!onnx_inputs(n, 3)) return NULL;
    if (rows < 1 || columns < 1 || size < 1 || rows > INT64_C(1) << 31 || columns > INT64_C(1) << 31
        || size > INT64_C(1) << 31 || (kind != 0 && kind != 1))
        return onnx_fail(n, "wants positive N, K and block_size, and quant_type 0 or 1");
    int64_t count = rows * columns, bytes = (count + 1) / 2, blocks = (count + size - 1) / size;
    const Value *w = n->in[1], *most = n->in[2];
    if (w->type.dtype != DT_U8 || !type_is_static(&w->type) || type_count(&w->type) != bytes
        || !type_is_static(&most->type) || type_count(&most->type) != blocks)
        return onnx_fail(n, "weights or magnitudes do not have the size that N, K and block_size give");
    DType d = n->in[0]->type.dtype, wide = dtype_wide(d);
    Tensor *high_first = tensor_new(n->g->arena, type_make(DT_U8, 1, (Dim[]){ 2 }));
    tensor_set_i(high_first, 0, 4);
    Value *q = B_MAP(n->g, "i32(x >> y & 15)", "x y", b_reshape(n->g, n->in[1], 2, (Dim[]){ bytes, 1 }),
        graph_const(n->g, high_first, NULL));
    q = b_part(n->g, b_reshape(n->g, q, 1, (Dim[]){ bytes * 2 }), 0, 0, count);
    Value *table = b_floats(n->g, wide, 1, (Dim[]){ 16 }, kind ? normal4 : float4),
          *scale = b_cast(n->g, b_reshape(n->g, n->in[2], 1, &blocks), wide);
    if (!q || !table || !scale) return NULL;
    Value *v = b_gather(n->g, table, q, 0);
    v = b_binary(n->g, OP_Mul, v, b_spread(n->g, scale, q, 0, size));
    v = b_reshape(n->g, v, 2, (Dim[]){ rows, columns });
    if (onnx_int(n, "transB", 1)) v = b_swap(n->g, v, 0, 1);
    return b_cast(n->g, b_matmul(n->g, b_cast(n->g, n->in[0], wide), v), d);
}

// ---------------------------------------------------------------- GatherBlockQuantized

// Scales or zero points of the gathered places; one for all places stays one for all.
static Value *gathered_with(OnnxNode *n, Value *v, Value *indices, int axis) {
    if (!v) return NULL;
    bool shared = dim_equal(n->g, v->type.dim[axis], 1);
    return b_gather(n->g, v, shared ? b_binary(n->g, OP_Mul, indices, b_like(n->g, indices, 0)) : indices, axis);
}

// Rows of a quantised table, then scaled: data, indices, scales, zero points.
Value *onnx_ms_gather_blocks(OnnxNode *n) {
    int gathered, quantised;
    if (!onnx_inputs(n, 3)) return NULL;
    Value *data = n->in[0], *indices = n->in[1], *scale = n->in[2], *zero = onnx_optional(n, 3);
    int rank = data->type.rank;
    int64_t block = onnx_int(n, "block_size", 128), bits = onnx_int(n, "bits", 4);
    if (!onnx_axis(n, onnx_int(n, "gather_axis", 0), rank, &gathered)
        || !onnx_axis(n, onnx_int(n, "quantize_axis", 1), rank, &quantised))
        return NULL;
    bool bytes = data->type.dtype == DT_U8, floats = dtype_is_float(data->type.dtype);
    if (scale->type.rank != rank || block < 0 || !type_is_static(&data->type) || (bytes && !b_known_bits(n->g, bits)))
        return onnx_fail(
            n, "data and scales must have the same rank and known sizes, and block_size must not be negative");
    DType d = scale->type.dtype, wide = dtype_wide(d);
    Dim size = data->type.dim[quantised];
    if (bytes && bits < 8) {
        int64_t last = data->type.dim[rank - 1] * (8 / bits);
        if (zero) zero = b_unpacked(n->g, zero, bits, scale->type.dim[rank - 1]);
        data = b_unpacked(n->g, data, bits, last);
        if (quantised == rank - 1) size = last;
    }
    if (block == 0) block = size;
    bool before = gathered == quantised;                // then a place has its own scale
    if (before) scale = b_spread(n->g, scale, data, quantised, block);
    if (before && zero) zero = b_spread(n->g, zero, data, quantised, block);
    int axis = quantised > gathered ? quantised + indices->type.rank - 1 : quantised;
    data = b_gather(n->g, data, indices, gathered);
    scale = b_cast(n->g, gathered_with(n, scale, indices, gathered), wide);
    if (zero && !(zero = gathered_with(n, zero, indices, gathered))) return NULL;
    if (!data || !scale) return NULL;
    if (!before) scale = b_spread(n->g, scale, data, axis, block);
    if (!before && zero && !(zero = b_spread(n->g, zero, data, axis, block))) return NULL;
    if (!zero && bytes) zero = b_scalar(n->g, DT_U8, (double)(1 << (bits - 1)));
    Value *q = floats ? data : b_centred(n->g, data, zero);
    return b_cast(n->g, b_binary(n->g, OP_Mul, b_cast(n->g, q, wide), scale), d);
}
