// SPDX-License-Identifier: MIT OR Apache-2.0
// Attention as a compute shader: its template (templates/glsl/attention.comp, or attention_rows.comp of few queries)
// with the holes that the schedule has chosen, operands in their views, and the score, the keys that a query sees and
// what is stored as functions.
#include "glsl.h"

#include "schedule/cpu/templates.h"

#include <string.h>

static const char *const coordinates[3] = { "b0, b1, b2, m, k", "b0, b1, b2, n, k", "b0, b1, b2, n, d" };

// Where an operand's element lies, from its beginning.
static const char *index_text(Arena *a, const Kernel *k, int which) {
    const char *const line = which ? "n" : "m", *const column = which == 2 ? "d" : "k";
    Text t;
    text_init(&t, a);
    text_printf(&t, "%lld", (long long)k->operand_at[which]);
    for (int i = 0; i < 3; i++)
        if (k->attention.of[which].batch[i])
            text_printf(&t, " + (b%d) * %lld", i, (long long)k->attention.of[which].batch[i]);
    text_printf(&t, " + (%s) * %lld + (%s) * %lld", line, (long long)k->attention.of[which].row, column,
        (long long)k->attention.of[which].col);
    return t.at;
}

static const char *element_text(Printing *p, int which) {
    Value *v = p->kernel->operand[which];
    const char *element = glsl_element(p, v, index_text(p->arena, p->kernel, which), false);
    return glsl_load_text(p->arena, layout_element(p->layout, v), element);
}

static const char *four_text(Printing *p, int which) {
    Value *v = p->kernel->operand[which];
    const DType d = layout_element(p->layout, v);
    const char *view = glsl_wide(p, v, d == DT_F32 ? WIDE_F32X4 : WIDE_U16X4),
               *four = arena_printf(p->arena, "%s[(%s + %s) / 4]", view, glsl_origin(p, v),
                   index_text(p->arena, p->kernel, which));
    return d == DT_F32 ? four : arena_printf(p->arena, "burn_%sx4_to_f32(%s)", dtype_name(d), four);
}

// Do rows of this length lie in whole vectors of n, from where the operand begins?
static bool in_vectors(const Printing *p, int which, int64_t length, int n) {
    const Kernel *k = p->kernel;
    Value *v = k->operand[which];
    bool whole = k->attention.of[which].col == 1 && k->attention.of[which].row % n == 0 && length % n == 0
        && k->operand_at[which] % n == 0
        && layout_region(p->layout, v).at % (n * (int64_t)dtype_size(layout_element(p->layout, v))) == 0;
    for (int i = 0; i < 3; i++) whole = whole && k->attention.of[which].batch[i] % n == 0;
    return whole;
}

static void give_back(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    (void)ctx;
    (void)s;
    (void)index;
    text_printf(out, "return %s;", value);
}

static const char *keys_text(const Printing *p) {
    return spell_size(p->arena, p->layout->plan->graph, p->kernel->attention.n);
}

// Of 64 bits: a key, or what stands before the first or behind the last.
static void give_key(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const Printing *p = ctx;
    (void)s;
    (void)index;
    text_printf(out, "return int(clamp(%s, int64_t(-1), int64_t(%s)));", value, keys_text(p));
}

// Sums of coordinates and numbers in 32 bits, which all devices have; NULL: it is none.
static Expr *narrow(ExprPool *p, Expr *e) {
    enum { MOST = 1 << 30 };
    if (e->op == E_Cast && e->a[0]->dtype == DT_INDEX) return e->a[0];
    if (e->op == E_Const && e->c.i > -MOST && e->c.i < MOST) return expr_index(p, e->c.i);
    Expr *x = e->op == E_Add ? narrow(p, e->a[0]) : NULL, *y = x ? narrow(p, e->a[1]) : NULL;
    return y ? expr_binary(p, E_Add, x, y) : NULL;
}

// A function of a query, or with `head` more: all axes of the kernel are known in it.
static void print_function(Printing *p, Text *out, const char *head, Expr *e) {
    Arena *a = p->arena;
    Dialect d = glsl_dialect(p);
    Kernel *k = arena_copy(a, p->kernel, sizeof *p->kernel);
    Expr *narrowed = e->dtype == DT_I64 ? narrow(k->exprs, e) : NULL;
    if (narrowed) e = narrowed;
    const Store s = { .value = p->kernel->stores.at[0].value, .index = expr_index(k->exprs, 0), .expr = e };
    d.store = e->dtype == DT_I64 ? give_key : give_back;
    k->stores.at = NULL;
    k->stores.n = k->stores.cap = 0;
    VEC_PUSH(a, k->stores, s);
    k->n_parallel = k->axes.n;
    text_printf(out, "%s {\n", head);
    loops_print(a, out, k, &d, k->n_parallel, 1);
    text_printf(out, "}\n\n");
}

static void print_functions(Printing *p, Text *out) {
    const Attention *s = &p->kernel->attention;
    const Dialect d = glsl_dialect(p);
    print_function(p, out,
        "float score_of(const float acc, const int i0, const int i1, const int i2, const int i3, const int i5)",
        s->score);
    if (s->first)
        print_function(p, out, "int first_key(const int i0, const int i1, const int i2, const int i3)", s->first);
    if (s->last)
        print_function(p, out, "int last_key(const int i0, const int i1, const int i2, const int i3)", s->last);
    text_printf(out,
        "void finish(const float acc, const int i0, const int i1, const int i2, const int i3, const int i4) {\n");
    loops_print(p->arena, out, p->kernel, &d, p->kernel->n_parallel, 1);
    text_printf(out, "}\n\n");
}

static const char *const names[3] = { "QUERY", "KEY", "VALUE" };

// The holes that both forms have.
static int print_common(Printing *p, Text *body, Hole *holes, int n) {
    const Attention *s = &p->kernel->attention;
    holes[n++] = (Hole){ "FIRST", "b0, b1, b2, m", s->first ? "first_key(b0, b1, b2, m)" : "0" };
    holes[n++] = (Hole){ "LAST", "b0, b1, b2, m",
        s->last ? "last_key(b0, b1, b2, m)" : arena_printf(p->arena, "%s - 1", keys_text(p)) };
    holes[n++] = (Hole){ "SCORE", "acc, b0, b1, b2, m, n", "score_of(acc, b0, b1, b2, m, n)" };
    holes[n++] = (Hole){ "FINISH", "acc, b0, b1, b2, m, d", "finish(acc, b0, b1, b2, m, d)" };
    print_functions(p, body);
    return n;
}

static void take_groups(const Kernel *k, int64_t queries, Shader *out) {
    const Attention *s = &k->attention;
    out->points = s->batch[0] * s->batch[1] * s->batch[2] * s->m * s->d;
    out->groups[0] = (uint32_t)ceil_div(s->m, queries);
    out->groups[1] = (uint32_t)(s->batch[1] * s->batch[2]);
    out->groups[2] = (uint32_t)s->batch[0];
}

static const char *eight_text(Printing *p, int which) {
    Value *v = p->kernel->operand[which];
    return arena_printf(p->arena, "%s[(%s + %s) / 8]", glsl_wide(p, v, WIDE_U16X8), glsl_origin(p, v),
        index_text(p->arena, p->kernel, which));
}

// On matrix units.
static void units(Printing *p, Shader *out) {
    enum { MAX_HOLES = 32 };
    const Kernel *k = p->kernel;
    const Attention *s = &k->attention;
    Arena *a = p->arena;
    out->matrices = strcmp(p->options->precision, "f16") ? DT_BF16 : DT_F16;
    p->converts = out->matrices == DT_F16;
    const struct { const char *name; int64_t value; } numbers[] = { { "BATCH1", s->batch[1] },
        { "BATCH2", s->batch[2] }, { "M", s->m }, { "N", s->n }, { "DK", s->k }, { "DV", s->d },
        { "TILES", s->units.tiles }, { "SUBGROUPS", s->units.subgroups }, { "BN", s->units.keys },
        { "EMPTY", s->empty }, { "MASKED", s->first || s->last } };
    Hole holes[MAX_HOLES];
    int n = 0;
    Text body;
    text_init(&body, a);
    for (size_t i = 0; i < COUNT(numbers); i++)
        holes[n++] = (Hole){ numbers[i].name, NULL, number_text(a, numbers[i].value) };
    for (int i = 0; i < 3; i++) {
        const bool wide = layout_element(p->layout, k->operand[i]) == out->matrices
            && in_vectors(p, i, i == 2 ? s->d : s->k, 8);
        holes[n++] = (Hole){ arena_printf(a, "%s_WIDE", names[i]), NULL, wide ? "1" : "0" };
        holes[n++] = (Hole){ names[i], coordinates[i],
            wide ? "0u" : glsl_bits_text(p, out->matrices, element_text(p, i)) };
        holes[n++] = (Hole){ arena_printf(a, "%s8", names[i]), coordinates[i], wide ? eight_text(p, i) : "uvec4(0u)" };
    }
    n = print_common(p, &body, holes, n);
    glsl_fill_units(p, &body, "glsl/attention_mma.comp", n, holes);
    glsl_shader(p, GLSL_MATRICES "#extension GL_KHR_shader_subgroup_shuffle : require\n", "", body.at, out);
    take_groups(k, (int64_t)16 * s->units.tiles * s->units.subgroups, out);
}

// ---------------------------------------------------------------- few queries
// NAME4(b0, b1, b2, n, k): where rows are no whole vectors, by a function that reads as many elements as there are.
static const char *four_or_less(Printing *p, Text *body, int which) {
    const int64_t length = which == 2 ? p->kernel->attention.d : p->kernel->attention.k;
    const char *const column = which == 2 ? "d" : "k";
    if (in_vectors(p, which, length, 4)) return four_text(p, which);
    text_printf(body,
        "vec4 %s_four(const int b0, const int b1, const int b2, const int %s, const int first) {\n"
        "    vec4 x = vec4(0.0);\n    for (int i = 0; i < 4; i++) {\n        const int %s = first + i;\n"
        "        if (%s < %lld) x[i] = %s;\n    }\n    return x;\n}\n\n",
        names[which], which ? "n" : "m", column, column, (long long)length, element_text(p, which));
    return arena_printf(p->arena, "%s_four(%s)", names[which], coordinates[which]);
}

static bool few_queries(Printing *p, Shader *out) {
    enum { MAX_HOLES = 40 };
    const Kernel *k = p->kernel;
    const Attention *s = &k->attention;
    const AttentionRows *r = &s->few;
    Arena *a = p->arena;
    const struct { const char *name; int64_t value; } numbers[] = { { "BATCH1", s->batch[1] },
        { "BATCH2", s->batch[2] }, { "TOGETHER", r->together }, { "HEADS", r->rows / s->m }, { "M", s->m },
        { "DK", s->k }, { "DV", s->d }, { "THREADS", r->threads }, { "COLUMNS", r->columns },
        { "SHARES", r->shares }, { "EACH_SHARE", r->each_share }, { "EMPTY", s->empty },
        { "MASKED", s->first || s->last } };
    Hole holes[MAX_HOLES];
    int n = 0;
    Text body;
    text_init(&body, a);
    for (size_t i = 0; i < COUNT(numbers); i++)
        holes[n++] = (Hole){ numbers[i].name, NULL, number_text(a, numbers[i].value) };
    for (int i = 0; i < 3; i++)
        holes[n++] = (Hole){ arena_printf(a, "%s4", names[i]), coordinates[i], four_or_less(p, &body, i) };
    holes[n++] = (Hole){ "N", NULL, keys_text(p) };
    holes[n++] = (Hole){ "PART", "i", "parts[parts_at + (i)]" };
    holes[n++] = (Hole){ "COUNT", "i", "counts[counts_at + (i)]" };
    n = print_common(p, &body, holes, n);
    template_fill(a, &body, "glsl/attention_rows.comp", n, holes);
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n", glsl_share_memory(p), body.at, out);
    out->points = s->batch[0] * s->batch[1] * s->batch[2] * s->m * s->d;
    out->size = 1;
    out->all_groups = true;
    out->groups[0] = (uint32_t)r->shares;
    out->groups[2] = (uint32_t)(r->together ? s->batch[0] : 1);
    out->groups[1] = (uint32_t)(r->blocks / out->groups[2]);
    return true;
}

bool glsl_attention(Printing *p, Shader *out) {
    enum { MAX_HOLES = 40 };
    const Kernel *k = p->kernel;
    const Attention *s = &k->attention;
    Arena *a = p->arena;
    Hole holes[MAX_HOLES];
    int n = 0;
    Text body;
    if (s->few.rows) return few_queries(p, out);
    Printing other = *p;
    if (s->units.tiles) units(&other, out->instead = NEW(a, Shader));
    text_init(&body, a);
    for (int i = 0; i < k->holes.n; i++)
        holes[n++] = (Hole){ k->holes.at[i].name, NULL, number_text(a, k->holes.at[i].value) };
    for (int i = 0; i < 3; i++) {
        const bool fours = in_vectors(p, i, i == 2 ? s->d : s->k, 4);
        holes[n++] = (Hole){ arena_printf(a, "%s_WIDE", names[i]), NULL, fours ? "1" : "0" };
        holes[n++] = (Hole){ names[i], coordinates[i], fours ? "0.0" : element_text(p, i) };
        holes[n++] = (Hole){ arena_printf(a, "%s4", names[i]), coordinates[i], fours ? four_text(p, i) : "vec4(0.0)" };
    }
    n = print_common(p, &body, holes, n);
    template_fill(a, &body, "glsl/attention.comp", n, holes);
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n", "", body.at, out);
    take_groups(k, template_hole_value(k, "BM"), out);
    return true;
}
