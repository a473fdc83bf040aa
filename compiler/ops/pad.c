// SPDX-License-Identifier: MIT OR Apache-2.0
// Pad: elements added (lo, hi > 0) or cropped (lo, hi < 0) at both ends of each axis, and between elements (interior
// > 0).
//
// Output position of element i of an axis: lo + i * (interior + 1). What is not an element is the fill scalar (mode
// constant), or the element that reflection, the nearest edge or wrapping around names; those modes have no interior.
#include "common.h"
#include "table.h"

#include <string.h>

typedef enum PadMode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP, PAD_UNKNOWN } PadMode;
typedef struct PadAttrs { const int64_t *lo, *hi; int64_t interior[MAX_RANK]; PadMode mode; } PadAttrs;

static PadMode pad_mode(const Node *n) {
    static const char *const names[] = { "constant", "reflect", "edge", "wrap" };
    const char *s = node_string(n, "mode", "constant");
    for (int i = 0; i < (int)COUNT(names); i++)
        if (!strcmp(s, names[i])) return (PadMode)i;
    return PAD_UNKNOWN;
}

static PadAttrs pad_attrs(const Node *n) {
    int count = 0;
    PadAttrs p = { .lo = node_ints(n, "lo", &count), .hi = node_ints(n, "hi", &count), .mode = pad_mode(n) };
    op_ints_or(n, "interior", MAX_RANK, 0, p.interior);
    return p;
}

static bool in_reach(int64_t v, int64_t most) { return v >= -most && v <= most; }

// The length of a padded axis; false with a diagnostic when it is negative or mode and size do not fit.
static bool pad_dim(Node *n, const PadAttrs *p, int i, Dim *to) {
    Graph *g = n->graph;
    Dim d = n->in[0]->type.dim[i];
    const int64_t most = INT64_MAX / 4, around = in_reach(p->lo[i], most) && in_reach(p->hi[i], most)
        ? p->lo[i] + p->hi[i] : INT64_MAX;
    if (p->interior[i] < 0 || p->interior[i] > most || around == INT64_MAX) {
        diag_error(n->loc, "axis %d of %s cannot be padded by %lld and %lld, %lld between", i,
            value_type_text(n->in[0]), (long long)p->lo[i], (long long)p->hi[i], (long long)p->interior[i]);
        return false;
    }
    if (p->mode != PAD_CONSTANT && (p->interior[i] || (d == 0 && (p->lo[i] > 0 || p->hi[i] > 0)))) {
        diag_error(n->loc, "axis %d of %s has no element to repeat; use mode=constant", i, value_type_text(n->in[0]));
        return false;
    }
    if (dim_is_const(d)) {
        int64_t spread = 0, length = 0;
        bool fits = !__builtin_mul_overflow(d > 0 ? d - 1 : 0, p->interior[i], &spread)
            && !__builtin_add_overflow(d, spread, &length) && !__builtin_add_overflow(length, around, &length)
            && length >= 0;
        if (!fits)
            diag_error(n->loc, "axis %d of %s has nothing left after cropping by %lld and %lld", i,
                value_type_text(n->in[0]), (long long)-p->lo[i], (long long)-p->hi[i]);
        *to = length;
        return fits;
    }
    *to = dim_offset(g, dim_mul(g, d, p->interior[i] + 1), around - p->interior[i]);
    return true;
}

bool shape_pad(Node *n) {
    const Type *t = &n->in[0]->type;
    PadAttrs p = pad_attrs(n);
    const int64_t *check;
    if (!op_ints(n, "lo", t->rank, &check) || !op_ints(n, "hi", t->rank, &check)) return false;
    if (node_attr(n, "interior") && !op_ints(n, "interior", t->rank, &check)) return false;
    if (p.mode == PAD_UNKNOWN) {
        diag_error(
            n->loc, "padding mode \"%s\" is not one of constant, reflect, edge, wrap", node_string(n, "mode", ""));
        return false;
    }
    if (n->n_in > 1 && n->in[1] && (n->in[1]->type.dtype != t->dtype || n->in[1]->type.rank != 0)) {
        diag_error(n->loc, "the fill of %s must be a scalar of its dtype, it is %s", value_type_text(n->in[0]),
            value_type_text(n->in[1]));
        return false;
    }
    Type to = *t;
    for (int i = 0; i < t->rank; i++)
        if (!pad_dim(n, &p, i, &to.dim[i])) return false;
    n->out[0]->type = to;
    return true;
}

// Source coordinate of coordinate j (relative to the first element, of any sign) of an axis of d elements.
static int64_t pad_source(PadMode mode, int64_t j, int64_t d) {
    if (mode == PAD_EDGE) return j < 0 ? 0 : j >= d ? d - 1 : j;
    if (mode == PAD_REFLECT && d == 1) return 0;
    int64_t period = mode == PAD_REFLECT ? 2 * (d - 1) : d, m = j % period;
    if (m < 0) m += period;
    return m < d ? m : period - m;
}

static void fill_with(Tensor *t, const Tensor *fill) {
    size_t size = dtype_size(t->type.dtype), total = (size_t)type_bytes(&t->type);
    char *to = t->data;
    if (fill && total) {
        memcpy(to, fill->data, size);
        for (size_t done = size; done < total; done *= 2)
            memcpy(to + done, to, done < total - done ? done : total - done);
    } else if (t->type.dtype == DT_STRING) {
        for (size_t i = 0; i < total / size; i++) ((const char **)t->data)[i] = "";
    } else {
        memset(to, 0, total);
    }
}

static void eval_pad_constant(const PadAttrs *p, const Tensor *x, const Tensor *fill, Tensor *y) {
    int rank = x->type.rank;
    int64_t src[MAX_RANK], dst[MAX_RANK], dims[MAX_RANK], from = 0, to = 0;
    fill_with(y, fill);
    type_strides(&x->type, src);
    type_strides(&y->type, dst);
    for (int i = 0; i < rank; i++) {                    // the elements first..last-1 are those that stay inside
        int64_t step = p->interior[i] + 1, lo = p->lo[i];
        int64_t first = lo < 0 ? (-lo + step - 1) / step : 0;
        int64_t room = y->type.dim[i] - lo, last = room > 0 ? (room + step - 1) / step : 0;
        if (last > x->type.dim[i]) last = x->type.dim[i];
        if (last <= first) return;
        from += first * src[i];
        to += (lo + first * step) * dst[i];
        dst[i] *= step;
        dims[i] = last - first;
    }
    size_t size = dtype_size(x->type.dtype);
    strided_copy((char *)y->data + to * (ptrdiff_t)size, dst, (const char *)x->data + from * (ptrdiff_t)size, src,
        rank, dims, size);
}

static void eval_pad_repeat(const PadAttrs *p, const Tensor *x, Tensor *y) {
    int64_t src[MAX_RANK], idx[MAX_RANK] = { 0 };
    char *to = y->data;
    size_t size = dtype_size(x->type.dtype);
    if (type_count(&y->type) == 0) return;
    type_strides(&x->type, src);
    do {
        int64_t from = 0;
        for (int i = 0; i < x->type.rank; i++) from += src[i] * pad_source(p->mode, idx[i] - p->lo[i], x->type.dim[i]);
        memcpy(to, (const char *)x->data + from * (ptrdiff_t)size, size);
        to += size;
    } while (index_next(y->type.rank, y->type.dim, idx));
}

bool eval_pad(const Node *n, Tensor *const *in, Tensor *const *out) {
    PadAttrs p = pad_attrs(n);
    if (p.mode == PAD_CONSTANT) eval_pad_constant(&p, in[0], n->n_in > 1 ? in[1] : NULL, out[0]);
    else eval_pad_repeat(&p, in[0], out[0]);
    return true;
}

// ---------------------------------------------------------------- gradient
// Where padding repeats elements, their gradients add up: per padded axis, rows of dy are scattered onto the rows
// they came from.
static Value *unrepeat(Node *n, const PadAttrs *p, int axis, Value *dy) {
    Graph *g = n->graph;
    Dim d = n->in[0]->type.dim[axis], from = dy->type.dim[axis];
    if (!op_static(n, d, "a padded axis that is differentiated")) return NULL;
    Tensor *rows = tensor_new(g->arena, type_make(DT_I64, 2, (Dim[]){ from, 1 }));
    for (int64_t i = 0; i < from; i++) tensor_set_i(rows, i, pad_source(p->mode, i - p->lo[axis], d));
    Value *front = b_move_axes(g, dy, axis, 1, 0);
    Type t = front->type;
    t.dim[0] = d;
    Value *zeros = b_full(g, &t, 0), *dx = b_scatter_nd(g, zeros, graph_const(g, rows, NULL), front, "add");
    return b_move_axes(g, dx, 0, 1, axis);
}

bool grad_pad(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    const Type *t = &n->in[0]->type;
    PadAttrs p = pad_attrs(n);
    Value *dy = dout[0];
    if (p.mode != PAD_CONSTANT) {
        for (int i = 0; dy && i < t->rank; i++)
            if (p.lo[i] || p.hi[i]) dy = unrepeat(n, &p, i, dy);
        din[0] = dy;
        return dy != NULL;
    }
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 }, start[MAX_RANK] = { 0 }, step[MAX_RANK] = { 0 };
    bool cropped = false;
    for (int i = 0; i < t->rank; i++) {                 // what was cropped has gradient 0
        lo[i] = p.lo[i] < 0 ? -p.lo[i] : 0;
        hi[i] = p.hi[i] < 0 ? -p.hi[i] : 0;
        start[i] = p.lo[i] > 0 ? p.lo[i] : 0;
        step[i] = p.interior[i] + 1;
        cropped = cropped || lo[i] || hi[i];
    }
    din[0] = b_slice(g, cropped ? b_pad(g, dy, lo, hi, NULL, NULL) : dy, start, step, t->dim);
    if (n->n_in > 1 && n->in[1]) {                      // the fill gets what the elements do not
        Value *all = b_reduce(g, OP_ReduceSum, dy, dy->type.rank, (int64_t[]){ 0, 1, 2, 3, 4, 5, 6, 7 }, false);
        Value *own = b_reduce(g, OP_ReduceSum, din[0], t->rank, (int64_t[]){ 0, 1, 2, 3, 4, 5, 6, 7 }, false);
        din[1] = b_binary(g, OP_Sub, all, own);
        return din[0] && din[1];
    }
    return din[0] != NULL;
}

// ---------------------------------------------------------------- lowering
static Expr *ix_min(Lower *l, Expr *a, int64_t c) {
    return a->hi <= c ? a : expr_binary(l->p, E_Min, a, expr_index(l->p, c));
}
static Expr *ix_max(Lower *l, Expr *a, int64_t c) {
    return a->lo >= c ? a : expr_binary(l->p, E_Max, a, expr_index(l->p, c));
}
static Expr *ix_rsub(Lower *l, int64_t c, Expr *a) { return ix_addc(l, ix_mulc(l, a, -1), c); }

static Expr *source_of_size(Lower *l, PadMode mode, Expr *j, Expr *d) {
    Expr *last = ix_addc(l, d, -1), *period = ix_mulc(l, last, 2);
    if (mode == PAD_EDGE) return expr_binary(l->p, E_Min, ix_max(l, j, 0), last);
    if (mode == PAD_WRAP) return expr_binary(l->p, E_Mod, j, d);
    Expr *m = expr_binary(l->p, E_Mod, j, period);
    return expr_binary(l->p, E_Min, m, expr_binary(l->p, E_Sub, period, m));
}

static Expr *source_expr(Lower *l, PadMode mode, Expr *j, Dim d) {
    if (!dim_is_const(d)) return source_of_size(l, mode, j, lower_dim(l, d));
    if (mode == PAD_EDGE) return ix_min(l, ix_max(l, j, 0), d - 1);
    if (j->lo >= 0 && j->hi < d) return j;
    if (mode == PAD_WRAP) return ix_modc(l, j, d);      // Mod of indices rounds toward minus infinity
    if (d == 1) return expr_index(l->p, 0);
    if (j->lo > -d && j->hi < 2 * d - 1) {              // one reflection: at 0, then at d-1
        if (j->lo < 0) j = expr_binary(l->p, E_Max, j, ix_rsub(l, 0, j));
        return j->hi < d ? j : expr_binary(l->p, E_Min, j, ix_rsub(l, 2 * (d - 1), j));
    }
    Expr *m = ix_modc(l, j, 2 * (d - 1));
    return expr_binary(l->p, E_Min, m, ix_rsub(l, 2 * (d - 1), m));
}

Expr *lower_pad(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *t = &n->in[0]->type;
    PadAttrs p = pad_attrs(n);
    Expr *at[MAX_RANK], *cond = NULL;
    for (int i = 0; i < t->rank; i++) {
        Expr *j = ix_addc(l, idx[i], -p.lo[i]);
        if (p.mode != PAD_CONSTANT) {
            at[i] = source_expr(l, p.mode, j, t->dim[i]);
            continue;
        }
        int64_t step = p.interior[i] + 1;
        cond = ix_in_range(
            l, cond, j, 0, dim_add(n->graph, dim_mul(n->graph, dim_sub(n->graph, t->dim[i], 1), step), 1));
        if (step > 1) {
            Expr *rest = ix_modc(l, j, step), *whole = expr_binary(l->p, E_Eq, rest, expr_index(l->p, 0));
            cond = cond ? expr_binary(l->p, E_And, cond, whole) : whole;
        }
        at[i] = ix_divc(l, j, step);
    }
    Expr *fill = expr_zero(l->p, t->dtype);
    if (cond && n->n_in > 1 && n->in[1]) fill = lower_load(l, n->in[1], NULL);
    return fill ? lower_guarded(l, n->in[0], at, cond, fill) : NULL;
}
