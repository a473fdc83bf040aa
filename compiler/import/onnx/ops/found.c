// SPDX-License-Identifier: MIT OR Apache-2.0
// Operators that find an unknown number of things: NonZero, Compress, Unique, NonMaxSuppression.
//
// In: an OnnxNode. Out: Positions, Unique or Suppress, whose lists are as long as they can get and come with the
// number of what counts; that number becomes a measured dimension, to which the lists are cut. Of constants
// everything is known: then the number is one, too.
#include "import/onnx/run/measure.h"

// The number (i64[1]) as the size of dimension `axis` of output `out`.
static bool cut_to(OnnxNode *n, Value *number, int out, int axis, Dim limit, Dim *size) {
    return number && onnx_measure(n, number, 0, out, axis, 0, limit, size);
}

static Node *positions_of(OnnxNode *n, Value *flags) {
    if (!flags) return NULL;
    Node *node = graph_node(n->g, OP_Positions, 1, &flags, 2);
    return b_finish(node) ? node : NULL;
}

static Value *flat(OnnxNode *n, Value *x) {
    return x ? b_reshape(n->g, x, 1, (Dim[]){ type_product(n->g, &x->type, 0, x->type.rank) }) : NULL;
}

// Elements where a condition holds, which may be shorter than the axis.
Value *onnx_compress(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *condition = n->in[1];
    int axis = 0;
    Dim size;
    if (!onnx_has(n, "axis")) x = flat(n, x);
    else if (!onnx_axis(n, onnx_int(n, "axis", 0), x->type.rank, &axis)) return NULL;
    if (condition->type.rank != 1 || condition->type.dtype != DT_BOOL)
        return onnx_fail(n, "the condition must be a list of bools");
    Tensor *known = value_const(condition);
    if (known) {
        int64_t count = 0, length = type_count(&known->type), *at = NEW_ARRAY(n->g->arena, int64_t, length + 1);
        for (int64_t i = 0; i < length; i++)
            if (tensor_get_i(known, i)) at[count++] = i;
        return count > INT32_MAX ? onnx_fail(n, "the condition is too long") :
                                   b_gather(n->g, x, b_ints(n->g, (int)count, at), axis);
    }
    Node *found = positions_of(n, condition);
    if (!found || !cut_to(n, found->out[1], 0, axis, condition->type.dim[0], &size)) return NULL;
    return b_gather(n->g, x, b_part(n->g, found->out[0], 0, 0, size), axis);
}

// Coordinates [rank, count] of what is not zero.
Value *onnx_non_zero(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0], *flags = flat(n, x), *rows[MAX_RANK];
    int rank = x->type.rank ? x->type.rank : 1;
    Dim size;
    if (!flags) return NULL;
    Dim all = flags->type.dim[0];
    Value *zero = graph_const(n->g, tensor_new(n->g->arena, type_make(flags->type.dtype, 0, NULL)), NULL);
    if (flags->type.dtype == DT_STRING) *(const char **)zero->data->data = "";
    if (flags->type.dtype == DT_STRING || dtype_class(flags->type.dtype) == CLASS_COMPLEX)
        flags = b_unary(n->g, OP_Not, b_binary(n->g, OP_Equal, flags, zero));
    else if (flags->type.dtype != DT_BOOL) flags = B_MAP(n->g, "x != 0", "x", flags);
    Node *found = positions_of(n, flags);
    if (!found || !cut_to(n, found->out[1], 0, 1, all, &size)) return NULL;
    Value *at = b_part(n->g, found->out[0], 0, 0, size), *rest = at;
    for (int i = rank - 1; i >= 0; i--) {               // the last coordinate is what is left of its axis, and so on
        Value *length = i ? b_number(n->g, x->type.dim[i]) : NULL;
        rows[i] = b_reshape(n->g, i ? B_MAP(n->g, "x % y", "x y", rest, length) : rest, 2, (Dim[]){ 1, size });
        if (i) rest = B_MAP(n->g, "x / y", "x y", rest, length);
        if (!rows[i]) return NULL;
    }
    return rank == 1 ? rows[0] : b_concat(n->g, 0, rank, rows);
}

// Complex numbers in a row as twice as many real ones, which puts rows in their order: by real parts first.
static Value *as_pairs(OnnxNode *n, Value *rows) {
    if (!rows || dtype_class(rows->type.dtype) != CLASS_COMPLEX) return rows;
    const Dim count = rows->type.dim[0], length = rows->type.dim[1], two = dim_mul(n->g, length, 2);
    Value *parts[2];
    parts[0] = b_reshape(n->g, B_MAP(n->g, "real(x)", "x", rows), 3, (Dim[]){ count, length, 1 });
    parts[1] = b_reshape(n->g, B_MAP(n->g, "imag(x)", "x", rows), 3, (Dim[]){ count, length, 1 });
    if (!parts[0] || !parts[1]) return NULL;
    return b_reshape(n->g, b_concat(n->g, 2, 2, parts), 2, (Dim[]){ count, two });
}

// Rows are the slices along the axis, or single elements.
Value *onnx_unique(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int axis = 0;
    Dim size;
    if (!onnx_has(n, "axis")) x = flat(n, x);
    else if (!onnx_axis(n, onnx_int(n, "axis", 0), x->type.rank, &axis)) return NULL;
    if (!x) return NULL;
    Value *rows = b_move_axes(n->g, x, axis, 1, 0);
    if (!rows) return NULL;
    Dim length = rows->type.dim[0];
    rows = b_reshape(n->g, rows, 2, (Dim[]){ length, type_product(n->g, &rows->type, 1, rows->type.rank) });
    rows = as_pairs(n, rows);
    Node *node = graph_node(n->g, OP_Unique, 1, &rows, 4);
    node_set_int(node, "sorted", onnx_int(n, "sorted", 1));
    if (!rows || !b_finish(node) || !cut_to(n, node->out[3], 0, axis, length, &size)) return NULL;
    Value *first = b_part(n->g, node->out[0], 0, 0, size);
    if (n->n_out > 1) n->out[1] = first;
    if (n->n_out > 2) n->out[2] = node->out[1];
    if (n->n_out > 3) n->out[3] = b_part(n->g, node->out[2], 0, 0, size);
    return b_gather(n->g, x, first, axis);
}

static Value *number_input(OnnxNode *n, int i, DType d, double otherwise) {
    if (!onnx_optional(n, i)) return b_scalar(n->g, d, otherwise);
    return b_cast(n->g, b_scalar_of(n->g, n->in[i]), d);
}

Value *onnx_non_max_suppression(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *most = number_input(n, 2, DT_I64, 0);
    Value *in[] = { n->in[0], n->in[1], most, number_input(n, 3, DT_F32, 0), number_input(n, 4, DT_F32, -1.0 / 0.0) };
    if (!most || !in[3] || !in[4]) return NULL;
    if (in[1]->type.rank != 3) return onnx_fail(n, "scores must be [batch, classes, boxes]");
    DimItem asked;
    int count;
    Dim room = in[1]->type.dim[2], size;
    if (onnx_dim_items(n->g, most, &asked, &count) && asked.hi >= 0 && asked.hi < dim_upper(n->g, room))
        room = asked.hi;
    Node *node = graph_node(n->g, OP_Suppress, 5, in, 2);
    node_set_ints(node, "sizes", &room, 1);
    node_set_int(node, "centered", onnx_int(n, "center_point_box", 0));
    if (!b_finish(node) || !cut_to(n, node->out[1], 0, 0, node->out[0]->type.dim[0], &size)) return NULL;
    return b_slice(n->g, node->out[0], (int64_t[]){ 0, 0 }, (int64_t[]){ 1, 1 }, (Dim[]){ size, 3 });
}
