// SPDX-License-Identifier: MIT OR Apache-2.0
// Finds reductions along rows in a loop nest: softmax, norms, sums, arguments of maxima.
//
// In: a loop kernel, in whose nest every reduction stands inside the same parallel axes and goes over the same extents,
// which the axes inside of those have too, if there are any. Out: what templates/glsl/rowwise.comp is filled with: the
// reductions by stages, each over earlier ones' results, with one set of axes for the elements of a row; and what of an
// element several stages need, which a thread keeps.
//
//     y[i0][i1] = exp(x[i0][i1] - max[i2](x[i0][i2])) / sum[i3](exp(x[i0][i3] - max[i2](x[i0][i2])))
//
// is stage 0, max of kept; stage 1, sum of exp(kept - sum0); and of each element exp(kept - sum0) / sum1. So each byte
// is read once, where the nest reads the row three times.
#include "tile.h"
#include "ir/expr.h"

#include <string.h>

enum { MAX_THREADS = 256, MIN_COLUMNS = 8,
       KEPT_WORDS = 64,                                 // registers of a thread for its elements
       WANTED = 1 << 17,                                // threads that keep any GPU busy
       FEW = 4, MANY = 8 };                             // elements of a thread where threads are few and many

typedef struct Finding {
    Arena *arena;
    Kernel *kernel;
    Rowwise *rows;
    int outer;
    bool *seen, fits;
    VEC(Expr *) reduces;                                // operands before users
    signed char to[64];                                 // by axis: the column's digit that it becomes; -1: none
    Expr **with;                                        // by id of a reduction: what stands for it
} Finding;

// ---------------------------------------------------------------- what is reduced
static void collect(Finding *f, Expr *e, bool index) {
    if (!e || f->seen[e->id] || !f->fits) return;
    f->seen[e->id] = true;
    for (int i = 0; i < 3; i++) collect(f, e->a[i], index);
    if (e->op == E_Reduce && index) f->fits = false;
    else if (e->op == E_Reduce) VEC_PUSH(f->arena, f->reduces, e);
}

static bool is_word(DType d) {
    return dtype_class(d) == CLASS_FLOAT || dtype_class(d) == CLASS_INT || dtype_class(d) == CLASS_UINT
        || d == DT_BOOL || d == DT_INDEX;
}

// The digits of a column: the parallel axes inside of the rows, else the axes of the first reduction.
static void find_columns(Finding *f) {
    const Kernel *k = f->kernel;
    Rowwise *r = f->rows;
    const Expr *first = f->reduces.at[0];
    for (int i = f->outer; i < k->n_parallel; i++)
        if (k->axes.at[i].extent != 1) r->column[r->n_columns++] = (signed char)i;
    r->elements = r->n_columns > 0;
    for (int i = 0; i < first->n_axes && !r->elements; i++)
        if (k->axes.at[first->axes[i]].extent != 1) r->column[r->n_columns++] = first->axes[i];
    r->columns = 1;
    for (int i = 0; i < r->n_columns; i++) r->columns *= k->axes.at[r->column[i]].extent;
    memset(f->to, -1, sizeof f->to);
    for (int i = 0; i < r->n_columns; i++) f->to[(int)r->column[i]] = r->column[i];
}

// Does the reduction go along the row, and does no other axis than the rows' decide it?
static bool along_row(Finding *f, const Expr *e) {
    const Rowwise *r = f->rows;
    int n = 0;
    if (e->axes_used >> f->outer || !is_word(e->dtype) || !is_word(e->a[0]->dtype)) return false;
    for (int i = 0; i < e->n_axes; i++) {
        const int axis = e->axes[i];
        const int64_t extent = f->kernel->axes.at[axis].extent;
        if (extent == 1) continue;
        if (n == r->n_columns || extent != f->kernel->axes.at[r->column[n]].extent) return false;
        if (f->to[axis] >= 0 && f->to[axis] != r->column[n]) return false;
        f->to[axis] = r->column[n++];
    }
    return n == r->n_columns;
}

// ---------------------------------------------------------------- stages
static Value *own_value(Arena *a, DType d) {
    Value *v = NEW(a, Value);
    *v = (Value){ .id = -1, .type = type_make(d, 0, NULL) };
    return v;
}

static Expr *own_load(ExprPool *p, Value *v, DType as) {
    return expr_cast(p, expr_load(p, v, expr_index(p, 0), NULL, NULL), as);
}

static Expr *rename_row(void *ctx, Expr *e) {
    const Finding *f = ctx;
    if (e->op == E_Reduce) return f->with[e->id];
    if (e->op != E_Axis || f->to[e->c.i] < 0) return NULL;
    const int axis = f->to[e->c.i];
    return expr_axis(f->kernel->exprs, axis, f->kernel->axes.at[axis].extent);
}

// The stage of an expression that reads sums: that behind the last of them.
static int stage_of(const Rowwise *r, const Expr *e, bool *seen) {
    int stage = 0;
    if (!e || seen[e->id]) return 0;
    seen[e->id] = true;
    for (int i = 0; i < r->n_sums && e->op == E_Load; i++)
        if (e->value == r->sum[i].result) return r->sum[i].stage + 1;
    for (int i = 0; i < 3; i++) {
        const int of = stage_of(r, e->a[i], seen);
        if (of > stage) stage = of;
    }
    return stage;
}

static bool *marks(const Finding *f) { return NEW_ARRAY(f->arena, bool, expr_count(f->kernel->exprs) + 1); }

static void add_sum(Finding *f, Expr *e) {
    Rowwise *r = f->rows;
    ExprPool *pool = f->kernel->exprs;
    const bool index = reduce_is_arg(e->rop);
    const DType d = e->dtype == DT_INDEX ? DT_I32 : e->dtype;
    RowSum *s = &r->sum[r->n_sums];
    *s = (RowSum){ .op = e->rop, .term = expr_rebuild(pool, e->a[0], rename_row, f), .result = own_value(f->arena, d) };
    if (index) {
        s->payload = expr_cast(pool, expr_rebuild(pool, e->a[1], rename_row, f), d);
        s->extreme = own_value(f->arena, e->a[0]->dtype);
    }
    s->stage = stage_of(r, s->term, marks(f));
    if (s->stage + 1 > r->stages) r->stages = s->stage + 1;
    r->n_sums++;
    f->with[e->id] = own_load(pool, s->result, e->dtype);
}

// ---------------------------------------------------------------- what is kept
// phases: the stages and the end, as bits, that an expression is part of; summed: a sum is part of it
typedef struct Keeping { Finding *f; uint32_t *phases; bool *seen, *summed, *loads; uint64_t columns; } Keeping;

static bool is_sum(const Rowwise *r, const Expr *e) {
    for (int i = 0; i < r->n_sums && e->op == E_Load; i++)
        if (e->value == r->sum[i].result) return true;
    return false;
}

static void mark_phase(Keeping *k, const Expr *e, uint32_t phase) {
    if (!e || k->phases[e->id] & phase) return;
    k->phases[e->id] |= phase;
    k->summed[e->id] = is_sum(k->f->rows, e);
    k->loads[e->id] = e->op == E_Load && !k->summed[e->id];
    for (int i = 0; i < 3; i++) {
        if (!e->a[i]) continue;
        mark_phase(k, e->a[i], phase);
        k->summed[e->id] = k->summed[e->id] || k->summed[e->a[i]->id];
        k->loads[e->id] = k->loads[e->id] || k->loads[e->a[i]->id];
    }
}

// The largest parts of e that several phases compute of an element, of memory and of no sum.
static void find_kept(Keeping *k, Expr *e) {
    Rowwise *r = k->f->rows;
    if (!e || k->seen[e->id]) return;
    k->seen[e->id] = true;
    const bool several = k->phases[e->id] & (k->phases[e->id] - 1);
    const bool fits = several && !k->summed[e->id] && k->loads[e->id] && e->axes_used & k->columns
        && e->dtype != DT_INDEX && is_word(e->dtype);
    if (fits && r->n_kept < MAX_KEPT) {
        r->kept[r->n_kept].is = e;
        r->kept[r->n_kept++].value = own_value(k->f->arena, e->dtype);
    }
    for (int i = 0; i < 3 && !fits; i++) find_kept(k, e->a[i]);
}

static Expr *read_kept(void *ctx, Expr *e) {
    const Finding *f = ctx;
    for (int i = 0; i < f->rows->n_kept; i++)
        if (e == f->rows->kept[i].is) return own_load(f->kernel->exprs, f->rows->kept[i].value, e->dtype);
    return NULL;
}

static void keep(Finding *f) {
    Rowwise *r = f->rows;
    const size_t n = (size_t)expr_count(f->kernel->exprs) + 1;
    Keeping k = { f, NEW_ARRAY(f->arena, uint32_t, n), marks(f), marks(f), marks(f), 0 };
    for (int i = 0; i < r->n_columns; i++) k.columns |= UINT64_C(1) << r->column[i];
    for (int i = 0; i < r->n_sums; i++) {
        mark_phase(&k, r->sum[i].term, UINT32_C(1) << r->sum[i].stage);
        mark_phase(&k, r->sum[i].payload, UINT32_C(1) << r->sum[i].stage);
    }
    for (int i = 0; i < r->stores.n; i++) mark_phase(&k, r->stores.at[i].expr, UINT32_C(1) << r->stages);
    for (int i = 0; i < r->n_sums; i++) {
        find_kept(&k, r->sum[i].term);
        find_kept(&k, r->sum[i].payload);
    }
    for (int i = 0; i < r->stores.n; i++) find_kept(&k, r->stores.at[i].expr);
    for (int i = 0; i < r->n_sums; i++) {
        RowSum *s = &r->sum[i];
        s->term = expr_rebuild(f->kernel->exprs, s->term, read_kept, f);
        if (s->payload) s->payload = expr_rebuild(f->kernel->exprs, s->payload, read_kept, f);
    }
    for (int i = 0; i < r->stores.n; i++)
        r->stores.at[i].expr = expr_rebuild(f->kernel->exprs, r->stores.at[i].expr, read_kept, f);
}

// ---------------------------------------------------------------- threads
// words: of registers, that an element takes
static int kept_words(const Rowwise *r) {
    int words = 0;
    for (int i = 0; i < r->n_kept; i++) words += dtype_size(r->kept[i].value->type.dtype) > 4 ? 2 : 1;
    return words ? words : 1;
}

// As many threads for a row as find work, and no more than it takes to keep the machine busy. Where neighbours in
// memory lie in neighbouring rows, a few rows go together, so that what memory brings at a time is all read.
static void share_out(Rowwise *r) {
    enum { NEAR = 8, WIDE = 32, WIDE_GROUPS = 256 };
    int least = 1;
    if (r->by_point) least = r->rows / WIDE >= WIDE_GROUPS ? WIDE : NEAR;
    const int most = MAX_THREADS / least;
    r->team = 1;
    while (r->team < most && r->columns > (int64_t)r->team * MANY) r->team *= 2;
    while (r->team < most && r->columns > (int64_t)r->team * FEW && r->rows * r->team < WANTED) r->team *= 2;
    r->members = r->team * least >= 128 ? least : 128 / r->team;
    const int64_t each = ceil_div(r->columns, r->team), room = KEPT_WORDS / kept_words(r), unrolled = 8;
    const int64_t wanted = r->n_kept ? room : unrolled;
    r->kept_each = (int)(each < wanted ? each : wanted);
}

// Neighbours in memory lie in neighbouring rows, and the rows are too few for all cores, as a batch's channels are:
// several workgroups take a share of the columns, and the last to be done adds what they came to.
static void share_columns(Rowwise *r) {
    enum { WIDE = 64, GROUPS = 528, LEAST_EACH = 32, MOST_SHARES = 256 };       // LEAST_EACH: columns of a thread
    bool sums = r->by_point && r->stages == 1 && !r->elements && !r->n_kept;
    for (int i = 0; i < r->n_sums; i++)
        sums = sums && r->sum[i].op == RED_SUM && r->sum[i].result->type.dtype == DT_F32;
    const int members = r->rows < WIDE ? WIDE / 2 : WIDE, team = MAX_THREADS / members;
    const int64_t groups = ceil_div(r->rows, members);
    int64_t shares = min64(min64(GROUPS / groups, r->columns / (team * LEAST_EACH)), MOST_SHARES);
    if (!sums || shares < 2 || 2 * groups > GROUPS) return;
    r->members = members;
    r->team = team;
    r->share = ceil_div(ceil_div(r->columns, shares), team) * team;
    r->shares = ceil_div(r->columns, r->share);
}

const Rowwise *gpu_rowwise(Arena *a, Kernel *k, int outer, bool by_point, bool shared) {
    Rowwise *r = NEW(a, Rowwise);
    Finding f = { .arena = a,
        .kernel = k,
        .rows = r,
        .outer = outer,
        .seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1),
        .fits = true };
    for (int i = 0; i < k->stores.n; i++) {
        const Store *s = &k->stores.at[i];
        collect(&f, s->index, true);
        collect(&f, s->expr, false);
        if (s->guard || s->op != RED_NONE) return NULL;
    }
    if (!f.fits || !f.reduces.n || f.reduces.n > MAX_SUMS) return NULL;
    find_columns(&f);
    for (int i = 0; i < f.reduces.n; i++) f.fits = f.fits && along_row(&f, f.reduces.at[i]);
    r->rows = 1;
    for (int i = 0; i < outer; i++) f.fits = f.fits && !__builtin_mul_overflow(r->rows, k->axes.at[i].extent, &r->rows);
    f.fits = f.fits && r->rows >= 1 && r->rows <= INT32_MAX;
    if (!f.fits || r->columns < MIN_COLUMNS || r->columns > INT32_MAX) return NULL;
    r->by_point = by_point;
    f.with = NEW_ARRAY(a, Expr *, expr_count(k->exprs) + 1);
    for (int i = 0; i < f.reduces.n; i++) add_sum(&f, f.reduces.at[i]);
    for (int i = 0; i < k->stores.n; i++) {
        Store s = k->stores.at[i];
        s.expr = expr_rebuild(k->exprs, s.expr, rename_row, &f);
        VEC_PUSH(a, r->stores, s);
    }
    keep(&f);
    share_out(r);
    r->shares = 1;
    r->share = r->columns;
    if (shared) share_columns(r);
    return r;
}
