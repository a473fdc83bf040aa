// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of support vector machines.
//
// In: features [N, F] in f32, support vectors and their coefficients. Out: the kernel of each row and each support
// vector [N, V], and products with constant matrices. The classifier compares each pair of classes: one product gives
// all pairs' scores, another their votes; pairs' probabilities become the classes' by the coupling of Wu, Lin and Weng
// ("Probability estimates for multi-class classification by pairwise coupling", 2004, algorithm 2), as libsvm has it:
// loops over steps and classes, for all rows at once.
#include "build/build.h"

#include <string.h>

Value *b_svm_kernels(Graph *g, Value *x, const SupportVectors *m) {
    const int64_t last = 2, columns = m->size / m->count;
    if (m->size % m->count || !columns || (dim_is_const(x->type.dim[1]) && x->type.dim[1] != columns))
        return graph_fail(g, "has %d numbers for %lld support vectors", m->size, (long long)m->count);
    if (!strcmp(m->kernel, "RBF")) {
        Value *s = b_float_vector(g, DT_F32, m->size, m->vectors);
        s = b_reshape(g, s, 3, (Dim[]){ 1, m->count, columns });
        Value *apart = B_MAP(g, "(x - y) * (x - y)", "x y", b_insert(g, x, 1), s),
              *far = b_reduce(g, OP_ReduceSum, apart, 1, &last, false);
        return B_MAP(g, arena_printf(g->arena, "exp(x * %.17g)", -m->gamma), "x", far);
    }
    const char *text = NULL;
    if (!strcmp(m->kernel, "POLY")) text = "pow(x * y + z, w)";
    else if (!strcmp(m->kernel, "SIGMOID")) text = "tanh(x * y + z)";
    else if (strcmp(m->kernel, "LINEAR")) return graph_fail(g, "attribute \"kernel_type\" is \"%s\"", m->kernel);
    Value *y = b_linear(g, x, (int)m->count, m->size, m->vectors, 0, NULL);
    if (!text || !y) return y;
    return B_MAP(g, text, "x y z w", y, b_like(g, y, m->gamma), b_like(g, y, m->coef0), b_like(g, y, m->degree));
}

// ---------------------------------------------------------------- pairs of classes

static int64_t pairs_of(int64_t classes) { return classes * (classes - 1) / 2; }

// [N, pairs]: the supports of class i weigh as row j - 1 of the coefficients says, those of j as row i.
Value *b_svm_pairs(Graph *g, const SupportVectors *m, Value *kernels, int64_t classes, const int64_t *per_class) {
    const int64_t pairs = pairs_of(classes), size = m->count;
    int64_t pair = 0, from_i = 0;
    if (m->n_rho < pairs || (classes - 1) * size > m->n_coefficients)
        return graph_fail(g, "has %d coefficients and %d values of rho for %lld classes", m->n_coefficients, m->n_rho,
            (long long)classes);
    if (pairs > INT32_MAX / max64(size, 1) || pairs > INT32_MAX / classes) {
        diag_error_as(EXIT_LIMIT, g->loc, "%lld classes of %lld support vectors are too many", (long long)classes,
            (long long)size);
        return NULL;
    }
    float *w = NEW_ARRAY(g->arena, float, pairs * size);
    for (int64_t i = 0; i < classes; from_i += per_class[i++]) {
        int64_t from_j = from_i + per_class[i];
        for (int64_t j = i + 1; j < classes; from_j += per_class[j++], pair++) {
            for (int64_t k = from_i; k < from_i + per_class[i]; k++)
                w[pair * size + k] = m->coefficients[(j - 1) * size + k];
            for (int64_t k = from_j; k < from_j + per_class[j]; k++)
                w[pair * size + k] = m->coefficients[i * size + k];
        }
    }
    return b_linear(g, kernels, (int)pairs, (int)(pairs * size), w, (int)pairs, m->rho);
}

// [N, C]: a pair's positive score is a vote for its first class, any other for its second.
Value *b_svm_votes(Graph *g, Value *scores, int64_t classes) {
    const int64_t pairs = pairs_of(classes);
    if (!scores) return NULL;
    float *w = NEW_ARRAY(g->arena, float, pairs * classes), *least = NEW_ARRAY(g->arena, float, classes);
    for (int64_t i = 0, pair = 0; i < classes; i++)
        for (int64_t j = i + 1; j < classes; j++, pair++) {
            w[i * pairs + pair] = 1;
            w[j * pairs + pair] = -1;
            least[j]++;
        }
    Value *first = b_cast(g, B_MAP(g, "x > 0", "x", scores), DT_F32);
    return b_linear(g, first, (int)classes, (int)(classes * pairs), w, (int)classes, least);
}

// ---------------------------------------------------------------- probabilities

// [N, C, C]: how likely class i is where it is i or j; the diagonal is 0.
static Value *pair_probabilities(Graph *g, Value *scores, int64_t classes, const float *a, const float *b) {
    const int64_t pairs = pairs_of(classes);
    Value *p = B_MAP(g, "p = 1 / (1 + exp(x * y + z)); min(max(p, 1e-7), 1 - 1e-7)", "x y z", scores,
        b_float_vector(g, DT_F32, (int)pairs, a), b_float_vector(g, DT_F32, (int)pairs, b));
    int64_t *at = NEW_ARRAY(g->arena, int64_t, classes * classes);
    for (int64_t i = 0; i < classes; i++) at[i * classes + i] = 2 * pairs;
    for (int64_t i = 0, pair = 0; i < classes; i++)
        for (int64_t j = i + 1; j < classes; j++, pair++) {
            at[i * classes + j] = pair;
            at[j * classes + i] = pairs + pair;
        }
    if (!p) return NULL;
    Value *zero = b_filled(g, DT_F32, 0, 2, (Dim[]){ p->type.dim[0], 1 });
    Value *all = b_concat(g, 1, 3, (Value *[]){ p, B_MAP(g, "1 - x", "x", p), zero });
    Value *places = b_reshape(g, b_ints(g, (int)(classes * classes), at), 2, (Dim[]){ classes, classes });
    return b_gather(g, all, places, 1);
}

static Value *row_sum(Graph *g, Value *x) { return b_reduce(g, OP_ReduceSum, x, 1, (int64_t[]){ 1 }, true); }

// One round: p[t] moves to where it is best, for each class t in turn, and all are scaled to the sum 1; qp = q p and
// pqp = p q p follow along.
static Value *coupling_round(Graph *g, Value *p, Value *qp, Value *pqp, Value *q, Value *diagonal, int64_t classes) {
    Value *from[3] = { p, qp, pqp }, *in[5], *out[4];
    Graph *b = b_loop_body(g, "class", 3, from, in);
    Value *t = b_reshape(b, in[0], 1, (Dim[]){ 1 });
    Value *qt = b_gather(b, in[3], t, 1), *qtt = b_gather(b, diagonal, t, 1),
          *row = b_remove(b, b_gather(b, q, t, 1), 1);
    Value *here = b_binary(b, OP_Equal, b_iota(b, 1, (Dim[]){ classes }, 0, DT_I64), t);
    Value *step = B_MAP(b, "(x - y) / z", "x y z", in[4], qt, qtt);
    if (!row || !here || !step) return NULL;
    out[0] = b_unary(b, OP_Identity, in[1]);
    out[1] = B_MAP(b, "(c ? x + d : x) / (1 + d)", "c x d", here, in[2], step);
    out[2] = B_MAP(b, "(x + d * r) / (1 + d)", "x d r", in[3], step, row);
    out[3] = B_MAP(b, "(x + d * (d * z + 2 * y)) / (1 + d) / (1 + d)", "x d y z", in[4], step, qt, qtt);
    Node *loop = b_loop(g, b, b_scalar(g, DT_I64, (double)classes), 3, from, out);
    return loop ? loop->out[0] : NULL;
}

// [N, C] from r [N, C, C]: the p of sum 1 that makes sum over i, j of (r[j, i] p[i] - r[i, j] p[j])^2 least. Rows
// that are there stay.
static Value *coupled(Graph *g, Value *r, int64_t classes) {
    if (!r) return NULL;
    const Dim shape[] = { r->type.dim[0], classes };
    Value *t = b_swap(g, r, 1, 2),
          *diagonal = b_reduce(g, OP_ReduceSum, b_unary(g, OP_Square, t), 1, (int64_t[]){ 2 }, false);
    Value *index = b_iota(g, 2, (Dim[]){ classes, classes }, 0, DT_I64),
          *other = b_iota(g, 2, (Dim[]){ classes, classes }, 1, DT_I64);
    Value *same = b_binary(g, OP_Equal, index, other), *apart = B_MAP(g, "0 - x * y", "x y", r, t);
    Value *q = diagonal ? b_where(g, same, b_insert(g, diagonal, 2), apart) : NULL;
    Value *p = b_filled(g, DT_F32, 1 / (double)classes, 2, shape), *in[3], *out[2];
    if (!q || !p) return NULL;
    Graph *b = b_loop_body(g, "round", 1, &p, in);
    Value *qp = b_reduce(
        b, OP_ReduceSum, b_binary(b, OP_Mul, q, b_insert(b, in[2], 1)), 1, (int64_t[]){ 2 }, false);
    Value *pqp = row_sum(b, b_binary(b, OP_Mul, in[2], qp));
    Value *error = pqp ?
        b_reduce(b, OP_ReduceMax, B_MAP(b, "abs(x - y)", "x y", qp, pqp), 1, (int64_t[]){ 1 }, true) :
        NULL;
    Value *done = error ? B_MAP(b, arena_printf(g->arena, "x < %.17g", 0.005 / (double)classes), "x", error) :
                          NULL;
    Value *next = done ? coupling_round(b, in[2], qp, pqp, q, diagonal, classes) : NULL;
    if (!next) return NULL;
    Value *left = b_reduce(
        b, OP_ReduceMax, b_cast(b, b_unary(b, OP_Not, done), DT_I32), 2, (int64_t[]){ 0, 1 }, false);
    out[0] = b_cast(b, left, DT_BOOL);
    out[1] = b_where(b, done, in[2], next);
    Node *loop = b_loop(g, b, b_scalar(g, DT_I64, classes > 100 ? (double)classes : 100), 1, &p, out);
    return loop ? loop->out[0] : NULL;
}

Value *b_svm_probabilities(
    Graph *g, Value *scores, int64_t classes, int n_a, const float *a, int n_b, const float *b) {
    const int64_t pairs = pairs_of(classes);
    if (!scores) return NULL;
    if (n_a != pairs || n_b != pairs)
        return graph_fail(
            g, "has %d, %d values in \"prob_a\", \"prob_b\" for %lld pairs of classes", n_a, n_b, (long long)pairs);
    return coupled(g, pair_probabilities(g, scores, classes, a, b), classes);
}
