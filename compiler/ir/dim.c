// SPDX-License-Identifier: MIT OR Apache-2.0
// Symbolic dimensions: a Dim below 0 names an expression over symbols in a table that a graph and its bodies share.
//
// In: symbols and constants combined by + - * / (floor). Out: interned expressions; equal ones are the same number.
// The idea: every expression is kept as a sum of products  sum_i c_i * atom_i1 * atom_i2 ...  in a fixed order, where
// an atom is a symbol or a floor division that did not simplify; so 2*(n + 1) - 2 is n + n is 2*n. Whatever a divisor
// divides exactly leaves the division: floor((d*a + b) / d) = a + floor(b / d). A ceiling is a floor: ceil(a / b) =
// floor((a + b - 1) / b). Symbols count as at least 0 and divisors as at least 1; arithmetic saturates.
#include "dim.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64                            // of parentheses in text

static bool terms_equal(int n, const Term *x, const Term *y) {
    for (int i = 0; i < n; i++)
        if (x[i].coef != y[i].coef || x[i].n != y[i].n || memcmp(x[i].atom, y[i].atom, sizeof(int) * (size_t)x[i].n))
            return false;
    return true;
}

// Where a sum of these terms is, or belongs.
static int *table_slot(const Dims *t, int n, const Term *terms) {
    uint64_t h = (uint64_t)n;
    for (int i = 0; i < n; i++) {
        h = (h ^ (uint64_t)terms[i].coef) * UINT64_C(0x9e3779b97f4a7c15);
        for (int k = 0; k < terms[i].n; k++)
            h = (h ^ h >> 29 ^ (uint64_t)terms[i].atom[k]) * UINT64_C(0xbf58476d1ce4e5b9);
    }
    for (size_t at = (size_t)(h ^ h >> 32) & t->mask;; at = (at + 1) & t->mask) {
        const Poly *p = t->table[at] ? &t->polys.at[t->table[at] - 1] : NULL;
        if (!p || (p->n == n && terms_equal(n, p->terms, terms))) return &t->table[at];
    }
}

static void table_grow(Arena *a, Dims *t) {
    size_t size = 64;
    while (size < (size_t)t->polys.n * 4) size *= 2;
    t->table = NEW_ARRAY(a, int, size);
    t->mask = size - 1;
    for (int i = 0; i < t->polys.n; i++) *table_slot(t, t->polys.at[i].n, t->polys.at[i].terms) = i + 1;
}

static Dims *dims_of(Graph *g) {
    Graph *root = graph_root(g);
    if (!root->dims) root->dims = NEW(root->arena, Dims);
    return root->dims;
}

// A clone's table starts as a copy: both may add expressions of their own.
void *dims_clone(Arena *a, const Graph *g) {
    const Dims *from = graph_root(g)->dims;
    Dims *to = NEW(a, Dims);
    if (!from) return to;
    for (int i = 0; i < from->atoms.n; i++) VEC_PUSH(a, to->atoms, from->atoms.at[i]);
    for (int i = 0; i < from->polys.n; i++) VEC_PUSH(a, to->polys, from->polys.at[i]);
    table_grow(a, to);
    return to;
}

static int64_t saturate(__int128 v) { return v > INT64_MAX ? INT64_MAX : v < -INT64_MAX ? -INT64_MAX : (int64_t)v; }
static int64_t times(int64_t a, int64_t b) { return saturate((__int128)a * b); }
static int64_t plus(int64_t a, int64_t b) { return saturate((__int128)a + b); }

// ---- sums of products

static int term_order(const Term *a, const Term *b) {           // longer products first, the constant last
    if (a->n != b->n) return b->n - a->n;
    for (int i = 0; i < a->n; i++)
        if (a->atom[i] != b->atom[i]) return a->atom[i] < b->atom[i] ? -1 : 1;
    return 0;
}

// What nobody's tensor has stands for it, so that what goes on with it ends soon.
static Dim too_large(const Graph *g) {
    diag_error_as(EXIT_LIMIT, g->loc, "a dimension's expression is too large (over %d terms or %d factors)", MAX_TERMS,
        MAX_FACTORS);
    return INT64_MAX;
}

void sum_add(Sum *s, Term t) {
    int i = 0, order = 1;
    while (i < s->n && (order = term_order(&s->terms[i], &t)) < 0) i++;
    if (i < s->n && order == 0) {
        s->terms[i].coef = plus(s->terms[i].coef, t.coef);
        if (s->terms[i].coef == 0) {
            memmove(&s->terms[i], &s->terms[i + 1], sizeof(Term) * (size_t)(s->n - i - 1));
            s->n--;
        }
        return;
    }
    if (t.coef == 0) return;
    s->large |= s->n == MAX_TERMS;
    if (s->large) return;
    memmove(&s->terms[i + 1], &s->terms[i], sizeof(Term) * (size_t)(s->n - i));
    s->terms[i] = t;
    s->n++;
}

void sum_none(Sum *s) {
    s->n = 0;
    s->large = false;
}

void sum_only(Sum *s, Term t) {
    sum_none(s);
    s->n = 1;
    s->terms[0] = t;
}

void sum_of(Graph *g, Dim d, Sum *s) {
    sum_none(s);
    if (dim_is_const(d)) {
        sum_add(s, (Term){ .coef = d });
        return;
    }
    Dims *t = dims_of(g);
    if (-1 - d >= t->polys.n) bug("unknown dimension %" PRId64, d);
    Poly p = t->polys.at[-1 - d];
    s->n = p.n;
    memcpy(s->terms, p.terms, sizeof(Term) * (size_t)p.n);
}

Dim dim_intern(Graph *g, const Sum *s) {
    if (s->large) return too_large(g);
    if (s->n == 0) return 0;
    if (s->n == 1 && s->terms[0].n == 0 && s->terms[0].coef >= 0) return s->terms[0].coef;
    Dims *t = dims_of(g);
    Arena *a = graph_root(g)->arena;
    if ((size_t)t->polys.n * 2 >= t->mask) table_grow(a, t);
    int *slot = table_slot(t, s->n, s->terms);
    if (*slot) return -*slot;
    VEC_PUSH(a, t->polys, (Poly){ s->n, arena_copy(a, s->terms, sizeof(Term) * (size_t)s->n) });
    *slot = t->polys.n;
    return -(Dim)t->polys.n;
}

static Dim dim_atom(Graph *g, Atom atom) {
    Dims *t = dims_of(g);
    int i = 0;
    while (i < t->atoms.n
        && !(t->atoms.at[i].symbol == atom.symbol && t->atoms.at[i].num == atom.num && t->atoms.at[i].den == atom.den))
        i++;
    if (i == t->atoms.n) VEC_PUSH(graph_root(g)->arena, t->atoms, atom);
    Sum s;
    sum_only(&s, (Term){ .coef = 1, .n = 1, .atom = { i } });
    return dim_intern(g, &s);
}

// ---- operations
// Those on symbols stand apart: their frames are large, and most sizes are constants.

Symbol *graph_symbols(Graph *g, int *n) {
    Graph *root = graph_root(g);
    *n = root->symbols.n;
    return root->symbols.at;
}

// The name as an identifier that no other symbol has.
static const char *symbol_word(const Graph *root, const char *name) {
    char *c = arena_strdup(root->arena, name);
    for (char *at = c; *at; at++)
        if (!isalnum((unsigned char)*at)) *at = '_';
    for (int i = 0; i < root->symbols.n; i++)
        if (!strcmp(root->symbols.at[i].word, c)) return arena_printf(root->arena, "%s_%d", c, root->symbols.n);
    return c;
}

static int symbol_find(const Graph *root, const char *name) {
    int i = 0;
    while (i < root->symbols.n && strcmp(root->symbols.at[i].name, name)) i++;
    return i;
}

int symbol_number(Graph *g, const char *name) {
    Graph *root = graph_root(g);
    int i = symbol_find(root, name);
    if (i == root->symbols.n) {
        const char *word = symbol_word(root, name);
        VEC_PUSH(root->arena, root->symbols,
            (Symbol){ .name = arena_strdup(root->arena, name), .word = word, .lo = 1, .hi = INT32_MAX });
    }
    return i;
}

Dim dim_symbol(Graph *g, const char *name) { return dim_atom(g, (Atom){ .symbol = symbol_number(g, name) }); }

Symbol *dim_as_symbol(Graph *g, Dim d) {
    if (dim_is_const(d)) return NULL;
    const Poly p = dims_of(g)->polys.at[-1 - d];
    if (p.n != 1 || p.terms[0].coef != 1 || p.terms[0].n != 1) return NULL;
    int symbol = dims_of(g)->atoms.at[p.terms[0].atom[0]].symbol;
    return symbol < 0 ? NULL : &graph_root(g)->symbols.at[symbol];
}

static int *copies_of(Graph *g, int symbol) {
    Dims *t = dims_of(g);
    while (t->copies.n <= symbol) VEC_PUSH(graph_root(g)->arena, t->copies, 1);
    return &t->copies.at[symbol];
}

Dim dim_measured(Graph *g, const char *base, int64_t lo, int64_t hi, Value *from, int64_t at) {
    Graph *root = graph_root(g);
    const char *name = base;
    int *copies = copies_of(g, symbol_find(root, base));
    while (symbol_find(root, name) < root->symbols.n) name = arena_printf(root->arena, "%s_%d", base, ++*copies);
    Dim d = dim_symbol(g, name);
    Symbol *s = &root->symbols.at[root->symbols.n - 1];
    s->lo = lo;
    s->hi = hi;
    s->runtime = true;
    s->from = from;
    s->at = at;
    s->limit = hi;
    return d;
}

void term_factors(const Term *p, const Term *q, Term *out) {
    for (int u = 0, v = 0; u < p->n || v < q->n;)
        out->atom[out->n++] = v == q->n || (u < p->n && p->atom[u] <= q->atom[v]) ? p->atom[u++] : q->atom[v++];
}

static OUT_OF_LINE Dim added(Graph *g, Dim a, Dim b) {
    Sum s, t;
    sum_of(g, a, &s);
    sum_of(g, b, &t);
    for (int i = 0; i < t.n; i++) sum_add(&s, t.terms[i]);
    return dim_intern(g, &s);
}

Dim dim_add(Graph *g, Dim a, Dim b) {
    if (dim_is_const(a) && dim_is_const(b)) return plus(a, b);
    if (a == 0 || b == 0) return a == 0 ? b : a;
    return added(g, a, b);
}

static OUT_OF_LINE Dim subtracted(Graph *g, Dim a, Dim b) {
    Sum s, t;
    sum_of(g, a, &s);
    sum_of(g, b, &t);
    for (int i = 0; i < t.n; i++) {
        t.terms[i].coef = times(t.terms[i].coef, -1);
        sum_add(&s, t.terms[i]);
    }
    return dim_intern(g, &s);
}

Dim dim_sub(Graph *g, Dim a, Dim b) {
    if (b == 0 || a == b) return b == 0 ? a : 0;
    if (dim_is_const(a) && dim_is_const(b) && a > b) return a - b;
    return subtracted(g, a, b);
}

Dim dim_offset(Graph *g, Dim d, int64_t k) { return k >= 0 ? dim_add(g, d, k) : dim_sub(g, d, -k); }

static OUT_OF_LINE Dim multiplied(Graph *g, Dim a, Dim b) {
    Sum x, y, s;
    sum_of(g, a, &x);
    sum_of(g, b, &y);
    sum_none(&s);
    for (int i = 0; i < x.n; i++)
        for (int k = 0; k < y.n; k++) {
            Term t = { .coef = times(x.terms[i].coef, y.terms[k].coef) };
            const Term *p = &x.terms[i], *q = &y.terms[k];
            if (p->n + q->n > MAX_FACTORS) return too_large(g);
            term_factors(p, q, &t);
            sum_add(&s, t);
        }
    return dim_intern(g, &s);
}

Dim dim_mul(Graph *g, Dim a, Dim b) {
    if (dim_is_const(a) && dim_is_const(b)) return times(a, b);
    if (a == 0 || b == 0) return 0;
    if (a == 1 || b == 1) return a == 1 ? b : a;
    return multiplied(g, a, b);
}

// t / d when d divides it, as a product of symbols, exactly.
bool term_divide(Term *t, const Term *d) {
    if (t->coef % d->coef) return false;
    Term q = { .coef = t->coef / d->coef };
    int k = 0;
    for (int i = 0; i < t->n; i++)
        if (k < d->n && t->atom[i] == d->atom[k]) k++;
        else q.atom[q.n++] = t->atom[i];
    if (k < d->n) return false;
    *t = q;
    return true;
}

// floor((floor(x / y) + c) / d) = floor((x + c*y) / (y*d)): the atom when `rest` is such a division plus a constant c.
static const Atom *lone_division(Graph *g, const Sum *rest, int64_t *c) {
    if (rest->n == 0 || rest->n > 2 || rest->terms[0].n != 1 || rest->terms[0].coef != 1
        || (rest->n == 2 && rest->terms[1].n))
        return NULL;
    *c = rest->n == 2 ? rest->terms[1].coef : 0;
    const Atom *a = &dims_of(g)->atoms.at[rest->terms[0].atom[0]];
    return a->symbol < 0 ? a : NULL;
}

static bool has_factor(const Sum *s, int atom) {
    for (int i = 0, k; i < s->n; i++) {
        for (k = 0; k < s->terms[i].n && s->terms[i].atom[k] != atom;) k++;
        if (k == s->terms[i].n) return false;
    }
    return true;
}

static void sum_divide(Sum *s, const Term *by) {
    for (int i = 0; i < s->n; i++)
        if (!term_divide(&s->terms[i], by)) bug("a common factor that does not divide");
}

// Takes the factors that all terms of both have in common out of both. False: there are none.
static bool cancel(Sum *x, Sum *y) {
    Term common = { 0 };
    for (int i = 0; i < x->n; i++) common.coef = gcd(common.coef, x->terms[i].coef);
    for (int i = 0; i < y->n; i++) common.coef = gcd(common.coef, y->terms[i].coef);
    bool any = common.coef > 1;
    if (any) {
        sum_divide(x, &common);
        sum_divide(y, &common);
    }
    for (int k = 0; k < x->terms[0].n; k++) {
        int atom = x->terms[0].atom[k];
        if (!has_factor(x, atom) || !has_factor(y, atom)) continue;
        common = (Term){ .coef = 1, .n = 1, .atom = { atom } };
        sum_divide(x, &common);
        sum_divide(y, &common);
        any = true;
        k = -1;
    }
    return any;
}

static OUT_OF_LINE Dim divided(Graph *g, Dim a, Dim b) {
    Sum x, d, whole, rest;
    sum_of(g, a, &x);
    sum_of(g, b, &d);
    sum_none(&whole);
    sum_none(&rest);
    if (dim_is_const(b) && x.n <= 1 && (x.n == 0 || x.terms[0].n == 0)) {       // a constant below 0
        sum_add(&whole, (Term){ .coef = floor_div(x.n ? x.terms[0].coef : 0, b) });
        return dim_intern(g, &whole);
    }
    for (int i = 0; i < x.n; i++) {
        Term t = x.terms[i];
        if (d.n == 1 && term_divide(&t, &d.terms[0])) sum_add(&whole, t);
        else if (t.n == 0 && dim_is_const(b)) { // a constant gives its whole part, so that what is left is in 0..b-1
            sum_add(&whole, (Term){ .coef = floor_div(t.coef, b) });
            sum_add(&rest, (Term){ .coef = floor_mod(t.coef, b) });
        } else sum_add(&rest, t);
    }
    Dim w = dim_intern(g, &whole);
    if (rest.n == 0) return w;
    if (rest.n == 1 && rest.terms[0].n == 0 && dim_is_const(b)) return w;       // a constant in 1..b-1
    // floor(-1 / d) for every d >= 1
    if (rest.n == 1 && rest.terms[0].n == 0 && rest.terms[0].coef == -1) return dim_sub(g, w, 1);
    Factor whole_of, by, quotient, left;
    if (d.n > 1 && factor_of(g, a, &whole_of) && factor_of(g, b, &by)
        && factor_divide(g, whole_of, by, &quotient, &left) && left.c == 0) {
        Dim exact;
        if (factor_dim(g, quotient, &exact)) return exact;
    }
    if (cancel(&rest, &d)) {
        Dim num = dim_intern(g, &rest), den = dim_intern(g, &d);
        return dim_add(g, w, dim_div(g, num, den));
    }
    int64_t c;
    const Atom *inner = lone_division(g, &rest, &c);
    if (inner && c >= 0) {
        Dim num = inner->num, den = inner->den;
        return dim_add(g, w, dim_div(g, dim_add(g, num, dim_mul(g, den, c)), dim_mul(g, den, b)));
    }
    return dim_add(g, w, dim_atom(g, (Atom){ .symbol = -1, .num = dim_intern(g, &rest), .den = b }));
}

Dim dim_div(Graph *g, Dim a, Dim b) {
    if (b == 0) return 0;                       // the caller diagnoses a divisor of 0; here nothing may trap
    if (a == b || b == 1) return b == 1 ? a : 1;
    if (dim_is_const(a) && dim_is_const(b)) return a / b;
    return divided(g, a, b);
}

Dim dim_ceil_div(Graph *g, Dim a, Dim b) {
    return dim_div(g, dim_sub(g, dim_add(g, a, b), 1), b);
}

bool dim_equal(const Graph *g, Dim a, Dim b) {
    (void)g;                                    // interned: equal sums have equal numbers
    return a == b;
}

void dim_require(Graph *g, Dim a, Dim b) {
    if (a == b) return;
    for (int i = 0; i < g->required.n; i++)
        if ((g->required.at[i].a == a && g->required.at[i].b == b)
            || (g->required.at[i].a == b && g->required.at[i].b == a))
            return;
    VEC_PUSH(g->arena, g->required, (DimPair){ .a = a, .b = b });
}

// ---- bounds and binding

static Range dim_range(const Graph *g, Dim d);

// recursion follows nested divisions, each made by one call of dim_div
Range atom_range(const Graph *g, const Atom *a) {
    if (a->symbol >= 0) {
        const Symbol *s = &graph_root(g)->symbols.at[a->symbol];
        return (Range){ s->lo, s->hi };
    }
    Range n = dim_range(g, a->num), d = dim_range(g, a->den);
    if (d.lo < 1) d.lo = 1;
    if (d.hi < 1) d.hi = 1;
    return (Range){ floor_div(n.lo, n.lo < 0 ? d.lo : d.hi), floor_div(n.hi, n.hi < 0 ? d.hi : d.lo) };
}

static Range dim_range(const Graph *g, Dim d) {
    if (dim_is_const(d)) return (Range){ d, d };
    const Dims *t = graph_root(g)->dims;
    if (!t || -1 - d >= t->polys.n) bug("unknown dimension %" PRId64, d);
    const Poly *p = &t->polys.at[-1 - d];
    Range sum = { 0, 0 };
    for (int i = 0; i < p->n; i++) {
        Range r = { p->terms[i].coef, p->terms[i].coef };
        for (int k = 0; k < p->terms[i].n; k++) {
            Range f = atom_range(g, &t->atoms.at[p->terms[i].atom[k]]);
            int64_t v[4] = { times(r.lo, f.lo), times(r.lo, f.hi), times(r.hi, f.lo), times(r.hi, f.hi) };
            r = (Range){ v[0], v[0] };
            for (int j = 1; j < 4; j++) {
                if (v[j] < r.lo) r.lo = v[j];
                if (v[j] > r.hi) r.hi = v[j];
            }
        }
        sum = (Range){ plus(sum.lo, r.lo), plus(sum.hi, r.hi) };
    }
    return sum;
}

// The most that a product of sizes can be. A quotient met by what it is divided by gives no more than its dividend: a
// * (24 / a) <= 24.
static int64_t term_upper(const Graph *g, const Term *term) {
    const Dims *t = graph_root(g)->dims;
    int64_t hi = term->coef;
    for (int k = 0; k < term->n; k++) hi = times(hi, atom_range(g, &t->atoms.at[term->atom[k]]).hi);
    for (int k = 0; k < term->n; k++) {
        const Atom *a = &t->atoms.at[term->atom[k]];
        if (a->symbol >= 0) continue;
        Term rest = { .coef = term->coef }, by = { .coef = 1 };
        if (!dim_is_const(a->den)) {
            const Poly *p = &t->polys.at[-1 - a->den];
            if (p->n > 1) continue;
            by = p->terms[0];
        }
        int64_t each = by.coef;
        by.coef = 1;
        for (int j = 0; j < term->n; j++)
            if (j != k) rest.atom[rest.n++] = term->atom[j];
        if (each < 1 || !term_divide(&rest, &by)) continue;
        rest.coef = rest.coef / each + (rest.coef % each > 0);      // rounded up
        int64_t other = times(dim_upper(g, a->num), term_upper(g, &rest));
        if (other < hi) hi = other;
    }
    return hi;
}

// Of the product of n dimensions, which are sizes.
int64_t dims_upper(const Graph *g, int n, const Dim *d) {
    Term all = { .coef = 1 };
    int64_t hi = 1;
    bool simple = true;
    for (int i = 0; i < n; i++) {
        int64_t most = dim_upper(g, d[i]);
        hi = times(hi, most > 0 ? most : 0);
        const Poly *p = dim_is_const(d[i]) ? NULL : &((const Dims *)graph_root(g)->dims)->polys.at[-1 - d[i]];
        Term one = { .coef = p ? p->terms[0].coef : d[i] }, joined = { 0 };
        if (p) one = p->terms[0];
        simple = simple && (!p || p->n == 1) && one.coef > 0 && all.n + one.n <= MAX_FACTORS;
        if (!simple) continue;
        term_factors(&all, &one, &joined);
        joined.coef = times(all.coef, one.coef);
        all = joined;
    }
    if (!simple) return hi;
    int64_t other = term_upper(g, &all);
    return other < hi ? other : hi;
}

int64_t dim_upper(const Graph *g, Dim d) { return dim_range(g, d).hi; }
int64_t dim_lower(const Graph *g, Dim d) { return dim_range(g, d).lo; }

int dim_terms(Graph *g, Dim d, int max, int64_t *coef, Dim *mono) {
    Sum s, one;
    sum_of(g, d, &s);
    if (s.n > max) return 0;
    for (int i = 0; i < s.n; i++) {
        sum_only(&one, s.terms[i]);
        coef[i] = s.terms[i].coef;
        one.terms[0].coef = 1;
        mono[i] = dim_intern(g, &one);
    }
    return s.n;
}

bool dim_uses(const Graph *g, Dim d, int symbol) {
    if (dim_is_const(d)) return false;
    const Dims *t = graph_root(g)->dims;
    const Poly *p = &t->polys.at[-1 - d];
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->terms[i].n; k++) {
            const Atom *a = &t->atoms.at[p->terms[i].atom[k]];
            if (a->symbol >= 0 ? a->symbol == symbol : dim_uses(g, a->num, symbol) || dim_uses(g, a->den, symbol))
                return true;
        }
    return false;
}

// Recursion as in atom_range.
Dim dim_subst(Graph *of, Dim d, Dim (*symbol)(void *ctx, int number), void *ctx) {
    if (dim_is_const(d)) return d;
    Graph *g = graph_root(of);
    Sum s;
    sum_of(g, d, &s);
    Dim sum = 0;
    for (int i = 0; i < s.n; i++) {
        Dim product = 1;
        for (int k = 0; k < s.terms[i].n; k++) {
            const Atom a = ((const Dims *)g->dims)->atoms.at[s.terms[i].atom[k]];
            Dim with = a.symbol >= 0 ? symbol(ctx, a.symbol) :
                                       dim_div(g, dim_subst(g, a.num, symbol, ctx), dim_subst(g, a.den, symbol, ctx));
            product = dim_mul(g, product, with);
        }
        if (s.terms[i].coef >= 0) sum = dim_add(g, sum, dim_mul(g, product, s.terms[i].coef));
        else sum = dim_sub(g, sum, dim_mul(g, product, -s.terms[i].coef));
    }
    return sum;
}

static Dim symbol_bound(void *graph, int number) {
    const Symbol *s = &((Graph *)graph)->symbols.at[number];
    return s->lo == s->hi ? s->lo : dim_atom(graph, (Atom){ .symbol = number });
}

Dim dim_bound(const Graph *g, Dim d) { return dim_subst(graph_root(g), d, symbol_bound, graph_root(g)); }

// ---- text

bool name_is_plain(const char *s) {
    if (!isalpha((unsigned char)*s) && *s != '_') return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_' && *s != '.') return false;
    return true;
}

void symbol_print(Text *out, const char *name) {                // 'quoted' unless it reads as a name
    if (name_is_plain(name)) {
        text_printf(out, "%s", name);
        return;
    }
    text_append(out, "'", 1);
    for (; *name; name++) {
        if (*name == '\'' || *name == '\\' || (unsigned char)*name < 0x20)
            text_printf(out, "\\%02x", (unsigned)(unsigned char)*name);
        else text_append(out, name, 1);
    }
    text_append(out, "'", 1);
}

static void dim_print(Text *out, const Graph *g, Dim d);

// in parentheses unless it is a single thing
static void factor_print(Text *out, const Graph *g, Dim d, bool right) {
    Text t;
    text_init(&t, out->arena);
    dim_print(&t, g, d);
    bool bare = strcspn(t.at, right ? "+-*/" : "+-/") == t.n;
    text_printf(out, bare ? "%s" : "(%s)", t.at);
}

static void term_print(Text *out, const Graph *g, const Term *t, bool first) {
    const Dims *dims = graph_root(g)->dims;
    uint64_t size = t->coef < 0 ? -(uint64_t)t->coef : (uint64_t)t->coef;
    if (t->coef < 0) text_append(out, "-", 1);
    else if (!first) text_append(out, "+", 1);
    bool number = size != 1 || t->n == 0;
    if (number) text_printf(out, "%" PRIu64, size);
    for (int i = 0; i < t->n; i++) {
        const Atom *a = &dims->atoms.at[t->atom[i]];
        if (number || i) text_append(out, "*", 1);
        if (a->symbol >= 0) {
            symbol_print(out, graph_root(g)->symbols.at[a->symbol].name);
            continue;
        }
        bool product = number || t->n > 1;
        if (product) text_append(out, "(", 1);
        factor_print(out, g, a->num, false);
        text_append(out, "/", 1);
        factor_print(out, g, a->den, true);
        if (product) text_append(out, ")", 1);
    }
}

static void dim_print(Text *out, const Graph *g, Dim d) {
    if (dim_is_const(d)) {
        text_printf(out, "%" PRId64, d);
        return;
    }
    const Dims *t = graph_root(g)->dims;
    if (!t || -1 - d >= t->polys.n) bug("unknown dimension %" PRId64, d);
    const Poly *p = &t->polys.at[-1 - d];
    for (int i = 0; i < p->n; i++) term_print(out, g, &p->terms[i], i == 0);
}

const char *dim_text(Arena *a, const Graph *g, Dim d) {
    Text t;
    text_init(&t, a);
    dim_print(&t, g, d);
    return t.at;
}

static void skip_space(const char **s) {
    while (**s == ' ') ++*s;
}

static bool parse_sum(Graph *g, const char **s, int depth, Dim *out);

const char *symbol_parse(Arena *a, const char **s) {
    Text name;
    text_init(&name, a);
    if (**s == '\'') {
        for (++*s; **s && **s != '\''; ++*s) {
            char c = **s;
            if (c == '\\') {
                char hex[3] = { (*s)[1], (*s)[1] ? (*s)[2] : 0, 0 };
                if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1])) return NULL;
                c = (char)strtol(hex, NULL, 16);
                *s += 2;
            }
            text_append(&name, &c, 1);
        }
        if (**s != '\'') return NULL;
        ++*s;
    } else {
        const char *end = *s;
        while (isalnum((unsigned char)*end) || *end == '_' || *end == '.') end++;
        text_append(&name, *s, (size_t)(end - *s));
        *s = end;
    }
    return name.n ? name.at : NULL;
}

static bool parse_factor(Graph *g, const char **s, int depth, Dim *out) {
    skip_space(s);
    if (isdigit((unsigned char)**s)) {
        int64_t v = 0;
        for (; isdigit((unsigned char)**s); ++*s) v = plus(times(v, 10), **s - '0');
        *out = v;
        return true;
    }
    if (**s == '-') {
        Dim x;
        ++*s;
        if (depth == MAX_DEPTH || !parse_factor(g, s, depth + 1, &x)) return false;
        *out = dim_sub(g, 0, x);
        return true;
    }
    if (**s != '(') {
        const char *name = symbol_parse(g->arena, s);
        if (name) *out = dim_symbol(g, name);
        return name != NULL;
    }
    ++*s;
    if (depth == MAX_DEPTH || !parse_sum(g, s, depth + 1, out)) return false;
    skip_space(s);
    if (**s != ')') return false;
    ++*s;
    return true;
}

static bool parse_product(Graph *g, const char **s, int depth, Dim *out) {
    if (!parse_factor(g, s, depth, out)) return false;
    for (skip_space(s); **s == '*' || **s == '/'; skip_space(s)) {
        char op = *(*s)++;
        Dim y;
        if (!parse_factor(g, s, depth, &y)) return false;
        *out = op == '*' ? dim_mul(g, *out, y) : dim_div(g, *out, y);
    }
    return true;
}

static bool parse_sum(Graph *g, const char **s, int depth, Dim *out) {
    if (!parse_product(g, s, depth, out)) return false;
    for (skip_space(s); **s == '+' || **s == '-'; skip_space(s)) {
        char op = *(*s)++;
        Dim y;
        if (!parse_product(g, s, depth, &y)) return false;
        *out = op == '+' ? dim_add(g, *out, y) : dim_sub(g, *out, y);
    }
    return true;
}

// Leaves *s behind what was read; a text that is no dimension leaves *s where it was and gives 0.
Dim dim_parse(Graph *g, const char **s) {
    const char *at = *s;
    Dim d;
    if (!parse_sum(g, &at, 0, &d)) return 0;
    *s = at;
    return d;
}
