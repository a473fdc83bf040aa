// SPDX-License-Identifier: MIT OR Apache-2.0
// Trained parameters back in code for inference. Built by api.py: first over a module m, it trains and saves; then,
// with -DAFTER, over m and `inf`, the model with those weights: both predict the same. Argument: the file of weights.
#include "m.h"
#ifdef AFTER
#include "inf.h"
#endif
#include "check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, STEPS = 5 };

int main(int argc, char **argv)
{
    const burn_training *t = &m_training;
    void *params = room(t->params_bytes), *grads = room(t->params_bytes), *state = room(t->state_bytes);
    void *work = room(t->predict_bytes + t->gradients_bytes + t->update_bytes);
    burn_tensor in[MOST], out[2];
    CHECK(argc == 2 && !t->params_init(params));
    for (int i = 0; i < 2; i++) {
        in[i] = (burn_tensor){.data = room(t->inputs[i].bytes), .bytes = t->inputs[i].bytes};
        out[i] = (burn_tensor){.data = room(t->outputs[0].bytes), .bytes = t->outputs[0].bytes};
        for (size_t k = 0; k < in[i].bytes / 4; k++) ((float *)in[i].data)[k] = (float)((k * 37 + 11) % 64) / 32 - 1;
    }
#ifdef AFTER
    const float *got = (const float *)out[1].data, *want = (const float *)out[0].data;
    (void)grads;
    (void)state;
    CHECK(!t->params_load(params, argv[1]));
    CHECK(!t->predict(NULL, work, NULL, in, params, &out[0]));
    CHECK(!inf_model.run(NULL, room(inf_model.workspace_bytes), NULL, in, &out[1]));
    for (size_t i = 0; i < out[0].bytes / 4; i++)
        CHECK(fabs((double)got[i] - (double)want[i]) <= 1e-6 && want[i] - want[i] == 0);
#else
    float hypers[MOST];
    double loss, first = 0;
    for (int i = 0; i < t->hyper_count; i++) hypers[i] = (float)t->hypers[i].usual;
    hypers[0] = 0.1f;
    for (int s = 0; s < STEPS; s++) {
        CHECK(!t->gradients(NULL, work, NULL, in, params, s, &loss, grads));
        CHECK(!t->update(NULL, work, NULL, hypers, params, grads, state));
        if (!s) first = loss;
    }
    CHECK(!t->predict(NULL, work, NULL, in, params, &out[0]));
    CHECK(loss < first && !t->params_save(params, argv[1]));
#endif
    return 0;
}
