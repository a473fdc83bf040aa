// SPDX-License-Identifier: MIT OR Apache-2.0
// Writers of reductions, windows and what runs along an axis.
//
// In: a node. Out: ONNX's, whose attributes became inputs as versions went by.
#include "export/rows.h"

#include <math.h>
#include <string.h>

// Axes are an attribute before version 18, but of ReduceSum an input since 13.
static const char *reduced(Put *p, const char *result, const char *op, const char *x, int n, const int64_t *axes,
    bool keep) {
    bool input = p->x->opset >= 18 || !strcmp(op, "ReduceSum");
    const char *list = input ? put_ints(p, n, axes) : "";
    const OnnxAttr attrs[] = { attr_int("keepdims", keep),
        attr_ints("axes", n, arena_copy(p->x->arena, axes, sizeof *axes * (size_t)n)) };
    return put_op(p, result, op, NAMES(x, list), input ? 1 : 2, attrs);
}

// Of bools, any and all: by u8.
bool write_reduce(Put *p, Node *n, const Row *row) {
    int count = 0, rank = n->in[0]->type.rank;
    int64_t all[MAX_RANK];
    const int64_t *axes = node_ints(n, "axes", &count);
    for (int i = 0; i < rank; i++) all[i] = i;
    if (!node_attr(n, "axes")) {
        axes = all;
        count = rank;
    }
    bool bools = n->in[0]->type.dtype == DT_BOOL;
    const char *x = put_value(p, n->in[0]), *y = put_name(p, n->out[0]);
    if (!count) return put_op(p, y, "Identity", NAMES(x), NO_ATTRS) != NULL;
    if (bools) x = put_cast(p, NULL, x, DT_U8);
    x = reduced(p, bools ? NULL : y, row->op, x, count, axes, node_int(n, "keepdims", 1) != 0);
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

// x - zero of bytes in i32, as the importer spells what ONNX has an operator for: the bytes, and the zero point, which
// may be NULL.
static Value *bytes_of(Value *v, Value **zero) {
    const Node *n = v->def, *z = NULL;
    *zero = NULL;
    if (n && n->op == OP_Sub) {
        z = n->in[1]->def;
        if (n->in[1]->type.rank || !z || z->op != OP_Cast) return NULL;
        n = n->in[0]->def;
    }
    if (!n || n->op != OP_Cast) return NULL;
    DType d = n->in[0]->type.dtype;
    if ((d != DT_U8 && d != DT_I8) || (z && z->in[0]->type.dtype != d)) return NULL;
    if (z) *zero = z->in[0];
    return n->in[0];
}

bool fits_conv(const Node *n, int opset) {
    Value *zero;
    if (dtype_is_float(n->in[0]->type.dtype)) return fits_window(n, opset);
    return fits_window(n, opset) && bytes_of(n->in[0], &zero) && bytes_of(n->in[1], &zero);
}

bool write_conv(Put *p, Node *n, const Row *row) {
    if (dtype_is_float(n->in[0]->type.dtype)) return write_window(p, n, row);
    OnnxAttr attrs[MAX_ATTRS];
    Value *zero[2], *x = bytes_of(n->in[0], &zero[0]), *w = bytes_of(n->in[1], &zero[1]);
    const char *in[4] = { put_value(p, x), put_value(p, w), put_value(p, zero[0]), put_value(p, zero[1]) };
    int count = window_attrs(n, row, attrs);
    put_op(p, put_name(p, n->out[0]), "ConvInteger", 4, in, count, attrs);
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

// ---------------------------------------------------------------- Softmax

// Rows of nothing but -inf, whose quotients are NaN, give 0.
bool write_softmax(Put *p, Node *n, const Row *row) {
    int64_t empty = node_int(n, "empty", EMPTY_NAN), axis = node_int(n, "axis", n->in[0]->type.rank - 1);
    DType d = n->in[0]->type.dtype;
    const char *x = put_value(p, n->in[0]), *result = put_name(p, n->out[0]), *none;
    const OnnxAttr along = attr_int("axis", axis);
    const char *y = put_op(p, empty == EMPTY_NAN ? result : NULL, row->op, NAMES(x), 1, &along);
    if (empty == EMPTY_NAN) return true;
    if (empty == EMPTY_ZERO) {
        const char *top = reduced(p, NULL, "ReduceMax", x, 1, &axis, true);
        const char *least = put_number(p, d, -INFINITY);
        none = put_op(p, NULL, "Equal", NAMES(top, least), NO_ATTRS);
    } else none = put_op(p, NULL, "IsNaN", NAMES(y), NO_ATTRS);
    const char *zero = put_number(p, d, 0);
    put_op(p, result, "Where", NAMES(none, zero, y), NO_ATTRS);
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
