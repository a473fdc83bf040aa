// SPDX-License-Identifier: MIT OR Apache-2.0
// Two modules of one model beside each other, without a loss scale and with one; built by scale.py. -DDYNAMIC=N: the
// scale is found as it goes, from 1024 and with an interval of N, else it is 1024.
#include "plain.h"
#include "scaled.h"
#include "api/check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef POOL
#include "threads.h"
#endif

enum { STEPS = 14, MOST = 32 };
static const burn_training *const both[2] = {&plain_training, &scaled_training};
static const struct burn_threads *threads;
static unsigned seed = 7;
static burn_tensor in[MOST];
static void *work;

static double next(void)
{
    seed = seed * 1103515245u + 12345u;
    return (double)(seed >> 8 & 65535) / 32768 - 1;
}

static void fill_inputs(void)
{
    const burn_training *t = both[0];
    for (int i = 0; i < t->input_count + t->target_count; i++) {
        const burn_tensor_info *info = &t->inputs[i];
        in[i] = (burn_tensor){room(info->bytes), info->bytes, (int64_t *)info->shape, info->dtype, info->rank};
        for (size_t k = 0; k < info->bytes / (info->dtype == BURN_INT64 ? 8 : 4); k++)
            if (info->dtype == BURN_INT64) ((int64_t *)in[i].data)[k] = (int64_t)((next() + 1) * 2);
            else ((float *)in[i].data)[k] = (float)next();
    }
}

/* A number of the optimizer's state. */
static float *number(void *state, const char *name)
{
    for (int i = 0; i < both[1]->state_count; i++)
        if (!strcmp(both[1]->state[i].tensor.name, name))
            return (float *)(void *)((char *)state + both[1]->state[i].offset);
    return NULL;
}

static void usual_hypers(int step, float hypers[MOST])
{
    for (int i = 0; i < both[0]->hyper_count; i++)
        hypers[i] = strcmp(both[0]->hypers[i].name, "step") ? (float)both[0]->hypers[i].usual : (float)step;
}

static void differentiate(int which, void *params, void *state, int at, double *loss, void *grads)
{
    CHECK(!both[which]->gradients_by_state(threads, work, NULL, in, params, state, at, loss, grads));
}

static int same(const void *x, const void *y, size_t bytes) { return !memcmp(x, y, bytes); }

/* Of the state what is the plain module's too: it comes first. */
static size_t common(void) { return both[0]->state_bytes; }

static float skipped;
#ifdef DYNAMIC
static float expected = 1024, good;
#endif

/* PyTorch's GradScaler: what a step does to the scale. */
static void move_scale(int finite)
{
    skipped += (float)!finite;
#ifdef DYNAMIC
    if (!finite) expected *= 0.5f;
    good = finite ? good + 1 : 0;
    if (good >= DYNAMIC) expected *= 2, good = 0;
#endif
}

static void check_scale(void *state)
{
    CHECK(*number(state, "skipped_steps") == skipped);
#ifdef DYNAMIC
    CHECK(*number(state, "loss_scale") == expected && *number(state, "good_steps") == good);
#else
    CHECK(!number(state, "loss_scale") && !number(state, "good_steps"));
#endif
}

/* One that is not finite, somewhere in what learns. */
static void spoil(void *grads, int at)
{
    for (int i = at % both[1]->param_count;; i = (i + 1) % both[1]->param_count) {
        const burn_part *p = &both[1]->params[i];
        if (p->role != BURN_TRAINED) continue;
        float *const x = (float *)(void *)((char *)grads + p->offset);
        x[p->tensor.bytes / 4 - 1] = at % 3 == 0 ? (float)NAN : at % 3 == 1 ? INFINITY : -INFINITY;
        return;
    }
}

static void *params[2], *grads[2], *state[2], *before, *old;
static size_t size, states;
static float hypers[MOST];

static void make_room(void)
{
    size_t bytes = 0;
    size = both[0]->params_bytes, states = both[1]->state_bytes;
    CHECK(size == both[1]->params_bytes && common() <= states && both[0]->hyper_count == both[1]->hyper_count);
    before = room(size), old = room(states);
    for (int k = 0; k < 2; k++) {
        const burn_training *t = both[k];
        params[k] = room(size), grads[k] = room(size), state[k] = room(states);
        CHECK(!t->params_init(params[k]));
        const size_t of[] = {t->gradients_bytes, t->update_bytes, t->train_step_bytes};
        for (int i = 0; i < 3; i++) bytes = of[i] > bytes ? of[i] : bytes;
    }
    work = aligned_alloc(64, (bytes + 64) / 64 * 64);
    CHECK(work);
}

static void remember(void)
{
    memcpy(before, params[1], size);
    memcpy(old, state[1], states);
}

/* Of the state only what the scale is about may be another. */
static int unchanged(void)
{
    return same(before, params[1], size) && same(old, state[1], common() > 4 ? common() : 0);
}

static void update(int which, int step)
{
    usual_hypers(step, hypers);
    CHECK(!both[which]->update(threads, work, NULL, hypers, params[which], grads[which], state[which]));
}

static void learn(void)
{
    double loss[2];
    for (int at = 1, counted = 0; at <= STEPS; at++) {
        const int spoiled = at == 3 || at == 4 || at == 9;
        for (int k = 0; k < 2; k++) differentiate(k, params[k], state[k], at, &loss[k], grads[k]);
        CHECK(same(&loss[0], &loss[1], sizeof *loss) && same(grads[0], grads[1], size));
        remember();
        if (spoiled) spoil(grads[1], at);
        update(1, at);
        move_scale(!spoiled);
        check_scale(state[1]);
        CHECK(unchanged() == spoiled);
        if (!spoiled) update(0, ++counted);
        CHECK(same(params[0], params[1], size));
    }
}

/* gradients and update in one. */
static void learn_at_once(void)
{
    double loss[2];
    remember();
    differentiate(1, params[1], state[1], STEPS + 1, &loss[0], grads[1]);
    update(1, STEPS + 1);
    CHECK(!both[1]->train_step(threads, work, NULL, in, STEPS + 1, hypers, before, old, &loss[1]));
    CHECK(same(&loss[0], &loss[1], sizeof *loss) && same(before, params[1], size) && same(old, state[1], states));
}

#ifdef DYNAMIC
/* A scale that is too large for the gradients themselves, from a checkpoint. */
static void overflow(void)
{
    double loss;
    int64_t step = 0;
    CHECK(both[1]->gradients(threads, work, NULL, in, params[1], 1, &loss, grads[1]) == BURN_EINVAL);
    *number(state[1], "loss_scale") = 0x1p127f;
    CHECK(!both[1]->checkpoint_save(params[1], state[1], STEPS, CHECKPOINT));
    memset(state[1], 0, states);
    CHECK(!both[1]->checkpoint_load(params[1], state[1], &step, CHECKPOINT) && step == STEPS);
    CHECK(*number(state[1], "loss_scale") == 0x1p127f);
    remember();
    const float skipped_before = *number(state[1], "skipped_steps");
    CHECK(!both[1]->train_step(threads, work, NULL, in, STEPS + 2, hypers, params[1], state[1], &loss));
    CHECK(isfinite(loss) && unchanged() && *number(state[1], "skipped_steps") == skipped_before + 1);
    CHECK(*number(state[1], "loss_scale") == 0x1p126f && *number(state[1], "good_steps") == 0);
}
#endif

int main(void)
{
#ifdef POOL
    burn_threads pool;
    CHECK(!burn_threads_open(&pool, 2, 0));
    threads = &pool;
#endif
    make_room();
    fill_inputs();
    learn();
    learn_at_once();
#ifdef DYNAMIC
    overflow();
#endif
#ifdef POOL
    burn_threads_close(&pool);
#endif
    puts("ok");
    return 0;
}
