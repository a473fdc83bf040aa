// SPDX-License-Identifier: MIT OR Apache-2.0
// Small constructions that several operator families share, on top of the b_ builders.
//
// In and out: values; NULL passes through, as in ir/build.c. Axes are non-negative here.
#include "onnx.h"

#include <string.h>

Value *onnx_finish(Node *n) {
    if (node_infer(n)) return n->out[0];
    graph_remove(n->graph, n);
    return NULL;
}

Value *onnx_expression(OnnxNode *n, const char *text, const char *names, int n_in, Value *const *in) {
    const char *name[8], *error = NULL;
    Expr *bound[8];
    if (n_in > (int)COUNT(name)) bug("map \"%s\" has %d operands", text, n_in);
    for (int i = 0; i < n_in; i++) {
        if (!in[i]) return NULL;
        names += strspn(names, " ");
        size_t length = strcspn(names, " ");
        name[i] = arena_strndup(n->g->arena, names, length);
        names += length;
        bound[i] = expr_arg(n->g->exprs, i, in[i]->type.dtype);
    }
    Expr *e = expr_parse(n->g->exprs, text, n_in, name, bound, DT_NONE, &error);
    if (!e) return onnx_fail(n, "the inputs' element types do not fit this operator: %s", error);
    Node *node = graph_node(n->g, OP_Map, n_in, in, 1);
    node->expr = e;
    return onnx_finish(node);
}

Value *onnx_along(OnnxNode *n, Value *v, int rank, int axis) {
    if (!v) return NULL;
    if (v->type.rank != 1) return onnx_fail(n, "expected a vector, got %s", type_text(n->g->arena, n->g, &v->type));
    Dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? v->type.dim[0] : 1;
    return b_reshape(n->g, v, rank, dims);
}

Value *onnx_insert(OnnxNode *n, Value *v, int axis) {
    if (!v) return NULL;
    if (v->type.rank >= MAX_RANK) return onnx_fail(n, "this needs more than %d dimensions", MAX_RANK);
    Dim dims[MAX_RANK];
    for (int i = 0; i <= v->type.rank; i++) dims[i] = i < axis ? v->type.dim[i] : i == axis ? 1 : v->type.dim[i - 1];
    return b_reshape(n->g, v, v->type.rank + 1, dims);
}

Value *onnx_remove(OnnxNode *n, Value *v, int axis) {
    if (!v) return NULL;
    Dim dims[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < v->type.rank; i++)
        if (i != axis) dims[rank++] = v->type.dim[i];
    return b_reshape(n->g, v, rank, dims);
}

Value *onnx_part(OnnxNode *n, Value *v, int axis, Dim start, Dim size) {
    if (!v) return NULL;
    int64_t steps[MAX_RANK];
    Dim starts[MAX_RANK] = { 0 }, sizes[MAX_RANK];
    for (int i = 0; i < v->type.rank; i++) {
        steps[i] = 1;
        sizes[i] = v->type.dim[i];
    }
    starts[axis] = start;
    sizes[axis] = size;
    return b_slice(n->g, v, starts, steps, sizes);
}

Value *onnx_iota(OnnxNode *n, int rank, const Dim *dims, int axis, DType d) {
    Node *node = graph_node(n->g, OP_Iota, 0, NULL, 1);
    node_set_ints(node, "shape", dims, rank);
    node_set_int(node, "axis", axis);
    node_set_int(node, "dtype", d);
    return onnx_finish(node);
}

// Of strings and complex numbers: the empty one, zero.
Value *onnx_filled(OnnxNode *n, DType d, double value, int rank, const Dim *dims) {
    DClass c = dtype_class(d);
    if (c != CLASS_STRING && c != CLASS_COMPLEX) return b_expand(n->g, b_scalar(n->g, d, value), rank, dims);
    Tensor *t = tensor_new(n->g->arena, type_make(d, 0, NULL));
    if (c == CLASS_STRING) *(const char **)t->data = "";
    return b_expand(n->g, graph_const(n->g, t, NULL), rank, dims);
}

Value *onnx_scalar_of(OnnxNode *n, Value *v) {
    if (!v) return NULL;
    for (int i = 0; i < v->type.rank; i++)
        if (v->type.dim[i] != 1)
            return onnx_fail(n, "expected a single number, got %s", type_text(n->g->arena, n->g, &v->type));
    return b_reshape(n->g, v, 0, NULL);
}

Value *onnx_gather_elements(OnnxNode *n, Value *x, Value *indices, int axis) {
    if (!x || !indices) return NULL;
    Node *node = graph_node(n->g, OP_GatherElements, 2, (Value *[]){ x, indices }, 1);
    node_set_int(node, "axis", axis);
    return onnx_finish(node);
}

Value *onnx_swap(OnnxNode *n, Value *v, int a, int b) {
    if (!v) return NULL;
    int perm[MAX_RANK];
    for (int i = 0; i < v->type.rank; i++) perm[i] = i == a ? b : i == b ? a : i;
    return b_transpose(n->g, v, perm);
}

Value *onnx_constant_f(OnnxNode *n, DType d, int rank, const int64_t *dims, const double *v) {
    Tensor *t = tensor_new(n->g->arena, type_make(d, rank, dims));
    for (int64_t i = 0; i < type_count(&t->type); i++) tensor_set_f(t, i, v[i]);
    return graph_const(n->g, t, NULL);
}

Value *onnx_mean(OnnxNode *n, Value *v, int n_axes, const int64_t *axes) {
    return b_reduce(n->g, OP_ReduceMean, v, n_axes, axes, true);
}

Dim onnx_product(Graph *g, const Type *t, int from, int to) {
    Dim d = 1;
    for (int i = from; i < to; i++) d = dim_mul(g, d, t->dim[i]);
    return d;
}

DType onnx_wide(DType d) { return dtype_is_small_float(d) ? DT_F32 : d; }

bool onnx_dtype(OnnxNode *n, const char *attr, DType otherwise, DType *out) {
    int64_t d = onnx_int(n, attr, otherwise);
    if (d <= DT_NONE || d > DT_I2) {
        onnx_fail(n, "attribute \"%s\": %lld is an unknown or unsupported element type", attr, (long long)d);
        return false;
    }
    *out = (DType)d;
    return true;
}

OnnxNode onnx_loop_body(const OnnxNode *n, const char *name, int carried, Value *const *from, Value **in) {
    OnnxNode inner = *n;
    inner.g = graph_body(n->g, name);
    inner.g->loc = n->loc;
    Type t = type_make(DT_I64, 0, NULL);
    in[0] = graph_input(inner.g, "i", t);
    t.dtype = DT_BOOL;
    in[1] = graph_input(inner.g, "go", t);
    for (int i = 0; i < carried; i++) in[2 + i] = graph_input(inner.g, "carried", from[i]->type);
    return inner;
}

Node *onnx_loop_node(
    OnnxNode *n, const OnnxNode *inner, Value *trips, int carried, Value *const *from, Value *const *out) {
    Value *in[8] = { trips, NULL };
    for (int i = 0; i < carried; i++) in[2 + i] = from[i];
    for (int i = 0; i <= carried; i++) {
        if (!out[i]) return NULL;
        graph_output(inner->g, out[i]->def ? out[i] : b_unary(inner->g, OP_Identity, out[i]), "");
    }
    Node *loop = graph_node(n->g, OP_Loop, 2 + carried, in, carried);
    loop->bodies = NEW_ARRAY(n->g->arena, Graph *, 1);
    loop->bodies[0] = inner->g;
    loop->n_bodies = 1;
    return node_infer(loop) ? loop : NULL;
}
