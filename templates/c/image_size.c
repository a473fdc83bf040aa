// SPDX-License-Identifier: MIT OR Apache-2.0
/* Y = height and width of the image whose file's bytes are X.
 *
 *   KERNEL  name of the function
 *   COUNT   number of bytes
 *   SIZES   further parameters that the sizes are made of
 *
 * Returns 0, or what runtime/image.c says of a file that is no image.
 */
#include <stddef.h>
#include <stdint.h>
// holes
#define KERNEL image_size
#define COUNT 1000
#define SIZES
// end holes

int burn_image_size(const uint8_t *data, size_t bytes, int64_t size[2]); /* runtime/image.c */

static int KERNEL(const uint8_t *X, int64_t *Y SIZES)
{
    return burn_image_size(X, (size_t)(COUNT), Y);
}
