// SPDX-License-Identifier: MIT OR Apache-2.0
// Sort along an axis: the values in order and where they were (i64). Stable; `largest` sorts downwards. NaN is above
// every number. Where only the first few are wanted (top-k), the others need no order. Compiled by schedule/call.c: no
// element of the result can be told from a few elements of the input.
#include "common.h"
#include "table.h"

#include <stdlib.h>

#define KEPT ((int64_t)(sizeof(Scalar) + 2 * sizeof(int64_t))) // bytes of an element while it is sorted

// Are there `most` of size elements, as far as can be known?
static bool has_first(Graph *g, Dim size, Dim most) {
    if (dim_is_const(size) && dim_is_const(most)) return most >= 0 && most <= size;
    return !g->bound || dim_lower(g, most) <= 0 || slice_inside(g, size, 0, 1, most);
}

bool shape_sort(Node *n) {
    int axis;
    if (!op_numeric(n, n->in[0]) || !op_axis(n, n->in[0]->type.rank, &axis)) return false;
    Type t = n->in[0]->type;
    const int64_t *most = node_attr(n, "sizes") ? &t.dim[axis] : NULL;
    if (most && !op_ints(n, "sizes", 1, &most)) return false;
    if (most && !has_first(n->graph, t.dim[axis], *most)) {
        diag_error(n->loc, "axis %d of %s has no %s elements", axis, value_type_text(n->in[0]),
            dim_text(n->graph->arena, n->graph, *most));
        return false;
    }
    if (most) t.dim[axis] = *most;
    n->out[0]->type = t;
    if (n->n_out > 1) {
        n->out[1]->type = t;
        n->out[1]->type.dtype = DT_I64;
    }
    return true;
}

// Of an element of a result: its share of all that is read and kept twice with its place, whatever few are wanted.
int64_t work_sort(const Node *n) {
    int64_t results = type_count(&n->out[0]->type) * n->n_out;
    return results > 0 ? type_count(&n->in[0]->type) / results * KEPT + 1 : 1;
}

typedef struct Keys { DType dtype; bool largest; const Scalar *key; } Keys;

static bool comes_before(const Keys *k, int64_t a, int64_t b) {
    return k->largest ? element_less(k->dtype, k->key[b], k->key[a]) : element_less(k->dtype, k->key[a], k->key[b]);
}

// Merge sort of positions, bottom up: runs of `width` become runs of twice that, equal keys keep their order.
static const int64_t *merge_sort(const Keys *k, int64_t *order, int64_t *spare, int64_t n) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t from = 0; from < n; from += 2 * width) {
            int64_t mid = from + width < n ? from + width : n, end = from + 2 * width < n ? from + 2 * width : n;
            for (int64_t i = from, j = mid, o = from; o < end; o++)
                spare[o] = i < mid && (j >= end || !comes_before(k, order[j], order[i])) ? order[i++] : order[j++];
        }
        int64_t *swap = order;
        order = spare;
        spare = swap;
    }
    return order;
}

bool eval_sort(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *t = &in[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    int64_t stride[MAX_RANK], size = t->dim[axis], lines = size ? type_count(t) / size : 0;
    type_strides(t, stride);
    int64_t inner = stride[axis], wanted = out[0]->type.dim[axis];
    if (lines == 0 || wanted == 0) return true;         // a line may be long where there is none
    Scalar *key = scratch_new((size_t)size, sizeof *key);
    int64_t *order = scratch_new((size_t)size, sizeof *order), *spare = scratch_new((size_t)size, sizeof *spare);
    Keys k = { t->dtype, node_int(n, "largest", 0) != 0, key };
    for (int64_t o = 0; o < lines; o++) {
        int64_t base = o / inner * inner * size + o % inner;
        for (int64_t i = 0; i < size; i++) {
            key[i] = element_get(in[0], base + i * inner);
            order[i] = i;
        }
        const int64_t *sorted = merge_sort(&k, order, spare, size);
        const int64_t to = o / inner * inner * wanted + o % inner;
        for (int64_t i = 0; i < wanted; i++) {
            element_set(out[0], to + i * inner, key[sorted[i]]);
            if (out[1]) tensor_set_i(out[1], to + i * inner, sorted[i]);
        }
    }
    free(key);
    free(order);
    free(spare);
    return true;
}

bool grad_sort(Node *n, Value *const *dout, Value **din) {
    Value *zero = b_full(n->graph, &n->in[0]->type, 0);
    din[0] = b_scatter_elements(n->graph, zero, n->out[1], dout[0], (int)node_int(n, "axis", 0), "none");
    return din[0] != NULL;
}
