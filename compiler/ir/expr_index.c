// SPDX-License-Identifier: MIT OR Apache-2.0
// Index arithmetic: what makes chains of views free.
//
// In: + - * / % and comparisons of DT_INDEX expressions. Out: one canonical form, c0 + sum of factor * term, where a term is an axis, a division,
// a remainder, ... whose range is known. Division and remainder round toward minus infinity, so for any integers q and 0 <= r < d
//   floor((d*q + r) / d) = q        (d*q + r) mod d = r
// hold without conditions on signs; what a division cannot take out whole is narrowed by common factors and by ranges:
//   (64*a + b) / 64 -> a,   % 64 -> b     when 0 <= b < 64          (8*b + c) / 16 -> b / 2     when 0 <= c < 8
//   (x / 8) / 4 -> x / 32   (x % 64) / 8 -> (x / 8) % 8   (x % 64) % 8 -> x % 8   (x / 8) * 8 + x % 8 -> x
// Ranges saturate at the ends of int64, which stand for "unbounded"; sums that would overflow are left as they were written.
#include "ir/expr.h"

enum { LIN_MAX = 24 };                          // terms of one sum; longer ones are left alone
typedef struct Lin { int n; Expr *t[LIN_MAX]; int64_t c[LIN_MAX]; int64_t c0; bool bad; } Lin;

int64_t floor_div(int64_t x, int64_t d) { return x / d - (x % d < 0); }
static int64_t floor_mod(int64_t x, int64_t d) { return x % d < 0 ? x % d + d : x % d; }

static int64_t gcd(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t r = x % y;
        x = y, y = r;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

// ---- ranges

static int64_t sat_add(int64_t a, int64_t b) {
    int64_t s;
    if (a == INT64_MIN || a == INT64_MAX) return a;
    if (b == INT64_MIN || b == INT64_MAX) return b;
    if (__builtin_add_overflow(a, b, &s)) return a > 0 ? INT64_MAX : INT64_MIN;
    return s;
}

static int64_t sat_mul(int64_t a, int64_t b) {
    int64_t s;
    if (!__builtin_mul_overflow(a, b, &s)) return s;
    return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t sat_div(int64_t a, int64_t d) { return a == INT64_MIN || a == INT64_MAX ? a : floor_div(a, d); }
static bool bounded(int64_t lo, int64_t hi) { return lo != INT64_MIN && hi != INT64_MAX; }

static void product_range(Expr *e, const Expr *x, const Expr *y) {
    int64_t v[4] = { sat_mul(x->lo, y->lo), sat_mul(x->lo, y->hi), sat_mul(x->hi, y->lo), sat_mul(x->hi, y->hi) };
    e->lo = min64(min64(v[0], v[1]), min64(v[2], v[3]));
    e->hi = max64(max64(v[0], v[1]), max64(v[2], v[3]));
}

static int64_t negate(int64_t v) { return v == INT64_MIN ? INT64_MAX : v == INT64_MAX ? INT64_MIN : -v; }

void index_range(Expr *e) {
    const Expr *x = e->a[0], *y = e->a[1];
    if (e->op == E_Axis || e->op == E_Size) return;
    e->lo = INT64_MIN, e->hi = INT64_MAX;
    switch (e->op) {
    case E_Const: e->lo = e->hi = e->c.i; break;
    case E_Add: e->lo = sat_add(x->lo, y->lo), e->hi = sat_add(x->hi, y->hi); break;
    case E_Sub: e->lo = sat_add(x->lo, negate(y->hi)), e->hi = sat_add(x->hi, negate(y->lo)); break;
    case E_Mul: product_range(e, x, y); break;
    case E_Div:
        if (y->lo > 0) {
            e->lo = min64(sat_div(x->lo, y->lo), sat_div(x->lo, y->hi));
            e->hi = max64(sat_div(x->hi, y->lo), sat_div(x->hi, y->hi));
        }
        break;
    case E_Mod: case E_FloorMod:
        if (y->lo > 0) e->lo = 0, e->hi = y->hi == INT64_MAX ? INT64_MAX : y->hi - 1;
        if (y->lo > 0 && x->lo >= 0) e->hi = min64(e->hi, x->hi);
        break;
    case E_Min: e->lo = min64(x->lo, y->lo), e->hi = min64(x->hi, y->hi); break;
    case E_Max: e->lo = max64(x->lo, y->lo), e->hi = max64(x->hi, y->hi); break;
    case E_Select: e->lo = min64(y->lo, e->a[2]->lo), e->hi = max64(y->hi, e->a[2]->hi); break;
    case E_Reduce: if (y) e->lo = y->lo, e->hi = y->hi; break;
    case E_Cast:
        if (x->dtype == DT_BOOL) e->lo = 0, e->hi = 1;
        else if (dtype_is_int(x->dtype)) int_bounds(x->dtype, &e->lo, &e->hi);
        break;
    default: break;
    }
}

static void lin_range(const Lin *l, int64_t *lo, int64_t *hi) {
    *lo = *hi = l->c0;
    for (int i = 0; i < l->n; i++) {
        int64_t a = sat_mul(l->c[i], l->t[i]->lo), b = sat_mul(l->c[i], l->t[i]->hi);
        *lo = sat_add(*lo, min64(a, b));
        *hi = sat_add(*hi, max64(a, b));
    }
}

// ---- sums. No factor is ever INT64_MIN, so that signs can be turned.

static void lin_drop(Lin *l, int i) {
    l->n--;
    l->t[i] = l->t[l->n], l->c[i] = l->c[l->n];
}

static void lin_term(Lin *l, Expr *t, int64_t k) {
    int i = 0;
    while (i < l->n && l->t[i] != t) i++;
    if (i == l->n) {
        if (l->n == LIN_MAX) { l->bad = true; return; }
        l->t[l->n] = t;
        l->c[l->n++] = 0;
    }
    l->bad |= __builtin_add_overflow(l->c[i], k, &l->c[i]) || l->c[i] == INT64_MIN;
    if (l->c[i] == 0) lin_drop(l, i);
}

static void lin_const(Lin *l, int64_t v, int64_t k) {
    int64_t kv;
    l->bad |= __builtin_mul_overflow(k, v, &kv) || __builtin_add_overflow(l->c0, kv, &l->c0) || l->c0 == INT64_MIN;
}

// l += k * e. Sums in the pool are spines of at most LIN_MAX terms, so the recursion is shallow.
static void lin_add(Lin *l, Expr *e, int64_t k) {
    int64_t f;
    if (l->bad) return;
    if (is_const(e)) lin_const(l, e->c.i, k);
    else if (e->op == E_Add) lin_add(l, e->a[0], k), lin_add(l, e->a[1], k);
    else if (e->op == E_Sub) lin_add(l, e->a[0], k), lin_add(l, e->a[1], -k);
    else if (e->op == E_Mul && is_const(e->a[1]) && !__builtin_mul_overflow(k, e->a[1]->c.i, &f) && f != INT64_MIN) lin_add(l, e->a[0], f);
    else lin_term(l, e, k);
}

static Lin lin_of(Expr *e) {
    Lin l = { .n = 0 };
    lin_add(&l, e, 1);
    return l;
}

static int lin_find(const Lin *l, const Expr *t, int64_t c) {
    for (int i = 0; i < l->n; i++)
        if (l->t[i] == t && l->c[i] == c) return i;
    return -1;
}

static Expr *idx_div(ExprPool *p, Expr *x, int64_t d);
static Expr *idx_mod(ExprPool *p, Expr *x, int64_t m);
static bool by_const(const Expr *e, EOp op) { return e->op == op && is_const(e->a[1]) && e->a[1]->c.i > 0; }

// One pair of terms that belong together: c*(x % m) and c*m*(x / m) are c*x; c*(x % m) and c*m*((x / m) % k) are c*(x % (m*k)).
static bool join_pair(ExprPool *p, Lin *l) {
    for (int i = 0; i < l->n; i++) {
        Expr *t = l->t[i];
        int64_t c = l->c[i], cm, mk;
        if (!by_const(t, E_Mod) || __builtin_mul_overflow(c, t->a[1]->c.i, &cm)) continue;
        Expr *q = idx_div(p, t->a[0], t->a[1]->c.i);
        int j = lin_find(l, q, cm);
        if (j >= 0) {
            lin_drop(l, i > j ? i : j), lin_drop(l, i > j ? j : i);
            lin_add(l, t->a[0], c);
            return true;
        }
        for (j = 0; j < l->n; j++) {
            Expr *u = l->t[j];
            if (l->c[j] != cm || !by_const(u, E_Mod) || __builtin_mul_overflow(t->a[1]->c.i, u->a[1]->c.i, &mk)) continue;
            if (idx_mod(p, q, u->a[1]->c.i) != u) continue;
            lin_drop(l, i > j ? i : j), lin_drop(l, i > j ? j : i);
            lin_add(l, idx_mod(p, t->a[0], mk), c);
            return true;
        }
    }
    return false;
}

static bool goes_before(const Lin *l, int i, int j) {
    if ((l->c[i] > 0) != (l->c[j] > 0)) return l->c[i] > 0;
    if (l->c[i] != l->c[j]) return l->c[i] > 0 ? l->c[i] > l->c[j] : l->c[i] < l->c[j];
    return l->t[i]->id < l->t[j]->id;
}

static void lin_sort(Lin *l) {
    for (int i = 1; i < l->n; i++)
        for (int j = i; j > 0 && goes_before(l, j, j - 1); j--) {
            Expr *t = l->t[j];
            int64_t c = l->c[j];
            l->t[j] = l->t[j - 1], l->c[j] = l->c[j - 1];
            l->t[j - 1] = t, l->c[j - 1] = c;
        }
}

static Expr *make(ExprPool *p, EOp op, Expr *x, Expr *y) { return expr_make(p, op, DT_INDEX, x, y, NULL); }

// The canonical tree: positive factors from the largest down, then negative ones, then the constant. NULL when it overflowed.
static Expr *lin_build(ExprPool *p, Lin *l) {
    while (!l->bad && join_pair(p, l)) {}
    if (l->bad) return NULL;
    lin_sort(l);
    Expr *sum = l->n == 0 || (l->c[0] < 0) ? expr_index(p, l->c0) : NULL;
    bool constant_done = sum != NULL;
    for (int i = 0; i < l->n; i++) {
        int64_t f = l->c[i] < 0 ? -l->c[i] : l->c[i];
        Expr *t = f == 1 ? l->t[i] : make(p, E_Mul, l->t[i], expr_index(p, f));
        sum = !sum ? t : make(p, l->c[i] < 0 ? E_Sub : E_Add, sum, t);
    }
    if (constant_done || l->c0 == 0) return sum;
    if (l->c0 < 0) return make(p, E_Sub, sum, expr_index(p, -l->c0));
    return make(p, E_Add, sum, expr_index(p, l->c0));
}

// ---- division and remainder by a positive constant

// Splits l by g, when the terms whose factors g does not divide lie within [0, g): l = g*big + small. False otherwise.
static bool split_by(const Lin *l, int64_t g, Lin *big, Lin *small) {
    *big = *small = (Lin){ .n = 0 };
    for (int i = 0; i < l->n; i++) {
        if (l->c[i] % g == 0) lin_term(big, l->t[i], l->c[i] / g);
        else lin_term(small, l->t[i], l->c[i]);
    }
    big->c0 = floor_div(l->c0, g);
    small->c0 = l->c0 - big->c0 * g;
    int64_t lo, hi;
    lin_range(small, &lo, &hi);
    return lo >= 0 && hi < g;
}

// The largest common factor of d and one of l's factors that splits l; 1 when there is none.
static int64_t best_split(const Lin *l, int64_t d, Lin *big, Lin *small) {
    int64_t best = 1;
    for (int i = 0; i < l->n; i++) {
        Lin b, s;
        int64_t g = gcd(l->c[i], d);
        if (g > best && split_by(l, g, &b, &s)) best = g, *big = b, *small = s;
    }
    return best;
}

// floor(rest / d) where nothing of rest is a multiple of d.
static Expr *div_rest(ExprPool *p, Lin *rest, int64_t d) {
    int64_t lo, hi, f;
    lin_range(rest, &lo, &hi);
    if (bounded(lo, hi) && floor_div(lo, d) == floor_div(hi, d)) return expr_index(p, floor_div(lo, d));
    Lin big, small;
    int64_t g = best_split(rest, d, &big, &small);
    if (g > 1) {
        Expr *b = lin_build(p, &big);
        return b ? idx_div(p, b, d / g) : NULL;
    }
    if (rest->n == 1 && rest->c[0] == 1 && by_const(rest->t[0], E_Div)) {       // (x/a + c) / d = (x + a*c) / (a*d)
        int64_t a = rest->t[0]->a[1]->c.i;
        Lin x = lin_of(rest->t[0]->a[0]);
        lin_const(&x, rest->c0, a);
        if (!__builtin_mul_overflow(a, d, &f)) {
            Expr *e = lin_build(p, &x);
            if (e) return idx_div(p, e, f);
        }
    }
    if (rest->n == 1 && rest->c[0] == 1 && rest->c0 == 0 && by_const(rest->t[0], E_Mod) && rest->t[0]->a[1]->c.i % d == 0)
        return idx_mod(p, idx_div(p, rest->t[0]->a[0], d), rest->t[0]->a[1]->c.i / d);
    Expr *e = lin_build(p, rest);
    return e ? make(p, E_Div, e, expr_index(p, d)) : NULL;
}

static Expr *idx_div(ExprPool *p, Expr *x, int64_t d) {
    if (d == 1) return x;
    Lin all = lin_of(x), whole = { .n = 0 }, rest = { .n = 0 };
    for (int i = 0; i < all.n && !all.bad; i++) {
        if (all.c[i] / d) lin_term(&whole, all.t[i], all.c[i] / d);
        if (all.c[i] % d) lin_term(&rest, all.t[i], all.c[i] % d);
    }
    whole.c0 = floor_div(all.c0, d);
    rest.c0 = floor_mod(all.c0, d);
    Expr *r = all.bad ? NULL : div_rest(p, &rest, d);
    if (!r) return make(p, E_Div, x, expr_index(p, d));
    lin_add(&whole, r, 1);
    Expr *e = lin_build(p, &whole);
    return e ? e : make(p, E_Div, x, expr_index(p, d));
}

// x modulo m, without multiples of m: factors and the constant are reduced, and (y % a) * c is y * c when m divides a * c.
static Lin mod_reduce(const Lin *l, int64_t m) {
    Lin r = { .c0 = floor_mod(l->c0, m) };
    for (int i = 0; i < l->n; i++) {
        int64_t c = l->c[i] % m, ac;
        if (c == 0) continue;
        if (by_const(l->t[i], E_Mod) && !__builtin_mul_overflow(l->t[i]->a[1]->c.i, c, &ac) && ac % m == 0) {
            Lin inner = { .n = 0 };
            lin_add(&inner, l->t[i]->a[0], c);
            for (int k = 0; k < inner.n && !inner.bad; k++)
                if (inner.c[k] % m) lin_term(&r, inner.t[k], inner.c[k] % m);
            r.c0 = floor_mod(r.c0 + floor_mod(inner.c0, m), m);
            r.bad |= inner.bad;
        } else {
            lin_term(&r, l->t[i], c);
        }
    }
    for (int i = 0; i < r.n; i++) {             // what came together may have become a multiple
        r.c[i] %= m;
        if (r.c[i] == 0) lin_drop(&r, i--);
    }
    return r;
}

static Expr *idx_mod(ExprPool *p, Expr *x, int64_t m) {
    if (m == 1) return expr_index(p, 0);
    if (m > INT64_MAX / 4) return make(p, E_Mod, x, expr_index(p, m));
    Expr *plain = NULL, *e;
    Lin all = lin_of(x), big, small;
    if (!all.bad && x->lo >= 0 && x->hi < m) return x;
    Lin r = mod_reduce(&all, m);
    int64_t lo, hi;
    lin_range(&r, &lo, &hi);
    if (all.bad || r.bad) return make(p, E_Mod, x, expr_index(p, m));
    if (bounded(lo, hi) && floor_div(lo, m) == floor_div(hi, m)) {
        lin_const(&r, -floor_div(lo, m), m);
        plain = lin_build(p, &r);
        if (plain) return plain;
    }
    int64_t g = best_split(&r, m, &big, &small);
    if (g > 1 && (e = lin_build(p, &big))) {    // (g*big + small) % m = g*(big % (m/g)) + small
        lin_add(&small, idx_mod(p, e, m / g), g);
        if ((e = lin_build(p, &small))) return e;
    }
    e = lin_build(p, &r);
    return make(p, E_Mod, e ? e : x, expr_index(p, m));
}

// ---- operations

static Expr *idx_product(ExprPool *p, Expr *x, Expr *y) {
    if (is_const(x)) {
        Expr *t = x;
        x = y, y = t;
    }
    if (!is_const(y)) return x->id < y->id ? make(p, E_Mul, x, y) : make(p, E_Mul, y, x);
    Lin l = { .n = 0 };
    lin_add(&l, x, y->c.i);
    return lin_build(p, &l);
}

// NULL when nothing is known; the caller then makes the plain node.
Expr *index_binary(ExprPool *p, EOp op, Expr *x, Expr *y) {
    Lin l = { .n = 0 };
    int64_t lo, hi;
    switch (op) {
    case E_Add: case E_Sub:
        lin_add(&l, x, 1);
        lin_add(&l, y, op == E_Add ? 1 : -1);
        return lin_build(p, &l);
    case E_Mul: return idx_product(p, x, y);
    case E_Div: return is_const(y) && y->c.i > 0 ? idx_div(p, x, y->c.i) : NULL;
    case E_Mod: case E_FloorMod: return is_const(y) && y->c.i > 0 ? idx_mod(p, x, y->c.i) : make(p, E_Mod, x, y);
    case E_Min: case E_Max:
        lin_add(&l, x, 1);
        lin_add(&l, y, -1);
        if (l.bad) return NULL;
        lin_range(&l, &lo, &hi);
        if (hi <= 0) return op == E_Min ? x : y;
        if (lo >= 0) return op == E_Min ? y : x;
        return is_const(x) || (!is_const(y) && x->id > y->id) ? make(p, op, y, x) : NULL;
    default: return NULL;
    }
}

static Expr *truth(ExprPool *p, bool b) { return expr_const_i(p, DT_BOOL, b); }

// The two sides of  l (op) 0  with only positive factors on each; *k is the constant, moved to the right.
static void sides(const Lin *l, Lin *left, Lin *right) {
    *left = *right = (Lin){ .n = 0 };
    for (int i = 0; i < l->n; i++) {
        if (l->c[i] > 0) lin_term(left, l->t[i], l->c[i]);
        else lin_term(right, l->t[i], -l->c[i]);
    }
}

static Expr *less(ExprPool *p, Lin *l);

// floor(x/d) < k  is  x < k*d;  k < floor(x/d)  is  (k+1)*d - 1 < x. NULL when l is not of such a form.
static Expr *less_of_division(ExprPool *p, const Lin *l) {
    if (l->n != 1 || !by_const(l->t[0], E_Div) || (l->c[0] != 1 && l->c[0] != -1)) return NULL;
    int64_t d = l->t[0]->a[1]->c.i;
    Lin x = { .n = 0 };
    if (l->c[0] == 1) {                         // x/d + c0 < 0
        lin_add(&x, l->t[0]->a[0], 1);
        lin_const(&x, l->c0, d);
    } else {                                    // c0 - x/d < 0: c0 + 1 <= x/d
        lin_add(&x, l->t[0]->a[0], -1);
        lin_const(&x, l->c0, d);
        lin_const(&x, d - 1, 1);
    }
    return x.bad ? NULL : less(p, &x);
}

// l < 0
static Expr *less(ExprPool *p, Lin *l) {
    int64_t lo, hi, g = 0;
    lin_range(l, &lo, &hi);
    if (hi < 0) return truth(p, true);
    if (lo >= 0) return truth(p, false);
    for (int i = 0; i < l->n; i++) g = gcd(l->c[i], g);
    if (g > 1) {                                // g*s + c0 < 0  is  s + floor(c0 / g) < 0
        for (int i = 0; i < l->n; i++) l->c[i] /= g;
        l->c0 = floor_div(l->c0, g);
    }
    Expr *e = less_of_division(p, l);
    if (e) return e;
    Lin left, right;
    sides(l, &left, &right);
    if (left.n) right.c0 = -l->c0;
    else left.c0 = l->c0;
    Expr *x = lin_build(p, &left), *y = lin_build(p, &right);
    return x && y ? expr_make(p, E_Lt, DT_BOOL, x, y, NULL) : NULL;
}

static Expr *equal(ExprPool *p, Lin *l) {
    int64_t lo, hi, g = 0;
    lin_range(l, &lo, &hi);
    if (lo > 0 || hi < 0) return truth(p, false);
    if (lo == 0 && hi == 0) return truth(p, true);
    for (int i = 0; i < l->n; i++) g = gcd(l->c[i], g);
    if (g > 1) {
        if (l->c0 % g) return truth(p, false);
        for (int i = 0; i < l->n; i++) l->c[i] /= g;
        l->c0 /= g;
    }
    lin_sort(l);
    if (l->n && l->c[0] < 0) {
        for (int i = 0; i < l->n; i++) l->c[i] = -l->c[i];
        l->c0 = -l->c0;
    }
    Lin left, right;
    sides(l, &left, &right);
    right.c0 = -l->c0;
    Expr *x = lin_build(p, &left), *y = lin_build(p, &right);
    return x && y ? expr_make(p, E_Eq, DT_BOOL, x, y, NULL) : NULL;
}

Expr *index_compare(ExprPool *p, EOp op, Expr *x, Expr *y) {
    Lin l = { .n = 0 };
    lin_add(&l, x, 1);
    lin_add(&l, y, -1);
    if (op == E_Le) lin_const(&l, -1, 1);       // x <= y is x - 1 < y
    while (!l.bad && join_pair(p, &l)) {}
    if (l.bad) return NULL;
    if (op == E_Lt || op == E_Le) return less(p, &l);
    Expr *e = equal(p, &l);
    if (!e || op == E_Eq) return e;
    return is_const(e) ? truth(p, !e->c.i) : expr_make(p, E_Ne, DT_BOOL, e->a[0], e->a[1], NULL);
}

// i64 arithmetic on addresses is taken not to overflow, so the cast moves to its operands, down to loads and casts.
static Expr *push_cast(ExprPool *p, Expr *x, int depth) {
    int64_t lo, hi;
    if (x->dtype == DT_INDEX) return x;
    if (is_const(x)) return expr_index(p, x->c.i);
    if (x->op == E_Cast && x->a[0]->dtype == DT_INDEX && int_bounds(x->dtype, &lo, &hi) && x->a[0]->lo >= lo && x->a[0]->hi <= hi) return x->a[0];
    bool same = x->op == E_Add || x->op == E_Sub || x->op == E_Mul || x->op == E_Min || x->op == E_Max;
    bool mod = x->op == E_FloorMod && is_const(x->a[1]) && x->a[1]->c.i > 0, select = x->op == E_Select;
    if (x->dtype != DT_I64 || depth >= 8 || !(same || mod || select)) return expr_make(p, E_Cast, DT_INDEX, x, NULL, NULL);
    Expr *a = push_cast(p, x->a[select ? 1 : 0], depth + 1), *b = push_cast(p, x->a[select ? 2 : 1], depth + 1);
    return select ? expr_select(p, x->a[0], a, b) : expr_binary(p, mod ? E_Mod : x->op, a, b);
}

Expr *index_cast(ExprPool *p, Expr *x) { return x->dtype == DT_BOOL || dtype_is_int(x->dtype) ? push_cast(p, x, 0) : NULL; }

bool expr_affine(const Expr *e, int n_axes, int64_t *coef, int64_t *c0) {
    Lin l = lin_of((Expr *)e);
    for (int i = 0; i < n_axes; i++) coef[i] = 0;
    if (l.bad || e->dtype != DT_INDEX) return false;
    for (int i = 0; i < l.n; i++) {
        if (l.t[i]->op != E_Axis || l.t[i]->c.i >= n_axes) return false;
        coef[l.t[i]->c.i] = l.c[i];
    }
    *c0 = l.c0;
    return true;
}
