// SPDX-License-Identifier: MIT OR Apache-2.0
// Which keys a query of attention can see at all: with those that its mask leaves out nothing is computed.
//
// In: the score of a kernel in canonical form (attention.c), an expression of its query and its key. Out: for each
// query the first and the last key whose score may be other than -inf, as expressions of the query alone; NULL where
// nothing says so. They are read off the conditions without which the score is -inf: comparisons of the key with
// whatever holds for the query (its place, counted from a past; the length of a sequence, known when the program
// runs), and constant masks, whose rows all end within a band along the diagonal. A mask of finite numbers that no sum
// of scores comes near leaves keys out as -inf does, as long as each query sees one.
#include "schedule.h"

#include <math.h>

typedef struct Keys { ExprPool *p; Expr *key; uint64_t key_axis; double hidden; Expr *first, *last; } Keys;

// Does e hold for a query, whatever the key and its product?
static bool is_apart(const Keys *k, const Expr *e) {
    if (!e) return true;
    if (e->op == E_Acc || e->axes_used & k->key_axis) return false;
    return is_apart(k, e->a[0]) && is_apart(k, e->a[1]) && is_apart(k, e->a[2]);
}

static bool is_key(const Keys *k, const Expr *e) { return e == k->key || (e->op == E_Cast && e->a[0] == k->key); }

static void narrow(Keys *k, Expr **bound, EOp op, Expr *x, int64_t more) {
    x = expr_cast(k->p, x, DT_I64);
    if (more) x = expr_binary(k->p, E_Add, x, expr_const_i(k->p, DT_I64, more));
    *bound = *bound ? expr_binary(k->p, op, *bound, x) : x;
}

static bool is_hidden(const Keys *k, const Tensor *t, int64_t at) {
    const double x = tensor_get_f(t, at);
    return t->type.dtype == DT_BOOL ? x == 0 : x <= k->hidden;
}

// Keys that a constant mask hides from the queries of all its rows: row r sees none after r + band. False: it hides
// few, or a row sees none.
static bool find_band(const Keys *k, const Tensor *t, int64_t column, int64_t *band) {
    const int64_t width = t->type.dim[t->type.rank - 1], rows = type_count(&t->type) / width;
    int64_t seen = 0;
    *band = INT64_MIN;
    for (int64_t r = 0; r < rows; r++) {
        int64_t last = width - 1;
        while (last >= column && is_hidden(k, t, r * width + last)) last--;
        if (last < column) return false;
        if (last - column - r > *band) *band = last - column - r;
    }
    for (int64_t r = 0; r < rows; r++) seen += r + *band < width - column ? r + *band : width - column;
    return seen < rows * (width - column) / 8 * 7;
}

// A constant mask, read at (row, key): one of an expression of the query, and the key's column.
static void needs_mask(Keys *k, const Expr *load) {
    enum { MOST = 1 << 24 };
    const Tensor *t = load->value->data;
    Expr *index = load->a[0], *rest = NULL;
    int64_t band;
    if (!t || load->a[1] || t->type.rank < 1 || type_count(&t->type) > MOST || type_count(&t->type) < 1) return;
    if (t->type.dtype != DT_BOOL && t->type.dtype != DT_F32) return;
    for (int i = 0; i < 2 && index->op == E_Add; i++) if (is_key(k, index->a[i])) rest = index->a[1 - i];
    if (!rest || !is_apart(k, rest)) return;
    Expr *width = expr_index(k->p, t->type.dim[t->type.rank - 1]), *column = expr_binary(k->p, E_Mod, rest, width);
    if (column->op != E_Const || !find_band(k, t, column->c.i, &band)) return;
    narrow(k, &k->last, E_Min, expr_binary(k->p, E_Div, rest, width), band);
}

// What must hold of the key where condition c does.
static void needs(Keys *k, const Expr *c) {
    if (c->op == E_And) {
        needs(k, c->a[0]);
        needs(k, c->a[1]);
    }
    if (c->op == E_Load) needs_mask(k, c);
    if ((c->op != E_Le && c->op != E_Lt) || dtype_is_float(c->a[0]->dtype)) return;
    const int64_t beside = c->op == E_Lt;
    if (is_key(k, c->a[0]) && is_apart(k, c->a[1])) narrow(k, &k->last, E_Min, c->a[1], -beside);
    if (is_key(k, c->a[1]) && is_apart(k, c->a[0])) narrow(k, &k->first, E_Max, c->a[0], beside);
}

static bool is_const(const Expr *e, double most) { return e->op == E_Const && e->c.f <= most; }

// What must hold of the key where e is not -inf.
static void needs_score(Keys *k, const Expr *e) {
    if (e->op == E_Select) {
        if (is_const(e->a[2], -INFINITY)) needs(k, e->a[0]);
        if (is_const(e->a[2], -INFINITY)) needs_score(k, e->a[1]);
    }
    if (e->op == E_Load) needs_mask(k, e);
    if (e->op != E_Add) return;
    needs_score(k, e->a[0]);
    needs_score(k, e->a[1]);
}

// The product, perhaps times a constant.
static bool is_product(const Expr *e) {
    return e->op == E_Acc || (e->op == E_Mul && e->a[0]->op == E_Acc && e->a[1]->op == E_Const);
}

// A mask of finite numbers: where a query might see no key at all, all its keys stay.
static void needs_finite(Keys *k, const Expr *e, Expr *count) {
    const bool select = e->op == E_Select && is_product(e->a[1]) && is_const(e->a[2], k->hidden);
    if (select && e->a[0]->op != E_And) needs(k, e->a[0]);
    for (int i = 0; i < 2 && e->op == E_Add; i++)
        if (is_product(e->a[i]) && e->a[1 - i]->op == E_Load) needs_mask(k, e->a[1 - i]);
    k->first = NULL;
    if (!k->last) return;
    Expr *none = expr_binary(k->p, E_Lt, k->last, expr_const_i(k->p, DT_I64, 0));
    k->last = expr_select(k->p, none, expr_cast(k->p, count, DT_I64), k->last);
}

void attention_keys(const Graph *g, Kernel *kernel, Expr *key, Dim count) {
    Attention *s = &kernel->attention;
    Keys k = { .p = kernel->exprs, .key = key, .key_axis = key->axes_used, .hidden = -INFINITY };
    if (key->op != E_Axis) return;
    needs_score(&k, s->score);
    if (!k.first && !k.last) {
        k.hidden = -1e30;
        needs_finite(&k, s->score, expr_size(kernel->exprs, g, count));
    }
    s->first = k.first;
    s->last = k.last;
}
