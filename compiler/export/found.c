// SPDX-License-Identifier: MIT OR Apache-2.0
// Writers of what finds as many things as there are: ONNX gives lists of that length, we give lists as long as they can
// get, with zeros behind, and how much of them counts.
//
// In: a node. Out: ONNX's, its lists padded to our length, and a length.
#include "export/rows.h"

// list [k, ...] with zeros up to the size of out's first dimension; size: of the list, i64[1]
static bool padded(Put *p, const char *list, const char *size, Value *out) {
    const char *room = put_size(p, out->type.dim[0], NULL);
    if (!room) return false;
    int rank = out->type.rank;
    int64_t none[2 * MAX_RANK] = { 0 };
    const char *before = put_ints(p, rank, none), *more = put_op(p, NULL, "Sub", NAMES(room, size), NO_ATTRS);
    const char *parts[3] = { before, more, rank > 1 ? put_ints(p, rank - 1, none) : "" };
    const char *pads = put_op(p, NULL, "Concat", rank > 1 ? 3 : 2, parts, ATTRS(attr_int("axis", 0)));
    put_op(p, put_name(p, out), "Pad", NAMES(list, pads), NO_ATTRS);
    return true;
}

// The first size of a list [k, ...], as the node's last result
static const char *length_of(Put *p, const char *list, Value *result) {
    const char *shape = put_op(p, NULL, "Shape", NAMES(list), NO_ATTRS), *at = put_ints(p, 1, (int64_t[]){ 0 });
    return put_op(p, put_name(p, result), "Gather", NAMES(shape, at), ATTRS(attr_int("axis", 0)));
}

bool write_positions(Put *p, Node *n, const Row *row) {
    const char *x = put_value(p, n->in[0]);
    x = put_op(p, NULL, row->op, NAMES(x), NO_ATTRS);
    x = put_reshape(p, NULL, x, 1, (int64_t[]){ -1 });
    const char *size = length_of(p, x, n->out[1]);
    return padded(p, x, size, n->out[0]);
}

bool write_unique(Put *p, Node *n, const Row *row) {
    const char *x = put_value(p, n->in[0]);
    const char *out[4] = { put_fresh(p, "unique"), put_fresh(p, "first"), put_name(p, n->out[1]),
        put_fresh(p, "often") };
    put_node(p, row->op, 1, &x, 4, out, ATTRS(attr_int("axis", 0), attr_int("sorted", node_int(n, "sorted", 1))));
    const char *size = length_of(p, out[1], n->out[3]);
    return padded(p, out[1], size, n->out[0]) && padded(p, out[3], size, n->out[2]);
}

bool write_suppress(Put *p, Node *n, const Row *row) {
    const char *in[5];
    for (int i = 0; i < 5; i++) in[i] = put_value(p, n->in[i]);
    const OnnxAttr centered = attr_int("center_point_box", node_int(n, "centered", 0));
    const char *found = put_op(p, NULL, row->op, 5, in, 1, &centered);
    const char *size = length_of(p, found, n->out[1]);
    return padded(p, found, size, n->out[0]);
}
