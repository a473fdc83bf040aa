/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A model's weights from the file beside its code, NAME.bin: mapped where the system can, else read, at the boundary
 * that the code wants, and compared with what the code was made for.
 *
 *     burn_weights w;
 *     int code = burn_weights_open(&w, "digits.bin", DIGITS_WEIGHTS_BYTES, digits_weights_check, 0);
 *     if (!code) code = digits_run(&workspace, w.data, image, logits);
 *     burn_weights_close(&w);
 *
 * A program that drives any model has both from the descriptor: model->weights_bytes and model->weights_check.
 * Needs C99 and, to map, POSIX; -DBURN_WEIGHTS_NO_MAP leaves that out.
 */
#ifndef BURN_WEIGHTS_H
#define BURN_WEIGHTS_H
#include "burn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct burn_weights {
    const void *data; /* aligned to 64, only to be read; any number of threads may */
    size_t bytes;
    void *block;   /* what is freed or unmapped */
    int is_mapped;
} burn_weights;

/* BURN_WEIGHTS_READ: into memory of its own, and not mapped: for files that may be overwritten meanwhile (a mapped one
 * is to be replaced by renaming another), and for memory that is locked or counted. */
enum { BURN_WEIGHTS_READ = 1 };

/* `check` compares the content, NULL: nobody does. BURN_EIO: there is no such file, or it cannot be read; BURN_EFORMAT:
 * it has other than `bytes` bytes, or another model's; BURN_ENOMEM, BURN_EINVAL. bytes 0 is a model whose weights are
 * part of its program: nothing is opened. After an error *w holds nothing. */
int burn_weights_open(
    burn_weights *w, const char *path, size_t bytes, int (*check)(const void *weights, size_t bytes), int flags);

/* Does nothing where *w holds nothing. */
void burn_weights_close(burn_weights *w);

#ifdef __cplusplus
}
#endif
#endif
