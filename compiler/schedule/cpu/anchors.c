// SPDX-License-Identifier: MIT OR Apache-2.0
// Which products and convolutions a template takes, the anchors that fuse.c grows kernels around, and which composites
// stay. In: a node. Out: a fact about its shapes and types; what the kernel is follows in schedule/kernel.c,
// kernel_conv.c and attention.c.
#include "schedule/schedule.h"
#include "templates.h"

enum { MAX_IMAGE = 256 << 10 };                         // bytes that every second cache holds

// Does the work of a convolution on one image fit 64 bits, with all that tiles*.c multiplies it by? More is nobody's.
static bool fits_tiles(const Node *n) {
    const Type *y = &n->out[0]->type;
    int64_t left = (INT64_C(1) << 52) / max64(op_table[n->op].work(n), 1);
    for (int i = 1; i < y->rank; i++) left /= max64(dim_upper(n->graph, y->dim[i]), 1);
    return left > 0;
}

bool cpu_on_planes(const Node *n) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    if (n->op != OP_Conv || node_int(n, "channels_last", 0) || x->dtype != DT_F32 || x->rank < 3 || x->rank > 5
        || !type_is_static(w) || !fits_tiles(n))
        return false;
    for (int i = 1; i < x->rank; i++)
        if (!dim_is_const(x->dim[i]) || !dim_is_const(n->out[0]->type.dim[i])) return false;
    Convolution c = kernel_conv_shape(n);
    for (int i = 0; i < 3; i++)
        if (c.pad[i] < 0) return false;
    if (c.groups != c.ic || type_count_upper(n->graph, &n->out[0]->type) == 0) return false;
    ConvShape s = template_conv_shape(n->graph, &c);
    ConvPlanesTiles t = conv_planes_tiles(&s, &TILE_GENERIC);
    return conv_planes_scratch_bytes(&s, &t) <= MAX_IMAGE;
}

static bool fixed_from(const Type *t, int first) {
    for (int i = first; i < t->rank; i++)
        if (!dim_is_const(t->dim[i])) return false;
    return true;
}

// Groups of few channels fill no dot products; slices are not taken together.
static bool conv_of_bytes(const Node *n) {
    enum { LEAST = 8 };
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    int64_t groups = node_int(n, "group", 1);
    int count;
    const int64_t *pads = node_ints(n, "pads", &count);
    for (int i = 0; i < count; i++)
        if (pads[i]) return false;
    return !node_int(n, "same", 0) && x->rank <= 4
        && (groups == 1 || (w->dim[1] >= LEAST && w->dim[0] / groups >= LEAST));
}

// Of signed bytes: any window that pads by a number, depthwise ones of whole blocks of channels.
static bool conv_q8(const Node *n) {
    const Type *w = &n->in[1]->type;
    int64_t groups = node_int(n, "group", 1);
    bool depthwise = w->dim[1] == 1 && groups == w->dim[0] && groups > 1;
    return n->in[0]->type.rank <= 4 && !node_int(n, "same", 0)
        && (!depthwise || (groups >= 4 && type_count(w) / groups <= Q8_MOST_TAPS));
}

// Constants in blocks of whole words, with integer zero points: gemm_low.c and gemv_low.c read these as they are.
static bool bits_as_they_are(const Node *n) {
    enum { WORD = 32 };
    const Type *x = &n->in[0]->type;
    return n->n_in < 5 && n->in[1]->data && value_const(n->in[2])
        && (n->n_in < 4 || (n->in[3]->type.dtype == DT_U8 && value_const(n->in[3])))
        && node_int(n, "block", 0) % (WORD / node_int(n, "bits", 4)) == 0 && dim_is_const(x->dim[x->rank - 1]);
}

bool cpu_has_template(const Node *n, const Options *o) {
    if (op_table[n->op].form != FORM_CONTRACT) return false;
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    int64_t count = type_count_upper(n->graph, &n->out[0]->type);
    if ((x->dtype != DT_F32 && !node_of_bytes(n) && !blas_takes_doubles(n, o)) || count == 0) return false;
    if (cpu_on_planes(n)) return true;
    if (n->op == OP_Conv)
        return node_int(n, "channels_last", 0) && x->rank >= 3 && x->rank <= 5 && fixed_from(x, 1) && fits_tiles(n)
            && (!node_of_bytes(n) ? n->in[0] != n->in[1] :
                    n->in[1]->data && (x->dtype != DT_U8 ? conv_q8(n) : conv_of_bytes(n)));
    int64_t k = dim_upper(n->graph, x->dim[x->rank - 1]);
    // a sum of nothing is 0: the template would store nothing
    if (dim_lower(n->graph, x->dim[x->rank - 1]) < 1) return false;
    if (node_of_bytes(n) && x->dtype != DT_U8 && !(n->in[1]->data && fixed_from(x, 0))) return false;
    if (node_of_bytes(n) && !(fixed_from(w, w->rank - 2) && dim_is_const(x->dim[x->rank - 1]))) return false;
    bool simple = n->op == OP_MatMulBits ? bits_as_they_are(n) : kernel_gemm_folds(n->graph, x, w);
    return k >= 4 && (count >= 256 || count * k >= 256) && simple;
}

// Its template has three axes.
static bool windows_have_template(const Node *n) {
    const Type *x = &n->in[0]->type;
    int count;
    const int64_t *pads = node_ints(n, "pads", &count);
    bool fixed = x->dtype == DT_F32 && x->rank <= 5 && type_count_upper(n->graph, x) > 0;
    for (int i = 0; i < count; i++) fixed = fixed && pads[i] >= 0;
    return fixed && (!node_int(n, "same", 0) || fixed_from(x, 1));
}

bool cpu_claims(const Node *n, const Options *o) {
    if (n->op == OP_WindowMaxGrad) return windows_have_template(n);
    if (n->op == OP_MatMulBits) return cpu_has_template(n, o);
    if (n->op != OP_Softmax || o->no_fuse) return false;
    const Type *t = &n->in[0]->type;
    int64_t last = t->rank - 1;
    return t->dtype == DT_F32 && node_int(n, "axis", last) == last && t->dim[last] != 0 && t->dim[last] != 1;
}
