// SPDX-License-Identifier: MIT OR Apache-2.0
// Helpers of the op families (see common.h). Element access goes through double or 64-bit integers by the class of the
// dtype; byte copies know only the element size, so that views and gathers serve every dtype, strings included.
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- shape rules
const char *value_type_text(const Value *v) {
    return v && v->graph ? type_text(v->graph->arena, v->graph, &v->type) : v ? "no tensor" : "absent";
}

bool op_axis(Node *n, int rank, int *axis) {
    int64_t a = node_int(n, "axis", 0);
    if (a < 0 || a >= rank) {
        diag_error(n->loc, "axis %lld is outside 0..%d of a tensor of rank %d", (long long)a, rank - 1, rank);
        return false;
    }
    *axis = (int)a;
    return true;
}

bool op_ints(Node *n, const char *name, int want, const int64_t **at) {
    int count = 0;
    *at = node_ints(n, name, &count);
    if (count != want) {
        diag_error(n->loc, "attribute %s wants %d integers, it has %d", name, want, count);
        return false;
    }
    return true;
}

void op_ints_or(const Node *n, const char *name, int count, int64_t otherwise, int64_t *at) {
    int have = 0;
    const int64_t *v = node_ints(n, name, &have);
    for (int i = 0; i < count; i++) at[i] = i < have ? v[i] : otherwise;
}

bool op_numeric(Node *n, const Value *v) {
    DClass c = dtype_class(v->type.dtype);
    if (c == CLASS_FLOAT || c == CLASS_INT || c == CLASS_UINT) return true;
    diag_error(n->loc, "wants %snumbers, not %s%s", c == CLASS_COMPLEX ? "real " : "", value_type_text(v),
        c == CLASS_BOOL        ? "; cast it" :
            c == CLASS_COMPLEX ? "; give real and imaginary parts as tensors of their own" :
                                 "");
    return false;
}

bool op_index_type(Node *n, const Value *v) {
    if (dtype_is_int(v->type.dtype)) return true;
    diag_error(n->loc, "indices must be integers, they are %s; cast them to i64", value_type_text(v));
    return false;
}

bool op_static(Node *n, Dim d, const char *why) {
    if (dim_is_const(d)) return true;
    diag_error(n->loc, "%s is %s here but must be known; bind it with --dim NAME=VALUE", why,
        dim_text(n->graph->arena, n->graph, d));
    return false;
}

bool dims_agree(Node *n, Dim a, Dim b) {
    Graph *root = graph_root(n->graph);
    if (a == b || (dim_is_const(a) && dim_is_const(b))) return a == b;
    if (!root->bound) return true;
    if (dim_lower(root, a) > dim_upper(root, b) || dim_lower(root, b) > dim_upper(root, a)) return false;
    dim_require(n->graph, a, b);
    return true;
}

bool dims_broadcast(Node *n, Type *out, const Type *a, const Type *b) {
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        Dim x = a->dim[a->rank - i], y = b->dim[b->rank - i];
        if (x != 1 && y != 1 && !dims_agree(n, x, y)) return false;
    }
    return type_broadcast(out, a, b);
}

// ---------------------------------------------------------------- evaluation
Scalar element_get(const Tensor *t, int64_t i) {
    if (dtype_is_float(t->type.dtype)) return (Scalar){ .f = tensor_get_f(t, i) };
    if (t->type.dtype == DT_STRING) return (Scalar){ .u = (uintptr_t)((const char *const *)t->data)[i] };
    return (Scalar){ .i = tensor_get_i(t, i) };
}

void element_set(Tensor *t, int64_t i, Scalar s) {
    if (dtype_is_float(t->type.dtype)) tensor_set_f(t, i, s.f);
    else if (t->type.dtype == DT_STRING) ((const char **)t->data)[i] = s.u ? (const char *)(uintptr_t)s.u : "";
    else tensor_set_i(t, i, s.i);
}

bool element_less(DType d, Scalar a, Scalar b) {
    if (dtype_is_float(d)) return isnan(b.f) ? !isnan(a.f) : a.f < b.f;
    return dtype_class(d) == CLASS_UINT ? a.u < b.u : a.i < b.i;
}

void *scratch_new(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) fatal(EXIT_MEMORY, "out of memory: %zu elements of %zu bytes", count, size);
    return p;
}

bool index_next(int rank, const int64_t *dims, int64_t *idx) {
    for (int i = rank - 1; i >= 0; i--) {
        if (++idx[i] < dims[i]) return true;
        idx[i] = 0;
    }
    return false;
}

// ---- strided copies
typedef struct Strided { int rank; int64_t dims[MAX_RANK], dst[MAX_RANK], src[MAX_RANK]; } Strided;

// Leaves out axes of extent 1 and merges neighbours that both sides walk as one.
static Strided strided_collapse(int rank, const int64_t *dims, const int64_t *dst, const int64_t *src) {
    Strided w = { 0 };
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        int last = w.rank - 1;
        if (last >= 0 && w.dst[last] == dst[i] * dims[i] && w.src[last] == src[i] * dims[i]) {
            w.dims[last] *= dims[i];
            w.dst[last] = dst[i];
            w.src[last] = src[i];
        } else {
            w.dims[w.rank] = dims[i];
            w.dst[w.rank] = dst[i];
            w.src[w.rank++] = src[i];
        }
    }
    return w;
}

static void copy_run(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n, size_t size) {
    if (ds == 1 && ss == 1) {
        memcpy(dst, src, (size_t)n * size);
        return;
    }
    ptrdiff_t db = (ptrdiff_t)ds * (ptrdiff_t)size, sb = (ptrdiff_t)ss * (ptrdiff_t)size;
    switch (size) {                                     // constant sizes become single moves
    case 1:
        for (int64_t i = 0; i < n; i++) dst[i * db] = src[i * sb];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * db, src + i * sb, 2);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * db, src + i * sb, 4);
        break;
    case 8:
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * db, src + i * sb, 8);
        break;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * db, src + i * sb, size);
        break;
    }
}

// A transposition is copied in square tiles, so that both sides stay in cache: rows of `w`'s last axis, columns along
// axis p.
static void copy_tiles(const Strided *w, int p, char *dst, const char *src, size_t size) {
    enum { TILE = 32 };
    int last = w->rank - 1;
    ptrdiff_t bytes = (ptrdiff_t)size;
    for (int64_t r = 0; r < w->dims[p]; r += TILE)
        for (int64_t c = 0; c < w->dims[last]; c += TILE) {
            int64_t rows = w->dims[p] - r < TILE ? w->dims[p] - r : TILE;
            int64_t cols = w->dims[last] - c < TILE ? w->dims[last] - c : TILE;
            for (int64_t i = r; i < r + rows; i++)
                copy_run(dst + (i * w->dst[p] + c * w->dst[last]) * bytes, w->dst[last],
                         src + (i * w->src[p] + c * w->src[last]) * bytes, w->src[last], cols, size);
        }
}

void strided_copy(void *dst, const int64_t *dst_stride, const void *src, const int64_t *src_stride, int rank,
    const int64_t *dims, size_t size) {
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0) return;
    Strided w = strided_collapse(rank, dims, dst_stride, src_stride);
    if (w.rank == 0) {
        memcpy(dst, src, size);
        return;
    }
    int last = w.rank - 1, tiled = -1;
    if (w.src[last] != 1)
        for (int i = 0; i < last; i++)
            if (w.src[i] == 1) tiled = i;
    int64_t outer[MAX_RANK], idx[MAX_RANK] = { 0 };
    for (int i = 0; i < last; i++) outer[i] = i == tiled ? 1 : w.dims[i];
    do {
        int64_t d = 0, s = 0;
        for (int i = 0; i < last; i++) {
            d += idx[i] * w.dst[i];
            s += idx[i] * w.src[i];
        }
        char *to = (char *)dst + d * (ptrdiff_t)size;
        const char *from = (const char *)src + s * (ptrdiff_t)size;
        if (tiled >= 0) copy_tiles(&w, tiled, to, from, size);
        else copy_run(to, w.dst[last], from, w.src[last], w.dims[last], size);
    } while (index_next(last, outer, idx));
}

// The same elements with the channels last, or (back) with those of the last axis at axis 1. The caller frees the data.
static Tensor channels_moved(const Tensor *t, bool back) {
    int r = t->type.rank;
    Tensor moved = { .type = t->type };
    int64_t from[MAX_RANK], to[MAX_RANK], stride[MAX_RANK];
    for (int i = 1; i < r; i++)
        moved.type.dim[i] = t->type.dim[back ? (i == 1 ? r - 1 : i - 1) : (i == r - 1 ? 1 : i + 1)];
    moved.data = scratch_new((size_t)type_count(&t->type), dtype_size(t->type.dtype));
    type_strides(&t->type, from);
    type_strides(&moved.type, stride);
    to[0] = stride[0];
    for (int i = 1; i < r; i++) to[i] = stride[back ? (i == r - 1 ? 1 : i + 1) : (i == 1 ? r - 1 : i - 1)];
    strided_copy(moved.data, to, t->data, from, r, t->type.dim, dtype_size(t->type.dtype));
    return moved;
}

bool eval_channels_last(const Node *n, Tensor *const *in, Tensor *const *out, EvalFn *eval) {
    Tensor x = channels_moved(in[0], true), y = channels_moved(out[0], true);       // y: for its type
    bool ok = eval(n, (Tensor *[]){ &x, n->n_in > 1 ? in[1] : NULL }, (Tensor *[]){ &y });
    Tensor last = channels_moved(&y, false);
    memcpy(out[0]->data, last.data, (size_t)type_bytes(&out[0]->type));
    free(x.data);
    free(y.data);
    free(last.data);
    return ok;
}

// ---------------------------------------------------------------- index expressions
Expr *ix_add(Lower *l, Expr *a, Expr *b) { return expr_binary(l->p, E_Add, a, b); }
Expr *ix_addc(Lower *l, Expr *a, int64_t c) { return c ? expr_binary(l->p, E_Add, a, expr_index(l->p, c)) : a; }
Expr *ix_mulc(Lower *l, Expr *a, int64_t c) { return c == 1 ? a : expr_binary(l->p, E_Mul, a, expr_index(l->p, c)); }
Expr *ix_divc(Lower *l, Expr *a, int64_t c) { return c == 1 ? a : expr_binary(l->p, E_Div, a, expr_index(l->p, c)); }
Expr *ix_modc(Lower *l, Expr *a, int64_t c) {
    return c == 1 ? expr_index(l->p, 0) : expr_binary(l->p, E_Mod, a, expr_index(l->p, c));
}

static Expr *both(Lower *l, Expr *a, Expr *b) { return a ? expr_binary(l->p, E_And, a, b) : b; }

Expr *ix_in_range(Lower *l, Expr *cond, Expr *i, int64_t lo, Dim hi) {
    if (i->lo < lo) cond = both(l, cond, expr_binary(l->p, E_Le, expr_index(l->p, lo), i));
    if (dim_is_const(hi) && i->hi < hi) return cond;
    Expr *below = expr_binary(l->p, E_Lt, i, lower_dim(l, hi));
    return below->op == E_Const && below->c.i ? cond : both(l, cond, below);
}

Expr *lower_guarded(Lower *l, Value *v, Expr *const *idx, Expr *cond, Expr *otherwise) {
    if (!cond) return lower_load(l, v, idx);
    Expr *old = lower_guard(l, cond);
    Expr *e = lower_load(l, v, idx);
    bool plain = e && e->op == E_Load && e->a[1] == cond && !e->a[2];   // one condition then says it all
    l->guard = old;
    if (plain) return expr_load(l->p, e->value, e->a[0], cond, otherwise);
    return e ? expr_select(l->p, cond, e, otherwise) : NULL;
}

Expr *expr_identity(ExprPool *p, DType d, ReduceOp op) {
    Scalar s = reduce_identity(op, d);
    return dtype_is_float(d) ? expr_const_f(p, d, s.f) : expr_const_i(p, d, s.i);
}

Expr *expr_zero(ExprPool *p, DType d) { return expr_identity(p, d, RED_SUM); }

Expr *expr_accumulate(Lower *l, ReduceOp op, int n_axes, const int *axes, Expr *body) {
    DType d = body->dtype, wide = dtype_wide(d);
    if (n_axes == 0) return body;
    // extremes are exact in any type
    if (!reduce_table[op].rounds) return expr_reduce(l->p, op, n_axes, axes, body, NULL);
    if (wide != d) body = expr_cast(l->p, body, wide);
    Expr *e = expr_reduce(l->p, op, n_axes, axes, body, NULL);
    return wide != d ? expr_cast(l->p, e, d) : e;
}


// ---------------------------------------------------------------- expansions

bool expand_done(Node *n, Value *y, Value **out) {
    out[0] = y ? b_cast(n->graph, y, n->out[0]->type.dtype) : NULL;
    return out[0] != NULL;
}

int all_axes(const Value *x, int64_t *axes) {
    for (int i = 0; i < x->type.rank; i++) axes[i] = i;
    return x->type.rank;
}
