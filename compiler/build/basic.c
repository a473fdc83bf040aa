// SPDX-License-Identifier: MIT OR Apache-2.0
// The elementary builders: one operation with its attributes each.
//
// In: operands (NULL after an earlier diagnostic, which passes through). Out: the typed result, or NULL with a
// diagnostic and no node left behind. Views that would change nothing give their operand back.
// Maps broadcast by themselves (numpy rules), so nothing here inserts an Expand.
#include "build/build.h"

#include <string.h>

Value *b_finish(Node *n) {
    if (node_infer(n)) return n->out[0];
    graph_remove(n->graph, n);
    return NULL;
}

static bool dims_equal(const Type *t, int rank, const Dim *dims) {
    if (t->rank != rank) return false;
    for (int i = 0; i < rank; i++)
        if (t->dim[i] != dims[i]) return false;
    return true;
}

static bool all_equal(int n, const int64_t *v, int64_t to) {
    for (int i = 0; i < n; i++)
        if (v[i] != to) return false;
    return true;
}

static bool any_missing(int n, Value *const *in) {
    for (int i = 0; i < n; i++)
        if (!in[i]) return true;
    return false;
}

// ---- maps

Value *b_op(Graph *g, Op op, int n_in, Value *const *in) {
    if (any_missing(n_in, in)) return NULL;
    return b_finish(graph_node(g, op, n_in, in, 1));
}

Value *b_unary(Graph *g, Op op, Value *x) { return b_op(g, op, 1, &x); }
Value *b_binary(Graph *g, Op op, Value *x, Value *y) { return b_op(g, op, 2, (Value *[]){ x, y }); }
Value *b_where(Graph *g, Value *c, Value *x, Value *y) { return b_op(g, OP_Where, 3, (Value *[]){ c, x, y }); }

Value *b_map(Graph *g, const char *text, const char *names, int n_in, Value *const *in) {
    if (any_missing(n_in, in)) return NULL;
    const char **name = NEW_ARRAY(g->arena, const char *, n_in);
    Expr **bound = NEW_ARRAY(g->arena, Expr *, n_in);
    for (int i = 0; i < n_in; i++) {
        names += strspn(names, " ");
        size_t length = strcspn(names, " ");
        if (!length) bug("map \"%s\" of %d operands has fewer names", text, n_in);
        name[i] = arena_strndup(g->arena, names, length);
        names += length;
        bound[i] = expr_arg(g->exprs, i, in[i]->type.dtype);
    }
    const char *error = NULL;
    Expr *e = expr_parse(g->exprs, text, n_in, name, bound, DT_NONE, &error);
    if (!e) return graph_fail(g, "the inputs' element types do not fit this operator: %s", error);
    Node *n = graph_node(g, OP_Map, n_in, in, 1);
    n->expr = e;
    return b_finish(n);
}

Value *b_cast(Graph *g, Value *x, DType to) {
    if (!x || x->type.dtype == to) return x;
    Node *n = graph_node(g, OP_Cast, 1, &x, 1);
    node_set_int(n, "to", to);
    return b_finish(n);
}

Value *b_wide(Graph *g, Value *x) { return x ? b_cast(g, x, dtype_wide(x->type.dtype)) : NULL; }

// ---- views

Value *b_reshape(Graph *g, Value *x, int rank, const Dim *dims) {
    if (!x || dims_equal(&x->type, rank, dims)) return x;
    Node *n = graph_node(g, OP_Reshape, 1, &x, 1);
    node_set_ints(n, "shape", dims, rank);
    return b_finish(n);
}

Value *b_transpose(Graph *g, Value *x, const int *perm) {
    if (!x) return NULL;
    int64_t p[MAX_RANK];
    bool same = true;
    for (int i = 0; i < x->type.rank; i++) {
        p[i] = perm[i];
        same &= perm[i] == i;
    }
    if (same) return x;
    Node *n = graph_node(g, OP_Transpose, 1, &x, 1);
    node_set_ints(n, "perm", p, x->type.rank);
    return b_finish(n);
}

Value *b_expand(Graph *g, Value *x, int rank, const Dim *dims) {
    if (!x || dims_equal(&x->type, rank, dims)) return x;
    Node *n = graph_node(g, OP_Expand, 1, &x, 1);
    node_set_ints(n, "shape", dims, rank);
    return b_finish(n);
}

Node *b_sort(Graph *g, Value *x, int axis, bool largest, Dim first) {
    if (!x) return NULL;
    Node *n = graph_node(g, OP_Sort, 1, &x, 2);
    node_set_int(n, "axis", axis);
    node_set_int(n, "largest", largest);
    if (first != x->type.dim[axis]) node_set_ints(n, "sizes", &first, 1);
    return b_finish(n) ? n : NULL;
}

Value *b_slice(Graph *g, Value *x, const int64_t *starts, const int64_t *steps, const Dim *sizes) {
    if (!x) return NULL;
    int rank = x->type.rank;
    if (all_equal(rank, starts, 0) && all_equal(rank, steps, 1) && dims_equal(&x->type, rank, sizes)) return x;
    Node *n = graph_node(g, OP_Slice, 1, &x, 1);
    node_set_ints(n, "starts", starts, rank);
    node_set_ints(n, "steps", steps, rank);
    node_set_ints(n, "sizes", sizes, rank);
    return b_finish(n);
}

Value *b_pad(Graph *g, Value *x, const int64_t *lo, const int64_t *hi, const int64_t *interior, Value *fill) {
    if (!x) return NULL;
    int rank = x->type.rank;
    if (all_equal(rank, lo, 0) && all_equal(rank, hi, 0) && (!interior || all_equal(rank, interior, 0))) return x;
    static const int64_t none[MAX_RANK];
    Node *n = graph_node(g, OP_Pad, fill ? 2 : 1, (Value *[]){ x, fill }, 1);
    node_set_ints(n, "lo", lo, rank);
    node_set_ints(n, "hi", hi, rank);
    node_set_ints(n, "interior", interior ? interior : none, rank);
    node_set_string(n, "mode", "constant");
    return b_finish(n);
}

Value *b_concat(Graph *g, int axis, int n, Value *const *in) {
    if (any_missing(n, in)) return NULL;
    if (n == 1) return in[0];
    Node *node = graph_node(g, OP_Concat, n, in, 1);
    node_set_int(node, "axis", axis);
    return b_finish(node);
}

// ---- reductions, contractions, gathers

Value *b_cumulate(Graph *g, Op op, Value *x, int axis, bool exclusive, bool reverse) {
    if (!x) return NULL;
    Node *n = graph_node(g, op, 1, &x, 1);
    node_set_int(n, "axis", axis);
    node_set_int(n, "exclusive", exclusive);
    node_set_int(n, "reverse", reverse);
    return b_finish(n);
}

Value *b_reduce(Graph *g, Op op, Value *x, int n_axes, const int64_t *axes, bool keep) {
    if (!x || n_axes == 0) return x;            // over no axes every element is its own sum, product, extreme and mean
    Node *n = graph_node(g, op, 1, &x, 1);
    node_set_ints(n, "axes", axes, n_axes);
    node_set_int(n, "keepdims", keep);
    return b_finish(n);
}

Value *b_mean(Graph *g, Value *x, int n_axes, const int64_t *axes, bool keep) {
    Value *sum = b_reduce(g, OP_ReduceSum, x, n_axes, axes, keep);
    return sum && n_axes ? b_binary(g, OP_Div, sum, b_count(g, x, n_axes, axes, x->type.dtype)) : sum;
}

Value *b_softmax(Graph *g, Value *x, int axis) {
    if (!x) return NULL;
    Node *n = graph_node(g, OP_Softmax, 1, &x, 1);
    node_set_int(n, "axis", axis);
    return b_finish(n);
}

Value *b_matmul(Graph *g, Value *x, Value *y) { return b_binary(g, OP_MatMul, x, y); }

Value *b_matmul_to(Graph *g, Value *x, Value *y, DType d) {
    if (!x || !y) return NULL;
    Node *n = graph_node(g, OP_MatMul, 2, (Value *[]){ x, y }, 1);
    if (d == DT_I32 && (x->type.dtype == DT_I8 || x->type.dtype == DT_I16)) node_set_int(n, "wide", 1);
    return b_finish(n);
}

Value *b_gram(Graph *g, Value *x) {
    if (!x) return NULL;
    if (x->type.rank < 3) return graph_fail(g, "Gram matrices are of [batch, channels, ...]");
    Dim flat[3] = { x->type.dim[0], x->type.dim[1], type_product(g, &x->type, 2, x->type.rank) };
    Value *v = b_reshape(g, x, 3, flat), *turned = v ? b_swap(g, v, 1, 2) : NULL;
    Value *product = turned ? b_matmul(g, v, turned) : NULL;
    Value *count = product ? b_count(g, v, 2, (int64_t[]){ 1, 2 }, v->type.dtype) : NULL;
    return count ? b_binary(g, OP_Div, product, count) : NULL;
}

Value *b_gather(Graph *g, Value *x, Value *indices, int axis) {
    if (!x || !indices) return NULL;
    Node *n = graph_node(g, OP_Gather, 2, (Value *[]){ x, indices }, 1);
    node_set_int(n, "axis", axis);
    return b_finish(n);
}

Value *b_gather_elements(Graph *g, Value *x, Value *indices, int axis) {
    if (!x || !indices) return NULL;
    Node *n = graph_node(g, OP_GatherElements, 2, (Value *[]){ x, indices }, 1);
    node_set_int(n, "axis", axis);
    return b_finish(n);
}

static Node *scatter_node(Graph *g, Op op, Value *data, Value *indices, Value *updates, const char *reduction) {
    if (!data || !indices || !updates) return NULL;
    Node *n = graph_node(g, op, 3, (Value *[]){ data, indices, updates }, 1);
    node_set_string(n, "reduction", reduction);
    return n;
}

Value *b_scatter_nd(Graph *g, Value *data, Value *indices, Value *updates, const char *reduction) {
    Node *n = scatter_node(g, OP_ScatterND, data, indices, updates, reduction);
    return n ? b_finish(n) : NULL;
}

Value *b_scatter_elements(Graph *g, Value *data, Value *indices, Value *updates, int axis, const char *reduction) {
    Node *n = scatter_node(g, OP_ScatterElements, data, indices, updates, reduction);
    if (!n) return NULL;
    node_set_int(n, "axis", axis);
    return b_finish(n);
}

Value *b_slice_scatter(Graph *g, Value *x, Value *part, int axis, Dim start) {
    if (!x || !part) return NULL;
    Node *n = graph_node(g, OP_SliceScatter, 2, (Value *[]){ x, part }, 1);
    node_set_int(n, "axis", axis);
    node_set_ints(n, "starts", &start, 1);
    return b_finish(n);
}

// ---- constants

Value *b_scalar(Graph *g, DType d, double v) {
    Tensor *t = tensor_new(g->arena, type_make(d, 0, NULL));
    tensor_set_f(t, 0, v);
    return graph_const(g, t, NULL);
}

Value *b_like(Graph *g, const Value *x, double v) { return x ? b_scalar(g, x->type.dtype, v) : NULL; }

Value *b_ints(Graph *g, int n, const int64_t *v) {
    Tensor *t = tensor_new(g->arena, type_make(DT_I64, 1, &(Dim){ n }));
    if (n) memcpy(t->data, v, sizeof *v * (size_t)n);
    return graph_const(g, t, NULL);
}

bool b_table(Graph *g, double numbers) {
    enum { WORK = 32 };                                 // of one of them beside that of an element
    return numbers < 1e12 && graph_spend(g, WORK * (int64_t)numbers);
}

Value *b_floats(Graph *g, DType d, int rank, const int64_t *dims, const double *v) {
    Tensor *t = tensor_new(g->arena, type_make(d, rank, dims));
    for (int64_t i = 0; i < type_count(&t->type); i++) tensor_set_f(t, i, v[i]);
    return graph_const(g, t, NULL);
}
