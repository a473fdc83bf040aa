// SPDX-License-Identifier: MIT OR Apache-2.0
// GPU programs that are more than one list of kernels: sizes that the run is told or finds out, If and Loop, searches
// and strings, several functions, training.
//
// In: programs with their plans. Out: the C file of any C target (codegen/c), in which the function of a kernel that
// GLSL can express hands it over to the GPU instead of computing; the others, and all control, are C for the host over
// the same memory (runtime/vulkan_steps.c):
//
//   static void lenet_k0_relu(burn_gpu_call *gpu, float *y, const float *x, int64_t n_batch)
//   {
//       static const burn_gpu_kernel kernel = {"lenet_k0_relu", lenet_k0_relu_words, 311, UINT64_C(0x...), ...};
//       const burn_gpu_operand operands[] = {{y, 100352, 4, 0}, {x, 100352, 4, 0}};
//       const int64_t points = 784 * n_batch, groups = (points + 63) / 64;
//       const uint32_t numbers[] = {(uint32_t)points, (uint32_t)n_batch};
//       gpu->dispatch(gpu, &kernel, (const uint32_t[3]){...}, 1, 2, operands, 2, numbers);
//   }
//
// A sort is several dispatches.
#include "vulkan.h"
#include "codegen/c/c.h"
#include "codegen/c/run.h"
#include "grad/train.h"
#include "spirv.h"

#include <string.h>

enum { ALIGNMENT = 16 };                                // of tensors and structs (runtime/vulkan_steps.c)

typedef struct Module { const char *words; uint64_t key; size_t count; } Module;
// modules: by their text; training: NULL: none; layout: of the program whose kernels were handed over last
typedef struct StepsFile { StrMap *modules; const Training *training; Layout layout; } StepsFile;

// ---------------------------------------------------------------- which programs
static bool is_list(Arena *a, const Plan *plan) {
    const Graph *g = plan->graph;
    for (int i = 0; i < g->inputs.n; i++) if (!type_is_static(&g->inputs.at[i]->type)) return false;
    for (int i = 0; i < g->outputs.n; i++) if (!type_is_static(&g->outputs.at[i]->type)) return false;
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        if (k->sizes.n || plan_ran(plan, i) || !glsl_can(a, k)) return false;
    }
    return true;
}

bool steps_wanted(Arena *a, int n, const Program *programs, const struct Training *training) {
    return training || n > 1 || programs->function || !is_list(a, programs->plan);
}

// ---------------------------------------------------------------- where operands may lie
// Where a field of a struct begins, as C lays them out; -1: the struct has none of that name.
static int64_t field_at(int n, const Parameter *fields, const char *name) {
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        const int64_t size = (int64_t)dtype_size(fields[i].type.dtype);
        at = ceil_div(at, size) * size;
        if (!strcmp(fields[i].field, name)) return at;
        at += type_bytes(&fields[i].type);
    }
    return -1;
}

// Inputs and outputs begin at a multiple of 16 bytes, and so do structs.
static Layout layout_loose(Arena *a, const Plan *p, const Training *t) {
    Layout l = layout_make(a, p, false);
    l.moved = true;
    for (int side = 0; side < 2; side++) {
        const Graph *g = p->graph;
        for (int i = 0; i < (side ? g->outputs.n : g->inputs.n); i++) {
            const Value *v = side ? g->outputs.at[i] : g->inputs.at[i];
            const bool state = v->role == ROLE_STATE;
            if (v->role == ROLE_NONE) continue;
            const int64_t at = t && v->role != ROLE_VALUE && v->role != ROLE_LOSS ?
                field_at(state ? t->state.n : t->params.n, state ? t->state.at : t->params.at,
                    name_c(a, side ? g->output_names.at[i] : v->name)) : -1;
            (side ? l.output_at : l.input_at)[i] += at < 0 ? (int64_t)dtype_size(v->type.dtype) : at % ALIGNMENT;
        }
    }
    return l;
}

static const Layout *layout_of(StepsFile *f, const Plan *p) {
    if (f->layout.plan != p) f->layout = layout_loose(graph_root(p->graph)->arena, p, f->training);
    return &f->layout;
}

// ---------------------------------------------------------------- a kernel
static Module *module_of(const StepsFile *f, CFile *g, const KernelText *t, const Shader *s, const char *suffix) {
    Module *m = strmap_get(f->modules, s->glsl);
    if (m) return m;
    Arena *a = graph_root(g->plan->graph)->arena;       // that of the text goes with the kernel
    m = NEW(a, Module);
    m->words = arena_printf(a, "%s_words%s", t->name, suffix);
    if (!vulkan_print_module(a, &g->data, g->plan, t->kernel, s, m->words, &m->key, &m->count)) return NULL;
    strmap_put(f->modules, arena_strdup(a, s->glsl), m);
    return m;
}

static const char *param_of(const KernelText *t, const Value *v) {
    int i = 0;
    while (!c_is_param(t, i, v)) i++;
    return t->params[i].name;
}

// In memory, at the upper bounds of sizes.
static long long bytes_of(const Layout *l, const Value *v) {
    const int64_t own = (int64_t)dtype_size(v->type.dtype), stored = (int64_t)dtype_size(layout_element(l, v));
    const int64_t bytes = type_bytes_upper(l->plan->graph, &v->type);
    return (long long)(stored == own ? bytes : bytes / own * stored);
}

// Those that are written come first.
static void print_operands(const KernelText *t, const Layout *l, const Shader *s, Text *out) {
    const Kernel *k = t->kernel;
    const char *next = "";
    if (!s->n_push) return;
    text_printf(out, "    const burn_gpu_operand operands[] = {");
    const int64_t counters = gpu_counters(k);
    if (counters) {                                     // as glsl_share_memory() has them
        text_printf(out, "{scratch, %lld, 16, 0}, {gpu->counters(gpu, %lld), %lld, 4, 1}", (long long)k->scratch_bytes,
            (long long)counters, (long long)counters * 4);
        next = ", ";
    }
    if (gpu_calls(k) && k->scratch_bytes) {             // its only other push constant
        text_printf(out, "{scratch, %lld, 4, 0}", (long long)k->scratch_bytes);
        next = ", ";
    }
    for (int i = 0; i < s->n_placed; i++, next = ", ") {
        const Value *v = s->placed[i];
        text_printf(out, "%s{%s, %lld, %d, %d}", next, param_of(t, v), bytes_of(l, v),
            (int)dtype_size(layout_element(l, v)), layout_binding(l, v));
    }
    text_printf(out, "};\n");
}

static void print_groups(const KernelText *t, const Shader *s, Text *out) {
    const CFile *g = t->file;
    if (!t->kernel->sizes.n || s->all_groups) {
        text_printf(out, "    const uint32_t groups[3] = {%u, %u, %u};\n", s->groups[0], s->groups[1], s->groups[2]);
    } else {
        text_printf(out, "    const int64_t points = %s, each = %d;\n", spell_size(g->arena, g->plan->graph, s->size),
            s->each);
        text_printf(out, "    const uint32_t groups[3] = {%s, 1};\n",
            s->groups[1] == 1 ?
                "(uint32_t)((points + each - 1) / each), 1" :
                "points ? 65535 : 0, (uint32_t)((points + each * 65535 - 1) / (each * 65535))");
    }
    if (!t->kernel->sizes.n) return;
    text_printf(out, "    const uint32_t numbers[] = {%s", s->all_groups ? "0" : "(uint32_t)points");
    for (int i = 0; i < t->kernel->sizes.n; i++) text_printf(out, ", (uint32_t)%s", c_size(g, t->kernel, i));
    text_printf(out, "};\n");
}

// All that its text says of values lies at push constants: nothing is a number of the arena's.
static bool all_placed(const Kernel *k, const Shader *s) {
    return gpu_calls(k) || s->n_placed == k->writes.n + k->reads.n;
}

// Is what not all devices have given the same, and of a size that is known?
static bool runs_instead(const Shader *s, const Shader *other) {
    bool same = other && other->n_push == s->n_push && other->n_placed == s->n_placed && s->size <= 1;
    for (int i = 0; same && i < s->n_placed; i++) same = s->placed[i] == other->placed[i];
    return same;
}

// What runs instead of s, `way` behind it, where the device can, and before it what runs instead of that: how it is
// spelled; NULL with a diagnostic.
static const char *print_instead(
    const StepsFile *f, CFile *g, const KernelText *t, const Shader *s, const Shader *other, int way) {
    if (!runs_instead(s, other)) return "(void *)0";
    const char *name = arena_printf(g->arena, way > 1 ? "instead%d" : "instead", way);
    const Module *m = module_of(f, g, t, other, arena_printf(g->arena, "_%s", name));
    const char *better = m ? print_instead(f, g, t, s, other->instead, way + 1) : NULL;
    if (!better) return NULL;
    text_printf(&g->c,
        "    static const burn_gpu_kernel %s = {\"%s\", %s, %zu, UINT64_C(0x%llx), %s, {%u, %u, %u}};\n",
        name, m->words, m->words, m->count, (unsigned long long)m->key, better, other->groups[0], other->groups[1],
        other->groups[2]);
    return arena_printf(g->arena, "&%s", name);
}

// One dispatch of the kernel's; of several, each stands in a block of its own.
static void print_dispatch(
    const StepsFile *f, CFile *g, const KernelText *t, const Layout *l, const Shader *s, int pass, bool alone) {
    const Kernel *k = t->kernel;
    const Module *m = module_of(f, g, t, s, pass ? arena_printf(g->arena, "_%d", pass) : "");
    const int numbers = k->sizes.n ? 1 + k->sizes.n : 0;
    if (!m) return;
    if (!alone) text_printf(&g->c, "    {\n");
    const char *rather = print_instead(f, g, t, s, s->instead, 1);
    if (!rather) return;
    text_printf(&g->c, "    static const burn_gpu_kernel kernel = {\"%s\", %s, %zu, UINT64_C(0x%llx), %s, {0}};\n",
        m->words, m->words, m->count, (unsigned long long)m->key, rather);
    print_operands(t, l, s, &g->c);
    print_groups(t, s, &g->c);
    text_printf(&g->c, "    gpu->dispatch(gpu, &kernel, groups, %d, %d, %s, %d, %s);\n",
        k->writes.n + s->n_push - s->n_placed, s->n_push, s->n_push ? "operands" : "(const burn_gpu_operand *)0",
        numbers, numbers ? "numbers" : "(const uint32_t *)0");
    if (!alone) text_printf(&g->c, "    }\n");
}

// A text of the model's own stands in the C file or in GLSL, not in both.
static bool is_missing(const Kernel *k) {
    return k->kind == KERNEL_CALL && k->anchor->op == OP_Custom && !node_attr(k->anchor, "c");
}

// false: a kernel of C can do it; else with a diagnostic, for C knows no values of 16 bits in the place of floats
static bool host_takes(const Layout *l, const Kernel *k) {
    for (int i = 0; i < k->reads.n + k->writes.n; i++) {
        const Value *v = i < k->reads.n ? k->reads.at[i] : k->writes.at[i - k->reads.n];
        if (layout_element(l, v) == v->type.dtype) continue;
        diag_error_as(EXIT_LIMIT, k->nodes.n ? k->nodes.at[0]->loc : NULL,
            "this is computed on the host, whose kernels do not read what --precision makes of floats; use --precision "
            "f32");
        return true;
    }
    return false;
}

static bool hand_over(const Handover *h, CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    Arena *a = g->arena;
    const Layout *l = layout_of(h->ctx, g->plan);
    Shader s = { 0 };
    if (!glsl_can(a, k)) return host_takes(l, k);
    if (!glsl_kernel(a, g->options, l, k, &s)) return false;
    if (s.points && (!all_placed(k, &s) || strstr(s.glsl, "burn_floordiv_i64"))) {
        if (is_missing(k))
            diag_error(k->anchor->loc, "a kernel in GLSL takes %d tensors at most, and sizes that are no quotients",
                MAX_PUSH - 1 - k->sizes.n);
        return is_missing(k) || host_takes(l, k);
    }
    const char *scratch = gpu_counters(k) > 0 || (gpu_calls(k) && k->scratch_bytes) ? ", unsigned char *scratch" : "";
    c_take_params(g, t);
    text_printf(&g->c, "static void %s(burn_gpu_call *gpu%s", t->name, t->n_params || k->sizes.n ? ", " : "");
    c_print_params(g, t, &g->c, 0);
    text_printf(&g->c, "%s)\n{\n", scratch);
    int pass = 0;
    for (const Shader *of = &s; of && of->points; of = of->then)
        print_dispatch(h->ctx, g, t, l, of, pass++, !s.then);
    text_printf(&g->c, pass ? "}\n\n" : "    (void)gpu;\n}\n\n");
    return true;
}

// ---------------------------------------------------------------- loops that are one kernel
static bool takes_loop(const CFile *g, const Kernel *k) { return glsl_takes_loop(g->arena, k); }

static void hand_over_loop(RunText *r, const Kernel *k, int depth, const char *trips) {
    CFile *g = r->g;
    Arena *a = g->arena;
    const Program *program = r->s->program;
    const Layout *l = layout_of(g->handover->ctx, program->plan);
    const char *words = arena_printf(a, "%s_%s_words", program->prefix, k->name),
               *indent = arena_printf(a, "%*s", 4 * depth, "");
    Shader s = { 0 };
    uint64_t key;
    size_t count;
    const int writes = glsl_loop(a, g->options, l, k, &s);
    if (!vulkan_print_module(a, &g->data, program->plan, k, &s, words, &key, &count)) return;
    text_printf(&r->body,
        "%s{\n%s    static const burn_gpu_kernel kernel = {\"%s\", %s, %zu, UINT64_C(0x%llx), (void *)0, {0}};\n",
        indent, indent, words, words, count, (unsigned long long)key);
    text_printf(&r->body, "%s    const burn_gpu_operand operands[] = {", indent);
    for (int i = 0; i < s.n_push; i++) {
        const Value *v = s.placed[i];
        text_printf(&r->body, "%s{%s, %lld, %d, %d}", i ? ", " : "", c_value_place(r, v),
            bytes_of(l, v), (int)dtype_size(layout_element(l, v)), layout_binding(l, v));
    }
    text_printf(&r->body,
        "};\n%s    const uint32_t groups[3] = {1, 1, 1}, trips = (uint32_t)(%s);\n"
        "%s    burn_gpu->dispatch(burn_gpu, &kernel, groups, %d, %d, operands, 1, &trips);\n%s}\n",
        indent, trips, indent, writes, s.n_push, indent);
}

bool steps_write(
    Arena *a, const Options *o, const char *model, int n, Program *programs, const struct Training *training) {
    StepsFile f = { .modules = strmap_new(a), .training = training };
    const Handover h = { hand_over, takes_loop, hand_over_loop, &f };
    return c_write(a, o, model, n, programs, training, &h);
}
