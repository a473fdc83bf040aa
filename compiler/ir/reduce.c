// SPDX-License-Identifier: MIT OR Apache-2.0
// reduces.def as data, and what follows from a row for one dtype: the step between accumulator and term, the value
// that a reduction starts from, and one step computed.
#include "expr.h"

#include <math.h>
#include <string.h>

const ReduceInfo reduce_table[RED_COUNT] = {
    [RED_NONE] = { .word = "none", .scatter = "none" },
#define REDUCE(name, word_, scatter_, step_, bools_, start_, rounds_)                                                 \
    [RED_##name] = { .word = word_,                                                                                   \
        .scatter = scatter_,                                                                                          \
        .step = E_##step_,                                                                                            \
        .step_bool = E_##bools_,                                                                                      \
        .start = START_##start_,                                                                                      \
        .rounds = rounds_ },
#define REDUCE_ARG(name, word_, extreme_, tie_)                                                                       \
    [RED_##name] = { .word = word_, .scatter = "", .extreme = RED_##extreme_, .tie = TIE_##tie_ },
#include "reduces.def"
#undef REDUCE
#undef REDUCE_ARG
};

bool reduce_is_arg(ReduceOp op) { return reduce_table[op].extreme != RED_NONE; }

ReduceOp reduce_arg(ReduceOp extreme, ReduceTie tie) {
    for (int i = 0; i < RED_COUNT; i++)
        if (reduce_table[i].extreme == extreme && reduce_table[i].tie == tie) return (ReduceOp)i;
    bug("%s has no index", reduce_table[extreme].word);
}

ReduceOp reduce_of_scatter(const char *name) {
    int i = 0;
    while (i < RED_COUNT && (!*name || strcmp(reduce_table[i].scatter, name))) i++;
    return (ReduceOp)i;
}

EOp reduce_step(ReduceOp op, DType d) {
    const ReduceInfo *r = &reduce_table[op];
    if (op == RED_NONE || reduce_is_arg(op)) bug("reduction %s has no pairwise form", r->word);
    return d == DT_BOOL ? r->step_bool : r->step;
}

Scalar reduce_identity(ReduceOp op, DType d) {
    ReduceStart start = reduce_table[op].start;
    if (dtype_is_float(d)) {
        static const double of[] = { [START_ONE] = 1, [START_LOWEST] = -INFINITY, [START_HIGHEST] = INFINITY };
        return (Scalar){ .f = start < START_ONES ? of[start] : 0 };
    }
    if (start == START_ZERO) return (Scalar){ .i = 0 };     // of any type: sums of nothing stand for what is not there
    int64_t lo = 0, hi = 0, ones = int_wrap(d, UINT64_MAX);
    int_bounds(d, &lo, &hi);
    switch (start) {
    case START_ONE: return (Scalar){ .i = 1 };
    case START_LOWEST: return (Scalar){ .i = lo };
    case START_HIGHEST: return (Scalar){ .i = dtype_class(d) == CLASS_INT ? hi : ones };
    case START_ONES: return (Scalar){ .i = ones };
    default: return (Scalar){ .i = 0 };
    }
}

Scalar reduce_combine(ReduceOp op, DType d, Scalar acc, Scalar x) {
    return eval_op(reduce_step(op, d), dtype_is_float(d) ? DT_F64 : d, acc, x);
}
