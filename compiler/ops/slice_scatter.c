// SPDX-License-Identifier: MIT OR Apache-2.0
// SliceScatter: a tensor with a part of it replaced, from a place on that the running program may know.
//
//   y[i] = p[i - start] where start <= i < start + size of p along the axis, else x[i]
//
// What writes the part writes nothing else where the result lies in x's bytes: a cache that grows row by row costs
// the rows.
#include "common.h"
#include "table.h"

#include <string.h>

static Dim start_of(const Node *n) {
    int count = 0;
    const int64_t *starts = node_ints(n, "starts", &count);
    return count ? starts[0] : 0;
}

bool shape_slice_scatter(Node *n) {
    const Type *x = &n->in[0]->type, *part = &n->in[1]->type;
    Graph *g = n->graph;
    const int64_t *starts;
    int axis;
    if (!op_axis(n, x->rank, &axis) || !op_ints(n, "starts", 1, &starts)) return false;
    bool fits = x->rank == part->rank && x->dtype == part->dtype;
    for (int i = 0; fits && i < x->rank; i++) fits = i == axis || dims_agree(n, part->dim[i], x->dim[i]);
    if (!fits) {
        diag_error(n->loc, "%s takes no part %s along axis %d: all else must be equal", value_type_text(n->in[0]),
            value_type_text(n->in[1]), axis);
        return false;
    }
    Dim end = dim_add(g, starts[0], part->dim[axis]);
    bool known = dim_is_const(end) && dim_is_const(x->dim[axis]);
    bool inside = known      ? end <= x->dim[axis] :
        g->bound             ? dim_upper(g, dim_sub(g, end, x->dim[axis])) <= 0 :
                               true;
    if (!inside || (dim_is_const(starts[0]) && starts[0] < 0)) {
        diag_error(n->loc, "axis %d of %s does not surely have %s elements from %s on; bound the sizes", axis,
            value_type_text(n->in[0]), dim_text(g->arena, g, part->dim[axis]), dim_text(g->arena, g, starts[0]));
        return false;
    }
    n->out[0]->type = *x;
    return true;
}

bool eval_slice_scatter(const Node *n, Tensor *const *in, Tensor *const *out) {
    int axis = (int)node_int(n, "axis", 0);
    int64_t src[MAX_RANK], dst[MAX_RANK];
    size_t size = dtype_size(out[0]->type.dtype);
    type_strides(&out[0]->type, dst);
    type_strides(&in[1]->type, src);
    memcpy(out[0]->data, in[0]->data, (size_t)type_bytes(&in[0]->type));
    if (!type_count(&in[1]->type)) return true;
    strided_copy((char *)out[0]->data + start_of(n) * dst[axis] * (int64_t)size, dst, in[1]->data, src,
        in[1]->type.rank, in[1]->type.dim, size);
    return true;
}

// The part's gradient lies where it was put, and no gradient comes to what it replaced.
bool grad_slice_scatter(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    int axis = (int)node_int(n, "axis", 0);
    const Type *part = &n->in[1]->type;
    Value *zero = b_full(g, part, 0);
    din[0] = b_slice_scatter(g, dout[0], zero, axis, start_of(n));
    din[1] = b_part(g, dout[0], axis, start_of(n), part->dim[axis]);
    return din[0] && din[1];
}
