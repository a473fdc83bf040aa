// SPDX-License-Identifier: MIT OR Apache-2.0
// The optimizers of optimizers.def. In: a parameter, its gradient, the optimizer's state, hyper-parameters. Out: the
// parameter and the state after one step. And the schedules of schedules.def, which are expressions alone.
#include "common.h"
#include "table.h"
#include "formulas.h"

#include <math.h>
#include <string.h>

static const OptimizerRow optimizers[] = {
#define OPTIMIZER(op, name, state, hyper, options, steps) { #name, OP_##op, state, hyper, options, steps },
#include "optimizers.def"
#undef OPTIMIZER
};
static const struct { Op op, other; } others[] = {
#define OPTIMIZER(...)
#define OTHERS(op, other) { OP_##op, OP_##other },
#include "optimizers.def"
#undef OPTIMIZER
};
static const ScheduleRow schedules[] = {
#define SCHEDULE(name, hyper, assignments) { #name, hyper, assignments },
#include "schedules.def"
#undef SCHEDULE
};

const char optimizer_names[] = ""
#define OPTIMIZER(op, name, ...) " " #name
#include "optimizers.def"
#undef OPTIMIZER
    ;
const char schedule_names[] = ""
#define SCHEDULE(name, ...) " " #name
#include "schedules.def"
#undef SCHEDULE
    ;

const OptimizerRow *optimizer_find(const char *name) {
    for (size_t i = 0; i < COUNT(optimizers); i++)
        if (!strcmp(optimizers[i].name, name)) return &optimizers[i];
    return NULL;
}

const OptimizerRow *optimizer_of(Op op) {
    for (size_t i = 0; i < COUNT(optimizers); i++)
        if (optimizers[i].op == op) return &optimizers[i];
    bug("%s is no row of optimizers.def", op_table[op].name);
}

const OptimizerRow *optimizer_others(const OptimizerRow *row) {
    for (size_t i = 0; i < COUNT(others); i++)
        if (others[i].op == row->op) return optimizer_of(others[i].other);
    return NULL;
}

const ScheduleRow *schedule_find(const char *name) {
    for (size_t i = 0; i < COUNT(schedules); i++)
        if (!strcmp(schedules[i].name, name)) return &schedules[i];
    return NULL;
}

// ---------------------------------------------------------------- the operations

static int count_words(Arena *a, const char *list) {
    int n = 0;
    double number;
    for (const char *name; row_word(a, &list, &name, &number);) n++;
    return n;
}

bool shape_update(Node *n) {
    const OptimizerRow *row = optimizer_of(n->op);
    Arena *a = n->graph->arena;
    int tensors = 2 + count_words(a, row->state), scalars = count_words(a, row->hyper);
    if (n->n_in < tensors || n->n_in > tensors + scalars || n->n_out != tensors - 1) {
        diag_error(n->loc, "%s wants %d to %d inputs and %d outputs, has %d and %d", op_table[n->op].name, tensors,
            tensors + scalars, tensors - 1, n->n_in, n->n_out);
        return false;
    }
    for (int i = 0; i < tensors; i++) {
        const Type *p = &n->in[0]->type, *t = n->in[i] ? &n->in[i]->type : NULL;
        bool same = t && dtype_is_float(t->dtype) && t->dtype == p->dtype && t->rank == p->rank;
        for (int j = 0; same && j < p->rank; j++) same = dims_agree(n, p->dim[j], t->dim[j]);
        if (same) continue;
        diag_error(n->loc, "input %d is %s, the parameter %s", i, value_type_text(n->in[i]),
            value_type_text(n->in[0]));
        return false;
    }
    for (int i = tensors; i < n->n_in; i++) {
        if (!n->in[i] || (n->in[i]->type.rank == 0 && op_numeric(n, n->in[i]))) continue;
        diag_error(n->loc, "input %d is %s, it must be a number", i, value_type_text(n->in[i]));
        return false;
    }
    const Type *p = &n->in[0]->type;
    if (optimizer_others(row) && (p->rank != 2 || !type_is_static(p))) {
        diag_error(n->loc, "%s is for matrices, not %s", op_table[n->op].name, value_type_text(n->in[0]));
        return false;
    }
    for (int i = 0; i < n->n_out; i++) n->out[i]->type = n->in[i ? i + 1 : 0]->type;
    return true;
}

static void let_sizes(Formula *f, const Type *t) {
    double rows = (double)t->dim[0], columns = (double)t->dim[1];
    formula_let(f, "larger", NULL, sqrt(fmax(rows, columns)));
    formula_let(f, "tall", NULL, sqrt(fmax(1, rows / columns)));
}

bool expand_update(Node *n, Value **out) {
    const OptimizerRow *row = optimizer_of(n->op);
    Arena *a = n->graph->arena;
    Formula f = { .g = n->graph };
    const char *list = row->state, *name;
    double usual;
    int i = 0;
    formula_let(&f, "p", n->in[i++], 0);
    formula_let(&f, "g", n->in[i++], 0);
    while (row_word(a, &list, &name, &usual)) formula_let(&f, name, n->in[i++], 0);
    for (list = row->hyper; row_word(a, &list, &name, &usual); i++) {
        Value *given = i < n->n_in ? n->in[i] : NULL;
        formula_let(&f, name, b_cast(n->graph, given, n->in[0]->type.dtype), node_float(n, name, usual));
    }
    for (list = row->options; row_word(a, &list, &name, &usual);)
        formula_let(&f, name, NULL, node_float(n, name, usual));
    if (optimizer_others(row)) let_sizes(&f, &n->in[0]->type);
    if (!formula_run(&f, row->steps)) return false;
    out[0] = formula_value(&f, "p");
    list = row->state;
    for (i = 1; row_word(a, &list, &name, &usual); i++) out[i] = formula_value(&f, name);
    return true;
}
