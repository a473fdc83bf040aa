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
// In: the body of the run function, and where it may be cut. Out: these functions, which are given what the run
// function is given, and a body that calls them.
#include "run.h"

#include <string.h>

enum { MANY = 256, CALLS = 64 };                        // from so many on this pays; in a function

bool c_has_stretches(const RunText *r) {
    const Plan *p = r->s->program->plan;
    if (r->g->handover || r->g->options->small || c_has_banks(r->g) || p->strings || p->kernels.n < MANY) return false;
    for (int i = 0; i < p->kernels.n; i++)
        if (p->kernels.at[i]->kind == KERNEL_SIZES) return false;       // they become variables
    return true;
}

// Those that are not in the text are said to be unused.
static void print_unused(Arena *a, Text *out, const char *arguments, const char *text) {
    for (const char *at = arguments; *at;) {
        const size_t n = strcspn(at, ", ");
        const char *name = arena_strndup(a, at, n);
        if (!c_says_word(text, name)) text_printf(out, "    (void)%s;\n", name);
        at += n + strspn(at + n, ", ");
    }
}

// The variables of a run that the text says.
static void print_variables(const RunText *r, Text *out, const char *text) {
    const Program *p = r->s->program;
    const bool framed = c_says_word(text, "frame") && r->tasks.n;
    const char *settings = framed && r->settings.n ? r->settings.at : "";
    if (c_says_word(text, "work") || c_says_word(settings, "work"))
        text_printf(out, "    unsigned char *const work = %s;\n", c_work(r));
    if (c_says_word(text, "constants") || c_says_word(settings, "constants"))
        text_printf(out, "    const unsigned char *const constants = %s;\n", c_constants(r));
    if (framed) text_printf(out, "    %s_frame frame;\n%s", p->name, settings);
}

void c_stretches(RunText *r) {
    CFile *g = r->g;
    Text whole = r->body, arguments;
    text_init(&arguments, g->arena);
    text_init(&r->body, g->arena);
    c_signature_parameters(g, &arguments, r->s, false);
    size_t from = 0;
    for (int i = CALLS - 1, number = 1; from < whole.n; i += CALLS, number++) {
        const size_t to = i < r->cuts.n ? r->cuts.at[i] : whole.n;
        const char *name = arena_printf(g->arena, "%s_stretch%d", r->s->program->name, number);
        Text own;
        text_init(&own, g->arena);
        print_variables(r, &own, arena_strndup(g->arena, whole.at + from, to - from));
        text_append(&own, whole.at + from, to - from);
        text_printf(&g->c, "BURN_APART static ");
        c_signature_print(g, &g->c, r->s, name);
        text_printf(&g->c, "\n{\n");
        print_unused(g->arena, &g->c, arguments.at, own.at);
        text_append(&g->c, own.at, own.n);
        text_printf(&g->c, "    return 0;\n}\n\n");
        text_printf(&r->body, number == 1 ? "    int failed = %s(%s);\n" : "    if (!failed) failed = %s(%s);\n", name,
            arguments.at);
        from = to;
    }
    text_printf(&r->body, "    if (failed) return failed;\n");
}
