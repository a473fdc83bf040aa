// SPDX-License-Identifier: MIT OR Apache-2.0
/* Y[i] = where X[i] stands in the table, whose strings are in the order of their bytes; -1 when it is not there.
 *
 *   KERNEL   name of the function
 *   COUNT    number of strings
 *   KEYS     of the table
 *   SIZES    further parameters that the sizes are made of
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../../runtime/burn.h"
// holes
#define KERNEL string_find
#define COUNT 16
#define KEYS 16
#define SIZES
// end holes

static void KERNEL(const burn_string *X, const burn_string *table, int64_t *Y SIZES)
{
    for (ptrdiff_t i = 0; i < COUNT; i++) {
        ptrdiff_t low = 0, high = KEYS;
        Y[i] = -1;
        while (low < high) {
            const ptrdiff_t mid = low + (high - low) / 2;
            const int order = strcmp(X[i], table[mid]);
            if (order == 0) {
                Y[i] = mid;
                break;
            }
            if (order < 0) high = mid;
            else low = mid + 1;
        }
    }
}
