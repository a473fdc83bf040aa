// SPDX-License-Identifier: MIT OR Apache-2.0
// Template kernels alone, for `burncc tune`: forms of one kernel of a plan, other tiles or another algorithm each, in
// a file of their own, which holds nothing else than what a model's would hold of them, epilogue included.
//
// In: the plan and the kernels. Out: a C file with a table of functions, all over the same operands:
//
//   void (*const burncc_alone[])(unsigned char *const *at, unsigned char *scratch)
#include "c.h"

#include <string.h>

// Sizes of the running program are what they can be at most.
static void print_alone_call(CFile *g, const KernelText *t, int number) {
    const Kernel *k = t->kernel;
    Text *c = &g->c;
    text_printf(c, "static void burncc_alone_%d(unsigned char *const *at, unsigned char *scratch)\n{\n    %s(", number,
        t->name);
    for (int i = 0; i < t->n_params; i++) {
        const Param *p = &t->params[i];
        bool packed = k->packed && k->packed->value == p->value && i < t->first_shared;
        text_printf(c, "(%s *)(void *)at[%d] + %lld, ",
            spell_c_storage(packed ? k->packed->element : p->value->type.dtype), i,
            (long long)dim_upper(g->plan->graph, p->at));
    }
    int n;
    const Symbol *symbols = graph_symbols(graph_root(g->plan->graph), &n);
    for (int i = 0; i < k->sizes.n; i++) text_printf(c, "INT64_C(%lld), ", (long long)symbols[k->sizes.at[i]].hi);
    for (int i = 0; i < t->numbers.n; i++) text_printf(c, "%lld, ", (long long)t->numbers.at[i].value);
    text_printf(c, "scratch);\n}\n\n");
}

static void take_operands(const KernelText *t, Alone *out) {
    const Kernel *k = t->kernel;
    *out = (Alone){ .n = t->n_params, .packed = -1 };
    for (int i = 0; i < t->n_params; i++) {
        out->operand[i] = t->params[i].value;
        if (t->params[i].written) out->result = i;
        if (k->packed && k->packed->value == out->operand[i] && i < t->first_shared) out->packed = i;
    }
}

bool codegen_alone(
    Arena *a, const Options *o, const Plan *p, int n, const Kernel *const *kernels, const char *path, Alone *out) {
    CFile g = { .arena = a, .options = o, .model = "alone", .plan = p };
    Text c, table;
    text_init(&g.c, a);
    text_init(&c, a);
    text_init(&table, a);
    for (int i = 0; i < n; i++) {
        KernelText t = { .file = &g, .kernel = kernels[i], .name = arena_printf(a, "k%d", i) };
        t.params = NEW_ARRAY(a, Param, MAX_PARAMS);
        print_origin(a, &g.c, p->graph, t.kernel);
        c_kernel(&g, &t);
        print_alone_call(&g, &t, i);
        text_printf(&table, "%sburncc_alone_%d", i ? ", " : "", i);
        if (i == 0) take_operands(&t, out);
    }
    text_printf(&c,
        "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n");
    c_prelude(&g, &c, NULL, &g.c);
    text_append(&c, g.c.at, g.c.n);
    text_printf(&c, "extern void (*const burncc_alone[])(unsigned char *const *, unsigned char *);\n");
    text_printf(&c, "void (*const burncc_alone[])(unsigned char *const *, unsigned char *) = { %s };\n", table.at);
    return files_write(a, (OutMark)BANNER_MARK, &c, &path, 1, 0, NULL);
}
