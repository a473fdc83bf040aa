/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Burn's burnpack (.bpk), read only:
 *
 *   u32 0x4255524e  u16 version 1  u32 bytes of metadata, in CBOR:
 *   {"tensors": {name: {"dtype": "F32", "shape": [..], "data_offsets": [from, to]}}, "metadata", "scalars"}
 *   the data, from the next multiple of 256 on; in its first versions from here on.
 *
 * Which of the two it is, the file's size says: it ends with the last tensor. Quantized tensors are refused, as their
 * type is no name; "metadata" and "scalars" are passed over. */
#include "record_own.h"

#include <string.h>

enum { HEAD = 10, ALIGNED = 256, VERSION = 1 };

static int claims(const uint8_t *data, size_t bytes)
{
    return bytes >= HEAD && !memcmp(data, "NRUB", 4);
}

#ifdef BURN_HAS_CBOR
#define NEEDS NULL
#include <cbor.h>

static int is_text(const cbor_item_t *o)
{
    return o && cbor_isa_string(o) && cbor_string_is_definite(o);
}

static int is_key(const cbor_item_t *o, const char *key)
{
    return is_text(o) && cbor_string_length(o) == strlen(key) && !memcmp(cbor_string_handle(o), key, strlen(key));
}

static const cbor_item_t *member(const cbor_item_t *map, const char *key)
{
    for (size_t i = 0; map && cbor_isa_map(map) && i < cbor_map_size(map); i++)
        if (is_key(cbor_map_handle(map)[i].key, key)) return cbor_map_handle(map)[i].value;
    return NULL;
}

/* n integers from 0 on at most; how many there are, or -1: it is no such list. */
static int integers_of(const cbor_item_t *o, int n, int64_t *to)
{
    if (!o || !cbor_isa_array(o) || cbor_array_size(o) > (size_t)n) return -1;
    for (size_t i = 0; i < cbor_array_size(o); i++) {
        const cbor_item_t *one = cbor_array_handle(o)[i];
        if (!cbor_isa_uint(one) || cbor_get_int(one) > INT64_MAX) return -1;
        to[i] = (int64_t)cbor_get_int(one);
    }
    return (int)cbor_array_size(o);
}

/* "F32"; {"Bool": "U8"} and {"Bool": "Native"} are bytes of 0 and 1. */
static burn_dtype dtype_of(const cbor_item_t *o)
{
    const cbor_item_t *kept = member(o, "Bool");
    if (is_key(kept, "U8") || is_key(kept, "Native") || is_key(o, "Bool")) return BURN_BOOL;
    return is_text(o) ? record_dtype((const char *)cbor_string_handle(o), cbor_string_length(o)) : BURN_UNDEFINED;
}

static int add(Record *r, const cbor_item_t *key, const cbor_item_t *entry, const uint8_t *data, uint64_t room,
               burn_said *said)
{
    int64_t shape[RECORD_RANK], ends[2];
    const int rank = integers_of(member(entry, "shape"), RECORD_RANK, shape);
    if (!is_text(key)) return record_bad(r, NULL, said, "a tensor's name is no text");
    if (integers_of(member(entry, "data_offsets"), 2, ends) != 2 || ends[1] < ends[0] || (uint64_t)ends[1] > room)
        return record_bad(r, NULL, said, "a tensor's data lies outside the file");
    return record_add(r, (const char *)cbor_string_handle(key), cbor_string_length(key),
                      dtype_of(member(entry, "dtype")), rank, shape, data + ends[0], (size_t)(ends[1] - ends[0]), said);
}

static uint64_t last_end(const cbor_item_t *tensors)
{
    uint64_t last = 0;
    for (size_t i = 0; i < cbor_map_size(tensors); i++) {
        int64_t ends[2] = { 0, 0 };
        (void)integers_of(member(cbor_map_handle(tensors)[i].value, "data_offsets"), 2, ends);
        if ((uint64_t)ends[1] > last) last = (uint64_t)ends[1];
    }
    return last;
}

static int fill(Record *r, const cbor_item_t *root, const uint8_t *data, size_t bytes, size_t begin, burn_said *said)
{
    const cbor_item_t *tensors = member(root, "tensors");
    if (!tensors || !cbor_isa_map(tensors)) return record_bad(r, NULL, said, "it lacks tensors");
    const uint64_t aligned = (begin + ALIGNED - 1) / ALIGNED * ALIGNED, last = last_end(tensors);
    const int is_empty = last == 0;
    int error = BURN_OK;
    if (!is_empty && (bytes < aligned || bytes - aligned != last)) {
        if (bytes - begin != last) return record_bad(r, NULL, said, "it does not end where its last tensor ends");
    } else if (!is_empty) begin = aligned;
    for (size_t i = 0; !error && i < cbor_map_size(tensors); i++)
        error = add(r, cbor_map_handle(tensors)[i].key, cbor_map_handle(tensors)[i].value, data + begin, bytes - begin,
                    said);
    return error;
}

static int decode(const uint8_t *data, size_t bytes, Record *r, burn_said *said)
{
    uint32_t length;
    struct cbor_load_result result;
    memcpy(&length, data + 6, sizeof length);
    r->seen.of_burn = 1;
    r->seen.version = data[4] | data[5] << 8;
    if (r->seen.version != VERSION)
        return data_said(said, BURN_EFORMAT, "%s: it is of version %d; this library reads %d", r->where,
                         r->seen.version, VERSION);
    if (length > bytes - HEAD) return record_bad(r, NULL, said, "it ends in its metadata");
    cbor_item_t *root = cbor_load(data + HEAD, length, &result);
    if (!root) return record_bad(r, NULL, said, "its metadata is damaged");
    const int error = result.read == length ? fill(r, root, data, bytes, HEAD + (size_t)length, said)
                                            : record_bad(r, NULL, said, "its metadata is damaged");
    cbor_decref(&root);
    return error;
}
#else
#define NEEDS "libcbor"
#define decode NULL
#endif

const RecordFormat record_burnpack = { "burnpack", NULL, 0, NEEDS, claims, decode, NULL };
