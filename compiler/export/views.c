// SPDX-License-Identifier: MIT OR Apache-2.0
// Writers of views and casts: what ONNX wants as inputs that are lists of sizes.
//
// In: a node. Out: ONNX's, with constants for what is known. The idea: a symbolic size is said without arithmetic where
// ONNX has a word for it: 0 for the input's own, -1 for what is left, a number from the end.
#include "export/rows.h"
#include "ir/expr.h"

#include <string.h>

// Our casts of floats end at the ends of an integer's range, ONNX's anywhere; a cast that is ONNX's own has the
// attribute and is left as it is. Of 32 bits and more the ends are no floats.
static const char *clamped(Put *p, const Node *n, const char *x) {
    DType from = n->in[0]->type.dtype, to = n->out[0]->type.dtype;
    int64_t lo, hi;
    if (node_attr(n, "saturate") || !dtype_is_float(from) || !dtype_is_int(to) || dtype_size(to) > 2) return x;
    if (from == DT_F16 && dtype_size(to) == 2) return x;
    int_bounds(to, &lo, &hi);
    const char *least = put_number(p, from, (double)lo), *most = put_number(p, from, (double)hi);
    return put_op(p, NULL, "Clip", NAMES(x, least, most), NO_ATTRS);
}

bool write_cast(Put *p, Node *n, const Row *row) {
    OnnxAttr attrs[MAX_ATTRS];
    DType to = n->out[0]->type.dtype;
    int count = row_attrs(n, row, 0, attrs);
    if (p->x->opset >= 19 && put_dtype_since(to) == 19 && !node_int(n, "saturate", 1))
        attrs[count++] = attr_int("saturate", 0);
    const char *x = clamped(p, n, put_value(p, n->in[0]));
    put_op(p, put_name(p, n->out[0]), row->op, NAMES(x), count, attrs);
    return true;
}

// ---------------------------------------------------------------- Reshape, Expand

// The shape as a constant, if at most one size needs -1.
static bool plain_shape(const Put *p, const Type *from, const Type *to, int64_t *shape) {
    int left = 0;
    for (int i = 0; i < to->rank; i++) {
        shape[i] = to->dim[i];
        if (dim_is_const(to->dim[i])) {
            if (!to->dim[i]) return type_is_static(to);  // 0 means the input's
            continue;
        }
        bool same = i < from->rank && !dim_is_const(from->dim[i]) && dim_equal(p->x->g, from->dim[i], to->dim[i]);
        shape[i] = same ? 0 : -1;
        left += !same;
    }
    return left <= 1;
}

bool write_reshape(Put *p, Node *n, const Row *row) {
    const Type *from = &n->in[0]->type, *to = &n->out[0]->type;
    int64_t shape[MAX_RANK];
    const char *x = put_value(p, n->in[0]), *y = put_name(p, n->out[0]), *sizes;
    bool plain = plain_shape(p, from, to, shape), empty = false;
    for (int i = 0; i < to->rank; i++) empty = empty || !to->dim[i];
    sizes = plain ? put_ints(p, to->rank, shape) : put_sizes(p, to->rank, to->dim, n->in[0]);
    if (empty && p->x->opset >= 14) return put_op(p, y, row->op, NAMES(x, sizes), ATTRS(attr_int("allowzero", 1)));
    return put_op(p, y, row->op, NAMES(x, sizes), NO_ATTRS) != NULL;
}

bool write_expand(Put *p, Node *n, const Row *row) {
    const Type *from = &n->in[0]->type, *to = &n->out[0]->type;
    Dim sizes[MAX_RANK];
    int lead = to->rank - from->rank;
    for (int i = 0; i < to->rank; i++) {                // 1: as large as it is
        bool same = i >= lead && !dim_is_const(to->dim[i]) && dim_equal(p->x->g, from->dim[i - lead], to->dim[i]);
        sizes[i] = same ? 1 : to->dim[i];
    }
    const char *x = put_value(p, n->in[0]), *list = put_sizes(p, to->rank, sizes, NULL);
    return put_op(p, put_name(p, n->out[0]), row->op, NAMES(x, list), NO_ATTRS) != NULL;
}

// ---------------------------------------------------------------- Slice

// symbolic: a bound is a size of the model, and not a number as ONNX counts
typedef struct Bound { Dim at; bool symbolic; } Bound;
typedef struct Cuts {
    int n;
    bool strided;
    int64_t axis[MAX_RANK], step[MAX_RANK];
    Bound start[MAX_RANK], end[MAX_RANK];
} Cuts;

// Where a cut ends, as ONNX counts: negative numbers from the end, the largest at it, the least before the first.
static Bound cut_end(Graph *g, Dim size, Dim start, int64_t step, Dim count) {
    Dim reach = dim_mul(g, count, step < 0 ? -step : step);
    Dim end = step < 0 ? dim_sub(g, start, reach) : dim_add(g, start, reach);
    if (step < 0 && dim_is_const(count) && dim_is_const(start))
        return (Bound){ start < step * -count ? INT64_MIN : end, false };
    if (step != 1 || dim_is_const(end)) return (Bound){ end, !dim_is_const(end) };
    Dim rest = dim_sub(g, size, end);
    if (!dim_is_const(rest)) return (Bound){ end, true };
    return (Bound){ rest ? -rest : INT64_MAX, false };
}

static Cuts cuts_of(const Put *p, const Node *n) {
    Graph *g = p->x->g;
    Cuts c = { 0 };
    int rank = 0;
    const int64_t *start = node_ints(n, "starts", &rank), *step = node_ints(n, "steps", &rank);
    const int64_t *count = node_ints(n, "sizes", &rank);
    for (int i = 0; i < rank; i++) {
        Dim size = n->in[0]->type.dim[i];
        if (start[i] == 0 && step[i] == 1 && dim_equal(g, size, count[i])) continue;
        c.axis[c.n] = i;
        c.step[c.n] = step[i];
        c.strided = c.strided || step[i] != 1;
        c.start[c.n] = (Bound){ start[i], !dim_is_const(start[i]) };
        c.end[c.n++] = cut_end(g, size, start[i], step[i], count[i]);
    }
    return c;
}

static const char *bounds(Put *p, int n, const Bound *b) {
    const char **parts = NEW_ARRAY(p->x->arena, const char *, n + 1);
    int64_t numbers[MAX_RANK];
    bool known = true;
    for (int i = 0; i < n; i++) {
        known = known && !b[i].symbolic;
        numbers[i] = b[i].at;
    }
    if (known) return put_ints(p, n, numbers);
    for (int i = 0; i < n; i++) parts[i] = b[i].symbolic ? put_size(p, b[i].at, NULL) : put_ints(p, 1, &b[i].at);
    return n == 1 ? parts[0] : put_op(p, NULL, "Concat", n, parts, ATTRS(attr_int("axis", 0)));
}

bool write_slice(Put *p, Node *n, const Row *row) {
    const Cuts c = cuts_of(p, n);
    const char *x = put_value(p, n->in[0]), *y = put_name(p, n->out[0]);
    if (!c.n) return put_op(p, y, "Identity", NAMES(x), NO_ATTRS) != NULL;
    const char *from = bounds(p, c.n, c.start), *to = bounds(p, c.n, c.end);
    const char *axes = put_ints(p, c.n, c.axis), *by = c.strided ? put_ints(p, c.n, c.step) : "";
    return put_op(p, y, row->op, NAMES(x, from, to, axes, by), NO_ATTRS) != NULL;
}

// ---------------------------------------------------------------- Pad

// Zeros between the elements of x: [.., d, ..] as [.., d, 1, ..], a longer last axis, and back.
static const char *spread(Put *p, const char *x, const Node *n, const int64_t *interior, const char *fill) {
    Type t = n->in[0]->type;
    for (int i = 0; i < t.rank; i++) {
        if (!interior[i]) continue;
        int64_t pads[2 * MAX_RANK + 2] = { 0 };
        Dim split[MAX_RANK + 1], d = t.dim[i];
        for (int k = 0; k <= t.rank; k++) split[k] = k <= i ? t.dim[k] : k == i + 1 ? 1 : t.dim[k - 1];
        const char *sizes = put_sizes(p, t.rank + 1, split, NULL);
        x = put_op(p, NULL, "Reshape", NAMES(x, sizes), NO_ATTRS);
        pads[t.rank + 1 + i + 1] = interior[i];
        const char *list = put_ints(p, 2 * (t.rank + 1), pads);
        x = put_op(p, NULL, "Pad", NAMES(x, list, fill), NO_ATTRS);
        t.dim[i] = dim_mul(p->x->g, d, interior[i] + 1);
        sizes = put_sizes(p, t.rank, t.dim, NULL);
        x = put_op(p, NULL, "Reshape", NAMES(x, sizes), NO_ATTRS);
    }
    return x;
}

bool write_pad(Put *p, Node *n, const Row *row) {
    int rank = n->in[0]->type.rank, count = 0;
    const int64_t *lo = node_ints(n, "lo", &count), *hi = node_ints(n, "hi", &count);
    const int64_t *between = node_ints(n, "interior", &count);
    int64_t pads[2 * MAX_RANK], interior[MAX_RANK] = { 0 };
    if (between) memcpy(interior, between, sizeof *between * (size_t)rank);
    for (int i = 0; i < rank; i++) {
        pads[i] = lo[i];
        pads[rank + i] = hi[i] - interior[i];
    }
    OnnxAttr attrs[MAX_ATTRS];
    const char *x = put_value(p, n->in[0]), *fill = n->n_in > 1 ? put_value(p, n->in[1]) : "";
    x = spread(p, x, n, interior, fill);
    if (!x) return false;
    const char *list = put_ints(p, 2 * rank, pads);
    int n_attrs = row_attrs(n, row, 0, attrs);
    return put_op(p, put_name(p, n->out[0]), row->op, NAMES(x, list, fill), n_attrs, attrs) != NULL;
}

// ---------------------------------------------------------------- Iota

static bool has_range(DType d) { return d == DT_F32 || d == DT_F64 || d == DT_I16 || d == DT_I32 || d == DT_I64; }

bool write_iota(Put *p, Node *n, const Row *row) {
    const Type *t = &n->out[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    DType d = has_range(t->dtype) ? t->dtype : DT_I64;
    bool cast = d != t->dtype, along = t->rank == 1;
    const char *y = put_name(p, n->out[0]), *end;
    if (dim_is_const(t->dim[axis])) end = put_number(p, d, (double)t->dim[axis]);
    else {
        end = put_size(p, t->dim[axis], NULL);
        if (end) end = put_reshape(p, NULL, end, 0, NULL);
        if (end && d != DT_I64) end = put_cast(p, NULL, end, d);
    }
    if (!end) return false;
    const char *zero = put_number(p, d, 0), *one = put_number(p, d, 1);
    const char *x = put_op(p, along && !cast ? y : NULL, row->op, NAMES(zero, end, one), NO_ATTRS);
    if (cast) x = put_cast(p, along ? y : NULL, x, t->dtype);
    if (along) return true;
    int64_t column[MAX_RANK];
    for (int i = 0; i < t->rank; i++) column[i] = i == axis ? -1 : 1;
    x = put_reshape(p, NULL, x, t->rank, column);
    Dim sizes[MAX_RANK];
    for (int i = 0; i < t->rank; i++) sizes[i] = i == axis ? 1 : t->dim[i];
    const char *list = put_sizes(p, t->rank, sizes, NULL);
    return put_op(p, y, "Expand", NAMES(x, list), NO_ATTRS) != NULL;
}
