/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The learner: what it is made of. In: burn_learning. Out: a burn_learner with all its memory, whose parts do the
 * rest: epochs learner_run.c, steps learner_step.c, tensors learner_feed.c, figures learner_figures.c. */
#include "data_own.h"
#include "learner_own.h"

#include <stdlib.h>
#include <string.h>

static int check_how(const burn_learning *how, burn_said *said)
{
    const burn_training *t = how->training;
    if (!t || t->version < 1 || !how->train)
        return data_said(said, BURN_EINVAL, "a learner wants a module and data to learn from");
    if (how->epochs < 0 || how->batch < 0 || how->accumulate < 0 || how->at_once < 0 || how->workers < 0)
        return data_said(said, BURN_EINVAL, "epochs, batches and workers are 0 or more");
    if (t->weights_bytes && !how->weights)
        return data_said(said, BURN_EINVAL, "%s has a file of constants: `weights` is its content", t->name);
    if (!how->params && !t->params_init)
        return data_said(said, BURN_EINVAL, "the parameters of %s lie in a file: load them and give them as `params`",
                         t->name);
    if (how->valid && !t->evaluate) return data_said(said, BURN_EINVAL, "%s has no evaluate", t->name);
    return BURN_OK;
}

static void fill_in(burn_learning *how)
{
    if (!how->epochs) how->epochs = 10;
    if (!how->accumulate) how->accumulate = 1;
    if (how->ranks && how->ranks->count < 2) how->ranks = NULL;
    if (!how->at_once || !how->threads || how->ranks) how->at_once = 1;
    if (how->ranks || !how->training->evaluate) how->train_metrics = 0;
    if (how->at_once > how->accumulate) how->at_once = how->accumulate;
}

static int open_batch(burn_learner *l, burn_said *said)
{
    if (!l->how.batch) l->how.batch = l->most;
    if (l->how.batch >= l->least && l->how.batch <= l->most) return BURN_OK;
    return data_said(said, BURN_EINVAL, "batches of %lld: %s computes those of %lld to %lld (--dim batch=1..%lld makes "
                     "it one of any size)", (long long)l->how.batch, l->t->name, (long long)l->least,
                     (long long)l->most, (long long)l->how.batch);
}

static int open_memory(burn_learner *l, burn_said *said)
{
    const burn_training *t = l->t;
    const burn_tensor_info *target = &t->inputs[t->input_count];
    int apart = l->per_step > 1 || !t->train_step, error = BURN_OK;
    l->lane_count = l->how.ranks ? 2 : (int)l->how.at_once;
    l->params = calloc(1, t->params_bytes + 1);
    l->state = calloc(1, t->state_bytes + 1);
    l->sum = l->per_step > 1 ? calloc(1, ranks_bytes(l)) : NULL;
    l->lanes = calloc((size_t)l->lane_count, sizeof *l->lanes);
    l->out = calloc((size_t)t->output_count + 1, sizeof *l->out);
    l->out_shapes = calloc((size_t)(t->output_count + 1) * MOST_RANK, sizeof *l->out_shapes);
    /* as large as the module's: floats of doubles are smaller, whole numbers of 64 bits are at most eight times */
    l->seen_predicted = t->output_count ? malloc(t->outputs[0].bytes + 1) : NULL;
    l->seen_target = t->target_count ? malloc(8 * target->bytes + 1) : NULL;
    int ok = l->params && l->state && (l->per_step == 1 || l->sum) && l->lanes && l->out && l->out_shapes
        && (!t->output_count || l->seen_predicted) && (!t->target_count || l->seen_target);
    for (int i = 0; ok && i < t->output_count; i++) {
        void *data = malloc(t->outputs[i].bytes + 1);
        l->out[i] = (burn_tensor){ .data = data, .bytes = t->outputs[i].bytes, .shape = l->out_shapes + i * MOST_RANK };
        ok = data && t->outputs[i].rank <= MOST_RANK;
    }
    for (int i = 0; ok && !error && i < l->lane_count; i++) error = lane_open(l, &l->lanes[i], apart);
    if (ok && !error && l->how.ranks) error = ranks_open(l);
    if (!ok || error) return data_said(said, BURN_ENOMEM, "no memory");
    if (l->how.params) memcpy(l->params, l->how.params, t->params_bytes);
    return l->how.params ? BURN_OK : t->params_init(l->params);
}

static int open_split(burn_learner *l, burn_split split, burn_dataset *data, burn_said *said)
{
    int learns = split == BURN_TRAINING;
    const burn_loading loading = {
        .batch = l->how.batch, .shuffle = learns && !l->how.in_order, .seed = l->how.seed, .workers = l->how.workers,
        .drop_last = learns && data->count % l->how.batch < l->least, .skip_bad = l->how.skip_bad,
        .shard = learns && l->how.ranks ? l->how.ranks->rank : 0,
        .shards = learns && l->how.ranks ? l->how.ranks->count : 1 };
    return burn_loader_open(data, &loading, &l->loaders[split], said);
}

static int open_parts(burn_learner *l, burn_said *said)
{
    burn_dataset *const data[2] = { l->how.train, l->how.valid };
    l->end_count = l->t->input_count + l->t->target_count;
    int error = BURN_OK;
    for (int s = 0; s < 2 && !error; s++)
        if (data[s]) error = feeds_open(l, &l->feeds[s], data[s], said);
    if (!error) error = feeds_sizes(l, &l->feeds[BURN_TRAINING], said);
    if (!error) error = open_batch(l, said);
    if (!error) error = hypers_open(l, said);
    if (!error) error = open_memory(l, said);
    for (int s = 0; s < 2 && !error; s++) {
        error = figures_open(l, (burn_split)s, said);
        if (!error && data[s]) error = open_split(l, (burn_split)s, data[s], said);
    }
    return error ? error : keep_open(l, said);
}

int burn_learner_open(const burn_learning *how, burn_learner **learner, burn_said *said)
{
    if (!how || !learner) return BURN_EINVAL;
    *learner = NULL;
    int error = check_how(how, said);
    if (error) return error;
    burn_learner *l = calloc(1, sizeof *l);
    if (!l) return data_said(said, BURN_ENOMEM, "no memory");
    l->how = *how;
    l->t = how->training;
    fill_in(&l->how);
    l->per_step = l->how.accumulate * (l->how.ranks ? l->how.ranks->count : 1);
    error = open_parts(l, said);
    if (!error) *learner = l;
    else burn_learner_close(l);
    return error;
}

void burn_learner_close(burn_learner *l)
{
    if (!l) return;
    for (int s = 0; s < 2; s++) {
        burn_loader_close(l->loaders[s]);
        feeds_close(l, &l->feeds[s]);
        figures_close(&l->figures[s]);
    }
    for (int i = 0; l->lanes && i < l->lane_count; i++) lane_close(l, &l->lanes[i]);
    for (int i = 0; l->out && i < l->t->output_count; i++) free(l->out[i].data);
    free(l->lanes);
    free(l->out);
    free(l->out_shapes);
    free(l->seen_predicted);
    free(l->seen_target);
    free(l->params);
    free(l->state);
    free(l->sum);
    free(l->hypers);
    free(l->schedule);
    ranks_close(l->ranks);
    keep_close(&l->keep);
    free(l->settings.pairs);
    free(l);
}

const void *burn_learner_params(const burn_learner *l)
{
    return l ? l->params : NULL;
}
