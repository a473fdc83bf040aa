/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What changes parameters: a step over `accumulate` batches; and what only looks: the pass over the validation data.
 *
 * A step of one batch is the module's train_step. One of several sums gradients: lanes compute as many batches at once
 * as there are lanes, then their gradients are added in the order of the batches, each times its share of a full
 * batch, so that neither lanes nor threads change a bit. */
#include "data_own.h"
#include "learner_own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *usual(const burn_learner *l, int count, const burn_hyper *hypers)
{
    float *values = calloc((size_t)count + 1, sizeof *values);
    for (int i = 0; values && i < count; i++) {
        values[i] = (float)hypers[i].usual;
        for (int k = 0; k < l->how.hyper_count; k++)
            if (!strcmp(l->how.hyper_names[k], hypers[i].name)) values[i] = (float)l->how.hyper_values[k];
    }
    return values;
}

static int is_hyper(const burn_training *t, const char *name)
{
    for (int i = 0; i < t->hyper_count; i++)
        if (!strcmp(t->hypers[i].name, name)) return strcmp(name, "step") != 0;
    for (int i = 0; i < t->schedule_count; i++)
        if (!strcmp(t->schedule_hypers[i].name, name)) return 1;
    return 0;
}

int hypers_open(burn_learner *l, burn_said *said)
{
    const burn_training *t = l->t;
    for (int k = 0; k < l->how.hyper_count; k++) {
        if (is_hyper(t, l->how.hyper_names[k])) continue;
        char names[300] = "";
        for (int i = 0; i < t->hyper_count + t->schedule_count; i++) {
            const char *name = i < t->hyper_count ? t->hypers[i].name : t->schedule_hypers[i - t->hyper_count].name;
            if (strlen(names) + strlen(name) + 2 > sizeof names || !strcmp(name, "step")) continue;
            strcat(strcat(names, " "), name);
        }
        return data_said(said, BURN_EINVAL, "%s takes no '%s'; it takes%s", t->optimizer, l->how.hyper_names[k], names);
    }
    l->hypers = usual(l, t->hyper_count, t->hypers);
    l->schedule = usual(l, t->schedule_count, t->schedule_hypers);
    return l->hypers && l->schedule ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory");
}

/* The hyper-parameters of the next step; its learning rate into *rate. */
static int set_hypers(burn_learner *l, double *rate, burn_said *said)
{
    const burn_training *t = l->t;
    float scheduled;
    int error = t->learning_rate ? t->learning_rate((float)l->step, l->schedule, &scheduled) : BURN_OK;
    if (error) return data_said(said, error, "the schedule has no learning rate for step %lld", (long long)l->step);
    for (int i = 0; i < t->hyper_count; i++) {
        if (!strcmp(t->hypers[i].name, "step")) l->hypers[i] = (float)(t->hypers[i].usual + (double)l->step);
        if (strcmp(t->hypers[i].name, "learning_rate")) continue;
        if (t->learning_rate) l->hypers[i] = scheduled;
        *rate = (double)l->hypers[i];
    }
    return BURN_OK;
}

int learner_next(burn_learner *l, burn_split split, burn_batch *batch, burn_said *said)
{
    double before = learner_clock();
    int got = burn_loader_next(l->loaders[split], batch, said);
    l->pace[split].waited += learner_clock() - before;
    return got;
}

/* ---- training */

int learner_differentiate(const burn_learner *l, const struct burn_threads *threads, const Lane *lane, int64_t step,
                          double *loss, void *grads)
{
    const burn_training *t = l->t;
    if (t->version < 2)
        return t->gradients(threads, lane->work, l->how.weights, lane->in, l->params, step, loss, grads);
    return t->gradients_by_state(threads, lane->work, l->how.weights, lane->in, l->params, l->state, step, loss, grads);
}

static void compute_gradients(void *learner, int at)
{
    const burn_learner *l = learner;
    Lane *lane = &l->lanes[at];
    int64_t drops = l->step * l->per_step + lane->of_step + 1;
    if (lane->items)
        lane->error = learner_differentiate(l, l->how.at_once > 1 ? NULL : l->how.threads, lane, drops, &lane->loss,
                                            lane->grads);
}

int learner_gradients(burn_learner *l, Lane *lane, burn_said *said)
{
    for (;;) {
        compute_gradients(l, (int)(lane - l->lanes));
        if (!lane->items || !lane->error) return BURN_OK;
        int error = check_lane(l, &l->feeds[BURN_TRAINING], BURN_TRAINING, lane, said);
        if (error) return error;
    }
}

int64_t learner_left(const burn_learner *l)
{
    return burn_loader_batches(l->loaders[BURN_TRAINING]) - l->batch;
}

int learner_fill(burn_learner *l, Lane *lane, int64_t of_step, burn_said *said)
{
    burn_batch batch;
    int got = learner_next(l, BURN_TRAINING, &batch, said);
    if (got < 0) return got;
    lane->number = batch.number;
    lane->of_step = of_step;
    lane_fill(l, &l->feeds[BURN_TRAINING], &batch, l->how.batch, l->how.at_once > 1, lane);
    return BURN_OK;
}

int learner_count(burn_learner *l, burn_observation *seen, double rate, burn_said *said)
{
    seen->learning_rate = rate;
    int error = seen->items ? figures_add(&l->figures[BURN_TRAINING], seen, said) : BURN_OK;
    l->batch++;
    if (!error) learner_told(l, BURN_TRAINING, seen->items);
    return error;
}

static int evaluate(burn_learner *l, const Lane *lane, double *loss)
{
    return l->t->evaluate(l->how.threads, l->lanes[0].work, l->how.weights, lane->in, l->params, loss, l->out);
}

/* The batch as the parameters see it now, for train_metrics: before they change. */
static int count_lane(burn_learner *l, const Lane *lane, int is_evaluated, double rate, burn_said *said)
{
    int64_t shape[MOST_RANK + 1];
    burn_observation seen = { .items = lane->items };
    if (is_evaluated) lane_observe(l, &l->feeds[BURN_TRAINING], lane, &seen, shape);
    seen.loss = lane->loss;
    return learner_count(l, &seen, rate, said);
}

static int evaluate_training(burn_learner *l, const Lane *lane)
{
    double loss;
    int error = l->how.train_metrics && lane->items ? evaluate(l, lane, &loss) : BURN_EINVAL;
    return !error || error == BURN_ENAN;                  /* with that one the predictions are there */
}

/* Adds its gradients to the sum, times its share of a full batch. */
static void add_gradients(burn_learner *l, Lane *lane, double *shares)
{
    double share = (double)lane->items / (double)l->how.batch;
    if (!lane->items) return;
    if (l->per_step > 1 && lane->items < l->how.batch) l->t->grads_scale(lane->grads, (float)share);
    if (l->per_step > 1 && *shares > 0) l->t->grads_add(l->sum, lane->grads);
    else if (l->per_step > 1) memcpy(l->sum, lane->grads, l->t->params_bytes);
    *shares += share;
}

/* The batches of a step, as many at once as there are lanes. */
static int sum_lanes(burn_learner *l, double rate, double *shares, burn_said *said)
{
    int64_t most = l->per_step < learner_left(l) ? l->per_step : learner_left(l);
    int error = BURN_OK;
    for (int64_t from = 0; from < most && !error;) {
        int count = most - from < l->lane_count ? (int)(most - from) : l->lane_count;
        for (int i = 0; i < count && !error; i++) error = learner_fill(l, &l->lanes[i], from + i, said);
        if (error) return error;
        if (count > 1) l->how.threads->run(l->how.threads->pool, count, compute_gradients, l);
        for (int i = 0; i < count && !error; i++) {
            Lane *lane = &l->lanes[i];
            if (count == 1 || lane->error) error = learner_gradients(l, lane, said);
            if (!error) error = count_lane(l, lane, evaluate_training(l, lane), rate, said);
            if (!error) add_gradients(l, lane, shares);
        }
        from += count;
    }
    return error;
}

/* By gradients and an update. */
static int step_apart(burn_learner *l, double rate, burn_said *said)
{
    double shares = 0;
    int error = l->ranks ? ranks_sum(l, rate, &shares, said) : sum_lanes(l, rate, &shares, said);
    if (error || shares <= 0) return error;               /* nothing but bad items */
    if (l->per_step > 1 && shares != 1) l->t->grads_scale(l->sum, (float)(1 / shares));
    error = l->t->update(l->how.threads, l->lanes[0].work, l->how.weights, l->hypers, l->params,
                         l->per_step > 1 ? l->sum : l->lanes[0].grads, l->state);
    if (error) return data_said(said, error, "%s: the update refuses step %lld", l->t->name, (long long)l->step + 1);
    l->step++;
    return BURN_OK;
}

/* By train_step. */
static int step_together(burn_learner *l, double rate, burn_said *said)
{
    Lane *lane = &l->lanes[0];
    int error = learner_fill(l, lane, 0, said), is_evaluated = 0;
    while (!error && lane->items) {
        is_evaluated = evaluate_training(l, lane);
        lane->error = l->t->train_step(l->how.threads, lane->work, l->how.weights, lane->in, l->step + 1, l->hypers,
                                       l->params, l->state, &lane->loss);
        l->step += !lane->error;
        if (!lane->error) break;
        error = check_lane(l, &l->feeds[BURN_TRAINING], BURN_TRAINING, lane, said);
    }
    return error ? error : count_lane(l, lane, is_evaluated, rate, said);
}

int learner_step(burn_learner *l, burn_said *said)
{
    double rate = NAN;
    int error = set_hypers(l, &rate, said);
    if (error) return error;
    return l->per_step == 1 && l->t->train_step ? step_together(l, rate, said) : step_apart(l, rate, said);
}

/* ---- validation */

/* A batch that is filled with copies of its first item: what they add to the mean is taken out, so many times that
 * item's loss. Predictions are as before. */
static int lose_copies(burn_learner *l, const Feeds *feeds, Lane *lane)
{
    Lane one = { 0 };
    double alone, all, rows = (double)lane->rows, items = (double)lane->items;
    int error = lane_open(l, &one, 0);
    if (!error) lane_alone(l, feeds, lane, 0, &one);
    if (!error) error = evaluate(l, &one, &alone);
    if (!error) error = evaluate(l, lane, &all);
    if (!error) lane->loss = (all * rows - alone * (rows - items)) / items;
    lane_close(l, &one);
    return error;
}

int learner_look(burn_learner *l, const Feeds *feeds, const burn_batch *batch, Figures *f, int is_told,
                 burn_said *said)
{
    Lane *lane = &l->lanes[0];
    burn_observation seen;
    int64_t shape[MOST_RANK + 1];
    lane->number = batch->number;
    lane_fill(l, feeds, batch, 1, 0, lane);
    while (lane->items && (lane->error = evaluate(l, lane, &lane->loss))) {
        int error = check_lane(l, feeds, BURN_VALIDATION, lane, said);
        if (error) return error;
    }
    if (!lane->items) return BURN_OK;
    if (lane->rows > lane->items && lose_copies(l, feeds, lane)) return data_said(said, BURN_ENOMEM, "no memory");
    lane_observe(l, feeds, lane, &seen, shape);
    int error = figures_add(f, &seen, said);
    burn_batch given = *batch;
    given.items = lane->items;
    given.numbers = lane->numbers;
    const burn_seen told = { &given, lane->numbers[0], &seen };
    for (int i = 0; i < l->how.watcher_count && is_told && !error; i++)
        if (l->how.watchers[i].seen) l->how.watchers[i].seen(l->how.watchers[i].own, &told);
    return error;
}
