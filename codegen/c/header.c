// SPDX-License-Identifier: MIT OR Apache-2.0
// What a program's part of the header says: its workspace, and its run function with what it reads, writes and returns.
#include "signature.h"

#include <string.h>

static bool has_sizes(const Plan *plan) {
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        for (int j = 0; j < kernel_bodies(k); j++) if (has_sizes(k->region.bodies[j])) return true;
        if (k->sizes.n) return true;
    }
    return false;
}

// Can it meet bytes that are not what they should be?
static bool reads_formats(const Plan *plan) {
    bool found = false;
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        found = found || kernel_fails(k) == -6;
        for (int j = 0; j < kernel_bodies(k); j++) found = found || reads_formats(k->region.bodies[j]);
    }
    return found;
}

// What BURN_ERANGE means here.
static const char *ranges_text(Arena *a, const Graph *g) {
    for (int i = 0; i < g->inputs.n; i++) {
        const Value *v = g->inputs.at[i];
        if (!v->range) continue;
        const char *what = v->role == ROLE_VALUE ?
            arena_printf(a, "below %lld", (long long)v->range->lo) :
            arena_printf(a, "outside %lld..%lld", (long long)v->range->lo, (long long)v->range->hi);
        return arena_printf(a, ", -8 (BURN_ERANGE) when\n * %s is %s", v->name, what);
    }
    return "";
}

// What BURN_ENAN means here.
static const char *loss_text(Arena *a, const Signature *s) {
    const Graph *g = s->graph;
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i]->role == ROLE_LOSS)
            return arena_printf(a,
                ", -9 (BURN_ENAN) when\n * %s is infinite or not a number; %s",
                s->outs.name[i],
                c_struct_written(g, ROLE_PARAM) ? "then nothing is updated" : "everything is written all the same");
    return "";
}

// What BURN_ELIMIT and BURN_EFORMAT mean here.
static const char *limits_text(Arena *a, const Signature *s) {
    const Plan *plan = s->program->plan;
    const char *image = reads_formats(plan) ?
        ", -6 (BURN_EFORMAT) when\n"
        " * an image is damaged, not of this size or of no known format (runtime/image.c decodes it)" :
        "";
    const char *sizes = has_sizes(plan) ? "a size is out of its bounds" : "", *strings = "";
    if (plan->strings)
        strings = arena_printf(a, "the strings that it makes\n * take more than %lld bytes, their zero bytes included",
            (long long)plan->strings->bytes);
    const char *older = plan->options->machine.n_parts ?
        arena_printf(
            a, ", -7 (BURN_ENODEV) when\n * the processor is older than %s", plan->options->machine.parts[0]->name) :
        "";
    const char *limits = *sizes || *strings ?
        arena_printf(a, ", -5 (BURN_ELIMIT) when\n * %s%s%s", sizes, *sizes && *strings ? " or " : "", strings) :
        "";
    return arena_printf(a, "%s%s%s%s%s", limits, ranges_text(a, plan->graph), loss_text(a, s), image, older);
}

// A line for each input, output and size, as they lie in the comment over the run function.
static const char *ends_text(CFile *g, const Signature *s) {
    const Graph *gr = s->graph;
    Text t;
    text_init(&t, g->arena);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const Value *v = side ? gr->outputs.at[i] : gr->inputs.at[i];
            if (v->role && v->role != ROLE_LOSS) continue;
            text_printf(&t, " *   %-8s %s: %s\n", side ? "writes" : "reads", (side ? &s->outs : &s->in)->name[i],
                type_text(g->arena, gr, &v->type));
            if (side && c_is_measured(gr, &v->type))
                text_printf(&t, " *            up to %lld elements; its dimensions go to %s_shape\n",
                    (long long)type_count_upper(gr, &v->type), s->outs.name[i]);
        }
    for (int i = 0; i < s->sizes.n; i++) {
        const Symbol *size = c_symbol(gr, s->sizes.at[i]);
        text_printf(&t, " *   size     %s: %s, %lld to %lld\n", spell_symbol(t.arena, size), size->name,
            (long long)size->lo, (long long)size->hi);
    }
    if (g->state && c_struct_seen(gr, gr->outputs.n, true, ROLE_STATE))
        text_printf(&t, " *   state    %s what is kept between runs\n",
            c_struct_written(gr, ROLE_STATE) ? "reads and updates" : "reads");
    bundles_comment(&t, gr, s->in.name, s->outs.name);
    return t.n ? t.at : "";
}

const char *c_scale(Arena *a, double scale) {
    const char *text = arena_printf(a, "%.9g", scale);
    return arena_printf(a, strpbrk(text, ".e") ? "%sf" : "%s.0f", text);
}

// Macros for ends that lie in the workspace.
static void places_text(const CFile *g, Text *t, const Signature *s) {
    Arena *a = t->arena;
    const Graph *gr = s->graph;
    for (int i = 0; i < gr->inputs.n + gr->outputs.n; i++) {
        const bool output = i >= gr->inputs.n;
        const int at = output ? i - gr->inputs.n : i;
        const Value *v = output ? gr->outputs.at[at] : gr->inputs.at[at];
        const char *end = c_place(a, s->program->prefix, (output ? &s->outs : &s->in)->name[at]);
        int bank;
        const int64_t byte = c_inside(s->program, v, &bank);
        const char *part = c_has_banks(g) ? c_bank_name(g, bank) : NULL;
        text_printf(t, "#define %s_AT %lld /* byte of the %s */\n", end, (long long)byte,
            part ? arena_printf(a, "workspace's part in %s", part) : "workspace");
        text_printf(t, "#define %s(ws) ((%s *)(void *)((ws)->%sbytes + %s_AT))\n", end,
            spell_c_storage(v->type.dtype), part ? arena_printf(a, "%s->", part) : "", end);
    }
}

// Macros for the scale and zero point of each end that is quantized.
static const char *steps_text(const CFile *g, const Signature *s) {
    Arena *a = g->arena;
    const Graph *gr = s->graph;
    const char *prefix = text_upper(a, s->program->prefix);
    Text t;
    text_init(&t, a);
    text_append(&t, "", 0);
    if (s->program->plan->options->io_inside) places_text(g, &t, s);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const char *name = side ? gr->output_names.at[i] : gr->inputs.at[i]->name;
            const QuantizedEnd *e = graph_quantized(gr, name, side);
            if (!e) continue;
            name = (side ? &s->outs : &s->in)->name[i];
            const char *end = arena_printf(a, "%s_%s", prefix, text_upper(a, name));
            text_printf(&t, "/* An element q of %s stands for (q - %s_ZERO) * %s_SCALE. */\n", name, end, end);
            text_printf(&t, "#define %s_SCALE %s\n#define %s_ZERO (%lld)\n", end, c_scale(a, e->scale), end,
                (long long)e->zero);
        }
    if (t.n) text_printf(&t, "\n");
    return t.at;
}

void c_declare(CFile *g, const Signature *s) {
    Arena *a = g->arena;
    const Program *p = s->program;
    const Plan *plan = p->plan;
    const int64_t bytes = p->function && p != g->programs ? 0 : c_work_bytes(g, p);
    const char *kept = plan->strings     ? ",\n * but for the strings that outputs point to" :
        g->options->io_inside            ? ",\n * but for inputs before it and outputs after it" :
                                           "";
    Text signature;
    text_init(&signature, a);
    c_signature_print(g, &signature, s, p->name);
    skeleton_fill(a, &g->h, "skeleton/program.h", 13,
        (Hole[]){ { "MODEL", NULL, g->model },
            { "SPACE", NULL, p->name_of_workspace },
            { "N_BYTES", NULL, number_text(a, c_has_workspace(p) && !c_has_banks(g) ? bytes : 0) },
            { "KEPT", NULL, p->function ? "a run of\n * any function" : kept },
            { "BANKS", NULL, c_banks_declare(g, p, p->function ? " a run of any function" : kept) },
            { "STEPS", NULL, steps_text(g, s) },
            { "DOC", NULL, p->doc ? p->doc : "One inference. Tensors are dense and row-major." },
            { "ENDS", NULL, ends_text(g, s) },
            { "HAS_WEIGHTS", NULL, c_takes_weights(g, p) ? "1" : "0" },
            { "N_THREADS", NULL, number_text(a, g->threads ? g->options->threads : 0) },
            { "HAS_GPU", NULL, g->handover ? "1" : "0" },
            { "LIMITS", NULL, limits_text(a, s) },
            { "SIGNATURE", NULL, signature.at } });
    text_printf(&g->h, "\n");
}
