/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics: numbers that say how good a model is, from batch after batch of what it predicted and what was wanted.
 *
 *     burn_metric *m;
 *     int error = burn_metric_open("f_beta(beta=2,average=macro)", &m, message, sizeof message);
 *     for (each batch) burn_metric_add(m, &observation);
 *     double now = burn_metric_value(m);       // of all batches since the start, or since burn_metric_reset
 *     burn_metric_close(m);
 *
 * metrics.def has the rows: names, parameters, what they want of an observation. A metric of your own is a
 * burn_metric_kind, a struct of functions, which burn_metric_of opens. A metric belongs to one thread at a time; there
 * is no global state. Functions return 0 or a BURN_E... code of burn.h. */
#ifndef BURN_METRIC_H
#define BURN_METRIC_H

#include "burn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of one batch; a metric reads the members that its row names, the others may be zero. */
typedef struct burn_observation {
    int64_t items;               /* of the batch */
    double loss;                 /* its mean */
    double learning_rate;
    /* Scores (probabilities, logits), values or pixels: `rank` dimensions, the first is `items`. */
    const float *predicted;
    int rank;
    const int64_t *shape;
    int class_axis;              /* of `shape`: where the classes or labels are; 0: the last axis */
    /* One of the two. Classes: of the shape without its class axis; values: of the same shape, labels 0 or 1. */
    const int64_t *classes;
    const float *values;
    /* Texts, `items` of each, UTF-8. */
    const char *const *predicted_texts, *const *texts;
} burn_observation;

enum { BURN_METRIC_PARAMETERS = 4 };
typedef enum burn_better { BURN_SMALLER = -1, BURN_NEITHER = 0, BURN_LARGER = 1 } burn_better;

/* A kind of metric. `parameters`: "name=usual name=usual ...", at most BURN_METRIC_PARAMETERS, numbers (average is
 * micro 0, macro 1, weighted 2). begin: an empty state for these values, in the parameters' order, or NULL without
 * memory. add: 0, BURN_EINVAL where the observation lacks what is needed, BURN_ERANGE for a class that is none,
 * BURN_ENOMEM; after an error the state is as before. value: NaN before anything was added. */
typedef struct burn_metric_kind {
    const char *name, *unit, *parameters;
    burn_better better;
    void *(*begin)(const double *parameters);
    int (*add)(void *state, const burn_observation *seen);
    void (*end)(void *state);
    double (*value)(void *state);
} burn_metric_kind;

typedef struct burn_metric burn_metric;

/* The rows of metrics.def. */
const burn_metric_kind *burn_metric_kinds(int *count);

/* Opens the metric that `text` spells: NAME or NAME(VALUE, NAME=VALUE ...). BURN_EINVAL for what is none: then
 * `message` says why and what there is. The caller closes *metric. */
int burn_metric_open(const char *text, burn_metric **metric, char *message, size_t message_bytes);
/* Opens a metric of a kind of the caller's, which outlives it. `parameters`: NULL for the usual ones. */
int burn_metric_of(const burn_metric_kind *kind, const double *parameters, burn_metric **metric);
int burn_metric_reset(burn_metric *metric);
void burn_metric_close(burn_metric *metric);

int burn_metric_add(burn_metric *metric, const burn_observation *seen);
double burn_metric_value(burn_metric *metric);
const burn_metric_kind *burn_metric_kind_of(const burn_metric *metric);
/* As it was opened, with all parameters: "f_beta(beta=2,average=1)" is "f_beta(beta=2,average=macro)". */
const char *burn_metric_text(const burn_metric *metric);

/* The confusion matrix of a metric that counts one: counts[wanted * *classes + predicted], owned by the metric and
 * good until it is added to. NULL where it has none. */
const int64_t *burn_metric_confusion(const burn_metric *metric, int64_t *classes);

#ifdef __cplusplus
}
#endif
#endif
