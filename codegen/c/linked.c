// SPDX-License-Identifier: MIT OR Apache-2.0
// One copy of a kernel in an image of several models, or parts of one (--share). Each generated file has its own
// functions; those of two files that are the same code get the same name here, and the linker keeps one of them.
//
// In: a kernel's function, and its text without names of its own (share.c). Out: the same function with a name that
// says what it computes: a hash of that text and of all that it calls, which is the prelude that a file of this kernel
// alone would have. So files of other compilers, targets and options never meet: what differs has another name.
//
//   static void net_k3_conv(...) {...}      #ifndef BURN_K_5f0c...           for files in one translation unit
//                                           #define BURN_K_5f0c...
//                                           BURN_ONE(burn_k_5f0c...) void burn_k_5f0c...(...);
//                                           BURN_ONE(burn_k_5f0c...) void burn_k_5f0c...(...) {...}
//                                           #endif
//
// A function that mentions something else of its model's stays as it is.
#include "names.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const char qualifier[] = "static ";

typedef struct Search { const char *prefix; bool found; } Search;

static void found_word(void *search, const char *name, size_t n) {
    Search *s = search;
    const size_t length = strlen(s->prefix);
    if (n > length && !memcmp(name, s->prefix, length) && name[length] == '_') s->found = true;
}

// Its text is the user's.
static bool is_custom(const Kernel *k) { return k->kind == KERNEL_CALL && k->anchor->op == OP_Custom; }

static const char *name_of(CFile *g, const char *text, const char *key) {
    Text all, code;
    text_init(&all, g->arena);
    text_init(&code, g->arena);
    text_printf(&code, "%s", text);
    text_printf(&all, "%s", key);
    c_prelude(g, &all, NULL, &code);
    return arena_printf(g->arena, "%s%016" PRIx64, C_LINKED, text_hash(all.at));
}

// The text with another name for the function, and for those that begin with its name.
static const char *renamed(Arena *a, const char *text, const char *from, const char *to) {
    const size_t n = strlen(from);
    Text out;
    text_init(&out, a);
    for (const char *s; (s = strstr(text, from)); text = s + n) {
        const bool begins = s == text || !(isalnum((unsigned char)s[-1]) || s[-1] == '_');
        text_append(&out, text, (size_t)(s - text));
        text_printf(&out, "%s", begins && (s[n] == '_' || !isalnum((unsigned char)s[n])) ? to : from);
    }
    text_printf(&out, "%s", text);
    return out.at;
}

// Behind the function's list of parameters.
static const char *head_end(const char *at) {
    int depth = 0;
    for (; *at; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (*at == ')' && !depth) return at + 1;
    }
    bug("a function without parameters' end");
}

const char *c_linked(CFile *g, const KernelText *t, const char *text, const char *key, const char **name) {
    Search model = { .prefix = g->model };
    if (!g->options->share || t->handed || is_custom(t->kernel)) return NULL;
    c_names_each(key, found_word, &model);
    if (model.found) return NULL;
    const char *own = *name = name_of(g, text, key), *mark = own + strlen(C_LINKED);
    text = renamed(g->arena, text, t->name, own);
    const char *line = c_definition(text, own), *is_static = strstr(line, qualifier), *at = c_find_word(line, own);
    if (!is_static || is_static > at) bug("%s is not static", t->name);
    const char *end = head_end(at);
    if (memchr(at, '#', (size_t)(end - at))) return NULL;   // a head that the C compiler chooses
    Text out;
    text_init(&out, g->arena);
    text_printf(&out, "#ifndef %s%s\n#define %s%s\n%.*s", C_LINKED_MARK, mark, C_LINKED_MARK, mark,
        (int)(line - text), text);
    text_printf(&out, "BURN_ONE(%s) %.*s;\n", own, (int)(end - is_static - (ptrdiff_t)strlen(qualifier)),
        is_static + strlen(qualifier));
    text_printf(&out, "BURN_ONE(%s) %.*s", own, (int)(is_static - line), line);
    text_printf(&out, "%s#endif\n\n", is_static + strlen(qualifier));
    return out.at;
}
