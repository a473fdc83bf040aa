// SPDX-License-Identifier: MIT OR Apache-2.0
// Template kernels from convolutions. In: a fusion set whose anchor is a convolution (kernel_is_anchor). Out: the kernel in canonical form, three
// spatial axes and constant strides, with the rest of the set as its epilogue.
#include "ops/common.h"
#include "schedule.h"

static Convolution conv_shape(const Node *n) {
    Convolution c = { 0 };
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    int spatial = x->rank - 2;
    Geometry geo = geometry_of(n, spatial, w->dim + 2);
    c.batch = x->dim[0]; c.ic = x->dim[x->rank - 1]; c.oc = c.y_pixel = y->dim[y->rank - 1]; c.groups = node_int(n, "group", 1);
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - spatial);
        c.in[i] = from < 0 ? 1 : x->dim[1 + from];
        c.out[i] = from < 0 ? 1 : y->dim[1 + from];
        c.kernel[i] = from < 0 ? 1 : w->dim[2 + from];
        c.stride[i] = from < 0 ? 1 : geo.stride[from];
        c.dilation[i] = from < 0 ? 1 : geo.dilation[from];
        c.pad[i] = from < 0 ? 0 : geo.lo[from];
    }
    return c;
}

enum { MIN_TURNED = 8 };

// Where the input's elements lie: through its views, if that takes no more than constant strides.
static Operand conv_input(Arena *a, Graph *g, Value *x, Convolution *c) {
    Kernel *k = kernel_new(a, KERNEL_LOOP);
    Operand at;
    Expr *idx[MAX_RANK];
    int rank = x->type.rank;
    for (int i = 0; i < rank; i++) {
        Dim size = x->type.dim[i];
        VEC_PUSH(a, k->axes, (Axis){ .extent = dim_upper(g, size), .size = size });
        idx[i] = expr_axis_size(k->exprs, g, i, size);      // also of size 1: its stride does not matter, but has to be one
    }
    bool fixed = operand_through_views(a, g, k, x, idx, &at);
    for (int i = 1; fixed && i < rank; i++) fixed = dim_is_const(at.coef[i]);
    if (fixed && at.coef[rank - 1] != 1 && (c->ic >= MIN_TURNED || x->type.dtype == DT_U8)) fixed = false;      // many channels in planes: turned once is better than at every read
    if (!fixed) operand_direct(a, k, x, idx, &at);
    c->x_batch = at.coef[0];
    c->x_channel = at.coef[rank - 1];
    for (int i = 0; i < 3; i++) c->x_axis[i] = i - (5 - rank) < 0 ? 0 : at.coef[1 + i - (5 - rank)];
    return at;
}

Kernel *kernel_conv(Arena *a, Fusion *f, Value *into, Dim at) {
    Node *n = f->anchor->def;
    Convolution c = conv_shape(n);
    Kernel *k = kernel_new(a, c.groups == c.ic && c.oc == c.ic && c.groups > 1 ? KERNEL_DEPTHWISE : KERNEL_CONV);
    Operand x = conv_input(a, f->graph, n->in[0], &c);
    if (into) c.y_pixel = into->type.dim[into->type.rank - 1];
    k->conv = c;
    if (kernel_of_bytes(n)) {                           // for its template a product with rows that lie elsewhere
        k->kind = KERNEL_GEMM;
        k->gemm = (Contraction){ .batch = c.batch, .m = c.out[0] * c.out[1] * c.out[2], .n = c.oc, .k = type_count(&n->in[1]->type) / c.oc, .a_col = 1, .c_row = c.y_pixel };
    }
    if (!kernel_epilogue(a, k, f, (Dim[]){ c.batch, c.out[0] * c.out[1] * c.out[2], c.oc })) return NULL;
    if (into) kernel_store_into(k, into, at);
    k->anchor = n;
    kernel_operands(a, k, x.value, n->in[1]);
    k->operand_at[0] = x.offset;
    kernel_sizes(a, k, f->graph, x.offset);
    kernel_sizes(a, k, f->graph, c.x_batch);
    k->flops = 2.0 * (double)type_count_upper(f->graph, &n->out[0]->type) * (double)(c.ic / c.groups * c.kernel[0] * c.kernel[1] * c.kernel[2]);
    kernel_finish(a, k, f);
    return k;
}
