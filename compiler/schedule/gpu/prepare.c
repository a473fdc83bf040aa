// SPDX-License-Identifier: MIT OR Apache-2.0
// Norms in front of products of few rows.
//
// In: kernels in order. Out: fewer of them. What a norm makes of one row, or a few, is a kernel that takes as long as
// its launch, and the product behind it waits: so each workgroup of the product makes the rows that it multiplies
// itself, in shared memory, while its first weights are on their way (templates/glsl/rows.comp). All readers of the
// norm have to be such products.
//
//     t[i0] = (x[i0] - mean) / deviation * g[i0]         y[i0] = sum[i1](t[i1] * w[i1][i0]), with t in shared memory
//     y[i0] = sum[i1](t[i1] * w[i1][i0])           =>
#include "schedule/steps.h"
#include "blocks.h"
#include "tile.h"
#include "schedule/cpu/templates.h"
#include "ir/expr.h"

enum { MOST_READERS = 4, MOST_VALUES = 24,              // of a kernel: each has a push constant
       MOST_GROUPS = 16 * 132,                          // of a product: what a large GPU has at a time
       ROOM = (32 << 10) - 256, MOST_ROWS = 8 };

// Does the store number its elements by rows and then columns, from 0 on?
static bool is_row_major(const Kernel *k, const Rowwise *r, int outer) {
    int64_t coef[64], c0, behind = 1;
    if (!expr_affine(k->stores.at[0].index, k->axes.n, coef, &c0) || c0) return false;
    for (int i = outer + r->n_columns - 1; i >= 0; i--) {
        const int axis = i < outer ? i : r->column[i - outer];
        if (k->axes.at[axis].extent == 1) continue;
        if (coef[axis] != behind) return false;
        behind *= k->axes.at[axis].extent;
    }
    return true;
}

static bool loads(const Expr *e, const Value *v, bool *seen) {
    if (!e || seen[e->id]) return false;
    seen[e->id] = true;
    return (e->op == E_Load && e->value == v) || loads(e->a[0], v, seen) || loads(e->a[1], v, seen)
        || loads(e->a[2], v, seen);
}

// The index with what was lifted out of it, from one row to the next and one term to the next.
static bool walks_rows(const Kernel *k, const Expr *load) {
    const Product *p = &k->product;
    const int n = k->axes.n;
    int64_t coef[64], own[64], c0, c1;
    if (load->a[1] || !expr_affine(load->a[0], 2 * n + p->n_own, coef, &c0)) return false;
    for (int i = 0; i < p->n_own; i++) {
        if (!coef[2 * n + i]) continue;
        if (!expr_affine(p->own[i], 2 * n, own, &c1)) return false;
        c0 += coef[2 * n + i] * c1;
        for (int j = 0; j < 2 * n; j++) coef[j] += coef[2 * n + i] * own[j];
    }
    for (int which = COORD_M; which <= COORD_K; which++) {
        const Coordinate *c = &p->of[which];
        if (which == COORD_N || !c->n) continue;
        const int number = c->n > 1 ? n + c->axis[0] : c->axis[0];
        const int64_t step = which == COORD_K ? 1 : p->of[COORD_K].size;
        if (coef[number] != step) return false;
        coef[number] = 0;
    }
    for (int i = 0; i < 2 * n; i++)
        if (coef[i]) return false;
    return c0 == 0;
}

// Floats of a workgroup's shared memory: rows, the tree of sums, and what threads tell each other.
static bool has_room(const Kernel *k, const Rowwise *r) {
    const int64_t threads = template_hole_value(k, "ACROSS") * template_hole_value(k, "ALONG"), m = r->rows;
    return 16 * (m * ceil_div(r->columns, 4) + m * threads) + 16 * threads * r->n_sums <= ROOM;
}

// Is v, as r has it, the left factor of this product, and nothing else of it?
static bool takes(Arena *a, const Kernel *k, const Rowwise *r, const Value *v) {
    const Product *p = &k->product;
    if (k->kind != KERNEL_PRODUCT || !p->few || p->bytes || p->norm || p->of[COORD_B].size != 1) return false;
    if (p->factor[0]->op != E_Load || p->factor[0]->value != v || p->of[COORD_M].size != r->rows
        || p->of[COORD_K].size != r->columns || p->blocks * p->shares > MOST_GROUPS)
        return false;
    bool *seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1), elsewhere = loads(p->factor[1], v, seen);
    for (int i = 0; i < k->stores.n; i++) elsewhere = elsewhere || loads(k->stores.at[i].expr, v, seen);
    return !elsewhere && walks_rows(k, p->factor[0]) && has_room(k, r);
}

// ---------------------------------------------------------------- which norms
typedef struct Preparing {
    const Plan *plan;
    const Steps *steps;
    Arena *scratch;
    bool *gone;                                         // by step
} Preparing;

static Kernel *kernel_at(const Preparing *s, int step) { return s->plan->kernels.at[s->steps->at[step].kernel]; }

// The kernel as reductions along whole rows, which it stores by rows and columns; NULL: it is no such one.
static Kernel *norm_of(const Preparing *s, const Kernel *loop) {
    Arena *a = s->plan->arena;
    if (loop->kind != KERNEL_LOOP || loop->stores.n != 1 || loop->sizes.n || loop->strips) return NULL;
    for (int i = 0; i < loop->axes.n; i++)
        if (!dim_is_const(loop->axes.at[i].size)) return NULL;
    Kernel *k = arena_copy(a, loop, sizeof *loop);
    const int outer = nest_outer_axes(k);
    for (int i = 0; i < outer; i++)
        if (k->axes.at[i].reduce) return NULL;
    const Rowwise *r = gpu_rowwise(a, k, outer, false, false);
    if (!r || !r->elements || r->rows > MOST_ROWS || !is_row_major(k, r, outer)) return NULL;
    k->loop.spread = outer;
    k->loop.rows = r;
    return k;
}

static bool is_output(const Plan *p, Value *v) {
    int64_t at;
    const Buffer *b = buffer_owner(buffer_of(p, v), &at);
    for (int i = 0; i < p->graph->outputs.n; i++)
        if (buffer_owner(buffer_of(p, p->graph->outputs.at[i]), &at) == b) return true;
    return b->place != PLACE_WORK || b->value != v;
}

// Does the step write what the norm reads?
static bool disturbs(const Step *s, const Step *norm) {
    for (int i = 0; i < s->uses.n; i++)
        for (int j = 0; j < norm->uses.n; j++)
            if (s->uses.at[i].buffer == norm->uses.at[j].buffer && s->uses.at[i].write && !norm->uses.at[j].write)
                return true;
    return false;
}

// The steps that read what step `at` stores, all of which could make it themselves; their number, or 0.
static int find_readers(const Preparing *s, int at, const Rowwise *r, int *out) {
    const Value *v = kernel_at(s, at)->stores.at[0].value;
    int n = 0;
    bool disturbed = false;
    for (int i = at + 1; i < s->steps->n; i++) {
        const Step *step = &s->steps->at[i];
        disturbed = disturbed || disturbs(step, &s->steps->at[at]);
        for (int m = 0; m < step->kernels; m++) {
            const Kernel *k = s->plan->kernels.at[step->kernel + m];
            if (!kernel_reads(k, v)) continue;
            const int values = k->reads.n + k->writes.n + kernel_at(s, at)->reads.n;
            if (n == MOST_READERS || step->kernels > 1 || disturbed || values > MOST_VALUES) return 0;
            if (!takes(s->scratch, k, r, v)) return 0;
            out[n++] = i;
        }
    }
    return n;
}

// ---------------------------------------------------------------- one of two
static void prepare(const Preparing *s, Kernel *k, const Kernel *norm) {
    Arena *a = s->plan->arena;
    const Value *v = norm->stores.at[0].value;
    const int n_reads = k->reads.n, n_loads = k->loads.n;
    k->reads.n = k->loads.n = 0;
    for (int i = 0; i < n_reads; i++)
        if (k->reads.at[i] != v) k->reads.at[k->reads.n++] = k->reads.at[i];
    for (int i = 0; i < n_loads; i++)
        if (k->loads.at[i] != v) k->loads.at[k->loads.n++] = k->loads.at[i];
    for (int i = 0; i < norm->reads.n; i++) kernel_read(a, k, norm->reads.at[i]);
    for (int i = 0; i < norm->nodes.n; i++) VEC_PUSH(a, k->nodes, norm->nodes.at[i]);
    k->flops += norm->flops;
    k->product.norm = norm;
}

void gpu_prepare(Plan *p) {
    int n = 0, readers[MOST_READERS];
    if (p->parent || p->options->no_fuse) return;
    Preparing s = { .plan = p, .scratch = arena_new() };
    s.steps = steps_read(s.scratch, p);
    s.gone = NEW_ARRAY(s.scratch, bool, s.steps->n + 1);
    for (int i = 0; i < s.steps->n; i++) {
        const Kernel *norm = s.steps->at[i].kernels == 1 ? norm_of(&s, kernel_at(&s, i)) : NULL;
        if (!norm || is_output(p, norm->stores.at[0].value)) continue;
        const int found = find_readers(&s, i, norm->loop.rows, readers);
        for (int r = 0; r < found; r++) prepare(&s, kernel_at(&s, readers[r]), norm);
        s.gone[i] = found > 0;
    }
    for (int i = 0; i < s.steps->n; i++)
        for (int m = 0; m < s.steps->at[i].kernels && !s.gone[i]; m++)
            p->kernels.at[n++] = p->kernels.at[s.steps->at[i].kernel + m];
    p->kernels.n = n;
    arena_free(s.scratch);
}
