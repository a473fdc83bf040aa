// SPDX-License-Identifier: MIT OR Apache-2.0
//
// compiler/schedule/gpu/blocks.c: every device runs the blocks of its table. The templates, filled with each row, are
// compiled; the module itself says how much memory a workgroup shares, and how many threads it has. What records may
// choose beside the table keeps to the same bounds.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../compiler/plan.h"
#include "schedule/gpu/matrix.h"
#include "codegen/gpu/spirv.h"

#ifdef HAVE_GLSLANG

// of devices for Vulkan 1.2 that are about, and of those with matrix units; of burncc
enum { LEAST_SHARED = 32768, UNITS_SHARED = 49152, MOST_THREADS = 256 };

// The template with another number for that hole.
static char *with_hole(const char *text, const char *name, int64_t value) {
    char line[40], made[60];
    snprintf(line, sizeof line, "#define %s ", name);
    snprintf(made, sizeof made, "#define %s %lld", name, (long long)value);
    const char *at = strstr(text, line);
    assert_non_null(at);
    const size_t tail = strcspn(at, "\n"), before = (size_t)(at - text);
    char *out = malloc(strlen(text) + sizeof made);
    assert_non_null(out);
    memcpy(out, text, before);
    snprintf(out + before, strlen(text) + sizeof made - before, "%s%s", made, at + tail);
    return out;
}

// As codegen/gpu/glsl.c begins a shader.
static char *with_head(const char *text) {
    static const char head[] = "#version 450\n#extension GL_EXT_control_flow_attributes : require\n";
    const char *rest = strstr(text, "#version 450\n") + strlen("#version 450\n");
    char *out = malloc(sizeof head + strlen(rest));
    assert_non_null(out);
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head - 1, rest, strlen(rest) + 1);
    return out;
}

// The template with what it includes.
static char *with_included(const char *text) {
    static const char directive[] = "#extension GL_GOOGLE_include_directive : require\n#include \"units.glsl\"\n";
    const char *at = strstr(text, directive), *units = template_text("glsl/units.glsl");
    assert_true(at && units);
    const size_t room = strlen(text) + strlen(units) + 1;
    char *out = malloc(room);
    assert_non_null(out);
    snprintf(out, room, "%.*s%s%s", (int)(at - text), text, units, at + strlen(directive));
    return out;
}

// The instruction that makes this id: opcodes of types and constants alone.
static const uint32_t *maker(const SpirvModule *m, uint32_t id) {
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        const uint32_t op = m->words[i] & 0xFFFF;
        if (op >= 20 && op <= 32 && m->words[i + 1] == id) return m->words + i;
        if (op == 43 && m->words[i + 2] == id) return m->words + i;
    }
    fail_msg("id %u is nothing's", id);
    return NULL;
}

static int64_t shared_size(const SpirvModule *m, uint32_t id) {
    const uint32_t *at = maker(m, id);
    switch (at[0] & 0xFFFF) {
    case 20: return 4;                                  // OpTypeBool
    case 21:
    case 22: return at[2] / 8;                          // OpTypeInt, OpTypeFloat
    case 23: return at[3] * shared_size(m, at[2]);        // OpTypeVector
    case 28: return maker(m, at[3])[3] * shared_size(m, at[2]);       // OpTypeArray
    default: fail_msg("opcode %u is no type of shared memory", at[0] & 0xFFFF);
    }
    return 0;
}

static int64_t shared_bytes(const SpirvModule *m) {
    const uint32_t variable = 59, workgroup = 4;
    int64_t bytes = 0;
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16)
        if ((m->words[i] & 0xFFFF) == variable && m->words[i + 3] == workgroup)
            bytes += shared_size(m, maker(m, m->words[i + 1])[3]);
    return bytes;
}

static int64_t threads_of(const SpirvModule *m) {
    const uint32_t execution_mode = 16, local_size = 17;
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16)
        if ((m->words[i] & 0xFFFF) == execution_mode && m->words[i + 2] == local_size)
            return (int64_t)m->words[i + 3] * m->words[i + 4] * m->words[i + 5];
    return 0;
}

static void check(const char *file, const Block *b, int64_t shares) {
    const struct { const char *name; int64_t value; } holes[] = { { "BM", b->bm }, { "BN", b->bn }, { "BK", b->bk },
        { "TM", b->tm }, { "TN", b->tn }, { "SLICES", b->slices }, { "SHARES", shares }, { "STAGES", b->stages } };
    SpirvModule m;
    char *text = with_head(template_text(file));
    for (size_t i = 0; i < (shares ? COUNT(holes) : COUNT(holes) - 2); i++) {
        char *next = with_hole(text, holes[i].name, holes[i].value);
        free(text);
        text = next;
    }
    if (!spirv_compile(text, file, &m)) fail_msg("%s", m.log);
    const int64_t shared = shared_bytes(&m);
    print_message("%s %dx%dx%d by %dx%d, %d slices, %lld shares: %lld bytes\n", file, b->bm, b->bn, b->bk, b->tm, b->tn,
        b->slices, (long long)shares, (long long)shared);
    assert_true(shared > 0 && shared <= LEAST_SHARED);
    assert_true(threads_of(&m) > 0 && threads_of(&m) <= MOST_THREADS);
    spirv_free(&m);
    free(text);
}

static void test_tables(void **state) {
    (void)state;
    const ProductShape large = { 1, 4096, 4096, 4096, 0, 0 };
    for (const Block *b = gpu_blocks; b < gpu_blocks + BLOCKS; b++) {
        const BlockShares cut = { *b, 4 };
        assert_true(gpu_block_fits(&large, b) && gpu_shares_fit(&large, &cut));
        check("glsl/gemm.comp", b, 0);
        check("glsl/product.comp", b, 1);
        check("glsl/product.comp", b, 4);
    }
}

// Blocks of matrix units, of factors whose vectors run along the terms and across them.
static void test_units(void **state) {
    (void)state;
    for (const MatrixBlock *b = gpu_matrix_blocks; b < gpu_matrix_blocks + MATRIX_BLOCKS; b++)
        for (int wide = 1; wide <= 2; wide++) {
            const struct { const char *name; int64_t value; } holes[] = { { "BM", b->bm }, { "BN", b->bn },
                { "BK", b->bk }, { "WM", b->wm }, { "WN", b->wn }, { "SLICES", b->slices },
                { "A_WIDE", wide }, { "B_WIDE", wide } };
            SpirvModule m;
            char *whole = with_included(template_text("glsl/gemm_mma.comp"));
            char *text = with_hole(whole, "SHARES", wide);
            free(whole);
            for (size_t i = 0; i < COUNT(holes); i++) {
                char *next = with_hole(text, holes[i].name, holes[i].value);
                free(text);
                text = next;
            }
            if (!spirv_compile(strstr(text, "#version"), "gemm_mma.comp", &m)) fail_msg("%s", m.log);
            const int64_t shared = shared_bytes(&m);
            print_message("%dx%dx%d of %dx%d, %d slices: %lld bytes\n", b->bm, b->bn, b->bk, b->wm, b->wn, b->slices,
                (long long)shared);
            assert_true(shared > 0 && shared <= UNITS_SHARED);
            assert_true(threads_of(&m) > 0 && threads_of(&m) <= MOST_THREADS);
            spirv_free(&m);
            free(text);
        }
}

// The largest that the bounds let through, of both templates, and the next one that they do not.
static void test_bounds(void **state) {
    (void)state;
    const ProductShape large = { 1, 4096, 4096, 4096, 0, 0 };
    int64_t fitting = 0, refused = 0;
    for (int bm = 32; bm <= 256; bm *= 2)
        for (int bk = 8; bk <= 64; bk *= 2)
            for (int slices = 1; slices <= 4; slices *= 2) {
                const BlockShares one = { { bm, 64, bk, 8, 8, slices, 1, 0 }, 2 };
                if (gpu_shares_fit(&large, &one) != gpu_block_fits(&large, &one.block)) fail_msg("they differ");
                if (!gpu_block_fits(&large, &one.block)) {
                    refused++;
                    continue;
                }
                fitting++;
                check("glsl/gemm.comp", &one.block, 0);
                check("glsl/product.comp", &one.block, one.shares);
            }
    assert_true(fitting > 4 && refused > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tables), cmocka_unit_test(test_units),
        cmocka_unit_test(test_bounds) };
    return cmocka_run_group_tests_name("gpu_blocks", tests, NULL, NULL);
}

#else

int main(void) {
    print_message("1..0 # SKIP built without glslang\n");
    return 0;
}

#endif
