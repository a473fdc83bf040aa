// SPDX-License-Identifier: MIT OR Apache-2.0
/* Kernels that go strip by strip: what the next strip still needs of a buffer between them comes to its front. Pixels
 * of `width` floats; was, now: the first in the buffer before and after; end: those before it are there.
 */
#include <stddef.h>
#include <string.h>

static void burn_keep(float *rows, ptrdiff_t width, ptrdiff_t was, ptrdiff_t now, ptrdiff_t end)
{
    if (was < now && now < end)
        memmove(rows, rows + (now - was) * width, (size_t)((end - now) * width) * sizeof *rows);
}
