// SPDX-License-Identifier: MIT OR Apache-2.0
// --blas: large products of floats and doubles as calls of a BLAS (templates/c/blas.c). In: a contraction in
// canonical form. Out: its template and holes, or the answer that it stays ours.
//
// The rule: a product has at least 64^3 multiply-adds (a matrix times a vector: 64^2) and no side shorter than 8.
// Below, a call's own microsecond and its packing of both operands show; ours has sizes that are constants, and
// packed weights. Sizes that the running program knows count with their bounds. A BLAS counts in int, and wants one
// of an operand's two strides to be 1 and the other no less than a row: what is otherwise stays ours, too. Doubles
// have no template of ours: without a BLAS they are loops.
#include "schedule/schedule.h"
#include "templates.h"

enum { LEAST_SIDE = 8 };
static const double least_product = 64 * 64 * 64, least_vector = 64 * 64;

static bool is_large(int64_t m, int64_t n, int64_t k) {
    int64_t side = m < n ? m : n, other = m < n ? n : m;
    if (side == 1) return other >= LEAST_SIDE && k >= LEAST_SIDE && (double)other * (double)k >= least_vector;
    return side >= LEAST_SIDE && k >= LEAST_SIDE && (double)m * (double)n * (double)k >= least_product;
}

bool blas_takes_doubles(const Node *n, const Options *o) {
    const Graph *g = n->graph;
    const Type *x = &n->in[0]->type, *y = &n->in[1]->type, *z = &n->out[0]->type;
    if (!o->blas || n->op != OP_MatMul || x->dtype != DT_F64) return false;
    if (type_count_upper(g, x) > INT32_MAX || type_count_upper(g, y) > INT32_MAX || type_count_upper(g, z) > INT32_MAX)
        return false;
    int64_t k = dim_upper(g, x->dim[x->rank - 1]), columns = y->rank > 1 ? dim_upper(g, y->dim[y->rank - 1]) : 1;
    int64_t rows = y->rank <= 2 ? dims_upper(g, x->rank - 1, x->dim) :
        x->rank > 1             ? dim_upper(g, x->dim[x->rank - 2]) :
                                  1;
    return is_large(rows, columns, k);
}

// ---------------------------------------------------------------- strides
typedef struct Matrix { bool turned; Dim lead; } Matrix;

static bool at_least(const Graph *g, Dim stride, Dim size) {
    return dim_upper(g, stride) <= INT32_MAX
        && (dim_equal(g, stride, size) || dim_lower(g, stride) >= dim_upper(g, size));
}

// A matrix of so many rows and columns as a BLAS may have it; false: it may not.
static bool as_matrix(const Graph *g, Dim rows, Dim columns, Dim row, Dim column, Matrix *out) {
    bool straight = column == 1 && at_least(g, row, columns);
    *out = (Matrix){ !straight, straight ? row : column };
    return straight || (row == 1 && at_least(g, column, rows));
}

static bool is_count(const Graph *g, Dim d) { return dim_lower(g, d) >= 1 && dim_upper(g, d) <= INT32_MAX; }

// one: as the hole ONE, and what is a vector then is no matrix
typedef struct BlasCall { int one; Matrix left, right; } BlasCall;

static bool blas_call(const Graph *g, const Contraction *s, BlasCall *c) {
    bool counts = dim_upper(g, s->m) <= INT32_MAX && dim_upper(g, s->n) <= INT32_MAX && is_count(g, s->k)
        && is_count(g, s->c_row);
    *c = (BlasCall){ .one = s->m == 1 ? 1 : s->n == 1 ? 2 : 0 };
    bool left = c->one == 1 ? is_count(g, s->a_col) : as_matrix(g, s->m, s->k, s->a_row, s->a_col, &c->left);
    bool right = c->one == 2 ? is_count(g, s->b_row) : as_matrix(g, s->k, s->n, s->b_row, s->b_col, &c->right);
    return counts && left && right && (c->one || at_least(g, s->c_row, s->n));
}

bool blas_can(const Graph *g, const Contraction *s) {
    BlasCall c;
    return blas_call(g, s, &c);
}

// ---------------------------------------------------------------- holes
static void hole_name(Arena *a, Kernel *k, const char *name, const char *text) {
    VEC_PUSH(a, k->holes, (HoleValue){ .name = name, .kind = HOLE_NAME, .text = text });
}

static void hole_order(Arena *a, Kernel *k, const char *name, bool turned) {
    hole_name(a, k, name, turned ? "CblasTrans" : "CblasNoTrans");
}

static void matrix_holes(Arena *a, Kernel *k, const BlasCall *c) {
    hole_order(a, k, "A_ORDER", c->left.turned);
    hole_order(a, k, "B_ORDER", c->right.turned);
    template_hole_dim(a, k, "LDA", c->left.lead);
    template_hole_dim(a, k, "LDB", c->right.lead);
}

static void vector_holes(Arena *a, Kernel *k, const BlasCall *c) {
    const Contraction *s = &k->gemm;
    const Matrix *matrix = c->one == 1 ? &c->right : &c->left;
    Dim rows = c->one == 1 ? s->k : s->m, columns = c->one == 1 ? s->n : s->k;
    hole_order(a, k, "MATRIX_ORDER", matrix->turned == (c->one == 2));
    template_hole_dim(a, k, "LINES", matrix->turned ? columns : rows);
    template_hole_dim(a, k, "LINE", matrix->turned ? rows : columns);
    template_hole_dim(a, k, "LD", matrix->lead);
    template_hole_dim(a, k, "STEP", c->one == 1 ? s->a_col : s->b_row);
}

bool plan_blas(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    const Contraction *s = &k->gemm;
    bool doubles = k->operand[0]->type.dtype == DT_F64;
    BlasCall c;
    if (!o->blas || !blas_call(g, s, &c)
        || (!doubles && !is_large(dim_upper(g, s->m), dim_upper(g, s->n), dim_upper(g, s->k))))
        return false;
    const char *product = doubles ? "cblas_dgemm" : "cblas_sgemm", *vector = doubles ? "cblas_dgemv" : "cblas_sgemv";
    k->template = &template_blas;
    k->choice = c.one ? vector : product;
    VEC_PUSH(a, k->holes,
        (HoleValue){ .name = "ELEMENT", .kind = HOLE_ELEMENT, .value = doubles ? DT_F64 : DT_F32 });
    hole_name(a, k, "GEMM", product);
    hole_name(a, k, "GEMV", vector);
    template_hole_dim(a, k, "BATCH", s->batch);
    template_hole_dim(a, k, "M", s->m);
    template_hole_dim(a, k, "N", s->n);
    template_hole_dim(a, k, "K", s->k);
    template_hole_dim(a, k, "AB", s->a_batch);
    template_hole_dim(a, k, "BB", s->b_batch);
    template_hole_dim(a, k, "CB", s->c_batch);
    template_hole(a, k, "ONE", c.one);
    template_hole_dim(a, k, "CM", s->c_row);
    if (c.one) vector_holes(a, k, &c);
    else matrix_holes(a, k, &c);
    return true;
}
