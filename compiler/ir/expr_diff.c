// SPDX-License-Identifier: MIT OR Apache-2.0
// d e / d argument, by the chain rule over the DAG.
//
// In: an expression and an argument's number. Out: its derivative, an expression of the same dtype over the same
// arguments that shares what it can with e. The idea: each operation's partial derivatives stand in exprs.def as text
// over its operands a, b and its result y; only choice and casts are written here. A zero or one in a derivative is
// symbolic, so 0*x and x+0 vanish although floats would not allow it.
#include "expr.h"

#include <stdlib.h>

static Expr *add(ExprPool *p, Expr *x, Expr *y) { return !x ? y : !y ? x : expr_binary(p, E_Add, x, y); }

static bool is_reciprocal(const Expr *e) { return e->op == E_Div && const_is(e->a[0], 1); }

Expr *expr_chain(ExprPool *p, Expr *x, Expr *y) {
    if (is_reciprocal(x)) return expr_binary(p, E_Div, y, x->a[1]);
    return is_reciprocal(y) ? expr_binary(p, E_Div, x, y->a[1]) : expr_binary(p, E_Mul, x, y);
}

static Expr *mul(ExprPool *p, Expr *x, Expr *y) {
    return const_is(x, 0) || const_is(y, 0) ? NULL : expr_chain(p, x, y);
}

// The partial derivative of node e by its operand k.
static Expr *partial(ExprPool *p, Expr *e, int k) {
    static const char *const names[] = { "a", "b", "y" };
    const char *text = expr_table[e->op].diff[k], *error;
    Expr *const bound[] = { e->a[0], e->a[1] ? e->a[1] : e->a[0], e };
    if (!*text) return NULL;
    Expr *d = expr_parse(p, text, 3, names, bound, e->dtype, &error);
    if (!d) bug("derivative of %s: %s", expr_table[e->op].name, error);
    return d;
}

static Expr *zero_or(ExprPool *p, Expr *d, DType t) { return d ? d : expr_const_i(p, t, 0); }

// The derivative of node e from those of its operands (NULL: zero).
static Expr *diff_node(ExprPool *p, Expr *e, Expr *const d[3]) {
    Expr *sum = NULL;
    if (!dtype_is_float(e->dtype)) return NULL;
    switch (e->op) {
    case E_Select: {
        if (!d[1] && !d[2]) return NULL;
        Expr *x = zero_or(p, d[1], e->dtype), *y = zero_or(p, d[2], e->dtype);
        return expr_select(p, e->a[0], x, y);
    }
    case E_Cast: return d[0] && dtype_is_float(e->a[0]->dtype) ? expr_cast(p, d[0], e->dtype) : NULL;
    case E_Const: case E_Arg: case E_Axis: case E_Size: case E_Load: case E_Acc: case E_Bits: return NULL;
    case E_Reduce: bug("derivative of a reduction");
    default: break;
    }
    for (int k = 0; k < 2; k++) {
        Expr *partial_k = d[k] ? partial(p, e, k) : NULL;
        if (partial_k) sum = add(p, sum, mul(p, d[k], partial_k));
    }
    return sum && const_is(sum, 0) ? NULL : sum;
}

Expr *expr_diff(ExprPool *p, Expr *e, int arg) {
    ExprOrder o;
    order_make(&o, e);
    Expr **d = malloc(sizeof *d * (size_t)o.n), *operand[3];
    if (!d) fatal(EXIT_MEMORY, "out of memory");
    for (int i = 0; i < o.n; i++) {
        for (int k = 0; k < 3; k++) operand[k] = o.arg[i][k] >= 0 ? d[o.arg[i][k]] : NULL;
        bool here = o.at[i]->op == E_Arg && o.at[i]->c.i == arg && dtype_is_float(o.at[i]->dtype);
        d[i] = here ? expr_const_i(p, o.at[i]->dtype, 1) : diff_node(p, o.at[i], operand);
    }
    Expr *result = zero_or(p, d[o.n - 1], e->dtype);
    free(d);
    order_free(&o);
    return result;
}
