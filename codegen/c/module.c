// SPDX-License-Identifier: MIT OR Apache-2.0
// What a program that drives any training code wants behind it: templates/module.h, and a table of this code's programs
// that calls each of them as its signature says. In: the programs. Out: C text that follows the generated file's.
#include "signature.h"
#include "codegen/module.h"

// The arguments are those of the struct burncc_call, ends by their number; outputs are variables, as sizes that the
// program finds out go beside them.
static void take_slots(Arena *a, Text *out, Signature *s) {
    const Graph *g = s->graph;
    for (int i = 0; i < g->inputs.n; i++) {
        const Value *v = g->inputs.at[i];
        if (c_in_struct(v)) continue;
        s->in.name[i] = v->role == ROLE_VALUE ?
            arena_printf(a, "*(const %s *)c->in[%d]", spell_c_storage(v->type.dtype), i) :
            arena_printf(a, "c->in[%d]", i);
    }
    for (int i = 0; i < g->outputs.n; i++) {
        const Value *v = g->outputs.at[i];
        if (c_in_struct(v)) continue;
        s->outs.name[i] = arena_printf(a, "out%d", i);
        text_printf(out, "    void *const out%d = c->out[%d];\n", i, i);
        if (c_is_measured(g, &v->type)) text_printf(out, "    int64_t out%d_shape[%d];\n", i, v->type.rank);
    }
}

// Sizes of the run are the largest.
static void print_sizes(Text *out, const Signature *s) {
    for (int i = 0; i < s->sizes.n; i++) {
        const Symbol *size = c_symbol(s->graph, s->sizes.at[i]);
        text_printf(out, "    const int64_t %s = %lld;\n", spell_symbol(out->arena, size), (long long)size->hi);
    }
}

static void print_call(CFile *g, Text *out, const Program *p) {
    Signature s = c_signature(g, p);
    const bool parts = c_has_workspace(p) && c_has_banks(g);
    text_printf(out, "static int burncc_call_%s(const burncc_call *c)\n{\n", p->name);
    take_slots(g->arena, out, &s);
    if (parts) s.work = c_space_open(g, p, out, "c->work");
    else if (c_has_workspace(p)) text_printf(out, "    %s_workspace *const ws = c->work;\n", p->name_of_workspace);
    for (Role r = ROLE_NONE; r < ROLE_COUNT; r++)
        if (c_struct_param(r) && c_struct_seen(s.graph, s.graph->outputs.n, true, r))
            text_printf(out, "    %s_%s *const %s = c->%s;\n", g->model, c_struct_type(r), c_struct_param(r),
                c_struct_param(r));
    if (c_takes_weights(g, p)) text_printf(out, "    const void *const weights = c->weights;\n");
    if (g->threads) text_printf(out, "    const burn_threads *const threads = c->threads;\n");
    print_sizes(out, &s);
    text_printf(out, "    return %s(", p->name);
    c_signature_parameters(g, out, &s, false);
    text_printf(out, ");\n}\n");
}

static void print_begin(Text *out, const char *model, bool apart) {
    text_printf(out, "static int burncc_begin(void *params, const char *path)\n{\n");
    if (apart) text_printf(out, "    return %s_params_load(params, path);\n}\n", model);
    else text_printf(out, "    (void)path;\n    %s_params_init(params);\n    return 0;\n}\n", model);
}

static void print_fields(Text *out, const char *model, const Training *t) {
    text_printf(out, "static const size_t burncc_fields[] = {");
    for (int i = 0; i < t->params.n; i++)
        text_printf(out, "%s\n    offsetof(%s_params, %s)", i ? "," : "", model, t->params.at[i].field);
    text_printf(out, "\n};\n");
}

void codegen_module(Arena *a, const Options *o, int n, const Program *programs, const Training *t, Text *out) {
    CFile g = { .arena = a, .options = o, .model = o->name, .n = n, .programs = programs, .threads = o->threads > 1 };
    g.external = weights_share(n, programs) > o->embed_limit;
    text_printf(out, "%s", template_text("module.h"));
    for (int i = 0; i < n; i++) print_call(&g, out, &programs[i]);
    print_begin(out, o->name, train_apart(t, o));
    print_fields(out, o->name, t);
    text_printf(out, "static const burncc_program burncc_programs[] = {\n");
    for (int i = 0; i < n; i++)
        text_printf(out, "    {\"%s\", %s%s%s, burncc_call_%s},\n", programs[i].plan->graph->name,
            c_has_workspace(&programs[i]) ? "sizeof(" : "0",
            c_has_workspace(&programs[i]) ? programs[i].name_of_workspace : "",
            c_has_workspace(&programs[i]) ? c_has_banks(&g) ? "_space)" : "_workspace)" : "", programs[i].name);
    text_printf(out,
        "};\nextern const burncc_module burncc_training;\nconst burncc_module burncc_training = {sizeof(%s_params), "
        "sizeof(%s_state), burncc_fields, burncc_begin, %d, burncc_programs};\n",
        o->name, o->name, n);
}
