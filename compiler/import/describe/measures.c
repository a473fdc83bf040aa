// SPDX-License-Identifier: MIT OR Apache-2.0
// Products, what is computed of matrices, lengths and distances, and derivatives.
//
// In: tensors, axes that may count from the end. Out: one value, built by build/.
#include "import/describe/describe.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- products

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

static Value *sum_over(Graph *g, Value *x, int axis) {
    return x ? b_reduce(g, OP_ReduceSum, x, 1, (int64_t[]){ axis }, false) : NULL;
}

// (x - mean) (x - mean)^T / (columns - 1)
static Value *covariance(Graph *g, Value *x) {
    int last = x->type.rank - 1;
    int64_t axes[1] = { last };
    Value *mean = b_mean(g, x, 1, axes, true), *centred = b_binary(g, OP_Sub, x, mean);
    Value *product = centred ? b_matmul(g, centred, b_swap(g, centred, last - 1, last)) : NULL;
    Value *count = b_count(g, x, 1, axes, x->type.dtype);
    return B_MAP(g, "x / (y - 1)", "x y", product, count);
}

burn_value *language_matrix(const burn_place *at, burn_value *x, burn_value *y) {
    Graph *g = here(at, NULL);
    const char *call = at->call;
    bool product = !strcmp(call, "dot");
    if (!x || (product && !y)) return NULL;
    int rank = x->type.rank;
    if (product && (rank != 1 || y->type.rank != 1))
        return graph_fail(g, "wants two lists, not %s and %s", shown(g, x), shown(g, y));
    if (product) return b_matmul(g, x, y);
    if (rank < 2) return graph_fail(g, "%s is no matrix", shown(g, x));
    if (!strcmp(call, "cov")) return dtype_is_float(x->type.dtype) ? covariance(g, x) :
            graph_fail(g, "wants floats, not %s", shown(g, x));
    Dim rows = x->type.dim[rank - 2], columns = x->type.dim[rank - 1];
    if (!strcmp(call, "trace")) {
        Value *is = diagonal_mask(g, rows, columns, '=', 0), *kept = b_where(g, is, x, b_like(g, x, 0));
        Value *row = sum_over(g, kept, rank - 1);
        return sum_over(g, row, rank - 2);
    }
    if (!dtype_is_float(x->type.dtype) || rows != columns || !dim_is_const(rows))
        return graph_fail(g, "wants square matrices of floats of a known size, not %s", shown(g, x));
    return call[0] == 'd' ? b_determinant(g, x) : b_inverse(g, x);
}

// [b, c, places] times its transpose, divided by c * places
burn_value *language_gram(const burn_place *at, burn_value *x) {
    Graph *g = here(at, NULL);
    if (!x) return NULL;
    if (x->type.rank < 3 || !dtype_is_float(x->type.dtype))
        return graph_fail(g, "wants [batch, channels, ...], not %s", shown(g, x));
    return b_gram(g, x);
}

// ---------------------------------------------------------------- lengths

Value *length_over(Graph *g, Value *x, double p, int n, const int64_t *axes, bool keep) {
    if (!x) return NULL;
    if (p == 2) return b_reduce(g, OP_ReduceL2, x, n, axes, keep);
    if (p == 1) return b_reduce(g, OP_ReduceL1, x, n, axes, keep);
    if (isinf(p)) return b_reduce(g, p > 0 ? OP_ReduceMax : OP_ReduceMin, b_unary(g, OP_Abs, x), n, axes, keep);
    Value *power = p == 0 ? B_MAP(g, "x != 0 ? 1 : 0 * x", "x", x) : b_lp_before(g, x, p);
    Value *sum = power ? b_reduce(g, OP_ReduceSum, power, n, axes, keep) : NULL;
    return p == 0 || !sum ? sum : b_lp_after(g, sum, p);
}

burn_value *language_length(
    const burn_place *at, burn_value *x, double p, bool keep, int n, const int64_t *axes) {
    Graph *g = here(at, NULL);
    int list[MAX_RANK];
    bool seen[MAX_RANK];
    int64_t all[MAX_RANK];
    int count = 0;
    if (!x || !axes_in(x, n, axes, seen, list)) return NULL;
    for (int i = 0; i < x->type.rank; i++)
        if (!n || seen[i]) all[count++] = i;
    if (!dtype_is_float(x->type.dtype)) x = b_cast(g, x, DT_F32);
    return isnan(p) ? graph_fail(g, "the order is not a number") : length_over(g, x, p, count, all, keep);
}

burn_value *language_normalized(const burn_place *at, burn_value *x, double p, int64_t axis) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    if (!dtype_is_float(x->type.dtype)) return graph_fail(g, "wants floats, not %s", shown(g, x));
    Value *length = length_over(g, x, p, 1, (int64_t[]){ i }, true);
    return B_MAP(g, "x / max(y, 0.000000000001)", "x y", x, length);
}

// pairwise_distance: of rows that belong together, plus 1e-6 as PyTorch has it; cdist: each of x and each of y
burn_value *language_distance(const burn_place *at, burn_value *x, burn_value *y, double p) {
    Graph *g = here(at, NULL);
    bool each = at->call[0] == 'c';
    Value *both[2];
    burn_arg args[2] = { { .tensor = x }, { .tensor = y } };
    if (!operands(g, 2, args, both)) return NULL;
    int rank = both[0]->type.rank;
    if (!dtype_is_float(both[0]->type.dtype) || rank < (each ? 2 : 1) || (each && both[1]->type.rank != rank))
        return graph_fail(g, "wants rows of floats, not %s and %s", shown(g, x), shown(g, y));
    if (each) {
        both[0] = b_insert(g, both[0], rank - 1);
        both[1] = b_insert(g, both[1], rank - 2);
    }
    Value *apart = B_MAP(g, each ? "x - y" : "x - y + 0.000001", "x y", both[0], both[1]);
    return apart ? length_over(g, apart, p, 1, (int64_t[]){ apart->type.rank - 1 }, false) : NULL;
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

// ---------------------------------------------------------------- derivatives

burn_value *language_gradient(const burn_place *at, burn_value *y, burn_value *x) {
    Graph *g = here(at, NULL);
    if (!x || !y) return NULL;
    if (!dtype_is_float(x->type.dtype) || !dtype_is_float(y->type.dtype))
        return graph_fail(g, "only floats have gradients, not %s by %s", shown(g, y), shown(g, x));
    int64_t axes[MAX_RANK];
    for (int i = 0; i < y->type.rank; i++) axes[i] = i;
    Value *in[2] = { y->type.rank ? b_reduce(g, OP_ReduceSum, y, y->type.rank, axes, false) : y, x };
    return in[0] ? b_finish(graph_node(g, OP_Gradient, 2, in, 1)) : NULL;
}
