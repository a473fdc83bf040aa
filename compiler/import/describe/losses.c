// SPDX-License-Identifier: MIT OR Apache-2.0
// Losses as functions, for models that bring their own: PyTorch's formulas, which are the rows of losses.def.
//
// In: a prediction and a target, of some losses a third tensor. Out: a number, or with .reduction = "none" one for each
// target. The idea: a function of the language is a row by its name without "_loss", and the struct's fields are the
// row's options by their names.
#include "build/loss.h"
#include "import/describe/describe.h"

#include <string.h>

// The row, and what the function's name says of its options.
static const LossRow *row_of(Arena *a, const char *call, bool *logits) {
    size_t n = strlen(call);
    bool suffix = n > 5 && !strcmp(call + n - 5, "_loss");
    *logits = !strcmp(call, "binary_cross_entropy_with_logits");
    const LossRow *row = loss_find(*logits ? "binary_cross_entropy" : arena_strndup(a, call, suffix ? n - 5 : n));
    if (!row) bug("%s is no row of losses.def", call);
    return row;
}

static double option_of(const struct burn_loss *o, const char *name, double usual, bool logits) {
    if (!strcmp(name, "logits")) return logits;
    if (!strcmp(name, "full")) return o->full == 1;
    if (!strcmp(name, "swap")) return o->swap == 1;
    if (!strcmp(name, "log_input")) return yes(o->log_input);
    if (!strcmp(name, "log_target")) return o->log_target == 1;
    if (!strcmp(name, "label_smoothing")) return o->label_smoothing;
    const struct { const char *name; double number; } numbers[] = {
        { "beta", o->beta }, { "delta", o->delta }, { "margin", o->margin }, { "p", o->p }, { "eps", o->eps },
    };
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (!strcmp(numbers[i].name, name)) return given(numbers[i].number, usual);
    return usual;
}

static LossOptions options_of(Graph *g, const LossRow *row, const Value *x, const struct burn_loss *o, bool logits) {
    LossOptions all = { .reduction = o->reduction, .axis = 1, .weight = o->weight };
    const char *list = row->options, *name;
    for (double usual; row_word(g->arena, &list, &name, &usual);) {
        Value *value = strcmp(name, "pos_weight") ? NULL : o->pos_weight;
        VEC_PUSH(g->arena, all.given, ((LossOption){ name, value, option_of(o, name, usual, logits) }));
    }
    if (row->targets == TARGETS_ROWS || row->targets == TARGETS_NONE) all.axis = x->type.rank - 1;
    all.ignores = row->targets == TARGETS_CLASSES;
    all.ignored = (int64_t)given((double)o->ignore_index, -100);
    return all;
}

static bool classes_fit(Graph *g, const LossRow *row, const Value *x, const Value *target, const struct burn_loss *o) {
    if (x->type.rank < 2 || !dtype_is_int(target->type.dtype))
        return graph_fail(g, "wants scores [batch, classes, ...] and numbers of classes, not %s and %s", shown(g, x),
            shown(g, target)) != NULL;
    if (o->label_smoothing < 0 || o->label_smoothing >= 1)
        return graph_fail(g, "a label smoothing of %g", o->label_smoothing) != NULL;
    double p = given(o->p, 1);
    if (strcmp(row->name, "multi_margin")) return true;
    if (x->type.rank != 2 || target->type.rank != 1)
        return graph_fail(g, "wants scores [batch, classes] and a list, not %s and %s", shown(g, x), shown(g, target))
            != NULL;
    return p == 1 || p == 2 || graph_fail(g, "p is %g; it can be 1 or 2", p) != NULL;
}

burn_value *language_sequence_loss(const burn_place *at, burn_value *x, burn_value *target, burn_value *times,
    burn_value *lengths, const struct burn_loss *o) {
    Graph *g = here(at, NULL);
    const LossRow *row = loss_find(!strcmp(at->call, "ctc_loss") ? "ctc" : "rnnt");
    LossOptions all = { .reduction = o->reduction };
    VEC_PUSH(g->arena, all.given, ((LossOption){ "blank", NULL, (double)o->blank }));
    VEC_PUSH(g->arena, all.given, ((LossOption){ "zero_infinity", NULL, o->zero_infinity == 1 }));
    Value *in[4] = { x, target, times, lengths };
    return b_loss(g, row, in, &all);
}

burn_value *language_loss(const burn_place *at, burn_value *x, burn_value *target, const struct burn_loss *o) {
    Graph *g = here(at, NULL);
    bool logits, cross = !strcmp(at->call, "cross_entropy");
    if (!x || !target) return NULL;
    if (!dtype_is_float(x->type.dtype)) return graph_fail(g, "wants floats, not %s", shown(g, x));
    const LossRow *row = row_of(g->arena, at->call, &logits);
    if (cross && type_equal(&x->type, &target->type)) row = loss_find("soft_cross_entropy");
    int operands = loss_operands(row) + (row->targets != TARGETS_NONE);
    // the language gives the target before the third tensor where that is the model's too
    bool variance = !strcmp(row->name, "gaussian_nll");
    Value *in[3] = { x, variance ? o->third : target, variance ? target : o->third };
    if (operands == 3 && !o->third) return NULL;
    if (row->targets == TARGETS_CLASSES && !classes_fit(g, row, x, target, o)) return NULL;
    if (row->targets != TARGETS_VALUES && x->type.rank < 1) return graph_fail(g, "wants rows, not %s", shown(g, x));
    LossOptions all = options_of(g, row, x, o, logits);
    return b_loss(g, row, in, &all);
}
