// SPDX-License-Identifier: MIT OR Apache-2.0
// Scalar expressions: text in and out, index simplification, evaluation, derivatives.
//
// Expected forms stand here as text. What no list can cover is drawn at random with a fixed seed: an index expression
// must keep its value at every point when it is simplified, and every derivative must agree with central differences
// in double precision.
#include "ir/expr.h"
#include "ops/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static Arena *arena;
static ExprPool *pool;

static int set_up(void **state) {
    (void)state;
    arena = arena_new();
    pool = expr_pool_new(arena);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

static const char *const names[] = { "x", "y", "z", "i", "j", "k", "b", "n" };

// x y z: f32 (or d) arguments, b: bool, n: i32, i j k: axes of 100, 64 and 6.
static Expr *parse(const char *text, DType d) {
    Expr *bound[] = { expr_arg(pool, 0, d), expr_arg(pool, 1, d), expr_arg(pool, 2, d), expr_axis(pool, 0, 100),
        expr_axis(pool, 1, 64), expr_axis(pool, 2, 6), expr_arg(pool, 3, DT_BOOL), expr_arg(pool, 4, DT_I32) };
    const char *error = NULL;
    Expr *e = expr_parse(pool, text, COUNT(names), names, bound, d, &error);
    if (!e) print_message("%s: %s\n", text, error);
    assert_non_null(e);
    return e;
}

static const char *print(const Expr *e) {
    Text t;
    text_init(&t, arena);
    expr_print(e, &t);
    return t.at;
}

static void check(const char *text, const char *want) { assert_string_equal(print(parse(text, DT_F32)), want); }

// ---------------------------------------------------------------- text

static void reads_and_prints(void **state) {
    (void)state;
    check("x + y * z", "x + y * z");
    check("(x + y) * z", "z * (x + y)");
    check("x - (y - z)", "x - (y - z)");
    check("x > y ? 1 : y", "y < x ? 1 : y");
    check("x > y ? 1 : 0", "y < x ? f32(1) : 0");
    check("2 * 3 + x", "x + 6");
    check("1 / 4 * x", "x * 0.25");
    check("t = exp(x); t / (1 + t)", "t0 = exp(x); t0 / (t0 + 1)");
    check("f64(x) * 0.1", "f64(x) * 0.1");
    check("!(x < y) && b", "!(x < y) && w");
    check("min(x, -inf)", "min(x, -inf)");
    check("isnan(x) || isinf(x)", "isnan(x) || isinf(x)");
    check("n << 3 | n & 7 ^ ~n", "a4 << 3 | a4 & 7 ^ ~a4");
    check("i64(n) * 5000000000", "i64(a4) * 5000000000");
    check("u8(n) % 16", "u8(a4) % 16");
}

static void reads_back_what_it_prints(void **state) {
    (void)state;
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = &op_table[op];
        if (info->kind != KIND_MAP || info->attrs[0]) continue;
        bool logical = strchr(info->expr, '&') || strchr(info->expr, '|') || strchr(info->expr, '!')
            || strstr(info->expr, "xor");
        bool bits = strchr("BS", info->name[0]) && (strstr(info->name, "Bitwise") || strstr(info->name, "Shift"));
        DType d = bits ? DT_I32 : logical && !strstr(info->expr, "=") ? DT_BOOL : DT_F32;
        const char *own[] = { "x", "y", "c" }, *error = NULL;
        Expr *bound[] = { expr_arg(pool, 0, d), expr_arg(pool, 1, d), expr_arg(pool, 2, DT_BOOL) };
        Expr *e = expr_parse(pool, info->expr, 3, own, bound, d, &error);
        if (!e) print_message("%s: %s\n", info->name, error);
        assert_non_null(e);
        const char *printed[] = { "x", "y", "z" };
        Expr *again = expr_parse(pool, print(e), 3, printed, bound, d, &error);
        if (again != e) print_message("%s: %s\n", info->name, print(e));
        assert_ptr_equal(again, e);
    }
}

static void reports_mistakes(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        { "x +", "expected a value" },
        { "sqrt(n)", "Sqrt wants floats, not i32" },
        { "x + n", "Add of f32 and i32" },
        { "foo", "unknown name foo" },
        { "foo(x)", "no function foo" },
        { "(x", "expected )" },
        { "x y", "unexpected text" },
        { "x ? 1 : 2", "a condition is bool" },
        { "b ? x : n", "choice between" },
        { "x && b", "And of f32 and bool" },
        { "1.5e", "malformed number" },
        { "string(x)", "no casts to string" },
        { "pow(x)", "expected ," },
    };
    Expr *bound[] = { expr_arg(pool, 0, DT_F32), expr_arg(pool, 3, DT_BOOL), expr_arg(pool, 4, DT_I32) };
    const char *own[] = { "x", "b", "n" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *error = NULL;
        assert_null(expr_parse(pool, bad[i][0], 3, own, bound, DT_F32, &error));
        if (!strstr(error, bad[i][1])) print_message("%s: %s\n", bad[i][0], error);
        assert_non_null(strstr(error, bad[i][1]));
    }
    char deep[2000];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    const char *error = NULL;
    assert_null(expr_parse(pool, deep, 3, own, bound, DT_F32, &error));
    assert_non_null(strstr(error, "nested too deep"));
}

static void prints_a_dag_not_a_tree(void **state) {
    (void)state;
    Expr *e = expr_arg(pool, 0, DT_F32);
    for (int i = 0; i < 3000; i++) e = expr_binary(pool, E_Mul, e, expr_unary(pool, E_Sigmoid, e));
    assert_true(strlen(print(e)) < 200000);
    Scalar x = { .f = 0.5 };
    assert_true(expr_eval(e, &x).f >= 0);
    assert_true(isfinite(expr_eval(expr_diff(pool, e, 0), &x).f));
}

// ---------------------------------------------------------------- simplification

static void simplifies_exactly(void **state) {
    (void)state;
    check("x + 0", "x + 0");                   // -0 + 0 is 0
    check("x - 0", "x");
    check("x * 1", "x");
    check("x * 0", "x * 0");
    check("x / 4", "x * 0.25");
    check("x / 3", "x / 3");
    check("x + -y", "x - y");
    check("-x * 2", "x * -2");
    check("--x", "x");
    check("pow(x, 2)", "x * x");
    check("pow(x, 0.75)", "t0 = sqrt(x); t0 * sqrt(t0)");
    check("pow(x, -0.75)", "t0 = sqrt(x); 1 / (t0 * sqrt(t0))");
    check("pow(x, 2.5)", "x * x * sqrt(x)");
    check("pow(x, -2)", "t0 = 1 / x; t0 * t0");
    check("pow(x, -1.5)", "1 / x / sqrt(x)");
    check("tanh(softplus(x))",
        "t0 = exp(-abs(x)); t1 = x < 0; t2 = t0 * t0; t3 = t0 * 2 + (t1 ? t2 : 1); t3 / (t3 + (t1 ? 2 : t2 * 2))");
    check("pow(x, 0.3)", "pow(x, 0.3)");
    check("max(x, x)", "x");
    check("!(n < 3)", "3 <= a4");
    check("!!b", "w");
    check("n - n + 3 + n + 4", "a4 + 7");
    check("b && b", "w");
    check("b && !b", "bool(false)");
    check("b ? b ? x : y : z", "w ? x : z");
    check("!b ? x : y", "w ? y : x");
    check("f32(f64(x))", "x");
    check("f32(f16(x))", "f32(f16(x))");
    check("bool(x)", "x != 0");
    check("f64(u8(n)) < 3", "f64(u8(a4)) < 3");
    check("i32(i64(n))", "a4");
}

static void simplifies_indices(void **state) {
    (void)state;
    check("(i*64 + j) / 64", "i0");
    check("(i*64 + j) % 64", "i1");
    check("(i*6 + k) / 3", "i0 * 2 + i2 / 3");
    check("(i*6 + k) % 3", "i2 % 3");
    check("(i / 8) / 4", "i0 / 32");
    check("(i % 64) / 8", "i0 / 8 % 8");
    check("(i % 64) % 8", "i0 % 8");
    check("(i / 8) * 8 + i % 8", "i0");
    check("((i / 64) * 8 + (i / 8) % 8) * 8 + i % 8", "i0");
    check("(j % 8) + (j / 8) * 8 + 1", "i1 + 1");
    check("((i*64 + j)*6 + k) / 6 % 64", "i1");
    check("(i*8 + k) / 16", "i0 / 2");
    check("(i*8 + k) % 16", "i0 % 2 * 8 + i2");
    check("i * 2 - i", "i0");
    check("j - i * 3 + 1", "i1 - i0 * 3 + 1");
    check("(i - 1) / 2", "(i0 + 1) / 2 - 1");
    check("i - 1 >= 0 && i - 1 < 28", "0 < i0 && i0 < 29");
    check("i < 100", "bool(true)");
    check("i / 8 < 4", "i0 < 32");
    check("2 <= i / 8", "15 < i0");
    check("i * 2 + 1 == 4", "bool(false)");
    check("i * 2 == 4", "i0 == 2");
    check("!(i == 2)", "i0 != 2");
    check("min(k, 7)", "i2");
    check("max(k, i + 6)", "i0 + 6");
    check("i < 5 && i < 7", "i0 < 5");
    check("index(i64(i)) + 1", "i0 + 1");
    check("index(i64(i) * 2 + 3)", "i0 * 2 + 3");
    check("b ? i : i", "i0");
}

// A small generator: the same on every machine.
static uint64_t seed = 1;
static int64_t random_below(int64_t n) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static const int64_t extents[] = { 5, 7, 4, 12 };
enum { AXES = 4 };

// The value of an index expression at a point, by the plain meaning of each node.
static int64_t value_at(const Expr *e, const int64_t *at) {
    if (e->op == E_Size) return dim_upper(e->graph, e->extent);
    int64_t x = e->a[0] && e->op != E_Select ? value_at(e->a[0], at) : 0,
            y = e->a[1] && e->op != E_Select ? value_at(e->a[1], at) : 0;
    switch (e->op) {
    case E_Const: return e->c.i;
    case E_Axis: return at[e->c.i];
    case E_Add: return x + y;
    case E_Sub: return x - y;
    case E_Mul: return x * y;
    case E_Div: return floor_div(x, y);
    case E_Mod: return floor_mod(x, y);
    case E_Min: return x < y ? x : y;
    case E_Max: return x < y ? y : x;
    case E_Lt: return x < y;
    case E_Le: return x <= y;
    case E_Eq: return x == y;
    case E_Ne: return x != y;
    case E_And: return x && y;
    case E_Or: return x || y;
    case E_Not: return !x;
    case E_Select: return value_at(e->a[value_at(e->a[0], at) ? 1 : 2], at);
    default: fail_msg("%s in an index expression", expr_table[e->op].name); return 0;
    }
}

// A random index expression built twice: simplified in the pool, and as plain values at every point.
typedef struct Pair { Expr *e; int64_t *values; } Pair;
static int64_t points;

static void point(int64_t i, int64_t *at) {
    for (int k = AXES - 1; k >= 0; k--) at[k] = i % extents[k], i /= extents[k];
}

static Pair leaf(void) {
    Pair p = { .values = NEW_ARRAY(arena, int64_t, points) };
    int64_t axis = random_below(AXES), constant = random_below(25) - 8, at[AXES];
    bool is_axis = random_below(3) > 0;
    p.e = is_axis ? expr_axis(pool, (int)axis, extents[axis]) : expr_index(pool, constant);
    for (int64_t i = 0; i < points; i++) {
        point(i, at);
        p.values[i] = is_axis ? at[axis] : constant;
    }
    return p;
}

static Pair random_index(int depth) {
    if (depth == 0) return leaf();
    static const EOp ops[] = { E_Add, E_Add, E_Sub, E_Mul, E_Div, E_Mod, E_Div, E_Mod, E_Min, E_Max, E_Select, E_Mul };
    static const int64_t factors[] = { 2, 3, 4, 5, 6, 7, 8, 12, 24, 28, 48, 60 };
    EOp op = ops[random_below(COUNT(ops))];
    Pair x = random_index(depth - 1), y = random_index((int)random_below(depth)),
         r = { .values = NEW_ARRAY(arena, int64_t, points) };
    int64_t f = factors[random_below(COUNT(factors))];
    bool by_const = op == E_Mul || op == E_Div || op == E_Mod;
    if (by_const) y.e = expr_index(pool, f);
    bool less = random_below(2) == 0;
    Expr *c = expr_binary(pool, less ? E_Lt : E_Eq, x.e, y.e);
    r.e = op == E_Select ? expr_select(pool, c, x.e, y.e) : expr_binary(pool, op, x.e, y.e);
    for (int64_t i = 0; i < points; i++) {
        int64_t a = x.values[i], b = by_const ? f : y.values[i], at[AXES];
        point(i, at);
        bool truth = less ? a < b : a == b;
        assert_int_equal(value_at(c, at), truth);
        r.values[i] = op == E_Add ? a + b :
            op == E_Sub           ? a - b :
            op == E_Mul           ? a * b :
            op == E_Div           ? floor_div(a, b) :
            op == E_Mod           ? floor_mod(a, b) :
            op == E_Min           ? (a < b ? a : b) :
            op == E_Max           ? (a < b ? b : a) :
            truth                 ? a :
                                    b;
    }
    return r;
}

static void keeps_the_value_of_indices(void **state) {
    (void)state;
    points = 1;
    for (int k = 0; k < AXES; k++) points *= extents[k];
    for (int round = 0; round < 400; round++) {
        Arena *all = arena;
        arena = arena_new();
        pool = expr_pool_new(arena);
        Pair p = random_index(2 + round % 4);
        for (int64_t i = 0; i < points; i++) {
            int64_t at[AXES];
            point(i, at);
            int64_t got = value_at(p.e, at);
            if (got != p.values[i]) print_message("%s\n", print(p.e));
            assert_int_equal(got, p.values[i]);
            assert_in_range(got - p.e->lo, 0, p.e->hi - p.e->lo);
        }
        arena_free(arena);
        arena = all;
    }
    pool = expr_pool_new(arena);
}

// ---------------------------------------------------------------- sizes that are known when the program runs

static Graph *graph;

static Dim dim(const char *text) {
    Dim d = dim_parse(graph, &text);
    assert_string_equal(text, "");
    return d;
}

// i j k: axes of N, S and H; B N S H P: sizes; T: P + S; O: (S - 3) / 2 + 1; b: an axis of B, t: one of T, o: one of
// O, r: one of N * S.
static Expr *parse_sizes(const char *text) {
    static const char *const size_names[] = { "b", "i", "j", "k", "t", "o", "r", "q", "B", "N", "S", "H", "P", "T",
        "O" };
    static const char *const extents_of[] = { "B", "N", "S", "H", "P+S", "(S-3)/2+1", "N*S", "4" };
    Expr *bound[COUNT(size_names)];
    for (int i = 0; i < 8; i++) bound[i] = expr_axis_size(pool, graph, i, dim(extents_of[i]));
    static const char *const sizes[] = { "B", "N", "S", "H", "P", "P+S", "(S-3)/2+1" };
    for (int i = 0; i < 7; i++) bound[8 + i] = expr_size(pool, graph, dim(sizes[i]));
    const char *error = NULL;
    Expr *e = expr_parse(pool, text, COUNT(size_names), size_names, bound, DT_INDEX, &error);
    if (!e) print_message("%s: %s\n", text, error);
    assert_non_null(e);
    return e;
}

static void check_sizes(const char *text, const char *want) { assert_string_equal(print(parse_sizes(text)), want); }

static void simplifies_sizes(void **state) {
    (void)state;
    pool = expr_pool_new(arena);
    graph = graph_new(arena, "g", NULL);
    check_sizes("(i*S*768 + j*768 + q) / 768", "i1 * S + i2");
    check_sizes("(i*S*768 + j*768 + q) / 768 / S", "i1");
    check_sizes("(i*S*768 + j*768 + q) / 768 % S", "i2");
    check_sizes("((b*N + i)*S + j) / (N*S)", "i0");
    check_sizes("((b*N + i)*S + j) % (N*S)", "i1 * S + i2");
    check_sizes("((b*N + i)*S + j) / S % N", "i1");
    check_sizes("(r / S) * S + r % S", "i6");
    check_sizes("((b*N*S + r) / S * H + k) / (N*H)", "i0");
    check_sizes("(r*4 + q) / (S*4)", "i6 / S");
    check_sizes("(r / S) / N", "index(0)");
    check_sizes("(r*H + k) / (S*H)", "i6 / S");
    check_sizes("r / S < N", "bool(true)");
    check_sizes("((b*T + t)*H + k) / H % T", "i4");
    check_sizes("((b*T + t)*H + k) / (H*T)", "i0");
    check_sizes("((b*O + o)*H + k) / H % O", "i5");
    check_sizes("((b*O + o)*S + j) / (S*O)", "i0");
    check_sizes("S - 1 - j >= 0", "bool(true)");
    check_sizes("S - j > 0", "bool(true)");
    check_sizes("j < S && i >= 0", "bool(true)");
    check_sizes("j + P < T", "bool(true)");
    check_sizes("o*2 + 2 < S", "bool(true)");
    check_sizes("o*2 + 3 < S", "i5 * 2 < S - 3");
    check_sizes("t < P", "i4 < P");
    check_sizes("t - P < S", "bool(true)");
    check_sizes("j == S", "bool(false)");
    check_sizes("j != S + 3", "bool(true)");
    check_sizes("min(j, S - 1)", "i2");
    check_sizes("max(j - S, 0)", "index(0)");
    check_sizes("min(max(k, 3), S - 1) < S", "bool(true)");
    check_sizes("(S - 1 - j) / S", "index(0)");
    check_sizes("(i*S + S - 1 - j) / S", "i1");
    check_sizes("(2*S + S*3) - 5*S + 1", "index(1)");
    check_sizes("(S + P) * j - P * j", "i2 * S");
    check_sizes("T - S", "P");
    check_sizes("(j + 1) * (S + 1) / (S + 1)", "i2 + 1");
    check_sizes("(6*S) / 4", "S / 2 + S");
    Dim coef[8], c0;
    assert_true(expr_affine_sizes(parse_sizes("(i*T + t)*3 + S*2 + 5"), graph, 8, coef, &c0));
    assert_true(coef[1] == dim("3*(P+S)") && coef[4] == 3 && coef[0] == 0 && c0 == dim("2*S+5"));
    assert_false(expr_affine_sizes(parse_sizes("r / S"), graph, 8, coef, &c0));
    int64_t number[8], n0;
    assert_false(expr_affine(parse_sizes("i*S + j"), 8, number, &n0));
    assert_true(expr_affine(parse_sizes("i*4 + (j*S)/S"), 8, number, &n0));
    pool = expr_pool_new(arena);
}

// As random_index, with axes and factors of symbolic sizes, at random points for several values of the symbols.
enum { SYMBOLS = 4, SETTINGS = 4, SAMPLES = 24, SIZED_AXES = 6 };
typedef struct Sized { Expr *e; int64_t at[SETTINGS * SAMPLES]; } Sized;
static const char *const sized_extents[SIZED_AXES] = { "S", "N", "N*S", "P+S", "(S-3)/2+1", "4" };
static int64_t sized_points[SETTINGS * SAMPLES][SIZED_AXES];

static void set_symbols(int setting) {          // SETTINGS: any sizes
    static const int64_t values[SETTINGS][SYMBOLS] = { { 3, 1, 1, 1 }, { 5, 4, 2, 1 }, { 6, 1, 7, 3 }, { 9, 5, 3, 8 } };
    int n;
    Symbol *all = graph_symbols(graph, &n);
    for (int i = 0; i < n; i++) {
        all[i].lo = setting == SETTINGS ? (i == 0 ? 3 : 1) : values[setting][i];
        all[i].hi = setting == SETTINGS ? INT32_MAX : values[setting][i];
    }
}

static void draw_points(void) {
    for (int k = 0; k < SETTINGS * SAMPLES; k++) {
        set_symbols(k / SAMPLES);
        for (int i = 0; i < SIZED_AXES; i++) sized_points[k][i] = random_below(dim_upper(graph, dim(sized_extents[i])));
    }
    set_symbols(SETTINGS);
}

static Sized random_size(bool positive) {
    static const char *const texts[] = { "S", "N", "N*S", "4*S", "P+S", "(P+S)*N", "(S-3)/2+1", "6", "2*N", "P", "S*P",
        "7", "S-1", "P-N", "0" };
    Dim d = dim(texts[random_below(positive ? COUNT(texts) - 3 : COUNT(texts))]);
    Sized r;
    r.e = expr_size(pool, graph, d);
    for (int k = 0; k < SETTINGS * SAMPLES; k++) {
        if (k % SAMPLES == 0) set_symbols(k / SAMPLES);
        r.at[k] = dim_upper(graph, d);
    }
    set_symbols(SETTINGS);
    return r;
}

static Sized random_sized(int depth) {
    static const EOp ops[] = { E_Add, E_Add, E_Sub, E_Mul, E_Mul, E_Div, E_Mod, E_Div, E_Mod, E_Min, E_Max, E_Select };
    Sized r;
    if (depth == 0) {
        int64_t axis = random_below(SIZED_AXES);
        if (random_below(5) == 0) return random_size(false);
        r.e = expr_axis_size(pool, graph, (int)axis, dim(sized_extents[axis]));
        for (int k = 0; k < SETTINGS * SAMPLES; k++) r.at[k] = sized_points[k][axis];
        return r;
    }
    EOp op = ops[random_below(COUNT(ops))];
    bool by_size = op == E_Mul || op == E_Div || op == E_Mod;
    Sized x = random_sized(depth - 1), y = by_size ? random_size(op != E_Mul) : random_sized((int)random_below(depth));
    bool less = random_below(2) == 0;
    Expr *c = expr_binary(pool, less ? E_Lt : E_Eq, x.e, y.e);
    r.e = op == E_Select ? expr_select(pool, c, x.e, y.e) : expr_binary(pool, op, x.e, y.e);
    for (int k = 0; k < SETTINGS * SAMPLES; k++) {
        int64_t a = x.at[k], b = y.at[k];
        bool truth = less ? a < b : a == b;
        if (k % SAMPLES == 0) set_symbols(k / SAMPLES);
        if (value_at(c, sized_points[k]) != truth)
            print_message("%s %s %s: %s\n", print(x.e), less ? "<" : "==", print(y.e), print(c));
        assert_int_equal(value_at(c, sized_points[k]), truth);
        r.at[k] = op == E_Add ? a + b :
            op == E_Sub       ? a - b :
            op == E_Mul       ? a * b :
            op == E_Div       ? floor_div(a, b) :
            op == E_Mod       ? floor_mod(a, b) :
            op == E_Min       ? (a < b ? a : b) :
            op == E_Max       ? (a < b ? b : a) :
            truth             ? a :
                                b;
        if (value_at(r.e, sized_points[k]) != r.at[k])
            print_message("%s %s %s: %s\n", print(x.e), expr_table[op].name, print(y.e), print(r.e));
        assert_int_equal(value_at(r.e, sized_points[k]), r.at[k]);
        assert_true(r.at[k] >= r.e->lo && r.at[k] <= r.e->hi);
        assert_true(!r.e->extent || r.e->op == E_Size || r.at[k] < dim_upper(graph, r.e->extent));
    }
    set_symbols(SETTINGS);
    return r;
}

static void keeps_the_value_of_sizes(void **state) {
    (void)state;
    for (int round = 0; round < 600; round++) {
        Arena *all = arena;
        arena = arena_new();
        pool = expr_pool_new(arena);
        graph = graph_new(arena, "g", NULL);
        for (const char *name = "SNPH"; *name; name++) dim_symbol(graph, (char[]){ *name, 0 });
        set_symbols(SETTINGS);
        draw_points();
        random_sized(2 + round % 4);
        arena_free(arena);
        arena = all;
    }
    pool = expr_pool_new(arena);
}

static void affine_views(void **state) {
    (void)state;
    int64_t coef[3], c0;
    assert_true(expr_affine(parse("(i*64 + j)*3 - k + 5", DT_F32), 3, coef, &c0));
    assert_int_equal(coef[0], 192);
    assert_int_equal(coef[1], 3);
    assert_int_equal(coef[2], -1);
    assert_int_equal(c0, 5);
    assert_false(expr_affine(parse("i / 3", DT_F32), 3, coef, &c0));
}

static void replaces_leaves(void **state) {
    (void)state;
    ExprPool *other = expr_pool_new(arena);
    Expr *e = parse("x * y + x", DT_F32), *args[] = { expr_const_f(other, DT_F32, 2), expr_arg(other, 0, DT_F32) };
    assert_string_equal(print(expr_subst(pool, e, args)), "x * 2 + 2");
    Expr *axis = parse("i * 2 + j", DT_F32);
    assert_int_equal(axis->axes_used, 3);
    assert_int_equal(axis->hi, 99 * 2 + 63);
}

// ---------------------------------------------------------------- evaluation

static double value(const char *text, DType d, double x, double y) {
    Scalar args[5] = { { .f = x }, { .f = y } };
    if (!dtype_is_float(d)) args[0].i = (int64_t)x, args[1].i = (int64_t)y;
    Expr *e = parse(text, d);
    Scalar s = expr_eval(e, args);
    return dtype_is_float(e->dtype) ? s.f : (double)s.i;
}

static void evaluates(void **state) {
    (void)state;
    assert_true(value("x * y", DT_F32, 0.1f, 3) == (double)(0.1f * 3.0f));
    assert_true(isnan(value("max(x, y)", DT_F32, NAN, 1)) && isnan(value("max(y, x)", DT_F32, NAN, 1))
        && isnan(value("min(x, 0)", DT_F32, NAN, 0)));
    assert_true(value("x + y", DT_U8, 200, 100) == 44);
    assert_true(value("x * y", DT_I8, 100, 2) == -56);
    assert_true(value("x / y", DT_I32, 7, 0) == 0 && value("x % y", DT_I32, 7, 0) == 0);
    assert_true(value("x / y", DT_I32, -7, 2) == -3 && value("x % y", DT_I32, -7, 2) == -1
        && value("floormod(x, y)", DT_I32, -7, 2) == 1);
    assert_true(value("x / y", DT_I32, (double)INT32_MIN, -1) == (double)INT32_MIN);
    assert_true(value("floormod(x, y)", DT_F32, -7, 2) == 1 && value("x % y", DT_F32, -7, 2) == -1);
    assert_true(value("i8(x)", DT_F32, 300, 0) == 127 && value("u8(x)", DT_F32, -3, 0) == 0
        && value("i32(x)", DT_F32, NAN, 0) == 0);
    assert_true(value("i32(x)", DT_F32, 1e20, 0) == (double)INT32_MAX && value("i4(x)", DT_I32, 9, 0) == -7);
    assert_true(value("x << y", DT_U8, 255, 4) == 240 && value("x << y", DT_U8, 1, 9) == 0
        && value("x >> y", DT_I8, -128, 20) == -1);
    assert_true(value("round(x)", DT_F32, 2.5, 0) == 2 && value("round(x)", DT_F32, -0.5, 0) == 0);
    assert_true(value("pow(x, y)", DT_I32, 3, 4) == 81 && value("pow(x, y)", DT_I32, 2, -1) == 0);
    assert_true(value("f16(x)", DT_F32, 70000, 0) == (double)INFINITY && value("f8e4m3fn(x)", DT_F32, 1000, 0) == 448);
    assert_true(value("softplus(x)", DT_F32, 1000, 0) == 1000 && value("sigmoid(x)", DT_F32, -1000, 0) == 0);
}

// ---------------------------------------------------------------- derivatives

// Points where a function is defined and smooth.
static double sample(const char *name, int arg, int round) {
    double u = 0.15 + 0.7 * (double)random_below(1000) / 1000;          // (0.15, 0.85)
    if (!strcmp(name, "Acosh")) return 1.2 + u;
    if (!strcmp(name, "Log") || !strcmp(name, "Sqrt") || !strcmp(name, "Rsqrt") || !strcmp(name, "Pow")) return u + 0.2;
    if (!strcmp(name, "Asin") || !strcmp(name, "Acos") || !strcmp(name, "Atanh") || !strcmp(name, "Log1p"))
        return round % 2 ? -u : u;
    if (!strcmp(name, "HardSwish") || !strcmp(name, "HardSigmoid")) return (round % 2 ? -1.0 : 1.0) * u * 3.3;
    if (!strcmp(name, "Mod") || !strcmp(name, "FMod")) return arg ? 1.9 : u + 0.05;
    return (round % 2 ? -1.0 : 1.0) * (u + (arg ? 1.0 : 0.0)) * (round % 3 + 1);
}

static void differentiates(void **state) {
    (void)state;
    Graph *g = graph_new(arena, "g", "test");
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = &op_table[op];
        if (info->kind != KIND_MAP) continue;
        bool where = info->args[0] == 'c', bools = strstr("And Or Xor Not", info->name) != NULL,
             bits = strstr(info->name, "Bitwise") || strstr(info->name, "Shift");
        if (bools || bits) continue;
        Value *in[3];
        for (int i = 0; i < info->in_min; i++)
            in[i] = graph_input(g, NULL, type_make(where && i == 0 ? DT_BOOL : DT_F64, 0, NULL));
        Node *n = graph_node(g, (Op)op, info->in_min, in, 1);
        assert_true(node_infer(n));
        Expr *e = node_expr(n);
        if (e->dtype != DT_F64) continue;
        for (int arg = where; arg < info->in_min; arg++) {
            Expr *d = expr_diff(g->exprs, e, arg);
            for (int round = 0; round < 12; round++) {
                Scalar at[3], up[3], down[3];
                for (int i = 0; i < info->in_min; i++) at[i].f = sample(info->name, i, round);
                if (where) at[0].i = round & 1;
                memcpy(up, at, sizeof at), memcpy(down, at, sizeof at);
                double h = 1e-6;
                up[arg].f += h, down[arg].f -= h;
                double want = (expr_eval(e, up).f - expr_eval(e, down).f) / (2 * h), got = expr_eval(d, at).f;
                if (fabs(got - want) > 1e-6 * (1 + fabs(want)))
                    print_message(
                        "%s by %d at %g %g: %g, not %g: %s\n", info->name, arg, at[0].f, at[1].f, got, want, print(d));
                assert_true(fabs(got - want) <= 1e-6 * (1 + fabs(want)));
            }
        }
    }
}

static void derivatives_stay_finite(void **state) {
    (void)state;
    static const char *const text[] = { "sigmoid(x)", "softplus(x)", "x * tanh(softplus(x))", "x / (1 + abs(x))",
        "x * sigmoid(x)", "max(x, 0)", "0.5 * x * (1 + erf(x * 0.70710678118654752))", "x < 0 ? expm1(x) : x" };
    static const double at[] = { -1000, -100, -20, -1, 0, 1, 20, 100, 1000 };
    for (size_t i = 0; i < COUNT(text); i++)
        for (size_t k = 0; k < COUNT(at); k++) {
            Scalar x = { .f = at[k] };
            assert_true(isfinite(expr_eval(expr_diff(pool, parse(text[i], DT_F32), 0), &x).f));
        }
    assert_string_equal(print(expr_diff(pool, parse("x + y", DT_F32), 0)), "f32(1)");
    assert_string_equal(print(expr_diff(pool, parse("x * y", DT_F32), 0)), "y");
    assert_string_equal(print(expr_diff(pool, parse("max(x, 0)", DT_F32), 0)), "0 < max(x, 0) ? f32(1) : 0");
    assert_string_equal(print(expr_diff(pool, parse("floor(x)", DT_F32), 0)), "f32(0)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_prints),
        cmocka_unit_test(reads_back_what_it_prints),
        cmocka_unit_test(reports_mistakes),
        cmocka_unit_test(prints_a_dag_not_a_tree),
        cmocka_unit_test(simplifies_exactly),
        cmocka_unit_test(simplifies_indices),
        cmocka_unit_test(keeps_the_value_of_indices),
        cmocka_unit_test(affine_views),
        cmocka_unit_test(replaces_leaves),
        cmocka_unit_test(simplifies_sizes),
        cmocka_unit_test(keeps_the_value_of_sizes),
        cmocka_unit_test(evaluates),
        cmocka_unit_test(differentiates),
        cmocka_unit_test(derivatives_stay_finite),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
