// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels that a model brings along: the text of each as a function of its own, as the model has it, and one that calls
// it with what it is to be given.
//
//   static void net_k2_prefix_own(const float *x, float *y, int64_t rows, int64_t n, int64_t first, int64_t last)
//   { ... }
//   static void net_k2_prefix(const float *restrict p0, float *restrict p1, int64_t batch, int part)
//   {
//       net_k2_prefix_own(p0, p1, batch, 64, batch * part / 8, batch * (part + 1) / 8);
//   }
#include "c.h"

#include "ops/custom.h"

#include <string.h>

// Is the kernel's i-th parameter of this type? A diagnostic if not.
static bool param_is(const KernelText *t, int i, const CustomParam *p, const char *type, bool is_const, bool pointer) {
    bool number = !strcmp(type, "double"), fits = !strcmp(p->type, type) || (number && !strcmp(p->type, "float"));
    if (fits && p->is_pointer == pointer && (!pointer || p->is_const == is_const)) return true;
    diag_error(t->kernel->anchor->loc, "the kernel's parameter %d, `%s%s %s%s`, should be `%s%s %s%s`%s", i,
        p->is_const ? "const " : "", p->type, p->is_pointer ? "*" : "", p->name, is_const ? "const " : "", type,
        pointer ? "*" : "", p->name, number ? ", or a float" : "");
    return false;
}

static bool params_fit(const KernelText *t, int n, const CustomParam *has, int sizes, int numbers) {
    bool fits = true;
    for (int i = 0; i < n && fits; i++) {
        bool pointer = i < t->n_params, number = i >= t->n_params + sizes && i < t->n_params + sizes + numbers;
        const char *type = pointer ? spell_c_storage(t->params[i].value->type.dtype) : number ? "double" : "int64_t";
        fits = param_is(t, i, &has[i], type, pointer && !t->params[i].written, pointer);
    }
    return fits;
}

// What is handed on: the pointers, the sizes, the numbers, and which points.
static void print_arguments(const CFile *g, const KernelText *t, Text *out) {
    const Kernel *k = t->kernel;
    const Node *n = k->anchor;
    const Graph *graph = g->plan->graph;
    const Attr *numbers = node_attr(n, "numbers");
    int count;
    Dim points;
    const Dim *sizes = node_ints(n, "sizes", &count);
    for (int i = 0; i < t->n_params; i++) text_printf(out, "%sp%d", i ? ", " : "", i);
    for (int i = 0; i < count; i++) text_printf(out, ", %s", spell_size(g->arena, graph, sizes[i]));
    for (int i = 0; numbers && i < numbers->n; i++) text_printf(out, ", %.17g", numbers->floats[i]);
    if (!custom_points(n, &points)) return;
    const char *all = spell_size_operand(g->arena, graph, points);
    if (k->parts > 1) text_printf(out, ", %s * part / %d, %s * (part + 1) / %d", all, k->parts, all, k->parts);
    else text_printf(out, ", 0, %s", spell_size(g->arena, graph, points));
}

void c_custom(CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    const Node *n = k->anchor;
    const Attr *numbers = node_attr(n, "numbers");
    CustomParam has[MAX_CUSTOM_PARAMS];
    int sizes, params = custom_params(g->arena, node_string(n, "c_params", ""), has);
    node_ints(n, "sizes", &sizes);
    for (int i = 0; i < k->call.args.n; i++)
        t->params[t->n_params++] = (Param){
            .value = k->call.args.at[i], .name = "", .written = k->call.args.at[i]->def == n
        };
    t->first_shared = t->n_params;
    if (!params_fit(t, params, has, sizes, numbers ? numbers->n : 0)) return;
    text_printf(&g->c, "static void %s_own%s\n%s\n\nstatic void %s(", t->name, node_string(n, "c_params", ""),
        node_string(n, "c", ""), t->name);
    for (int i = 0; i < t->n_params; i++)
        text_printf(&g->c, "%s%s%s *restrict p%d", i ? ", " : "", t->params[i].written ? "" : "const ",
            spell_c_storage(t->params[i].value->type.dtype), i);
    for (int i = 0; i < k->sizes.n; i++) text_printf(&g->c, ", int64_t %s", c_size(g, k, i));
    text_printf(&g->c, "%s)\n{\n    %s_own(", k->parts > 1 ? ", int64_t part" : "", t->name);
    print_arguments(g, t, &g->c);
    text_printf(&g->c, ");\n}\n");
}
