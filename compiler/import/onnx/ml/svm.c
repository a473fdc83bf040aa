// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's support vector machines (domain ai.onnx.ml).
//
// In: an OnnxNode whose attributes list support vectors and their coefficients. Out: the kernel of each row and each
// support vector [N, V], and products with constant matrices. The classifier compares each pair of classes: one
// product gives all pairs' scores, another their votes; pairs' probabilities become the classes' by the coupling of
// Wu, Lin and Weng ("Probability estimates for multi-class classification by pairwise coupling", 2004, algorithm 2),
// as libsvm has it: loops over steps and classes, for all rows at once.
#include "import/onnx/onnx.h"

#include <string.h>

typedef struct Machine {
    int64_t supports, features;                 // supports 0: a linear model
    int n_coefficients, n_rho;
    const float *coefficients, *rho;
    Value *x;                                   // [N, features], f32
} Machine;

static bool machine_read(OnnxNode *n, Machine *m) {
    if (!onnx_inputs(n, 1)) return false;
    m->coefficients = onnx_floats(n, "coefficients", &m->n_coefficients);
    m->rho = onnx_floats(n, "rho", &m->n_rho);
    if (m->n_rho < 1 || m->n_coefficients < 1)
        return onnx_fail(n, "needs the attributes \"coefficients\" and \"rho\""), false;
    m->x = onnx_rows_of(n, n->in[0]);
    m->x = m->x ? b_cast(n->g, m->x, DT_F32) : NULL;
    return m->x != NULL;
}

// [N, V]: POLY (gamma x s + coef0)^degree, SIGMOID tanh(gamma x s + coef0), RBF exp(-gamma |x - s|^2), LINEAR x s.
static Value *kernel_values(OnnxNode *n, const Machine *m) {
    int size, n_params;
    const float *support = onnx_floats(n, "support_vectors", &size),
                *params = onnx_floats(n, "kernel_params", &n_params);
    const char *kernel = onnx_string(n, "kernel_type", "LINEAR"), *text = NULL;
    const double gamma = n_params > 0 ? (double)params[0] : 0, coef0 = n_params > 1 ? (double)params[1] : 0,
                 degree = n_params > 2 ? (double)params[2] : 0;
    const int64_t last = 2, columns = size / m->supports;
    if (size % m->supports || !columns || (dim_is_const(m->x->type.dim[1]) && m->x->type.dim[1] != columns))
        return onnx_fail(n, "has %d numbers for %lld support vectors", size, (long long)m->supports);
    if (!strcmp(kernel, "RBF")) {
        Value *s = b_reshape(n->g, onnx_float_vector(n, DT_F32, size, support), 3, (Dim[]){ 1, m->supports, columns });
        Value *far = b_reduce(
            n->g, OP_ReduceSum, B_MAP(n->g, "(x - y) * (x - y)", "x y", b_insert(n->g, m->x, 1), s), 1, &last, false);
        return far ? B_MAP(n->g, arena_printf(n->g->arena, "exp(x * %.17g)", -gamma), "x", far) : NULL;
    }
    if (!strcmp(kernel, "POLY")) text = "pow(x * y + z, w)";
    else if (!strcmp(kernel, "SIGMOID")) text = "tanh(x * y + z)";
    else if (strcmp(kernel, "LINEAR")) return onnx_fail(n, "attribute \"kernel_type\" is \"%s\"", kernel);
    Value *y = onnx_linear(n, m->x, (int)m->supports, size, support, 0, NULL);
    return !text || !y ?
        y :
        B_MAP(n->g, text, "x y z w", y, b_like(n->g, y, gamma), b_like(n->g, y, coef0), b_like(n->g, y, degree));
}

// sum over supports of coefficient * kernel(x, support) + rho.
Value *onnx_svm_regressor(OnnxNode *n) {
    Machine m = { 0 };
    if (!machine_read(n, &m)) return NULL;
    const char *how = onnx_string(n, "post_transform", "NONE");
    bool one_class = onnx_int(n, "one_class", 0) != 0;
    m.supports = onnx_int(n, "n_supports", 0);
    if (m.supports < 0 || (m.supports && m.supports != m.n_coefficients))
        return onnx_fail(n, "has %d coefficients for %lld support vectors", m.n_coefficients, (long long)m.supports);
    if (!m.supports) onnx_string(n, "kernel_type", "");
    Value *y = onnx_linear(n, m.supports ? kernel_values(n, &m) : m.x, 1, m.n_coefficients, m.coefficients, 1, m.rho);
    return y && one_class ? B_MAP(n->g, "x > 0 ? 1 : x * 0 - 1", "x", y) : onnx_post_transform(n, y, how);
}

// ---------------------------------------------------------------- pairs of classes (i, j), i < j, in order

static int64_t pairs_of(int64_t classes) { return classes * (classes - 1) / 2; }

// [N, pairs]: the supports of class i weigh as row j - 1 of the coefficients says, those of j as row i.
static Value *pair_scores(OnnxNode *n, const Machine *m, Value *kernels, int64_t classes, const int64_t *per_class) {
    const int64_t pairs = pairs_of(classes), size = m->supports;
    float *w = NEW_ARRAY(n->g->arena, float, pairs * size);
    int64_t pair = 0, from_i = 0;
    if (m->n_rho < pairs || (classes - 1) * size > m->n_coefficients)
        return onnx_fail(n, "has %d coefficients and %d values of rho for %lld classes", m->n_coefficients, m->n_rho,
            (long long)classes);
    for (int64_t i = 0; i < classes; from_i += per_class[i++]) {
        int64_t from_j = from_i + per_class[i];
        for (int64_t j = i + 1; j < classes; from_j += per_class[j++], pair++) {
            for (int64_t k = from_i; k < from_i + per_class[i]; k++)
                w[pair * size + k] = m->coefficients[(j - 1) * size + k];
            for (int64_t k = from_j; k < from_j + per_class[j]; k++)
                w[pair * size + k] = m->coefficients[i * size + k];
        }
    }
    return onnx_linear(n, kernels, (int)pairs, (int)(pairs * size), w, (int)pairs, m->rho);
}

// [N, C]: a pair's positive score is a vote for its first class, any other for its second.
static Value *votes(OnnxNode *n, Value *scores, int64_t classes) {
    const int64_t pairs = pairs_of(classes);
    float *w = NEW_ARRAY(n->g->arena, float, pairs * classes), *least = NEW_ARRAY(n->g->arena, float, classes);
    for (int64_t i = 0, pair = 0; i < classes; i++)
        for (int64_t j = i + 1; j < classes; j++, pair++) {
            w[i * pairs + pair] = 1;
            w[j * pairs + pair] = -1;
            least[j]++;
        }
    Value *first = scores ? b_cast(n->g, B_MAP(n->g, "x > 0", "x", scores), DT_F32) : NULL;
    return onnx_linear(n, first, (int)classes, (int)(classes * pairs), w, (int)classes, least);
}

// ---------------------------------------------------------------- probabilities

// [N, C, C]: how likely class i is where it is i or j; the diagonal is 0.
static Value *pair_probabilities(OnnxNode *n, Value *scores, int64_t classes) {
    const int64_t pairs = pairs_of(classes);
    int n_a, n_b;
    const float *a = onnx_floats(n, "prob_a", &n_a), *b = onnx_floats(n, "prob_b", &n_b);
    if (n_a != pairs || n_b != pairs)
        return onnx_fail(
            n, "has %d, %d values in \"prob_a\", \"prob_b\" for %lld pairs of classes", n_a, n_b, (long long)pairs);
    Value *p = B_MAP(n->g, "p = 1 / (1 + exp(x * y + z)); min(max(p, 1e-7), 1 - 1e-7)", "x y z", scores,
        onnx_float_vector(n, DT_F32, n_a, a), onnx_float_vector(n, DT_F32, n_b, b));
    int64_t *at = NEW_ARRAY(n->g->arena, int64_t, classes * classes);
    for (int64_t i = 0; i < classes; i++) at[i * classes + i] = 2 * pairs;
    for (int64_t i = 0, pair = 0; i < classes; i++)
        for (int64_t j = i + 1; j < classes; j++, pair++) {
            at[i * classes + j] = pair;
            at[j * classes + i] = pairs + pair;
        }
    if (!p) return NULL;
    Value *zero = b_filled(n->g, DT_F32, 0, 2, (Dim[]){ p->type.dim[0], 1 });
    Value *all = b_concat(n->g, 1, 3, (Value *[]){ p, B_MAP(n->g, "1 - x", "x", p), zero });
    return b_gather(
        n->g, all, b_reshape(n->g, b_ints(n->g, (int)(classes * classes), at), 2, (Dim[]){ classes, classes }), 1);
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
static Value *coupled(OnnxNode *n, Value *r, int64_t classes) {
    if (!r) return NULL;
    const Dim shape[] = { r->type.dim[0], classes };
    Value *t = b_swap(n->g, r, 1, 2),
          *diagonal = b_reduce(n->g, OP_ReduceSum, b_unary(n->g, OP_Square, t), 1, (int64_t[]){ 2 }, false);
    Value *index = b_iota(n->g, 2, (Dim[]){ classes, classes }, 0, DT_I64),
          *other = b_iota(n->g, 2, (Dim[]){ classes, classes }, 1, DT_I64);
    Value *q = diagonal ? b_where(n->g, b_binary(n->g, OP_Equal, index, other), b_insert(n->g, diagonal, 2),
                   B_MAP(n->g, "0 - x * y", "x y", r, t)) :
                          NULL;
    Value *p = b_filled(n->g, DT_F32, 1 / (double)classes, 2, shape), *in[3], *out[2];
    if (!q || !p) return NULL;
    Graph *b = b_loop_body(n->g, "round", 1, &p, in);
    Value *qp = b_reduce(
        b, OP_ReduceSum, b_binary(b, OP_Mul, q, b_insert(b, in[2], 1)), 1, (int64_t[]){ 2 }, false);
    Value *pqp = row_sum(b, b_binary(b, OP_Mul, in[2], qp));
    Value *error = pqp ?
        b_reduce(b, OP_ReduceMax, B_MAP(b, "abs(x - y)", "x y", qp, pqp), 1, (int64_t[]){ 1 }, true) :
        NULL;
    Value *done = error ? B_MAP(b, arena_printf(n->g->arena, "x < %.17g", 0.005 / (double)classes), "x", error) :
                          NULL;
    Value *next = done ? coupling_round(b, in[2], qp, pqp, q, diagonal, classes) : NULL;
    if (!next) return NULL;
    Value *left = b_reduce(
        b, OP_ReduceMax, b_cast(b, b_unary(b, OP_Not, done), DT_I32), 2, (int64_t[]){ 0, 1 }, false);
    out[0] = b_cast(b, left, DT_BOOL);
    out[1] = b_where(b, done, in[2], next);
    Node *loop = b_loop(n->g, b, b_scalar(n->g, DT_I64, classes > 100 ? (double)classes : 100), 1, &p, out);
    return loop ? loop->out[0] : NULL;
}

// ---------------------------------------------------------------- the classifier

Value *onnx_svm_classifier(OnnxNode *n) {
    Machine m = { 0 };
    int n_classes, n_a;
    if (!machine_read(n, &m)) return NULL;
    const int64_t *per_class = onnx_ints(n, "vectors_per_class", &n_classes);
    ClassLabels labels = onnx_class_labels(n, "classlabels_ints", "classlabels_strings");
    const int64_t classes = labels.count ? labels.count : 1;
    const char *how = onnx_string(n, "post_transform", "NONE");
    for (int i = 0; i < n_classes; i++) {
        if (per_class[i] < 0 || per_class[i] > m.n_coefficients - m.supports)
            return onnx_fail(n, "attribute \"vectors_per_class\" has %lld", (long long)per_class[i]);
        m.supports += per_class[i];
    }
    Value *scores, *best;
    if (!m.supports) {                          // a row of coefficients for each class, and no kernel
        onnx_floats(n, "kernel_params", &n_a);
        onnx_string(n, "kernel_type", "");
        float *rho = NEW_ARRAY(n->g->arena, float, classes);
        for (int64_t i = 0; i < classes; i++) rho[i] = m.rho[0];
        best = scores = onnx_linear(n, m.x, (int)classes, m.n_coefficients, m.coefficients, (int)classes, rho);
    } else {
        if (n_classes != classes || classes < 2)
            return onnx_fail(n, "has %d labels for support vectors of %d classes", labels.count, n_classes);
        scores = pair_scores(n, &m, kernel_values(n, &m), classes, per_class);
        best = votes(n, scores, classes);
        onnx_floats(n, "prob_a", &n_a);
        if (n_a && scores) scores = coupled(n, pair_probabilities(n, scores, classes), classes);
    }
    if (!scores || !best) return NULL;
    if (n->n_out > 1)
        n->out[1] = scores->type.dim[1] == 1 && classes == 2 ?
            onnx_two_scores(n, scores, how, strncmp(how, "SOFTMAX", 7) == 0) :
            onnx_post_transform(n, scores, how);
    return onnx_label(n, &labels, onnx_first_best(n, best));
}
