// SPDX-License-Identifier: MIT OR Apache-2.0
// A learner that knows a module by its descriptor only, over two of them: mlp with adam, a schedule and dropout, norm
// with sgd and batch normalization. What it makes of their parameters has the bits of their own functions' calls. Built
// by api.py; -DTHREADS: the modules know of threads.
#include "mlp.h"
#include "norm.h"
#include "check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef THREADS
#define NO_THREADS , NULL
#else
#define NO_THREADS
#endif

enum { STEPS = 7, MOST = 8 };

static unsigned seed;

static double next(void)
{
    seed = seed * 1103515245u + 12345u;
    return (double)(seed >> 8 & 65535) / 32768 - 1;
}

static void fill(const burn_tensor_info *info, void *data, int64_t classes)
{
    size_t n = info->bytes / (info->dtype == BURN_INT64 ? 8 : 4);
    for (size_t i = 0; i < n; i++)
        if (info->dtype == BURN_INT64) ((int64_t *)data)[i] = (int64_t)((next() + 1) / 2 * (double)classes);
        else ((float *)data)[i] = (float)next();
}

/* ---- the learner */
typedef struct Learner {
    const burn_training *t;
    void *params, *grads, *state, *work;
    burn_tensor in[MOST], out[MOST];
    double loss;
} Learner;

static void start(Learner *l, const burn_training *t)
{
    size_t work = t->predict_bytes;
    if (work < t->evaluate_bytes) work = t->evaluate_bytes;
    if (work < t->gradients_bytes) work = t->gradients_bytes;
    if (work < t->update_bytes) work = t->update_bytes;
    if (work < t->train_step_bytes) work = t->train_step_bytes;
    l->t = t;
    l->params = room(t->params_bytes);
    l->grads = room(t->params_bytes);
    l->state = room(t->state_bytes);
    l->work = room(work);
    for (int i = 0; i < t->input_count + t->target_count; i++)
        l->in[i] = (burn_tensor){.data = room(t->inputs[i].bytes), .bytes = t->inputs[i].bytes};
    for (int i = 0; i < t->output_count; i++)
        l->out[i] = (burn_tensor){.data = room(t->outputs[i].bytes), .bytes = t->outputs[i].bytes};
    CHECK(t->version == 2 && t->params_init && !t->params_init(l->params));
    seed = 1;
}

static void batch(Learner *l)
{
    const burn_tensor_info *y = &l->t->outputs[0];
    for (int i = 0; i < l->t->input_count + l->t->target_count; i++)
        fill(&l->t->inputs[i], l->in[i].data, y->shape[y->rank - 1]);
}

/* together: gradients and update in one */
static void step(Learner *l, int at, int together)
{
    const burn_training *t = l->t;
    float hypers[MOST], schedule[MOST], rate[1];
    for (int i = 0; i < t->schedule_count; i++) schedule[i] = (float)t->schedule_hypers[i].usual;
    if (t->learning_rate) CHECK(!t->learning_rate((float)at, schedule, rate));
    for (int i = 0; i < t->hyper_count; i++) {
        hypers[i] = (float)t->hypers[i].usual;
        if (t->learning_rate && !strcmp(t->hypers[i].name, "learning_rate")) hypers[i] = rate[0];
        if (!strcmp(t->hypers[i].name, "step")) hypers[i] = (float)(at + 1);
    }
    batch(l);
    if (together) {
        CHECK(!t->train_step(NULL, l->work, NULL, l->in, at + 1, hypers, l->params, l->state, &l->loss));
        return;
    }
    CHECK(!t->gradients(NULL, l->work, NULL, l->in, l->params, at + 1, &l->loss, l->grads));
    CHECK(!t->update(NULL, l->work, NULL, hypers, l->params, l->grads, l->state));
}

static void learn(Learner *l, const burn_training *t)
{
    Learner together;
    start(&together, t);
    for (int i = 0; i < STEPS; i++) step(&together, i, 1);
    start(l, t);
    for (int i = 0; i < STEPS; i++) step(l, i, 0);
    CHECK(!memcmp(together.state, l->state, t->state_bytes));
    for (int i = 0; i < t->param_count; i++) {
        const burn_part *p = &t->params[i];
        if (p->role == BURN_BATCHES) continue;
        CHECK(!memcmp((char *)together.params + p->offset, (char *)l->params + p->offset, p->tensor.bytes));
    }
    batch(l);
    CHECK(!t->predict(NULL, l->work, NULL, l->in, l->params, l->out));
    CHECK(!t->evaluate(NULL, l->work, NULL, l->in, l->params, &l->loss, l->out));
}

static int refused(Learner *l)
{
    const burn_training *t = l->t;
    burn_tensor small = l->in[0];
    double loss;
    l->in[0].bytes--;
    CHECK(t->predict(NULL, l->work, NULL, l->in, l->params, l->out) == BURN_EINVAL);
    CHECK(t->gradients(NULL, l->work, NULL, l->in, l->params, 1, &loss, l->grads) == BURN_EINVAL);
    l->in[0] = small;
    CHECK(t->predict(NULL, l->work, NULL, NULL, l->params, l->out) == BURN_EINVAL);
    CHECK(t->predict(NULL, l->work, NULL, l->in, NULL, l->out) == BURN_EINVAL);
    CHECK(t->predict(NULL, l->work, NULL, l->in, l->params, NULL) == BURN_EINVAL);
    CHECK(t->evaluate(NULL, l->work, NULL, l->in, l->params, NULL, l->out) == BURN_EINVAL);
    CHECK(t->gradients(NULL, l->work, NULL, l->in, l->params, 1, NULL, l->grads) == BURN_EINVAL);
    CHECK(t->gradients(NULL, l->work, NULL, l->in, l->params, 1, &loss, NULL) == BURN_EINVAL);
    CHECK(t->update(NULL, l->work, NULL, NULL, l->params, l->grads, l->state) == BURN_EINVAL);
    CHECK(t->params_init(NULL) == BURN_EINVAL && t->grads_zero(NULL) == BURN_EINVAL);
    return 0;
}

/* ---- the same by the modules' own functions */
static void check_mlp(const Learner *l)
{
    static mlp_gradients_workspace work;
    static mlp_predict_workspace predict;
    static mlp_params params, grads;
    static mlp_state state;
    float x[12], y[12], loss[1], rate[1];
    int64_t target[4];
    mlp_params_init(&params);
    seed = 1;
    for (int i = 0; i <= STEPS; i++) {
        fill(&mlp_training.inputs[0], x, 3);
        fill(&mlp_training.inputs[1], target, 3);
        if (i == STEPS) break;
        CHECK(!mlp_learning_rate((float)i, 0.1f, 0, 50, rate NO_THREADS));
        CHECK(!mlp_gradients(&work, x, &params, target, i + 1, loss, &grads NO_THREADS));
        CHECK(!mlp_update(rate[0], 0.9f, 0.999f, 1e-8f, 0, (float)(i + 1), &params, &grads, &state NO_THREADS));
    }
    CHECK(!mlp_predict(&predict, x, &params, y NO_THREADS));
    CHECK(!memcmp(l->params, &params, sizeof params) && !memcmp(l->state, &state, sizeof state));
    CHECK(!memcmp(l->out[0].data, y, sizeof y));
}

static void check_norm(const Learner *l)
{
    static norm_gradients_workspace work;
    static norm_evaluate_workspace evaluate;
    static norm_params params, grads;
    float x[72], target[12], y[12], loss[1];
    norm_params_init(&params);
    seed = 1;
    for (int i = 0; i <= STEPS; i++) {
        fill(&norm_training.inputs[0], x, 4);
        fill(&norm_training.inputs[1], target, 4);
        if (i == STEPS) break;
        CHECK(!norm_gradients(&work, x, &params, target, loss, &grads NO_THREADS));
        CHECK(!norm_update(0.01f, &params, &grads NO_THREADS));
    }
    CHECK(!norm_evaluate(&evaluate, x, &params, target, loss, y NO_THREADS));
    CHECK(!memcmp(l->params, &params, sizeof params) && !memcmp(l->out[0].data, y, sizeof y));
    CHECK(l->loss == (double)loss[0]);
}

/* ---- what the descriptors tell */
static const burn_part *part(const burn_training *t, const char *name)
{
    for (int i = 0; i < t->param_count; i++)
        if (!strcmp(t->params[i].tensor.name, name)) return &t->params[i];
    printf("%s has no %s\n", t->name, name);
    exit(1);
}

static void check_tables(void)
{
    const burn_part *w = part(&mlp_training, "b.weight"), *mean;
    CHECK(!strcmp(mlp_training.name, "mlp") && !strcmp(mlp_training.loss, "cross_entropy"));
    CHECK(!strcmp(mlp_training.optimizer, "adam") && !strcmp(mlp_training.schedule, "cosine"));
    CHECK(mlp_training.takes_step && !norm_training.takes_step && !norm_training.schedule);
    CHECK(w->offset == offsetof(mlp_params, b_weight) && w->tensor.rank == 2 && w->tensor.shape[0] == 3);
    CHECK(w->tensor.shape[1] == 5 && w->tensor.bytes == 60 && w->tensor.dtype == BURN_FLOAT && w->role == BURN_TRAINED);
    CHECK(mlp_training.param_count == 4 && mlp_training.state_count == 8 && mlp_training.hyper_count == 6);
    CHECK(mlp_training.input_count == 1 && mlp_training.target_count == 1 && mlp_training.output_count == 1);
    mean = part(&norm_training, "batchnormalization_r.running_mean");
    CHECK(mean->role == BURN_RUNNING && part(&norm_training, "batches")->role == BURN_BATCHES);
    CHECK(!norm_training.state_count && !norm_training.learning_rate);
    CHECK(!strcmp(norm_training.inputs[1].name, "target") && norm_training.inputs[1].bytes == 48);
#ifdef THREADS
    CHECK(mlp_training.parts == 2 && norm_training.parts == 2);
#else
    CHECK(!mlp_training.parts && !norm_training.parts);
#endif
}

int main(void)
{
    Learner mlp, norm;
    learn(&mlp, &mlp_training);
    learn(&norm, &norm_training);
    check_mlp(&mlp);
    check_norm(&norm);
    check_tables();
    return refused(&mlp) | refused(&norm);
}
