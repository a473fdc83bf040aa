// SPDX-License-Identifier: MIT OR Apache-2.0
// Losses as functions, for models that bring their own, and what is measured between two tensors.
//
// In: a prediction and a target. Out: a number, or with .reduction = "none" one for each element: PyTorch's formulas.
#include "import/describe/describe.h"

#include <string.h>

// of x, the prediction, and y, the target
static const struct { const char *name, *expression; } rows[] = {
    { "mse_loss", "(x - y) * (x - y)" },
    { "l1_loss", "abs(x - y)" },
    { "smooth_l1_loss", "abs(x - y) < 1 ? 0.5 * (x - y) * (x - y) : abs(x - y) - 0.5" },
    { "binary_cross_entropy", "-(y * max(log(x), -100) + (1 - y) * max(log(1 - x), -100))" },
    { "binary_cross_entropy_with_logits", "max(x, 0) - x * y + softplus(-abs(x))" },
    { "kl_div", "y > 0 ? y * (log(y) - x) : 0" },
    { "poisson_nll_loss", "exp(x) - y * x" },
    { "soft_margin_loss", "softplus(-x * y)" },
};

static Value *reduced(Graph *g, Value *loss, const char *how) {
    int64_t axes[MAX_RANK];
    if (!loss || !strcmp(how, "none")) return loss;
    for (int i = 0; i < loss->type.rank; i++) axes[i] = i;
    if (!strcmp(how, "sum")) return b_reduce(g, OP_ReduceSum, loss, loss->type.rank, axes, false);
    if (!strcmp(how, "mean")) return b_reduce(g, OP_ReduceMean, loss, loss->type.rank, axes, false);
    return graph_fail(g, "there is no reduction \"%s\"; there are mean, sum, none", how);
}

burn_value *language_loss(const burn_place *at, burn_value *x, burn_value *target, const struct burn_loss *o) {
    Graph *g = here(at, NULL);
    const char *how = o->reduction ? o->reduction : "mean";
    size_t row = 0;
    if (!x || !target) return NULL;
    if (!dtype_is_float(x->type.dtype)) return graph_fail(g, "wants floats, not %s", shown(g, x));
    bool cross = !strcmp(at->call, "cross_entropy");
    if (cross || !strcmp(at->call, "nll_loss")) {
        if (x->type.rank < 2 || !dtype_is_int(target->type.dtype))
            return graph_fail(g, "wants scores [batch, classes, ...] and numbers of classes, not %s and %s",
                shown(g, x), shown(g, target));
        Node *n = cross ? graph_node(g, OP_LogSoftmax, 1, &x, 1) : NULL;
        if (cross) node_set_int(n, "axis", 1);
        if (cross && !(x = b_finish(n))) return NULL;
        return b_nll_loss(g, x, target, &(ClassLoss){ .weight = o->weight, .ignores = true, .ignored = -100,
            .reduction = how });
    }
    while (strcmp(rows[row].name, at->call)) row++;
    Value *loss = B_MAP(g, rows[row].expression, "x y", x, b_cast(g, target, x->type.dtype));
    return reduced(g, loss, how);
}

// Over an axis: x y / max(|x| |y|, 1e-8)
burn_value *language_cosine(const burn_place *at, burn_value *x, burn_value *y, int64_t axis) {
    Graph *g = here(at, NULL);
    Value *both[2];
    int i;
    burn_arg args[2] = { { .tensor = x }, { .tensor = y } };
    if (!operands(g, 2, args, both) || !axis_in(x, axis, &i)) return NULL;
    int64_t axes[1] = { i };
    Value *product = b_binary(g, OP_Mul, both[0], both[1]), *dot = b_reduce(g, OP_ReduceSum, product, 1, axes, false);
    Value *a = b_reduce(g, OP_ReduceL2, both[0], 1, axes, false);
    Value *b = b_reduce(g, OP_ReduceL2, both[1], 1, axes, false);
    return B_MAP(g, "x / max(y * z, 0.00000001)", "x y z", dot, a, b);
}

// x times y of three elements along an axis, each turned by one and by two places
burn_value *language_cross(const burn_place *at, burn_value *x, burn_value *y, int64_t axis) {
    Graph *g = here(at, NULL);
    burn_arg args[2] = { { .tensor = x }, { .tensor = y } };
    Value *both[2], *part[2][3], *made[3];
    int i;
    if (!operands(g, 2, args, both) || !axis_in(x, axis, &i)) return NULL;
    for (int k = 0; k < 2; k++) {
        if (!axis_in(both[k], axis, &i)) return NULL;
        if (both[k]->type.dim[i] != 3)
            return graph_fail(g, "axis %lld of %s has not 3 elements", (long long)axis, shown(g, both[k]));
        for (int e = 0; e < 3; e++) part[k][e] = b_part(g, both[k], i, e, 1);
    }
    for (int e = 0; e < 3; e++) {
        int p = (e + 1) % 3, q = (e + 2) % 3;
        made[e] = B_MAP(g, "a * d - b * c", "a b c d", part[0][p], part[0][q], part[1][p], part[1][q]);
    }
    return b_concat(g, i, 3, made);
}
