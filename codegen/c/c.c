// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels as C functions. A loop kernel is printed by loops.c in the C dialect below; filled.c prints those of
// templates. Over each stand the nodes it comes from with their shapes.
#include "c.h"
#include "schedule/cpu/templates.h"

#include <stdlib.h>
#include <string.h>

// MIN_ARGUMENT: loops this long are vector code without their length; the fewer steps of shorter ones are unrolled.
// MAX_TERMS: of a reduction that stand one after the other, without a loop; SMALL_TERMS: where code is to be small.
enum { MIN_ARGUMENT = 33, MAX_TERMS = 16, SMALL_TERMS = 4 };

const char *c_size(const CFile *g, const Kernel *k, int i) {
    int n;
    return spell_symbol(g->arena, &graph_symbols(graph_root(g->plan->graph), &n)[k->sizes.at[i]]);
}

static bool taken(const KernelText *k, const char *name) {
    for (int i = 0; i < k->n_params; i++)
        if (!strcmp(k->params[i].name, name)) return true;
    for (int i = 0; i < k->kernel->sizes.n; i++)
        if (!strcmp(c_size(k->file, k->kernel, i), name)) return true;
    return false;
}

// i0, t1, r2 … are the loop printer's, n0 … numbers that are arguments, burn_ the helpers', and single capitals the
// templates'.
static bool reserved(const char *s) {
    size_t digits = strspn(s + 1, "0123456789lbx");
    return (strchr("intr", s[0]) && !s[1 + digits]) || !strncmp(s, "burn_", 5) || !s[1] || !strcmp(s, "acc")
        || !strcmp(s, "scratch") || name_is_library(s);
}

bool c_is_file_name(const char *model, const char *s) {
    const size_t n = strlen(model);
    return !strncmp(s, model, n) && s[n] == '_';
}

static bool is_share(const char *s) { return !strcmp(s, "part") || !strcmp(s, "first") || !strcmp(s, "last"); }

// Of functions that hand a kernel over (gpu/steps.c).
static bool is_handed(const char *s) {
    static const char *const names[] = { "gpu", "kernel", "operands", "points", "each", "groups", "numbers" };
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(s, names[i])) return true;
    return !strncmp(s, "instead", 7);
}

void c_add_param(CFile *g, KernelText *k, Value *v, bool written) {
    for (int i = k->first_shared; i < k->n_params; i++)
        if (c_is_param(k, i, v)) {
            k->params[i].written |= written;
            return;
        }
    const char *base = v->name && *v->name ? name_c(g->arena, v->name) : arena_printf(g->arena, "v%d", v->id);
    if (strlen(base) > 32) base = name_c(g->arena, base + strlen(base) - 32);
    if (k->prefix) base = arena_printf(g->arena, "%s%s", k->prefix, base);
    else if (reserved(base) || c_is_file_name(g->model, base) || (g->handover && is_handed(base))
        || (is_share(base) && (k->kernel->parts > 1 || k->kernel->strips)))
        base = arena_printf(g->arena, "%s_", base);
    const char *name = base;
    for (int n = 2; taken(k, name); n++) name = arena_printf(g->arena, "%s_%d", base, n);
    if (k->n_params == MAX_PARAMS) bug("kernel %s has too many operands", k->kernel->name);
    k->params[k->n_params++] = (Param){ .value = v, .name = name, .written = written };
}

const char *c_param_name(const KernelText *k, const Value *v) {
    for (int i = k->first_shared; i < k->n_params; i++)
        if (c_is_param(k, i, v)) return k->params[i].name;
    bug("%%%d is no operand of kernel %s", v->id, k->kernel->name);
}

// ---------------------------------------------------------------- the C dialect of the loop printer
static const char *c_element(const KernelText *k, const Value *v, const char *index) {
    return arena_printf(k->file->arena, "%s[%s]", c_param_name(k, v), text_bare(k->file->arena, index));
}

static const char *c_load(void *ctx, Value *v, const char *index) {
    const KernelText *k = ctx;
    return spell_c_load(k->file->arena, v->type.dtype, c_element(k, v, index));
}

const char *c_address(void *ctx, Value *v, const char *index) {
    const KernelText *k = ctx;
    return arena_printf(k->file->arena, "&%s", c_element(k, v, index));
}

static void c_store(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const KernelText *k = ctx;
    DType d = s->value->type.dtype;
    const char *at = c_element(k, s->value, index);
    if (s->op != RED_NONE) {
        Text t;
        text_init(&t, k->file->arena);
        spell_step(&spell_c, &t, s->op, d, spell_c_load(k->file->arena, d, at), value);
        value = t.at;
    }
    text_printf(out, "%s = %s;", at, spell_c_store(k->file->arena, d, text_bare(k->file->arena, value)));
}

static void c_touch(void *ctx, Text *out, const Store *s, const char *index) {
    text_printf(out, "BURN_PREFETCH(&%s);", c_element(ctx, s->value, index));
}

// Equal ones are one argument: that steps are the same lets the C compiler share addresses.
static const char *c_number(void *ctx, int64_t value) {
    KernelText *k = ctx;
    Arena *a = k->file->arena;
    int i = k->hole_numbers;
    const Options *o = k->file->options;
    if (value < (!o->small ? MIN_ARGUMENT : k->prefix ? 2 : o->share ? SMALL_TERMS + 1 : MIN_ARGUMENT))
        return number_text(a, value);
    while (i < k->numbers.n && k->numbers.at[i].value != value) i++;
    if (i == k->numbers.n) {
        const char *name = arena_printf(a, k->prefix ? "burn_n%d" : "n%d", i - k->hole_numbers);
        VEC_PUSH(a, k->numbers, ((Number){ .value = value, .name = name }));
    }
    k->numbers.at[i].used = true;
    return k->numbers.at[i].name;
}

Dialect c_dialect(KernelText *k) {
    const bool scalar = k->file->options->small && !k->file->options->machine.vectors;
    return (Dialect){ .index_type = "ptrdiff_t",
        .indent = "    ",
        .constant = "const ",
        .graph = k->file->plan->graph,
        .lanes = true,
        .strips = !scalar,
        .spans = k->file->options->machine.vectors && !k->file->options->machine.ram_first,
        .unrolled = scalar ? SMALL_TERMS : MAX_TERMS,
        .number = k->file->numbers ? c_number : NULL,
        .type = spell_c.type,
        .language = &spell_c,
        .load = c_load,
        .address = k->file->options->machine.vectors ? c_address : NULL,
        .store = c_store,
        .touch = c_touch,
        .ctx = k };
}

// ---------------------------------------------------------------- kernels
void c_print_params(CFile *g, const KernelText *k, Text *out, int from) {
    for (int i = from; i < k->n_params; i++) {
        const Param *p = &k->params[i];
        const bool may_meet = template_may_over(k->kernel) && !p->value->data;      // what is stored
        text_printf(out, "%s%s%s *%s%s", i > from ? ", " : "", p->written ? "" : "const ",
            spell_c_storage(p->value->type.dtype), may_meet ? "" : "restrict ", p->name);
    }
    for (int i = 0; i < k->kernel->sizes.n; i++)
        text_printf(out, "%sint64_t %s", i || k->n_params > from ? ", " : "", c_size(g, k->kernel, i));
    if (k->table) text_printf(out, ", const ptrdiff_t *burn_sizes");
    for (int i = k->table ? k->hole_numbers : 0; i < k->numbers.n; i++)
        text_printf(out, ", ptrdiff_t %s", k->numbers.at[i].name);
}

// Is a part of the loop a range that it is given? Where the extent is known: loops of other lengths, and in more parts
// or fewer, are the same function then.
bool c_takes_range(const Kernel *k) {
    return k->kind == KERNEL_LOOP && !k->strips && k->parts > 1 && dim_is_const(k->axes.at[k->loop.part_axis].size);
}

// Of an axis that runs along memory a part is whole lines.
int c_part_line(const Kernel *k) {
    bool inner = true;
    for (int i = k->loop.part_axis + 1; i < k->n_parallel; i++) inner = inner && k->axes.at[i].size == 1;
    return inner ? 16 : 1;
}

// The range of the part, where the kernel finds it out.
static void print_share(const CFile *g, Text *out, const Kernel *k) {
    const char *size = spell_size(g->arena, g->plan->graph, k->axes.at[k->loop.part_axis].size);
    const int line = c_part_line(k);
    text_printf(out, "    const ptrdiff_t first = burn_begin((ptrdiff_t)(%s), %d, part, %d), ", size, line, k->parts);
    text_printf(out, "last = burn_begin((ptrdiff_t)(%s), %d, part + 1, %d);\n", size, line, k->parts);
}

// A product that is added or subtracted: contracted, x*c - max(x*c) is no longer 0 at the maximum.
static bool adds_product(const Expr *e, bool *seen) {
    if (!e || seen[e->id]) return false;
    seen[e->id] = true;
    bool sum = (e->op == E_Add || e->op == E_Sub) && dtype_is_float(e->dtype);
    for (int i = 0; i < 2 && sum; i++) {
        const Expr *x = e->a[i]->op == E_Neg ? e->a[i]->a[0] : e->a[i];
        if (x->op == E_Mul) return true;
    }
    return adds_product(e->a[0], seen) || adds_product(e->a[1], seen) || adds_product(e->a[2], seen);
}

static bool kernel_adds_products(Arena *a, const Kernel *k) {
    bool *seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1);
    for (int i = 0; i < k->stores.n; i++)
        if (adds_product(k->stores.at[i].expr, seen)) return true;
    return false;
}

void c_take_params(CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    for (int i = 0; i < k->writes.n; i++) c_add_param(g, t, k->writes.at[i], true);
    for (int i = 0; i < k->reads.n; i++) c_add_param(g, t, k->reads.at[i], false);
}

static void loop_kernel(CFile *g, KernelText *t) {
    c_take_params(g, t);
    c_take_offsets(g, t);
    const Kernel *k = t->kernel;
    Text body;
    text_init(&body, g->arena);
    Dialect d = c_dialect(t);
    const bool range = k->strips || c_takes_range(k);
    if (k->parts > 1 && !range) print_share(g, &body, k);
    if (k->parts > 1 || range) {
        d.first = "first";
        d.last = "last";
    }
    loops_print(g->arena, &body, k, &d, 0, 1);
    bool fused = g->options->machine.vectors && spell_c_has_functions(body.at) && !kernel_adds_products(g->arena, k);
    text_printf(&g->c, "%sstatic void %s(", fused ? "BURN_FUSED " : "", t->name);
    c_print_params(g, t, &g->c, 0);
    text_printf(&g->c, "%s)\n{\n%s}\n",
        range ? ", ptrdiff_t first, ptrdiff_t last" : k->parts > 1 ? ", ptrdiff_t part" : "", body.at);
}

void c_kernel(CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    t->handed = g->handover && g->handover->kernel(g->handover, g, t);
    if (t->handed) return;
    if (k->kind == KERNEL_CALL && k->anchor->op == OP_Custom) c_custom(g, t);
    else if (k->kind == KERNEL_CALL) c_call_kernel(g, t);
    else if (k->template) c_template_kernel(g, t);
    else loop_kernel(g, t);
    text_printf(&g->c, "\n");
}

