// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients of a batch, and what ten steps make of the parameters, have the same bits on 1, 2, 3 and 4 threads. Built
// by api.py with runtime/threads.c over a module m of four parts.
#include "m.h"
#include "threads.h"
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, STEPS = 10 };

static void learn(const burn_threads *threads, void *grads, void *params)
{
    const burn_training *t = &m_training;
    void *work = room(t->gradients_bytes + t->update_bytes), *state = room(t->state_bytes);
    burn_tensor in[MOST];
    float hypers[MOST];
    double loss;
    unsigned seed = 1;
    CHECK(!t->params_init(params));
    for (int i = 0; i < t->hyper_count; i++) hypers[i] = (float)t->hypers[i].usual;
    for (int i = 0; i < 2; i++) in[i] = (burn_tensor){.data = room(t->inputs[i].bytes), .bytes = t->inputs[i].bytes};
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < 2; i++)
            for (size_t k = 0; k < in[i].bytes / 4; k++) {
                seed = seed * 1103515245u + 12345u;
                ((float *)in[i].data)[k] = (float)(seed >> 8 & 65535) / 32768 - 1;
            }
        CHECK(!t->gradients(threads, work, NULL, in, params, s, &loss, grads));
        CHECK(!t->update(threads, work, NULL, hypers, params, grads, state));
    }
}

int main(void)
{
    void *grads[2], *params[2];
    for (int i = 0; i < 2; i++) {
        grads[i] = room(m_training.params_bytes);
        params[i] = room(m_training.params_bytes);
    }
    CHECK(m_training.parts == 4);
    learn(NULL, grads[0], params[0]);
    for (int n = 1; n <= 4; n++) {
        burn_threads pool;
        CHECK(!burn_threads_open(&pool, n, 0));
        learn(&pool, grads[1], params[1]);
        burn_threads_close(&pool);
        CHECK(!memcmp(grads[0], grads[1], m_training.params_bytes));
        CHECK(!memcmp(params[0], params[1], m_training.params_bytes));
    }
    return 0;
}
