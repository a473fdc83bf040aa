// SPDX-License-Identifier: MIT OR Apache-2.0
// Normalisation composites: y = (x - mean) * rstd * scale + bias with rstd = 1 / sqrt(var + epsilon), where mean and
// var come with the model (BatchNorm) or from x over some axes. f16 and bf16 compute in f32 and are rounded once.
#include "common.h"
#include "table.h"

// The mean over axes first..last-1, which stay as 1
static Value *mean_kept(Graph *g, Value *x, int first, int last) {
    if (!x) return NULL;
    int64_t axes[MAX_RANK] = { 0 };
    for (int i = first; i < last; i++) axes[i - first] = i;
    return b_mean(g, x, last - first, axes, true);
}

static Value *rstd(Node *n, Value *var) {
    Graph *g = n->graph;
    return b_unary(g, OP_Rsqrt, b_binary(g, OP_Add, var, b_like(g, var, node_float(n, "epsilon", 1e-5))));
}

// (x - mean) * rstd over the axes first..last-1
static Value *standardize(Node *n, Value *x, int first, int last) {
    Graph *g = n->graph;
    Value *d = b_binary(g, OP_Sub, x, mean_kept(g, x, first, last));
    Value *var = mean_kept(g, b_unary(g, OP_Square, d), first, last);
    return b_binary(g, OP_Mul, d, rstd(n, var));
}

// A parameter per channel [c] as [c,1,...], so that it broadcasts against [n,c,...]; of x's working dtype.
static Value *per_channel(Node *n, Value *p, const Value *x) {
    if (!p || !x) return NULL;
    const Type *t = &n->in[0]->type;
    Dim dims[MAX_RANK], channels = t->rank > 1 ? t->dim[1] : 1;
    if (p->type.rank != 1 || !dims_agree(n, p->type.dim[0], channels)) {
        diag_error(n->loc, "a parameter is %s but %s has %s channels", value_type_text(p), value_type_text(n->in[0]),
            dim_text(n->graph->arena, n->graph, channels));
        return NULL;
    }
    int rank = t->rank > 1 ? t->rank - 1 : 1;
    for (int i = 0; i < rank; i++) dims[i] = i ? 1 : p->type.dim[0];
    return b_cast(n->graph, b_reshape(n->graph, p, rank, dims), x->type.dtype);
}

// Parameters are stretched to y, never y to them.
static bool stretches(Node *n, const Value *y, const Value *p) {
    const Type *t = &y->type, *u = &p->type;
    bool ok = u->rank <= t->rank;
    for (int i = 0; ok && i < u->rank; i++) {
        Dim has = t->dim[t->rank - u->rank + i], wants = u->dim[i];
        ok = !dim_is_const(wants) || wants == 1 || !dim_is_const(has) || wants == has;
    }
    if (!ok) diag_error(n->loc, "a parameter is %s, which does not fit %s", value_type_text(p), value_type_text(y));
    return ok;
}

static Value *scaled(Node *n, Value *y, Value *scale, Value *bias) {
    if (!y || !scale || !stretches(n, y, scale) || (bias && !stretches(n, y, bias))) return NULL;
    y = b_binary(n->graph, OP_Mul, y, scale);
    return bias ? b_binary(n->graph, OP_Add, y, bias) : y;
}

// x * a + b with a = scale * rstd and b = bias - mean * a, which fold into constants and then into a convolution
// before them.
bool expand_batch_norm(Node *n, Value **out) {
    Graph *g = n->graph;
    Value *x = b_wide(g, n->in[0]), *p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = per_channel(n, n->in[1 + i], x);
        if (!p[i]) return false;
    }
    Value *a = b_binary(g, OP_Mul, p[0], rstd(n, p[3]));
    Value *b = b_binary(g, OP_Sub, p[1], b_binary(g, OP_Mul, p[2], a));
    return expand_done(n, scaled(n, x, a, b), out);
}

bool shape_batch_norm_training(Node *n) {
    const Type *t = &n->in[0]->type;
    Dim channels = t->rank > 1 ? t->dim[1] : 1;
    n->out[0]->type = *t;
    for (int i = 1; i < 3; i++) n->out[i]->type = type_make(dtype_wide(t->dtype), 1, &channels);
    return true;
}

static Value *still(Graph *g, Value *v) {
    if (!v) return NULL;
    Node *n = graph_node(g, OP_Identity, 1, &v, 1);
    node_set_int(n, "stop_gradient", 1);
    return b_finish(n);
}

// By mean and variance of the batch. Two things are hidden from differentiation, so that all that the gradient sums
// over the batch is dy and dy * (x - mean), and what follows is dx = dy * a + (x - mean) * b + c with numbers per
// channel: that the variance depends on the mean (sum(x - mean) is 0), and how r = 1 / sqrt(v) was come by. A step of
// Newton's from it is r again, and by v that has the derivative -r^3 / 2, without another root and quotient.
bool expand_batch_norm_training(Node *n, Value **out) {
    Graph *g = n->graph;
    int64_t axes[MAX_RANK] = { 0 };
    int count = 1;
    for (int i = 2; i < n->in[0]->type.rank; i++) axes[count++] = i;
    Value *x = b_wide(g, n->in[0]), *scale = per_channel(n, n->in[1], x), *bias = per_channel(n, n->in[2], x);
    Value *mean = b_mean(g, x, count, axes, true);
    if (!scale || !bias || !mean) return false;
    Value *square = B_MAP(g, "(x - y) * (x - y)", "x y", x, still(g, mean));
    Value *var = b_mean(g, square, count, axes, true);
    Value *v = b_binary(g, OP_Add, var, b_like(g, x, node_float(n, "epsilon", 1e-5)));
    Value *r = B_MAP(g, "y * (1.5 - 0.5 * x * (y * y))", "x y", v, still(g, b_unary(g, OP_Rsqrt, v)));
    Value *y = B_MAP(g, "(x - y) * z + w", "x y z w", x, mean, b_binary(g, OP_Mul, scale, r), bias);
    const Type *t = &n->out[1]->type;
    out[1] = b_reshape(g, mean, t->rank, t->dim);
    out[2] = b_reshape(g, var, t->rank, t->dim);
    return out[2] && expand_done(n, y, out);
}

static bool first_axis(Node *n, int *axis) {
    int rank = n->in[0]->type.rank;
    int64_t a = node_int(n, "axis", rank - 1);
    *axis = (int)a;
    if (a >= 0 && a < rank) return true;
    diag_error(n->loc, "axis %lld is outside 0..%d of %s", (long long)a, rank - 1, value_type_text(n->in[0]));
    return false;
}

bool expand_layer_norm(Node *n, Value **out) {
    Graph *g = n->graph;
    int axis;
    if (!first_axis(n, &axis)) return false;
    Value *x = b_wide(g, n->in[0]), *y = standardize(n, x, axis, n->in[0]->type.rank);
    if (!y) return false;
    Value *scale = b_cast(g, n->in[1], x->type.dtype),
          *bias = n->n_in > 2 && n->in[2] ? b_cast(g, n->in[2], x->type.dtype) : NULL;
    return expand_done(n, scaled(n, y, scale, bias), out);
}

bool expand_rms_norm(Node *n, Value **out) {
    Graph *g = n->graph;
    int axis;
    if (!first_axis(n, &axis)) return false;
    Value *x = b_wide(g, n->in[0]);
    Value *square = mean_kept(g, b_unary(g, OP_Square, x), axis, n->in[0]->type.rank);
    Value *y = b_binary(g, OP_Mul, x, rstd(n, square));
    if (!y) return false;
    return expand_done(n, scaled(n, y, b_cast(g, n->in[1], x->type.dtype), NULL), out);
}

bool expand_instance_norm(Node *n, Value **out) {
    Value *x = b_wide(n->graph, n->in[0]), *scale = per_channel(n, n->in[1], x), *bias = per_channel(n, n->in[2], x);
    if (!scale || !bias) return false;
    return expand_done(n, scaled(n, standardize(n, x, 2, n->in[0]->type.rank), scale, bias), out);
}

// Channels in groups share mean and variance: [n, groups, everything else] is standardised over its last axis.
bool expand_group_norm(Node *n, Value **out) {
    Graph *g = n->graph;
    const Type *t = &n->in[0]->type;
    int64_t groups = node_int(n, "num_groups", 1);
    if (t->rank < 2 || groups < 1 || (dim_is_const(t->dim[1]) && t->dim[1] % groups)) {
        diag_error(n->loc, "%s has no %lld equal groups of channels", value_type_text(n->in[0]), (long long)groups);
        return false;
    }
    Value *x = b_wide(g, n->in[0]), *scale = per_channel(n, n->in[1], x), *bias = per_channel(n, n->in[2], x);
    if (!scale || !bias) return false;
    Dim dims[3] = { t->dim[0], groups, dim_div(g, t->dim[1], groups) };
    for (int i = 2; i < t->rank; i++) dims[2] = dim_mul(g, dims[2], t->dim[i]);
    Value *y = standardize(n, b_reshape(g, x, 3, dims), 2, 3);
    return expand_done(n, scaled(n, b_reshape(g, y, t->rank, t->dim), scale, bias), out);
}
