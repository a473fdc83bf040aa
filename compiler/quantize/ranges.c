// SPDX-License-Identifier: MIT OR Apache-2.0
// From the values seen at a point to its scale and zero point.
//
// In: floats, item after item. Out: a range [lo, hi] around 0, which 256 steps divide. Rare values far out cost all
// others their precision, so methods other than minmax cut the range: percentile leaves out so many of each end, mse
// takes the range of the least square error, entropy that of the least information lost (Kullback and Leibler's
// divergence of the steps from the values). The latter two look for it in a histogram, each end by turns.
#include "quantize/quantize.h"

#include <math.h>

enum { LEVELS = 256, CUTS = 80 };
static const double left_out = 5e-5;                    // of each end, by percentile

const char *const quant_methods[QUANT_METHODS] = { "mse", "minmax", "percentile", "entropy" };

int64_t quant_least(const QuantHow *how) {
    return how->activations == DT_U8 ? 0 : how->activations == DT_I8 ? -128 : -32767;
}

int64_t quant_most(const QuantHow *how) { return how->activations == DT_I16 ? 32767 : quant_least(how) + LEVELS - 1; }

// Of 16 bits so many are left that no value is cut for the others.
bool quant_counts(const QuantHow *how) { return how->method != QUANT_MINMAX && how->activations != DT_I16; }

void quant_see(QuantPoint *p, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (x[i] < p->lo) p->lo = x[i];
        if (x[i] > p->hi) p->hi = x[i];
    }
}

void quant_count(QuantPoint *p, const float *x, int64_t n) {
    double per = p->hi > p->lo ? QUANT_BINS / (p->hi - p->lo) : 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] == 0) continue;                        // which any range has exactly
        int64_t at = (int64_t)((x[i] - p->lo) * per);
        p->bins[at < 0 ? 0 : at < QUANT_BINS ? at : QUANT_BINS - 1]++;
    }
}

// ---------------------------------------------------------------- what a range costs

static double middle(const QuantPoint *p, int bin) { return p->lo + (bin + 0.5) * (p->hi - p->lo) / QUANT_BINS; }

static double square_error(const QuantPoint *p, double lo, double hi) {
    double step = (hi - lo) / (LEVELS - 1), sum = 0;
    for (int i = 0; i < QUANT_BINS; i++) {
        if (!p->bins[i]) continue;
        double x = middle(p, i), kept = fmin(fmax(x, lo), hi), error = x - round(kept / step) * step;
        sum += (double)p->bins[i] * error * error;
    }
    return sum;
}

static int level_of(const QuantPoint *p, int bin, double lo, double hi) {
    double at = (middle(p, bin) - lo) / (hi - lo) * LEVELS;
    return at < 0 ? 0 : at < LEVELS ? (int)at : LEVELS - 1;
}

// Of the values, those outside at the ends, from their levels, each of which is shared out over the bins that it has.
static double divergence(const QuantPoint *p, double lo, double hi) {
    double inside[LEVELS] = { 0 }, all = 0, within = 0, sum = 0;
    int64_t ends[2] = { 0 };
    int full[LEVELS] = { 0 }, first = -1, last = -1;
    for (int i = 0; i < QUANT_BINS; i++) {
        double x = middle(p, i);
        all += (double)p->bins[i];
        if (x < lo || x > hi) {
            ends[x > hi] += p->bins[i];
            continue;
        }
        if (first < 0) first = i;
        last = i;
        within += (double)p->bins[i];
        inside[level_of(p, i, lo, hi)] += (double)p->bins[i];
        full[level_of(p, i, lo, hi)] += p->bins[i] > 0;
    }
    if (first < 0 || within == 0) return HUGE_VAL;
    for (int i = first; i <= last; i++) {
        double want = (double)(p->bins[i] + (i == first ? ends[0] : 0) + (i == last ? ends[1] : 0)) / all;
        int level = level_of(p, i, lo, hi);
        double got = p->bins[i] ? inside[level] / full[level] / within : 1e-9;
        if (want > 0) sum += want * log(want / got);
    }
    return sum;
}

static double cost(QuantMethod m, const QuantPoint *p, double lo, double hi) {
    return m == QUANT_MSE ? square_error(p, lo, hi) : divergence(p, lo, hi);
}

// ---------------------------------------------------------------- the range

static void search(QuantMethod m, const QuantPoint *p, double *lo, double *hi) {
    double best = cost(m, p, *lo, *hi);
    for (int round = 0; round < 2; round++)
        for (int end = 0; end < 2; end++) {
            double whole = end ? p->hi : p->lo, kept = end ? *hi : *lo;
            for (int i = 0; i < CUTS && whole != 0; i++) {
                double cut = whole * (1 - (double)i / (CUTS + 1));
                double now = end ? cost(m, p, *lo, cut) : cost(m, p, cut, *hi);
                if (now >= best) continue;
                best = now;
                kept = cut;
            }
            *(end ? hi : lo) = kept;
        }
}

static void percentile(const QuantPoint *p, double *lo, double *hi) {
    double all = 0, below = 0, above = 0;
    int first = 0, last = QUANT_BINS - 1;
    for (int i = 0; i < QUANT_BINS; i++) all += (double)p->bins[i];
    while (first < last && (below += (double)p->bins[first]) <= left_out * all) first++;
    while (last > first && (above += (double)p->bins[last]) <= left_out * all) last--;
    double width = (p->hi - p->lo) / QUANT_BINS;
    *lo = fmin(p->lo + first * width, 0);
    *hi = fmax(p->lo + (last + 1) * width, 0);
}

void quant_choose(Quantizer *q) {
    int64_t least = quant_least(&q->how);
    for (int i = 0; i < q->points.n; i++) {
        QuantPoint *p = &q->points.at[i];
        double lo = p->lo, hi = p->hi;
        if (p->root != i) {
            p->scale = q->points.at[p->root].scale;
            p->zero = q->points.at[p->root].zero;
            continue;
        }
        if (q->how.activations == DT_I16) {
            double most = fmax(-lo, hi);
            p->scale = most > 0 ? (float)(most / (double)quant_most(&q->how)) : 1;
            p->zero = 0;
            continue;
        }
        if (hi > lo && q->how.method == QUANT_PERCENTILE) percentile(p, &lo, &hi);
        else if (hi > lo && quant_counts(&q->how)) search(q->how.method, p, &lo, &hi);
        p->scale = hi > lo ? (float)((hi - lo) / (LEVELS - 1)) : 1;
        p->zero = (int)fmin(fmax(round((double)least - lo / p->scale), (double)least), (double)least + LEVELS - 1);
    }
}
