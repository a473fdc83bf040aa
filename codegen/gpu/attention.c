// SPDX-License-Identifier: MIT OR Apache-2.0
// Attention as a compute shader: its template (templates/glsl/attention.comp) with the holes that the schedule has
// chosen, operands in their views, and the score, the keys that a query sees and what is stored as functions.
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
    const char *view, *at = glsl_locate(p, v, index_text(p->arena, p->kernel, which), false, &view);
    return glsl_load_text(p->arena, layout_element(p->layout, v), arena_printf(p->arena, "%s[%s]", view, at));
}

static const char *four_text(Printing *p, int which) {
    Value *v = p->kernel->operand[which];
    const DType d = layout_element(p->layout, v);
    const char *view = glsl_wide(p, v, d == DT_F32 ? WIDE_F32X4 : WIDE_U16X4),
               *four = arena_printf(p->arena, "%s[(%s + %s) / 4]", view, glsl_origin(p, v),
                   index_text(p->arena, p->kernel, which));
    return d == DT_F32 ? four : arena_printf(p->arena, "burn_%sx4_to_f32(%s)", dtype_name(d), four);
}

// Do rows of this length lie in whole vectors of four, from where the operand begins?
static bool in_fours(const Printing *p, int which, int64_t length) {
    const Kernel *k = p->kernel;
    Value *v = k->operand[which];
    bool fours = k->attention.of[which].col == 1 && k->attention.of[which].row % 4 == 0 && length % 4 == 0
        && k->operand_at[which] % 4 == 0
        && layout_region(p->layout, v).at % (4 * (int64_t)dtype_size(layout_element(p->layout, v))) == 0;
    for (int i = 0; i < 3; i++) fours = fours && k->attention.of[which].batch[i] % 4 == 0;
    return fours;
}

static void give_back(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    (void)ctx;
    (void)s;
    (void)index;
    text_printf(out, "return %s;", value);
}

// Of 64 bits: a key, or what stands before the first or behind the last.
static void give_key(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const Printing *p = ctx;
    (void)s;
    (void)index;
    text_printf(out, "return int(clamp(%s, int64_t(-1), int64_t(%lld)));", value, (long long)p->kernel->attention.n);
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

bool glsl_attention(Printing *p, Shader *out) {
    enum { MAX_HOLES = 40 };
    static const char *const names[3] = { "QUERY", "KEY", "VALUE" };
    const Kernel *k = p->kernel;
    const Attention *s = &k->attention;
    Arena *a = p->arena;
    Hole holes[MAX_HOLES];
    int n = 0;
    Text body;
    text_init(&body, a);
    for (int i = 0; i < k->holes.n; i++)
        holes[n++] = (Hole){ k->holes.at[i].name, NULL, number_text(a, k->holes.at[i].value) };
    for (int i = 0; i < 3; i++) {
        const bool fours = in_fours(p, i, i == 2 ? s->d : s->k);
        holes[n++] = (Hole){ arena_printf(a, "%s_WIDE", names[i]), NULL, fours ? "1" : "0" };
        holes[n++] = (Hole){ names[i], coordinates[i], fours ? "0.0" : element_text(p, i) };
        holes[n++] = (Hole){ arena_printf(a, "%s4", names[i]), coordinates[i], fours ? four_text(p, i) : "vec4(0.0)" };
    }
    holes[n++] = (Hole){ "FIRST", "b0, b1, b2, m", s->first ? "first_key(b0, b1, b2, m)" : "0" };
    holes[n++] = (Hole){ "LAST", "b0, b1, b2, m", s->last ? "last_key(b0, b1, b2, m)" : number_text(a, s->n - 1) };
    holes[n++] = (Hole){ "SCORE", "acc, b0, b1, b2, m, n", "score_of(acc, b0, b1, b2, m, n)" };
    holes[n++] = (Hole){ "FINISH", "acc, b0, b1, b2, m, d", "finish(acc, b0, b1, b2, m, d)" };
    print_functions(p, &body);
    template_fill(a, &body, "glsl/attention.comp", n, holes);
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n", "", body.at, out);
    out->points = s->batch[0] * s->batch[1] * s->batch[2] * s->m * s->d;
    out->groups[0] = (uint32_t)ceil_div(s->m, template_hole_value(k, "BM"));
    out->groups[1] = (uint32_t)(s->batch[1] * s->batch[2]);
    out->groups[2] = (uint32_t)s->batch[0];
    return true;
}
