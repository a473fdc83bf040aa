/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Weights by path. In: a file's name, its size and check. Out: its bytes at a boundary of 64. A map begins on a page;
 * memory that is read into is taken 63 bytes larger and begun where the boundary is.
 */
#if (defined(__unix__) || defined(__APPLE__)) && !defined(BURN_WEIGHTS_NO_MAP)
#define CAN_MAP 1
#define _POSIX_C_SOURCE 200809L
#else
#define CAN_MAP 0
#endif
#include "weights.h"

#include <stdio.h>
#include <stdlib.h>

#if CAN_MAP
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

enum { BOUNDARY = 64 };

static int weights_read(burn_weights *w, const char *path, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return BURN_EIO;
    int code = BURN_OK;
    unsigned char *block = bytes > SIZE_MAX - BOUNDARY ? NULL : malloc(bytes + BOUNDARY - 1);
    if (!block) {
        fclose(file);
        return BURN_ENOMEM;
    }
    unsigned char *at = block + (BOUNDARY - (uintptr_t)block % BOUNDARY) % BOUNDARY;
    if (fread(at, 1, bytes, file) != bytes || getc(file) != EOF)
        code = ferror(file) ? BURN_EIO : BURN_EFORMAT;
    fclose(file);
    w->block = block;
    w->data = at;
    w->bytes = bytes;
    return code;
}

#if CAN_MAP
static int weights_map(burn_weights *w, const char *path, size_t bytes)
{
    struct stat is;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return BURN_EIO;
    int code = fstat(file, &is) || !S_ISREG(is.st_mode) ? BURN_EIO
        : (uintmax_t)is.st_size != bytes                ? BURN_EFORMAT
                                                        : BURN_OK;
    void *block = code ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (block == MAP_FAILED)
        return code ? code : BURN_ENOMEM;
    w->data = w->block = block;
    w->bytes = bytes;
    w->is_mapped = 1;
    return BURN_OK;
}
#endif

int burn_weights_open(
    burn_weights *w, const char *path, size_t bytes, int (*check)(const void *weights, size_t bytes), int flags)
{
    static const burn_weights nothing;
    if (!w)
        return BURN_EINVAL;
    *w = nothing;
    if (!bytes)
        return BURN_OK;
    if (!path)
        return BURN_EINVAL;
#if CAN_MAP
    int code = flags & BURN_WEIGHTS_READ ? weights_read(w, path, bytes) : weights_map(w, path, bytes);
#else
    (void)flags;
    int code = weights_read(w, path, bytes);
#endif
    if (!code && check)
        code = check(w->data, bytes);
    if (code)
        burn_weights_close(w);
    return code;
}

void burn_weights_close(burn_weights *w)
{
    static const burn_weights nothing;
    if (!w)
        return;
#if CAN_MAP
    if (w->is_mapped)
        munmap(w->block, w->bytes);
    else
        free(w->block);
#else
    free(w->block);
#endif
    *w = nothing;
}
