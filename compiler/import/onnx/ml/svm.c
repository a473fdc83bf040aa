// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's support vector machines (domain ai.onnx.ml).
//
// In: an OnnxNode whose attributes list support vectors and their coefficients. Out: what build/svm.c makes of them.
#include "import/onnx/onnx.h"

#include <string.h>

// The rows of input 0 in f32.
static Value *machine_read(OnnxNode *n, SupportVectors *m) {
    if (!onnx_inputs(n, 1)) return NULL;
    m->coefficients = onnx_floats(n, "coefficients", &m->n_coefficients);
    m->rho = onnx_floats(n, "rho", &m->n_rho);
    if (m->n_rho < 1 || m->n_coefficients < 1)
        return onnx_fail(n, "needs the attributes \"coefficients\" and \"rho\"");
    return b_cast(n->g, b_rows_of(n->g, n->in[0]), DT_F32);
}

static Value *kernel_values(OnnxNode *n, Value *x, SupportVectors *m) {
    int n_params;
    m->vectors = onnx_floats(n, "support_vectors", &m->size);
    const float *params = onnx_floats(n, "kernel_params", &n_params);
    m->kernel = onnx_string(n, "kernel_type", "LINEAR");
    m->gamma = n_params > 0 ? (double)params[0] : 0;
    m->coef0 = n_params > 1 ? (double)params[1] : 0;
    m->degree = n_params > 2 ? (double)params[2] : 0;
    return b_svm_kernels(n->g, x, m);
}

// sum over supports of coefficient * kernel(x, support) + rho.
Value *onnx_svm_regressor(OnnxNode *n) {
    SupportVectors m = { 0 };
    Value *x = machine_read(n, &m);
    if (!x) return NULL;
    const char *how = onnx_string(n, "post_transform", "NONE");
    bool one_class = onnx_int(n, "one_class", 0) != 0;
    m.count = onnx_int(n, "n_supports", 0);
    if (m.count < 0 || (m.count && m.count != m.n_coefficients))
        return onnx_fail(n, "has %d coefficients for %lld support vectors", m.n_coefficients, (long long)m.count);
    if (!m.count) onnx_string(n, "kernel_type", "");
    Value *y = b_linear(n->g, m.count ? kernel_values(n, x, &m) : x, 1, m.n_coefficients, m.coefficients, 1, m.rho);
    return y && one_class ? B_MAP(n->g, "x > 0 ? 1 : x * 0 - 1", "x", y) : b_post_transform(n->g, y, how);
}

Value *onnx_svm_classifier(OnnxNode *n) {
    SupportVectors m = { 0 };
    int n_classes, n_a, n_b;
    Value *x = machine_read(n, &m);
    if (!x) return NULL;
    const int64_t *per_class = onnx_ints(n, "vectors_per_class", &n_classes);
    ClassLabels labels = onnx_class_labels(n, "classlabels_ints", "classlabels_strings");
    const int64_t classes = labels.count ? labels.count : 1;
    const char *how = onnx_string(n, "post_transform", "NONE");
    for (int i = 0; i < n_classes; i++) {
        if (per_class[i] < 0 || per_class[i] > m.n_coefficients - m.count)
            return onnx_fail(n, "attribute \"vectors_per_class\" has %lld", (long long)per_class[i]);
        m.count += per_class[i];
    }
    Value *scores, *best;
    if (!m.count) {                          // a row of coefficients for each class, and no kernel
        onnx_floats(n, "kernel_params", &n_a);
        onnx_string(n, "kernel_type", "");
        float *rho = NEW_ARRAY(n->g->arena, float, classes);
        for (int64_t i = 0; i < classes; i++) rho[i] = m.rho[0];
        best = scores = b_linear(n->g, x, (int)classes, m.n_coefficients, m.coefficients, (int)classes, rho);
    } else {
        if (n_classes != classes || classes < 2)
            return onnx_fail(n, "has %d labels for support vectors of %d classes", labels.count, n_classes);
        scores = b_svm_pairs(n->g, &m, kernel_values(n, x, &m), classes, per_class);
        best = b_svm_votes(n->g, scores, classes);
        const float *a = onnx_floats(n, "prob_a", &n_a);
        if (n_a && scores) {
            const float *b = onnx_floats(n, "prob_b", &n_b);
            scores = b_svm_probabilities(n->g, scores, classes, n_a, a, n_b, b);
        }
    }
    if (!scores || !best) return NULL;
    if (n->n_out > 1)
        n->out[1] = scores->type.dim[1] == 1 && classes == 2 ?
            b_two_scores(n->g, scores, how, strncmp(how, "SOFTMAX", 7) == 0) :
            b_post_transform(n->g, scores, how);
    return b_label(n->g, &labels, b_first_best(n->g, best));
}
