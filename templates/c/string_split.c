// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cuts each string at a delimiter, or at white space: counts the parts, or writes them with "" behind the last.
 *
 *   KERNEL      name of the function
 *   COUNT       number of strings
 *   PARTS       0: Y[i] is the number of parts; 1: Y[i*ROOM + k] is part k
 *   ROOM        parts of a string in the result
 *   DELIMITER   a C string; "": white space, of which a run counts once and what leads or ends a string does not count
 *   LENGTH      its bytes
 *   LIMITED MOST   whether only so many cuts are made, and how many; the last part is the rest
 *   SIZES       further parameters that the sizes are made of
 *
 * Returns 0, or 1 when the pool has no room.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../../runtime/burn.h"
#include "pool.h"
// holes
#define KERNEL string_split
#define COUNT 16
#define PARTS 1
#define ROOM 8
#define DELIMITER ","
#define LENGTH 1
#define LIMITED 0
#define MOST 0
#define SIZES
// end holes

#if PARTS
static int KERNEL(const burn_string *X, burn_string *Y SIZES, burn_pool *pool)
#else
static void KERNEL(const burn_string *X, int64_t *Y SIZES)
#endif
{
    for (ptrdiff_t i = 0; i < COUNT; i++) {
        const char *s = X[i];
        ptrdiff_t k = 0;
        while (s != NULL) {
#if LENGTH == 0
            s += strspn(s, " \t\n\v\f\r");
            if (!*s) break;
#endif
            const char *const from = s;
#if LENGTH == 0
            const char *end = from + strcspn(from, " \t\n\v\f\r");
            s = end;
#else
            const char *end = strstr(from, DELIMITER);
            s = end ? end + LENGTH : NULL;
#endif
#if LIMITED
            if (k >= MOST) {
                s = NULL;
                end = NULL;
            }
#endif
#if PARTS
            const size_t length = end ? (size_t)(end - from) : strlen(from);
            char *const to = burn_pool_take(pool, length + 1);
            if (!to || k >= ROOM) return 1;
            memcpy(to, from, length);
            to[length] = 0;
            Y[i * ROOM + k] = to;
#endif
            k++;
        }
#if PARTS
        for (; k < ROOM; k++) Y[i * ROOM + k] = "";
#else
        Y[i] = k;
#endif
    }
#if PARTS
    return 0;
#endif
}
