// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels from a grown fusion set: loop kernels from any pull-style root, template kernels from a contraction or
// (kernel_conv.c) a convolution whose epilogue the rest of the set becomes.
//
// Templates see canonical shapes only. Their operands are read through views by lowering one element with symbolic
// axes and reading the strides off the affine index: a transposed, sliced or broadcast operand costs nothing and
// needs no special case.
#include "ir/dim.h"
#include "ops/common.h"
#include "schedule.h"

#include <string.h>

Kernel *kernel_new(Arena *a, KernelKind kind) {
    Kernel *k = NEW(a, Kernel);
    k->kind = kind;
    k->exprs = expr_pool_new(a);
    return k;
}

// The expressions of an attention beside its stores; their number.
enum { MAX_ATTENTION = 6 };
static int attention_expressions(Kernel *k, Expr ***to) {
    Attention *s = &k->attention;
    Expr **all[MAX_ATTENTION] = { &s->score, &s->first, &s->last, &s->pass, &s->passed, &s->dscore };
    if (k->kind != KERNEL_ATTENTION && k->kind != KERNEL_ATTENTION_GRAD) return 0;
    memcpy(to, all, sizeof all);
    return MAX_ATTENTION;
}

static void keep_expressions(const Plan *p, Kernel *k) {
    VEC(Expr **) roots = { 0 };
    for (int i = 0; i < k->stores.n; i++) {
        Store *s = &k->stores.at[i];
        VEC_PUSH(p->scratch, roots, &s->index);
        VEC_PUSH(p->scratch, roots, &s->guard);
        VEC_PUSH(p->scratch, roots, &s->expr);
    }
    Expr **own[MAX_ATTENTION];
    const int n = attention_expressions(k, own);
    for (int i = 0; i < n; i++) VEC_PUSH(p->scratch, roots, own[i]);
    k->exprs = expr_pool_keep(p->arena, k->exprs, roots.n, roots.at);
}

#define KEEP(a, v) ((v).at = arena_copy(a, (v).at, sizeof *(v).at * (size_t)(v).n), (v).cap = (v).n)

Kernel *kernel_keep(const Plan *p, const Kernel *built) {
    Arena *a = p->arena;
    Kernel *k = arena_copy(a, built, sizeof *built);
    KEEP(a, k->nodes);
    KEEP(a, k->axes);
    KEEP(a, k->stores);
    KEEP(a, k->loads);
    KEEP(a, k->reads);
    KEEP(a, k->writes);
    KEEP(a, k->sizes);
    keep_expressions(p, k);
    return k;
}

// ---------------------------------------------------------------- what a finished kernel reads
typedef struct Survey { Arena *arena; Kernel *kernel; Graph *graph; bool *seen; double flops; } Survey;

bool kernel_reads(const Kernel *k, const Value *v) {
    for (int i = 0; i < k->reads.n; i++)
        if (k->reads.at[i] == v) return true;
    return false;
}

void kernel_read(Arena *a, Kernel *k, Value *v) {
    if (!kernel_reads(k, v)) VEC_PUSH(a, k->reads, v);
}

static void add_load(Arena *a, Kernel *k, Value *v) {
    kernel_read(a, k, v);
    for (int i = 0; i < k->loads.n; i++)
        if (k->loads.at[i] == v) return;
    VEC_PUSH(a, k->loads, v);
}

void kernel_sizes(Arena *a, Kernel *k, Graph *g, Dim d) {
    int n;
    if (dim_is_const(d)) return;
    graph_symbols(g, &n);
    for (int i = 0; i < n; i++) {
        bool known = !dim_uses(g, d, i);
        for (int j = 0; j < k->sizes.n; j++) known = known || k->sizes.at[j] == i;
        if (!known) VEC_PUSH(a, k->sizes, i);
    }
}

void kernel_operands(Arena *a, Kernel *k, Value *x, Value *y) {
    k->operand[0] = x;
    k->operand[1] = y;
    kernel_read(a, k, x);
    kernel_read(a, k, y);
}

// How often it is computed: once for each point of the axes that it depends on, a reduction once for each term.
static double times_of(const Kernel *k, const Expr *e) {
    double times = 1;
    for (int i = 0; i < k->axes.n; i++) if (e->axes_used >> i & 1) times *= (double)k->axes.at[i].extent;
    for (int i = 0; e->op == E_Reduce && i < e->n_axes; i++) times *= (double)k->axes.at[e->axes[i]].extent;
    return times;
}

// counted: its operations are among the kernel's
static void survey(Survey *w, Expr *e, bool counted) {
    if (!e || w->seen[e->id]) return;
    w->seen[e->id] = true;
    if (e->op == E_Load) add_load(w->arena, w->kernel, e->value);
    if (e->op == E_Size) kernel_sizes(w->arena, w->kernel, w->graph, e->extent);
    if (counted && e->op > E_Select && e->dtype != DT_INDEX) w->flops += times_of(w->kernel, e);
    for (int i = 0; i < 3; i++) survey(w, e->a[i], counted);
}

void kernel_moves(Kernel *k, int64_t bytes) {
    k->traffic = bytes > INT64_MAX - k->traffic ? INT64_MAX : k->traffic + bytes;
}

static void add_traffic(const Graph *g, Kernel *k, const Value *v) {
    kernel_moves(k, type_bytes_upper(g, &v->type));
}

void kernel_finish(Arena *a, Kernel *k, Fusion *f) {
    for (int i = 0; i < k->axes.n; i++) kernel_sizes(a, k, f->plan->graph, k->axes.at[i].size);
    Survey w = { .arena = a,
        .kernel = k,
        .graph = f->plan->graph,
        .seen = NEW_ARRAY(f->plan->scratch, bool, expr_count(k->exprs) + 1) };
    for (int i = 0; i < k->stores.n; i++) {
        survey(&w, k->stores.at[i].expr, true);
        survey(&w, k->stores.at[i].index, false);
        survey(&w, k->stores.at[i].guard, false);
        VEC_PUSH(a, k->writes, k->stores.at[i].value);
        add_traffic(f->plan->graph, k, k->stores.at[i].value);
    }
    Expr **own[MAX_ATTENTION];
    const int n_own = attention_expressions(k, own);
    for (int i = 0; i < n_own; i++) survey(&w, *own[i], false);
    k->flops += w.flops;
    for (int i = 0; i < k->reads.n; i++) add_traffic(f->plan->graph, k, k->reads.at[i]);
    for (int i = 0; i < f->n_nodes; i++)
        if (f->inside[i] || (f->anchor && f->anchor->def == f->nodes[i])) VEC_PUSH(a, k->nodes, f->nodes[i]);
}

// ---------------------------------------------------------------- merging axes
typedef struct Merge { const Kernel *kernel; Graph *graph; int a, b; bool ok; bool *seen; } Merge;

static bool uses(const Expr *e, const Merge *m) { return e && (e->axes_used >> m->a & 1 || e->axes_used >> m->b & 1); }

static bool walks_as_one(const Expr *index, const Merge *m) {
    Dim coef[64], c0;
    if (!uses(index, m)) return true;
    return expr_affine_sizes(index, m->graph, m->kernel->axes.n, coef, &c0)
        && coef[m->a] == dim_mul(m->graph, coef[m->b], m->kernel->axes.at[m->b].size);
}

static void check_merge(Merge *m, const Expr *e) {
    if (!m->ok || m->seen[e->id]) return;
    m->seen[e->id] = true;
    if (e->op == E_Axis && (e->c.i == m->a || e->c.i == m->b)) {
        m->ok = false;
        return;
    }
    if (e->op == E_Load) {
        m->ok = walks_as_one(e->a[0], m) && !uses(e->a[1], m);
        // an index or a guard may hold a reduction over the axes, which does not count as a use
        if (!uses(e->a[0], m)) check_merge(m, e->a[0]);
        for (int i = 1; i < 3; i++) if (e->a[i]) check_merge(m, e->a[i]);
        return;
    }
    for (int i = 0; i < 3; i++) if (e->a[i]) check_merge(m, e->a[i]);
}

typedef struct Rename { ExprPool *pool; const Graph *graph; int a, b; Dim size; } Rename;
static Expr *rename_axis(void *ctx, Expr *e) {
    const Rename *r = ctx;
    if (e->op != E_Axis) return NULL;
    if (e->c.i == r->a) return expr_index(r->pool, 0);
    return e->c.i == r->b ? expr_axis_size(r->pool, r->graph, r->b, r->size) : NULL;
}

static bool try_merge(const Plan *p, Kernel *k, int outer, int inner) {
    Graph *g = p->graph;
    if (k->axes.at[outer].extent > 0 && k->axes.at[inner].extent > INT64_MAX / k->axes.at[outer].extent) return false;
    Merge m = { .kernel = k,
        .graph = g,
        .a = outer,
        .b = inner,
        .ok = true,
        .seen = NEW_ARRAY(p->scratch, bool, expr_count(k->exprs) + 1) };
    for (int i = 0; i < k->stores.n && m.ok; i++) {
        Store *s = &k->stores.at[i];
        m.ok = walks_as_one(s->index, &m) && !uses(s->guard, &m);
        if (m.ok) check_merge(&m, s->expr);
    }
    if (!m.ok) return false;
    Rename r = { k->exprs, g, outer, inner, dim_mul(g, k->axes.at[outer].size, k->axes.at[inner].size) };
    for (int i = 0; i < k->stores.n; i++) {
        Store *s = &k->stores.at[i];
        s->index = expr_map_leaves(k->exprs, s->index, rename_axis, &r);
        s->expr = expr_map_leaves(k->exprs, s->expr, rename_axis, &r);
    }
    k->axes.at[inner].size = r.size;
    k->axes.at[inner].extent *= k->axes.at[outer].extent;
    k->axes.at[outer].extent = k->axes.at[outer].size = 1;
    return true;
}

// The pair number `skip` of axes that follow each other in a reduction.
static bool next_pair(const Expr *e, bool *seen, int skip, int *count, int *outer, int *inner) {
    if (!e || seen[e->id]) return false;
    seen[e->id] = true;
    for (int i = 0; e->op == E_Reduce && i + 1 < e->n_axes; i++)
        if ((*count)++ == skip) {
            *outer = e->axes[i];
            *inner = e->axes[i + 1];
            return true;
        }
    for (int i = 0; i < 3; i++)
        if (next_pair(e->a[i], seen, skip, count, outer, inner)) return true;
    return false;
}

static bool always_together(const Expr *e, bool *seen, int outer, int inner) {
    if (!e || seen[e->id]) return true;
    seen[e->id] = true;
    for (int i = 0; e->op == E_Reduce && i < e->n_axes; i++) {
        if (e->axes[i] == outer && (i + 1 == e->n_axes || e->axes[i + 1] != inner)) return false;
        if (e->axes[i] == inner && (i == 0 || e->axes[i - 1] != outer)) return false;
    }
    for (int i = 0; i < 3; i++)
        if (!always_together(e->a[i], seen, outer, inner)) return false;
    return true;
}

// Axes of a reduction whose elements follow each other in memory are one: a longer sum, which goes in lanes.
static void collapse_reductions(const Plan *p, Kernel *k) {
    for (int skip = 0;;) {
        int outer = -1, inner = -1, count = 0;
        bool together = true, *seen = NEW_ARRAY(p->scratch, bool, expr_count(k->exprs) + 1),
             *again = NEW_ARRAY(p->scratch, bool, expr_count(k->exprs) + 1);
        for (int i = 0; i < k->stores.n && outer < 0; i++)
            next_pair(k->stores.at[i].expr, seen, skip, &count, &outer, &inner);
        if (outer < 0) return;
        for (int i = 0; i < k->stores.n; i++)
            together = together && always_together(k->stores.at[i].expr, again, outer, inner);
        // before: a reduction of what does not depend on its axes keeps both
        bool merged = k->axes.at[outer].size == 1;
        if (merged || !together || !try_merge(p, k, outer, inner)) skip++;
    }
}

static void collapse(const Plan *p, Kernel *k) {
    int outer = -1;
    for (int i = 0; i < k->n_parallel; i++) {
        if (k->axes.at[i].extent == 1) continue;
        if (outer >= 0) try_merge(p, k, outer, i);
        outer = i;
    }
    collapse_reductions(p, k);
}

// ---------------------------------------------------------------- shuffles
// The divisor m of the axis in e: of axis % m or axis / m; 0: e has none. whole: the axis occurs in a load's index
// without it.
typedef struct Digits { const Kernel *kernel; int axis; int64_t m; bool whole, *seen; } Digits;

static void find_digits(Digits *d, const Expr *e) {
    int64_t coef[64], c0;
    if (!e || d->seen[e->id]) return;
    d->seen[e->id] = true;
    if (e->op == E_Load && e->a[0]->axes_used >> d->axis & 1)
        d->whole = d->whole || e->a[1] || expr_affine(e->a[0], d->kernel->axes.n, coef, &c0);
    bool digit = e->dtype == DT_INDEX && (e->op == E_Mod || e->op == E_Div) && e->a[0]->op == E_Axis
        && e->a[0]->c.i == d->axis && e->a[1]->op == E_Const;
    if (digit && d->m && d->m != e->a[1]->c.i) d->whole = true;
    if (digit) d->m = e->a[1]->c.i;
    for (int i = 0; i < 3; i++) find_digits(d, e->a[i]);
}

typedef struct Split { ExprPool *pool; const Graph *graph; int axis, inner; int64_t m, extent; } Split;
static Expr *split_axis(void *ctx, Expr *e) {
    const Split *s = ctx;
    if (e->op != E_Axis || e->c.i != s->axis) return NULL;
    Expr *high = expr_axis(s->pool, s->axis, s->extent / s->m), *low = expr_axis(s->pool, s->inner, s->m);
    return expr_binary(s->pool, E_Add, expr_binary(s->pool, E_Mul, high, expr_index(s->pool, s->m)), low);
}

// A shuffle, y[i] = x[i % m * n + i / m], becomes two loops, y[i m + j] = x[j n + i]: no division, and short inner
// ones become vector code.
static void split_shuffle(Arena *a, const Plan *p, Kernel *k) {
    int last = k->n_parallel - 1;
    while (last >= 0 && k->axes.at[last].size == 1) last--;
    if (last < 0 || k->n_parallel != k->axes.n || k->axes.n >= 60 || k->stores.n != 1 || k->stores.at[0].guard
        || !dim_is_const(k->axes.at[last].size))
        return;
    Store *s = &k->stores.at[0];
    Digits d = { .kernel = k, .axis = last, .seen = NEW_ARRAY(p->scratch, bool, expr_count(k->exprs) + 1) };
    find_digits(&d, s->expr);
    int64_t extent = k->axes.at[last].extent;
    if (d.whole || d.m < 2 || d.m >= extent || extent % d.m) return;
    Split split = { k->exprs, p->graph, last, k->axes.n, d.m, extent };
    s->index = expr_map_leaves(k->exprs, s->index, split_axis, &split);
    s->expr = expr_map_leaves(k->exprs, s->expr, split_axis, &split);
    k->axes.at[last].extent = k->axes.at[last].size = extent / d.m;
    VEC_PUSH(a, k->axes, (Axis){ .extent = d.m, .size = d.m });
    k->n_parallel++;
    collapse(p, k);
}

// ---------------------------------------------------------------- loop kernels
// A reduction is computed once per point of the axes it depends on only when those are the outermost ones; any other
// axis above the innermost of them would repeat it.
static bool hoists(const Kernel *k, const Expr *e) {
    uint64_t parallel = ((uint64_t)1 << k->n_parallel) - 1, used = e->axes_used;
    int level = 0;
    for (int i = 0; i < k->n_parallel; i++) if (used >> i & 1) level = i + 1;
    if (used & ~parallel) level = k->n_parallel;
    for (int i = 0; i < level; i++)
        if (!(used >> i & 1) && k->axes.at[i].extent > 1) return false;
    return true;
}

// Do the axes that it depends on have more points than it has elements? A gather, or a channel's group (i / 10), asks
// for the same element again and again, which is free only where it is a sum of one. Sizes of the run are left out on
// both sides.
static bool more_points(const Kernel *k, const Type *t, const Expr *e) {
    int64_t elements = 1, steps = 1;
    for (int i = 0; i < t->rank; i++)
        if (dim_is_const(t->dim[i])) elements *= t->dim[i];
    for (int i = 0; i < k->axes.n; i++)
        if ((e->axes_used >> i & 1) && dim_is_const(k->axes.at[i].size) && k->axes.at[i].size > 1)
            elements /= k->axes.at[i].size;
    for (int i = 0; i < e->n_axes; i++) steps *= k->axes.at[e->axes[i]].extent;
    return elements < 1 && steps > 1;
}

// Was the same reduction lowered at another index too? Two readers of one row share it; readers of different rows
// would repeat it.
static bool computed_before(const Fusion *f, int at) {
    for (int i = 0; i < at; i++)
        if (f->reduces.at[i].value == f->reduces.at[at].value && f->reduces.at[i].expr != f->reduces.at[at].expr)
            return true;
    return false;
}

static void lower_axes(Lower *l, Kernel *k, const Type *t, Expr **idx) {
    for (int i = 0; i < t->rank; i++) idx[i] = lower_axis(l, t->dim[i], false);
    k->n_parallel = k->axes.n;
}

Kernel *kernel_loop(Arena *a, Fusion *f, Value *into, int concat_axis, Dim concat_at) {
    Kernel *k = kernel_new(a, KERNEL_LOOP);
    Lower l;
    Expr *idx[MAX_RANK], *dst[MAX_RANK];
    Type *t = &f->root->type;
    lower_init(&l, a, k, f);
    lower_axes(&l, k, t, idx);
    bool computed = f->root->def && f->root->graph == f->plan->graph && f->inside[f->root->def->mark];
    Expr *e = computed ? lower_root(&l, f->root, idx) : lower_load(&l, f->root, idx);
    for (int i = 0; i < f->reduces.n && !f->violation; i++) {
        Value *v = f->reduces.at[i].value;
        const Expr *reduce = f->reduces.at[i].expr;
        if (v != f->root && (!hoists(k, reduce) || more_points(k, &v->type, reduce) || computed_before(f, i)))
            f->violation = v;
    }
    if (f->violation) return NULL;
    for (int i = 0; i < t->rank; i++)
        dst[i] = into && i == concat_axis ? expr_binary(k->exprs, E_Add, idx[i], lower_dim(&l, concat_at)) : idx[i];
    Value *to = into ? into : f->root;
    VEC_PUSH(a, k->stores, (Store){ .value = to, .index = lower_flat(&l, &to->type, dst), .expr = e });
    for (int i = 0; i < f->n_also; i++)
        VEC_PUSH(a, k->stores, (Store){ .value = f->also[i],
            .index = k->stores.at[0].index,
            .expr = lower_root(&l, f->also[i], idx) });
    collapse(f->plan, k);
    split_shuffle(a, f->plan, k);
    kernel_finish(a, k, f);
    if (into) VEC_PUSH(a, k->nodes, into->def);
    return k;
}

// ---------------------------------------------------------------- template kernels
// The result goes into `into`, whose last axis is longer, from `at` on: rows of more elements.
void kernel_store_into(Kernel *k, Value *into, Dim at) {
    k->stores.at[0].value = into;
    k->result_at = at;
}

// The epilogue: the root's element as an expression of E_Acc at axes 0..2 of the template.
bool kernel_epilogue(Arena *a, Kernel *k, Fusion *f, const Dim *extent) {
    Lower l;
    Expr *idx[MAX_RANK], *flat = expr_index(k->exprs, 0);
    lower_init(&l, a, k, f);
    for (int i = 0; i < 3; i++) {
        VEC_PUSH(a, k->axes, (Axis){ .extent = dim_upper(f->plan->graph, extent[i]), .size = extent[i] });
        Expr *axis = extent[i] == 1 ? expr_index(k->exprs, 0) : expr_axis_size(k->exprs, f->plan->graph, i, extent[i]);
        flat = expr_binary(k->exprs, E_Add, expr_binary(k->exprs, E_Mul, flat, lower_dim(&l, extent[i])), axis);
    }
    k->n_parallel = 3;
    f->anchor_flat = flat;
    lower_unflat(&l, &f->root->type, flat, idx);
    Expr *e = lower_root(&l, f->root, idx);
    if (f->reduces.n && !f->violation) f->violation = f->reduces.at[0].value;
    if (f->violation) return false;
    VEC_PUSH(a, k->stores, (Store){ .value = f->root, .index = flat, .expr = e });
    return true;
}

Expr *operand_index(const Plan *p, Kernel *axes, Value *v, Expr *const *idx, Value **base) {
    Fusion f = { .plan = p, .root = v, .views_only = true };
    Lower l;
    lower_init(&l, p->arena, axes, &f);
    Expr *e = lower_load(&l, v, idx);
    // constants are packed from their beginning
    bool constant = e->op == E_Load && e->value->data,
         turned = constant && v->def && v->def->op == OP_Transpose && v->def->in[0] == e->value;
    if (e->op != E_Load || e->a[1] || f.violation || (constant && !turned)) return NULL;
    *base = e->value;
    return e->a[0];
}

// As strides over the kernel's axes and an offset; false: not affine.
bool operand_through_views(const Plan *p, Kernel *axes, Value *v, Expr *const *idx, Operand *out) {
    Expr *at = operand_index(p, axes, v, idx, &out->value);
    return at && expr_affine_sizes(at, p->graph, axes->axes.n, out->coef, &out->offset);
}

bool operand_direct(const Plan *p, Kernel *axes, Value *v, Expr *const *idx, Operand *out) {
    Fusion f = { .plan = p, .root = v };
    Lower l;
    lower_init(&l, p->arena, axes, &f);
    Expr *at = lower_stored(&l, v, idx, &out->value);
    return expr_affine_sizes(at, v->graph, axes->axes.n, out->coef, &out->offset);
}

// Folds adjacent batch axes that both operands walk as one; then, when the right operand has no batch, folds the
// batch into m. An axis of at most one element takes no steps: a stride is that of the innermost one that does.
static bool gemm_canonical(Graph *g, Contraction *s, int nb, const Dim *extent, const Operand *x, const Operand *y) {
    Dim ax = 0, ay = 0, count = 1, walked = 0;
    for (int i = nb - 1; i >= 0; i--) {
        if (extent[i] == 1) continue;
        bool steps = dim_upper(g, extent[i]) > 1;
        if (steps && !walked) {
            ax = x->coef[i];
            ay = y->coef[i];
            walked = 1;
        } else if (steps && (x->coef[i] != dim_mul(g, ax, walked) || y->coef[i] != dim_mul(g, ay, walked)))
            return false;
        walked = dim_mul(g, walked, extent[i]);
        count = dim_mul(g, count, extent[i]);
    }
    s->batch = count;
    s->a_batch = ax;
    s->b_batch = ay;
    if (count != 1 && ay == 0 && (s->m == 1 || ax == dim_mul(g, s->a_row, s->m))) {
        if (s->m == 1) s->a_row = ax;
        s->m = dim_mul(g, s->m, count);
        s->batch = 1;
        s->a_batch = 0;
    }
    s->c_row = s->n;
    s->c_batch = dim_mul(g, s->m, s->n);
    return true;
}

// The right factor's type: of weights of few bits, what they unpack to.
static Type right_type(const Node *n) {
    if (n->op != OP_MatMulBits) return n->in[1]->type;
    return type_make(n->in[2]->type.dtype, 2, (Dim[]){ node_int(n, "k", 0), n->in[1]->type.dim[0] });
}

// Do 64 bits hold the strides of a tensor's axes, whatever its sizes are?
static bool strides_fit(const Graph *g, const Type *t) {
    Factor f, stride = { 1, 1 };
    for (int i = t->rank - 1; i > 0; i--)
        if (!factor_of(g, t->dim[i], &f) || !factor_mul(g, stride, f, &stride)) return false;
    return true;
}

// Equal batch dimensions, or one operand has none.
bool kernel_gemm_folds(Graph *g, const Type *x, const Type *y) {
    Dim bx = 1, by = 1;
    if (!strides_fit(g, x) || !strides_fit(g, y)) return false;
    for (int i = 0; i < x->rank - 2; i++) bx = dim_mul(g, bx, x->dim[i]);
    for (int i = 0; i < y->rank - 2; i++) by = dim_mul(g, by, y->dim[i]);
    if (bx == 1 || by == 1) return true;
    for (int i = 3; i <= x->rank || i <= y->rank; i++) {
        Dim dx = i <= x->rank ? x->dim[x->rank - i] : 1, dy = i <= y->rank ? y->dim[y->rank - i] : 1;
        if (dx != dy) return false;
    }
    return true;
}

static bool gemm_shape(const Plan *p, const Node *n, bool views, Contraction *s, Operand *x, Operand *y) {
    Arena *a = p->scratch;
    Graph *g = p->graph;
    const Type *tx = &n->in[0]->type, right = right_type(n), *ty = &right;
    int rx = tx->rank, ry = ty->rank, nb = (rx > ry ? rx : ry) - 2;
    if (nb < 0) nb = 0;
    Kernel *k = kernel_new(a, KERNEL_LOOP);
    Dim extent[MAX_RANK + 3];
    *s = (Contraction){ .m = rx > 1 ? tx->dim[rx - 2] : 1, .k = tx->dim[rx - 1], .n = ry > 1 ? ty->dim[ry - 1] : 1 };
    for (int i = 0; i < nb; i++) {
        int ix = rx - 2 - nb + i, iy = ry - 2 - nb + i;
        extent[i] = ix >= 0 && tx->dim[ix] != 1 ? tx->dim[ix] : iy >= 0 ? ty->dim[iy] : 1;
    }
    extent[nb] = s->m;
    extent[nb + 1] = s->k;
    extent[nb + 2] = s->n;
    Expr *axis[MAX_RANK + 3], *ix[MAX_RANK], *iy[MAX_RANK], *zero = expr_index(k->exprs, 0);
    for (int i = 0; i < nb + 3; i++) {
        VEC_PUSH(a, k->axes, (Axis){ .extent = dim_upper(g, extent[i]), .size = extent[i] });
        axis[i] = extent[i] == 1 ? zero : expr_axis_size(k->exprs, g, i, extent[i]);
    }
    for (int i = 0; i < rx - 2; i++) ix[i] = tx->dim[i] == 1 ? zero : axis[nb - (rx - 2) + i];
    for (int i = 0; i < ry - 2; i++) iy[i] = ty->dim[i] == 1 ? zero : axis[nb - (ry - 2) + i];
    if (rx > 1) ix[rx - 2] = axis[nb];
    ix[rx - 1] = axis[nb + 1];
    iy[ry > 1 ? ry - 2 : 0] = axis[nb + 1];
    if (ry > 1) iy[ry - 1] = axis[nb + 2];
    bool x_found = (views && operand_through_views(p, k, n->in[0], ix, x)) || operand_direct(p, k, n->in[0], ix, x);
    bool y_found = n->op == OP_MatMulBits || (views && operand_through_views(p, k, n->in[1], iy, y))
        || operand_direct(p, k, n->in[1], iy, y);
    if (n->op == OP_MatMulBits) *y = (Operand){ .value = n->in[1] };            // packed: no strides lead into it
    if (!x_found || !y_found) bug("a plain operand is not affine");
    s->a_row = x->coef[nb];
    s->a_col = x->coef[nb + 1];
    s->b_row = y->coef[nb + 1];
    s->b_col = y->coef[nb + 2];
    return gemm_canonical(g, s, nb, extent, x, y);
}

// One matrix with its rows in one piece each, which is how the templates of few bits and of signed bytes read it.
static bool in_rows(const Contraction *s) { return s->batch == 1 && s->a_col == 1; }

Kernel *kernel_gemm(Arena *a, Fusion *f, Value *into, Dim at) {
    Node *n = f->anchor->def;
    Graph *g = f->plan->graph;
    Kernel *k = kernel_new(a, KERNEL_GEMM);
    Operand x, y;
    bool rows = n->op == OP_MatMulBits || (node_of_bytes(n) && n->in[0]->type.dtype != DT_U8);
    bool views = gemm_shape(f->plan, n, true, &k->gemm, &x, &y)
        && (n->in[0]->type.dtype != DT_F64 || blas_can(g, &k->gemm)) && (!rows || in_rows(&k->gemm));
    if (!views && !gemm_shape(f->plan, n, false, &k->gemm, &x, &y))
        bug("%s with batch dimensions that do not fold", op_table[n->op].name);
    Contraction *s = &k->gemm;
    if (!kernel_epilogue(a, k, f, (Dim[]){ s->batch, s->m, s->n })) return NULL;
    if (into) {
        kernel_store_into(k, into, at);
        s->c_row = into->type.dim[into->type.rank - 1];
        s->c_batch = dim_mul(g, s->m, s->c_row);
    }
    k->anchor = n;
    kernel_operands(a, k, x.value, y.value);
    k->operand_at[0] = x.offset;
    k->operand_at[1] = y.offset;
    const Dim sizes[] = { x.offset, y.offset, s->k, s->a_batch, s->a_row, s->a_col, s->b_batch, s->b_row, s->b_col };
    for (size_t i = 0; i < COUNT(sizes); i++) kernel_sizes(a, k, g, sizes[i]);
    k->flops = 2.0 * (double)dim_upper(g, s->batch) * (double)dim_upper(g, s->m) * (double)dim_upper(g, s->n)
        * (double)dim_upper(g, s->k);
    kernel_finish(a, k, f);
    return k;
}

// ---------------------------------------------------------------- scatter
// A copy of the data, then a serial loop over the updates.
static Kernel *copy_kernel(const Plan *p, Value *from, Value *to) {
    Arena *a = p->scratch;
    Kernel *k = kernel_new(a, KERNEL_LOOP);
    Fusion f = { .plan = p, .root = from };
    Lower l;
    Expr *idx[MAX_RANK];
    lower_init(&l, a, k, &f);
    lower_axes(&l, k, &from->type, idx);
    Expr *flat = lower_flat(&l, &from->type, idx);
    Expr *e = expr_load(k->exprs, from, flat, NULL, NULL);
    VEC_PUSH(a, k->stores, (Store){ .value = to, .index = flat, .expr = e });
    collapse(p, k);
    return k;
}

// One coordinate from an index tensor: negative counts from the end; *ok narrows to "inside".
static Expr *coordinate(ExprPool *p, Value *indices, Expr *flat, Expr *size, Expr **ok) {
    Expr *i = expr_cast(p, expr_load(p, indices, flat, NULL, NULL), DT_INDEX), *zero = expr_index(p, 0);
    Expr *below = expr_binary(p, E_Lt, i, zero), *wrapped = expr_binary(p, E_Add, i, size);
    i = expr_select(p, below, wrapped, i);
    Expr *low = expr_binary(p, E_Le, zero, i), *in = expr_binary(p, E_And, low, expr_binary(p, E_Lt, i, size));
    *ok = *ok ? expr_binary(p, E_And, *ok, in) : in;
    return expr_select(p, in, i, zero);                 // no address is computed from an index that is outside
}

// The copy of the data that a scatter begins with.
Kernel *kernel_copy(const Plan *p, Node *n) {
    Kernel *k = copy_kernel(p, n->in[0], n->out[0]);
    Fusion none = { .plan = p, .root = n->out[0] };
    kernel_finish(p->scratch, k, &none);
    VEC_PUSH(p->scratch, k->nodes, n);
    return k;
}

Kernel *kernel_scatter(const Plan *p, Node *n) {
    Arena *a = p->scratch;
    Value *indices = n->in[1], *updates = n->in[2], *out = n->out[0];
    Kernel *k = kernel_new(a, KERNEL_LOOP);
    Fusion f = { .plan = p, .root = updates };
    Lower l;
    Expr *idx[MAX_RANK], *dst[MAX_RANK], *ok = NULL;
    ReduceOp op = reduce_of_scatter(node_string(n, "reduction", "none"));
    lower_init(&l, a, k, &f);
    lower_axes(&l, k, &updates->type, idx);
    if (n->op == OP_ScatterElements) {
        int axis = (int)node_int(n, "axis", 0);
        memcpy(dst, idx, sizeof idx);
        dst[axis] = coordinate(
            k->exprs, indices, lower_flat(&l, &indices->type, idx), lower_dim(&l, out->type.dim[axis]), &ok);
    } else {
        int batch = indices->type.rank - 1, q = (int)indices->type.dim[batch];
        Expr *at[MAX_RANK];
        memcpy(at, idx, sizeof(Expr *) * (size_t)batch);
        for (int i = 0; i < q; i++) {
            at[batch] = expr_index(k->exprs, i);
            dst[i] = coordinate(
                k->exprs, indices, lower_flat(&l, &indices->type, at), lower_dim(&l, out->type.dim[i]), &ok);
        }
        for (int i = q; i < out->type.rank; i++) dst[i] = idx[batch + i - q];
    }
    Expr *e = expr_load(k->exprs, updates, lower_flat(&l, &updates->type, idx), NULL, NULL);
    // serial: two updates may meet in one element
    for (int i = 0; i < k->n_parallel; i++) k->axes.at[i].reduce = true;
    VEC_PUSH(a, k->stores,
        (Store){ .value = out, .index = lower_flat(&l, &out->type, dst), .guard = ok, .expr = e, .op = op });
    Fusion none = { .plan = p, .root = out };
    kernel_finish(a, k, &none);
    VEC_PUSH(a, k->nodes, n);
    return k;
}
