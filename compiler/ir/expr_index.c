// SPDX-License-Identifier: MIT OR Apache-2.0
// Index arithmetic: what makes chains of views free.
//
// In: + - * / % and comparisons of DT_INDEX expressions. Out: one canonical form, c0 + sum of factor * term, where a
// term is an axis, a division, a remainder, ... whose range is known. Division and remainder round toward minus
// infinity, so for any integers q and 0 <= r < d
//   floor((d*q + r) / d) = q        (d*q + r) mod d = r
// hold without conditions on signs; what a division cannot take out whole is narrowed by common factors and by ranges:
//   (64*a + b) / 64 -> a,   % 64 -> b     when 0 <= b < 64          (8*b + c) / 16 -> b / 2     when 0 <= c < 8
//   (x / 8) / 4 -> x / 32   (x % 64) / 8 -> (x / 8) % 8   (x % 64) % 8 -> x % 8   (x / 8) * 8 + x % 8 -> x
// A factor or divisor may be a symbolic size (dim_factor.c), and a term bounded by one: (b*S*768 + s*768 + h) / 768 %
// S -> s when 0 <= s < S. Divisors count as at least 1: where a size is 0, nothing that is divided by it is computed.
// Ranges saturate at the ends of int64, which stand for "unbounded"; sums that would overflow are left as they were
// written.
#include "dim.h"
#include "expr.h"

enum { LIN_MAX = 24 };                          // terms of one sum; longer ones are left alone
// t NULL: sizes alone, without a constant term
typedef struct Lin { int n; Expr *t[LIN_MAX]; Factor c[LIN_MAX]; int64_t c0; const Graph *g; bool bad; } Lin;

static Factor whole_number(int64_t v) { return (Factor){ v, 1 }; }
static bool is_number(Factor f) { return f.m == 1; }
static bool same_factor(Factor a, Factor b) { return a.c == b.c && a.m == b.m; }

static bool exactly(const Graph *g, Factor a, Factor d, Factor *q) {
    Factor r;
    return factor_divide(g, a, d, q, &r) && r.c == 0;
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

static int64_t sat_div(int64_t a, int64_t d) { return a == INT64_MIN || a == INT64_MAX ? a : floor_div(a, d); }
static bool bounded(int64_t lo, int64_t hi) { return lo != INT64_MIN && hi != INT64_MAX; }

static void product_range(Expr *e, const Expr *x, const Expr *y) {
    int64_t v[4] = { sat_mul(x->lo, y->lo), sat_mul(x->lo, y->hi), sat_mul(x->hi, y->lo), sat_mul(x->hi, y->hi) };
    e->lo = min64(min64(v[0], v[1]), min64(v[2], v[3]));
    e->hi = max64(max64(v[0], v[1]), max64(v[2], v[3]));
}

static int64_t negate(int64_t v) { return v == INT64_MIN ? INT64_MAX : v == INT64_MAX ? INT64_MIN : -v; }

static void plain_range(Expr *e) {
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
    case E_Reduce:
        if (y) e->lo = y->lo, e->hi = y->hi;
        break;
    case E_Cast:
        if (x->dtype == DT_BOOL) e->lo = 0, e->hi = 1;
        else if (dtype_is_int(x->dtype)) int_bounds(x->dtype, &e->lo, &e->hi);
        break;
    default: break;
    }
}

static int64_t wide(int64_t v) { return v <= -INT64_MAX ? INT64_MIN : v; }      // dimensions saturate at +-INT64_MAX

// The range of c*m times that of t, or of c*m alone.
static void term_range(const Lin *l, int i, int64_t *lo, int64_t *hi) {
    const Expr *t = l->t[i];
    Expr e = { .lo = l->c[i].c, .hi = l->c[i].c }, f = { .lo = 1, .hi = 1 };
    if (!is_number(l->c[i])) {
        f.lo = wide(dim_lower(l->g, l->c[i].m)), f.hi = dim_upper(l->g, l->c[i].m);
        product_range(&e, &(Expr){ .lo = e.lo, .hi = e.hi }, &f);
    }
    if (t) product_range(&e, &(Expr){ .lo = e.lo, .hi = e.hi }, t);
    *lo = e.lo, *hi = e.hi;
}

static void lin_range(const Lin *l, int64_t *lo, int64_t *hi) {
    *lo = *hi = l->c0;
    for (int i = 0; i < l->n; i++) {
        int64_t a, b;
        term_range(l, i, &a, &b);
        *lo = sat_add(*lo, a);
        *hi = sat_add(*hi, b);
    }
}

// ---- sums. No factor is ever INT64_MIN, so that signs can be turned.

static void lin_drop(Lin *l, int i) {
    l->n--;
    l->t[i] = l->t[l->n], l->c[i] = l->c[l->n];
}

static void lin_term(Lin *l, Expr *t, Factor k) {
    int i = 0;
    while (i < l->n && l->t[i] != t) i++;
    if (i == l->n) {
        if (l->n == LIN_MAX) {
            l->bad = true;
            return;
        }
        l->t[l->n] = t;
        l->c[l->n++] = whole_number(0);
    }
    l->bad |= !factor_add(l->g, l->c[i], k, &l->c[i]) || l->c[i].c == INT64_MIN;
    if (l->c[i].c == 0) lin_drop(l, i);
}

static void lin_size(Lin *l, Factor f) {
    int64_t c;
    Factor sizes = factor_split(l->g, f, &c);
    l->bad |= __builtin_add_overflow(l->c0, c, &l->c0) || l->c0 == INT64_MIN;
    if (sizes.c) lin_term(l, NULL, sizes);
}

static void lin_const(Lin *l, int64_t v, Factor k) {
    Factor f;
    l->bad |= !factor_mul(l->g, k, whole_number(v), &f);
    if (!l->bad) lin_size(l, f);
}

static bool size_of(const Expr *e, Factor *out);

// l += k * e. Sums in the pool are spines of at most LIN_MAX terms, so the recursion is shallow.
static void lin_add(Lin *l, Expr *e, Factor k) {
    Factor f;
    if (!l->g) l->g = e->graph;
    if (l->bad) return;
    if (is_const(e)) lin_const(l, e->c.i, k);
    else if (e->op == E_Add) lin_add(l, e->a[0], k), lin_add(l, e->a[1], k);
    else if (e->op == E_Sub) lin_add(l, e->a[0], k), lin_add(l, e->a[1], (Factor){ -k.c, k.m });
    else if (e->op == E_Size && factor_of(l->g, e->extent, &f) && factor_mul(l->g, k, f, &f)) lin_size(l, f);
    else if (e->op == E_Mul && size_of(e->a[1], &f) && factor_mul(l->g, k, f, &f) && f.c) lin_add(l, e->a[0], f);
    else lin_term(l, e, k);
}

static Lin lin_of(Expr *e) {
    Lin l = { .n = 0 };
    lin_add(&l, e, whole_number(1));
    return l;
}

// The sizes and the constant of l as one factor; *others is how many terms there are besides.
static Factor lin_bare(const Lin *l, int *others) {
    Factor f = whole_number(l->c0);
    *others = l->n;
    for (int i = 0; i < l->n; i++)
        if (!l->t[i]) {
            --*others;
            if (!factor_add(l->g, l->c[i], f, &f)) *others = -1;
        }
    return f;
}

// Is e a size: a constant or a symbolic dimension?
static bool size_of(const Expr *e, Factor *out) {
    int others;
    *out = whole_number(e->c.i);
    if (is_const(e)) return true;
    if (!e->graph || e->axes_used) return false;
    Lin l = lin_of((Expr *)e);
    *out = lin_bare(&l, &others);
    return !l.bad && others == 0;
}

static int lin_find(const Lin *l, const Expr *t, Factor c) {
    for (int i = 0; i < l->n; i++)
        if (l->t[i] == t && same_factor(l->c[i], c)) return i;
    return -1;
}

// ---- symbolic bounds

// l with each term at its least (or its most) as b[0] + ... + b[*n - 1]: a lower bound is a number, an upper one may
// be symbolic. False when a term has no such bound; *symbolic: something in it is no number.
static bool lin_bounds(const Lin *l, bool most, BoundTerm *b, int *n, bool *symbolic) {
    *n = 0;
    *symbolic = false;
    for (int i = 0; i < l->n; i++) {
        const Expr *t = l->t[i];
        Factor f = l->c[i];
        bool at_top = (f.c > 0) == most;
        int64_t bound = !t ? 1 : at_top ? t->hi : t->lo;
        *symbolic |= !is_number(f);
        if (t && !is_number(f) && dim_lower(l->g, f.m) < 0) return false;
        if (t && at_top && t->extent) {
            *symbolic = true;
            b[(*n)++] = (BoundTerm){ f, t->extent };
            b[(*n)++] = (BoundTerm){ { -f.c, f.m }, 1 };
            continue;
        }
        if (bound == INT64_MIN || bound == INT64_MAX || __builtin_mul_overflow(f.c, bound, &f.c)) return false;
        if (f.c) b[(*n)++] = (BoundTerm){ f, 1 };
    }
    b[(*n)++] = (BoundTerm){ whole_number(l->c0), 1 };
    return true;
}

// Provably l >= 0.
static bool lin_is_nonnegative(const Lin *l) {
    BoundTerm b[2 * LIN_MAX + 1];
    int64_t lo, hi;
    int n;
    bool symbolic;
    lin_range(l, &lo, &hi);
    if (l->bad || lo >= 0 || hi < 0 || !l->g) return !l->bad && lo >= 0;
    return lin_bounds(l, false, b, &n, &symbolic) && bound_is_nonnegative(l->g, n, b);
}

// k*l + f >= 0 for k = 1 or -1, provably.
static bool lin_reaches(const Lin *l, int64_t k, Factor f, int64_t plus) {
    Lin x = *l;
    for (int i = 0; i < x.n; i++) x.c[i].c *= k;
    x.c0 *= k;
    lin_size(&x, f);
    lin_size(&x, whole_number(plus));
    return lin_is_nonnegative(&x);
}

static bool lin_within(const Lin *l, Factor d) {                // 0 <= l < d
    int64_t lo, hi;
    lin_range(l, &lo, &hi);
    if (is_number(d) && lo >= 0 && hi < d.c) return true;
    if (!l->g || hi < 0) return false;
    return lin_is_nonnegative(l) && lin_reaches(l, -1, d, -1);
}

// An upper bound of l as a dimension. False when none is known, or numbers say as much.
static bool lin_top(const Lin *l, Dim *out) {
    BoundTerm b[2 * LIN_MAX + 1];
    int n;
    bool symbolic;
    if (!l->g || l->bad) return false;
    return lin_bounds(l, true, b, &n, &symbolic) && symbolic && bound_sum(l->g, n, b, out);
}

static bool expr_top(const Expr *e, Dim *out) {
    if (!e->graph) return false;
    Lin l = lin_of((Expr *)e);
    return lin_top(&l, out);
}

static bool dim_at_least(const Graph *g, Dim x, Dim y) {
    return bound_is_nonnegative(g, 2, (BoundTerm[]){ { whole_number(1), x }, { whole_number(-1), y } });
}

// The larger (or smaller) of two bounds, when one of them provably is.
static bool pick_bound(const Graph *g, bool larger, Dim x, Dim y, Dim *out) {
    bool x_over = dim_at_least(g, x, y);
    if (!x_over && !dim_at_least(g, y, x)) return false;
    *out = x_over == larger ? x : y;
    return true;
}

// The symbolic upper bound of a division, remainder or choice, and what it makes of the numbers.
static void size_range(Expr *e) {
    const Expr *x = e->a[0], *y = e->a[1], *z = e->a[2];
    Graph *g = graph_root(e->graph);
    Dim top, top_y, d;
    Factor by;
    bool known = false;
    switch (e->op) {
    case E_Div:
        if (!size_of(y, &by) || by.c <= 0 || !factor_dim(g, by, &d)) return;
        if (y->lo <= 0 && x->lo >= 0) e->lo = 0, e->hi = x->hi;
        known = expr_top(x, &top) || (!dim_is_const(d) && x->hi >= 0 && x->hi != INT64_MAX && (top = x->hi, true));
        if (known) top = dim_div(g, top, d);
        break;
    case E_Mod:
        if (!size_of(y, &by) || by.c <= 0 || !factor_dim(g, by, &d)) return;
        if (e->lo < 0) e->lo = 0, e->hi = y->hi == INT64_MAX ? INT64_MAX : max64(y->hi - 1, 0);
        known = !dim_is_const(d);
        if (known) top = dim_sub(g, d, 1);
        break;
    case E_Min: case E_Max: case E_Select: {
        bool has_x = expr_top(e->op == E_Select ? y : x, &top), has_y = expr_top(e->op == E_Select ? z : y, &top_y);
        known = has_x && has_y && pick_bound(g, e->op != E_Min, top, top_y, &top);
        if (!known && e->op == E_Min && (has_x || has_y)) {
            known = true;
            if (!has_x) top = top_y;
        }
        break;
    }
    case E_Sub: case E_Add:
        if (e->lo < 0) {
            Lin l = lin_of(e);
            if (lin_is_nonnegative(&l)) e->lo = 0;
        }
        return;
    default: return;
    }
    if (!known) return;
    e->extent = dim_add(g, top, 1);
    if (!dim_is_const(e->extent)) return;
    e->hi = min64(e->hi, max64(e->extent - 1, e->lo));
    e->extent = 0;
}

void index_range(Expr *e) {
    plain_range(e);
    if (e->op == E_Axis || e->op == E_Size || e->op == E_Const) return;
    for (int i = 0; i < 3 && !e->graph; i++)
        if (e->a[i] && e->a[i]->dtype == DT_INDEX) e->graph = e->a[i]->graph;
    if (e->graph) size_range(e);
}

// ---- joining, ordering, building

static Expr *idx_div(ExprPool *p, Expr *x, Factor d);
static Expr *idx_mod(ExprPool *p, Expr *x, Factor m);

static bool by_size(const Expr *e, EOp op, Factor *d) { return e && e->op == op && size_of(e->a[1], d) && d->c > 0; }

// One pair of terms that belong together: c*(x % m) and c*m*(x / m) are c*x; c*(x % m) and c*m*((x / m) % k) are c*(x
// % (m*k)).
static bool join_pair(ExprPool *p, Lin *l) {
    for (int i = 0; i < l->n; i++) {
        Expr *t = l->t[i];
        Factor c = l->c[i], cm, m, k, mk;
        if (!by_size(t, E_Mod, &m) || !factor_mul(l->g, c, m, &cm)) continue;
        Expr *q = idx_div(p, t->a[0], m);
        int j = lin_find(l, q, cm);
        if (j >= 0) {
            lin_drop(l, i > j ? i : j), lin_drop(l, i > j ? j : i);
            lin_add(l, t->a[0], c);
            return true;
        }
        for (j = 0; j < l->n; j++) {
            Expr *u = l->t[j];
            if (!same_factor(l->c[j], cm) || !by_size(u, E_Mod, &k) || !factor_mul(l->g, m, k, &mk)) continue;
            if (idx_mod(p, q, k) != u) continue;
            lin_drop(l, i > j ? i : j), lin_drop(l, i > j ? j : i);
            lin_add(l, idx_mod(p, t->a[0], mk), c);
            return true;
        }
    }
    return false;
}

// Positive factors first; sizes alone after the other terms; larger factors first, symbolic ones before numbers.
static bool goes_before(const Lin *l, int i, int j) {
    Factor a = l->c[i], b = l->c[j];
    if ((a.c > 0) != (b.c > 0)) return a.c > 0;
    if (!l->t[i] || !l->t[j]) return l->t[i] != NULL;
    if (a.m != b.m) return is_number(b) || (!is_number(a) && a.m < b.m);
    if (a.c != b.c) return a.c > 0 ? a.c > b.c : a.c < b.c;
    return l->t[i]->id < l->t[j]->id;
}

static void lin_sort(Lin *l) {
    for (int i = 1; i < l->n; i++)
        for (int j = i; j > 0 && goes_before(l, j, j - 1); j--) {
            Expr *t = l->t[j];
            Factor c = l->c[j];
            l->t[j] = l->t[j - 1], l->c[j] = l->c[j - 1];
            l->t[j - 1] = t, l->c[j - 1] = c;
        }
}

static Expr *make(ExprPool *p, EOp op, Expr *x, Expr *y) { return expr_make(p, op, DT_INDEX, x, y, NULL); }

// t times the absolute value of f
static Expr *scaled(ExprPool *p, const Graph *g, Expr *t, Factor f) {
    if (!is_number(f)) {
        Expr *size = expr_size_leaf(p, g, f.m);
        t = t ? make(p, E_Mul, t, size) : size;
    }
    int64_t c = f.c < 0 ? -f.c : f.c;
    return c == 1 ? t : make(p, E_Mul, t, expr_index(p, c));
}

// The canonical tree: positive factors from the largest down, then negative ones, then the constant. NULL when it
// overflowed.
static Expr *lin_build(ExprPool *p, Lin *l) {
    while (!l->bad && join_pair(p, l)) {}
    if (l->bad) return NULL;
    lin_sort(l);
    Expr *sum = l->n == 0 || (l->c[0].c < 0) ? expr_index(p, l->c0) : NULL;
    bool constant_done = sum != NULL;
    for (int i = 0; i < l->n; i++) {
        Expr *t = scaled(p, l->g, l->t[i], l->c[i]);
        sum = !sum ? t : make(p, l->c[i].c < 0 ? E_Sub : E_Add, sum, t);
    }
    if (constant_done || l->c0 == 0) return sum;
    if (l->c0 < 0) return make(p, E_Sub, sum, expr_index(p, -l->c0));
    return make(p, E_Add, sum, expr_index(p, l->c0));
}

// A size as a divisor stands in one leaf, integer factors included.
static Expr *divisor(ExprPool *p, const Graph *g, Factor d) {
    Dim size = 0;
    if (is_number(d)) return expr_index(p, d.c);
    if (!factor_dim(g, d, &size)) bug("a divisor that is too large");
    return expr_size_leaf(p, g, size);
}

Expr *index_size(ExprPool *p, const Graph *g, Dim d) {
    Lin l = { .g = g };
    Factor f;
    if (!factor_of(g, d, &f)) return expr_size_leaf(p, g, d);
    lin_size(&l, f);
    Expr *e = lin_build(p, &l);
    return e ? e : expr_size_leaf(p, g, d);
}

// ---- division and remainder by a positive constant or a size

// Splits l by g, when the terms whose factors g does not divide lie within [0, g): l = g*big + small. False otherwise.
static bool split_by(const Lin *l, Factor g, Lin *big, Lin *small) {
    Factor q;
    int others;
    *big = *small = (Lin){ .g = l->g };
    Factor bare = is_number(g) ? whole_number(0) : lin_bare(l, &others);
    // sizes and constant together, as in (S + 1) / (S + 1)
    bool takes_bare = !is_number(g) && exactly(l->g, bare, g, &q);
    if (takes_bare) lin_size(big, q);
    for (int i = 0; i < l->n; i++) {
        if (takes_bare && !l->t[i]) continue;
        if (exactly(l->g, l->c[i], g, &q)) {
            if (l->t[i]) lin_term(big, l->t[i], q);
            else lin_size(big, q);
        } else lin_term(small, l->t[i], l->c[i]);
    }
    if (is_number(g)) {
        lin_size(big, whole_number(floor_div(l->c0, g.c)));
        small->c0 = floor_mod(l->c0, g.c);
    } else if (!takes_bare) {
        small->c0 = l->c0;
    }
    return !big->bad && lin_within(small, g);
}

static bool exceeds(const Graph *g, Factor a, Factor b) {
    Factor q;
    if (a.m == b.m) return a.c > b.c;
    return is_number(b) || (!is_number(a) && exactly(g, (Factor){ 1, a.m }, (Factor){ 1, b.m }, &q));
}

// The largest common factor of d and one of l's factors that splits l; 1 when there is none.
static Factor best_split(const Lin *l, Factor d, Lin *big, Lin *small) {
    Factor best = whole_number(1);
    for (int i = 0; i < l->n; i++) {
        Lin b, s;
        Factor g = factor_common(l->g, l->c[i], d);
        if (exceeds(l->g, g, best) && split_by(l, g, &b, &s)) best = g, *big = b, *small = s;
    }
    return best;
}

static bool is_one(Factor f) { return f.c == 1 && is_number(f); }

// floor(l / d) when it is one number: by ranges, or 0 and -1 by symbolic bounds.
static bool known_quotient(const Lin *l, Factor d, int64_t *q) {
    int64_t lo, hi;
    lin_range(l, &lo, &hi);
    if (is_number(d) && bounded(lo, hi) && floor_div(lo, d.c) == floor_div(hi, d.c)) {
        *q = floor_div(lo, d.c);
        return true;
    }
    *q = 0;
    if (!l->g) return false;
    if (lin_within(l, d)) return true;
    *q = -1;
    return lin_reaches(l, -1, whole_number(-1), 0) && lin_reaches(l, 1, d, 0);
}

// floor(rest / d) where nothing of rest is a multiple of d.
static Expr *div_rest(ExprPool *p, Lin *rest, Factor d) {
    int64_t q;
    if (known_quotient(rest, d, &q)) return expr_index(p, q);
    Lin big, small;
    Factor g = best_split(rest, d, &big, &small), f, a;
    if (!is_one(g) && exactly(rest->g, d, g, &f)) {
        Expr *b = lin_build(p, &big);
        return b ? idx_div(p, b, f) : NULL;
    }
    bool lone = rest->n == 1 && is_one(rest->c[0]);
    if (lone && by_size(rest->t[0], E_Div, &a)) {               // (x/a + c) / d = (x + a*c) / (a*d)
        Lin x = lin_of(rest->t[0]->a[0]);
        lin_const(&x, rest->c0, a);
        if (factor_mul(rest->g, a, d, &f)) {
            Expr *e = lin_build(p, &x);
            if (e) return idx_div(p, e, f);
        }
    }
    if (lone && rest->c0 == 0 && by_size(rest->t[0], E_Mod, &a) && exactly(rest->g, a, d, &f))
        return idx_mod(p, idx_div(p, rest->t[0]->a[0], d), f);
    Expr *e = lin_build(p, rest);
    return e ? make(p, E_Div, e, divisor(p, rest->g, d)) : NULL;
}

static const Graph *graph_for(const ExprPool *p, const Expr *x, Factor d) {
    return is_number(d) ? x->graph : expr_pool_graph(p);
}

static Expr *idx_div(ExprPool *p, Expr *x, Factor d) {
    if (is_one(d)) return x;
    const Graph *graph = graph_for(p, x, d);
    Lin all = lin_of(x), whole = { .g = graph }, rest = { .g = graph };
    int others;
    Factor q, r, bare = is_number(d) ? whole_number(0) : lin_bare(&all, &others);
    bool takes_bare = !is_number(d) && exactly(graph, bare, d, &q);
    if (takes_bare) lin_size(&whole, q);
    for (int i = 0; i < all.n && !all.bad; i++) {
        if (takes_bare && !all.t[i]) continue;
        all.bad |= !factor_divide(graph, all.c[i], d, &q, &r);
        if (q.c && all.t[i]) lin_term(&whole, all.t[i], q);
        else if (q.c) lin_size(&whole, q);
        if (r.c) lin_term(&rest, all.t[i], r);
    }
    if (is_number(d)) {
        lin_size(&whole, whole_number(floor_div(all.c0, d.c)));
        rest.c0 = floor_mod(all.c0, d.c);
    } else if (!takes_bare) {
        rest.c0 = all.c0;
    }
    Expr *y = all.bad || rest.bad ? NULL : div_rest(p, &rest, d);
    if (!y) return make(p, E_Div, x, divisor(p, graph, d));
    lin_add(&whole, y, whole_number(1));
    Expr *e = lin_build(p, &whole);
    return e ? e : make(p, E_Div, x, divisor(p, graph, d));
}

// r += c*t modulo m
static void mod_term(Lin *r, Expr *t, Factor c, Factor m) {
    Factor q, left;
    if (!factor_divide(r->g, c, m, &q, &left)) r->bad = true;
    else if (left.c) lin_term(r, t, left);
}

// x modulo m, without multiples of m: factors and the constant are reduced, and (y % a) * c is y * c when m divides a
// * c.
static Lin mod_reduce(const Graph *g, const Lin *l, Factor m) {
    bool number = is_number(m);
    Lin r = { .g = g, .c0 = number ? floor_mod(l->c0, m.c) : l->c0 };
    for (int i = 0; i < l->n; i++) {
        Factor c, q, a, ac;
        r.bad |= !factor_divide(g, l->c[i], m, &q, &c);
        if (c.c == 0 || r.bad) continue;
        if (by_size(l->t[i], E_Mod, &a) && factor_mul(g, a, c, &ac) && exactly(g, ac, m, &q)) {
            Lin inner = { .g = g };
            lin_add(&inner, l->t[i]->a[0], c);
            for (int k = 0; k < inner.n && !inner.bad; k++) mod_term(&r, inner.t[k], inner.c[k], m);
            if (number) r.c0 = floor_mod(r.c0 + floor_mod(inner.c0, m.c), m.c);
            else lin_size(&r, whole_number(inner.c0));
            r.bad |= inner.bad;
        } else {
            lin_term(&r, l->t[i], c);
        }
    }
    for (int i = 0; i < r.n; i++) {             // what came together may have become a multiple
        Factor q, left;
        r.bad |= !factor_divide(g, r.c[i], m, &q, &left);
        r.c[i] = left;
        if (left.c == 0) lin_drop(&r, i--);
    }
    return r;
}

static Expr *idx_mod(ExprPool *p, Expr *x, Factor m) {
    const Graph *graph = graph_for(p, x, m);
    if (is_one(m)) return expr_index(p, 0);
    if (m.c > INT64_MAX / 4) return make(p, E_Mod, x, divisor(p, graph, m));
    Expr *plain = NULL, *e;
    Lin all = lin_of(x), big, small;
    int64_t q;
    if (!all.g) all.g = graph;
    if (!all.bad && is_number(m) && x->lo >= 0 && x->hi < m.c) return x;
    if (!all.bad && graph && lin_within(&all, m)) return x;
    Lin r = mod_reduce(graph, &all, m);
    Factor f, by;
    if (all.bad || r.bad) return make(p, E_Mod, x, divisor(p, graph, m));
    if (known_quotient(&r, m, &q)) {
        lin_const(&r, -q, m);
        plain = lin_build(p, &r);
        if (plain) return plain;
    }
    f = best_split(&r, m, &big, &small);
    // (f*big + small) % m = f*(big % (m/f)) + small
    if (!is_one(f) && exactly(graph, m, f, &by) && (e = lin_build(p, &big))) {
        lin_add(&small, idx_mod(p, e, by), f);
        if ((e = lin_build(p, &small))) return e;
    }
    e = lin_build(p, &r);
    return make(p, E_Mod, e ? e : x, divisor(p, graph, m));
}

// ---- operations

static Expr *idx_product(ExprPool *p, Expr *x, Expr *y) {
    Factor f;
    if (size_of(x, &f) && !is_const(y)) {
        Expr *t = x;
        x = y, y = t;
    }
    if (!size_of(y, &f)) return x->id < y->id ? make(p, E_Mul, x, y) : make(p, E_Mul, y, x);
    Lin l = { .g = y->graph };
    if (f.c) lin_add(&l, x, f);
    return lin_build(p, &l);
}

// NULL when nothing is known; the caller then makes the plain node.
Expr *index_binary(ExprPool *p, EOp op, Expr *x, Expr *y) {
    Lin l = { .n = 0 };
    Factor d;
    switch (op) {
    case E_Add: case E_Sub:
        lin_add(&l, x, whole_number(1));
        lin_add(&l, y, whole_number(op == E_Add ? 1 : -1));
        return lin_build(p, &l);
    case E_Mul: return idx_product(p, x, y);
    case E_Div: return size_of(y, &d) && d.c > 0 ? idx_div(p, x, d) : NULL;
    case E_Mod: case E_FloorMod: return size_of(y, &d) && d.c > 0 ? idx_mod(p, x, d) : make(p, E_Mod, x, y);
    case E_Min: case E_Max:
        lin_add(&l, x, whole_number(1));
        lin_add(&l, y, whole_number(-1));
        if (l.bad) return NULL;
        if (lin_reaches(&l, -1, whole_number(0), 0)) return op == E_Min ? x : y;
        if (lin_is_nonnegative(&l)) return op == E_Min ? y : x;
        return is_const(x) || (!is_const(y) && x->id > y->id) ? make(p, op, y, x) : NULL;
    default: return NULL;
    }
}

static Expr *truth(ExprPool *p, bool b) { return expr_const_i(p, DT_BOOL, b); }

// The two sides of  l (op) 0  with only positive factors on each; *k is the constant, moved to the right.
static void sides(const Lin *l, Lin *left, Lin *right) {
    *left = *right = (Lin){ .g = l->g };
    for (int i = 0; i < l->n; i++) {
        if (l->c[i].c > 0) lin_term(left, l->t[i], l->c[i]);
        else lin_term(right, l->t[i], (Factor){ -l->c[i].c, l->c[i].m });
    }
}

static void lin_divide(Lin *l, int64_t g) {
    for (int i = 0; i < l->n; i++) l->c[i].c /= g;
}

static int64_t lin_gcd(const Lin *l) {
    int64_t g = 0;
    for (int i = 0; i < l->n; i++) g = gcd(l->c[i].c, g);
    return g;
}

static Expr *less(ExprPool *p, Lin *l);

// floor(x/d) < k  is  x < k*d;  k < floor(x/d)  is  (k+1)*d - 1 < x, for sizes k. NULL when l is not of such a form.
static Expr *less_of_division(ExprPool *p, const Lin *l) {
    int others, at = 0;
    Factor d, k = lin_bare(l, &others);
    while (at < l->n && !l->t[at]) at++;
    if (others != 1 || !is_number(l->c[at]) || (l->c[at].c != 1 && l->c[at].c != -1) || !by_size(l->t[at], E_Div, &d))
        return NULL;
    Lin x = { .g = l->g };
    lin_add(&x, l->t[at]->a[0], l->c[at]);      // x/d + k < 0, or k - x/d < 0: k + 1 <= x/d
    if (!factor_mul(l->g, k, d, &k)) return NULL;
    lin_size(&x, k);
    if (l->c[at].c < 0) {
        lin_size(&x, d);
        lin_size(&x, whole_number(-1));
    }
    return x.bad ? NULL : less(p, &x);
}

// l < 0
static Expr *less(ExprPool *p, Lin *l) {
    if (lin_reaches(l, -1, whole_number(-1), 0)) return truth(p, true);
    if (lin_is_nonnegative(l)) return truth(p, false);
    int64_t g = lin_gcd(l);
    if (g > 1) {                                // g*s + c0 < 0  is  s + floor(c0 / g) < 0
        lin_divide(l, g);
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
    int64_t lo, hi, g = lin_gcd(l);
    lin_range(l, &lo, &hi);
    if (lo == 0 && hi == 0) return truth(p, true);
    if (lin_reaches(l, 1, whole_number(-1), 0) || lin_reaches(l, -1, whole_number(-1), 0)) return truth(p, false);
    if (g > 1) {
        if (l->c0 % g) return truth(p, false);
        lin_divide(l, g);
        l->c0 /= g;
    }
    lin_sort(l);
    if (l->n && l->c[0].c < 0) {
        for (int i = 0; i < l->n; i++) l->c[i].c = -l->c[i].c;
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
    lin_add(&l, x, whole_number(1));
    lin_add(&l, y, whole_number(-1));
    if (op == E_Le) lin_size(&l, whole_number(-1));             // x <= y is x - 1 < y
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
    if (x->op == E_Cast && x->a[0]->dtype == DT_INDEX && int_bounds(x->dtype, &lo, &hi) && x->a[0]->lo >= lo
        && x->a[0]->hi <= hi)
        return x->a[0];
    bool same = x->op == E_Add || x->op == E_Sub || x->op == E_Mul || x->op == E_Min || x->op == E_Max;
    bool mod = x->op == E_FloorMod && is_const(x->a[1]) && x->a[1]->c.i > 0, select = x->op == E_Select;
    if (x->dtype != DT_I64 || depth >= 8 || !(same || mod || select))
        return expr_make(p, E_Cast, DT_INDEX, x, NULL, NULL);
    Expr *a = push_cast(p, x->a[select ? 1 : 0], depth + 1), *b = push_cast(p, x->a[select ? 2 : 1], depth + 1);
    return select ? expr_select(p, x->a[0], a, b) : expr_binary(p, mod ? E_Mod : x->op, a, b);
}

Expr *index_cast(ExprPool *p, Expr *x) {
    return x->dtype == DT_BOOL || dtype_is_int(x->dtype) ? push_cast(p, x, 0) : NULL;
}

bool expr_affine(const Expr *e, int n_axes, int64_t *coef, int64_t *c0) {
    Lin l = lin_of((Expr *)e);
    for (int i = 0; i < n_axes; i++) coef[i] = 0;
    if (l.bad || e->dtype != DT_INDEX) return false;
    for (int i = 0; i < l.n; i++) {
        if (!l.t[i] || l.t[i]->op != E_Axis || l.t[i]->c.i >= n_axes || !is_number(l.c[i])) return false;
        coef[l.t[i]->c.i] = l.c[i].c;
    }
    *c0 = l.c0;
    return true;
}

bool expr_offset(const Expr *e, const Graph *g, Dim *c0) {
    Lin l = lin_of((Expr *)e);
    int others;
    Factor bare = lin_bare(&l, &others);
    return !l.bad && others >= 0 && factor_dim(g, bare, c0);
}

bool expr_affine_sizes(const Expr *e, const Graph *g, int n_axes, Dim *coef, Dim *c0) {
    Lin l = lin_of((Expr *)e);
    int others;
    for (int i = 0; i < n_axes; i++) coef[i] = 0;
    if (l.bad || e->dtype != DT_INDEX) return false;
    for (int i = 0; i < l.n; i++) {
        if (!l.t[i]) continue;
        if (l.t[i]->op != E_Axis || l.t[i]->c.i >= n_axes || !factor_dim(g, l.c[i], &coef[l.t[i]->c.i])) return false;
    }
    Factor bare = lin_bare(&l, &others);
    return others >= 0 && factor_dim(g, bare, c0);
}
