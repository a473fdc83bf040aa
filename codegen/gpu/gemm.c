// SPDX-License-Identifier: MIT OR Apache-2.0
// A product as a compute shader: its template (templates/glsl/gemm.comp) with the holes that the schedule has chosen,
// operands in their views, and the rest of the kernel as the function that each element of the result goes through.
#include "glsl.h"

#include "schedule/cpu/templates.h"

#include <string.h>

enum { VECTOR = 16 };                                   // bytes of four floats

// Element `index` of an operand's factor as text, and four from element 4 * `index` on; false: it begins at no
// multiple of four.
static bool operand_text(Printing *p, int which, const char **element, const char **four) {
    const Kernel *k = p->kernel;
    Value *v = k->operand[which];
    const Dim more = k->operand_at[which];
    const char *view, *at = glsl_locate(p, v, more ? arena_printf(p->arena, "%lld + (i)", (long long)more) : "(i)",
        false, &view);
    *element = arena_printf(p->arena, "%s[%s]", view, at);
    *four = arena_printf(p->arena, "%c_f32x4[%s / 4 + %lld + (i)]", view[0], glsl_origin(p, v), (long long)(more / 4));
    return layout_region(p->layout, v).at % VECTOR == 0;
}

// void finish(acc, i0, i1, i2): what becomes of the sum at that batch, row and column, and where it is stored
static void print_finish(Printing *p, Text *out) {
    const Dialect d = glsl_dialect(p);
    Text body;
    text_init(&body, p->arena);
    loops_print(p->arena, &body, p->kernel, &d, p->kernel->n_parallel, 1);
    text_printf(out, "void finish(const float acc, const int i0, const int i1, const int i2) {\n%s}\n\n", body.at);
}

static uint32_t blocks_of(const Kernel *k, const char *size, const char *block) {
    return (uint32_t)ceil_div(template_hole_value(k, size), template_hole_value(k, block));
}

bool glsl_gemm(Printing *p, Shader *out) {
    enum { MAX_HOLES = 32 };
    const Kernel *k = p->kernel;
    Hole holes[MAX_HOLES];
    int n = 0;
    const char *element[2], *four[2];
    Text body;
    text_init(&body, p->arena);
    for (int i = 0; i < k->holes.n; i++)
        holes[n++] = (Hole){ k->holes.at[i].name, NULL, number_text(p->arena, k->holes.at[i].value) };
    for (int i = 0; i < 2; i++) {
        const bool aligned = operand_text(p, i, &element[i], &four[i]);
        const char *wide = i ? "B_WIDE" : "A_WIDE";
        if (aligned && template_hole_value(k, wide)) p->wide[layout_region(p->layout, k->operand[i]).is_weight] = true;
        for (int j = 0; j < n && !aligned; j++)
            if (!strcmp(holes[j].name, wide)) holes[j].text = "0";
    }
    holes[n++] = (Hole){ "A_AT", "i", element[0] };
    holes[n++] = (Hole){ "B_AT", "i", element[1] };
    holes[n++] = (Hole){ "A4_AT", "i", four[0] };
    holes[n++] = (Hole){ "B4_AT", "i", four[1] };
    holes[n++] = (Hole){ "FINISH", "acc, b, m, n", "finish(acc, b, m, n)" };
    print_finish(p, &body);
    template_fill(p->arena, &body, "glsl/gemm.comp", n, holes);
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n", "", body.at, out);
    out->points = k->gemm.batch * k->gemm.m * k->gemm.n;
    out->groups[0] = blocks_of(k, "N", "BN");
    out->groups[1] = blocks_of(k, "M", "BM");
    out->groups[2] = (uint32_t)k->gemm.batch;
    return true;
}
