// SPDX-License-Identifier: MIT OR Apache-2.0
// Losses as functions, for models that bring their own: PyTorch's formulas.
//
// In: a prediction and a target, of some losses a third tensor. Out: a number, or with .reduction = "none" one for each
// element. The idea: a loss is a row with an expression of its tensors and of numbers that have defaults.
#include "import/describe/describe.h"

#include <string.h>

// x the prediction, y the target, z the third tensor; a, b numbers
typedef struct LossRow { const char *name, *expression; bool third; } LossRow;
static const LossRow rows[] = {
    { "mse_loss", "(x - y) * (x - y)", false },
    { "l1_loss", "abs(x - y)", false },
    { "lp_loss", "pow(abs(x - y), a)", false },
    { "smooth_l1_loss", "abs(x - y) < a ? 0.5 * (x - y) * (x - y) / a : abs(x - y) - 0.5 * a", false },
    { "huber_loss", "abs(x - y) <= a ? 0.5 * (x - y) * (x - y) : a * (abs(x - y) - 0.5 * a)", false },
    { "binary_cross_entropy", "-(y * max(log(x), -100) + (1 - y) * max(log(1 - x), -100))", false },
    { "binary_cross_entropy_with_logits", "max(x, 0) - x * y + softplus(-abs(x))", false },
    { "kl_div", "y > 0 ? y * (log(y) - x) : 0", false },
    { "poisson_nll_loss", "exp(x) - y * x", false },
    { "soft_margin_loss", "softplus(-x * y)", false },
    { "hinge_embedding_loss", "y > 0 ? x : max(a - x, 0)", false },
    { "gaussian_nll_loss", "0.5 * (log(max(z, a)) + (x - y) * (x - y) / max(z, a)) + b", true },
    { "margin_ranking_loss", "max(a - z * (x - y), 0)", true },
};

// What a row's text becomes by an option.
static const char *expression_of(const LossRow *row, const struct burn_loss *o, Graph *g) {
    if (!strcmp(row->name, "kl_div") && o->log_target == 1) return "exp(y) * (y - x)";
    // log(1 + exp(-x)) of the ones alone weighs more
    if (!strcmp(row->name, "binary_cross_entropy_with_logits") && o->pos_weight)
        return "(1 - y) * x + (1 + (z - 1) * y) * (softplus(-abs(x)) + max(-x, 0))";
    if (strcmp(row->name, "poisson_nll_loss")) return row->expression;
    // Stirling's approximation of log(y!) above 1
    const char *full = o->full == 1 ? " + (y > 1 ? y * log(y) - y + 0.5 * log(6.2831853071795865 * y) : 0)" : "";
    return arena_printf(g->arena, "%s%s", yes(o->log_input) ? "exp(x) - y * x" : "x - y * log(x + a)", full);
}

static void numbers_of(const LossRow *row, const struct burn_loss *o, double *a, double *b) {
    const char *name = row->name;
    *b = o->full == 1 ? 0.91893853320467274 : 0;        // log(2 pi) / 2
    if (!strcmp(name, "lp_loss")) *a = given(o->p, 2);
    else if (!strcmp(name, "smooth_l1_loss")) *a = given(o->beta, 1);
    else if (!strcmp(name, "huber_loss")) *a = given(o->delta, 1);
    else if (!strcmp(name, "gaussian_nll_loss")) *a = given(o->eps, 1e-6);
    else if (!strcmp(name, "poisson_nll_loss")) *a = given(o->eps, 1e-8);
    else *a = given(o->margin, strcmp(name, "margin_ranking_loss") ? 1 : 0);
}

static Value *reduced(Graph *g, Value *loss, const char *how) {
    int64_t axes[MAX_RANK];
    if (!loss || !strcmp(how, "none")) return loss;
    for (int i = 0; i < loss->type.rank; i++) axes[i] = i;
    if (!strcmp(how, "mean")) return b_reduce(g, OP_ReduceMean, loss, loss->type.rank, axes, false);
    if (strcmp(how, "sum")) return graph_fail(g, "there is no reduction \"%s\"; there are mean, sum, none", how);
    return b_reduce(g, OP_ReduceSum, loss, loss->type.rank, axes, false);
}

static Value *by_row(Graph *g, const LossRow *row, Value *x, Value *y, const struct burn_loss *o) {
    const char *how = o->reduction ? o->reduction : "mean";
    bool batch = !strcmp(how, "batchmean") && !strcmp(row->name, "kl_div");
    double a, b;
    numbers_of(row, o, &a, &b);
    Formula f = { .g = g };
    y = b_cast(g, y, x->type.dtype);
    Value *z = o->pos_weight ? o->pos_weight : o->third;
    z = z ? b_cast(g, z, x->type.dtype) : x;
    formula_let(&f, "x", x, 0);
    formula_let(&f, "y", y, 0);
    formula_let(&f, "z", z, 0);
    formula_let(&f, "a", NULL, a);
    formula_let(&f, "b", NULL, b);
    const char *text = arena_printf(g->arena, "loss = %s", expression_of(row, o, g));
    if (!y || !z || !formula_run(&f, text)) return NULL;
    Value *loss = formula_value(&f, "loss");
    if (o->weight) loss = b_binary(g, OP_Mul, loss, b_cast(g, o->weight, x->type.dtype));
    loss = reduced(g, loss, batch ? "sum" : how);
    if (!batch || !loss) return loss;
    Value *count = b_cast(g, b_size_of(g, x, 0), x->type.dtype);
    return b_binary(g, OP_Div, loss, count);
}

// ---------------------------------------------------------------- classes

static bool of_classes(Graph *g, const Value *x, const Value *target) {
    if (x->type.rank >= 2 && dtype_is_int(target->type.dtype)) return true;
    return graph_fail(g, "wants scores [batch, classes, ...] and numbers of classes, not %s and %s", shown(g, x),
        shown(g, target));
}

static Value *log_softmax(Graph *g, Value *x) {
    Node *n = graph_node(g, OP_LogSoftmax, 1, &x, 1);
    node_set_int(n, "axis", 1);
    return b_finish(n);
}

// Targets that are probabilities of the classes: -sum of y log p over axis 1; the mean is over the rows.
static Value *of_probabilities(Graph *g, Value *x, Value *y, const struct burn_loss *o, const char *how) {
    int64_t classes, axes[1] = { 1 };
    if (!number_in(dim_out(x->type.dim[1]), "the number of classes", &classes)) return NULL;
    const char *text = arena_printf(
        g->arena, "-(y * %.17g + %.17g) * x * z", 1 - o->label_smoothing, o->label_smoothing / (double)classes);
    Value *weight = o->weight ? b_along(g, o->weight, x->type.rank, 1) : b_like(g, x, 1);
    Value *each = B_MAP(g, text, "x y z", x, b_cast(g, y, x->type.dtype), weight);
    return each ? reduced(g, b_reduce(g, OP_ReduceSum, each, 1, axes, false), how) : NULL;
}

static Value *class_loss(Graph *g, Value *x, Value *target, const struct burn_loss *o, bool cross) {
    const char *how = o->reduction ? o->reduction : "mean";
    bool soft = cross && type_equal(&x->type, &target->type);
    if (!soft && !of_classes(g, x, target)) return NULL;
    if (o->label_smoothing < 0 || o->label_smoothing >= 1)
        return graph_fail(g, "a label smoothing of %g", o->label_smoothing);
    if (cross && !(x = log_softmax(g, x))) return NULL;
    if (soft) return of_probabilities(g, x, target, o, how);
    int64_t ignored = (int64_t)given((double)o->ignore_index, -100);
    return b_nll_loss(g, x, target, &(ClassLoss){ .weight = o->weight, .ignores = true, .ignored = ignored,
        .reduction = how, .smoothing = cross ? o->label_smoothing : 0 });
}

// max(0, margin - x[target] + x[i])^p over the classes i that are not the target, divided by their number
static Value *margins(Graph *g, Value *x, Value *target, const struct burn_loss *o) {
    int64_t classes, axes[1] = { 1 };
    if (!of_classes(g, x, target) || !number_in(dim_out(x->type.dim[1]), "the number of classes", &classes))
        return NULL;
    if (x->type.rank != 2 || target->type.rank != 1)
        return graph_fail(g, "wants scores [batch, classes] and a list, not %s and %s", shown(g, x), shown(g, target));
    double margin = given(o->margin, 1), p = given(o->p, 1);
    if (p != 1 && p != 2) return graph_fail(g, "p is %g; it can be 1 or 2", p);
    Value *at = b_insert(g, target, 1), *own = b_gather_elements(g, x, at, 1);
    Value *place = b_iota(g, 1, &classes, 0, target->type.dtype), *is = b_binary(g, OP_Equal, at, place);
    const char *text = arena_printf(g->arena, p == 2 ? "c ? 0 : max(%.17g - x + y, 0) * max(%.17g - x + y, 0)" :
                                                       "c ? 0 : max(%.17g - x + y, 0)", margin, margin);
    Value *each = B_MAP(g, text, "c x y", is, own, x);
    if (o->weight && each) each = b_binary(g, OP_Mul, each, b_gather(g, o->weight, at, 0));
    Value *loss = each ? b_reduce(g, OP_ReduceMean, each, 1, axes, false) : NULL;
    return reduced(g, loss, o->reduction ? o->reduction : "mean");
}

// ---------------------------------------------------------------- pairs and triples

// 1 - cosine where the target is 1, what the cosine is above the margin where it is -1
static Value *cosines(Graph *g, const burn_place *at, Value *x, Value *y, const struct burn_loss *o) {
    Value *cosine = language_cosine(at, x, y, -1);
    const char *text = arena_printf(g->arena, "y > 0 ? 1 - x : max(x - %.17g, 0)", given(o->margin, 0));
    return cosine ? B_MAP(g, text, "x y", cosine, b_cast(g, o->third, cosine->type.dtype)) : NULL;
}

static Value *apart(Graph *g, Value *x, Value *y, double p, double eps) {
    Value *d = B_MAP(g, arena_printf(g->arena, "x - y + %.17g", eps), "x y", x, y);
    return d ? length_over(g, d, p, 1, (int64_t[]){ d->type.rank - 1 }, false) : NULL;
}

static Value *triples(Graph *g, Value *x, Value *y, const struct burn_loss *o) {
    double p = given(o->p, 2), eps = given(o->eps, 1e-6);
    Value *near = apart(g, x, y, p, eps), *far = apart(g, x, o->third, p, eps);
    Value *other = o->swap == 1 ? apart(g, y, o->third, p, eps) : far;
    const char *text = arena_printf(g->arena, "max(x - min(y, z) + %.17g, 0)", given(o->margin, 1));
    return B_MAP(g, text, "x y z", near, far, other);
}

burn_value *language_loss(const burn_place *at, burn_value *x, burn_value *target, const struct burn_loss *o) {
    Graph *g = here(at, NULL);
    const char *call = at->call;
    size_t row = 0;
    if (!x || !target) return NULL;
    if (!dtype_is_float(x->type.dtype)) return graph_fail(g, "wants floats, not %s", shown(g, x));
    if (!strcmp(call, "cross_entropy") || !strcmp(call, "nll_loss"))
        return class_loss(g, x, target, o, call[0] == 'c');
    if (!strcmp(call, "multi_margin_loss")) return margins(g, x, target, o);
    bool cosine = call[0] == 'c', triple = call[0] == 't';
    while (!cosine && !triple && strcmp(rows[row].name, call)) row++;
    if (!o->third && (cosine || triple || rows[row].third)) return NULL;
    if (!cosine && !triple) return by_row(g, &rows[row], x, target, o);
    if (x->type.rank < 1) return graph_fail(g, "wants rows, not %s", shown(g, x));
    Value *loss = cosine ? cosines(g, at, x, target, o) : triples(g, x, target, o);
    return reduced(g, loss, o->reduction ? o->reduction : "mean");
}
