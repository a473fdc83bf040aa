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
//       static const burn_gpu_kernel kernel = {"lenet_k0_relu", lenet_k0_relu_words, 311, UINT64_C(0x...)};
//       const burn_gpu_operand operands[] = {{y, 100352, 4}, {x, 100352, 4}};
//       const int64_t points = 784 * n_batch, groups = (points + 63) / 64;
//       const uint32_t numbers[] = {(uint32_t)points, (uint32_t)n_batch};
//       gpu->dispatch(gpu, &kernel, (const uint32_t[3]){...}, 1, 2, operands, 2, numbers);
//   }
//
// A sort is several dispatches.
#include "vulkan.h"
#include "codegen/c/c.h"
#include "codegen/c/run.h"
#include "spirv.h"

#include <string.h>

typedef struct Module { const char *words; uint64_t key; size_t count; } Module;
typedef struct StepsFile { StrMap *modules; } StepsFile;        // by their text

// ---------------------------------------------------------------- which programs
static bool is_list(Arena *a, const Plan *plan) {
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
// Of inputs and outputs it is known that they begin at a multiple of 16 bytes, and of fields of structs where in them.
static Layout layout_loose(Arena *a, const Plan *p) {
    Layout l = layout_make(a, p, false);
    for (int side = 0; side < 2; side++) {
        const Graph *g = p->graph;
        for (int i = 0; i < (side ? g->outputs.n : g->inputs.n); i++) {
            const Value *v = side ? g->outputs.at[i] : g->inputs.at[i];
            if (v->role != ROLE_NONE) (side ? l.output_at : l.input_at)[i] += (int64_t)dtype_size(v->type.dtype);
        }
    }
    return l;
}

// ---------------------------------------------------------------- a kernel
static Module *module_of(const StepsFile *f, CFile *g, const KernelText *t, const Shader *s, int pass) {
    Module *m = strmap_get(f->modules, s->glsl);
    if (m) return m;
    Arena *a = graph_root(g->plan->graph)->arena;       // that of the text goes with the kernel
    m = NEW(a, Module);
    m->words = arena_printf(a, "%s_words", t->name);
    if (pass) m->words = arena_printf(a, "%s_%d", m->words, pass);
    if (!vulkan_print_module(a, &g->data, g->plan, t->kernel, s, m->words, &m->key, &m->count)) return NULL;
    strmap_put(f->modules, arena_strdup(a, s->glsl), m);
    return m;
}

static const char *param_of(const KernelText *t, const Value *v) {
    int i = 0;
    while (!c_is_param(t, i, v)) i++;
    return t->params[i].name;
}

// Those that are written come first.
static void print_operands(const KernelText *t, const Shader *s, Text *out) {
    const Graph *g = t->file->plan->graph;
    const Kernel *k = t->kernel;
    const char *next = "";
    if (!s->n_push) return;
    text_printf(out, "    const burn_gpu_operand operands[] = {");
    const int64_t counters = gpu_counters(k);
    if (counters) {                                     // as glsl_share_memory() has them
        text_printf(out, "{scratch, %lld, 16}, {gpu->counters(gpu, %lld), %lld, 4}", (long long)k->scratch_bytes,
            (long long)counters, (long long)counters * 4);
        next = ", ";
    }
    if (gpu_calls(k) && k->scratch_bytes) {             // its only other push constant
        text_printf(out, "{scratch, %lld, 4}", (long long)k->scratch_bytes);
        next = ", ";
    }
    for (int i = 0; i < s->n_placed; i++, next = ", ") {
        const Value *v = s->placed[i];
        text_printf(out, "%s{%s, %lld, %d}", next, param_of(t, v), (long long)type_bytes_upper(g, &v->type),
            (int)dtype_size(v->type.dtype));
    }
    text_printf(out, "};\n");
}

static void print_groups(const KernelText *t, const Shader *s, Text *out) {
    const CFile *g = t->file;
    if (!t->kernel->sizes.n) {
        text_printf(out, "    const uint32_t groups[3] = {%u, %u, %u};\n", s->groups[0], s->groups[1], s->groups[2]);
        return;
    }
    text_printf(out, "    const int64_t points = %s, each = %d;\n", spell_size(g->arena, g->plan->graph, s->size),
        s->each);
    text_printf(out, "    const uint32_t groups[3] = {%s, 1};\n",
        s->groups[1] == 1 ?
            "(uint32_t)((points + each - 1) / each), 1" :
            "points ? 65535 : 0, (uint32_t)((points + each * 65535 - 1) / (each * 65535))");
    text_printf(out, "    const uint32_t numbers[] = {(uint32_t)points");
    for (int i = 0; i < t->kernel->sizes.n; i++) text_printf(out, ", (uint32_t)%s", c_size(g, t->kernel, i));
    text_printf(out, "};\n");
}

// All that its text says of values lies at push constants: nothing is a number of the arena's.
static bool all_placed(const Kernel *k, const Shader *s) {
    return gpu_calls(k) || s->n_placed == k->writes.n + k->reads.n;
}

// One dispatch of the kernel's; of several, each stands in a block of its own.
static void print_dispatch(const StepsFile *f, CFile *g, const KernelText *t, const Shader *s, int pass, bool alone) {
    const Kernel *k = t->kernel;
    const Module *m = module_of(f, g, t, s, pass);
    const int numbers = k->sizes.n ? 1 + k->sizes.n : 0;
    if (!m) return;
    if (!alone) text_printf(&g->c, "    {\n");
    text_printf(&g->c, "    static const burn_gpu_kernel kernel = {\"%s\", %s, %zu, UINT64_C(0x%llx)};\n", m->words,
        m->words, m->count, (unsigned long long)m->key);
    print_operands(t, s, &g->c);
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

static bool hand_over(const Handover *h, CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    Arena *a = g->arena;
    const Layout l = layout_loose(a, g->plan);
    Shader s = { 0 };
    if (!glsl_can(a, k) || !glsl_kernel(a, g->options, &l, k, &s)) return false;
    if (s.points && (!all_placed(k, &s) || strstr(s.glsl, "burn_floordiv_i64"))) {
        if (is_missing(k))
            diag_error(k->anchor->loc, "a kernel in GLSL takes %d tensors at most, and sizes that are no quotients",
                MAX_PUSH - 1 - k->sizes.n);
        return is_missing(k);
    }
    const char *scratch = gpu_counters(k) > 0 || (gpu_calls(k) && k->scratch_bytes) ? ", unsigned char *scratch" : "";
    c_take_params(g, t);
    text_printf(&g->c, "static void %s(burn_gpu_call *gpu%s", t->name, t->n_params || k->sizes.n ? ", " : "");
    c_print_params(g, t, &g->c);
    text_printf(&g->c, "%s)\n{\n", scratch);
    int pass = 0;
    for (const Shader *of = &s; of && of->points; of = of->then)
        print_dispatch(h->ctx, g, t, of, pass++, !s.then);
    text_printf(&g->c, pass ? "}\n\n" : "    (void)gpu;\n}\n\n");
    return true;
}

// ---------------------------------------------------------------- loops that are one kernel
static bool takes_loop(const CFile *g, const Kernel *k) { return glsl_takes_loop(g->arena, k); }

static void hand_over_loop(RunText *r, const Kernel *k, int depth, const char *trips) {
    CFile *g = r->g;
    Arena *a = g->arena;
    const Program *program = r->s->program;
    const Layout l = layout_loose(a, program->plan);
    const char *words = arena_printf(a, "%s_%s_words", program->prefix, k->name),
               *indent = arena_printf(a, "%*s", 4 * depth, "");
    Shader s = { 0 };
    uint64_t key;
    size_t count;
    const int writes = glsl_loop(a, g->options, &l, k, &s);
    if (!vulkan_print_module(a, &g->data, program->plan, k, &s, words, &key, &count)) return;
    text_printf(&r->body, "%s{\n%s    static const burn_gpu_kernel kernel = {\"%s\", %s, %zu, UINT64_C(0x%llx)};\n",
        indent, indent, words, words, count, (unsigned long long)key);
    text_printf(&r->body, "%s    const burn_gpu_operand operands[] = {", indent);
    for (int i = 0; i < s.n_push; i++) {
        const Value *v = s.placed[i];
        text_printf(&r->body, "%s{%s, %lld, %d}", i ? ", " : "", c_value_place(r, v), (long long)type_bytes(&v->type),
            (int)dtype_size(v->type.dtype));
    }
    text_printf(&r->body,
        "};\n%s    const uint32_t groups[3] = {1, 1, 1}, trips = (uint32_t)(%s);\n"
        "%s    burn_gpu->dispatch(burn_gpu, &kernel, groups, %d, %d, operands, 1, &trips);\n%s}\n",
        indent, trips, indent, writes, s.n_push, indent);
}

bool steps_write(
    Arena *a, const Options *o, const char *model, int n, Program *programs, const struct Training *training) {
    StepsFile f = { strmap_new(a) };
    if (o->precision) {
        diag_error_as(EXIT_USAGE, NULL,
            "--precision is for GPU programs that are one list of kernels, and this one has control on the host");
        return false;
    }
    const Handover h = { hand_over, takes_loop, hand_over_loop, &f };
    return c_write(a, o, model, n, programs, training, &h);
}
