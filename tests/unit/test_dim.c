// SPDX-License-Identifier: MIT OR Apache-2.0
// compiler/ir/dim.c: equal expressions get equal numbers, texts read back, bounds hold; and what value_const does and
// leaves alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "build/build.h"
#include "plan.h"

static Dim parse(Graph *g, const char *text) {
    const char *at = text;
    Dim d = dim_parse(g, &at);
    assert_string_equal(at, "");
    return d;
}

static void test_equal(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        { "2*(n+1)-2", "n+n" },
        { "(n+1)*(n-1)", "n*n-1" },
        { "n-n", "0" },
        { "n*m", "m*n" },
        { "(6*n)/3", "2*n" },
        { "(4*n+2)/2", "2*n+1" },
        { "(n+7)/2", "3+(n+1)/2" },
        { "((n+1)/2+1)/2", "(n+3)/4" },
        { "(n*m)/m", "n" },
        { "(3*n*h*w)/(h*w)", "3*n" },
        { "(n-1)/1+1", "n" },
        { "n/n", "1" },
        { "(6*n+3*m)/9", "(2*n+m)/3" },
        { "(n*m*k)/(4*n*m)", "k/4" },
        { "(n*m+k*m)/(n+k)", "m" },
        { "(n*n-1)/(n+1)", "n-1" },
        { "(2*n-3)/2", "n-2+1/2" },
        { "7/2", "3" },
        { "(0-7)/2", "-4" },
        { "(n+5-3)/2+1", "n/2+2" },
        { "(n-9223372036854775806)/5", "(n+4)/5-1844674407370955162" },
        { "'odd name'*2", "'odd name'+'odd name'" },
    };
    Arena *a = arena_new();
    Graph *g = graph_new(a, "g", NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        Dim x = parse(g, rows[i][0]), y = parse(g, rows[i][1]);
        assert_true(dim_equal(g, x, y));
        assert_true(dim_equal(g, x, parse(g, dim_text(a, g, x))));
    }
    assert_false(dim_equal(g, parse(g, "n/2"), parse(g, "(n+1)/2")));
    assert_false(dim_equal(g, parse(g, "n"), parse(g, "m")));
    arena_free(a);
}

static void test_bounds(void **state) {
    (void)state;
    Arena *a = arena_new();
    Graph *g = graph_new(a, "g", NULL);
    Dim n = dim_symbol(g, "n"), d = dim_ceil_div(g, dim_sub(g, dim_mul(g, n, 3), 5), 4);
    int count;
    Symbol *all = graph_symbols(g, &count);
    assert_int_equal(count, 1);
    all[0].lo = 2;
    all[0].hi = 10;
    assert_int_equal(dim_upper(g, d), 7);               // ceil(25 / 4)
    assert_true(dim_bound(g, d) == d);
    all[0].lo = all[0].hi = 6;
    assert_int_equal(dim_bound(g, d), 4);               // ceil(13 / 4)
    Dim big = n;
    for (int i = 0; i < 5; i++) big = dim_mul(g, big, INT64_C(1) << 40);
    assert_int_equal(dim_upper(g, big), INT64_MAX);     // saturates
    assert_int_equal(dim_mul(g, INT64_C(1) << 40, INT64_C(1) << 40), INT64_MAX);
    assert_int_equal(dim_div(g, n, 0), 0);
    Dim x = dim_symbol(g, "x"), y = dim_symbol(g, "y");
    all = graph_symbols(g, &count);
    all[1].hi = all[2].hi = 24;
    Dim rest = dim_div(g, 24, dim_mul(g, x, y)), halves[] = { x, dim_div(g, 24, x), 2 };
    assert_int_equal(dims_upper(g, 3, (Dim[]){ x, y, rest }), 24);          // x * y * floor(24 / (x * y)) <= 24
    assert_int_equal(dims_upper(g, 3, halves), 48);
    // y may be 1, but nothing says so of both at once
    assert_int_equal(dims_upper(g, 2, (Dim[]){ x, rest }), 576);
    assert_int_equal(dims_upper(g, 2, (Dim[]){ dim_add(g, x, 1), 3 }), 75);
    arena_free(a);
}

static void test_nonsense(void **state) {
    (void)state;
    static const char *const rows[] = { "", "*n", "(n", "'n", "'\\9", ")" };
    Arena *a = arena_new();
    Graph *g = graph_new(a, "g", NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *at = rows[i];
        dim_parse(g, &at);
        assert_ptr_equal(at, rows[i]);
    }
    char deep[5000];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    const char *at = deep;
    dim_parse(g, &at);
    assert_ptr_equal(at, deep);
    arena_free(a);
}

// A chain of 200,000 nodes is computed without recursion; a huge result is refused.
static void test_value_const(void **state) {
    (void)state;
    Arena *a = arena_new();
    Graph *g = graph_new(a, "g", NULL);
    Value *v = b_scalar(g, DT_I64, 0), *one = b_scalar(g, DT_I64, 1);
    for (int i = 0; i < 200000; i++) v = b_binary(g, OP_Add, v, one);
    assert_int_equal(tensor_get_i(value_const(v), 0), 200000);
    assert_null(v->data);                               // the graph is as it was
    Value *huge = b_expand(g, one, 2, (Dim[]){ 1 << 15, 1 << 15 });
    assert_null(value_const(huge));
    assert_null(value_const(graph_input(g, "x", type_make(DT_F32, 1, (Dim[]){ 2 }))));
    Graph *copy = graph_clone(g, "copy");
    graph_output(copy, copy->last->out[0], "y");
    assert_true(graph_validate(copy, "clone"));
    assert_int_equal(copy->value_count, g->value_count);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_value_const),
    };
    return cmocka_run_group_tests_name("dim", tests, NULL, NULL);
}
