/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is wrong with a batch that the module would not take. In: the lane. Out: a message that names the first tensor
 * with a number that is none, in the order in which they are computed from one another: inputs, parameters, outputs,
 * gradients; or the items that the loss refuses, each tried alone, which can be left out. */
#include "data_own.h"
#include "learner_own.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first element that is infinite or not a number, or -1. */
static int64_t first_bad(burn_dtype dtype, const void *data, int64_t count)
{
    const float *f = data;
    const double *d = data;
    if (dtype == BURN_FLOAT)
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(f[i])) return i;
    if (dtype == BURN_DOUBLE)
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(d[i])) return i;
    return -1;
}

/* "name[2,0] is nan" */
static void write_bad(char *text, size_t room, const burn_tensor_info *info, const void *data, int64_t i)
{
    double x = info->dtype == BURN_FLOAT ? (double)((const float *)data)[i] : ((const double *)data)[i];
    size_t used = (size_t)snprintf(text, room, "%s[", info->name);
    int64_t below = 1;
    for (int d = 0; d < info->rank; d++) below *= info->shape[d];
    for (int d = 0; d < info->rank && used < room; d++) {
        below /= info->shape[d];
        used += (size_t)snprintf(text + used, room - used, "%s%lld", d ? "," : "", (long long)(i / below));
        i %= below;
    }
    if (used < room) snprintf(text + used, room - used, "] is %s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

static int find_in_inputs(const burn_learner *l, const burn_dataset *data, const Lane *lane, char *text, size_t room)
{
    for (int i = 0; i < l->end_count; i++) {
        const burn_tensor_info *info = &l->t->inputs[i];
        int64_t row = (int64_t)(lane->in[i].bytes / dtype_bytes(info->dtype)) / lane->rows;
        int64_t bad = first_bad(info->dtype, lane->in[i].data, row * lane->items);
        if (bad < 0) continue;
        int64_t number = lane->numbers[bad / row];
        const char *path = burn_data_path(data, number);
        snprintf(text, room, "%s of item %lld%s%s has a number that is none", info->name, (long long)number,
                 path ? " of " : "", path ? path : "");
        return 1;
    }
    return 0;
}

/* In a struct of parameters, or in a state. */
static int find_in_parts(int count, const burn_part *parts, const void *of, const char *what, char *text, size_t room)
{
    char name[160];
    for (int i = 0; i < count; i++) {
        const burn_part *p = &parts[i];
        const void *at = (const uint8_t *)of + p->offset;
        if (p->role == BURN_BATCHES) continue;
        int64_t bad = first_bad(p->tensor.dtype, at, (int64_t)(p->tensor.bytes / dtype_bytes(p->tensor.dtype)));
        if (bad < 0) continue;
        write_bad(name, sizeof name, &p->tensor, at, bad);
        snprintf(text, room, "%s %s", what, name);
        return 1;
    }
    return 0;
}

static int find_in_outputs(burn_learner *l, Lane *lane, char *text, size_t room)
{
    char name[160];
    double loss;
    if (!l->t->evaluate) return 0;
    l->t->evaluate(l->how.threads, lane->work, l->how.weights, lane->in, l->params, &loss, l->out);
    for (int i = 0; i < l->t->output_count; i++) {
        const burn_tensor_info *info = &l->t->outputs[i];
        int64_t count = 1;
        for (int d = 0; d < info->rank; d++) count *= info->least ? l->out_shapes[i * MOST_RANK + d] : info->shape[d];
        int64_t bad = first_bad(info->dtype, l->out[i].data, count);
        if (bad < 0) continue;
        write_bad(name, sizeof name, info, l->out[i].data, bad);
        snprintf(text, room, "output %s, from inputs and parameters that are finite", name);
        return 1;
    }
    return 0;
}

static int find_in_gradients(burn_learner *l, Lane *lane, char *text, size_t room)
{
    void *grads = calloc(1, l->t->params_bytes + 1);
    double loss;
    int found = 0;
    if (grads) {
        learner_differentiate(l, NULL, lane, l->step + 1, &loss, grads);
        found = find_in_parts(l->t->param_count, l->t->params, grads, "the gradient of", text, room);
    }
    free(grads);
    return found;
}

static void find_bad(burn_learner *l, const Feeds *feeds, Lane *lane, char *text, size_t room)
{
    if (find_in_inputs(l, feeds->data, lane, text, room)) return;
    if (find_in_parts(l->t->param_count, l->t->params, l->params, "parameter", text, room)) return;
    if (find_in_outputs(l, lane, text, room) || find_in_gradients(l, lane, text, room)) return;
    snprintf(text, room, "inputs, parameters, outputs and gradients are finite");
}

static int say_bad(const burn_learner *l, burn_split split, const Lane *lane, const char *what, burn_said *said)
{
    return data_said(said, lane->error, "%s: epoch %lld, batch %lld of %s: %s", l->t->name, (long long)l->epoch + 1,
                     (long long)lane->number + 1, split == BURN_TRAINING ? "training" : "validation", what);
}

int check_finite(const burn_learner *l, burn_said *said)
{
    char what[300];
    if (!find_in_parts(l->t->param_count, l->t->params, l->params, "parameter", what, sizeof what)
        && !find_in_parts(l->t->state_count, l->t->state, l->state, "the optimizer's", what, sizeof what))
        return BURN_OK;
    return data_said(said, BURN_ENAN, "%s: after step %lld %s", l->t->name, (long long)l->step, what);
}

/* ---- items that the loss refuses */

/* Does the module refuse item k? */
static int is_refused(burn_learner *l, const Feeds *feeds, const Lane *lane, int64_t k, Lane *one)
{
    double loss;
    lane_alone(l, feeds, lane, k, one);
    return l->t->evaluate(NULL, lane->work, l->how.weights, one->in, l->params, &loss, l->out) == BURN_ERANGE;
}

/* "label is 11" of the first target of whole numbers */
static void write_target(const burn_learner *l, const Lane *one, char *text, size_t room)
{
    snprintf(text, room, "a target is refused");
    for (int i = l->t->input_count; i < l->end_count; i++) {
        int64_t value = 0;
        burn_dtype dtype = l->t->inputs[i].dtype;
        if (dtype != BURN_INT64 && dtype != BURN_INT32) continue;
        convert(dtype, BURN_INT64, 1, one->in[i].data, &value);
        snprintf(text, room, "%s is %lld, which the module has not", l->t->inputs[i].name, (long long)value);
        return;
    }
}

static int take_out_refused(burn_learner *l, const Feeds *feeds, burn_split split, Lane *lane, burn_said *said)
{
    char value[120];
    Lane one = { 0 };
    int64_t before = lane->items, error = lane_open(l, &one, 0);
    if (error) data_said(said, (int)error, "no memory");
    for (int64_t k = lane->items; k-- > 0 && !error;) {
        if (!is_refused(l, feeds, lane, k, &one)) continue;
        int64_t number = lane->numbers[k];
        const char *path = burn_data_path(feeds->data, number);
        write_target(l, &one, value, sizeof value);
        if (l->how.skip_bad) lane_take_out(l, feeds, lane, k);
        else error = data_said(said, BURN_ERANGE, "%s%sitem %lld: %s", path ? path : "", path ? ": " : "",
                               (long long)number, value);
    }
    lane_close(l, &one);
    l->pace[split].refused += before - lane->items;
    if (!error && before == lane->items) return say_bad(l, split, lane, "it is refused", said);
    return (int)error;
}

int check_lane(burn_learner *l, const Feeds *feeds, burn_split split, Lane *lane, burn_said *said)
{
    char what[300], where[200] = "", text[600];
    if (lane->error == BURN_ERANGE && l->t->evaluate) return take_out_refused(l, feeds, split, lane, said);
    if (lane->error != BURN_ENAN) return say_bad(l, split, lane, "the module refuses it", said);
    find_bad(l, feeds, lane, what, sizeof what);
    if (l->how.blame) l->how.blame(l->how.blame_own, lane->in, l->params, where, sizeof where);
    snprintf(text, sizeof text, "the loss is %s: %s%s%s", isnan(lane->loss) ? "not a number" : "infinite", what,
             *where ? "; it comes from " : "", where);
    return say_bad(l, split, lane, text, said);
}
