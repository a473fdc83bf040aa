/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records: what is held as a list of tensors and back, whatever the format, with all checks of content.
 *
 *   held -> wants (name, type, shape, place) -> Record (floats of the precision) -> encode -> pack -> file
 *   file -> unpack -> decode -> Record -> sum, names -> match with the wants -> places
 */
#include "record_own.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const RecordFormat *const formats[] = { &record_messagepack, &record_binary, &record_json, &record_safetensors,
    &record_named_mpk, &record_burnpack };
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* ---- the list */

void *record_keep(Record *r, void *block)
{
    if (block && r->block_count == r->block_room) {
        const int room = r->block_room ? r->block_room * 2 : 16;
        void **more = realloc(r->blocks, (size_t)room * sizeof *more);
        if (!more) return free(block), NULL;
        r->blocks = more;
        r->block_room = room;
    }
    if (block) r->blocks[r->block_count++] = block;
    return block;
}

void *record_room(Record *r, size_t bytes)
{
    return record_keep(r, calloc(1, bytes ? bytes : 1));
}

static Record *record_new(const char *where)
{
    Record *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    snprintf(r->where, sizeof r->where, "%s", where);
    r->seen.program = r->seen.format = "";
    return r;
}

void burn_record_close(burn_record *record)
{
    Record *r = (Record *)record;
    if (!r) return;
    for (int i = 0; i < r->block_count; i++) free(r->blocks[i]);
    free(r->blocks);
    free(r->tensors);
    free(r);
}

int record_bad(const Record *r, const char *name, burn_said *said, const char *what)
{
    if (!name) return data_said(said, BURN_EFORMAT, "%s: %s", r->where, what);
    return data_said(said, BURN_EFORMAT, "%s: tensor \"%s\": %s", r->where, name, what);
}

int record_version(Record *r, int64_t version, burn_said *said)
{
    r->seen.version = version > 0 && version <= INT_MAX ? (int)version : 0;
    if (version == RECORD_VERSION) return BURN_OK;
    return data_said(said, BURN_EFORMAT, "%s: it is of version %lld; this library reads %d", r->where,
                     (long long)version, RECORD_VERSION);
}

static int grow(Record *r)
{
    if (r->seen.count < r->room) return 1;
    const int room = r->room ? r->room * 2 : 64;
    burn_recorded *more = realloc(r->tensors, (size_t)room * sizeof *more);
    if (!more) return 0;
    r->seen.tensors = r->tensors = more;
    r->room = room;
    return 1;
}

int record_add(Record *r, const char *name, size_t name_bytes, burn_dtype dtype, int rank, const int64_t *shape,
               const void *data, size_t bytes, burn_said *said)
{
    char *copy = name_bytes < SIZE_MAX / 2 ? record_room(r, name_bytes + 1) : NULL;
    int64_t *dims = rank >= 0 && rank <= RECORD_RANK ? record_room(r, (size_t)rank * sizeof *dims) : NULL;
    size_t wanted = record_dtype_bytes(dtype);
    if (!copy) return data_said(said, BURN_ENOMEM, "%s: no memory", r->where);
    memcpy(copy, name, name_bytes);
    if (!wanted) return record_bad(r, copy, said, "its element type is not known");
    if (rank < 0 || rank > RECORD_RANK) return record_bad(r, copy, said, "its number of dimensions makes no sense");
    if (!dims || !grow(r) || r->seen.count >= RECORD_TENSORS)
        return data_said(said, BURN_ENOMEM, "%s: no memory for its tensors", r->where);
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0 || __builtin_mul_overflow(wanted, (size_t)shape[i], &wanted))
            return record_bad(r, copy, said, "a size of its shape is no size");
        dims[i] = shape[i];
    }
    if (wanted != bytes) {
        char text[128];
        snprintf(text, sizeof text, "its data has %zu bytes, its type and shape take %zu", bytes, wanted);
        return record_bad(r, copy, said, text);
    }
    r->tensors[r->seen.count++] = (burn_recorded){
        { .name = copy, .dtype = dtype, .rank = rank, .shape = dims, .bytes = bytes }, data };
    return BURN_OK;
}

/* ---- the sum */

/* Every word goes through a step that can be undone, so that no change of one word goes unseen. */
static uint64_t mix(uint64_t sum, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    for (size_t i = 0;; i += 8) {
        uint64_t word = 0;
        if (i < bytes) memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
        else word = bytes;
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
        if (i >= bytes) break;
    }
    return sum;
}

uint64_t record_sum(const Record *r)
{
    const int64_t about[] = { r->seen.version, r->seen.precision, r->seen.count };
    uint64_t sum = mix(0, about, sizeof about);
    sum = mix(sum, r->seen.program, strlen(r->seen.program));
    for (int i = 0; i < r->seen.count; i++) {
        const burn_tensor_info *t = &r->tensors[i].tensor;
        const int64_t type[] = { t->dtype, t->rank };
        sum = mix(sum, t->name, strlen(t->name));
        sum = mix(sum, type, sizeof type);
        sum = mix(sum, t->shape, (size_t)t->rank * sizeof *t->shape);
        sum = mix(sum, r->tensors[i].data, t->bytes);
    }
    return sum;
}

int record_sum_of(const char *digits, size_t n, uint64_t *sum)
{
    static const char all[] = "0123456789abcdef";
    if (!digits || n != 16) return 0;
    *sum = 0;
    for (size_t i = 0; i < 16; i++) {
        const char *digit = memchr(all, digits[i], 16);
        if (!digit) return 0;
        *sum = *sum << 4 | (uint64_t)(digit - all);
    }
    return 1;
}

/* ---- names */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const burn_recorded *const *)a)->tensor.name, (*(const burn_recorded *const *)b)->tensor.name);
}

/* Tensors by name; NULL without memory. */
static const burn_recorded **sorted(const burn_record *record)
{
    const burn_recorded **all = malloc((size_t)(record->count + 1) * sizeof *all);
    for (int i = 0; all && i < record->count; i++) all[i] = &record->tensors[i];
    if (all) qsort(all, (size_t)record->count, sizeof *all, by_name);
    return all;
}

static int check(const Record *r, burn_said *said)
{
    const burn_recorded **all = sorted(&r->seen);
    int error = all ? BURN_OK : data_said(said, BURN_ENOMEM, "%s: no memory", r->where);
    for (int i = 1; !error && i < r->seen.count; i++)
        if (!by_name(&all[i - 1], &all[i])) error = record_bad(r, all[i]->tensor.name, said, "it is there twice");
    free(all);
    if (!error && r->has_sum && record_sum(r) != r->sum)
        error = record_bad(r, NULL, said, "its checksum is not that of its content: it is damaged");
    return error;
}

/* ---- what is held */

typedef struct Want { const char *name; burn_tensor_info tensor; void *data; } Want;
typedef struct Wants { Record *owner; Want *at; int n; } Wants;

static int want(Wants *w, const char *prefix, const burn_tensor_info *tensor, void *data)
{
    const size_t room = strlen(prefix) + strlen(tensor->name) + 1;
    char *name = record_room(w->owner, room);
    if (!name) return 0;
    snprintf(name, room, "%s%s", prefix, tensor->name);
    w->at[w->n++] = (Want){ name, *tensor, data };
    return 1;
}

/* Parts of a struct. Counts of batches mean nothing in parameters and are in no file. */
static int want_parts(Wants *w, const char *prefix, int n, const burn_part *parts, void *base)
{
    for (int i = 0; base && i < n; i++)
        if (parts[i].role != BURN_BATCHES && !want(w, prefix, &parts[i].tensor, (uint8_t *)base + parts[i].offset))
            return 0;
    return 1;
}

static int wants_of(const burn_held *held, Record *owner, Wants *w)
{
    static const burn_tensor_info step = { .name = "optimizer.step", .dtype = BURN_INT64, .bytes = 8 };
    const burn_training *t = held->training;
    const int n = 1 + held->more_count + (t ? t->param_count + t->state_count : 0);
    *w = (Wants){ .owner = owner, .at = record_room(owner, (size_t)n * sizeof *w->at) };
    int ok = w->at != NULL;
    if (t) ok = ok && want_parts(w, "", t->param_count, t->params, held->params);
    if (t) ok = ok && want_parts(w, "optimizer.", t->state_count, t->state, held->state);
    if (held->step) ok = ok && want(w, "", &step, held->step);
    for (int i = 0; i < held->more_count; i++) ok = ok && want(w, "", &held->more[i], held->more_data[i]);
    return ok;
}

/* ---- out */

static int add_converted(Record *r, const Want *w, burn_said *said)
{
    const burn_dtype dtype = w->tensor.dtype, become = r->seen.precision;
    const size_t one = record_dtype_bytes(dtype), n = one ? w->tensor.bytes / one : 0;
    const void *data = w->data;
    const int changes = record_is_float(dtype) && become && become != dtype;
    size_t bytes = w->tensor.bytes, bad = 0;
    if (changes) {
        void *room = record_room(r, bytes = n * record_dtype_bytes(become));
        if (!room) return data_said(said, BURN_ENOMEM, "no memory");
        if (!record_convert(data, dtype, room, become, n, &bad))
            return data_said(said, BURN_ERANGE, "tensor \"%s\": element %zu, %g, is too large for %s", w->name, bad,
                             record_number(data, dtype, bad), record_dtype_name(become));
        data = room;
    }
    return record_add(r, w->name, strlen(w->name), changes ? become : dtype, w->tensor.rank, w->tensor.shape, data,
                      bytes, said);
}

static const RecordFormat *format_of(burn_record_format format)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i]->ending && formats[i]->format == format) return formats[i];
    return NULL;
}

static int encode(const RecordFormat *f, const burn_recording *how, Record *r, RecordBytes *to, burn_said *said)
{
    RecordBytes packed = { 0 };
    int error = BURN_OK;
    r->sum = record_sum(r);
    f->encode(r, to);
    if (!to->failed && how->gzip) {
        error = record_pack(to->at, to->n, &packed, said);
        free(to->at);
        *to = packed;
    }
    if (!error && to->failed) error = data_said(said, BURN_ENOMEM, "no memory for the record");
    return error;
}

int burn_record_write(const burn_recording *how, const burn_held *held, void **data, size_t *bytes, burn_said *said)
{
    if (!how || !held || !data || !bytes) return data_said(said, BURN_EINVAL, "a null pointer");
    const RecordFormat *f = format_of(how->format);
    if (!f) return data_said(said, BURN_EINVAL, "there is no such format of records");
    if (f->needs) return data_said(said, BURN_EINVAL, "this build has no %s, which %s needs", f->needs, f->name);
    if (how->precision && !record_is_float(how->precision))
        return data_said(said, BURN_EINVAL, "a precision is one of floats");
    Record *r = record_new("the record");
    Wants w;
    RecordBytes to = { 0 };
    int error = r && wants_of(held, r, &w) ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory");
    if (r) r->seen.version = RECORD_VERSION;
    if (r) r->seen.precision = how->precision;
    if (r && held->training) r->seen.program = held->training->name;
    for (int i = 0; !error && i < w.n; i++) error = add_converted(r, &w.at[i], said);
    if (!error) error = check(r, said);
    if (!error) error = encode(f, how, r, &to, said);
    burn_record_close(&r->seen);
    if (error) free(to.at);
    if (!error) *data = to.at;
    if (!error) *bytes = to.n;
    return error;
}

int burn_recording_of(const char *path, burn_recording *how, burn_said *said)
{
    size_t n = path ? strlen(path) : 0;
    const int gzip = n > 3 && !strcmp(path + n - 3, ".gz");
    if (gzip) n -= 3;
    for (int i = 0; i < FORMATS; i++) {
        const size_t k = formats[i]->ending ? strlen(formats[i]->ending) : n + 1;
        if (k > n || memcmp(path + n - k, formats[i]->ending, k)) continue;
        *how = (burn_recording){ .format = formats[i]->format, .gzip = gzip };
        return BURN_OK;
    }
    return data_said(said, BURN_EINVAL, "%s: its ending says no format of records: .mpk, .bin, .json, .safetensors, "
                     "each also with .gz", path ? path : "(no path)");
}

int burn_record_save(const char *path, const burn_recording *how, const burn_held *held, burn_said *said)
{
    burn_recording by_path;
    void *data;
    size_t bytes;
    if (!path) return data_said(said, BURN_EINVAL, "no path");
    int error = how ? BURN_OK : burn_recording_of(path, &by_path, said);
    if (!error) error = burn_record_write(how ? how : &by_path, held, &data, &bytes, said);
    if (error) return error;
    error = record_replace(path, data, bytes, said);
    free(data);
    return error;
}

/* ---- in */

const char *burn_record_claims(const void *data, size_t bytes)
{
    if (record_is_packed(data, bytes)) return "gzip";
    for (int i = 0; i < FORMATS; i++)
        if (formats[i]->claims(data, bytes)) return formats[i]->name;
    return NULL;
}

static int decode(Record *r, const uint8_t *data, size_t bytes, burn_said *said)
{
    uint8_t *unpacked;
    if (record_is_packed(data, bytes)) {
        const int error = record_unpack(data, bytes, &unpacked, &bytes, said);
        if (error) return error;
        if (!(data = record_keep(r, unpacked))) return data_said(said, BURN_ENOMEM, "%s: no memory", r->where);
    }
    for (int i = 0; i < FORMATS; i++) {
        const RecordFormat *f = formats[i];
        if (!f->claims(data, bytes)) continue;
        r->seen.format = f->name;
        if (f->needs) return data_said(said, BURN_EINVAL, "%s: this build has no %s, which %s needs", r->where,
                                       f->needs, f->name);
        const int error = f->decode(data, bytes, r, said);
        return error ? error : check(r, said);
    }
    return record_bad(r, NULL, said, "this is no record");
}

static int read_record(const char *where, uint8_t *own, const uint8_t *data, size_t bytes, burn_record **record,
                       burn_said *said)
{
    Record *r = record_new(where);
    if (r && own && !record_keep(r, own)) burn_record_close(&r->seen), r = NULL;
    else if (!r) free(own);
    int error = r ? decode(r, data, bytes, said) : data_said(said, BURN_ENOMEM, "%s: no memory", where);
    if (error && r) burn_record_close(&r->seen);
    if (!error) *record = &r->seen;
    return error;
}

int burn_record_read(const void *data, size_t bytes, burn_record **record, burn_said *said)
{
    if (!data || !record) return data_said(said, BURN_EINVAL, "a null pointer");
    return read_record("the record", NULL, data, bytes, record, said);
}

int burn_record_open(const char *path, burn_record **record, burn_said *said)
{
    size_t bytes;
    int error;
    if (!path || !record) return data_said(said, BURN_EINVAL, "a null pointer");
    uint8_t *data = record_file(path, &bytes, &error, said);
    return data ? read_record(path, data, data, bytes, record, said) : error;
}

/* ---- back to where it is held */

static int mismatch(const Record *r, const Want *w, const burn_tensor_info *t, burn_said *said)
{
    char text[2][RECORD_RANK * 8 + 32];
    const burn_tensor_info *both[2] = { t, &w->tensor };
    for (int k = 0; k < 2; k++) {
        const char *type = record_dtype_name(both[k]->dtype);
        int n = snprintf(text[k], sizeof text[k], "%s[", type ? type : "?");
        for (int i = 0; i < both[k]->rank && n + 24 < (int)sizeof text[k]; i++)
            n += snprintf(text[k] + n, sizeof text[k] - (size_t)n, "%s%lld", i ? "," : "",
                          (long long)both[k]->shape[i]);
        snprintf(text[k] + n, sizeof text[k] - (size_t)n, "]");
    }
    char what[2 * sizeof text[0] + 32];
    snprintf(what, sizeof what, "it is %s, and %s is wanted", text[0], text[1]);
    return record_bad(r, w->name, said, what);
}

static int fits(const Record *r, const Want *w, const burn_recorded *there, burn_said *said)
{
    const burn_tensor_info *t = &there->tensor, *to = &w->tensor;
    const size_t one = record_dtype_bytes(t->dtype);
    size_t bad;
    int same = t->rank == to->rank;
    for (int i = 0; same && i < t->rank; i++) same = t->shape[i] == to->shape[i];
    same = same && (t->dtype == to->dtype || (record_is_float(t->dtype) && record_is_float(to->dtype)));
    if (!same) return mismatch(r, w, t, said);
    if (record_convert(there->data, t->dtype, NULL, to->dtype, t->bytes / one, &bad)) return BURN_OK;
    return record_bad(r, w->name, said, "a number is too large for the type that is wanted");
}

/* found[i]: the tensor of wants[i]. */
static int match(const Record *r, const Wants *w, int passes_over, const burn_recorded **found, burn_said *said)
{
    const burn_recorded **all = sorted(&r->seen);
    char *used = calloc((size_t)r->seen.count + 1, 1);
    int error = all && used ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory");
    for (int i = 0; !error && i < w->n; i++) {
        const burn_recorded key = { .tensor.name = w->at[i].name }, *name = &key;
        const burn_recorded **at = bsearch(&name, all, (size_t)r->seen.count, sizeof *all, by_name);
        if (!at) error = record_bad(r, w->at[i].name, said, "it is not there");
        else error = fits(r, &w->at[i], *at, said);
        if (error) break;
        found[i] = *at;
        used[at - all] = 1;
    }
    for (int i = 0; !error && !passes_over && i < r->seen.count; i++)
        if (!used[i]) error = record_bad(r, all[i]->tensor.name, said, "nothing wants it");
    free(used);
    free(all);
    return error;
}

int burn_record_give(const burn_record *record, const burn_held *held, burn_said *said)
{
    if (!record || !held) return data_said(said, BURN_EINVAL, "a null pointer");
    Record *owner = record_new("");
    Wants w;
    size_t bad;
    int error = owner && wants_of(held, owner, &w) ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory");
    const burn_recorded **found = error ? NULL : record_room(owner, (size_t)(w.n + 1) * sizeof *found);
    if (!error && !found) error = data_said(said, BURN_ENOMEM, "no memory");
    if (!error) error = match((const Record *)record, &w, held->passes_over, found, said);
    for (int i = 0; !error && i < w.n; i++)
        (void)record_convert(found[i]->data, found[i]->tensor.dtype, w.at[i].data, w.at[i].tensor.dtype,
                             found[i]->tensor.bytes / record_dtype_bytes(found[i]->tensor.dtype), &bad);
    if (owner) burn_record_close(&owner->seen);
    return error;
}

int burn_record_load(const char *path, const burn_held *held, burn_said *said)
{
    burn_record *record = NULL;
    int error = burn_record_open(path, &record, said);
    if (!error) error = burn_record_give(record, held, said);
    burn_record_close(record);
    return error;
}
