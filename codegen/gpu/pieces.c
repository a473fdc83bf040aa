// SPDX-License-Identifier: MIT OR Apache-2.0
// A product of f32 as a compute shader for matrix units: templates/glsl/gemm_pieces.comp, in place of gemm.c's or
// product.c's where the device has them.
#include "glsl.h"

#include "schedule/cpu/templates.h"
#include "schedule/gpu/matrix.h"

void glsl_pieces(Printing *p, Shader *out) {
    enum { MAX_HOLES = 48 };
    static const char *const same[] = { "BATCH", "M", "N", "K", "A_WIDE", "B_WIDE" };
    const Kernel *k = p->kernel;
    const MatrixBlock *b = k->units.block;
    const bool gemm = k->kind == KERNEL_GEMM;
    const struct { const char *name; int64_t value; } numbers[] = { { "BM", b->bm }, { "BN", b->bn }, { "BK", b->bk },
        { "WM", b->wm }, { "WN", b->wn }, { "SHARES", k->units.shares }, { "BUFFERS", 1 } };
    Hole holes[MAX_HOLES];
    int n = 0;
    Text body;
    text_init(&body, p->arena);
    out->matrices = DT_BF16;
    for (size_t i = 0; i < COUNT(same); i++)
        holes[n++] = (Hole){ same[i], NULL, number_text(p->arena, template_hole_value(k, same[i])) };
    for (size_t i = 0; i < COUNT(numbers); i++)
        holes[n++] = (Hole){ numbers[i].name, NULL, number_text(p->arena, numbers[i].value) };
    if (!gemm)
        for (int i = 0; i < 2; i++)
            holes[n++] = (Hole){ i ? "B_RUNS" : "A_RUNS", NULL, k->units.runs[i] ? "1" : "0" };
    (gemm ? glsl_gemm_factors : glsl_product_factors)(p, &body, holes, &n);
    if (gemm) {
        holes[n++] = (Hole){ "PART", "i", "parts[parts_at + (i)]" };
        holes[n++] = (Hole){ "COUNT", "i", "counts[counts_at + (i)]" };
    }
    glsl_fill_units(p, &body, "glsl/gemm_pieces.comp", n, holes);
    glsl_shader(p, GLSL_MATRICES, glsl_share_memory(p), body.at, out);
    out->points = template_hole_value(k, "BATCH") * template_hole_value(k, "M") * template_hole_value(k, "N");
    out->groups[0] = (uint32_t)ceil_div(template_hole_value(k, "N"), b->bn);
    out->groups[1] = (uint32_t)ceil_div(template_hole_value(k, "M"), b->bm);
    out->groups[2] = (uint32_t)(template_hole_value(k, "BATCH") * k->units.shares);
}
