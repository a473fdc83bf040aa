// SPDX-License-Identifier: MIT OR Apache-2.0
// Elements of f16 become floats, values are rounded to f16, and become f16 again, a row at a time: processors have
// instructions for that, which C compilers do not find in a loop over single elements, and without which each of the
// three is a dozen operations. What lies between them are loops over local floats.
//
//   for (i0b = 0; i0b + 128 <= 4096; i0b += 128) {
//       float t0[128];
//       { const ptrdiff_t i0 = i0b; burn_f16_row_load(t0, &x[i0], 128); }
//       float t1[128];
//       for (i0 = i0b; i0 < i0b + 128; i0++) { t1[i0 - i0b] = t0[i0 - i0b] * 1.5f; }
//       burn_f16_row_round(t1, 128);
//       float t2[128];
//       for (i0 = i0b; i0 < i0b + 128; i0++) { t2[i0 - i0b] = t1[i0 - i0b] + t0[i0 - i0b]; }
//       { const ptrdiff_t i0 = i0b; burn_f16_row_store(&y[i0], t2, 128); }
//   }
#include "loops.h"

// ROW: half of what a chain of a dozen operations may have of the first cache, and long enough that starting a loop
// for each operation costs little; MAX_ROWS bounds the stack
enum { ROW = 128, MIN_ROW = 16, MAX_ROWS = 32 };

static bool lies_along(const LoopPrinter *p, const Expr *index, int axis) {
    Dim coef[64], c0;
    return expr_affine_sizes(index, p->d->graph, p->k->axes.n, coef, &c0) && coef[axis] == 1;
}

static bool is_row_load(const LoopPrinter *p, const Expr *e, int axis) {
    return e->op == E_Load && e->dtype == DT_F16 && !e->a[1] && lies_along(p, e->a[0], axis);
}

static bool is_row_round(const Expr *e, int axis) {
    return e->op == E_Cast && e->dtype == DT_F16 && e->a[0]->dtype == DT_F32 && e->axes_used >> axis & 1;
}

static bool is_row_store(const LoopPrinter *p, const Store *s, int axis) {
    return s->value->type.dtype == DT_F16 && s->op == RED_NONE && !s->guard && lies_along(p, s->index, axis);
}

// How many rows there are; 0: it does not pay.
static int count_rows(const LoopPrinter *p, int scope) {
    int axis = p->scopes.at[scope].axis, n = 0;
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        if (e->op == E_Reduce && p->scope_of[e->id] >= scope) return 0;
        n += is_row_load(p, e, axis) || is_row_round(e, axis);
    }
    for (int i = 0; i < p->k->stores.n; i++) n += is_row_store(p, &p->k->stores.at[i], axis);
    return n <= MAX_ROWS ? n : 0;
}

static int row_width(const LoopPrinter *p, int axis) {
    Dim size = p->k->axes.at[axis].size;
    return dim_is_const(size) && size < ROW ? (int)size : ROW;
}

static const char *declare_row(LoopPrinter *p, int axis, int depth) {
    const char *name = arena_printf(p->arena, "t%d", p->temps++);
    loops_line(p, depth);
    text_printf(p->out, "float %s[%d];\n", name, row_width(p, axis));
    return name;
}

static const char *row_element(const LoopPrinter *p, const char *row, int axis) {
    return arena_printf(p->arena, "%s[%s - %sb]", row, p->axis_name[axis], p->axis_name[axis]);
}

static void open_row(LoopPrinter *p, int axis, const char *count, int depth) {
    const char *i = p->axis_name[axis];
    loops_line(p, depth);
    text_printf(p->out, "for (%s %s = %sb; %s < %sb + %s; %s++) {\n", p->d->index_type, i, i, i, i, count, i);
}

// A block with the row's first element: memory of v at index.
static const char *open_first(LoopPrinter *p, Value *v, Expr *index, int axis, int depth) {
    const char *i = p->axis_name[axis];
    loops_line(p, depth);
    text_printf(p->out, "{\n");
    loops_line(p, depth + 1);
    text_printf(p->out, "const %s %s = %sb;\n", p->d->index_type, i, i);
    loops_demand(p, index, depth + 1);
    loops_line(p, depth + 1);
    return p->d->address(p->d->ctx, v, loops_operand(p, index));
}

static void load_row(LoopPrinter *p, Expr *e, int axis, const char *count, int depth) {
    const char *row = declare_row(p, axis, depth), *from = open_first(p, e->value, e->a[0], axis, depth);
    text_printf(p->out, "burn_f16_row_load(%s, %s, %s);\n", row, from, count);
    loops_close_fresh(p, depth);
    p->name[e->id] = row_element(p, row, axis);
}

static void round_row(LoopPrinter *p, Expr *e, int axis, const char *count, int depth) {
    const char *row = declare_row(p, axis, depth), *element = row_element(p, row, axis);
    open_row(p, axis, count, depth);
    loops_demand(p, e->a[0], depth + 1);
    const char *x = text_bare(p->arena, loops_operand(p, e->a[0]));
    loops_line(p, depth + 1);
    text_printf(p->out, "%s = %s;\n", element, x);
    loops_close_fresh(p, depth);
    loops_line(p, depth);
    text_printf(p->out, "burn_f16_row_round(%s, %s);\n", row, count);
    p->name[e->id] = element;
}

// All stores of a point in one loop: one may write where another one's operands lie.
static void store_rows(LoopPrinter *p, int axis, const char *count, int depth) {
    const char **row = NEW_ARRAY(p->arena, const char *, (size_t)p->k->stores.n);
    for (int i = 0; i < p->k->stores.n; i++)
        if (is_row_store(p, &p->k->stores.at[i], axis)) row[i] = declare_row(p, axis, depth);
    open_row(p, axis, count, depth);
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        loops_demand(p, s->expr, depth + 1);
        loops_demand(p, row[i] ? NULL : s->index, depth + 1);
        loops_demand(p, s->guard, depth + 1);
    }
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        if (!row[i]) {
            loops_store(p, s, depth + 1);
            continue;
        }
        const char *x = text_bare(p->arena, loops_operand(p, s->expr));
        loops_line(p, depth + 1);
        text_printf(p->out, "%s = %s;\n", row_element(p, row[i], axis), x);
    }
    loops_close_fresh(p, depth);
    for (int i = 0; i < p->k->stores.n; i++) {
        if (!row[i]) continue;
        const char *to = open_first(p, p->k->stores.at[i].value, p->k->stores.at[i].index, axis, depth);
        text_printf(p->out, "burn_f16_row_store(%s, %s, %s);\n", to, row[i], count);
        loops_close_fresh(p, depth);
    }
}

// `count`: of the points, a number or, where it may be none, an expression.
static void row_points(LoopPrinter *p, int scope, const char *count, int depth) {
    int axis = p->scopes.at[scope].axis;
    const bool is_open = *count < '0' || *count > '9';
    if (is_open) {
        loops_line(p, depth);
        text_printf(p->out, "if (%s > 0) {\n", count);
        depth++;
    }
    for (int i = 0; i < p->exprs.n; i++) {
        Expr *e = p->exprs.at[i];
        if (is_row_load(p, e, axis)) load_row(p, e, axis, count, depth);
        else if (is_row_round(e, axis)) round_row(p, e, axis, count, depth);
    }
    store_rows(p, axis, count, depth);
    if (is_open) loops_close(p, depth - 1);
    for (int i = 0; i < p->exprs.n; i++)
        if (p->scope_of[p->exprs.at[i]->id] >= scope) p->name[p->exprs.at[i]->id] = NULL;
}

bool halves_emit(LoopPrinter *p, int scope, int depth) {
    int axis = p->scopes.at[scope].axis;
    if (!p->d->address || p->shared[axis] || p->k->axes.at[axis].extent < MIN_ROW) return false;
    for (int s = scope + 1; s <= p->last_parallel; s++)
        if (p->k->axes.at[p->scopes.at[s].axis].size != 1) return false;
    if (!count_rows(p, scope)) return false;
    loops_strips(p, scope, row_width(p, axis), row_points, depth);
    return true;
}
