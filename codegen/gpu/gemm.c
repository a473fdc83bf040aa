// SPDX-License-Identifier: MIT OR Apache-2.0
// A product as a compute shader: its template (templates/glsl/gemm.comp) with the holes that the schedule has chosen,
// operands in their views, and the rest of the kernel as the function that each element of the result goes through.
#include "glsl.h"

#include "schedule/cpu/templates.h"

#include <string.h>

// An operand's element as text.
static const char *element_text(Printing *p, int which, const char *i) {
    Value *v = p->kernel->operand[which];
    const Dim more = p->kernel->operand_at[which];
    if (more) i = arena_printf(p->arena, "%lld + (%s)", (long long)more, i);
    return glsl_load_text(p->arena, layout_element(p->layout, v), glsl_element(p, v, i, false));
}

// So many elements from a multiple of that on, which the operand's beginning is.
static const char *vector_text(Printing *p, int which, Wide wide, int n, const char *i) {
    Value *v = p->kernel->operand[which];
    return arena_printf(p->arena, "%s[%s / %d + %lld + (%s)]", glsl_wide(p, v, wide), glsl_origin(p, v), n,
        (long long)(p->kernel->operand_at[which] / n), i);
}

static const char *four_text(Printing *p, int which, const char *i) {
    const DType d = layout_element(p->layout, p->kernel->operand[which]);
    return d == DT_F32 ? vector_text(p, which, WIDE_F32X4, 4, i) :
                         arena_printf(p->arena, "burn_%sx4_to_f32(%s)", dtype_name(d),
                             vector_text(p, which, WIDE_U16X4, 4, i));
}

// Does the operand begin at a multiple of n elements?
static bool operand_aligned(const Printing *p, int which, int n) {
    Value *v = p->kernel->operand[which];
    return layout_region(p->layout, v).at % (n * (int64_t)dtype_size(layout_element(p->layout, v))) == 0;
}

void glsl_finish_holes(bool four, Hole *holes, int *n) {
    holes[(*n)++] = (Hole){ "C_WIDE", NULL, four ? "1" : "0" };
    holes[(*n)++] = (Hole){ "FINISH", "acc, b, m, n", four ? "" : "finish(acc, b, m, n)" };
    holes[(*n)++] = (Hole){ "FINISH4", "sums, b, m, n", four ? "finish4(sums, b, m, n)" : "" };
}

void glsl_finish(Printing *p, Text *out, bool fours, Hole *holes, int *n) {
    const Dialect d = glsl_dialect(p);
    const Lanes four = glsl_lanes_along(p, fours ? p->kernel->n_parallel - 1 : -1);
    Text body;
    text_init(&body, p->arena);
    glsl_finish_holes(four.n > 1, holes, n);
    if (four.n > 1) glsl_print_lanes(p, &four, &body);
    else loops_print(p->arena, &body, p->kernel, &d, p->kernel->n_parallel, 1);
    text_printf(out, "void %s) {\n%s}\n\n",
        four.n > 1 ? "finish4(const vec4 sums, const int i0, const int i1, const int first" :
                     "finish(const float acc, const int i0, const int i1, const int i2",
        body.at);
}

void glsl_blocks(const Kernel *k, Shader *out) {
    out->groups[0] = (uint32_t)ceil_div(template_hole_value(k, "N"), template_hole_value(k, "BN"));
    out->groups[1] = (uint32_t)ceil_div(template_hole_value(k, "M"), template_hole_value(k, "BM"));
}

int glsl_chosen(const Printing *p, Hole *holes) {
    const Kernel *k = p->kernel;
    for (int i = 0; i < k->holes.n; i++)
        holes[i] = (Hole){ k->holes.at[i].name, NULL, number_text(p->arena, k->holes.at[i].value) };
    return k->holes.n;
}

void glsl_refuse(int n, Hole *holes, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(holes[i].name, name)) holes[i].text = "0";
}

void glsl_gemm_factors(Printing *p, Text *out, Hole *holes, int *n) {
    const Contraction *s = &p->kernel->gemm;
    for (int i = 0; i < 2; i++) {
        const char *wide = i ? "B_WIDE" : "A_WIDE";
        const bool fours = template_hole_value(p->kernel, wide) && operand_aligned(p, i, 4);
        const long long batch = i ? s->b_batch : s->a_batch, own = i ? s->b_col : s->a_row,
                        terms = i ? s->b_row : s->a_col;
        const char *row = i ? "n" : "m";
        const char *at = arena_printf(p->arena, "(b) * %lld + (%s) * %lld + (k) * %lld", batch, row, own, terms);
        if (!fours) glsl_refuse(*n, holes, wide);
        holes[(*n)++] = (Hole){ i ? "B_OWN" : "A_OWN", NULL, "int" };
        holes[(*n)++] = (Hole){ i ? "B_OWN_AT" : "A_OWN_AT", i ? "b, n" : "b, m",
            arena_printf(p->arena, "((b) * %lld + (%s) * %lld)", batch, row, own) };
        holes[(*n)++] = (Hole){ i ? "B_AT" : "A_AT", "own, k",
            element_text(p, i, arena_printf(p->arena, "(own) + (k) * %lld", terms)) };
        holes[(*n)++] = (Hole){ i ? "B4_AT" : "A4_AT", i ? "b, k, n" : "b, m, k",
            fours ? four_text(p, i, arena_printf(p->arena, "(%s) / 4", at)) : "vec4(0.0)" };
        for (int j = 0; i && j < *n; j++)               // gemm.comp counts them the other way round
            if (!strcmp(holes[j].name, wide) && strcmp(holes[j].text, "0"))
                holes[j].text = s->b_row == 1 ? "1" : "2";
        holes[(*n)++] = (Hole){ i ? "B_RUNS" : "A_RUNS", NULL, (i ? s->b_row == 1 : s->a_row != 1) ? "1" : "0" };
    }
    glsl_finish(p, out, false, holes, n);
}

bool glsl_gemm(Printing *p, Shader *out) {
    enum { MAX_HOLES = 32 };
    const Kernel *k = p->kernel;
    Hole holes[MAX_HOLES];
    int n = glsl_chosen(p, holes);
    Text body;
    text_init(&body, p->arena);
    for (int i = 0; i < 2; i++) {
        const char *wide = i ? "B_WIDE" : "A_WIDE";
        const bool fours = template_hole_value(k, wide) && operand_aligned(p, i, 4);
        if (!fours) glsl_refuse(n, holes, wide);
        holes[n++] = (Hole){ i ? "B_AT" : "A_AT", "i", element_text(p, i, "(i)") };
        holes[n++] = (Hole){ i ? "B4_AT" : "A4_AT", "i", fours ? four_text(p, i, "i") : "vec4(0.0)" };
    }
    glsl_finish(p, &body, false, holes, &n);
    template_fill(p->arena, &body, "glsl/gemm.comp", n, holes);
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n", glsl_share_memory(p), body.at, out);
    out->points = k->gemm.batch * k->gemm.m * k->gemm.n;
    glsl_blocks(k, out);
    out->groups[2] = (uint32_t)k->gemm.batch;
    return true;
}
