// SPDX-License-Identifier: MIT OR Apache-2.0
/* Y[i] = X[i] as text. Floats: the fewest digits that give the number back, plain where the exponent is -5..15, else
 * 1.5e+20; NaN, INF, -INF.
 *
 *   KERNEL WRITE     names of the function and of what it does to a number
 *   ELEMENT          type of an element in memory;  LOAD(e): as a number
 *   COUNT            number of elements
 *   FLOAT UNSIGNED   what elements are: else signed integers
 *   DOUBLE           floats: 1 when they have the precision of a double, else of a float
 *   SIZES            further parameters that the sizes are made of
 *
 * Returns 0, or 1 when the pool has no room.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../../runtime/burn.h"
#include "decimal.h"
#include "pool.h"
// holes
#define KERNEL string_format
#define WRITE string_format_one
#define ELEMENT float
#define LOAD(e) (e)
#define COUNT 16
#define FLOAT 1
#define UNSIGNED 0
#define DOUBLE 0
#define SIZES
// end holes

#if FLOAT
/* Writes v > 0, finite: 17 exact digits of m * 2^e, then the shortest rounding of them that reads back as v. */
static size_t WRITE(double v, char *to)
{
    burn_decimal_int num = {{0}}, den = {{0}};
    burn_decimal_double given;
    uint64_t m;
    unsigned char d[18], r[18];
    char *const start = to;
    int e, ten = 0, n, used = 0;
    given.value = v;
    e = (int)(given.bits >> 52 & 0x7ffu);
    m = given.bits & ((UINT64_C(1) << 52) - 1u);
    if (e > 0) m |= UINT64_C(1) << 52;
    else e = 1;
    num.w[0] = (uint32_t)m;
    num.w[1] = (uint32_t)(m >> 32);
    den.w[0] = 1;
    for (int i = 1075; i < e; i++) burn_decimal_scale(&num, 2u, 0);
    for (int i = e; i < 1075; i++) burn_decimal_scale(&den, 2u, 0);
    while (burn_decimal_compare(&num, &den) < 0) {
        burn_decimal_scale(&num, 10u, 0);
        ten--;
    }
    for (;;) { /* den <= num < 10 den */
        burn_decimal_int tenfold = den;
        burn_decimal_scale(&tenfold, 10u, 0);
        if (burn_decimal_compare(&num, &tenfold) < 0) break;
        den = tenfold;
        ten++;
    }
    for (int i = 0; i < 18; i++) {
        d[i] = 0;
        while (burn_decimal_compare(&num, &den) >= 0) {
            burn_decimal_subtract(&num, &den);
            d[i]++;
        }
        burn_decimal_scale(&num, 10u, 0);
    }
    for (n = 1; n <= 17; n++) {
        uint64_t digits = 0;
        int up = d[n] > 5, at = n;
        if (d[n] == 5) { /* half: up when anything follows or the digit is odd */
            for (int i = n + 1; i < 18; i++) up |= d[i] != 0;
            for (int i = 0; i < burn_decimal_words; i++) up |= num.w[i] != 0;
            up |= d[n - 1] & 1;
        }
        memcpy(r, d, sizeof r);
        while (up != 0 && at > 0) {
            at--;
            r[at] = (unsigned char)(r[at] == 9 ? 0 : r[at] + 1);
            up = r[at] == 0;
        }
        used = ten + up;
        if (up != 0) { /* 9.99 became 10.0 */
            memmove(r + 1, r, 17);
            r[0] = 1;
        }
        for (int i = 0; i < n; i++) digits = digits * 10 + r[i];
#if DOUBLE
        if (burn_decimal(digits, used - n + 1, false) == v) break;
#else
        if ((float)burn_decimal(digits, used - n + 1, false) == (float)v) break;
#endif
    }
    if (n > 17) n = 17;
    while (n > 1 && r[n - 1] == 0) n--;
    if (used < -5 || used > 15) {
        *to++ = (char)('0' + (int)r[0]);
        if (n > 1) *to++ = '.';
        for (int i = 1; i < n; i++) *to++ = (char)('0' + (int)r[i]);
        *to++ = 'e';
        *to++ = used < 0 ? '-' : '+';
        if (used < 0) used = -used;
        if (used >= 100) *to++ = (char)('0' + used / 100);
        *to++ = (char)('0' + used / 10 % 10);
        *to++ = (char)('0' + used % 10);
        return (size_t)(to - start);
    }
    if (used < 0) {
        *to++ = '0';
        *to++ = '.';
        for (int i = 1; i < -used; i++) *to++ = '0';
        for (int i = 0; i < n; i++) *to++ = (char)('0' + (int)r[i]);
    } else {
        for (int i = 0; i < n || i <= used; i++) {
            *to++ = (char)('0' + (i < n ? (int)r[i] : 0));
            if (i == used && n > used + 1) *to++ = '.';
        }
    }
    return (size_t)(to - start);
}
#else
static size_t WRITE(uint64_t v, char *to)
{
    char digits[20];
    size_t n = 0;
    do digits[n++] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    for (size_t i = 0; i < n; i++) to[i] = digits[n - 1 - i];
    return n;
}
#endif

static int KERNEL(const ELEMENT *X, burn_string *Y SIZES, burn_pool *pool)
{
    for (ptrdiff_t i = 0; i < COUNT; i++) {
        char text[40];
        size_t n = 0;
#if FLOAT
        const double v = (double)LOAD(X[i]);
        burn_decimal_double given;
        given.value = v;
        if (v != v) {
            memcpy(text, "NaN", 3);
            n = 3;
        } else {
            if (given.bits >> 63 != 0u) text[n++] = '-';
            if (v == 0) text[n++] = '0';
            else if (v - v != 0) {
                memcpy(text + n, "INF", 3);
                n += 3;
            } else n += WRITE(v < 0 ? -v : v, text + n);
        }
#else
#if UNSIGNED
        const uint64_t v = (uint64_t)LOAD(X[i]);
#else
        const int64_t w = (int64_t)LOAD(X[i]);
        const uint64_t v = w < 0 ? 0 - (uint64_t)w : (uint64_t)w;
        if (w < 0) text[n++] = '-';
#endif
        n += WRITE(v, text + n);
#endif
        char *const to = burn_pool_take(pool, n + 1);
        if (!to) return 1;
        memcpy(to, text, n);
        to[n] = 0;
        Y[i] = to;
    }
    return 0;
}
