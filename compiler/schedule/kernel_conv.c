// SPDX-License-Identifier: MIT OR Apache-2.0
// Template kernels from convolutions. In: a fusion set whose anchor is a convolution (Backend.has_template). Out: the
// kernel in canonical form, three spatial axes and constant strides, with the rest of the set as its epilogue. The
// channels are last, or, for depthwise ones, first: planes.
#include "ops/common.h"
#include "schedule.h"

#include <string.h>

enum { MIN_TURNED = 8, LANES = 16 };

// A channel's plane from a plane. Fewer channels than a vector has go there several times over, which only the
// compiler packs weights for.
static bool is_depthwise(const Convolution *c, bool constant) {
    return c->groups == c->ic && c->oc == c->ic && c->groups > 1 && (constant || LANES % c->groups);
}

Convolution kernel_conv_shape(const Node *n) {
    Convolution c = { 0 };
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    int spatial = x->rank - 2, at = spatial_axis(n), channel = channel_axis(n, x->rank);
    Geometry geo = geometry_of(n, spatial, w->dim + 2);
    c.batch = x->dim[0];
    c.ic = x->dim[channel];
    c.oc = c.y_pixel = y->dim[channel];
    c.groups = node_int(n, "group", 1);
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - spatial);
        c.in[i] = from < 0 ? 1 : x->dim[at + from];
        c.out[i] = from < 0 ? 1 : y->dim[at + from];
        c.kernel[i] = from < 0 ? 1 : w->dim[2 + from];
        c.stride[i] = from < 0 ? 1 : geo.stride[from];
        c.dilation[i] = from < 0 ? 1 : geo.dilation[from];
        c.pad[i] = from < 0 ? 0 : geo.lo[from];
    }
    return c;
}

// Where the input's elements lie: through its views, if that takes no more than constant strides.
static Operand conv_input(const Plan *p, const Node *n, Convolution *c) {
    Arena *a = p->scratch;
    Graph *g = p->graph;
    Kernel *k = kernel_new(a, KERNEL_LOOP);
    Operand at;
    Expr *idx[MAX_RANK];
    Value *x = n->in[0];
    int rank = x->type.rank, channel = channel_axis(n, rank), first = spatial_axis(n);
    for (int i = 0; i < rank; i++) {
        Dim size = x->type.dim[i];
        VEC_PUSH(a, k->axes, (Axis){ .extent = dim_upper(g, size), .size = size });
        // also of size 1: its stride does not matter, but has to be one
        idx[i] = expr_axis_size(k->exprs, g, i, size);
    }
    bool fixed = operand_through_views(p, k, x, idx, &at);
    for (int i = 1; fixed && i < rank; i++) fixed = dim_is_const(at.coef[i]);
    // many channels in planes: turned once is better than at every read
    if (fixed && at.coef[rank - 1] != 1 && (channel == 1 || c->ic >= MIN_TURNED || dtype_is_int(x->type.dtype)))
        fixed = false;
    if (!fixed) operand_direct(p, k, x, idx, &at);
    c->x_batch = at.coef[0];
    c->x_channel = at.coef[channel];
    for (int i = 0; i < 3; i++) c->x_axis[i] = i - (5 - rank) < 0 ? 0 : at.coef[first + i - (5 - rank)];
    return at;
}

// Where the elements of weights that are no constants lie: [group, channel of the result][channel of the input][taps].
// Filters that run backwards have negative strides.
static Value *conv_weights(const Plan *p, const Node *n, Convolution *c) {
    Arena *a = p->scratch;
    Kernel *k = kernel_new(a, KERNEL_LOOP);
    Value *w = n->in[1], *base;
    Expr *axis[MAX_RANK + 1];
    int64_t coef[MAX_RANK + 1];
    const int rank = w->type.rank, taps = 3 - (rank - 2);
    const Dim per_group = c->oc / c->groups;
    for (int i = 0; i <= rank; i++) {
        Dim size = i == 0 ? c->groups : i == 1 ? per_group : w->type.dim[i - 1];
        VEC_PUSH(a, k->axes, (Axis){ .extent = size, .size = size });
        axis[i] = expr_axis(k->exprs, i, size);
    }
    Expr *first = expr_binary(k->exprs, E_Mul, axis[0], expr_index(k->exprs, per_group));
    axis[1] = expr_binary(k->exprs, E_Add, first, axis[1]);
    Expr *at = operand_index(p, k, w, axis + 1, &base);
    if (!at || !expr_affine(at, k->axes.n, coef, &c->w_at)) {
        base = w;
        c->w_at = 0;
        for (int i = rank; i >= 0; i--)
            coef[i] = i == rank ? 1 : coef[i + 1] * (i == 0 ? per_group : w->type.dim[i]);
    }
    c->w_group = coef[0];
    c->w_oc = coef[1];
    c->w_ic = coef[2];
    for (int i = 0; i < 3; i++) c->w_tap[i] = i < taps ? 0 : coef[3 + i - taps];
    return base;
}

Kernel *kernel_conv(Arena *a, Fusion *f, Value *into, Dim at) {
    Node *n = f->anchor->def;
    Convolution c = kernel_conv_shape(n);
    bool planes = !node_int(n, "channels_last", 0);
    Kernel *k = kernel_new(a,
        planes                                      ? KERNEL_PLANES :
            is_depthwise(&c, n->in[1]->data != NULL) ? KERNEL_DEPTHWISE :
                                                      KERNEL_CONV);
    Operand x = conv_input(f->plan, n, &c);
    Value *w = n->in[1];
    if (!planes && !w->data) w = conv_weights(f->plan, n, &c);
    if (into) c.y_pixel = into->type.dim[into->type.rank - 1];
    if (!node_of_bytes(n)) k->conv = c;
    else {                                              // for its template a product with rows that lie elsewhere
        k->kind = KERNEL_GEMM;
        k->window = c;
        k->gemm = (Contraction){ .batch = c.batch,
            .m = c.out[0] * c.out[1] * c.out[2],
            .n = c.oc,
            .k = type_count(&n->in[1]->type) / c.oc,
            .a_col = 1,
            .c_row = c.y_pixel };
    }
    int64_t pixels = c.out[0] * c.out[1] * c.out[2];
    if (!kernel_epilogue(a, k, f, planes ? (Dim[]){ c.batch, c.oc, pixels } : (Dim[]){ c.batch, pixels, c.oc }))
        return NULL;
    if (into) kernel_store_into(k, into, at);
    k->anchor = n;
    kernel_operands(a, k, x.value, w);
    k->operand_at[0] = x.offset;
    kernel_sizes(a, k, f->plan->graph, x.offset);
    kernel_sizes(a, k, f->plan->graph, c.x_batch);
    k->flops = 2.0 * (double)type_count_upper(f->plan->graph, &n->out[0]->type)
        * (double)(c.ic / c.groups * c.kernel[0] * c.kernel[1] * c.kernel[2]);
    kernel_finish(a, k, f);
    return k;
}
