/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics of images. In: predictions and values [n, c, h, w], pixels from 0 to `range`. Out: the mean over the images
 * of the peak signal-to-noise ratio, 10 log10(range^2 / mse), and of the structural similarity (Wang et al. 2004):
 * windows of 11 x 11, Gaussian of 1.5, wholly inside the image, the mean over windows and channels. Over several scales
 * (Wang, Simoncelli, Bovik 2003) that is a product: contrasts and structures of an image and of its halves, the whole
 * similarity at the smallest. */
#include "metric_family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 11 };
typedef struct Images {
    Mean mean;
    double range;
} Images;

void *metric_images_begin(const double *parameters)
{
    Images *m = calloc(1, sizeof *m);
    if (m) m->range = parameters[0];
    return m;
}

int metric_psnr_add(void *state, const burn_observation *seen)
{
    Images *m = state;
    int64_t pixels = seen->items ? metric_elements(seen) / seen->items : 0;
    if (!seen->predicted || !seen->values) return BURN_EINVAL;
    for (int64_t n = 0; n < seen->items; n++) {
        double squares = 0;
        for (int64_t i = n * pixels; i < (n + 1) * pixels; i++) {
            double d = (double)seen->predicted[i] - (double)seen->values[i];
            squares += d * d;
        }
        m->mean.sum += 10 * log10(m->range * m->range * (double)pixels / squares);
        m->mean.weight += 1;
    }
    return BURN_OK;
}

/* Weighted sums of a window: of x, y, their squares and their product. */
typedef struct Moments { double x, y, xx, yy, xy; } Moments;

static void gaussian(double weight[WINDOW])
{
    double sum = 0;
    for (int i = 0; i < WINDOW; i++) {
        double d = i - WINDOW / 2;
        sum += weight[i] = exp(-d * d / (2 * 1.5 * 1.5));
    }
    for (int i = 0; i < WINDOW; i++) weight[i] /= sum;
}

/* The sums over windows: of similarities, and of their part without the brightness. */
typedef struct Similarity { double whole, structure; } Similarity;

static void add_similarity(Similarity *sum, const Moments *m, double range)
{
    double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
    double vx = m->xx - m->x * m->x, vy = m->yy - m->y * m->y, vxy = m->xy - m->x * m->y;
    double structure = (2 * vxy + c2) / (vx + vy + c2);
    sum->structure += structure;
    sum->whole += structure * (2 * m->x * m->y + c1) / (m->x * m->x + m->y * m->y + c1);
}

/* The means of one channel: rows first, `across` [h][w - 10], then columns. */
static Similarity channel_ssim(const float *x, const float *y, int64_t h, int64_t w, double range, Moments *across)
{
    double weight[WINDOW];
    Similarity sum = { 0, 0 };
    int64_t out = w - WINDOW + 1;
    gaussian(weight);
    for (int64_t r = 0; r < h; r++)
        for (int64_t c = 0; c < out; c++) {
            Moments m = { 0, 0, 0, 0, 0 };
            for (int k = 0; k < WINDOW; k++) {
                double a = (double)x[r * w + c + k], b = (double)y[r * w + c + k], g = weight[k];
                m = (Moments){ m.x + g * a, m.y + g * b, m.xx + g * a * a, m.yy + g * b * b, m.xy + g * a * b };
            }
            across[r * out + c] = m;
        }
    for (int64_t r = 0; r + WINDOW <= h; r++)
        for (int64_t c = 0; c < out; c++) {
            Moments m = { 0, 0, 0, 0, 0 };
            for (int k = 0; k < WINDOW; k++) {
                const Moments *a = &across[(r + k) * out + c];
                double g = weight[k];
                m = (Moments){ m.x + g * a->x, m.y + g * a->y, m.xx + g * a->xx, m.yy + g * a->yy, m.xy + g * a->xy };
            }
            add_similarity(&sum, &m, range);
        }
    double windows = (double)((h - WINDOW + 1) * out);
    return (Similarity){ sum.whole / windows, sum.structure / windows };
}

int metric_ssim_add(void *state, const burn_observation *seen)
{
    Images *m = state;
    if (!seen->predicted || !seen->values || !seen->shape || seen->rank != 4) return BURN_EINVAL;
    int64_t channels = seen->shape[1], h = seen->shape[2], w = seen->shape[3];
    if (h < WINDOW || w < WINDOW || channels < 1) return BURN_EINVAL;
    Moments *across = malloc((size_t)(h * (w - WINDOW + 1)) * sizeof *across);
    if (!across) return BURN_ENOMEM;
    for (int64_t at = 0; at < seen->items * channels * h * w; at += h * w)
        m->mean.sum += channel_ssim(seen->predicted + at, seen->values + at, h, w, m->range, across).whole;
    m->mean.weight += (double)(seen->items * channels);
    free(across);
    return BURN_OK;
}

/* Means of 2 x 2 pixels, in place. */
static void halve(float *x, int64_t h, int64_t w)
{
    for (int64_t r = 0; r < h / 2; r++)
        for (int64_t c = 0; c < w / 2; c++) {
            const float *from = x + 2 * r * w + 2 * c;
            x[r * (w / 2) + c] = (from[0] + from[1] + from[w] + from[w + 1]) / 4;
        }
}

/* Of one image, whose channels x and y are overwritten. */
static double image_ms_ssim(float *x, float *y, const int64_t shape[3], double range, Moments *across)
{
    static const double power[] = { 0.0448, 0.2856, 0.3001, 0.2363, 0.1333 };       /* of the paper */
    enum { SCALES = sizeof power / sizeof *power };
    int64_t h = shape[1], w = shape[2], plane = h * w;
    double product = 1;
    for (int s = 0; s < SCALES; s++, h /= 2, w /= 2) {
        double sum = 0;
        for (int64_t c = 0; c < shape[0]; c++) {
            Similarity of = channel_ssim(x + c * plane, y + c * plane, h, w, range, across);
            sum += s == SCALES - 1 ? of.whole : of.structure;
            halve(x + c * plane, h, w);
            halve(y + c * plane, h, w);
        }
        product *= pow(sum > 0 ? sum / (double)shape[0] : 0, power[s]);
    }
    return product;
}

int metric_ms_ssim_add(void *state, const burn_observation *seen)
{
    Images *m = state;
    enum { LEAST = WINDOW << 4 };           /* halved four times it still has a window */
    if (!seen->predicted || !seen->values || !seen->shape || seen->rank != 4) return BURN_EINVAL;
    int64_t h = seen->shape[2], w = seen->shape[3], pixels = seen->shape[1] * h * w;
    if (h < LEAST || w < LEAST || seen->shape[1] < 1) return BURN_EINVAL;
    float *x = malloc(2 * (size_t)pixels * sizeof *x), *y = x + pixels;
    Moments *across = malloc((size_t)(h * (w - WINDOW + 1)) * sizeof *across);
    for (int64_t n = 0; n < seen->items && x && across; n++) {
        memcpy(x, seen->predicted + n * pixels, (size_t)pixels * sizeof *x);
        memcpy(y, seen->values + n * pixels, (size_t)pixels * sizeof *y);
        m->mean.sum += image_ms_ssim(x, y, seen->shape + 1, m->range, across);
        m->mean.weight += 1;
    }
    int error = x && across ? BURN_OK : BURN_ENOMEM;
    free(x);
    free(across);
    return error;
}
