/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folders of images. In: FOLDER/CLASS/FILE, or FOLDER/FILE without classes. Out: items of one size, got from their
 * files each time, so that a folder may be larger than memory.
 *
 * A part of the image (all of it, its middle, or one that is drawn) is resampled with a triangle as wide as a pixel
 * of the result, or of the source where that is wider: bilinear where it grows, an average where it shrinks. */
#include "data_own.h"
#include "image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Folder {
    burn_images how;
    DataTree *tree;
} Folder;

static void folder_end(burn_dataset *data)
{
    Folder *f = data->own;
    data_tree_close(f->tree);
    free(f);
}

/* ---- an image */

/* Its pixels [h][w][3 or 1]; NULL with a message. The caller frees them. */
static uint8_t *decode(const Folder *f, const char *path, int64_t size[2], int *error, burn_said *said)
{
    size_t bytes;
    uint8_t *file = data_read(path, &bytes, said), *pixels = NULL;
    int64_t channels = f->how.gray ? 1 : 3;
    if (!file) return *error = BURN_EIO, NULL;
    *error = burn_image_size(file, bytes, size);
    if (!*error && (size[0] < 1 || size[1] < 1 || size[0] > INT64_MAX / 8 / size[1])) *error = BURN_EFORMAT;
    if (!*error && !(pixels = malloc((size_t)(size[0] * size[1] * channels)))) *error = BURN_ENOMEM;
    if (!*error)
        *error = burn_image_decode(file, bytes, f->how.gray ? BURN_IMAGE_GRAY : BURN_IMAGE_RGB, size[0], size[1],
                                   pixels);
    free(file);
    if (!*error) return pixels;
    free(pixels);
    data_said(said, 0, "%s: %s", path, *error == BURN_ENOMEM ? "no memory" : "is no image that can be decoded");
    return NULL;
}

/* A part of the image, in pixels. */
typedef struct Part { double top, left, height, width; } Part;

/* Of all of the image: the largest part whose shape is h by w. */
static Part middle(const int64_t size[2], double h, double w)
{
    double high = (double)size[0], wide = (double)size[1], scale = fmin(high / h, wide / w);
    return (Part){ (high - h * scale) / 2, (wide - w * scale) / 2, h * scale, w * scale };
}

/* A part of an area and a shape that are drawn; ten tries, as it may not fit (Szegedy et al. 2015). */
static int draw_part(Part *p, const int64_t size[2], double least_area, uint64_t *seed)
{
    for (int i = 0; i < 10; i++) {
        double area = (least_area + (1 - least_area) * data_uniform(seed)) * (double)size[0] * (double)size[1];
        double shape = exp((2 * data_uniform(seed) - 1) * log(4.0 / 3));
        double h = sqrt(area / shape), w = sqrt(area * shape);
        if (h > (double)size[0] || w > (double)size[1]) continue;
        *p = (Part){ ((double)size[0] - h) * data_uniform(seed), ((double)size[1] - w) * data_uniform(seed), h, w };
        return 1;
    }
    return 0;
}

/* Weights of `from` pixels for pixel k of `n` over a stretch of them: where they begin, how many. */
typedef struct Reach { int64_t first, count; } Reach;

static Reach reach(int64_t k, int64_t n, double start, double length, int64_t from, double *weight)
{
    double scale = length / (double)n, wide = fmax(scale, 1), centre = start + ((double)k + 0.5) * scale, sum = 0;
    int64_t first = (int64_t)fmax(floor(centre - wide), 0), last = (int64_t)fmin(ceil(centre + wide), (double)from);
    for (int64_t i = first; i < last; i++)
        sum += weight[i - first] = fmax(0, 1 - fabs(((double)i + 0.5 - centre) / wide));
    for (int64_t i = first; i < last; i++) weight[i - first] /= sum;
    return (Reach){ first, last - first };
}

/* Resamples a part to [c][h][w] of 0 to 1: across into `rows` [c][size 0][w], then down. `weight`: room for the
 * longest axis. */
static void resample(const uint8_t *pixels, const int64_t size[2], int64_t c, Part p, int64_t h, int64_t w, float *rows,
                     double *weight, float *image)
{
    for (int64_t x = 0; x < w; x++) {
        Reach r = reach(x, w, p.left, p.width, size[1], weight);
        for (int64_t y = 0; y < size[0]; y++)
            for (int64_t k = 0; k < c; k++) {
                double sum = 0;
                for (int64_t i = 0; i < r.count; i++) sum += weight[i] * pixels[(y * size[1] + r.first + i) * c + k];
                rows[(k * size[0] + y) * w + x] = (float)(sum / 255);
            }
    }
    for (int64_t y = 0; y < h; y++) {
        Reach r = reach(y, h, p.top, p.height, size[0], weight);
        for (int64_t k = 0; k < c; k++)
            for (int64_t x = 0; x < w; x++) {
                double sum = 0;
                const float *column = &rows[(k * size[0] + r.first) * w + x];
                for (int64_t i = 0; i < r.count; i++) sum += weight[i] * (double)column[i * w];
                image[(k * h + y) * w + x] = (float)sum;
            }
    }
}

static void mirror(float *image, int64_t rows, int64_t w)
{
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < w / 2; x++) {
            float *a = &image[y * w + x], *b = &image[y * w + w - 1 - x], kept = *a;
            *a = *b;
            *b = kept;
        }
}

static float bound(double x)
{
    return (float)fmin(fmax(x, 0), 1);
}

/* Brightness; contrast, about the mean; saturation, about a pixel's gray. */
static void jitter(float *image, int64_t c, int64_t n, double most, uint64_t *seed)
{
    double by[3], mean = 0;
    for (int k = 0; k < 3; k++) by[k] = 1 + most * (2 * data_uniform(seed) - 1);
    for (int64_t i = 0; i < c * n; i++) mean += (double)(image[i] = bound((double)image[i] * by[0]));
    mean /= (double)(c * n);
    for (int64_t i = 0; i < c * n; i++) image[i] = bound(mean + ((double)image[i] - mean) * by[1]);
    for (int64_t i = 0; c == 3 && i < n; i++) {
        double gray = 0.299 * (double)image[i] + 0.587 * (double)image[n + i] + 0.114 * (double)image[2 * n + i];
        for (int64_t k = 0; k < 3; k++) image[k * n + i] = bound(gray + ((double)image[k * n + i] - gray) * by[2]);
    }
}

static int folder_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Folder *f = data->own;
    const burn_images *how = &f->how;
    int64_t c = how->gray ? 1 : 3, h = how->height, w = how->width, size[2];
    int error;
    uint8_t *pixels = decode(f, f->tree->paths[i], size, &error, said);
    if (!pixels) return error;
    float *rows = malloc((size_t)(c * size[0] * w) * sizeof *rows), *image = to[0];
    double *weight = malloc((size_t)((size[0] > size[1] ? size[0] : size[1]) + 4) * sizeof *weight);
    if (rows && weight) {
        Part p = { 0, 0, (double)size[0], (double)size[1] };
        int is_drawn = how->least_area > 0 && draw_part(&p, size, how->least_area, &seed);
        if (!is_drawn && how->fit == BURN_CROP) p = middle(size, (double)h, (double)w);
        resample(pixels, size, c, p, h, w, rows, weight, image);
        if (how->flip && data_random(&seed) >> 63) mirror(image, c * h, w);
        if (how->jitter > 0) jitter(image, c, h * w, how->jitter, &seed);
        for (int64_t k = 0; k < c * h * w; k++) {
            float deviation = how->deviation[k / (h * w)];
            image[k] = (image[k] - how->mean[k / (h * w)]) / (deviation > 0 ? deviation : 1);
        }
        if (data->field_count > 1) *(int64_t *)to[1] = f->tree->labels[i];
    } else {
        error = data_said(said, BURN_ENOMEM, "no memory");
    }
    free(rows);
    free(weight);
    free(pixels);
    return error;
}

static const char *folder_path(const burn_dataset *data, int64_t i)
{
    return ((const Folder *)data->own)->tree->paths[i];
}

int burn_data_images(const char *path, const burn_images *how, burn_dataset **data, burn_said *said)
{
    int error;
    if (!path || !how || how->height < 0 || how->width < 0) return BURN_EINVAL;
    DataTree *tree = data_tree_open(path, how->like, &error, said);
    if (!tree) return error;
    Folder *f = malloc(sizeof *f);
    if (!f) return data_tree_close(tree), data_said(said, BURN_ENOMEM, "no memory");
    *f = (Folder){ *how, tree };
    burn_dataset model = { .field_count = 1, .own = f };
    if (!how->height || !how->width) {
        int64_t size[2];
        free(decode(f, tree->paths[0], size, &error, said));
        if (error) return folder_end(&model), error;
        f->how.height = how->height ? how->height : size[0];
        f->how.width = how->width ? how->width : size[1];
    }
    int64_t shape[3] = { how->gray ? 1 : 3, f->how.height, f->how.width };
    model.fields[0] = burn_field_of("image", BURN_FLOAT, 3, shape);
    model.path = folder_path;
    data_tree_fields(tree, &model);
    return data_make(&model, tree->count, f, folder_get, folder_end, data, said);
}
