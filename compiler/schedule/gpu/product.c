// SPDX-License-Identifier: MIT OR Apache-2.0
// Finds the matrix product in a loop nest.
//
// In: a loop kernel that stores f(sum of a * b). Out: the same kernel as a product (plan.h): which of its axes are
// batches, rows, columns and terms, the factors as expressions over them, and f of E_Acc. What a factor depends on says
// it all: axes that are summed are terms, those of both factors batches, those of one alone rows or columns. So matrix
// products through any views, einsum's, convolutions of any stride, dilation and padding, whole or in groups, are one
// thing, and only a template (blocks.c) looks at their sizes.
//
//     y[i0][i1][i2] = max(sum[i3,i4,i5](x[i3][i1 + i4 - 1][i2 + i5 - 1] if inside * w[i0][i3][i4][i5]), 0)
//
// is rows (i0), columns (i1 i2), terms (i3 i4 i5). Digits that an index walks as one number are written as one, which
// spares the way there and back: w's is i0 * K + (i3 i4 i5).
#include "tile.h"
#include "ir/expr.h"

#include <string.h>

enum { MAX_AXES = 30 };                                 // an expression knows 64, and each has a number beside it

typedef struct Sum { Expr *reduce; int n; bool *seen, odd; } Sum;

// What shaders have no elements or functions of: such nests stay loops, which may also run on the host.
static bool is_odd(const Expr *e) {
    const DType d = e->dtype;
    if (d == DT_INDEX) return false;
    return dtype_size(d) > 4 ? !dtype_is_int(d) || e->op == E_Div || e->op == E_Mod :
                               dtype_is_float(d) && d != DT_F32 && d != DT_F16 && d != DT_BF16;
}

static void find_sum(Sum *s, Expr *e) {
    if (!e || s->seen[e->id]) return;
    s->seen[e->id] = true;
    s->odd = s->odd || is_odd(e);
    if (e->op == E_Reduce) {
        s->reduce = e;
        s->n++;
    }
    for (int i = 0; i < 3; i++) find_sum(s, e->a[i]);
}

// An element of bytes, as products of integers take it.
static bool is_byte(const Expr *e) {
    const DType d = e->op == E_Cast && e->dtype == DT_I32 ? e->a[0]->dtype : DT_COUNT;
    return dtype_is_byte(d);
}

// The one sum of products of floats, or of bytes in i32, in the kernel; NULL: there is none, or something beside it.
static Expr *sum_of_products(Arena *a, const Kernel *k) {
    Sum s = { .seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1) };
    if (k->stores.n != 1 || k->stores.at[0].guard || k->stores.at[0].op != RED_NONE || k->sizes.n) return NULL;
    find_sum(&s, k->stores.at[0].index);
    find_sum(&s, k->stores.at[0].expr);
    if (s.odd || s.n != 1 || s.reduce->rop != RED_SUM || s.reduce->a[0]->op != E_Mul) return NULL;
    Expr *const *x = s.reduce->a[0]->a;
    const bool floats = s.reduce->dtype == DT_F32 && x[0]->dtype == DT_F32 && x[1]->dtype == DT_F32,
               bytes = s.reduce->dtype == DT_I32 && is_byte(x[0]) && is_byte(x[1]);
    return floats || bytes ? s.reduce : NULL;
}

// ---------------------------------------------------------------- digits
// An axis that occurs as axis / m or axis % m becomes two: views that take an axis apart, and groups, leave such
// indices behind.
typedef struct Parted { const Kernel *kernel; int axis; int64_t m; bool *seen; } Parted;

static void find_parted(Parted *d, const Expr *e) {
    if (!e || d->m || d->seen[e->id]) return;
    d->seen[e->id] = true;
    const bool part = e->dtype == DT_INDEX && (e->op == E_Div || e->op == E_Mod) && e->a[0]->op == E_Axis
        && e->a[1]->op == E_Const && e->a[1]->c.i > 1;
    if (part && d->kernel->axes.at[e->a[0]->c.i].extent % e->a[1]->c.i == 0) {
        d->axis = (int)e->a[0]->c.i;
        d->m = e->a[1]->c.i;
    }
    for (int i = 0; i < 3; i++) find_parted(d, e->a[i]);
}

typedef struct Part { ExprPool *pool; int axis, low; int64_t m, extent; } Part;
static Expr *part_axis(void *ctx, Expr *e) {
    const Part *s = ctx;
    if (e->op != E_Axis || e->c.i != s->axis) return NULL;
    Expr *high = expr_axis(s->pool, s->axis, s->extent / s->m), *low = expr_axis(s->pool, s->low, s->m);
    return expr_binary(s->pool, E_Add, expr_binary(s->pool, E_Mul, high, expr_index(s->pool, s->m)), low);
}

// The axes of the nest and of its sum, each followed by those that were parts of it.
typedef struct Digits { int n; signed char axis[MAX_AXES]; } Digits;

static bool part_digit(Arena *a, Kernel *k, Digits *all) {
    Expr **const exprs[] = { &k->product.factor[0], &k->product.factor[1], &k->stores.at[0].index,
        &k->stores.at[0].expr };
    Parted d = { .kernel = k, .seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1) };
    for (size_t i = 0; i < COUNT(exprs); i++) find_parted(&d, *exprs[i]);
    if (!d.m || k->axes.n == MAX_AXES) return false;
    Axis *high = &k->axes.at[d.axis];
    Part s = { k->exprs, d.axis, k->axes.n, d.m, high->extent };
    for (size_t i = 0; i < COUNT(exprs); i++) *exprs[i] = expr_rebuild(k->exprs, *exprs[i], part_axis, &s);
    high->extent = high->size = s.extent / s.m;
    const Axis low = { .extent = s.m, .reduce = high->reduce, .size = s.m };
    VEC_PUSH(a, k->axes, low);
    int at = 0;
    while (all->axis[at] != d.axis) at++;
    memmove(all->axis + at + 2, all->axis + at + 1, (size_t)(all->n - at - 1));
    all->axis[at + 1] = (signed char)s.low;
    all->n++;
    return true;
}

// ---------------------------------------------------------------- coordinates
// Each digit goes to its coordinate; false: neither factor depends on one that is not summed, or stores meet.
static bool share_out(Kernel *k, const Digits *all) {
    Product *p = &k->product;
    for (int i = 0; i < COORDS; i++) p->of[i] = (Coordinate){ .size = 1 };
    for (int i = 0; i < all->n; i++) {
        const int axis = all->axis[i];
        const bool in[2] = { p->factor[0]->axes_used >> axis & 1, p->factor[1]->axes_used >> axis & 1 },
                   term = k->axes.at[axis].reduce;
        if (k->axes.at[axis].extent == 1) continue;
        if (!in[0] && !in[1] && !term) return false;
        Coordinate *c = &p->of[term ? COORD_K : in[0] && in[1] ? COORD_B : in[0] ? COORD_M : COORD_N];
        c->axis[c->n++] = (signed char)axis;
        c->size *= k->axes.at[axis].extent;
    }
    return true;
}

// ---------------------------------------------------------------- the order of digits
typedef struct Steps { const Kernel *kernel; bool *seen; int along[MAX_AXES]; } Steps;

// By axis: loads whose neighbours in memory it walks.
static void count_steps(Steps *s, const Expr *e) {
    int64_t coef[64], c0;
    if (!e || s->seen[e->id]) return;
    s->seen[e->id] = true;
    if (e->op == E_Load && expr_affine(e->a[0], s->kernel->axes.n, coef, &c0))
        for (int i = 0; i < s->kernel->axes.n; i++) s->along[i] += coef[i] == 1;
    for (int i = 0; i < 3; i++) count_steps(s, e->a[i]);
}

// Last comes the digit that walks neighbours in memory most often.
static void order_digits(Coordinate *c, const Steps *s) {
    int best = c->n - 1;
    for (int i = 0; i < c->n; i++)
        if (s->along[(int)c->axis[i]] > s->along[(int)c->axis[best]]) best = i;
    if (best == c->n - 1) return;
    const signed char last = c->axis[best];
    memmove(c->axis + best, c->axis + best + 1, (size_t)(c->n - 1 - best));
    c->axis[c->n - 1] = last;
}

static Steps steps_of(Arena *a, const Kernel *k, int first, int n) {
    Steps s = { .kernel = k, .seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1) };
    for (int i = first; i < first + n; i++) count_steps(&s, k->product.factor[i]);
    return s;
}

static bool walks_any(const Steps *s, const Coordinate *c) {
    bool walks = false;
    for (int i = 0; i < c->n; i++) walks = walks || s->along[(int)c->axis[i]] > 0;
    return walks;
}

// Steps of the terms: of factors that do not walk their own rows, or columns, already; else of both.
static Steps steps_of_terms(Arena *a, const Kernel *k) {
    const Product *p = &k->product;
    Steps all = steps_of(a, k, 0, 2), some = { 0 };
    bool any = false;
    for (int i = 0; i < 2; i++) {
        const Steps own = steps_of(a, k, i, 1);
        if (walks_any(&own, &p->of[i ? COORD_N : COORD_M]) || !walks_any(&own, &p->of[COORD_K])) continue;
        for (int j = 0; j < MAX_AXES; j++) some.along[j] += own.along[j];
        any = true;
    }
    return any ? some : all;
}

// Of the terms that is, of a window whose channels lie last, the channel. So are rows, or columns, where a factor is
// read more often than the result is stored: those of a gradient by such a window's weights.
static void order_coordinates(Arena *a, Kernel *k) {
    Product *p = &k->product;
    const Steps terms = steps_of_terms(a, k);
    order_digits(&p->of[COORD_K], &terms);
    for (int i = 0; i < 2; i++) {
        const Steps own = steps_of(a, k, i, 1);
        if (p->of[COORD_K].size >= p->of[i ? COORD_M : COORD_N].size) order_digits(&p->of[i ? COORD_N : COORD_M], &own);
    }
}

// ---------------------------------------------------------------- digits as one number
typedef struct Joining { Kernel *kernel; const Product *product; } Joining;

// An index with the last digits of each coordinate, as many as it walks as one number, as that number.
static Expr *join_digits(const Joining *j, Expr *index) {
    Kernel *k = j->kernel;
    ExprPool *pool = k->exprs;
    int64_t coef[64], c0;
    if (!expr_affine(index, k->axes.n, coef, &c0)) return index;
    Expr *made = expr_index(pool, c0);
    for (int i = 0; i < COORDS; i++) {
        const Coordinate *c = &j->product->of[i];
        int from = c->n;
        int64_t walked = c->n ? coef[c->axis[c->n - 1]] : 0, extent = 1, step = walked;
        while (from > 0 && coef[c->axis[from - 1]] == walked) {
            walked *= k->axes.at[c->axis[--from]].extent;
            extent *= k->axes.at[c->axis[from]].extent;
        }
        for (int d = 0; d <= from && d < c->n; d++) {
            const int axis = c->axis[d];
            const bool one = d == from && from + 1 < c->n;
            Expr *number = one ? expr_axis(pool, k->axes.n + axis, extent) :
                                 expr_axis(pool, axis, k->axes.at[axis].extent);
            const int64_t by = d == from ? step : coef[axis];
            made = expr_binary(pool, E_Add, made, expr_binary(pool, E_Mul, number, expr_index(pool, by)));
        }
    }
    return made;
}

static Expr *join_loads(void *ctx, Expr *e) {
    const Joining *j = ctx;
    if (e->op != E_Load) return NULL;
    Expr *index = join_digits(j, e->a[0]);
    return index == e->a[0] ? NULL : expr_load(j->kernel->exprs, e->value, index, e->a[1], e->a[2]);
}

// ---------------------------------------------------------------- the product
static Expr *sum_is_acc(void *ctx, Expr *e) { return e->op == E_Reduce ? expr_acc(ctx, e->dtype) : NULL; }

// Neighbours of a row of the result are to be columns: they are stored together.
static bool rows_run_along_memory(const Kernel *k, const Product *p) {
    int64_t coef[64], c0;
    if (!expr_affine(k->stores.at[0].index, k->axes.n, coef, &c0)) return false;
    for (int i = 0; i < p->of[COORD_M].n; i++)
        if (coef[p->of[COORD_M].axis[i]] == 1) return true;
    return false;
}

void product_turn(Product *p) {
    const Product was = *p;
    p->factor[0] = was.factor[1];
    p->factor[1] = was.factor[0];
    p->of[COORD_M] = was.of[COORD_N];
    p->of[COORD_N] = was.of[COORD_M];
}

// A copy that can be changed.
static Kernel *copied(Arena *a, const Kernel *of) {
    Kernel *k = arena_copy(a, of, sizeof *of);
    k->axes.at = arena_copy(a, of->axes.at, sizeof *of->axes.at * (size_t)of->axes.n);
    k->axes.cap = of->axes.n;
    k->stores.at = arena_copy(a, of->stores.at, sizeof *of->stores.at);
    k->stores.cap = 1;
    return k;
}

Kernel *product_of(Arena *a, const Kernel *loop) {
    Expr *reduce = sum_of_products(a, loop);
    Digits all = { 0 };
    if (!reduce || loop->axes.n >= MAX_AXES) return NULL;
    for (int i = 0; i < loop->n_parallel; i++) {
        if (loop->axes.at[i].reduce) return NULL;       // stores in order, by one thread
        all.axis[all.n++] = (signed char)i;
    }
    for (int i = 0; i < reduce->n_axes; i++) all.axis[all.n++] = reduce->axes[i];
    Kernel *k = copied(a, loop);
    Product *p = &k->product;
    Store *s = &k->stores.at[0];
    *p = (Product){ .factor = { reduce->a[0]->a[0], reduce->a[0]->a[1] }, .bytes = reduce->dtype == DT_I32 };
    s->expr = expr_rebuild(k->exprs, s->expr, sum_is_acc, k->exprs);
    while (part_digit(a, k, &all)) {}
    if (!share_out(k, &all)) return NULL;
    if (rows_run_along_memory(k, p)) product_turn(p);
    order_coordinates(a, k);
    Joining j = { k, p };
    s->index = join_digits(&j, s->index);
    s->expr = expr_rebuild(k->exprs, s->expr, join_loads, &j);
    for (int i = 0; i < 2; i++) p->factor[i] = expr_rebuild(k->exprs, p->factor[i], join_loads, &j);
    for (int i = 0; i < k->nodes.n; i++)
        if (op_table[k->nodes.at[i]->op].form == FORM_CONTRACT) k->anchor = k->nodes.at[i];
    k->kind = KERNEL_PRODUCT;
    k->n_parallel = k->axes.n;
    return k;
}

// ---------------------------------------------------------------- what the terms do not change
// The coordinate that axis i, or the number that begins with it, is a digit of, and the axis as it stands in indices.
static int coordinate_of(const Kernel *k, int i, Expr **axis) {
    const int n = k->axes.n;
    for (int c = 0; c < COORDS; c++) {
        const Coordinate *of = &k->product.of[c];
        int64_t extent = 1;
        for (int d = of->n - 1; d >= 0; d--) {
            extent *= k->axes.at[of->axis[d]].extent;
            if (of->axis[d] != i % n) continue;
            *axis = expr_axis(k->exprs, i, i < n ? k->axes.at[i].extent : extent);
            return c;
        }
    }
    bug("axis %d is no digit", i);
}

// What of a load's index rows or columns alone decide, as one number; a single axis is one already.
static Expr *lift_load(void *ctx, Expr *e) {
    Kernel *k = ctx;
    Product *p = &k->product;
    const int n = k->axes.n;
    int64_t coef[64], c0;
    int work = 0, at = 0;
    if (e->op != E_Load || !expr_affine(e->a[0], 2 * n, coef, &c0)) return NULL;
    Expr *own = expr_index(k->exprs, 0), *rest = expr_index(k->exprs, c0), *axis;
    for (int i = 0; i < 2 * n; i++) {
        if (!coef[i]) continue;
        Expr **to = coordinate_of(k, i, &axis) == COORD_K ? &rest : &own;
        work += to == &own ? 1 + (coef[i] != 1) : 0;
        *to = expr_binary(k->exprs, E_Add, *to, expr_binary(k->exprs, E_Mul, axis, expr_index(k->exprs, coef[i])));
    }
    while (at < p->n_own && p->own[at] != own) at++;
    if (work < 2 || at == MAX_OWN || own->lo < 0 || own->hi > INT32_MAX) return NULL;
    Expr *lifted = expr_axis(k->exprs, 2 * n + at, own->hi + 1);
    p->own[at] = own;
    if (at == p->n_own) p->n_own++;
    return expr_load(k->exprs, e->value, expr_binary(k->exprs, E_Add, rest, lifted), e->a[1], e->a[2]);
}

void product_lift(Kernel *k) {
    for (int i = 0; i < 2; i++)
        k->product.factor[i] = expr_rebuild(k->exprs, k->product.factor[i], lift_load, k);
}
