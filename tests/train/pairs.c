// SPDX-License-Identifier: MIT OR Apache-2.0
// Trains the module m through its descriptor for a few steps on numbers that are always the same. Built by pairs.py.
// -DPOOL: on two threads; -DBATCH=N: the size that the run says; -DPARAMS="m.safetensors", -DWEIGHTS="m.bin": they are
// there. Out: the losses of the steps, then that of evaluate.
#include "m.h"
#include "api/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef POOL
#include "threads.h"
#endif

enum { STEPS = 4, MOST = 32, RANK = 8 };
static const burn_training *const t = &m_training;
static unsigned seed = 7;

static double next(void)
{
    seed = seed * 1103515245u + 12345u;
    return (double)(seed >> 8 & 65535) / 32768 - 1;
}

/* Room for a tensor of the first BATCH items; `shape` becomes what it has. */
static burn_tensor tensor(const burn_tensor_info *info, int64_t shape[RANK])
{
    size_t n = 1;
    CHECK(info->rank <= RANK);
    for (int k = 0; k < info->rank; k++) {
        shape[k] = info->shape[k];
#ifdef BATCH
        if (info->least && info->least[k] != info->shape[k]) shape[k] = BATCH;
#endif
        n *= (size_t)shape[k];
    }
    burn_tensor made = {aligned_alloc(64, (info->bytes + 63) / 64 * 64), info->bytes, shape, info->dtype, info->rank};
    CHECK(made.data);
    for (size_t i = 0; i < n; i++)
        if (info->dtype == BURN_INT64) ((int64_t *)made.data)[i] = i % 4 ? (int64_t)((next() + 1) * 2) : 0;
        else ((float *)made.data)[i] = (float)next();
    return made;
}

static void *aligned_room(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    CHECK(p);
    return memset(p, 0, (bytes + 64) / 64 * 64);
}

int main(void)
{
    const struct burn_threads *threads = NULL;
    int64_t shapes[2 * MOST][RANK];
    burn_tensor in[MOST], out[MOST];
    float hypers[MOST], schedule[MOST], rate;
    double loss;
#ifdef POOL
    burn_threads pool;
    CHECK(!burn_threads_open(&pool, 2, 0));
    threads = &pool;
#endif
    void *weights = t->weights_bytes ? aligned_room(t->weights_bytes) : NULL;
#ifdef WEIGHTS
    FILE *file = fopen(WEIGHTS, "rb");
    CHECK(file && fread(weights, 1, t->weights_bytes, file) == t->weights_bytes && !fclose(file));
#endif
    void *params = aligned_room(t->params_bytes), *grads = aligned_room(t->params_bytes);
    void *state = aligned_room(t->state_bytes);
    size_t work = t->gradients_bytes > t->update_bytes ? t->gradients_bytes : t->update_bytes;
    void *scratch = aligned_room(work > t->evaluate_bytes ? work : t->evaluate_bytes);
    for (int i = 0; i < t->input_count + t->target_count; i++) in[i] = tensor(&t->inputs[i], shapes[i]);
    for (int i = 0; i < t->output_count; i++) out[i] = tensor(&t->outputs[i], shapes[MOST + i]);
#ifdef PARAMS
    CHECK(!t->params_load(params, PARAMS));
#else
    CHECK(!t->params_init(params));
#endif
    for (int i = 0; i < t->schedule_count; i++) schedule[i] = (float)t->schedule_hypers[i].usual;
    for (int at = 0; at < STEPS; at++) {
        for (int i = 0; i < t->hyper_count; i++) {
            hypers[i] = (float)t->hypers[i].usual;
            if (!strcmp(t->hypers[i].name, "step")) hypers[i] = (float)(at + 1);
            if (t->learning_rate && !strcmp(t->hypers[i].name, "learning_rate")) {
                CHECK(!t->learning_rate((float)at, schedule, &rate));
                hypers[i] = rate;
            }
        }
        CHECK(!t->gradients_by_state(threads, scratch, weights, in, params, state, at + 1, &loss, grads));
        CHECK(!t->update(threads, scratch, weights, hypers, params, grads, state));
        printf("%.9g\n", loss);
    }
    CHECK(!t->evaluate(threads, scratch, weights, in, params, &loss, out));
    printf("%.9g\n", loss);
#ifdef POOL
    burn_threads_close(&pool);
#endif
    return 0;
}
