/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Element types of records, their names, and floats of one size as those of another.
 *
 * Small floats, of m bits behind the point and a least exponent e0, are one formula: |x| = r 2^(e - m) with e at least
 * e0 and r rounded to an integer (half to even) has the bits ((e - e0) << m) + r. The bit in front of the point adds
 * one to the exponent's field, rounding up to the next power of two does it by itself, and without that bit the
 * number is subnormal. */
#include "record_own.h"

#include <math.h>
#include <string.h>

static const struct { const char *name; burn_dtype dtype; size_t bytes; } types[] = {
    { "F64", BURN_DOUBLE, 8 }, { "F32", BURN_FLOAT, 4 }, { "F16", BURN_FLOAT16, 2 }, { "BF16", BURN_BFLOAT16, 2 },
    { "I64", BURN_INT64, 8 }, { "I32", BURN_INT32, 4 }, { "I16", BURN_INT16, 2 }, { "I8", BURN_INT8, 1 },
    { "U64", BURN_UINT64, 8 }, { "U32", BURN_UINT32, 4 }, { "U16", BURN_UINT16, 2 }, { "U8", BURN_UINT8, 1 },
    { "BOOL", BURN_BOOL, 1 },
};
enum { TYPES = sizeof types / sizeof types[0] };

burn_dtype record_dtype(const char *name, size_t bytes)
{
    for (int i = 0; i < TYPES; i++)
        if (strlen(types[i].name) == bytes && !memcmp(types[i].name, name, bytes)) return types[i].dtype;
    return BURN_UNDEFINED;
}

const char *record_dtype_name(burn_dtype dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].dtype == dtype) return types[i].name;
    return NULL;
}

size_t record_dtype_bytes(burn_dtype dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].dtype == dtype) return types[i].bytes;
    return 0;
}

int record_is_float(burn_dtype dtype)
{
    return dtype == BURN_DOUBLE || dtype == BURN_FLOAT || dtype == BURN_FLOAT16 || dtype == BURN_BFLOAT16;
}

typedef struct Small { int bits, least; unsigned infinity; } Small;    /* m and e0 */
static const Small half = { 10, -14, 0x7c00 }, brain = { 7, -126, 0x7f80 };

static double small_value(const Small *s, uint16_t bits)
{
    const unsigned field = bits & 0x7fffu, e = field >> s->bits, rest = field & ((1u << s->bits) - 1);
    double x = field == s->infinity ? INFINITY : NAN;
    if (field < s->infinity) x = ldexp(rest | (e ? 1u << s->bits : 0), (e ? (int)e - 1 : 0) + s->least - s->bits);
    return bits & 0x8000u ? -x : x;
}

static uint16_t small_bits(const Small *s, double x)
{
    const unsigned sign = signbit(x) ? 0x8000u : 0;
    unsigned bits = s->infinity;
    if (isnan(x)) bits = s->infinity | 1u << (s->bits - 1);
    else if (x == 0) bits = 0;
    else if (isfinite(x)) {
        int e;
        (void)frexp(x, &e);                                /* |x| is from 2^(e - 1) to below 2^e */
        e = e - 1 < s->least ? s->least : e - 1;
        const unsigned r = (unsigned)rint(ldexp(fabs(x), s->bits - e));
        if (e <= -s->least + 1) bits = ((unsigned)(e - s->least) << s->bits) + r;
        if (bits > s->infinity) bits = s->infinity;
    }
    return (uint16_t)(sign | bits);
}

/* Tensors lie in files wherever they do, so numbers are copied out of them and into them. */
double record_number(const void *data, burn_dtype type, size_t i)
{
    double d;
    float f;
    uint16_t bits;
    const uint8_t *at = (const uint8_t *)data + i * record_dtype_bytes(type);
    switch (type) {
    case BURN_DOUBLE: memcpy(&d, at, sizeof d); return d;
    case BURN_FLOAT: memcpy(&f, at, sizeof f); return (double)f;
    default: memcpy(&bits, at, sizeof bits); return small_value(type == BURN_FLOAT16 ? &half : &brain, bits);
    }
}

void record_set_number(void *data, burn_dtype type, size_t i, double x)
{
    const float f = (float)x;
    uint16_t bits;
    uint8_t *at = (uint8_t *)data + i * record_dtype_bytes(type);
    switch (type) {
    case BURN_DOUBLE: memcpy(at, &x, sizeof x); break;
    case BURN_FLOAT: memcpy(at, &f, sizeof f); break;
    default:
        bits = small_bits(type == BURN_FLOAT16 ? &half : &brain, x);
        memcpy(at, &bits, sizeof bits);
    }
}

int record_convert(const void *from, burn_dtype type, void *to, burn_dtype wanted, size_t n, size_t *i)
{
    uint8_t one[sizeof(double)];
    if (type == wanted) {
        if (to) memcpy(to, from, n * record_dtype_bytes(type));
        return 1;
    }
    for (*i = 0; *i < n; ++*i) {
        const double x = record_number(from, type, *i);
        record_set_number(one, wanted, 0, x);
        if (isfinite(x) && !isfinite(record_number(one, wanted, 0))) return 0;
        if (to) memcpy((uint8_t *)to + *i * record_dtype_bytes(wanted), one, record_dtype_bytes(wanted));
    }
    return 1;
}
