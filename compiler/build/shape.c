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
