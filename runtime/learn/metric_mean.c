/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics that are a mean or the last of some numbers: of losses, of places that are right among the best k, of
 * negative log-likelihoods, of squared errors. In: observations with the members that each family names. */
#include "metric_family.h"

#include <math.h>
#include <stdlib.h>

double metric_mean_value(void *state)
{
    Mean *m = state;
    return m->weight > 0 ? m->sum / m->weight : NAN;
}

double metric_last_value(void *state)
{
    Mean *m = state;
    return m->weight > 0 ? m->sum : NAN;
}

/* ---- loss: a batch's mean counts as often as it has items. rate: the learning rate */
void *metric_mean_begin(const double *parameters)
{
    (void)parameters;
    return calloc(1, sizeof(Mean));
}

int metric_loss_add(void *state, const burn_observation *seen)
{
    Mean *m = state;
    m->sum += seen->loss * (double)seen->items;
    m->weight += (double)seen->items;
    return BURN_OK;
}

int metric_rate_add(void *state, const burn_observation *seen)
{
    *(Mean *)state = (Mean){ seen->learning_rate, 1 };
    return BURN_OK;
}

/* ---- top: scores and classes. A place counts when fewer than k classes come before the wanted one, by score and,
 * where scores are equal, by number. nll: scores are logits, or logarithms of probabilities */
typedef struct Places {
    Mean mean;
    double k;
    int64_t ignore;
} Places;

static void *places_begin(double k, double ignore)
{
    Places *p = calloc(1, sizeof *p);
    if (p) *p = (Places){ { 0, 0 }, k, (int64_t)ignore };
    return p;
}

void *metric_top_begin(const double *parameters)
{
    return places_begin(parameters[0], parameters[1]);
}

void *metric_nll_begin(const double *parameters)
{
    return places_begin(0, parameters[0]);
}

static double is_among(const float *x, int64_t stride, int64_t classes, int64_t wanted, double k)
{
    double before = 0;
    float own = x[wanted * stride];
    for (int64_t c = 0; c < classes; c++) before += x[c * stride] > own || (c < wanted && x[c * stride] == own);
    return before < k;
}

/* -log softmax(x)[wanted], the largest taken out first. */
static double negative_log(const float *x, int64_t stride, int64_t classes, int64_t wanted)
{
    double most = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; c++) most = fmax(most, (double)x[c * stride]);
    for (int64_t c = 0; c < classes; c++) sum += exp((double)x[c * stride] - most);
    return log(sum) + most - (double)x[wanted * stride];
}

/* Adds what every place of known class gives; k 0: its negative log-likelihood. */
int metric_places_add(void *state, const burn_observation *seen)
{
    Places *p = state;
    Scores s;
    int error = metric_scores(seen, &s);
    if (error || !seen->classes) return BURN_EINVAL;
    Mean more = { 0, 0 };
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t i = 0; i < s.inner; i++) {
            int64_t wanted = seen->classes[o * s.inner + i];
            if (wanted == p->ignore) continue;
            if (wanted < 0 || wanted >= s.classes) return BURN_ERANGE;
            const float *x = s.at + o * s.classes * s.inner + i;
            more.sum += p->k > 0 ? is_among(x, s.inner, s.classes, wanted, p->k)
                                 : negative_log(x, s.inner, s.classes, wanted);
            more.weight += 1;
        }
    p->mean.sum += more.sum;
    p->mean.weight += more.weight;
    return BURN_OK;
}

double metric_nll_perplexity(void *state)
{
    return exp(metric_mean_value(state));
}

/* ---- values: predictions and values, all elements alike */
typedef struct Errors {
    double n, squares, sizes;                              /* of the errors */
    double mean, spread;                                   /* of the wanted values; Welford 1962 */
} Errors;

void *metric_values_begin(const double *parameters)
{
    (void)parameters;
    return calloc(1, sizeof(Errors));
}

int metric_values_add(void *state, const burn_observation *seen)
{
    Errors *e = state;
    int64_t n = metric_elements(seen);
    if (!seen->predicted || !seen->values) return BURN_EINVAL;
    for (int64_t i = 0; i < n; i++) {
        double wanted = (double)seen->values[i], d = (double)seen->predicted[i] - wanted, off = wanted - e->mean;
        e->n += 1;
        e->squares += d * d;
        e->sizes += fabs(d);
        e->mean += off / e->n;
        e->spread += off * (wanted - e->mean);
    }
    return BURN_OK;
}

double metric_values_mse(void *state)
{
    Errors *e = state;
    return e->n > 0 ? e->squares / e->n : NAN;
}

double metric_values_rmse(void *state)
{
    return sqrt(metric_values_mse(state));
}

double metric_values_mae(void *state)
{
    Errors *e = state;
    return e->n > 0 ? e->sizes / e->n : NAN;
}

double metric_values_r2(void *state)
{
    Errors *e = state;
    return e->n > 0 && e->spread > 0 ? 1 - e->squares / e->spread : NAN;
}
