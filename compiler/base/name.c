// SPDX-License-Identifier: MIT OR Apache-2.0
// C identifiers from the names that models carry. Any text in, [A-Za-z_][A-Za-z0-9_]* out, never a C or C++ keyword,
// nor what a compiler or a header that generated code includes defines as a macro.
#include "base/base.h"

#include <ctype.h>
#include <string.h>

static const char *const keywords[] = {
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "compl",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "main",
    "errno",
    "NULL",
    "linux",
    "unix",
    "i386",
    "signgam",
};

// Those of <stdint.h>, <limits.h>, <float.h> and <math.h>, in gcc, clang and newlib, and generated code's own.
static bool is_macro(const char *s, size_t n) {
    static const char *const begins[] = { "BURN_", "DBL_", "DECIMAL_DIG", "EOF", "FLT_", "FP_", "HUGE_VAL", "INFINITY",
        "LDBL_", "MATH_", "MAXFLOAT", "M_", "NAN" };
    static const char *const ends[] = { "_BIT", "_MAX", "_MIN" };
    if (s[strcspn(s, "abcdefghijklmnopqrstuvwxyz")]) return false;
    for (size_t i = 0; i < COUNT(begins); i++)
        if (!strncmp(s, begins[i], strlen(begins[i]))) return true;
    for (size_t i = 0; i < COUNT(ends); i++)
        if (n > 4 && !strcmp(s + n - 4, ends[i])) return true;
    return false;
}

static bool is_among(const char *s, size_t n, const char *const *names) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(s, names[i])) return true;
    return false;
}

bool name_is_library(const char *s) {
    static const char *const types[] = { "int8_t", "int16_t", "int32_t", "int64_t", "intptr_t", "ptrdiff_t", "size_t",
        "uint8_t", "uint16_t", "uint32_t", "uint64_t", "uintptr_t" };
    static const char *const bytes[] = { "memcmp", "memcpy", "memmove", "memset", "strchr", "strcmp", "strlen",
        "strncmp", "isfinite", "isinf", "isnan", "signbit" };
    static const char *const functions[] = { "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "copysign",
        "cos", "cosh", "erf", "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "frexp", "ldexp",
        "log", "log1p", "log2", "lrint", "nearbyint", "pow", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh",
        "trunc" };
    char single[16];
    size_t n = strlen(s);
    if (is_among(s, COUNT(types), types) || is_among(s, COUNT(bytes), bytes)) return true;
    if (is_among(s, COUNT(functions), functions)) return true;
    if (n < 2 || n > sizeof single || s[n - 1] != 'f') return false;
    memcpy(single, s, n - 1);                           // expf
    single[n - 1] = 0;
    return is_among(single, COUNT(functions), functions);
}

const char *name_c(Arena *a, const char *any) {
    size_t n = strlen(any), at = 0;
    char *s = arena_alloc(a, n + 3);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)any[i];
        bool ok = c < 128 && isalnum(c);
        if (ok && at == 0 && isdigit(c)) s[at++] = 'v';
        if (ok) s[at++] = (char)c;
        else if (at && s[at - 1] != '_') s[at++] = '_';
    }
    while (at > 1 && s[at - 1] == '_') at--;
    if (at == 0) s[at++] = 'v';
    s[at] = 0;
    if (is_among(s, COUNT(keywords), keywords) || is_macro(s, at)) {
        s[at++] = '_';
        s[at] = 0;
    }
    return s;
}
