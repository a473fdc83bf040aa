// SPDX-License-Identifier: MIT OR Apache-2.0
// The words of packages in C: what a program needs that runs the model once. Static arrays for its inputs and outputs,
// the call of the typed function with them, and what it prints; sizes that the caller says are the largest.
#include "package.h"

#include "codegen/c/signature.h"

#include <string.h>

// in_image, out_logits: no names of a board's headers, and no two alike. DIGITS_IMAGE(&workspace): where it lies there.
static const char *end_name(Package *p, bool output, int i) {
    const Graph *g = p->graph;
    if (p->options->io_inside) {
        EndNames in, outs;
        c_ends(p->arena, g, p->name, p->options->threads > 1, &in, &outs);
        return arena_printf(p->arena, "%s(&workspace)", c_place(p->arena, p->name, (output ? &outs : &in)->name[i]));
    }
    const char *name = name_c(p->arena, output ? g->output_names.at[i] : g->inputs.at[i]->name);
    for (int k = 0; k < i; k++) {
        const char *other = output ? g->output_names.at[k] : g->inputs.at[k]->name;
        if (!strcmp(name, name_c(p->arena, other)))
            return arena_printf(p->arena, "%s%d_%s", output ? "out" : "in", i, name);
    }
    return arena_printf(p->arena, "%s_%s", output ? "out" : "in", name);
}

static const Value *end_of(const Package *p, bool output, int i) {
    return output ? p->graph->outputs.at[i] : p->graph->inputs.at[i];
}

static const char *arrays(Package *p) {
    const Graph *g = p->graph;
    Text t;
    text_init(&t, p->arena);
    if (banks_bytes(p->options))
        text_printf(&t, "%s_WORKSPACE(workspace);   // all the memory of a run\n", text_upper(p->arena, p->name));
    else text_printf(&t, "static %s_workspace workspace;   // all the memory of a run\n", p->name);
    for (int side = 0; side < 2 && !p->options->io_inside; side++)
        for (int i = 0; i < (side ? g->outputs.n : g->inputs.n); i++) {
            const Type *type = &end_of(p, side, i)->type;
            const char *name = end_name(p, side, i);
            text_printf(&t, "static %s %s[%lld];   // %s\n", spell_c_storage(type->dtype), name,
                (long long)max64(1, type_count_upper(g, type)), type_text(p->arena, g, type));
            if (side && c_is_measured(g, type)) text_printf(&t, "static int64_t %s_shape[%d];\n", name, type->rank);
        }
    return t.at;
}

static const char *call(Package *p) {
    const Graph *g = p->graph;
    const Sizes sizes = c_sizes(p->arena, g);
    Text t;
    text_init(&t, p->arena);
    text_printf(&t, "%s_run(&workspace", p->name);
    for (int i = 0; i < sizes.n; i++) text_printf(&t, ", %lld", (long long)c_symbol(g, sizes.at[i])->hi);
    for (int side = 0; side < 2 && !p->options->io_inside; side++)
        for (int i = 0; i < (side ? g->outputs.n : g->inputs.n); i++) {
            const char *name = end_name(p, side, i);
            text_printf(&t, ", %s", name);
            if (side && c_is_measured(g, &end_of(p, side, i)->type)) text_printf(&t, ", %s_shape", name);
        }
    text_printf(&t, "%s)", p->options->threads > 1 ? ", NULL" : "");
    return t.at;
}

static const char *shows(Package *p) {
    Text t;
    text_init(&t, p->arena);
    for (int i = 0; i < p->graph->outputs.n; i++) {
        const char *name = end_name(p, true, i);
        const Type *type = &end_of(p, true, i)->type;
        const DType d = type->dtype;
        text_printf(&t, "    for (size_t i = 0; i < %lld; i++)\n",
            (long long)max64(1, type_count_upper(p->graph, type)));
        text_printf(&t, "        show(\"%s\", (int)i, (double)%s[i]%s);\n",
            c_string(p->arena, p->graph->output_names.at[i]), name, d == DT_C64 || d == DT_C128 ? ".re" : "");
    }
    return t.at;
}

// Those of the target's flags that keep its bits, and mean something to any processor's compiler.
static const char *flags(Package *p) {
    Text t;
    text_init(&t, p->arena);
    text_printf(&t, "-ffp-contract=off");
    Argv words = { 0 };
    argv_add(p->arena, &words, p->options->machine.flags);
    for (int i = 0; i < words.n; i++)
        if (!strncmp(words.at[i], "-f", 2) && strcmp(words.at[i], t.at)) text_printf(&t, " %s", words.at[i]);
    return t.at;
}

void package_c_words(Package *p) {
    package_word(p, "UPPER", text_upper(p->arena, p->name));
    package_word(p, "TARGET", p->options->target);
    package_word(p, "FLAGS", flags(p));
    package_word(p, "WORK_BYTES", number_text(p->arena, p->work_bytes));
    package_word(p, "WEIGHT_BYTES", number_text(p->arena, p->weight_bytes));
    package_word(p, "ARRAYS", arrays(p));
    package_word(p, "CALL", call(p));
    package_word(p, "SHOWS", shows(p));
}
