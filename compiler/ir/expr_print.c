// SPDX-License-Identifier: MIT OR Apache-2.0
// Expression -> text that expr_parse reads back to the same expression, for graph dumps and tests.
//
// Arguments are x y z w a4 a5 ...; what is used more than once, or nested deeply, is named first: `t0 = exp(x); t0 /
// (1 + t0)`, so that text grows with the DAG and not with the tree. Leaves that only kernels have (i0, load(...),
// acc) are for reading, not for parsing.
#include "expr.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEIGHT = 24 };                       // of an expression without names
typedef struct Piece { const char *text; int level, height; } Piece;    // text NULL: not printed yet
typedef struct ExprWriter { Arena *arena; ExprOrder o; Piece *piece; Text *out; int locals; } ExprWriter;

static void print_float(Text *t, DType d, double v) {
    char s[40];
    if (isnan(v) || isinf(v)) {
        text_printf(t, "%s", isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (float_round(d, strtod(s, NULL)) == v) break;
    }
    text_printf(t, "%s", s);
}

static void print_const(Text *t, const Expr *e) {
    if (dtype_is_float(e->dtype)) print_float(t, e->dtype, e->c.f);
    else if (e->dtype == DT_BOOL) text_printf(t, e->c.i ? "true" : "false");
    else if (e->dtype == DT_U64) text_printf(t, "%" PRIu64, e->c.u);
    else text_printf(t, "%" PRId64, e->c.i);
}

static void operand(const ExprWriter *q, Text *t, int i, int level) {
    const Piece *a = &q->piece[i];
    text_printf(t, a->level < level ? "(%s)" : "%s", a->text);
}

static const ExprInfix *infix_of(EOp op) {
    for (const ExprInfix *o = expr_infix; o->text; o++)
        if (o->op == op && !o->swap) return o;
    return NULL;
}

static void print_function(const ExprWriter *q, Text *t, const Expr *e, const int *a) {
    for (const char *s = expr_table[e->op].name; *s; s++) text_printf(t, "%c", tolower((unsigned char)*s));
    text_printf(t, "(");
    for (int i = 0; i < 3 && a[i] >= 0; i++) text_printf(t, "%s%s", i ? ", " : "", q->piece[a[i]].text);
    text_printf(t, ")");
}

static void print_reduce(const ExprWriter *q, Text *t, const Expr *e, const int *a) {
    text_printf(t, "%s[", reduce_table[e->rop].word);
    for (int i = 0; i < e->n_axes; i++) text_printf(t, "%si%d", i ? "," : "", e->axes[i]);
    text_printf(t, "](%s", q->piece[a[0]].text);
    if (a[1] >= 0) text_printf(t, ", %s", q->piece[a[1]].text);
    text_printf(t, ")");
}

static void print_load(const ExprWriter *q, Text *t, const Expr *e, const int *a) {
    text_printf(t, "load(%%%d, %s", e->value->id, q->piece[a[0]].text);
    if (a[1] >= 0) text_printf(t, " if %s", q->piece[a[1]].text);
    if (a[2] >= 0) text_printf(t, " else %s", q->piece[a[2]].text);
    text_printf(t, ")");
}

static void print_size(Text *t, const Expr *e) {
    const char *size = dim_text(t->arena, e->graph, e->extent);
    text_printf(t, strpbrk(size, "+-*/") ? "(%s)" : "%s", size);
}

// The text of one node over its operands' texts; returns how strongly its outermost operator binds.
static int print_node(const ExprWriter *q, Text *t, const Expr *e, const int *a) {
    static const char *const args[] = { "x", "y", "z", "w" };
    const ExprInfix *o = infix_of(e->op);
    switch (e->op) {
    case E_Const: print_const(t, e); return t->at[0] == '-' ? LEVEL_UNARY : LEVEL_PRIMARY;
    case E_Arg:
        if (e->c.i < 4) text_printf(t, "%s", args[e->c.i]);
        else text_printf(t, "a%d", (int)e->c.i);
        return LEVEL_PRIMARY;
    case E_Axis: text_printf(t, "i%d", (int)e->c.i); return LEVEL_PRIMARY;
    case E_Size: print_size(t, e); return LEVEL_PRIMARY;
    case E_Acc: text_printf(t, "acc"); return LEVEL_PRIMARY;
    case E_Load: print_load(q, t, e, a); return LEVEL_PRIMARY;
    case E_Reduce: print_reduce(q, t, e, a); return LEVEL_PRIMARY;
    case E_Cast: text_printf(t, "%s(%s)", dtype_name(e->dtype), q->piece[a[0]].text); return LEVEL_PRIMARY;
    case E_Bits: text_printf(t, "bits_%s(%s)", dtype_name(e->dtype), q->piece[a[0]].text); return LEVEL_PRIMARY;
    case E_Select:
        operand(q, t, a[0], LEVEL_SELECT + 1);
        text_printf(t, " ? ");
        if (is_const(e->a[1]) && is_const(e->a[2])) text_printf(t, "%s(%s)", dtype_name(e->dtype), q->piece[a[1]].text);
        else operand(q, t, a[1], LEVEL_SELECT + 1);
        text_printf(t, " : ");
        operand(q, t, a[2], LEVEL_SELECT);
        return LEVEL_SELECT;
    case E_Neg: case E_Not: case E_BitNot:
        text_printf(t, e->op == E_Neg ? "-" : e->op == E_Not ? "!" : "~");
        operand(q, t, a[0], LEVEL_UNARY);
        return LEVEL_UNARY;
    default: break;
    }
    if (!o) {
        print_function(q, t, e, a);
        return LEVEL_PRIMARY;
    }
    operand(q, t, a[0], o->level);
    text_printf(t, " %s ", o->text);
    operand(q, t, a[1], o->level + 1);
    return o->level;
}

static void print_piece(ExprWriter *q, int i) {
    const Expr *e = q->o.at[i];
    const int *a = q->o.arg[i];
    Piece *piece = &q->piece[i];
    Text t;
    text_init(&t, q->arena);
    piece->level = print_node(q, &t, e, a);
    piece->text = t.at;
    for (int k = 0; k < 3; k++)
        if (a[k] >= 0 && q->piece[a[k]].height >= piece->height) piece->height = q->piece[a[k]].height + 1;
    bool leaf = a[0] < 0, last = i == q->o.n - 1;
    if (leaf || last || (q->o.uses[i] < 2 && piece->height < MAX_HEIGHT)) return;
    text_printf(q->out, "t%d = %s; ", q->locals, piece->text);
    *piece = (Piece){ arena_printf(q->arena, "t%d", q->locals++), LEVEL_PRIMARY, 0 };
}

void expr_print(const Expr *e, Text *out) {
    ExprWriter q = { .arena = out->arena, .out = out };
    if (is_const(e)) {                          // nothing else says its dtype
        text_printf(out, "%s(", dtype_name(e->dtype));
        print_const(out, e);
        text_printf(out, ")");
        return;
    }
    order_make(&q.o, e);
    q.piece = NEW_ARRAY(q.arena, Piece, q.o.n);
    for (int i = 0; i < q.o.n; i++) print_piece(&q, i);
    text_printf(out, "%s", q.piece[q.o.n - 1].text);
    order_free(&q.o);
}
