// SPDX-License-Identifier: MIT OR Apache-2.0
// A product of factors of 16 bits as a compute shader for matrix units: templates/glsl/gemm_mma.comp, in place of
// gemm.c's or product.c's where the device has them.
#include "glsl.h"

#include "schedule/gpu/matrix.h"

#include <string.h>

enum { VECTOR = 8 };                                    // elements that are read at once

static bool eights(Dim x) { return x % VECTOR == 0; }

// Element `i` of an operand, as bits that matrices have.
static const char *bits_text(Printing *p, int which, DType to) {
    const Contraction *s = &p->kernel->gemm;
    Value *v = p->kernel->operand[which];
    const char *view, *at = glsl_locate(p, v,
        arena_printf(p->arena, "%lld + (own) + (k) * %lld", (long long)p->kernel->operand_at[which],
            (long long)(which ? s->b_row : s->a_col)), false, &view);
    const char *element = arena_printf(p->arena, "%s[%s]", view, at);
    if (layout_element(p->layout, v) != DT_F32) return arena_printf(p->arena, "uint(%s)", element);
    return glsl_bits_text(p, to, element);
}

static const char *eight_text(Printing *p, int which) {
    const Contraction *s = &p->kernel->gemm;
    Value *v = p->kernel->operand[which];
    return arena_printf(p->arena, "%s[%s / %d + %lld + ((own) + (k) * %lld) / %d]", glsl_wide(p, v, WIDE_U16X8),
        glsl_origin(p, v), VECTOR, (long long)(p->kernel->operand_at[which] / VECTOR),
        (long long)(which ? s->b_row : s->a_col), VECTOR);
}

// Along which axis eight elements of an operand lie together: 1: along the terms, which are `near` apart, 2: along its
// rows or columns, `far` apart; 0: along none.
static int wide_of(const Printing *p, int which, DType to, Dim near, Dim terms, Dim far, Dim extent, Dim batch) {
    Value *v = p->kernel->operand[which];
    if (layout_element(p->layout, v) != to || layout_region(p->layout, v).at % (2 * VECTOR)
        || !eights(p->kernel->operand_at[which]) || !eights(batch))
        return 0;
    return near == 1 && eights(far) && eights(terms) ? 1 : far == 1 && eights(near) && eights(extent) ? 2 : 0;
}

// Of a matrix product: its operands where they lie.
static void operands(Printing *p, Text *out, DType to, int wide[2], bool runs[2], Hole *holes, int *n) {
    const Contraction *s = &p->kernel->gemm;
    wide[0] = wide_of(p, 0, to, s->a_col, s->k, s->a_row, s->m, s->a_batch);
    wide[1] = wide_of(p, 1, to, s->b_row, s->k, s->b_col, s->n, s->b_batch);
    runs[0] = s->a_row != 1;
    runs[1] = s->b_row == 1;
    for (int i = 0; i < 2; i++) {
        holes[(*n)++] = (Hole){ i ? "B_OWN" : "A_OWN", NULL, "int" };
        holes[(*n)++] = (Hole){ i ? "B_OWN_AT" : "A_OWN_AT", i ? "b, n" : "b, m",
            arena_printf(p->arena, i ? "((b) * %lld + (n) * %lld)" : "((b) * %lld + (m) * %lld)",
                (long long)(i ? s->b_batch : s->a_batch), (long long)(i ? s->b_col : s->a_row)) };
        holes[(*n)++] = (Hole){ i ? "B_AT" : "A_AT", "own, k", wide[i] ? "0u" : bits_text(p, i, to) };
        holes[(*n)++] = (Hole){ i ? "B8_AT" : "A8_AT", "own, k", wide[i] ? eight_text(p, i) : "uvec4(0u)" };
    }
    glsl_finish(p, out);
}

// Of one found in a loop nest.
static void factors(Printing *p, Text *out, DType to, int wide[2], bool runs[2], Hole *holes, int *n) {
    bool eight[2];
    Text of_them;
    text_init(&of_them, p->arena);
    glsl_product_units(p, &of_them, to, eight, holes, n);
    for (int i = 0; i < 2; i++)                         // an address outside is never touched
        if (p->wide[i][WIDE_U16X8])
            text_printf(out,
                "uvec4 %c_u16x8_if(const bool guard, const int i) {\n    uvec4 x = uvec4(0u);\n"
                "    if (guard) x = %c_u16x8[i];\n    return x;\n}\n\n", "aw"[i], "aw"[i]);
    text_printf(out, "%s", of_them.at);
    for (int i = 0; i < 2; i++) {
        wide[i] = eight[i] ? p->kernel->units.wide[i] : 0;
        runs[i] = p->kernel->units.runs[i];
    }
}

void glsl_matrix(Printing *p, Shader *out) {
    enum { MAX_HOLES = 48 };
    const Kernel *k = p->kernel;
    const Contraction *s = &k->gemm;
    const Coordinate *of = k->product.of;
    const Units *u = &k->units;
    const MatrixBlock *b = u->block;
    const bool gemm = k->kind == KERNEL_GEMM;
    const Dim batch = gemm ? s->batch : of[COORD_B].size, m = gemm ? s->m : of[COORD_M].size,
              n_columns = gemm ? s->n : of[COORD_N].size, terms = gemm ? s->k : of[COORD_K].size;
    Hole holes[MAX_HOLES];
    int n = 0, wide[2];
    bool runs[2];
    Text body;
    out->matrices = strcmp(p->options->precision, "f16") ? DT_BF16 : DT_F16;
    text_init(&body, p->arena);
    (gemm ? operands : factors)(p, &body, out->matrices, wide, runs, holes, &n);
    const struct { const char *name; Dim value; } numbers[] = { { "BATCH", batch }, { "M", m }, { "N", n_columns },
        { "K", terms }, { "BM", b->bm }, { "BN", b->bn }, { "BK", b->bk }, { "WM", b->wm }, { "WN", b->wn },
        { "SLICES", b->slices }, { "SHARES", u->shares }, { "BUFFERS", b->buffers }, { "AHEAD", b->ahead },
        { "A_WIDE", wide[0] }, { "B_WIDE", wide[1] }, { "A_RUNS", runs[0] }, { "B_RUNS", runs[1] } };
    for (size_t i = 0; i < COUNT(numbers); i++)
        holes[n++] = (Hole){ numbers[i].name, NULL, number_text(p->arena, numbers[i].value) };
    holes[n++] = (Hole){ "PART", "i", "parts[parts_at + (i)]" };
    holes[n++] = (Hole){ "COUNT", "i", "counts[counts_at + (i)]" };
    holes[n++] = (Hole){ "FINISH", "acc, b, m, n", "finish(acc, b, m, n)" };
    template_fill(p->arena, &body, "glsl/gemm_mma.comp", n, holes);
    glsl_shader(p, GLSL_MATRICES, glsl_share_memory(p), body.at, out);
    out->points = batch * m * n_columns;
    out->groups[0] = (uint32_t)ceil_div(n_columns, b->bn);
    out->groups[1] = (uint32_t)ceil_div(m, b->bm);
    out->groups[2] = (uint32_t)(batch * u->shares);
}
