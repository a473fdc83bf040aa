// SPDX-License-Identifier: MIT OR Apache-2.0
/* Kernels that go strip by strip: what the next strip still needs of a buffer between them comes to its front. Pixels
 * of `pixel` bytes; was, now: the first in the buffer before and after; end: those before it are there.
 */
#include <stddef.h>
#include <string.h>

static void burn_keep(void *rows, ptrdiff_t pixel, ptrdiff_t was, ptrdiff_t now, ptrdiff_t end)
{
    if (was < now && now < end)
        memmove(rows, (unsigned char *)rows + (now - was) * pixel, (size_t)((end - now) * pixel));
}
