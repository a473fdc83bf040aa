// SPDX-License-Identifier: MIT OR Apache-2.0
// Integers that a model computes from shapes: Shape -> Gather -> Concat -> Reshape and the like.
//
// In: an i64 value of rank 0 or 1. Out: its elements as constants or symbolic dimensions. The idea: such chains are followed backwards through
// the few operations that exporters emit, so a model with a symbolic batch keeps it; what cannot be followed has a diagnostic that names the
// node and says how to pin the dimension.
#include "import/onnx.h"

#include <string.h>

#define MAX_STEPS 256           // nodes looked at for one value

static bool values_of(Graph *g, Value *v, DimValue *out, int *count, int *steps);

static bool from_tensor(const Tensor *t, DimValue *out, int *count) {
    int64_t n = type_count(&t->type);
    if (t->type.rank > 1 || n > MAX_DIM_VALUES || t->type.dtype == DT_STRING) return false;
    for (int64_t i = 0; i < n; i++) out[i] = (DimValue){ false, tensor_get_i(t, i) };
    *count = (int)n;
    return true;
}

static bool combine(Graph *g, Op op, DimValue x, DimValue y, DimValue *out) {
    if (op == OP_Equal && (x.symbolic || y.symbolic)) {     // a size is never negative
        bool never = (x.symbolic && !y.symbolic && y.v < 0) || (y.symbolic && !x.symbolic && x.v < 0);
        bool same = x.symbolic && y.symbolic && dim_equal(g, x.v, y.v);
        *out = (DimValue){ false, same };
        return never || same;
    }
    bool symbolic = x.symbolic || y.symbolic;
    if (symbolic && ((!x.symbolic && x.v < 0) || (!y.symbolic && y.v < 0))) return false;
    int64_t v;
    switch (op) {
    case OP_Add: v = symbolic ? dim_add(g, x.v, y.v) : x.v + y.v; break;
    case OP_Sub: v = symbolic ? dim_sub(g, x.v, y.v) : x.v - y.v; break;
    case OP_Mul: v = symbolic ? dim_mul(g, x.v, y.v) : x.v * y.v; break;
    case OP_Div:
        if (!y.symbolic && y.v == 0) return false;
        v = symbolic ? dim_div(g, x.v, y.v) : x.v / y.v;
        break;
    case OP_Equal: v = x.v == y.v; break;
    default: return false;
    }
    *out = (DimValue){ symbolic && !dim_is_const(v), v };
    return true;
}

static bool of_binary(Graph *g, Node *n, DimValue *out, int *count, int *steps) {
    DimValue x[MAX_DIM_VALUES], y[MAX_DIM_VALUES];
    int nx, ny;
    if (!values_of(g, n->in[0], x, &nx, steps) || !values_of(g, n->in[1], y, &ny, steps)) return false;
    if (nx != ny && nx != 1 && ny != 1) return false;
    *count = nx == 1 ? ny : nx;
    for (int i = 0; i < *count; i++)
        if (!combine(g, n->op, x[nx == 1 ? 0 : i], y[ny == 1 ? 0 : i], &out[i])) return false;
    return true;
}

static bool of_where(Graph *g, Node *n, DimValue *out, int *count, int *steps) {
    DimValue c[MAX_DIM_VALUES], x[MAX_DIM_VALUES], y[MAX_DIM_VALUES];
    int nc, nx, ny;
    if (!values_of(g, n->in[0], c, &nc, steps) || !values_of(g, n->in[1], x, &nx, steps) || !values_of(g, n->in[2], y, &ny, steps)) return false;
    *count = nc > 1 ? nc : nx > 1 ? nx : ny;
    for (int i = 0; i < *count; i++) {
        if (c[nc == 1 ? 0 : i].symbolic) return false;
        out[i] = c[nc == 1 ? 0 : i].v ? x[nx == 1 ? 0 : i] : y[ny == 1 ? 0 : i];
    }
    return true;
}

static bool of_gather(Graph *g, Node *n, DimValue *out, int *count, int *steps) {
    DimValue x[MAX_DIM_VALUES], at[MAX_DIM_VALUES];
    int nx;
    if (!values_of(g, n->in[0], x, &nx, steps) || !values_of(g, n->in[1], at, count, steps)) return false;
    for (int i = 0; i < *count; i++) {
        int64_t k = at[i].v < 0 ? at[i].v + nx : at[i].v;
        if (at[i].symbolic || k < 0 || k >= nx) return false;
        out[i] = x[k];
    }
    return true;
}

static bool of_slice(Graph *g, Node *n, DimValue *out, int *count, int *steps) {
    DimValue x[MAX_DIM_VALUES];
    int nx, k;
    if (n->out[0]->type.rank != 1 || !values_of(g, n->in[0], x, &nx, steps)) return false;
    const int64_t *starts = node_ints(n, "starts", &k), *step = node_ints(n, "steps", &k);
    Dim size = n->out[0]->type.dim[0];
    if (k != 1 || !dim_is_const(size) || size > MAX_DIM_VALUES) return false;
    for (int64_t i = 0; i < size; i++) {
        int64_t at = starts[0] + i * step[0];
        if (at < 0 || at >= nx) return false;
        out[i] = x[at];
    }
    *count = (int)size;
    return true;
}

static bool of_concat(Graph *g, Node *n, DimValue *out, int *count, int *steps) {
    *count = 0;
    for (int i = 0; i < n->n_in; i++) {
        DimValue x[MAX_DIM_VALUES];
        int nx;
        if (!values_of(g, n->in[i], x, &nx, steps) || *count + nx > MAX_DIM_VALUES) return false;
        memcpy(out + *count, x, sizeof *x * (size_t)nx);
        *count += nx;
    }
    return true;
}

static bool of_product(Graph *g, Node *n, DimValue *out, int *count, int *steps) {
    DimValue x[MAX_DIM_VALUES];
    int nx;
    if (!values_of(g, n->in[0], x, &nx, steps)) return false;
    out[0] = (DimValue){ false, 1 };
    for (int i = 0; i < nx; i++)
        if (!combine(g, OP_Mul, out[0], x[i], &out[0])) return false;
    *count = 1;
    return true;
}

static bool of_expand(Graph *g, Node *n, DimValue *out, int *count, int *steps) {
    int nx;
    Dim size = n->out[0]->type.rank ? n->out[0]->type.dim[0] : 1;
    if (!values_of(g, n->in[0], out, &nx, steps) || !dim_is_const(size) || size > MAX_DIM_VALUES || (nx != 1 && nx != size)) return false;
    for (int i = 1; i < (int)size && nx == 1; i++) out[i] = out[0];
    *count = (int)size;
    return true;
}

static bool of_shape(Node *n, DimValue *out, int *count) {
    const Type *t = &n->in[0]->type;
    *count = t->rank;
    for (int i = 0; i < t->rank; i++) out[i] = (DimValue){ !dim_is_const(t->dim[i]), t->dim[i] };
    return true;
}

static bool values_of(Graph *g, Value *v, DimValue *out, int *count, int *steps) {
    if (!v || v->type.rank > 1 || --*steps < 0) return false;
    if (v->type.rank == 1 && (!dim_is_const(v->type.dim[0]) || v->type.dim[0] > MAX_DIM_VALUES)) return false;
    if (v->data) return from_tensor(v->data, out, count);
    Node *n = v->def;
    if (!n) return false;
    switch (n->op) {
    case OP_Shape: return of_shape(n, out, count);
    case OP_Identity: case OP_Cast: case OP_Reshape: return values_of(g, n->in[0], out, count, steps);
    case OP_Add: case OP_Sub: case OP_Mul: case OP_Div: case OP_Equal: return of_binary(g, n, out, count, steps);
    case OP_Where: return of_where(g, n, out, count, steps);
    case OP_Gather: return of_gather(g, n, out, count, steps);
    case OP_Slice: return of_slice(g, n, out, count, steps);
    case OP_Concat: return of_concat(g, n, out, count, steps);
    case OP_Expand: return of_expand(g, n, out, count, steps);
    case OP_ReduceProd: return of_product(g, n, out, count, steps);
    default: return false;
    }
}

bool onnx_dim_values(Graph *g, Value *v, DimValue *out, int *count) {
    if (v->type.rank > 1) return false;
    Tensor *t = value_const(v);
    if (t) return from_tensor(t, out, count);
    int steps = MAX_STEPS;
    return values_of(g, v, out, count, &steps);
}

// Where the value comes from, for the diagnostic: an input of the model, if a chain of first operands leads to one.
static const char *origin(const Value *v) {
    for (int i = 0; i < MAX_STEPS && v->def && v->def->n_in; i++) {
        const Value *next = NULL;
        for (int j = 0; j < v->def->n_in && !next; j++)
            if (v->def->in[j] && !v->def->in[j]->data) next = v->def->in[j];
        if (!next) break;
        v = next;
    }
    return v->is_input ? v->name : NULL;
}

static Value *not_constant(OnnxNode *n, Value *v, const char *what) {
    const char *from = origin(v);
    const char *name = v->name ? v->name : "";
    if (from && v->is_input) return onnx_fail(n, "%s \"%s\" is an input of the model; make it a constant with --freeze %s=FILE", what, name, name);
    if (from) return onnx_fail(n, "%s \"%s\" is computed at run time from \"%s\"; pin its dimensions with --dim NAME=V, or its value with --freeze %s=FILE", what, name, from, from);
    return onnx_fail(n, "%s \"%s\" is computed at run time; pin the dimension with --dim NAME=V", what, name);
}

Tensor *onnx_const_input(OnnxNode *n, int i, const char *what) {
    Value *v = onnx_input(n, i);
    if (!v) return NULL;
    if (v->type.dtype == DT_STRING) return onnx_fail(n, "%s must be a number", what), NULL;
    Tensor *t = value_const(v);
    if (!t) not_constant(n, v, what);
    return t;
}

Tensor *onnx_const_number(OnnxNode *n, int i, const char *what) {
    Tensor *t = onnx_const_input(n, i, what);
    if (t && type_count(&t->type) != 1) return onnx_fail(n, "%s must be a single number", what), NULL;
    return t;
}

bool onnx_shape_input(OnnxNode *n, int i, const char *what, DimValue *out, int *count) {
    Value *v = onnx_input(n, i);
    if (!v) return false;
    if (onnx_dim_values(n->g, v, out, count)) return true;
    if (v->type.rank > 1) onnx_fail(n, "%s must be a list of integers but has rank %d", what, v->type.rank);
    else not_constant(n, v, what);
    return false;
}

bool onnx_ints_input(OnnxNode *n, int i, const char *what, int64_t *out, int *count, int max) {
    DimValue v[MAX_DIM_VALUES];
    if (!onnx_shape_input(n, i, what, v, count)) return false;
    if (*count > max) {
        onnx_fail(n, "%s has %d elements; at most %d make sense here", what, *count, max);
        return false;
    }
    if (max == 1 && *count != 1) return onnx_fail(n, "%s must be a single number", what), false;
    for (int k = 0; k < *count; k++) {
        if (v[k].symbolic) {
            onnx_fail(n, "%s depends on the dimension %s; pin it with --dim NAME=V", what, dim_text(n->g->arena, n->g, v[k].v));
            return false;
        }
        out[k] = v[k].v;
    }
    return true;
}

bool onnx_static(OnnxNode *n, const Value *v, const char *what) {
    if (type_is_static(&v->type)) return true;
    for (int i = 0; i < v->type.rank; i++)
        if (!dim_is_const(v->type.dim[i])) {
            onnx_fail(n, "%s needs known sizes, but dimension %d is %s; pin it with --dim NAME=V", what, i, dim_text(n->g->arena, n->g, v->type.dim[i]));
            return false;
        }
    return true;
}

bool onnx_axes(OnnxNode *n, int input, int rank, int64_t *axes, int *count, bool *given) {
    int64_t from[MAX_RANK];
    const int64_t *attr = onnx_ints(n, "axes", count);
    *given = attr != NULL;
    if (!attr && onnx_optional(n, input)) {
        *given = true;
        if (!onnx_ints_input(n, input, "the list of axes", from, count, MAX_RANK)) return false;
        attr = from;
    }
    if (*count > MAX_RANK) return onnx_fail(n, "%d axes are too many", *count), false;
    unsigned seen = 0;
    for (int i = 0; i < *count; i++) {
        int axis;
        if (!onnx_axis(n, attr[i], rank, &axis)) return false;
        if (seen >> axis & 1) return onnx_fail(n, "axis %d is listed twice", axis), false;
        seen |= 1u << axis;
        axes[i] = axis;
    }
    return true;
}
