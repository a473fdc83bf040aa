// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls that find an unknown number of things: places, elements, boxes.
//
// In: tensors. Out: lists as long as they can get, 0 behind what was found, and the number: sizes of a description are
// known before the program runs.
#include "import/describe/describe.h"

#include <math.h>

// Where a list of bools is true, and how often.
static Node *positions(Graph *g, Value *flags) {
    if (!flags) return NULL;
    Dim all = type_size(g, &flags->type);
    Value *list = b_reshape(g, flags, 1, &all);
    Node *n = list ? graph_node(g, OP_Positions, 1, &list, 2) : NULL;
    return n && b_finish(n) ? n : NULL;
}

static Value *flags_of(Graph *g, Value *x) {
    return x->type.dtype == DT_BOOL ? x : B_MAP(g, "x != 0", "x", x);
}

// [n]: does element i count?
static Value *counting(Graph *g, Value *count, Dim n) {
    Value *place = b_iota(g, 1, &n, 0, DT_I64);
    return B_MAP(g, "x < y", "x y", place, count);
}

struct burn_located language_located(const burn_place *at, burn_value *x) {
    Graph *g = here(at, NULL);
    struct burn_located found = { NULL, NULL };
    Value *column[MAX_RANK];
    if (!x) return found;
    Node *n = positions(g, flags_of(g, x));
    if (!n) return found;
    Value *rest = n->out[0];
    int rank = x->type.rank;
    for (int i = rank - 1; i >= 0; i--) {               // the last coordinate is what is left of its axis, and so on
        Value *size = i ? b_number(g, x->type.dim[i]) : NULL;
        column[i] = i ? B_MAP(g, "x % y", "x y", rest, size) : rest;
        if (i) rest = B_MAP(g, "x / y", "x y", rest, size);
    }
    found.count = n->out[1];
    found.values = rank ? b_stack(g, 1, rank, column) : b_insert(g, rest, 1);
    return found;
}

struct burn_located language_masked(const burn_place *at, burn_value *x, burn_value *mask) {
    Graph *g = here(at, NULL);
    struct burn_located found = { NULL, NULL };
    if (!x || !mask) return found;
    if (mask->type.rank > x->type.rank) {
        graph_fail(g, "a mask %s does not fit %s", shown(g, mask), shown(g, x));
        return found;
    }
    Value *flags = b_expand(g, flags_of(g, mask), x->type.rank, x->type.dim);
    Node *n = positions(g, flags);
    if (!n) return found;
    Dim all = type_size(g, &x->type);
    Value *taken = b_gather(g, b_reshape(g, x, 1, &all), n->out[0], 0), *counts = counting(g, n->out[1], all);
    found.count = n->out[1];
    found.values = b_where(g, counts, taken, b_like(g, x, 0));
    return found;
}

struct burn_located language_suppress(
    const burn_place *at, burn_value *boxes, burn_value *scores, double overlap) {
    Graph *g = here(at, NULL);
    struct burn_located found = { NULL, NULL };
    if (!boxes || !scores) return found;
    const Type *b = &boxes->type, *s = &scores->type;
    if (b->rank != 2 || b->dim[1] != 4 || s->rank != 1 || !dim_equal(g, s->dim[0], b->dim[0])) {
        graph_fail(g, "wants boxes [n, 4] and scores [n], not %s and %s", shown(g, boxes), shown(g, scores));
        return found;
    }
    Dim count = b->dim[0];
    Value *in[5], *row = b_insert(g, b_cast(g, scores, DT_F32), 0);
    in[0] = b_insert(g, b_cast(g, boxes, DT_F32), 0);
    in[1] = b_insert(g, row, 0);
    in[2] = b_number(g, count);
    in[3] = b_scalar(g, DT_F32, overlap);
    in[4] = b_scalar(g, DT_F32, -INFINITY);
    Node *n = graph_node(g, OP_Suppress, 5, in, 2);
    node_set_ints(n, "sizes", &count, 1);
    node_set_int(n, "centered", 0);
    if (!b_finish(n)) return found;
    found.count = n->out[1];
    found.values = b_remove(g, b_part(g, n->out[0], 1, 2, 1), 1);
    return found;
}
