// SPDX-License-Identifier: MIT OR Apache-2.0
// The Vulkan back end: a plan becomes SPIR-V modules in a C file, with a `const burn_vk_program` that
// runtime/vulkan.c runs.
//
// In: programs whose kernels are all loop kernels. Out: model.c, model.h, and model.bin when the weights are large.
// One arena holds the plan's workspace, then the inputs, then the outputs. Kernels are sorted into levels: two
// kernels of one level touch no common bytes that either writes, so the runtime puts barriers between levels only.
#include "vulkan.h"
#include "cooperative.h"
#include "spirv.h"
#include "codegen/c/descriptor.h"
#include "codegen/weights.h"

#include <stdlib.h>
#include <string.h>


// ---------------------------------------------------------------- levels
// what every device has, and what runs instead where there is more: so many at most
enum { WAYS = 3 };
static const char *const way_names[WAYS] = { "kernels", "instead", "instead2" };

typedef struct Dispatch {
    const Kernel *kernel;
    Shader shader;
    int level, order, pass;                             // pass: of the kernel's
    const char *words[WAYS];                            // the arrays of its modules
} Dispatch;

// What a kernel reads or writes, its scratch memory last: number i of them.
static Region touched(const Layout *l, const Kernel *k, bool writes, int i) {
    if (writes && i == k->writes.n) return layout_scratch(k);
    return layout_region(l, writes ? k->writes.at[i] : k->reads.at[i]);
}

static bool any_meet(const Layout *l, const Kernel *x, bool x_writes, const Kernel *y, bool y_writes) {
    const int nx = x_writes ? x->writes.n + 1 : x->reads.n, ny = y_writes ? y->writes.n + 1 : y->reads.n;
    for (int i = 0; i < nx; i++)
        for (int j = 0; j < ny; j++) {
            const Region a = touched(l, x, x_writes, i), b = touched(l, y, y_writes, j);
            if (a.is_weight == b.is_weight && a.at < b.at + b.bytes && b.at < a.at + a.bytes) return true;
        }
    return false;
}

// Must `later` wait for `earlier`? It reads what that one writes, or writes what that one reads or writes.
static bool depends(const Layout *l, const Kernel *later, const Kernel *earlier) {
    return any_meet(l, later, false, earlier, true) || any_meet(l, later, true, earlier, false)
        || any_meet(l, later, true, earlier, true);
}

static int by_level(const void *x, const void *y) {
    const Dispatch *a = x, *b = y;
    return a->level != b->level ? a->level - b->level : a->order - b->order;
}

// Each kernel on the first level after all it depends on; then levels in order.
static void sort_levels(const Layout *l, Dispatch *d, int n) {
    for (int i = 0; i < n; i++) {
        d[i].order = i;
        d[i].level = 0;
        for (int j = 0; j < i; j++)
            if (d[j].level >= d[i].level && depends(l, d[i].kernel, d[j].kernel)) d[i].level = d[j].level + 1;
    }
    qsort(d, (size_t)n, sizeof *d, by_level);
}

// ---------------------------------------------------------------- one program
typedef struct VkFile {
    Arena *arena;
    const Options *options;
    const char *model;
    bool external;                                      // weights come from a file
    Text c, h;
} VkFile;

static void print_words(Text *out, const char *name, const SpirvModule *m) {
    text_printf(out, "static const uint32_t %s[%zu] = {", name, m->count);
    for (size_t i = 0; i < m->count; i++)
        text_printf(out, i % 10 ? ", 0x%08xu" : i ? ",\n    0x%08xu" : "\n    0x%08xu", m->words[i]);
    text_printf(out, "\n};\n\n");
}

// What glslang says of a kernel. Of the model's own the line is that of its file, or counts in its text.
static void tell_mistake(Arena *a, const Node *n, const char *log) {
    static const char mark[] = "ERROR: 0:";
    const char *at = strstr(log, mark);
    const Loc *loc = n ? n->loc : NULL;
    if (!n || n->op != OP_Custom || !at) {
        diag_error(loc, "the GPU kernel does not compile; use --target generic\n%s", log);
        return;
    }
    at += strlen(mark);
    size_t number = strspn(at, "0123456789");
    Loc there = *loc;
    bool same = node_attr(n, "glsl_line") != NULL;
    const char *line = same ? "" : arena_printf(a, ", line %.*s", (int)number, at);
    if (same) {
        there.line = (int)strtol(at, NULL, 10);
        there.column = 0;
    }
    at += number + strspn(at + number, ": ");
    diag_error(&there, "its kernel in GLSL%s: %s", line, arena_strndup(a, at, strcspn(at, "\n")));
}

static uint64_t words_hash(const SpirvModule *m) {
    uint64_t h = WEIGHTS_SEED;
    for (size_t i = 0; i < m->count; i++) {
        h = (h ^ m->words[i]) * WEIGHTS_PRIME;
        h ^= h >> 32;
    }
    return h;
}

bool vulkan_print_module(Arena *a, Text *out, const Plan *p, const Kernel *k, const Shader *s, const char *name,
    uint64_t *key, size_t *count) {
    SpirvModule module;
    if (!spirv_compile(s->glsl, k->name, &module)) {
        const Node *n = k->nodes.n ? k->nodes.at[k->nodes.n - 1] : NULL;
        tell_mistake(a, n, module.log ? module.log : "out of memory");
        spirv_free(&module);
        return false;
    }
    if (s->matrices && !cooperative_rewrite(&module, s->matrices == DT_BF16))
        bug("%s: its matrices cannot be rewritten", name);
    print_origin(a, out, p->graph, k);
    print_words(out, name, &module);
    *key = words_hash(&module);
    *count = module.count;
    spirv_free(&module);
    return true;
}

// Compiles a shader of k and prints its words as the array `name`, unless an equal one is there already: the array's
// name, or NULL with a diagnostic.
static const char *print_module(
    VkFile *g, const Plan *p, const Kernel *k, const Shader *s, const char *name, StrMap *modules) {
    const char *there = strmap_get(modules, s->glsl);
    uint64_t key;
    size_t count;
    if (there) return there;
    if (!vulkan_print_module(g->arena, &g->c, p, k, s, name, &key, &count)) return NULL;
    strmap_put(modules, s->glsl, (void *)(uintptr_t)name);
    return name;
}

static bool print_modules(VkFile *g, const Plan *p, Dispatch *d, const char *prefix, StrMap *modules) {
    const char *name = arena_printf(g->arena, "%s_%s", prefix, d->kernel->name);
    if (d->pass) name = arena_printf(g->arena, "%s_%d", name, d->pass);
    const Shader *s = &d->shader;
    for (int way = 0; s; way++, s = s->instead) {
        const char *own = way ? arena_printf(g->arena, "%s_%s", name, way_names[way]) : name;
        d->words[way] = print_module(g, p, d->kernel, s, own, modules);
        if (!d->words[way]) return false;
    }
    return true;
}

static void print_ios(VkFile *g, const Program *p, const Layout *l, bool outputs) {
    const Graph *gr = p->plan->graph;
    int n = outputs ? gr->outputs.n : gr->inputs.n;
    if (!n) return;
    Text rows;
    text_init(&rows, g->arena);
    for (int i = 0; i < n; i++) {
        const Value *v = outputs ? gr->outputs.at[i] : gr->inputs.at[i];
        text_printf(&rows, "    {");
        c_tensor_info(&g->c, &rows, gr, &v->type, outputs ? gr->output_names.at[i] : v->name,
            arena_printf(g->arena, "%s_%s%d", p->name, outputs ? "output" : "input", i));
        text_printf(&rows, ", %lld},\n", (long long)(outputs ? l->output_at : l->input_at)[i]);
    }
    text_printf(&g->c, "static const burn_vk_io %s_%s[] = {\n%s};\n", p->name, outputs ? "outputs" : "inputs",
        rows.at);
}

static const char *array_or_null(VkFile *g, const Program *p, int n, const char *what, const char *type) {
    return n ? arena_printf(g->arena, "%s_%s", p->name, what) : arena_printf(g->arena, "(const %s *)0", type);
}

// Where the values of each kernel begin, in elements of their views: its push constants.
static void print_places(VkFile *g, const Program *p, const Dispatch *d, int n) {
    int total = 0;
    for (int i = 0; i < n; i++) total += d[i].shader.n_push;
    if (!total) return;
    text_printf(&g->c, "static const uint32_t %s_places[%d] = {\n", p->name, total);
    for (int i = 0; i < n; i++) {
        const Shader *s = &d[i].shader;
        for (int j = 0; j < s->n_push; j++)
            text_printf(&g->c, "%s%u,%s", j ? " " : "    ", s->push[j], j + 1 < s->n_push ? "" : "\n");
    }
    text_printf(&g->c, "};\n");
}

// One row of an array of kernels; places: where its push constants begin, instead: what runs in its place, as text.
static void print_kernel(Text *out, const Dispatch *d, const Shader *s, const char *words, const char *places,
    const char *instead) {
    text_printf(out, "    {\"%s\", %s, sizeof %s / 4, {%u, %u, %u}, %d, %s, %d, %s},\n", d->kernel->name, words, words,
        s->groups[0], s->groups[1], s->groups[2], d->level, places, s->n_push, instead);
}

static const Shader *way_of(const Dispatch *d, int way) {
    const Shader *s = &d->shader;
    for (int i = 0; s && i < way; i++) s = s->instead;
    return s;
}

// The array of kernels, or of those that run instead of others; nothing where there are none.
static void print_kernels(VkFile *g, const Program *p, const Dispatch *d, int n, int way) {
    int at = 0, rows = 0, printed = 0;
    for (int i = 0; i < n; i++) {
        const Shader *s = way_of(&d[i], way);
        const char *places = d[i].shader.n_push ? arena_printf(g->arena, "%s_places + %d", p->name, at) :
                                                  "(const uint32_t *)0",
                   *other = "(const burn_vk_kernel *)0";
        at += d[i].shader.n_push;
        if (!s) continue;
        if (s->instead) other = arena_printf(g->arena, "%s_%s + %d", p->name, way_names[way + 1], rows++);
        if (!printed++) text_printf(&g->c, "static const burn_vk_kernel %s_%s[] = {\n", p->name, way_names[way]);
        print_kernel(&g->c, &d[i], s, d[i].words[way], places, other);
    }
    if (printed) text_printf(&g->c, "};\n");
}

// Which part of the weights each kernel sees, where it is not all.
static void print_windows(VkFile *g, const Program *p, const Layout *l, const Dispatch *d, int n) {
    if (!l->n_windows) return;
    text_printf(&g->c, "static const burn_vk_window %s_windows[] = {\n", p->name);
    for (int i = 0; i < l->n_windows; i++)
        text_printf(
            &g->c, "    {%lld, %lld},\n", (long long)l->windows[i].at, (long long)l->windows[i].bytes);
    text_printf(&g->c, "};\nstatic const uint32_t %s_window_of[] = {", p->name);
    for (int i = 0; i < n; i++)
        text_printf(&g->c, i % 20 ? " %d," : "\n    %d,", layout_window(l, d[i].kernel));
    text_printf(&g->c, "\n};\n");
}

static void print_program(VkFile *g, const Program *p, const Layout *l, const Dispatch *d, int n, const char *name) {
    const Graph *gr = p->plan->graph;
    print_places(g, p, d, n);
    for (int way = WAYS; way-- > 0;) print_kernels(g, p, d, n, way);
    print_windows(g, p, l, d, n);
    print_ios(g, p, l, false);
    print_ios(g, p, l, true);
    const char *metadata = c_metadata(&g->c, graph_root(gr), arena_printf(g->arena, "%s_metadata", p->name));
    text_printf(&g->c,
        "const burn_vk_program %s_program = {\n    3, \"%s\", %s, %d, %lld, %lld, %s,\n    %s, %d, %s, %d, %s, "
        "%lld,\n    %s, %s, %d\n};\n",
        name, name, array_or_null(g, p, n, "kernels", "burn_vk_kernel"), n, (long long)l->arena_bytes,
        (long long)l->weights_bytes, g->external ? arena_printf(g->arena, "%s_weights_check", g->model) : "NULL",
        array_or_null(g, p, gr->inputs.n, "inputs", "burn_vk_io"), gr->inputs.n,
        array_or_null(g, p, gr->outputs.n, "outputs", "burn_vk_io"), gr->outputs.n, metadata,
        (long long)(l->arena_bytes - l->counters_at), array_or_null(g, p, l->n_windows, "windows", "burn_vk_window"),
        array_or_null(g, p, l->n_windows, "window_of", "uint32_t"), l->n_windows);
}

static void declare(VkFile *g, const Program *p, const Layout *l, const char *name) {
    const Graph *gr = p->plan->graph;
    Text *h = &g->h;
    text_printf(h,
        "/* %s\n"
        " * For burn_vk_load of burn.h. Any number of threads may run it at once, each in a workspace of its own.\n"
        " * What they call returns 0 (BURN_OK) or a negative BURN_E... code. Tensors are the caller's, dense and\n"
        " * row-major.\n",
        p->doc ? p->doc : "One inference.");
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const Value *v = side ? gr->outputs.at[i] : gr->inputs.at[i];
            const char *given = side ? gr->output_names.at[i] : v->name;
            text_printf(h, " *   %s ", side ? "writes" : "reads ");
            c_comment(h, given && *given ? given : "(no name)");
            text_printf(h, ": %s\n", type_text(g->arena, gr, &v->type));
        }
    bundles_comment(h, gr, NULL, NULL);
    text_printf(h,
        " *   memory of the device, in bytes: %lld for weights, %lld for each workspace, %lld of them inputs and\n"
        " *     outputs, which take as much again where the host does not reach them\n",
        (long long)l->weights_bytes, (long long)l->arena_bytes, (long long)(l->arena_bytes - l->work_bytes));
    if (g->external) text_printf(h, " *   weights: the %lld bytes of %s.bin\n", (long long)l->weights_bytes, g->model);
    else if (l->weights_bytes) text_printf(h, " *   weights: %s_weights\n", name);
    text_printf(h, " */\nextern const burn_vk_program %s_program;\n", name);
    text_printf(h, g->external || !l->weights_bytes ? "\n" : "extern const void *const %s_weights;\n\n", name);
}

// Shaders of the kernels that have anything to compute, by level; their number, or -1 with diagnostics.
static int make_shaders(Arena *a, const Options *o, const Layout *l, const Plan *p, Dispatch **out) {
    VEC(Dispatch) all = { 0 };
    bool ok = true;
    for (int i = 0; i < p->kernels.n; i++) {
        Shader first = { 0 };
        int pass = 0;
        ok = glsl_kernel(a, o, l, p->kernels.at[i], &first) && ok;
        for (const Shader *s = &first; ok && s && s->points; s = s->then)
            VEC_PUSH(a, all, ((Dispatch){ .kernel = p->kernels.at[i], .shader = *s, .pass = pass++ }));
    }
    if (all.n) sort_levels(l, all.at, all.n);
    *out = all.at;
    return ok ? all.n : -1;
}

// Shaders of a program with control on the host, of bodies too.
static bool dump_steps(Arena *a, const Options *o, const Layout *l, const Plan *p, Text *out) {
    bool ok = true;
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        Shader s = { 0 };
        const bool one = glsl_takes_loop(a, k);
        if (one) {
            glsl_loop(a, o, l, k, &s);
            text_printf(out, "// %s\n%s\n", k->name, s.glsl);
            continue;
        }
        for (int j = 0; j < kernel_bodies(k); j++) ok = dump_steps(a, o, l, k->region.bodies[j], out) && ok;
        if (!glsl_can(a, k)) text_printf(out, "// %s: on the host\n\n", k->name);
        else if (!glsl_kernel(a, o, l, k, &s)) ok = false;
        for (const Shader *pass = &s; ok && pass && pass->points; pass = pass->then)
            text_printf(out, "// %s\n%s\n", k->name, pass->glsl);
    }
    return ok;
}

// The kernels' shaders as text.
static bool dump_glsl(Arena *a, const Options *o, const Plan *p, Text *out) {
    const Program alone = { .plan = (Plan *)(uintptr_t)p };
    Layout l = layout_make(a, p, p->weight_bytes > o->embed_limit);
    layout_windows(a, &l);
    if (steps_wanted(a, 1, &alone, NULL)) return dump_steps(a, o, &l, p, out);
    Dispatch *d;
    int n = make_shaders(a, o, &l, p, &d);
    for (int i = 0; i < n; i++)
        for (const Shader *s = &d[i].shader; s; s = s->instead)
            text_printf(out, "// %s%s: %lld points in %u x %u x %u groups, level %d\n%s\n", d[i].kernel->name,
                s->matrices ? ", on matrix units" : s == &d[i].shader ? "" : ", with shuffles",
                (long long)s->points, s->groups[0], s->groups[1], s->groups[2], d[i].level, s->glsl);
    return n >= 0;
}

static bool vulkan_program(VkFile *g, const Program *p) {
    const Plan *plan = p->plan;
    Layout l = layout_make(g->arena, plan, g->external);
    layout_windows(g->arena, &l);
    Dispatch *d;
    StrMap *modules = strmap_new(g->arena);
    int n = make_shaders(g->arena, g->options, &l, plan, &d);
    bool ok = n >= 0;
    for (int i = 0; i < n; i++) {
        progress_stage("%s: shader %d of %d", p->name, i + 1, n);
        if (!print_modules(g, plan, &d[i], p->prefix, modules)) ok = false;
    }
    if (!ok) return false;
    const char *name = p->descriptor ? g->model : p->name;
    if (!g->external && l.weights_bytes) {
        weights_print_words(&g->c, 1, p, plan->weight_bytes, arena_printf(g->arena, "%s_w", p->name));
        text_printf(&g->c, "const void *const %s_weights = %s_w;\n\n", name, p->name);
    }
    print_program(g, p, &l, d, n, name);
    declare(g, p, &l, name);
    return true;
}

// ---------------------------------------------------------------- files
static void print_header(VkFile *g, Text *h, int64_t weight_bytes) {
    print_banner(h, g->options);
    skeleton_fill(g->arena, h, "skeleton/model.h", 9,
        (Hole[]){ { "MODEL", NULL, g->model },
            { "GUARD", NULL, text_upper(g->arena, g->model) },
            { "TYPES", NULL, arena_printf(g->arena, "%s\n%s", burn_types(g->arena, "burn-model-types"),
                                   burn_types(g->arena, "burn-vk-types")) },
            { "HAS_THREADS", NULL, "0" },
            { "HAS_TRAINING", NULL, "0" },
            { "PROGRAMS", NULL, g->h.at },
            { "N_WEIGHTS", NULL, number_text(g->arena, g->external ? weight_bytes + WEIGHTS_HEADER : 0) },
            { "HAS_SIZE", NULL, "0" },
            { "HAS_MODEL", NULL, "0" } });
}

static bool vulkan_write(
    Arena *a, const Options *o, const char *model, int n, Program *programs, const struct Training *training) {
    VkFile g = { .arena = a, .options = o, .model = model };
    Text out[2];                                        // header, source
    uint64_t sum = 0;
    const char *paths[2] = { path_swap(a, o->output, ".h"), o->output };
    int64_t weight_bytes = programs[0].plan->weight_bytes;
    if (!strcmp(spirv_versions(), "none")) {
        diag_error_as(EXIT_USAGE, NULL,
            "--target vulkan: this burncc is built without glslang; install it and build again, or use "
            "--target generic");
        return false;
    }
    if (steps_wanted(a, n, programs, training)) return steps_write(a, o, model, n, programs, training);
    text_init(&g.c, a);
    text_init(&g.h, a);
    text_init(&out[0], a);
    text_init(&out[1], a);
    g.external = n == 1 && weight_bytes > o->embed_limit;
    bool ok = true;
    for (int i = 0; i < n; i++) ok = vulkan_program(&g, &programs[i]) && ok;
    if (!ok || diag_errors()) return false;
    OutFile *bin = NULL;
    if (g.external && !(bin = weights_write_file(a, 1, programs, weight_bytes, path_swap(a, o->output, ".bin"), &sum)))
        return false;
    print_header(&g, &out[0], weight_bytes);
    print_banner(&out[1], o);
    text_printf(&out[1], "#include \"%s\"\n\n%s", path_base(paths[0]), g.external ? "#include <string.h>\n\n" : "");
    if (g.external) weights_print_check(&out[1], model, sum, weight_bytes);
    text_append(&out[1], g.c.at, g.c.n);
    return files_write(a, o->machine.backend->mark, out, paths, 2, 1, &bin);
}

const Backend backend_vulkan = {
    .name = "vulkan",
    .extension = ".c",
    .mark = BANNER_MARK,
    .sizes = true,
    .training = true,
    .states = true,
    .source = true,
    .halves = true,
    .choices = true,
    .descriptor = DESCRIPTOR_VULKAN,
    .has_template = gpu_has_template,
    .channels_last_in_halves = true,
    .channels_last_of_bytes = true,
    .channels_first = gpu_channels_first,
    .byte_products = true,
    .spread_points = true,
    .keeps_rows = gpu_keeps_rows,
    .windows_in_loops = true,
    .shares = gpu_shares,
    .attends = gpu_attends,
    .attends_few = gpu_attends_few,
    .kernels = "glsl",
    .claims = gpu_claims,
    .plan = gpu_plan,
    .write = vulkan_write,
    .report = vulkan_report,
    .dump_stage = "glsl",
    .dump = dump_glsl,
};
