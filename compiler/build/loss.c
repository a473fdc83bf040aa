// SPDX-License-Identifier: MIT OR Apache-2.0
// The losses of losses.def.
//
// In: predictions, targets, options. Out: maps and reductions to a number, or with the reduction "none" one for each
// target. The idea: where targets are classes, `hit` masks by target == class, so that the gradient is a map and no
// scatter, and targets outside 0..C-1 contribute 0.
#include "build/loss.h"

#include <string.h>

static const LossRow losses[] = {
#define LOSS(op, name, operands, targets, options, formula) \
    { #name, OP_##op, operands, TARGETS_##targets, options, formula },
#include "losses.def"
#undef LOSS
};

const char loss_names[] = ""
#define LOSS(op, name, ...) " " #name
#define SEQUENCE_LOSS(name, options) " " #name
#include "losses.def"
#undef SEQUENCE_LOSS
#undef LOSS
    ;

const LossRow *loss_find(const char *name) {
    for (size_t i = 0; i < COUNT(losses); i++)
        if (!strcmp(losses[i].name, name)) return &losses[i];
    return sequence_loss_find(name);
}

const LossRow *loss_of(Op op) {
    for (size_t i = 0; i < COUNT(losses); i++)
        if (losses[i].op == op) return &losses[i];
    bug("operation %d is no row of losses.def", (int)op);
}

// Is name one of the list's words?
static bool lists(const char *list, const char *name) {
    for (size_t n = strlen(name); *(list += strspn(list, " ")); list += strcspn(list, " "))
        if (!strncmp(list, name, n) && strchr(" =", list[n])) return true;
    return false;
}

bool loss_has(const LossRow *row, const char *option) { return lists(row->options, option); }

int loss_operands(const LossRow *row) {
    int n = 1;
    for (const char *s = row->operands; *s; s++) n += *s == ' ';
    return n;
}

Type loss_target_type(const LossRow *row, const Type *x, int axis) {
    Type t = *x;
    if (row->targets != TARGETS_CLASSES && row->targets != TARGETS_ROWS) return t;
    for (int i = axis; i + 1 < t.rank; i++) t.dim[i] = t.dim[i + 1];
    t.rank--;
    if (row->targets == TARGETS_CLASSES) t.dtype = DT_I64;
    return t;
}

// ---------------------------------------------------------------- what formulas know

// Whether each element of x is its row's class; rows: targets with the axis as 1.
static Value *hits(Graph *g, const Value *x, Value *rows, const LossOptions *o) {
    Dim dims[MAX_RANK];
    for (int i = 0; i < x->type.rank; i++) dims[i] = i == o->axis ? x->type.dim[i] : 1;
    Value *classes = b_iota(g, x->type.rank, dims, o->axis, rows->type.dtype);
    Value *hit = b_binary(g, OP_Equal, rows, classes);
    bool among = o->ignores && o->ignored >= 0;         // else no class equals it
    Value *other = among ? B_MAP(g, arena_printf(g->arena, "x != %lld", (long long)o->ignored), "x", rows) : NULL;
    return among ? b_binary(g, OP_And, hit, other) : hit;
}

static bool let_classes(Formula *f, const Value *x, Value *target, const LossOptions *o) {
    Graph *g = f->g;
    Value *rows = b_insert(g, target, o->axis), *hit = rows ? hits(g, x, rows, o) : NULL, *kept = NULL;
    if (!hit) return false;
    if (o->ignores) {
        kept = B_MAP(g, arena_printf(g->arena, "x != %lld", (long long)o->ignored), "x", rows);
        kept = b_cast(g, kept, x->type.dtype);
        if (!kept) return false;
    }
    formula_let(f, "hit", hit, 0);
    formula_let(f, "kept", kept, 1);
    return true;
}

static bool let_axis(Formula *f, Value *x, const LossRow *row, const LossOptions *o) {
    Graph *g = f->g;
    Dim n = x->type.dim[o->axis];
    Value *weight = NULL;
    if (o->weight) {
        bool fits = o->weight->type.rank == 1 && o->weight->type.dim[0] == n;
        if (!fits) return graph_fail(g, "%s: the weights are not one for each class", row->name) != NULL;
        weight = b_along(g, b_cast(g, o->weight, x->type.dtype), x->type.rank, o->axis);
        if (!weight) return false;
    }
    Value *count = dim_is_const(n) ? NULL : b_count(g, x, 1, (int64_t[]){ o->axis }, x->type.dtype);
    formula_let(f, "w", weight, 1);
    formula_let(f, "classes", count, dim_is_const(n) ? (double)n : 0);
    formula_let(f, "one", b_like(g, x, 1), 0);
    return true;
}

static bool let_options(Formula *f, const Value *x, const LossRow *row, const LossOptions *o) {
    Arena *a = f->g->arena;
    const char *list = row->options, *name;
    for (double number; row_word(a, &list, &name, &number);) {
        Value *value = NULL;
        for (int i = 0; i < o->given.n; i++) {
            if (strcmp(o->given.at[i].name, name)) continue;
            value = o->given.at[i].value;
            number = o->given.at[i].number;
        }
        if (value && !(value = b_cast(f->g, value, x->type.dtype))) return false;
        formula_let(f, name, value, number);
    }
    return true;
}

static bool by_rows(const LossRow *row) { return row->targets != TARGETS_VALUES; }

static bool let_operands(Formula *f, const LossRow *row, Value *const *in, const LossOptions *o) {
    Graph *g = f->g;
    const char *list = row->operands, *name;
    double number;
    int n = 0;
    Value *x = b_wide(g, in[0]);
    if (!x) return false;
    while (row_word(g->arena, &list, &name, &number)) {
        Value *v = b_cast(g, in[n++], x->type.dtype);
        if (!v) return false;
        formula_let(f, name, v, 0);
    }
    if (row->targets == TARGETS_CLASSES && !let_classes(f, x, in[n], o)) return false;
    if (row->targets != TARGETS_CLASSES && row->targets != TARGETS_NONE) {
        Value *t = b_cast(g, in[n], x->type.dtype);
        t = row->targets == TARGETS_ROWS ? b_insert(g, t, o->axis) : t;
        if (!t) return false;
        formula_let(f, "t", t, 0);
    }
    return (!by_rows(row) || let_axis(f, x, row, o)) && let_options(f, x, row, o);
}

// ---------------------------------------------------------------- reductions

static Value *sum_of(Graph *g, Value *v) {
    int64_t axes[MAX_RANK];
    for (int i = 0; v && i < v->type.rank; i++) axes[i] = i;
    return v ? b_reduce(g, OP_ReduceSum, v, v->type.rank, axes, false) : NULL;
}

static Value *number_of(Graph *g, Value *v, DType d) {
    int64_t axes[MAX_RANK];
    for (int i = 0; i < v->type.rank; i++) axes[i] = i;
    return b_count(g, v, v->type.rank, axes, d);
}

static Value *reduced(Formula *f, const LossRow *row, Value *const *in, const LossOptions *o) {
    Graph *g = f->g;
    Value *each = formula_value(f, "loss");
    const char *how = o->reduction ? o->reduction : "mean";
    bool classes = row->targets == TARGETS_CLASSES;
    if (each && o->weight && !by_rows(row))
        each = b_binary(g, OP_Mul, each, b_cast(g, o->weight, each->type.dtype));
    if (!each) return NULL;
    if (!strcmp(how, "none")) {
        if (classes) return b_reduce(g, OP_ReduceSum, each, 1, (int64_t[]){ o->axis }, false);
        return by_rows(row) ? b_remove(g, each, o->axis) : each;
    }
    DType d = each->type.dtype;
    Value *sum = sum_of(g, each), *count = NULL;
    if (!sum || !strcmp(how, "sum")) return sum;
    if (!strcmp(how, "batchmean") && each->type.rank) count = b_count(g, each, 1, (int64_t[]){ 0 }, d);
    else if (strcmp(how, "mean"))
        return graph_fail(g, "there is no reduction \"%s\"; there are mean, sum, batchmean, none", how);
    else if ((o->weight || o->ignores) && formula_has(f, "count")) count = sum_of(g, formula_value(f, "count"));
    else count = number_of(g, classes ? in[loss_operands(row)] : each, d);
    return count ? b_binary(g, OP_Div, sum, count) : NULL;
}

static bool fits(Graph *g, const LossRow *row, Value *const *in, const LossOptions *o) {
    const Type *x = &in[0]->type;
    int n = loss_operands(row);
    if (!dtype_is_float(x->dtype) || (by_rows(row) && (o->axis < 0 || o->axis >= x->rank)))
        return graph_fail(g, "%s wants rows of floats, not %s", row->name, type_text(g->arena, g, x)) != NULL;
    if (row->targets == TARGETS_NONE) return true;
    const Type *t = &in[n]->type;
    Type want = loss_target_type(row, x, o->axis);
    bool values = row->targets == TARGETS_VALUES;       // may broadcast
    bool ok = row->targets == TARGETS_CLASSES ? dtype_is_int(t->dtype) : true;
    if (!ok || (!values && t->rank != want.rank))
        return graph_fail(g, "%s wants targets %s for predictions %s, not %s", row->name,
                   type_text(g->arena, g, &want), type_text(g->arena, g, x), type_text(g->arena, g, t)) != NULL;
    return true;
}

Value *b_loss(Graph *g, const LossRow *row, Value *const *in, const LossOptions *o) {
    Formula f = { .g = g, .axis = o->axis };
    const bool sequences = row->targets == TARGETS_SEQUENCES;
    int n = loss_operands(row) + (sequences ? 3 : row->targets != TARGETS_NONE);
    for (int i = 0; i < n; i++)
        if (!in[i]) return NULL;
    if (sequences) return b_sequence_loss(g, row, in, o);
    if (!fits(g, row, in, o) || !let_operands(&f, row, in, o) || !formula_run(&f, row->formula)) return NULL;
    return reduced(&f, row, in, o);
}
