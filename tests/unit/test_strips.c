// SPDX-License-Identifier: MIT OR Apache-2.0
// Strips: random chains of convolutions and products are cut so that every pixel is computed once in each part, after
// all that it reads, which is still in the buffer between them; the parts make up the whole; buffers are no longer
// than they say. What does not gain stays whole.
#include "build/build.h"
#include "../../codegen/codegen.h"
#include "../../compiler/schedule/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned state;
static int64_t draw(int64_t low, int64_t high) {
    state = state * 1664525 + 1013904223;
    return low + (state >> 8) % (high - low + 1);
}

static Value *weights(Graph *g, int rank, const Dim *dims) {
    return graph_const(g, tensor_new(g->arena, type_make(DT_F32, rank, dims)), NULL);
}

static Value *conv(Graph *g, Value *x, int64_t out, int64_t group) {
    int64_t in = x->type.dim[3], rows = draw(1, 5), step = draw(1, 2), apart = draw(1, 2), pad = draw(0, rows - 1);
    Node *n = graph_node(g, OP_Conv, 2, (Value *[]){ x, weights(g, 4, (Dim[]){ out, in / group, rows, 3 }) }, 1);
    node_set_ints(n, "strides", (int64_t[]){ step, 1 }, 2);
    node_set_ints(n, "dilations", (int64_t[]){ apart, 1 }, 2);
    node_set_ints(n, "pads", (int64_t[]){ pad, 1, draw(0, 2), 1 }, 4);
    node_set_int(n, "group", group);
    node_set_int(n, "channels_last", 1);
    assert_true(node_infer(n));
    return n->out[0];
}

static Graph *chain(Arena *a) {
    Graph *g = graph_new(a, "g", NULL);
    Value *x = graph_input(g, "x", type_make(DT_F32, 4, (Dim[]){ draw(1, 3), draw(24, 40), draw(16, 24), 24 }));
    for (int64_t i = draw(2, 5); i > 0; i--) {
        int64_t in = x->type.dim[3], out = draw(1, 4) * 16;
        int kind = (int)draw(0, 3);
        x = kind == 0 ? conv(g, x, out, 1) :
            kind == 1 ? conv(g, x, in, in) :
                        b_matmul(g, x, weights(g, 2, (Dim[]){ in, out }));
    }
    graph_output(g, x, "y");
    return g;
}

typedef struct Seen { const int64_t *was, *now; int n; } Seen;
static int64_t base(const Seen *s, int m) { return s->now[s->n + m]; }

static void check_reads(const Kernel *k, const Seen *s, int m) {
    const Convolution *c = &k->conv;
    for (int64_t at = s->was[m]; at < s->now[m]; at++) {
        if (k->kind == KERNEL_GEMM) {
            assert_true(at >= base(s, m - 1) && at < s->now[m - 1]);
            continue;
        }
        int64_t row = at / c->out[2], image = row / c->out[1];
        for (int64_t tap = 0; tap < c->kernel[1]; tap++) {
            int64_t in = row % c->out[1] * c->stride[1] - c->pad[1] + tap * c->dilation[1];
            if (in < 0 || in >= c->in[1]) continue;
            assert_true((image * c->in[1] + in) * c->in[2] >= base(s, m - 1));
            assert_true((image * c->in[1] + in + 1) * c->in[2] <= s->now[m - 1]);
        }
    }
}

static int64_t pixels(const Kernel *k) {
    return k->kind == KERNEL_GEMM ? k->gemm.m : k->conv.batch * k->conv.out[1] * k->conv.out[2];
}

static void check_tiles(const Kernel *k, int64_t at) {
    int64_t mr = 1;
    for (int i = 0; i < k->holes.n; i++)
        if (!strcmp(k->holes.at[i].name, "MR")) mr = k->holes.at[i].value;
    if (k->kind != KERNEL_GEMM) assert_int_equal(at % k->conv.out[2], 0);
    else assert_true(at == pixels(k) || (at % mr == 0 && at % ((mr + 1) / 2) == 0));
}

static void check(const Strips *s) {
    int width = 2 * s->n - 1;
    int64_t done = 0;
    assert_int_equal(s->line.n, s->part[s->parts] * width);
    for (int part = 0; part < s->parts; part++) {
        const int64_t *first = s->line.at + s->part[part] * width;
        assert_int_equal(first[s->n - 1], done);
        for (int m = 0; m + 1 < s->n; m++) assert_int_equal(first[m], first[s->n + m]);         // nothing is there yet
        for (int i = s->part[part] + 1; i < s->part[part + 1]; i++) {
            Seen t = { s->line.at + (i - 1) * width, s->line.at + i * width, s->n };
            for (int m = 0; m < s->n; m++) {
                assert_true(t.was[m] <= t.now[m]);
                check_tiles(s->member[m], t.was[m]);
                check_tiles(s->member[m], t.now[m]);
                if (m) check_reads(s->member[m], &t, m);
                if (m + 1 == s->n) continue;
                assert_true(t.was[s->n + m] <= base(&t, m) && base(&t, m) <= t.was[m]);
                assert_true((t.now[m] - base(&t, m)) * s->width[m] <= s->elements[m]);
            }
        }
        done = s->line.at[(s->part[part + 1] - 1) * width + s->n - 1];
    }
    assert_int_equal(done, pixels(s->member[s->n - 1]));
}

static void chains(void **unused) {
    static const char *const targets[] = { "generic", "x86-64-v4", "portable" };
    int groups = 0, longest = 0, parts = 0;
    (void)unused;
    for (unsigned seed = 1; seed <= 150; seed++) {
        Arena *a = arena_new();
        Options o = { .target = targets[seed % 3], .quiet = true, .threads = seed % 2 ? 1 : (int)(seed / 2 % 5) + 1 };
        assert_true(backend_target(o.target, &o.machine));
        o.machine.l2 = (size_t)16384 << seed % 3;
        state = seed;
        Plan *p = plan_make(chain(a), &o);
        assert_non_null(p);
        for (int i = 0; i < p->kernels.n; i++) {
            const Strips *s = p->kernels.at[i]->strips;
            if (!s || s->member[0] != p->kernels.at[i]) continue;
            check(s);
            for (int m = 0; m < s->n; m++) assert_ptr_equal(p->kernels.at[i + m], s->member[m]);
            groups++;
            longest = s->n > longest ? s->n : longest;
            parts = s->parts > parts ? s->parts : parts;
        }
        arena_free(a);
    }
    assert_true(groups > 50 && longest > 2 && parts > 2);
}

// 56x56 pixels through 144 channels, 1.8 MB: the workspace is the ends and what the second cache has room for. Of 7x7
// pixels nothing is gained.
static void memory(void **unused) {
    (void)unused;
    for (int small = 0; small < 2; small++) {
        Arena *a = arena_new();
        Options o = { .target = "generic", .quiet = true };
        Dim size = small ? 7 : 56;
        assert_true(backend_target("generic", &o.machine));
        Graph *g = graph_new(a, "g", NULL);
        Value *x = graph_input(g, "x", type_make(DT_F32, 4, (Dim[]){ 1, size, size, 24 }));
        state = 1;
        Value *wide = b_matmul(g, x, weights(g, 2, (Dim[]){ 24, 144 }));
        graph_output(g, b_matmul(g, conv(g, wide, 144, 144), weights(g, 2, (Dim[]){ 144, 24 })), "y");
        Plan *p = plan_make(g, &o);
        assert_non_null(p);
        assert_int_equal(p->kernels.n, 3);
        assert_int_equal(p->kernels.at[0]->strips != NULL, !small);
        if (!small) assert_true(p->work_bytes < 512 << 10);
        if (!small) assert_int_equal(p->work_bytes, p->live_bytes);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(chains), cmocka_unit_test(memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
