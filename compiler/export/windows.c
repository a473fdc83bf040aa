// SPDX-License-Identifier: MIT OR Apache-2.0
// Writers of reductions, windows and what runs along an axis.
//
// In: a node. Out: ONNX's, whose attributes became inputs as versions went by.
#include "export/rows.h"

#include <string.h>

// Axes are an attribute before version 18, but of ReduceSum an input since 13. Of bools, any and all: by u8.
bool write_reduce(Put *p, Node *n, const Row *row) {
    int count = 0, rank = n->in[0]->type.rank;
    int64_t all[MAX_RANK];
    const int64_t *axes = node_ints(n, "axes", &count);
    for (int i = 0; i < rank; i++) all[i] = i;
    if (!node_attr(n, "axes")) {
        axes = all;
        count = rank;
    }
    bool input = p->x->opset >= 18 || n->op == OP_ReduceSum, bools = n->in[0]->type.dtype == DT_BOOL;
    const char *x = put_value(p, n->in[0]), *y = put_name(p, n->out[0]);
    if (!count) return put_op(p, y, "Identity", NAMES(x), NO_ATTRS) != NULL;
    if (bools) x = put_cast(p, NULL, x, DT_U8);
    OnnxAttr attrs[] = { attr_int("keepdims", node_int(n, "keepdims", 1)),
        attr_ints("axes", count, arena_copy(p->x->arena, axes, sizeof *axes * (size_t)count)) };
    const char *list = input ? put_ints(p, count, axes) : "";
    x = put_op(p, bools ? NULL : y, row->op, NAMES(x, list), input ? 1 : 2, attrs);
    if (bools) put_cast(p, y, x, DT_BOOL);
    return true;
}

bool write_cumulate(Put *p, Node *n, const Row *row) {
    OnnxAttr attrs[MAX_ATTRS];
    int count = row_attrs(n, row, 0, attrs);
    const char *x = put_value(p, n->in[0]), *axis = put_int(p, node_int(n, "axis", 0));
    put_op(p, put_name(p, n->out[0]), row->op, NAMES(x, axis), count, attrs);
    return true;
}

// ---------------------------------------------------------------- windows

static int window_attrs(const Node *n, const Row *row, OnnxAttr *attrs) {
    int count = 0, given;
    int64_t same = node_int(n, "same", 0);
    const int64_t *kernel = node_ints(n, "kernel", &given);
    if (kernel) attrs[count++] = attr_ints("kernel_shape", given, kernel);
    const int64_t *strides = node_ints(n, "strides", &given);
    if (strides) attrs[count++] = attr_ints("strides", given, strides);
    const int64_t *pads = node_ints(n, "pads", &given);
    if (same) attrs[count++] = attr_string("auto_pad", same == 1 ? "SAME_UPPER" : "SAME_LOWER");
    else if (pads && !is_zero(given, pads)) attrs[count++] = attr_ints("pads", given, pads);
    const int64_t *dilations = node_ints(n, "dilations", &given);
    bool dense = true;
    for (int i = 0; i < given; i++) dense = dense && dilations[i] == 1;
    Row rest = *row;
    if (dense) rest.attrs += strcspn(rest.attrs, " ");  // the first that a window's row lists
    return row_attrs(n, &rest, count, attrs);
}

bool write_window(Put *p, Node *n, const Row *row) {
    OnnxAttr attrs[MAX_ATTRS];
    const char *in[2] = { put_value(p, n->in[0]), n->n_in > 1 ? put_value(p, n->in[1]) : "" };
    int count = window_attrs(n, row, attrs);
    put_op(p, put_name(p, n->out[0]), row->op, n->n_in, in, count, attrs);
    return true;
}

// The mean with the padding counted, times as many.
bool write_window_sum(Put *p, Node *n, const Row *row) {
    OnnxAttr attrs[MAX_ATTRS];
    int rank = 0, count = window_attrs(n, row, attrs);
    const int64_t *kernel = node_ints(n, "kernel", &rank);
    double elements = 1;
    for (int i = 0; i < rank; i++) elements *= (double)kernel[i];
    attrs[count++] = attr_int("count_include_pad", 1);
    const char *x = put_value(p, n->in[0]);
    x = put_op(p, NULL, row->op, NAMES(x), count, attrs);
    const char *by = put_number(p, n->in[0]->type.dtype, elements);
    put_op(p, put_name(p, n->out[0]), "Mul", NAMES(x, by), NO_ATTRS);
    return true;
}

bool write_arg_window(Put *p, Node *n, const Row *row) {
    OnnxAttr attrs[MAX_ATTRS];
    Row listed = *row;
    listed.attrs = "dilations ceil_mode";
    int count = window_attrs(n, &listed, attrs);
    const char *x = put_value(p, n->in[0]), *out[2] = { put_fresh(p, "maximum"), put_name(p, n->out[0]) };
    put_node(p, row->op, 1, &x, 2, out, count, attrs);
    return true;
}

// ---------------------------------------------------------------- Sort

bool write_sort(Put *p, Node *n, const Row *row) {
    int64_t axis = node_int(n, "axis", 0);
    const char *in[2] = { put_value(p, n->in[0]), put_size(p, n->out[0]->type.dim[axis], n->in[0]) };
    const char *out[2] = { put_name(p, n->out[0]), put_name(p, n->out[1]) };
    if (!in[1]) return false;
    put_node(p, row->op, 2, in, 2, out, ATTRS(attr_int("axis", axis), attr_int("largest", node_int(n, "largest", 1))));
    return true;
}
