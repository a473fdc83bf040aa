// SPDX-License-Identifier: MIT OR Apache-2.0
// C99: small floats are stored as their bits and computed in float, DT_INDEX is an int64_t, helpers stand before the
// program (c_helpers.c). Wants <stdbool.h>, <stdint.h>, <math.h> and <string.h>.
#include "codegen/spell/spell.h"

#include <inttypes.h>

static bool is_sub_byte(DType d) { return dtype_is_int(d) && dtype_bits(d) < 8; }

static const char *c_type(DType d) {
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

static const char *c_zero(DType d) {
    if (d == DT_STRING) return "\"\"";
    return d == DT_C64 ? "(burn_complex64){ 0, 0 }" : d == DT_C128 ? "(burn_complex128){ 0, 0 }" : "0";
}

static void c_integer(Text *t, DType d, Scalar c) {
    bool wide = spell_is_wide(d);
    if (d == DT_U64 && c.u > UINT32_MAX) text_printf(t, "UINT64_C(%" PRIu64 ")", c.u);
    else if (wide && c.i == INT64_MIN) text_printf(t, "(-INT64_C(9223372036854775807) - 1)");
    else if (wide && d != DT_U64 && (c.i > INT32_MAX || c.i < -INT32_MAX)) text_printf(t, "INT64_C(%" PRId64 ")", c.i);
    else if (c.i == INT32_MIN) text_printf(t, "(-2147483647 - 1)");
    else text_printf(t, "%" PRId64 "%s", c.i, dtype_class(d) == CLASS_UINT ? "u" : "");
}

static void c_convert(Text *out, DType d, const char *x) { text_printf(out, "(%s)%s", c_type(d), x); }

static void c_truncate(Text *out, DType d, const char *x) {
    if (is_sub_byte(d)) text_printf(out, "burn_wrap_%s((uint32_t)%s)", dtype_name(d), x);
    else c_convert(out, d, x);
}

static void c_wrap(Text *out, DType d, const char *body, bool call) {
    c_truncate(out, d, call ? body : arena_printf(out->arena, "(%s)", body));
}

// The bits of a float are what is stored of it.
static void c_bits(Text *out, DType from, DType to, const char *x) {
    bool wide = from == DT_F64 || to == DT_F64, single = from == DT_F32 || to == DT_F32;
    if (dtype_is_float(from)) {
        text_printf(out, "(%s)", c_type(to));
        if (wide || single) text_printf(out, "burn_f%d_bits(%s)", wide ? 64 : 32, x);
        else text_printf(out, "burn_f32_to_%s(%s)", dtype_name(from), x);
    } else if (wide) text_printf(out, "burn_f64_of_bits((uint64_t)%s)", x);
    else if (single) text_printf(out, "burn_f32_of_bits((uint32_t)%s)", x);
    else text_printf(out, "burn_%s_to_f32((%s)%s)", dtype_name(to), dtype_size(to) == 2 ? "uint16_t" : "uint8_t", x);
}

const Language spell_c = {
    .index = DT_I64,
    .masks = true,
    .promotes = true,
    .f32 = { "f", "NAN", "INFINITY", "-INFINITY" },
    .f64 = { "", "(double)NAN", "(double)INFINITY", "(double)-INFINITY" },
    .op = {
        [E_Add] =       { "$0 + $1",                  "%w$u0 + $u1" },
        [E_Sub] =       { "$0 - $1",                  "%w$u0 - $u1" },
        [E_Mul] =       { "$0 * $1",                  "%w$u0 * $u1" },
        [E_Div] =       { "$0 / $1",                  "%wburn_div_@($0, $1)" },
        [E_Mod] =       { "fmod%f($0, $1)",           "%wburn_mod_@($0, $1)" },
        [E_FloorMod] =  { "burn_floormod_@($0, $1)",  "%wburn_floormod_@($0, $1)" },
        [E_Neg] =       { "-$0",                      "%w0u - $u0" },
        [E_Abs] =       { "fabs%f($0)",               "%wburn_abs_@($0)" },
        [E_Sign] =      { "burn_sign_@($0)",          "%wburn_sign_@($0)" },
        [E_Min] =       { "burn_min_@($0, $1)",       "%wburn_min_@($0, $1)" },
        [E_Max] =       { "burn_max_@($0, $1)",       "%wburn_max_@($0, $1)" },
        [E_Pow] =       { "burn_pow_@($0, $1)",       "%wburn_pow_@($0, $1)" },
        [E_Exp] =       { "burn_exp_@($0)",           "" },
        [E_Log] =       { "burn_log_@($0)",           "" },
        [E_Log1p] =     { "burn_log1p_@($0)",         "" },
        [E_Expm1] =     { "burn_expm1_@($0)",         "" },
        [E_Sqrt] =      { "burn_sqrt_@($0)",          "" },
        [E_Sin] =       { "burn_sin_@($0)",           "" },
        [E_Cos] =       { "burn_cos_@($0)",           "" },
        [E_Tan] =       { "burn_tan_@($0)",           "" },
        [E_Asin] =      { "burn_asin_@($0)",          "" },
        [E_Acos] =      { "burn_acos_@($0)",          "" },
        [E_Atan] =      { "burn_atan_@($0)",          "" },
        [E_Sinh] =      { "burn_sinh_@($0)",          "" },
        [E_Cosh] =      { "burn_cosh_@($0)",          "" },
        [E_Tanh] =      { "burn_tanh_@($0)",          "" },
        [E_Asinh] =     { "burn_asinh_@($0)",         "" },
        [E_Acosh] =     { "burn_acosh_@($0)",         "" },
        [E_Atanh] =     { "burn_atanh_@($0)",         "" },
        [E_Erf] =       { "burn_erf_@($0)",           "" },
        [E_Sigmoid] =   { "burn_sigmoid_@($0)",       "" },
        [E_Softplus] =  { "burn_softplus_@($0)",      "" },
        [E_Floor] =     { "floor%f($0)",              "" },
        [E_Ceil] =      { "ceil%f($0)",               "" },
        [E_Round] =     { "rint%f($0)",               "" },
        [E_Trunc] =     { "trunc%f($0)",              "" },
        [E_IsNan] =     { "!!isnan($0)",              "" },
        [E_IsInf] =     { "!!isinf($0)",              "" },
        [E_Lt] =        { "$0 < $1",                  "$0 < $1" },
        [E_Le] =        { "$0 <= $1",                 "$0 <= $1" },
        [E_Eq] =        { "$0 == $1",                 "$0 == $1" },
        [E_Ne] =        { "$0 != $1",                 "$0 != $1" },
        [E_And] =       { "",                         "$0 && $1" },
        [E_Or] =        { "",                         "$0 || $1" },
        [E_Xor] =       { "",                         "$0 != $1" },
        [E_Not] =       { "",                         "!$0" },
        [E_BitAnd] =    { "",                         "%w$u0 & $u1" },
        [E_BitOr] =     { "",                         "%w$u0 | $u1" },
        [E_BitXor] =    { "",                         "%w$u0 ^ $u1" },
        [E_BitNot] =    { "",                         "%w~$u0" },
        [E_Shl] =       { "",                         "%wburn_shl_@($0, $1)" },
        [E_Shr] =       { "",                         "%wburn_shr_@($0, $1)" },
    },
    .strings = { "strcmp($0, $1) == 0", "strcmp($0, $1) != 0" },
    .complexes = { "($0.re == $1.re && $0.im == $1.im)", "($0.re != $1.re || $0.im != $1.im)", "$0.re", "$0.im" },
    .type = c_type,
    .zero = c_zero,
    .integer = c_integer,
    .convert = c_convert,
    .truncate = c_truncate,
    .wrap = c_wrap,
    .bits = c_bits,
    .helpers = spell_c_helpers,
};

// ---- elements in memory

const char *spell_c_storage(DType d) {
    if (d == DT_BOOL) return "uint8_t";
    if (!dtype_is_small_float(d)) return c_type(d);
    return dtype_size(d) == 2 ? "uint16_t" : "uint8_t";
}

const char *spell_c_load(Arena *a, DType d, const char *element) {
    if (dtype_is_small_float(d)) return arena_printf(a, "burn_%s_to_f32(%s)", dtype_name(d), element);
    return d == DT_BOOL ? arena_printf(a, "(%s != 0)", element) : element;
}

const char *spell_c_store(Arena *a, DType d, const char *value) {
    return dtype_is_small_float(d) ? arena_printf(a, "burn_f32_to_%s(%s)", dtype_name(d), value) : value;
}
