// SPDX-License-Identifier: MIT OR Apache-2.0
// The nest of a loop kernel that is printed: its scopes and temporaries, and what its lines are made of.
//
// In: stores of expressions over loads, axes and reductions. Out: a LoopPrinter, and pieces of text in its Dialect. The
// idea: the levels form a tree of scopes. The parallel axes are one chain; every reduction hangs its own chain of axes
// below the scope of the innermost axis it depends on. An expression belongs to the deepest scope among its axes, so
// what does not depend on a loop is computed before it, and a softmax's maximum ends up outside the loop that uses it
// without anybody saying so.
#include "loops.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- scopes and temporaries
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
int loops_body_scope(const LoopPrinter *p, const Expr *e) {
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
            if (e->a[j] && p->scope_of[e->a[j]->id] != loops_body_scope(p, e)) p->deeper[e->a[j]->id] = true;
    }
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        // of several stores one may write where another one's operands lie
        if (p->scope_of[s->expr->id] != p->last_parallel || p->k->stores.n > 1) p->deeper[s->expr->id] = true;
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

static void init(LoopPrinter *p, Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound) {
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

void loops_init(LoopPrinter *p, Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound) {
    init(p, a, out, k, d, bound);
    analyse(p);
    choose_temps(p);
}

// ---------------------------------------------------------------- text
static bool is_fixed(const Expr *e) { return e->op == E_Const && e->dtype == DT_INDEX; }

// C compilers divide by constants with multiplications.
static bool is_divisor(const Expr *e, int operand) {
    return operand == 1 && (e->op == E_Div || e->op == E_Mod || e->op == E_FloorMod) && is_fixed(e->a[1]);
}

const char *loops_spell(LoopPrinter *p, Expr *e) {
    Text t;
    const char *operands[3] = { NULL, NULL, NULL };
    if (e->op == E_Axis) return p->axis_name[e->c.i];
    if (e->op == E_Acc) return "acc";                   // a template epilogue's parameter
    if (is_fixed(e) && p->d->number) return p->d->number(p->d->ctx, e->c.i);
    if (e->op == E_Size) return spell_size_operand(p->arena, e->graph, e->extent);
    if (e->op == E_Select && p->holds[e->a[0]->id]) return loops_operand(p, e->a[1]);
    for (int i = 0; i < 3; i++)
        if (e->a[i]) operands[i] = is_divisor(e, i) ? number_text(p->arena, e->a[i]->c.i) : loops_operand(p, e->a[i]);
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

const char *loops_size(const LoopPrinter *p, Dim size) {
    if (p->d->number && dim_is_const(size)) return p->d->number(p->d->ctx, size);
    return spell_size(p->arena, p->d->graph, size);
}

const char *loops_extent(const LoopPrinter *p, int axis) { return loops_size(p, p->k->axes.at[axis].size); }

void loops_open(LoopPrinter *p, int axis, int depth) {
    const char *i = p->axis_name[axis], *it = p->d->index_type;
    loops_line(p, depth);
    if (loops_is_ranged(p, axis)) {
        text_printf(p->out, "for (%s %s = %s; %s < %s; %s++) {\n", it, i, p->d->first, i, p->d->last, i);
        return;
    }
    const char *extent = loops_extent(p, axis);     // an argument, where numbers are
    if (p->shared[axis])
        text_printf(p->out, "for (%s %s = rank; %s < %s; %s += %d) {\n", it, i, i, extent, i, p->d->team);
    else text_printf(p->out, "for (%s %s = 0; %s < %s; %s++) {\n", it, i, i, extent, i);
}

void loops_close(LoopPrinter *p, int depth) {
    loops_line(p, depth);
    text_printf(p->out, "}\n");
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

void loops_store(LoopPrinter *p, const Store *s, int depth) {
    const char *index = loops_operand(p, s->index), *value = loops_operand(p, s->expr);
    loops_line(p, depth);
    if (p->d->store_if) text_printf(p->out, "if (%s) ", p->d->store_if);
    if (s->guard) text_printf(p->out, "if (%s) ", loops_operand(p, s->guard));
    p->d->store(p->d->ctx, p->out, s, index, value);
    text_printf(p->out, "\n");
}

void loops_stores(LoopPrinter *p, int depth) {
    for (int i = 0; i < p->k->stores.n; i++) loops_store(p, &p->k->stores.at[i], depth);
}
