// SPDX-License-Identifier: MIT OR Apache-2.0
// MatMul (numpy rules: vectors, broadcast batches) and Conv (1-D to 6-D, strides, dilations, pads, groups; no bias).
//
// The evaluators accumulate floats in double and integers exactly; the lowerings are the plain sums of products that
// the template kernels are checked against. Gradients are again MatMuls and Convs:
//   dX = dY W^T, dW = X^T dY;   conv: dX = conv(dY spread by the stride, flipped W with channels swapped),
//   dW = conv(X with batch as channels, dY as kernel) where stride and dilation change places; of each channel alone
//   the batch is one more spatial axis, and by one point both are products.
#include "common.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- MatMul: shapes
// Both operands as batches of matrices: x [batch..., m, k], y [batch..., k, n]; a vector is one row or one column.
typedef struct MatShape { Dim m, k, n; Type x, y, batch; } MatShape;

static bool mat_shape(const Type *x, const Type *y, MatShape *s) {
    if (x->rank < 1 || y->rank < 1) return false;
    s->m = x->rank > 1 ? x->dim[x->rank - 2] : 1;
    s->k = x->dim[x->rank - 1];
    s->n = y->rank > 1 ? y->dim[y->rank - 1] : 1;
    s->x = type_make(x->dtype, x->rank > 2 ? x->rank - 2 : 0, x->dim);
    s->y = type_make(y->dtype, y->rank > 2 ? y->rank - 2 : 0, y->dim);
    Dim k = y->rank > 1 ? y->dim[y->rank - 2] : y->dim[0];
    if (k != s->k && dim_is_const(k) && dim_is_const(s->k)) return false;
    if (dim_is_const(k)) s->k = k;
    return type_broadcast(&s->batch, &s->x, &s->y);
}

// Products of unsigned by signed bytes are summed in i32, exactly; of signed ones, and i16 by i8, where wide=1 says so.
static bool is_bytes(const Node *n) {
    DType x = n->in[0]->type.dtype;
    return n->in[1]->type.dtype == DT_I8 && (x == DT_U8 || ((x == DT_I8 || x == DT_I16) && node_int(n, "wide", 0)));
}

bool shape_matmul(Node *n) {
    const Type *x = &n->in[0]->type, *y = &n->in[1]->type;
    MatShape s;
    if (!op_numeric(n, n->in[0]) || !op_numeric(n, n->in[1])) return false;
    if (x->dtype != y->dtype && !is_bytes(n)) {
        diag_error(n->loc, "cannot multiply %s by %s: cast one of them", value_type_text(n->in[0]),
            value_type_text(n->in[1]));
        return false;
    }
    if (!mat_shape(x, y, &s) || !dims_agree(n, x->dim[x->rank - 1], y->dim[y->rank > 1 ? y->rank - 2 : 0])
        || !dims_broadcast(n, &s.batch, &s.x, &s.y)) {
        diag_error(n->loc,
            "cannot multiply %s by %s: the first's last dimension must be the second's last but one, and batches "
            "must broadcast",
            value_type_text(n->in[0]), value_type_text(n->in[1]));
        return false;
    }
    Type t = s.batch;
    if (x->rank > 1) t.dim[t.rank++] = s.m;
    if (y->rank > 1) t.dim[t.rank++] = s.n;
    if (is_bytes(n)) t.dtype = DT_I32;
    n->out[0]->type = t;
    return true;
}

// Element strides of the batch axes of one operand inside the common batch, 0 where it broadcasts.
static void batch_strides(const Type *operand, const Type *batch, int64_t matrix, int64_t *stride) {
    int64_t step = matrix;
    int lead = batch->rank - operand->rank;
    for (int i = 0; i < lead; i++) stride[i] = 0;
    for (int i = operand->rank - 1; i >= 0; i--) {
        stride[lead + i] = operand->dim[i] == 1 ? 0 : step;
        step *= operand->dim[i];
    }
}

// ---------------------------------------------------------------- evaluation
// Numbers of a tensor widened for accumulation: doubles, or unsigned 64-bit integers whose wrapping is exact modulo
// the dtype.
typedef union Wide { double *f; uint64_t *u; void *p; } Wide;

static Wide widen(const Tensor *t) {
    int64_t n = type_count(&t->type);
    Wide w = { .p = scratch_new((size_t)n, 8) };
    if (dtype_is_float(t->type.dtype))
        for (int64_t i = 0; i < n; i++) w.f[i] = tensor_get_f(t, i);
    else
        for (int64_t i = 0; i < n; i++) w.u[i] = (uint64_t)tensor_get_i(t, i);
    return w;
}

static void narrow(Tensor *t, int64_t at, bool real, Wide row, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (real) tensor_set_f(t, at + i, row.f[i]);
        else tensor_set_i(t, at + i, (int64_t)row.u[i]);
    }
}

// row[i * row_step] += a * b[i * step]
static void accumulate(
    bool real, Wide row, int64_t row_at, Wide a, int64_t a_at, Wide b, int64_t b_at, int64_t step, int64_t n) {
    if (real)
        for (int64_t i = 0; i < n; i++) row.f[row_at + i] += a.f[a_at] * b.f[b_at + i * step];
    else
        for (int64_t i = 0; i < n; i++) row.u[row_at + i] += a.u[a_at] * b.u[b_at + i * step];
}

bool eval_matmul(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)n;
    MatShape s;
    if (!mat_shape(&in[0]->type, &in[1]->type, &s)) return false;
    bool real = dtype_is_float(in[0]->type.dtype);
    int64_t sx[MAX_RANK], sy[MAX_RANK], idx[MAX_RANK] = { 0 }, at = 0;
    if (type_count(&out[0]->type) == 0) return true;
    batch_strides(&s.x, &s.batch, s.m * s.k, sx);
    batch_strides(&s.y, &s.batch, s.k * s.n, sy);
    Wide x = widen(in[0]), y = widen(in[1]), row = { .p = scratch_new((size_t)s.n, 8) };
    do {
        int64_t bx = 0, by = 0;
        for (int i = 0; i < s.batch.rank; i++) {
            bx += idx[i] * sx[i];
            by += idx[i] * sy[i];
        }
        for (int64_t m = 0; m < s.m; m++, at += s.n) {
            memset(row.p, 0, (size_t)s.n * 8);
            for (int64_t k = 0; k < s.k; k++) accumulate(real, row, 0, x, bx + m * s.k + k, y, by + k * s.n, 1, s.n);
            narrow(out[0], at, real, row, s.n);
        }
    } while (index_next(s.batch.rank, s.batch.dim, idx));
    free(x.p);
    free(y.p);
    free(row.p);
    return true;
}

// ---------------------------------------------------------------- MatMul: gradient and lowering
static Value *swap_last(Graph *g, Value *x) {
    if (!x) return NULL;
    int perm[MAX_RANK], r = x->type.rank;
    for (int i = 0; i < r; i++) perm[i] = i;
    perm[r - 2] = r - 1;
    perm[r - 1] = r - 2;
    return b_transpose(g, x, perm);
}

static Value *as_matrix(Graph *g, Value *x, Dim rows, Dim columns) {
    return b_reshape(g, x, 2, (Dim[]){ rows, columns });
}

// A weight shared by the whole batch: one product over batch and rows together instead of a sum of products.
static Value *shared_weight_gradient(Graph *g, Value *x, Value *dy, const MatShape *s) {
    Dim rows = s->m;
    for (int i = 0; i < s->batch.rank; i++) rows = dim_mul(g, rows, s->batch.dim[i]);
    x = as_matrix(g, x, rows, s->k);
    dy = as_matrix(g, dy, rows, s->n);
    return b_matmul(g, swap_last(g, x), dy);
}

bool grad_matmul(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    Value *x = n->in[0], *y = n->in[1], *dy = dout[0];
    const Type *tx = &x->type, *ty = &y->type;
    MatShape s;
    if (!mat_shape(tx, ty, &s)) return false;
    Type full = s.batch;                                // dy as [batch..., m, n]
    full.dim[full.rank++] = s.m;
    full.dim[full.rank++] = s.n;
    if (tx->rank == 1 || ty->rank == 1) dy = b_reshape(g, dy, full.rank, full.dim);
    Value *mx = tx->rank == 1 ? as_matrix(g, x, 1, s.k) : x, *my = ty->rank == 1 ? as_matrix(g, y, s.k, 1) : y;
    if (!dy || !mx || !my) return false;
    Value *dx = b_sum_to(g, b_matmul(g, dy, swap_last(g, my)), &mx->type);
    Value *dw = my->type.rank == 2 && mx->type.rank > 2 ? shared_weight_gradient(g, mx, dy, &s)
                                                        : b_sum_to(g, b_matmul(g, swap_last(g, mx), dy), &my->type);
    din[0] = tx->rank == 1 ? b_reshape(g, dx, 1, tx->dim) : dx;
    din[1] = ty->rank == 1 ? b_reshape(g, dw, 1, ty->dim) : dw;
    return din[0] && din[1];
}

// sum over `axes` of x * y, of type d: in f32 for smaller floats
static Expr *product_sum(Lower *l, DType d, int n_axes, const int *axes, Expr *x, Expr *y) {
    if (!x || !y) return NULL;
    DType wide = dtype_wide(d);
    x = expr_cast(l->p, x, wide);
    y = expr_cast(l->p, y, wide);
    return expr_cast(l->p, expr_accumulate(l, RED_SUM, n_axes, axes, expr_binary(l->p, E_Mul, x, y)), d);
}

Expr *lower_matmul(Lower *l, Node *n, int out, Expr *const *idx) {
    const Type *x = &n->in[0]->type, *y = &n->in[1]->type, *t = &n->out[out]->type;
    MatShape s;
    if (!mat_shape(x, y, &s)) return NULL;
    if (s.k == 0) return expr_zero(l->p, t->dtype);
    Expr *ix[MAX_RANK], *iy[MAX_RANK], *zero = expr_index(l->p, 0), *k = lower_axis(l, s.k, true);
    for (int i = 0; i < s.x.rank; i++) ix[i] = s.x.dim[i] == 1 ? zero : idx[s.batch.rank - s.x.rank + i];
    for (int i = 0; i < s.y.rank; i++) iy[i] = s.y.dim[i] == 1 ? zero : idx[s.batch.rank - s.y.rank + i];
    if (x->rank > 1) ix[x->rank - 2] = idx[s.batch.rank];
    ix[x->rank - 1] = k;
    iy[y->rank > 1 ? y->rank - 2 : 0] = k;
    if (y->rank > 1) iy[y->rank - 1] = idx[t->rank - 1];
    Expr *a = lower_load(l, n->in[0], ix), *b = lower_load(l, n->in[1], iy);
    int number = k->op == E_Axis ? (int)k->c.i : 0;
    return product_sum(l, t->dtype, k->op == E_Axis, &number, a, b);
}

// ---------------------------------------------------------------- windows and convolutions: geometry
bool geometry_check(Node *n, int spatial, const int64_t *kernel) {
    static const struct {
        const char *name;
        int times;
        int64_t least;
    } attrs[] = { { "strides", 1, 1 }, { "dilations", 1, 1 }, { "pads", 2, 0 } };
    for (size_t a = 0; a < COUNT(attrs); a++) {
        const int64_t *v;
        if (!node_attr(n, attrs[a].name)) continue;
        if (!op_ints(n, attrs[a].name, attrs[a].times * spatial, &v)) return false;
        for (int i = 0; i < attrs[a].times * spatial; i++)
            if (v[i] < attrs[a].least || v[i] > INT32_MAX) {
                diag_error(n->loc, "%s must be %lld or more, one is %lld", attrs[a].name, (long long)attrs[a].least,
                    (long long)v[i]);
                return false;
            }
    }
    for (int i = 0; i < spatial; i++)
        if (kernel[i] < 1 || kernel[i] > INT32_MAX) {
            diag_error(n->loc, "kernel of spatial axis %d is %lld wide", i, (long long)kernel[i]);
            return false;
        }
    return true;
}

// same=1 (2): padding by which ceil(size / stride) windows fit, half of it before, rounded down (up). It is none where
// windows lie apart and the last one ends before the image does: a sum is max(t, 0) = t * floor((t + stride) / stride)
// for t of -stride .. stride - 1.
static void same_pads(const Node *n, Geometry *w, int i) {
    Graph *g = n->graph;
    Dim d = n->in[0]->type.dim[spatial_axis(n) + i],
        last = dim_mul(g, dim_sub(g, dim_ceil_div(g, d, w->stride[i]), 1), w->stride[i]);
    int64_t extent = w->dilation[i] * (w->kernel[i] - 1) + 1;
    if (dim_is_const(d) && (d == 0 || last + extent < d)) last = d - extent;
    Dim total = dim_is_const(d) ? last + extent - d : dim_sub(g, dim_add(g, last, extent), d);
    if (!dim_is_const(d) && extent < w->stride[i])
        total = dim_mul(g, total, dim_div(g, dim_add(g, total, w->stride[i]), w->stride[i]));
    w->lo[i] = dim_div(g, node_int(n, "same", 0) == 1 ? total : dim_add(g, total, 1), 2);
    w->hi[i] = dim_sub(g, total, w->lo[i]);
}

Geometry geometry_of(const Node *n, int spatial, const int64_t *kernel) {
    Geometry w = { .spatial = spatial, .ceil = node_int(n, "ceil_mode", 0) != 0 };
    int64_t pads[2 * MAX_RANK];
    op_ints_or(n, "strides", spatial, 1, w.stride);
    op_ints_or(n, "dilations", spatial, 1, w.dilation);
    op_ints_or(n, "pads", 2 * spatial, 0, pads);
    for (int i = 0; i < spatial; i++) {
        w.kernel[i] = kernel[i];
        w.lo[i] = pads[i];
        w.hi[i] = pads[spatial + i];
        if (node_int(n, "same", 0)) same_pads(n, &w, i);
    }
    return w;
}

bool geometry_out(Node *n, const Geometry *w, int i, Dim d, Dim *out) {
    Graph *g = n->graph;
    const int64_t reach = (w->kernel[i] - 1) * w->dilation[i];
    int64_t spare = w->lo[i] + w->hi[i] - reach - 1, s = w->stride[i];
    if (node_int(n, "same", 0) && !dim_is_const(d)) {
        *out = dim_ceil_div(g, d, s);
        return true;
    }
    if (!dim_is_const(d)) {
        // ceil_mode: no window starts beyond the input
        int64_t more = !w->ceil ? spare : spare + s < w->lo[i] ? spare + s - 1 : w->lo[i] - 1;
        *out = dim_add(g, dim_div(g, dim_offset(g, d, more), s), 1);
        return true;
    }
    if (d + spare < 0) {
        diag_error(n->loc, "kernel of spatial axis %d reaches over %lld, more than input %s with its padding of %lld",
            i, (long long)reach + 1, value_type_text(n->in[0]), (long long)(w->lo[i] + w->hi[i]));
        return false;
    }
    int64_t count = (d + spare + (w->ceil ? s - 1 : 0)) / s + 1;
    // a window that starts beyond the input is none
    if (w->ceil && (count - 1) * s >= d + w->lo[i]) count--;
    *out = count;
    return true;
}

// ---------------------------------------------------------------- Conv: shape
bool shape_conv(Node *n) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    int64_t group = node_int(n, "group", 1);
    if (!op_numeric(n, n->in[0]) || (x->dtype != w->dtype && !is_bytes(n)) || x->rank < 3 || x->rank != w->rank) {
        diag_error(n->loc, "input and weight must be one dtype and %s with [out,in,...], they are %s and %s",
            node_int(n, "channels_last", 0) ? "[n,...,c]" : "[n,c,...]", value_type_text(n->in[0]),
            value_type_text(n->in[1]));
        return false;
    }
    int spatial = x->rank - 2, channel = channel_axis(n, x->rank), first = spatial_axis(n);
    for (int i = 0; i < w->rank; i++)
        if (!op_static(n, w->dim[i], "a convolution's weight size")) return false;
    if (!geometry_check(n, spatial, w->dim + 2)) return false;
    if (group < 1 || group > INT32_MAX || w->dim[1] > INT64_MAX / group) {
        diag_error(n->loc, "%lld groups of %lld channels are impossible", (long long)group, (long long)w->dim[1]);
        return false;
    }
    if (w->dim[0] % group || !dims_agree(n, x->dim[channel], w->dim[1] * group)) {
        diag_error(n->loc, "weight %s in %lld groups wants %lld input channels, input is %s",
            value_type_text(n->in[1]), (long long)group, (long long)(w->dim[1] * group), value_type_text(n->in[0]));
        return false;
    }
    Geometry geo = geometry_of(n, spatial, w->dim + 2);
    Type t = *x;
    if (is_bytes(n)) t.dtype = DT_I32;
    t.dim[channel] = w->dim[0];
    for (int i = 0; i < spatial; i++)
        if (!geometry_out(n, &geo, i, x->dim[first + i], &t.dim[first + i])) return false;
    n->out[0]->type = t;
    return true;
}

// ---------------------------------------------------------------- Conv: evaluation
// The outputs o for which o * stride + offset is inside 0..size-1
static void valid_range(int64_t offset, int64_t stride, int64_t size, int64_t out, int64_t *first, int64_t *last) {
    *first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    *last = offset < size ? (size - 1 - offset) / stride + 1 : 0;
    if (*last > out) *last = out;
}

typedef struct ConvEval { Geometry geo; bool real; Wide x, w, acc; const Type *xt, *yt; int64_t taps; } ConvEval;

// acc[out spatial] += w[tap] * x[plane], over all taps of one kernel plane; rows along the last axis.
static void conv_plane(const ConvEval *c, int64_t x_at, int64_t w_at) {
    int r = c->geo.spatial, last = r - 1;
    const int64_t *in = c->xt->dim + 2, *out = c->yt->dim + 2;
    int64_t k[MAX_RANK] = { 0 };
    for (int64_t tap = 0; tap < c->taps; tap++, index_next(r, c->geo.kernel, k)) {
        int64_t o[MAX_RANK] = { 0 }, first, end, offset = k[last] * c->geo.dilation[last] - c->geo.lo[last], row = 0;
        valid_range(offset, c->geo.stride[last], in[last], out[last], &first, &end);
        do {
            int64_t at = 0;
            bool inside = first < end;
            for (int i = 0; i < last; i++) {
                int64_t p = o[i] * c->geo.stride[i] + k[i] * c->geo.dilation[i] - c->geo.lo[i];
                inside = inside && p >= 0 && p < in[i];
                at = at * in[i] + p;
            }
            if (inside)
                accumulate(c->real, c->acc, row + first, c->w, w_at + tap, c->x,
                    x_at + at * in[last] + first * c->geo.stride[last] + offset, c->geo.stride[last], end - first);
            row += out[last];
        } while (index_next(last, out, o));
    }
}

static bool eval_conv_first(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *x = &in[0]->type, *w = &in[1]->type, *y = &out[0]->type;
    int64_t group = node_int(n, "group", 1), per_group = w->dim[0] / group, in_plane = 1, out_plane = 1;
    ConvEval c = {
        .geo = geometry_of(n, x->rank - 2, w->dim + 2), .real = dtype_is_float(x->dtype), .xt = x, .yt = y, .taps = 1
    };
    for (int i = 2; i < x->rank; i++) {
        in_plane *= x->dim[i];
        out_plane *= y->dim[i];
        c.taps *= w->dim[i];
    }
    if (type_count(y) == 0) return true;
    c.x = widen(in[0]);
    c.w = widen(in[1]);
    c.acc.p = scratch_new((size_t)out_plane, 8);
    for (int64_t b = 0; b < x->dim[0]; b++)
        for (int64_t oc = 0; oc < w->dim[0]; oc++) {
            memset(c.acc.p, 0, (size_t)out_plane * 8);
            for (int64_t ic = 0; ic < w->dim[1]; ic++)
                conv_plane(
                    &c, (b * x->dim[1] + oc / per_group * w->dim[1] + ic) * in_plane, (oc * w->dim[1] + ic) * c.taps);
            narrow(out[0], (b * w->dim[0] + oc) * out_plane, c.real, c.acc, out_plane);
        }
    free(c.x.p);
    free(c.w.p);
    free(c.acc.p);
    return true;
}

bool eval_conv(const Node *n, Tensor *const *in, Tensor *const *out) {
    if (node_int(n, "fill", 0)) return false;           // of quantised images, which are no constants
    return node_int(n, "channels_last", 0) ? eval_channels_last(n, in, out, eval_conv_first) :
                                             eval_conv_first(n, in, out);
}

// ---------------------------------------------------------------- Conv: gradient

static Value *conv_input_gradient(Node *n, Value *dy, const Geometry *geo) {
    ConvBack c = { .spatial = geo->spatial, .group = node_int(n, "group", 1) };
    for (int i = 0; i < geo->spatial; i++) {
        c.size[i] = n->in[0]->type.dim[2 + i];
        c.stride[i] = geo->stride[i];
        c.dilation[i] = geo->dilation[i];
        c.pad[i] = geo->lo[i];
    }
    return b_conv_back(n->graph, &c, dy, n->in[1]);
}

// Kernels have fixed sizes, and here the batch is part of one: a batch whose size the run says goes in with images of
// zeros up to the largest.
static Value *fixed_batch(Graph *g, Value *x) {
    Dim n = x->type.dim[0];
    return dim_is_const(n) ? x : b_take(g, x, 0, NULL, NULL, dim_upper(graph_root(g), n));
}

static Value *conv_weight_gradient(Node *n, Value *x, Value *dy, const Geometry *geo) {
    Graph *g = n->graph;
    const Type *tx = &x->type, *w = &n->in[1]->type, *y = &dy->type;
    int64_t hi[MAX_RANK], zero[MAX_RANK] = { 0 }, group = node_int(n, "group", 1);
    int swap[MAX_RANK];
    for (int i = 0; i < tx->rank; i++) swap[i] = i < 2 ? 1 - i : i;
    for (int i = 0; i < geo->spatial; i++)              // exactly the kernel's extent comes out
        hi[i] = geo->dilation[i] * (geo->kernel[i] - 1) + geo->stride[i] * (y->dim[2 + i] - 1) + 1 - tx->dim[2 + i]
            - geo->lo[i];
    if (group == 1) {
        x = b_transpose(g, x, swap);
    } else {                                            // [n, g*c, p] -> [c, g*n, p]
        Dim plane = 1, dims[MAX_RANK];
        for (int i = 2; i < tx->rank; i++) {
            plane *= tx->dim[i];
            dims[i] = tx->dim[i];
        }
        x = b_reshape(g, x, 4, (Dim[]){ tx->dim[0], group, w->dim[1], plane });
        x = b_transpose(g, x, (int[]){ 2, 1, 0, 3 });
        dims[0] = w->dim[1];
        dims[1] = dim_mul(g, group, tx->dim[0]);
        x = b_reshape(g, x, tx->rank, dims);
    }
    Value *kernel = b_transpose(g, dy, swap);
    Value *dw = b_conv_padded(g, x, kernel, geo->lo, hi, zero, geo->dilation, geo->stride, group);
    return b_transpose(g, dw, swap);
}

// A convolution by one point is a product over all pixels, and so are its gradients: a window as large as the map
// would be none that a kernel is for, and zeros between the pixels that a stride leaves out would be multiplied.
static bool is_point(const Node *n, const Geometry *geo) {
    for (int i = 0; i < geo->spatial; i++)
        if (geo->kernel[i] != 1 || geo->lo[i] || geo->hi[i]) return false;
    return node_int(n, "group", 1) == 1;
}

// [n,c,...] as rows of channels
static Value *pixel_rows(Graph *g, Value *x) {
    int perm[MAX_RANK] = { 0 };
    Dim pixels = x->type.dim[0], channels = x->type.dim[1];
    for (int i = 1; i < x->type.rank; i++) perm[i] = i + 1 < x->type.rank ? i + 1 : 1;
    for (int i = 2; i < x->type.rank; i++) pixels = dim_mul(g, pixels, x->type.dim[i]);
    return as_matrix(g, b_transpose(g, x, perm), pixels, channels);
}

static bool point_gradients(Node *n, Value *dy, const Geometry *geo, Value **din) {
    Graph *g = n->graph;
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type, *w = &n->in[1]->type;
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK] = { 1, 1 }, zero[MAX_RANK] = { 0 }, ones[MAX_RANK],
            after[MAX_RANK] = { 0 }, between[MAX_RANK] = { 0 };
    Type read = *x;
    for (int i = 0; i < geo->spatial; i++) {
        ones[i] = 1;
        steps[2 + i] = geo->stride[i];
        between[2 + i] = geo->stride[i] - 1;
        read.dim[2 + i] = y->dim[2 + i];
        after[2 + i] = x->dim[2 + i] - ((y->dim[2 + i] - 1) * geo->stride[i] + 1);
    }
    Value *back = b_conv_backward_weight(g, n->in[1], 1);
    Value *dx = b_conv_padded(g, dy, back, zero, zero, zero, ones, ones, 1);
    din[0] = b_pad(g, dx, zero, after, between, NULL);
    Value *rows = pixel_rows(g, b_slice(g, n->in[0], starts, steps, read.dim));
    Value *turned = swap_last(g, pixel_rows(g, dy));
    din[1] = b_reshape(g, b_matmul(g, turned, rows), w->rank, w->dim);
    return din[0] && din[1];
}

static bool is_depthwise(const Node *n) {
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type;
    return node_int(n, "group", 1) == x->dim[1] && y->dim[1] == x->dim[1] && x->dim[1] > 1 && x->rank < 5;
}

// One more spatial axis, the batch: x and dy as one image [1,c,n,...], and dw = conv(x, dy) of each channel alone.
static Value *depthwise_weight_gradient(Node *n, Value *x, Value *dy, const Geometry *geo) {
    Graph *g = n->graph;
    const Type *tx = &x->type, *w = &n->in[1]->type, *y = &dy->type;
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 }, zero[MAX_RANK] = { 0 }, strides[MAX_RANK] = { 1 },
            dilations[MAX_RANK] = { 1 };
    int swap[MAX_RANK];
    Dim image[MAX_RANK] = { 1, tx->dim[1], tx->dim[0] }, taps[MAX_RANK] = { y->dim[1], 1, y->dim[0] };
    for (int i = 0; i < tx->rank; i++) swap[i] = i < 2 ? 1 - i : i;
    for (int i = 0; i < geo->spatial; i++) {
        lo[1 + i] = geo->lo[i];
        hi[1 + i] = geo->dilation[i] * (geo->kernel[i] - 1) + geo->stride[i] * (y->dim[2 + i] - 1) + 1 - tx->dim[2 + i]
            - geo->lo[i];
        strides[1 + i] = geo->dilation[i];
        dilations[1 + i] = geo->stride[i];
        image[3 + i] = tx->dim[2 + i];
        taps[3 + i] = y->dim[2 + i];
    }
    x = b_reshape(g, b_transpose(g, x, swap), tx->rank + 1, image);
    dy = b_reshape(g, b_transpose(g, dy, swap), tx->rank + 1, taps);
    return b_reshape(g, b_conv_padded(g, x, dy, lo, hi, zero, strides, dilations, tx->dim[1]), w->rank, w->dim);
}

bool grad_conv(Node *n, Value *const *dout, Value **din) {
    const Type *x = &n->in[0]->type;
    if (node_int(n, "channels_last", 0)) return grad_none(n, dout, din);
    for (int i = 1; i < x->rank; i++)
        if (!op_static(n, x->dim[i], "the input of a convolution that is differentiated")) return false;
    Geometry geo = geometry_of(n, x->rank - 2, n->in[1]->type.dim + 2);
    if (is_point(n, &geo)) return point_gradients(n, dout[0], &geo, din);
    din[0] = conv_input_gradient(n, dout[0], &geo);
    Value *all = fixed_batch(n->graph, n->in[0]), *dy = fixed_batch(n->graph, dout[0]);
    if (!all || !dy) return false;
    din[1] = is_depthwise(n) ? depthwise_weight_gradient(n, all, dy, &geo) : conv_weight_gradient(n, all, dy, &geo);
    return din[0] && din[1];
}

// ---------------------------------------------------------------- Conv: lowering
static Expr *fill_of(Lower *l, const Node *n) {
    int64_t fill = node_int(n, "fill", 0);
    DType d = n->in[0]->type.dtype;
    return fill ? expr_const_i(l->p, d, fill) : expr_zero(l->p, d);
}

Expr *lower_conv(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    Geometry geo = geometry_of(n, x->rank - 2, w->dim + 2);
    int64_t per_group = w->dim[0] / node_int(n, "group", 1);
    if (type_count(w) == 0) return expr_zero(l->p, n->out[0]->type.dtype);
    Expr *ix[MAX_RANK], *iw[MAX_RANK], *cond = NULL;
    int axes[MAX_RANK], count = 0, channel = channel_axis(n, x->rank), first = spatial_axis(n);
    iw[0] = idx[channel];
    iw[1] = lower_axis(l, w->dim[1], true);
    for (int i = 0; i < geo.spatial; i++) iw[2 + i] = lower_axis(l, geo.kernel[i], true);
    for (int i = 1; i < w->rank; i++)
        if (iw[i]->op == E_Axis) axes[count++] = (int)iw[i]->c.i;
    ix[0] = idx[0];
    ix[channel] = ix_add(l, ix_mulc(l, ix_divc(l, idx[channel], per_group), w->dim[1]), iw[1]);
    for (int i = 0; i < geo.spatial; i++) {
        Expr *start = ix_mulc(l, idx[first + i], geo.stride[i]), *step = ix_mulc(l, iw[2 + i], geo.dilation[i]);
        ix[first + i] = expr_binary(l->p, E_Sub, ix_add(l, start, step), lower_dim(l, geo.lo[i]));
        cond = ix_in_range(l, cond, ix[first + i], 0, x->dim[first + i]);
    }
    Expr *fill = fill_of(l, n);
    Expr *a = lower_guarded(l, n->in[0], ix, cond, fill), *b = lower_load(l, n->in[1], iw);
    return product_sum(l, n->out[0]->type.dtype, count, axes, a, b);
}

// ---------------------------------------------------------------- work
int64_t work_matmul(const Node *n) {
    const Type *x = &n->in[0]->type;
    return x->rank ? dim_upper(n->graph, x->dim[x->rank - 1]) : 1;
}

int64_t work_conv(const Node *n) {
    const Type *w = &n->in[1]->type;
    return w->rank && w->dim[0] ? type_count_upper(n->graph, w) / dim_upper(n->graph, w->dim[0]) : 1;
}

bool node_of_bytes(const Node *n) { return n->n_in == 2 && is_bytes(n); }
