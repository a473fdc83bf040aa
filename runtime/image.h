/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Images from their files' bytes, for models with ImageDecoder: image.c, which such a program links.
 *
 * BMP and PNM (P1 to P6) are read by image.c itself. The others are there when image.c is compiled with their
 * macro and linked with the library: BURN_IMAGE_JPEG (-ljpeg), BURN_IMAGE_PNG (-lpng), BURN_IMAGE_TIFF (-ltiff),
 * BURN_IMAGE_WEBP (-lwebp), BURN_IMAGE_JPEG2000 (-lopenjp2). Files may come from strangers. Nothing here is shared
 * between calls, so threads may decode at once. */
#ifndef BURN_IMAGE_H
#define BURN_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BURN_IMAGE_RGB, BURN_IMAGE_BGR, BURN_IMAGE_GRAY };

/* The height and width of the image in `data`. Returns 0, or -6 (BURN_EFORMAT) when no image that can be decoded
 * begins so. */
int burn_image_size(const uint8_t *data, size_t bytes, int64_t size[2]);

/* Its pixels: height rows of width times 3 bytes (1 for BURN_IMAGE_GRAY). An alpha channel is dropped; gray is
 * 0.299 R + 0.587 G + 0.114 B. Returns 0, -6 (BURN_EFORMAT) when the image is damaged or of another size, -2
 * (BURN_ENOMEM). */
int burn_image_decode(const uint8_t *data, size_t bytes, int layout, int64_t height, int64_t width, uint8_t *pixels);

#ifdef __cplusplus
}
#endif
#endif
