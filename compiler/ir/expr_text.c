// SPDX-License-Identifier: MIT OR Apache-2.0
// The C and GLSL text of one scalar operation over its operands' texts.
//
// In: a node (not a leaf of a kernel: Arg, Axis, Load, Acc, Reduce) and its operands' texts, each a name, a literal,
// a call or in parentheses. Out: again such a text, so texts nest; parentheses that an operand's operator makes
// needless are taken off. The idea: the formats stand in exprs.def; this file knows what a dtype makes of them. A
// value of a small float is a float, of a 2- or 4-bit integer an 8-bit one, of DT_INDEX an int64_t (GLSL: int).
// Signed arithmetic runs unsigned and comes back, so nothing overflows undefined.
#include "expr.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// One language's spelling.
typedef struct Language {
    bool glsl;
    const char *(*type)(DType d);
    const char *u32, *u64;
} Language;

static bool is_sub_byte(DType d) { return d == DT_I2 || d == DT_U2 || d == DT_I4 || d == DT_U4; }
static bool is_wide(DType d) { return d == DT_I64 || d == DT_U64 || d == DT_INDEX; }

const char *expr_c_type(DType d) {
    switch (d) {
    case DT_F64: return "double";
    case DT_BOOL: return "bool";
    case DT_I8: case DT_I4: case DT_I2: return "int8_t";
    case DT_U8: case DT_U4: case DT_U2: return "uint8_t";
    case DT_I16: return "int16_t";
    case DT_U16: return "uint16_t";
    case DT_I32: return "int32_t";
    case DT_U32: return "uint32_t";
    case DT_I64: case DT_INDEX: return "int64_t";
    case DT_U64: return "uint64_t";
    case DT_STRING: return "burn_string";
    case DT_C64: return "burn_complex64";
    case DT_C128: return "burn_complex128";
    default: return "float";
    }
}

const char *expr_c_storage(DType d) {
    if (d == DT_BOOL) return "uint8_t";
    if (!dtype_is_small_float(d)) return expr_c_type(d);
    return dtype_size(d) == 2 ? "uint16_t" : "uint8_t";
}

const char *expr_glsl_type(DType d) {
    switch (d) {
    case DT_F64: return "double";
    case DT_BOOL: return "bool";
    case DT_I64: return "int64_t";
    case DT_U64: return "uint64_t";
    default: break;
    }
    return dtype_is_float(d) ? "float" : dtype_class(d) == CLASS_UINT ? "uint" : "int";
}

static const Language c_language = { false, expr_c_type, "uint32_t", "uint64_t" };
static const Language glsl_language = { true, expr_glsl_type, "uint", "uint64_t" };

// The type that arithmetic on d runs in: the suffix of helpers.
static const char *suffix(const Language *l, DType d) {
    if (dtype_is_float(d)) return d == DT_F64 ? "f64" : "f32";
    bool wide = is_wide(d) && !(l->glsl && d == DT_INDEX);
    return dtype_class(d) == CLASS_UINT ? (wide ? "u64" : "u32") : wide ? "i64" : "i32";
}

// ---- constants

static void float_text(const Language *l, Text *t, DType d, double v) {
    char s[40];
    bool wide = d == DT_F64;
    if (isnan(v) || isinf(v)) {
        const char *bits = isnan(v) ? "0x7fc00000u" : v < 0 ? "0xff800000u" : "0x7f800000u";
        if (l->glsl) text_printf(t, wide ? "double(uintBitsToFloat(%s))" : "uintBitsToFloat(%s)", bits);
        else text_printf(t, "%s%s", wide ? "(double)" : "", isnan(v) ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (float_round(d, strtod(s, NULL)) == v) break;
    }
    text_printf(t, "%s%s%s", s, strpbrk(s, ".e") ? "" : ".0", l->glsl ? (wide ? "lf" : "") : wide ? "" : "f");
}

static void int_text(const Language *l, Text *t, DType d, Scalar c) {
    const char *u = dtype_class(d) == CLASS_UINT ? "u" : "";
    bool wide = is_wide(d);
    if (l->glsl && (d == DT_I64 || d == DT_U64)) text_printf(t, d == DT_U64 ? "%" PRIu64 "ul" : "%" PRId64 "l", c.u);
    else if (d == DT_U64 && c.u > UINT32_MAX) text_printf(t, "UINT64_C(%" PRIu64 ")", c.u);
    else if (wide && c.i == INT64_MIN) text_printf(t, "INT64_MIN");
    else if (wide && d != DT_U64 && (c.i > INT32_MAX || c.i < -INT32_MAX)) text_printf(t, "INT64_C(%" PRId64 ")", c.i);
    else if (c.i == INT32_MIN) text_printf(t, "(-2147483647 - 1)");
    else text_printf(t, "%" PRId64 "%s", c.i, u);
}

const char *expr_c_zero(DType d) {
    if (d == DT_STRING) return "\"\"";
    return d == DT_C64 ? "(burn_complex64){ 0, 0 }" : d == DT_C128 ? "(burn_complex128){ 0, 0 }" : "0";
}

static void const_text(const Language *l, Text *t, const Expr *e) {
    if (e->dtype == DT_STRING || dtype_class(e->dtype) == CLASS_COMPLEX) text_printf(t, "%s", expr_c_zero(e->dtype));
    else if (dtype_is_float(e->dtype)) float_text(l, t, e->dtype, e->c.f);
    else if (e->dtype == DT_BOOL) text_printf(t, e->c.i ? "true" : "false");
    else int_text(l, t, e->dtype, e->c);
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

// Is the whole text inside one pair of parentheses?
static bool enclosed(const char *s) {
    int depth = 0;
    if (*s != '(') return false;
    for (; *s; s++) {
        if (*s == '(') depth++;
        if (*s == ')' && --depth == 0) return s[1] == 0;
    }
    return false;
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
    return strips && enclosed(text) ? arena_strndup(a, text + 1, strlen(text) - 2) : text;
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
    const Language *l = f->l;
    const char *type = is_wide(f->d) && !(l->glsl && f->d == DT_INDEX) ? l->u64 : l->u32;
    if (f->d == DT_U32 || f->d == DT_U64 || (l->glsl && dtype_class(f->d) == CLASS_UINT))
        text_printf(f->out, "%s", text);
    else if (l->glsl) text_printf(f->out, "%s(%s)", type, text);
    else text_printf(f->out, "(%s)%s", type, text);
}

static void put_operand(const Filler *f, int k, bool sole) {
    const char *text = f->operand[k];
    if (f->in_float && f->d == DT_F64) text_printf(f->out, "float(%s)", text);
    // a call's argument
    else if (sole && enclosed(text)) text_printf(f->out, "%.*s", (int)strlen(text) - 2, text + 1);
    else text_printf(f->out, "%s", text);
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

static int bits_of(DType d) {
    return d == DT_I2 || d == DT_U2 ? 2 : d == DT_I4 || d == DT_U4 ? 4 : 8 * (int)dtype_size(d);
}

// Brings arithmetic in 32 or 64 bits back to d. `call`: the text is a call, whose type is already d's own at 32 or 64
// bits.
static void put_wrapped(const Language *l, Text *out, DType d, const char *body, bool call) {
    bool is_unsigned = dtype_class(d) == CLASS_UINT, narrow = !is_wide(d) && d != DT_I32 && d != DT_U32;
    const char *type = l->type(d);
    if (!narrow && call) text_printf(out, "%s", body);
    else if (!narrow && is_unsigned) text_printf(out, "(%s)", body);
    else if (l->glsl && !narrow) text_printf(out, "%s(%s)", type, body);
    else if (l->glsl)
        text_printf(out, is_unsigned || call ? "bitfieldExtract(%s, 0, %d)" : "bitfieldExtract(int(%s), 0, %d)", body,
            bits_of(d));
    else if (is_sub_byte(d))
        text_printf(out, call ? "burn_wrap_%s((uint32_t)%s)" : "burn_wrap_%s((uint32_t)(%s))", dtype_name(d), body);
    else text_printf(out, call ? "(%s)%s" : "(%s)(%s)", type, body);
}

static bool starts_call(const char *format) { return (*format >= 'a' && *format <= 'z'); }

static void put_format(const Filler *f, const char *format) {
    Text body;
    Filler g = *f;
    text_init(&body, f->out->arena);
    g.out = &body;
    if (format[0] == '%' && format[1] == 'w') {
        fill(&g, format + 2);
        put_wrapped(f->l, f->out, f->d, body.at, starts_call(format + 2));
    } else if (format[0] == '%' && format[1] == 'd') {
        g.in_float = true;
        fill(&g, format + 2);
        text_printf(f->out, f->d == DT_F64 ? "double(%s)" : "%s", body.at);
    } else {
        fill(&g, format);
        bool prefix = format[0] == '-' || format[0] == '!' || starts_call(format);
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
    if (l->glsl && (e->op == E_Min || e->op == E_Max)) return e->op == E_Min ? "min($0, $1)" : "max($0, $1)";
    if (e->op != E_Div && e->op != E_Mod) return expr_table[e->op].c_float;
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
    bool shifts = y->c.u < (uint64_t)bits_of(e->dtype);
    if (e->op == E_Div && safe) return is_unsigned ? "%w$u0 / $u1" : "%w$0 / $1";
    if (e->op == E_Mod && safe) return is_unsigned ? "%w$u0 % $u1" : "%w$0 % $1";
    if (e->op == E_Shl && shifts) return "%w$u0 << $1";
    if (e->op == E_Shr && shifts) return is_unsigned ? "%w$u0 >> $1" : "%w$0 >> $1";
    return usual;
}

static const char *format_of(const Language *l, Arena *a, const Expr *e) {
    const ExprInfo *info = &expr_table[e->op];
    DType d = e->a[0]->dtype;
    if (d == DT_STRING) return e->op == E_Eq ? "strcmp($0, $1) == 0" : "strcmp($0, $1) != 0";
    if (dtype_class(d) == CLASS_COMPLEX)
        return e->op == E_Eq ? "($0.re == $1.re && $0.im == $1.im)" : "($0.re != $1.re || $0.im != $1.im)";
    if (d == DT_INDEX && info->rule != RULE_CMP) return index_format(l, a, e);
    if (!dtype_is_float(d)) return int_format(e, l->glsl ? info->glsl_int : info->c_int);
    if (e->op == E_Max && never_nan(e->a[1])) return "burn_max_num_@($0, $1)";
    if (e->op == E_Min && never_nan(e->a[1])) return "burn_min_num_@($0, $1)";
    return l->glsl ? info->glsl_float : info->c_float;
}

// ---- casts

static void cast_from_float(const Language *l, Text *out, DType from, DType to, const char *x) {
    const char *name = to == DT_INDEX ? (l->glsl ? "i32" : "i64") : dtype_name(to);
    text_printf(out, "burn_%s_from_%s(%s)", name, from == DT_F64 ? "f64" : "f32", x);
}

static void cast_to_float(const Language *l, Text *out, DType from, DType to, bool to_infinity, const char *x) {
    DType arithmetic = to == DT_F64 ? DT_F64 : DT_F32;
    bool same = dtype_is_float(from) && (from == DT_F64) == (arithmetic == DT_F64), small = dtype_is_small_float(to);
    if (small) text_printf(out, "burn_round_%s%s(", dtype_name(to), to_infinity ? "_inf" : "");
    if (same) text_printf(out, "%s", x);
    else text_printf(out, l->glsl ? "%s(%s)" : "(%s)%s", l->type(arithmetic), x);
    if (small) text_printf(out, ")");
}

static void cast_text(const Language *l, Text *out, const Expr *e, const char *x) {
    DType from = e->a[0]->dtype, to = e->dtype;
    int64_t lo, hi, from_lo, from_hi;
    bool same = strcmp(l->type(from), l->type(to)) == 0;
    if (dtype_is_float(to)) cast_to_float(l, out, from, to, e->c.i != 0, x);
    else if (dtype_is_float(from)) cast_from_float(l, out, from, to, x);
    else {
        int_bounds(from, &from_lo, &from_hi);
        int_bounds(to, &lo, &hi);
        bool fits = from_lo >= lo && from_hi <= hi;
        if (fits && same) text_printf(out, "%s", x);
        else if (fits || !(l->glsl || is_sub_byte(to))) text_printf(out, l->glsl ? "%s(%s)" : "(%s)%s", l->type(to), x);
        else if (!l->glsl) text_printf(out, "burn_wrap_%s((uint32_t)%s)", dtype_name(to), x);
        else
            put_wrapped(l, out, to,
                arena_printf(out->arena, "%s(%s)", is_wide(to) && to != DT_INDEX ? "uint64_t" : "uint", x), false);
    }
}

// The bits of a float are what is stored of it.
static void bits_text(const Language *l, Text *out, const Expr *e, const char *x) {
    DType from = e->a[0]->dtype, to = e->dtype;
    bool wide = from == DT_F64 || to == DT_F64, single = from == DT_F32 || to == DT_F32;
    const char *type = l->type(dtype_is_float(from) ? to : from);
    const char *whole = wide ? l->u64 : l->glsl || single ? l->u32 : dtype_size(to) == 2 ? "uint16_t" : "uint8_t";
    if (dtype_is_float(from)) {
        const char *of = l->glsl && wide ? "doubleBitsToUint64" :
            l->glsl && single            ? "floatBitsToUint" :
            wide                         ? "burn_f64_bits" :
            single                       ? "burn_f32_bits" :
                                           "";
        text_printf(out, l->glsl ? "%s(" : "(%s)", type);
        if (*of) text_printf(out, "%s(%s)", of, x);
        else text_printf(out, "burn_f32_to_%s(%s)", dtype_name(from), x);
        if (l->glsl) text_printf(out, ")");
    } else {
        const char *of = l->glsl && wide ? "uint64BitsToDouble" :
            l->glsl && single            ? "uintBitsToFloat" :
            wide                         ? "burn_f64_of_bits" :
            single                       ? "burn_f32_of_bits" :
                                           "";
        if (*of) text_printf(out, "%s(", of);
        else text_printf(out, "burn_%s_to_f32(", dtype_name(to));
        text_printf(out, l->glsl ? "%s(%s)%s)" : "(%s)%s%s)", whole, x,
            l->glsl && !wide && !single ? (dtype_size(to) == 2 ? " & 0xffffu" : " & 0xffu") : "");
    }
}

// ---- a node

// Free to compute: a choice between two such needs no masks to become vector code.
static bool is_cheap(const Expr *e) { return e->op == E_Const || e->op == E_Arg || e->op == E_Acc || e->op == E_Load; }

static void node_text(const Language *l, Text *out, const Expr *e, const char *const *text) {
    Filler f = { .l = l, .out = out, .e = e, .d = e->a[0] && e->op != E_Select ? e->a[0]->dtype : e->dtype };
    if (is_const(e)) {
        const_text(l, out, e);
        return;
    }
    for (int k = 0; k < expr_table[e->op].arity; k++) f.operand[k] = operand(out->arena, e, k, text[k]);
    if (e->op == E_Cast) cast_text(l, out, e, text[0]);
    else if (e->op == E_Bits) bits_text(l, out, e, f.operand[0]);
    else if (e->op == E_Select) {
        if (!l->glsl && dtype_is_float(e->dtype) && !(is_cheap(e->a[1]) && is_cheap(e->a[2]))) {
            fill(&f, "burn_select_@($0, $1, $2)");
            return;
        }
        bool promoted = !l->glsl && (dtype_is_int(e->dtype) || e->dtype == DT_BOOL) && dtype_size(e->dtype) < 4;
        text_printf(out, promoted ? "(%s)" : "%s", promoted ? l->type(e->dtype) : "");
        text_printf(out, "(%s ? %s : %s)", f.operand[0], f.operand[1], f.operand[2]);
    } else if (expr_table[e->op].rule == RULE_SPECIAL) {
        bug("%s is spelled by the kernel's printer", expr_table[e->op].name);
    } else {
        put_format(&f, format_of(l, out->arena, e));
    }
}

void expr_c_text(Text *out, const Expr *e, const char *const *operand_text) {
    node_text(&c_language, out, e, operand_text);
}
void expr_glsl_text(Text *out, const Expr *e, const char *const *operand_text) {
    node_text(&glsl_language, out, e, operand_text);
}

// ---- elements in memory, in C

void expr_c_load(Text *out, DType d, const char *element) {
    if (dtype_is_small_float(d)) text_printf(out, "burn_%s_to_f32(%s)", dtype_name(d), element);
    else if (d == DT_BOOL) text_printf(out, "(%s != 0)", element);
    else text_printf(out, "%s", element);
}

void expr_c_store(Text *out, DType d, const char *value) {
    if (dtype_is_small_float(d)) text_printf(out, "burn_f32_to_%s(%s)", dtype_name(d), value);
    else text_printf(out, "%s", value);
}
