// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of classical machine learning: linear models, what follows their scores, tables of labels.
//
// In: features [N, F], tables of numbers and strings. Out: maps, reductions and products over constant tables. A label
// is looked up by its place among the keys, and a gather from the values, behind which the default stands. Strings are
// searched in a sorted table; numbers are compared with every key.
#include "build/build.h"

#include <string.h>

Value *b_float_vector(Graph *g, DType d, int count, const float *v) {
    Tensor *t = tensor_new(g->arena, type_make(d, 1, (Dim[]){ count }));
    for (int i = 0; i < count; i++) tensor_set_f(t, i, v[i]);
    return graph_const(g, t, NULL);
}

Value *b_rows_of(Graph *g, Value *x) {
    if (!x) return NULL;
    if (x->type.rank < 1) return graph_fail(g, "the input must have at least 1 dimension");
    Dim rows = x->type.rank == 1 ? 1 : x->type.dim[0];
    x = b_cast(g, x, x->type.dtype == DT_F64 ? DT_F64 : DT_F32);
    if (!x || x->type.rank == 2) return x;
    return b_reshape(g, x, 2, (Dim[]){ rows, type_product(g, &x->type, x->type.rank > 1, x->type.rank) });
}

static Value *softmax_nonzero(Graph *g, Value *x) {
    const int64_t axis = 1;
    Value *top = b_reduce(g, OP_ReduceMax, x, 1, &axis, true);
    Value *e = top ? B_MAP(g, "abs(x) > 1e-7 ? exp(x - y) : 0", "x y", x, top) : NULL;
    Value *sum = b_reduce(g, OP_ReduceSum, e, 1, &axis, true);
    return sum ? B_MAP(g, "y == 0 ? 0 : x / y", "x y", e, sum) : NULL;
}

// PROBIT is sqrt(2) * erfinv(2x - 1), erfinv by Winitzki's formula with a = 0.147: with l = log(1 - p^2) and v = 2 /
// (pi a) + l / 2 the root of sqrt(v^2 - l / a) - v, here without its difference of nearly equal numbers.
Value *b_post_transform(Graph *g, Value *x, const char *how) {
    static const char probit[] =
        "p = 2 * x - 1; l = log((1 - p) * (1 + p)); v = 4.33075051 + 0.5 * l; r = sqrt(-l / 0.147 / (sqrt(v * v - l "
        "/ 0.147) + v)); 1.41421356 * (p < 0 ? -r : r)";
    if (!x || !strcmp(how, "NONE")) return x;
    if (!strcmp(how, "LOGISTIC")) return b_unary(g, OP_Sigmoid, x);
    if (!strcmp(how, "SOFTMAX_ZERO")) return softmax_nonzero(g, x);
    if (!strcmp(how, "PROBIT")) return B_MAP(g, probit, "x", x);
    if (strcmp(how, "SOFTMAX")) return graph_fail(g, "attribute \"post_transform\" is \"%s\"", how);
    return b_softmax(g, x, 1);
}

Value *b_label(Graph *g, const ClassLabels *l, Value *index) {
    bool counting = true;
    if (l->strings) return b_gather(g, b_strings(g, l->count, l->strings), index, 0);
    for (int i = 0; i < l->count; i++) counting &= l->ints[i] == i;
    return counting ? index : b_gather(g, b_ints(g, l->count, l->ints), index, 0);
}

Value *b_first_best(Graph *g, Value *scores) {
    if (!scores) return NULL;
    Node *node = graph_node(g, OP_ArgMax, 1, &scores, 1);
    node_set_int(node, "axis", 1);
    node_set_int(node, "keepdims", 0);
    return b_finish(node);
}

// One score for two classes -> a score each. The standard does not say how; as in ONNX Runtime of the transforms only
// LOGISTIC and PROBIT have an effect.
Value *b_two_scores(Graph *g, Value *x, const char *how, bool probabilities) {
    if (!x) return NULL;
    bool logistic = !strcmp(how, "LOGISTIC"), probit = !strcmp(how, "PROBIT");
    Value *other = probit || (probabilities && !logistic) ? B_MAP(g, "1 - x", "x", x) : b_unary(g, OP_Neg, x);
    Value *both = b_concat(g, 1, 2, (Value *[]){ other, x });
    return logistic || probit ? b_post_transform(g, both, how) : both;
}

// x [N,F] by coefficients [rows,F], plus intercepts [rows] or none.
Value *b_linear(
    Graph *g, Value *x, int rows, int count, const float *coefficients, int biases, const float *bias) {
    if (!x) return NULL;
    if (rows < 1 || count % rows || (dim_is_const(x->type.dim[1]) && x->type.dim[1] != count / rows))
        return graph_fail(
            g, "has %d coefficients for %d rows of %lld features", count, rows, (long long)x->type.dim[1]);
    if (biases && biases != rows) return graph_fail(g, "has %d intercepts for %d rows", biases, rows);
    Value *w = b_reshape(g, b_float_vector(g, DT_F32, count, coefficients), 2, (Dim[]){ rows, count / rows });
    x = b_cast(g, x, DT_F32);
    Value *y = b_matmul(g, x, b_transpose(g, w, (int[]){ 1, 0 }));
    return biases ? b_binary(g, OP_Add, y, b_float_vector(g, DT_F32, biases, bias)) : y;
}

// ---------------------------------------------------------------- labels and categories

// The position of each element of x in the sorted table of the keys; -1 is the table's end. *order: where the table's
// strings stand among the keys.
static Value *find_string(Graph *g, Value *x, const Tensor *keys, int64_t **order, int *kept) {
    int count = (int)type_count(&keys->type);
    *order = NEW_ARRAY(g->arena, int64_t, count + 1);
    return b_string_find(g, x, b_string_table(g, count, keys->data, kept, *order));
}

// The first key that is equal, or the number of keys.
static Value *find_number(Graph *g, Value *x, Tensor *keys, bool nan_is_key) {
    int64_t count = type_count(&keys->type);
    int rank = x->type.rank;
    Value *key = b_reshape(g, b_cast(g, graph_const(g, keys, NULL), x->type.dtype), 1, (Dim[]){ count });
    x = b_insert(g, x, rank);
    if (!x || !key) return NULL;
    Value *k = b_iota(g, 1, (Dim[]){ count }, 0, DT_I64);
    const char *text = arena_printf(g->arena,
        dtype_is_float(x->type.dtype) && nan_is_key ? "x == y || (isnan(x) && isnan(y)) ? z : %lld" :
                                                      "x == y ? z : %lld",
        (long long)count);
    return b_reduce(g, OP_ReduceMin, B_MAP(g, text, "x y z", x, key, k), 1, (int64_t[]){ rank }, false);
}

Value *b_look_up(
    Graph *g, Value *x, Tensor *keys, const Tensor *values, const Default *otherwise, bool nan_is_key) {
    Arena *a = g->arena;
    int64_t count = type_count(&keys->type), *order = NULL;
    int kept = (int)count;
    if (count < 1 || count > INT32_MAX || count != type_count(&values->type))
        return graph_fail(g, "has %lld keys and %lld values", (long long)count, (long long)type_count(&values->type));
    if ((keys->type.dtype == DT_STRING) != (x->type.dtype == DT_STRING))
        return graph_fail(
            g, "the input is %s, the keys are %s", dtype_name(x->type.dtype), dtype_name(keys->type.dtype));
    Value *at = x->type.dtype == DT_STRING ? find_string(g, x, keys, &order, &kept) :
                                             find_number(g, x, keys, nan_is_key);
    Tensor *table = tensor_new(a, type_make(values->type.dtype, 1, (Dim[]){ kept + 1 }));
    size_t size = dtype_size(values->type.dtype);
    for (int i = 0; i < kept; i++)
        memcpy((char *)table->data + size * (size_t)i,
            (const char *)values->data + size * (size_t)(order ? order[i] : i), size);
    if (table->type.dtype == DT_STRING) ((const char **)table->data)[kept] = otherwise->s;
    else if (dtype_is_float(table->type.dtype)) tensor_set_f(table, kept, otherwise->f);
    else tensor_set_i(table, kept, otherwise->i);
    return b_gather(g, graph_const(g, table, NULL), at, 0);
}

// values[i] at column at[i] of [1, columns]; what lies outside is left out, what nothing is put into is 0 or "".
Value *b_put_at(Graph *g, Value *at, Value *values, int64_t columns) {
    if (!at || !values) return NULL;
    DType d = values->type.dtype;
    Value *none = d == DT_STRING ? b_reshape(g, b_strings(g, 1, (const char *[]){ "" }), 0, NULL) :
                                   b_scalar(g, d, 0);
    return b_insert(g, b_scatter_elements(g, b_expand(g, none, 1, &columns), at, values, 0, "none"), 0);
}
