// SPDX-License-Identifier: MIT OR Apache-2.0
// A sort as a template kernel. In: an OP_Sort node and which of its outputs are wanted. Out: a kernel in the canonical form
// (outer, axis, inner), with scratch memory for one line twice, its elements and their positions. Its operand and results are
// stored values: no element of the result can be told from a few elements of the input, so nothing fuses with it.
#include "schedule.h"

static void hole(Arena *a, Kernel *k, const char *name, int64_t value) { VEC_PUSH(a, k->holes, (HoleValue){ name, value }); }

Kernel *kernel_sort(Arena *a, Node *n, bool values, bool positions) {
    const Type *t = &n->in[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    int64_t length = t->dim[axis], stride[MAX_RANK], bits = 0;
    type_strides(t, stride);
    Kernel *k = NEW(a, Kernel);
    k->kind = KERNEL_SORT;
    k->exprs = expr_pool_new(a);
    k->anchor = n;
    k->operand[0] = n->in[0];
    k->template_file = "c/sort.c";
    VEC_PUSH(a, k->nodes, n);
    VEC_PUSH(a, k->reads, n->in[0]);
    if (values) VEC_PUSH(a, k->writes, n->out[0]);
    if (positions) VEC_PUSH(a, k->writes, n->out[1]);
    bool wide = length > INT32_MAX;
    hole(a, k, "OUTER", type_count(t) / (length * stride[axis])); hole(a, k, "AXIS", length); hole(a, k, "INNER", stride[axis]);
    hole(a, k, "FLOAT", dtype_is_float(t->dtype)); hole(a, k, "LARGEST", node_int(n, "largest", 0) != 0);
    hole(a, k, "VALUES", values); hole(a, k, "POSITIONS", positions);
    k->scratch_bytes = 2 * length * (int64_t)((wide ? sizeof(int64_t) : sizeof(int32_t)) + dtype_size(t->dtype));
    for (int64_t i = length; i > 1; i = (i + 1) / 2) bits++;
    k->flops = (double)type_count(t) * (double)bits;
    k->traffic = type_bytes(t);
    for (int i = 0; i < k->writes.n; i++) k->traffic += type_bytes(&k->writes.at[i]->type);
    return k;
}
