// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's indexed reads and writes, and what is built from them: one-hot, top-k, reversal.
//
// In: an OnnxNode. Out: Gather*, Scatter*, Sort. Indices may be i32 or i64, negative ones count from the end.
#include "import/onnx/run/measure.h"

#include <string.h>

Value *onnx_gather(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 2) || !onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->type.rank, &axis)) return NULL;
    return b_gather(n->g, n->in[0], n->in[1], axis);
}

// Of the last axis, as ai.onnx.ml has it.
Value *onnx_gather_features(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *y = n->in[1];
    if (x->type.rank < 1) return onnx_fail(n, "the input must have at least 1 dimension");
    if (x->type.rank == 1) x = b_insert(n->g, x, 0);
    y = b_reshape(n->g, y, 1, (Dim[]){ type_product(n->g, &y->type, 0, y->type.rank) });
    return x ? b_gather(n->g, x, y, x->type.rank - 1) : NULL;
}

Value *onnx_gather_elements_op(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 2) || !onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->type.rank, &axis)) return NULL;
    return b_gather_elements(n->g, n->in[0], n->in[1], axis);
}

Value *onnx_gather_nd(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Node *node = graph_node(n->g, OP_GatherND, 2, n->in, 1);
    node_set_int(node, "batch_dims", onnx_int(n, "batch_dims", 0));
    return b_finish(node);
}

static bool set_reduction(OnnxNode *n, Node *node) {
    static const char *const known[] = { "none", "add", "mul", "min", "max" };
    const char *how = onnx_string(n, "reduction", "none");
    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(how, known[i])) {
            node_set_string(node, "reduction", known[i]);
            return true;
        }
    onnx_fail(n, "attribute \"reduction\" is \"%s\"", how);
    graph_remove(n->g, node);
    return false;
}

Value *onnx_scatter_elements(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 3) || !onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->type.rank, &axis)) return NULL;
    Node *node = graph_node(n->g, OP_ScatterElements, 3, n->in, 1);
    node_set_int(node, "axis", axis);
    return set_reduction(n, node) ? b_finish(node) : NULL;
}

Value *onnx_scatter_nd(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    Node *node = graph_node(n->g, OP_ScatterND, 3, n->in, 1);
    return set_reduction(n, node) ? b_finish(node) : NULL;
}

// values = [off, on]; 1 where the coordinate along the new axis is the index.
Value *onnx_one_hot(OnnxNode *n) {
    Dim depth;
    int count, axis;
    Value *list = onnx_list(n, 1, "the depth", &count);
    if (!onnx_inputs(n, 3) || !list) return NULL;
    Value *at = b_cast(n->g, n->in[0], DT_I64), *values = n->in[2];
    if (!at) return NULL;
    int rank = at->type.rank + 1;
    if (!onnx_axis(n, onnx_int(n, "axis", -1), rank, &axis)) return NULL;
    if (count != 1 || values->type.rank != 1 || values->type.dim[0] != 2)
        return onnx_fail(n, "wants one depth and two values");
    if (!onnx_measure(n, list, 0, 0, axis, 0, NO_LIMIT, &depth)) return NULL;
    if (dim_is_const(depth))
        at = B_MAP(n->g, arena_printf(n->g->arena, "x < 0 ? x + %lld : x", (long long)depth), "x", at);
    else at = B_MAP(n->g, "x < 0 ? x + y : x", "x y", at, b_number(n->g, depth));
    at = b_insert(n->g, at, axis);
    if (!at) return NULL;
    Dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? depth : 1;
    Value *hit = b_binary(n->g, OP_Equal, b_iota(n->g, rank, dims, axis, DT_I64), at);
    Value *on = b_scalar_of(n->g, b_part(n->g, values, 0, 1, 1)),
          *off = b_scalar_of(n->g, b_part(n->g, values, 0, 0, 1));
    return b_where(n->g, hit, on, off);
}

// The first sequence_lens[b] steps of each sequence, backwards; the others stay.
Value *onnx_reverse_sequence(OnnxNode *n) {
    int batch, time;
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0];
    int rank = x->type.rank;
    if (!onnx_axis(n, onnx_int(n, "batch_axis", 1), rank, &batch)
        || !onnx_axis(n, onnx_int(n, "time_axis", 0), rank, &time))
        return NULL;
    Value *lens = b_along(n->g, b_cast(n->g, n->in[1], DT_I64), rank, batch);
    Value *at = B_MAP(n->g, "x < y ? y - 1 - x : x", "x y", b_iota(n->g, rank, x->type.dim, time, DT_I64), lens);
    return b_gather_elements(n->g, x, at, time);
}

Value *onnx_top_k(OnnxNode *n) {
    Dim k = 0;
    int count, axis;
    if (!onnx_inputs(n, 1) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)) return NULL;
    Value *x = n->in[0], *list = n->opset < 10 ? NULL : onnx_list(n, 1, "k", &count);
    if (n->opset < 10) k = onnx_int(n, "k", 0);
    else if (!list || count != 1) return list ? onnx_fail(n, "k must be a single number") : NULL;
    DimItem asked;
    // checked against a size that is measured, too
    if (list && !dim_is_const(x->type.dim[axis]) && onnx_dim_items(n->g, list, &asked, &count) && !asked.known) {
        Value *fits = b_binary(n->g, OP_LessOrEqual, list, b_number(n->g, x->type.dim[axis]));
        list = b_where(n->g, fits, list, b_ints(n->g, 1, (int64_t[]){ -1 }));
    }
    if (list && !onnx_measure(n, list, 0, 0, axis, 0, x->type.dim[axis], &k)) return NULL;
    if (n->opset < 10 && k < 0) return onnx_fail(n, "k is %lld", (long long)k);
    if (dim_is_const(k) && dim_is_const(x->type.dim[axis]) && k > x->type.dim[axis])
        return onnx_fail(n, "k is %lld, the axis has %lld elements", (long long)k, (long long)x->type.dim[axis]);
    onnx_int(n, "sorted", 1);
    Node *node = b_sort(n->g, x, axis, onnx_int(n, "largest", 1) != 0, k);
    if (!node) return NULL;
    if (n->n_out > 1) n->out[1] = node->out[1];
    return node->out[0];
}

// Writes `update` into `cache` along axis from a position per batch on; linear stops at the end, circular wraps around.
Value *onnx_tensor_scatter(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *cache = n->in[0], *update = n->in[1];
    int axis, rank = cache->type.rank;
    if (!onnx_axis(n, onnx_int(n, "axis", -2), rank, &axis) || update->type.rank != rank || axis == 0)
        return onnx_fail(n, "past_cache and update must have the same rank, and axis must not be the batch");
    bool circular = !strcmp(onnx_string(n, "mode", "linear"), "circular");
    Value *at = b_iota(n->g, rank, update->type.dim, axis, DT_I64);
    if (onnx_optional(n, 2)) at = b_binary(n->g, OP_Add, at, b_along(n->g, b_cast(n->g, n->in[2], DT_I64), rank, 0));
    if (circular) {
        if (!dim_is_const(cache->type.dim[axis])) return onnx_fail(n, "the circular mode needs a known cache size");
        at = b_binary(n->g, OP_Mod, at, b_scalar(n->g, DT_I64, (double)cache->type.dim[axis]));
    }
    if (!at) return NULL;
    Node *node = graph_node(n->g, OP_ScatterElements, 3, (Value *[]){ cache, at, update }, 1);
    node_set_int(node, "axis", axis);
    node_set_string(node, "reduction", "none");
    return b_finish(node);
}
