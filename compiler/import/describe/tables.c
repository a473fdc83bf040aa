// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls that make tensors from nothing: constants, rows of numbers, masks, windows, random numbers.
//
// In: element types, sizes that may be symbols. Out: one value, built by build/.
#include "import/describe/describe.h"

#include <math.h>
#include <string.h>

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

burn_value *language_linspace(const burn_place *at, int dtype, double start, double end, int64_t n) {
    Graph *g = here(at, NULL);
    DType d = (DType)dtype;
    if (dtype <= DT_NONE || dtype >= DT_INDEX || !dtype_is_float(d)) return graph_fail(g, "wants floats, such as F32");
    if (n < 1) return graph_fail(g, "%lld numbers", (long long)n);
    double *list = NEW_ARRAY(g->arena, double, n);
    for (int64_t i = 0; i < n; i++)                     // from the nearer end, so that both are exact
        list[i] = 2 * i < n ? start + (end - start) / (double)max64(n - 1, 1) * (double)i :
                              end - (end - start) / (double)max64(n - 1, 1) * (double)(n - 1 - i);
    return b_floats(g, d, 1, &n, list);
}

burn_value *language_like(const burn_place *at, burn_value *x, double value) {
    Graph *g = here(at, NULL);
    return x ? b_full(g, &x->type, value) : NULL;
}

burn_value *language_steps(const burn_place *at, int dtype, double start, double end, double step) {
    Graph *g = here(at, NULL);
    if (!dtype_in(g, dtype)) return NULL;
    double count = ceil((end - start) / step);
    if (!(count >= 1 && count <= INT32_MAX))
        return graph_fail(g, "from %g to %g in steps of %g there are no numbers", start, end, step);
    Dim n = (Dim)count;
    Value *place = b_iota(g, 1, &n, 0, DT_F64);
    return b_cast(g, B_MAP(g, arena_printf(g->arena, "x * %.17g + %.17g", step, start), "x", place), (DType)dtype);
}

// ---------------------------------------------------------------- places

Value *diagonal_mask(Graph *g, Dim rows, Dim columns, char which, int64_t diagonal) {
    Dim shape[2] = { rows, columns };
    const char *text = arena_printf(g->arena, "y %s x + %lld", which == '=' ? "==" : which == '<' ? "<=" : ">=",
        (long long)diagonal);
    Value *row = b_iota(g, 2, shape, 0, DT_I64), *column = b_iota(g, 2, shape, 1, DT_I64);
    return B_MAP(g, text, "x y", row, column);
}

burn_value *language_mask(const burn_place *at, burn_dim rows, burn_dim columns, int64_t diagonal) {
    Graph *g = here(at, NULL);
    Dim r, c;
    char which = !strcmp(at->call, "tril_mask") ? '<' : !strcmp(at->call, "triu_mask") ? '>' : '=';
    return dim_in(rows, "the number of rows", &r) && dim_in(columns, "the number of columns", &c) ?
        diagonal_mask(g, r, c, which, diagonal) : NULL;
}

burn_value *language_eye(const burn_place *at, int dtype, burn_dim n) {
    Graph *g = here(at, NULL);
    Dim d;
    if (!dtype_in(g, dtype)) return NULL;
    return dim_in(n, "the size", &d) ? b_cast(g, diagonal_mask(g, d, d, '=', 0), (DType)dtype) : NULL;
}

// meshgrid: list `which`, varying along its own axis; cartesian_prod: all of them side by side, flat
burn_value *language_meshgrid(const burn_place *at, int64_t which, int n, burn_value *const *x) {
    Graph *g = here(at, NULL);
    bool product = at->call[0] == 'c';
    Dim dims[MAX_RANK], all = 1;
    Value *grid[MAX_RANK];
    if (n < 1 || n > MAX_RANK) return graph_fail(g, "wants 1 to %d lists, not %d", MAX_RANK, n);
    if (which < 0 || which >= n) return graph_fail(g, "there is no grid %lld of %d", (long long)which, n);
    for (int i = 0; i < n; i++) {
        if (!x[i]) return NULL;
        if (x[i]->type.rank != 1) return graph_fail(g, "%s is no list", shown(g, x[i]));
        if (product && x[i]->type.dtype != x[0]->type.dtype)
            return graph_fail(g, "%s and %s are of two types", shown(g, x[0]), shown(g, x[i]));
        dims[i] = x[i]->type.dim[0];
        all = dim_mul(g, all, dims[i]);
    }
    for (int i = 0; i < n; i++) grid[i] = b_expand(g, b_along(g, x[i], n, i), n, dims);
    if (!product) return grid[which];
    for (int i = 0; i < n; i++) grid[i] = b_reshape(g, grid[i], 1, &all);
    return b_stack(g, 1, n, grid);
}

burn_value *language_window(const burn_place *at, int64_t n) {
    static const struct { const char *name; double a[3]; } rows[] = {
        { "hann_window", { 0.5, 0.5, 0 } },
        { "hamming_window", { 0.54, 0.46, 0 } },
        { "blackman_window", { 0.42, 0.5, 0.08 } },
    };
    Graph *g = here(at, NULL);
    size_t row = 0;
    while (strcmp(rows[row].name, at->call)) row++;
    if (n < 1 || n > 1 << 24) return graph_fail(g, "a window of %lld numbers", (long long)n);
    return b_cosine_window(g, DT_F32, n, true, rows[row].a);
}

// ---------------------------------------------------------------- random numbers

// Each call of a description draws others.
static int64_t next_seed(void) { return describing->options->seed * 1000003 + ++describing->draws; }

burn_value *language_drawn(const burn_place *at, int dtype, double a, double b, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Type t;
    if (!type_in(g, dtype, rank, dims, &t)) return NULL;
    bool whole = !strcmp(at->call, "randint");
    bool normal = !strcmp(at->call, "randn") || !strcmp(at->call, "rand_normal");
    if (!whole && !dtype_is_float(t.dtype)) return graph_fail(g, "wants floats, such as F32; whole numbers: randint");
    if (normal ? !(b >= 0) : !(a < b)) return graph_fail(g, "there is nothing to draw from %g, %g", a, b);
    if (normal) return b_random_normal(g, &t, next_seed(), a, b);
    if (!whole) return b_random_uniform(g, &t, next_seed(), a, b);
    Type real = type_make(DT_F32, t.rank, t.dim);
    Value *x = b_random_uniform(g, &real, next_seed(), a, b);
    return b_cast(g, B_MAP(g, arena_printf(g->arena, "min(floor(x), %.17g)", b - 1), "x", x), t.dtype);
}

burn_value *language_chance(const burn_place *at, burn_value *p, int64_t samples) {
    Graph *g = here(at, NULL);
    if (!p) return NULL;
    if (!dtype_is_float(p->type.dtype)) return graph_fail(g, "wants probabilities, not %s", shown(g, p));
    if (at->call[0] == 'b') return b_bernoulli(g, p, p->type.dtype, next_seed());
    if (p->type.rank != 2 || samples < 1)
        return graph_fail(g, "wants rows of probabilities and a number of samples, not %s and %lld", shown(g, p),
            (long long)samples);
    return b_multinomial(g, b_unary(g, OP_Log, p), samples, DT_I64, next_seed());
}
