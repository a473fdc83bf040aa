// SPDX-License-Identifier: MIT OR Apache-2.0
// A product of factors of 16 bits as a compute shader for matrix units: templates/glsl/gemm_mma.comp, in place of
// gemm.c's where the device has them.
#include "glsl.h"

#include "schedule/gpu/matrix.h"

enum { VECTOR = 8 };                                    // elements that are read at once

static bool eights(Dim x) { return x % VECTOR == 0; }

// f16 or bf16, as the factors lie in memory; f32 inputs of the model become that on their way. 0: they are neither.
static DType matrix_element(const Printing *p) {
    DType to = 0;
    for (int i = 0; i < 2; i++) {
        const DType d = layout_element(p->layout, p->kernel->operand[i]);
        if (d != DT_F16 && d != DT_BF16 && (d != DT_F32 || !p->kernel->operand[i]->is_input)) return 0;
        if (d != DT_F32 && to && to != d) return 0;
        if (d != DT_F32) to = d;
    }
    return to;
}

// The bits of an operand's element `i` as matrices have it.
static const char *bits_text(Printing *p, int which, DType to) {
    Value *v = p->kernel->operand[which];
    const char *view, *at = glsl_locate(
        p, v, arena_printf(p->arena, "%lld + (i)", (long long)p->kernel->operand_at[which]), false, &view);
    const char *element = arena_printf(p->arena, "%s[%s]", view, at);
    if (layout_element(p->layout, v) != DT_F32) return arena_printf(p->arena, "uint(%s)", element);
    return arena_printf(p->arena, "burn_f32_to_%s%s(%s)", to == DT_F16 ? "near_" : "", dtype_name(to), element);
}

// Eight elements from element 8 * `i` on.
static const char *eight_text(Printing *p, int which) {
    Value *v = p->kernel->operand[which];
    return arena_printf(p->arena, "%s[%s / %d + %lld + (i)]", glsl_wide(p, v, WIDE_U16X8), glsl_origin(p, v), VECTOR,
        (long long)(p->kernel->operand_at[which] / VECTOR));
}

// Along which axis eight elements of an operand lie together: 1: along the one of stride `near` (the terms of the left
// factor, the columns of the right), 2: along the other; 0: along none.
static int wide_of(const Printing *p, int which, Dim near, Dim near_extent, Dim far, Dim far_extent, Dim batch) {
    Value *v = p->kernel->operand[which];
    if (layout_element(p->layout, v) == DT_F32 || layout_region(p->layout, v).at % (2 * VECTOR)
        || !eights(p->kernel->operand_at[which]) || !eights(batch))
        return 0;
    return near == 1 && eights(far) && eights(near_extent) ? 1 : far == 1 && eights(near) && eights(far_extent) ? 2 : 0;
}

bool glsl_matrix(Printing *p, Shader *out) {
    enum { MAX_HOLES = 32 };
    const Contraction *s = &p->kernel->gemm;
    const MatrixBlock *b = gpu_matrix_block(p->kernel);
    const int wide[2] = { wide_of(p, 0, s->a_col, s->k, s->a_row, s->m, s->a_batch),
        wide_of(p, 1, s->b_col, s->n, s->b_row, s->k, s->b_batch) };
    const struct { const char *name; Dim value; } numbers[] = { { "BATCH", s->batch }, { "M", s->m }, { "N", s->n },
        { "K", s->k }, { "AB", s->a_batch }, { "AR", s->a_row }, { "AC", s->a_col }, { "BB", s->b_batch },
        { "BR", s->b_row }, { "BC", s->b_col }, { "BM", b->bm }, { "BN", b->bn }, { "BK", b->bk }, { "WM", b->wm },
        { "WN", b->wn }, { "SLICES", b->slices }, { "BUFFERS", b->buffers }, { "A_WIDE", wide[0] },
        { "B_WIDE", wide[1] } };
    Hole holes[MAX_HOLES];
    int n = 0;
    Text body;
    out->matrices = matrix_element(p);
    if (!out->matrices) return false;
    text_init(&body, p->arena);
    for (size_t i = 0; i < COUNT(numbers); i++)
        holes[n++] = (Hole){ numbers[i].name, NULL, number_text(p->arena, numbers[i].value) };
    for (int i = 0; i < 2; i++) {
        holes[n++] = (Hole){ i ? "B_AT" : "A_AT", "i", bits_text(p, i, out->matrices) };
        holes[n++] = (Hole){ i ? "B8_AT" : "A8_AT", "i", wide[i] ? eight_text(p, i) : "uvec4(0u)" };
    }
    holes[n++] = (Hole){ "FINISH", "acc, b, m, n", "finish(acc, b, m, n)" };
    glsl_finish(p, &body);
    template_fill(p->arena, &body, "glsl/gemm_mma.comp", n, holes);
    glsl_shader(p,
        "#extension GL_KHR_memory_scope_semantics : require\n"
        "#extension GL_KHR_shader_subgroup_basic : require\n"
        "#extension GL_NV_cooperative_matrix : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"
        "#extension GL_EXT_control_flow_attributes : require\n",
        "", body.at, out);
    out->points = s->batch * s->m * s->n;
    out->groups[0] = (uint32_t)ceil_div(s->n, b->bn);
    out->groups[1] = (uint32_t)ceil_div(s->m, b->bm);
    out->groups[2] = (uint32_t)s->batch;
    return true;
}
