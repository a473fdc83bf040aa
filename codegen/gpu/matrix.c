// SPDX-License-Identifier: MIT OR Apache-2.0
// A product of factors of 16 bits, or of bytes, as a compute shader for matrix units: templates/glsl/gemm_mma.comp, in
// place of gemm.c's or product.c's where the device has them.
#include "glsl.h"

#include "schedule/gpu/matrix.h"

#include <string.h>

enum { VECTOR = 8 };                                    // elements that are read at once

static bool eights(Dim x) { return x % VECTOR == 0; }

// Element `i` of an operand, as bits that matrices have.
static const char *bits_text(Printing *p, int which, DType to) {
    const Contraction *s = &p->kernel->gemm;
    Value *v = p->kernel->operand[which];
    const char *element = glsl_element(p, v, arena_printf(p->arena, "%lld + (own) + (k) * %lld",
        (long long)p->kernel->operand_at[which], (long long)(which ? s->b_row : s->a_col)), false);
    if (layout_element(p->layout, v) != DT_F32) return arena_printf(p->arena, "uint(%s)", element);
    return glsl_bits_text(p, to, element);
}

// How eight elements of an operand that lie together are read at once. along: 1: along the terms, 2: along its rows or
// columns, 0: they are not
typedef enum Reading { READ_WHOLE,                      // as matrices have them, from a multiple of eight on
                       READ_ANYWHERE,                   // the same from anywhere: parts of two vectors
                       READ_F32 } Reading;              // as floats, which are rounded on their way
typedef struct Eights { int along; Reading how; } Eights;

// near: from one term to the next, far: to the operand's next row or column
static Eights eights_of(const Printing *p, int which, DType to, Dim near, Dim terms, Dim far, Dim extent, Dim batch) {
    Value *v = p->kernel->operand[which];
    const DType element = layout_element(p->layout, v);
    const bool begins = layout_region(p->layout, v).at % (VECTOR * (int64_t)dtype_size(element)) == 0,
               whole = begins && eights(p->kernel->operand_at[which]) && eights(batch);
    const Reading how = element == DT_F32 ? READ_F32 : READ_WHOLE;
    const int along = near == 1 ? 1 : far == 1 ? 2 : 0;
    if (element != to && element != DT_F32) return (Eights){ 0 };
    if (whole && near == 1 && eights(far) && eights(terms)) return (Eights){ 1, how };
    if (whole && far == 1 && eights(near) && eights(extent)) return (Eights){ 2, how };
    return (Eights){ begins && element == to ? along : 0, READ_ANYWHERE };
}

// uvec4 A_eight(i, n): the bits of eight elements from the operand's element i on, and 0 for those behind the first n
static void print_anywhere(Printing *p, Text *out, int which) {
    Value *v = p->kernel->operand[which];
    const char *view = glsl_wide(p, v, WIDE_U16X8);
    text_printf(out,
        "uvec4 %c_eight(const int i, const int n) {\n"
        "    const int first = i / %d, behind = min(first + 1, %s / %d + %lld);\n"
        "    uvec4 x = %s[first], y = %s[behind];\n"
        "    if ((i & 4) != 0) { x = uvec4(x.zw, y.xy); y = y.zwzw; }\n"
        "    if ((i & 2) != 0) { x = uvec4(x.yzw, y.x); y = y.yzwx; }\n"
        "    if ((i & 1) != 0) x = x >> 16 | uvec4(x.yzw, y.x) << 16;\n"
        "    const ivec4 left = ivec4(n) - ivec4(0, 2, 4, 6);\n"
        "    return n >= %d ? x : mix(uvec4(0u), x & mix(uvec4(0xFFFFu), uvec4(~0u), greaterThan(left, ivec4(1))),\n"
        "        greaterThan(left, ivec4(0)));\n}\n\n",
        "AB"[which], VECTOR, glsl_origin(p, v), VECTOR,
        (long long)((layout_region(p->layout, v).bytes / 2 - 1) / VECTOR), view, view, VECTOR);
}

// uvec4 A_eight(i): the bits of eight floats from the operand's element i on
static void print_rounded(Printing *p, Text *out, int which, DType to) {
    const char *view = glsl_wide(p, p->kernel->operand[which], WIDE_F32X4);
    text_printf(out,
        "uvec4 %c_eight(const int i) {\n    const vec4 x = %s[i / 4], y = %s[i / 4 + 1];\n    return uvec4(",
        "AB"[which], view, view);
    for (int i = 0; i < VECTOR / 2; i++)
        text_printf(out, "%s%s | %s << 16", i ? ", " : "",
            glsl_bits_text(p, to, arena_printf(p->arena, "%c.%c", "xy"[i / 2], "xz"[i % 2])),
            glsl_bits_text(p, to, arena_printf(p->arena, "%c.%c", "xy"[i / 2], "yw"[i % 2])));
    text_printf(out, ");\n}\n\n");
}

// Element (own, k) of an operand and the seven behind it, by these functions or where they lie.
static const char *eight_text(Printing *p, Text *out, int which, DType to, Eights eights) {
    const Contraction *s = &p->kernel->gemm;
    Value *v = p->kernel->operand[which];
    const char *name = which ? "B_eight" : "A_eight";
    const long long at = p->kernel->operand_at[which], step = which ? s->b_row : s->a_col, terms = s->k;
    if (eights.how == READ_WHOLE)
        return arena_printf(p->arena, "%s[%s / %d + %lld + ((own) + (k) * %lld) / %d]", glsl_wide(p, v, WIDE_U16X8),
            glsl_origin(p, v), VECTOR, at / VECTOR, step, VECTOR);
    if (eights.how == READ_F32) print_rounded(p, out, which, to);
    else print_anywhere(p, out, which);
    const char *i = arena_printf(p->arena, "%s + %lld + (own) + (k) * %lld", glsl_origin(p, v), at, step);
    return eights.how == READ_F32  ? arena_printf(p->arena, "%s(%s)", name, i) :
           eights.along == 1       ? arena_printf(p->arena, "%s(%s, %lld - (k))", name, i, terms) :
                                     arena_printf(p->arena, "%s(%s, %d)", name, i, VECTOR);
}

// Of a matrix product: its operands where they lie.
static void operands(Printing *p, Text *out, DType to, int wide[2], bool runs[2], Hole *holes, int *n) {
    const Contraction *s = &p->kernel->gemm;
    const Eights eight[2] = { eights_of(p, 0, to, s->a_col, s->k, s->a_row, s->m, s->a_batch),
        eights_of(p, 1, to, s->b_row, s->k, s->b_col, s->n, s->b_batch) };
    runs[0] = s->a_row != 1;
    runs[1] = s->b_row == 1;
    for (int i = 0; i < 2; i++) {
        wide[i] = eight[i].along;
        holes[(*n)++] = (Hole){ i ? "B_OWN" : "A_OWN", NULL, "int" };
        holes[(*n)++] = (Hole){ i ? "B_OWN_AT" : "A_OWN_AT", i ? "b, n" : "b, m",
            arena_printf(p->arena, i ? "((b) * %lld + (n) * %lld)" : "((b) * %lld + (m) * %lld)",
                (long long)(i ? s->b_batch : s->a_batch), (long long)(i ? s->b_col : s->a_row)) };
        holes[(*n)++] = (Hole){ i ? "B_AT" : "A_AT", "own, k", wide[i] ? "0u" : bits_text(p, i, to) };
        holes[(*n)++] = (Hole){ i ? "B8_AT" : "A8_AT", "own, k",
            wide[i] ? eight_text(p, out, i, to, eight[i]) : "uvec4(0u)" };
    }
    glsl_finish(p, out, true, holes, n);
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
    const bool gemm = k->kind == KERNEL_GEMM, bytes = !gemm && k->product.bytes;
    const Dim batch = gemm ? s->batch : of[COORD_B].size, m = gemm ? s->m : of[COORD_M].size,
              n_columns = gemm ? s->n : of[COORD_N].size,
              terms = gemm ? s->k : bytes ? ceil_div(of[COORD_K].size, 2) : of[COORD_K].size;
    Hole holes[MAX_HOLES];
    int n = 0, wide[2];
    bool runs[2];
    Text body;
    out->matrices = bytes ? DT_I8 : strcmp(p->options->precision, "f16") ? DT_BF16 : DT_F16;
    p->converts = out->matrices == DT_F16;
    text_init(&body, p->arena);
    (gemm ? operands : factors)(p, &body, out->matrices, wide, runs, holes, &n);
    const struct { const char *name; Dim value; } numbers[] = { { "BATCH", batch }, { "M", m }, { "N", n_columns },
        { "K", terms }, { "BM", b->bm }, { "BN", b->bn }, { "BK", b->bk }, { "WM", b->wm }, { "WN", b->wn },
        { "SLICES", b->slices }, { "HALVES", b->halves },
        { "SHARES", u->shares }, { "A_WIDE", wide[0] }, { "B_WIDE", wide[1] },
        { "A_RUNS", runs[0] }, { "B_RUNS", runs[1] } };
    for (size_t i = 0; i < COUNT(numbers); i++)
        holes[n++] = (Hole){ numbers[i].name, NULL, number_text(p->arena, numbers[i].value) };
    holes[n++] = (Hole){ "FOUR", NULL, glsl_sums(k) };
    holes[n++] = (Hole){ "SUMS", "x", bytes ? "ivec4(x)" : "uintBitsToFloat(x)" };
    holes[n++] = (Hole){ "PART", "i", "parts[parts_at + (i)]" };
    holes[n++] = (Hole){ "COUNT", "i", "counts[counts_at + (i)]" };
    glsl_fill_units(p, &body, "glsl/gemm_mma.comp", n, holes);
    glsl_shader(p, bytes ? GLSL_MATRICES GLSL_BYTES : GLSL_MATRICES, glsl_share_memory(p), body.at, out);
    out->points = batch * m * n_columns;
    out->groups[0] = (uint32_t)ceil_div(n_columns, b->bn);
    out->groups[1] = (uint32_t)ceil_div(m, b->bm);
    out->groups[2] = (uint32_t)(batch * u->shares);
}
