// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls that work along axes: reductions, what is cumulated, sorted, found or looked up there.
//
// In: tensors, axes that may count from the end. Out: one value, or values with the places they had, built by build/.
#include "import/describe/describe.h"

#include <string.h>

// What the mean of the squared distances from the mean is, with so many degrees of freedom less.
static Value *variance(Graph *g, Value *x, int n, const int64_t *axes, bool keep, bool biased) {
    Value *mean = b_mean(g, x, n, axes, true), *centred = b_binary(g, OP_Sub, x, mean);
    Value *square = b_unary(g, OP_Square, centred), *total = b_reduce(g, OP_ReduceSum, square, n, axes, keep);
    Value *count = total ? b_count(g, x, n, axes, x->type.dtype) : NULL;
    if (!biased) count = B_MAP(g, "x - 1", "x", count);
    return b_binary(g, OP_Div, total, count);
}

burn_value *language_reduce(const burn_place *at, burn_value *x, bool keep, int n, const int64_t *axes) {
    static const struct { const char *name; Op op; bool floats, bools;
    } rows[] = {
        { "sum", OP_ReduceSum, false, false },
        { "mean", OP_ReduceMean, true, false },
        { "prod", OP_ReduceProd, false, false },
        { "amax", OP_ReduceMax, false, false },
        { "amin", OP_ReduceMin, false, false },
        { "any", OP_ReduceMax, false, true },
        { "all", OP_ReduceMin, false, true },
        { "logsumexp", OP_ReduceLogSumExp, true, false },
        { "norm", OP_ReduceL2, true, false },
        { "var", OP_NONE, true, false },
        { "var_biased", OP_NONE, true, false },
        { "std", OP_NONE, true, false },
    };
    Graph *g = here(at, NULL);
    size_t row = 0;
    int list[MAX_RANK];
    bool seen[MAX_RANK];
    int64_t all[MAX_RANK], count = 0;
    if (!x || !axes_in(x, n, axes, seen, list)) return NULL;
    for (int i = 0; i < x->type.rank; i++)
        if (!n || seen[i]) all[count++] = i;
    while (strcmp(rows[row].name, at->call)) row++;
    DType d = x->type.dtype;
    if (rows[row].floats && !dtype_is_float(d)) x = b_cast(g, x, DT_F32);
    if (rows[row].bools && d != DT_BOOL) x = B_MAP(g, "x != 0", "x", x);
    bool adds = rows[row].op == OP_ReduceSum || rows[row].op == OP_ReduceProd;
    if (!rows[row].bools && !dtype_is_float(d) && (adds || d == DT_BOOL)) x = b_cast(g, x, DT_I64);     // as PyTorch's
    if (rows[row].op == OP_NONE) {
        Value *v = variance(g, x, (int)count, all, keep, !strcmp(at->call, "var_biased"));
        return at->call[0] == 's' ? b_unary(g, OP_Sqrt, v) : v;
    }
    return b_reduce(g, rows[row].op, x, (int)count, all, keep);
}

// ArgMax, CumSum, ...: the operation along the axis, which goes if it is reduced
static Value *along(Graph *g, Op op, Value *x, int axis) {
    Node *n = graph_node(g, op, 1, &x, 1);
    node_set_int(n, "axis", axis);
    if (op == OP_ArgMax || op == OP_ArgMin) node_set_int(n, "keepdims", 0);
    return b_finish(n);
}

// The first half times a function of the second.
static Value *gated(Graph *g, Value *x, int axis, const char *expression) {
    Dim size = x->type.dim[axis];
    if (!dim_is_const(size) || size % 2) return graph_fail(g, "axis %d of %s has no halves", axis, shown(g, x));
    Value *a = b_part(g, x, axis, 0, size / 2), *b = b_part(g, x, axis, size / 2, size / 2);
    return B_MAP(g, expression, "x y", a, b);
}

// exp(x) / (1 + sum of exp(x)): a softmax beside a score of 0
static Value *quiet_softmax(Graph *g, Value *x, int axis) {
    Dim dims[MAX_RANK];
    memcpy(dims, x->type.dim, sizeof dims);
    dims[axis] = 1;
    Value *zero = b_filled(g, x->type.dtype, 0, x->type.rank, dims), *both[2] = { x, zero };
    Value *all = zero ? b_concat(g, axis, 2, both) : NULL;
    return all ? b_part(g, b_softmax(g, all, axis), axis, 0, x->type.dim[axis]) : NULL;
}

burn_value *language_along(const burn_place *at, burn_value *x, int64_t axis) {
    static const struct { const char *name; Op op; bool floats; const char *gate; } rows[] = {
        { "softmax", OP_Softmax, true, NULL },
        { "log_softmax", OP_LogSoftmax, true, NULL },
        { "softmin", OP_Neg, true, NULL },
        { "quiet_softmax", OP_NONE, true, NULL },
        { "glu", OP_NONE, true, "x * sigmoid(y)" },
        { "reglu", OP_NONE, true, "x * max(y, 0)" },
        { "geglu", OP_NONE, true, "x * (0.5 * y * (1 + erf(y * 0.70710678118654752)))" },
        { "swiglu", OP_NONE, true, "x * (y * sigmoid(y))" },
        { "cumsum", OP_CumSum, false, NULL },
        { "cumprod", OP_CumProd, false, NULL },
        { "argmax", OP_ArgMax, false, NULL },
        { "argmin", OP_ArgMin, false, NULL },
    };
    Graph *g = here(at, NULL);
    size_t row = 0;
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    while (strcmp(rows[row].name, at->call)) row++;
    Op op = rows[row].op;
    bool counts = op == OP_CumSum || op == OP_CumProd;
    if (!dtype_is_float(x->type.dtype) && (rows[row].floats || counts))
        x = b_cast(g, x, rows[row].floats ? DT_F32 : DT_I64);
    if (!x) return NULL;
    if (rows[row].gate) return gated(g, x, i, rows[row].gate);
    if (op == OP_NONE) return quiet_softmax(g, x, i);
    if (op == OP_Softmax) return b_softmax(g, x, i);
    return op == OP_Neg ? b_softmax(g, b_unary(g, OP_Neg, x), i) : along(g, op, x, i);
}

// What is largest up to each element, and where it stood last.
static struct burn_found running(Graph *g, Value *x, int axis, bool largest) {
    struct burn_found found = { along(g, largest ? OP_CumMax : OP_CumMin, x, axis), NULL };
    Value *place = b_iota(g, x->type.rank, x->type.dim, axis, DT_I64);
    Value *reached = b_binary(g, OP_Equal, x, found.values);
    Value *known = b_where(g, reached, place, b_scalar(g, DT_I64, 0));
    found.indices = known ? along(g, OP_CumMax, known, axis) : NULL;
    return found;
}

// What an element of the axis is chosen by, and which it was.
struct burn_found language_found(const burn_place *at, burn_value *x, int64_t axis) {
    Graph *g = here(at, NULL);
    struct burn_found found = { NULL, NULL };
    const char *call = at->call;
    int i;
    if (!x || !axis_in(x, axis, &i)) return found;
    if (x->type.dtype == DT_BOOL) x = b_cast(g, x, DT_I64);
    if (!strncmp(call, "cum", 3)) return running(g, x, i, !strcmp(call, "cummax"));
    if (strcmp(call, "median")) {
        bool largest = call[1] == 'a';
        int64_t axes[1] = { i };
        found.indices = along(g, largest ? OP_ArgMax : OP_ArgMin, x, i);
        found.values = b_reduce(g, largest ? OP_ReduceMax : OP_ReduceMin, x, 1, axes, false);
        return found;
    }
    Dim size = x->type.dim[i], middle = dim_div(g, dim_sub(g, size, 1), 2);
    Node *sorted = b_sort(g, x, i, false, size);
    if (!sorted) return found;
    found.values = b_remove(g, b_part(g, sorted->out[0], i, middle, 1), i);
    found.indices = b_remove(g, b_part(g, sorted->out[1], i, middle, 1), i);
    return found;
}

struct burn_found language_topk(const burn_place *at, burn_value *x, int64_t k, int64_t axis, bool largest) {
    Graph *g = here(at, NULL);
    struct burn_found none = { NULL, NULL }, found;
    int i;
    if (!x || !axis_in(x, axis, &i)) return none;
    Dim size = x->type.dim[i];
    if (k >= 0 && dim_is_const(size) && k > size) {
        graph_fail(g, "%lld of axis %lld of %s", (long long)k, (long long)axis, shown(g, x));
        return none;
    }
    bool known = k >= 0 && dim_is_const(size);          // the first k alone are worth less than a whole sort
    Node *n = b_sort(g, x, i, largest, known ? k : size);
    if (!n) return none;
    found = (struct burn_found){ n->out[0], n->out[1] };
    if (k >= 0 && !known) found.values = b_part(g, n->out[0], i, 0, k);
    if (k >= 0 && !known) found.indices = b_part(g, n->out[1], i, 0, k);
    return found;
}

burn_value *language_gather(const burn_place *at, burn_value *x, int64_t axis, burn_value *index) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !index || !axis_in(x, axis, &i)) return NULL;
    if (!dtype_is_int(index->type.dtype)) return graph_fail(g, "the indices are %s, not integers", shown(g, index));
    return !strcmp(at->call, "gather") ? b_gather_elements(g, x, index, i) : b_gather(g, x, index, i);
}

// of x as one list
burn_value *language_take(const burn_place *at, burn_value *x, burn_value *index) {
    Graph *g = here(at, NULL);
    if (!x || !index) return NULL;
    if (!dtype_is_int(index->type.dtype)) return graph_fail(g, "the indices are %s, not integers", shown(g, index));
    Dim all = type_size(g, &x->type);
    return b_gather(g, b_reshape(g, x, 1, &all), index, 0);
}

burn_value *language_one_hot(const burn_place *at, burn_value *x, int64_t classes) {
    Graph *g = here(at, NULL);
    if (!x) return NULL;
    if (classes < 1 || !dtype_is_int(x->type.dtype)) return graph_fail(g, "wants integers and a number of classes");
    Dim d = classes;
    Value *place = b_iota(g, 1, &d, 0, x->type.dtype), *each = b_insert(g, x, x->type.rank);
    Value *same = b_binary(g, OP_Equal, each, place);
    return b_cast(g, same, DT_I64);
}
