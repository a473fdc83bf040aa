// SPDX-License-Identifier: MIT OR Apache-2.0
// The language of losses.def and optimizers.def: assignments `name = expression; ...` that run in order.
//
// In: what names stand for, values or numbers. Out: a map for each assignment, of the values that it mentions; one that
// mentions none is a number. Numbers go into the map's text, so that what depends on them alone (1 - beta) is computed
// in double. An assignment may also be one function of an expression, of more than an element of it:
//
//   sum(e)          along the formula's axis, which stays as 1
//   log_softmax(e)  along that axis
//   gram(e)         [batch, channels, ...] as [batch, channels, places], times its transpose, divided by channels *
//                   places
//   orthogonal(e)   a matrix whose singular values are near 1: five steps of Newton and Schulz
#include "build/build.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool row_word(Arena *a, const char **list, const char **name, double *number) {
    const char *s = *list + strspn(*list, " ");
    size_t n = strcspn(s, " =");
    if (!n) return false;
    *name = arena_strndup(a, s, n);
    *number = s[n] == '=' ? strtod(s + n + 1, NULL) : 0;
    *list = s + strcspn(s, " ");
    return true;
}

void formula_let(Formula *f, const char *name, Value *value, double number) {
    Meaning now = { name, value, number };
    for (int i = 0; i < f->at.n; i++)
        if (!strcmp(f->at.at[i].name, name)) {
            f->at.at[i] = now;
            return;
        }
    VEC_PUSH(f->g->arena, f->at, now);
}

bool formula_has(const Formula *f, const char *name) {
    bool has = false;
    for (int i = 0; i < f->at.n; i++) has = has || !strcmp(f->at.at[i].name, name);
    return has;
}

Value *formula_value(const Formula *f, const char *name) {
    for (int i = 0; i < f->at.n; i++)
        if (!strcmp(f->at.at[i].name, name)) return f->at.at[i].value;
    bug("a formula has no name %s", name);
}

static bool mentions(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *s = text; (s = strstr(s, name)); s += n) {
        bool starts = s == text || (!isalnum((unsigned char)s[-1]) && s[-1] != '_');
        if (starts && !isalnum((unsigned char)s[n]) && s[n] != '_') return true;
    }
    return false;
}

// An expression behind the numbers that it mentions, as names of its own, and the values that it mentions.
typedef struct Words { Text whole, names; Value **in; int n; } Words;

static Words words_of(const Formula *f, const char *text) {
    Words w = { .in = NEW_ARRAY(f->g->arena, Value *, f->at.n + 1) };
    text_init(&w.whole, f->g->arena);
    text_init(&w.names, f->g->arena);
    for (int i = 0; i < f->at.n; i++) {
        const Meaning *at = &f->at.at[i];
        if (!mentions(text, at->name)) continue;
        if (!at->value) {
            text_printf(&w.whole, "%s = %.17g; ", at->name, at->number);
            continue;
        }
        text_printf(&w.names, "%s ", at->name);
        w.in[w.n++] = at->value;
    }
    text_printf(&w.whole, "%s", text);
    return w;
}

static Value *computed(const Formula *f, const char *text) {
    Words w = words_of(f, text);
    return b_map(f->g, w.whole.at, w.names.at, w.n, w.in);
}

// An assignment of numbers alone; false: it mentions values.
static bool number_of(const Formula *f, const char *text, double *out) {
    const Words w = words_of(f, text);
    const char *error;
    if (w.n) return false;
    const Expr *e = expr_parse(f->g->exprs, w.whole.at, 0, NULL, NULL, DT_F64, &error);
    if (!e) bug("formula \"%s\": %s", text, error);
    *out = expr_eval(e, NULL).f;
    return true;
}

// ---------------------------------------------------------------- functions of whole tensors

static Value *sum_along(const Formula *f, Value *x) {
    return b_reduce(f->g, OP_ReduceSum, x, 1, (int64_t[]){ f->axis }, true);
}

static Value *log_softmax_along(const Formula *f, Value *x) {
    Node *n = graph_node(f->g, OP_LogSoftmax, 1, &x, 1);
    node_set_int(n, "axis", f->axis);
    return b_finish(n);
}

static Value *gram_of(const Formula *f, Value *x) { return b_gram(f->g, x); }

// X = M / |M|, as wide as high at least; then five times A = X X^T, X = 3.4445 X + (2.0315 A A - 4.775 A) X, whose
// coefficients are Muon's (Jordan et al. 2024).
static Value *orthogonal_to(const Formula *f, Value *m) {
    Graph *g = f->g;
    bool tall = m->type.rank == 2 && m->type.dim[0] > m->type.dim[1];
    if (m->type.rank != 2) return graph_fail(g, "no matrix is orthogonal of rank %d", m->type.rank);
    Value *square = B_MAP(g, "x * x", "x", m), *sum = b_reduce(g, OP_ReduceSum, square, 2, (int64_t[]){ 0, 1 }, false);
    Value *x = B_MAP(g, "x / max(sqrt(y), 0.0000001)", "x y", tall ? b_swap(g, m, 0, 1) : m, sum);
    for (int i = 0; i < 5 && x; i++) {
        Value *a = b_matmul(g, x, b_swap(g, x, 0, 1)), *aa = b_matmul(g, a, a);
        Value *b = B_MAP(g, "2.0315 * x - 4.775 * y", "x y", aa, a), *bx = b_matmul(g, b, x);
        x = B_MAP(g, "3.4445 * x + y", "x y", x, bx);
    }
    if (x && tall) x = b_swap(g, x, 0, 1);
    return x ? b_stored(g, x) : NULL;           // no product writes a parameter over what its epilogue reads
}

static const struct { const char *name; Value *(*of)(const Formula *f, Value *x); } functions[] = {
    { "sum(", sum_along },
    { "log_softmax(", log_softmax_along },
    { "gram(", gram_of },
    { "orthogonal(", orthogonal_to },
};

static Value *assigned(const Formula *f, const char *text) {
    text += strspn(text, " ");
    for (size_t i = 0; i < COUNT(functions); i++) {
        size_t n = strlen(functions[i].name), end = strlen(text);
        if (strncmp(text, functions[i].name, n) || text[end - 1] != ')') continue;
        Value *x = computed(f, arena_strndup(f->g->arena, text + n, end - n - 1));
        return x ? functions[i].of(f, x) : NULL;
    }
    return computed(f, text);
}

bool formula_run(Formula *f, const char *steps) {
    Arena *a = f->g->arena;
    for (const char *s = steps; *s;) {
        s += strspn(s, " ");
        size_t name = strcspn(s, " ="), expression = strcspn(s, "=") + 1, end = strcspn(s, ";");
        const char *text = arena_strndup(a, s + expression, end - expression);
        double number = 0;
        Value *v = number_of(f, text, &number) ? NULL : assigned(f, text);
        formula_let(f, arena_strndup(a, s, name), v, number);
        s += end + (s[end] == ';');
    }
    return true;
}
