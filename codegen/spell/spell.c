// SPDX-License-Identifier: MIT OR Apache-2.0
// The text of one scalar operation over its operands' texts, in any language.
//
// In: a node (not a leaf of a kernel: Arg, Axis, Load, Acc, Reduce) and its operands' texts, each a name, a literal,
// a call or in parentheses. Out: again such a text, so texts nest; parentheses that an operand's operator makes
// needless are taken off. The idea: the formats stand in the language's table; this file knows what a dtype makes of
// them. Signed arithmetic runs unsigned and comes back, so nothing overflows undefined.
#include "codegen/spell/spell.h"
#include "ir/expr.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool spell_is_wide(DType d) { return d == DT_I64 || d == DT_U64 || d == DT_INDEX; }
bool spell_is_narrow(DType d) { return !spell_is_wide(d) && d != DT_I32 && d != DT_U32; }

// What d is computed as.
static DType computed(const Language *l, DType d) { return d == DT_INDEX ? l->index : d; }

// The type that arithmetic on d runs in: the suffix of helpers.
static const char *suffix(const Language *l, DType d) {
    if (dtype_is_float(d)) return d == DT_F64 ? "f64" : "f32";
    bool wide = spell_is_wide(computed(l, d));
    return dtype_class(d) == CLASS_UINT ? (wide ? "u64" : "u32") : wide ? "i64" : "i32";
}

// ---- constants

static void float_text(const Language *l, Text *t, DType d, double v) {
    const FloatWords *w = d == DT_F64 ? &l->f64 : &l->f32;
    char s[40];
    if (isnan(v) || isinf(v)) {
        text_printf(t, "%s", isnan(v) ? w->nan : v < 0 ? w->minus_infinity : w->infinity);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (float_round(d, strtod(s, NULL)) == v) break;
    }
    text_printf(t, "%s%s%s", s, strpbrk(s, ".e") ? "" : ".0", w->end);
}

static void const_text(const Language *l, Text *t, const Expr *e) {
    DType d = e->dtype;
    if (d == DT_STRING || dtype_class(d) == CLASS_COMPLEX) text_printf(t, "%s", l->zero(d));
    else if (dtype_is_float(d)) float_text(l, t, d, e->c.f);
    else if (d == DT_BOOL) text_printf(t, e->c.i ? "true" : "false");
    else l->integer(t, d, e->c);
}

// ---- operators: how strongly they bind, where a node prints as an infix operator with nothing around it

enum { BINDS_OR = 1, BINDS_AND, BINDS_COMPARE, BINDS_ADD, BINDS_MUL, BINDS_ALWAYS };

static int strength(const Expr *e) {
    bool plain = e->a[0] && (dtype_is_float(e->a[0]->dtype) || e->a[0]->dtype == DT_INDEX);
    switch (e->op) {
    case E_Or: return BINDS_OR;
    case E_And: return BINDS_AND;
    case E_Lt: case E_Le: case E_Eq: case E_Ne: case E_Xor: return BINDS_COMPARE;
    case E_Add: case E_Sub: return plain ? BINDS_ADD : BINDS_ALWAYS;
    case E_Mul: return plain ? BINDS_MUL : BINDS_ALWAYS;
    case E_Div: return plain && e->dtype != DT_INDEX ? BINDS_MUL : BINDS_ALWAYS;
    default: return BINDS_ALWAYS;
    }
}

const char *text_bare(Arena *a, const char *s) {
    size_t n = strlen(s);
    int depth = 0;
    if (n < 2 || *s != '(') return s;
    for (size_t i = 0; i + 1 < n; i++) {
        depth += s[i] == '(' ? 1 : s[i] == ')' ? -1 : 0;
        if (depth == 0) return s;
    }
    return arena_strndup(a, s + 1, n - 2);
}

// Operand k of e, without parentheses that its operator does not need. (a && b) in an || keeps them: compilers warn.
static const char *operand(Arena *a, const Expr *e, int k, const char *text) {
    int own = strength(e), inner = strength(e->a[k]);
    bool left = inner == own && k == 0
        && (own == BINDS_ADD || own == BINDS_AND || own == BINDS_OR || (e->op == E_Mul && e->a[0]->op == E_Mul));
    bool tighter = inner > own && !(own == BINDS_OR && inner == BINDS_AND);
    bool guarded = k == 0 && e->a[k]->op == E_Load && e->a[k]->a[1];        // a choice itself
    bool strips = e->op == E_Select ? e->a[k]->op != E_Select && !guarded :
                                      own != BINDS_ALWAYS && inner != BINDS_ALWAYS && (left || tighter);
    return strips ? text_bare(a, text) : text;
}

// ---- formats

typedef struct Filler {
    const Language *l;
    Text *out;
    const Expr *e;
    const char *operand[3];
    DType d;
    bool in_float;
} Filler;

static void put_unsigned(const Filler *f, const char *text) {
    DType d = spell_is_wide(computed(f->l, f->d)) ? DT_U64 : DT_U32;
    if (!strcmp(f->l->type(f->d), f->l->type(d))) text_printf(f->out, "%s", text);
    else f->l->convert(f->out, d, text);
}

static void put_operand(const Filler *f, int k, bool sole) {
    const char *text = f->operand[k];
    if (f->in_float && f->d == DT_F64) f->l->convert(f->out, DT_F32, text);
    else text_printf(f->out, "%s", sole ? text_bare(f->out->arena, text) : text);  // sole: a call's argument
}

static void fill(const Filler *f, const char *format) {
    for (const char *s = format; *s; s++) {
        if (*s == '$' && s[1] == 'u') {
            put_unsigned(f, f->operand[s[2] - '0']);
            s += 2;
        } else if (*s == '$') {
            bool sole = s > format && (s[-1] == '(' || s[-1] == ' ') && (s[2] == ')' || s[2] == ',')
                && strchr(format, '(') != NULL;
            put_operand(f, s[1] - '0', sole);
            s++;
        } else if (*s == '%' && s[1] == 'f') {
            if (f->d != DT_F64) text_append(f->out, "f", 1);
            s++;
        } else if (*s == '@') {
            text_printf(f->out, "%s", suffix(f->l, f->d));
        } else {
            text_append(f->out, s, 1);
        }
    }
}

static void put_wrapped(const Language *l, Text *out, DType d, const char *body, bool call) {
    bool narrow = spell_is_narrow(d);
    if (!narrow && call) text_printf(out, "%s", body);
    else if (!narrow && dtype_class(d) == CLASS_UINT) text_printf(out, "(%s)", body);
    else l->wrap(out, d, body, call);
}

static bool is_call(const char *format) {
    return *format >= 'a' && *format <= 'z' && format[strlen(format) - 1] == ')';
}

static void put_format(const Filler *f, const char *format) {
    Text body;
    Filler g = *f;
    text_init(&body, f->out->arena);
    g.out = &body;
    if (format[0] == '%' && format[1] == 'w') {
        fill(&g, format + 2);
        put_wrapped(f->l, f->out, f->d, body.at, is_call(format + 2));
    } else if (format[0] == '%' && format[1] == 'd') {
        g.in_float = true;
        fill(&g, format + 2);
        if (f->d == DT_F64) f->l->convert(f->out, DT_F64, body.at);
        else text_printf(f->out, "%s", body.at);
    } else {
        fill(&g, format);
        bool prefix = format[0] == '-' || format[0] == '!' || is_call(format);
        text_printf(f->out, prefix ? "%s" : "(%s)", body.at);
    }
}

// ---- operations whose text depends on what their operands are

static bool never_nan(const Expr *e) {
    if (is_const(e)) return !isnan(e->c.f);
    return e->op == E_Cast && !dtype_is_float(e->a[0]->dtype);
}

// Index division and remainder round down. Where x may be negative but is bounded, a multiple of the divisor is added
// first.
static const char *index_format(const Language *l, Arena *a, const Expr *e) {
    bool by_const = is_const(e->a[1]) && e->a[1]->c.i > 0, quotient = e->op == E_Div;
    int64_t lo = e->a[0]->lo, d = e->a[1]->c.i;
    if (e->op == E_Min || e->op == E_Max) return l->op[e->op].on_int;
    if (e->op != E_Div && e->op != E_Mod) return l->op[e->op].on_float;
    if (lo >= 0 && (by_const || e->a[1]->lo > 0)) return quotient ? "$0 / $1" : "$0 % $1";
    if (!by_const || lo < -(INT64_C(1) << 30)) return quotient ? "burn_floordiv_@($0, $1)" : "burn_floormod_@($0, $1)";
    int64_t up = -floor_div(lo, d);
    return arena_printf(a, quotient ? "($0 + %" PRId64 ") / $1 - %" PRId64 : "($0 + %" PRId64 ") %% $1", up * d, up);
}

// Integers divided or shifted by a constant need none of the helpers' checks.
static const char *int_format(const Expr *e, const char *usual) {
    const Expr *y = e->a[1];
    if (!y || !is_const(y)) return usual;
    bool is_unsigned = dtype_class(e->dtype) == CLASS_UINT, safe = y->c.i != 0 && (is_unsigned || y->c.i != -1);
    bool shifts = y->c.u < dtype_bits(e->dtype);
    if (e->op == E_Div && safe) return is_unsigned ? "%w$u0 / $u1" : "%w$0 / $1";
    if (e->op == E_Mod && safe) return is_unsigned ? "%w$u0 % $u1" : "%w$0 % $1";
    if (e->op == E_Shl && shifts) return "%w$u0 << $1";
    if (e->op == E_Shr && shifts) return is_unsigned ? "%w$u0 >> $1" : "%w$0 >> $1";
    return usual;
}

static const char larger_number[] = "burn_max_num_@($0, $1)";

static const char *format_of(const Language *l, Arena *a, const Expr *e) {
    DType d = e->a[0]->dtype;
    bool equal = e->op == E_Eq;
    if (d == DT_STRING) return equal ? l->strings.equal : l->strings.different;
    if (e->op == E_Real) return l->complexes.real;
    if (e->op == E_Imag) return l->complexes.imag;
    if (e->op == E_Complex) return arena_printf(a, "(%s){ $0, $1 }", l->type(e->dtype));
    if (dtype_class(d) == CLASS_COMPLEX) return equal ? l->complexes.equal : l->complexes.different;
    if (d == DT_INDEX && expr_table[e->op].rule != RULE_CMP) return index_format(l, a, e);
    if (!dtype_is_float(d)) return int_format(e, l->op[e->op].on_int);
    if (e->op == E_Max && never_nan(e->a[1])) return larger_number;
    if (e->op == E_Min && never_nan(e->a[1])) return "burn_min_num_@($0, $1)";
    return l->op[e->op].on_float;
}

// ---- casts

// A double becomes a float of 16 bits or fewer by way of the f32 that is odd where it was cut: rounded once.
static void cast_to_float(const Language *l, Text *out, DType from, DType to, bool to_infinity, const char *x) {
    DType arithmetic = to == DT_F64 ? DT_F64 : DT_F32;
    bool same = dtype_is_float(from) && (from == DT_F64) == (arithmetic == DT_F64), small = dtype_is_small_float(to);
    if (small) text_printf(out, "burn_round_%s%s(", dtype_name(to), to_infinity ? "_inf" : "");
    if (same) text_printf(out, "%s", x);
    else if (small && from == DT_F64) text_printf(out, "burn_odd_f32(%s)", x);
    else l->convert(out, arithmetic, x);
    if (small) text_printf(out, ")");
}

static void cast_text(const Language *l, Text *out, const Expr *e, const char *x) {
    DType from = e->a[0]->dtype, to = e->dtype;
    int64_t lo, hi, from_lo, from_hi;
    if (dtype_is_float(to)) cast_to_float(l, out, from, to, e->c.i != 0, x);
    else if (dtype_is_float(from))
        text_printf(out, "burn_%s_from_%s(%s)", dtype_name(computed(l, to)), from == DT_F64 ? "f64" : "f32", x);
    else {
        int_bounds(from, &from_lo, &from_hi);
        int_bounds(to, &lo, &hi);
        bool fits = from_lo >= lo && from_hi <= hi;
        if (fits && !strcmp(l->type(from), l->type(to))) text_printf(out, "%s", x);
        else if (fits) l->convert(out, to, x);
        else l->truncate(out, to, x);
    }
}

// ---- a node

// Free to compute: a choice between two such needs no masks to become vector code.
static bool is_cheap(const Expr *e) { return e->op == E_Const || e->op == E_Arg || e->op == E_Acc || e->op == E_Load; }

static void select_text(const Filler *f) {
    const Language *l = f->l;
    const Expr *e = f->e;
    if (l->masks && dtype_is_float(e->dtype) && !(is_cheap(e->a[1]) && is_cheap(e->a[2]))) {
        fill(f, "burn_select_@($0, $1, $2)");
        return;
    }
    const char *choice = arena_printf(f->out->arena, "(%s ? %s : %s)", f->operand[0], f->operand[1], f->operand[2]);
    bool narrow = (dtype_is_int(e->dtype) || e->dtype == DT_BOOL) && dtype_size(e->dtype) < 4;
    if (l->promotes && narrow) l->convert(f->out, e->dtype, choice);
    else text_printf(f->out, "%s", choice);
}

// min(max(x, -128), 127), and 0 and 255: one instruction of some machines. operand: the maximum's text, from which
// that of x is taken unless it is a variable; NULL: it is none of these.
static const char *saturated(Arena *a, const Expr *e, const char *operand) {
    static const char call[] = "burn_max_i32(";
    const Expr *max = e->op == E_Min && e->dtype == DT_I32 ? e->a[0] : NULL;
    if (!max || max->op != E_Max || !is_const(e->a[1]) || !is_const(max->a[1])) return NULL;
    int64_t lo = max->a[1]->c.i, hi = e->a[1]->c.i;
    bool byte = lo == -128 && hi == 127;
    const char *end = byte ? ", -128)" : ", 0)";
    size_t n = strlen(operand), before = strlen(call), after = strlen(end);
    if ((!byte && (lo != 0 || hi != 255)) || n < before + after || strncmp(operand, call, before)
        || strcmp(operand + n - after, end))
        return NULL;
    return arena_printf(a, "burn_saturate_%s(%.*s)", byte ? "i8" : "u8", (int)(n - before - after), operand + before);
}

void spell_op(const Language *l, Text *out, const Expr *e, const char *const *operands) {
    Filler f = { .l = l, .out = out, .e = e, .d = e->a[0] && e->op != E_Select ? e->a[0]->dtype : e->dtype };
    if (is_const(e)) {
        const_text(l, out, e);
        return;
    }
    for (int k = 0; k < expr_table[e->op].arity; k++) f.operand[k] = operand(out->arena, e, k, operands[k]);
    const char *short_form = l->promotes && e->op == E_Min ? saturated(out->arena, e, operands[0]) : NULL;
    if (short_form) text_printf(out, "%s", short_form);
    else if (e->op == E_Cast) cast_text(l, out, e, operands[0]);
    else if (e->op == E_Bits) l->bits(out, e->a[0]->dtype, e->dtype, f.operand[0]);
    else if (e->op == E_Select) select_text(&f);
    else if (expr_table[e->op].rule == RULE_SPECIAL)
        bug("%s is spelled by the kernel's printer", expr_table[e->op].name);
    else put_format(&f, format_of(l, out->arena, e));
}

void spell_step(const Language *l, Text *out, ReduceOp op, DType d, const char *acc, const char *term) {
    Expr side = { .op = E_Acc, .dtype = d }, step = { .op = reduce_step(op, d), .dtype = d, .a = { &side, &side } };
    if (op == RED_TOP && dtype_is_float(d)) {
        Filler f = { .l = l, .out = out, .e = &step, .d = d, .operand = { acc, term } };
        put_format(&f, larger_number);
        return;
    }
    spell_op(l, out, &step, (const char *const[]){ acc, term, NULL });
}

// ---- the helpers that a program needs

static int find(const Helper *table, const char *name, size_t n) {
    for (int i = 0; table[i].name; i++)
        if (strncmp(table[i].name, name, n) == 0 && table[i].name[n] == 0) return i;
    return -1;
}

// Appends the definitions of what `text` calls, operands first; done[i] marks what is there already.
static void append_needed(const Helper *table, bool *done, const char *text, Text *out) {
    for (const char *s = text; (s = strstr(s, "burn_"));) {
        size_t n = 0;
        while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
        bool whole = s == text || !(isalnum((unsigned char)s[-1]) || s[-1] == '_');
        int i = whole ? find(table, s, n) : -1;
        s += n;
        if (i < 0 || done[i]) continue;
        done[i] = true;
        append_needed(table, done, table[i].text, out);
        text_printf(out, "%s", table[i].text);
    }
}

void spell_helpers(const Language *l, Text *out, const Text *above, const char *program) {
    int n = 0;
    while (l->helpers[n].name) n++;
    bool *done = NEW_ARRAY(out->arena, bool, n);
    for (int i = 0; i < n && above && above->at; i++) done[i] = strstr(above->at, l->helpers[i].text) != NULL;
    append_needed(l->helpers, done, program, out);
}
