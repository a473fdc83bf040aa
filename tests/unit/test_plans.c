// SPDX-License-Identifier: MIT OR Apache-2.0
// One graph, several plans: what is written for a machine does not depend on the plans that were made of the graph
// before, for other machines or with other options. Planning leaves nothing in the graph.
#define _POSIX_C_SOURCE 200809L
#include "../../codegen/codegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

// Pieces of concatenations, a value under two names, an output that is an input, an epilogue, reductions.
static const char straight[] =
    "graph g(%0 x: f32[1,16,16,8], %1 s: f32[1,1,1,8]) {\n"
    "  %2 = const f32[16,8,3,3] fill 0.25\n"
    "  %3 = Conv(%0, %2) {strides=[1,1], dilations=[1,1], pads=[1,1,1,1], group=1, channels_last=1}\n"
    "  %4 = Relu(%3)\n"
    "  %5 = Mul(%0, %1)\n"
    "  %6 = Concat(%4, %5) {axis=3}\n"
    "  %7 = Concat(%6, %0) {axis=3}\n"
    "  %8 = Reshape(%7) {shape=[256,32]}\n"
    "  %9 = const f32[32,48] fill 0.5\n"
    "  %10 = MatMul(%8, %9)\n"
    "  %11 = Exp(%10)\n"
    "  %12 = ReduceSum(%11) {axes=[1], keepdims=1}\n"
    "  %13 = Div(%11, %12)\n"
    "  return %13, %6, %1\n"
    "}\n";

// The body has a plan of its own, in the workspace of the other.
static const char loop[] =
    "graph g(%0 x: f32[64,64]) {\n"
    "  %1 = const i64[] {3}\n"
    "  %2 = const f32[64,64] fill 0.125\n"
    "  %3, %4 = Loop(%1, _, %0)\n"
    "    body step(%5 i: i64[], %6 c: bool[], %7 a: f32[64,64]) {\n"
    "      %8 = MatMul(%7, %2)\n"
    "      %9 = Add(%8, %0)\n"
    "      %10 = const bool[] {1}\n"
    "      %11 = ReduceMax(%9) {axes=[1], keepdims=0}\n"
    "      return %10, %9, %11\n"
    "    }\n"
    "  return %3, %4\n"
    "}\n";

static char folder[] = "/tmp/burncc-plans-XXXXXX";

static void append_file(Arena *a, Text *out, const char *path) {
    char part[4096];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) text_append(out, arena_strndup(a, part, n), n);
    fclose(f);
    unlink(path);
}

typedef struct Machine { const char *target; int threads; } Machine;

// The plan and what the back end makes of it, as one text.
static const char *write_for(Graph *g, const Machine *m) {
    Arena *a = g->arena;
    Options *o = NEW(a, Options);
    Text out;
    *o = (Options){ .model = "g.txt",
        .target = m->target,
        .threads = m->threads,
        .quiet = true,
        .embed_limit = 1 << 20 };
    assert_true(backend_target(m->target, &o->machine));
    o->output = arena_printf(a, "%s/g%s", folder, o->machine.backend->extension);
    Plan *p = plan_make(g, o);
    assert_non_null(p);
    text_init(&out, a);
    plan_print(p, &out);
    const Backend *b = o->machine.backend;
    if (b->dump) {
        assert_true(b->dump(a, o, p, &out));
        return out.at;
    }
    Program program = { .name = "g_run", .name_of_workspace = "g", .prefix = "g", .plan = p, .descriptor = true };
    assert_true(b->write(a, o, "g", 1, &program, NULL));
    append_file(a, &out, o->output);
    if (b->source) append_file(a, &out, arena_printf(a, "%s/g.h", folder));
    return out.at;
}

static void check(const char *text, const Machine *all, int n) {
    Arena *a = arena_new();
    Graph *shared = graph_parse(a, text, "shared");
    assert_non_null(shared);
    for (int i = 0; i < 2 * n; i++) {                   // each machine twice
        Graph *own = graph_parse(a, text, "own");
        const char *want = write_for(own, &all[i % n]);
        assert_string_equal(write_for(shared, &all[i % n]), want);
    }
    arena_free(a);
}

static void machines(void **unused) {
    (void)unused;
    check(straight,
        (Machine[]){ { "generic", 1 }, { "vulkan", 1 }, { "generic", 4 }, { "portable", 1 }, { "plan", 1 } }, 5);
}

static void bodies(void **unused) {
    (void)unused;
    check(loop, (Machine[]){ { "generic", 1 }, { "portable", 4 }, { "x86-64-v3", 1 }, { "plan", 1 } }, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(machines), cmocka_unit_test(bodies) };
    if (!mkdtemp(folder)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
