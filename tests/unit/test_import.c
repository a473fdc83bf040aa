// SPDX-License-Identifier: MIT OR Apache-2.0
// The ONNX importer on small models that the test writes byte by byte, most of them hostile: truncated, mutated,
// nested without end, with dimensions that are negative or too large, with external data that points out of the
// model's folder, with functions that call themselves. Each must end in diagnostics and never in a crash.
#define _POSIX_C_SOURCE 200809L
#include "plan.h"
#include "import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

// ---------------------------------------------------------------- a writer of protobuf's wire format

typedef struct Bytes { uint8_t at[1 << 16]; size_t n; } Bytes;

static void put_varint(Bytes *b, uint64_t v) {
    for (; v > 127; v >>= 7) b->at[b->n++] = (uint8_t)(v | 128);
    b->at[b->n++] = (uint8_t)v;
}

static void put_int(Bytes *b, unsigned field, int64_t v) {
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)v);
}

static void put_bytes(Bytes *b, unsigned field, const void *p, size_t n) {
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    memcpy(b->at + b->n, p, n);
    b->n += n;
}

static void put_text(Bytes *b, unsigned field, const char *s) { put_bytes(b, field, s, strlen(s)); }
static void put_message(Bytes *b, unsigned field, const Bytes *m) { put_bytes(b, field, m->at, m->n); }

static Bytes *new_bytes(void) {
    Bytes *b = calloc(1, sizeof *b);
    assert_non_null(b);
    return b;
}

static void add(Bytes *to, unsigned field, Bytes *m) {
    put_message(to, field, m);
    free(m);
}

// name, f32 and dimensions, as in ValueInfoProto.
static Bytes *value_info(const char *name, int n_dims, const int64_t *dims) {
    Bytes *shape = new_bytes(), *tensor = new_bytes(), *type = new_bytes(), *info = new_bytes();
    for (int i = 0; i < n_dims; i++) {
        Bytes *dim = new_bytes();
        put_int(dim, 1, dims[i]);
        add(shape, 1, dim);
    }
    put_int(tensor, 1, DT_F32);
    add(tensor, 2, shape);
    add(type, 1, tensor);
    put_text(info, 1, name);
    add(info, 2, type);
    return info;
}

static Bytes *node(const char *op, const char *domain, const char *in0, const char *in1, const char *out) {
    Bytes *n = new_bytes();
    put_text(n, 1, in0);
    if (in1) put_text(n, 1, in1);
    put_text(n, 2, out);
    put_text(n, 4, op);
    if (*domain) put_text(n, 7, domain);
    return n;
}

static Bytes *model_of(Bytes *graph) {
    Bytes *m = new_bytes(), *opset = new_bytes();
    put_int(m, 1, 8);
    put_int(opset, 2, 17);
    add(m, 8, opset);
    add(m, 7, graph);
    return m;
}

// y = x + w with w = initializer of the given dimensions and raw bytes.
static Bytes *sum_graph(int n_dims, const int64_t *dims, size_t raw_size) {
    Bytes *graph = new_bytes(), *w = new_bytes();
    static const uint8_t raw[64];
    for (int i = 0; i < n_dims; i++) put_int(w, 1, dims[i]);
    put_int(w, 2, DT_F32);
    put_text(w, 8, "w");
    put_bytes(w, 9, raw, raw_size);
    add(graph, 1, node("Add", "", "x", "w", "y"));
    add(graph, 5, w);
    add(graph, 11, value_info("x", 1, (int64_t[]){ 3 }));
    add(graph, 12, value_info("y", 1, (int64_t[]){ 3 }));
    return graph;
}

// ---------------------------------------------------------------- running the importer

typedef struct Folder { char path[64], model[128]; } Folder;

static int make_folder(void **state) {
    Folder *f = calloc(1, sizeof *f);
    if (!f) return -1;
    strcpy(f->path, "/tmp/test_import_XXXXXX");
    if (!mkdtemp(f->path)) return -1;
    snprintf(f->model, sizeof f->model, "%s/model.onnx", f->path);
    *state = f;
    return 0;
}

static int remove_folder(void **state) {
    static const char *const names[] = { "model.onnx", "link", "weights", "pipe" };
    Folder *f = *state;
    char path[128];
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, names[i]);
        unlink(path);
    }
    rmdir(f->path);
    free(f);
    return 0;
}

static void write_file(const char *path, const void *p, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

// Imports the bytes. Returns whether there is a graph; text: the diagnostics, which must be there exactly if there is
// none.
static bool import_bytes(const Folder *f, const uint8_t *p, size_t n, char *text, size_t size) {
    Arena *a = arena_new();
    Text said;
    text_init(&said, a);
    write_file(f->model, p, n);
    diag_reset();
    diag_capture(&said);
    const Model *m = model_open(a, &(Options){ .model = f->model });
    Graph *g = m ? model_graph(a, m, NULL) : NULL;
    diag_capture(NULL);
    if (text) snprintf(text, size, "%s", said.at);
    assert_int_equal(g == NULL, diag_errors() > 0);
    diag_reset();
    arena_free(a);
    return g != NULL;
}

static void expect_error(const Folder *f, Bytes *model, const char *part) {
    char text[4096];
    bool ok = import_bytes(f, model->at, model->n, text, sizeof text);
    free(model);
    if (ok) fail_msg("imported, but expected \"%s\"", part);
    if (!strstr(text, part)) fail_msg("\"%s\" lacks \"%s\"", text, part);
}

static void test_sum(void **state) {
    char text[512];
    Bytes *m = model_of(sum_graph(1, (int64_t[]){ 3 }, 12));
    bool ok = import_bytes(*state, m->at, m->n, text, sizeof text);
    free(m);
    assert_true(ok);
    assert_string_equal(text, "");
}

static void test_truncated(void **state) {
    Bytes *m = model_of(sum_graph(1, (int64_t[]){ 3 }, 12));
    for (size_t n = 0; n < m->n; n++) import_bytes(*state, m->at, n, NULL, 0);
    free(m);
}

// Every byte replaced by a few others; nothing to check but that it ends in order.
static void test_mutated(void **state) {
    Bytes *m = model_of(sum_graph(1, (int64_t[]){ 3 }, 12));
    static const uint8_t others[] = { 0x00, 0x7f, 0x80, 0xff, 0x0a };
    for (size_t i = 0; i < m->n; i++) {
        uint8_t was = m->at[i];
        for (size_t j = 0; j < COUNT(others) + 8; j++) {
            m->at[i] = (uint8_t)(j < COUNT(others) ? others[j] : was ^ 1u << (j - COUNT(others)));
            import_bytes(*state, m->at, m->n, NULL, 0);
        }
        m->at[i] = was;
    }
    free(m);
}

// A graph in an attribute of a node of a graph ...
static void test_nested(void **state) {
    Bytes *graph = sum_graph(1, (int64_t[]){ 3 }, 12);
    for (int i = 0; i < 200; i++) {
        Bytes *attr = new_bytes(), *n = node("If", "", "x", NULL, "y"), *outer = new_bytes();
        put_text(attr, 1, "then_branch");
        add(attr, 6, graph);
        put_int(attr, 20, 5);
        add(n, 5, attr);
        add(outer, 1, n);
        graph = outer;
    }
    expect_error(*state, model_of(graph), "nested more than");
}

static void test_dimensions(void **state) {
    expect_error(*state, model_of(sum_graph(1, (int64_t[]){ -3 }, 12)), "negative");
    expect_error(
        *state, model_of(sum_graph(2, (int64_t[]){ INT64_C(1) << 40, INT64_C(1) << 40 }, 12)), "too large");
    expect_error(*state, model_of(sum_graph(1, (int64_t[]){ INT64_C(1) << 36 }, 12)), "holds 12 bytes");
    expect_error(*state, model_of(sum_graph(1, (int64_t[]){ 4 }, 12)), "holds 12 bytes");
    expect_error(*state, model_of(sum_graph(9, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1, 1, 3 }, 12)), "9 dimensions");
    expect_error(*state, model_of(sum_graph(2, (int64_t[]){ INT64_MAX, 0 }, 0)), "too large");
    Bytes *graph = new_bytes();
    add(graph, 11, value_info("x", 1, (int64_t[]){ -2 }));
    add(graph, 12, value_info("x", 1, (int64_t[]){ -2 }));
    expect_error(*state, model_of(graph), "negative");
}

// The same sum with w outside the file.
static Bytes *external_model(const char *location, const char *offset, const char *length) {
    Bytes *graph = new_bytes(), *w = new_bytes();
    const char *pairs[3][2] = { { "location", location }, { "offset", offset }, { "length", length } };
    put_int(w, 1, 3);
    put_int(w, 2, DT_F32);
    put_text(w, 8, "w");
    for (int i = 0; i < 3; i++) {
        if (!pairs[i][1]) continue;
        Bytes *e = new_bytes();
        put_text(e, 1, pairs[i][0]);
        put_text(e, 2, pairs[i][1]);
        add(w, 13, e);
    }
    put_int(w, 14, 1);
    add(graph, 1, node("Add", "", "x", "w", "y"));
    add(graph, 5, w);
    add(graph, 11, value_info("x", 1, (int64_t[]){ 3 }));
    add(graph, 12, value_info("y", 1, (int64_t[]){ 3 }));
    return model_of(graph);
}

static void test_external(void **state) {
    const Folder *f = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/weights", f->path);
    write_file(path, "0123456789abcdef", 16);
    Bytes *good = external_model("weights", "4", "12");
    bool ok = import_bytes(f, good->at, good->n, NULL, 0);
    free(good);
    assert_true(ok);
    expect_error(f, external_model("weights", "5", "12"), "do not lie in external data");
    expect_error(f, external_model("weights", "99999999999999999999", "12"), "is not a number");
    expect_error(f, external_model("weights", "-4", "12"), "is not a number");
    expect_error(f, external_model("weights", "0", "8"), "holds 8 bytes");
    expect_error(f, external_model("/etc/passwd", NULL, NULL), "leaves the model's folder");
    expect_error(f, external_model("../weights", NULL, NULL), "leaves the model's folder");
    expect_error(f, external_model("weights/../../weights", NULL, NULL), "");
    expect_error(f, external_model("", NULL, NULL), "leaves the model's folder");
    expect_error(f, external_model(NULL, NULL, NULL), "names no file");
    expect_error(f, external_model(".", NULL, NULL), "not a regular file");
    expect_error(f, external_model("missing", NULL, NULL), "cannot open");
    snprintf(path, sizeof path, "%s/link", f->path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    expect_error(f, external_model("link", NULL, NULL), "leaves the model's folder");
    expect_error(f, external_model("link/passwd", NULL, NULL), "");
    snprintf(path, sizeof path, "%s/pipe", f->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_error(f, external_model("pipe", NULL, NULL), "not a regular file");
}

// A function of domain "f": one node that uses `op` of `domain`.
static Bytes *function(const char *name, const char *op, const char *domain) {
    Bytes *f = new_bytes(), *opset = new_bytes();
    put_text(f, 1, name);
    put_text(f, 4, "a");
    put_text(f, 5, "b");
    put_text(f, 10, "f");
    add(f, 7, node(op, domain, "a", NULL, "b"));
    put_text(opset, 1, "");
    put_int(opset, 2, 17);
    add(f, 9, opset);
    return f;
}

static Bytes *call_model(const char *op) {
    Bytes *graph = new_bytes(), *opset = new_bytes();
    add(graph, 1, node(op, "f", "x", NULL, "y"));
    add(graph, 11, value_info("x", 1, (int64_t[]){ 3 }));
    add(graph, 12, value_info("y", 1, (int64_t[]){ 3 }));
    Bytes *m = model_of(graph);
    put_text(opset, 1, "f");
    put_int(opset, 2, 1);
    add(m, 8, opset);
    return m;
}

static void test_functions(void **state) {
    Bytes *m = call_model("G");
    add(m, 25, function("G", "Relu", ""));
    bool ok = import_bytes(*state, m->at, m->n, NULL, 0);
    free(m);
    assert_true(ok);
    m = call_model("G");
    add(m, 25, function("G", "H", "f"));
    add(m, 25, function("H", "G", "f"));
    expect_error(*state, m, "calls itself");
    m = call_model("G");
    expect_error(*state, m, "operator G of \"f\" is not supported");
}

// Independent mistakes are all reported, and what depends on them is not.
static void test_all_at_once(void **state) {
    char text[4096];
    Bytes *graph = new_bytes();
    add(graph, 1, node("Wrong", "", "x", NULL, "a"));
    add(graph, 1, node("Relu", "", "a", NULL, "b"));
    add(graph, 1, node("Relu", "", "later", NULL, "c"));
    add(graph, 1, node("Relu", "", "nowhere", NULL, "later"));
    add(graph, 1, node("Relu", "elsewhere", "x", NULL, "d"));
    add(graph, 1, node("Relu", "", "x", NULL, "d"));
    add(graph, 11, value_info("x", 1, (int64_t[]){ 3 }));
    add(graph, 12, value_info("b", 1, (int64_t[]){ 3 }));
    Bytes *m = model_of(graph);
    assert_false(import_bytes(*state, m->at, m->n, text, sizeof text));
    free(m);
    assert_non_null(strstr(text, "operator Wrong"));
    assert_non_null(strstr(text, "\"later\" is made by a later node"));
    assert_non_null(strstr(text, "\"nowhere\" is defined nowhere"));
    assert_non_null(strstr(text, "\"elsewhere\" is not imported"));
    assert_non_null(strstr(text, "\"d\" is defined twice"));
    assert_null(strstr(text, "node 1 "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sum, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_truncated, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_mutated, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_nested, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_dimensions, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_external, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_functions, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_all_at_once, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
