/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes of records: growing, in gzip and out of it, from a file and to a file that is replaced as a whole. */
#define _POSIX_C_SOURCE 200809L                            /* fsync, fileno */
#include "record_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef BURN_DATA_ZLIB
#include <zlib.h>
#endif

static int grow_to(RecordBytes *b, size_t more)
{
    if (b->failed || more > SIZE_MAX / 4 - b->n) return b->failed = 1, 0;
    if (b->n + more <= b->room) return 1;
    const size_t room = (b->n + more) * 3 / 2 + 256;
    uint8_t *at = realloc(b->at, room);
    if (!at) return b->failed = 1, 0;
    b->at = at;
    b->room = room;
    return 1;
}

void record_append(RecordBytes *b, const void *data, size_t bytes)
{
    if (!bytes || !grow_to(b, bytes)) return;
    memcpy(b->at + b->n, data, bytes);
    b->n += bytes;
}

int record_is_packed(const uint8_t *data, size_t bytes)
{
    return bytes > 2 && data[0] == 0x1f && data[1] == 0x8b;
}

#ifdef BURN_DATA_ZLIB
enum { GZIP = 15 + 16 };                                   /* windowBits of zlib: the largest window, gzip's frame */

/* One call of zlib's goes as far as 32 bits count. */
static void next_piece(z_stream *z, const uint8_t *data, size_t bytes, RecordBytes *to)
{
    const size_t at = (size_t)(z->next_in - data), left = bytes - at;
    z->avail_in = left > 1u << 30 ? 1u << 30 : (uInt)left;
    if (!grow_to(to, 1 << 16)) return;
    const size_t room = to->room - to->n;
    z->next_out = to->at + to->n;
    z->avail_out = room > 1u << 30 ? 1u << 30 : (uInt)room;
}

/* Runs deflate or inflate to the end; zlib's last word. */
static int run(z_stream *z, int (*step)(z_stream *, int), const uint8_t *data, size_t bytes, RecordBytes *to)
{
    int state = Z_OK;
    z->next_in = (Bytef *)(uintptr_t)data;                 /* zlib only reads */
    while (state == Z_OK) {
        next_piece(z, data, bytes, to);
        if (to->failed) return Z_MEM_ERROR;
        const uint8_t *from = z->next_out;
        const int last = (size_t)(z->next_in - data) + z->avail_in == bytes;
        state = step(z, last ? Z_FINISH : Z_NO_FLUSH);
        to->n += (size_t)(z->next_out - from);
        if (state == Z_BUF_ERROR && !z->avail_out) state = Z_OK;
    }
    return state;
}

int record_unpack(const uint8_t *data, size_t bytes, uint8_t **to, size_t *n, burn_said *said)
{
    z_stream z = { 0 };
    RecordBytes out = { 0 };
    if (inflateInit2(&z, GZIP) != Z_OK) return data_said(said, BURN_ENOMEM, "no memory for unpacking");
    const int state = run(&z, inflate, data, bytes, &out);
    const int whole = (size_t)(z.next_in - data) == bytes;
    (void)inflateEnd(&z);
    if (state == Z_STREAM_END && whole && out.at) {
        *to = out.at;
        *n = out.n;
        return BURN_OK;
    }
    free(out.at);
    if (state == Z_MEM_ERROR) return data_said(said, BURN_ENOMEM, "no memory for unpacking");
    if (state == Z_STREAM_END) return data_said(said, BURN_EFORMAT, "something stands behind its gzip");
    return data_said(said, BURN_EFORMAT, "its gzip is damaged or ends too early");
}

int record_pack(const uint8_t *data, size_t bytes, RecordBytes *to, burn_said *said)
{
    z_stream z = { 0 };
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return data_said(said, BURN_ENOMEM, "no memory for packing");
    const int state = run(&z, deflate, data, bytes, to);
    (void)deflateEnd(&z);
    return state == Z_STREAM_END ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory for packing");
}
#else
int record_unpack(const uint8_t *data, size_t bytes, uint8_t **to, size_t *n, burn_said *said)
{
    (void)data, (void)bytes, (void)to, (void)n;
    return data_said(said, BURN_EINVAL, "this build has no zlib, which gzip needs");
}

int record_pack(const uint8_t *data, size_t bytes, RecordBytes *to, burn_said *said)
{
    (void)data, (void)bytes, (void)to;
    return data_said(said, BURN_EINVAL, "this build has no zlib, which gzip needs");
}
#endif

uint8_t *record_file(const char *path, size_t *bytes, int *error, burn_said *said)
{
    struct stat about;
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    *error = BURN_EIO;
    if (!f || fstat(fileno(f), &about)) {
        data_said(said, 0, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(about.st_mode)) {
        data_said(said, 0, "%s: it is no file", path);
    } else if (!(data = malloc((size_t)about.st_size + 1))) {
        *error = data_said(said, BURN_ENOMEM, "%s: no memory for its %lld bytes", path, (long long)about.st_size);
    } else if (fread(data, 1, (size_t)about.st_size, f) != (size_t)about.st_size) {
        data_said(said, 0, "%s: it cannot be read", path);
        free(data);
        data = NULL;
    }
    *bytes = data ? (size_t)about.st_size : 0;
    if (f) (void)fclose(f);
    return data;
}

/* The folder's own entry, which the rename has changed. A folder may be written to and not read: then it is not. */
static int sync_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = 0;
    const int folder = open(slash ? path : ".", O_RDONLY);
    if (folder < 0) return 1;
    const int ok = fsync(folder) == 0 || errno != EIO;
    (void)close(folder);
    return ok;
}

static int put(int f, const uint8_t *data, size_t bytes)
{
    while (bytes) {
        const ssize_t n = write(f, data, bytes < 1 << 30 ? bytes : 1 << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        data += n;
        bytes -= (size_t)n;
    }
    return fsync(f) == 0;
}

int record_replace(const char *path, const void *data, size_t bytes, burn_said *said)
{
    char *temporary = malloc(strlen(path) + 5);
    if (!temporary) return data_said(said, BURN_ENOMEM, "no memory");
    strcat(strcpy(temporary, path), ".tmp");
    const int f = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int why = f < 0 ? errno : 0;
    if (f >= 0 && !put(f, data, bytes)) why = errno;
    if (f >= 0 && close(f) && !why) why = errno;
    if (!why && rename(temporary, path)) why = errno;
    if (why && f >= 0) (void)unlink(temporary);
    if (!why && !sync_folder(temporary)) why = EIO;
    free(temporary);
    return why ? data_said(said, BURN_EIO, "%s: %s", path, strerror(why)) : BURN_OK;
}
