// SPDX-License-Identifier: MIT OR Apache-2.0
// The text of a regular expression as a tree. In: RE2's syntax (github.com/google/re2/wiki/Syntax). Out: sets of code
// points, concatenations, alternatives, repetitions and assertions.
//
// Read: literals, . [] with ranges, escapes and [:names:], \d \s \w \D \S \W, ^ $ \A \z \b \B, ( ) groups with or
// without names, | * + ? {n,m} and their lazy forms (the same, where the whole string is matched), flags i m s U,
// \Q..\E, \x \x{} and octal escapes. Not read: Unicode properties \p and single bytes \C. Case is folded for ASCII
// letters.
#include "build/regex.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 200, MAX_NESTED = 10, MAX_REPEAT = 1000, MAX_CODE = 0x10ffff, FOLD = 1, LINES = 2, DOT_ALL = 4 };

typedef struct Parser { Arena *arena; const char *s; int depth, flags; const char *why; bool quoting; } Parser;

static Regex *parse_alternatives(Parser *p);

static Regex *fail(Parser *p, const char *why) {
    if (!p->why) p->why = why;
    p->s += strlen(p->s);                               // nothing more is read
    return NULL;
}

static Regex *regex_new(Parser *p, RegexKind kind, Regex *a, Regex *b) {
    Regex *re = NEW(p->arena, Regex);
    re->kind = kind;
    re->a = a;
    re->b = b;
    return re;
}

// ---------------------------------------------------------------- sets

typedef VEC(CodeRange) Set;

static void set_add(Parser *p, Set *set, uint32_t lo, uint32_t hi) { VEC_PUSH(p->arena, *set, (CodeRange){ lo, hi }); }

static int by_low(const void *x, const void *y) {
    const CodeRange *a = x, *b = y;
    return a->lo != b->lo ? (a->lo > b->lo) - (a->lo < b->lo) : (a->hi > b->hi) - (a->hi < b->hi);
}

// Sorts and joins the ranges; with the flag i, ASCII letters come in both cases.
static void set_normalize(Parser *p, Set *set, bool negated) {
    Set joined = { 0 };
    for (int i = 0, n = set->n; i < n && p->flags & FOLD; i++)
        for (uint32_t c = 'a'; c <= 'z'; c++) {
            bool small = c >= set->at[i].lo && c <= set->at[i].hi,
                 capital = c - 32 >= set->at[i].lo && c - 32 <= set->at[i].hi;
            if (small) set_add(p, set, c - 32, c - 32);
            if (capital) set_add(p, set, c, c);
        }
    if (set->n) qsort(set->at, (size_t)set->n, sizeof *set->at, by_low);
    for (int i = 0; i < set->n; i++) {
        CodeRange *last = joined.n ? &joined.at[joined.n - 1] : NULL, r = set->at[i];
        if (!last || r.lo > last->hi + 1) set_add(p, &joined, r.lo, r.hi);
        else if (r.hi > last->hi) last->hi = r.hi;
    }
    if (negated) {
        Set rest = { 0 };
        uint32_t from = 0;
        for (int i = 0; i < joined.n; i++) {
            if (joined.at[i].lo > from) set_add(p, &rest, from, joined.at[i].lo - 1);
            from = joined.at[i].hi + 1;
        }
        if (from <= MAX_CODE) set_add(p, &rest, from, MAX_CODE);
        joined = rest;
    }
    *set = joined;
}

static Regex *regex_set(Parser *p, Set *set, bool negated) {
    set_normalize(p, set, negated);
    Regex *re = regex_new(p, RE_SET, NULL, NULL);
    for (int i = 0; i < set->n; i++) VEC_PUSH(p->arena, re->set, set->at[i]);
    return re;
}

typedef struct Named { const char *name; CodeRange ranges[8]; } Named;     // ends with hi 0
static const Named perl[] = {
    { "d", { { '0', '9' } } },
    { "s", { { '\t', '\n' }, { '\f', '\r' }, { ' ', ' ' } } },
    { "w", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
};
static const Named posix[] = {
    { "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
    { "alpha", { { 'A', 'Z' }, { 'a', 'z' } } },
    { "ascii", { { 0, 127 } } },
    { "blank", { { '\t', '\t' }, { ' ', ' ' } } },
    { "cntrl", { { 0, 31 }, { 127, 127 } } },
    { "digit", { { '0', '9' } } },
    { "graph", { { '!', '~' } } },
    { "lower", { { 'a', 'z' } } },
    { "print", { { ' ', '~' } } },
    { "punct", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } } },
    { "space", { { '\t', '\r' }, { ' ', ' ' } } },
    { "upper", { { 'A', 'Z' } } },
    { "word", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
    { "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
};

static void add_named(Parser *p, Set *set, const Named *named, bool negated) {
    Set own = { 0 };
    for (int i = 0; i < 8 && named->ranges[i].hi; i++) set_add(p, &own, named->ranges[i].lo, named->ranges[i].hi);
    if (negated) set_normalize(p, &own, true);
    for (int i = 0; i < own.n; i++) set_add(p, set, own.at[i].lo, own.at[i].hi);
}

// \d \s \w and their complements; false: c is none of these.
static bool add_perl(Parser *p, Set *set, char c) {
    for (size_t i = 0; i < COUNT(perl); i++) {
        char small = perl[i].name[0];
        if (c != small && c != small - 32) continue;
        add_named(p, set, &perl[i], c != small);
        return true;
    }
    return false;
}

// ---------------------------------------------------------------- characters

// One code point of UTF-8; what is not UTF-8 is an error.
static bool take_code(Parser *p, uint32_t *out) {
    const unsigned char *s = (const unsigned char *)p->s;
    int more = *s < 0x80 ? 0 : *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : *s >= 0xc2 ? 1 : -1;
    uint32_t c = more > 0 ? *s & (0x3fu >> more) : *s;
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80) more = -1;
        else c = c << 6 | (s[i] & 0x3fu);
    }
    if (more < 0 || c > MAX_CODE) return fail(p, "it is not UTF-8"), false;
    p->s += more + 1;
    *out = c;
    return true;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' :
        c >= 'a' && c <= 'f'    ? c - 'a' + 10 :
        c >= 'A' && c <= 'F'    ? c - 'A' + 10 :
                                  -1;
}

static bool take_hex(Parser *p, uint32_t *out) {
    bool braces = *p->s == '{';
    int digits = 0;
    *out = 0;
    p->s += braces;
    for (; hex_digit(*p->s) >= 0 && digits < (braces ? 8 : 2) && *out <= MAX_CODE; digits++)
        *out = *out << 4 | (uint32_t)hex_digit(*p->s++);
    bool closed = !braces || *p->s == '}';
    if (!closed || *out > MAX_CODE || (braces ? !digits : digits != 2))
        return fail(p, "\\x wants two hexadecimal digits or a code point in braces"), false;
    p->s += braces;
    return true;
}

// The character after a backslash, which has been read.
static bool take_escape(Parser *p, uint32_t *out) {
    static const char from[] = "aftnrv", to[] = "\a\f\t\n\r\v";
    char c = *p->s;
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        *out = (uint32_t)to[known - from];
        p->s++;
        return true;
    }
    if (c == 'x') {
        p->s++;
        return take_hex(p, out);
    }
    if (c == '0') {
        *out = 0;
        for (int i = 0; i < 3 && *p->s >= '0' && *p->s <= '7'; i++) *out = *out * 8 + (uint32_t)(*p->s++ - '0');
        return true;
    }
    if (c >= '1' && c <= '9') return fail(p, "it refers back to a group, which automata cannot"), false;
    if (c == 'p' || c == 'P') return fail(p, "Unicode properties (\\p) are not supported"), false;
    if (!c) return fail(p, "it ends in a backslash"), false;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return fail(p, "it has an unknown escape"), false;
    return take_code(p, out);
}

// ---------------------------------------------------------------- [ ]

static bool add_posix(Parser *p, Set *set) {
    if (p->s[0] != '[' || p->s[1] != ':') return false;
    const char *end = strstr(p->s, ":]"), *name = p->s + 2;
    if (!end) return false;
    bool negated = *name == '^';
    name += negated;
    for (size_t i = 0; i < COUNT(posix); i++) {
        if (strlen(posix[i].name) != (size_t)(end - name) || strncmp(posix[i].name, name, strlen(posix[i].name)))
            continue;
        add_named(p, set, &posix[i], negated);
        p->s = end + 2;
        return true;
    }
    fail(p, "it has an unknown [:class:]");
    return true;
}

static bool take_class_code(Parser *p, uint32_t *c) {
    if (*p->s != '\\') return take_code(p, c);
    p->s++;
    return take_escape(p, c);
}

static Regex *parse_class(Parser *p) {                  // after the [
    Set set = { 0 };
    bool negated = *p->s == '^';
    p->s += negated;
    for (bool first = true; first || *p->s != ']'; first = false) {
        uint32_t lo, hi;
        if (!*p->s) return fail(p, "a [ has no ]");
        if (add_posix(p, &set)) continue;
        if (*p->s == '\\' && add_perl(p, &set, p->s[1])) {
            p->s += 2;
            continue;
        }
        if (!take_class_code(p, &lo)) return NULL;
        hi = lo;
        if (p->s[0] == '-' && p->s[1] && p->s[1] != ']') {
            p->s++;
            if (!take_class_code(p, &hi)) return NULL;
            if (hi < lo) return fail(p, "a range in [] goes down");
        }
        set_add(p, &set, lo, hi);
    }
    p->s++;
    return regex_set(p, &set, negated);
}

// ---------------------------------------------------------------- atoms, repetitions, groups

static Regex *assertion(Parser *p, RegexAssert what) {
    Regex *re = regex_new(p, RE_ASSERT, NULL, NULL);
    re->assertion = what;
    return re;
}

static Regex *literal(Parser *p, uint32_t c) {
    Set set = { 0 };
    set_add(p, &set, c, c);
    return regex_set(p, &set, false);
}

static Regex *parse_backslash(Parser *p) {              // after the backslash
    static const struct {
        char c;
        RegexAssert what;
    } asserts[] = { { 'A', AT_BEGIN }, { 'z', AT_END }, { 'b', AT_WORD_EDGE }, { 'B', AT_NO_EDGE } };
    Set set = { 0 };
    uint32_t c;
    for (size_t i = 0; i < COUNT(asserts); i++)
        if (*p->s == asserts[i].c) {
            p->s++;
            return assertion(p, asserts[i].what);
        }
    if (*p->s && add_perl(p, &set, *p->s)) {
        p->s++;
        return regex_set(p, &set, false);
    }
    if (*p->s == 'Q') {
        p->s++;
        p->quoting = true;
        return regex_new(p, RE_EMPTY, NULL, NULL);
    }
    return take_escape(p, &c) ? literal(p, c) : NULL;
}

// (?i) changes the flags to the end of the group, (?i:...) for what is inside. True: a group's body follows.
static bool take_flags(Parser *p) {
    static const struct { char c; int flag; } flags[] = { { 'i', FOLD }, { 'm', LINES }, { 's', DOT_ALL }, { 'U', 0 } };
    int set = p->flags;
    bool off = false;
    for (; *p->s && *p->s != ')' && *p->s != ':'; p->s++) {
        size_t i = 0;
        if (*p->s == '-' && !off) {
            off = true;
            continue;
        }
        while (i < COUNT(flags) && flags[i].c != *p->s) i++;
        if (i == COUNT(flags)) return fail(p, "it has a group of an unknown kind"), false;
        set = off ? set & ~flags[i].flag : set | flags[i].flag;
    }
    bool body = *p->s == ':';
    if (!*p->s) return fail(p, "a ( has no )"), false;
    p->s++;
    p->flags = set;
    return body;
}

static Regex *parse_group(Parser *p) {                  // after the (
    int flags = p->flags;
    if (p->s[0] == '?') {
        if (p->s[1] == '<' && (p->s[2] == '=' || p->s[2] == '!'))
            return fail(p, "it looks behind, which is not supported");
        bool named = p->s[1] == '<' || (p->s[1] == 'P' && p->s[2] == '<');
        p->s += named ? strcspn(p->s, ">") : 1;
        if (named && !*p->s) return fail(p, "a group's name has no end");
        if (named) p->s++;
        else if (!take_flags(p)) return p->why ? NULL : regex_new(p, RE_EMPTY, NULL, NULL);
    }
    if (++p->depth > MAX_DEPTH) return fail(p, "its groups are nested too deeply");
    Regex *re = parse_alternatives(p);
    p->depth--;
    if (!p->why && *p->s != ')') return fail(p, "a ( has no )");
    if (p->why) return NULL;
    p->s++;
    p->flags = flags;
    return re;
}

static Regex *parse_atom(Parser *p) {
    Set set = { 0 };
    uint32_t c;
    if (p->quoting) return take_code(p, &c) ? literal(p, c) : NULL;
    switch (*p->s) {
    case '(': p->s++; return parse_group(p);
    case '[': p->s++; return parse_class(p);
    case '\\': p->s++; return parse_backslash(p);
    case '^': p->s++; return assertion(p, p->flags & LINES ? AT_LINE_BEGIN : AT_BEGIN);
    case '$': p->s++; return assertion(p, p->flags & LINES ? AT_LINE_END : AT_END);
    case '.':
        p->s++;
        if (!(p->flags & DOT_ALL)) set_add(p, &set, '\n', '\n');
        return regex_set(p, &set, true);
    case '*': case '+': case '?': return fail(p, "a repetition has nothing to repeat");
    default: return take_code(p, &c) ? literal(p, c) : NULL;
    }
}

static bool take_number(const char **s, int *out) {
    if (**s < '0' || **s > '9') return false;
    for (*out = 0; **s >= '0' && **s <= '9'; ++*s) *out = *out <= MAX_REPEAT ? *out * 10 + (**s - '0') : *out;
    return true;
}

// {n} {n,} {n,m}; anything else is a brace as it stands.
static bool take_braces(Parser *p, int *min, int *max) {
    const char *s = p->s + 1;
    if (*p->s != '{' || !take_number(&s, min)) return false;
    *max = *min;
    if (*s == ',') {
        s++;
        if (!take_number(&s, max)) *max = -1;
    }
    if (*s != '}') return false;
    p->s = s + 1;
    return true;
}

static Regex *parse_repeated(Parser *p) {
    Regex *re = parse_atom(p);
    for (int nested = 0; re && !p->why && !p->quoting; nested++) {
        int min, max;
        if (*p->s == '*' || *p->s == '+' || *p->s == '?') {
            min = *p->s == '+';
            max = *p->s == '?' ? 1 : -1;
            p->s++;
        } else if (!take_braces(p, &min, &max)) break;
        if (min > MAX_REPEAT || max > MAX_REPEAT || (max >= 0 && max < min))
            return fail(p, "a repetition's bounds are above 1000 or out of order");
        if (nested == MAX_NESTED) return fail(p, "it repeats repetitions too often");
        if (*p->s == '?') p->s++;                       // lazy
        re = regex_new(p, RE_REPEAT, re, NULL);
        re->min = min;
        re->max = max;
    }
    return re;
}

static Regex *parse_sequence(Parser *p) {
    Regex *all = regex_new(p, RE_EMPTY, NULL, NULL);
    while (*p->s && !p->why) {
        if (p->quoting && p->s[0] == '\\' && p->s[1] == 'E') {
            p->quoting = false;
            p->s += 2;
            continue;
        }
        if (!p->quoting && (*p->s == '|' || *p->s == ')')) break;
        Regex *one = parse_repeated(p);
        if (!one) return NULL;
        all = all->kind == RE_EMPTY ? one : one->kind == RE_EMPTY ? all : regex_new(p, RE_CAT, all, one);
    }
    return all;
}

static Regex *parse_alternatives(Parser *p) {
    Regex *all = parse_sequence(p);
    while (all && !p->why && *p->s == '|') {
        p->s++;
        Regex *one = parse_sequence(p);
        all = one ? regex_new(p, RE_ALT, all, one) : NULL;
    }
    return all;
}

const char *regex_compile(Arena *a, const char *pattern, Automaton *out) {
    Parser p = { .arena = a, .s = pattern };
    Regex *re = parse_alternatives(&p);
    if (!p.why && *p.s) fail(&p, "a ) has no (");
    return p.why ? p.why : automaton_make(a, re, out);
}
