// SPDX-License-Identifier: MIT OR Apache-2.0
// GLSL 4.50: integers of less than 32 bits are computed as int and uint, DT_INDEX is an int, and 64-bit integers want
// GL_EXT_shader_explicit_arithmetic_types_int64. Doubles have no transcendental functions: those compute in float.
#include "codegen/spell/spell.h"

#include <inttypes.h>

static const char *glsl_type(DType d) {
    switch (d) {
    case DT_F64: return "double";
    case DT_BOOL: return "bool";
    case DT_I64: return "int64_t";
    case DT_U64: return "uint64_t";
    default: break;
    }
    return dtype_is_float(d) ? "float" : dtype_class(d) == CLASS_UINT ? "uint" : "int";
}

static const char *glsl_zero(DType d) {
    switch (d) {
    case DT_F64: return "double(0)";
    case DT_BOOL: return "false";
    case DT_I64: return "int64_t(0)";
    case DT_U64: return "uint64_t(0)";
    default: break;
    }
    return dtype_is_float(d) ? "float(0)" : dtype_class(d) == CLASS_UINT ? "uint(0)" : "int(0)";
}

static void glsl_integer(Text *t, DType d, Scalar c) {
    if (d == DT_U64) text_printf(t, "%" PRIu64 "ul", c.u);
    else if (d == DT_I64) text_printf(t, "%" PRId64 "l", c.i);
    else if (c.i == INT32_MIN) text_printf(t, "(-2147483647 - 1)");
    else text_printf(t, "%" PRId64 "%s", c.i, dtype_class(d) == CLASS_UINT ? "u" : "");
}

static void glsl_convert(Text *out, DType d, const char *x) { text_printf(out, "%s(%s)", glsl_type(d), x); }

// Of what has fewer bits. Mesa 22 takes int64_t(x) < 0 for false whatever x is.
static void glsl_widen(Text *out, DType d, const char *x) {
    if (d == DT_I64) text_printf(out, "burn_widen(%s)", x);
    else glsl_convert(out, d, x);
}

static void glsl_wrap(Text *out, DType d, const char *body, bool call) {
    if (!spell_is_narrow(d)) glsl_convert(out, d, body);
    else if (call || dtype_class(d) == CLASS_UINT)
        text_printf(out, "bitfieldExtract(%s, 0, %u)", body, dtype_bits(d));
    else text_printf(out, "bitfieldExtract(int(%s), 0, %u)", body, dtype_bits(d));
}

static void glsl_truncate(Text *out, DType d, const char *x) {
    const char *whole = arena_printf(out->arena, "%s(%s)", d == DT_I64 || d == DT_U64 ? "uint64_t" : "uint", x);
    if (!spell_is_narrow(d) && dtype_class(d) == CLASS_UINT) text_printf(out, "(%s)", whole);
    else glsl_wrap(out, d, whole, false);
}

// The bits of a float are what is stored of it.
static void glsl_bits(Text *out, DType from, DType to, const char *x) {
    bool wide = from == DT_F64 || to == DT_F64, single = from == DT_F32 || to == DT_F32;
    if (dtype_is_float(from)) {
        const char *of = wide ? "doubleBitsToUint64" : single ? "floatBitsToUint" : "";
        if (*of) text_printf(out, "%s(%s(%s))", glsl_type(to), of, x);
        else text_printf(out, "%s(burn_f32_to_%s(%s))", glsl_type(to), dtype_name(from), x);
    } else if (wide) text_printf(out, "uint64BitsToDouble(uint64_t(%s))", x);
    else if (single) text_printf(out, "uintBitsToFloat(uint(%s))", x);
    else
        text_printf(out, "burn_%s_to_f32(uint(%s)%s)", dtype_name(to), x,
            dtype_size(to) == 2 ? " & 0xffffu" : " & 0xffu");
}

#define BITS(code) "uintBitsToFloat(" code ")"
const Language spell_glsl = {
    .index = DT_I32,
    .f32 = { "", BITS("0x7fc00000u"), BITS("0x7f800000u"), BITS("0xff800000u") },
    .f64 = { "lf", "double(" BITS("0x7fc00000u") ")", "double(" BITS("0x7f800000u") ")",
        "double(" BITS("0xff800000u") ")" },
    .op = {
        [E_Add] =       { "$0 + $1",                  "%w$u0 + $u1" },
        [E_Sub] =       { "$0 - $1",                  "%w$u0 - $u1" },
        [E_Mul] =       { "$0 * $1",                  "%w$u0 * $u1" },
        [E_Div] =       { "$0 / $1",                  "%wburn_div_@($0, $1)" },
        [E_Mod] =       { "burn_fmod_@($0, $1)",      "%wburn_mod_@($0, $1)" },
        [E_FloorMod] =  { "burn_floormod_@($0, $1)",  "%wburn_floormod_@($0, $1)" },
        [E_Neg] =       { "-$0",                      "%w0u - $u0" },
        [E_Abs] =       { "abs($0)",                  "%wburn_abs_@($0)" },
        [E_Sign] =      { "burn_sign_@($0)",          "%wburn_sign_@($0)" },
        [E_Min] =       { "burn_min_@($0, $1)",       "%wmin($0, $1)" },
        [E_Max] =       { "burn_max_@($0, $1)",       "%wmax($0, $1)" },
        [E_Pow] =       { "burn_pow_@($0, $1)",       "%wburn_pow_@($0, $1)" },
        [E_Exp] =       { "%dexp($0)",                "" },
        [E_Log] =       { "%dburn_log($0)",           "" },
        [E_Log1p] =     { "%dburn_log1p($0)",         "" },
        [E_Expm1] =     { "%dburn_expm1($0)",         "" },
        [E_Sqrt] =      { "sqrt($0)",                 "" },
        [E_Sin] =       { "%dsin($0)",                "" },
        [E_Cos] =       { "%dcos($0)",                "" },
        [E_Tan] =       { "%dtan($0)",                "" },
        [E_Asin] =      { "%dasin($0)",               "" },
        [E_Acos] =      { "%dacos($0)",               "" },
        [E_Atan] =      { "%datan($0)",               "" },
        [E_Sinh] =      { "%dsinh($0)",               "" },
        [E_Cosh] =      { "%dcosh($0)",               "" },
        [E_Tanh] =      { "%dburn_tanh($0)",          "" },
        [E_Asinh] =     { "%dasinh($0)",              "" },
        [E_Acosh] =     { "%dacosh($0)",              "" },
        [E_Atanh] =     { "%datanh($0)",              "" },
        [E_Erf] =       { "%dburn_erf($0)",           "" },
        [E_Sigmoid] =   { "%dburn_sigmoid($0)",       "" },
        [E_Softplus] =  { "%dburn_softplus($0)",      "" },
        [E_Floor] =     { "floor($0)",                "" },
        [E_Ceil] =      { "ceil($0)",                 "" },
        [E_Round] =     { "roundEven($0)",            "" },
        [E_Trunc] =     { "trunc($0)",                "" },
        [E_IsNan] =     { "isnan($0)",                "" },
        [E_IsInf] =     { "isinf($0)",                "" },
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
    .type = glsl_type,
    .zero = glsl_zero,
    .integer = glsl_integer,
    .convert = glsl_widen,
    .truncate = glsl_truncate,
    .wrap = glsl_wrap,
    .bits = glsl_bits,
    .helpers = spell_glsl_helpers,
};
