// SPDX-License-Identifier: MIT OR Apache-2.0
/* Y[h][w][c] = the pixels of the image whose file's bytes are X.
 *
 *   KERNEL  name of the function
 *   COUNT   number of bytes
 *   LAYOUT  0: red, green, blue; 1: blue, green, red; 2: gray
 *   HEIGHT WIDTH  of the image
 *   SIZES   further parameters that the sizes are made of
 *
 * Returns 0, or what runtime/image.c says of an image that is damaged or of another size.
 */
#include <stddef.h>
#include <stdint.h>
// holes
#define KERNEL image_decode
#define COUNT 1000
#define LAYOUT 0
#define HEIGHT 32
#define WIDTH 32
#define SIZES
// end holes

/* runtime/image.c */
int burn_image_decode(const uint8_t *data, size_t bytes, int layout, int64_t height, int64_t width, uint8_t *pixels);

static int KERNEL(const uint8_t *X, uint8_t *Y SIZES)
{
    return burn_image_decode(X, (size_t)(COUNT), LAYOUT, HEIGHT, WIDTH, Y);
}
