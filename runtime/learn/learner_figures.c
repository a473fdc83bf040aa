/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The figures of a split: the loss, of training the learning rate, and metrics. In: observations of batches. Out: what
 * watchers read. A metric that wants predictions is no figure of training, whose batches give a loss alone, unless they
 * are evaluated, too: each is asked once whether it takes such an observation. */
#include "data_own.h"
#include "learner_own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int takes_loss_alone(burn_metric *metric)
{
    static const burn_observation bare = { .items = 1 };
    return burn_metric_add(metric, &bare) == BURN_OK;
}

static int open_metric(const burn_learner *l, int i, burn_metric **metric, burn_said *said)
{
    char message[400];
    if (i >= l->how.metric_count) return burn_metric_of(l->how.kinds[i - l->how.metric_count], NULL, metric);
    int error = burn_metric_open(l->how.metrics[i], metric, message, sizeof message);
    return error == BURN_EINVAL ? data_said(said, error, "%s", message) : error;
}

static burn_figure figure_of(const char *name, const char *unit, burn_better better, const burn_metric *metric)
{
    return (burn_figure){ .name = name, .unit = unit ? unit : "", .better = better, .now = NAN, .mean = NAN,
                          .best = NAN, .metric = metric };
}

int figures_open(burn_learner *l, burn_split split, burn_said *said)
{
    Figures *f = &l->figures[split];
    int most = l->how.metric_count + l->how.kind_count;
    f->of = calloc((size_t)most + 2, sizeof *f->of);
    f->metrics = calloc((size_t)most + 2, sizeof *f->metrics);
    if (!f->of || !f->metrics) return data_said(said, BURN_ENOMEM, "no memory");
    f->of[f->count++] = figure_of("loss", "", BURN_SMALLER, NULL);
    if (split == BURN_TRAINING) f->of[f->count++] = figure_of("learning_rate", "", BURN_NEITHER, NULL);
    for (int i = 0; i < most; i++) {
        burn_metric *metric = NULL;
        int error = open_metric(l, i, &metric, said);
        if (error) return error;
        if (split == BURN_TRAINING && !l->how.train_metrics && !takes_loss_alone(metric)) {
            burn_metric_close(metric);
            continue;
        }
        const burn_metric_kind *kind = burn_metric_kind_of(metric);
        const char *name = i < l->how.metric_count ? l->how.metrics[i] : kind->name;
        f->metrics[f->count] = metric;
        f->of[f->count++] = figure_of(name, kind->unit, kind->better, metric);
    }
    return BURN_OK;
}

void figures_close(Figures *f)
{
    for (int i = 0; i < f->count; i++) burn_metric_close(f->metrics[i]);
    free(f->metrics);
    free(f->of);
}

int figures_begin(Figures *f)
{
    f->loss_sum = f->loss_items = 0;
    for (int i = 0; i < f->count; i++) {
        f->of[i].now = f->of[i].mean = NAN;
        int error = f->metrics[i] ? burn_metric_reset(f->metrics[i]) : BURN_OK;
        if (error) return error;
    }
    return BURN_OK;
}

void figures_go_on(Figures *f, double loss_sum, double loss_items, double learning_rate)
{
    f->loss_sum = loss_sum;
    f->loss_items = loss_items;
    f->of[0].mean = loss_sum / loss_items;
    f->of[1].mean = learning_rate;
}

int figures_add(Figures *f, const burn_observation *seen, burn_said *said)
{
    f->loss_sum += seen->loss * (double)seen->items;
    f->loss_items += (double)seen->items;
    for (int i = 0; i < f->count; i++) {
        int error = f->metrics[i] ? burn_metric_add(f->metrics[i], seen) : BURN_OK;
        if (error == BURN_EINVAL)
            return data_said(said, error, "metric %s: the module's first output or target is not what it wants",
                             f->of[i].name);
        if (error) return data_said(said, error, "metric %s: %s", f->of[i].name,
                                    error == BURN_ENOMEM ? "no memory" : "a class that the predictions have not");
    }
    f->of[0].now = seen->loss;
    f->of[0].mean = f->loss_sum / f->loss_items;
    if (f->count > 1 && !f->metrics[1]) f->of[1].now = f->of[1].mean = seen->learning_rate;
    return BURN_OK;
}

static int is_better(const burn_figure *f)
{
    return isnan(f->best) ? !isnan(f->mean) && f->better != BURN_NEITHER
                          : (double)f->better * (f->mean - f->best) > 0;
}

void figures_ask(Figures *f, int surely)
{
    double now = learner_clock();
    if (!surely && now - f->asked < 20 * f->took) return;             /* some sort all that they have seen */
    for (int i = 0; i < f->count; i++)
        if (f->metrics[i]) f->of[i].mean = burn_metric_value(f->metrics[i]);
    f->asked = learner_clock();
    f->took = f->asked - now;
}

void figures_rank(Figures *f, int64_t epoch)
{
    for (int i = 0; i < f->count; i++)
        if (is_better(&f->of[i])) {
            f->of[i].best = f->of[i].mean;
            f->of[i].best_epoch = epoch;
        }
}
