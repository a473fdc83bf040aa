// SPDX-License-Identifier: MIT OR Apache-2.0
// Mutations of graphs in text: lines and words change, not bytes.
//
// In: a text and a seed. Out: another. The idea: a line goes, is repeated, changes places with another or comes from
// another text; or a word of it goes, is repeated, or becomes one of its kind: an id near it, a number that matters, a
// name, an operation or a sign that went by in some text. Lines and words that went by are remembered.
#include "fuzz.h"

#include <ctype.h>
#include <string.h>

typedef struct Span { const char *at; size_t n; } Span;
typedef VEC(Span) Spans;
typedef enum WordKind { SPACES, ID, NUMBER, LOWER, UPPER, SIGN, WORD_KINDS } WordKind;
typedef struct Words { Arena *arena; Spans lines; uint64_t random; } Words;

enum { KEPT = 256, WORD_BYTES = 48, LINE_BYTES = 200 };
static struct { size_t n; char at[WORD_BYTES]; } kept_words[WORD_KINDS][KEPT];
static struct { size_t n; char at[LINE_BYTES]; } kept_lines[KEPT];

static size_t below(Words *w, size_t n) {               // splitmix64
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return n ? (size_t)((z ^ z >> 31) % n) : 0;
}

// ---------------------------------------------------------------- words

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

// The word at the start of s.
static WordKind word_at(Span s, size_t *n) {
    WordKind kind = isspace((unsigned char)*s.at) ? SPACES :
        *s.at == '%'                              ? ID :
        isdigit((unsigned char)*s.at) || (*s.at == '-' && s.n > 1 && isdigit((unsigned char)s.at[1])) ? NUMBER :
        islower((unsigned char)*s.at) || *s.at == '_'                                                 ? LOWER :
        isupper((unsigned char)*s.at)                                                                 ? UPPER :
                                                                                                        SIGN;
    *n = 1;
    while (*n < s.n && kind != SIGN
        && (kind == SPACES         ? isspace((unsigned char)s.at[*n]) :
               kind == NUMBER      ? isalnum((unsigned char)s.at[*n]) || s.at[*n] == '.' :
                                     in_name(s.at[*n])))
        ++*n;
    return kind;
}

static Spans words_of(Words *w, Span line) {
    Spans all = { 0 };
    while (line.n) {
        size_t n;
        word_at(line, &n);
        VEC_PUSH(w->arena, all, (Span){ line.at, n });
        line.at += n;
        line.n -= n;
    }
    return all;
}

static void keep(Words *w) {
    for (int i = 0; i < 4 && w->lines.n; i++) {
        Span line = w->lines.at[below(w, (size_t)w->lines.n)];
        size_t at = below(w, KEPT), n;
        if (line.n && line.n < LINE_BYTES) {
            kept_lines[at].n = line.n;
            memcpy(kept_lines[at].at, line.at, line.n);
        }
        const Spans all = words_of(w, line);
        if (!all.n) continue;
        Span word = all.at[below(w, (size_t)all.n)];
        if (word.n >= WORD_BYTES) continue;
        WordKind kind = word_at(word, &n);
        kept_words[kind][at].n = word.n;
        memcpy(kept_words[kind][at].at, word.at, word.n);
    }
}

static Span text_span(Words *w, const char *s) {
    s = arena_strdup(w->arena, s);
    return (Span){ s, strlen(s) };
}

static Span another(Words *w, Span word) {
    static const char *const odd[] = { "0", "1", "-1", "2", "3", "4", "7", "8", "16", "63", "64", "255", "65536",
        "2147483647", "2147483648", "-2147483648", "4294967296", "9223372036854775807", "-9223372036854775807",
        "1e308", "0.5", "inf", "nan" };
    size_t n;
    WordKind kind = word_at(word, &n);
    if (kind == ID && word.n < 8 && below(w, 5)) {
        int id = 0;
        for (size_t i = 1; i < word.n && isdigit((unsigned char)word.at[i]); i++) id = id * 10 + (word.at[i] - '0');
        id += (int)below(w, 7) - 3;
        return text_span(w, arena_printf(w->arena, "%%%d", id < 0 ? 0 : id));
    }
    if (kind == NUMBER && below(w, 2)) return text_span(w, odd[below(w, COUNT(odd))]);
    if (kind == NUMBER) return text_span(w, arena_printf(w->arena, "%d", (int)below(w, 10)));
    size_t at = below(w, KEPT);
    if (!kept_words[kind][at].n) return word;
    return (Span){ arena_copy(w->arena, kept_words[kind][at].at, WORD_BYTES), kept_words[kind][at].n };
}

// ---------------------------------------------------------------- changes

static void change_word(Words *w, Span *line) {
    const Spans all = words_of(w, *line);
    if (!all.n) return;
    Text out;
    text_init(&out, w->arena);
    int which = (int)below(w, (size_t)all.n);
    size_t how = below(w, 10);
    for (int i = 0; i < all.n; i++) {
        Span word = i != which || how < 2 ? all.at[i] : another(w, all.at[i]);
        if (i == which && how == 0) continue;
        text_append(&out, word.at, word.n);
        if (i == which && how == 1) text_append(&out, word.at, word.n);
    }
    *line = (Span){ out.at, out.n };
}

static void insert_line(Words *w, int at, Span line) {
    VEC_PUSH(w->arena, w->lines, line);
    for (int i = w->lines.n - 1; i > at; i--) w->lines.at[i] = w->lines.at[i - 1];
    w->lines.at[at] = line;
}

static void change_lines(Words *w) {
    int i = (int)below(w, (size_t)w->lines.n), k = (int)below(w, (size_t)w->lines.n);
    Span line = w->lines.at[i];
    switch (below(w, 14)) {
    case 0: w->lines.at[i].n = 0; break;
    case 1: insert_line(w, i, w->lines.at[k]); break;
    case 2:
        w->lines.at[i] = w->lines.at[k];
        w->lines.at[k] = line;
        break;
    case 3: {
        size_t at = below(w, KEPT);
        if (kept_lines[at].n)
            insert_line(w, i, (Span){ arena_copy(w->arena, kept_lines[at].at, LINE_BYTES), kept_lines[at].n });
        break;
    }
    default: change_word(w, &w->lines.at[i]); break;
    }
}

bool is_graph_text(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size && i < 64; i++)
        if (data[i] >= 0x7f || (data[i] < ' ' && data[i] != '\n' && data[i] != '\t')) return false;
    return size > 8;
}

size_t mutate_words(uint8_t *data, size_t size, size_t max_size, uint64_t random) {
    Words w = { .arena = arena_new(), .random = random };
    const char *at = (const char *)data, *end = at + size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        VEC_PUSH(w.arena, w.lines, (Span){ at, n });
        at += n + (stop != NULL);
    }
    keep(&w);
    do change_lines(&w);
    while (below(&w, 3) == 0);
    Text out;
    text_init(&out, w.arena);
    for (int i = 0; i < w.lines.n; i++) {
        text_append(&out, w.lines.at[i].at, w.lines.at[i].n);
        if (w.lines.at[i].n) text_append(&out, "\n", 1);
    }
    size_t n = out.n <= max_size ? out.n : 0;
    if (n) memcpy(data, out.at, n);
    arena_free(w.arena);
    return n;
}
