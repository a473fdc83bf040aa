// SPDX-License-Identifier: MIT OR Apache-2.0
/* Saving and loading a struct of parameters as a .safetensors file, which PyTorch and others read and write. Copied
 * once, whole, into generated training code; it has no holes.
 *
 * The file: eight bytes of little-endian header length, a JSON object
 * {"name":{"dtype":"F32","shape":[..],"data_offsets":[from,to]},..}, then the data. Only the standard library is used
 * and nothing is allocated. Loading accepts the tensors in any order and ignores what the struct has no field for; a
 * field that is missing or of another type or shape is BURN_EFORMAT, and then nothing is changed but fields that were
 * read before a read error. Saving writes a temporary beside the file and renames it.
 */
#ifndef BURN_PARAMS_H
#define BURN_PARAMS_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct burn_field {
    const char *name, *dtype, *shape; /* JSON text: conv1.weight, F32, [8,1,3,3] */
    size_t offset, bytes;             /* in the struct */
} burn_field;

static size_t burn_put_header(FILE *f, const burn_field *fields, int n)
{
    char text[96];
    size_t length = 0, at = 0;
    for (int i = 0; i <= n; i++) {
        const char *parts[8] = {i ? "," : "{", "\"", "", "\":{\"dtype\":\"", "", "\",\"shape\":", "", text};
        if (i < n) {
            parts[2] = fields[i].name;
            parts[4] = fields[i].dtype;
            parts[6] = fields[i].shape;
            snprintf(text, sizeof text, ",\"data_offsets\":[%lu,%lu]}", (unsigned long)at,
                     (unsigned long)(at + fields[i].bytes));
            at += fields[i].bytes;
        } else {
            parts[0] = n ? "}" : "{}";
        }
        for (int k = 0; k < (i < n ? 8 : 1); k++) {
            if (f) fputs(parts[k], f);
            length += strlen(parts[k]);
        }
    }
    for (; length % 8; length++)
        if (f) putc(' ', f);
    return length;
}

static int burn_params_save(const char *path, const void *params, const burn_field *fields, int n)
{
    char temporary[4096];
    if (!path || !params || strlen(path) + 5 > sizeof temporary) return -1; /* BURN_EINVAL */
    memcpy(temporary, path, strlen(path));
    memcpy(temporary + strlen(path), ".tmp", 5);
    FILE *f = fopen(temporary, "wb");
    if (!f) return -3; /* BURN_EIO */
    uint64_t length = burn_put_header(NULL, fields, n);
    for (int i = 0; i < 8; i++) putc((int)(length >> (8 * i) & 255), f);
    burn_put_header(f, fields, n);
    for (int i = 0; i < n; i++) fwrite((const char *)params + fields[i].offset, 1, fields[i].bytes, f);
    int bad = ferror(f);
    bad |= fclose(f) != 0;
    if (!bad && rename(temporary, path) == 0) return 0;
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
static int burn_text(FILE *f, uint64_t *left, char *to, size_t size)
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
static void burn_entry(const char *name, const char *value, const burn_field *fields, int n, uint64_t *at)
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

/* at: room for n offsets. */
static int burn_params_load(const char *path, void *params, const burn_field *fields, int n, uint64_t *at)
{
    char name[512], value[1024];
    unsigned char size[8];
    uint64_t length = 0, left;
    int code = -6; /* BURN_EFORMAT */
    if (!path || !params) return -1; /* BURN_EINVAL */
    FILE *f = fopen(path, "rb");
    if (!f) return -3; /* BURN_EIO */
    for (int i = 0; i < n; i++) at[i] = UINT64_MAX;
    if (fread(size, 1, 8, f) != 8) goto done;
    for (int i = 0; i < 8; i++) length |= (uint64_t)size[i] << (8 * i);
    left = length;
    if (length > 1u << 30 || burn_next(f, &left) != '{') goto done;
    for (int c = burn_next(f, &left); left && c == '"'; c = burn_next(f, &left)) {
        if (!burn_text(f, &left, name, sizeof name) || burn_next(f, &left) != ':') goto done;
        if (burn_next(f, &left) != '{' || !burn_bracket(f, &left, '{', value, sizeof value)) goto done;
        burn_entry(name, value, fields, n, at);
        if (burn_next(f, &left) != ',') break;
    }
    for (int i = 0; i < n; i++)
        if (at[i] == UINT64_MAX || at[i] > INT32_MAX - 16 - length) goto done;
    code = -3;
    for (int i = 0; i < n; i++) {
        if (fseek(f, (long)(8 + length + at[i]), SEEK_SET)) goto done;
        if (fread((char *)params + fields[i].offset, 1, fields[i].bytes, f) != fields[i].bytes) goto done;
    }
    code = 0;
done:
    fclose(f);
    return code;
}
#endif
