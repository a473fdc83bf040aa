// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels that are the same code: one C function, called once for each. A deep network repeats few shapes, so this
// divides the size of the program, the time its compiler takes and what the instruction cache has to hold.
//
// In: the kernels of a file's programs, in order. Out: before each program the functions that are new in it, each
// under the comments of all its kernels that call it, and in KernelText.function the name to call. Two texts are the
// same when they agree with the kernel's name, its parameters' and its sizes' names replaced by numbers:
//
//   static void net_k3_conv(const float *restrict W, ...)      static void net_k8_conv(...)      both: static void
//       @(const float *restrict $0, ...)
//
// In files of training the extents and steps of loops, and the sizes and strides that templates take as expressions,
// are arguments (CFile.numbers), so that the update of parameters of all lengths is one function, and products whose
// tiles have the same edges are.
//
// One that many kernels call stays a function (BURN_APART): small ones the C compiler would copy to every call.
#include "c.h"

#include <ctype.h>
#include <string.h>

enum { MANY_CALLS = 4 };

// varies: its calls differ in numbers, or in how they are cut into parts
typedef struct Function {
    const char *name, *text;
    Text origins;
    int calls;
    const KernelText *first;
    bool varies;
} Function;
struct Functions { Arena *scratch; StrMap *known; VEC(Function *) list; int printed; };

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void canonical_word(const KernelText *t, Text *out, const char *word, size_t n) {
    size_t own = strlen(t->name);
    for (int i = 0; i < t->n_params; i++)
        if (strlen(t->params[i].name) == n && !memcmp(t->params[i].name, word, n)) {
            text_printf(out, "$%d", i);
            return;
        }
    for (int i = 0; i < t->kernel->sizes.n; i++) {
        const char *size = c_size(t->file, t->kernel, i);
        if (strlen(size) != n || memcmp(size, word, n)) continue;
        text_printf(out, "#%d", i);
        return;
    }
    if (n >= own && !memcmp(word, t->name, own) && (n == own || word[own] == '_')) {
        text_append(out, "@", 1);
        word += own;
        n -= own;
    }
    text_append(out, word, n);
}

static const char *canonical(Arena *a, const KernelText *t, const char *s) {
    Text out;
    text_init(&out, a);
    for (size_t n; *s; s += n) {
        n = 1;
        if (!is_word(*s)) {
            text_append(&out, s, 1);
            continue;
        }
        while (is_word(s[n])) n++;
        canonical_word(t, &out, s, n);
    }
    return out.at;
}

Functions *c_functions_new(CFile *g) {
    Functions *f = NEW(g->arena, Functions);
    *f = (Functions){ .scratch = arena_new() };
    f->known = strmap_new(f->scratch);
    return f;
}

// What calls take of the text of kernel k, out of the memory that it was printed in.
static void keep(Arena *a, KernelText *t, const Kernel *k) {
    t->params = arena_copy(a, t->params, sizeof *t->params * (size_t)t->n_params);
    t->numbers.at = arena_copy(a, t->numbers.at, sizeof *t->numbers.at * (size_t)t->numbers.n);
    t->numbers.cap = t->numbers.n;
    t->n_sizes = t->kernel->sizes.n;
    t->sizes = arena_copy(a, t->kernel->sizes.at, sizeof *t->sizes * (size_t)t->n_sizes);
    t->kernel = k;
}

static bool differ(const KernelText *x, const KernelText *y) {
    const Kernel *k = x->kernel, *l = y->kernel;
    if (k->parts != l->parts || k->workers != l->workers || k->scratch_bytes != l->scratch_bytes) return true;
    if (k->parts > 1 && k->kind == KERNEL_LOOP
        && k->axes.at[k->loop.part_axis].size != l->axes.at[l->loop.part_axis].size)
        return true;
    for (int i = 0; i < x->numbers.n; i++)
        if (x->numbers.at[i].value != y->numbers.at[i].value) return true;
    return false;
}

// Printing a kernel takes ten times the memory of its text, and most texts are there already: all that is gone with
// `own`.
void c_functions_add(Functions *f, CFile *g, KernelText *t) {
    Arena *own = arena_new(), *arena = g->arena;
    const Kernel *k = t->kernel;
    Text whole = g->c;
    g->arena = own;
    text_init(&g->c, own);
    t->params = NEW_ARRAY(own, Param, MAX_PARAMS);
    c_kernel(g, t);
    const char *text = g->c.at, *key = canonical(own, t, text);
    Function *one = strmap_get(f->known, key);
    if (!one) {
        const char *name = t->name, *linked = c_linked(g, t, text, key, &name);
        one = NEW(f->scratch, Function);
        *one = (Function){ .name = linked ? arena_strdup(arena, name) : t->name,
            .text = arena_strdup(f->scratch, linked ? linked : text) };
        text_init(&one->origins, f->scratch);
        strmap_put(f->known, key, one);
        VEC_PUSH(f->scratch, f->list, one);
    }
    g->c = whole;
    g->arena = arena;
    print_origin(own, &one->origins, g->plan->graph, k);
    one->calls++;
    t->function = one->name;
    keep(arena, t, k);
    t->varies = &one->varies;
    if (!one->first) one->first = t;
    one->varies = one->varies || differ(one->first, t);
    arena_free(own);
}

const char *c_definition(const char *text, const char *name) {
    const char *at = c_find_word(text, name);
    if (!at) bug("no definition of %s", name);
    while (at > text && at[-1] != '\n') at--;
    return at;
}

void c_functions_print(Functions *f, CFile *g) {
    for (; f->printed < f->list.n; f->printed++) {
        const Function *one = f->list.at[f->printed];
        bool apart = one->calls >= MANY_CALLS;
        const char *own = apart ? c_definition(one->text, one->name) : one->text;
        text_append(&g->c, one->origins.at, one->origins.n);
        text_append(&g->c, one->text, (size_t)(own - one->text));
        text_printf(&g->c, "%s", apart ? "BURN_APART " : "");
        text_append(&g->c, own, strlen(own));
    }
}

Listing c_functions_list(const Functions *f, Arena *a) {
    Listing all = { f->list.n, NEW_ARRAY(a, Listed, f->list.n + 1) };
    for (int i = 0; i < f->list.n; i++) {
        const Function *one = f->list.at[i];
        all.at[i] = (Listed){ arena_strdup(a, one->name), arena_printf(a, "%s%s", one->origins.at, one->text) };
    }
    return all;
}

void c_functions_free(Functions *f) { arena_free(f->scratch); }
