// SPDX-License-Identifier: MIT OR Apache-2.0
// compiler/base: arenas align and zero, text and maps grow, diagnostics have their exact form, files appear whole or
// not at all.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "build/build.h"
#include "plan.h"

static void test_release(void **state) {
    (void)state;
    Arena *a = arena_new(), *other = arena_new();
    char *small = arena_alloc(a, 1000), *x = arena_alloc(a, 1 << 16), *y = arena_alloc(a, 1 << 20),
         *z = arena_alloc(a, 1 << 17);
    assert_false(arena_release(a, small));
    assert_false(arena_release(other, y));
    assert_false(arena_release(a, y + 64));
    assert_true(arena_release(a, y));
    assert_true(arena_release(a, x));
    memset(z, 1, 1 << 17);
    memset(small, 1, 1000);
    arena_free(a);
    arena_free(other);
    for (int n = 0; n < 600; n++) {             // one of them fills the first chunk, and an empty block comes behind
        Arena *full = arena_new();
        char *first = arena_alloc(full, 16);
        for (int i = 0; i < n; i++) arena_alloc(full, 16);
        arena_alloc(full, 0);
        assert_false(arena_release(full, first));
        arena_free(full);
    }
}

// A constant goes when no node and no output has it, nor bytes of it.
static void test_release_constants(void **state) {
    (void)state;
    Arena *a = arena_new();
    Graph *g = graph_new(a, "g", NULL);
    Type t = type_make(DT_F32, 1, (Dim[]){ 1 << 20 });
    Value *whole = graph_const(g, tensor_new(a, t), NULL), *gone = graph_const(g, tensor_new(a, t), NULL),
          *used = graph_const(g, tensor_new(a, t), NULL);
    Tensor *piece = NEW(a, Tensor);
    *piece = (Tensor){ type_make(DT_F32, 1, (Dim[]){ 4 }), (float *)whole->data->data + 100 };
    graph_output(g, b_unary(g, OP_Neg, used), "y");
    graph_output(g, graph_const(g, piece, NULL), "z");
    assert_int_equal(g->large.n, 3);
    graph_release(g);
    assert_int_equal(g->large.n, 2);
    for (int i = 0; i < 2; i++) assert_ptr_not_equal(g->large.at[i], gone->data);
    assert_true(graph_clone(g, "h") != NULL);
    g->outputs.n = 0;
    graph_release(g);
    assert_int_equal(g->large.n, 2);
    arena_free(a);
}

// Another shape takes no bytes of its own, and what both share goes once.
static void test_shared_constants(void **state) {
    (void)state;
    Arena *a = arena_new();
    Graph *g = graph_new(a, "g", NULL);
    Value *flat = graph_const(g, tensor_new(a, type_make(DT_F32, 1, (Dim[]){ 1 << 20 })), NULL);
    Value *square = b_reshape(g, flat, 2, (Dim[]){ 1 << 10, 1 << 10 });
    Tensor *t = value_const(square);
    assert_non_null(t);
    assert_ptr_equal(t->data, flat->data->data);
    assert_int_equal(t->type.rank, 2);
    graph_output(g, graph_const(g, t, NULL), "y");
    graph_remove(g, square->def);
    graph_release(g);
    ((float *)t->data)[(1 << 20) - 1] = 1;              // an output has it
    g->outputs.n = 0;
    graph_release(g);
    assert_int_equal(g->large.n, 0);
    arena_free(a);
}

static void test_arena(void **state) {
    (void)state;
    Arena *a = arena_new();
    size_t total = 0;
    for (size_t n = 0; n < 3000; n += 7) {
        unsigned char *p = arena_alloc(a, n * n);
        total += n * n;
        assert_int_equal((uintptr_t)p % (n * n >= 64 ? 64 : 16), 0);
        if (n) assert_int_equal(p[0] | p[n * n / 2] | p[n * n - 1], 0);
        memset(p, 0xff, n * n);
    }
    assert_int_equal(arena_bytes(a), total);
    assert_string_equal(arena_printf(a, "%s-%d", "x", 12), "x-12");
    assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
    VEC(int) v = { 0 };
    for (int i = 0; i < 1000; i++) VEC_PUSH(a, v, i * i);
    assert_int_equal(v.n, 1000);
    assert_int_equal(v.at[999], 999 * 999);
    arena_free(a);
}

static void test_text_and_map(void **state) {
    (void)state;
    Arena *a = arena_new();
    Text t;
    text_init(&t, a);
    for (int i = 0; i < 500; i++) text_printf(&t, "%d,", i % 10);
    text_append(&t, "end", 3);
    assert_int_equal(t.n, 1003);
    assert_string_equal(t.at + 996, "8,9,end");
    StrMap *m = strmap_new(a);
    assert_null(strmap_get(m, "k1"));
    for (int i = 0; i < 1000; i++) strmap_put(m, arena_printf(a, "k%d", i), arena_printf(a, "v%d", i));
    strmap_put(m, "k7", arena_printf(a, "new"));
    assert_string_equal(strmap_get(m, "k7"), "new");
    assert_string_equal(strmap_get(m, "k999"), "v999");
    assert_null(strmap_get(m, "k1000"));
    arena_free(a);
}

// Chunks that small blocks fill to the last byte are no block's own.
static void test_release_filled(void **state) {
    (void)state;
    Arena *a = arena_new();
    enum { BLOCKS = 1 << 14 };
    void **all = arena_alloc(a, BLOCKS * sizeof *all);
    for (int i = 0; i < BLOCKS; i++) all[i] = arena_alloc(a, 64);
    for (int i = 0; i < BLOCKS; i++) assert_false(arena_release(a, all[i]));
    assert_true(arena_release(a, arena_alloc(a, (size_t)1 << 24)));
    arena_free(a);
}

static void test_diagnostics(void **state) {
    (void)state;
    Arena *a = arena_new();
    Text t;
    text_init(&t, a);
    diag_reset();
    diag_capture(&t);
    diag_error(&(Loc){ .file = "resnet.onnx", .node = 17, .name = "layer1/conv1", .op = "Conv" },
        "weight wants %d input channels, input has %d", 64, 32);
    diag_warn(WARN_ir_version, &(Loc){ .file = "m.onnx", .node = -1 }, "old opset");
    diag_note(&(Loc){ .node = 3, .op = "Relu" }, "made here");
    diag_error_as(EXIT_LIMIT, &(Loc){ .file = "m.onnx", .node = -1, .name = "a\nb\033[0m" }, "too large");
    diag_error(&(Loc){ .file = "net.txt", .line = 4, .column = 8, .node = -1, .op = "Add" }, "shapes");
    diag_error(NULL, "no place");
    diag_capture(NULL);
    assert_string_equal(t.at,
        "resnet.onnx: node 17 \"layer1/conv1\" (Conv): error: weight wants 64 input channels, input has 32\n"
        "m.onnx: warning: old opset (--silence ir-version)\n"
        "node 3 (Relu): note: made here\n"
        "m.onnx: \"a?b?[0m\": error: too large\n"
        "net.txt:4:8: (Add): error: shapes\n"
        "burncc: error: no place\n");
    assert_int_equal(diag_errors(), 4);
    assert_int_equal(diag_status(), EXIT_INVALID);
    assert_memory_equal(diag_first(), "resnet.onnx: node 17", 20);
    diag_reset();
    assert_int_equal(diag_errors() + diag_status(), 0);
    arena_free(a);
}

static void test_files(void **state) {
    (void)state;
    Arena *a = arena_new();
    char folder[] = "/tmp/burncc_test_XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *path = arena_printf(a, "%s/out.c", folder);
    File f;
    Text t;
    text_init(&t, a);
    diag_reset();
    diag_capture(&t);

    OutFile *o = out_open(a, path);
    assert_non_null(o);
    for (int i = 0; i < 50000; i++) assert_true(out_write(o, "abcd", 4));
    assert_int_equal(access(path, F_OK), -1);           // not before it is whole
    char *much = arena_alloc(a, 300000);
    memset(much, 'm', 300000);
    assert_true(out_write(o, much, 300000));            // past the buffer
    assert_true(out_write(o, "end", 3));
    assert_true(out_can_rewrite(o) && out_rewrite(o, 4, "ABCD", 4));
    assert_true(out_write(o, "!", 1));
    assert_true(out_commit(o));
    assert_true(file_map(&f, path));
    assert_int_equal(f.size, 500004);
    assert_memory_equal(f.data, "abcdABCDabcd", 12);
    assert_memory_equal(f.data + 199996, "abcdm", 5);
    assert_memory_equal(f.data + 499999, "mend!", 5);
    file_unmap(&f);

    o = out_open(a, path);                              // abandoned: the old file stays, the temporary goes
    assert_true(out_write(o, "x", 1));
    out_abandon(o);
    assert_true(file_map(&f, path));
    assert_int_equal(f.size, 500004);
    file_unmap(&f);
    assert_int_equal(diag_errors(), 0);

    if (access("/dev/full", W_OK) == 0) {               // written directly, and the error is seen
        o = out_open(a, "/dev/full");
        out_write(o, "x", 1);
        assert_false(out_commit(o));
        assert_int_equal(diag_status(), EXIT_IO);
        struct stat st;
        assert_int_equal(stat("/dev/full", &st), 0);
        assert_true(S_ISCHR(st.st_mode));
    }
    assert_false(file_map(&f, arena_printf(a, "%s/absent", folder)));
    assert_false(file_map(&f, folder));
    assert_null(out_open(a, arena_printf(a, "%s/no/such/folder", folder)));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);                 // nothing else was left in it
    diag_capture(NULL);
    diag_reset();
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_release_constants),
        cmocka_unit_test(test_shared_constants),
        cmocka_unit_test(test_text_and_map),
        cmocka_unit_test(test_release_filled),
        cmocka_unit_test(test_diagnostics),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
