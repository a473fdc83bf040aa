// SPDX-License-Identifier: MIT OR Apache-2.0
// C as checkers of firmware want it: bodies in braces, a last else, results that are dropped on purpose.
//
// In: generated C, whose templates and printers leave out braces where a body is one statement. Out: the same program
// with MISRA C:2012's rules 15.6, 15.7 and 17.7 kept:
//   if (x) a();             if (x) {
//   else if (y) memcpy(b);      a();
//                           } else if (y) {
//                               (void)memcpy(b);
//                           } else { /* nothing */ }
// One walk over the text finds where statements begin and end; nothing else is touched. What stands between branches
// of #if is left as it is where a brace would have to stand in both. Bodies of #define are walked as lines of their
// own, and a body that the macro's user ends is left alone.
#include "codegen/c/c.h"

#include <ctype.h>
#include <string.h>

// line: the body of a #define; from: what is not copied yet begins here
typedef struct Walk { const char *begin, *at, *end, *from; Text *out; bool line; } Walk;

static void statement(Walk *w, bool body);

static void flush(Walk *w) {
    text_append(w->out, w->from, (size_t)(w->at - w->from));
    w->from = w->at;
}

static void put(Walk *w, const char *text) {
    flush(w);
    text_printf(w->out, "%s", text);
}

static size_t word_at(const char *s, const char *end) {
    size_t n = 0;
    while (s + n < end && (isalnum((unsigned char)s[n]) || s[n] == '_')) n++;
    return n;
}

static bool is_word(const char *s, const char *end, const char *word) {
    const size_t n = strlen(word);
    return word_at(s, end) == n && !memcmp(s, word, n);
}

// ---------------------------------------------------------------- what is no code
static const char *past_comment(const char *s, const char *end) {
    if (end - s < 2 || s[0] != '/' || (s[1] != '*' && s[1] != '/')) return s;
    const bool block = s[1] == '*';
    for (s += 2; s < end; s++) {
        if (!block && *s == '\n') return s;
        if (block && *s == '/' && s[-1] == '*') return s + 1;
    }
    return end;
}

static const char *past_quoted(const char *s, const char *end) {
    const char quote = *s++;
    while (s < end && *s != quote) s += *s == '\\' ? 2 : 1;
    return s < end ? s + 1 : end;
}

static const char *past_directive(const char *s, const char *end) {
    while (s < end && *s != '\n') {
        const char *comment = past_comment(s, end);
        s = comment != s ? comment : *s == '\\' && s + 1 < end ? s + 2 : s + 1;
    }
    return s;
}

static bool is_conditional(const char *directive, const char *end) {
    static const char *const words[] = { "if", "ifdef", "ifndef", "else", "elif", "endif" };
    const char *s = directive + 1;
    while (s < end && *s == ' ') s++;
    for (size_t i = 0; i < COUNT(words); i++)
        if (is_word(s, end, words[i])) return true;
    return false;
}

// Behind blanks, comments and directives; *conditional: branches of #if are among them.
static const char *past_blank(const Walk *w, const char *s, bool *conditional) {
    for (*conditional = false; s < w->end;) {
        const char *comment = past_comment(s, w->end);
        if (comment != s) s = comment;
        else if (isspace((unsigned char)*s)) s++;
        else if (*s == '\\' && s + 1 < w->end && s[1] == '\n') s += 2;
        else if (*s == '#' && !w->line) {
            *conditional |= is_conditional(s, w->end);
            s = past_directive(s, w->end);
        } else break;
    }
    return s;
}

static void define(Walk *w, const char *end) {
    const char *body = w->at + 1;
    while (body < end && *body == ' ') body++;
    if (is_word(body, end, "define")) {
        body += strlen("define");
        while (body < end && *body == ' ') body++;
        body += word_at(body, end);
        while (*body == '(' && body < end && body[-1] != ')') body = strchr(body, ')') + 1;
        w->at = body;
        flush(w);
        Walk inner = { .begin = body, .at = body, .end = end, .from = body, .out = w->out, .line = true };
        while (inner.at < end) {
            const char *before = inner.at;
            statement(&inner, false);
            if (inner.at == before) inner.at++;
        }
        flush(&inner);
        w->from = end;
    }
    w->at = end;
}

// The same, which walks what macros are.
static void blank(Walk *w) {
    bool conditional;
    while (w->at < w->end) {
        if (*w->at == '#' && !w->line) {
            define(w, past_directive(w->at, w->end));
            continue;
        }
        const char *s = w->at, *const next = past_blank(w, s, &conditional);
        while (s < next && *s != '#') {
            const char *comment = past_comment(s, w->end);
            s = comment != s ? comment : s + 1;
        }
        if (s == w->at) return;
        w->at = s;
    }
}

// ---------------------------------------------------------------- statements
// From one bracket behind the one that ends it.
static void brackets(Walk *w) {
    int depth = 0;
    do {
        const char *s = w->at, *comment = past_comment(s, w->end);
        depth += strchr("([{", *s) != NULL;
        depth -= strchr(")]}", *s) != NULL;
        w->at = comment != s ? comment : *s == '"' || *s == '\'' ? past_quoted(s, w->end) : s + 1;
    } while (depth > 0 && w->at < w->end);
}

static void block(Walk *w) {
    w->at++;
    for (blank(w); w->at < w->end && *w->at != '}'; blank(w)) {
        const char *before = w->at;
        statement(w, false);
        if (w->at == before) w->at++;
    }
    if (w->at < w->end) w->at++;
}

static void close_brace(Walk *w, const char *keyword, bool apart) {
    const char *comment = w->at + strspn(w->at, " "), *after = past_comment(comment, w->end);
    if (after != comment && apart && !memchr(w->at, '\n', (size_t)(after - w->at))) w->at = after;
    flush(w);
    if (!apart) {
        text_printf(w->out, " }");
        return;
    }
    while (keyword > w->begin && keyword[-1] != '\n') keyword--;
    text_printf(w->out, "\n%.*s}", (int)strspn(keyword, " "), keyword);
}

// What an if, a loop or an else governs; whether it got its braces here.
static bool body(Walk *w, const char *keyword) {
    bool conditional;
    const char *next = past_blank(w, w->at, &conditional);
    if (conditional || next >= w->end || *next == '{') {
        statement(w, true);
        return false;
    }
    flush(w);
    const Walk before = *w;
    const size_t printed = w->out->n;
    put(w, " {");
    statement(w, true);
    if (w->at[-1] != ';' && w->at[-1] != '}') {         // a macro's, which its user ends
        *w = before;
        w->out->n = printed;
        statement(w, true);
        return false;
    }
    close_brace(w, keyword, memchr(before.at, '\n', (size_t)(next - before.at)) && !w->line);
    return true;
}

// `keyword` has an if; chain: it is an else's own.
static void if_statement(Walk *w, const char *keyword, bool chain) {
    bool conditional;
    const bool braced = body(w, keyword);
    const char *next = past_blank(w, w->at, &conditional);
    if (conditional || !is_word(next, w->end, "else")) {
        if (chain && !conditional && (braced || w->at[-1] == '}')) put(w, " else { /* nothing */ }");
        return;
    }
    flush(w);
    if (braced && strspn(w->at, " \n") == (size_t)(next - w->at)) {
        text_printf(w->out, " ");
        w->from = next;
    }
    w->at = next + strlen("else");
    next = past_blank(w, w->at, &conditional);
    if (conditional || !is_word(next, w->end, "if")) body(w, keyword);
    else {
        w->at = next + strlen("if");
        blank(w);
        brackets(w);
        if_statement(w, keyword, true);
    }
}

static bool control(Walk *w) {
    static const char *const words[] = { "if", "for", "while", "switch", "do" };
    const char *const keyword = w->at;
    size_t which = 0;
    while (which < COUNT(words) && !is_word(keyword, w->end, words[which])) which++;
    if (which == COUNT(words)) return false;
    w->at += strlen(words[which]);
    const bool head = which + 1 < COUNT(words);
    if (head) {
        blank(w);
        brackets(w);
    }
    if (which) body(w, keyword);
    else if_statement(w, keyword, false);
    if (head) return true;
    blank(w);
    w->at += strlen("while");
    blank(w);
    brackets(w);
    if (w->at < w->end && *w->at == ';') w->at++;
    return true;
}

static bool label(Walk *w) {
    if (!is_word(w->at, w->end, "case") && !is_word(w->at, w->end, "default")) return false;
    while (w->at < w->end && *w->at != ':') w->at = *w->at == '\'' ? past_quoted(w->at, w->end) : w->at + 1;
    if (w->at < w->end) w->at++;
    return true;
}

static bool drops_result(const char *s, const char *end) {
    return is_word(s, end, "memcpy") || is_word(s, end, "memset") || is_word(s, end, "memmove");
}

// body: braces in it are of values, else they may be a function's
static void statement(Walk *w, bool body) {
    blank(w);
    if (w->at >= w->end || *w->at == '}') return;
    if (*w->at == '{') {
        block(w);
        return;
    }
    if (control(w) || label(w)) return;
    if (drops_result(w->at, w->end)) put(w, "(void)");
    while (w->at < w->end && *w->at != ';' && *w->at != '}') {
        const char *s = w->at;
        const size_t word = word_at(s, w->end);
        if (*s == '{' && !body) {
            block(w);
            return;
        }
        if (word && control(w)) return;
        if (word) w->at += word;
        else if (strchr("([{", *s)) brackets(w);
        else if (*s == '"' || *s == '\'') w->at = past_quoted(s, w->end);
        else {
            blank(w);
            if (w->at == s) w->at++;
        }
    }
    if (w->at < w->end && *w->at == ';') w->at++;
}

void c_compound(Text *out, const char *code) {
    Walk w = { .begin = code, .at = code, .end = code + strlen(code), .from = code, .out = out };
    while (w.at < w.end) {
        const char *before = w.at;
        statement(&w, false);
        if (w.at == before) w.at++;
    }
    flush(&w);
}
