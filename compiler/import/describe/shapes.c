// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls that move elements, make tensors from nothing, and work along axes.
//
// In: tensors, axes that may count from the end, sizes that may be symbols. Out: one value, built by build/.
#include "import/describe/describe.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- tensors from nothing

burn_value *language_constant(
    const burn_place *at, int dtype, const void *data, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Type t;
    if (!type_in(g, dtype, rank, dims, &t)) return NULL;
    if (!type_is_static(&t) || t.dtype == DT_STRING)
        return graph_fail(g, "a constant has numbers for sizes and elements");
    Tensor *made = tensor_new(g->arena, t);
    if (type_count(&t)) memcpy(made->data, data, (size_t)type_bytes(&t));
    return graph_const(g, made, NULL);
}

burn_value *language_full(const burn_place *at, int dtype, double value, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Type t;
    return type_in(g, dtype, rank, dims, &t) ? b_full(g, &t, value) : NULL;
}

burn_value *language_arange(const burn_place *at, int dtype, burn_dim end) {
    Graph *g = here(at, NULL);
    Type t;
    return type_in(g, dtype, 1, &end, &t) ? b_iota(g, 1, t.dim, 0, t.dtype) : NULL;
}

// ---------------------------------------------------------------- views

// -1 in a list of sizes: what the others leave of x's elements.
static bool left_over(Graph *g, const Value *x, int rank, const burn_dim *dims, Dim *out) {
    int open = -1;
    Dim others = 1, all = type_size(g, &x->type);
    for (int i = 0; i < rank; i++) {
        if (dims[i] == -1 && open >= 0) return graph_fail(g, "only one size can be -1");
        if (dims[i] == -1) open = i;
        else if (!dim_in(dims[i], "a size", &out[i])) return false;
        else others = dim_mul(g, others, out[i]);
    }
    if (open >= 0) {
        if (others == 0) return graph_fail(g, "the size that is left cannot be told from an empty tensor");
        out[open] = dim_div(g, all, others);
        others = dim_mul(g, others, out[open]);
    }
    if (dim_equal(g, others, all) || !dim_is_const(others) || !dim_is_const(all)) return true;
    return graph_fail(g, "%s has %lld elements, not %lld", shown(g, x), (long long)all, (long long)others);
}

burn_value *language_reshape(const burn_place *at, burn_value *x, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Dim d[MAX_RANK];
    if (!x) return NULL;
    if (rank > MAX_RANK) return graph_fail(g, "a tensor has at most %d dimensions", MAX_RANK);
    return left_over(g, x, rank, dims, d) ? b_reshape(g, x, rank, d) : NULL;
}

burn_value *language_expand(const burn_place *at, burn_value *x, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Dim d[MAX_RANK];
    if (!x) return NULL;
    if (rank > MAX_RANK || rank < x->type.rank)
        return graph_fail(g, "%s is expanded to %d to %d dimensions", shown(g, x), x->type.rank, MAX_RANK);
    for (int i = 0; i < rank; i++) {
        int from = i - (rank - x->type.rank);
        if (dims[i] == -1 && from >= 0) d[i] = x->type.dim[from];
        else if (!dim_in(dims[i], "a size", &d[i])) return NULL;
    }
    return b_expand(g, x, rank, d);
}

burn_value *language_flatten(const burn_place *at, burn_value *x, int64_t from, int64_t to) {
    Graph *g = here(at, NULL);
    int a, b, n = 0;
    Dim d[MAX_RANK];
    if (!x || !axis_in(x, from, &a) || !axis_in(x, to, &b)) return NULL;
    if (a > b) return graph_fail(g, "the axes %d to %d are none", a, b);
    for (int i = 0; i < a; i++) d[n++] = x->type.dim[i];
    d[n++] = type_product(g, &x->type, a, b + 1);
    for (int i = b + 1; i < x->type.rank; i++) d[n++] = x->type.dim[i];
    return b_reshape(g, x, n, d);
}

// Each once or not at all; false with a diagnostic.
static bool axes_in(const Value *x, int n, const int64_t *axes, bool *seen, int *out) {
    memset(seen, 0, sizeof *seen * MAX_RANK);
    if (n > x->type.rank) return graph_fail(describing->g, "%d axes of %s", n, shown(describing->g, x));
    for (int i = 0; i < n; i++) {
        if (!axis_in(x, axes[i], &out[i])) return false;
        if (seen[out[i]]) return graph_fail(describing->g, "axis %lld is named twice", (long long)axes[i]);
        seen[out[i]] = true;
    }
    return true;
}

burn_value *language_permute(const burn_place *at, burn_value *x, int n, const int64_t *axes) {
    Graph *g = here(at, NULL);
    int perm[MAX_RANK];
    bool seen[MAX_RANK];
    if (!x || !axes_in(x, n, axes, seen, perm)) return NULL;
    if (n != x->type.rank) return graph_fail(g, "%d axes are named, %s has %d", n, shown(g, x), x->type.rank);
    return b_transpose(g, x, perm);
}

burn_value *language_transpose(const burn_place *at, burn_value *x, int64_t a, int64_t b) {
    Graph *g = here(at, NULL);
    int i, k;
    return x && axis_in(x, a, &i) && axis_in(x, b, &k) ? b_swap(g, x, i, k) : NULL;
}

burn_value *language_squeeze(const burn_place *at, burn_value *x, int64_t axis) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    if (x->type.dim[i] != 1) return graph_fail(g, "axis %lld of %s has not the size 1", (long long)axis, shown(g, x));
    return b_remove(g, x, i);
}

// A new axis of size 1, which may count from the end of those that there will be.
static Value *inserted(Graph *g, Value *x, int64_t axis) {
    int64_t i = axis < 0 ? axis + x->type.rank + 1 : axis;
    if (i < 0 || i > x->type.rank)
        return graph_fail(g, "there is no place %lld between the axes of %s", (long long)axis, shown(g, x));
    return x->type.rank == MAX_RANK ? graph_fail(g, "a tensor has at most %d dimensions", MAX_RANK) :
                                      b_insert(g, x, (int)i);
}

burn_value *language_unsqueeze(const burn_place *at, burn_value *x, int64_t axis) {
    Graph *g = here(at, NULL);
    return x ? inserted(g, x, axis) : NULL;
}

burn_value *language_narrow(const burn_place *at, burn_value *x, int64_t axis, burn_dim start, burn_dim length) {
    Graph *g = here(at, NULL);
    int i;
    Dim from, size;
    if (!x || !axis_in(x, axis, &i) || !dim_in(start, "the start", &from) || !dim_in(length, "the length", &size))
        return NULL;
    Dim whole = x->type.dim[i], end = dim_add(g, from, size);
    if (dim_is_const(whole) && dim_is_const(end) && end > whole)
        return graph_fail(g, "%lld elements from %lld on are not in axis %lld of %s", (long long)size, (long long)from,
            (long long)axis, shown(g, x));
    return b_part(g, x, i, from, size);
}

burn_value *language_slice(
    const burn_place *at, burn_value *x, int64_t axis, int64_t start, int64_t end, int64_t step) {
    Graph *g = here(at, NULL);
    int i;
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Dim sizes[MAX_RANK];
    if (!x || !axis_in(x, axis, &i)) return NULL;
    if (step < 1) return graph_fail(g, "the step is %lld; flip turns an axis round", (long long)step);
    Dim size = x->type.dim[i];
    if (!dim_is_const(size)) {
        Dim to = end == INT64_MAX ? size : end < 0 ? dim_sub(g, size, -end) : end;
        Dim from = start < 0 ? dim_sub(g, size, -start) : start;
        Value *part = b_part(g, x, i, from, dim_sub(g, to, from));
        return step == 1 ? part : graph_fail(g, "a step of %lld wants an axis of known size", (long long)step);
    }
    int64_t from = start < 0 ? max64(start + size, 0) : min64(start, size),
            to = end < 0 ? max64(end + size, 0) : min64(end, size);
    for (int k = 0; k < x->type.rank; k++) {
        steps[k] = k == i ? step : 1;
        sizes[k] = x->type.dim[k];
    }
    starts[i] = from;
    sizes[i] = to > from ? ceil_div(to - from, step) : 0;
    return b_slice(g, x, starts, steps, sizes);
}

burn_value *language_chosen(const burn_place *at, burn_value *x, int64_t axis, int64_t index) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    Dim size = x->type.dim[i], from = index < 0 ? dim_sub(g, size, -index) : index;
    if (dim_is_const(size) && (index >= size || index < -size))
        return graph_fail(
            g, "there is no element %lld in axis %lld of %s", (long long)index, (long long)axis, shown(g, x));
    return b_remove(g, b_part(g, x, i, from, 1), i);
}

burn_value *language_chunk(const burn_place *at, burn_value *x, int64_t parts, int64_t axis, int64_t which) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    Dim size = x->type.dim[i];
    if (parts < 1 || which < 0 || which >= parts || !dim_is_const(size) || size % parts)
        return graph_fail(g, "axis %lld of %s has no part %lld of %lld equal ones", (long long)axis, shown(g, x),
            (long long)which, (long long)parts);
    return b_part(g, x, i, which * (size / parts), size / parts);
}

burn_value *language_cat(const burn_place *at, int64_t axis, int n, burn_value *const *x) {
    Graph *g = here(at, NULL);
    int i;
    bool stacks = !strcmp(at->call, "stack");
    burn_arg *args = NEW_ARRAY(g->arena, burn_arg, n + 1);
    Value **in = NEW_ARRAY(g->arena, Value *, n + 1);
    for (int k = 0; k < n; k++) args[k] = (burn_arg){ .tensor = x[k] };
    if (n < 1 || !operands(g, n, args, in)) return NULL;
    for (int k = 0; k < n && stacks; k++)
        if (!(in[k] = inserted(g, in[k], axis))) return NULL;
    return in[0] && axis_in(in[0], axis, &i) ? b_concat(g, i, n, in) : NULL;
}

burn_value *language_flip(const burn_place *at, burn_value *x, int n, const int64_t *axes) {
    Graph *g = here(at, NULL);
    int list[MAX_RANK];
    bool seen[MAX_RANK];
    return x && axes_in(x, n, axes, seen, list) ? b_flip(g, x, seen) : NULL;
}

burn_value *language_repeat(const burn_place *at, burn_value *x, int n, const int64_t *times) {
    Graph *g = here(at, NULL);
    if (!x) return NULL;
    if (n < x->type.rank || n > MAX_RANK) return graph_fail(g, "%d numbers for the axes of %s", n, shown(g, x));
    while (x && x->type.rank < n) x = b_insert(g, x, 0);
    for (int i = 0; i < n; i++) {
        if (times[i] < 1) return graph_fail(g, "a tensor is repeated %lld times", (long long)times[i]);
        if (times[i] > 1) x = b_repeat(g, x, i, times[i]);
    }
    return x;
}

burn_value *language_pad(const burn_place *at, burn_value *x, const struct burn_pad *o) {
    static const char *const modes[][2] = { { "constant", "constant" }, { "reflect", "reflect" },
        { "replicate", "edge" }, { "circular", "wrap" } };
    Graph *g = here(at, NULL);
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    size_t mode = 0;
    if (!x) return NULL;
    while (o->mode && mode < COUNT(modes) && strcmp(o->mode, modes[mode][0])) mode++;
    if (mode == COUNT(modes)) return graph_fail(g, "there is no mode \"%s\"; there are constant, reflect, replicate, "
        "circular", o->mode);
    for (int i = 0; i < 4; i++) {
        if (!o->pads[2 * i] && !o->pads[2 * i + 1]) continue;
        if (i >= x->type.rank) return graph_fail(g, "pads of %d axes, %s", i + 1, shown(g, x));
        lo[x->type.rank - 1 - i] = o->pads[2 * i];
        hi[x->type.rank - 1 - i] = o->pads[2 * i + 1];
    }
    Value *fill = mode == 0 && o->value != 0 ? b_like(g, x, o->value) : NULL;
    return b_pad_mode(g, x, lo, hi, modes[mode][1], fill);
}

burn_value *language_triangle(const burn_place *at, burn_value *x, int64_t diagonal) {
    Graph *g = here(at, NULL);
    if (!x) return NULL;
    if (x->type.rank < 2) return graph_fail(g, "%s is no matrix", shown(g, x));
    Value *k = diagonal ? b_scalar(g, DT_I64, (double)diagonal) : NULL;
    return b_triangle(g, x, k, !strcmp(at->call, "triu"));
}

// ---------------------------------------------------------------- along axes

static Value *variance(Graph *g, Value *x, int n, const int64_t *axes, bool keep) {
    Value *mean = b_mean(g, x, n, axes, true), *centred = b_binary(g, OP_Sub, x, mean);
    Value *square = b_unary(g, OP_Square, centred), *total = b_reduce(g, OP_ReduceSum, square, n, axes, keep);
    Value *count = total ? b_count(g, x, n, axes, x->type.dtype) : NULL;
    Value *less = B_MAP(g, "x - 1", "x", count);
    return b_binary(g, OP_Div, total, less);
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
    if (rows[row].op == OP_NONE) return variance(g, x, (int)count, all, keep);
    return b_reduce(g, rows[row].op, x, (int)count, all, keep);
}

// ArgMax, CumSum, ...: the operation along the axis, which goes if it is reduced
static Value *along(Graph *g, Op op, Value *x, int axis) {
    Node *n = graph_node(g, op, 1, &x, 1);
    node_set_int(n, "axis", axis);
    if (op == OP_ArgMax || op == OP_ArgMin) node_set_int(n, "keepdims", 0);
    return b_finish(n);
}

static Value *gated(Graph *g, Value *x, int axis) {     // the first half times the sigmoid of the second
    Dim size = x->type.dim[axis];
    if (!dim_is_const(size) || size % 2) return graph_fail(g, "axis %d of %s has no halves", axis, shown(g, x));
    Value *a = b_part(g, x, axis, 0, size / 2), *b = b_part(g, x, axis, size / 2, size / 2);
    return B_MAP(g, "x * sigmoid(y)", "x y", a, b);
}

burn_value *language_along(const burn_place *at, burn_value *x, int64_t axis) {
    Graph *g = here(at, NULL);
    const char *call = at->call;
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    bool floats = strncmp(call, "arg", 3) && strncmp(call, "cum", 3);
    if (!dtype_is_float(x->type.dtype) && strncmp(call, "arg", 3)) x = b_cast(g, x, floats ? DT_F32 : DT_I64);
    if (!strcmp(call, "softmax")) return b_softmax(g, x, i);
    if (!strcmp(call, "softmin")) return b_softmax(g, b_unary(g, OP_Neg, x), i);
    if (!strcmp(call, "log_softmax")) return along(g, OP_LogSoftmax, x, i);
    if (!strcmp(call, "glu")) return gated(g, x, i);
    if (!strcmp(call, "cumsum")) return along(g, OP_CumSum, x, i);
    if (!strcmp(call, "cumprod")) return along(g, OP_CumProd, x, i);
    return along(g, !strcmp(call, "argmax") ? OP_ArgMax : OP_ArgMin, x, i);
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

burn_value *language_one_hot(const burn_place *at, burn_value *x, int64_t classes) {
    Graph *g = here(at, NULL);
    if (!x) return NULL;
    if (classes < 1 || !dtype_is_int(x->type.dtype)) return graph_fail(g, "wants integers and a number of classes");
    Dim d = classes;
    Value *place = b_iota(g, 1, &d, 0, x->type.dtype), *each = b_insert(g, x, x->type.rank);
    Value *same = b_binary(g, OP_Equal, each, place);
    return b_cast(g, same, DT_I64);
}

burn_value *language_matmul(const burn_place *at, burn_value *x, burn_value *y) {
    Graph *g = here(at, NULL);
    return b_matmul(g, x, y);
}

burn_value *language_einsum(const burn_place *at, const char *equation, int n, burn_value *const *x) {
    Graph *g = here(at, NULL);
    for (int i = 0; i < n; i++)
        if (!x[i]) return NULL;
    return b_einsum(g, equation, n, x);
}
