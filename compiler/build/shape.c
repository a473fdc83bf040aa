// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of views and constants by axis: what a few elementary ones make together, over and over.
//
// In and out: values; NULL passes through. Axes are non-negative here.
#include "build/build.h"

#include <string.h>

// ---------------------------------------------------------------- one axis

Value *b_along(Graph *g, Value *v, int rank, int axis) {
    if (!v) return NULL;
    if (v->type.rank != 1) return graph_fail(g, "expected a vector, got %s", type_text(g->arena, g, &v->type));
    Dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? v->type.dim[0] : 1;
    return b_reshape(g, v, rank, dims);
}

Value *b_insert(Graph *g, Value *v, int axis) {
    if (!v) return NULL;
    if (v->type.rank >= MAX_RANK) return graph_fail(g, "this needs more than %d dimensions", MAX_RANK);
    Dim dims[MAX_RANK];
    for (int i = 0; i <= v->type.rank; i++) dims[i] = i < axis ? v->type.dim[i] : i == axis ? 1 : v->type.dim[i - 1];
    return b_reshape(g, v, v->type.rank + 1, dims);
}

Value *b_remove(Graph *g, Value *v, int axis) {
    if (!v) return NULL;
    Dim dims[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < v->type.rank; i++)
        if (i != axis) dims[rank++] = v->type.dim[i];
    return b_reshape(g, v, rank, dims);
}

Value *b_part(Graph *g, Value *v, int axis, Dim start, Dim size) {
    if (!v) return NULL;
    if (axis < 0 || axis >= v->type.rank)
        return graph_fail(g, "%s has no axis %d", type_text(g->arena, g, &v->type), axis);
    int64_t steps[MAX_RANK];
    Dim starts[MAX_RANK] = { 0 }, sizes[MAX_RANK];
    for (int i = 0; i < v->type.rank; i++) {
        steps[i] = 1;
        sizes[i] = v->type.dim[i];
    }
    starts[axis] = start;
    sizes[axis] = size;
    return b_slice(g, v, starts, steps, sizes);
}

Value *b_move_axes(Graph *g, Value *x, int from, int count, int to) {
    if (!x || from == to || count == 0) return x;
    int perm[MAX_RANK], rest = 0;
    for (int i = 0; i < x->type.rank; i++) {
        if (i >= to && i < to + count) {
            perm[i] = from + i - to;
            continue;
        }
        if (rest == from) rest += count;                // axes that stay in order around the moved block
        perm[i] = rest++;
    }
    return b_transpose(g, x, perm);
}

Value *b_channels_last(Graph *g, Value *x) {
    return x && x->type.rank > 2 ? b_move_axes(g, x, 1, 1, x->type.rank - 1) : x;
}

Value *b_channels_first(Graph *g, Value *x) {
    return x && x->type.rank > 2 ? b_move_axes(g, x, x->type.rank - 1, 1, 1) : x;
}

Value *b_stack(Graph *g, int axis, int count, Value *const *items) {
    Value **parts = NEW_ARRAY(g->arena, Value *, count);
    for (int i = 0; i < count; i++) parts[i] = b_insert(g, items[i], axis);
    return b_concat(g, axis, count, parts);
}

Value *b_stored(Graph *g, Value *v) {
    if (!v) return NULL;
    Node *n = graph_node(g, OP_Identity, 1, &v, 1);
    node_set_int(n, "stored", 1);
    return b_finish(n);
}

Value *b_swap(Graph *g, Value *v, int a, int b) {
    if (!v) return NULL;
    int perm[MAX_RANK];
    for (int i = 0; i < v->type.rank; i++) perm[i] = i == a ? b : i == b ? a : i;
    return b_transpose(g, v, perm);
}

Value *b_flip(Graph *g, Value *x, const bool *axes) {
    if (!x) return NULL;
    Dim starts[MAX_RANK] = { 0 };
    int64_t steps[MAX_RANK];
    bool any = false;
    for (int i = 0; i < x->type.rank; i++) {
        bool flip = axes[i] && x->type.dim[i] != 0 && x->type.dim[i] != 1;
        any = any || flip;
        starts[i] = flip ? dim_sub(g, x->type.dim[i], 1) : 0;
        steps[i] = flip ? -1 : 1;
    }
    return any ? b_slice(g, x, starts, steps, x->type.dim) : x;
}

Value *b_take(Graph *g, Value *x, int axis, Value *start, Value *step, Dim size) {
    Value *at = b_iota(g, 1, &size, 0, DT_I64);
    if (step) at = b_binary(g, OP_Mul, at, step);
    if (start) at = b_binary(g, OP_Add, at, start);
    return x && at ? b_gather(g, x, at, axis) : NULL;
}

Value *b_scalar_of(Graph *g, Value *v) {
    if (!v) return NULL;
    for (int i = 0; i < v->type.rank; i++)
        if (v->type.dim[i] != 1)
            return graph_fail(g, "expected a single number, got %s", type_text(g->arena, g, &v->type));
    return b_reshape(g, v, 0, NULL);
}

Value *b_sum_to(Graph *g, Value *x, const Type *t) {
    if (!x) return NULL;
    int64_t axes[MAX_RANK];
    int n = 0, lead = x->type.rank - t->rank;
    for (int i = 0; i < x->type.rank; i++) {
        bool broadcast = i < lead || (t->dim[i - lead] == 1 && x->type.dim[i] != 1);
        if (broadcast) axes[n++] = i;
    }
    if (n) x = b_reduce(g, OP_ReduceSum, x, n, axes, true);
    return lead ? b_reshape(g, x, t->rank, t->dim) : x;
}

Value *b_repeat(Graph *g, Value *x, int axis, Dim times) {
    if (!x || times == 1) return x;
    Dim outer = type_product(g, &x->type, 0, axis), inner = type_product(g, &x->type, axis, x->type.rank);
    Type out = x->type;
    out.dim[axis] = dim_mul(g, out.dim[axis], times);
    Value *v = b_reshape(g, x, 3, (Dim[]){ outer, 1, inner });
    v = b_expand(g, v, 3, (Dim[]){ outer, times, inner });
    return b_reshape(g, v, out.rank, out.dim);
}

// DCR: channels are (block row, block column, depth); CRD: (depth, block row, block column).
Value *b_depth_to_space(Graph *g, Value *x, int64_t b, bool crd) {
    if (x->type.rank != 4 || b < 1 || b > 1 << 15)
        return graph_fail(g, "wants a rank of 4 and a blocksize of at least 1");
    const Dim *d = x->type.dim;
    if (dim_is_const(d[1]) && d[1] % (b * b))
        return graph_fail(g, "%lld channels do not divide by %lld", (long long)d[1], (long long)(b * b));
    Dim c = dim_div(g, d[1], b * b);
    Value *v = b_reshape(g, x, 6, crd ? (Dim[]){ d[0], c, b, b, d[2], d[3] } : (Dim[]){ d[0], b, b, c, d[2], d[3] });
    v = b_transpose(g, v, crd ? (int[]){ 0, 1, 4, 2, 5, 3 } : (int[]){ 0, 3, 4, 1, 5, 2 });
    return b_reshape(g, v, 4, (Dim[]){ d[0], c, dim_mul(g, d[2], b), dim_mul(g, d[3], b) });
}

Value *b_space_to_depth(Graph *g, Value *x, int64_t b, bool crd) {
    if (x->type.rank != 4 || b < 1 || b > 1 << 15)
        return graph_fail(g, "wants a rank of 4 and a blocksize of at least 1");
    const Dim *d = x->type.dim;
    if ((dim_is_const(d[2]) && d[2] % b) || (dim_is_const(d[3]) && d[3] % b))
        return graph_fail(g, "height and width must divide by the blocksize");
    Dim h = dim_div(g, d[2], b), w = dim_div(g, d[3], b);
    Value *v = b_reshape(g, x, 6, (Dim[]){ d[0], d[1], h, b, w, b });
    v = b_transpose(g, v, crd ? (int[]){ 0, 1, 3, 5, 2, 4 } : (int[]){ 0, 3, 5, 1, 2, 4 });
    return b_reshape(g, v, 4, (Dim[]){ d[0], dim_mul(g, d[1], b * b), h, w });
}

Value *b_pad_mode(
    Graph *g, Value *x, const int64_t *lo, const int64_t *hi, const char *mode, Value *fill) {
    static const int64_t none[MAX_RANK];
    if (!strcmp(mode, "constant")) return b_pad(g, x, lo, hi, NULL, fill);
    if (strcmp(mode, "reflect") && strcmp(mode, "edge") && strcmp(mode, "wrap"))
        return graph_fail(g, "attribute \"mode\" is \"%s\"", mode);
    Node *node = graph_node(g, OP_Pad, 1, &x, 1);
    node_set_ints(node, "lo", lo, x->type.rank);
    node_set_ints(node, "hi", hi, x->type.rank);
    node_set_ints(node, "interior", none, x->type.rank);
    node_set_string(node, "mode", mode);
    return b_finish(node);
}

Value *b_triangle(Graph *g, Value *x, Value *k, bool upper) {
    int rank = x->type.rank;
    Value *row = b_iota(g, 2, x->type.dim + rank - 2, 0, DT_I64),
          *column = b_iota(g, 2, x->type.dim + rank - 2, 1, DT_I64);
    if (k) row = b_binary(g, OP_Add, row, b_scalar_of(g, k));
    Value *kept = b_binary(g, upper ? OP_GreaterOrEqual : OP_LessOrEqual, column, row);
    return b_where(g, kept, x, b_filled(g, x->type.dtype, 0, 0, NULL));
}

// ---------------------------------------------------------------- new tensors

Value *b_iota(Graph *g, int rank, const Dim *dims, int axis, DType d) {
    Node *node = graph_node(g, OP_Iota, 0, NULL, 1);
    node_set_ints(node, "shape", dims, rank);
    node_set_int(node, "axis", axis);
    node_set_int(node, "dtype", d);
    return b_finish(node);
}

// Of strings and complex numbers: the empty one, zero.
Value *b_filled(Graph *g, DType d, double value, int rank, const Dim *dims) {
    DClass c = dtype_class(d);
    if (c != CLASS_STRING && c != CLASS_COMPLEX) return b_expand(g, b_scalar(g, d, value), rank, dims);
    Tensor *t = tensor_new(g->arena, type_make(d, 0, NULL));
    if (c == CLASS_STRING) *(const char **)t->data = "";
    return b_expand(g, graph_const(g, t, NULL), rank, dims);
}

Value *b_full(Graph *g, const Type *t, double v) { return b_filled(g, t->dtype, v, t->rank, t->dim); }
