// SPDX-License-Identifier: MIT OR Apache-2.0
// What the programs that drive generated training code share.
#include <stdio.h>
#include <stdlib.h>

/* Ends the program, and says where, unless it holds. */
#define CHECK(holds) \
    do { \
        if (!(holds)) { \
            printf("line %d: %s\n", __LINE__, #holds); \
            exit(1); \
        } \
    } while (0)

/* Zeros; the program ends without memory. */
static inline void *room(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    CHECK(p);
    return p;
}
