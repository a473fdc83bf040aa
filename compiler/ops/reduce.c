// SPDX-License-Identifier: MIT OR Apache-2.0
// Reductions over axes: ReduceSum/Prod/Max/Min, ArgMax/ArgMin, and the running CumSum/CumProd/CumMax/CumMin.
//
// The evaluator accumulates floats in double and integers modulo 2^64. Lowered, a reduction is E_Reduce over new loop
// axes; f16 and bf16 sums run in f32. A missing attribute axes means all of them, an empty one none. keepdims
// defaults to 1.
#include "common.h"
#include "table.h"

// ---------------------------------------------------------------- axes
static bool reduced_axes(const Node *n, int rank, bool *reduced) {
    int count = 0;
    const int64_t *axes = node_ints(n, "axes", &count);
    bool all = node_attr(n, "axes") == NULL;
    for (int i = 0; i < rank; i++) reduced[i] = all;
    for (int i = 0; i < count; i++) {
        if (axes[i] < 0 || axes[i] >= rank || reduced[axes[i]]) return false;
        reduced[axes[i]] = true;
    }
    return true;
}

static void drop_axes(Type *t, const bool *reduced, bool keep) {
    int rank = 0;
    for (int i = 0; i < t->rank; i++) {
        if (!reduced[i]) t->dim[rank++] = t->dim[i];
        else if (keep) t->dim[rank++] = 1;
    }
    *t = type_make(t->dtype, rank, t->dim);
}

// The input's coordinates of an output element, with the reduced ones 0.
static void source_coordinates(const bool *reduced, bool keep, int rank, const int64_t *idx, int64_t *at) {
    for (int i = 0, j = 0; i < rank; i++) {
        at[i] = reduced[i] ? 0 : idx[j];
        if (!reduced[i] || keep) j++;
    }
}

static ReduceOp reduce_op(const Node *n) {
    ReduceOp op = op_table[n->op].reduce;
    bool logical = n->in[0]->type.dtype == DT_BOOL;
    return logical && op == RED_MAX ? RED_OR : logical && op == RED_MIN ? RED_AND : op;
}

// ---------------------------------------------------------------- ReduceSum, ReduceProd, ReduceMax, ReduceMin
bool shape_reduce(Node *n) {
    Type t = n->in[0]->type;
    bool reduced[MAX_RANK];
    bool logical = t.dtype == DT_BOOL && (n->op == OP_ReduceMax || n->op == OP_ReduceMin);     // any, all
    if (!logical && !op_numeric(n, n->in[0])) return false;
    if (!reduced_axes(n, t.rank, reduced)) {
        diag_error(n->loc, "an axis to reduce is outside 0..%d of %s, or listed twice", t.rank - 1,
            value_type_text(n->in[0]));
        return false;
    }
    drop_axes(&t, reduced, node_int(n, "keepdims", 1) != 0);
    n->out[0]->type = t;
    return true;
}

bool eval_reduce(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *t = &in[0]->type;
    bool reduced[MAX_RANK], keep = node_int(n, "keepdims", 1) != 0;
    reduced_axes(n, t->rank, reduced);
    ReduceOp op = reduce_op(n);
    int64_t stride[MAX_RANK], inner[MAX_RANK], outer_idx[MAX_RANK] = { 0 }, at[MAX_RANK],
                                               count = type_count(&out[0]->type);
    type_strides(t, stride);
    bool empty = type_count(t) == 0;
    for (int i = 0; i < t->rank; i++) inner[i] = reduced[i] ? t->dim[i] : 1;
    for (int64_t o = 0; o < count; o++) {
        int64_t idx[MAX_RANK] = { 0 }, base = 0;
        source_coordinates(reduced, keep, t->rank, outer_idx, at);
        for (int i = 0; i < t->rank; i++) base += at[i] * stride[i];
        Scalar acc = reduce_identity(op, t->dtype);
        if (!empty)
            do {
                int64_t k = base;
                for (int i = 0; i < t->rank; i++) k += idx[i] * stride[i];
                acc = reduce_combine(op, t->dtype, acc, element_get(in[0], k));
            } while (index_next(t->rank, inner, idx));
        element_set(out[0], o, acc);
        index_next(out[0]->type.rank, out[0]->type.dim, outer_idx);
    }
    return true;
}

// y with its reduced axes back as 1, then spread over the input's shape.
static Value *spread(Node *n, Value *y) {
    Type t = n->in[0]->type;
    bool reduced[MAX_RANK];
    reduced_axes(n, t.rank, reduced);
    drop_axes(&t, reduced, true);
    y = b_reshape(n->graph, y, t.rank, t.dim);
    return b_expand(n->graph, y, t.rank, n->in[0]->type.dim);
}

bool grad_reduce_sum(Node *n, Value *const *dout, Value **din) {
    din[0] = spread(n, dout[0]);
    return din[0] != NULL;
}

// dy/dx_i is the product of all others: the products before and after i, which is right where elements are 0, too.
bool grad_reduce_prod(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    Value *x = n->in[0];
    bool reduced[MAX_RANK];
    int rank = x->type.rank, perm[MAX_RANK], inverse[MAX_RANK], kept = 0;
    reduced_axes(n, rank, reduced);
    Dim flat[MAX_RANK + 1], total = 1;
    for (int i = 0; i < rank; i++)
        if (!reduced[i]) perm[kept++] = i;
    int last = kept;
    for (int i = 0; i < rank; i++)
        if (reduced[i]) {
            perm[last++] = i;
            total = dim_mul(g, total, x->type.dim[i]);
        }
    for (int i = 0; i < rank; i++) inverse[perm[i]] = i;
    if (kept == rank) {
        din[0] = dout[0];
        return true;
    }
    Value *front = b_transpose(g, x, perm);
    if (!front) return false;
    for (int i = 0; i < kept; i++) flat[i] = front->type.dim[i];
    flat[kept] = total;
    Value *rows = b_reshape(g, front, kept + 1, flat);
    if (!rows) return false;
    Value *before = b_cumulate(g, OP_CumProd, rows, kept, true, false),
          *after = b_cumulate(g, OP_CumProd, rows, kept, true, true);
    Value *others = b_reshape(g, b_binary(g, OP_Mul, before, after), rank, front->type.dim);
    Value *dy = spread(n, dout[0]);
    din[0] = b_binary(g, OP_Mul, dy, b_transpose(g, others, inverse));
    return din[0] != NULL;
}

// Elements that tie for the extreme share the gradient evenly. stop_gradient=1: a maximum that is only subtracted for
// range, as in softmax, whose gradient is known to cancel.
bool grad_reduce_extreme(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    if (node_int(n, "stop_gradient", 0)) return true;
    Value *x = n->in[0], *y = spread(n, n->out[0]);
    Value *ties = b_cast(g, b_binary(g, OP_Equal, x, y), x->type.dtype);
    Node *count = graph_node(g, OP_ReduceSum, 1, &ties, 1);
    int n_axes = 0;
    const int64_t *axes = node_ints(n, "axes", &n_axes);
    if (node_attr(n, "axes")) node_set_ints(count, "axes", axes, n_axes);
    node_set_int(count, "keepdims", node_int(n, "keepdims", 1));
    if (!ties || !node_infer(count)) return false;
    Value *share = spread(n, b_binary(g, OP_Div, dout[0], count->out[0]));
    din[0] = b_binary(g, OP_Mul, ties, share);
    return din[0] != NULL;
}

Expr *lower_reduce(Lower *l, Node *n, int out, Expr *const *idx) {
    const Type *t = &n->in[0]->type;
    bool reduced[MAX_RANK], keep = node_int(n, "keepdims", 1) != 0;
    reduced_axes(n, t->rank, reduced);
    ReduceOp op = reduce_op(n);
    Expr *at[MAX_RANK];
    int axes[MAX_RANK], count = 0;
    for (int i = 0, j = 0; i < t->rank; i++) {
        if (reduced[i]) {
            if (t->dim[i] == 0) return expr_identity(l->p, n->out[out]->type.dtype, op);
            at[i] = lower_axis(l, t->dim[i], true);
            if (at[i]->op == E_Axis) axes[count++] = (int)at[i]->c.i;
        } else {
            at[i] = idx[j];
        }
        if (!reduced[i] || keep) j++;
    }
    Expr *body = lower_load(l, n->in[0], at);
    return body ? expr_accumulate(l, op, count, axes, body) : NULL;
}

// ---------------------------------------------------------------- ArgMax, ArgMin
bool shape_arg(Node *n) {
    Type t = n->in[0]->type;
    int axis;
    if (!op_numeric(n, n->in[0]) || !op_axis(n, t.rank, &axis)) return false;
    if (t.dim[axis] == 0) {
        diag_error(n->loc, "axis %d of %s is empty and has no extreme", axis, value_type_text(n->in[0]));
        return false;
    }
    bool reduced[MAX_RANK] = { false };
    reduced[axis] = true;
    drop_axes(&t, reduced, node_int(n, "keepdims", 1) != 0);
    t.dtype = DT_I64;
    n->out[0]->type = t;
    return true;
}

bool eval_arg(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *t = &in[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    bool last = node_int(n, "last", 0) != 0, max = n->op == OP_ArgMax;
    int64_t stride[MAX_RANK], count = type_count(&out[0]->type);
    type_strides(t, stride);
    int64_t inner = stride[axis], size = t->dim[axis];
    for (int64_t o = 0; o < count; o++) {
        int64_t base = o / inner * inner * size + o % inner, found = 0;
        Scalar best = element_get(in[0], base);
        for (int64_t k = 1; k < size; k++) {
            Scalar x = element_get(in[0], base + k * inner);
            bool better = max ? element_less(t->dtype, best, x) : element_less(t->dtype, x, best);
            bool worse = max ? element_less(t->dtype, x, best) : element_less(t->dtype, best, x);
            if (better || (last && !worse)) {
                best = x;
                found = k;
            }
        }
        tensor_set_i(out[0], o, found);
    }
    return true;
}

Expr *lower_arg(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *t = &n->in[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    bool keep = node_int(n, "keepdims", 1) != 0, last = node_int(n, "last", 0) != 0;
    Expr *at[MAX_RANK], *k = lower_axis(l, t->dim[axis], true);
    for (int i = 0, j = 0; i < t->rank; i++) {
        at[i] = i == axis ? k : idx[j];
        if (i != axis || keep) j++;
    }
    if (k->op != E_Axis) return expr_const_i(l->p, DT_I64, 0);
    ReduceOp op = reduce_arg(op_table[n->op].reduce, last ? TIE_LAST : TIE_FIRST);
    Expr *body = lower_load(l, n->in[0], at);
    int number = (int)k->c.i;
    return body ? expr_cast(l->p, expr_reduce(l->p, op, 1, &number, body, k), DT_I64) : NULL;
}

// ---------------------------------------------------------------- CumSum, CumProd, CumMax, CumMin
bool shape_cumulate(Node *n) {
    int axis;
    if (!op_numeric(n, n->in[0]) || !op_axis(n, n->in[0]->type.rank, &axis)) return false;
    n->out[0]->type = n->in[0]->type;
    return true;
}

bool eval_cumulate(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *t = &in[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    bool exclusive = node_int(n, "exclusive", 0) != 0, reverse = node_int(n, "reverse", 0) != 0;
    ReduceOp op = op_table[n->op].reduce;
    int64_t stride[MAX_RANK], size = t->dim[axis], lines = size ? type_count(t) / size : 0;
    type_strides(t, stride);
    int64_t inner = stride[axis];
    for (int64_t o = 0; o < lines; o++) {
        int64_t base = o / inner * inner * size + o % inner;
        Scalar acc = reduce_identity(op, t->dtype);
        for (int64_t k = 0; k < size; k++) {
            int64_t at = base + (reverse ? size - 1 - k : k) * inner;
            Scalar next = reduce_combine(op, t->dtype, acc, element_get(in[0], at));
            element_set(out[0], at, exclusive ? acc : next);
            acc = next;
        }
    }
    return true;
}

// y_i = sum of x_k over k <= i: quadratic in the axis, but parallel over everything; passes/split_scan.c makes long
// axes short ones.
Expr *lower_cumulate(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *t = &n->in[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    bool exclusive = node_int(n, "exclusive", 0) != 0, reverse = node_int(n, "reverse", 0) != 0;
    ReduceOp op = op_table[n->op].reduce;
    Expr *at[MAX_RANK], *k = lower_axis(l, t->dim[axis], true), *one = expr_identity(l->p, t->dtype, op);
    for (int i = 0; i < t->rank; i++) at[i] = i == axis ? k : idx[i];
    if (k->op != E_Axis) return exclusive ? one : lower_load(l, n->in[0], at);
    Expr *cond = expr_binary(l->p, exclusive ? E_Lt : E_Le, reverse ? idx[axis] : k, reverse ? k : idx[axis]);
    Expr *body = lower_guarded(l, n->in[0], at, cond, one);
    int number = (int)k->c.i;
    return body ? expr_accumulate(l, op, 1, &number, body) : NULL;
}
