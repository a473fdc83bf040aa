// SPDX-License-Identifier: MIT OR Apache-2.0
/* Where the strings that a run makes live: bytes of the workspace, given out one after the other and taken back when
 * the next run begins, as their addresses may end up in any output. Part of generated code that makes strings.
 */
#include <stddef.h>

typedef struct burn_pool { char *at, *end; } burn_pool;

/* Room for n bytes; null when there is none. */
static char *burn_pool_take(burn_pool *pool, size_t n)
{
    char *const at = pool->at;
    if ((size_t)(pool->end - at) < n) return NULL;
    pool->at += n;
    return at;
}
