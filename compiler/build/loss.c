// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of losses with weights and targets to ignore (the plain ones are composites: ops/composite.c).
//
// In: log-probabilities x with classes on axis 1, targets. Out: gathers, maps and reductions. Formula: loss[i] =
// -w[t[i]] * x[i, t[i]]; targets equal to the ignored one weigh 0; the mean divides by the sum of the weights.
#include "build/build.h"

#include <string.h>

static Value *sum_all(Graph *g, Value *v) {
    int64_t axes[MAX_RANK];
    if (!v) return NULL;
    for (int i = 0; i < v->type.rank; i++) axes[i] = i;
    return b_reduce(g, OP_ReduceSum, v, v->type.rank, axes, false);
}

// The weight of each target, shaped as the targets; NULL and ok when all are 1.
static bool target_weights(Graph *g, Value *target, const ClassLoss *o, DType d, Value **out) {
    *out = NULL;
    if (o->weight) *out = b_gather(g, o->weight, target, 0);
    else if (o->ignores) *out = b_filled(g, d, 1, target->type.rank, target->type.dim);
    else return true;
    return *out != NULL;
}

// With a share s for all classes: (1 - s) loss - s / C sum of w[c] x[c], but for what is ignored.
static Value *smoothed(Graph *g, Value *loss, Value *x, Value *ignored, const ClassLoss *o) {
    int64_t axes[1] = { 1 };
    Value *weighed = o->weight ? b_binary(g, OP_Mul, x, b_along(g, o->weight, x->type.rank, 1)) : x;
    Value *all = weighed ? b_reduce(g, OP_ReduceMean, weighed, 1, axes, false) : NULL;
    if (ignored && all) all = b_where(g, ignored, b_like(g, all, 0), all);
    return B_MAP(g, arena_printf(g->arena, "%.17g * x - %.17g * y", 1 - o->smoothing, o->smoothing), "x y", loss, all);
}

Value *b_nll_loss(Graph *g, Value *x, Value *target, const ClassLoss *o) {
    if (x->type.rank < 2 || target->type.rank != x->type.rank - 1)
        return graph_fail(g, "wants scores [N, C, ...] and targets [N, ...]");
    target = b_cast(g, target, DT_I64);
    Value *ignored = NULL, *w;
    if (o->ignores) {
        ignored = b_binary(g, OP_Equal, target, b_scalar(g, DT_I64, (double)o->ignored));
        target = b_where(g, ignored, b_like(g, target, 0), target);
    }
    Value *picked = b_remove(g, b_gather_elements(g, x, b_insert(g, target, 1), 1), 1);
    if (!picked || !target_weights(g, target, o, x->type.dtype, &w)) return NULL;
    if (ignored) w = b_where(g, ignored, b_like(g, w, 0), w);
    Value *loss = w ? B_MAP(g, "0 - x * y", "x y", picked, w) : b_unary(g, OP_Neg, picked);
    if (o->smoothing > 0) loss = smoothed(g, loss, x, ignored, o);
    if (!strcmp(o->reduction, "none")) return loss;
    Value *sum = sum_all(g, loss);
    if (!strcmp(o->reduction, "sum") || !sum) return sum;
    if (strcmp(o->reduction, "mean")) return graph_fail(g, "attribute \"reduction\" is \"%s\"", o->reduction);
    if (w) return b_binary(g, OP_Div, sum, sum_all(g, w));
    if (type_is_static(&loss->type))
        return b_binary(g, OP_Div, sum, b_like(g, sum, (double)type_count(&loss->type)));
    return b_binary(g, OP_Div, sum, sum_all(g, b_filled(g, x->type.dtype, 1, loss->type.rank, loss->type.dim)));
}
