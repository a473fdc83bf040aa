// SPDX-License-Identifier: MIT OR Apache-2.0
/* Saving and loading structs of tensors as a .safetensors file, which PyTorch and others read and write. Copied once,
 * whole, into generated training code; it has no holes.
 *
 * The file: eight bytes of little-endian header length, a JSON object
 * {"__metadata__":{"burn_sum1":".."},"name":{"dtype":"F32","shape":[..],"data_offsets":[from,to]},..}, then the data.
 * Only the standard library is used and nothing is allocated.
 *
 * Saving writes a temporary beside the file, sends it to the disk, and renames it: whenever the power fails, the path
 * names the old file or the new one, whole. Where there is no POSIX, what the C library promises has to do. Loading
 * looks at everything before it changes anything: the sum, if the file has one, is over all that follows it; every
 * field has its tensor, of its type and shape, within the file. It accepts the tensors in any order and ignores what
 * the structs have no field for.
 */
#ifndef BURN_PARAMS_H
#define BURN_PARAMS_H
#ifndef BURN_NO_FILES
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#if (defined(__unix__) || defined(__APPLE__)) && defined(_POSIX_C_SOURCE)
#define BURN_SYNC 1
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#endif

typedef struct burn_saved {
    const char *name, *dtype, *shape; /* JSON text: conv1.weight, F32, [8,1,3,3] */
    int base;                         /* which of the structs */
    size_t offset, bytes;             /* in the struct; a multiple of 4 */
} burn_saved;

/* What the header begins with, up to the number; with it and the two characters that close it, 48 characters. */
#define BURN_SUM "{\"__metadata__\":{\"burn_sum1\":\""
enum { burn_sum_at = 30, burn_summed = 48 };

static uint64_t burn_sum(uint64_t sum, const void *at, size_t bytes)
{
    uint32_t word;
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        memcpy(&word, (const char *)at + i, 4);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    return sum;
}

/* Text that goes to a file, or only counts (f NULL); words of it are summed. */
typedef struct burn_writer {
    FILE *f;
    size_t length;
    uint64_t sum;
    char word[4];
} burn_writer;

static void burn_put(burn_writer *w, const char *text)
{
    for (; *text; text++) {
        if (w->f) putc(*text, w->f);
        w->word[w->length++ % 4] = *text;
        if (w->length % 4 == 0) w->sum = burn_sum(w->sum, w->word, 4);
    }
}

/* The header behind the sum. */
static void burn_put_fields(burn_writer *w, const burn_saved *fields, int n)
{
    char text[96];
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const char *parts[6] = {fields[i].name,        "\":{\"dtype\":\"", fields[i].dtype,
                                "\",\"shape\":", fields[i].shape,  text};
        snprintf(text, sizeof text, ",\"data_offsets\":[%lu,%lu]}", (unsigned long)at,
                 (unsigned long)(at + fields[i].bytes));
        at += fields[i].bytes;
        burn_put(w, ",\"");
        for (int k = 0; k < 6; k++) burn_put(w, parts[k]);
    }
    burn_put(w, "}");
    while (w->length % 8) burn_put(w, " ");
}

/* The folder's own entry, which the rename has changed. */
static int burn_sync_folder(char *path)
{
#ifdef BURN_SYNC
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = 0;
    int folder = open(slash ? path : ".", O_RDONLY), bad = 0;
    if (folder < 0) return 0; /* a folder may be written to and not read */
    bad = fsync(folder) && errno == EIO;
    close(folder);
    return bad;
#else
    (void)path;
    return 0;
#endif
}

static int burn_write(FILE *f, const void *const *bases, const burn_saved *fields, int n)
{
    burn_writer all = {NULL, 0, 0, {0}}, w = {f, 0, 0, {0}};
    char text[burn_summed + 1];
    burn_put_fields(&all, fields, n);
    for (int i = 0; i < n; i++)
        all.sum = burn_sum(all.sum, (const char *)bases[fields[i].base] + fields[i].offset, fields[i].bytes);
    uint64_t length = burn_summed + all.length;
    for (int i = 0; i < 8; i++) putc((int)(length >> (8 * i) & 255), f);
    snprintf(text, sizeof text, BURN_SUM "%08lx%08lx\"}", (unsigned long)(all.sum >> 32),
             (unsigned long)(all.sum & 0xffffffff));
    fputs(text, f);
    burn_put_fields(&w, fields, n);
    for (int i = 0; i < n; i++) fwrite((const char *)bases[fields[i].base] + fields[i].offset, 1, fields[i].bytes, f);
    int bad = fflush(f) != 0 || ferror(f);
#ifdef BURN_SYNC
    bad = bad || fsync(fileno(f)) != 0;
#endif
    return bad;
}

static int burn_params_save(const char *path, const void *const *bases, const burn_saved *fields, int n)
{
    char temporary[4096];
    if (!path || strlen(path) + 5 > sizeof temporary) return -1; /* BURN_EINVAL */
    for (int i = 0; i < n; i++)
        if (!bases[fields[i].base]) return -1;
    memcpy(temporary, path, strlen(path));
    memcpy(temporary + strlen(path), ".tmp", 5);
    FILE *f = fopen(temporary, "wb");
    if (!f) return -3; /* BURN_EIO */
    int bad = burn_write(f, bases, fields, n);
    bad |= fclose(f) != 0;
    if (!bad && rename(temporary, path) == 0) return burn_sync_folder(temporary) ? -3 : 0;
    remove(temporary);
    return -3;
}

/* The header's next character that is no space; the header ends with *left. */
static int burn_next(FILE *f, uint64_t *left)
{
    int c = ' ';
    while (*left && (c == ' ' || c == '\n' || c == '\t' || c == '\r')) {
        c = getc(f);
        --*left;
    }
    return c;
}

/* The rest of a string after its opening quote, as it stands (escapes are kept); false at the end or past `size`. */
static int burn_quoted(FILE *f, uint64_t *left, char *to, size_t size)
{
    for (size_t n = 0; *left; n++) {
        int c = getc(f);
        --*left;
        if (c == EOF || n + 2 >= size) return 0;
        if (c == '"') {
            to[n] = 0;
            return 1;
        }
        to[n] = (char)c;
        if (c == '\\') {
            to[++n] = (char)getc(f);
            --*left;
        }
    }
    return 0;
}

/* Everything up to the bracket that closes `open`, which has been read, as text without spaces; false when it does not
 * fit. */
static int burn_bracket(FILE *f, uint64_t *left, int open, char *to, size_t size)
{
    size_t n = 0;
    int depth = 1, quoted = 0;
    to[n++] = (char)open;
    while (depth && *left) {
        int c = quoted ? getc(f) : burn_next(f, left);
        if (quoted) --*left;
        if (c == EOF) return 0;
        if (c == '"') quoted = !quoted;
        if (!quoted && (c == '{' || c == '[')) depth++;
        if (!quoted && (c == '}' || c == ']')) depth--;
        if (n + 2 < size) to[n++] = (char)c;
        if (c == '\\') {
            c = getc(f);
            --*left;
            if (n + 2 < size) to[n++] = (char)c;
        }
    }
    to[n] = 0;
    return depth == 0;
}

/* Matches one entry with the struct's fields and notes where its data is; -1: no such field or wrong type, which only a
 * field minds. */
static void burn_entry(const char *name, const char *value, const burn_saved *fields, int n, uint64_t *at)
{
    for (int i = 0; i < n; i++) {
        char want[512];
        unsigned long from, to;
        const char *offsets = strstr(value, "\"data_offsets\":[");
        if (strcmp(name, fields[i].name)) continue;
        snprintf(want, sizeof want, "\"dtype\":\"%s\"", fields[i].dtype);
        if (!strstr(value, want)) return;
        snprintf(want, sizeof want, "\"shape\":%s", fields[i].shape);
        if (!strstr(value, want) || !offsets || sscanf(offsets, "\"data_offsets\":[%lu,%lu]", &from, &to) != 2) return;
        if (to >= from && to - from == fields[i].bytes) at[i] = from;
        return;
    }
}

/* Of the header's first characters: the sum of what follows; 0: it has none. */
static int burn_has_sum(const char *text, uint64_t *sum)
{
    *sum = 0;
    if (memcmp(text, BURN_SUM, burn_sum_at)) return 0;
    for (int i = burn_sum_at; i < burn_sum_at + 16; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = memchr(digits, text[i], 16);
        if (!digit) return 0;
        *sum = *sum << 4 | (uint64_t)(digit - digits);
    }
    return 1;
}

/* Its size, if the file is what its sum says, or has none; 0: it is not; -1: it cannot be read. */
static long burn_check(FILE *f)
{
    char text[4096];
    uint64_t want, sum = 0;
    size_t n;
    if (fseek(f, 0, SEEK_END)) return -1;
    long size = ftell(f);
    if (size < 0 || fseek(f, 0, SEEK_SET)) return -1;
    if (fread(text, 1, 8 + burn_summed, f) < 8 + burn_summed || !burn_has_sum(text + 8, &want))
        return ferror(f) ? -1 : size;
    while ((n = fread(text, 1, sizeof text, f)) > 0) sum = burn_sum(sum, text, n);
    return ferror(f) ? -1 : sum == want && size % 4 == 0 ? size : 0;
}

/* Where the fields' data is, behind the header; at: room for n offsets. */
static int burn_read_header(FILE *f, const burn_saved *fields, int n, uint64_t *at, uint64_t *length)
{
    char name[512], value[1024];
    unsigned char size[8];
    uint64_t left;
    for (int i = 0; i < n; i++) at[i] = UINT64_MAX;
    if (fread(size, 1, 8, f) != 8) return 0;
    for (int i = 0; i < 8; i++) *length |= (uint64_t)size[i] << (8 * i);
    left = *length;
    if (*length > 1u << 30 || burn_next(f, &left) != '{') return 0;
    for (int c = burn_next(f, &left); left && c == '"'; c = burn_next(f, &left)) {
        if (!burn_quoted(f, &left, name, sizeof name) || burn_next(f, &left) != ':') return 0;
        if (burn_next(f, &left) != '{' || !burn_bracket(f, &left, '{', value, sizeof value)) return 0;
        burn_entry(name, value, fields, n, at);
        c = burn_next(f, &left);
        if (c == '}') return 1;
        if (c != ',') return 0;
    }
    return 0;
}

static int burn_params_load(const char *path, void *const *bases, const burn_saved *fields, int n, uint64_t *at)
{
    uint64_t length = 0;
    int code = -6; /* BURN_EFORMAT */
    if (!path) return -1; /* BURN_EINVAL */
    for (int i = 0; i < n; i++)
        if (!bases[fields[i].base]) return -1;
    FILE *f = fopen(path, "rb");
    if (!f) return -3; /* BURN_EIO */
    long size = burn_check(f);
    if (size < 0 || fseek(f, 0, SEEK_SET)) code = -3;
    if (size <= 0 || code == -3) goto done;
    if (!burn_read_header(f, fields, n, at, &length) || length > (uint64_t)size - 8) goto done;
    for (int i = 0; i < n; i++)
        if (at[i] == UINT64_MAX || fields[i].bytes > (uint64_t)size - 8 - length
            || at[i] > (uint64_t)size - 8 - length - fields[i].bytes)
            goto done;
    code = -3;
    for (int i = 0; i < n; i++) {
        if (fseek(f, (long)(8 + length + at[i]), SEEK_SET)) goto done;
        char *to = (char *)bases[fields[i].base] + fields[i].offset;
        if (fread(to, 1, fields[i].bytes, f) != fields[i].bytes) goto done;
    }
    code = 0;
done:
    fclose(f);
    return code;
}
#endif
#endif
