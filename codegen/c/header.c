// SPDX-License-Identifier: MIT OR Apache-2.0
// What a program's part of the header says: its workspace, and its run function with what it reads, writes and returns.
#include "signature.h"

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

// What BURN_ELIMIT and BURN_EFORMAT mean here.
static const char *limits_text(Arena *a, const Plan *plan) {
    const char *image = reads_formats(plan) ?
        ", -6 (BURN_EFORMAT) when\n * an image is damaged, not of this size or of no known format (runtime/image.c decodes it)" :
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
    return arena_printf(a, "%s%s%s", limits, image, older);
}

void c_declare(CFile *g, const Signature *s) {
    const Program *p = s->program;
    const Graph *gr = s->graph;
    Text *h = &g->h;
    if (c_has_workspace(p))
        text_printf(h,
            "/* Scratch memory of one run; its content means nothing before and after%s. Concurrent runs need one each. */\n",
            p->plan->strings ? ",\n * but for the strings that outputs point to" : "");
    if (c_has_workspace(p))
        text_printf(h,
            "typedef union %s_workspace {\n    double align;\n    unsigned char bytes[%lld];\n} %s_workspace;\n\n",
            p->name_of_workspace,
            (long long)(p->plan->work_bytes ? p->plan->work_bytes + c_workspace_slack(p->plan) : 1),
            p->name_of_workspace);
    text_printf(h, "/* %s\n", p->doc ? p->doc : "One inference. Tensors are dense and row-major.");
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const Value *v = side ? gr->outputs.at[i] : gr->inputs.at[i];
            if (v->role) continue;
            text_printf(h, " *   %-8s %s: %s\n", side ? "writes" : "reads", (side ? &s->outs : &s->in)->name[i],
                type_text(g->arena, gr, &v->type));
            if (side && c_is_measured(gr, &v->type))
                text_printf(h, " *            up to %lld elements; its dimensions go to %s_shape\n",
                    (long long)type_count_upper(gr, &v->type), s->outs.name[i]);
        }
    for (int i = 0; i < s->sizes.n; i++) {
        const Symbol *size = c_symbol(gr, s->sizes.at[i]);
        text_printf(h, " *   size     %s: %s, %lld to %lld\n", spell_symbol(h->arena, size), size->name,
            (long long)size->lo, (long long)size->hi);
    }
    bundles_print(h, gr, s->in.name, s->outs.name);
    if (g->external)
        text_printf(h, " *   weights  the bytes of %s.bin, aligned to 64; check them once with %s_weights_check\n",
            g->model, g->model);
    if (g->threads)
        text_printf(h,
            " *   threads  what computes the parts of the run, up to %d at a time; NULL: the calling thread, one after the other\n",
            g->options->threads);
    text_printf(h,
        " * No input may overlap an output. Returns 0, or -1 (BURN_EINVAL) when a pointer is null%s. Reentrant; allocates nothing. */\n",
        limits_text(g->arena, p->plan));
    c_signature_print(g, h, s, p->name);
    text_printf(h, ";\n\n");
}
