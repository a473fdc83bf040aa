// SPDX-License-Identifier: MIT OR Apache-2.0
// Element types, tensor types and single elements of tensors.
//
// In: numbers. Out: numbers rounded to a dtype as ONNX's Cast says. The idea: one row per dtype, one row per small
// float format; a small float is rounded to nearest even in integer arithmetic on the bits of an f32, so results do
// not depend on the machine. Sizes saturate at INT64_MAX: shapes come from strangers, and a saturated size fails
// every limit.
#include "ir.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct DTypeRow { const char *name; uint8_t size; DClass class; } DTypeRow;
static const DTypeRow dtype_rows[DT_COUNT] = {
    [DT_NONE] = { "none", 0, CLASS_NONE },
    [DT_F32] = { "f32", 4, CLASS_FLOAT },         [DT_U8] = { "u8", 1, CLASS_UINT },
    [DT_I8] = { "i8", 1, CLASS_INT },             [DT_U16] = { "u16", 2, CLASS_UINT },
    [DT_I16] = { "i16", 2, CLASS_INT },           [DT_I32] = { "i32", 4, CLASS_INT },
    [DT_I64] = { "i64", 8, CLASS_INT },           [DT_STRING] = { "string", sizeof(char *), CLASS_STRING },
    [DT_BOOL] = { "bool", 1, CLASS_BOOL },        [DT_F16] = { "f16", 2, CLASS_FLOAT },
    [DT_F64] = { "f64", 8, CLASS_FLOAT },         [DT_U32] = { "u32", 4, CLASS_UINT },
    [DT_U64] = { "u64", 8, CLASS_UINT },          [DT_C64] = { "c64", 8, CLASS_COMPLEX },
    [DT_C128] = { "c128", 16, CLASS_COMPLEX },    [DT_BF16] = { "bf16", 2, CLASS_FLOAT },
    [DT_F8E4M3FN] = { "f8e4m3fn", 1, CLASS_FLOAT },   [DT_F8E4M3FNUZ] = { "f8e4m3fnuz", 1, CLASS_FLOAT },
    [DT_F8E5M2] = { "f8e5m2", 1, CLASS_FLOAT },   [DT_F8E5M2FNUZ] = { "f8e5m2fnuz", 1, CLASS_FLOAT },
    [DT_U4] = { "u4", 1, CLASS_UINT },            [DT_I4] = { "i4", 1, CLASS_INT },
    [DT_F4E2M1] = { "f4e2m1", 1, CLASS_FLOAT },   [DT_F8E8M0] = { "f8e8m0", 1, CLASS_FLOAT },
    [DT_U2] = { "u2", 1, CLASS_UINT },            [DT_I2] = { "i2", 1, CLASS_INT },
    [DT_F6E2M3] = { "f6e2m3", 1, CLASS_FLOAT },   [DT_F6E3M2] = { "f6e3m2", 1, CLASS_FLOAT },
    [DT_INDEX] = { "index", 8, CLASS_INT },
};

const char *dtype_name(DType d) { return dtype_rows[d].name; }
size_t dtype_size(DType d) { return dtype_rows[d].size; }

unsigned dtype_bits(DType d) {
    switch (d) {
    case DT_U2: case DT_I2: return 2;
    case DT_U4: case DT_I4: case DT_F4E2M1: return 4;
    case DT_F6E2M3: case DT_F6E3M2: return 6;
    default: return 8 * (unsigned)dtype_size(d);
    }
}

DClass dtype_class(DType d) { return dtype_rows[d].class; }
bool dtype_is_float(DType d) { return dtype_rows[d].class == CLASS_FLOAT; }
bool dtype_is_byte(DType d) { return d == DT_I8 || d == DT_U8; }
bool dtype_is_int(DType d) { return dtype_rows[d].class == CLASS_INT || dtype_rows[d].class == CLASS_UINT; }
bool dtype_is_small_float(DType d) { return dtype_is_float(d) && d != DT_F32 && d != DT_F64; }
DType dtype_wide(DType d) { return dtype_is_small_float(d) ? DT_F32 : d; }

bool dtype_parse(const char *s, DType *out) {
    for (int d = DT_NONE + 1; d < DT_INDEX; d++)
        if (!strcmp(s, dtype_rows[d].name)) {
            *out = (DType)d;
            return true;
        }
    return false;
}

// ---- tensor types

Type type_make(DType d, int rank, const Dim *dims) {
    if (rank < 0 || rank > MAX_RANK) bug("rank %d", rank);
    Type t = { .dtype = d, .rank = rank };
    for (int i = 0; i < rank; i++) t.dim[i] = dims[i];
    return t;
}

bool type_same_shape(const Type *a, const Type *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

bool type_equal(const Type *a, const Type *b) { return a->dtype == b->dtype && type_same_shape(a, b); }

bool type_is_static(const Type *t) {
    for (int i = 0; i < t->rank; i++)
        if (!dim_is_const(t->dim[i])) return false;
    return true;
}

int64_t type_count(const Type *t) {
    int64_t n = 1;
    bool huge = false;
    for (int i = 0; i < t->rank; i++) {
        if (!dim_is_const(t->dim[i])) bug("element count of a type with a symbolic dimension");
        if (t->dim[i] == 0) return 0;
        huge |= __builtin_mul_overflow(n, t->dim[i], &n);
    }
    return huge ? INT64_MAX : n;
}

int64_t type_bytes(const Type *t) {
    int64_t n;
    return __builtin_mul_overflow(type_count(t), (int64_t)dtype_size(t->dtype), &n) ? INT64_MAX : n;
}

bool type_too_large(const Type *t) {
    int64_t n = (int64_t)dtype_size(t->dtype);
    bool huge = false;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] > 0) huge |= __builtin_mul_overflow(n, t->dim[i], &n);
    return huge || n > MAX_TENSOR_BYTES;
}

int64_t type_count_upper(const Graph *g, const Type *t) { return dims_upper(g, t->rank, t->dim); }

int64_t type_bytes_upper(const Graph *g, const Type *t) {
    int64_t n;
    return __builtin_mul_overflow(type_count_upper(g, t), (int64_t)dtype_size(t->dtype), &n) ? INT64_MAX : n;
}

bool type_uses(const Graph *g, const Type *t, int symbol) {
    for (int i = 0; i < t->rank; i++)
        if (dim_uses(g, t->dim[i], symbol)) return true;
    return false;
}

Dim type_product(Graph *g, const Type *t, int from, int to) {
    Dim n = 1;
    for (int i = from; i < to; i++) n = dim_mul(g, n, t->dim[i]);
    return n;
}

Dim type_size(Graph *g, const Type *t) { return type_product(g, t, 0, t->rank); }

// Two different symbols (or a symbol and a constant other than 1) are taken to be equal: types are inferred again
// once the symbols are bound, and then a mismatch shows.
bool type_broadcast(Type *out, const Type *a, const Type *b) {
    Type t = { .dtype = a->dtype, .rank = a->rank > b->rank ? a->rank : b->rank };
    for (int i = 0; i < t.rank; i++) {
        int ia = i - (t.rank - a->rank), ib = i - (t.rank - b->rank);
        Dim da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
        if (da == db || db == 1) t.dim[i] = da;
        else if (da == 1) t.dim[i] = db;
        else if (dim_is_const(da) && dim_is_const(db)) return false;
        else t.dim[i] = dim_is_const(db) ? db : da;
    }
    *out = t;
    return true;
}

void type_strides(const Type *t, int64_t *strides) {
    int64_t n = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (!dim_is_const(t->dim[i])) bug("strides of a type with a symbolic dimension");
        strides[i] = n;
        // past it only beside a dimension of 0
        n = t->dim[i] && n > INT64_MAX / t->dim[i] ? INT64_MAX : n * t->dim[i];
    }
}

const char *type_text(Arena *a, const Graph *g, const Type *t) {
    Text s;
    text_init(&s, a);
    text_printf(&s, "%s[", dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++) {
        if (i) text_append(&s, ",", 1);
        if (dim_is_const(t->dim[i])) text_printf(&s, "%" PRId64, t->dim[i]);
        else text_printf(&s, "%s", g ? dim_text(a, g, t->dim[i]) : "?");
    }
    text_append(&s, "]", 1);
    return s.at;
}

// ---- small floats

// Bits from the top: sign, exponent, mantissa. Magnitudes above max are infinity or NaN, if the format has them.
typedef struct SmallFloat {
    int mantissa, bias;
    uint32_t sign;                              // the sign's bit
    uint32_t max;                               // code of the largest finite magnitude
    uint32_t inf, nan;                          // codes; inf 0: none; nan 0: none
    bool unsigned_zero;                         // "UZ": the code of -0 is NaN
} SmallFloat;

static const SmallFloat small_floats[DT_COUNT] = {
    [DT_F16] = { 10, 15, 0x8000, 0x7bff, 0x7c00, 0x7e00, false },
    [DT_BF16] = { 7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7fc0, false },
    [DT_F8E4M3FN] = { 3, 7, 0x80, 0x7e, 0, 0x7f, false },
    [DT_F8E4M3FNUZ] = { 3, 8, 0x80, 0x7f, 0, 0x80, true },
    [DT_F8E5M2] = { 2, 15, 0x80, 0x7b, 0x7c, 0x7e, false },
    [DT_F8E5M2FNUZ] = { 2, 16, 0x80, 0x7f, 0, 0x80, true },
    [DT_F4E2M1] = { 1, 1, 0x8, 0x7, 0, 0, false },
    [DT_F6E2M3] = { 3, 1, 0x20, 0x1f, 0, 0, false },
    [DT_F6E3M2] = { 2, 3, 0x20, 0x1f, 0, 0, false },
};

static uint32_t float_bits(float v) {
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static float float_of_bits(uint32_t u) {
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

// 8 exponent bits and nothing else: 2^(code - 127), 255 is NaN (OCP Microscaling Formats 1.0, section 5.4.1).
static float e8m0_to_float(uint32_t code) { return code == 255 ? NAN : ldexpf(1.0f, (int)code - 127); }

// As ONNX's Cast has it: saturating rounds up, else to nearest (ties to the even code) and what is out of range is NaN.
static uint32_t e8m0_from_float(float v, bool saturate) {
    if (isnan(v)) return 255;
    v = fabsf(v);
    if (isinf(v)) return saturate ? 254 : 255;
    if (v < 0x1p-127f) return saturate ? 0 : 255;
    int e;
    float m = frexpf(v, &e);                    // v = m * 2^e, m in [0.5, 1)
    int code = e - 1 + 127;
    bool up = saturate ? m > 0.5f : m > 0.75f || (m == 0.75f && (code & 1));
    code += up;
    return code <= 254 ? (uint32_t)code : saturate ? 254 : 255;
}

float small_to_float(DType d, uint32_t bits) {
    if (d == DT_F8E8M0) return e8m0_to_float(bits);
    const SmallFloat *f = &small_floats[d];
    if (!f->sign) bug("%s is no small float", dtype_name(d));
    uint32_t code = bits & (f->sign - 1), sign = bits & f->sign ? UINT32_C(0x80000000) : 0;
    if (code > f->max || (f->unsigned_zero && bits == f->nan))
        return float_of_bits(sign | (f->inf && code == f->inf ? 0x7f800000 : 0x7fc00000));
    // With the mantissa in place the exponent is off by a power of two, which multiplying corrects, exactly, for
    // subnormals too.
    if (d == DT_BF16) return float_of_bits(sign | code << 16);
    return float_of_bits(sign | float_bits(float_of_bits(code << (23 - f->mantissa)) * ldexpf(1.0f, 127 - f->bias)));
}

// The code of a magnitude given as f32 bits, rounded to nearest even; may exceed f->max.
static uint32_t round_magnitude(const SmallFloat *f, uint32_t u) {
    int exponent = (int)(u >> 23), shift = 23 - f->mantissa;
    uint32_t m = u & 0x7fffff;
    if (exponent) m |= UINT32_C(1) << 23;
    else exponent = 1;                          // subnormal f32
    int e = exponent - 127 + f->bias;
    if (e < 1) {                                // subnormal in the format
        shift += 1 - e;
        e = 1;
    }
    if (shift >= 25) return 0;                  // below half of the smallest
    uint32_t n = m >> shift, rest = m & ((UINT32_C(1) << shift) - 1), half = UINT32_C(1) << (shift - 1);
    n += rest > half || (rest == half && (n & 1));
    return ((uint32_t)(e - 1) << f->mantissa) + n;      // the mantissa's leading one counts the exponent up
}

uint32_t small_from_float(DType d, float v, bool saturate) {
    if (d == DT_F8E8M0) return e8m0_from_float(v, saturate);
    const SmallFloat *f = &small_floats[d];
    if (!f->sign) bug("%s is no small float", dtype_name(d));
    uint32_t u = float_bits(v), sign = u >> 31 ? f->sign : 0;
    if (isnan(v)) return f->nan ? f->nan | sign : f->sign;      // no NaN (f4, f6): -0
    if (d == DT_F16 || d == DT_BF16) saturate = false;          // ONNX: these go to infinity
    if (!f->inf && !f->nan) saturate = true;
    uint32_t code = isinf(v) ? f->max + 1 : round_magnitude(f, u & 0x7fffffff);
    if (code > f->max) code = saturate ? f->max : f->inf ? f->inf : f->nan;
    if (f->unsigned_zero && !code) sign = 0;
    return code | sign;
}

// The f32 with the sign and exponent of v whose last bit is 1 when v was cut: rounding it again to fewer bits (at
// least two fewer) gives what rounding v at once would (Boldo and Melquiond, "Emulation of FMA and correctly rounded
// sums", 2008).
float float_to_odd(double v) {
    float f = (float)v;
    if ((double)f == v || isnan(v) || isinf(v)) return f;
    uint32_t u = float_bits(f);
    if (fabs((double)f) > fabs(v)) u--;         // towards zero
    return float_of_bits(u | 1);
}

// ---- elements

Tensor *tensor_new(Arena *a, Type type) {
    int64_t bytes = type_bytes(&type);
    if ((uint64_t)bytes > SIZE_MAX / 2) fatal(EXIT_MEMORY, "a tensor is too large: %s", type_text(a, NULL, &type));
    Tensor *t = NEW(a, Tensor);
    t->type = type;
    t->data = arena_alloc(a, (size_t)bytes);
    return t;
}

// Elements are read by memcpy: data mapped from a file need not be aligned.
#define LOAD(T, t, i) load_##T((const char *)(t)->data + (size_t)(i) * sizeof(T))
#define DEFINE_LOAD(T) static inline T load_##T(const char *p) { T v; memcpy(&v, p, sizeof v); return v; }
DEFINE_LOAD(float)
DEFINE_LOAD(double)
DEFINE_LOAD(int8_t) DEFINE_LOAD(uint8_t) DEFINE_LOAD(int16_t) DEFINE_LOAD(uint16_t) DEFINE_LOAD(int32_t)
    DEFINE_LOAD(uint32_t) DEFINE_LOAD(int64_t) DEFINE_LOAD(uint64_t)
#define SAVE(T, t, i, v)                                                                                              \
    do {                                                                                                              \
        T v_ = (T)(v);                                                                                                \
        memcpy((char *)(t)->data + (size_t)(i) * sizeof(T), &v_, sizeof v_);                                          \
    } while (0)

        int64_t tensor_get_i(const Tensor *t, int64_t i) {
    switch (t->type.dtype) {
    case DT_I8: case DT_I4: case DT_I2: return LOAD(int8_t, t, i);
    case DT_U8: case DT_U4: case DT_U2: case DT_BOOL: return LOAD(uint8_t, t, i);
    case DT_I16: return LOAD(int16_t, t, i);
    case DT_U16: return LOAD(uint16_t, t, i);
    case DT_I32: return LOAD(int32_t, t, i);
    case DT_U32: return LOAD(uint32_t, t, i);
    case DT_I64: return LOAD(int64_t, t, i);
    case DT_U64: return (int64_t)LOAD(uint64_t, t, i);
    default: break;
    }
    double v = tensor_get_f(t, i);
    return isnan(v) ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

double tensor_get_f(const Tensor *t, int64_t i) {
    switch (t->type.dtype) {
    case DT_F32: return (double)LOAD(float, t, i);
    case DT_F64: return LOAD(double, t, i);
    case DT_C64: return (double)LOAD(float, t, 2 * i);          // the real part
    case DT_C128: return LOAD(double, t, 2 * i);
    case DT_U64: return (double)LOAD(uint64_t, t, i);
    case DT_F16: case DT_BF16: return (double)small_to_float(t->type.dtype, LOAD(uint16_t, t, i));
    default: break;
    }
    if (dtype_is_float(t->type.dtype)) return (double)small_to_float(t->type.dtype, LOAD(uint8_t, t, i));
    if (!dtype_is_int(t->type.dtype) && t->type.dtype != DT_BOOL)
        bug("number in a tensor of %s", dtype_name(t->type.dtype));
    return (double)tensor_get_i(t, i);
}

void tensor_set_i(Tensor *t, int64_t i, int64_t v) {
    switch (t->type.dtype) {                    // what does not fit is cut to its low bits
    case DT_BOOL: SAVE(uint8_t, t, i, v != 0); break;
    case DT_U2: SAVE(uint8_t, t, i, v & 3); break;
    case DT_U4: SAVE(uint8_t, t, i, v & 15); break;
    case DT_I2: SAVE(int8_t, t, i, ((v & 3) ^ 2) - 2); break;
    case DT_I4: SAVE(int8_t, t, i, ((v & 15) ^ 8) - 8); break;
    case DT_I8:
    case DT_U8: SAVE(uint8_t, t, i, v & 0xff); break;
    case DT_I16:
    case DT_U16: SAVE(uint16_t, t, i, v & 0xffff); break;
    case DT_I32:
    case DT_U32: SAVE(uint32_t, t, i, v & 0xffffffff); break;
    case DT_I64:
    case DT_U64: SAVE(int64_t, t, i, v); break;
    case DT_F32: SAVE(float, t, i, v); break;
    default: tensor_set_f(t, i, (double)v); break;
    }
}

void tensor_set_f(Tensor *t, int64_t i, double v) {
    DType d = t->type.dtype;
    switch (d) {
    case DT_F32: SAVE(float, t, i, v); return;
    case DT_F64: SAVE(double, t, i, v); return;
    case DT_C64:
        SAVE(float, t, 2 * i, v);
        SAVE(float, t, 2 * i + 1, 0);
        return;
    case DT_C128:
        SAVE(double, t, 2 * i, v);
        SAVE(double, t, 2 * i + 1, 0);
        return;
    case DT_F16:
    case DT_BF16: SAVE(uint16_t, t, i, small_from_float(d, float_to_odd(v), true)); return;
    case DT_BOOL: SAVE(uint8_t, t, i, v != 0); return;
    default: break;
    }
    if (dtype_is_float(d)) {
        SAVE(uint8_t, t, i, small_from_float(d, float_to_odd(v), true));
        return;
    }
    if (!dtype_is_int(d)) bug("number in a tensor of %s", dtype_name(d));
    if (d == DT_U64 && v >= 0x1p63) SAVE(uint64_t, t, i, v >= 0x1p64 ? UINT64_MAX : (uint64_t)v);
    else tensor_set_i(t, i, isnan(v) ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v);
}
