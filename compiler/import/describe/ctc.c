// SPDX-License-Identifier: MIT OR Apache-2.0
// The loss of connectionist temporal classification: all alignments of a target with a longer row of predictions.
//
// In: log-probabilities [time, batch, classes], targets [batch, length], how many of both count. Out: minus the
// logarithm of the sum of the alignments' probabilities.
//
// The idea: an alignment goes through the target's classes with a blank before, between and behind them (2 length + 1
// states), at each step staying, going on by one, or by two over a blank between two classes that differ. What has no
// alignment has the logarithm -1e30, whose gradient is 0 and not NaN. The steps are unrolled, so time is known.
#include "import/describe/describe.h"

#include <string.h>

#define NEVER "-1e30"
#define LSE3 "m = max(max(x, y), z); s = m + log(exp(x - m) + exp(y - m) + exp(z - m)); " \
             "next = t < n ? max(s, " NEVER ") + e : x"

typedef struct Alignment {
    Value *emission, *skip, *times;                     // [time, batch, states]; may two be skipped; [batch, 1]
    int64_t steps, states;
} Alignment;

// The classes of the states: blank, class, blank, ..., class, blank.
static Value *states_of(Graph *g, Value *target, int64_t length, int64_t blank) {
    Value *empty = b_filled(g, DT_I64, (double)blank, 2, target->type.dim), *both[2] = { empty, target };
    Value *pairs = empty ? b_reshape(g, b_stack(g, 2, 2, both), 2, (Dim[]){ target->type.dim[0], 2 * length }) : NULL;
    int64_t none[2] = { 0 }, one[2] = { 0, 1 };
    return pairs ? b_pad(g, pairs, none, one, none, b_scalar(g, DT_I64, (double)blank)) : NULL;
}

// x, `by` states further on
static Value *moved(Graph *g, Value *x, int64_t by, Value *fill) {
    int64_t lo[2] = { 0, by }, hi[2] = { 0, -by }, none[2] = { 0 };
    return b_pad(g, x, lo, hi, none, fill);
}

static Value *forward(Graph *g, const Alignment *a) {
    Dim count = a->states;
    Value *state = b_iota(g, 1, &count, 0, DT_I64), *first = b_remove(g, b_part(g, a->emission, 0, 0, 1), 0);
    Value *x = B_MAP(g, "y < 2 ? x : " NEVER, "x y", first, state);
    for (int64_t t = 1; t < a->steps && x; t++) {
        Formula f = { .g = g };
        Value *never = b_like(g, x, -1e30), *one = moved(g, x, 1, never), *two = moved(g, x, 2, never);
        two = b_where(g, a->skip, two, never);
        Value *now = b_remove(g, b_part(g, a->emission, 0, t, 1), 0);
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
static Value *ended(Graph *g, Value *x, Value *lengths) {
    Value *last = B_MAP(g, "2 * x", "x", lengths), *before = B_MAP(g, "max(2 * x - 1, 0)", "x", lengths);
    Value *blank = b_remove(g, b_gather_elements(g, x, last, 1), 1);
    Value *class = b_remove(g, b_gather_elements(g, x, before, 1), 1);
    Value *some = b_remove(g, B_MAP(g, "x > 0", "x", lengths), 1);
    return B_MAP(g, "c ? -(max(x, y) + log(1 + exp(-abs(x - y)))) : -x", "c x y", some, blank, class);
}

static bool ctc_fits(Graph *g, const Value *x, const Value *target, const Value *times, const Value *lengths) {
    bool whole = dtype_is_int(target->type.dtype) && dtype_is_int(times->type.dtype)
        && dtype_is_int(lengths->type.dtype);
    if (x->type.rank == 3 && dtype_is_float(x->type.dtype) && target->type.rank == 2 && whole
        && times->type.rank == 1 && lengths->type.rank == 1)
        return true;
    return graph_fail(g, "wants log-probabilities [time, batch, classes], targets [batch, length] and two lists of "
        "lengths, not %s, %s, %s and %s", shown(g, x), shown(g, target), shown(g, times), shown(g, lengths));
}

burn_value *language_ctc(const burn_place *at, burn_value *x, burn_value *target, burn_value *times,
    burn_value *lengths, const struct burn_loss *o) {
    Graph *g = here(at, NULL);
    const char *how = o->reduction ? o->reduction : "mean";
    Alignment a = { 0 };
    int64_t length;
    if (!x || !target || !times || !lengths || !ctc_fits(g, x, target, times, lengths)
        || !number_in(dim_out(x->type.dim[0]), "the number of steps", &a.steps)
        || !number_in(dim_out(target->type.dim[1]), "the length of the targets", &length))
        return NULL;
    a.states = 2 * length + 1;
    Value *class = states_of(g, b_cast(g, target, DT_I64), length, o->blank);
    Value *other = class ? moved(g, class, 2, b_scalar(g, DT_I64, (double)o->blank)) : NULL;
    a.skip = B_MAP(g, arena_printf(g->arena, "x != %lld && x != y", (long long)o->blank), "x y", class, other);
    if (!a.skip) return NULL;
    Dim all[3] = { x->type.dim[0], class->type.dim[0], a.states };
    a.emission = b_gather_elements(g, x, b_expand(g, class, 3, all), 2);
    a.times = b_insert(g, b_cast(g, times, DT_I64), 1);
    lengths = b_insert(g, b_cast(g, lengths, DT_I64), 1);
    Value *loss = a.emission && a.times ? ended(g, forward(g, &a), lengths) : NULL;
    if (o->zero_infinity == 1) loss = B_MAP(g, "x > 1e29 ? 0 : x", "x", loss);
    else loss = B_MAP(g, "x > 1e29 ? inf : x", "x", loss);
    if (!loss || !strcmp(how, "none")) return loss;
    int64_t axes[1] = { 0 };
    if (!strcmp(how, "sum")) return b_reduce(g, OP_ReduceSum, loss, 1, axes, false);
    if (strcmp(how, "mean")) return graph_fail(g, "there is no reduction \"%s\"; there are mean, sum, none", how);
    Value *share = B_MAP(g, "x / max(y, 1)", "x y", loss, b_cast(g, b_remove(g, lengths, 1), loss->type.dtype));
    return share ? b_reduce(g, OP_ReduceMean, share, 1, axes, false) : NULL;
}
