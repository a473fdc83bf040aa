// SPDX-License-Identifier: MIT OR Apache-2.0
// What every scalar operation computes, as plain C: the constant folder's arithmetic and the reference for all
// printed code.
//
// In: an operation, its operands' dtype and values. Out: the value, in the dtype that arithmetic runs in: f32 (and
// the small floats, which compute in f32) rounded after every operation, integers wrapped to their width. The idea:
// floats in double, then rounded once, which for + - * / sqrt of f32 is the correctly rounded result; integers modulo
// 2^64, then cut.
#include "expr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int int_bits(DType d) {
    switch (d) {
    case DT_BOOL: return 1;
    case DT_INDEX: return 64;
    default: return (int)dtype_bits(d);
    }
}

static bool is_signed(DType d) { return dtype_class(d) == CLASS_INT; }

int64_t int_wrap(DType d, uint64_t bits) {
    int n = int_bits(d);
    if (d == DT_BOOL) return bits != 0;
    if (n == 64) return (int64_t)bits;
    uint64_t low = bits & ((UINT64_C(1) << n) - 1), sign = UINT64_C(1) << (n - 1);
    return is_signed(d) ? (int64_t)((low ^ sign) - sign) : (int64_t)low;
}

bool int_bounds(DType d, int64_t *lo, int64_t *hi) {
    if (!dtype_is_int(d) && d != DT_BOOL) return false;
    int n = int_bits(d);
    *lo = is_signed(d) ? -(INT64_MAX >> (64 - n)) - 1 : 0;
    *hi = is_signed(d) ? INT64_MAX >> (64 - n) : n == 64 ? INT64_MAX : (INT64_C(1) << n) - 1;
    return true;
}

double float_round(DType d, double v) { return d == DT_F64 ? v : (double)(float)v; }

// ---- floats

static double floor_mod_f(double x, double y) {
    double r = fmod(x, y);
    if (r != 0 && (r < 0) != (y < 0)) r += y;
    return r == 0 ? copysign(0.0, y) : r;
}

static double min_f(double x, double y) { return x != x ? x : x < y ? x : y; }         // NaN when either is
static double max_f(double x, double y) { return x != x ? x : x > y ? x : y; }
static double sign_f(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

static double sigmoid(double x) {
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static double eval_float(EOp op, double x, double y) {
    switch (op) {
    case E_Add: return x + y;
    case E_Sub: return x - y;
    case E_Mul: return x * y;
    case E_Div: return x / y;
    case E_Mod: return fmod(x, y);
    case E_FloorMod: return floor_mod_f(x, y);
    case E_Neg: return -x;
    case E_Abs: return fabs(x);
    case E_Sign: return sign_f(x);
    case E_Min: return min_f(x, y);
    case E_Max: return max_f(x, y);
    case E_Pow: return pow(x, y);
    case E_Exp: return exp(x);
    case E_Log: return log(x);
    case E_Log1p: return log1p(x);
    case E_Expm1: return expm1(x);
    case E_Sqrt: return sqrt(x);
    case E_Sin: return sin(x);
    case E_Cos: return cos(x);
    case E_Tan: return tan(x);
    case E_Asin: return asin(x);
    case E_Acos: return acos(x);
    case E_Atan: return atan(x);
    case E_Sinh: return sinh(x);
    case E_Cosh: return cosh(x);
    case E_Tanh: return tanh(x);
    case E_Asinh: return asinh(x);
    case E_Acosh: return acosh(x);
    case E_Atanh: return atanh(x);
    case E_Erf: return erf(x);
    case E_Sigmoid: return sigmoid(x);
    case E_Softplus: return max_f(x, 0) + log1p(exp(-fabs(x)));
    case E_Floor: return floor(x);
    case E_Ceil: return ceil(x);
    case E_Round: return rint(x);
    case E_Trunc: return trunc(x);
    default: bug("%s of floats", expr_table[op].name);
    }
}

static bool test_float(EOp op, double x, double y) {
    switch (op) {
    case E_IsNan: return isnan(x);
    case E_IsInf: return isinf(x);
    case E_Lt: return x < y;
    case E_Le: return x <= y;
    case E_Eq: return x == y;
    case E_Ne: return x != y;
    default: bug("%s of floats", expr_table[op].name);
    }
}

// ---- integers: operands are sign- or zero-extended to 64 bits; the caller cuts the result to its width

static uint64_t pow_u(uint64_t x, uint64_t y) {
    uint64_t r = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1) r *= x;
    return r;
}

static uint64_t pow_i(int64_t x, int64_t y) {
    if (y >= 0) return pow_u((uint64_t)x, (uint64_t)y);
    return x == 1 ? 1 : x == -1 ? (y & 1 ? UINT64_MAX : 1) : 0;
}

// Truncating quotient or remainder; division by zero is 0, and the one overflow wraps.
static uint64_t divide(bool sign, bool quotient, uint64_t x, uint64_t y) {
    if (y == 0) return 0;
    if (!sign) return quotient ? x / y : x % y;
    if (y == UINT64_MAX) return quotient ? 0 - x : 0;           // by -1
    int64_t a = (int64_t)x, b = (int64_t)y;
    return (uint64_t)(quotient ? a / b : a % b);
}

static uint64_t floor_mod_i(bool sign, uint64_t x, uint64_t y) {
    uint64_t r = divide(sign, false, x, y);
    return sign && r != 0 && ((int64_t)r < 0) != ((int64_t)y < 0) ? r + y : r;
}

static uint64_t floor_div_i(int64_t x, int64_t y) {
    uint64_t q = divide(true, true, (uint64_t)x, (uint64_t)y), r = divide(true, false, (uint64_t)x, (uint64_t)y);
    return r != 0 && ((int64_t)r < 0) != (y < 0) ? q - 1 : q;
}

static uint64_t shift_right(DType d, uint64_t x, uint64_t n) {
    bool all = n >= (uint64_t)int_bits(d);
    if (!is_signed(d)) return all ? 0 : x >> n;
    uint64_t fill = (int64_t)x < 0 ? UINT64_MAX : 0;
    return all ? fill : n == 0 ? x : (x >> n) | fill << (64 - n);
}

static uint64_t eval_int(EOp op, DType d, uint64_t x, uint64_t y) {
    bool sign = is_signed(d);
    bool less = sign ? (int64_t)x < (int64_t)y : x < y;
    switch (op) {
    case E_Add: return x + y;
    case E_Sub: return x - y;
    case E_Mul: return x * y;
    case E_Div: return d == DT_INDEX ? floor_div_i((int64_t)x, (int64_t)y) : divide(sign, true, x, y);
    case E_Mod: return d == DT_INDEX ? floor_mod_i(true, x, y) : divide(sign, false, x, y);
    case E_FloorMod: return floor_mod_i(sign, x, y);
    case E_Neg: return 0 - x;
    case E_Abs: return sign && (int64_t)x < 0 ? 0 - x : x;
    case E_Sign: return x == 0 ? 0 : sign && (int64_t)x < 0 ? UINT64_MAX : 1;
    case E_Min: return less ? x : y;
    case E_Max: return less ? y : x;
    case E_Pow: return sign ? pow_i((int64_t)x, (int64_t)y) : pow_u(x, y);
    case E_BitAnd: return x & y;
    case E_BitOr: return x | y;
    case E_BitXor: case E_Xor: return x ^ y;
    case E_BitNot: return ~x;
    case E_Shl: return y >= (uint64_t)int_bits(d) ? 0 : x << y;
    case E_Shr: return shift_right(d, x, y);
    case E_Lt: return less;
    case E_Le: return less || x == y;
    case E_Eq: return x == y;
    case E_Ne: return x != y;
    case E_And: return x & y;
    case E_Or: return x | y;
    case E_Not: return !x;
    default: bug("%s of integers", expr_table[op].name);
    }
}

static const char *string_of(Scalar x) { return x.u ? (const char *)(uintptr_t)x.u : ""; }

Scalar eval_op(EOp op, DType d, Scalar x, Scalar y) {
    ExprRule rule = expr_table[op].rule;
    if (d == DT_STRING) return (Scalar){ .i = (strcmp(string_of(x), string_of(y)) == 0) == (op == E_Eq) };
    if (dtype_is_float(d)) {
        if (rule == RULE_CMP || rule == RULE_TEST) return (Scalar){ .i = test_float(op, x.f, y.f) };
        return (Scalar){ .f = float_round(d, eval_float(op, x.f, y.f)) };
    }
    uint64_t v = eval_int(op, d, x.u, y.u);
    return (Scalar){ .i = rule == RULE_CMP ? (int64_t)v : int_wrap(d, v) };
}

// ---- casts

// Toward zero; NaN is 0 and what is out of range the nearest end of the range.
static int64_t int_of_float(DType d, double v) {
    int64_t lo, hi;
    int_bounds(d, &lo, &hi);
    if (isnan(v)) return 0;
    if (d == DT_U64) return v >= 0x1p64 ? -1 : v >= 0x1p63 ? (int64_t)(uint64_t)v : v <= 0 ? 0 : (int64_t)v;
    if (v >= (double)hi) return hi;
    return v <= (double)lo ? lo : (int64_t)v;
}

Scalar eval_cast_scalar(DType from, DType to, bool to_infinity, Scalar x) {
    bool from_float = dtype_is_float(from);
    if (to == DT_BOOL) return (Scalar){ .i = from_float ? x.f != 0 : x.i != 0 };
    if (!dtype_is_float(to)) return (Scalar){ .i = from_float ? int_of_float(to, x.f) : int_wrap(to, x.u) };
    double v;
    if (from_float) v = x.f;
    else if (to == DT_F64) v = from == DT_U64 ? (double)x.u : (double)x.i;
    else v = from == DT_U64 ? (double)(float)x.u : (double)(float)x.i;
    if (!dtype_is_small_float(to)) return (Scalar){ .f = float_round(to, v) };
    return (Scalar){ .f = (double)small_to_float(to, small_from_float(to, float_to_odd(v), !to_infinity)) };
}

Scalar eval_bits(DType from, DType to, Scalar x) {
    union { float f; uint32_t u; } single;
    if (dtype_is_float(from)) {
        single.f = (float)x.f;
        uint64_t bits = from == DT_F64 ? x.u : from == DT_F32 ? single.u : small_from_float(from, single.f, true);
        return (Scalar){ .i = int_wrap(to, bits) };
    }
    if (to == DT_F64) return x;
    single.u = (uint32_t)x.u;
    return (Scalar){ .f = to == DT_F32 ?
            (double)single.f :
            (double)small_to_float(to, single.u & (dtype_size(to) == 1 ? 0xffu : 0xffffu)) };
}

Scalar expr_eval(const Expr *e, const Scalar *args) {
    ExprOrder o;
    order_make(&o, e);
    Scalar *v = malloc(sizeof *v * (size_t)o.n);
    if (!v) fatal(EXIT_MEMORY, "out of memory");
    for (int i = 0; i < o.n; i++) {
        const Expr *n = o.at[i];
        const int *a = o.arg[i];
        switch (n->op) {
        case E_Const: v[i] = n->c; break;
        case E_Arg: v[i] = args[n->c.i]; break;
        case E_Select: v[i] = v[a[0]].i ? v[a[1]] : v[a[2]]; break;
        case E_Cast: v[i] = eval_cast_scalar(n->a[0]->dtype, n->dtype, n->c.i != 0, v[a[0]]); break;
        case E_Bits: v[i] = eval_bits(n->a[0]->dtype, n->dtype, v[a[0]]); break;
        case E_Axis:
        case E_Size:
        case E_Load:
        case E_Acc:
        case E_Reduce: bug("%s has no value outside a kernel", expr_table[n->op].name);
        default: v[i] = eval_op(n->op, n->a[0]->dtype, v[a[0]], a[1] >= 0 ? v[a[1]] : (Scalar){ .i = 0 });
        }
    }
    Scalar result = v[o.n - 1];
    free(v);
    order_free(&o);
    if (dtype_is_small_float(e->dtype))
        result.f = (double)small_to_float(e->dtype, small_from_float(e->dtype, (float)result.f, true));
    return result;
}
