// SPDX-License-Identifier: MIT OR Apache-2.0
// Text that grows at its end, and maps from strings to pointers. Both live in an arena.
//
// In: formats and bytes. Out: Text.at is always terminated by 0, so it can be printed as it stands.
// StrMap is an open-addressing table of FNV-1a hashes (Fowler, Noll, Vo), at most half full.
#include "base/base.h"

#include <stdarg.h>
#include <string.h>

void text_init(Text *t, Arena *a) {
    *t = (Text){ .arena = a, .cap = 256 };
    t->at = arena_alloc(a, t->cap);
}

static void text_reserve(Text *t, size_t more) {
    if (t->cap - t->n > more) return;
    size_t cap = 2 * t->cap;
    while (cap - t->n <= more) cap *= 2;
    char *to = arena_alloc(t->arena, cap);
    memcpy(to, t->at, t->n + 1);
    arena_release(t->arena, t->at);             // where it was large
    t->at = to;
    t->cap = cap;
}

void text_append(Text *t, const char *s, size_t n) {
    text_reserve(t, n);
    if (n) memcpy(t->at + t->n, s, n);
    t->n += n;
    t->at[t->n] = 0;
}

void text_printf(Text *t, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(t->at + t->n, t->cap - t->n, fmt, ap);
    va_end(ap);
    if (n < 0) bug("bad format \"%s\"", fmt);
    if ((size_t)n >= t->cap - t->n) {
        text_reserve(t, (size_t)n);
        vsnprintf(t->at + t->n, t->cap - t->n, fmt, again);
    }
    va_end(again);
    t->n += (size_t)n;
}

static const Word *word_at(const char *text, int n, const Word *words) {
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(words[i].name);
        if (!strncmp(text + 1, words[i].name, length) && text[1 + length] == '@') return &words[i];
    }
    return NULL;
}

void text_fill(Text *out, const char *text, int n, const Word *words) {
    size_t line = out->n;
    bool left_out = false;
    while (*text) {
        const Word *w = *text == '@' ? word_at(text, n, words) : NULL;
        if (!w) text_append(out, text, 1);
        else if (w->means) text_append(out, w->means, strlen(w->means));
        left_out = left_out || (w && !w->means);
        text += w ? strlen(w->name) + 2 : 1;
        if (text[-1] != '\n') continue;
        if (left_out) {
            out->n = line;
            out->at[line] = 0;
        }
        left_out = false;
        line = out->n;
    }
}

typedef struct Slot { const char *key; uint64_t hash; void *value; } Slot;
struct StrMap { Arena *arena; Slot *slots; size_t cap, n; };       // cap: a power of two

uint64_t text_hash(const char *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

StrMap *strmap_new(Arena *a) {
    StrMap *m = NEW(a, StrMap);
    m->arena = a;
    m->cap = 16;
    m->slots = NEW_ARRAY(a, Slot, m->cap);
    return m;
}

// The slot that holds key, or the empty one where it belongs.
static Slot *strmap_slot(const StrMap *m, const char *key, uint64_t hash) {
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        Slot *s = &m->slots[i];
        if (!s->key || (s->hash == hash && !strcmp(s->key, key))) return s;
    }
}

static void strmap_grow(StrMap *m) {
    Slot *old = m->slots;
    size_t n = m->cap;
    m->cap *= 2;
    m->slots = NEW_ARRAY(m->arena, Slot, m->cap);
    for (size_t i = 0; i < n; i++)
        if (old[i].key) *strmap_slot(m, old[i].key, old[i].hash) = old[i];
}

void strmap_put(StrMap *m, const char *key, void *value) {
    uint64_t hash = text_hash(key);
    Slot *s = strmap_slot(m, key, hash);
    if (!s->key) {
        if (2 * (m->n + 1) > m->cap) {
            strmap_grow(m);
            s = strmap_slot(m, key, hash);
        }
        m->n++;
        s->key = arena_strdup(m->arena, key);
        s->hash = hash;
    }
    s->value = value;
}

void *strmap_get(const StrMap *m, const char *key) {
    Slot *s = strmap_slot(m, key, text_hash(key));
    return s->key ? s->value : NULL;
}

void text_quoted(Text *out, const char *s) {
    text_append(out, "\"", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) text_printf(out, "\\%02x", (unsigned)c);
        else text_append(out, s, 1);
    }
    text_append(out, "\"", 1);
}
