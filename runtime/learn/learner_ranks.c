/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Steps of several ranks. In: each rank's batch. Out: the same update on all of them, with the bits of one rank that
 * accumulates the same batches.
 *
 * A step is `accumulate` rounds, in each of which every rank computes one batch; rank r has batch r of the round. A
 * struct of gradients is cut into as many pieces as there are ranks, and rank r sums piece r: it gets that piece of
 * every rank's gradients and adds them in the ranks' order, round after round, which is the order of the batches. Then
 * all get all pieces. While a round's pieces are on their way the next round is computed. A rank sends
 * (accumulate + 1) (1 - 1 / count) structs a step, and in each round a report: its loss, or what went wrong. */
#include "data_own.h"
#include "learner_own.h"

#include <stdlib.h>
#include <string.h>

/* What a rank tells the others. */
typedef struct Report {
    double loss;
    int64_t items, skipped, step;
    int error;
    burn_wish wish;
    burn_said said;
} Report;

struct Ranks {
    size_t piece;                          /* bytes; count of them are a struct of gradients and some room */
    uint8_t *pieces, *sum;                 /* this rank's piece of each rank's gradients; and their sum */
    Report *reports[2];                    /* of a round and of the one before */
};

size_t ranks_bytes(const burn_learner *l)
{
    size_t count = l->how.ranks ? (size_t)l->how.ranks->count : 1;
    size_t piece = (l->t->params_bytes / count + 64) & ~(size_t)63;
    return piece * count;
}

int ranks_open(burn_learner *l)
{
    size_t count = (size_t)l->how.ranks->count;
    Ranks *r = l->ranks = calloc(1, sizeof *r);
    if (!r) return BURN_ENOMEM;
    r->piece = ranks_bytes(l) / count;
    r->pieces = malloc(ranks_bytes(l));
    r->sum = malloc(r->piece);
    for (int i = 0; i < 2; i++) r->reports[i] = calloc(count, sizeof *r->reports[i]);
    return r->pieces && r->sum && r->reports[0] && r->reports[1] ? BURN_OK : BURN_ENOMEM;
}

void ranks_close(Ranks *r)
{
    if (!r) return;
    free(r->pieces);
    free(r->sum);
    free(r->reports[0]);
    free(r->reports[1]);
    free(r);
}

static int say_lost(const burn_learner *l, int error, burn_said *said)
{
    return data_said(said, error, "rank %d of %d: another rank is lost", l->how.ranks->rank, l->how.ranks->count);
}

/* Tells and is told; the first error of any rank is everybody's, the strongest wish, too. */
static int report(burn_learner *l, Report *mine, Report *all, burn_said *said)
{
    const burn_ranks *ranks = l->how.ranks;
    mine->wish = l->asked;
    int error = ranks->gather(ranks->own, mine, all, sizeof *mine, signals_came);
    if (error) return say_lost(l, error, said);
    for (int r = 0; r < ranks->count; r++) {
        if (l->wish < all[r].wish) l->wish = all[r].wish;
        if (!error && all[r].error) {
            error = all[r].error;
            if (said) *said = all[r].said;
        }
    }
    l->asked = BURN_GO_ON;
    return error;
}

int ranks_agree(burn_learner *l, int error, burn_said *said)
{
    if (!l->ranks || error == BURN_EDEVICE) return error;
    Report mine = { .error = error };
    if (error && said) mine.said = *said;
    return report(l, &mine, l->ranks->reports[0], said);
}

int ranks_begin(burn_learner *l, int error, burn_said *said)
{
    if (!l->ranks) return error;
    const Report *all = l->ranks->reports[0];
    Report mine = { .error = error, .step = l->step };
    if (error && said) mine.said = *said;
    error = report(l, &mine, l->ranks->reports[0], said);
    for (int k = 1; k < l->how.ranks->count && !error; k++)
        if (all[k].step != all[0].step)
            error = data_said(said, BURN_EINVAL, "%s: rank %d finds step %lld there, rank 0 step %lld: all must see "
                              "one folder", l->keep.folder, k, (long long)all[k].step, (long long)all[0].step);
    return error;
}

/* to += from where parameters are between two bytes of the struct, element by element as grads_add. */
static void add_piece(const burn_training *t, uint8_t *to, const uint8_t *from, size_t begin, size_t end)
{
    for (int i = 0; i < t->param_count; i++) {
        const burn_part *p = &t->params[i];
        size_t first = p->offset > begin ? p->offset : begin, behind = p->offset + p->tensor.bytes;
        if (behind > end) behind = end;
        if (first >= behind) continue;
        size_t bytes = behind - first;
        if (p->tensor.dtype == BURN_DOUBLE)
            for (size_t k = 0; k < bytes / 8; k++)
                ((double *)(void *)(to + first - begin))[k] +=
                    ((const double *)(const void *)(from + first - begin))[k];
        else
            for (size_t k = 0; k < bytes / 4; k++)
                ((float *)(void *)(to + first - begin))[k] += ((const float *)(const void *)(from + first - begin))[k];
    }
}

/* Adds a round's pieces, which have come, in the order of the ranks. */
static void add_round(burn_learner *l, const Report *reports, double *shares)
{
    const Ranks *r = l->ranks;
    size_t begin = r->piece * (size_t)l->how.ranks->rank;
    for (int k = 0; k < l->how.ranks->count; k++) {
        const uint8_t *piece = r->pieces + r->piece * (size_t)k;
        if (!reports[k].items) continue;
        if (*shares > 0) add_piece(l->t, r->sum, piece, begin, begin + r->piece);
        else memcpy(r->sum, piece, r->piece);
        *shares += (double)reports[k].items / (double)l->how.batch;
    }
}

/* Bad items that this rank met in this epoch. */
static int64_t own_skipped(const burn_learner *l)
{
    return pace_skipped(l, BURN_TRAINING) - l->pace[BURN_TRAINING].others;
}

/* Computes this rank's batch of a round; what comes of it is reported. */
static int compute(burn_learner *l, int at, int64_t round, Report *all, burn_said *said)
{
    Lane *lane = &l->lanes[at];
    Report mine = { .skipped = -own_skipped(l) };
    mine.error = learner_fill(l, lane, round * l->how.ranks->count + l->how.ranks->rank, &mine.said);
    if (!mine.error) mine.error = learner_gradients(l, lane, &mine.said);
    if (!mine.error && lane->items) {
        mine.loss = lane->loss;
        mine.items = lane->items;
        if (lane->items < l->how.batch)
            l->t->grads_scale(lane->grads, (float)((double)lane->items / (double)l->how.batch));
    }
    mine.skipped += own_skipped(l);
    return report(l, &mine, all, said);
}

/* Figures and watchers of a round's batches, in their order. */
static int count_round(burn_learner *l, const Report *reports, double rate, burn_said *said)
{
    int error = BURN_OK;
    for (int k = 0; k < l->how.ranks->count && !error && learner_left(l); k++) {
        if (k != l->how.ranks->rank) l->pace[BURN_TRAINING].others += reports[k].skipped;
        burn_observation seen = { .items = reports[k].items, .loss = reports[k].loss };
        error = learner_count(l, &seen, rate, said);
    }
    return error;
}

int ranks_sum(burn_learner *l, double rate, double *shares, burn_said *said)
{
    const burn_ranks *ranks = l->how.ranks;
    Ranks *r = l->ranks;
    int error = BURN_OK, lost = 0;
    for (int64_t round = 0; !error && !lost; round++) {
        int is_more = round < l->how.accumulate && learner_left(l);
        if (is_more) error = compute(l, round & 1, round, r->reports[round & 1], said);
        if (round && error != BURN_EDEVICE) {
            lost = ranks->end_exchange(ranks->own, signals_came);
            if (!lost) add_round(l, r->reports[!(round & 1)], shares);
        }
        if (!is_more) break;
        if (!error && !lost) error = count_round(l, r->reports[round & 1], rate, said);
        if (!error && !lost)
            lost = ranks->begin_exchange(ranks->own, l->lanes[round & 1].grads, r->pieces, r->piece);
    }
    if (!error && !lost && *shares > 0) lost = ranks->gather(ranks->own, r->sum, l->sum, r->piece, signals_came);
    return lost ? say_lost(l, lost, said) : error;
}
