/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the families of metrics (metric_*.c) share; metric.c has the rows and the calls. */
#ifndef BURN_METRIC_FAMILY_H
#define BURN_METRIC_FAMILY_H

#include "metric.h"

/* The start of every state whose value is a mean: mean_value is sum / weight, last_value sum. NaN at weight 0. */
typedef struct Mean { double sum, weight; } Mean;

/* Scores of shape [outer, classes, inner], one decision for each of outer * inner places. */
typedef struct Scores {
    const float *at;
    int64_t outer, classes, inner;
} Scores;

/* The scores that an observation has; BURN_EINVAL where it has none. */
int metric_scores(const burn_observation *seen, Scores *s);
/* Elements of all items; 0 where there are no predictions. */
int64_t metric_elements(const burn_observation *seen);

enum { MICRO, MACRO, WEIGHTED };

/* The families: begin, add and end of their states. */
#define FAMILY_loss metric_mean_begin, metric_loss_add, free
#define FAMILY_rate metric_mean_begin, metric_rate_add, free
#define FAMILY_top metric_top_begin, metric_places_add, free
#define FAMILY_nll metric_nll_begin, metric_places_add, free
#define FAMILY_values metric_values_begin, metric_values_add, free
#define FAMILY_counts metric_counts_begin, metric_counts_add, metric_counts_end
#define FAMILY_ranking metric_ranking_begin, metric_ranking_add, metric_ranking_end
#define FAMILY_psnr metric_images_begin, metric_psnr_add, free
#define FAMILY_ssim metric_images_begin, metric_ssim_add, free
#define FAMILY_ms_ssim metric_images_begin, metric_ms_ssim_add, free
#define FAMILY_cer metric_mean_begin, metric_cer_add, free
#define FAMILY_wer metric_mean_begin, metric_wer_add, free
#define FAMILY_bleu metric_bleu_begin, metric_bleu_add, free
#define FAMILY_rouge metric_mean_begin, metric_rouge_add, free
#define FAMILY_since metric_since_begin, metric_since_add, free
#define FAMILY_memory metric_now_begin, metric_memory_add, free
#define FAMILY_heat metric_now_begin, metric_heat_add, free
#define FAMILY_gpu_use metric_now_begin, metric_gpu_use_add, free
#define FAMILY_gpu_ram metric_now_begin, metric_gpu_ram_add, free
#define FAMILY_gpu_heat metric_now_begin, metric_gpu_heat_add, free

typedef void *MetricBegin(const double *parameters);
typedef int MetricAdd(void *state, const burn_observation *seen);
MetricBegin metric_mean_begin, metric_top_begin, metric_nll_begin, metric_values_begin, metric_counts_begin,
    metric_ranking_begin, metric_images_begin, metric_bleu_begin, metric_since_begin, metric_now_begin;
MetricAdd metric_loss_add, metric_rate_add, metric_places_add, metric_values_add, metric_counts_add,
    metric_ranking_add, metric_psnr_add, metric_ssim_add, metric_ms_ssim_add, metric_cer_add, metric_wer_add,
    metric_bleu_add, metric_rouge_add, metric_since_add, metric_memory_add, metric_heat_add, metric_gpu_use_add,
    metric_gpu_ram_add, metric_gpu_heat_add;
void metric_counts_end(void *state);
void metric_ranking_end(void *state);
#define METRIC(name, unit, better, family, value, parameters) double metric_##value(void *state);
#include "metrics.def"
#undef METRIC

/* The counts of a state of the family `counts`, as burn_metric_confusion. */
const int64_t *metric_counts_confusion(const void *state, int64_t *classes);

#endif
