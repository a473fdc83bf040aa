// SPDX-License-Identifier: MIT OR Apache-2.0
// Factors of index expressions: integers and symbolic sizes under one name, and proofs that a symbolic sum is never
// negative.
//
// In: factors c * m (dim.h) and dimensions. Out: their sums, products and quotients, or "too large": nothing here is
// fatal, an index expression then stays as it was written. The idea: most factors are integers and stay machine
// arithmetic; the rest are dim.c's sums of products, divided as polynomials by their leading terms. A sum is provably
// >= 0 when it has no negative coefficient once every symbol s is written as lo + s', s' >= 0, and a subtracted c * d
// * floor(n / d) is replaced by the no smaller c * n.
#include "dim.h"

#include <string.h>

static bool overflows(int64_t c) { return c >= INT64_MAX || c <= -INT64_MAX; }

int64_t gcd(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t r = x % y;
        x = y, y = r;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

// ---- factors as sums and back

static bool sum_times(const Sum *x, const Sum *y, Sum *out) {
    sum_none(out);
    out->large = x->large || y->large;
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < y->n && !out->large; k++) {
            const Term *p = &x->terms[i], *q = &y->terms[k];
            Term t = { 0 };
            out->large = __builtin_mul_overflow(p->coef, q->coef, &t.coef) || t.coef == INT64_MIN
                || p->n + q->n > MAX_FACTORS;
            if (out->large) return false;
            term_factors(p, q, &t);
            sum_add(out, t);
        }
    return !out->large;
}

// No coefficient is INT64_MIN, so that each can be negated.
static bool factor_sum(const Graph *g, Factor f, Sum *out) {
    if (f.c == INT64_MIN) return false;
    sum_of(graph_root(g), f.m == 1 ? 0 : f.m, out);
    if (f.m == 1) sum_add(out, (Term){ .coef = f.c });
    else
        for (int i = 0; i < out->n; i++)
            if (__builtin_mul_overflow(out->terms[i].coef, f.c, &out->terms[i].coef)
                || out->terms[i].coef == INT64_MIN)
                return false;
    return !out->large;
}

static bool sum_factor(const Graph *g, const Sum *s, Factor *out) {
    Sum m;
    int64_t common = 0;
    *out = (Factor){ s->n ? s->terms[0].coef : 0, 1 };
    if (s->large) return false;
    sum_none(&m);
    m.n = s->n;
    memcpy(m.terms, s->terms, sizeof(Term) * (size_t)s->n);
    for (int i = 0; i < m.n; i++) {
        if (overflows(m.terms[i].coef)) return false;
        common = gcd(m.terms[i].coef, common);
    }
    if (m.n == 0 || (m.n == 1 && m.terms[0].n == 0)) return true;
    if (m.terms[0].coef < 0) common = -common;
    for (int i = 0; i < m.n; i++) m.terms[i].coef /= common;
    *out = (Factor){ common, dim_intern(graph_root(g), &m) };
    return true;
}

bool factor_of(const Graph *g, Dim d, Factor *out) {
    *out = (Factor){ d, 1 };
    if (dim_is_const(d)) return true;
    Sum s;
    sum_of(graph_root(g), d, &s);
    return sum_factor(g, &s, out);
}

bool factor_dim(const Graph *g, Factor f, Dim *out) {
    Sum s;
    *out = f.c == 1 ? f.m : f.c;
    if (f.c == 1 || (f.m == 1 && f.c >= 0)) return true;
    if (!factor_sum(g, f, &s)) return false;
    *out = dim_intern(graph_root(g), &s);
    return true;
}

// ---- arithmetic

bool factor_add(const Graph *g, Factor a, Factor b, Factor *out) {
    if (a.c == 0 || b.c == 0) {
        *out = a.c == 0 ? b : a;
        return true;
    }
    if (a.m == b.m) {
        bool bad = __builtin_add_overflow(a.c, b.c, &out->c) || out->c == INT64_MIN;
        out->m = out->c == 0 ? 1 : a.m;
        return !bad;
    }
    Sum x, y;
    if (!factor_sum(g, a, &x) || !factor_sum(g, b, &y)) return false;
    for (int i = 0; i < y.n; i++) sum_add(&x, y.terms[i]);
    return sum_factor(g, &x, out);
}

bool factor_mul(const Graph *g, Factor a, Factor b, Factor *out) {
    Sum x, y, z;
    bool bad = __builtin_mul_overflow(a.c, b.c, &out->c) || out->c == INT64_MIN;
    out->m = out->c == 0 ? 1 : a.m == 1 ? b.m : a.m;
    if (bad || out->c == 0 || a.m == 1 || b.m == 1) return !bad;
    if (!factor_sum(g, a, &x) || !factor_sum(g, b, &y) || !sum_times(&x, &y, &z)) return false;
    return sum_factor(g, &z, out);
}

bool factor_divide(const Graph *g, Factor a, Factor d, Factor *q, Factor *r) {
    enum { MAX_STEPS = 4 * MAX_TERMS };
    if (a.m == d.m) {
        *q = (Factor){ a.c / d.c, 1 };
        *r = (Factor){ a.c % d.c, a.c % d.c ? a.m : 1 };
        return true;
    }
    *q = (Factor){ 0, 1 }, *r = a;
    if (a.m == 1) return true;                  // an integer by a symbolic size
    Sum rest, by, quotient, kept, one, less;
    sum_none(&quotient);
    sum_none(&kept);
    if (!factor_sum(g, a, &rest) || !factor_sum(g, d, &by)) return false;
    for (int step = 0; rest.n; step++) {
        Term lead = rest.terms[0], t = lead;
        t.coef -= t.coef % by.terms[0].coef;
        if (step == MAX_STEPS || rest.large) return false;
        if (t.coef == 0 || !term_divide(&t, &by.terms[0])) {
            sum_add(&kept, lead);
            lead.coef = -lead.coef;
            sum_add(&rest, lead);
            continue;
        }
        sum_only(&one, t);
        sum_add(&quotient, t);
        if (!sum_times(&one, &by, &less)) return false;
        for (int i = 0; i < less.n; i++) {
            less.terms[i].coef = -less.terms[i].coef;
            sum_add(&rest, less.terms[i]);
        }
    }
    if (by.n > 1 && kept.n) return true;        // by a sum: whole or not at all
    return sum_factor(g, &quotient, q) && sum_factor(g, &kept, r);
}

static Dim common_factors(const Graph *g, Dim a, Dim b) {
    Sum x, y, both;
    sum_of(graph_root(g), a, &x);
    sum_of(graph_root(g), b, &y);
    sum_only(&both, (Term){ .coef = 1 });
    Term *t = &both.terms[0];
    if (x.n != 1 || y.n != 1) return 1;
    for (int i = 0, k = 0; i < x.terms[0].n && k < y.terms[0].n;) {
        int u = x.terms[0].atom[i], v = y.terms[0].atom[k];
        if (u == v) t->atom[t->n++] = u;
        if (u <= v) i++;
        if (v <= u) k++;
    }
    return t->n ? dim_intern(graph_root(g), &both) : 1;
}

Factor factor_common(const Graph *g, Factor a, Factor b) {
    Factor f = { gcd(a.c, b.c), 1 }, q, r, ma = { 1, a.m }, mb = { 1, b.m };
    if (a.m == b.m) f.m = a.m;
    else if (a.m == 1 || b.m == 1) f.m = 1;
    else if (factor_divide(g, ma, mb, &q, &r) && r.c == 0) f.m = b.m;
    else if (factor_divide(g, mb, ma, &q, &r) && r.c == 0) f.m = a.m;
    else f.m = common_factors(g, a.m, b.m);
    return f;
}

Factor factor_split(const Graph *g, Factor f, int64_t *constant) {
    Factor rest = { 0, 1 };
    Sum s;
    *constant = f.m == 1 ? f.c : 0;
    if (f.m == 1) return rest;
    if (!factor_sum(g, f, &s) || s.terms[s.n - 1].n) return f;
    *constant = s.terms[--s.n].coef;
    return sum_factor(g, &s, &rest) ? rest : f;
}

// ---- bounds

static bool add_bounds(const Graph *g, int n, const BoundTerm *terms, Sum *out) {
    Sum f, by, product;
    sum_none(out);
    for (int i = 0; i < n; i++) {
        sum_of(graph_root(g), terms[i].by, &by);
        if (!factor_sum(g, terms[i].f, &f) || !sum_times(&f, &by, &product)) return false;
        for (int k = 0; k < product.n; k++) sum_add(out, product.terms[k]);
    }
    return !out->large;
}

bool bound_sum(const Graph *g, int n, const BoundTerm *terms, Dim *out) {
    Sum s;
    if (!add_bounds(g, n, terms, &s)) return false;
    *out = dim_intern(graph_root(g), &s);
    return true;
}

static const Atom *atom_at(const Graph *g, int i) { return &((const Dims *)graph_root(g)->dims)->atoms.at[i]; }

static bool factors_nonnegative(const Graph *g, const Term *t) {
    for (int i = 0; i < t->n; i++)
        if (atom_range(g, atom_at(g, t->atom[i])).lo < 0) return false;
    return true;
}

static void drop_factor(Term *t, int k) {
    memmove(&t->atom[k], &t->atom[k + 1], sizeof(int) * (size_t)(t->n - k - 1));
    t->n--;
}

// -c * d * floor(num / d) * rest, with c, rest >= 0, is at least -c * num * rest. False when t has no such form.
static bool lift_division(const Graph *g, Sum *s, int at) {
    Sum den, num, one, lifted;
    Term t = s->terms[at];
    for (int k = 0; t.coef < 0 && k < t.n; k++) {
        const Atom *a = atom_at(g, t.atom[k]);
        if (a->symbol >= 0) continue;
        sum_of(graph_root(g), a->den, &den);
        sum_of(graph_root(g), a->num, &num);
        Term rest = t, negative = t;
        drop_factor(&rest, k);
        if (den.n != 1 || !term_divide(&rest, &den.terms[0]) || !factors_nonnegative(g, &rest)) continue;
        sum_only(&one, rest);
        if (!sum_times(&one, &num, &lifted)) return false;
        negative.coef = -negative.coef;
        sum_add(s, negative);
        for (int i = 0; i < lifted.n; i++) sum_add(s, lifted.terms[i]);
        return true;
    }
    return false;
}

// t with each atom written as lo + x: the products of some los with the other xs.
static bool add_shifted(const Graph *g, const Term *t, Sum *out) {
    enum { MAX_SHIFTED = 8 };
    if (t->n > MAX_SHIFTED) return false;
    for (unsigned kept = 0; kept < 1u << t->n; kept++) {
        Term part = { .coef = t->coef };
        for (int i = 0; i < t->n && part.coef; i++) {
            int64_t lo = atom_range(g, atom_at(g, t->atom[i])).lo;
            if (lo < 0) return false;
            if (kept >> i & 1) part.atom[part.n++] = t->atom[i];
            else if (__builtin_mul_overflow(part.coef, lo, &part.coef)) return false;
        }
        if (part.coef) sum_add(out, part);
    }
    return !out->large;
}

bool bound_is_nonnegative(const Graph *g, int n, const BoundTerm *terms) {
    enum { MAX_LIFTS = 16 };
    Sum s, shifted;
    sum_none(&shifted);
    if (!add_bounds(g, n, terms, &s)) return false;
    for (int i = 0, lifts = 0; i < s.n && lifts < MAX_LIFTS; i++)
        if (lift_division(g, &s, i)) i = -1, lifts++;
    for (int i = 0; i < s.n; i++)
        if (!add_shifted(g, &s.terms[i], &shifted)) return false;
    // what is negative in `shifted` at the symbols' upper bounds, and its constant
    int64_t least = 0;
    for (int i = 0; i < shifted.n; i++) {
        const Term *t = &shifted.terms[i];
        int64_t v = t->coef;
        if (overflows(v)) return false;
        if (v > 0 && t->n) continue;
        for (int k = 0; k < t->n; k++) {
            Range r = atom_range(g, atom_at(g, t->atom[k]));
            if (__builtin_mul_overflow(v, r.hi - r.lo, &v)) return false;
        }
        if (__builtin_add_overflow(least, v, &least)) return false;
    }
    return least >= 0;
}
