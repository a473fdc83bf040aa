// SPDX-License-Identifier: MIT OR Apache-2.0
// C identifiers from the names that models carry. Any text in, [A-Za-z_][A-Za-z0-9_]* out, never a C or C++ keyword.
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
    "class",
    "compl",
    "concept",
    "const",
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
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "main",
    "errno",
    "NULL",
};

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
    for (size_t i = 0; i < COUNT(keywords); i++)
        if (!strcmp(s, keywords[i])) {
            s[at++] = '_';
            s[at] = 0;
            break;
        }
    return s;
}
