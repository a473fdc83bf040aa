/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics of images. In: predictions and values [n, c, h, w], pixels from 0 to `range`. Out: the mean over the images
 * of the peak signal-to-noise ratio, 10 log10(range^2 / mse), and of the structural similarity (Wang et al. 2004):
 * windows of 11 x 11, Gaussian of 1.5, wholly inside the image, the mean over windows and channels. */
#include "metric_family.h"

#include <math.h>
#include <stdlib.h>

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

static double similarity(const Moments *m, double range)
{
    double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
    double vx = m->xx - m->x * m->x, vy = m->yy - m->y * m->y, vxy = m->xy - m->x * m->y;
    return (2 * m->x * m->y + c1) * (2 * vxy + c2) / ((m->x * m->x + m->y * m->y + c1) * (vx + vy + c2));
}

/* Of one channel: rows first, `across` [h][w - 10], then columns. */
static double channel_ssim(const float *x, const float *y, int64_t h, int64_t w, double range, Moments *across)
{
    double weight[WINDOW], sum = 0;
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
            sum += similarity(&m, range);
        }
    return sum / (double)((h - WINDOW + 1) * out);
}

int metric_ssim_add(void *state, const burn_observation *seen)
{
    Images *m = state;
    if (!seen->predicted || !seen->values || !seen->shape || seen->rank != 4) return BURN_EINVAL;
    int64_t channels = seen->shape[1], h = seen->shape[2], w = seen->shape[3];
    if (h < WINDOW || w < WINDOW || channels < 1) return BURN_EINVAL;
    Moments *across = malloc((size_t)(h * (w - WINDOW + 1)) * sizeof *across);
    if (!across) return BURN_ENOMEM;
    for (int64_t k = 0; k < seen->items * channels; k++)
        m->mean.sum += channel_ssim(seen->predicted + k * h * w, seen->values + k * h * w, h, w, m->range, across);
    m->mean.weight += (double)(seen->items * channels);
    free(across);
    return BURN_OK;
}
