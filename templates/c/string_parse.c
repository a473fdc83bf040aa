// SPDX-License-Identifier: MIT OR Apache-2.0
/* Y[i] = the number that X[i] spells: plain or scientific decimals, INF and NaN in any case, white space around them.
 * What spells none is 0.
 *
 *   KERNEL PARSE   names of the function and of what it does to a string
 *   COUNT          number of strings
 *   INTEGER        1: Y is int64_t; integers of up to 19 digits are exact, other numbers are cut towards 0. 0: Y is
 *                  double, rounded to nearest
 *   SIZES          further parameters that the sizes are made of
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../../runtime/burn.h"
#include "decimal.h"
// holes
#define KERNEL string_parse
#define PARSE string_parse_one
#define COUNT 16
#define INTEGER 0
#define SIZES
// end holes

static double PARSE(const char *text, uint64_t *whole)
{
    static const char words[] = "infnan";
    uint64_t digits = 0;
    const char *s = text + strspn(text, " \t\n\v\f\r");
    const bool minus = *s == '-';
    int exponent = 0, seen = 0;
    bool more = false, any = false, point = false, number = true;
    *whole = UINT64_MAX;
    if (*s == '-' || *s == '+') s++;
    for (int w = 0; w < 2; w++) {
        int same = 0;
        while (same < 3 && (s[same] | 0x20) == words[3 * w + same]) same++;
        if (same == 3) return w == 1 ? (double)NAN : minus ? -(double)INFINITY : (double)INFINITY;
    }
    while (number) {
        if (*s == '.' && !point) point = true;
        else if (*s >= '0' && *s <= '9') {
            any = true;
            if (seen < 19) {
                digits = digits * 10 + (uint64_t)(*s - '0');
                if (digits != 0u) seen++;
                if (point) exponent--;
            } else {
                if (*s != '0') more = true;
                if (!point) exponent++;
            }
        } else number = false;
        if (number) s++;
    }
    if (!any) return 0;
    if ((*s | 0x20) == 'e') {
        const char *t = s + 1;
        const int down = *t == '-';
        int e = 0;
        if (*t == '-' || *t == '+') t++;
        for (; *t >= '0' && *t <= '9'; t++) e = e < 100000 ? e * 10 + (*t - '0') : e;
        exponent += down ? -e : e;
        point = true;
    }
    if (!point && !more && exponent == 0) *whole = minus ? 0 - digits : digits;
    return minus ? -burn_decimal(digits, exponent, more) : burn_decimal(digits, exponent, more);
}

#if INTEGER
static void KERNEL(const burn_string *X, int64_t *Y SIZES)
#else
static void KERNEL(const burn_string *X, double *Y SIZES)
#endif
{
    for (ptrdiff_t i = 0; i < COUNT; i++) {
        uint64_t whole;
        const double v = PARSE(X[i], &whole);
#if INTEGER
        if (whole != UINT64_MAX) Y[i] = (int64_t)whole;
        else
            Y[i] = v != v                       ? 0
                 : v >= 9223372036854775808.0   ? INT64_MAX
                 : v < -9223372036854775808.0   ? -INT64_C(9223372036854775807) - 1
                                                : (int64_t)v;
#else
        Y[i] = v;
#endif
    }
}
