// SPDX-License-Identifier: MIT OR Apache-2.0
/* Decimal numbers to the nearest double, exactly, whatever the locale: both sides of digits * 10^exponent as integers
 * of up to 1280 bits, their quotient bit by bit. Part of generated code that reads or writes numbers as text.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { burn_decimal_words = 40 };               /* 10^345 and 64 bits more fit */
typedef struct burn_decimal_int { uint32_t w[burn_decimal_words]; } burn_decimal_int;

static void burn_decimal_scale(burn_decimal_int *x, uint32_t by, uint32_t plus)
{
    uint64_t carry = plus;
    for (int i = 0; i < burn_decimal_words; i++) {
        carry += (uint64_t)x->w[i] * by;
        x->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void burn_decimal_power(burn_decimal_int *x, int tens)
{
    for (int k = 0; k < tens / 9; k++) burn_decimal_scale(x, 1000000000u, 0);
    for (int k = 0; k < tens % 9; k++) burn_decimal_scale(x, 10u, 0);
}

static int burn_decimal_compare(const burn_decimal_int *x, const burn_decimal_int *y)
{
    for (int i = burn_decimal_words - 1; i >= 0; i--)
        if (x->w[i] != y->w[i]) return x->w[i] < y->w[i] ? -1 : 1;
    return 0;
}

static void burn_decimal_subtract(burn_decimal_int *x, const burn_decimal_int *y)
{
    uint64_t borrow = 0;
    for (int i = 0; i < burn_decimal_words; i++) {
        const uint64_t d = (uint64_t)x->w[i] - y->w[i] - borrow;
        x->w[i] = (uint32_t)d;
        borrow = d >> 63;
    }
}

typedef union burn_decimal_double { uint64_t bits; double value; } burn_decimal_double;

static double burn_decimal_of_bits(uint64_t bits)
{
    burn_decimal_double v;
    v.bits = bits;
    return v.value;
}

/* digits * 10^exponent; more: further digits that are not all zero were left out. */
static double burn_decimal(uint64_t digits, int exponent, bool more)
{
    burn_decimal_int num = {{0}}, den = {{0}};
    uint64_t q = 0;
    int e = 63, keep = 53;
    if (digits == 0 || exponent < -345) return 0;
    if (exponent > 310) return burn_decimal_of_bits(UINT64_C(0x7ff0000000000000));
    num.w[0] = (uint32_t)digits;
    num.w[1] = (uint32_t)(digits >> 32);
    den.w[0] = 1;
    if (more) burn_decimal_scale(&num, 10u, 1);
    const int power = more ? exponent - 1 : exponent;
    burn_decimal_power(power < 0 ? &den : &num, power < 0 ? -power : power);
    /* q = floor(num / den * 2^(63-e)) with its highest bit set */
    while (burn_decimal_compare(&num, &den) >= 0) {
        burn_decimal_scale(&den, 2u, 0);
        e++;
    }
    while (burn_decimal_compare(&num, &den) < 0) {
        burn_decimal_scale(&num, 2u, 0);
        e--;
    }
    for (int i = 0; i < 64; i++) {
        const bool one = burn_decimal_compare(&num, &den) >= 0;
        q = q << 1 | (one ? 1u : 0u);
        if (one) burn_decimal_subtract(&num, &den);
        burn_decimal_scale(&num, 2u, 0);
    }
    e -= 63;                                    /* the value is q * 2^(e-63) */
    for (int i = 0; i < burn_decimal_words; i++)
        if (num.w[i] != 0u) q |= 1u;                  /* the bits that follow matter only as a whole */
    if (e > 1023) return burn_decimal_of_bits(UINT64_C(0x7ff0000000000000));
    if (e < -1022) keep = 53 - (-1022 - e);
    if (keep < 0) return 0;
    {
        const int drop = 64 - keep;
        const uint64_t half = UINT64_C(1) << (drop - 1), low = drop == 64 ? q : q & ((half << 1) - 1u);
        uint64_t r = drop == 64 ? 0u : q >> drop;
        if (low > half || (low == half && (r & 1u) != 0u)) r++;
        /* without its leading bit the fraction counts the exponent up when rounding carries */
        return burn_decimal_of_bits(keep < 53 ? r : ((uint64_t)(e + 1023) << 52) + (r - (UINT64_C(1) << 52)));
    }
}
