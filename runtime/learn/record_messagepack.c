/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records in MessagePack: ours, a map
 *
 *   {"format": "burncc record", "version", "program", "precision", "sum": sixteen digits,
 *    "tensors": {name: {"dtype": "F32", "shape": [..], "data": bytes}}}
 *
 * and Burn's NamedMpk, where modules are maps, lists of them arrays, and a parameter is {"id", "param": {"bytes",
 * "shape", "dtype"}}: {"metadata": {"version" ..}, "item": the module}. A tensor's name is that of the keys and numbers
 * that lead to it, with dots between; what else a module has (sizes, null for what is not there) is passed over. */
#include "record_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int begins(const uint8_t *data, size_t bytes, const char *text)
{
    const size_t n = strlen(text);                         /* behind the byte of a map of at most 15 */
    return bytes > n && (data[0] & 0xf0) == 0x80 && !memcmp(data + 1, text, n);
}

static int claims(const uint8_t *data, size_t bytes)
{
    return begins(data, bytes, "\xa6" "format" "\xad" RECORD_MARK);
}

static int claims_named(const uint8_t *data, size_t bytes)
{
    return begins(data, bytes, "\xa8" "metadata");
}

#ifdef BURN_HAS_MSGPACK
#define NEEDS NULL
#include <msgpack.h>

static int put(void *to, const char *data, size_t bytes)
{
    record_append(to, data, bytes);
    return ((RecordBytes *)to)->failed ? -1 : 0;
}

static void put_text(msgpack_packer *p, const char *text)
{
    msgpack_pack_str_with_body(p, text, strlen(text));
}

static void encode(const Record *r, RecordBytes *to)
{
    char sum[17];
    msgpack_packer p;
    const char *precision = record_dtype_name(r->seen.precision);
    snprintf(sum, sizeof sum, "%016" PRIx64, r->sum);
    const char *const texts[][2] = { { "program", r->seen.program }, { "precision", precision ? precision : "" },
        { "sum", sum } };
    msgpack_packer_init(&p, to, put);
    msgpack_pack_map(&p, 6);
    put_text(&p, "format");
    put_text(&p, RECORD_MARK);
    put_text(&p, "version");
    msgpack_pack_int(&p, RECORD_VERSION);
    for (int i = 0; i < 6; i++) put_text(&p, texts[i / 2][i % 2]);
    put_text(&p, "tensors");
    msgpack_pack_map(&p, (size_t)r->seen.count);
    for (int i = 0; i < r->seen.count; i++) {
        const burn_tensor_info *t = &r->tensors[i].tensor;
        put_text(&p, t->name);
        msgpack_pack_map(&p, 3);
        put_text(&p, "dtype");
        put_text(&p, record_dtype_name(t->dtype));
        put_text(&p, "shape");
        msgpack_pack_array(&p, (size_t)t->rank);
        for (int k = 0; k < t->rank; k++) msgpack_pack_int64(&p, t->shape[k]);
        put_text(&p, "data");
        msgpack_pack_bin_with_body(&p, r->tensors[i].data, t->bytes);
    }
}

typedef msgpack_object Object;

static const Object *member(const Object *map, const char *key)
{
    for (uint32_t i = 0; map && map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++) {
        const Object *k = &map->via.map.ptr[i].key;
        if (k->type == MSGPACK_OBJECT_STR && k->via.str.size == strlen(key)
            && !memcmp(k->via.str.ptr, key, k->via.str.size))
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

static int is_text(const Object *o)
{
    return o && o->type == MSGPACK_OBJECT_STR;
}

/* -1: it is no such array. */
static int shape_of(const Object *o, int64_t *shape)
{
    if (!o || o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > RECORD_RANK) return -1;
    for (uint32_t i = 0; i < o->via.array.size; i++) {
        const Object *size = &o->via.array.ptr[i];
        if (size->type != MSGPACK_OBJECT_POSITIVE_INTEGER || size->via.u64 > INT64_MAX) return -1;
        shape[i] = (int64_t)size->via.u64;
    }
    return (int)o->via.array.size;
}

/* Bytes, or an array of them, as some writers spell them; false: it is neither. */
static int bytes_of(Record *r, const Object *o, const void **data, size_t *bytes)
{
    if (o->type == MSGPACK_OBJECT_BIN) {
        *data = o->via.bin.ptr;
        *bytes = o->via.bin.size;
        return 1;
    }
    if (o->type != MSGPACK_OBJECT_ARRAY) return 0;
    uint8_t *copy = record_room(r, *bytes = o->via.array.size);
    for (size_t i = 0; copy && i < *bytes; i++) {
        const Object *one = &o->via.array.ptr[i];
        if (one->type != MSGPACK_OBJECT_POSITIVE_INTEGER || one->via.u64 > UINT8_MAX) return 0;
        copy[i] = (uint8_t)one->via.u64;
    }
    return (*data = copy) != NULL;
}

static int add(Record *r, const char *name, size_t length, const Object *entry, const char *data_key, burn_said *said)
{
    int64_t shape[RECORD_RANK];
    const void *at;
    size_t bytes;
    const Object *dtype = member(entry, "dtype"), *data = member(entry, data_key);
    const burn_dtype type = is_text(dtype) ? record_dtype(dtype->via.str.ptr, dtype->via.str.size) : BURN_UNDEFINED;
    char copy[200];
    snprintf(copy, sizeof copy, "%.*s", length < sizeof copy ? (int)length : (int)sizeof copy - 1, name);
    if (!data || !bytes_of(r, data, &at, &bytes)) return record_bad(r, copy, said, "its entry has no data");
    return record_add(r, name, length, type, shape_of(member(entry, "shape"), shape), shape, at, bytes, said);
}

/* ---- ours */

static int fill(Record *r, const Object *o, burn_said *said)
{
    const Object *version = member(o, "version"), *program = member(o, "program"), *precision = member(o, "precision"),
                 *sum = member(o, "sum"), *all = member(o, "tensors");
    if (!version || version->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return record_bad(r, NULL, said, "its version is none");
    int error = record_version(r, version->via.u64 > INT64_MAX ? -1 : (int64_t)version->via.u64, said);
    if (error) return error;
    r->has_sum = is_text(sum) && record_sum_of(sum->via.str.ptr, sum->via.str.size, &r->sum);
    if (!r->has_sum) return record_bad(r, NULL, said, "its checksum is none");
    if (!is_text(program) || !is_text(precision) || !all || all->type != MSGPACK_OBJECT_MAP)
        return record_bad(r, NULL, said, "it lacks program, precision or tensors");
    char *copy = record_room(r, (size_t)program->via.str.size + 1);
    if (!copy) return data_said(said, BURN_ENOMEM, "%s: no memory", r->where);
    r->seen.program = memcpy(copy, program->via.str.ptr, program->via.str.size);
    r->seen.precision = record_dtype(precision->via.str.ptr, precision->via.str.size);
    for (uint32_t i = 0; !error && i < all->via.map.size; i++) {
        const Object *key = &all->via.map.ptr[i].key;
        if (!is_text(key)) return record_bad(r, NULL, said, "a tensor's name is no text");
        error = add(r, key->via.str.ptr, key->via.str.size, &all->via.map.ptr[i].val, "data", said);
    }
    return error;
}

/* ---- Burn's */

enum { NAME = 1024 };

static int walk(Record *r, const Object *o, char *name, size_t length, burn_said *said);

static int walk_part(Record *r, const Object *o, char *name, size_t length, const char *key, size_t bytes,
                     burn_said *said)
{
    const size_t dot = length > 0;
    if (length + dot + bytes >= NAME) return record_bad(r, name, said, "its name is too long");
    if (dot) name[length] = '.';
    memcpy(name + length + dot, key, bytes);
    name[length + dot + bytes] = 0;
    const int error = walk(r, o, name, length + dot + bytes, said);
    name[length] = 0;
    return error;
}

/* libmsgpack bounds the depth. */
static int walk(Record *r, const Object *o, char *name, size_t length, burn_said *said)
{
    char number[16];
    int error = BURN_OK;
    if (member(o, "bytes") && member(o, "shape")) return add(r, name, length, o, "bytes", said);
    if (member(o, "id") && member(o, "param")) return walk(r, member(o, "param"), name, length, said);
    for (uint32_t i = 0; o->type == MSGPACK_OBJECT_MAP && !error && i < o->via.map.size; i++) {
        const msgpack_object_kv *part = &o->via.map.ptr[i];
        if (is_text(&part->key))
            error = walk_part(r, &part->val, name, length, part->key.via.str.ptr, part->key.via.str.size, said);
    }
    for (uint32_t i = 0; o->type == MSGPACK_OBJECT_ARRAY && !error && i < o->via.array.size; i++) {
        const int n = snprintf(number, sizeof number, "%u", (unsigned)i);
        error = walk_part(r, &o->via.array.ptr[i], name, length, number, (size_t)n, said);
    }
    return error;
}

static int fill_named(Record *r, const Object *o, burn_said *said)
{
    char name[NAME] = "";
    const Object *item = member(o, "item"), *version = member(member(o, "metadata"), "version");
    r->seen.of_burn = 1;
    if (!item || !is_text(version)) return record_bad(r, NULL, said, "it lacks Burn's metadata or item");
    return walk(r, item, name, 0, said);
}

/* ---- both */

static int unpack(const uint8_t *data, size_t bytes, Record *r, burn_said *said,
                  int (*use)(Record *, const Object *, burn_said *))
{
    msgpack_unpacked it;
    size_t used = 0;
    msgpack_unpacked_init(&it);
    const msgpack_unpack_return state = msgpack_unpack_next(&it, (const char *)data, bytes, &used);
    int error;
    if (state == MSGPACK_UNPACK_CONTINUE) error = record_bad(r, NULL, said, "it ends too early");
    else if (state == MSGPACK_UNPACK_NOMEM_ERROR)
        error = data_said(said, BURN_ENOMEM, "%s: no memory, or it is nested too deeply", r->where);
    else if (state != MSGPACK_UNPACK_SUCCESS) error = record_bad(r, NULL, said, "its MessagePack is damaged");
    else if (used != bytes) error = record_bad(r, NULL, said, "something stands behind its end");
    else error = use(r, &it.data, said);
    msgpack_unpacked_destroy(&it);                         /* tensors' bytes lie in `data` */
    return error;
}

static int decode(const uint8_t *data, size_t bytes, Record *r, burn_said *said)
{
    return unpack(data, bytes, r, said, fill);
}

static int decode_named(const uint8_t *data, size_t bytes, Record *r, burn_said *said)
{
    return unpack(data, bytes, r, said, fill_named);
}
#else
#define NEEDS "msgpack-c"
#define decode NULL
#define decode_named NULL
#define encode NULL
#endif

const RecordFormat record_messagepack = { "MessagePack", ".mpk", BURN_RECORD_MESSAGEPACK, NEEDS, claims, decode,
    encode };
const RecordFormat record_named_mpk = { "Burn's NamedMpk", NULL, 0, NEEDS, claims_named, decode_named, NULL };
