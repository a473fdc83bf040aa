/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Arrays by name as a dataset: those of a .npz of NumPy's, of a file of safetensors or any other record, and of what
 * else gathers arrays. The first axis counts the items. Floats become f32, integers i64; bytes in three or more axes
 * are pixels, f32 from 0 to 1. */
#include "data_own.h"
#include "record_own.h"

#include <stdlib.h>
#include <string.h>
#ifdef BURN_HAS_ZIP
#include <zip.h>
#endif

struct DataArrays {
    burn_dataset model;
    uint8_t *at[BURN_FIELDS];
    char *names[BURN_FIELDS];
    char **words[BURN_FIELDS];                             /* of classes; NULL: none */
};

static void data_arrays_free(DataArrays *a)
{
    for (int f = 0; a && f < BURN_FIELDS; f++) {
        free(a->at[f]);
        free(a->names[f]);
        if (a->words[f]) free(a->words[f][0]);
        free(a->words[f]);
    }
    free(a);
}

static int arrays_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const DataArrays *a = data->own;
    (void)seed, (void)said;
    for (int f = 0; f < data->field_count; f++) {
        const size_t bytes = data->fields[f].bytes;
        if (bytes) memcpy(to[f], a->at[f] + (size_t)i * bytes, bytes);
    }
    return BURN_OK;
}

static void arrays_end(burn_dataset *data)
{
    data_arrays_free(data->own);
}

static int64_t integer_at(const uint8_t *data, burn_dtype dtype, size_t i)
{
    const size_t bytes = record_dtype_bytes(dtype);
    const int is_signed = dtype == BURN_INT64 || dtype == BURN_INT32 || dtype == BURN_INT16 || dtype == BURN_INT8;
    uint64_t bits = 0;
    memcpy(&bits, data + i * bytes, bytes);
    const unsigned high = (unsigned)(64 - 8 * bytes);
    return is_signed ? (int64_t)(bits << high) >> high : (int64_t)bits;
}

static void become(uint8_t *to, burn_dtype as, const uint8_t *from, burn_dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int64_t x = as == BURN_INT64 || dtype == BURN_UINT8 ? integer_at(from, dtype, i) : 0;
        if (as == BURN_INT64) memcpy(to + i * sizeof x, &x, sizeof x);
        else record_set_number(to, BURN_FLOAT, i, dtype == BURN_UINT8 ? (double)((float)x / 255.0f)
                                                                      : record_number(from, dtype, i));
    }
}

/* How many classes the numbers of a column are of; 0: they are no classes. */
static int classes_of(const uint8_t *at, int64_t n)
{
    enum { MOST = 1 << 16 };
    int64_t most = -1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = integer_at(at, BURN_INT64, (size_t)i);
        if (x < 0 || x >= MOST) return 0;
        if (x > most) most = x;
    }
    return (int)(most + 1);
}

int data_arrays_add(DataArrays **arrays, const char *path, const DataArray *one, burn_said *said)
{
    DataArrays *a = *arrays ? *arrays : (*arrays = calloc(1, sizeof **arrays));
    if (!a) return data_said(said, BURN_ENOMEM, "%s: no memory", path);
    const int f = a->model.field_count, rank = one->rank - 1;
    const size_t from = record_dtype_bytes(one->dtype);
    if (f == BURN_FIELDS || rank > BURN_FIELD_RANK)
        return data_said(said, BURN_ELIMIT, "%s: \"%s\": more than %d fields, or %d axes", path, one->name, BURN_FIELDS,
                         BURN_FIELD_RANK + 1);
    if (rank < 0 || !from)
        return data_said(said, BURN_EFORMAT, "%s: \"%s\": its first axis has to count items, and its elements have to "
                         "be numbers", path, one->name);
    if (f && one->shape[0] != a->model.count)
        return data_said(said, BURN_EFORMAT, "%s: \"%s\" has %lld items, \"%s\" has %lld: choose fields", path,
                         one->name, (long long)one->shape[0], a->names[0], (long long)a->model.count);
    const int is_float = record_is_float(one->dtype) || (one->dtype == BURN_UINT8 && rank >= 2);
    a->model.count = one->shape[0];
    a->names[f] = malloc(strlen(one->name) + 1);
    burn_field *field = &a->model.fields[f];
    if (a->names[f])
        *field = burn_field_of(strcpy(a->names[f], one->name), is_float ? BURN_FLOAT : BURN_INT64, rank,
                               one->shape + 1);
    const size_t n = one->bytes / from;
    a->at[f] = a->names[f] && n < SIZE_MAX / 8 ? malloc(n * 8 + 1) : NULL;
    if (!a->at[f]) return free(a->names[f]), a->names[f] = NULL, data_said(said, BURN_ENOMEM, "%s: no memory", path);
    become(a->at[f], field->dtype, one->data, one->dtype, n);
    if (!is_float && !rank) field->class_count = classes_of(a->at[f], a->model.count);
    a->words[f] = one->words;
    if (one->words) field->class_count = one->word_count;
    field->classes = (const char *const *)one->words;
    a->model.field_count++;
    return BURN_OK;
}

int data_arrays_done(DataArrays *a, const char *path, int error, burn_dataset **data, burn_said *said)
{
    if (!error && !a) error = data_said(said, BURN_EFORMAT, "%s: has no arrays", path);
    if (!error && !a->model.count) error = data_said(said, BURN_EFORMAT, "%s: has no items", path);
    if (error) return data_arrays_free(a), error;
    return data_make(&a->model, a->model.count, a, arrays_get, arrays_end, data, said);
}

/* Is `name` one of those in "a,b", or are there none? */
static int is_chosen(const char *fields, const char *name)
{
    const size_t bytes = strlen(name);
    for (const char *p = fields; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (!strncmp(p, name, bytes) && strchr(",", p[bytes])) return 1;
    return !fields || !*fields;
}

/* ---- records */

int burn_data_record(const char *path, const char *fields, burn_dataset **data, burn_said *said)
{
    burn_record *record;
    DataArrays *a = NULL;
    int error = burn_record_open(path, &record, said);
    if (error) return error;
    for (int i = 0; !error && i < record->count; i++) {
        const burn_tensor_info *t = &record->tensors[i].tensor;
        const DataArray one = { t->name, t->dtype, t->rank, t->shape, record->tensors[i].data, t->bytes, NULL, 0 };
        if (is_chosen(fields, t->name)) error = data_arrays_add(&a, path, &one, said);
    }
    burn_record_close(record);
    return data_arrays_done(a, path, error, data, said);
}

/* ---- .npz */

#ifdef BURN_HAS_ZIP
/* The text behind a key of a .npy's header, as Python writes it: {'descr': '<f4', 'fortran_order': False, ...}. */
static const char *behind(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at) return "";
    at += strlen(key);
    return at + strspn(at, "': ");
}

static burn_dtype npy_dtype(const char *descr)
{
    char name[8] = "";
    size_t n = 0;
    const char *kinds = "fFiIuU", *kind = descr[0] ? strchr(kinds, descr[1]) : NULL;
    const long bits = descr[0] && descr[1] ? strtol(descr + 2, NULL, 10) * 8 : 0;
    if (!strncmp(descr, "|b1", 3)) return BURN_BOOL;
    if (!strchr("<|", *descr) || !*descr || !kind || !descr[1] || bits < 8 || bits > 64) return BURN_UNDEFINED;
    name[n++] = kind[(kind - kinds) % 2 == 0];
    if (bits >= 10) name[n++] = (char)('0' + bits / 10);
    name[n++] = (char)('0' + bits % 10);
    return record_dtype(name, n);
}

static int add_npy(DataArrays **a, const char *path, char *name, uint8_t *file, size_t bytes, burn_said *said)
{
    int64_t shape[BURN_FIELD_RANK + 2];                    /* one more than there may be */
    DataArray one = { .name = name, .shape = shape };
    const size_t begin = bytes > 12 && file[6] == 1 ? 10 : 12;
    size_t length = bytes > 12 ? file[8] | (size_t)file[9] << 8 : 0, wanted;
    if (begin == 12 && bytes > 12) length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
    if (bytes <= begin || memcmp(file, "\x93NUMPY", 6) || length >= bytes - begin)
        return data_said(said, BURN_EFORMAT, "%s: \"%s\": is no .npy", path, name);
    char *header = (char *)file + begin;
    header[length - 1] = 0;                                /* a line's end */
    one.dtype = npy_dtype(behind(header, "'descr'"));
    one.data = file + begin + length;
    one.bytes = wanted = bytes - begin - length;
    if (!strncmp(behind(header, "'fortran_order'"), "True", 4))
        return data_said(said, BURN_EFORMAT, "%s: \"%s\": is in Fortran order: save numpy.ascontiguousarray(...)", path,
                         name);
    const char *at = strchr(behind(header, "'shape'"), '(');
    size_t count = record_dtype_bytes(one.dtype);
    for (char *end; at && one.rank < BURN_FIELD_RANK + 2; at = end) {
        at += strspn(at, "(, ");
        shape[one.rank] = strtoll(at, &end, 10);
        if (end == at) break;
        if (shape[one.rank] < 0 || __builtin_mul_overflow(count, (size_t)shape[one.rank++], &count)) count = SIZE_MAX;
    }
    if (one.dtype && count != wanted)
        return data_said(said, BURN_EFORMAT, "%s: \"%s\": its shape takes other bytes than are there", path, name);
    return data_arrays_add(a, path, &one, said);
}

static int add_entry(DataArrays **a, const char *path, zip_t *zip, zip_uint64_t i, const char *fields, burn_said *said)
{
    char name[256];
    zip_stat_t about;
    if (zip_stat_index(zip, i, 0, &about)) return data_said(said, BURN_EFORMAT, "%s: entry %d: %s", path, (int)i,
                                                            zip_strerror(zip));
    const size_t n = strlen(about.name), end = n > 4 && !strcmp(about.name + n - 4, ".npy") ? n - 4 : n;
    if (end == n || end >= sizeof name) return BURN_OK;
    memcpy(name, about.name, end);
    name[end] = 0;
    if (!is_chosen(fields, name)) return BURN_OK;
    zip_file_t *f = zip_fopen_index(zip, i, 0);
    uint8_t *file = f ? malloc((size_t)about.size + 1) : NULL;
    int error = BURN_OK;
    if (!f) error = data_said(said, BURN_EFORMAT, "%s: \"%s\": %s", path, name, zip_strerror(zip));
    else if (!file) error = data_said(said, BURN_ENOMEM, "%s: \"%s\": no memory for it", path, name);
    else if (zip_fread(f, file, about.size) != (zip_int64_t)about.size || zip_fread(f, file + about.size, 1))
        error = data_said(said, BURN_EFORMAT, "%s: \"%s\": %s", path, name, zip_file_strerror(f));
    if (f) zip_fclose(f);
    if (!error) error = add_npy(a, path, name, file, about.size, said);
    free(file);
    return error;
}

int burn_data_npz(const char *path, const char *fields, burn_dataset **data, burn_said *said)
{
    int why, error = BURN_OK;
    DataArrays *a = NULL;
    zip_t *zip = path ? zip_open(path, ZIP_RDONLY, &why) : NULL;
    if (!zip) return data_said(said, BURN_EIO, "%s: cannot be opened, or is no .npz", path ? path : "(no path)");
    for (zip_int64_t i = 0; !error && i < zip_get_num_entries(zip, 0); i++)
        error = add_entry(&a, path, zip, (zip_uint64_t)i, fields, said);
    zip_discard(zip);
    return data_arrays_done(a, path, error, data, said);
}
#else
int burn_data_npz(const char *path, const char *fields, burn_dataset **data, burn_said *said)
{
    (void)fields, (void)data;
    return data_said(said, BURN_EINVAL, "%s: this build has no libzip, which .npz needs", path);
}
#endif
