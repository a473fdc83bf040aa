// SPDX-License-Identifier: MIT OR Apache-2.0
// Integers that a model computes from shapes: Shape -> Gather -> Concat -> Reshape and the like.
//
// In: an i64 value of rank 0 or 1. Out: its elements as constants or symbolic dimensions. The idea: such chains are
// followed backwards through the few operations that exporters emit, so a model with a symbolic batch keeps it; what
// cannot be followed has a diagnostic that names the node and says how to pin the dimension.
#include "import/onnx/run/measure.h"

#include <string.h>

#define MAX_STEPS 256           // nodes looked at for one value

static bool items_of(Graph *g, Value *v, DimItem *out, int *count, int *steps);

static DimItem item(bool symbolic, int64_t v) { return (DimItem){ .known = true, .is = { symbolic, v } }; }
static DimItem unknown(int64_t lo, int64_t hi) { return (DimItem){ .lo = lo, .hi = hi }; }

static bool from_tensor(const Tensor *t, DimItem *out, int *count) {
    int64_t n = type_count(&t->type);
    if (t->type.rank > 1 || n > MAX_DIM_VALUES || t->type.dtype == DT_STRING) return false;
    for (int64_t i = 0; i < n; i++) out[i] = item(false, tensor_get_i(t, i));
    *count = (int)n;
    return true;
}

// ---- ranges: INT64_MIN and INT64_MAX stand for no bound

static int64_t saturate(__int128 v) { return v <= INT64_MIN ? INT64_MIN : v >= INT64_MAX ? INT64_MAX : (int64_t)v; }
static bool unbounded(int64_t v) { return v == INT64_MIN || v == INT64_MAX; }

static DimItem with_range(const Graph *g, DimItem x) {
    if (!x.known) return x;
    x.lo = x.is.symbolic ? dim_lower(g, x.is.v) : x.is.v;
    x.hi = x.is.symbolic ? dim_upper(g, x.is.v) : x.is.v;
    return x;
}

static DimItem combine_ranges(Op op, DimItem x, DimItem y) {
    switch (op) {
    case OP_Add: return unknown(unbounded(x.lo) || unbounded(y.lo) ? INT64_MIN : saturate((__int128)x.lo + y.lo),
                                unbounded(x.hi) || unbounded(y.hi) ? INT64_MAX : saturate((__int128)x.hi + y.hi));
    case OP_Sub: return unknown(unbounded(x.lo) || unbounded(y.hi) ? INT64_MIN : saturate((__int128)x.lo - y.hi),
                                unbounded(x.hi) || unbounded(y.lo) ? INT64_MAX : saturate((__int128)x.hi - y.lo));
    case OP_Mul:                                        // of what is not negative, as sizes are
        if (x.lo < 0 || y.lo < 0) return unknown(INT64_MIN, INT64_MAX);
        return unknown(saturate((__int128)x.lo * y.lo),
            x.hi == INT64_MAX || y.hi == INT64_MAX ? INT64_MAX : saturate((__int128)x.hi * y.hi));
    case OP_Div:
        if (x.lo < 0 || y.lo < 1) return unknown(x.lo < 0 ? INT64_MIN : 0, x.lo < 0 ? INT64_MAX : x.hi);
        return unknown(x.lo / y.hi, x.hi == INT64_MAX ? INT64_MAX : x.hi / y.lo);
    case OP_Mod:
        return y.lo > 0 ? unknown(0, y.hi == INT64_MAX ? INT64_MAX : y.hi - 1) : unknown(INT64_MIN, INT64_MAX);
    case OP_Min: return unknown(min64(x.lo, y.lo), min64(x.hi, y.hi));
    case OP_Max: return unknown(max64(x.lo, y.lo), max64(x.hi, y.hi));
    case OP_Equal: return unknown(0, 1);
    default: return unknown(INT64_MIN, INT64_MAX);
    }
}

// What both may be; of one when they are the same.
static DimItem either(const Graph *g, DimItem x, DimItem y) {
    if (x.known && y.known && x.is.symbolic == y.is.symbolic && x.is.v == y.is.v) return x;
    x = with_range(g, x);
    y = with_range(g, y);
    return unknown(min64(x.lo, y.lo), max64(x.hi, y.hi));
}

// ---- known numbers

static bool in_reach(int64_t v, int bits) { return v > -(INT64_C(1) << bits) && v < INT64_C(1) << bits; }

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
    // results of smaller ones are numbers
    int bits = op == OP_Mul ? 31 : op == OP_Add || op == OP_Sub || op == OP_Div ? 62 : 0;
    if (bits && !symbolic && !(in_reach(x.v, bits) && in_reach(y.v, bits))) return false;
    switch (op) {
    case OP_Add: v = symbolic ? dim_add(g, x.v, y.v) : x.v + y.v; break;
    case OP_Sub: v = symbolic ? dim_sub(g, x.v, y.v) : x.v - y.v; break;
    case OP_Mul: v = symbolic ? dim_mul(g, x.v, y.v) : x.v * y.v; break;
    case OP_Div:
        if (!y.symbolic && y.v == 0) return false;
        v = symbolic ? dim_div(g, x.v, y.v) : x.v / y.v;
        break;
    case OP_Equal: v = x.v == y.v; break;
    case OP_Min: case OP_Max:
        if (symbolic) return x.symbolic && y.symbolic && dim_equal(g, x.v, y.v) ? (*out = x, true) : false;
        v = (x.v < y.v) == (op == OP_Min) ? x.v : y.v;
        break;
    default: return false;
    }
    *out = (DimValue){ symbolic && !dim_is_const(v), v };
    return true;
}

static DimItem combine_items(Graph *g, Op op, DimItem x, DimItem y) {
    DimItem z = { .known = true };
    if (x.known && y.known && combine(g, op, x.is, y.is, &z.is)) return z;
    return combine_ranges(op, with_range(g, x), with_range(g, y));
}

// How long the result of two lists is, element by element; a single one meets all of the other's. -1: they do not fit.
static int common(int a, int b) { return a == 1 || a == b ? b : b == 1 ? a : -1; }

static bool of_binary(Graph *g, Node *n, DimItem *out, int *count, int *steps) {
    DimItem x[MAX_DIM_VALUES], y[MAX_DIM_VALUES];
    int nx, ny;
    if (!items_of(g, n->in[0], x, &nx, steps) || !items_of(g, n->in[1], y, &ny, steps)) return false;
    *count = common(nx, ny);
    for (int i = 0; i < *count; i++) out[i] = combine_items(g, n->op, x[nx == 1 ? 0 : i], y[ny == 1 ? 0 : i]);
    return *count >= 0;
}

static bool of_where(Graph *g, Node *n, DimItem *out, int *count, int *steps) {
    DimItem c[MAX_DIM_VALUES], x[MAX_DIM_VALUES], y[MAX_DIM_VALUES];
    int nc, nx, ny;
    if (!items_of(g, n->in[0], c, &nc, steps) || !items_of(g, n->in[1], x, &nx, steps)
        || !items_of(g, n->in[2], y, &ny, steps))
        return false;
    int n_values = common(nx, ny);
    *count = n_values < 0 ? -1 : common(nc, n_values);
    for (int i = 0; i < *count; i++) {
        DimItem which = c[nc == 1 ? 0 : i], a = x[nx == 1 ? 0 : i], b = y[ny == 1 ? 0 : i];
        out[i] = !which.known || which.is.symbolic ? either(g, a, b) : which.is.v ? a : b;
    }
    return *count >= 0;
}

static bool of_gather(Graph *g, Node *n, DimItem *out, int *count, int *steps) {
    DimItem x[MAX_DIM_VALUES], at[MAX_DIM_VALUES];
    int nx;
    if (!items_of(g, n->in[0], x, &nx, steps) || !items_of(g, n->in[1], at, count, steps) || !nx) return false;
    for (int i = 0; i < *count; i++) {
        int64_t k = at[i].is.v < 0 ? at[i].is.v + nx : at[i].is.v;
        if (!at[i].known || at[i].is.symbolic || k < 0 || k >= nx) {
            out[i] = either(g, x[0], item(false, 0));   // an index from outside reads 0
            for (int j = 1; j < nx; j++) out[i] = either(g, out[i], x[j]);
        } else {
            out[i] = x[k];
        }
    }
    return true;
}

static bool of_slice(Graph *g, Node *n, DimItem *out, int *count, int *steps) {
    DimItem x[MAX_DIM_VALUES];
    int nx, k;
    if (n->out[0]->type.rank != 1 || !items_of(g, n->in[0], x, &nx, steps)) return false;
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

static bool of_concat(Graph *g, Node *n, DimItem *out, int *count, int *steps) {
    *count = 0;
    for (int i = 0; i < n->n_in; i++) {
        DimItem x[MAX_DIM_VALUES];
        int nx;
        if (!items_of(g, n->in[i], x, &nx, steps) || *count + nx > MAX_DIM_VALUES) return false;
        memcpy(out + *count, x, sizeof *x * (size_t)nx);
        *count += nx;
    }
    return true;
}

// All elements combined: their product, least or greatest.
static bool of_reduction(Graph *g, Op op, Node *n, DimItem *out, int *count, int *steps) {
    DimItem x[MAX_DIM_VALUES];
    int nx;
    if (!items_of(g, n->in[0], x, &nx, steps) || (!nx && op != OP_Mul)) return false;
    out[0] = op == OP_Mul ? item(false, 1) : x[0];
    for (int i = op == OP_Mul ? 0 : 1; i < nx; i++) out[0] = combine_items(g, op, out[0], x[i]);
    *count = 1;
    return true;
}

static bool of_expand(Graph *g, Node *n, DimItem *out, int *count, int *steps) {
    int nx;
    Dim size = n->out[0]->type.rank ? n->out[0]->type.dim[0] : 1;
    if (!items_of(g, n->in[0], out, &nx, steps) || !dim_is_const(size) || size > MAX_DIM_VALUES
        || (nx != 1 && nx != size))
        return false;
    for (int i = 1; i < (int)size && nx == 1; i++) out[i] = out[0];
    *count = (int)size;
    return true;
}

static bool of_shape(Node *n, DimItem *out, int *count) {
    const Type *t = &n->in[0]->type;
    *count = t->rank;
    for (int i = 0; i < t->rank; i++) out[i] = item(!dim_is_const(t->dim[i]), t->dim[i]);
    return true;
}

static bool follow(Graph *g, Node *n, DimItem *out, int *count, int *steps) {
    switch (n->op) {
    case OP_Shape: return of_shape(n, out, count);
    case OP_Identity: case OP_Reshape: return items_of(g, n->in[0], out, count, steps);
    case OP_Cast: return !dtype_is_float(n->in[0]->type.dtype) && items_of(g, n->in[0], out, count, steps);
    case OP_Add:
    case OP_Sub:
    case OP_Mul:
    case OP_Div:
    case OP_Equal:
    case OP_Mod:
    case OP_Min:
    case OP_Max: return of_binary(g, n, out, count, steps);
    case OP_Where: return of_where(g, n, out, count, steps);
    case OP_Gather: return of_gather(g, n, out, count, steps);
    case OP_Slice: return of_slice(g, n, out, count, steps);
    case OP_Concat: return of_concat(g, n, out, count, steps);
    case OP_Expand: return of_expand(g, n, out, count, steps);
    case OP_ReduceProd: return of_reduction(g, OP_Mul, n, out, count, steps);
    case OP_ReduceMin: return of_reduction(g, OP_Min, n, out, count, steps);
    case OP_ReduceMax: return of_reduction(g, OP_Max, n, out, count, steps);
    default: return false;
    }
}

// What no rule follows is unknown, within the range of nothing but its type.
static bool items_of(Graph *g, Value *v, DimItem *out, int *count, int *steps) {
    if (!v || v->type.rank > 1 || v->type.dtype == DT_STRING) return false;
    Dim size = v->type.rank ? v->type.dim[0] : 1;
    if (!dim_is_const(size) || size > MAX_DIM_VALUES) return false;
    if (v->data) return from_tensor(v->data, out, count);
    if (v->def && --*steps >= 0 && follow(g, v->def, out, count, steps)) return true;
    bool natural = dtype_class(v->type.dtype) == CLASS_UINT || v->type.dtype == DT_BOOL;
    for (int i = 0; i < size; i++) out[i] = unknown(natural ? 0 : INT64_MIN, v->type.dtype == DT_BOOL ? 1 : INT64_MAX);
    *count = (int)size;
    return true;
}

bool onnx_dim_items(Graph *g, Value *v, DimItem *out, int *count) {
    if (v->type.rank > 1 || (v->type.rank && v->type.dim[0] > MAX_DIM_VALUES)) return false;
    Tensor *t = value_const(v);
    int steps = MAX_STEPS;
    if (!(t ? from_tensor(t, out, count) : items_of(g, v, out, count, &steps))) return false;
    for (int i = 0; i < *count; i++) out[i] = with_range(g, out[i]);
    return true;
}

bool onnx_dim_values(Graph *g, Value *v, DimValue *out, int *count) {
    DimItem items[MAX_DIM_VALUES];
    if (!onnx_dim_items(g, v, items, count)) return false;
    for (int i = 0; i < *count; i++) {
        if (!items[i].known) return false;
        out[i] = items[i].is;
    }
    return true;
}

bool onnx_dim_value(Graph *g, Value *v, DimValue *out) {
    DimValue values[MAX_DIM_VALUES];
    int count;
    if (!onnx_dim_values(g, v, values, &count) || count != 1) return false;
    *out = values[0];
    return true;
}

bool onnx_knows(const OnnxNode *n, int i) {
    DimValue v[MAX_DIM_VALUES];
    int count;
    Value *list = onnx_optional(n, i);
    if (!list) return true;
    if (!onnx_dim_values(n->g, list, v, &count)) return false;
    for (int k = 0; k < count; k++)
        if (v[k].symbolic) return false;
    return true;
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
    if (from && v->is_input)
        return onnx_fail(
            n, "%s \"%s\" is an input of the model; make it a constant with --freeze %s=FILE", what, name, name);
    if (from)
        return onnx_fail(n,
            "%s \"%s\" is computed at run time from \"%s\"; pin its dimensions with --dim NAME=V, or its value with "
            "--freeze %s=FILE",
            what, name, from, from);
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

bool onnx_known_number(OnnxNode *n, Value *v, const char *what, Tensor **out) {
    const bool numbers = v && !onnx_is_sequence(v) && v->type.dtype != DT_STRING;
    *out = numbers ? value_const(v) : NULL;
    if (!v || (numbers && (!*out || type_count(&(*out)->type) == 1))) return true;
    return onnx_fail(n, "%s must be a single number", what), false;
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
            onnx_fail(n, "%s depends on the dimension %s; pin it with --dim NAME=V", what,
                dim_text(n->g->arena, n->g, v[k].v));
            return false;
        }
        out[k] = v[k].v;
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
