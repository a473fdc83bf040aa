// SPDX-License-Identifier: MIT OR Apache-2.0
// The functions that GLSL text may call, as text. Doubles have the exact functions only.
#include "codegen/spell/spell.h"

#define GL(result, name, args, body) { name, result " " name "(" args ") {\n    " body "\n}\n" }

#define GL_FLOAT(T, S, ZERO, ONE)                                                                                      \
    GL(T, "burn_max_" S, T " a, " T " b", "return isnan(a) ? a : a > b ? a : b;"),                                     \
    GL(T, "burn_min_" S, T " a, " T " b", "return isnan(a) ? a : a < b ? a : b;"),                                     \
    GL(T, "burn_max_num_" S, T " a, " T " b", "return a < b ? b : a;"),                                                \
    GL(T, "burn_min_num_" S, T " a, " T " b", "return a > b ? b : a;"),                                                \
    GL(T, "burn_sign_" S, T " x", "return x > " ZERO " ? " ONE " : x < " ZERO " ? -" ONE " : x;"),                     \
    GL(T, "burn_fmod_" S, T " x, " T " y", "return isinf(y) && !isinf(x) ? x : x - y * trunc(x / y);"),                \
    GL(T, "burn_floormod_" S, T " x, " T " y",                                                                         \
       T " r = burn_fmod_" S "(x, y);\n    return r != " ZERO " && (r < " ZERO ") != (y < " ZERO ") ? r + y : r;")

#define GL_SIGNED(T, S, U, BITS)                                                                                       \
    GL(T, "burn_abs_" S, T " x", "return abs(x);"),                                                                    \
    GL(T, "burn_sign_" S, T " x", "return sign(x);"),                                                                  \
    GL(T, "burn_div_" S, T " a, " T " b", "return b == 0 ? 0 : b == -1 ? -a : a / b;"),                                \
    GL(T, "burn_mod_" S, T " a, " T " b", "return b == 0 ? 0 : a - burn_div_" S "(a, b) * b;"),                        \
    GL(T, "burn_floormod_" S, T " a, " T " b", T " r = burn_mod_" S "(a, b);\n"                                        \
        "    return r != 0 && (r < 0) != (b < 0) ? r + b : r;"),                                                       \
    GL(T, "burn_floordiv_" S, T " a, " T " b",                                                                         \
       T " q = burn_div_" S "(a, b), r = burn_mod_" S "(a, b);\n"                                                      \
           "    return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;"),                                                    \
    GL(T, "burn_shl_" S, T " a, " T " b", "return b < 0 || b >= " BITS " ? 0 : a << b;"),                              \
    GL(T, "burn_shr_" S, T " a, " T " b", "return b < 0 || b >= " BITS " ? (a < 0 ? -1 : 0) : a >> b;"),               \
    GL(T, "burn_pow_" S, T " a, " T " b",                                                                              \
       T " r = 1;\n    if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;\n"                        \
       "    for (; b != 0; b >>= 1, a *= a) r *= (b & 1) != 0 ? a : 1;\n    return r;")

#define GL_UNSIGNED(T, S, BITS)                                                                                        \
    GL(T, "burn_abs_" S, T " x", "return x;"), GL(T, "burn_sign_" S, T " x", "return min(x, " T "(1));"),              \
        GL(T, "burn_div_" S, T " a, " T " b", "return b == 0 ? " T "(0) : a / b;"),                                    \
        GL(T, "burn_mod_" S, T " a, " T " b", "return b == 0 ? " T "(0) : a % b;"),                                    \
        GL(T, "burn_floormod_" S, T " a, " T " b", "return burn_mod_" S "(a, b);"),                                    \
        GL(T, "burn_shl_" S, T " a, " T " b", "return b >= " BITS " ? " T "(0) : a << b;"),                            \
        GL(T, "burn_shr_" S, T " a, " T " b", "return b >= " BITS " ? " T "(0) : a >> b;"),                            \
        GL(T, "burn_pow_" S, T " a, " T " b",                                                                          \
            T " r = " T "(1);\n    for (; b != 0; b >>= 1, a *= a) r *= (b & 1) != 0 ? a : " T "(1);\n    return r;")

#define GL_FROM(T, N, FT, S, LOW, HIGH, MIN, MAX)                                                                      \
    GL(T, "burn_" N "_from_" S, FT " x",                                                                               \
        "return isnan(x) ? " T "(0) : x <= " LOW " ? " MIN " : x >= " HIGH " ? " MAX " : " T "(x);")
#define GL_FROM_BOTH(T, N, LOW, HIGH, MIN, MAX)                                                                        \
    GL_FROM(T, N, "float", "f32", LOW, HIGH, MIN, MAX), GL_FROM(T, N, "double", "f64", LOW, HIGH, MIN, MAX)

const Helper spell_glsl_helpers[] = {
    GL_FLOAT("float", "f32", "0.0", "1.0"),
    GL_FLOAT("double", "f64", "0.0lf", "1.0lf"),
    GL_SIGNED("int", "i32", "uint", "32"),
    GL_SIGNED("int64_t", "i64", "uint64_t", "64"),
    GL_UNSIGNED("uint", "u32", "32"),
    GL_UNSIGNED("uint64_t", "u64", "64"),
    GL_FROM_BOTH("int", "i32", "-2147483648.0", "2147483648.0", "(-2147483647 - 1)", "2147483647"),
    GL_FROM_BOTH("uint", "u32", "0.0", "4294967296.0", "0u", "4294967295u"),
    GL_FROM_BOTH("int64_t", "i64", "-9223372036854775808.0", "9223372036854775808.0", "(-9223372036854775807l - 1l)",
        "9223372036854775807l"),
    GL_FROM_BOTH("uint64_t", "u64", "0.0", "18446744073709551616.0", "0ul", "18446744073709551615ul"),
    GL_FROM_BOTH("int", "i16", "-32768.0", "32767.0", "-32768", "32767"),
    GL_FROM_BOTH("uint", "u16", "0.0", "65535.0", "0u", "65535u"),
    GL_FROM_BOTH("int", "i8", "-128.0", "127.0", "-128", "127"),
    GL_FROM_BOTH("uint", "u8", "0.0", "255.0", "0u", "255u"),
    GL_FROM_BOTH("int", "i4", "-8.0", "7.0", "-8", "7"),
    GL_FROM_BOTH("uint", "u4", "0.0", "15.0", "0u", "15u"),
    GL_FROM_BOTH("int", "i2", "-2.0", "1.0", "-2", "1"),
    GL_FROM_BOTH("uint", "u2", "0.0", "3.0", "0u", "3u"),
    { "burn_widen", "int64_t burn_widen(bool x) {\n    return x ? 1l : 0l;\n}\n"
        "int64_t burn_widen(uint x) {\n    return int64_t(uint64_t(x));\n}\n"
        "int64_t burn_widen(int64_t x) {\n    return x;\n}\n"
        "int64_t burn_widen(uint64_t x) {\n    return int64_t(x);\n}\n"
        "int64_t burn_widen(int x) {\n"
        "    return int64_t(uint64_t(uint(x)) | (x < 0 ? 0xffffffff00000000ul : 0ul));\n}\n" },
    GL("float", "burn_pow_f32", "float x, float y",
        "if (y == 0.0 || x == 1.0) return 1.0;\n"
        // a device's pow may be wrong by a part in 10^5: then 1 - pow(0.999, step) has no digit that is right
        "    if (abs(y) <= 1024.0 && y == floor(y)) {\n        float product = 1.0;\n"
        "        for (uint n = uint(abs(y)); n != 0u; n >>= 1) {\n"
        "            if ((n & 1u) != 0u) product *= x;\n            x *= x;\n        }\n"
        "        return y < 0.0 ? 1.0 / product : product;\n    }\n    float r = pow(abs(x), y);\n"
        "    if (x >= 0.0 || isnan(x)) return x == 0.0 ? (y > 0.0 ? 0.0 : uintBitsToFloat(0x7f800000u)) : r;\n"
        "    return floor(y) != y ? uintBitsToFloat(0x7fc00000u) : mod(y, 2.0) == 1.0 ? -r : r;"),
    GL("double", "burn_pow_f64", "double x, double y", "return double(burn_pow_f32(float(x), float(y)));"),
    // 2 artanh(x / (2 + x)) near 0, where a GPU's log(1 + x) has an absolute error only
    GL("float", "burn_log1p", "float x",
        "float s = x / (2.0 + x), q = s * s;\n"
        "    float t = 1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0 + q * (1.0 / 15.0)));\n"
        "    t = 1.0 + q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * t)));\n"
        "    return x > -0.5 && x < 1.0 ? 2.0 * s * t : log(1.0 + x);"),
    GL("float", "burn_log", "float x", "return x > 0.5 && x < 2.0 ? burn_log1p(x - 1.0) : log(x);"),
    GL("float", "burn_expm1", "float x", // the series while it converges fast
        "float s = 1.0 + x / 7.0 * (1.0 + x / 8.0 * (1.0 + x / 9.0));\n"
        "    s = 1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0 * s))));\n"
        "    return abs(x) < 0.5 ? x * s : exp(x) - 1.0;"),
    GL("float", "burn_tanh", "float x",
        "float q = x * x, s = x - x * q * (1.0 / 3.0 - q * (2.0 / 15.0 - q * (17.0 / 315.0)));\n"
        "    float t = 1.0 - 2.0 / (exp(2.0 * abs(x)) + 1.0);\n"
        "    return abs(x) < 0.2 ? s : x < 0.0 ? -t : t;"),
    GL("float", "burn_erf", "float x",
        "float a = abs(x), q = x * x;\n"
        "    float p = 0.112819549 + q * (-0.0267712835 + q * (0.00499960141 + q * -0.000602180625));\n"
        "    p = 0.128379152 + q * (-0.376125082 + q * p);\n"
        "    float g = -0.104113745 + a * (0.022315248 + a * (-0.00306549981 + a * 0.000198220706));\n"
        "    g = -0.000166439086 + a * (-1.12779728 + a * (-0.636976013 + a * g));\n"
        "    float t = a > 4.0 ? 1.0 : 1.0 - exp(g);\n    return a < 0.9 ? x + x * p : x < 0.0 ? -t : t;"),
    GL("float", "burn_sigmoid", "float x", "float e = exp(-abs(x));\n    return (x < 0.0 ? e : 1.0) / (1.0 + e);"),
    GL("float", "burn_softplus", "float x", "return (x < 0.0 ? 0.0 : x) + burn_log1p(exp(-abs(x)));"),
    // To the nearest, ties to even, in integers: what rounding packHalf2x16 has is the driver's to choose, and
    // unpackHalf2x16 after it is no rounding to a driver that cancels the two. Below 2^-14 a float16 is a count of
    // 2^-24, which is the last bit of a float32 in [0.5, 1].
    GL("uint", "burn_f32_to_f16", "float v",
        "uint u = floatBitsToUint(v), a = u & 0x7fffffffu;\n"
        "    uint n = min(((a + 0xfffu + ((a >> 13) & 1u)) >> 13) - 0x1c000u, 0x7c00u);\n"
        "    n = a < 0x38800000u ? floatBitsToUint(abs(v) + 0.5) - 0x3f000000u : n;\n"
        "    return ((u >> 16) & 0x8000u) | (a > 0x7f800000u ? 0x7e00u : n);"),
    // of --precision f16: what is too large for it becomes the largest, not infinite
    GL("uint", "burn_f32_to_near_f16", "float v",
        "return burn_f32_to_f16(isnan(v) || isinf(v) ? v : clamp(v, -65504.0, 65504.0));"),
    // the same in shaders that have float16, and have asked for that rounding (codegen/gpu/glsl.h)
    GL("uint", "burn_convert_f16", "float v", "return packFloat2x16(f16vec2(float16_t(v), float16_t(0.0)));"),
    GL("uint", "burn_convert_near_f16", "float v",
        "return burn_convert_f16(isnan(v) || isinf(v) ? v : clamp(v, -65504.0, 65504.0));"),
    GL("float", "burn_odd_f32", "double v", // an f32 beside v; its last bit is 1 where v lies between two
        "float f = float(v);\n    double g = double(f);\n"
        "    uint u = floatBitsToUint(f), far = uint(v < 0.0lf ? g < v : g > v);\n"
        "    return uintBitsToFloat(g < v || g > v ? (u - far) | 1u : u);"),
    GL("float", "burn_f16_to_f32", "uint h", "return unpackHalf2x16(h).x;"),
    GL("float", "burn_round_f16", "float v", "return burn_f16_to_f32(burn_f32_to_f16(v));"),
    GL("vec4", "burn_f16x4_to_f32", "uvec2 h", "return vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y));"),
    GL("vec4", "burn_bf16x4_to_f32", "uvec2 h",
        "return uintBitsToFloat(uvec4(h.x << 16, h.x & 0xffff0000u, h.y << 16, h.y & 0xffff0000u));"),
    GL("uint", "burn_f32_to_bf16", "float v",
        "uint u = floatBitsToUint(v);\n"
        "    return isnan(v) ? ((u >> 16) & 0x8000u) | 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;"),
    GL("float", "burn_bf16_to_f32", "uint h", "return uintBitsToFloat(h << 16);"),
    GL("float", "burn_round_bf16", "float v", "return burn_bf16_to_f32(burn_f32_to_bf16(v));"),
    { NULL, NULL }
};
