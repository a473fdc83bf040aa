// SPDX-License-Identifier: MIT OR Apache-2.0
// The generic descriptor of a program, `const burn_model`: names, types and shapes of its ends, and a function that
// takes them as arrays of tensors, checks those and calls the run function. It is what drives any model.
#include "signature.h"

#include <string.h>

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

static const Value *tensor_of(const Graph *gr, const Tensors *t, int i, bool outputs) {
    return (outputs ? gr->outputs.at : gr->inputs.at)[t->at[i]];
}

void c_tensor_infos(CFile *g, Text *out, const Graph *gr, const Tensors *tensors, bool outputs) {
    Text rows;
    text_init(&rows, g->arena);
    for (int i = 0; i < tensors->n; i++) {
        const Value *v = tensor_of(gr, tensors, i, outputs);
        const Type *t = &v->type;
        const int stem = (int)strlen(tensors->infos) - 1;               // without its plural
        const char *of = arena_printf(g->arena, "%.*s%d", stem, tensors->infos, i);
        const char *shape = info_dims(out, gr, t, arena_printf(g->arena, "%s_shape", of), false);
        const char *least = info_dims(out, gr, t, arena_printf(g->arena, "%s_least", of), true);
        text_printf(&rows, "    {\"%s\", (burn_dtype)%d, %d, %s, %s, %s},\n",
            c_string(g->arena, outputs ? gr->output_names.at[tensors->at[i]] : v->name), t->dtype, t->rank, shape,
            c_most_bytes(g->arena, gr, t), least);
    }
    if (rows.n) text_printf(out, "static const burn_tensor_info %s[] = {\n%s};\n", tensors->infos, rows.at);
}

// Sizes are those of the first input that has the symbol for a dimension and brings its shape; else the upper bounds.
static void print_given_sizes(Text *out, const Signature *s, const Tensors *in) {
    const Graph *gr = s->graph;
    for (int i = 0; i < s->sizes.n; i++) {
        const Symbol *size = c_symbol(gr, s->sizes.at[i]);
        const Dim self = dim_symbol(graph_root(gr), size->name);
        const char *name = spell_symbol(out->arena, size);
        text_printf(out, "    int64_t %s = %lld;\n", name, (long long)size->hi);
        for (int j = in->n - 1; j >= 0; j--) {
            const Type *t = &tensor_of(gr, in, j, false)->type;
            for (int k = 0; k < t->rank; k++)
                if (t->dim[k] == self)
                    text_printf(out, "    if (inputs[%d].shape) %s = inputs[%d].shape[%d];\n", j, name, j, k);
        }
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

static bool all_static(const Graph *gr, const Tensors *t, bool outputs) {
    for (int i = 0; i < t->n; i++) if (!type_is_static(&tensor_of(gr, t, i, outputs)->type)) return false;
    return true;
}

void c_tensor_checks(CFile *g, Text *out, const Signature *s, const Tensors *in, const Tensors *outs) {
    const Graph *gr = s->graph;
    bool fixed = all_static(gr, in, false) && all_static(gr, outs, true);
    if (!fixed) {
        text_printf(out, "    if (%s%s%s) return -1; /* BURN_EINVAL */\n", in->n ? "!inputs" : "",
            in->n && outs->n ? " || " : "", outs->n ? "!outputs" : "");
        print_given_sizes(out, s, in);
    }
    for (int side = 0; side < 2; side++) {
        const Tensors *t = side ? outs : in;
        const char *name = side ? "output" : "input";
        if (!t->n && t->infos) text_printf(out, "    (void)%ss;\n", name);
        else if (t->n && fixed)
            text_printf(out,
                "    for (int i = 0; i < %d; i++)\n"
                "        if (!%ss || !%ss[i].data || %ss[i].bytes < %s[i].bytes) return -1; /* BURN_EINVAL */\n",
                t->n, name, name, name, t->infos);
        else
            for (int i = 0; i < t->n; i++)
                print_buffer_check(
                    g, out, gr, &tensor_of(gr, t, i, side)->type, side ? "outputs" : "inputs", i, side);
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

void c_tensor_shapes(CFile *g, Text *out, const Graph *gr, const Tensors *outs) {
    for (int i = 0; i < outs->n; i++) {
        const Type *t = &tensor_of(gr, outs, i, true)->type;
        bool measured = c_is_measured(gr, t);
        if (!t->rank) continue;
        text_printf(out, "    if (outputs[%d].shape) {\n", i);
        for (int j = 0; j < t->rank; j++)
            text_printf(out, "        outputs[%d].shape[%d] = %s;\n", i, j,
                measured ? arena_printf(g->arena, "code ? 0 : shape%d[%d]", outs->at[i], j) :
                           spell_size(g->arena, gr, t->dim[j]));
        text_printf(out, "    }\n");
    }
}

static Tensors all_of(Arena *a, const Program *p, int n, const char *side) {
    Tensors t = { n, NEW_ARRAY(a, int, n + 1), arena_printf(a, "%s_%s", p->name, side) };
    for (int i = 0; i < n; i++) t.at[i] = i;
    return t;
}

static const char *table_or_null(const Tensors *t) { return t->n ? t->infos : "(const burn_tensor_info *)0"; }

void c_descriptor(CFile *g, const Signature *s) {
    Arena *a = g->arena;
    const Program *p = s->program;
    const Graph *gr = s->graph;
    const Tensors in = all_of(a, p, gr->inputs.n, "inputs"), outs = all_of(a, p, gr->outputs.n, "outputs");
    enum { INFOS, CHECKS, SHAPES, ARGUMENTS, RESULTS, LISTS };
    Text list[LISTS];
    for (int i = 0; i < LISTS; i++) {
        text_init(&list[i], a);
        text_printf(&list[i], "%s", "");
    }
    c_tensor_infos(g, &list[INFOS], gr, &in, false);
    c_tensor_infos(g, &list[INFOS], gr, &outs, true);
    c_tensor_checks(g, &list[CHECKS], s, &in, &outs);
    print_shapes(&list[SHAPES], gr);
    bool state = c_struct_seen(gr, gr->outputs.n, true, ROLE_STATE);
    if (state)
        text_printf(&list[SHAPES], "    %s_space *const space = (%s_space *)workspace;\n"
            "    if (!space) return -1; /* BURN_EINVAL */\n", p->name, p->name);
    print_state(g, &list[SHAPES], gr, false);
    print_arguments(g, &list[ARGUMENTS], s);
    print_state(g, &list[RESULTS], gr, true);
    c_tensor_shapes(g, &list[RESULTS], gr, &outs);
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
            { "INPUTS", NULL, table_or_null(&in) },
            { "OUTPUTS", NULL, table_or_null(&outs) },
            { "N_WEIGHTS", NULL, number_text(a, g->external ? g->weight_bytes + WEIGHTS_HEADER : 0) },
            { "N_THREADS", NULL, number_text(a, g->threads ? g->options->threads : 0) } });
}
