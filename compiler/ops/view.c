// SPDX-License-Identifier: MIT OR Apache-2.0
// Views: Identity, Reshape, Transpose, Expand, Slice, Concat, Iota, Shape (Pad has ops/pad.c).
//
// Each output element is one input element (or a coordinate), so the evaluators copy bytes over strides for any
// dtype, the lowerings are index arithmetic alone, and the gradients are the adjoint views.
#include "common.h"
#include "table.h"

#include <string.h>

// ---------------------------------------------------------------- Identity
bool shape_identity(Node *n) {
    n->out[0]->type = n->in[0]->type;
    return true;
}

bool eval_identity(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)n;
    memcpy(out[0]->data, in[0]->data, (size_t)type_bytes(&in[0]->type));
    return true;
}

// What comes to nothing in a gradient need not do so in the gradient of that: stopped once, it flows from then on.
bool grad_identity(Node *n, Value *const *dout, Value **din) {
    if (node_int(n, "stop_gradient", 0)) node_set_int(n, "stop_gradient", 0);
    else din[0] = dout[0];
    return true;
}

Expr *lower_identity(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    return lower_load(l, n->in[0], idx);
}

// ---------------------------------------------------------------- Reshape
static bool shape_attr(Node *n, Type *t) {
    int rank = 0;
    const int64_t *dims = node_ints(n, "shape", &rank);
    if (rank > MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "shape has %d dimensions, the most is %d", rank, MAX_RANK);
        return false;
    }
    *t = type_make(t->dtype, rank, dims);
    return true;
}

bool shape_reshape(Node *n) {
    const Type *from = &n->in[0]->type;
    Type to = { .dtype = from->dtype };
    if (!shape_attr(n, &to)) return false;
    Dim a = 1, b = 1;
    for (int i = 0; i < from->rank; i++) a = dim_mul(n->graph, a, from->dim[i]);
    for (int i = 0; i < to.rank; i++) b = dim_mul(n->graph, b, to.dim[i]);
    if (!dims_agree(n, a, b)) {
        diag_error(n->loc, "cannot reshape %s to %s: %s elements against %s", value_type_text(n->in[0]),
            type_text(n->graph->arena, n->graph, &to), dim_text(n->graph->arena, n->graph, a),
            dim_text(n->graph->arena, n->graph, b));
        return false;
    }
    n->out[0]->type = to;
    return true;
}

bool eval_reshape(const Node *n, Tensor *const *in, Tensor *const *out) { return eval_identity(n, in, out); }

bool grad_reshape(Node *n, Value *const *dout, Value **din) {
    const Type *t = &n->in[0]->type;
    din[0] = b_reshape(n->graph, dout[0], t->rank, t->dim);
    return din[0] != NULL;
}

// Runs of axes with equal products are flattened apart from each other, so that [n,c,h,w] -> [n,c,h*w] leaves n and c
// alone.
Expr *lower_reshape(Lower *l, Node *n, int out, Expr *const *idx) {
    const Type *from = &n->in[0]->type, *to = &n->out[out]->type;
    Expr *at[MAX_RANK];
    int i = 0, j = 0;
    Graph *g = n->graph;
    if (type_count_upper(g, from) == 0) return expr_zero(l->p, from->dtype);
    while (i < to->rank || j < from->rank) {
        int i0 = i, j0 = j;
        Dim a = i < to->rank ? to->dim[i++] : 1, b = j < from->rank ? from->dim[j++] : 1;
        // run-time shapes may end unequal: their products are the same number then
        while (a != b && (i < to->rank || j < from->rank)) {
            if ((dim_upper(g, a) < dim_upper(g, b) && i < to->rank) || j >= from->rank) a = dim_mul(g, a, to->dim[i++]);
            else b = dim_mul(g, b, from->dim[j++]);
        }
        while (i < to->rank && to->dim[i] == 1) i++;
        while (j < from->rank && from->dim[j] == 1) j++;
        Type rows = type_make(to->dtype, i - i0, to->dim + i0),
             columns = type_make(from->dtype, j - j0, from->dim + j0);
        lower_unflat(l, &columns, lower_flat(l, &rows, idx + i0), at + j0);
    }
    return lower_load(l, n->in[0], at);
}

// ---------------------------------------------------------------- Transpose
bool shape_transpose(Node *n) {
    const Type *t = &n->in[0]->type;
    const int64_t *perm;
    if (!op_ints(n, "perm", t->rank, &perm)) return false;
    unsigned seen = 0;
    Type to = { .dtype = t->dtype, .rank = t->rank };
    for (int i = 0; i < t->rank; i++) {
        if (perm[i] < 0 || perm[i] >= t->rank || (seen >> perm[i] & 1)) {
            diag_error(n->loc, "perm is not an order of the %d axes of %s", t->rank, value_type_text(n->in[0]));
            return false;
        }
        seen |= 1u << perm[i];
        to.dim[i] = t->dim[perm[i]];
    }
    n->out[0]->type = to;
    return true;
}

bool eval_transpose(const Node *n, Tensor *const *in, Tensor *const *out) {
    int rank = 0;
    const int64_t *perm = node_ints(n, "perm", &rank);
    int64_t from[MAX_RANK], src[MAX_RANK], dst[MAX_RANK];
    type_strides(&in[0]->type, from);
    type_strides(&out[0]->type, dst);
    for (int i = 0; i < rank; i++) src[i] = from[perm[i]];
    strided_copy(out[0]->data, dst, in[0]->data, src, rank, out[0]->type.dim, dtype_size(in[0]->type.dtype));
    return true;
}

bool grad_transpose(Node *n, Value *const *dout, Value **din) {
    int rank = 0, inverse[MAX_RANK];
    const int64_t *perm = node_ints(n, "perm", &rank);
    const Node *product = dout[0]->def;
    for (int i = 0; i < rank; i++) inverse[perm[i]] = i;
    // (A B)' is B' A', which is computed as it lies: the gradient of a weight [out, in]
    if (product && product->op == OP_MatMul && rank == 2 && perm[0] == 1 && product->in[0]->type.rank == 2
        && product->in[1]->type.rank == 2) {
        Value *left = b_swap(n->graph, product->in[1], 0, 1), *right = b_swap(n->graph, product->in[0], 0, 1);
        din[0] = b_binary(n->graph, OP_MatMul, left, right);
        return din[0] != NULL;
    }
    din[0] = b_transpose(n->graph, dout[0], inverse);
    return din[0] != NULL;
}

Expr *lower_transpose(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    int rank = 0;
    const int64_t *perm = node_ints(n, "perm", &rank);
    Expr *at[MAX_RANK];
    for (int i = 0; i < rank; i++) at[perm[i]] = idx[i];
    return lower_load(l, n->in[0], at);
}

// ---------------------------------------------------------------- Expand
bool shape_expand(Node *n) {
    const Type *from = &n->in[0]->type;
    Type to = { .dtype = from->dtype };
    if (!shape_attr(n, &to)) return false;
    int lead = to.rank - from->rank;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < from->rank; i++) {
        Dim a = from->dim[i], b = to.dim[lead + i];
        fits = a == 1 || dims_agree(n, a, b);
    }
    if (!fits) {
        diag_error(n->loc, "cannot broadcast %s to %s: a dimension grows only from 1", value_type_text(n->in[0]),
            type_text(n->graph->arena, n->graph, &to));
        return false;
    }
    n->out[0]->type = to;
    return true;
}

bool eval_expand(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)n;
    const Type *from = &in[0]->type, *to = &out[0]->type;
    int64_t stride[MAX_RANK], src[MAX_RANK] = { 0 }, dst[MAX_RANK];
    type_strides(from, stride);
    type_strides(to, dst);
    for (int i = 0; i < from->rank; i++)
        if (from->dim[i] != 1) src[to->rank - from->rank + i] = stride[i];
    strided_copy(out[0]->data, dst, in[0]->data, src, to->rank, to->dim, dtype_size(from->dtype));
    return true;
}

bool grad_expand(Node *n, Value *const *dout, Value **din) {
    din[0] = b_sum_to(n->graph, dout[0], &n->in[0]->type);
    return din[0] != NULL;
}

Expr *lower_expand(Lower *l, Node *n, int out, Expr *const *idx) {
    const Type *from = &n->in[0]->type;
    int lead = n->out[out]->type.rank - from->rank;
    Expr *at[MAX_RANK];
    for (int i = 0; i < from->rank; i++) at[i] = from->dim[i] == 1 ? expr_index(l->p, 0) : idx[lead + i];
    return lower_load(l, n->in[0], at);
}

// ---------------------------------------------------------------- Slice
// Are the first and last of `size` > 0 elements inside an axis of d, as far as can be known?
bool slice_inside(Graph *g, Dim d, Dim start, int64_t step, Dim size) {
    int64_t by = step < 0 ? -step : step;
    Dim reach = dim_mul(g, dim_sub(g, size, 1), by),
        last = step < 0 ? dim_sub(g, start, reach) : dim_add(g, start, reach);
    return dim_upper(g, start) >= 0 && dim_upper(g, last) >= 0 && dim_upper(g, dim_sub(g, d, start)) > 0
        && dim_upper(g, dim_sub(g, d, last)) > 0;
}

bool shape_slice(Node *n) {
    const Type *t = &n->in[0]->type;
    const int64_t *start, *step, *size;
    if (!op_ints(n, "starts", t->rank, &start) || !op_ints(n, "steps", t->rank, &step)
        || !op_ints(n, "sizes", t->rank, &size))
        return false;
    for (int i = 0; i < t->rank; i++) {
        bool known = dim_is_const(t->dim[i]) && dim_is_const(size[i]) && dim_is_const(start[i]);
        bool inside = step[i] != 0 && step[i] != INT64_MIN;
        if (inside && !known && n->graph->bound && dim_lower(n->graph, size[i]) > 0)
            inside = slice_inside(n->graph, t->dim[i], start[i], step[i], size[i]);
        if (inside && known && size[i] > 0) {
            int64_t last = 0;
            inside = start[i] < t->dim[i] && !__builtin_mul_overflow(size[i] - 1, step[i], &last) &&
                     !__builtin_add_overflow(last, start[i], &last) && last >= 0 && last < t->dim[i];
        }
        if (!inside) {
            diag_error(n->loc, "axis %d of %s has no slice of %s elements from %s by steps of %lld", i,
                value_type_text(n->in[0]), dim_text(n->graph->arena, n->graph, size[i]),
                dim_text(n->graph->arena, n->graph, start[i]), (long long)step[i]);
            return false;
        }
    }
    n->out[0]->type = type_make(t->dtype, t->rank, size);
    return true;
}

bool eval_slice(const Node *n, Tensor *const *in, Tensor *const *out) {
    int rank = 0;
    const int64_t *start = node_ints(n, "starts", &rank), *step = node_ints(n, "steps", &rank);
    int64_t src[MAX_RANK], dst[MAX_RANK], at = 0;
    type_strides(&in[0]->type, src);
    type_strides(&out[0]->type, dst);
    if (type_count(&out[0]->type) == 0) return true;
    for (int i = 0; i < rank; i++) {
        at += start[i] * src[i];
        src[i] *= out[0]->type.dim[i] > 1 ? step[i] : 1;    // of one element, any step will do
    }
    size_t size = dtype_size(in[0]->type.dtype);
    strided_copy(
        out[0]->data, dst, (const char *)in[0]->data + at * (ptrdiff_t)size, src, rank, out[0]->type.dim, size);
    return true;
}

// dx is dy put back where it was taken from: flipped where the step is negative, then padded between and around.
bool grad_slice(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    const Type *t = &n->in[0]->type, *to = &n->out[0]->type;
    int rank = 0;
    const int64_t *start = node_ints(n, "starts", &rank), *step = node_ints(n, "steps", &rank);
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 }, interior[MAX_RANK] = { 0 };
    bool flip[MAX_RANK] = { false };
    for (int i = 0; i < rank; i++) {
        if (to->dim[i] == 0) {
            din[0] = b_full(g, t, 0);
            return din[0] != NULL;
        }
        if (start[i] == 0 && step[i] == 1) {
            Dim rest = dim_sub(g, t->dim[i], to->dim[i]);
            if (!op_static(n, rest, "the end of a slice that is differentiated")) return false;
            hi[i] = rest;
            continue;
        }
        if (!op_static(n, t->dim[i], "an axis whose slice is differentiated")
            || !op_static(n, to->dim[i], "the size of a slice")
            || !op_static(n, start[i], "the start of a slice that is differentiated"))
            return false;
        int64_t by = step[i] < 0 ? -step[i] : step[i],
                first = step[i] < 0 ? start[i] + step[i] * (to->dim[i] - 1) : start[i];
        flip[i] = step[i] < 0;
        lo[i] = first;
        interior[i] = by - 1;
        hi[i] = t->dim[i] - 1 - (first + by * (to->dim[i] - 1));
    }
    din[0] = b_pad(g, b_flip(g, dout[0], flip), lo, hi, interior, NULL);
    return din[0] != NULL;
}

Expr *lower_slice(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    int rank = 0;
    const int64_t *start = node_ints(n, "starts", &rank), *step = node_ints(n, "steps", &rank);
    Expr *at[MAX_RANK];
    for (int i = 0; i < rank; i++) at[i] = ix_add(l, ix_mulc(l, idx[i], step[i]), lower_dim(l, start[i]));
    return lower_load(l, n->in[0], at);
}

// ---------------------------------------------------------------- Concat
bool shape_concat(Node *n) {
    Type t = n->in[0]->type;
    int axis;
    if (!op_axis(n, t.rank, &axis)) return false;
    for (int k = 1; k < n->n_in; k++) {
        const Type *u = &n->in[k]->type;
        bool fits = u->dtype == t.dtype && u->rank == t.rank;
        for (int i = 0; fits && i < t.rank; i++)
            fits = i == axis || dims_agree(n, u->dim[i], t.dim[i]);
        if (!fits) {
            diag_error(n->loc, "cannot join %s and %s along axis %d: all else must be equal",
                value_type_text(n->in[0]), value_type_text(n->in[k]), axis);
            return false;
        }
        for (int i = 0; i < t.rank; i++)
            if (i != axis && dim_is_const(u->dim[i])) t.dim[i] = u->dim[i];
        t.dim[axis] = dim_add(n->graph, t.dim[axis], u->dim[axis]);
    }
    n->out[0]->type = t;
    return true;
}

bool eval_concat(const Node *n, Tensor *const *in, Tensor *const *out) {
    int axis = (int)node_int(n, "axis", 0);
    int64_t src[MAX_RANK], dst[MAX_RANK];
    size_t size = dtype_size(out[0]->type.dtype);
    char *to = out[0]->data;
    type_strides(&out[0]->type, dst);
    for (int k = 0; k < n->n_in; k++) {
        const Type *t = &in[k]->type;
        type_strides(t, src);
        strided_copy(to, dst, in[k]->data, src, t->rank, t->dim, size);
        to += t->dim[axis] * dst[axis] * (ptrdiff_t)size;
    }
    return true;
}

bool grad_concat(Node *n, Value *const *dout, Value **din) {
    int axis = (int)node_int(n, "axis", 0);
    Dim start[MAX_RANK] = { 0 };
    int64_t step[MAX_RANK];
    for (int i = 0; i < MAX_RANK; i++) step[i] = 1;
    for (int k = 0; k < n->n_in; k++) {
        const Type *t = &n->in[k]->type;
        din[k] = b_slice(n->graph, dout[0], start, step, t->dim);
        if (!din[k]) return false;
        start[axis] = dim_add(n->graph, start[axis], t->dim[axis]);
    }
    return true;
}

Expr *lower_concat(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    int axis = (int)node_int(n, "axis", 0);
    Expr *at[MAX_RANK], *result = NULL;
    Dim end = n->out[0]->type.dim[axis];
    for (int i = 0; i < n->out[0]->type.rank; i++) at[i] = idx[i];
    // from the last input: x0 if i < end0, else x1 if i < end1, else ...
    for (int k = n->n_in - 1; k >= 0; k--) {
        Dim from = dim_sub(n->graph, end, n->in[k]->type.dim[axis]);
        if (from == end) continue;
        Expr *start = lower_dim(l, from);
        at[axis] = expr_binary(l->p, E_Sub, idx[axis], start);
        Expr *cond = dim_is_const(from) && dim_is_const(end) ? ix_in_range(l, NULL, idx[axis], from, end) :
                                                               expr_binary(l->p, E_Le, start, idx[axis]);
        if (!dim_is_const(from) || !dim_is_const(end))
            cond = expr_binary(l->p, E_And, cond, expr_binary(l->p, E_Lt, idx[axis], lower_dim(l, end)));
        Expr *e = lower_guarded(l, n->in[k], at, cond, result ? result : expr_zero(l->p, n->out[0]->type.dtype));
        if (!e) return NULL;
        result = e;
        end = from;
    }
    return result ? result : expr_zero(l->p, n->out[0]->type.dtype);
}

// ---------------------------------------------------------------- Iota: the coordinate along an axis
bool shape_iota(Node *n) {
    Type t = { .dtype = (DType)node_int(n, "dtype", DT_I64) };
    int axis;
    if (!shape_attr(n, &t)) return false;
    n->out[0]->type = t;
    return op_numeric(n, n->out[0]) && op_axis(n, t.rank, &axis);
}

bool eval_iota(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)in;
    int64_t stride[MAX_RANK], count = type_count(&out[0]->type);
    int axis = (int)node_int(n, "axis", 0);
    type_strides(&out[0]->type, stride);
    for (int64_t i = 0; i < count; i++) tensor_set_i(out[0], i, i / stride[axis] % out[0]->type.dim[axis]);
    return true;
}

Expr *lower_iota(Lower *l, Node *n, int out, Expr *const *idx) {
    return expr_cast(l->p, idx[node_int(n, "axis", 0)], n->out[out]->type.dtype);
}

// ---------------------------------------------------------------- Shape: the dimensions of the input
bool shape_shape(Node *n) {
    Dim rank = n->in[0]->type.rank;
    n->out[0]->type = type_make(DT_I64, 1, &rank);
    return true;
}

bool eval_shape(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)in;
    const Type *t = &n->in[0]->type;
    for (int i = 0; i < t->rank; i++) tensor_set_i(out[0], i, t->dim[i]);
    return true;
}

Expr *lower_shape(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *t = &n->in[0]->type;
    Expr *e = expr_cast(l->p, lower_dim(l, t->rank ? t->dim[t->rank - 1] : 0), DT_I64);
    for (int i = t->rank - 2; i >= 0; i--) {
        Expr *here = expr_binary(l->p, E_Eq, idx[0], expr_index(l->p, i));
        e = expr_select(l->p, here, expr_cast(l->p, lower_dim(l, t->dim[i]), DT_I64), e);
    }
    return e;
}
