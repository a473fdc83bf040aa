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

// What dimensions are called.
static const char *info_names(Text *out, const Graph *gr, const Type *t, const char *name) {
    if (type_is_static(t)) return "(const char *const *)0";
    text_printf(out, "static const char *const %s[] = {", name);
    for (int j = 0; j < t->rank; j++) {
        const char *text = dim_is_const(t->dim[j]) ? NULL : c_string(out->arena, dim_text(out->arena, gr, t->dim[j]));
        text_printf(out, text ? "%s\"%s\"" : "%s(const char *)0", j ? ", " : "", text);
    }
    text_printf(out, "};\n");
    return name;
}

void c_tensor_info(Text *out, Text *row, const Graph *gr, const Type *t, const char *name, const char *of) {
    Arena *a = out->arena;
    const char *shape = info_dims(out, gr, t, arena_printf(a, "%s_shape", of), false);
    const char *least = info_dims(out, gr, t, arena_printf(a, "%s_least", of), true);
    const char *dims = info_names(out, gr, t, arena_printf(a, "%s_dims", of));
    text_printf(row, "{\"%s\", (burn_dtype)%d, %d, %s, %s, %s, %s}", c_string(a, name), t->dtype, t->rank, shape,
        c_most_bytes(a, gr, t), least, dims);
}

void c_tensor_infos(Text *out, const Graph *gr, const Tensors *tensors, bool outputs) {
    Text rows;
    text_init(&rows, out->arena);
    for (int i = 0; i < tensors->n; i++) {
        const Value *v = tensor_of(gr, tensors, i, outputs);
        const int stem = (int)strlen(tensors->infos) - 1;               // without its plural
        text_printf(&rows, "    ");
        c_tensor_info(out, &rows, gr, &v->type, outputs ? gr->output_names.at[tensors->at[i]] : v->name,
            arena_printf(out->arena, "%.*s%d", stem, tensors->infos, i));
        text_printf(&rows, ",\n");
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
                    text_printf(out, "    if (inputs[%d].shape != NULL) %s = inputs[%d].shape[%d];\n", j, name, j, k);
        }
    }
}

// Bounds, and dimensions of inputs that follow from the sizes. Fixed ones are checked with the tensor.
static void print_size_checks(Text *out, const Signature *s, const Tensors *in) {
    const Graph *gr = s->graph;
    for (int i = 0; i < s->sizes.n; i++) {
        text_printf(out, "    ");
        c_bounds_print(out, c_symbol(gr, s->sizes.at[i]));
    }
    for (int i = 0; i < in->n; i++) {
        const Type *t = &tensor_of(gr, in, i, false)->type;
        if (type_is_static(t)) continue;
        text_printf(out, "    if (inputs[%d].shape && (", i);
        for (int j = 0, n = 0; j < t->rank; j++)
            if (!dim_is_const(t->dim[j]))
                text_printf(out, "%sinputs[%d].shape[%d] != %s", n++ ? " || " : "", i, j,
                    spell_size(out->arena, gr, t->dim[j]));
        text_printf(out, ")) return -11; /* BURN_ESHAPE */\n");
    }
}

static bool all_static(const Graph *gr, const Tensors *t, bool outputs) {
    for (int i = 0; i < t->n; i++) if (!type_is_static(&tensor_of(gr, t, i, outputs)->type)) return false;
    return true;
}

static void print_tensor_checks(Text *out, const Tensors *t, const char *check, const char *side, bool output) {
    if (!t->n && t->infos) text_printf(out, "    (void)%s;\n", side);
    else if (t->n)
        text_printf(out,
            "    for (int i = 0; i < %d; i++) {\n"
            "        const int bad = %s ? %s(&%s[i], &%s[i], %d) : -1; /* BURN_EINVAL */\n"
            "        if (bad != 0) return bad;\n    }\n",
            t->n, side, check, t->infos, side, output);
}

// Buffers of tensors whose sizes are only known here.
static void print_bytes_checks(Text *out, const Graph *gr, const Tensors *t, const char *side, bool output) {
    for (int i = 0; i < t->n; i++) {
        const Type *type = &tensor_of(gr, t, i, output)->type;
        if (type_is_static(type)) continue;
        const char *bytes = output && c_is_measured(gr, type) ? c_most_bytes(out->arena, gr, type) :
                                                                c_bytes(out->arena, gr, type);
        text_printf(out, "    if (%s[%d].bytes < (size_t)(%s)) return -1; /* BURN_EINVAL */\n", side, i, bytes);
    }
}

void c_tensor_checks(Text *out, const Signature *s, const Tensors *in, const Tensors *outs) {
    const Graph *gr = s->graph;
    print_tensor_checks(out, in, "burn_tensor_check", "inputs", false);
    print_tensor_checks(out, outs, "burn_tensor_check", "outputs", true);
    if (all_static(gr, in, false) && all_static(gr, outs, true)) return;
    print_given_sizes(out, s, in);
    print_size_checks(out, s, in);
    print_bytes_checks(out, gr, in, "inputs", false);
    print_bytes_checks(out, gr, outs, "outputs", true);
}

// A shape that the run finds out goes through an array of the wrapper's own: the caller's may be absent.
static void print_room(Text *out, const Graph *gr) {
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
    for (int i = 0; !g->options->io_inside && i < gr->inputs.n; i++) {
        if (gr->inputs.at[i]->role != ROLE_STATE)
            text_printf(out, ", (const %s *)inputs[%d].data", spell_c_storage(gr->inputs.at[i]->type.dtype), i);
        else if (!state) text_printf(out, ", &space->state");
        state = state || gr->inputs.at[i]->role == ROLE_STATE;
    }
    for (int i = 0; !g->options->io_inside && i < gr->outputs.n; i++) {
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

// Ends that lie in the workspace: inputs go there before the run, outputs come from there.
static void print_inside(const CFile *g, Text *out, const Signature *s, bool outputs) {
    const Graph *gr = s->graph;
    if (!outputs && !c_has_banks(g)) text_printf(out, "    if (!workspace) return -1; /* BURN_EINVAL */\n");
    for (int i = 0; i < (outputs ? gr->outputs.n : gr->inputs.n); i++) {
        const Value *v = outputs ? gr->outputs.at[i] : gr->inputs.at[i];
        int bank;
        const long long byte = (long long)c_inside(s->program, v, &bank);
        const char *at = c_has_banks(g) ?
            arena_printf(out->arena, "space->%s.bytes + %lld", c_bank_name(g, bank), byte) :
            arena_printf(out->arena, "(unsigned char *)workspace + %lld", byte);
        const long long bytes = (long long)type_bytes(&v->type);
        if (outputs) text_printf(out, "    if (!code) memcpy(outputs[%d].data, %s, %lld);\n", i, at, bytes);
        else text_printf(out, "    memcpy(%s, inputs[%d].data, %lld);\n", at, i, bytes);
    }
}

// What is told of an output's shape before the run, or behind it, when `code` is what it has returned.
static void print_shape(Text *out, const Graph *gr, const Tensors *outs, int i, bool before) {
    Arena *a = out->arena;
    const Type *t = &tensor_of(gr, outs, i, true)->type;
    const bool measured = c_is_measured(gr, t);
    if (!t->rank) return;
    text_printf(out, "    if (outputs[%d].shape != NULL) {\n", i);
    for (int j = 0; j < t->rank; j++)
        text_printf(out, "        outputs[%d].shape[%d] = %s;\n", i, j,
            measured && before ? number_text(a, dim_upper(gr, t->dim[j])) :
            measured           ? arena_printf(a, "code ? 0 : shape%d[%d]", outs->at[i], j) :
                                 spell_size(a, gr, t->dim[j]));
    text_printf(out, "    }\n");
}

void c_tensor_shapes(Text *out, const Graph *gr, const Tensors *outs) {
    if (outs->n && all_static(gr, outs, true))
        text_printf(out,
            "    for (int i = 0; i < %d; i++)\n"
            "        for (int k = 0; outputs[i].shape && k < %s[i].rank; k++) outputs[i].shape[k] = %s[i].shape[k];\n",
            outs->n, outs->infos, outs->infos);
    else for (int i = 0; i < outs->n; i++) print_shape(out, gr, outs, i, false);
}

static Tensors all_of(Arena *a, const Program *p, int n, const char *side) {
    Tensors t = { n, NEW_ARRAY(a, int, n + 1), arena_printf(a, "%s_%s", p->name, side) };
    for (int i = 0; i < n; i++) t.at[i] = i;
    return t;
}

static const char *table_or_null(const Tensors *t) { return t->n ? t->infos : "(const burn_tensor_info *)0"; }

static void print_size_table(Text *out, const Signature *s) {
    if (!s->sizes.n) return;
    text_printf(out, "static const burn_size %s_sizes[] = {\n", s->program->name);
    for (int i = 0; i < s->sizes.n; i++) {
        const Symbol *size = c_symbol(s->graph, s->sizes.at[i]);
        text_printf(out, "    {\"%s\", %lld, %lld},\n", c_string(out->arena, size->name), (long long)size->lo,
            (long long)size->hi);
    }
    text_printf(out, "};\n");
}

const char *c_metadata(Text *out, const Graph *root, const char *name) {
    enum { LONGEST = 4095 };                            // of a string that every C compiler takes
    int n = 0;
    for (int i = 0; i + 1 < root->metadata.n; i += 2) {
        const char *key = c_string(out->arena, root->metadata.at[i]),
                   *value = c_string(out->arena, root->metadata.at[i + 1]);
        if (strlen(root->metadata.at[i]) > LONGEST || strlen(root->metadata.at[i + 1]) > LONGEST) continue;
        if (!n++) text_printf(out, "static const char *const %s[] = {\n", name);
        text_printf(out, "    \"%s\", \"%s\",\n", key, value);
    }
    if (n) text_printf(out, "    (const char *)0\n};\n");
    return n ? name : "(const char *const *)0";
}

// Of ends that are quantized.
static const char *print_steps(Text *out, const Graph *gr, const char *name) {
    const int n = gr->inputs.n + gr->outputs.n;
    if (!gr->quantized.n) return "(const burn_steps *)0";
    text_printf(out, "static const burn_steps %s[] = {", name);
    for (int i = 0; i < n; i++) {
        const bool output = i >= gr->inputs.n;
        const char *end = output ? gr->output_names.at[i - gr->inputs.n] : gr->inputs.at[i]->name;
        const QuantizedEnd *e = graph_quantized(gr, end, output);
        text_printf(out, e ? "%s{%s, %lld}" : "%s{0, 0}", i ? ", " : "",
            e ? c_scale(out->arena, e->scale) : "", e ? (long long)e->zero : 0);
    }
    text_printf(out, "};\n");
    return name;
}

enum { INFOS, BOUNDS, CHECKS, ROOM, ARGUMENTS, RESULTS, LISTS };

// The sizes that are only known when it runs: what tells the outputs' shapes, and what the run knows behind that.
static void print_sizes(Text *list, const Signature *s, const Tensors *in, const Tensors *outs) {
    const Graph *gr = s->graph;
    Text *bounds = &list[BOUNDS], *checks = &list[CHECKS];
    print_tensor_checks(bounds, in, "burn_shape_check", "inputs", false);
    if (outs->n) text_printf(bounds, "    if (!outputs) return -1; /* BURN_EINVAL */\n");
    else text_printf(bounds, "    (void)outputs;\n");
    print_given_sizes(bounds, s, in);
    print_size_checks(bounds, s, in);
    for (int i = 0; i < outs->n; i++) print_shape(bounds, gr, outs, i, true);
    text_printf(checks, "    const int misfit = %s_shapes(inputs, outputs);\n    if (misfit != 0) return misfit;\n",
        s->program->name);
    print_given_sizes(checks, s, in);
    print_bytes_checks(checks, gr, in, "inputs", false);
    print_bytes_checks(checks, gr, outs, "outputs", true);
    for (int i = 0; i < outs->n; i++)
        if (c_is_measured(gr, &tensor_of(gr, outs, i, true)->type)) print_shape(&list[RESULTS], gr, outs, i, false);
}

void c_descriptor(CFile *g, const Signature *s) {
    Arena *a = g->arena;
    const Program *p = s->program;
    const Graph *gr = s->graph;
    const Tensors in = all_of(a, p, gr->inputs.n, "inputs"), outs = all_of(a, p, gr->outputs.n, "outputs");
    const bool fixed = all_static(gr, &in, false) && all_static(gr, &outs, true);
    const bool state = c_struct_seen(gr, gr->outputs.n, true, ROLE_STATE);
    Text list[LISTS];
    for (int i = 0; i < LISTS; i++) {
        text_init(&list[i], a);
        text_printf(&list[i], "%s", "");
    }
    c_tensor_infos(&list[INFOS], gr, &in, false);
    c_tensor_infos(&list[INFOS], gr, &outs, true);
    print_size_table(&list[INFOS], s);
    const char *metadata = c_metadata(&list[INFOS], graph_root(gr), arena_printf(a, "%s_metadata", p->name));
    const char *steps = print_steps(&list[INFOS], gr, arena_printf(a, "%s_steps", p->name));
    print_tensor_checks(&list[CHECKS], &in, "burn_tensor_check", "inputs", false);
    print_tensor_checks(&list[CHECKS], &outs, "burn_tensor_check", "outputs", true);
    print_room(&list[ROOM], gr);
    const bool space = state || c_has_banks(g);
    const char *work = space ? c_space_open(g, p, &list[ROOM], "workspace") : "";
    Text whole;
    text_init(&whole, a);
    text_append(&whole, "", 0);
    if (space) c_space_declare(g, p, &whole, state ? g->model : NULL);
    print_state(g, &list[ROOM], gr, false);
    if (g->options->io_inside) print_inside(g, &list[ROOM], s, false);
    print_arguments(g, &list[ARGUMENTS], s);
    print_state(g, &list[RESULTS], gr, true);
    if (g->options->io_inside) print_inside(g, &list[RESULTS], s, true);
    if (fixed) c_tensor_shapes(&list[RESULTS], gr, &outs);
    else print_sizes(list, s, &in, &outs);
    skeleton_fill(a, &g->ends, "skeleton/descriptor.c", 23,
        (Hole[]){ { "MODEL", NULL, p->function ? p->name : g->model },
            { "FILE", NULL, g->model },
            { "HAS_SPACE", NULL, space ? "1" : "0" },
            { "SPACE_TYPE", NULL, whole.at },
            { "WORK", NULL, work },
            { "RUN", NULL, p->name },
            { "SPACE", NULL, p->name_of_workspace },
            { "INFOS", NULL, list[INFOS].at },
            { "HAS_BOUNDS", NULL, fixed ? "0" : "1" },
            { "BOUNDS", NULL, list[BOUNDS].at },
            { "CHECKS", NULL, list[CHECKS].at },
            { "ROOM", NULL, list[ROOM].at },
            { "ARGUMENTS", NULL, list[ARGUMENTS].at },
            { "RESULTS", NULL, list[RESULTS].at },
            { "N_INPUTS", NULL, number_text(a, gr->inputs.n) },
            { "N_OUTPUTS", NULL, number_text(a, gr->outputs.n) },
            { "N_SIZES", NULL, number_text(a, s->sizes.n) },
            { "INPUTS", NULL, table_or_null(&in) },
            { "OUTPUTS", NULL, table_or_null(&outs) },
            { "METADATA", NULL, metadata },
            { "STEPS", NULL, steps },
            { "N_WEIGHTS", NULL, number_text(a, g->external ? g->weight_bytes + WEIGHTS_HEADER : 0) },
            { "N_THREADS", NULL, number_text(a, g->threads ? g->options->threads : 0) } });
}
