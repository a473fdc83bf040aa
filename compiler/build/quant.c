// SPDX-License-Identifier: MIT OR Apache-2.0
// Quantisation: numbers as integers (or small floats) with a scale and a zero point.
//
// In: values, scales, zero points. Out: maps and integer contractions. Formulas: q = saturate(round(x / scale) +
// zero), x = (q - zero) * scale. Products of quantised tensors are summed exactly in i32 and scaled once. Scales and
// zero points are per tensor, per axis, or per block along an axis.
#include "build/build.h"

#include <string.h>

// A scale or zero point in a shape that broadcasts against x.
Value *b_spread(Graph *g, Value *v, const Value *x, int axis, int64_t block) {
    if (!v || v->type.rank == 0) return v;
    if (v->type.rank == 1 && v->type.dim[0] == 1) return b_scalar_of(g, v);
    if (!block && v->type.rank == 1) return b_along(g, v, x->type.rank, axis);
    if (!block) return v;
    if (v->type.rank != x->type.rank) return graph_fail(g, "a blocked scale must have the input's rank");
    Dim wide[MAX_RANK + 1], merged[MAX_RANK], size = x->type.dim[axis];
    Value *split = b_insert(g, v, axis + 1);
    if (!split) return NULL;
    memcpy(wide, split->type.dim, sizeof *wide * (size_t)split->type.rank);
    memcpy(merged, v->type.dim, sizeof merged);
    wide[axis + 1] = block;
    merged[axis] = dim_mul(g, merged[axis], block);
    if (dim_is_const(size) && dim_is_const(merged[axis]) && merged[axis] < size)
        return graph_fail(g, "the scale has too few blocks of %lld for axis %d", (long long)block, axis);
    return b_part(g, b_reshape(g, b_expand(g, split, split->type.rank, wide), v->type.rank, merged), axis, 0, size);
}

static bool all_zero(Value *v) {
    Tensor *t = v ? value_const(v) : NULL;
    for (int64_t i = 0; t && i < type_count(&t->type); i++)
        if (tensor_get_f(t, i) != 0) return false;
    return t != NULL;
}

// y: x / scale in f32 or wider. zero: of type d, or NULL.
Value *b_round_to(Graph *g, Value *y, Value *zero, DType d, bool saturate) {
    if (!y) return NULL;
    if (dtype_is_float(d)) {
        if (zero) y = b_binary(g, OP_Add, y, b_cast(g, zero, y->type.dtype));
        if (!y) return NULL;
        Node *node = graph_node(g, OP_Cast, 1, &y, 1);
        node_set_int(node, "to", d);
        node_set_int(node, "saturate", saturate);
        return b_finish(node);
    }
    if (!dtype_is_int(d) || dtype_size(d) > 4) return graph_fail(g, "cannot quantise to %s", dtype_name(d));
    y = b_unary(g, OP_Round, y);
    if (zero && !all_zero(zero)) y = b_binary(g, OP_Add, y, b_cast(g, zero, y ? y->type.dtype : DT_F32));
    return b_cast(g, y, d);                          // which gives the nearest end of d's range to what is out of it
}

// Subtracts the zero point without loss: in i32 for integers, in f32 for small floats.
Value *b_centred(Graph *g, Value *x, Value *zero) {
    if (!x) return NULL;
    DType d = dtype_is_float(x->type.dtype) ? dtype_wide(x->type.dtype) : DT_I32;
    x = b_cast(g, x, d);
    return zero ? b_binary(g, OP_Sub, x, b_cast(g, zero, d)) : x;
}

// ---------------------------------------------------------------- ONNX's QuantizeLinear and DequantizeLinear

Value *b_quantize(Graph *g, Value *x, const Quant *by, DType to, DType wide, bool saturate) {
    Value *scale = b_spread(g, b_cast(g, by->scale, wide), x, by->axis, by->block), *zero = by->zero;
    if (zero) zero = b_spread(g, b_cast(g, zero, wide), x, by->axis, by->block);
    return b_round_to(g, b_binary(g, OP_Div, b_cast(g, x, wide), scale), zero, to, saturate);
}

Value *b_dequantize(Graph *g, Value *x, const Quant *by, DType to) {
    DType wide = dtype_wide(to);
    Value *zero = by->zero ? b_spread(g, by->zero, x, by->axis, by->block) : NULL;
    Value *scale = b_spread(g, b_cast(g, by->scale, wide), x, by->axis, by->block);
    Value *y = b_centred(g, x, zero);
    return b_cast(g, b_binary(g, OP_Mul, b_cast(g, y, wide), scale), to);
}

static const Node *made_by(const Value *v, Op op) { return v && v->def && v->def->op == op ? v->def : NULL; }

// What b_spread made v of, to go with x: the vector or the blocks, and along which axis.
static bool read_spread(Value *v, const Value *x, Value **of, int *axis, int64_t *block) {
    int rank = x->type.rank, at = -1, n = 0;
    const Node *slice = made_by(v, OP_Slice), *merge = made_by(slice ? slice->in[0] : v, OP_Reshape);
    const Node *expand = merge ? made_by(merge->in[0], OP_Expand) : NULL;
    const Node *split = expand ? made_by(expand->in[0], OP_Reshape) : NULL;
    *of = v;
    if (split && split->in[0]->type.rank == rank) {
        const Type *wide = &expand->out[0]->type, *blocks = &split->in[0]->type;
        *of = split->in[0];
        for (int i = 0; i < rank && *axis < 0; i++)
            if (!dim_equal(v->graph, blocks->dim[i], merge->out[0]->type.dim[i])) *axis = i;
        if (*axis < 0 || wide->rank != rank + 1 || !dim_is_const(wide->dim[*axis + 1])) return false;
        *block = wide->dim[*axis + 1];
        return true;
    }
    for (int i = 0; i < v->type.rank; i++)
        if (v->type.dim[i] != 1) {
            at = rank - v->type.rank + i;
            n++;
        }
    if (merge && !slice && merge->in[0]->type.rank == 1) *of = merge->in[0];
    if (n > 1 || (*of)->type.rank > 1 || (at >= 0 && *axis >= 0 && at != *axis)) return false;
    if (at >= 0) *axis = at;
    return true;
}

bool quant_read_back(const Node *n, Value **q, Quant *by) {
    *by = (Quant){ .axis = -1 };
    const Node *wide = n->op == OP_Mul ? made_by(n->in[0], OP_Cast) : NULL;
    if (!wide || !dtype_is_float(n->out[0]->type.dtype)) return false;
    Value *whole = wide->in[0];
    const Node *sub = made_by(whole, OP_Sub), *cast = made_by(sub ? sub->in[0] : whole, OP_Cast);
    *q = cast ? cast->in[0] : sub ? sub->in[0] : whole;
    DType d = (*q)->type.dtype;
    bool plain = d == DT_I32 && (*q)->data;             // of which x - 0 is not written
    if (whole->type.dtype != DT_I32 || !dtype_is_int(d) || (d == DT_I32 ? cast || !plain : !cast)) return false;
    if (!type_same_shape(&(*q)->type, &n->out[0]->type)) return false;
    if (!read_spread(n->in[1], *q, &by->scale, &by->axis, &by->block)) return false;
    if (!sub) return true;
    const Node *zero = made_by(sub->in[1], OP_Cast);
    Value *point = zero ? zero->in[0] : sub->in[1];
    int64_t block = 0;
    return point->type.dtype == d && read_spread(point, *q, &by->zero, &by->axis, &block) && block == by->block;
}

bool quant_read(const Node *n, Value **x, Quant *by) {
    DType d = n->out[0]->type.dtype;
    *by = (Quant){ .axis = -1 };
    if (n->op != OP_Cast || !dtype_is_int(d) || dtype_size(d) > 4 || n->in[0]->type.dtype != DT_F32) return false;
    const Node *add = made_by(n->in[0], OP_Add), *round = made_by(add ? add->in[0] : n->in[0], OP_Round);
    const Node *div = round ? made_by(round->in[0], OP_Div) : NULL;
    if (!div || !type_equal(&div->in[0]->type, &div->out[0]->type)) return false;
    *x = div->in[0];
    if (!read_spread(div->in[1], *x, &by->scale, &by->axis, &by->block)) return false;
    if (!add) return true;
    Value *point;
    int64_t block = 0;
    if (!read_spread(add->in[1], *x, &point, &by->axis, &block) || block != by->block) return false;
    const Node *zero = made_by(point, OP_Cast);
    by->zero = zero ? zero->in[0] : NULL;
    return zero && by->zero->type.dtype == d;
}

// scale = (max(x, 0) - min(x, 0)) / 255, zero = saturate(round(-min / scale)).
Value *b_quantized_u8(Graph *g, Value *x, Value **scale, Value **zero) {
    int64_t axes[MAX_RANK];
    if (!x) return NULL;
    for (int i = 0; i < x->type.rank; i++) axes[i] = i;
    Value *lo = b_reduce(g, OP_ReduceMin, x, x->type.rank, axes, false),
          *hi = b_reduce(g, OP_ReduceMax, x, x->type.rank, axes, false);
    *scale = B_MAP(g, "(max(y, 0) - min(x, 0)) / 255", "x y", lo, hi);
    Value *at = B_MAP(g, "min(max(round((0 - min(x, 0)) / y), 0), 255)", "x y", lo, *scale);
    *zero = b_cast(g, at, DT_U8);
    return b_round_to(g, b_binary(g, OP_Div, x, *scale), at, DT_U8, true);
}

// A zero point or scale of the first factor: a vector goes with its rows.
Value *b_of_rows(Graph *g, Value *v) {
    if (!v || v->type.rank != 1) return v;
    return v->type.dim[0] == 1 ? b_scalar_of(g, v) : b_insert(g, v, 1);
}

Value *b_of_columns(Graph *g, Value *v) {
    return v && v->type.rank == 1 && v->type.dim[0] == 1 ? b_scalar_of(g, v) : v;
}

// The sum in i32, times sa * sb / sy, rounded to y's type.
Value *b_rescale(Graph *g, Value *sum, Value *sa, Value *sb, Value *sy, Value *zero) {
    if (!sum || !sa || !sb || !sy || !zero) return NULL;
    DType wide = dtype_wide(sa->type.dtype);
    sum = b_cast(g, sum, wide);
    sa = b_cast(g, sa, wide);
    sb = b_cast(g, sb, wide);
    sy = b_cast(g, sy, wide);
    return b_round_to(g, B_MAP(g, "x * (y * z / w)", "x y z w", sum, sa, sb, sy), zero, zero->type.dtype, true);
}

// ---------------------------------------------------------------- numbers of few bits

// 0, bits, 2 * bits... : by how much the parts of a byte are shifted.
Value *b_bit_shifts(Graph *g, int64_t bits) {
    int64_t per = 8 / bits;
    Tensor *t = tensor_new(g->arena, type_make(DT_U8, 1, &per));
    for (int64_t i = 0; i < per; i++) tensor_set_i(t, i, i * bits);
    return graph_const(g, t, NULL);
}

// Numbers of `bits` bits that bytes hold along the last axis, low bits first: count of them.
Value *b_unpacked(Graph *g, Value *bytes, int64_t bits, int64_t count) {
    int rank = bytes->type.rank;
    int64_t per = 8 / bits;
    Dim dims[MAX_RANK];
    if (bits == 8) return b_part(g, bytes, rank - 1, 0, count);
    for (int i = 0; i < rank; i++)
        dims[i] = i == rank - 1 ? dim_mul(g, bytes->type.dim[i], per) : bytes->type.dim[i];
    Value *parts = B_MAP(g, arena_printf(g->arena, "x >> y & %d", (1 << bits) - 1), "x y", b_insert(g, bytes, rank),
        b_bit_shifts(g, bits));
    return b_part(g, b_reshape(g, parts, rank, dims), rank - 1, 0, count);
}

bool b_known_bits(Graph *g, int64_t bits) {
    if (bits == 2 || bits == 4 || bits == 8) return true;
    graph_fail(g, "%lld bits are not supported; 2, 4 and 8 are", (long long)bits);
    return false;
}
