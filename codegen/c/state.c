// SPDX-License-Identifier: MIT OR Apache-2.0
// What the functions of a model have in common in C: one struct of what they keep between runs, one workspace that is
// large enough for each, and a list of their descriptors.
#include "signature.h"

#include <string.h>

static bool seen_before(const CFile *g, int program, const char *name) {
    for (int i = 0; i < program; i++) {
        const Graph *gr = g->programs[i].plan->graph;
        for (int j = 0; j < gr->inputs.n; j++)
            if (gr->inputs.at[j]->role == ROLE_STATE && !strcmp(gr->inputs.at[j]->name, name)) return true;
    }
    return false;
}

void c_state_declare(CFile *g) {
    Text fields;
    text_init(&fields, g->arena);
    for (int i = 0; i < g->n; i++) {
        const Graph *gr = g->programs[i].plan->graph;
        for (int j = 0; j < gr->inputs.n; j++) {
            const Value *v = gr->inputs.at[j];
            if (v->role != ROLE_STATE || seen_before(g, i, v->name)) continue;
            int64_t n = type_count(&v->type);
            text_printf(&fields, "    %s %s[%lld]; /* ", spell_c_storage(v->type.dtype), name_c(g->arena, v->name),
                (long long)(n ? n : 1));
            c_comment(&fields, v->name);
            text_printf(&fields, " %s */\n", type_text(g->arena, gr, &v->type));
        }
    }
    g->state = fields.n > 0;
    if (!g->state) return;
    text_printf(&g->h,
        "/* What is kept from one run to the next; the caller's, one for each sequence. All zero before the first\n"
        " * run: memset does it, calloc, or static memory. */\ntypedef struct %s_state {\n%s} %s_state;\n\n",
        g->model, fields.at, g->model);
}

int64_t c_work_bytes(const CFile *g, const Program *p) {
    int64_t most = 0;
    for (int i = 0; i < g->n; i++) {
        const Plan *plan = g->programs[i].plan;
        int64_t bytes = plan->work_bytes ? plan->work_bytes + plan_slack(plan) : 1;
        if ((p->function || p == &g->programs[i]) && bytes > most) most = bytes;
    }
    return most;
}

// How much each function reads, and what others read too.
static void print_weights(CFile *g) {
    text_printf(&g->h, "/* Weights: %lld bytes. Of them reads\n", (long long)g->weight_bytes);
    for (int i = 0; i < g->n; i++) {
        int64_t all = 0, shared = 0;
        for (int j = 0; j < g->programs[i].plan->buffers.n; j++) {
            const Buffer *b = g->programs[i].plan->buffers.at[j];
            if (!weights_in_file(b)) continue;
            all += b->bytes;
            if (b->same) shared += b->bytes;
        }
        text_printf(&g->h, " *   %s %lld", g->programs[i].function, (long long)all);
        if (shared) text_printf(&g->h, ", %lld of which a function above reads too", (long long)shared);
        text_printf(&g->h, i + 1 < g->n ? "\n" : " */\n");
    }
}

void c_functions_declare(CFile *g) {
    if (g->weight_bytes) print_weights(g);
    text_printf(&g->h,
        "/* Names, shapes and one run function over arrays of tensors, for programs that drive any model; the state\n"
        " * is among the inputs and outputs. Last all of them, and NULL. */\n");
    text_printf(&g->ends, "const burn_model *const %s_functions[] = {", g->model);
    for (int i = 0; i < g->n; i++) {
        text_printf(&g->h, "extern const burn_model %s_model;\n", g->programs[i].name);
        text_printf(&g->ends, "&%s_model, ", g->programs[i].name);
    }
    text_printf(&g->h, "extern const burn_model *const %s_functions[%d];\n\n", g->model, g->n + 1);
    text_printf(&g->ends, "(const burn_model *)0};\n");
}
