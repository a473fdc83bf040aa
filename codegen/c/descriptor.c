// SPDX-License-Identifier: MIT OR Apache-2.0
// The generic descriptor of a program, `const burn_model`: names, types and shapes of its ends, and a function that
// takes them as arrays of tensors, checks those and calls the run function. It is what drives any model.
#include "signature.h"

static const char *info_dims(Text *out, const Graph *gr, const Type *t, const char *name, bool least) {
    if (t->rank == 0 || (least && type_is_static(t))) return "(const int64_t *)0";
    text_printf(out, "static const int64_t %s[] = {", name);
    for (int j = 0; j < t->rank; j++) {
        int64_t low = dim_lower(gr, t->dim[j]);
        text_printf(out, "%s%lld", j ? ", " : "",
            (long long)(!least ? dim_upper(gr, t->dim[j]) :
                    low < 0    ? 0 :
                                 low));
    }
    text_printf(out, "};\n");
    return name;
}

static void print_infos(CFile *g, Text *out, const Signature *s, bool outputs) {
    const Program *p = s->program;
    const Graph *gr = s->graph;
    int n = outputs ? gr->outputs.n : gr->inputs.n;
    const char *side = outputs ? "output" : "input";
    if (!n) return;
    Text rows;
    text_init(&rows, g->arena);
    for (int i = 0; i < n; i++) {
        const Type *t = &(outputs ? gr->outputs.at[i] : gr->inputs.at[i])->type;
        const char *shape = info_dims(out, gr, t, arena_printf(g->arena, "%s_%s%d_shape", p->name, side, i), false);
        const char *least = info_dims(out, gr, t, arena_printf(g->arena, "%s_%s%d_least", p->name, side, i), true);
        text_printf(&rows, "    {\"%s\", (burn_dtype)%d, %d, %s, %s, %s},\n",
            c_string(g->arena, outputs ? gr->output_names.at[i] : gr->inputs.at[i]->name), t->dtype, t->rank, shape,
            c_most_bytes(g->arena, gr, t), least);
    }
    text_printf(out, "static const burn_tensor_info %s_%ss[] = {\n%s};\n", p->name, side, rows.at);
}

// Sizes are those of the first input that has the symbol for a dimension and brings its shape; else the upper bounds.
static void print_given_sizes(Text *out, const Signature *s) {
    const Graph *gr = s->graph;
    for (int i = 0; i < s->sizes.n; i++) {
        const Symbol *size = c_symbol(gr, s->sizes.at[i]);
        const Dim self = dim_symbol(graph_root(gr), size->name);
        const char *name = spell_symbol(out->arena, size);
        text_printf(out, "    int64_t %s = %lld;\n", name, (long long)size->hi);
        for (int j = gr->inputs.n - 1; j >= 0; j--)
            for (int k = 0; k < gr->inputs.at[j]->type.rank; k++)
                if (gr->inputs.at[j]->type.dim[k] == self)
                    text_printf(out, "    if (inputs[%d].shape) %s = inputs[%d].shape[%d];\n", j, name, j, k);
    }
    for (int i = 0; i < s->sizes.n; i++) {
        text_printf(out, "    ");
        c_bounds_print(out, c_symbol(gr, s->sizes.at[i]));
    }
}

static void print_buffer_check(
    CFile *g, Text *out, const Graph *gr, const Type *t, const char *side, int i, bool output) {
    const char *bytes = output && c_is_measured(gr, t) ? c_most_bytes(g->arena, gr, t) :  c_bytes(g->arena, gr, t);
    const char *cast = type_is_static(t) ? "" : "(size_t)";
    text_printf(out, "    if (!%s[%d].data || %s[%d].bytes < %s%s) return -1; /* BURN_EINVAL */\n", side, i, side,
        i, cast, *cast ? arena_printf(g->arena, "(%s)", bytes) : bytes);
    if (output || !t->rank) return;
    text_printf(out, "    if (inputs[%d].shape && (", i);
    for (int j = 0; j < t->rank; j++)
        text_printf(
            out, "%sinputs[%d].shape[%d] != %s", j ? " || " : "", i, j, spell_size(g->arena, gr, t->dim[j]));
    text_printf(out, ")) return -1; /* BURN_EINVAL */\n");
}

static bool all_static(const Graph *gr) {
    for (int i = 0; i < gr->inputs.n; i++) if (!type_is_static(&gr->inputs.at[i]->type)) return false;
    for (int i = 0; i < gr->outputs.n; i++) if (!type_is_static(&gr->outputs.at[i]->type)) return false;
    return true;
}

static void print_generic_checks(CFile *g, Text *out, const Signature *s) {
    const Program *p = s->program;
    const Graph *gr = s->graph;
    bool fixed = all_static(gr);
    if (!fixed) {
        text_printf(out, "    if (%s%s%s) return -1; /* BURN_EINVAL */\n", gr->inputs.n ? "!inputs" : "",
            gr->inputs.n && gr->outputs.n ? " || " : "", gr->outputs.n ? "!outputs" : "");
        print_given_sizes(out, s);
    }
    for (int side = 0; side < 2; side++) {
        int n = side ? gr->outputs.n : gr->inputs.n;
        const char *name = side ? "output" : "input";
        if (!n) text_printf(out, "    (void)%ss;\n", name);
        else if (fixed)
            text_printf(out,
                "    for (int i = 0; i < %d; i++)\n"
                "        if (!%ss || !%ss[i].data || %ss[i].bytes < %s_%ss[i].bytes) return -1; /* BURN_EINVAL */\n",
                n, name, name, name, p->name, name);
        else
            for (int i = 0; i < n; i++)
                print_buffer_check(g, out, gr, &(side ? gr->outputs.at[i] : gr->inputs.at[i])->type,
                    side ? "outputs" : "inputs", i, side);
    }
}

// A shape that the run finds out goes through an array of the wrapper's own: the caller's may be absent.
static void print_shapes(Text *out, const Graph *gr) {
    for (int i = 0; i < gr->outputs.n; i++)
        if (c_is_measured(gr, &gr->outputs.at[i]->type))
            text_printf(out, "    int64_t shape%d[%d];\n", i, gr->outputs.at[i]->type.rank);
}

static void print_arguments(CFile *g, Text *out, const Signature *s) {
    const Graph *gr = s->graph;
    if (g->external) text_printf(out, ", weights");
    for (int i = 0; i < s->sizes.n; i++)
        text_printf(out, ", %s", spell_symbol(out->arena, c_symbol(gr, s->sizes.at[i])));
    bool state = false;
    for (int i = 0; i < gr->inputs.n; i++) {
        if (gr->inputs.at[i]->role != ROLE_STATE)
            text_printf(out, ", (const %s *)inputs[%d].data", spell_c_storage(gr->inputs.at[i]->type.dtype), i);
        else if (!state) text_printf(out, ", &space->state");
        state = state || gr->inputs.at[i]->role == ROLE_STATE;
    }
    for (int i = 0; i < gr->outputs.n; i++) {
        if (gr->outputs.at[i]->role == ROLE_STATE) continue;
        text_printf(out, ", (%s *)outputs[%d].data", spell_c_storage(gr->outputs.at[i]->type.dtype), i);
        if (c_is_measured(gr, &gr->outputs.at[i]->type)) text_printf(out, ", shape%d", i);
    }
    if (g->threads) text_printf(out, ", threads");
}

// The state of this run lies behind its workspace: it comes from the inputs, and goes to the outputs.
static void print_state(CFile *g, Text *out, const Graph *gr, bool outputs) {
    for (int i = 0; i < (outputs ? gr->outputs.n : gr->inputs.n); i++) {
        const Value *v = outputs ? gr->outputs.at[i] : gr->inputs.at[i];
        if (v->role != ROLE_STATE) continue;
        const char *field = name_c(g->arena, outputs ? gr->output_names.at[i] : v->name);
        long long bytes = (long long)type_bytes(&v->type);
        if (outputs)
            text_printf(out, "    if (!code) memcpy(outputs[%d].data, space->state.%s, %lld);\n", i, field, bytes);
        else text_printf(out, "    memcpy(space->state.%s, inputs[%d].data, %lld);\n", field, i, bytes);
    }
}

static void print_results(CFile *g, Text *out, const Graph *gr) {
    print_state(g, out, gr, true);
    for (int i = 0; i < gr->outputs.n; i++) {
        const Type *t = &gr->outputs.at[i]->type;
        bool measured = c_is_measured(gr, t);
        if (!t->rank) continue;
        text_printf(out, "    if (outputs[%d].shape) {\n", i);
        for (int j = 0; j < t->rank; j++)
            text_printf(out, "        outputs[%d].shape[%d] = %s;\n", i, j,
                measured ? arena_printf(g->arena, "code ? 0 : shape%d[%d]", i, j) :
                           spell_size(g->arena, gr, t->dim[j]));
        text_printf(out, "    }\n");
    }
}

static const char *table_or_null(Arena *a, const Program *p, int n, const char *side) {
    return n ? arena_printf(a, "%s_%s", p->name, side) : "(const burn_tensor_info *)0";
}

void c_descriptor(CFile *g, const Signature *s) {
    Arena *a = g->arena;
    const Program *p = s->program;
    const Graph *gr = s->graph;
    enum { INFOS, CHECKS, SHAPES, ARGUMENTS, RESULTS, LISTS };
    Text list[LISTS];
    for (int i = 0; i < LISTS; i++) {
        text_init(&list[i], a);
        text_printf(&list[i], "%s", "");
    }
    print_infos(g, &list[INFOS], s, false);
    print_infos(g, &list[INFOS], s, true);
    print_generic_checks(g, &list[CHECKS], s);
    print_shapes(&list[SHAPES], gr);
    bool state = c_struct_seen(gr, gr->outputs.n, true, ROLE_STATE);
    if (state)
        text_printf(&list[SHAPES], "    %s_space *const space = (%s_space *)workspace;\n"
            "    if (!space) return -1; /* BURN_EINVAL */\n", p->name, p->name);
    print_state(g, &list[SHAPES], gr, false);
    print_arguments(g, &list[ARGUMENTS], s);
    print_results(g, &list[RESULTS], gr);
    skeleton_fill(a, &g->ends, "skeleton/descriptor.c", 16,
        (Hole[]){ { "MODEL", NULL, p->function ? p->name : g->model },
            { "STATE", NULL, g->model },
            { "HAS_STATE", NULL, state ? "1" : "0" },
            { "RUN", NULL, p->name },
            { "SPACE", NULL, p->name_of_workspace },
            { "INFOS", NULL, list[INFOS].at },
            { "CHECKS", NULL, list[CHECKS].at },
            { "SHAPES", NULL, list[SHAPES].at },
            { "ARGUMENTS", NULL, list[ARGUMENTS].at },
            { "RESULTS", NULL, list[RESULTS].at },
            { "N_INPUTS", NULL, number_text(a, gr->inputs.n) },
            { "N_OUTPUTS", NULL, number_text(a, gr->outputs.n) },
            { "INPUTS", NULL, table_or_null(a, p, gr->inputs.n, "inputs") },
            { "OUTPUTS", NULL, table_or_null(a, p, gr->outputs.n, "outputs") },
            { "N_WEIGHTS", NULL, number_text(a, g->external ? g->weight_bytes + WEIGHTS_HEADER : 0) },
            { "N_THREADS", NULL, number_text(a, g->threads ? g->options->threads : 0) } });
}
