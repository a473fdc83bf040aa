/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Images with labels in one file: MNIST's IDX (LeCun, "The MNIST database", file formats) and CIFAR's binary version
 * (Krizhevsky, "The CIFAR-10 dataset"). Files are held as they are, bytes; an item's pixels become floats from 0 to 1
 * when it is got. */
#include "data_own.h"

#include <stdlib.h>
#include <string.h>

/* One file's items: pixels at `pixels` of every `stride` bytes, labels at `label[k]`. */
typedef struct Sheet { uint8_t *file; const uint8_t *pixels; int64_t count; } Sheet;
typedef struct Sheets {
    int n;
    Sheet *of;
    int64_t stride, pixels;
    uint8_t *labels_file;
    const uint8_t *labels;                                 /* IDX: a file of their own, or NULL */
    int label_bytes;                                       /* CIFAR: in front of the pixels */
} Sheets;

static void sheets_free(Sheets *s)
{
    for (int i = 0; i < s->n; i++) free(s->of[i].file);
    free(s->of);
    free(s->labels_file);
    free(s);
}

static void sheets_end(burn_dataset *data)
{
    sheets_free(data->own);
}

static Sheets *sheets_new(int n)
{
    Sheets *s = calloc(1, sizeof *s);
    if (s) s->of = calloc((size_t)n, sizeof *s->of);
    if (s && !s->of) {
        free(s);
        return NULL;
    }
    if (s) s->n = n;
    return s;
}

static int sheets_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Sheets *s = data->own;
    int sheet = 0;
    int64_t at = i;
    (void)seed;
    (void)said;
    while (at >= s->of[sheet].count) at -= s->of[sheet++].count;
    const uint8_t *pixels = s->of[sheet].pixels + at * s->stride;
    float *image = to[0];
    for (int64_t k = 0; k < s->pixels; k++) image[k] = (float)pixels[k] / 255.0f;
    if (s->labels) *(int64_t *)to[1] = s->labels[i];
    for (int k = 0; k < s->label_bytes; k++)               /* coarse, fine; the fine one is "label" */
        *(int64_t *)to[s->label_bytes - k] = pixels[k - s->label_bytes];
    return BURN_OK;
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Reads an IDX file of bytes: two zeros, 8, the rank, the dimensions. NULL with a message. */
static uint8_t *read_idx(const char *path, int rank, uint32_t *dims, burn_said *said)
{
    size_t bytes, wanted = 1, head = 4 + 4 * (size_t)rank;
    uint8_t *file = data_read(path, &bytes, said);
    if (!file) return NULL;
    int ok = bytes >= head && !file[0] && !file[1] && file[2] == 8 && file[3] == rank;
    for (int i = 0; ok && i < rank; i++) {
        dims[i] = big_endian(file + 4 + 4 * i);
        ok = !dims[i] || wanted <= SIZE_MAX / dims[i];
        wanted *= dims[i];
    }
    if (ok && bytes - head == wanted) return file;
    if (ok) data_said(said, 0, "%s: has %zu bytes of %zu", path, bytes - head, wanted);
    else data_said(said, 0, "%s: is no IDX file of bytes of rank %d", path, rank);
    free(file);
    return NULL;
}

int burn_data_idx(const char *images, const char *labels, burn_dataset **data, burn_said *said)
{
    uint32_t dims[3], n = 0;
    Sheets *s = sheets_new(1);
    if (!s) return data_said(said, BURN_ENOMEM, "no memory");
    s->of[0].file = read_idx(images, 3, dims, said);
    if (s->of[0].file && labels) s->labels_file = read_idx(labels, 1, &n, said);
    if (!s->of[0].file || (labels && !s->labels_file)) return sheets_free(s), BURN_EIO;
    if (labels && n != dims[0])
        return sheets_free(s), data_said(said, BURN_EFORMAT, "%s has %u labels for the %u images of %s", labels, n,
                                         dims[0], images);
    s->of[0].pixels = s->of[0].file + 16;
    s->of[0].count = dims[0];
    s->stride = s->pixels = (int64_t)dims[1] * dims[2];
    burn_dataset model = { .field_count = labels ? 2 : 1 };
    model.fields[0] = burn_field_of("image", BURN_FLOAT, 3, (int64_t[]){ 1, dims[1], dims[2] });
    model.fields[1] = burn_field_of("label", BURN_INT64, 0, NULL);
    if (labels) s->labels = s->labels_file + 8;
    for (uint32_t i = 0; i < n; i++)
        if (s->labels[i] >= model.fields[1].class_count) model.fields[1].class_count = s->labels[i] + 1;
    return data_make(&model, dims[0], s, sheets_get, sheets_end, data, said);
}

enum { CIFAR_PIXELS = 3 * 32 * 32 };

/* Labels of a file below their bounds; the first row that is not, or -1. */
static int64_t bad_cifar(const Sheet *sheet, int classes, int label_bytes, int64_t stride)
{
    for (int64_t i = 0; i < sheet->count; i++) {
        const uint8_t *row = sheet->file + i * stride;
        if (row[label_bytes - 1] >= classes || (label_bytes == 2 && row[0] >= 20)) return i;
    }
    return -1;
}

int burn_data_cifar(int classes, int n, const char *const *paths, burn_dataset **data, burn_said *said)
{
    if ((classes != 10 && classes != 100) || n < 1 || !paths)
        return data_said(said, BURN_EINVAL, "CIFAR has 10 or 100 classes, and at least a file");
    Sheets *s = sheets_new(n);
    if (!s) return data_said(said, BURN_ENOMEM, "no memory");
    s->label_bytes = classes == 100 ? 2 : 1;
    s->pixels = CIFAR_PIXELS;
    s->stride = CIFAR_PIXELS + s->label_bytes;
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        Sheet *sheet = &s->of[i];
        size_t bytes;
        sheet->file = data_read(paths[i], &bytes, said);
        if (!sheet->file) return sheets_free(s), BURN_EIO;
        sheet->count = (int64_t)(bytes / (size_t)s->stride);
        sheet->pixels = sheet->file + s->label_bytes;
        int64_t bad = bytes % (size_t)s->stride ? sheet->count : bad_cifar(sheet, classes, s->label_bytes, s->stride);
        if (bad >= 0)
            return sheets_free(s), data_said(said, BURN_EFORMAT, "%s: row %lld is none of CIFAR-%d's", paths[i],
                                             (long long)bad, classes);
        count += sheet->count;
    }
    burn_dataset model = { .field_count = 1 + s->label_bytes };
    model.fields[0] = burn_field_of("image", BURN_FLOAT, 3, (int64_t[]){ 3, 32, 32 });
    model.fields[1] = burn_field_of("label", BURN_INT64, 0, NULL);
    model.fields[2] = burn_field_of("coarse", BURN_INT64, 0, NULL);
    model.fields[1].class_count = classes;
    model.fields[2].class_count = 20;
    return data_make(&model, count, s, sheets_get, sheets_end, data, said);
}
