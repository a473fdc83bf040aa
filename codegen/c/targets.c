// SPDX-License-Identifier: MIT OR Apache-2.0
// One file for several targets (--target x86-64-v2,x86-64-v3): the code once in text, compiled once for each.
//
// In: what stands once in the file, and the code (prelude, kernels, run functions). Out: a file that includes itself,
//
//   #if !defined(BURN_TARGET)                  constants, then for each target
//   #pragma GCC target("avx2,fma")             ... a region in which the compiler may use what the target has,
//   #define BURN_TARGET _x86_64_v3             ... the suffix of all names in it, and the vectors of the prelude,
//   #include "model.c"                         ... and the code; last the functions that users call
//   #else
//   #define model_conv1 BURN_NAME(model_conv1) the code, whose names become model_conv1_x86_64_v3
//   #endif
//
// Which names those are is read off the code: the prelude's (burn_), kernels' and run functions', unless what stands
// once has them too.
#include "names.h"

#include <ctype.h>
#include <string.h>

typedef struct Collect {
    CFile *file;
    const char **run_prefix, **kernel_prefix;           // model_run_, model_k: of each program
    CNames shared, own, macros;
} Collect;

static void found_shared(void *ctx, const char *name, size_t n) {
    Collect *c = ctx;
    c_names_add(&c->shared, name, n);
}

static bool begins(const char *name, size_t n, const char *with) {
    return n > strlen(with) && !memcmp(name, with, strlen(with));
}

static void found_own(void *ctx, const char *name, size_t n) {
    Collect *c = ctx;
    bool ours = begins(name, n, "burn_");
    for (int i = 0; i < c->file->n && !ours; i++)
        ours = begins(name, n, c->run_prefix[i]) || begins(name, n, c->kernel_prefix[i]);
    if (ours && !strmap_get(c->shared.known, arena_strndup(c->file->arena, name, n)))
        c_names_add(&c->own, name, n);
}

// Declarations of the C library's functions stand once: a region would give them its target.
static void lift_declarations(Arena *a, const Text *code, Text *once, Text *rest) {
    static const char open[] = "#if defined(__GNUC__)\nextern ", close[] = "#endif\n";
    const char *s = code->at, *found, *end;
    text_init(once, a);
    text_init(rest, a);
    for (; (found = strstr(s, open)) && (end = strstr(found, close)); s = end + strlen(close)) {
        text_append(rest, s, (size_t)(found - s));
        text_append(once, found, (size_t)(end - found) + strlen(close));
    }
    text_append(rest, s, strlen(s));
}

const char *c_target_suffix(Arena *a, const Target *t) {
    char *s = arena_printf(a, "_%s", t ? t->name : "any");
    for (char *c = s; *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '_';
    return s;
}

const char *c_target_test(Arena *a, const Target *t) {
    Text out;
    text_init(&out, a);
    for (const char *s = t->features; *s; s += strspn(s, ",")) {
        size_t n = strcspn(s, ",");
        text_printf(&out, "%s__builtin_cpu_supports(\"%.*s\")", out.n ? " && " : "", (int)n, s);
        s += n;
    }
    return out.at;
}

// clang has no pragma of gcc's kind, and its attribute leaves the machine's macros as they are: so the prelude is
// told the vectors here.
static void print_copy(CFile *g, Text *out, const char *file, const Target *t) {
    text_printf(out,
        "#if defined(__clang__)\n#pragma clang attribute push(__attribute__((target(\"%s\"))), apply_to = function)\n",
        t->features);
    text_printf(out, "#else\n#pragma GCC push_options\n#pragma GCC target(\"%s\")\n#endif\n", t->features);
    text_printf(out,
        "#define BURN_TARGET %s\n#define BURN_VF_LANES %d\n#define BURN_MANY_REGISTERS %d\n#include \"%s\"\n",
        c_target_suffix(g->arena, t), t->lanes, t->registers >= 32, file);
    text_printf(out, "#if defined(__clang__)\n#pragma clang attribute pop\n#else\n#pragma GCC pop_options\n#endif\n\n");
}

void c_targets(CFile *g, Text *out, const char *header, const Text *head, const Text *before,
    const Text *code) {
    const Target *all = &g->options->machine;
    Text library, own;
    lift_declarations(g->arena, code, &library, &own);
    const char *file = path_base(path_swap(g->arena, header, ".c"));
    Collect c = { .file = g };
    c_names_init(&c.shared, g->arena);
    c_names_init(&c.own, g->arena);
    c_names_init(&c.macros, g->arena);
    c.run_prefix = NEW_ARRAY(g->arena, const char *, 2 * g->n);
    c.kernel_prefix = c.run_prefix + g->n;
    for (int i = 0; i < g->n; i++) {
        c.run_prefix[i] = arena_printf(g->arena, "%s_", g->programs[i].name);
        c.kernel_prefix[i] = arena_printf(g->arena, "%s_k", g->programs[i].prefix);
    }
    const char *const once[] = { g->h.at, head->at, before->at, library.at, g->ends.at,
        burn_types(g->arena, "burn-model-types") };
    for (size_t i = 0; i < COUNT(once); i++) c_names_each(once[i], found_shared, &c);
    c_names_each(own.at, found_own, &c);
    c_names_macros(&c.macros, own.at);

    text_printf(out,
        "/* The code of this file, after its #else, is compiled once for each of %s:\n"
        " * the file includes itself under its name %s. Compile it with -O3 and without -march. */\n",
        all->name, file);
    const char *const around[] = { head->at, before->at, library.at, g->ends.at };
    Text begin, end;
    text_init(&begin, g->arena);
    text_init(&end, g->arena);
    c_names_apart(g, COUNT(around), around, &begin, &end);
    text_printf(out, "#if !defined(BURN_TARGET)\n");
    text_append(out, head->at, head->n);
    text_append(out, begin.at ? begin.at : "", begin.n);
    text_append(out, before->at ? before->at : "", before->n);
    text_append(out, library.at, library.n);
    text_printf(out,
        "\n#define BURN_NAME_JOIN(name, suffix) name##suffix\n"
        "#define BURN_NAME_WITH(name, suffix) BURN_NAME_JOIN(name, suffix)\n"
        "#define BURN_NAME(name) BURN_NAME_WITH(name, BURN_TARGET)\n\n");
    text_printf(out, "#if defined(__GNUC__) && defined(__x86_64__)\n#define BURN_SEVERAL 1\n");
    for (int i = 0; i < all->n_parts; i++) print_copy(g, out, file, all->parts[i]);
    text_printf(out, "#else\n#define BURN_SEVERAL 0\n#define BURN_TARGET %s\n#include \"%s\"\n#endif\n\n",
        c_target_suffix(g->arena, NULL), file);
    text_append(out, g->ends.at, g->ends.n);
    text_append(out, end.at ? end.at : "", end.n);
    text_printf(out, "#undef BURN_NAME_JOIN\n#undef BURN_NAME_WITH\n#undef BURN_NAME\n#undef BURN_SEVERAL\n");
    text_printf(out, "#else /* the code, for BURN_TARGET */\n");
    for (int i = 0; i < c.own.list.n; i++) {
        const char *name = c.own.list.at[i];
        bool shared = !strncmp(name, "burn_", 5);       // by all generated files
        text_printf(out, "#define %s BURN_NAME(%s%s%s)\n", name, shared ? g->model : "", shared ? "_" : "", name);
    }
    text_printf(out, "\n");
    text_append(out, own.at, own.n);
    for (int i = 0; i < c.macros.list.n; i++) text_printf(out, "#undef %s\n", c.macros.list.at[i]);
    for (int i = 0; i < c.own.list.n; i++) text_printf(out, "#undef %s\n", c.own.list.at[i]);
    text_printf(out, "#undef BURN_TARGET\n#undef BURN_VF_LANES\n#undef BURN_MANY_REGISTERS\n#endif\n");
}
