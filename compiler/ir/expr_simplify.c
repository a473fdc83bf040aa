// SPDX-License-Identifier: MIT OR Apache-2.0
// Exact simplification of scalar operations on values (indices: expr_index.c).
//
// In: an operation and its operands, already simplified. Out: an expression with the same value for every input, or
// NULL. Exact means equal in IEEE arithmetic, signed zeros and NaN included: x + 0.0 stays (it turns -0 into 0), x *
// 0.0 stays (NaN, infinity). Three rules round differently, by at most three ulp, and pay for it many times over: a
// softmax multiplies by the reciprocal of its sum; a power that is a small multiple of 1/4 becomes products and
// square roots, pow(x, -0.75) 1 / (sqrt(x) * sqrt(sqrt(x))), where at -0 and -infinity the roots are -0 and NaN; and
// tanh(softplus(x)), of Mish, has one exponential instead of two and a logarithm.
#include "expr.h"

#include <math.h>

bool const_is(const Expr *e, double v) {
    if (!is_const(e)) return false;
    if (dtype_is_float(e->dtype)) return e->c.f == v && !signbit(e->c.f) == !signbit(v);
    return (double)e->c.i == v;
}

static Expr *neg(ExprPool *p, Expr *x) { return expr_unary(p, E_Neg, x); }
static Expr *mul(ExprPool *p, Expr *x, Expr *y) { return expr_binary(p, E_Mul, x, y); }

static Expr *simplify_not(ExprPool *p, Expr *x) {
    Expr *a = x->a[0], *b = x->a[1];
    // no NaN: the opposite is a comparison too
    bool total = (x->op == E_Lt || x->op == E_Le) && !dtype_is_float(a->dtype);
    switch (x->op) {
    case E_Not: return a;
    case E_Eq: return expr_make(p, E_Ne, DT_BOOL, a, b, NULL);
    case E_Ne: return expr_make(p, E_Eq, DT_BOOL, a, b, NULL);
    case E_Lt: return total ? expr_binary(p, E_Le, b, a) : NULL;
    case E_Le: return total ? expr_binary(p, E_Lt, b, a) : NULL;
    default: return NULL;
    }
}

// tanh(log(1 + exp(x))) = n / (n + q), e = exp(-|x|): n = 1 + 2e, q = 2e^2; for x < 0 n = e^2 + 2e, q = 2
static Expr *tanh_softplus(ExprPool *p, Expr *x) {
    Expr *one = expr_const_f(p, x->dtype, 1), *two = expr_const_f(p, x->dtype, 2),
         *below = expr_binary(p, E_Lt, x, expr_const_f(p, x->dtype, 0));
    Expr *e = expr_unary(p, E_Exp, neg(p, expr_unary(p, E_Abs, x))), *square = mul(p, e, e);
    Expr *twice = mul(p, e, two), *n = expr_binary(p, E_Add, expr_select(p, below, square, one), twice),
         *large = mul(p, square, two);
    Expr *q = expr_select(p, below, two, large);
    return expr_binary(p, E_Div, n, expr_binary(p, E_Add, n, q));
}

Expr *simplify_unary(ExprPool *p, EOp op, Expr *x) {
    switch (op) {
    case E_Tanh: return x->op == E_Softplus ? tanh_softplus(p, x->a[0]) : NULL;
    case E_Not: return simplify_not(p, x);
    case E_Neg: case E_BitNot: return x->op == op ? x->a[0] : NULL;
    case E_Abs:
        if (dtype_class(x->dtype) == CLASS_UINT || x->op == E_Abs) return x;
        return x->op == E_Neg ? expr_unary(p, E_Abs, x->a[0]) : NULL;
    case E_Floor:
    case E_Ceil:
    case E_Round:
    case E_Trunc: return x->op == E_Floor || x->op == E_Ceil || x->op == E_Round || x->op == E_Trunc ? x : NULL;
    case E_Real: return x->op == E_Complex ? x->a[0] : NULL;
    case E_Imag: return x->op == E_Complex ? x->a[1] : NULL;
    case E_IsNan:
    case E_IsInf:
        return x->op == E_Cast && !dtype_is_float(x->a[0]->dtype) && !dtype_is_small_float(x->dtype) ?
            expr_const_i(p, DT_BOOL, 0) :
            NULL;
    default: return NULL;
    }
}

// ---- floats

static Expr *root(ExprPool *p, Expr *x) { return expr_unary(p, E_Sqrt, x); }
static Expr *times(ExprPool *p, Expr *x, Expr *y) { return x && y ? mul(p, x, y) : x ? x : y; }      // NULL is 1

// x^(n/4), n > 0. Below 1 a negative power is the reciprocal of the positive one, above it a product of powers of the
// reciprocal: neither leaves the range before the result does.
static Expr *power_of_quarters(ExprPool *p, Expr *x, int n, bool negative) {
    Expr *one = negative ? expr_const_f(p, x->dtype, 1) : NULL, *whole = NULL, *roots = NULL,
         *base = negative && n >= 4 ? expr_binary(p, E_Div, one, x) : x;
    Expr *square = n >= 8 ? mul(p, base, base) : NULL;
    if (n & 2) roots = root(p, x);
    if (n & 1) roots = times(p, roots, root(p, root(p, x)));
    if (n >= 16) whole = mul(p, square, square);
    else if (n >= 8) whole = times(p, square, n >= 12 ? base : NULL);
    else if (n >= 4) whole = base;
    if (!negative || !roots) return times(p, whole, roots);
    return expr_binary(p, E_Div, whole ? whole : one, roots);
}

static Expr *simplify_pow(ExprPool *p, Expr *x, const Expr *y) {
    if (!is_const(y)) return NULL;
    double k = dtype_is_float(x->dtype) ? y->c.f : (double)y->c.i, quarters = fabs(k) * 4;
    if (k == 0) return expr_const_i(p, x->dtype, 1);
    if (!dtype_is_float(x->dtype))
        return k == 1 || k == 2 || k == 3 || k == 4 ? power_of_quarters(p, x, (int)quarters, false) : NULL;
    bool roots = floor(k) != k;
    if (floor(quarters) != quarters || quarters > (k < 0 ? 11 : roots ? 15 : 16)) return NULL;
    return power_of_quarters(p, x, (int)quarters, k < 0);
}

static Expr *simplify_product(ExprPool *p, Expr *x, Expr *y) {
    if (const_is(y, 1)) return x;
    if (const_is(y, -1)) return neg(p, x);
    if (x->op == E_Neg && is_const(y)) return mul(p, x->a[0], neg(p, y));
    if (x->op == E_Neg && y->op == E_Neg) return mul(p, x->a[0], y->a[0]);
    return NULL;
}

// The sum of a softmax: of exp(z - the largest z), 1 to the number of terms.
static bool is_softmax_sum(const Expr *e) {
    const Expr *power = e->op == E_Reduce && e->rop == RED_SUM ? e->a[0] : NULL,
               *z = power && power->op == E_Exp ? power->a[0] : NULL;
    const Expr *top = z && z->op == E_Sub && z->a[1]->op == E_Reduce ? z->a[1] : NULL;
    return top && (top->rop == RED_MAX || top->rop == RED_TOP);
}

// Dividing by a power of two is multiplying by its reciprocal, as long as that is a normal number.
static Expr *simplify_quotient(ExprPool *p, Expr *x, Expr *y) {
    int e;
    if (is_softmax_sum(y) && !const_is(x, 1)) return mul(p, x, expr_binary(p, E_Div, expr_const_f(p, y->dtype, 1), y));
    if (const_is(y, 1)) return x;
    if (const_is(y, -1)) return neg(p, x);
    if (!is_const(y)) return NULL;
    if (x->op == E_Neg) return expr_binary(p, E_Div, x->a[0], neg(p, y));
    if (fabs(frexp(y->c.f, &e)) == 0.5 && e > -100 && e < 100) return mul(p, x, expr_const_f(p, y->dtype, 1 / y->c.f));
    return NULL;
}

static Expr *simplify_float(ExprPool *p, EOp op, Expr *x, Expr *y) {
    switch (op) {
    case E_Add:
        if (const_is(y, -0.0)) return x;
        if (y->op == E_Neg) return expr_binary(p, E_Sub, x, y->a[0]);
        if (x->op == E_Neg) return expr_binary(p, E_Sub, y, x->a[0]);
        return NULL;
    case E_Sub:
        if (const_is(y, 0)) return x;
        return y->op == E_Neg ? expr_binary(p, E_Add, x, y->a[0]) : NULL;
    case E_Mul: return simplify_product(p, x, y);
    case E_Div: return simplify_quotient(p, x, y);
    case E_Min: case E_Max: return x == y ? x : NULL;
    case E_Pow: return simplify_pow(p, x, y);
    default: return NULL;
    }
}

// ---- integers

static Expr *simplify_int(ExprPool *p, EOp op, Expr *x, Expr *y) {
    bool zero = const_is(y, 0), one = const_is(y, 1);
    switch (op) {
    case E_Add:
        if (x->op == E_Add && is_const(y) && is_const(x->a[1]))
            return expr_binary(p, E_Add, x->a[0], expr_binary(p, E_Add, x->a[1], y));
        return zero ? x : NULL;
    case E_Sub:
        if (x == y) return expr_const_i(p, x->dtype, 0);
        if (is_const(y) && !zero && x->op == E_Add && is_const(x->a[1])) return expr_binary(p, E_Add, x, neg(p, y));
        return zero ? x : NULL;
    case E_Mul: return zero ? y : one ? x : NULL;
    case E_Div: return zero ? y : one ? x : NULL;
    case E_Mod: case E_FloorMod: return zero || one ? expr_const_i(p, x->dtype, 0) : NULL;
    case E_Pow: return simplify_pow(p, x, y);
    case E_Min: case E_Max: case E_BitAnd: case E_BitOr:
        if (x == y) return x;
        if (op == E_BitAnd && zero) return y;
        return op == E_BitOr && zero ? x : NULL;
    case E_BitXor: return x == y ? expr_const_i(p, x->dtype, 0) : zero ? x : NULL;
    case E_Shl: case E_Shr: return zero ? x : NULL;
    case E_Lt: case E_Ne: return x == y ? expr_const_i(p, DT_BOOL, 0) : NULL;
    case E_Le: case E_Eq: return x == y ? expr_const_i(p, DT_BOOL, 1) : NULL;
    default: return NULL;
    }
}

// ---- bools

// Does a being true (that is, not being false) settle b? Equal conditions, and bounds of one index.
static bool implies(const Expr *a, const Expr *b) {
    if (a == b) return true;
    if (a->op != E_Lt || b->op != E_Lt || a->a[0]->dtype != DT_INDEX || b->a[0]->dtype != DT_INDEX) return false;
    if (a->a[0] == b->a[0] && is_const(a->a[1]) && is_const(b->a[1])) return a->a[1]->c.i <= b->a[1]->c.i;
    return a->a[1] == b->a[1] && is_const(a->a[0]) && is_const(b->a[0]) && a->a[0]->c.i >= b->a[0]->c.i;
}

// Is b already settled by one of the conditions that `all`, a left spine of And, joins?
static bool settled(const Expr *all, const Expr *b) {
    for (int i = 0; i < 32 && all->op == E_And; i++, all = all->a[0])
        if (implies(all->a[1], b)) return true;
    return implies(all, b);
}

static bool opposite(const Expr *x, const Expr *y) {
    return (x->op == E_Not && x->a[0] == y) || (y->op == E_Not && y->a[0] == x);
}

static Expr *simplify_bool(ExprPool *p, EOp op, Expr *x, Expr *y) {
    bool is_true = const_is(y, 1), is_false = const_is(y, 0);
    switch (op) {
    case E_And:
        if (is_true || settled(x, y)) return x;
        if (is_false || implies(y, x)) return y;
        if (opposite(x, y)) return expr_const_i(p, DT_BOOL, 0);
        // a left spine
        if (y->op == E_And) return expr_binary(p, E_And, expr_binary(p, E_And, x, y->a[0]), y->a[1]);
        return NULL;
    case E_Or:
        if (is_false || x == y) return x;
        if (is_true) return y;
        return opposite(x, y) ? expr_const_i(p, DT_BOOL, 1) : NULL;
    case E_Xor: case E_Ne:
        if (x == y) return expr_const_i(p, DT_BOOL, 0);
        return is_false ? x : is_true ? expr_not(p, x) : NULL;
    case E_Eq:
        if (x == y) return expr_const_i(p, DT_BOOL, 1);
        return is_true ? x : is_false ? expr_not(p, x) : NULL;
    case E_Lt: return expr_binary(p, E_And, expr_not(p, x), y);         // false < true
    case E_Le: return expr_binary(p, E_Or, expr_not(p, x), y);
    default: return NULL;
    }
}

Expr *simplify_binary(ExprPool *p, EOp op, Expr *x, Expr *y) {
    if (dtype_is_float(x->dtype)) return simplify_float(p, op, x, y);
    return x->dtype == DT_BOOL ? simplify_bool(p, op, x, y) : simplify_int(p, op, x, y);
}

// ---- choice and casts

static Expr *select_bool(ExprPool *p, Expr *c, Expr *x, Expr *y) {
    if (const_is(y, 0)) return expr_binary(p, E_And, c, x);
    if (const_is(x, 1)) return expr_binary(p, E_Or, c, y);
    if (const_is(x, 0)) return expr_binary(p, E_And, expr_not(p, c), y);
    if (const_is(y, 1)) return expr_binary(p, E_Or, expr_not(p, c), x);
    return NULL;
}

Expr *simplify_select(ExprPool *p, Expr *c, Expr *x, Expr *y) {
    if (is_const(c)) return c->c.i ? x : y;
    if (x == y) return x;
    if (c->op == E_Not) return expr_select(p, c->a[0], y, x);
    if (x->op == E_Select && x->a[0] == c) return expr_select(p, c, x->a[1], y);
    if (y->op == E_Select && y->a[0] == c) return expr_select(p, c, x, y->a[2]);
    if (y->op == E_Select && y->a[1] == x) return expr_select(p, expr_binary(p, E_Or, c, y->a[0]), x, y->a[2]);
    return x->dtype == DT_BOOL ? select_bool(p, c, x, y) : NULL;
}

// Every value of `from` is a value of `to`.
static bool holds_all(DType to, DType from) {
    int64_t lo, hi, to_lo, to_hi;
    if (from == DT_BOOL) return true;
    if (dtype_is_float(from)) return to == DT_F64 ? from == DT_F32 || from == DT_F64 : to == from;
    int_bounds(from, &lo, &hi);
    if (dtype_is_float(to)) {
        int64_t exact = to == DT_F64 ? INT64_C(1) << 53 : to == DT_F32 ? 1 << 24 : 0;
        return lo >= -exact && hi <= exact;
    }
    if (to == DT_BOOL) return false;
    int_bounds(to, &to_lo, &to_hi);
    return from != DT_U64 && lo >= to_lo && hi <= to_hi;
}

Expr *simplify_cast(ExprPool *p, Expr *x, DType to) {
    if (x->op == E_Cast && !dtype_is_small_float(x->dtype) && holds_all(x->dtype, x->a[0]->dtype))
        return expr_cast(p, x->a[0], to);
    if (to == DT_BOOL && x->dtype != DT_BOOL) return expr_binary(p, E_Ne, x, expr_const_i(p, x->dtype, 0));
    return NULL;
}
