// SPDX-License-Identifier: MIT OR Apache-2.0
// Workspaces: random buffers never overlap while both are alive, lie close to the lower bound, and always at the same
// places; a set that no plain sequence places without a gap. Kernels: an order that needs less memory is found.
#include "build/build.h"
#include "../../codegen/codegen.h"
#include "../../compiler/schedule/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 120 };

static int64_t place(Buffer *at, int n, int64_t *bound) {
    Arena *a = arena_new();
    Buffer *all[MANY];
    for (int i = 0; i < n; i++) all[i] = &at[i];
    int64_t end = place_buffers(a, n, all, bound);
    arena_free(a);
    for (int i = 0; i < n; i++) {
        assert_true(at[i].offset >= 0 && at[i].offset % 64 == 0 && at[i].offset + at[i].bytes <= end);
        for (int j = 0; j < i; j++) {
            bool meet = at[i].first <= at[j].last && at[j].first <= at[i].last;
            bool apart = at[i].offset + at[i].bytes <= at[j].offset || at[j].offset + at[j].bytes <= at[i].offset;
            assert_true(!meet || apart || !at[i].bytes || !at[j].bytes);
        }
    }
    assert_true(end >= *bound);
    return end;
}

// A chain with short-lived scratch and values that live on for a while, as networks have them.
static void make(Buffer *at, unsigned seed) {
    for (int i = 0; i < MANY; i++) {
        seed = seed * 1664525 + 1013904223;
        int first = i / 2, length = i % 2 ? 0 : 1 + (int)(seed >> 28) / (i % 3 ? 8 : 1);
        at[i] = (Buffer){ .bytes = 1 + (seed >> 8) % 100000, .first = first, .last = first + length };
    }
}

static void random_sets(void **state) {
    Buffer at[MANY], again[MANY];
    int64_t bound;
    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++) {
        make(at, seed);
        make(again, seed);
        int64_t end = place(at, MANY, &bound);
        assert_true((double)end <= 1.05 * (double)bound);
        place(again, MANY, &bound);
        for (int i = 0; i < MANY; i++) assert_int_equal(at[i].offset, again[i].offset);
    }
}

static void few(void **state) {
    int64_t bound;
    (void)state;
    assert_int_equal(place(NULL, 0, &bound), 0);
    Buffer empty = { .bytes = 0, .first = 0, .last = 3 };
    assert_int_equal(place(&empty, 1, &bound), 0);
    // the large ones first leave 64 bytes in the middle, where 128 are wanted
    Buffer at[] = { { .bytes = 256, .first = 0, .last = 1 }, { .bytes = 64, .first = 1, .last = 2 },
        { .bytes = 192, .first = 2, .last = 3 }, { .bytes = 128, .first = 3, .last = 4 },
        { .bytes = 128, .first = 4, .last = 5 }, { .bytes = 64, .first = 2, .last = 5 },
        { .bytes = 128, .first = 5, .last = 6 } };
    int64_t end = place(at, COUNT(at), &bound);
    assert_int_equal(end, bound);
}

// Four branches that are wide in the middle, all of them begun before the first is ended.
static void branches(void **state) {
    enum { BRANCHES = 4, WIDE = 4096 };
    (void)state;
    Arena *a = arena_new();
    Options o = { .target = "generic", .quiet = true };
    assert_true(backend_target("generic", &o.machine));
    Graph *g = graph_new(a, "g", NULL);
    Value *x = graph_input(g, "x", type_make(DT_F32, 2, (Dim[]){ 64, 64 })), *wide[BRANCHES], *sum = NULL;
    for (int i = 0; i < BRANCHES; i++)
        wide[i] = b_matmul(g, x, graph_const(g, tensor_new(a, type_make(DT_F32, 2, (Dim[]){ 64, WIDE })), NULL));
    for (int i = 0; i < BRANCHES; i++) {
        Value *y = b_matmul(g, wide[i], graph_const(g, tensor_new(a, type_make(DT_F32, 2, (Dim[]){ WIDE, 8 })), NULL));
        sum = sum ? b_binary(g, OP_Add, sum, y) : y;
    }
    graph_output(g, sum, "sum");
    Plan *p = plan_make(g, &o);
    assert_non_null(p);
    assert_true(p->live_bytes < 2 * 64 * WIDE * 4);
    assert_true(p->saved_bytes > 2 * 64 * WIDE * 4);
    assert_int_equal(p->kernels.n, 2 * BRANCHES);
    for (int i = 0; i < p->kernels.n; i++)              // every value is written before it is read
        for (int j = 0; j < p->kernels.at[i]->reads.n; j++) {
            const Value *v = p->kernels.at[i]->reads.at[j];
            bool there = v->data || v->is_input;
            for (int k = 0; k < i; k++) there = there || p->kernels.at[k]->writes.at[0] == v;
            assert_true(there);
        }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_sets), cmocka_unit_test(few),
        cmocka_unit_test(branches) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
