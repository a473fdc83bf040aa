// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints a loop kernel: nested loops over its axes, every expression at the outermost level where all it needs is
// known.
//
// In: stores of expressions over loads, axes and reductions. Out: text in a Dialect (C, GLSL). The levels form a tree
// of scopes: the parallel axes are one chain, every reduction hangs its own chain of axes below the scope of the
// innermost axis it depends on. A nest whose points each sum a little, where memory runs along the innermost parallel
// axis, goes along that axis some points at a time (loops_strips.c), ends of windows have loops of their own
// (loops_ends.c), and turned copies go in blocks (loops_turned.c). An expression belongs to the deepest scope among
// its axes, so what does not depend on a loop is computed before it, and a softmax's maximum ends up outside the loop
// that uses it without anybody saying so.
#include "loops.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- collecting
static void collect(LoopPrinter *p, Expr *e) {
    if (!e) return;
    p->uses[e->id]++;
    if (p->seen[e->id]) return;
    p->seen[e->id] = true;
    for (int i = 0; i < 3; i++) collect(p, e->a[i]);
    VEC_PUSH(p->arena, p->exprs, e);
}

static int by_id(const void *x, const void *y) { return (*(Expr *const *)x)->id - (*(Expr *const *)y)->id; }

static int deepest(const LoopPrinter *p, uint64_t axes) {
    int best = p->bound;                                // scopes 0..bound are the root and the caller's axes
    for (int i = 0; axes; i++, axes >>= 1)
        if (axes & 1 && p->scopes.at[p->axis_scope[i]].depth > p->scopes.at[best].depth) best = p->axis_scope[i];
    return best;
}

static int add_scope(LoopPrinter *p, int parent, int axis, Expr *reduce) {
    VEC_PUSH(p->arena, p->scopes, (LoopScope){ parent, p->scopes.at[parent].depth + 1, axis, reduce });
    p->axis_scope[axis] = p->scopes.n - 1;
    return p->scopes.n - 1;
}

static void build_scopes(LoopPrinter *p) {
    VEC_PUSH(p->arena, p->scopes, (LoopScope){ -1, 0, -1, NULL });
    for (int i = 0; i < p->k->n_parallel; i++) add_scope(p, i, i, NULL);
    p->last_parallel = p->k->n_parallel;
    Expr *first[64] = { NULL };
    // outer reductions have higher ids than the ones inside their bodies
    for (int i = p->exprs.n - 1; i >= 0; i--) {
        Expr *e = p->exprs.at[i];
        if (e->op != E_Reduce) continue;
        int at = deepest(p, e->axes_used);
        if (e->n_axes && first[e->axes[0]]) {
            Expr *f = first[e->axes[0]];
            if (p->scopes.at[p->axis_scope[e->axes[0]]].parent != at)
                bug("reductions over the same axes at different depths");
            p->peer[e->id] = p->peer[f->id];
            p->peer[f->id] = e;
            p->follows[e->id] = true;
            continue;
        }
        if (e->n_axes) first[e->axes[0]] = e;
        for (int j = 0; j < e->n_axes; j++) at = add_scope(p, at, e->axes[j], e);
    }
    for (int i = 0; i < p->exprs.n; i++) p->scope_of[p->exprs.at[i]->id] = deepest(p, p->exprs.at[i]->axes_used);
}

// The scope an expression's operands are needed in: a reduction needs its body at the end of its own chain.
static int body_scope(const LoopPrinter *p, const Expr *e) {
    return e->op == E_Reduce && e->n_axes ? p->axis_scope[e->axes[e->n_axes - 1]] : p->scope_of[e->id];
}

bool loops_is_leaf(const Expr *e) { return e->op == E_Const || e->op == E_Axis || e->op == E_Acc || e->op == E_Size; }

bool loops_plain_index(const Expr *e) {                // cheap address arithmetic that the C compiler moves by itself
    int64_t coef[64], c0;
    return e->dtype == DT_INDEX && e->op != E_Load && expr_affine(e, 64, coef, &c0);
}

static void choose_temps(LoopPrinter *p) {
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        for (int j = 0; j < 3; j++)
            if (e->a[j] && p->scope_of[e->a[j]->id] != body_scope(p, e)) p->deeper[e->a[j]->id] = true;
    }
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        if (p->scope_of[s->expr->id] != p->last_parallel) p->deeper[s->expr->id] = true;
    }
    int *nesting = NEW_ARRAY(p->arena, int, expr_count(p->k->exprs) + 1);
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        int depth = 0;
        for (int j = 0; j < 3; j++)
            if (e->a[j] && !p->is_temp[e->a[j]->id] && nesting[e->a[j]->id] > depth) depth = nesting[e->a[j]->id];
        nesting[e->id] = loops_plain_index(e) ? 1 : depth + 1;
        p->is_temp[e->id] = e->op == E_Reduce
            || (!loops_is_leaf(e) && !loops_plain_index(e)
                && (p->uses[e->id] > 1 || p->deeper[e->id] || depth >= MAX_NESTING));
    }
}

// ---------------------------------------------------------------- text
const char *loops_spell(LoopPrinter *p, Expr *e) {
    Text t;
    const char *operands[3] = { NULL, NULL, NULL };
    if (e->op == E_Axis) return p->axis_name[e->c.i];
    if (e->op == E_Acc) return "acc";                   // a template epilogue's parameter
    if (e->op == E_Size) return spell_size_operand(p->arena, e->graph, e->extent);
    if (e->op == E_Select && p->holds[e->a[0]->id]) return loops_operand(p, e->a[1]);
    for (int i = 0; i < 3; i++) if (e->a[i]) operands[i] = loops_operand(p, e->a[i]);
    text_init(&t, p->arena);
    if (e->op == E_Load && e->a[1] && p->holds[e->a[1]->id])
        text_printf(&t, "%s", p->d->load(p->d->ctx, e->value, operands[0]));
    else if (e->op != E_Load) spell_op(p->d->language, &t, e, operands);
    else if (e->a[1] && p->d->load_if)
        text_printf(&t, "%s", p->d->load_if(p->d->ctx, e->value, operands[0], operands[1], operands[2]));
    else {
        const char *element = p->d->load(p->d->ctx, e->value, operands[0]);
        if (e->a[1] && e->a[1] != p->certain)
            text_printf(&t, "(%s ? %s : %s)", operands[1], element,
                operands[2] ? operands[2] : p->d->language->zero(e->dtype));
        else text_printf(&t, "%s", element);
    }
    return t.at;
}

const char *loops_operand(LoopPrinter *p, Expr *e) {
    return p->holds[e->id] ? "true" : p->name[e->id] ? p->name[e->id] : loops_spell(p, e);
}

void loops_line(LoopPrinter *p, int depth) { for (int i = 0; i < depth; i++) text_printf(p->out, "%s", p->d->indent); }

void loops_define(LoopPrinter *p, Expr *e, int depth) {
    const char *text = text_bare(p->arena, loops_spell(p, e));
    const char *name = arena_printf(p->arena, "t%d", p->temps++);
    loops_line(p, depth);
    text_printf(p->out, "%s%s %s = %s;\n", p->d->constant, p->d->type(e->dtype), name, text);
    p->name[e->id] = name;
}

bool loops_is_ranged(const LoopPrinter *p, int axis) { return p->d->first && axis == p->k->loop.part_axis; }

const char *loops_extent(const LoopPrinter *p, int axis) {
    return spell_size(p->arena, p->d->graph, p->k->axes.at[axis].size);
}

void loops_open(LoopPrinter *p, int axis, int depth) {
    const char *i = p->axis_name[axis], *it = p->d->index_type, *extent = loops_extent(p, axis);
    loops_line(p, depth);
    if (loops_is_ranged(p, axis))
        text_printf(p->out, "for (%s %s = %s; %s < %s; %s++) {\n", it, i, p->d->first, i, p->d->last, i);
    else if (p->shared[axis])
        text_printf(p->out, "for (%s %s = rank; %s < %s; %s += %d) {\n", it, i, i, extent, i, p->d->team);
    else text_printf(p->out, "for (%s %s = 0; %s < %s; %s++) {\n", it, i, i, extent, i);
}

void loops_close(LoopPrinter *p, int depth) {
    loops_line(p, depth);
    text_printf(p->out, "}\n");
}

// ---------------------------------------------------------------- reductions
const char *loops_identity(const LoopPrinter *p, const Expr *e) {
    Scalar s = reduce_identity(e->rop, e->dtype);
    Expr *v = dtype_is_float(e->dtype) ? expr_const_f(p->k->exprs, e->dtype, s.f) :
                                         expr_const_i(p->k->exprs, e->dtype, s.i);
    Text t;
    text_init(&t, p->arena);
    spell_op(p->d->language, &t, v, (const char *const[]){ NULL, NULL, NULL });
    return t.at;
}

// acc = step(acc, x); of floats, += is all that a sum needs.
static void combine(LoopPrinter *p, const Expr *e, const char *acc, const char *x, int depth) {
    loops_line(p, depth);
    if (e->rop == RED_SUM && dtype_is_float(e->dtype)) {
        text_printf(p->out, "%s += %s;\n", acc, text_bare(p->arena, x));
        return;
    }
    text_printf(p->out, "%s = ", acc);
    spell_step(p->d->language, p->out, e->rop, e->dtype, acc, x);
    text_printf(p->out, ";\n");
}

static void combine_arg(LoopPrinter *p, Expr *e, const char *best, const char *at, int depth) {
    const char *x = loops_operand(p, e->a[0]), *payload = loops_operand(p, e->a[1]);
    const ReduceInfo *info = &reduce_table[e->rop];
    bool max = info->extreme == RED_MAX, last = info->tie == TIE_LAST;
    const char *cmp = max ? (last ? ">=" : ">") : last ? "<=" : "<";
    loops_line(p, depth);
    text_printf(p->out, "if (%s < 0 || %s %s %s", at, x, cmp, best);
    if (dtype_is_float(e->a[0]->dtype) && max && !last)
        text_printf(p->out, " || (%s != %s && %s == %s)", x, x, best, best);
    if (dtype_is_float(e->a[0]->dtype) && max && last) text_printf(p->out, " || %s != %s", x, x);
    text_printf(p->out, ") {\n");
    loops_line(p, depth + 1);
    text_printf(p->out, "%s = %s;\n", best, x);
    loops_line(p, depth + 1);
    text_printf(p->out, "%s = %s;\n", at, payload);
    loops_close(p, depth);
}

// acc += x, e's body; a product goes in with one rounding where the dialect has a name for that.
void loops_accumulate(LoopPrinter *p, const Expr *e, Expr *x, const char *acc, int depth) {
    bool fused = p->d->fma && e->rop == RED_SUM && x->op == E_Mul && dtype_is_float(x->dtype) && !p->name[x->id];
    if (!fused) {
        combine(p, e, acc, loops_operand(p, x), depth);
        return;
    }
    loops_line(p, depth);
    text_printf(
        p->out, "%s = %s(%s, %s, %s);\n", acc, p->d->fma, loops_operand(p, x->a[0]), loops_operand(p, x->a[1]), acc);
}

// What the body defined is gone when its scope closes.
static void forget(LoopPrinter *p, int scope) {
    for (int i = 0; i < p->exprs.n; i++)
        if (p->scope_of[p->exprs.at[i]->id] == scope) p->name[p->exprs.at[i]->id] = NULL;
}

static void reduce_body(LoopPrinter *p, Expr *e, int at, int depth, const char *acc, const char *second) {
    int scope = p->axis_scope[e->axes[at]];
    loops_scope(p, scope, depth);
    if (at + 1 < e->n_axes) {
        loops_open(p, e->axes[at + 1], depth);
        reduce_body(p, e, at + 1, depth + 1, acc, second);
        loops_close(p, depth);
    } else if (reduce_is_arg(e->rop)) combine_arg(p, e, acc, second, depth);
    else loops_accumulate(p, e, e->a[0], acc, depth);
    for (Expr *m = p->peer[e->id]; m && at + 1 == e->n_axes; m = p->peer[m->id])
        loops_accumulate(p, m, m->a[0], p->name[m->id], depth);
    forget(p, scope);
}

static bool use_lanes(const LoopPrinter *p, const Expr *e) {
    return p->d->lanes && !reduce_is_arg(e->rop) && dtype_is_float(e->dtype) && e->n_axes == 1
        && p->k->axes.at[e->axes[0]].extent >= MIN_LANES_EXTENT;
}

// A long sum as LANES interleaved ones: independent, so that the C compiler may keep them in a vector without
// reassociating anything. Gcc would write the lanes out one by one and then find no vector of maxima: BURN_LANES
// keeps the loop.
static void emit_lanes(LoopPrinter *p, Expr *e, const char *acc, int depth) {
    int axis = e->axes[0];
    const char *i = p->axis_name[axis], *type = p->d->type(e->dtype), *zero = loops_identity(p, e),
               *it = p->d->index_type;
    Dim size = p->k->axes.at[axis].size;
    bool fixed = dim_is_const(size);
    const char *whole = fixed ? arena_printf(p->arena, "%lld", (long long)(size / LANES * LANES)) :
                                arena_printf(p->arena, "%s / %d * %d", loops_extent(p, axis), LANES, LANES);
    const char *lane = arena_printf(p->arena, "%sl", acc), *base = arena_printf(p->arena, "%sb", i),
               *part = arena_printf(p->arena, "%sl[%sl]", acc, i);
    loops_line(p, depth);
    text_printf(p->out, "%s %s[%d];\n", type, lane, LANES);
    loops_line(p, depth);
    text_printf(p->out, "for (%s %sl = 0; %sl < %d; %sl++) %s = %s;\n", it, i, i, LANES, i, part, zero);
    loops_line(p, depth);
    text_printf(p->out, "for (%s %s = 0; %s < %s; %s += %d)\n", it, base, base, whole, base, LANES);
    loops_line(p, depth + 1);
    text_printf(p->out, "BURN_LANES for (%s %sl = 0; %sl < %d; %sl++) {\n", it, i, i, LANES, i);
    loops_line(p, depth + 2);
    text_printf(p->out, "const %s %s = %s + %sl;\n", it, i, base, i);
    reduce_body(p, e, 0, depth + 2, part, NULL);
    loops_close(p, depth + 1);
    if (!fixed || size % LANES) {
        loops_line(p, depth);
        text_printf(p->out, "for (%s %s = %s; %s < %s; %s++) {\n", it, i, whole, i, loops_extent(p, axis), i);
        reduce_body(p, e, 0, depth + 1, arena_printf(p->arena, "%s[0]", lane), NULL);
        loops_close(p, depth);
    }
    for (int half = LANES / 2; half > 1; half /= 2) {
        loops_line(p, depth);
        text_printf(p->out, "%sfor (%s %sl = 0; %sl < %d; %sl++)\n", e->rop == RED_SUM ? "" : "BURN_LANES ", it, i, i,
            half, i);
        combine(p, e, part, arena_printf(p->arena, "%s[%sl + %d]", lane, i, half), depth + 1);
    }
    loops_line(p, depth);
    text_printf(p->out, "%s %s = %s[0];\n", type, acc, lane);
    combine(p, e, acc, arena_printf(p->arena, "%s[1]", lane), depth);
}

// ---------------------------------------------------------------- teams
// The axis of a chain worth sharing out: the longest, the innermost of equals.
static int longest(const LoopPrinter *p, const int *axes, int n) {
    int best = axes[0];
    for (int i = 1; i < n; i++)
        if (p->k->axes.at[axes[i]].extent >= p->k->axes.at[best].extent) best = axes[i];
    return best;
}

static bool is_teamwork(const LoopPrinter *p, const Expr *e) {
    return p->d->team > 1 && p->scope_of[e->id] == p->bound && !reduce_is_arg(e->rop) && e->n_axes;
}

static void choose_shared(LoopPrinter *p) {
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        if (e->op == E_Reduce && is_teamwork(p, e)) p->shared[longest(p, e->axes, e->n_axes)] = true;
    }
    int inner[64], n = 0;
    for (int i = p->bound; i < p->last_parallel; i++) inner[n++] = i;
    if (n && p->d->team > 1) p->shared[longest(p, inner, n)] = true;
}

// Does a later reduction, whose terms all members sum, need e or one of its peers?
static bool feeds_reduction(const LoopPrinter *p, const Expr *e) {
    bool *needs = NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1);
    for (const Expr *m = e; m; m = p->peer[m->id]) needs[m->id] = true;
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *x = p->exprs.at[i];
        for (int j = 0; j < 3; j++) {
            if (!x->a[j] || !needs[x->a[j]->id]) continue;
            if (x->op == E_Reduce) return true;
            needs[x->id] = true;
        }
    }
    return false;
}

// Every member of the team holds a part of each peer: all parts go to the team's memory, and are combined in order of
// rank, so that all hold the same result. Where only rank 0 will use it, the others skip that.
static void emit_gather(LoopPrinter *p, Expr *e, int depth) {
    int first = p->parts;
    const char *it = p->d->index_type;
    bool root_only = p->bound == p->last_parallel && !feeds_reduction(p, e);
    for (Expr *m = e; m; m = p->peer[m->id]) {
        loops_line(p, depth);
        text_printf(p->out, "%s = %s;\n", p->d->part(p->d->ctx, m->dtype, p->parts++, NULL), p->name[m->id]);
    }
    loops_line(p, depth);
    text_printf(p->out, "%s\n", p->d->barrier);
    int slot = first;
    for (Expr *m = e; m; m = p->peer[m->id]) {
        loops_line(p, depth);
        text_printf(p->out, "%s = %s;\n", p->name[m->id], p->d->part(p->d->ctx, m->dtype, slot++, "0"));
    }
    loops_line(p, depth);
    if (root_only) text_printf(p->out, "for (%s other = 1; rank == 0 && other < %d; other++) {\n", it, p->d->team);
    else text_printf(p->out, "for (%s other = 1; other < %d; other++) {\n", it, p->d->team);
    slot = first;
    for (Expr *m = e; m; m = p->peer[m->id])
        combine(p, m, p->name[m->id], p->d->part(p->d->ctx, m->dtype, slot++, "other"), depth + 1);
    loops_close(p, depth);
}

// Defines the temporaries that e needs here and now.
void loops_demand(LoopPrinter *p, Expr *e, int depth) {
    if (!e || p->name[e->id] || p->holds[e->id]) return;
    for (int i = 0; i < 3; i++) loops_demand(p, e->a[i], depth);
    if (!p->is_temp[e->id]) return;
    loops_define(p, e, depth);
    VEC_PUSH(p->arena, p->fresh, e);
}

// Ends the block, and with it the temporaries that demand() defined there.
void loops_close_fresh(LoopPrinter *p, int depth) {
    for (int i = 0; i < p->fresh.n; i++) p->name[p->fresh.at[i]->id] = NULL;
    p->fresh.n = 0;
    loops_close(p, depth);
}

// A few terms stand one after the other, without loops: nothing between the C compiler and a vector over the points
// around them.
enum { MAX_UNROLLED = 16 };

bool loops_unrolls(const LoopPrinter *p, const Expr *e) {
    int64_t terms = 1;
    if (!p->d->lanes || reduce_is_arg(e->rop)) return false;
    for (int i = 0; i < e->n_axes; i++) {
        if (!dim_is_const(p->k->axes.at[e->axes[i]].size) || terms > MAX_UNROLLED) return false;
        terms *= p->k->axes.at[e->axes[i]].size;
    }
    for (int i = 0; i < p->exprs.n; i++)                // a sum inside of a term has loops of its own
        if (p->exprs.at[i]->op == E_Reduce && p->scope_of[p->exprs.at[i]->id] >= p->axis_scope[e->axes[0]]
            && p->scope_of[p->exprs.at[i]->id] <= body_scope(p, e))
            return false;
    return terms > 1 && terms <= MAX_UNROLLED;
}

// Opens a block for the term at `at`, which uses these axes.
void loops_open_term(LoopPrinter *p, const Expr *e, uint64_t used, const int64_t *at, int depth) {
    loops_line(p, depth);
    text_printf(p->out, "{\n");
    for (int k = 0; k < e->n_axes; k++) {
        if (!(used >> e->axes[k] & 1)) continue;
        loops_line(p, depth + 1);
        text_printf(p->out, "const %s %s = %lld;\n", p->d->index_type, p->axis_name[e->axes[k]], (long long)at[k]);
    }
}

// The next term; false after the last, and `at` is the first again.
bool loops_next_term(const LoopPrinter *p, const Expr *e, int64_t *at) {
    for (int i = e->n_axes - 1; i >= 0; i--) {
        if (++at[i] < p->k->axes.at[e->axes[i]].size) return true;
        at[i] = 0;
    }
    return false;
}

static void emit_unrolled(LoopPrinter *p, Expr *e, int depth) {
    int64_t at[MAX_RANK] = { 0 };
    uint64_t used = 0;
    for (const Expr *m = e; m; m = p->peer[m->id]) used |= m->a[0]->axes_used;
    do {
        loops_open_term(p, e, used, at, depth);
        for (Expr *m = e; m; m = p->peer[m->id]) {
            loops_demand(p, m->a[0], depth + 1);
            loops_accumulate(p, m, m->a[0], p->name[m->id], depth + 1);
        }
        loops_close_fresh(p, depth);
    } while (loops_next_term(p, e, at));
}

// A reduction and its peers.
static void emit_reduce(LoopPrinter *p, Expr *e, int depth) {
    const char *acc = NULL, *best = NULL;
    for (Expr *m = e; m; m = p->peer[m->id]) {
        const char *name = arena_printf(p->arena, "r%d", p->temps++);
        p->name[m->id] = name;
        if (m == e) acc = name;
        if (m == e && use_lanes(p, e)) {
            emit_lanes(p, e, acc, depth);
            return;
        }
        loops_line(p, depth);
        if (reduce_is_arg(m->rop)) {
            best = arena_printf(p->arena, "%sx", name);
            text_printf(p->out, "%s %s = 0;\n", p->d->type(m->a[0]->dtype), best);
            loops_line(p, depth);
            text_printf(p->out, "%s %s = -1;\n", p->d->type(m->dtype), name);
        } else text_printf(p->out, "%s %s = %s;\n", p->d->type(m->dtype), name, loops_identity(p, m));
    }
    if (e->n_axes && loops_unrolls(p, e)) emit_unrolled(p, e, depth);
    else if (e->n_axes) {
        loops_open(p, e->axes[0], depth);
        reduce_body(p, e, 0, depth + 1, reduce_is_arg(e->rop) ? best : acc, acc);
        loops_close(p, depth);
    } else if (reduce_is_arg(e->rop)) combine_arg(p, e, best, acc, depth);
    else loops_accumulate(p, e, e->a[0], acc, depth);
    if (is_teamwork(p, e)) emit_gather(p, e, depth);
}

// ---------------------------------------------------------------- scopes
void loops_stores(LoopPrinter *p, int depth) {
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        const char *index = loops_operand(p, s->index), *value = loops_operand(p, s->expr);
        loops_line(p, depth);
        if (p->d->store_if) text_printf(p->out, "if (%s) ", p->d->store_if);
        if (s->guard) text_printf(p->out, "if (%s) ", loops_operand(p, s->guard));
        p->d->store(p->d->ctx, p->out, s, index, value);
        text_printf(p->out, "\n");
    }
}

void loops_scope(LoopPrinter *p, int scope, int depth) {
    for (int i = 0; i < p->exprs.n; i++) {
        Expr *e = p->exprs.at[i];
        if (p->scope_of[e->id] != scope || !p->is_temp[e->id] || p->holds[e->id]) continue;
        if (p->follows[e->id]) continue;
        if (e->op == E_Reduce) emit_reduce(p, e, depth);
        else loops_define(p, e, depth);
    }
    if (p->scopes.at[scope].reduce) return;
    if (scope == p->last_parallel) {
        loops_stores(p, depth);
        return;
    }
    int next = scope + 1, axis = p->scopes.at[next].axis;
    if (p->k->axes.at[axis].size == 1) {
        loops_scope(p, next, depth);
        return;
    }
    if (strips_pay(p, next)) {
        strips_emit(p, next, depth);
        return;
    }
    if (turned_emit(p, next, depth)) return;
    if (ends_emit(p, next, depth)) return;
    loops_open(p, axis, depth);
    loops_scope(p, next, depth + 1);
    loops_close(p, depth);
}

static void printer_init(LoopPrinter *p, Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound) {
    size_t n = (size_t)expr_count(k->exprs) + 1;
    *p = (LoopPrinter){ .arena = a, .k = k, .d = d, .out = out, .bound = bound };
    p->uses = NEW_ARRAY(a, int, n);
    p->scope_of = NEW_ARRAY(a, int, n);
    p->seen = NEW_ARRAY(a, bool, n);
    p->deeper = NEW_ARRAY(a, bool, n);
    p->is_temp = NEW_ARRAY(a, bool, n);
    p->holds = NEW_ARRAY(a, bool, n);
    p->name = NEW_ARRAY(a, const char *, n);
    p->peer = NEW_ARRAY(a, Expr *, n);
    p->follows = NEW_ARRAY(a, bool, n);
    for (int i = 0; i < k->axes.n && i < 64; i++) p->axis_name[i] = arena_printf(a, "i%d", i);
}

static void analyse(LoopPrinter *p) {
    for (int i = 0; i < p->k->stores.n; i++) {
        collect(p, p->k->stores.at[i].index);
        collect(p, p->k->stores.at[i].guard);
        collect(p, p->k->stores.at[i].expr);
    }
    qsort(p->exprs.at, (size_t)p->exprs.n, sizeof *p->exprs.at, by_id);
    build_scopes(p);
}

void loops_print(Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound, int depth) {
    LoopPrinter p;
    printer_init(&p, a, out, k, d, bound);
    analyse(&p);
    choose_temps(&p);
    choose_shared(&p);
    loops_scope(&p, bound, depth);
}
