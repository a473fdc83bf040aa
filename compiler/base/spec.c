// SPDX-License-Identifier: MIT OR Apache-2.0
// What --loss, --optimizer and --schedule take: a name, and what stands in its parentheses.
//
//   spec  = word [ "(" [ argument { ("," | ";") argument } ] ")" ]
//   argument = [ word "=" ] spec
//   word  = "[" anything "]" | characters but ( ) , ; = * and blanks
//
// Out: a tree of words; what they mean is their reader's.
#include "base.h"

#include <string.h>

enum { MAX_DEPTH = 16 };

static const char *blanks(const char *s) { return s + strspn(s, " \t\n"); }

static const char *word_end(const char *s) {
    const char *close = *s == '[' ? strchr(s, ']') : NULL;
    return close ? close + 1 : s + strcspn(s, "(),;=* \t\n");
}

static Spec *parse(Arena *a, const char **at, int depth);

static bool parse_arguments(Arena *a, const char **at, int depth, Spec *spec) {
    for (const char *s = blanks(*at); *s != ')';) {
        const char *end = word_end(s), *key = NULL;
        if (*blanks(end) == '=') {
            key = arena_strndup(a, s, (size_t)(end - s));
            s = blanks(blanks(end) + 1);
        }
        Spec *value = parse(a, &s, depth + 1);
        if (!value) return false;
        VEC_PUSH(a, spec->args, ((SpecArg){ key, value }));
        s = blanks(s);
        if (*s != ',' && *s != ';' && *s != ')') return false;
        *at = s = *s == ')' ? s : blanks(s + 1);
    }
    *at = blanks(*at) + 1;
    return true;
}

static Spec *parse(Arena *a, const char **at, int depth) {
    const char *s = blanks(*at), *end = word_end(s);
    if (end == s || depth > MAX_DEPTH) return NULL;
    Spec *spec = NEW(a, Spec);
    *spec = (Spec){ .word = arena_strndup(a, s, (size_t)(end - s)) };
    *at = end;
    s = blanks(end);
    if (*s != '(') return spec;
    *at = s + 1;
    return parse_arguments(a, at, depth, spec) ? spec : NULL;
}

const Spec *spec_parse(Arena *a, const char **text) {
    const Spec *spec = parse(a, text, 0);
    *text = blanks(*text);
    return spec;
}
