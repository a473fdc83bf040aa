// SPDX-License-Identifier: MIT OR Apache-2.0
// Losses of a row of targets beside a longer row of predictions, which are not aligned: minus the logarithm of the sum
// of all alignments' probabilities.
//
//   ctc   connectionist temporal classification: predictions [time, batch, classes]. An alignment goes through the
//         target's classes with a blank before, between and behind them (2 length + 1 states), at each step staying,
//         going on by one, or by two over a blank between two classes that differ.
//   rnnt  the transducer: predictions [batch, time, length + 1, classes], of each step after each number of classes. An
//         alignment goes on in time by a blank, or to the next class.
//
// In: predictions, targets [batch, length], how many steps and how many targets count [batch]. The idea: what cannot be
// reached has the logarithm -1e30, whose gradient is 0 and not NaN. All states of one step are one vector; for the
// transducer a step is a diagonal of time and length, which lie in a row once each length's times are moved by as many
// places. The steps are unrolled, so time is known.
#include "build/loss.h"

#include <string.h>

#define NEVER "-1e30"
#define LSE3 "m = max(max(x, y), z); s = m + log(exp(x - m) + exp(y - m) + exp(z - m)); " \
             "next = t < n ? max(s, " NEVER ") + e : x"
#define LSE2 "a = x + b; m = max(a, y); s = m + log(exp(a - m) + exp(y - m)); next = t < n ? max(s, " NEVER ") : x"

static const LossRow rows[] = {
#define LOSS(...)
#define SEQUENCE_LOSS(name, options) { #name, OP_NONE, "x", TARGETS_SEQUENCES, options, NULL },
#include "losses.def"
#undef SEQUENCE_LOSS
#undef LOSS
};

typedef struct Alignment {
    Graph *g;
    Value *x, *target, *times, *lengths;                // [..., classes]; [batch, length]; [batch, 1] twice
    int64_t steps, length, blank;
} Alignment;

const LossRow *sequence_loss_find(const char *name) {
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    return NULL;
}

double loss_number(const LossRow *row, const LossOptions *o, const char *name) {
    const char *list = row->options, *option;
    Arena *a = arena_new();
    double number, found = 0;
    while (row_word(a, &list, &option, &number))
        if (!strcmp(option, name)) found = number;
    for (int i = 0; i < o->given.n; i++)
        if (!strcmp(o->given.at[i].name, name)) found = o->given.at[i].number;
    arena_free(a);
    return found;
}

// x, `by` places further on along the last of two axes
static Value *moved(Graph *g, Value *x, int64_t by, Value *fill) {
    int64_t lo[2] = { 0, by }, hi[2] = { 0, -by }, none[2] = { 0 };
    return b_pad(g, x, lo, hi, none, fill);
}

// ---------------------------------------------------------------- ctc

// The classes of the states: blank, class, blank, ..., class, blank.
static Value *states_of(const Alignment *a) {
    Graph *g = a->g;
    const Dim *dim = a->target->type.dim;
    Value *empty = b_filled(g, DT_I64, (double)a->blank, 2, dim), *both[2] = { empty, a->target };
    Value *pairs = empty ? b_reshape(g, b_stack(g, 2, 2, both), 2, (Dim[]){ dim[0], 2 * a->length }) : NULL;
    int64_t none[2] = { 0 }, one[2] = { 0, 1 };
    return pairs ? b_pad(g, pairs, none, one, none, b_scalar(g, DT_I64, (double)a->blank)) : NULL;
}

// emission: [time, batch, states]; skip: may two states be gone on
static Value *ctc_forward(const Alignment *a, Value *emission, Value *skip) {
    Graph *g = a->g;
    Dim count = emission->type.dim[2];
    Value *state = b_iota(g, 1, &count, 0, DT_I64), *first = b_remove(g, b_part(g, emission, 0, 0, 1), 0);
    Value *x = B_MAP(g, "y < 2 ? x : " NEVER, "x y", first, state);
    for (int64_t t = 1; t < a->steps && x; t++) {
        Formula f = { .g = g };
        Value *never = b_like(g, x, -1e30), *one = moved(g, x, 1, never), *two = moved(g, x, 2, never);
        two = b_where(g, skip, two, never);
        Value *now = b_remove(g, b_part(g, emission, 0, t, 1), 0);
        if (!one || !two || !now) return NULL;
        formula_let(&f, "x", x, 0);
        formula_let(&f, "y", one, 0);
        formula_let(&f, "z", two, 0);
        formula_let(&f, "e", now, 0);
        formula_let(&f, "n", a->times, 0);
        formula_let(&f, "t", b_scalar(g, DT_I64, (double)t), 0);
        x = formula_run(&f, LSE3) ? formula_value(&f, "next") : NULL;
    }
    return x;
}

// Minus the logarithm of both ways to end: in the last blank, or in the last class, if there is one.
static Value *ctc_ended(const Alignment *a, Value *x) {
    Graph *g = a->g;
    Value *last = B_MAP(g, "2 * x", "x", a->lengths), *before = B_MAP(g, "max(2 * x - 1, 0)", "x", a->lengths);
    Value *blank = b_remove(g, b_gather_elements(g, x, last, 1), 1);
    Value *class = b_remove(g, b_gather_elements(g, x, before, 1), 1);
    Value *some = b_remove(g, B_MAP(g, "x > 0", "x", a->lengths), 1);
    return B_MAP(g, "c ? -(max(x, y) + log(1 + exp(-abs(x - y)))) : -x", "c x y", some, blank, class);
}

static Value *ctc(const Alignment *a) {
    Graph *g = a->g;
    Value *class = states_of(a);
    Value *other = class ? moved(g, class, 2, b_scalar(g, DT_I64, (double)a->blank)) : NULL;
    Value *skip = B_MAP(g, arena_printf(g->arena, "x != %lld && x != y", (long long)a->blank), "x y", class, other);
    if (!skip) return NULL;
    Dim all[3] = { a->x->type.dim[0], class->type.dim[0], class->type.dim[1] };
    Value *emission = b_gather_elements(g, a->x, b_expand(g, class, 3, all), 2);
    Value *x = emission ? ctc_forward(a, emission, skip) : NULL;
    return x ? ctc_ended(a, x) : NULL;
}

// ---------------------------------------------------------------- rnnt

// x [batch, length, time]: [batch, length, time + length - 1], row u moved by u places, -1e30 around
static Value *skewed(const Alignment *a, Value *x) {
    Graph *g = a->g;
    const int64_t rows_of = x->type.dim[1], wide = a->steps + rows_of, flat = rows_of * (wide - 1);
    int64_t none[3] = { 0 }, more[3] = { 0, 0, rows_of };
    const Dim batch = x->type.dim[0];
    x = b_pad(g, x, none, more, none, b_like(g, x, -1e30));
    x = x ? b_reshape(g, x, 2, (Dim[]){ batch, rows_of * wide }) : NULL;
    x = b_part(g, x, 1, 0, flat);
    return x ? b_reshape(g, x, 3, (Dim[]){ batch, rows_of, wide - 1 }) : NULL;
}

// The logarithms of the blank and of the next class, [batch, length + 1, time]; there is none behind the last class.
static bool rnnt_steps(const Alignment *a, Value **blank, Value **label) {
    static const int swap[] = { 0, 2, 1 };
    Graph *g = a->g;
    Value *b = b_transpose(g, b_remove(g, b_part(g, a->x, 3, a->blank, 1), 3), swap);
    Value *next = b_insert(g, b_insert(g, a->target, 1), 3), *from = b_part(g, a->x, 2, 0, a->length);
    if (!b || !next || !from) return false;
    const Dim *dim = from->type.dim;
    Value *index = b_expand(g, next, 4, (Dim[]){ dim[0], dim[1], dim[2], 1 });
    Value *l = b_transpose(g, b_remove(g, b_gather_elements(g, from, index, 3), 3), swap);
    int64_t none[3] = { 0 }, one[3] = { 0, 1, 0 };
    *blank = b;
    *label = l ? b_pad(g, l, none, one, none, b_like(g, l, -1e30)) : NULL;
    return *label != NULL;
}

static Value *diagonal(Graph *g, Value *x, int64_t d) { return b_remove(g, b_part(g, x, 2, d, 1), 2); }

static Value *rnnt_forward(const Alignment *a, Value *blank, Value *label) {
    Graph *g = a->g;
    if (!blank || !label) return NULL;
    Dim count = a->length + 1;
    Value *state = b_iota(g, 2, (Dim[]){ 1, count }, 1, blank->type.dtype);
    Value *x = B_MAP(g, "x < 1 ? 0 : " NEVER, "x", state);
    x = x ? b_expand(g, x, 2, (Dim[]){ blank->type.dim[0], count }) : NULL;
    Value *last = B_MAP(g, "x + y", "x y", a->times, a->lengths);
    for (int64_t d = 1; d < a->steps + a->length && x; d++) {
        Formula f = { .g = g };
        Value *on = diagonal(g, blank, d - 1), *next = diagonal(g, label, d - 1), *never = b_like(g, x, -1e30);
        next = b_binary(g, OP_Add, x, next);
        next = next ? moved(g, next, 1, never) : NULL;
        if (!on || !next) return NULL;
        formula_let(&f, "x", x, 0);
        formula_let(&f, "b", on, 0);
        formula_let(&f, "y", next, 0);
        formula_let(&f, "n", last, 0);
        formula_let(&f, "t", b_scalar(g, DT_I64, (double)d), 0);
        x = formula_run(&f, LSE2) ? formula_value(&f, "next") : NULL;
    }
    return x;
}

// Behind the last class a blank ends it.
static Value *rnnt(const Alignment *a) {
    Graph *g = a->g;
    Value *blank, *label;
    if (!rnnt_steps(a, &blank, &label)) return NULL;
    Value *on = skewed(a, blank), *next = skewed(a, label), *x = rnnt_forward(a, on, next);
    if (!x) return NULL;
    Value *flat = b_reshape(g, blank, 2, (Dim[]){ blank->type.dim[0], (a->length + 1) * a->steps });
    Value *at = B_MAP(g, arena_printf(g->arena, "y * %lld + max(x - 1, 0)", (long long)a->steps), "x y", a->times,
        a->lengths);
    Value *reached = b_remove(g, b_gather_elements(g, x, a->lengths, 1), 1);
    Value *end = b_remove(g, b_gather_elements(g, flat, at, 1), 1);
    return B_MAP(g, "-(x + y)", "x y", reached, end);
}

// ---------------------------------------------------------------- both

static bool fits(Graph *g, const LossRow *row, Value *const *in) {
    const bool is_ctc = row == &rows[0];
    const Type *x = &in[0]->type, *t = &in[1]->type, *times = &in[2]->type, *lengths = &in[3]->type;
    const bool whole = dtype_is_int(t->dtype) && dtype_is_int(times->dtype) && dtype_is_int(lengths->dtype);
    if (x->rank == (is_ctc ? 3 : 4) && dtype_is_float(x->dtype) && t->rank == 2 && whole && times->rank == 1
        && lengths->rank == 1)
        return true;
    return graph_fail(g, "wants %s, targets [batch, length] and two lists of lengths, not %s, %s, %s and %s",
        is_ctc ? "log-probabilities [time, batch, classes]" : "scores [batch, time, length + 1, classes]",
        type_text(g->arena, g, x), type_text(g->arena, g, t), type_text(g->arena, g, times),
        type_text(g->arena, g, lengths)) != NULL;
}

static Value *logarithms(Graph *g, Value *x) {
    Node *n = graph_node(g, OP_LogSoftmax, 1, &x, 1);
    node_set_int(n, "axis", x->type.rank - 1);
    return b_finish(n);
}

static Value *reduced(const Alignment *a, Value *loss, const char *how, bool by_length) {
    Graph *g = a->g;
    int64_t axes[1] = { 0 };
    if (!loss || !strcmp(how, "none")) return loss;
    if (!strcmp(how, "sum")) return b_reduce(g, OP_ReduceSum, loss, 1, axes, false);
    if (strcmp(how, "mean")) return graph_fail(g, "there is no reduction \"%s\"; there are mean, sum, none", how);
    Value *count = b_cast(g, b_remove(g, a->lengths, 1), loss->type.dtype);
    Value *share = by_length ? B_MAP(g, "x / max(y, 1)", "x y", loss, count) : loss;
    return share ? b_reduce(g, OP_ReduceMean, share, 1, axes, false) : NULL;
}

Value *b_sequence_loss(Graph *g, const LossRow *row, Value *const *in, const LossOptions *o) {
    const bool is_ctc = row == &rows[0];
    if (!fits(g, row, in)) return NULL;
    Value *x = b_wide(g, in[0]);
    if (x && loss_number(row, o, "logits") > 0) x = logarithms(g, x);
    if (x && loss_number(row, o, "batch_first") > 0) x = b_transpose(g, x, (int[]){ 1, 0, 2 });
    if (!x) return NULL;
    const Dim steps = x->type.dim[is_ctc ? 0 : 1], length = in[1]->type.dim[1];
    if (!dim_is_const(steps) || !dim_is_const(length))
        return graph_fail(g, "%s: the steps of %s and the targets %s have to be known", row->name,
            type_text(g->arena, g, &x->type), type_text(g->arena, g, &in[1]->type));
    Alignment a = { .g = g, .x = x, .steps = steps, .length = length };
    a.blank = (int64_t)loss_number(row, o, "blank");
    a.target = b_cast(g, in[1], DT_I64);
    a.times = b_insert(g, b_cast(g, in[2], DT_I64), 1);
    a.lengths = b_insert(g, b_cast(g, in[3], DT_I64), 1);
    if (!a.target || !a.times || !a.lengths) return NULL;
    if (!is_ctc && x->type.dim[2] != length + 1)
        return graph_fail(g, "%s: targets %s want scores of %lld lengths, not %s", row->name,
            type_text(g->arena, g, &in[1]->type), (long long)length + 1, type_text(g->arena, g, &x->type));
    Value *loss = is_ctc ? ctc(&a) : rnnt(&a);
    if (is_ctc) loss = B_MAP(g, loss_number(row, o, "zero_infinity") > 0 ? "x > 1e29 ? 0 : x" : "x > 1e29 ? inf : x",
        "x", loss);
    return reduced(&a, loss, o->reduction ? o->reduction : "mean", is_ctc);
}
