/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records in JSON, for people and for whoever has no other reader:
 *
 *   {"format": "burncc record", "version": 1, "program": "lenet", "precision": "F32", "sum": "0123456789abcdef",
 *    "tensors": {"conv1.weight": {"dtype": "F32", "shape": [6, 1, 5, 5], "data": [0.25, ...]}}}
 *
 * Floats have as many digits as bring back the same bits; what JSON has no number for, infinities and NaNs, is a text
 * of their bits in sixteens. And safetensors: the length of a header in JSON, as u64, the header, and the data:
 *
 *   {"__metadata__": {"burn_record": "1", "program", "precision", "sum"},
 *    "conv1.weight": {"dtype": "F32", "shape": [..], "data_offsets": [from, to]}, ...}
 *
 * Those of generated code have a "burn_sum1" instead, over all that follows it; those of others have none. */
#include "record_own.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 8 };                                       /* bytes of a safetensors' header's length */

static uint64_t header_bytes(const uint8_t *data)
{
    uint64_t n = 0;
    for (int i = LENGTH - 1; i >= 0; i--) n = n << 8 | data[i];
    return n;
}

static int claims(const uint8_t *data, size_t bytes)
{
    static const char mark[] = "\"" RECORD_MARK "\"";
    if (!bytes || data[0] != '{') return 0;
    for (size_t i = 0; i < 64 && i + sizeof mark <= bytes; i++)
        if (!memcmp(data + i, mark, sizeof mark - 1)) return 1;
    return 0;
}

static int claims_tensors(const uint8_t *data, size_t bytes)
{
    return bytes > LENGTH + 1 && header_bytes(data) <= UINT32_MAX && header_bytes(data) >= 2 && data[LENGTH] == '{';
}

#ifdef BURN_HAS_JSON
#define NEEDS NULL
#include <jansson.h>

/* ---- both: what is said of a record, and of a tensor */

static int text_member(Record *r, const json_t *o, const char *key, const char **text, burn_said *said)
{
    const json_t *value = json_object_get(o, key);
    char *copy = json_is_string(value) ? record_room(r, json_string_length(value) + 1) : NULL;
    if (!copy) return data_said(said, BURN_EFORMAT, "%s: its \"%s\" is no text", r->where, key);
    *text = memcpy(copy, json_string_value(value), json_string_length(value));
    return BURN_OK;
}

static int fill_about(Record *r, const json_t *o, int64_t version, burn_said *said)
{
    const char *precision, *sum;
    int error = record_version(r, version, said);
    if (!error) error = text_member(r, o, "program", &r->seen.program, said);
    if (!error) error = text_member(r, o, "precision", &precision, said);
    if (!error) error = text_member(r, o, "sum", &sum, said);
    if (error) return error;
    r->seen.precision = record_dtype(precision, strlen(precision));
    r->has_sum = record_sum_of(sum, strlen(sum), &r->sum);
    return r->has_sum ? BURN_OK : record_bad(r, NULL, said, "its checksum is none");
}

/* -1: it is no such array. */
static int shape_of(const json_t *o, int64_t *shape)
{
    if (!json_is_array(o) || json_array_size(o) > RECORD_RANK) return -1;
    for (size_t i = 0; i < json_array_size(o); i++) {
        const json_t *size = json_array_get(o, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0) return -1;
        shape[i] = json_integer_value(size);
    }
    return (int)json_array_size(o);
}

static burn_dtype dtype_of(const json_t *entry)
{
    const json_t *dtype = json_object_get(entry, "dtype");
    return json_is_string(dtype) ? record_dtype(json_string_value(dtype), json_string_length(dtype)) : BURN_UNDEFINED;
}

static json_t *root_of(const Record *r, const uint8_t *data, size_t bytes, int *error, burn_said *said)
{
    json_error_t why;
    json_t *root = json_loadb((const char *)data, bytes, JSON_REJECT_DUPLICATES, &why);
    *error = BURN_OK;
    if (!root) *error = data_said(said, BURN_EFORMAT, "%s: line %d, column %d: %s", r->where, why.line, why.column,
                                  why.text);
    return root;
}

static void put_json(json_t *root, size_t flags, RecordBytes *to)
{
    char *text = root ? json_dumps(root, JSON_COMPACT | flags) : NULL;
    if (text) record_append(to, text, strlen(text));
    else to->failed = 1;
    free(text);
    json_decref(root);
}

static json_t *shape_json(const burn_tensor_info *t)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->rank; i++) json_array_append_new(shape, json_integer(t->shape[i]));
    return shape;
}

/* ---- JSON */

static uint64_t bits_of(const uint8_t *data, size_t bytes)
{
    uint64_t bits = 0;
    for (size_t i = bytes; i-- > 0;) bits = bits << 8 | data[i];
    return bits;
}

static json_t *number_json(const uint8_t *data, burn_dtype dtype)
{
    const size_t bytes = record_dtype_bytes(dtype);
    const uint64_t bits = bits_of(data, bytes);
    char text[17];
    if (!record_is_float(dtype)) {
        const int is_signed = dtype == BURN_INT64 || dtype == BURN_INT32 || dtype == BURN_INT16 || dtype == BURN_INT8;
        const unsigned high = (unsigned)(64 - 8 * bytes);
        return json_integer(is_signed ? (int64_t)(bits << high) >> high : (int64_t)bits);
    }
    const double x = record_number(data, dtype, 0);
    snprintf(text, sizeof text, "%0*" PRIx64, (int)bytes * 2, bits);
    return isfinite(x) ? json_real(x) : json_string(text);
}

static void encode(const Record *r, RecordBytes *to)
{
    char sum[17];
    size_t digits = 9;                                     /* that tell floats apart; 17 of doubles */
    const char *precision = record_dtype_name(r->seen.precision);
    json_t *tensors = json_object();
    for (int i = 0; tensors && i < r->seen.count; i++) {
        const burn_tensor_info *t = &r->tensors[i].tensor;
        const size_t one = record_dtype_bytes(t->dtype);
        json_t *data = json_array();
        if (t->dtype == BURN_DOUBLE) digits = 17;
        for (size_t k = 0; k < t->bytes; k += one)
            json_array_append_new(data, number_json((const uint8_t *)r->tensors[i].data + k, t->dtype));
        json_object_set_new(tensors, t->name, json_pack("{s:s, s:o, s:o}", "dtype", record_dtype_name(t->dtype),
                                                        "shape", shape_json(t), "data", data));
    }
    snprintf(sum, sizeof sum, "%016" PRIx64, r->sum);
    json_t *root = json_pack("{s:s, s:i, s:s, s:s, s:s, s:o}", "format", RECORD_MARK, "version", RECORD_VERSION,
                             "program", r->seen.program, "precision", precision ? precision : "", "sum", sum,
                             "tensors", tensors);
    put_json(root, JSON_REAL_PRECISION(digits), to);
}

/* One element; 0: it is no number of that type. */
static int set_number(const json_t *o, burn_dtype dtype, uint8_t *to)
{
    const size_t bytes = record_dtype_bytes(dtype);
    if (json_is_string(o)) {
        char *end;
        const char *text = json_string_value(o);
        const uint64_t bits = strtoull(text, &end, 16);
        for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)(bits >> (8 * i));
        return record_is_float(dtype) && !*end && strlen(text) == 2 * bytes;
    }
    if (record_is_float(dtype)) {
        if (json_is_number(o)) record_set_number(to, dtype, 0, json_number_value(o));
        return json_is_number(o);
    }
    const uint64_t bits = (uint64_t)json_integer_value(o);
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)(bits >> (8 * i));
    json_t *back = number_json(to, dtype);
    const int same = json_is_integer(o) && json_equal(o, back);
    json_decref(back);
    return same;
}

static int add(Record *r, const char *name, const json_t *entry, burn_said *said)
{
    int64_t shape[RECORD_RANK];
    const json_t *data = json_object_get(entry, "data");
    const burn_dtype dtype = dtype_of(entry);
    const size_t one = record_dtype_bytes(dtype), n = json_array_size(data);
    uint8_t *at = json_is_array(data) ? record_room(r, n * one) : NULL;
    if (!at) return record_bad(r, name, said, "its entry has no data");
    for (size_t i = 0; one && i < n; i++)
        if (!set_number(json_array_get(data, i), dtype, at + i * one)) {
            char text[64];
            snprintf(text, sizeof text, "element %zu is no number of its type", i);
            return record_bad(r, name, said, text);
        }
    return record_add(r, name, strlen(name), dtype, shape_of(json_object_get(entry, "shape"), shape), shape, at,
                      n * one, said);
}

static int decode(const uint8_t *data, size_t bytes, Record *r, burn_said *said)
{
    int error;
    const char *name;
    json_t *entry, *root = root_of(r, data, bytes, &error, said), *version = json_object_get(root, "version");
    json_t *all = json_object_get(root, "tensors");
    if (!error && !json_is_integer(version)) error = record_bad(r, NULL, said, "its version is none");
    if (!error) error = fill_about(r, root, json_integer_value(version), said);
    if (!error && !json_is_object(all)) error = record_bad(r, NULL, said, "it lacks tensors");
    json_object_foreach(all, name, entry)
        if (!error) error = add(r, name, entry, said);
    json_decref(root);
    return error;
}

/* ---- safetensors */

static void encode_tensors(const Record *r, RecordBytes *to)
{
    char sum[17], version[16];
    uint64_t at = 0;
    RecordBytes head = { 0 };
    const char *precision = record_dtype_name(r->seen.precision);
    snprintf(sum, sizeof sum, "%016" PRIx64, r->sum);
    snprintf(version, sizeof version, "%d", RECORD_VERSION);
    json_t *root = json_pack("{s:{s:s, s:s, s:s, s:s}}", "__metadata__", "burn_record", version, "program",
                             r->seen.program, "precision", precision ? precision : "", "sum", sum);
    for (int i = 0; root && i < r->seen.count; i++) {
        const burn_tensor_info *t = &r->tensors[i].tensor;
        json_object_set_new(root, t->name, json_pack("{s:s, s:o, s:[I,I]}", "dtype", record_dtype_name(t->dtype),
                                                     "shape", shape_json(t), "data_offsets", (json_int_t)at,
                                                     (json_int_t)(at + t->bytes)));
        at += t->bytes;
    }
    put_json(root, 0, &head);
    while (head.n % LENGTH && !head.failed) record_append(&head, " ", 1);
    const uint64_t length = head.n;
    record_append(to, &length, LENGTH);
    record_append(to, head.at, head.n);
    to->failed |= head.failed;
    free(head.at);
    for (int i = 0; i < r->seen.count; i++) record_append(to, r->tensors[i].data, r->tensors[i].tensor.bytes);
}

static int add_tensor(Record *r, const char *name, const json_t *entry, const uint8_t *data, size_t room,
                      size_t *covered, burn_said *said)
{
    int64_t shape[RECORD_RANK];
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *ends[2] = { json_array_get(offsets, 0), json_array_get(offsets, 1) };
    const int64_t from = json_integer_value(ends[0]), to = json_integer_value(ends[1]);
    if (json_array_size(offsets) != 2 || !json_is_integer(ends[0]) || !json_is_integer(ends[1]) || from < 0
        || to < from || (uint64_t)to > room)
        return record_bad(r, name, said, "its data lies outside the file");
    *covered += (size_t)(to - from);
    return record_add(r, name, strlen(name), dtype_of(entry), shape_of(json_object_get(entry, "shape"), shape), shape,
                      data + from, (size_t)(to - from), said);
}

/* The sum of generated code: over words of four bytes behind the text that it stands in, the metadata's. */
static int check_generated(const Record *r, const json_t *digits, const uint8_t *data, size_t bytes, burn_said *said)
{
    enum { SUMMED = LENGTH + 48 };
    uint64_t wanted, sum = 0;
    if (!json_is_string(digits)) return BURN_OK;
    if (!record_sum_of(json_string_value(digits), json_string_length(digits), &wanted))
        return record_bad(r, NULL, said, "its checksum is none");
    for (size_t i = SUMMED; i + 4 <= bytes; i += 4) {
        uint32_t word;
        memcpy(&word, data + i, 4);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    if (sum == wanted) return BURN_OK;
    return record_bad(r, NULL, said, "its checksum is not that of its content: it is damaged");
}

static int decode_tensors(const uint8_t *data, size_t bytes, Record *r, burn_said *said)
{
    const uint64_t length = header_bytes(data);
    const char *name;
    json_t *entry;
    int error;
    size_t covered = 0;
    if (length > bytes - LENGTH) return record_bad(r, NULL, said, "it ends in its header");
    const size_t room = bytes - LENGTH - length;
    json_t *root = root_of(r, data + LENGTH, length, &error, said), *about = json_object_get(root, "__metadata__");
    json_t *version = json_object_get(about, "burn_record");
    if (!error && version)
        error = fill_about(r, about, json_is_string(version) ? atoi(json_string_value(version)) : -1, said);
    if (!error) error = check_generated(r, json_object_get(about, "burn_sum1"), data, bytes, said);
    json_object_foreach(root, name, entry)
        if (!error && strcmp(name, "__metadata__"))
            error = add_tensor(r, name, entry, data + LENGTH + length, room, &covered, said);
    json_decref(root);
    if (!error && covered != room) error = record_bad(r, NULL, said, "its tensors do not take all of its data");
    return error;
}
#else
#define NEEDS "jansson"
#define decode NULL
#define encode NULL
#define decode_tensors NULL
#define encode_tensors NULL
#endif

const RecordFormat record_json = { "JSON", ".json", BURN_RECORD_JSON, NEEDS, claims, decode, encode };
const RecordFormat record_safetensors = { "safetensors", ".safetensors", BURN_RECORD_SAFETENSORS, NEEDS,
    claims_tensors, decode_tensors, encode_tensors };
