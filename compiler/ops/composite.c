// SPDX-License-Identifier: MIT OR Apache-2.0
// Composites that keep their name until a back end declines them: softmaxes, derived reductions, average pooling,
// transposed convolution (normalisations: ops/normalize.c; losses: ops/loss.c). Each expand_X builds the same function
// from primitives, which then folds, fuses and differentiates by itself. f16 and bf16 compute in f32 throughout and are
// rounded once, at the end; Softmax rounds each step.
#include "common.h"
#include "table.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- shared
static int reduced_axes(const Node *n, int64_t *axes) {
    int count = 0;
    const int64_t *given = node_ints(n, "axes", &count);
    if (!node_attr(n, "axes")) return all_axes(n->in[0], axes);
    for (int i = 0; i < count; i++) axes[i] = given[i];
    return count;
}

// x summed over the node's axes
static Value *summed(Node *n, Value *x) {
    int64_t axes[MAX_RANK];
    int count = reduced_axes(n, axes);
    return b_reduce(n->graph, OP_ReduceSum, x, count, axes, node_int(n, "keepdims", 1) != 0);
}

// The maximum over some axes, kept as 1, that is only subtracted to stay in range.
static Value *range_maximum(Graph *g, Value *x, int n_axes, const int64_t *axes) {
    if (!x) return NULL;
    Node *m = graph_node(g, OP_ReduceMax, 1, &x, 1);
    node_set_ints(m, "axes", axes, n_axes);
    node_set_int(m, "keepdims", 1);
    node_set_int(m, "stop_gradient", 1);
    return b_finish(m);
}

static bool softmax_axis(Node *n, int64_t *axis) {
    int rank = n->in[0]->type.rank;
    *axis = node_int(n, "axis", rank - 1);
    if (*axis >= 0 && *axis < rank) return true;
    diag_error(n->loc, "axis %lld is outside 0..%d of %s", (long long)*axis, rank - 1, value_type_text(n->in[0]));
    return false;
}

// ---------------------------------------------------------------- Softmax, LogSoftmax, Hardmax
bool shape_softmax(Node *n) {
    int64_t axis;
    n->out[0]->type = n->in[0]->type;
    return softmax_axis(n, &axis);
}

// x summed along axis, kept as 1. A short sum of bf16 is rounded after each addition, as the type's arithmetic says
// and ONNX's reference does; in a long one its 8 bits would lose the terms, so that is rounded once, as every other
// type is.
static Value *sum_in_type(Graph *g, Value *x, int64_t axis) {
    enum { SHORT = 16 };
    if (!x || x->type.dtype != DT_BF16 || !dim_is_const(x->type.dim[axis]) || x->type.dim[axis] > SHORT
        || x->type.dim[axis] < 1)
        return b_reduce(g, OP_ReduceSum, x, 1, &axis, true);
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK], count = x->type.dim[axis];
    Type t = x->type;
    Value *sum = NULL;
    t.dim[axis] = 1;
    for (int i = 0; i < t.rank; i++) steps[i] = 1;
    for (int64_t i = 0; i < count; i++) {
        starts[axis] = i;
        Value *part = b_slice(g, x, starts, steps, t.dim);
        sum = i ? b_binary(g, OP_Add, sum, part) : part;
    }
    return sum;
}

// In the input's own type, each step rounded to it: the standard defines Softmax by these steps.
bool expand_softmax(Node *n, Value **out) {
    Graph *g = n->graph;
    int64_t axis, empty = node_int(n, "empty", EMPTY_NAN);
    if (!softmax_axis(n, &axis)) return false;
    Value *x = n->in[0], *top = range_maximum(g, x, 1, &axis);
    Value *e = b_unary(g, OP_Exp, b_binary(g, OP_Sub, x, top));
    Value *y = b_binary(g, OP_Div, e, sum_in_type(g, e, axis));
    if (empty == EMPTY_NAN || !y) return expand_done(n, y, out);
    Value *none = empty == EMPTY_ZERO ? b_binary(g, OP_Equal, top, b_like(g, x, -INFINITY)) : b_unary(g, OP_IsNaN, y);
    return expand_done(n, b_where(g, none, b_like(g, y, 0), y), out);
}

Value *softmax_gradient(Graph *g, Value *y, Value *dy, int64_t axis) {
    Value *mean = b_reduce(g, OP_ReduceSum, b_binary(g, OP_Mul, y, dy), 1, &axis, true);
    return b_binary(g, OP_Mul, y, b_binary(g, OP_Sub, dy, mean));
}

bool grad_softmax(Node *n, Value *const *dout, Value **din) {
    int64_t axis;
    if (!softmax_axis(n, &axis)) return false;
    din[0] = softmax_gradient(n->graph, n->out[0], dout[0], axis);
    return din[0] != NULL;
}

// x's row along the axis, reduced; of exp(x - top) where there is a top.
static Expr *row_reduced(Lower *l, const Node *n, ReduceOp op, Expr *const *idx, Expr *top) {
    const Type *t = &n->in[0]->type;
    int64_t along = node_int(n, "axis", t->rank - 1);
    Expr *at[MAX_RANK];
    int axis = 0;
    memcpy(at, idx, sizeof(Expr *) * (size_t)t->rank);
    at[along] = lower_axis(l, t->dim[along], true);
    if (at[along]->op == E_Axis) axis = (int)at[along]->c.i;
    Expr *x = lower_load(l, n->in[0], at);
    if (top) x = expr_unary(l->p, E_Exp, expr_binary(l->p, E_Sub, x, top));
    return expr_accumulate(l, op, at[along]->op == E_Axis, &axis, x);
}

// The formula of expand_softmax; for axes that have elements.
Expr *lower_softmax(Lower *l, Node *n, int out, Expr *const *idx) {
    ExprPool *p = l->p;
    DType d = n->out[out]->type.dtype;
    int64_t empty = node_int(n, "empty", EMPTY_NAN);
    ReduceOp largest = empty == EMPTY_NAN ? RED_TOP : RED_MAX;         // NaN is in the sum
    Expr *x = lower_load(l, n->in[0], idx), *top = row_reduced(l, n, largest, idx, NULL);
    Expr *e = expr_unary(p, E_Exp, expr_binary(p, E_Sub, x, top)), *sum = row_reduced(l, n, RED_SUM, idx, top);
    Expr *y = expr_binary(p, E_Div, e, sum);
    lower_shared(l, n->out[out], sum);
    if (empty == EMPTY_NAN) return y;
    Expr *none = empty == EMPTY_ZERO ? expr_binary(p, E_Eq, top, expr_const_f(p, d, -INFINITY)) :
                                       expr_unary(p, E_IsNan, y);
    return expr_select(p, none, expr_zero(p, d), y);
}

static Value *log_softmax(Graph *g, Value *x, int64_t axis) {
    x = b_wide(g, x);
    Value *z = b_binary(g, OP_Sub, x, range_maximum(g, x, 1, &axis));
    Value *sum = b_reduce(g, OP_ReduceSum, b_unary(g, OP_Exp, z), 1, &axis, true);
    return b_binary(g, OP_Sub, z, b_unary(g, OP_Log, sum));
}

bool expand_log_softmax(Node *n, Value **out) {
    int64_t axis;
    return softmax_axis(n, &axis) && expand_done(n, log_softmax(n->graph, n->in[0], axis), out);
}

// dy - exp(y) sum(dy): of what the forward pass computes nothing but y is read.
bool grad_log_softmax(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    int64_t axis;
    if (!softmax_axis(n, &axis)) return false;
    Value *sum = b_reduce(g, OP_ReduceSum, dout[0], 1, &axis, true);
    Value *p = b_binary(g, OP_Mul, b_unary(g, OP_Exp, n->out[0]), sum);
    din[0] = b_binary(g, OP_Sub, dout[0], p);
    return din[0] != NULL;
}

// The coordinates along `axis` of a tensor of that rank, broadcastable: [1,..,size,..,1]
static Value *coordinates(Graph *g, int rank, int axis, Dim size, DType d) {
    Dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? size : 1;
    return b_iota(g, rank, dims, axis, d);
}

bool expand_hardmax(Node *n, Value **out) {
    Graph *g = n->graph;
    const Type *t = &n->in[0]->type;
    int64_t axis;
    if (!softmax_axis(n, &axis)) return false;
    Node *top = graph_node(g, OP_ArgMax, 1, n->in, 1);
    node_set_int(top, "axis", axis);
    node_set_int(top, "keepdims", 1);
    if (!node_infer(top)) return false;
    return expand_done(
        n, b_binary(g, OP_Equal, coordinates(g, t->rank, (int)axis, t->dim[axis], DT_I64), top->out[0]), out);
}

// ---------------------------------------------------------------- derived reductions
bool expand_reduce_mean(Node *n, Value **out) {
    int64_t axes[MAX_RANK];
    int count = reduced_axes(n, axes);
    return expand_done(
        n, b_mean(n->graph, b_wide(n->graph, n->in[0]), count, axes, node_int(n, "keepdims", 1) != 0), out);
}

bool expand_reduce_l1(Node *n, Value **out) {
    return expand_done(n, summed(n, b_unary(n->graph, OP_Abs, b_wide(n->graph, n->in[0]))), out);
}

bool expand_reduce_sum_square(Node *n, Value **out) {
    return expand_done(n, summed(n, b_unary(n->graph, OP_Square, b_wide(n->graph, n->in[0]))), out);
}

bool expand_reduce_l2(Node *n, Value **out) {
    Value *s = summed(n, b_unary(n->graph, OP_Square, b_wide(n->graph, n->in[0])));
    return expand_done(n, b_unary(n->graph, OP_Sqrt, s), out);
}

bool expand_reduce_log_sum(Node *n, Value **out) {
    return expand_done(n, b_unary(n->graph, OP_Log, summed(n, b_wide(n->graph, n->in[0]))), out);
}

// log(sum(exp(x))) = m + log(sum(exp(x - m))); where m is infinite, 0 stands for it, so that all -inf give -inf
bool expand_reduce_log_sum_exp(Node *n, Value **out) {
    Graph *g = n->graph;
    int64_t axes[MAX_RANK];
    int count = reduced_axes(n, axes);
    Value *x = b_wide(g, n->in[0]), *m = range_maximum(g, x, count, axes);
    m = b_map(g, "isinf(x) ? 0 : x", "x", 1, &m);
    Value *sum = summed(n, b_unary(g, OP_Exp, b_binary(g, OP_Sub, x, m)));
    const Type *t = &n->out[0]->type;
    m = b_reshape(g, m, t->rank, t->dim);
    return expand_done(n, b_binary(g, OP_Add, m, b_unary(g, OP_Log, sum)), out);
}

// ---------------------------------------------------------------- AveragePool
// The product over spatial axes of how many k in 0..kernel-1 have from <= o*stride - lo + k*dilation < to, as
// [spatial...].
static Value *computed_divisor(Node *n, const Geometry *w, bool pads_count, DType d) {
    Graph *g = n->graph;
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type;
    Value *product = NULL;
    for (int i = 0; i < w->spatial; i++) {
        Value *at = coordinates(g, w->spatial, i, y->dim[2 + i], DT_I64),
              *to = b_number(g, dim_add(g, x->dim[2 + i], pads_count ? w->hi[i] : 0));
        Value *step = b_number(g, w->dilation[i]), *size = b_number(g, w->kernel[i]),
              *stride = b_number(g, w->stride[i]), *lo = b_number(g, w->lo[i]);
        at = b_map(g, "x * s - l", "x s l", 3, (Value *[]){ at, stride, lo });
        Value *inside = b_map(
            g, "min(max((t - x + s - 1) / s, 0), k)", "x t s k", 4, (Value *[]){ at, to, step, size });
        if (!pads_count)
            inside = b_binary(g, OP_Sub, inside,
                b_map(g, "min(max((s - 1 - x) / s, 0), k)", "x s k", 3, (Value *[]){ at, step, size }));
        product = product ? b_binary(g, OP_Mul, product, inside) : inside;
    }
    return product ? b_cast(g, product, d) : NULL;
}

#define MAX_COUNTED (1 << 16)   // places whose divisors become a constant

// How many of a window's positions along axis i, of which the first is at 0, are below `end`.
static int64_t positions_below(const Geometry *w, int i, int64_t end) {
    int64_t n = end > 0 ? ceil_div(end, w->dilation[i]) : 0;
    return n < w->kernel[i] ? n : w->kernel[i];
}

// How many positions of the window at each output count: those inside the input or, with count_include_pad, inside
// input and padding.
static Value *pool_divisor(Node *n, const Geometry *w, DType d) {
    Graph *g = n->graph;
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type;
    bool pads_count = node_int(n, "count_include_pad", 0) != 0, even = true;
    Type t = { .dtype = d, .rank = w->spatial };
    int64_t whole = 1, o[MAX_RANK] = { 0 };
    for (int i = 0; i < w->spatial; i++) {
        whole *= w->kernel[i];
        even = even && !w->ceil && (pads_count || (w->lo[i] == 0 && w->hi[i] == 0));
    }
    if (even) return b_scalar(g, d, (double)whole);
    bool known = true;
    int64_t places = 1;
    for (int i = 0; i < w->spatial; i++) {
        t.dim[i] = y->dim[2 + i];
        known = known && dim_is_const(x->dim[2 + i]);
        places = places > MAX_COUNTED || !dim_is_const(t.dim[i]) || t.dim[i] > MAX_COUNTED ? MAX_COUNTED + 1 :
                                                                                             places * t.dim[i];
    }
    if (!known || places > MAX_COUNTED) return computed_divisor(n, w, pads_count, d);
    Tensor *count = tensor_new(g->arena, t);
    int64_t at = 0, total = type_count(&t);
    for (; at < total; at++, index_next(t.rank, t.dim, o)) {
        int64_t product = 1;
        for (int i = 0; i < w->spatial; i++) {
            int64_t from = pads_count ? -w->lo[i] : 0, to = x->dim[2 + i] + (pads_count ? w->hi[i] : 0),
                    start = o[i] * w->stride[i] - w->lo[i];
            int64_t inside = positions_below(w, i, to - start) - positions_below(w, i, from - start);
            product *= inside > 0 ? inside : 0;
        }
        tensor_set_i(count, at, product);
    }
    return graph_const(g, count, NULL);
}

bool expand_average_pool(Node *n, Value **out) {
    Graph *g = n->graph;
    int count = 0;
    const int64_t *kernel = node_ints(n, "kernel", &count);
    Geometry w = geometry_of(n, count, kernel);
    Value *x = b_wide(g, n->in[0]);
    int64_t pads[2 * MAX_RANK];
    op_ints_or(n, "pads", 2 * count, 0, pads);
    Node *s = graph_node(g, OP_WindowSum, 1, &x, 1);
    node_set_ints(s, "kernel", w.kernel, count);
    node_set_ints(s, "strides", w.stride, count);
    node_set_ints(s, "dilations", w.dilation, count);
    node_set_ints(s, "pads", pads, 2 * count);
    node_set_int(s, "ceil_mode", w.ceil);
    if (node_int(n, "same", 0)) node_set_int(s, "same", node_int(n, "same", 0));
    if (!node_infer(s)) return false;
    return expand_done(n, b_binary(g, OP_Div, s->out[0], pool_divisor(n, &w, x->type.dtype)), out);
}

// ---------------------------------------------------------------- ConvTranspose
bool shape_conv_transpose(Node *n) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    int64_t group = node_int(n, "group", 1), extra[MAX_RANK];
    if (!op_numeric(n, n->in[0]) || x->dtype != w->dtype || x->rank < 3 || x->rank != w->rank) {
        diag_error(n->loc, "input and weight must be one dtype and [n,c,...] with [in,out,...], they are %s and %s",
            value_type_text(n->in[0]), value_type_text(n->in[1]));
        return false;
    }
    for (int i = 0; i < w->rank; i++)
        if (!op_static(n, w->dim[i], "a convolution's weight size")) return false;
    if (!geometry_check(n, x->rank - 2, w->dim + 2)) return false;
    if (group < 1 || w->dim[0] % group || !dims_agree(n, x->dim[1], w->dim[0])) {
        diag_error(n->loc, "weight %s in %lld groups wants %lld input channels, input is %s",
            value_type_text(n->in[1]), (long long)group, (long long)w->dim[0], value_type_text(n->in[0]));
        return false;
    }
    Geometry geo = geometry_of(n, x->rank - 2, w->dim + 2);
    Type t = *x;
    t.dim[1] = dim_mul(n->graph, w->dim[1], group);
    op_ints_or(n, "output_padding", geo.spatial, 0, extra);
    for (int i = 0; i < geo.spatial; i++) {
        if (extra[i] < 0 || extra[i] > INT32_MAX) {
            diag_error(n->loc, "output_padding of spatial axis %d is %lld", i, (long long)extra[i]);
            return false;
        }
        int64_t more = geo.dilation[i] * (geo.kernel[i] - 1) + 1 - geo.stride[i] - geo.lo[i] - geo.hi[i] + extra[i];
        Dim spread = dim_mul(n->graph, x->dim[2 + i], geo.stride[i]);
        if (dim_is_const(spread) && more < 0 && spread < -more) {
            diag_error(
                n->loc, "the padding takes more than all of spatial axis %d of %s", i, value_type_text(n->in[0]));
            return false;
        }
        t.dim[2 + i] = dim_offset(n->graph, spread, more);
    }
    n->out[0]->type = t;
    return true;
}

bool expand_conv_transpose(Node *n, Value **out) {
    int64_t extra[MAX_RANK];
    Geometry geo = geometry_of(n, n->in[0]->type.rank - 2, n->in[1]->type.dim + 2);
    Window w = { .rank = geo.spatial };
    op_ints_or(n, "output_padding", geo.spatial, 0, extra);
    for (int i = 0; i < w.rank; i++) {
        w.kernel[i] = geo.kernel[i];
        w.strides[i] = geo.stride[i];
        w.dilations[i] = geo.dilation[i];
        w.pads[i] = geo.lo[i];
        w.pads[w.rank + i] = geo.hi[i];
    }
    return expand_done(n, b_convolve_transposed(n->graph, n->in[0], n->in[1], &w, extra, node_int(n, "group", 1)), out);
}

// ---------------------------------------------------------------- Dropout
bool expand_dropout(Node *n, Value **out) {
    Drop o = { node_float(n, "ratio", 0.5), node_int(n, "seed", 0), n->n_in > 1 ? n->in[1] : NULL };
    Value *mask, *x = n->in[0];
    return expand_done(n, o.step ? b_dropout(n->graph, x, &o, DT_BOOL, &mask) : x, out);
}
