// SPDX-License-Identifier: MIT OR Apache-2.0
// The functions that C text may call, as text: what C99's <math.h> lacks, and what would otherwise name an operand
// twice. The idea: names carry the dtype that arithmetic runs in (f32 f64 i32 u32 i64 u64), so one row per type follows
// from one macro. Every function is branch-free where a loop over it should become vector code.
#include "codegen/spell/spell.h"

#include <string.h>

#define FN(result, name, args, body) { name, "static inline " result " " name "(" args ") {\n    " body "\n}\n" }

// T the C type, S the suffix, F the libm suffix or unsigned type
#define C_FLOAT(T, S, F, ZERO, ONE)                                                                                    \
    FN(T, "burn_max_" S, T " a, " T " b",                                                                              \
        "return burn_select_" S "(!(a <= b), burn_select_" S "(b != b, b, a), b);"),                                   \
        FN(T, "burn_min_" S, T " a, " T " b",                                                                          \
            "return burn_select_" S "(!(a >= b), burn_select_" S "(b != b, b, a), b);"),                               \
        FN(T, "burn_max_num_" S, T " a, " T " b", "return burn_select_" S "(a < b, b, a);"),                           \
        FN(T, "burn_min_num_" S, T " a, " T " b", "return burn_select_" S "(a > b, b, a);"),                           \
        FN(T, "burn_sign_" S, T " x", "return x > " ZERO " ? " ONE " : x < " ZERO " ? -" ONE " : x;"),                 \
        FN(T, "burn_floormod_" S, T " x, " T " y",                                                                     \
            T " r = fmod" F "(x, y);\n    r = r != " ZERO " && (r < " ZERO ") != (y < " ZERO ") ? r + y : r;\n"        \
              "    return r == " ZERO " ? copysign" F "(" ZERO ", y) : r;"),                                           \
        FN(T, "burn_softplus_" S, T " x",                                                                              \
            "return burn_max_num_" S "(x, " ZERO ") + burn_log1p_" S "(burn_exp_" S "(-fabs" F "(x)));")

#define C_DOUBLE(N) FN("double", "burn_" N "_f64", "double x", "return " N "(x);")

// A square root that sets errno is a call in every loop; nothing here reads errno.
#define C_SQRT(T, S, F)                                                                                                \
    { "burn_sqrt_" S, "#if defined(__GNUC__)\n"                                                                        \
        "extern " T " sqrt" F "(" T " x) __attribute__((const));  /* no errno: loops become vector code */\n#endif\n" \
      "static inline " T " burn_sqrt_" S "(" T " x) {\n    return sqrt" F "(x);\n}\n" }

#define C_INT(T, S)                                                                                                    \
    FN(T, "burn_max_" S, T " a, " T " b", "return a < b ? b : a;"),                                                    \
    FN(T, "burn_min_" S, T " a, " T " b", "return a < b ? a : b;")

#define C_SIGNED(T, S, U, BITS)                                                                                        \
    C_INT(T, S),                                                                                                       \
    FN(T, "burn_abs_" S, T " x", "return x < 0 ? (" T ")(0u - (" U ")x) : x;"),                                        \
    FN(T, "burn_sign_" S, T " x", "return (x > 0) - (x < 0);"),                                                        \
    FN(T, "burn_div_" S, T " a, " T " b", "return b == 0 ? 0 : b == -1 ? (" T ")(0u - (" U ")a) : a / b;"),            \
    FN(T, "burn_mod_" S, T " a, " T " b", "return b == 0 || b == -1 ? 0 : a % b;"),                                    \
    FN(T, "burn_floormod_" S, T " a, " T " b", T " r = burn_mod_" S "(a, b);\n"                                        \
        "    return r != 0 && (r < 0) != (b < 0) ? r + b : r;"),                                                       \
    FN(T, "burn_floordiv_" S, T " a, " T " b",                                                                         \
       T " q = burn_div_" S "(a, b), r = burn_mod_" S "(a, b);\n"                                                      \
           "    return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;"),                                                    \
    FN(T, "burn_shl_" S, T " a, " T " b", "return (" U ")b >= " BITS " ? 0 : (" T ")((" U ")a << b);"),                \
    FN(T, "burn_shr_" S, T " a, " T " b", "return (" U ")b >= " BITS " ? (a < 0 ? -1 : 0) : a >> b;"),                 \
    FN(T, "burn_pow_" S, T " a, " T " b",                                                                              \
       U " r = 1, x = (" U ")a;\n    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;\n"                 \
       "    for (; b; b >>= 1, x *= x) r *= b & 1 ? x : 1;\n    return (" T ")r;")

#define C_UNSIGNED(T, S, BITS)                                                                                         \
    C_INT(T, S), FN(T, "burn_abs_" S, T " x", "return x;"), FN(T, "burn_sign_" S, T " x", "return x > 0;"),            \
        FN(T, "burn_div_" S, T " a, " T " b", "return b == 0 ? 0 : a / b;"),                                           \
        FN(T, "burn_mod_" S, T " a, " T " b", "return b == 0 ? 0 : a % b;"),                                           \
        FN(T, "burn_floormod_" S, T " a, " T " b", "return b == 0 ? 0 : a % b;"),                                      \
        FN(T, "burn_shl_" S, T " a, " T " b", "return b >= " BITS " ? 0 : a << b;"),                                   \
        FN(T, "burn_shr_" S, T " a, " T " b", "return b >= " BITS " ? 0 : a >> b;"),                                   \
        FN(T, "burn_pow_" S, T " a, " T " b",                                                                          \
            T " r = 1;\n    for (; b; b >>= 1, a *= a) r *= b & 1 ? a : 1;\n    return r;")

// A float becomes an integer toward zero; NaN is 0, and what is out of range the nearest end. LAST: the largest float
// in range; END: the first one above it, which gives MAX.
#define C_FROM(T, N, FT, S, Z, LOW, LAST, END, MAX)                                                                    \
    FN(T, "burn_" N "_from_" S, FT " x",                                                                               \
       FT " y = x != x ? " Z " : x;\n    y = y < " LOW " ? " LOW " : y;\n    y = y > " LAST " ? " LAST " : y;\n"       \
       "    return x >= " END " ? " MAX " : (" T ")y;")
// Where floats hold both ends exactly, by way of int32_t, a conversion that vectors have. Of f32 by masks: from
// conditions gcc makes branches where the result is used as a number again, and then no vectors.
#define C_FROM_SMALL(T, N, LOW, MAX)                                                                                   \
    FN(T, "burn_" N "_from_f32", "float x",                                                                            \
        "float y = burn_select_f32(x > " LOW ".0f, x, " LOW ".0f);\n"                                                  \
        "    y = burn_select_f32(y < " MAX ".0f, y, " MAX ".0f);\n"                                                    \
        "    return (" T ")((int32_t)y & -(int32_t)(x == x));"),                                                       \
    FN(T, "burn_" N "_from_f64", "double x",                                                                           \
        "double y = x != x ? 0.0 : x;\n    y = y < " LOW ".0 ? " LOW ".0 : y;\n"                                       \
        "    return (" T ")(int32_t)(y > " MAX ".0 ? " MAX ".0 : y);")

// The small floats. Bits from the top: sign, exponent, mantissa. A code becomes an f32 with its bits in place and the
// exponent put right by an exact product; back, the significand is rounded to nearest even in integers.
#define C_F8(N, MANTISSA, BIAS, MAX, OVER, NAN_CODE, LIMIT, FROM_ZERO, TO_NAN)                                         \
    FN("float", "burn_" N "_to_f32", "uint8_t h",                                                                      \
        "uint32_t code = h & 0x7fu;\n    float v = burn_small_to_f32(code, " MANTISSA ", " BIAS ");\n" TO_NAN          \
        "    return h & 0x80u ? -v : v;"),                                                                             \
        FN("uint8_t", "burn_f32_to_" N, "float v",                                                                     \
            "uint32_t sign = burn_f32_bits(v) >> 24 & 0x80u, code = burn_small_from_f32(v, " MANTISSA ", " BIAS        \
            ");\n"                                                                                                     \
            "    if (v != v) return (uint8_t)(" NAN_CODE ");\n    if (code > " MAX ") return (uint8_t)(" OVER          \
            ");\n" FROM_ZERO "    return (uint8_t)(sign | code);"),                                                    \
        FN("float", "burn_round_" N "_inf", "float v", "return burn_" N "_to_f32(burn_f32_to_" N "(v));"),             \
        FN("float", "burn_round_" N, "float v",                                                                        \
            "v = v > " LIMIT " ? " LIMIT " : v < -" LIMIT " ? -" LIMIT " : v;\n    return burn_" N                     \
            "_to_f32(burn_f32_to_" N "(v));")
// Without infinities and NaN: what is too large is the largest, NaN is -0. TOP: from the sign of an f32 to SIGN.
#define C_FINITE(N, MANTISSA, BIAS, TOP, SIGN, MAX)                                                                    \
    FN("float", "burn_" N "_to_f32", "uint8_t h",                                                                      \
        "float v = burn_small_to_f32(h & " MAX ", " MANTISSA ", " BIAS ");\n    return h & " SIGN " ? -v : v;"),      \
        FN("uint8_t", "burn_f32_to_" N, "float v",                                                                     \
            "uint32_t sign = burn_f32_bits(v) >> " TOP " & " SIGN ","                                                  \
            " code = burn_small_from_f32(v, " MANTISSA ", " BIAS ");\n"                                                \
            "    return (uint8_t)(v != v ? " SIGN " : sign | (code > " MAX " ? " MAX " : code));")
#define C_ROUND(N)                                                                                                     \
    FN("float", "burn_round_" N, "float v", "return burn_" N "_to_f32(burn_f32_to_" N "(v));"),                        \
    FN("float", "burn_round_" N "_inf", "float v", "return burn_round_" N "(v);")

// Sixteen elements of f16 at a time, by the machine's own instructions (eight and four of them in a loop); ONE does one
// by those of any. A NaN that is stored has no payload either way. And rows of n, whose last few are among sixteen of
// which the others are nobody's: zeros, beside which clang 14 and 16 do not come to an end with a memcpy at -O1. Not
// eight where vectors hold sixteen: what is stored in halves is slow to be loaded.
#define C_F16_SIXTEEN(N, TO, FROM, ONE, AVX512, F16C, ARM)                                                             \
    { N, "#if defined(__F16C__) || defined(__AVX512F__)\n#include <immintrin.h>\n"                                     \
        "#elif defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n"                                                  \
        "static inline void " N "(" TO " *to, const " FROM " *from) {\n"                                               \
        "#if defined(__AVX512F__)\n    (void)" ONE ";\n    " AVX512 "\n"                                               \
        "#elif defined(__F16C__)\n    (void)" ONE ";\n    for (int i = 0; i < 16; i += 8) {\n        " F16C            \
        "\n    }\n#elif defined(__aarch64__)\n    (void)" ONE ";\n    for (int i = 0; i < 16; i += 4) {\n        " ARM \
        "\n    }\n#else\n    for (int i = 0; i < 16; i++) to[i] = " ONE "(from[i]);\n#endif\n}\n" }
#define C_F16_ROW(N, TO, FROM, SIXTEEN, PARAMS, FROM_NAME)                                                             \
    FN("void", "burn_f16_row_" N, PARAMS ", ptrdiff_t n",                                                              \
        "const ptrdiff_t left = n % 16, whole = n - left;\n    for (ptrdiff_t i = 0; i < whole; i += 16) " SIXTEEN     \
        "(to + i, " FROM_NAME " + i);\n    if (left <= 0) return;\n"                                                 \
        "    " FROM " rest[16] = { 0 };\n    " TO " result[16];\n"                                                   \
        "    for (ptrdiff_t k = 0; k < left; k++) rest[k] = " FROM_NAME "[whole + k];\n"                              \
        "    " SIXTEEN "(result, rest);\n    memcpy(to + whole, result, (size_t)left * sizeof *result);")

// The nearest number that a byte holds: one instruction of Arm's, which gcc finds in no expression of C.
#define C_SATURATE(S, INSTRUCTION, LO, HI)                                                                             \
    FN("int32_t", "burn_saturate_" S, "int32_t x",                                                                     \
        "\n#if defined(__GNUC__) && defined(__ARM_FEATURE_SAT)\n    int32_t y;\n" \
        "    __asm__(\"" INSTRUCTION ", #8, %1\" : \"=r\"(y) : \"r\"(x));\n    return y;\n#else\n" \
        "    x = x < " LO " ? " LO " : x;\n    return x < " HI " ? x : " HI ";\n#endif")

const Helper spell_c_helpers[] = {
    C_SATURATE("i8", "ssat %0", "-128", "127"), C_SATURATE("u8", "usat %0", "0", "255"),
    C_FLOAT("float", "f32", "f", "0.0f", "1.0f"),
    C_FLOAT("double", "f64", "", "0.0", "1.0"),
    C_DOUBLE("exp"),
    C_DOUBLE("log"),
    C_DOUBLE("log1p"),
    C_DOUBLE("expm1"),
    C_DOUBLE("tanh"),
    C_DOUBLE("erf"),
    C_DOUBLE("sin"),
    C_DOUBLE("cos"),
    C_DOUBLE("tan"),
    C_DOUBLE("asin"),
    C_DOUBLE("acos"),
    C_DOUBLE("atan"),
    C_DOUBLE("sinh"),
    C_DOUBLE("cosh"),
    C_DOUBLE("asinh"),
    C_DOUBLE("acosh"),
    C_DOUBLE("atanh"),
    FN("double", "burn_pow_f64", "double x, double y", "return pow(x, y);"),
    C_SQRT("float", "f32", "f"),
    C_SQRT("double", "f64", ""),
    FN("double", "burn_sigmoid_f64", "double x",
        "double e = exp(-fabs(x));\n    return (x < 0.0 ? e : 1.0) / (1.0 + e);"),
    // Choice by masks: both sides are computed, so nothing stands in the way of vector code. Of two choices in a row,
    // a clamp, gcc would make branches before it makes vectors of them.
    FN("float", "burn_select_f32", "bool c, float a, float b",
        "uint32_t m = 0u - (uint32_t)c;\n"
        "    return burn_f32_of_bits((burn_f32_bits(a) & m) | (burn_f32_bits(b) & ~m));"),
    FN("double", "burn_select_f64", "bool c, double a, double b",
        "uint64_t m = UINT64_C(0) - (uint64_t)c;\n"
        "    return burn_f64_of_bits((burn_f64_bits(a) & m) | (burn_f64_bits(b) & ~m));"),
#include "codegen/spell/c_functions.def"
    C_SIGNED("int32_t", "i32", "uint32_t", "32"),
    C_SIGNED("int64_t", "i64", "uint64_t", "64"),
    C_UNSIGNED("uint32_t", "u32", "32"),
    C_UNSIGNED("uint64_t", "u64", "64"),
    FN("int8_t", "burn_wrap_i4", "uint32_t x", "return (int8_t)((int32_t)((x & 15u) ^ 8u) - 8);"),
    FN("int8_t", "burn_wrap_i2", "uint32_t x", "return (int8_t)((int32_t)((x & 3u) ^ 2u) - 2);"),
    FN("uint8_t", "burn_wrap_u4", "uint32_t x", "return (uint8_t)(x & 15u);"),
    FN("uint8_t", "burn_wrap_u2", "uint32_t x", "return (uint8_t)(x & 3u);"),
    C_FROM_SMALL("int8_t", "i8", "-128", "127"),
    C_FROM_SMALL("int16_t", "i16", "-32768", "32767"),
    C_FROM_SMALL("int8_t", "i4", "-8", "7"),
    C_FROM_SMALL("int8_t", "i2", "-2", "1"),
    C_FROM_SMALL("uint8_t", "u8", "0", "255"),
    C_FROM_SMALL("uint16_t", "u16", "0", "65535"),
    C_FROM_SMALL("uint8_t", "u4", "0", "15"),
    C_FROM_SMALL("uint8_t", "u2", "0", "3"),
    C_FROM("int32_t", "i32", "float", "f32", "0.0f", "-2147483648.0f", "2147483520.0f", "2147483648.0f", "INT32_MAX"),
    C_FROM("int32_t", "i32", "double", "f64", "0.0", "-2147483648.0", "2147483647.0", "2147483648.0", "INT32_MAX"),
    C_FROM("uint32_t", "u32", "float", "f32", "0.0f", "0.0f", "4294967040.0f", "4294967296.0f", "UINT32_MAX"),
    C_FROM("uint32_t", "u32", "double", "f64", "0.0", "0.0", "4294967295.0", "4294967296.0", "UINT32_MAX"),
    C_FROM("int64_t", "i64", "float", "f32", "0.0f", "-9223372036854775808.0f", "9223371487098961920.0f",
        "9223372036854775808.0f", "INT64_MAX"),
    C_FROM("int64_t", "i64", "double", "f64", "0.0", "-9223372036854775808.0", "9223372036854774784.0",
        "9223372036854775808.0", "INT64_MAX"),
    C_FROM("uint64_t", "u64", "float", "f32", "0.0f", "0.0f", "18446742974197923840.0f", "18446744073709551616.0f",
        "UINT64_MAX"),
    C_FROM("uint64_t", "u64", "double", "f64", "0.0", "0.0", "18446744073709549568.0", "18446744073709551616.0",
        "UINT64_MAX"),

    FN("uint32_t", "burn_f32_bits", "float v",
        "const union { float from; uint32_t to; } bits = {v};\n    return bits.to;"),
    FN("float", "burn_f32_of_bits", "uint32_t u",
        "const union { uint32_t from; float to; } bits = {u};\n    return bits.to;"),
    FN("uint64_t", "burn_f64_bits", "double v",
        "const union { double from; uint64_t to; } bits = {v};\n    return bits.to;"),
    FN("double", "burn_f64_of_bits", "uint64_t u",
        "const union { uint64_t from; double to; } bits = {u};\n    return bits.to;"),
    FN("float", "burn_odd_f32", "double v", // an f32 beside v; its last bit is 1 where v lies between two
        "float f = (float)v;\n    double g = (double)f;\n"
        "    uint32_t u = burn_f32_bits(f), far = v < 0.0 ? g < v : g > v;\n"
        "    return burn_f32_of_bits(g < v || g > v ? (u - far) | 1u : u);"),
    FN("float", "burn_f16_to_f32", "uint16_t h",
        "uint32_t m = ((uint32_t)h & 0x7fffu) << 13, sign = ((uint32_t)h & 0x8000u) << 16;\n"
        "    float finite = burn_f32_of_bits(m) * 5.19229686e+33f;  /* 2^112 */\n"
        "    return burn_f32_of_bits(sign | burn_f32_bits(burn_select_f32(m >= 0x0f800000u, burn_f32_of_bits(m | "
        "0x7f800000u), finite)));"),
    FN("uint16_t", "burn_f32_to_f16", "float v", // by masks, as burn_select_f32
        "uint32_t u = burn_f32_bits(v), a = u & 0x7fffffffu;\n"
        "    uint32_t tiny = 0u - (uint32_t)(a < 0x38800000u), large = 0u - (uint32_t)(a >= 0x477ff000u), nan = 0u - "
        "(uint32_t)(a > 0x7f800000u);\n"
        "    uint32_t subnormal = burn_f32_bits(burn_f32_of_bits(a) + 0.5f) - 0x3f000000u;  /* 0.5's last bit is a "
        "subnormal's */\n"
        "    uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;\n"
        "    uint32_t code = (subnormal & tiny) | (normal & ~tiny);\n"
        "    return (uint16_t)((u >> 16 & 0x8000u) | (code & ~large) | (0x7c00u & large) | (0x200u & nan));"),
    C_F16_SIXTEEN("burn_f16_up", "float", "uint16_t", "burn_f16_to_f32",
        "_mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from)));",
        "_mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));",
        "vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));"),
    C_F16_SIXTEEN("burn_f16_down", "uint16_t", "float", "burn_f32_to_f16",
        "const __m512i x = _mm512_castps_si512(_mm512_loadu_ps(from)), nan = _mm512_set1_epi32(0x7fc00000);\n"
        "    const __mmask16 is_nan = _mm512_cmp_ps_mask(_mm512_castsi512_ps(x), _mm512_castsi512_ps(x), 3);\n"
        "    const __m512i y = _mm512_mask_ternarylogic_epi32(x, is_nan, nan, _mm512_set1_epi32(INT32_MIN), 0xe4);\n"
        "    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtps_ph(_mm512_castsi512_ps(y), 0));",
        "const __m256 x = _mm256_loadu_ps(from + i), sign = _mm256_set1_ps(-0.0f), nan = _mm256_set1_ps(NAN);\n"
        "        const __m256 y = _mm256_blendv_ps(x, _mm256_or_ps(_mm256_and_ps(x, sign), nan), "
        "_mm256_cmp_ps(x, x, 3));\n"
        "        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(y, 0));",
        "const float32x4_t x = vld1q_f32(from + i);\n"
        "        const uint32x4_t sign = vdupq_n_u32(0x80000000u), nan = vdupq_n_u32(0x7fc00000u);\n"
        "        const uint32x4_t y = vbslq_u32(sign, vreinterpretq_u32_f32(x), nan);\n"
        "        vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vbslq_f32(vceqq_f32(x, x), x, "
        "vreinterpretq_f32_u32(y)))));"),
    C_F16_SIXTEEN("burn_f16_round_sixteen", "float", "float", "burn_round_f16",
        "_mm512_storeu_ps(to, _mm512_cvtph_ps(_mm512_cvtps_ph(_mm512_loadu_ps(from), 0)));",
        "_mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0)));",
        "vst1q_f32(to + i, vcvt_f32_f16(vcvt_f16_f32(vld1q_f32(from + i))));"),
    C_F16_ROW("load", "float", "uint16_t", "burn_f16_up", "float *restrict to, const uint16_t *restrict from", "from"),
    C_F16_ROW("store", "uint16_t", "float", "burn_f16_down", "uint16_t *restrict to, const float *restrict from",
        "from"),
    C_F16_ROW("round", "float", "float", "burn_f16_round_sixteen", "float *to", "to"),
    FN("float", "burn_bf16_to_f32", "uint16_t h", "return burn_f32_of_bits((uint32_t)h << 16);"),
    FN("uint16_t", "burn_f32_to_bf16", "float v",
        "uint32_t u = burn_f32_bits(v);\n"
        "    uint32_t nan = (u >> 16 & 0x8000u) | 0x7fc0u, code = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;\n"
        "    return (uint16_t)(v != v ? nan : code);"),
    FN("float", "burn_round_f16", "float v", // what the two conversions give one after the other
        "uint32_t u = burn_f32_bits(v), a = u & 0x7fffffffu, normal = (a + 0xfffu + (a >> 13 & 1u)) & 0xffffe000u;\n"
        "    uint32_t tiny = 0u - (uint32_t)(a < 0x38800000u), large = 0u - (uint32_t)(a >= 0x477ff000u), nan = 0u - "
        "(uint32_t)(a > 0x7f800000u);\n"
        "    int32_t units = (int32_t)(burn_f32_bits(burn_f32_of_bits(a) + 0.5f) - 0x3f000000u);\n"
        "    uint32_t subnormal = burn_f32_bits((float)units * 5.96046448e-08f);  /* 2^-24 */\n"
        "    uint32_t code = (subnormal & tiny) | (normal & ~tiny);\n"
        "    return burn_f32_of_bits((u & 0x80000000u) | (code & ~large) | (0x7f800000u & large) | (0x400000u & "
        "nan));"),
    FN("float", "burn_round_bf16", "float v",
        "uint32_t u = burn_f32_bits(v), nan = (u & 0x80000000u) | 0x7fc00000u, code = (u + 0x7fffu + (u >> 16 & 1u)) "
        "& 0xffff0000u;\n"
        "    return burn_f32_of_bits(v != v ? nan : code);"),
    C_ROUND("f4e2m1"),
    C_ROUND("f6e2m3"),
    C_ROUND("f6e3m2"),
    FN("float", "burn_small_to_f32", "uint32_t code, int mantissa, int bias",
        "return burn_f32_of_bits(code << (23 - mantissa)) * burn_f32_of_bits((uint32_t)(254 - bias) << 23);"),
    FN("uint32_t", "burn_small_from_f32", "float v, int mantissa, int bias",
        "uint32_t u = burn_f32_bits(v) & 0x7fffffffu, m = (u & 0x7fffffu) | 0x800000u;\n"
        "    int e = (int)(u >> 23) - 127 + bias, shift = 23 - mantissa;\n"
        "    if (e < 1) {\n        shift += 1 - e;\n        e = 1;\n    }\n    if (shift > 24) return 0;\n"
        "    return ((uint32_t)(e - 1) << mantissa) + ((m + ((1u << (shift - 1)) - 1u) + (m >> shift & 1u)) >> "
        "shift);"),
    C_F8("f8e4m3fn", "3", "7", "0x7eu", "sign | 0x7fu", "sign | 0x7fu", "448.0f", "",
        "    if (code == 0x7fu) v = NAN;\n"),
    C_F8("f8e4m3fnuz", "3", "8", "0x7fu", "0x80u", "0x80u", "240.0f", "    if (code == 0) return 0;\n",
        "    if (h == 0x80u) return NAN;\n"),
    C_F8("f8e5m2", "2", "15", "0x7bu", "sign | 0x7cu", "sign | 0x7eu", "57344.0f", "",
        "    if (code > 0x7bu) v = code == 0x7cu ? INFINITY : NAN;\n"),
    C_F8("f8e5m2fnuz", "2", "16", "0x7fu", "0x80u", "0x80u", "57344.0f", "    if (code == 0) return 0;\n",
        "    if (h == 0x80u) return NAN;\n"),
    C_FINITE("f4e2m1", "1", "1", "28", "8u", "7u"),
    C_FINITE("f6e2m3", "3", "1", "26", "0x20u", "0x1fu"),
    C_FINITE("f6e3m2", "2", "3", "26", "0x20u", "0x1fu"),
    FN("float", "burn_f8e8m0_to_f32", "uint8_t h",
        "return h == 255 ? NAN : h == 0 ? burn_f32_of_bits(0x400000u) : burn_f32_of_bits((uint32_t)h << 23);"),
    FN("uint8_t", "burn_f32_to_f8e8m0", "float v",
        "uint32_t u = burn_f32_bits(v) & 0x7fffffffu, m = u & 0x7fffffu, e = u >> 23;\n"
        "    uint32_t code = e + (m > (e ? 0u : 0x400000u));\n"
        "    return (uint8_t)(v != v ? 255u : code > 254u ? 254u : code);"),
    FN("float", "burn_round_f8e8m0", "float v", "return burn_f8e8m0_to_f32(burn_f32_to_f8e8m0(v));"),
    FN("float", "burn_round_f8e8m0_inf", "float v", // to nearest, ties to even; NaN where out of range
        "uint32_t u = burn_f32_bits(v) & 0x7fffffffu, e = u >> 23, m = e ? u & 0x7fffffu : (u - 0x400000u) * 2u;\n"
        "    uint32_t code = e + (m > 0x400000u || (m == 0x400000u && e % 2u == 1u));\n"
        "    return v != v || u < 0x400000u || code > 254u ? NAN : burn_f8e8m0_to_f32((uint8_t)code);"),
    { NULL, NULL }
};

Language spell_c_scalar(Arena *a, bool small) {
    static const Helper other[] = {
        FN("float", "burn_select_f32", "bool c, float a, float b", "return c ? a : b;"),
        // the same bits, with the argument's ends in front of everything: fewer constants and jumps
        FN("float", "burn_exp_scaled_f32", "float x, uint32_t scale",
           "uint32_t n;\n    float a = burn_select_f32(x < -104.0f, -104.0f, x);\n"
           "    float p = burn_exp_parts_f32(burn_select_f32(a > 90.0f, 90.0f, a), &n);\n"
           "    return burn_scale_f32(p, n + scale);"),
    };
    Helper *own = arena_copy(a, spell_c_helpers, sizeof spell_c_helpers);
    for (size_t i = 0; i + 1 < COUNT(spell_c_helpers); i++)
        for (size_t k = 0; k < (small ? COUNT(other) : 1); k++)
            if (!strcmp(own[i].name, other[k].name)) own[i] = other[k];
    Language l = spell_c;
    l.helpers = own;
    return l;
}

bool spell_c_has_functions(const char *program) {
#undef FN
#define FN(result, name, args, body) name "("
    static const char *const names[] = {
#include "codegen/spell/c_functions.def"
        "burn_sigmoid_f32(", "burn_softplus_f32("
    };
    for (size_t i = 0; i < COUNT(names); i++)
        if (strstr(program, names[i])) return true;
    return false;
}
