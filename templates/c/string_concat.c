// SPDX-License-Identifier: MIT OR Apache-2.0
/* Z[i] = X[i] then Y[i].
 *
 *   KERNEL   name of the function
 *   COUNT    number of strings
 *   SIZES    further parameters that the sizes are made of
 *
 * Returns 0, or 1 when the pool has no room.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../../runtime/burn.h"
#include "pool.h"
// holes
#define KERNEL string_concat
#define COUNT 16
#define SIZES
// end holes

static int KERNEL(const burn_string *X, const burn_string *Y, burn_string *Z SIZES, burn_pool *pool)
{
    for (ptrdiff_t i = 0; i < COUNT; i++) {
        const size_t x = strlen(X[i]), y = strlen(Y[i]);
        char *const to = burn_pool_take(pool, x + y + 1);
        if (!to) return 1;
        memcpy(to, X[i], x);
        memcpy(to + x, Y[i], y + 1);
        Z[i] = to;
    }
    return 0;
}
