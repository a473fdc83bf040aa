// SPDX-License-Identifier: MIT OR Apache-2.0
// One program of a generated file: its constants, its kernels, its run function and what the header and the generic
// descriptor say of that, each printed by the file of its name.
#include "run.h"

static void print_kernels(CFile *g, const Program *p, Plan *plan, Functions *f) {
    g->plan = plan;
    for (int i = 0; i < plan->kernels.n; i++) {
        Kernel *k = plan->kernels.at[i];
        const bool one = g->handover && g->handover->takes_loop(g, k);
        for (int j = 0; j < kernel_bodies(k) && !one; j++) print_kernels(g, p, k->region.bodies[j], f);
        g->plan = plan;
        if (k->kind == KERNEL_REGION || k->kind == KERNEL_SIZES || plan_ran(plan, i)) continue;
        KernelText *t = NEW(g->arena, KernelText);
        const char *name = arena_printf(g->arena, "%s_%s", p->prefix, k->name);
        *t = (KernelText){ .file = g, .kernel = k, .name = name };
        k->text = t;
        c_functions_add(f, g, t);
    }
}

// What a constant is, and which kernel reads it first.
static void print_about(CFile *g, const Plan *plan, const Buffer *b) {
    text_printf(&g->data, "/* ");
    c_comment(&g->data, b->value->name ? b->value->name : "constant");
    text_printf(&g->data, " %s, %s", type_text(g->arena, plan->graph, &b->value->type), b->layout);
    if (b->first >= 0 && b->first < plan->kernels.n)
        text_printf(&g->data, ", for %s", plan->kernels.at[b->first]->name);
    text_printf(&g->data, " */\n");
}

void c_program(CFile *g, const Program *p) {
    Plan *plan = p->plan;
    const Signature s = c_signature(g, p);
    g->plan = plan;
    for (int i = 0; i < plan->buffers.n; i++) {
        Buffer *b = plan->buffers.at[i];
        if (b->place != PLACE_WEIGHT) continue;
        b->array = b->same ? b->same->array : arena_printf(g->arena, "%s_w%d", p->name, b->id);
        if (b->same || ((g->external || g->handover) && weights_in_file(b))) continue;
        print_about(g, plan, b);
        if (b->bytes >= 64 && (g->options->machine.vectors || g->options->machine.n_parts))
            text_printf(&g->data, "BURN_ALIGNED ");
        text_printf(&g->data, "%s", c_weights_section(g, b));
        weights_print_array(&g->data, b, b->array);
        text_printf(&g->data, "\n");
    }
    print_kernels(g, p, plan, g->functions);
    c_functions_print(g->functions, g);
    c_declare(g, &s);
    c_run(g, &s);
    if (p->descriptor) c_descriptor(g, &s);
}
