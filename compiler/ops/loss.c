// SPDX-License-Identifier: MIT OR Apache-2.0
// The losses of losses.def. In: predictions and targets. Out: one number, in the predictions' dtype.
//
//   the sum of the formula's `loss` over all elements, divided by the number of targets
//
// Where targets are classes, `hit` masks by target == class, so that the gradient is a map and no scatter; targets
// outside 0..C-1 contribute 0.
#include "common.h"
#include "table.h"
#include "formulas.h"

#include <string.h>

enum { TARGET_VALUES, TARGET_CLASSES };

static const LossRow losses[] = {
#define LOSS(op, name, through, targets, formula) { #name, OP_##op, OP_##through, TARGET_##targets, formula },
#include "losses.def"
#undef LOSS
};

const char loss_names[] = ""
#define LOSS(op, name, ...) " " #name
#include "losses.def"
#undef LOSS
    ;

const LossRow *loss_find(const char *name) {
    for (size_t i = 0; i < COUNT(losses); i++)
        if (!strcmp(losses[i].name, name)) return &losses[i];
    return NULL;
}

static const LossRow *loss_of(Op op) {
    for (size_t i = 0; i < COUNT(losses); i++)
        if (losses[i].op == op) return &losses[i];
    bug("%s is no row of losses.def", op_table[op].name);
}

// May the targets' dimensions be the first of the predictions'? A row of classes has one more.
static bool targets_fit(Node *n, const LossRow *row) {
    const Type *x = &n->in[0]->type, *t = &n->in[1]->type;
    bool fits = x->rank == t->rank + row->classes;
    for (int i = 0; fits && i < t->rank; i++) fits = dims_agree(n, x->dim[i], t->dim[i]);
    if (!fits)
        diag_error(n->loc, "targets %s must have the shape of %s%s", value_type_text(n->in[1]),
            value_type_text(n->in[0]), row->classes ? " without its last axis, the classes" : "");
    return fits && (!row->classes || op_index_type(n, n->in[1]));
}

// Whether each element of x is its row's class.
static Value *hits(Graph *g, const Value *x, Value *targets) {
    Type t = targets->type;
    t.dim[t.rank++] = 1;
    Dim dims[MAX_RANK];
    for (int i = 0; i < t.rank; i++) dims[i] = i == t.rank - 1 ? x->type.dim[i] : 1;
    Value *row = b_reshape(g, targets, t.rank, t.dim), *classes = b_iota(g, t.rank, dims, t.rank - 1, t.dtype);
    return b_binary(g, OP_Equal, row, classes);
}

static Value *through(Graph *g, const LossRow *row, Value *x) {
    if (row->through == OP_Identity || !x) return x;
    Node *n = graph_node(g, row->through, 1, &x, 1);
    node_set_int(n, "axis", x->type.rank - 1);
    return b_finish(n);
}

bool expand_loss(Node *n, Value **out) {
    Graph *g = n->graph;
    const LossRow *row = loss_of(n->op);
    if (!targets_fit(n, row)) return false;
    int64_t axes[MAX_RANK];
    Value *x = b_wide(g, n->in[0]);
    x = through(g, row, x);
    if (!x) return false;
    Formula f = { .g = g };
    formula_let(&f, "x", x, 0);
    if (row->classes) formula_let(&f, "hit", hits(g, x, n->in[1]), 0);
    else formula_let(&f, "t", b_cast(g, n->in[1], x->type.dtype), 0);
    if (!formula_run(&f, row->formula)) return false;
    Value *elements = formula_value(&f, "loss"), *targets = n->in[1];
    Value *sum = b_reduce(g, OP_ReduceSum, elements, all_axes(elements, axes), axes, false);
    Value *count = b_count(g, targets, all_axes(targets, axes), axes, x->type.dtype);
    return expand_done(n, b_binary(g, OP_Div, sum, count), out);
}
