// SPDX-License-Identifier: MIT OR Apache-2.0
/* Y[i] = X[i] in upper or lower case, character by character.
 *
 *   KERNEL   name of the function
 *   COUNT    number of strings
 *   UPPER    1: upper case, 0: lower case
 *   SIZES    further parameters that the sizes are made of
 *
 * Returns 0, or 1 when the pool has no room.
 */
#include <stddef.h>
#include <stdint.h>
#include "../../runtime/burn.h"
#include "case.h"
#include "pool.h"
// holes
#define KERNEL string_case
#define COUNT 16
#define UPPER 0
#define SIZES
// end holes

static int KERNEL(const burn_string *X, burn_string *Y SIZES, burn_pool *pool)
{
    for (ptrdiff_t i = 0; i < COUNT; i++) {
        const char *s = X[i];
        char *to;
        Y[i] = pool->at;
        while (*s != 0) {
            char bytes[4];
            bool plain;
            const uint32_t c = burn_case_read(&s, &plain);
            const bool foreign = plain && c >= 0x80;
            const size_t n = burn_case_write(bytes, foreign ? c : burn_case(c, UPPER), foreign);
            to = burn_pool_take(pool, n);
            if (!to) return 1;
            for (size_t k = 0; k < n; k++) to[k] = bytes[k];
        }
        to = burn_pool_take(pool, 1);
        if (!to) return 1;
        *to = 0;
    }
    return 0;
}
