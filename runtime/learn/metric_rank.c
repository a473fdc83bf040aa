/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics of how scores order what is wanted before what is not. In: scores, and classes (each against the others; of
 * two classes, the second's lead over the first) or values of 0 and 1. All scores are kept until the end: 8 bytes a
 * class and place. */
#include "metric_family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Scored { float score; float is; } Scored;
typedef struct Ranking {
    int average;
    int64_t ignore, classes, places, room;
    Scored *of;                                               /* [places][classes] */
} Ranking;

void *metric_ranking_begin(const double *parameters)
{
    Ranking *r = calloc(1, sizeof *r);
    if (r) {
        r->average = (int)parameters[0];
        r->ignore = (int64_t)parameters[1];
    }
    return r;
}

void metric_ranking_end(void *state)
{
    Ranking *r = state;
    free(r->of);
    free(r);
}

static int make_room(Ranking *r, int64_t classes, int64_t places)
{
    if (r->classes && r->classes != classes) return BURN_EINVAL;
    if (r->places + places > r->room) {
        int64_t room = (r->places + places) * 2;
        Scored *of = realloc(r->of, (size_t)(room * classes) * sizeof *of);
        if (!of) return BURN_ENOMEM;
        r->of = of;
        r->room = room;
    }
    r->classes = classes;
    return BURN_OK;
}

int metric_ranking_add(void *state, const burn_observation *seen)
{
    Ranking *r = state;
    Scores s;
    int error = metric_scores(seen, &s);
    if (error || (!seen->classes && !seen->values)) return BURN_EINVAL;
    int64_t places = s.outer * s.inner;
    for (int64_t p = 0; seen->classes && p < places; p++)
        if (seen->classes[p] != r->ignore && (seen->classes[p] < 0 || seen->classes[p] >= s.classes))
            return BURN_ERANGE;
    int is_pair = seen->classes && s.classes == 2;
    error = make_room(r, is_pair ? 1 : s.classes, places);
    if (error) return error;
    for (int64_t p = 0; p < places; p++) {
        int64_t at = p / s.inner * s.classes * s.inner + p % s.inner;
        if (seen->classes && seen->classes[p] == r->ignore) continue;
        Scored *to = r->of + r->places++ * r->classes;
        for (int64_t c = 0; c < r->classes; c++) {
            int64_t k = at + c * s.inner;
            float score = is_pair ? s.at[k + s.inner] - s.at[k] : s.at[k];
            int is = seen->classes ? seen->classes[p] == (is_pair ? 1 : c) : seen->values[k] > 0.5f;
            to[c] = (Scored){ score, (float)is };
        }
    }
    return BURN_OK;
}

static int by_score_down(const void *a, const void *b)
{
    float x = ((const Scored *)a)->score, y = ((const Scored *)b)->score;
    return (x < y) - (x > y);
}

/* Of sorted scores; NaN where none or all are wanted. */
typedef double Area(const Scored *of, int64_t n);

/* The share of pairs (wanted, not wanted) in order, equal scores by half: Mann and Whitney 1947. */
static double roc_area(const Scored *of, int64_t n)
{
    double wanted = 0, others = 0, area = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        double here = 0;
        for (end = i; end < n && of[end].score == of[i].score; end++) here += (double)of[end].is;
        double not_here = (double)(end - i) - here;
        area += not_here * (wanted + here / 2);
        wanted += here;
        others += not_here;
    }
    return wanted > 0 && others > 0 ? area / (wanted * others) : NAN;
}

/* The average precision: precision at each score, weighted by the recall that it adds. */
static double pr_area(const Scored *of, int64_t n)
{
    double wanted = 0, area = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        double here = 0;
        for (end = i; end < n && of[end].score == of[i].score; end++) here += (double)of[end].is;
        wanted += here;
        area += here * wanted / (double)end;
    }
    return wanted > 0 ? area / wanted : NAN;
}

static double area_of(const Ranking *r, Area *area)
{
    int micro = r->average == MICRO;
    int64_t n = micro ? r->places * r->classes : r->places, step = micro ? 1 : r->classes;
    Scored *sorted = n ? malloc((size_t)n * sizeof *sorted) : NULL;
    double sum = 0, weights = 0;
    for (int64_t c = 0; sorted && c < step; c++) {
        double wanted = 0;
        for (int64_t i = 0; i < n; i++) {
            sorted[i] = r->of[i * step + c];
            wanted += (double)sorted[i].is;
        }
        qsort(sorted, (size_t)n, sizeof *sorted, by_score_down);
        double one = area(sorted, n), weight = r->average == WEIGHTED ? wanted : 1;
        if (isnan(one)) continue;
        sum += weight * one;
        weights += weight;
    }
    free(sorted);
    return weights > 0 ? sum / weights : NAN;
}

double metric_ranking_auroc(void *state)
{
    return area_of(state, roc_area);
}

double metric_ranking_auc_pr(void *state)
{
    return area_of(state, pr_area);
}
