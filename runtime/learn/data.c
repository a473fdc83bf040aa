/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Datasets: what all have, arrays in memory, numbers drawn at random. */
#include "data_own.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef BURN_DATA_ZLIB
#include <zlib.h>
#endif

int data_said(burn_said *said, int error, const char *format, ...)
{
    va_list a;
    if (!said) return error;
    va_start(a, format);
    vsnprintf(said->text, sizeof said->text, format, a);
    va_end(a);
    return error;
}

#ifdef BURN_DATA_ZLIB
typedef gzFile Source;
#define source_open(path) gzopen(path, "rb")
#define source_read(f, to, n) gzread(f, to, (unsigned)(n))
#define source_close(f) (gzclose(f) == Z_OK)
#else
typedef FILE *Source;
#define source_open(path) fopen(path, "rb")
#define source_read(f, to, n) (fread(to, 1, n, f))
#define source_close(f) (!fclose(f))
#endif

uint8_t *data_read(const char *path, size_t *bytes, burn_said *said)
{
    enum { PIECE = 1 << 20 };
    Source f = path ? source_open(path) : NULL;
    if (!f) return data_said(said, 0, "%s: cannot be opened", path ? path : "(no path)"), NULL;
    uint8_t *data = NULL;
    size_t room = 0, used = 0;
    for (;;) {
        if (used + PIECE + 1 > room) {
            uint8_t *more = realloc(data, room = (used + PIECE + 1) * 2);
            if (!more) break;
            data = more;
        }
        long got = (long)source_read(f, data + used, PIECE);
        if (got < 0) break;
        used += (size_t)got;
        if (got) continue;
        data[used] = 0;
        *bytes = used;
        if (!source_close(f)) return data_said(said, 0, "%s: ends too early", path), free(data), NULL;
        return data;
    }
    (void)source_close(f);
    free(data);
    return data_said(said, 0, "%s: cannot be read, or not into memory", path), NULL;
}

uint64_t data_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t data_below(uint64_t *state, int64_t n)
{
    return (int64_t)(data_random(state) % (uint64_t)n);
}

double data_uniform(uint64_t *state)
{
    return (double)(data_random(state) >> 11) * 0x1p-53;
}

int64_t *data_order(int64_t n, uint64_t seed)
{
    int64_t *order = malloc((size_t)(n ? n : 1) * sizeof *order);
    for (int64_t i = 0; order && i < n; i++) {             /* i comes to a place among those before it */
        int64_t k = data_below(&seed, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    return order;
}

static size_t size_of(burn_dtype dtype)
{
    switch (dtype) {
    case BURN_FLOAT: case BURN_INT32: case BURN_UINT32: return 4;
    case BURN_DOUBLE: case BURN_INT64: case BURN_UINT64: return 8;
    case BURN_FLOAT16: case BURN_BFLOAT16: case BURN_INT16: case BURN_UINT16: return 2;
    default: return 1;
    }
}

burn_field burn_field_of(const char *name, burn_dtype dtype, int rank, const int64_t *shape)
{
    burn_field f = { .name = name, .dtype = dtype, .rank = rank, .bytes = size_of(dtype) };
    for (int i = 0; i < rank && i < BURN_FIELD_RANK; i++) {
        f.shape[i] = shape[i];
        f.bytes *= (size_t)shape[i];
    }
    return f;
}

int burn_data_of(const burn_dataset *model, burn_dataset **data)
{
    if (!model || !data || !model->get || model->count < 0 || model->field_count > BURN_FIELDS) return BURN_EINVAL;
    *data = malloc(sizeof **data);
    if (!*data) return BURN_ENOMEM;
    **data = *model;
    (*data)->holds = 1;
    return BURN_OK;
}

int data_make(const burn_dataset *like, int64_t count, void *own,
              int (*get)(const burn_dataset *, int64_t, uint64_t, void *const *, burn_said *),
              void (*end)(burn_dataset *), burn_dataset **data, burn_said *said)
{
    burn_dataset model = like ? *like : (burn_dataset){ 0 };
    model.count = count;
    model.own = own;
    model.get = get;
    model.end = end;
    int error = data ? burn_data_of(&model, data) : BURN_EINVAL;
    if (!error) return BURN_OK;
    if (end) end(&model);
    return data_said(said, error, "no memory");
}

int burn_data_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    if (!data || !to) return BURN_EINVAL;
    if (i < 0 || i >= data->count)
        return data_said(said, BURN_ERANGE, "there is no item %lld; there are %lld", (long long)i,
                         (long long)data->count);
    return data->get(data, i, seed, to, said);
}

burn_dataset *burn_data_keep(burn_dataset *data)
{
    data->holds++;
    return data;
}

void burn_data_close(burn_dataset *data)
{
    if (!data || --data->holds) return;
    if (data->end) data->end(data);
    free(data);
}

int burn_data_field(const burn_dataset *data, const char *name)
{
    for (int f = 0; f < data->field_count; f++)
        if (!strcmp(data->fields[f].name, name)) return f;
    return -1;
}

/* The fields of a source that is told them. */
static int take_fields(burn_dataset *model, int field_count, const burn_field *fields, burn_said *said)
{
    if (field_count < 1 || field_count > BURN_FIELDS || !fields)
        return data_said(said, BURN_EINVAL, "a dataset has 1 to %d fields", BURN_FIELDS);
    *model = (burn_dataset){ .field_count = field_count };
    memcpy(model->fields, fields, (size_t)field_count * sizeof *fields);
    return BURN_OK;
}

/* ---- memory */
typedef struct Arrays { const uint8_t *of[BURN_FIELDS]; } Arrays;

static int memory_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Arrays *a = data->own;
    (void)seed;
    (void)said;
    for (int f = 0; f < data->field_count; f++) {
        size_t bytes = data->fields[f].bytes;
        memcpy(to[f], a->of[f] + (size_t)i * bytes, bytes);
    }
    return BURN_OK;
}

static void free_own(burn_dataset *data)
{
    free(data->own);
}

int burn_data_memory(int64_t count, int field_count, const burn_field *fields, const void *const *arrays,
                     burn_dataset **data, burn_said *said)
{
    burn_dataset model;
    int error = take_fields(&model, field_count, fields, said);
    if (error || !arrays || count < 0) return BURN_EINVAL;
    Arrays *a = calloc(1, sizeof *a);
    if (!a) return data_said(said, BURN_ENOMEM, "no memory");
    for (int f = 0; f < field_count; f++) a->of[f] = arrays[f];
    return data_make(&model, count, a, memory_get, free_own, data, said);
}

/* ---- fake: each item's numbers follow from the dataset's seed and its own number */
static double normal(uint64_t *state)
{
    double far = sqrt(-2 * log(1 - data_uniform(state)));  /* Box and Muller 1958 */
    return far * cos(6.283185307179586 * data_uniform(state));
}

static int fake_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    uint64_t state = *(const uint64_t *)data->own ^ (uint64_t)i * 0xd1342543de82ef95u;
    (void)seed;
    for (int f = 0; f < data->field_count; f++) {
        const burn_field *field = &data->fields[f];
        int64_t n = (int64_t)(field->bytes / size_of(field->dtype));
        int64_t most = field->class_count ? field->class_count : 256;
        for (int64_t k = 0; k < n; k++) {
            if (field->dtype == BURN_FLOAT) ((float *)to[f])[k] = (float)normal(&state);
            else if (field->dtype == BURN_DOUBLE) ((double *)to[f])[k] = normal(&state);
            else if (field->dtype == BURN_INT64) ((int64_t *)to[f])[k] = data_below(&state, most);
            else if (field->dtype == BURN_INT32) ((int32_t *)to[f])[k] = (int32_t)data_below(&state, most);
            else if (field->dtype == BURN_UINT8) ((uint8_t *)to[f])[k] = (uint8_t)data_below(&state, most);
            else return data_said(said, BURN_EINVAL, "fake data has no field of type %d", (int)field->dtype);
        }
    }
    return BURN_OK;
}

int burn_data_fake(int64_t count, int field_count, const burn_field *fields, uint64_t seed, burn_dataset **data,
                   burn_said *said)
{
    burn_dataset model;
    int error = take_fields(&model, field_count, fields, said);
    if (error || count < 0) return BURN_EINVAL;
    uint64_t *own = malloc(sizeof *own);
    if (!own) return data_said(said, BURN_ENOMEM, "no memory");
    *own = seed;
    return data_make(&model, count, own, fake_get, free_own, data, said);
}
