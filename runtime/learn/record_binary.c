/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records as a plain binary, little-endian, which wants no library:
 *
 *   "burnrec\n"  u64 version  u64 precision  u64 checksum  u64 tensors  text program
 *   for each     text name    u64 type       u64 rank      u64 sizes    u64 bytes
 *   then         the data of each
 *
 * A text is its length as u64 and its bytes. Everything begins at a multiple of 8, with zeros before it; types have the
 * numbers of burn_dtype. */
#include "record_own.h"

#include <limits.h>
#include <string.h>

static const char magic[8] = { 'b', 'u', 'r', 'n', 'r', 'e', 'c', '\n' };

static void put_number(RecordBytes *to, uint64_t x)
{
    record_append(to, &x, sizeof x);
}

static void put_bytes(RecordBytes *to, const void *data, size_t bytes)
{
    static const uint8_t zeros[8];
    record_append(to, data, bytes);
    record_append(to, zeros, (8 - bytes % 8) % 8);
}

static void put_text(RecordBytes *to, const char *text)
{
    put_number(to, strlen(text));
    put_bytes(to, text, strlen(text));
}

static void encode(const Record *r, RecordBytes *to)
{
    record_append(to, magic, sizeof magic);
    put_number(to, RECORD_VERSION);
    put_number(to, r->seen.precision);
    put_number(to, r->sum);
    put_number(to, (uint64_t)r->seen.count);
    put_text(to, r->seen.program);
    for (int i = 0; i < r->seen.count; i++) {
        const burn_tensor_info *t = &r->tensors[i].tensor;
        put_text(to, t->name);
        put_number(to, t->dtype);
        put_number(to, (uint64_t)t->rank);
        for (int k = 0; k < t->rank; k++) put_number(to, (uint64_t)t->shape[k]);
        put_number(to, t->bytes);
    }
    for (int i = 0; i < r->seen.count; i++) put_bytes(to, r->tensors[i].data, r->tensors[i].tensor.bytes);
}

static int claims(const uint8_t *data, size_t bytes)
{
    return bytes >= sizeof magic && !memcmp(data, magic, sizeof magic);
}

/* The rest of the file. */
typedef struct Rest { const uint8_t *at; size_t left; int bad; } Rest;

static const uint8_t *take_bytes(Rest *s, size_t bytes)
{
    const uint8_t *at = s->at;
    if (s->bad || bytes > s->left || (8 - bytes % 8) % 8 > s->left - bytes) return s->bad = 1, NULL;
    for (size_t i = bytes; i % 8; i++)
        if (at[i]) s->bad = 1;
    const size_t whole = bytes + (8 - bytes % 8) % 8;
    s->at += whole;
    s->left -= whole;
    return at;
}

static uint64_t take_number(Rest *s)
{
    uint64_t x = 0;
    const uint8_t *at = take_bytes(s, 8);
    if (at) memcpy(&x, at, 8);
    return x;
}

static int take_head(Rest *s, Record *r, burn_said *said)
{
    uint64_t rank, dtype, bytes = take_number(s);
    const char *name = (const char *)take_bytes(s, bytes);
    const size_t name_bytes = bytes;
    int64_t shape[RECORD_RANK] = { 0 };
    dtype = take_number(s);
    rank = take_number(s);
    for (uint64_t k = 0; k < rank && !s->bad; k++) {
        const uint64_t size = take_number(s);
        if (k < RECORD_RANK) shape[k] = size > INT64_MAX ? -1 : (int64_t)size;
    }
    bytes = take_number(s);
    if (s->bad) return record_bad(r, NULL, said, "it ends too early, or its head is damaged");
    return record_add(r, name, name_bytes, dtype > INT_MAX ? BURN_UNDEFINED : (burn_dtype)dtype,
                      rank > RECORD_RANK ? -1 : (int)rank, shape, NULL, bytes, said);
}

static int decode(const uint8_t *data, size_t bytes, Record *r, burn_said *said)
{
    Rest s = { data + sizeof magic, bytes - sizeof magic, 0 };
    const uint64_t version = take_number(&s);
    if (s.bad) return record_bad(r, NULL, said, "it ends too early");
    int error = record_version(r, version > INT_MAX ? -1 : (int64_t)version, said);
    if (error) return error;
    r->seen.precision = (burn_dtype)take_number(&s);
    r->sum = take_number(&s);
    r->has_sum = 1;
    const uint64_t n = take_number(&s), length = take_number(&s);
    const char *program = (const char *)take_bytes(&s, length);
    char *copy = s.bad ? NULL : record_room(r, length + 1);
    if (!copy) return record_bad(r, NULL, said, "it ends too early, or its head is damaged");
    r->seen.program = memcpy(copy, program, length);
    for (uint64_t i = 0; i < n; i++)
        if ((error = take_head(&s, r, said))) return error;
    for (int i = 0; i < r->seen.count; i++) {
        r->tensors[i].data = take_bytes(&s, r->tensors[i].tensor.bytes);
        if (s.bad) return record_bad(r, r->tensors[i].tensor.name, said, "its data ends too early");
    }
    return s.left ? record_bad(r, NULL, said, "something stands behind its end") : BURN_OK;
}

const RecordFormat record_binary = { "binary", ".bin", BURN_RECORD_BINARY, NULL, claims, decode, encode };
