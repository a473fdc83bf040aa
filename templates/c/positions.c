// SPDX-License-Identifier: MIT OR Apache-2.0
/* Where the true elements are: P[0], P[1], ... their positions in ascending order, *FOUND how many there are. What
 * follows in P is 0.
 *
 *   KERNEL    name of the function
 *   COUNT     elements of X
 *   SIZES     further parameters that the size is made of
 *
 * Every position is stored where the next true one belongs, so that there is no branch to guess.
 */
#include <stddef.h>
#include <stdint.h>
// holes
#define KERNEL positions
#define COUNT 1000
#define SIZES
// end holes

static void KERNEL(const uint8_t *X, int64_t *P, int64_t *FOUND SIZES)
{
    const ptrdiff_t n = (ptrdiff_t)(COUNT);
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        P[found] = i;
        found += X[i] != 0;
    }
    *FOUND = found;
    for (ptrdiff_t i = found; i < n; i++) P[i] = 0;
}
