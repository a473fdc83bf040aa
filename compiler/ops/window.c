// SPDX-License-Identifier: MIT OR Apache-2.0
// Sliding windows over the spatial axes of [n,c,...], or [n,...,c] with channels_last: WindowSum, WindowMax, and
// WindowArgMax, which says where the maximum was.
//
// Positions in the padding, or beyond it where ceil_mode adds a last partial window, count as the identity (0, -inf
// or the lowest integer). Lowered, a window is a reduction over kernel axes with guarded loads. Gradients: of a sum,
// dy repeated where windows lie side by side, else the window sum of dy spread by the stride; of a maximum, dy at the
// flat indices that WindowArgMax gives. WindowMaxGrad stands for that where a back end has a kernel of it; else, where
// few windows share an element, WindowSpread asks each of them.
#include "common.h"
#include "table.h"

// ---------------------------------------------------------------- shape (AveragePool's, too)
bool shape_window(Node *n) {
    const Type *x = &n->in[0]->type;
    const int64_t *kernel;
    int spatial = x->rank - 2, first = spatial_axis(n);
    if (!op_numeric(n, n->in[0])) return false;
    if (spatial < 1) {
        diag_error(n->loc, "wants [n,c,...] with at least one spatial axis, input is %s", value_type_text(n->in[0]));
        return false;
    }
    if (!op_ints(n, "kernel", spatial, &kernel) || !geometry_check(n, spatial, kernel)) return false;
    Geometry geo = geometry_of(n, spatial, kernel);
    Type t = *x;
    for (int i = 0; i < spatial; i++)
        if (!geometry_out(n, &geo, i, x->dim[first + i], &t.dim[first + i])) return false;
    if (n->op == OP_WindowArgMax) t.dtype = DT_I64;
    if (n->op == OP_WindowArgMax && first == 1) {
        diag_error(n->loc, "says where the maximum is in [n,c,...] only");
        return false;
    }
    n->out[0]->type = t;
    return true;
}

static Geometry window_geometry(const Node *n) {
    int count = 0;
    const int64_t *kernel = node_ints(n, "kernel", &count);
    return geometry_of(n, count, kernel);
}

// ---------------------------------------------------------------- evaluation
typedef struct Found { Scalar value; int64_t at; } Found;

// The window at output position `o` of the plane that starts at `base`.
static Found window_at(const Tensor *x, const Geometry *w, ReduceOp op, int64_t base, const int64_t *o) {
    DType d = x->type.dtype;
    const int64_t *in = x->type.dim + 2;
    int64_t k[MAX_RANK] = { 0 };
    Found f = { reduce_identity(op, d), -1 };
    do {
        int64_t at = 0;
        bool inside = true;
        for (int i = 0; i < w->spatial; i++) {
            int64_t p = o[i] * w->stride[i] + k[i] * w->dilation[i] - w->lo[i];
            inside = inside && p >= 0 && p < in[i];
            at = at * in[i] + p;
        }
        if (!inside) continue;
        Scalar e = element_get(x, base + at);
        if (f.at < 0 || element_less(d, f.value, e)) f.at = base + at;
        f.value = reduce_combine(op, d, f.value, e);
    } while (index_next(w->spatial, w->kernel, k));
    if (f.at < 0) f.at = base;                          // only padding
    return f;
}

static bool eval_window_first(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *x = &in[0]->type, *y = &out[0]->type;
    Geometry w = window_geometry(n);
    ReduceOp op = op_table[n->op].reduce;
    int64_t plane = 1, at = 0;
    for (int i = 2; i < x->rank; i++) plane *= x->dim[i];
    if (type_count(y) == 0) return true;
    for (int64_t c = 0; c < x->dim[0] * x->dim[1]; c++) {
        int64_t o[MAX_RANK] = { 0 };
        do {
            Found f = window_at(in[0], &w, op, c * plane, o);
            if (n->op == OP_WindowArgMax) tensor_set_i(out[0], at++, f.at);
            else element_set(out[0], at++, f.value);
        } while (index_next(w.spatial, y->dim + 2, o));
    }
    return true;
}

bool eval_window(const Node *n, Tensor *const *in, Tensor *const *out) {
    return node_int(n, "channels_last", 0) ? eval_channels_last(n, in, out, eval_window_first) :
                                             eval_window_first(n, in, out);
}

// ---------------------------------------------------------------- gradients
// Do windows lie side by side, so that each element is in one at most?
static bool side_by_side(const Geometry *w) {
    bool all = 2 + 2 * w->spatial <= MAX_RANK;
    for (int i = 0; i < w->spatial; i++) all = all && w->stride[i] == w->kernel[i] && w->dilation[i] == 1;
    return all;
}

// dy, which every element of a window gets, in memory: a map over it, such as the mask of a rectifier, would go in
// pieces of a window's width or of few channels, where C compilers branch at each condition. Static spatial sizes.
static Value *repeated(Node *n, const Geometry *w, Value *dy) {
    Graph *g = n->graph;
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type;
    Dim one[MAX_RANK] = { y->dim[0], y->dim[1] }, each[MAX_RANK] = { y->dim[0], y->dim[1] },
        whole[MAX_RANK] = { y->dim[0], y->dim[1] };
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    for (int i = 0; i < w->spatial; i++) {
        one[2 + 2 * i] = each[2 + 2 * i] = y->dim[2 + i];
        one[3 + 2 * i] = 1;
        each[3 + 2 * i] = w->kernel[i];
        whole[2 + i] = y->dim[2 + i] * w->kernel[i];
        lo[2 + i] = -w->lo[i];
        hi[2 + i] = x->dim[2 + i] + w->lo[i] - whole[2 + i];
    }
    dy = b_expand(g, b_reshape(g, dy, 2 + 2 * w->spatial, one), 2 + 2 * w->spatial, each);
    return b_stored(g, b_pad(g, b_reshape(g, dy, x->rank, whole), lo, hi, NULL, NULL));
}

bool grad_window_sum(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    if (node_int(n, "channels_last", 0)) return grad_none(n, dout, din);
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type;
    Geometry w = window_geometry(n);
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 }, interior[MAX_RANK] = { 0 };
    for (int i = 0; i < w.spatial; i++) {               // dx[i] = sum over k of spread dy[i + dilation * k]
        if (!op_static(n, x->dim[2 + i], "a spatial axis whose window sum is differentiated")) return false;
        int64_t reach = w.dilation[i] * (w.kernel[i] - 1);
        lo[2 + i] = reach - w.lo[i];
        hi[2 + i] = x->dim[2 + i] + reach - lo[2 + i] - ((y->dim[2 + i] - 1) * w.stride[i] + 1);
        interior[2 + i] = w.stride[i] - 1;
    }
    if (side_by_side(&w)) {
        din[0] = repeated(n, &w, dout[0]);
        return din[0] != NULL;
    }
    Value *dy = b_pad(g, dout[0], lo, hi, interior, NULL);
    if (!dy) return false;
    Node *s = graph_node(g, OP_WindowSum, 1, &dy, 1);
    node_set_ints(s, "kernel", w.kernel, w.spatial);
    node_set_ints(s, "dilations", w.dilation, w.spatial);
    din[0] = s->out[0];
    return node_infer(s);
}

static Value *where_maximal(Node *n) {
    Graph *g = n->graph;
    Node *a = graph_node(g, OP_WindowArgMax, 1, n->in, 1);
    for (int i = 0; i < n->n_attrs; i++) {
        const Attr *t = &n->attrs[i];
        if (t->kind == ATTR_INT) node_set_int(a, t->name, t->i);
        else if (t->kind == ATTR_INTS) node_set_ints(a, t->name, t->ints, t->n);
    }
    return b_finish(a);
}

// dy at the maxima of n's windows over its first operand. passes/recognise.c knows it as it is made here.
static Value *at_maxima(Node *n, Value *dy) {
    Graph *g = n->graph;
    const Type *x = &n->in[0]->type;
    Dim total = type_size(g, x), count = type_size(g, &dy->type);
    Type flat = type_make(x->dtype, 1, &total);
    Value *at = b_reshape(g, where_maximal(n), 1, &count);
    dy = b_reshape(g, dy, 1, &count);
    Value *dx = b_scatter_elements(g, b_full(g, &flat, 0), at, dy, 0, "add");
    return b_reshape(g, dx, x->rank, x->dim);
}

bool grad_window_max(Node *n, Value *const *dout, Value **din) {
    if (node_int(n, "channels_last", 0)) return grad_none(n, dout, din);
    din[0] = at_maxima(n, dout[0]);
    return din[0] != NULL;
}

bool shape_window_max_grad(Node *n) {
    const Type *x = &n->in[0]->type, *dy = &n->in[1]->type;
    if (!shape_window(n)) return false;                 // out: what the windows' maxima are
    if (!type_equal(dy, &n->out[0]->type)) {
        diag_error(n->loc, "the windows' maxima are %s, their gradient %s",
            type_text(n->graph->arena, n->graph, &n->out[0]->type), value_type_text(n->in[1]));
        return false;
    }
    n->out[0]->type = *x;
    return true;
}

// ---------------------------------------------------------------- dy to where its window says
// How many windows of an axis an element may be in.
static int64_t windows_over(const Geometry *w, int i) {
    return ceil_div(w->dilation[i] * (w->kernel[i] - 1) + 1, w->stride[i]);
}

static Geometry spread_geometry(const Node *n) {
    Geometry w = { 0 };
    int count;
    const int64_t *kernel = node_ints(n, "kernel", &w.spatial), *stride = node_ints(n, "strides", &count),
                  *dilation = node_ints(n, "dilations", &count), *before = node_ints(n, "before", &count);
    for (int i = 0; i < w.spatial; i++) {
        w.kernel[i] = kernel[i];
        w.stride[i] = stride[i];
        w.dilation[i] = dilation[i];
        w.lo[i] = before[i];
    }
    return w;
}

bool shape_window_spread(Node *n) {
    static const char *const of_axes[] = { "kernel", "strides", "dilations", "before", "sizes" };
    const Type *at = &n->in[0]->type, *dy = &n->in[1]->type;
    const int64_t *ints[COUNT(of_axes)];
    const int spatial = dy->rank - 2;
    bool same = spatial > 0 && at->rank == dy->rank && at->dtype == DT_I64 && op_numeric(n, n->in[1]);
    for (int i = 0; same && i < dy->rank; i++) same = dim_equal(n->graph, at->dim[i], dy->dim[i]);
    if (!same) {
        diag_error(n->loc, "wants i64 indices and numbers of one shape [n,c,...], not %s and %s",
            value_type_text(n->in[0]), value_type_text(n->in[1]));
        return false;
    }
    for (size_t i = 0; i < COUNT(of_axes); i++) {
        if (!op_ints(n, of_axes[i], spatial, &ints[i])) return false;
        for (int k = 0; k < spatial; k++)
            if (ints[i][k] >= (i != 3)) continue;
            else return diag_error(n->loc, "%s has %lld", of_axes[i], (long long)ints[i][k]), false;
    }
    n->out[0]->type = *dy;
    for (int i = 0; i < spatial; i++) n->out[0]->type.dim[2 + i] = ints[4][i];
    return true;
}

bool eval_window_spread(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)n;
    const DType d = out[0]->type.dtype;
    const int64_t total = type_count(&out[0]->type);
    for (int64_t i = 0; i < total; i++) element_set(out[0], i, reduce_identity(RED_SUM, d));
    for (int64_t i = 0; i < type_count(&in[1]->type); i++) {
        const int64_t at = element_get(in[0], i).i;
        if (at < 0 || at >= total) continue;
        element_set(out[0], at, reduce_combine(RED_SUM, d, element_get(out[0], at), element_get(in[1], i)));
    }
    return true;
}

// -1 is nowhere; of a gather it would be the last.
bool grad_window_spread(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    const Type *dy = &n->in[1]->type;
    const Dim count = type_size(g, dy), total = type_size(g, &dout[0]->type);
    Value *flat = b_reshape(g, dout[0], 1, &total), *places = b_reshape(g, n->in[0], 1, &count);
    Value *taken = b_gather_elements(g, flat, places, 0);
    taken = taken ? b_reshape(g, taken, dy->rank, dy->dim) : NULL;
    din[1] = B_MAP(g, "x < 0 ? 0 : y", "x y", n->in[0], taken);
    return din[1] != NULL;
}

// The windows in their order, so that sums are those of a scatter.
Expr *lower_window_spread(Lower *l, Node *n, int out, Expr *const *idx) {
    const Type *dy = &n->in[1]->type;
    const Geometry w = spread_geometry(n);
    Expr *at[MAX_RANK] = { idx[0], idx[1] }, *cond = NULL;
    int axes[MAX_RANK], count = 0;
    for (int i = 0; i < w.spatial; i++) {
        const int64_t over = windows_over(&w, i), there = dy->dim[2 + i];
        const bool all = over >= there;
        Expr *k = lower_axis(l, all ? there : over, true);
        if (k->op == E_Axis) axes[count++] = (int)k->c.i;
        Expr *last = ix_divc(l, ix_addc(l, idx[2 + i], w.lo[i]), w.stride[i]);
        at[2 + i] = all ? k : ix_add(l, ix_addc(l, last, 1 - over), k);
        cond = ix_in_range(l, cond, at[2 + i], 0, there);
    }
    Expr *here = expr_cast(l->p, lower_flat(l, &n->out[out]->type, idx), DT_I64),
         *none = expr_const_i(l->p, DT_I64, -1), *zero = expr_zero(l->p, dy->dtype);
    Expr *theirs = lower_guarded(l, n->in[0], at, cond, none), *value = lower_guarded(l, n->in[1], at, cond, zero);
    if (!theirs || !value) return NULL;
    return expr_accumulate(l, RED_SUM, count, axes,
        expr_select(l->p, expr_binary(l->p, E_Eq, theirs, here), value, zero));
}

int64_t work_window_spread(const Node *n) {
    const Geometry w = spread_geometry(n);
    int64_t work = 1;
    for (int i = 0; i < w.spatial; i++) work *= min64(windows_over(&w, i), n->in[1]->type.dim[2 + i]);
    return work;
}

// dy to the maxima of n's windows, asked for by each element; NULL: sizes are not known, or too many windows share one.
static Value *asked_for(Node *n, Value *dy) {
    enum { MOST_WINDOWS = 32 };
    Graph *g = n->graph;
    const Type *x = &n->in[0]->type;
    const Geometry w = window_geometry(n);
    int64_t windows = 1;
    for (int i = 0; i < w.spatial; i++) {
        const bool known = dim_is_const(x->dim[2 + i]) && x->dim[2 + i] > 0 && dim_is_const(dy->type.dim[2 + i])
            && dy->type.dim[2 + i] > 0 && dim_is_const(w.lo[i]);
        if (!known || (windows *= min64(windows_over(&w, i), dy->type.dim[2 + i])) > MOST_WINDOWS) return NULL;
    }
    // in memory: each is asked for by several
    Value *at = where_maximal(n), *kept = at ? b_stored(g, at) : NULL;
    if (!kept) return NULL;
    Node *s = graph_node(g, OP_WindowSpread, 2, (Value *[]){ kept, dy }, 1);
    node_set_ints(s, "kernel", w.kernel, w.spatial);
    node_set_ints(s, "strides", w.stride, w.spatial);
    node_set_ints(s, "dilations", w.dilation, w.spatial);
    node_set_ints(s, "before", w.lo, w.spatial);
    node_set_ints(s, "sizes", x->dim + 2, w.spatial);
    return b_finish(s);
}

bool expand_window_max_grad(Node *n, Value **out) {
    if (node_int(n, "channels_last", 0)) {
        diag_error(n->loc, "is made of other operations in [n,c,...] only");
        return false;
    }
    out[0] = asked_for(n, n->in[1]);
    if (!out[0]) out[0] = at_maxima(n, n->in[1]);
    return out[0] != NULL;
}

// ---------------------------------------------------------------- lowering
Expr *lower_window(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *x = &n->in[0]->type;
    Geometry w = window_geometry(n);
    ReduceOp op = op_table[n->op].reduce;
    Expr *at[MAX_RANK] = { idx[0] }, *near[MAX_RANK] = { idx[0] }, *cond = NULL;
    int axes[MAX_RANK], count = 0, channel = channel_axis(n, x->rank), first = spatial_axis(n);
    at[channel] = near[channel] = idx[channel];
    for (int i = 0; i < w.spatial; i++) {
        Expr *k = lower_axis(l, w.kernel[i], true), *p;
        if (k->op == E_Axis) axes[count++] = (int)k->c.i;
        p = ix_mulc(l, idx[first + i], w.stride[i]);
        p = expr_binary(l->p, E_Sub, ix_add(l, p, ix_mulc(l, k, w.dilation[i])), lower_dim(l, w.lo[i]));
        cond = ix_in_range(l, cond, p, 0, x->dim[first + i]);
        at[first + i] = near[first + i] = p;
        if (p->lo < 0) near[first + i] = expr_binary(l->p, E_Max, near[first + i], expr_index(l->p, 0));
        Dim size = x->dim[first + i];
        if (!dim_is_const(size) || p->hi >= size)
            near[first + i] = expr_binary(l->p, E_Min, near[first + i], ix_addc(l, lower_dim(l, size), -1));
    }
    Expr *body = lower_guarded(l, n->in[0], at, cond, expr_identity(l->p, x->dtype, op));
    if (!body) return NULL;
    if (n->op != OP_WindowArgMax) return expr_accumulate(l, op, count, axes, body);
    // of padding: the nearest element, so that an index is never outside
    Expr *flat = lower_flat(l, x, near);
    return expr_cast(l->p, count ? expr_reduce(l->p, RED_ARGMAX_FIRST, count, axes, body, flat) : flat, DT_I64);
}

int64_t work_window(const Node *n) {
    int count;
    int64_t work = 1;
    const int64_t *kernel = node_ints(n, "kernel", &count);
    for (int i = 0; i < count; i++) work = kernel[i] > 0 && work > INT64_MAX / kernel[i] ? INT64_MAX : work * kernel[i];
    return work;
}
