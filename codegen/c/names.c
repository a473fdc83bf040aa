// SPDX-License-Identifier: MIT OR Apache-2.0
// CNames in generated C, read off its text: for a file that includes itself (targets.c), and for several files in one
// translation unit.
//
// In: C text. Out: its identifiers, the macros that it defines. The idea of the latter: what the prelude brings
// (burn_...) is the same for no two files, as it depends on the target; so each file's become the model's own by a
// macro of the same name, which ends with the file.
#include "names.h"

#include <ctype.h>
#include <string.h>

static bool is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

// What comes after a comment or a literal that begins at s; s itself when none does.
static const char *skip_opaque(const char *s) {
    if (s[0] == '/' && s[1] == '*') {
        const char *end = strstr(s + 2, "*/");
        return end ? end + 2 : s + strlen(s);
    }
    if (s[0] == '/' && s[1] == '/') return s + strcspn(s, "\n");
    if (*s != '"' && *s != '\'') return s;
    const char *end = s + 1;
    while (*end && *end != *s) end += *end == '\\' && end[1] ? 2 : 1;
    return *end ? end + 1 : end;
}

void c_names_each(const char *s, void (*found)(void *ctx, const char *name, size_t n), void *ctx) {
    while (s && *s) {
        const char *after = skip_opaque(s);
        size_t n = 0;
        while (is_letter(s[n])) n++;
        if (after == s && n && !isdigit((unsigned char)*s)) found(ctx, s, n);
        s = after > s ? after : s + (n ? n : 1);
    }
}

void c_names_init(CNames *n, Arena *a) { *n = (CNames){ .arena = a, .known = strmap_new(a) }; }

bool c_names_add(CNames *to, const char *name, size_t n) {
    const char *copy = arena_strndup(to->arena, name, n);
    if (strmap_get(to->known, copy)) return false;
    strmap_put(to->known, copy, to);
    VEC_PUSH(to->arena, to->list, copy);
    return true;
}

void c_names_macros(CNames *to, const char *code) {
    static const char define[] = "#define ";
    for (const char *s = code; s && (s = strstr(s, define));) {
        s += sizeof define - 1;
        size_t n = 0;
        while (is_letter(s[n])) n++;
        c_names_add(to, s, n);
    }
}

// ---------------------------------------------------------------- several files in one translation unit
typedef struct Apart { CNames shared, own; } Apart;

static void found_shared(void *ctx, const char *name, size_t n) { c_names_add(&((Apart *)ctx)->shared, name, n); }

static bool begins(const char *name, size_t n, const char *with) {
    return n > strlen(with) && !memcmp(name, with, strlen(with));
}

// runtime/image.c, which the code calls, keeps its names, and so does what files have in common (linked.c).
static void found_own(void *ctx, const char *name, size_t n) {
    Apart *a = ctx;
    if (begins(name, n, "burn_") && !begins(name, n, "burn_image_") && !begins(name, n, C_LINKED)
        && !strmap_get(a->shared.known, arena_strndup(a->own.arena, name, n)))
        c_names_add(&a->own, name, n);
}

// The C library's, which the file has where there is none, stay: headers that define them are read once. So does what
// says which functions are there.
static bool is_own_macro(const char *name) {
    static const char *const library[] = { "_POSIX_C_SOURCE", "INFINITY", "NAN", "isnan", "isinf", "fabsf",
        "copysignf" };
    for (size_t i = 0; i < COUNT(library); i++)
        if (!strcmp(library[i], name)) return false;
    return !begins(name, strlen(name), C_LINKED_MARK);
}

void c_names_apart(const CFile *g, int n, const char *const *texts, Text *begin, Text *end) {
    static const char *const blocks[] = { "burn-model-types", "burn-training-types", "burn-threads-types",
        "burn-gpu-types" };                           // the last: of GPUs alone
    Apart a;
    CNames macros;
    c_names_init(&a.shared, g->arena);
    c_names_init(&a.own, g->arena);
    c_names_init(&macros, g->arena);
    const size_t count = COUNT(blocks) - (g->handover ? 0 : 1);
    for (size_t i = 0; i < count; i++) c_names_each(burn_types(g->arena, blocks[i]), found_shared, &a);
    for (int i = 0; i < n; i++) c_names_macros(&macros, texts[i]);
    for (int i = 0; i < macros.list.n; i++) found_shared(&a, macros.list.at[i], strlen(macros.list.at[i]));
    for (int i = 0; i < n; i++) c_names_each(texts[i], found_own, &a);
    if (a.own.list.n)
        text_printf(begin, "/* The names below are this file's own, whatever else includes it. */\n");
    for (int i = 0; i < a.own.list.n; i++)
        text_printf(begin, "#define %s %s_%s\n", a.own.list.at[i], g->model, a.own.list.at[i]);
    if (a.own.list.n) text_printf(begin, "\n");
    if (a.own.list.n || macros.list.n) text_printf(end, "\n");
    for (int i = 0; i < a.own.list.n; i++) text_printf(end, "#undef %s\n", a.own.list.at[i]);
    for (int i = 0; i < macros.list.n; i++)
        if (is_own_macro(macros.list.at[i])) text_printf(end, "#undef %s\n", macros.list.at[i]);
}
