/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics that count decisions. In: scores and classes (the largest score decides, the first of equal ones), or scores
 * and values of 0 and 1, labels that are each there or not (a score above the threshold says it is). Out: of each
 * class the true and false positives and the false negatives, from which the numbers follow; and the confusion
 * matrix, where there are at most MATRIX_CLASSES classes. */
#include "metric_family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX_CLASSES = 1024 };
typedef struct Count { double hit, extra, missed; } Count;   /* true positives, false positives, false negatives */
typedef struct Counts {
    int average;
    int64_t ignore;
    double threshold, beta;
    int64_t classes;                                          /* 0: nothing came yet */
    Count *of;
    int64_t *matrix;                                          /* [wanted][predicted], or NULL */
    int labels;                                               /* are they labels? */
    double places, right;                                     /* decided places, those all right */
} Counts;

void *metric_counts_begin(const double *parameters)
{
    Counts *c = calloc(1, sizeof *c);
    if (c) {
        c->average = (int)parameters[0];
        c->ignore = (int64_t)parameters[1];
        c->threshold = parameters[2];
        c->beta = parameters[3] > 0 ? parameters[3] : 1;
    }
    return c;
}

void metric_counts_end(void *state)
{
    Counts *c = state;
    free(c->of);
    free(c->matrix);
    free(c);
}

const int64_t *metric_counts_confusion(const void *state, int64_t *classes)
{
    const Counts *c = state;
    *classes = c->matrix ? c->classes : 0;
    return c->matrix;
}

/* Room for these classes; BURN_EINVAL where there were others. */
static int make_room(Counts *c, int64_t classes, int labels)
{
    if (c->classes) return c->classes == classes && c->labels == labels ? BURN_OK : BURN_EINVAL;
    Count *of = calloc((size_t)classes, sizeof *of);
    int has_matrix = !labels && classes <= MATRIX_CLASSES;
    int64_t *matrix = has_matrix ? calloc((size_t)(classes * classes), sizeof *matrix) : NULL;
    if (!of || (has_matrix && !matrix)) {
        free(of);
        free(matrix);
        return BURN_ENOMEM;
    }
    c->classes = classes;
    c->of = of;
    c->matrix = matrix;
    c->labels = labels;
    return BURN_OK;
}

static int64_t decide(const float *x, int64_t stride, int64_t classes)
{
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        if (x[c * stride] > x[best * stride]) best = c;
    return best;
}

static void count_class(Counts *c, const float *x, int64_t stride, int64_t wanted)
{
    int64_t said = decide(x, stride, c->classes);
    c->places += 1;
    c->right += said == wanted;
    c->of[said].hit += said == wanted;
    c->of[said].extra += said != wanted;
    c->of[wanted].missed += said != wanted;
    if (c->matrix) c->matrix[wanted * c->classes + said]++;
}

static void count_labels(Counts *c, const float *x, const float *wanted, int64_t stride)
{
    int all_right = 1;
    for (int64_t k = 0; k < c->classes; k++) {
        int said = (double)x[k * stride] > c->threshold, is = wanted[k * stride] > 0.5f;
        c->of[k].hit += said && is;
        c->of[k].extra += said && !is;
        c->of[k].missed += !said && is;
        all_right &= said == is;
    }
    c->places += 1;
    c->right += all_right;
}

int metric_counts_add(void *state, const burn_observation *seen)
{
    Counts *c = state;
    Scores s;
    int error = metric_scores(seen, &s);
    if (error || (!seen->classes && !seen->values)) return BURN_EINVAL;
    int64_t places = s.outer * s.inner;
    for (int64_t p = 0; seen->classes && p < places; p++)
        if (seen->classes[p] != c->ignore && (seen->classes[p] < 0 || seen->classes[p] >= s.classes))
            return BURN_ERANGE;
    error = make_room(c, s.classes, !seen->classes);
    if (error) return error;
    for (int64_t p = 0; p < places; p++) {
        int64_t at = p / s.inner * s.classes * s.inner + p % s.inner;
        if (!seen->classes) count_labels(c, s.at + at, seen->values + at, s.inner);
        else if (seen->classes[p] != c->ignore) count_class(c, s.at + at, s.inner, seen->classes[p]);
    }
    return BURN_OK;
}

typedef double Ratio(const Count *n, double beta);

/* 0 where there is nothing to divide by. */
static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double precision_of(const Count *n, double beta)
{
    (void)beta;
    return share(n->hit, n->hit + n->extra);
}

static double recall_of(const Count *n, double beta)
{
    (void)beta;
    return share(n->hit, n->hit + n->missed);
}

/* (1 + beta^2) P R / (beta^2 P + R) */
static double f_beta_of(const Count *n, double beta)
{
    double b = beta * beta;
    return share((1 + b) * n->hit, (1 + b) * n->hit + b * n->missed + n->extra);
}

static double iou_of(const Count *n, double beta)
{
    (void)beta;
    return share(n->hit, n->hit + n->missed + n->extra);
}

/* The mean of a ratio over the classes that were wanted or said. */
static double average(const Counts *c, Ratio *ratio)
{
    Count all = { 0, 0, 0 };
    double sum = 0, weights = 0;
    for (int64_t k = 0; k < c->classes; k++) {
        const Count *n = &c->of[k];
        all = (Count){ all.hit + n->hit, all.extra + n->extra, all.missed + n->missed };
        double weight = c->average == WEIGHTED ? n->hit + n->missed : n->hit + n->missed + n->extra > 0;
        sum += weight * ratio(n, c->beta);
        weights += weight;
    }
    if (!(c->places > 0)) return NAN;
    return c->average == MICRO ? ratio(&all, c->beta) : share(sum, weights);
}

/* Places that are right, of labels those all of whose labels are; macro, weighted: the recall. */
double metric_counts_accuracy(void *state)
{
    Counts *c = state;
    if (c->average != MICRO && !c->labels) return average(c, recall_of);
    return c->places > 0 ? c->right / c->places : NAN;
}

double metric_counts_precision(void *state)
{
    return average(state, precision_of);
}

double metric_counts_recall(void *state)
{
    return average(state, recall_of);
}

double metric_counts_f_beta(void *state)
{
    return average(state, f_beta_of);
}

/* 2 |A and B| / (|A| + |B|) */
double metric_counts_dice(void *state)
{
    return average(state, f_beta_of);
}

double metric_counts_iou(void *state)
{
    return average(state, iou_of);
}

/* The share of labels that are right; of classes, the accuracy. */
double metric_counts_hamming(void *state)
{
    Counts *c = state;
    double wrong = 0;
    if (!c->labels || !(c->places > 0)) return metric_counts_accuracy(state);
    for (int64_t k = 0; k < c->classes; k++) wrong += c->of[k].extra + c->of[k].missed;
    return 1 - wrong / (c->places * (double)c->classes);
}
