// SPDX-License-Identifier: MIT OR Apache-2.0
// Fills a template: a real C source file under templates/ whose holes are macros between the lines `// holes` and `//
// end holes`.
//
// Everything up to `// end holes` is dropped. In the rest every identifier that is a hole becomes its text (given,
// else the file's own default); a function-like hole takes its arguments with it. `#if` over integer holes is decided
// here; other directives pass through, filled.
//
// A skeleton is filled in the same way, but for names of which only pieces are holes, MODEL_run, and for holes alone on
// their line, which are lines, or none.
#include "codegen.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Filler {
    Arena *arena;
    const char *file;
    VEC(Hole) holes;
    bool skeleton;
} Filler;

static const Hole *find_hole(const Filler *f, const char *name, size_t n) {
    for (int i = 0; i < f->holes.n; i++)
        if (strlen(f->holes.at[i].name) == n && !memcmp(f->holes.at[i].name, name, n)) return &f->holes.at[i];
    return NULL;
}

static bool is_name(int c, bool first) { return c == '_' || (first ? isalpha(c) : isalnum(c)); }

// ---------------------------------------------------------------- reading the defaults
static void add_default(Filler *f, const char *line, const char *end) {
    const char *s = line + strlen("#define "), *name = s;
    while (s < end && is_name((unsigned char)*s, false)) s++;
    size_t n = (size_t)(s - name);
    if (find_hole(f, name, n)) return;
    Hole h = { .name = arena_strndup(f->arena, name, n) };
    if (s < end && *s == '(') {
        const char *close = memchr(s, ')', (size_t)(end - s));
        if (!close) bug("%s: hole %s has no closing parenthesis", f->file, h.name);
        h.params = arena_strndup(f->arena, s + 1, (size_t)(close - s - 1));
        s = close + 1;
    }
    while (s < end && *s == ' ') s++;
    h.text = arena_strndup(f->arena, s, (size_t)(end - s));
    VEC_PUSH(f->arena, f->holes, h);
}

static const char *read_defaults(Filler *f, const char *s) {
    const char *end_mark = strstr(s, "\n// end holes\n"), *start = strstr(s, "// holes\n");
    if (!end_mark || !start) bug("%s: no `// holes` block", f->file);
    for (const char *line = start; line < end_mark;) {
        const char *end = strchr(line, '\n');
        if (!strncmp(line, "#define ", 8)) add_default(f, line, end);
        line = end + 1;
    }
    const char *body = end_mark + strlen("\n// end holes\n");
    return body + strspn(body, "\n");
}

// ---------------------------------------------------------------- substitution
static void fill_span(Filler *f, Text *out, const char *s, const char *end);

typedef struct Span { const char *at; size_t n; } Span;

// Splits `text` at the commas of depth 0; stops after the closing parenthesis when `closes`.
static const char *split(const char *s, const char *end, Span *parts, int *n, int max, bool closes) {
    int depth = 0;
    *n = 0;
    const char *from = s;
    for (; s < end; s++) {
        if (*s == '(' || *s == '[') depth++;
        bool last = depth == 0 && *s == ')' && closes;
        if ((*s == ')' || *s == ']') && !last) depth--;
        if ((depth == 0 && *s == ',') || last) {
            if (*n < max) parts[(*n)++] = (Span){ from, (size_t)(s - from) };
            from = s + 1;
        }
        if (last) return s + 1;
    }
    if (!closes && *n < max) parts[(*n)++] = (Span){ from, (size_t)(s - from) };
    return s;
}

static Span trim(Span s) {
    while (s.n && isspace((unsigned char)*s.at)) {
        s.at++;
        s.n--;
    }
    while (s.n && isspace((unsigned char)s.at[s.n - 1])) s.n--;
    return s;
}

// Without white space and parentheses around the whole.
static Span bare(Span s) {
    for (s = trim(s); s.n > 1 && *s.at == '('; s = trim((Span){ s.at + 1, s.n - 2 })) {
        size_t i = 0;
        int depth = 0;
        do depth += s.at[i] == '(' ? 1 : s.at[i] == ')' ? -1 : 0;
        while (depth && ++i < s.n);
        if (i != s.n - 1) break;
    }
    return s;
}

static void call_hole(Filler *f, Text *out, const Hole *h, const Span *args, int n_args) {
    Span params[16];
    int n;
    split(h->params, h->params + strlen(h->params), params, &n, 16, false);
    if (n != n_args) bug("%s: hole %s takes %d arguments, %d given", f->file, h->name, n, n_args);
    for (const char *s = h->text; *s;) {
        if (!is_name((unsigned char)*s, true)) {
            const char *t = s;
            while (*t && !is_name((unsigned char)*t, true)) {
                if (isdigit((unsigned char)*t))
                    while (is_name((unsigned char)t[1], false) || t[1] == '.') t++;
                t++;
            }
            text_append(out, s, (size_t)(t - s));
            s = t;
            continue;
        }
        const char *name = s;
        while (is_name((unsigned char)*s, false)) s++;
        int hit = -1;
        for (int i = 0; i < n; i++) {
            Span p = trim(params[i]);
            if (p.n == (size_t)(s - name) && !memcmp(p.at, name, p.n)) hit = i;
        }
        if (hit < 0) {
            text_append(out, name, (size_t)(s - name));
            continue;
        }
        Span a = bare(args[hit]);
        bool alone = out->n && (out->at[out->n - 1] == '(' || out->at[out->n - 1] == ' ') && (*s == ',' || *s == ')')
            && strchr(h->text, '(');
        bool simple = alone;                            // a whole argument of a call needs no parentheses
        for (size_t i = 0; i < a.n && !alone; i++)
            simple = i == 0 ? is_name((unsigned char)a.at[i], false) :
                              simple && is_name((unsigned char)a.at[i], false);
        if (!simple) text_append(out, "(", 1);
        fill_span(f, out, a.at, a.at + a.n);
        if (!simple) text_append(out, ")", 1);
    }
}

// A name of a skeleton: each of the pieces between its _ may be a hole.
static void fill_pieces(const Filler *f, Text *out, const char *s, const char *end) {
    while (s < end) {
        size_t n = 0;
        while (s + n < end && s[n] != '_') n++;
        const Hole *h = n ? find_hole(f, s, n) : NULL;
        if (h) text_printf(out, "%s", h->text);
        else text_append(out, s, n);
        s += n;
        for (; s < end && *s == '_'; s++) text_append(out, s, 1);
    }
}

static void fill_span(Filler *f, Text *out, const char *s, const char *end) {
    while (s < end) {
        const char *from = s;
        if (isdigit((unsigned char)*s)) {               // numbers with their suffixes hold no names
            while (s < end && (is_name((unsigned char)*s, false) || *s == '.')) s++;
            text_append(out, from, (size_t)(s - from));
            continue;
        }
        if (!is_name((unsigned char)*s, true)) {
            text_append(out, s++, 1);
            continue;
        }
        while (s < end && is_name((unsigned char)*s, false)) s++;
        const Hole *h = find_hole(f, from, (size_t)(s - from));
        if (!h) {
            if (f->skeleton) fill_pieces(f, out, from, s);
            else text_append(out, from, (size_t)(s - from));
            continue;
        }
        if (!h->params) {
            bool list = !*h->text || *h->text == ',';   // nothing, or what continues a list
            while (list && out->n && out->at[out->n - 1] == ' ') out->n--;
            text_append(out, h->text, strlen(h->text));
            continue;
        }
        while (s < end && *s == ' ') s++;
        if (s >= end || *s != '(') bug("%s: hole %s is used without arguments", f->file, h->name);
        Span args[16];
        int n;
        s = split(s + 1, end, args, &n, 16, true);
        call_hole(f, out, h, args, n);
    }
}

// ---------------------------------------------------------------- #if over integers (precedence climbing)
typedef struct Cursor { const char *s; bool ok; } Cursor;
static int64_t condition(Cursor *c, int level);

static void skip(Cursor *c) { while (*c->s == ' ' || *c->s == '\t') c->s++; }

static int64_t primary(Cursor *c) {
    skip(c);
    if (*c->s == '!') {
        c->s++;
        return !primary(c);
    }
    if (*c->s == '-') {
        c->s++;
        return -primary(c);
    }
    if (*c->s == '(') {
        c->s++;
        int64_t v = condition(c, 0);
        skip(c);
        if (*c->s == ')') c->s++;
        else c->ok = false;
        return v;
    }
    if (!isdigit((unsigned char)*c->s)) {
        c->ok = false;
        return 0;
    }
    char *end;
    int64_t v = strtoll(c->s, &end, 0);
    c->s = end;
    return v;
}

static const struct { const char *text; int level;
} operators[] = {
    { "||", 1 },
    { "&&", 2 },
    { "==", 3 },
    { "!=", 3 },
    { "<=", 4 },
    { ">=", 4 },
    { "<", 4 },
    { ">", 4 },
    { "+", 5 },
    { "-", 5 },
    { "*", 6 },
    { "/", 6 },
    { "%", 6 },
};

static int64_t apply(size_t op, int64_t a, int64_t b) {
    switch (op) {
    case 0: return a || b;
    case 1: return a && b;
    case 2: return a == b;
    case 3: return a != b;
    case 4: return a <= b;
    case 5: return a >= b;
    case 6: return a < b;
    case 7: return a > b;
    case 8: return a + b;
    case 9: return a - b;
    case 10: return a * b;
    case 11: return b ? a / b : 0;
    default: return b ? a % b : 0;
    }
}

static int64_t condition(Cursor *c, int level) {
    int64_t v = primary(c);
    for (;;) {
        skip(c);
        size_t op = 0;
        while (op < COUNT(operators) && strncmp(c->s, operators[op].text, strlen(operators[op].text))) op++;
        if (op == COUNT(operators) || operators[op].level <= level) return v;
        c->s += strlen(operators[op].text);
        v = apply(op, v, condition(c, operators[op].level));
    }
}

// DONE: an earlier branch was taken; THROUGH: left for the C compiler
typedef enum Branch { TAKEN, NOT_TAKEN, DONE, THROUGH } Branch;

static Branch decide(Filler *f, const char *s, const char *end) {
    Text t;
    text_init(&t, f->arena);
    fill_span(f, &t, s, end);
    text_append(&t, "", 1);
    Cursor c = { t.at, true };
    int64_t v = condition(&c, 0);
    skip(&c);
    if (!c.ok || *c.s) return THROUGH;
    return v ? TAKEN : NOT_TAKEN;
}

// What is no directive of ours, up to `stop`.
static void fill_line(Filler *f, Text *out, const char *s, const char *stop) {
    size_t n = 0;
    while (is_name((unsigned char)s[n], false)) n++;
    const Hole *h = f->skeleton && s + n + 1 == stop ? find_hole(f, s, n) : NULL;
    if (h) text_append(out, h->text, strlen(h->text));
    else fill_span(f, out, s, stop);
}

static void fill_body(Filler *f, Text *out, const char *s) {
    Branch stack[32];
    int depth = 0, hidden = 0;
    for (const char *end; *s; s = *end ? end + 1 : end) {
        end = strchr(s, '\n');
        if (!end) end = s + strlen(s);
        const char *stop = *end ? end + 1 : end;
        bool directive = *s == '#';
        if (directive && !strncmp(s, "#if", 3)) {
            Branch b = !strncmp(s, "#if ", 4) ? decide(f, s + 4, end) : THROUGH;
            if (depth == 32) bug("%s: #if nested too deeply", f->file);
            stack[depth++] = b;
            if (b == THROUGH && !hidden) fill_span(f, out, s, stop);
            hidden += b == NOT_TAKEN;
        } else if (directive && (!strncmp(s, "#else", 5) || !strncmp(s, "#elif", 5))) {
            Branch *b = &stack[depth - 1];
            if (*b == THROUGH) {
                if (!hidden) fill_span(f, out, s, stop);
                continue;
            }
            bool holds = *b == NOT_TAKEN && (s[3] == 's' || decide(f, s + 5, end) == TAKEN);
            if (*b == TAKEN) {
                *b = DONE;
                hidden++;
            } else if (holds) {
                *b = TAKEN;
                hidden--;
            }
        } else if (directive && !strncmp(s, "#endif", 6)) {
            Branch b = stack[--depth];
            if (b == THROUGH && !hidden) fill_span(f, out, s, stop);
            hidden -= b == NOT_TAKEN || b == DONE;
        } else if (!hidden) fill_line(f, out, s, stop);
    }
}

static void fill(Filler *f, Text *out, int n, const Hole *holes) {
    const char *text = template_text(f->file);
    if (!text) bug("no template %s", f->file);
    for (int i = 0; i < n; i++) VEC_PUSH(f->arena, f->holes, holes[i]);
    fill_body(f, out, read_defaults(f, text));
}

void template_fill(Arena *a, Text *out, const char *file, int n, const Hole *holes) {
    Filler f = { .arena = a, .file = file };
    fill(&f, out, n, holes);
}

void skeleton_fill(Arena *a, Text *out, const char *file, int n, const Hole *holes) {
    Filler f = { .arena = a, .file = file, .skeleton = true };
    fill(&f, out, n, holes);
}
