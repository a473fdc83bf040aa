// SPDX-License-Identifier: MIT OR Apache-2.0
// Expression text -> expression.
//
//   text    = { name "=" choice ";" } choice              names stand for what they were given, once
//   choice  = binary [ "?" choice ":" choice ]
//   binary  = unary { infix unary }                        || && | ^ & == != < <= > >= << >> + - * / %, as strong as
//       in C
//   unary   = { "-" | "!" | "~" } primary
//   primary = number | name | true | false | inf | nan | function "(" choice { "," choice } ")" | dtype "(" choice
//       ")" | "(" choice ")"
//
// The idea: a literal has no dtype until it meets something that has one. Functions are the operations of exprs.def
// in lower case; dtype(x) casts. Text comes from tables and from graph text alike, so every mistake is an error
// message, and nesting is bounded.
#include "expr.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const ExprInfix expr_infix[] = {
    { "||", E_Or, 1, false },
    { "&&", E_And, 2, false },
    { "|", E_BitOr, 3, false },
    { "^", E_BitXor, 4, false },
    { "&", E_BitAnd, 5, false },
    { "==", E_Eq, 6, false },
    { "!=", E_Ne, 6, false },
    { "<<", E_Shl, 8, false },
    { ">>", E_Shr, 8, false },
    { "<=", E_Le, 7, false },
    { ">=", E_Le, 7, true },
    { "<", E_Lt, 7, false },
    { ">", E_Lt, 7, true },
    { "+", E_Add, 9, false },
    { "-", E_Sub, 9, false },
    { "*", E_Mul, 10, false },
    { "/", E_Div, 10, false },
    { "%", E_Mod, 10, false },
    { NULL, E_Const, 0, false },
};

// An expression, or (e NULL) a literal that has no dtype yet.
typedef struct Parsed { Expr *e; double f; int64_t i; bool is_int; } Parsed;

enum { MAX_NESTING = 200, MAX_NAME = 32 };
typedef struct Local { char name[MAX_NAME]; Parsed value; } Local;
typedef struct Parser {
    ExprPool *p;
    const char *s;                              // what is left
    int n; const char *const *names; Expr *const *bound;
    VEC(Local) locals;
    DType result;
    int depth;
    const char *error;                          // the first one; parsing stops
} Parser;

static Parsed choice(Parser *q);

static Parsed fail(Parser *q, const char *what, const char *detail) {
    if (!q->error) q->error = arena_printf(expr_arena(q->p), "%s%s at \"%.24s\"", what, detail, q->s);
    return (Parsed){ .e = NULL };
}

static void skip_space(Parser *q) {
    while (isspace((unsigned char)*q->s)) q->s++;
}

static bool accept(Parser *q, const char *token) {
    skip_space(q);
    size_t n = strlen(token);
    if (strncmp(q->s, token, n) != 0) return false;
    q->s += n;
    return true;
}

static void expect(Parser *q, const char *token) {
    if (!accept(q, token)) fail(q, "expected ", token);
}

// The expression of a term; a literal becomes a constant of dtype d.
static Expr *typed(Parser *q, Parsed t, DType d) {
    if (t.e) return t.e;
    if (dtype_is_float(d)) return expr_const_f(q->p, d, t.f);
    if (d == DT_BOOL) return expr_const_i(q->p, d, t.f != 0);
    if (dtype_is_int(d)) return expr_const_i(q->p, d, t.is_int ? t.i : (int64_t)fmax(fmin(t.f, 9e18), -9e18));
    return expr_const_f(q->p, DT_F32, t.f);
}

static Parsed of(Expr *e) { return (Parsed){ .e = e }; }
static Parsed literal(double f) {
    return (Parsed){ .f = f, .i = (int64_t)fmax(fmin(f, 9e18), -9e18), .is_int = f == floor(f) && fabs(f) < 0x1p53 };
}

// The dtype that literals take when they meet only literals: the one the context wants, if the operation has it.
static DType context(const Parser *q, EOp op) {
    DType d = expr_table[op].rule == RULE_BOOL ? DT_BOOL : q->result;
    return expr_rule_accepts(op, d) ? d : expr_rule_accepts(op, DT_F32) ? DT_F32 : DT_I32;
}

static Parsed operate(Parser *q, EOp op, Parsed x, Parsed y) {
    bool two = expr_table[op].arity == 2;
    DType d = x.e ? x.e->dtype : two && y.e ? y.e->dtype : context(q, op);
    if (q->error) return x;
    Expr *a = typed(q, x, d), *b = two ? typed(q, y, d) : NULL;
    if (b && a->dtype != b->dtype)
        return fail(q, arena_printf(expr_arena(q->p), "%s of %s and ", expr_table[op].name, dtype_name(a->dtype)),
            dtype_name(b->dtype));
    if (!expr_rule_accepts(op, a->dtype))
        return fail(q, arena_printf(expr_arena(q->p), "%s wants %s, not ", expr_table[op].name, expr_rule_wants(op)),
            dtype_name(a->dtype));
    return of(two ? expr_binary(q->p, op, a, b) : expr_unary(q->p, op, a));
}

static Parsed literal_arithmetic(EOp op, Parsed x, Parsed y, bool *done) {
    *done = true;
    switch (op) {
    case E_Add: return literal(x.f + y.f);
    case E_Sub: return literal(x.f - y.f);
    case E_Mul: return literal(x.f * y.f);
    case E_Div: return literal(x.f / y.f);
    default: *done = false; return x;
    }
}

static Parsed number(Parser *q) {
    char *end_f, *end_i;
    errno = 0;
    double f = strtod(q->s, &end_f);
    unsigned long long i = strtoull(q->s, &end_i, 10);
    bool is_int = end_i == end_f && errno == 0;
    if (end_f == q->s) return fail(q, "expected a value", "");
    q->s = end_f;
    if (isalpha((unsigned char)*q->s) || *q->s == '_') return fail(q, "malformed number", "");
    return (Parsed){ .f = f, .i = (int64_t)i, .is_int = is_int };
}

static bool is_function(EOp op, const char *name) {
    const char *s = expr_table[op].name;
    if (expr_table[op].rule == RULE_SPECIAL) return false;
    for (; *s && *name; s++, name++)
        if (tolower((unsigned char)*s) != *name) return false;
    return !*s && !*name;
}

static Parsed call(Parser *q, const char *name) {
    DType to = DT_NONE;
    Parsed x = choice(q);
    if (strcmp(name, "index") == 0) to = DT_INDEX;
    if (to == DT_INDEX || dtype_parse(name, &to)) {
        expect(q, ")");
        if (q->error) return x;
        if (to != DT_BOOL && !dtype_is_int(to) && !dtype_is_float(to)) return fail(q, "no casts to ", name);
        const DType from = x.e ? x.e->dtype : DT_BOOL;
        if (from != DT_BOOL && !dtype_is_int(from) && !dtype_is_float(from))
            return fail(q, arena_printf(expr_arena(q->p), "no casts of %s to ", dtype_name(from)), name);
        return of(x.e ? expr_cast(q->p, x.e, to) : typed(q, x, to));
    }
    if (strncmp(name, "bits_", 5) == 0 && dtype_parse(name + 5, &to)) {
        expect(q, ")");
        if (q->error) return x;
        DType from = x.e ? x.e->dtype : DT_NONE;
        bool numbers = (dtype_is_int(from) || dtype_is_float(from)) && (dtype_is_int(to) || dtype_is_float(to));
        return numbers && dtype_size(from) == dtype_size(to) ? of(expr_bits(q->p, x.e, to)) :
                                                               fail(q, "wants a number of the same width: ", name);
    }
    for (int op = 0; op < E_COUNT; op++) {
        if (!is_function((EOp)op, name)) continue;
        Parsed y = { .e = NULL };
        if (expr_table[op].arity == 2) {
            expect(q, ",");
            y = choice(q);
        }
        expect(q, ")");
        return operate(q, (EOp)op, x, y);
    }
    return fail(q, "no function ", name);
}

static Parsed name(Parser *q) {
    char word[MAX_NAME];
    size_t n = 0;
    while (isalnum((unsigned char)q->s[n]) || q->s[n] == '_') n++;
    if (n >= MAX_NAME) return fail(q, "name too long", "");
    memcpy(word, q->s, n);
    word[n] = 0;
    q->s += n;
    for (int i = q->locals.n - 1; i >= 0; i--)
        if (strcmp(q->locals.at[i].name, word) == 0) return q->locals.at[i].value;
    for (int i = 0; i < q->n; i++)
        if (strcmp(q->names[i], word) == 0) return of(q->bound[i]);
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) return of(expr_const_i(q->p, DT_BOOL, word[0] == 't'));
    if (strcmp(word, "inf") == 0) return literal((double)INFINITY);
    if (strcmp(word, "nan") == 0) return literal((double)NAN);
    if (accept(q, "(")) return call(q, word);
    return fail(q, "unknown name ", arena_printf(expr_arena(q->p), "%s", word));
}

static Parsed unary(Parser *q) {
    if (++q->depth > MAX_NESTING) return fail(q, "nested too deep", "");
    Parsed t;
    skip_space(q);
    if (accept(q, "-")) {
        t = unary(q);
        if (t.e) t = operate(q, E_Neg, t, t);
        else t = (Parsed){ .f = -t.f, .i = (int64_t)(0 - (uint64_t)t.i), .is_int = t.is_int };
    } else if (*q->s == '!' && q->s[1] != '=') {
        q->s++;
        t = unary(q);
        t = operate(q, E_Not, t, t);
    } else if (accept(q, "~")) {
        t = unary(q);
        t = operate(q, E_BitNot, t, t);
    } else if (accept(q, "(")) {
        t = choice(q);
        expect(q, ")");
    } else {
        t = isalpha((unsigned char)*q->s) || *q->s == '_' ? name(q) : number(q);
    }
    q->depth--;
    return t;
}

// Operators that bind at least as strongly as `level`.
static Parsed binary(Parser *q, int level) {
    Parsed x = unary(q);
    while (!q->error) {
        const ExprInfix *o = expr_infix;
        skip_space(q);
        while (o->text && strncmp(q->s, o->text, strlen(o->text)) != 0) o++;
        if (!o->text || o->level < level) break;
        q->s += strlen(o->text);
        Parsed y = binary(q, o->level + 1);
        bool done = false;
        if (!x.e && !y.e) x = literal_arithmetic(o->op, x, y, &done);
        if (!done) x = o->swap ? operate(q, o->op, y, x) : operate(q, o->op, x, y);
    }
    return x;
}

static Parsed choice(Parser *q) {
    if (++q->depth > MAX_NESTING) return fail(q, "nested too deep", "");
    Parsed c = binary(q, 1);
    if (!q->error && accept(q, "?")) {
        Parsed x = choice(q);
        expect(q, ":");
        Parsed y = choice(q);
        DType d = x.e ? x.e->dtype : y.e ? y.e->dtype : q->result;
        if (q->error) return c;
        Expr *cond = typed(q, c, DT_BOOL), *a = typed(q, x, d), *b = typed(q, y, d);
        if (cond->dtype != DT_BOOL) return fail(q, "a condition is bool, not ", dtype_name(cond->dtype));
        if (a->dtype != b->dtype)
            return fail(q, arena_printf(expr_arena(q->p), "choice between %s and ", dtype_name(a->dtype)),
                dtype_name(b->dtype));
        c = of(expr_select(q->p, cond, a, b));
    }
    q->depth--;
    return c;
}

// `name =` (not `==`) at the start of the text that is left; moves past it.
static bool local_name(Parser *q, char *word) {
    skip_space(q);
    size_t n = 0;
    const char *s = q->s;
    if (!isalpha((unsigned char)*s) && *s != '_') return false;
    while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
    const char *after = s + n;
    while (isspace((unsigned char)*after)) after++;
    if (n >= MAX_NAME || *after != '=' || after[1] == '=') return false;
    memcpy(word, s, n);
    word[n] = 0;
    q->s = after + 1;
    return true;
}

// The dtype of literals that meet only literals, where the caller has no wish: that of the first number that a name
// stands for.
static DType usual_dtype(int n, Expr *const *bound) {
    for (int i = 0; i < n; i++)
        if (dtype_is_float(bound[i]->dtype)) return bound[i]->dtype;
    for (int i = 0; i < n; i++)
        if (bound[i]->dtype != DT_BOOL) return bound[i]->dtype;
    return DT_F32;
}

Expr *expr_parse(ExprPool *p, const char *text, int n, const char *const *names, Expr *const *bound, DType result,
    const char **error) {
    Parser q = { .p = p,
        .s = text,
        .n = n,
        .names = names,
        .bound = bound,
        .result = result == DT_NONE ? usual_dtype(n, bound) : result };
    Local local;
    while (!q.error && local_name(&q, local.name)) {
        local.value = choice(&q);
        expect(&q, ";");
        VEC_PUSH(expr_arena(p), q.locals, local);
    }
    Parsed t = choice(&q);
    skip_space(&q);
    if (!q.error && *q.s) fail(&q, "unexpected text", "");
    if (error) *error = q.error;
    return q.error ? NULL : typed(&q, t, q.result);
}
