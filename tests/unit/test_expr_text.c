// SPDX-License-Identifier: MIT OR Apache-2.0
// The C and GLSL text of scalar operations against the evaluator.
//
// One C file holds a function for every operation on every dtype it accepts, every cast, and a few nested
// expressions; it is compiled with warnings as errors, loaded, and run on special and random values: integers must
// agree exactly, f32 and f64 within 4 ulp, f16 and bf16 within one code (the functions of an f32 more closely:
// test_functions.c). GLSL has no machine here: its functions must compile to valid SPIR-V.
#define _POSIX_C_SOURCE 200809L
#include "codegen/gpu/spirv.h"
#include "codegen/spell/spell.h"
#include "ir/expr.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct Case { Expr *e; DType a, b; } Case;      // dtypes of E_Arg 0 and 1
typedef void Function(const void *a, const void *b, void *result);
static Arena *arena;
static ExprPool *pool;
static VEC(Case) cases;

static const DType numeric[] = { DT_F32, DT_F64, DT_F16, DT_BF16, DT_I8, DT_U8, DT_I16, DT_U16, DT_I32, DT_U32, DT_I64,
    DT_U64, DT_I4, DT_U4, DT_I2, DT_U2, DT_F8E4M3FN, DT_F8E4M3FNUZ, DT_F8E5M2, DT_F8E5M2FNUZ, DT_F4E2M1, DT_F8E8M0,
    DT_F6E2M3, DT_F6E3M2, DT_BOOL };
static bool is_byte_float(DType d) { return dtype_is_small_float(d) && dtype_size(d) == 1; }

static void add_case(Expr *e, DType a, DType b) { VEC_PUSH(arena, cases, (Case){ e, a, b }); }

static void add_operations(DType d) {
    Expr *a = expr_arg(pool, 0, d), *b = expr_arg(pool, 1, d);
    for (int op = 0; op < E_COUNT; op++) {
        // complex numbers are larger than what the evaluator computes with; small/ has them
        const bool special = expr_table[op].rule == RULE_SPECIAL || expr_table[op].rule == RULE_PAIR;
        if (special || !expr_rule_accepts((EOp)op, d)) continue;
        add_case(expr_table[op].arity == 1 ? expr_unary(pool, (EOp)op, a) : expr_binary(pool, (EOp)op, a, b), d, d);
        if (expr_table[op].arity == 2 && d != DT_BOOL)
            add_case(expr_binary(pool, (EOp)op, a, expr_const_i(pool, d, 3)), d, d);
    }
    if (d != DT_BOOL) add_case(expr_select(pool, expr_binary(pool, E_Lt, a, b), a, expr_const_i(pool, d, 1)), d, d);
}

static void add_nested(void) {
    static const char *const text[] = { "x < 0 ? 0.01 * x : x",
        "0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)))", "x - (y - x) - (x + y) * (x - y)",
        "x * tanh(softplus(x))", "(x < y || x > 2) && y < 1 && !isnan(x)",
        "x < 0 ? (y < 0 ? 1 : 2) : (y < 0 ? x * 3 : 4)", "max(min(x, 6), 0) / 6", "-(x + y) * -y", "i8(i32(x)) + 100",
        "pow(abs(x), -0.75)", "pow(abs(x), 2.25)", "pow(abs(x), -2.75)" };
    const char *names[] = { "x", "y" }, *error = NULL;
    Expr *bound[] = { expr_arg(pool, 0, DT_F32), expr_arg(pool, 1, DT_F32) };
    for (size_t i = 0; i < COUNT(text); i++) {
        Expr *e = expr_parse(pool, text[i], 2, names, bound, DT_F32, &error);
        assert_non_null(e);
        add_case(e, DT_F32, DT_F32);
    }
    Expr *i = expr_binary(pool, E_Mod, expr_cast(pool, expr_arg(pool, 0, DT_U8), DT_INDEX), expr_index(pool, 100)),
         *constant[] = { expr_index(pool, 7), expr_index(pool, 3) };
    Expr *shifted = expr_binary(pool, E_Sub, i, constant[0]),
         *free_index = expr_cast(pool, expr_arg(pool, 1, DT_I64), DT_INDEX);
    for (int k = 0; k < 2; k++) {               // index division rounds down, whatever is known of the sign
        add_case(expr_cast(pool, expr_binary(pool, k ? E_Div : E_Mod, shifted, constant[1]), DT_I64), DT_U8, DT_I64);
        add_case(expr_cast(pool, expr_binary(pool, k ? E_Div : E_Mod, free_index, constant[0]), DT_I64), DT_U8, DT_I64);
        add_case(expr_cast(pool,
                     expr_binary(pool, k ? E_Min : E_Max, shifted, expr_binary(pool, E_Div, i, constant[1])), DT_I64),
            DT_U8, DT_I64);
    }
}

static void add_cases(void) {
    for (size_t i = 0; i < COUNT(numeric); i++) {
        if (!is_byte_float(numeric[i])) add_operations(numeric[i]);
        for (size_t k = 0; k < COUNT(numeric); k++) {
            add_case(expr_cast(pool, expr_arg(pool, 0, numeric[i]), numeric[k]), numeric[i], DT_F32);
            if (is_byte_float(numeric[k]))
                add_case(expr_cast_to(pool, expr_arg(pool, 0, numeric[i]), numeric[k], true), numeric[i], DT_F32);
        }
    }
    add_nested();
}

// ---------------------------------------------------------------- printing

static const char *tree_text(const Expr *e, const Language *l) {
    const char *operand[3] = { NULL };
    Text t;
    if (e->op == E_Arg) return e->c.i ? "b" : "a";
    for (int k = 0; k < 3; k++)
        if (e->a[k]) operand[k] = tree_text(e->a[k], l);
    text_init(&t, arena);
    spell_op(l, &t, e, operand);
    return t.at;
}

static const char *loaded(DType d, const char *name) {
    return spell_c_load(arena, d, arena_printf(arena, "*(const %s *)%s", spell_c_storage(d), name));
}

static const char *c_program(void) {
    Text body, all;
    text_init(&body, arena);
    text_init(&all, arena);
    for (int i = 0; i < cases.n; i++) {
        const Case *c = &cases.at[i];
        const char *text = tree_text(c->e, &spell_c);
        text_printf(&body,
            "void f%d(const void *pa, const void *pb, void *pr);\n"
            "void f%d(const void *pa, const void *pb, void *pr) {\n",
            i, i);
        text_printf(&body, "    const %s a = %s;\n    const %s b = %s;\n", spell_c.type(c->a), loaded(c->a, "pa"),
            spell_c.type(c->b), loaded(c->b, "pb"));
        text_printf(&body,
            "    const %s r = %s;\n    (void)a;\n    (void)b;\n    *(%s *)pr = ", spell_c.type(c->e->dtype), text,
            spell_c_storage(c->e->dtype));
        text_printf(&body, "%s;\n}\n", spell_c_store(arena, c->e->dtype, "r"));
    }
    text_printf(&all, "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n");
    spell_helpers(&spell_c, &all, NULL, body.at);
    text_append(&all, body.at, body.n);
    return all.at;
}

// ---------------------------------------------------------------- values

static uint64_t seed = 7;
static uint64_t random_bits(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed ^ seed >> 29;
}

static Scalar draw(DType d, int round) {
    static const double special[] = { 0, -0.0, 1, -1, 0.5, 2.5, -2.5, 3, 1e-40, 127.5, -128.6, 255.4, 3e9, -3e9, 1e19,
        1e20, -1e30, 65519, 65520, 448, 465, 57344, 7e4, 0x1p-25, 0x1.8p-24, 5.9e-8 };
    static const int64_t ints[] = { 0, 1, -1, 2, 3, 7, 8, 31, 32, 63, 64, 127, 128, -128, 255, 32767, -32768,
        INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN };
    Scalar s;
    if (!dtype_is_float(d)) {
        s.i = int_wrap(
            d, round % 2 ? (uint64_t)ints[random_bits() % COUNT(ints)] : random_bits() >> random_bits() % 60);
        return s;
    }
    uint64_t pick = random_bits() % (COUNT(special) + 3);
    s.f = pick < COUNT(special)    ? special[pick] :
        pick == COUNT(special)     ? (double)NAN :
        pick == COUNT(special) + 1 ? (double)INFINITY :
                                     -(double)INFINITY;
    if (round % 2) s.f = ((double)(random_bits() >> 11) * 0x1p-53 - 0.5) * (round % 4 == 1 ? 4 : 40);
    s.f = float_round(d, s.f);
    if (dtype_is_small_float(d)) s.f = (double)small_to_float(d, small_from_float(d, (float)s.f, true));
    return s;
}

static void put(void *at, DType d, Scalar s) {
    Tensor t = { type_make(d, 0, NULL), at };
    if (is_byte_float(d)) *(uint8_t *)at = (uint8_t)small_from_float(d, (float)s.f, false);
    else if (dtype_is_float(d)) tensor_set_f(&t, 0, s.f);
    else tensor_set_i(&t, 0, s.i);
}

static double ulp_of(DType d, double v) {
    int e;
    frexp(v, &e);
    if (d == DT_F64) return ldexp(1, (e < -1021 ? -1021 : e) - 53);
    return ldexp(1, (e < -125 ? -125 : e) - 24);
}

static bool agrees(const Case *c, Scalar want, const void *got) {
    DType d = c->e->dtype;
    Tensor t = { type_make(d, 0, NULL), (void *)got };
    if (!dtype_is_float(d)) return tensor_get_i(&t, 0) == want.i;
    double v = tensor_get_f(&t, 0);
    if (isnan(v) || isnan(want.f)) return isnan(v) && isnan(want.f);
    if (dtype_is_small_float(d)) {
        unsigned char bits[8] = { 0 };
        put(bits, d, want);
        if (c->e->op == E_Cast || is_byte_float(d)) return !memcmp(bits, got, dtype_size(d));
        int a = bits[0] | bits[1] << 8, b = ((const uint8_t *)got)[0] | ((const uint8_t *)got)[1] << 8;
        return abs(a - b) <= 1 || v == want.f;
    }
    const Expr *x = c->e->a[0];
    bool nested = x && x->op != E_Arg && x->op != E_Cast;       // where errors of 4 ulp cancel and add up
    return v == want.f || fabs(v - want.f) <= (nested ? 64 : 4) * ulp_of(d, want.f);
}

// Not expr_eval: what it returns for a small float is saturated.
static Scalar evaluate(const Expr *e, const Scalar *args) {
    Scalar v[3] = { { .i = 0 } };
    if (e->op == E_Arg) return args[e->c.i];
    if (e->op == E_Const) return e->c;
    for (int k = 0; k < 3; k++)
        if (e->a[k]) v[k] = evaluate(e->a[k], args);
    if (e->op == E_Select) return v[0].i ? v[1] : v[2];
    return e->op == E_Cast ? eval_cast_scalar(e->a[0]->dtype, e->dtype, e->c.i != 0, v[0]) :
                             eval_op(e->op, e->a[0]->dtype, v[0], v[1]);
}

// ---------------------------------------------------------------- tests

static int set_up(void **state) {
    (void)state;
    arena = arena_new();
    pool = expr_pool_new(arena);
    add_cases();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

static void *compile(const char *text, const char *folder) {
    const char *cc = getenv("CC") ? getenv("CC") : "cc";
    char *source = arena_printf(arena, "%s/t.c", folder), *library = arena_printf(arena, "%s/t.so", folder);
    FILE *f = fopen(source, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
    assert_int_equal(
        system(arena_printf(arena,
            "%s -std=c99 -O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -shared -fPIC -o %s %s -lm", cc,
            library, source)),
        0);
    void *handle = dlopen(library, RTLD_NOW);
    remove(source), remove(library), rmdir(folder);
    assert_non_null(handle);
    return handle;
}

static void c_text_computes_what_the_evaluator_does(void **state) {
    (void)state;
    char folder[] = "/tmp/burncc-text-XXXXXX";
    assert_non_null(mkdtemp(folder));
    void *handle = compile(c_program(), folder);
    int wrong = 0;
    for (int i = 0; i < cases.n; i++) {
        const Case *c = &cases.at[i];
        void *symbol = dlsym(handle, arena_printf(arena, "f%d", i));
        Function *f;
        memcpy(&f, &symbol, sizeof f);
        for (int round = 0; round < 300; round++) {
            _Alignas(8) unsigned char a[8], b[8], got[8] = { 0 };
            Scalar args[2] = { draw(c->a, round), draw(c->b, round) };
            put(a, c->a, args[0]), put(b, c->b, args[1]);
            f(a, b, got);
            Scalar want = evaluate(c->e, args);
            if (agrees(c, want, got)) continue;
            print_message("%s %s(%s): a %g/%lld b %g/%lld want %g/%lld got %02x%02x%02x%02x: %s\n",
                dtype_name(c->e->dtype), expr_table[c->e->op].name, dtype_name(c->a), args[0].f, (long long)args[0].i,
                args[1].f, (long long)args[1].i, want.f, (long long)want.i, got[3], got[2], got[1], got[0],
                tree_text(c->e, &spell_c));
            wrong++;
            break;
        }
    }
    dlclose(handle);
    assert_int_equal(wrong, 0);
}

static void glsl_text_compiles(void **state) {
    (void)state;
#ifdef HAVE_GLSLANG
    Text body, all;
    text_init(&body, arena);
    text_init(&all, arena);
    for (int i = 0; i < cases.n; i++) {
        const Case *c = &cases.at[i];
        if (is_byte_float(c->e->dtype) || is_byte_float(c->a)) continue;        // not on GPUs
        text_printf(&body, "%s f%d(%s a, %s b) {\n    return %s;\n}\n", spell_glsl.type(c->e->dtype), i,
            spell_glsl.type(c->a), spell_glsl.type(c->b), tree_text(c->e, &spell_glsl));
    }
    text_printf(&all,
        "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
        "layout(local_size_x = 1) in;\n");
    spell_helpers(&spell_glsl, &all, NULL, body.at);
    text_printf(&all, "%svoid main() {}\n", body.at);
    SpirvModule module;
    bool ok = spirv_compile(all.at, "expressions", &module);
    if (!ok) print_message("%s", module.log);
    spirv_free(&module);
    assert_true(ok);
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(c_text_computes_what_the_evaluator_does),
        cmocka_unit_test(glsl_text_compiles) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
