// SPDX-License-Identifier: MIT OR Apache-2.0
// compiler/ir/type.c: names, sizes and broadcasting; every code of every small float survives a round trip, values
// between two codes go to the nearer one (ties to the even code), and what is out of range goes where ONNX's Cast
// tables say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "plan.h"

static void test_names(void **state) {
    (void)state;
    for (int d = DT_NONE + 1; d < DT_INDEX; d++) {
        DType back;
        assert_true(dtype_parse(dtype_name((DType)d), &back));
        assert_int_equal(back, d);
        assert_true(dtype_size((DType)d) >= 1);
    }
    DType d;
    assert_false(dtype_parse("index", &d));
    assert_int_equal(DT_I2, 26);                        // TensorProto.DataType
    assert_true(dtype_is_small_float(DT_F8E5M2) && !dtype_is_small_float(DT_F32));
}

static void test_types(void **state) {
    (void)state;
    Type a = type_make(DT_F32, 3, (Dim[]){ 4, 1, 6 }), b = type_make(DT_F32, 2, (Dim[]){ 5, 1 }), out;
    assert_true(type_broadcast(&out, &a, &b));
    assert_true(type_equal(&out, &(Type){ DT_F32, 3, { 4, 5, 6 } }));
    b = type_make(DT_F32, 1, (Dim[]){ 5 });
    assert_false(type_broadcast(&out, &a, &b));
    b = type_make(DT_F32, 1, (Dim[]){ 0 });
    a = type_make(DT_F32, 1, (Dim[]){ 1 });
    assert_true(type_broadcast(&out, &a, &b));
    assert_int_equal(type_count(&out), 0);
    a = type_make(DT_F64, 3, (Dim[]){ INT64_C(1) << 40, INT64_C(1) << 40, 2 });
    assert_int_equal(type_count(&a), INT64_MAX);        // saturates
    assert_int_equal(type_bytes(&a), INT64_MAX);
    int64_t strides[3];
    a = type_make(DT_F64, 3, (Dim[]){ 2, 3, 4 });
    type_strides(&a, strides);
    assert_int_equal(strides[0], 12);
    assert_int_equal(strides[2], 1);
}

static const DType small[] = { DT_F16, DT_BF16, DT_F8E4M3FN, DT_F8E4M3FNUZ, DT_F8E5M2, DT_F8E5M2FNUZ, DT_F4E2M1,
    DT_F8E8M0, DT_F6E2M3, DT_F6E3M2 };

static uint32_t code_count(DType d) { return 1u << dtype_bits(d); }

static void test_codes(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(small); k++)
        for (uint32_t c = 0; c < code_count(small[k]); c++) {
            float v = small_to_float(small[k], c);
            if (isnan(v)) assert_true(isnan(small_to_float(small[k], small_from_float(small[k], v, true))));
            else if (!isinf(v)) assert_int_equal(small_from_float(small[k], v, c & 1), c);
        }
}

// Between neighbouring positive codes: below, at and above the middle.
static void test_rounding(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(small); k++) {
        DType d = small[k];
        if (d == DT_F8E8M0) continue;
        for (uint32_t c = 0; c + 1 < code_count(d) / 2; c++) {
            float lo = small_to_float(d, c), hi = small_to_float(d, c + 1);
            if (isnan(hi) || isinf(hi)) break;
            float middle = lo / 2 + hi / 2;              // exact
            assert_int_equal(small_from_float(d, middle, true), c + (c & 1));
            assert_int_equal(small_from_float(d, nextafterf(middle, 0), true), c);
            assert_int_equal(small_from_float(d, nextafterf(middle, INFINITY), true), c + 1);
        }
    }
}

static void test_out_of_range(void **state) {
    (void)state;
    static const struct { DType d; float v; uint32_t saturated, plain;
    } rows[] = {
        { DT_F8E4M3FN, INFINITY, 0x7e, 0x7f },
        { DT_F8E4M3FN, -INFINITY, 0xfe, 0xff },
        { DT_F8E4M3FN, 464, 0x7e, 0x7e },
        { DT_F8E4M3FN, 465, 0x7e, 0x7f },
        { DT_F8E4M3FN, -0.0f, 0x80, 0x80 },
        { DT_F8E4M3FNUZ, INFINITY, 0x7f, 0x80 },
        { DT_F8E4M3FNUZ, -1000, 0xff, 0x80 },
        { DT_F8E4M3FNUZ, -0.0f, 0, 0 },
        { DT_F8E4M3FNUZ, -1e-9f, 0, 0 },
        { DT_F8E4M3FNUZ, NAN, 0x80, 0x80 },
        { DT_F8E5M2, INFINITY, 0x7b, 0x7c },
        { DT_F8E5M2, -1e9f, 0xfb, 0xfc },
        { DT_F8E5M2, NAN, 0x7e, 0x7e },
        { DT_F8E5M2FNUZ, 1e9f, 0x7f, 0x80 },
        { DT_F16, 65520, 0x7c00, 0x7c00 },
        { DT_F16, 65519, 0x7bff, 0x7bff },
        { DT_BF16, -INFINITY, 0xff80, 0xff80 },
        { DT_F4E2M1, 100, 7, 7 },
        { DT_F4E2M1, -INFINITY, 15, 15 },
        { DT_F6E2M3, 100, 0x1f, 0x1f },
        { DT_F6E2M3, -7.3f, 0x3f, 0x3f },
        { DT_F6E2M3, NAN, 0x20, 0x20 },
        { DT_F6E3M2, -INFINITY, 0x3f, 0x3f },
        { DT_F6E3M2, 0.1f, 2, 2 },
        { DT_F8E8M0, 0, 0, 255 },
        { DT_F8E8M0, INFINITY, 254, 255 },
        { DT_F8E8M0, 5, 130, 129 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(small_from_float(rows[i].d, rows[i].v, true), rows[i].saturated);
        assert_int_equal(small_from_float(rows[i].d, rows[i].v, false), rows[i].plain);
    }
}

static void test_elements(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const struct { DType d; double v, back;
    } rows[] = {
        { DT_F32, 0.1, 0.1f },
        { DT_F64, 0.1, 0.1 },
        { DT_I8, -129, 127 },
        { DT_U8, 257.9, 1 },
        { DT_I4, 9, -7 },
        { DT_U4, 17, 1 },
        { DT_I2, 3, -1 },
        { DT_U2, 5, 1 },
        { DT_BOOL, -3, 1 },
        { DT_I32, -2.9, -2 },
        { DT_U64, 1.8446744073709549568e19, 1.8446744073709549568e19 },
        { DT_I64, -9e18, -9e18 },
        { DT_F16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10 }, // rounding by way of f32 would give 1
        { DT_I64, NAN, 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        Tensor *t = tensor_new(a, type_make(rows[i].d, 1, (Dim[]){ 3 }));
        tensor_set_f(t, 1, rows[i].v);
        assert_true(tensor_get_f(t, 1) == rows[i].back);
        assert_true(tensor_get_f(t, 0) == 0 && tensor_get_f(t, 2) == 0);
    }
    Tensor *t = tensor_new(a, type_make(DT_F32, 0, NULL));
    tensor_set_f(t, 0, -2.75);
    assert_int_equal(tensor_get_i(t, 0), -2);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),    cmocka_unit_test(test_types),        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_out_of_range), cmocka_unit_test(test_elements),
    };
    return cmocka_run_group_tests_name("type", tests, NULL, NULL);
}
