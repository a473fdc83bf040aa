// SPDX-License-Identifier: MIT OR Apache-2.0
// Drives the training code of models/digits, compiled as `train`, over random images. Out: status 0 when bad
// arguments are refused, ten steps on one batch lower the loss, and saved parameters come back equal. Every buffer is
// a heap block of exactly its size.
#define _POSIX_C_SOURCE 200112L
#include "train.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(c) \
    do { \
        if (c) break; \
        fprintf(stderr, "train.c:%d: %s does not hold\n", __LINE__, #c); \
        exit(1); \
    } while (0)

static void *allocate(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes)) exit(1);
    return p;
}

int main(void) {
    train_params *params = allocate(sizeof *params), *grads = allocate(sizeof *grads),
                 *loaded = allocate(sizeof *loaded);
    train_gradients_workspace *ws = allocate(sizeof *ws);
    train_predict_workspace *pws = allocate(sizeof *pws);
    float *image = allocate(784 * sizeof *image), *logits = allocate(10 * sizeof *logits),
          *loss = allocate(sizeof *loss), first = 0;
    int64_t *target = allocate(sizeof *target);
    for (int i = 0; i < 784; i++) image[i] = (float)(i * 7919 % 256) / 255.0f;
    *target = 3;
    train_params_init(params);
    CHECK(train_predict(NULL, image, params, logits) == -1);
    CHECK(train_predict(pws, NULL, params, logits) == -1);
    CHECK(train_predict(pws, image, NULL, logits) == -1);
    CHECK(train_predict(pws, image, params, NULL) == -1);
    CHECK(train_gradients(NULL, image, params, target, loss, grads) == -1);
    CHECK(train_gradients(ws, NULL, params, target, loss, grads) == -1);
    CHECK(train_gradients(ws, image, NULL, target, loss, grads) == -1);
    CHECK(train_gradients(ws, image, params, NULL, loss, grads) == -1);
    CHECK(train_gradients(ws, image, params, target, NULL, grads) == -1);
    CHECK(train_gradients(ws, image, params, target, loss, NULL) == -1);
    CHECK(train_update(0.01f, NULL, grads) == -1);
    CHECK(train_update(0.01f, params, NULL) == -1);
    CHECK(train_params_save(NULL, "params.safetensors") == -1 && train_params_save(params, NULL) == -1);
    CHECK(train_params_load(NULL, "params.safetensors") == -1 && train_params_load(params, NULL) == -1);
    CHECK(train_params_load(params, "nowhere/params.safetensors") == -3);
    CHECK(train_params_save(params, "nowhere/params.safetensors") == -3);
    for (int step = 0; step < 10; step++) {
        CHECK(train_gradients(ws, image, params, target, loss, grads) == 0);
        if (!step) first = *loss;
        CHECK(train_update(0.01f, params, grads) == 0);
    }
    CHECK(*loss < first);
    CHECK(train_predict(pws, image, params, logits) == 0);
    CHECK(train_params_save(params, "params.safetensors") == 0);
    memset(loaded, 0, sizeof *loaded);
    CHECK(train_params_load(loaded, "params.safetensors") == 0);
    CHECK(memcmp(loaded, params, sizeof *params) == 0);
    FILE *f = fopen("params.safetensors", "r+b");
    CHECK(f && fwrite("\377\377\377\377\377\377\377\177", 1, 8, f) == 8 && fclose(f) == 0);
    CHECK(train_params_load(loaded, "params.safetensors") == -6);
    free(params), free(grads), free(loaded), free(ws), free(pws), free(image), free(logits), free(loss), free(target);
    return 0;
}
