// SPDX-License-Identifier: MIT OR Apache-2.0
// A run of very many calls, as that of a training step is, in functions of some calls each. What a C compiler does to
// one long function takes more than in proportion to its length: where the 2,600 calls of YOLOX-nano's step were one,
// gcc 12 -O3 took 21 s and 910 MB for the file; it takes 15 s and 340 MB where they are functions of 64 calls.
//
//   BURN_APART static int net_gradients_stretch1(net_gradients_workspace *ws, const float x[...], ...)
//   {
//       unsigned char *const work = ws->bytes;
//       net_gradients_k0_conv1(...);
//       ...
//       return 0;
//   }
//
// In: the body of the run function, and where it may be cut. Out: these functions, which are given what they read of
// what the run function is given, and a body that calls them.
#include "run.h"

#include <ctype.h>
#include <string.h>

enum { MANY = 256, CALLS = 64 };                        // from so many on this pays; in a function

bool c_has_stretches(const RunText *r) {
    const Plan *p = r->s->program->plan;
    if (r->g->handover || r->g->options->small || c_has_banks(r->g) || p->strings || p->kernels.n < MANY) return false;
    for (int i = 0; i < p->kernels.n; i++)
        if (p->kernels.at[i]->kind == KERNEL_SIZES) return false;       // they become variables
    return true;
}

// The names that a text says, those of fields left out.
static StrMap *names_of(Arena *a, const char *text) {
    StrMap *names = strmap_new(a);
    for (const char *at = text, *end; *at; at = end) {
        end = at + 1;
        if (!isalpha((unsigned char)*at) && *at != '_') {
            // the x of 0x1, which is no name
            while (isdigit((unsigned char)*at) && isalnum((unsigned char)*end)) end++;
            continue;
        }
        while (isalnum((unsigned char)*end) || *end == '_') end++;
        const bool field = at > text && (at[-1] == '.' || (at[-1] == '>' && at > text + 1 && at[-2] == '-'));
        if (!field) strmap_put(names, arena_strndup(a, at, (size_t)(end - at)), names);
    }
    return names;
}

// Of the parameters and arguments of the run function, which correspond, those whose names the text says: where each of
// a thousand outputs is a parameter, a hundred functions that had all of them would be most of the file.
static void print_used(Arena *a, const char *text, const char *parameters, const char *arguments, Text *declared,
    Text *given) {
    const StrMap *names = names_of(a, text);
    while (*arguments) {
        const size_t n = strcspn(arguments, ","), m = strcspn(parameters, ",");
        if (strmap_get(names, arena_strndup(a, arguments, n))) {
            text_printf(declared, "%s%.*s", declared->n ? ", " : "", (int)m, parameters);
            text_printf(given, "%s%.*s", given->n ? ", " : "", (int)n, arguments);
        }
        arguments += n + strspn(arguments + n, ", ");
        parameters += m + strspn(parameters + m, ", ");
    }
}

// The variables of a run that the text says.
static void print_variables(const RunText *r, Text *out, const char *text) {
    if (c_says_word(text, "work")) text_printf(out, "    unsigned char *const work = %s;\n", c_work(r));
    if (c_says_word(text, "constants"))
        text_printf(out, "    const unsigned char *const constants = %s;\n", c_constants(r));
}

void c_stretches(RunText *r) {
    CFile *g = r->g;
    Text whole = r->body, parameters, arguments;
    text_init(&parameters, g->arena);
    text_init(&arguments, g->arena);
    text_init(&r->body, g->arena);
    c_signature_parameters(g, &parameters, r->s, true);
    c_signature_parameters(g, &arguments, r->s, false);
    size_t from = 0;
    for (int i = CALLS - 1, number = 1; from < whole.n; i += CALLS, number++) {
        const size_t to = i < r->cuts.n ? r->cuts.at[i] : whole.n;
        const char *name = arena_printf(g->arena, "%s_stretch%d", r->s->program->name, number);
        Arena *scratch = arena_new();
        Text own, declared, given;
        text_init(&own, scratch);
        text_init(&declared, scratch);
        text_init(&given, scratch);
        print_variables(r, &own, arena_strndup(scratch, whole.at + from, to - from));
        text_append(&own, whole.at + from, to - from);
        print_used(scratch, own.at, parameters.at, arguments.at, &declared, &given);
        text_printf(&g->c, "BURN_APART static int %s(%s)\n{\n", name, declared.n ? declared.at : "void");
        text_append(&g->c, own.at, own.n);
        text_printf(&g->c, "    return 0;\n}\n\n");
        const char *call = number == 1 ? "    int failed = %s(%s);\n" : "    if (failed == 0) failed = %s(%s);\n";
        text_printf(&r->body, call, name, given.at);
        arena_free(scratch);
        from = to;
    }
    text_printf(&r->body, "    if (failed != 0) return failed;\n");
}
