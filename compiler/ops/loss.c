// SPDX-License-Identifier: MIT OR Apache-2.0
// The losses of losses.def as operations.
//
// In: what a model gives, the targets, weights or none; attributes axis (of the classes, the last), reduction,
// ignore_index and the row's options. Out: a number, in the predictions' dtype.
#include "build/loss.h"
#include "common.h"
#include "table.h"

static bool targets_fit(Node *n, const LossRow *row, int axis) {
    const Type *x = &n->in[0]->type;
    int at = loss_operands(row);
    bool classes = row->targets == TARGETS_CLASSES;
    if (row->targets == TARGETS_NONE) return true;
    const Type *t = &n->in[at]->type;
    Type want = loss_target_type(row, x, axis);
    bool fits = want.rank == t->rank;
    for (int i = 0; fits && i < t->rank; i++) fits = dims_agree(n, want.dim[i], t->dim[i]);
    if (!fits)
        diag_error(n->loc, "targets %s must have the shape of %s%s", value_type_text(n->in[at]),
            value_type_text(n->in[0]), want.rank < x->rank ? " without the axis of the classes" : "");
    return fits && (!classes || op_index_type(n, n->in[at]));
}

static LossOptions options_of(const Node *n, const LossRow *row, int axis) {
    Arena *a = n->graph->arena;
    LossOptions o = { .axis = axis, .reduction = node_string(n, "reduction", "mean") };
    const char *list = row->options, *name;
    for (double number; row_word(a, &list, &name, &number);)
        VEC_PUSH(a, o.given, ((LossOption){ name, NULL, node_float(n, name, number) }));
    o.ignores = node_attr(n, "ignore_index") != NULL;
    o.ignored = node_int(n, "ignore_index", 0);
    return o;
}

bool expand_loss(Node *n, Value **out) {
    const LossRow *row = loss_of(n->op);
    int wanted = loss_operands(row) + (row->targets != TARGETS_NONE), rank = n->in[0]->type.rank;
    int64_t axis = node_int(n, "axis", -1);
    axis += axis < 0 ? rank : 0;
    if (n->n_in != wanted && n->n_in != wanted + 1) {
        diag_error(n->loc, "%s wants %d inputs and may have weights, it has %d", op_table[n->op].name, wanted, n->n_in);
        return false;
    }
    if (row->targets != TARGETS_VALUES && (axis < 0 || axis >= rank)) {
        diag_error(n->loc, "%s is no predictions for %s", value_type_text(n->in[0]), row->name);
        return false;
    }
    if (!targets_fit(n, row, (int)axis)) return false;
    LossOptions o = options_of(n, row, (int)axis);
    o.weight = n->n_in > wanted ? n->in[wanted] : NULL;
    return expand_done(n, b_loss(n->graph, row, n->in, &o), out);
}
