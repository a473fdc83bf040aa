// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's operators of classical machine learning (domain ai.onnx.ml): preparation of features, linear models, support
// vectors.
//
// In: an OnnxNode. Out: what build/ml.c makes of its attributes, and maps and reductions.
// Labels and categories: ml/labels.c. Trees: ml/tree.c.
#include "import/onnx/onnx.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- what the models share

const float *onnx_floats(const OnnxNode *n, const char *name, int *count) {
    const OnnxAttr *a = onnx_attr(n, name, ONNX_FLOATS);
    *count = a ? a->n : 0;
    return a && a->n ? a->floats : NULL;
}

ClassLabels onnx_class_labels(const OnnxNode *n, const char *ints, const char *strings) {
    const OnnxAttr *names = onnx_attr(n, strings, ONNX_STRINGS);
    ClassLabels l = { 0 };
    l.ints = onnx_ints(n, ints, &l.count);
    if (!l.count && names) l = (ClassLabels){ .strings = names->strings, .count = names->n };
    return l;
}

// ---------------------------------------------------------------- features

// One number for all or one per column; missing: otherwise.
static Value *per_column(OnnxNode *n, const char *attr, DType d, double otherwise, const Value *x) {
    int count;
    if (!x) return NULL;
    const float *v = onnx_floats(n, attr, &count);
    Dim columns = x->type.rank ? x->type.dim[x->type.rank - 1] : 1;
    if (!count) return b_scalar(n->g, d, otherwise);
    if (count == 1) return b_scalar(n->g, d, v[0]);
    if (dim_is_const(columns) && columns != count)
        return onnx_fail(n, "attribute \"%s\" has %d values for %lld columns", attr, count, (long long)columns);
    return b_float_vector(n->g, d, count, v);
}

Value *onnx_scaler(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = b_cast(n->g, n->in[0], DT_F32);
    Value *offset = per_column(n, "offset", DT_F32, 0, x), *scale = per_column(n, "scale", DT_F32, 1, x);
    return offset && scale ? B_MAP(n->g, "(x - y) * z", "x y z", x, offset, scale) : NULL;
}

Value *onnx_normalizer(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    const char *norm = onnx_string(n, "norm", "MAX");
    bool max = !strcmp(norm, "MAX"), l1 = !strcmp(norm, "L1");
    Value *x = b_cast(n->g, n->in[0], DT_F32);
    if (!max && !l1 && strcmp(norm, "L2")) return onnx_fail(n, "attribute \"norm\" is \"%s\"", norm);
    if (!x) return NULL;
    if (x->type.rank < 1 || x->type.rank > 2) return onnx_fail(n, "wants a vector or a matrix");
    const int64_t axis = x->type.rank - 1;
    Value *size = max ? b_reduce(n->g, OP_ReduceMax, x, 1, &axis, true) :
                        b_reduce(n->g, OP_ReduceSum, b_unary(n->g, l1 ? OP_Abs : OP_Square, x), 1, &axis, true);
    if (!max && !l1) size = b_unary(n->g, OP_Sqrt, size);
    return size ? B_MAP(n->g, "y == 0 ? x : x / y", "x y", x, size) : NULL;
}

Value *onnx_imputer(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    if (dtype_is_float(x->type.dtype)) {
        Value *fill = per_column(n, "imputed_value_floats", x->type.dtype, 0, x);
        double hole = onnx_float(n, "replaced_value_float", 0);
        return !fill    ? NULL :
            isnan(hole) ? B_MAP(n->g, "isnan(x) ? y : x", "x y", x, fill) :
                          B_MAP(n->g, "x == z ? y : x", "x y z", x, fill, b_like(n->g, x, hole));
    }
    int count;
    const int64_t *v = onnx_ints(n, "imputed_value_int64s", &count);
    Dim columns = x->type.rank ? x->type.dim[x->type.rank - 1] : 1;
    if (!count || (count > 1 && dim_is_const(columns) && columns != count))
        return onnx_fail(n, "attribute \"imputed_value_int64s\" wants a value, or one for each column");
    Value *fill = b_cast(n->g, b_ints(n->g, count, v), x->type.dtype),
          *hole = b_ints(n->g, 1, (int64_t[]){ onnx_int64(n, "replaced_value_int64", 0) });
    return x->type.rank ? B_MAP(n->g, "x == z ? y : x", "x y z", x, fill, b_cast(n->g, hole, x->type.dtype)) :
                          onnx_fail(n, "the input must have at least 1 dimension");
}

// Each input is cut or padded with zeros to its number of columns.
Value *onnx_feature_vectorizer(OnnxNode *n) {
    int count;
    const int64_t *columns = onnx_ints(n, "inputdimensions", &count);
    if (!onnx_inputs(n, n->n_in) || !n->n_in) return NULL;
    if (count != n->n_in)
        return onnx_fail(n, "attribute \"inputdimensions\" has %d values for %d inputs", count, n->n_in);
    Value **part = NEW_ARRAY(n->g->arena, Value *, count);
    for (int i = 0; i < count; i++) {
        Value *x = part[i] = b_rows_of(n->g, b_cast(n->g, n->in[i], DT_F32));
        if (!x) return NULL;
        if (!dim_is_const(x->type.dim[1]) || columns[i] < 0)
            return onnx_fail(n, "input %d must have a known number of columns", i);
        part[i] = b_pad(
            n->g, x, (int64_t[]){ 0, 0 }, (int64_t[]){ 0, columns[i] - x->type.dim[1] }, (int64_t[]){ 0, 0 }, NULL);
    }
    return b_concat(n->g, 1, count, part);
}

// The recorded form of a list of maps from class to probability is the matrix itself.
Value *onnx_zip_map(OnnxNode *n) {
    onnx_class_labels(n, "classlabels_int64s", "classlabels_strings");
    return onnx_input(n, 0);
}

// ---------------------------------------------------------------- linear models

Value *onnx_linear_regressor(OnnxNode *n) {
    int count, biases;
    if (!onnx_inputs(n, 1)) return NULL;
    const float *w = onnx_floats(n, "coefficients", &count), *bias = onnx_floats(n, "intercepts", &biases);
    int64_t targets = onnx_int(n, "targets", 1);
    if (targets < 1 || targets > count)
        return onnx_fail(n, "attribute \"targets\" is %lld with %d coefficients", (long long)targets, count);
    return b_post_transform(n->g, b_linear(n->g, b_rows_of(n->g, n->in[0]), (int)targets, count, w, biases, bias),
        onnx_string(n, "post_transform", "NONE"));
}

// One row of coefficients: the score of the second of two classes, whose label wins where it is positive.
Value *onnx_linear_classifier(OnnxNode *n) {
    int count, biases;
    if (!onnx_inputs(n, 1)) return NULL;
    const float *w = onnx_floats(n, "coefficients", &count), *bias = onnx_floats(n, "intercepts", &biases);
    ClassLabels labels = onnx_class_labels(n, "classlabels_ints", "classlabels_strings");
    const char *how = onnx_string(n, "post_transform", "NONE");
    onnx_int(n, "multi_class", 0);
    int rows = biases ? biases : labels.count;
    Value *scores = b_linear(n->g, b_rows_of(n->g, n->in[0]), rows, count, w, biases, bias);
    if (!scores) return NULL;
    if (rows > 1 && rows != labels.count)
        return onnx_fail(n, "has %d labels for %d rows of coefficients", labels.count, rows);
    Value *best = rows > 1 ? b_first_best(n->g, scores) :
                             b_cast(n->g, b_remove(n->g, B_MAP(n->g, "x > 0", "x", scores), 1), DT_I64);
    bool two = rows == 1 && labels.count == 2;
    if (n->n_out > 1) n->out[1] = two ? b_two_scores(n->g, scores, how, true) : b_post_transform(n->g, scores, how);
    if (labels.count == 1 && !labels.strings) labels.count = 0;
    return b_label(n->g, &labels, best);
}
