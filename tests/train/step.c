// SPDX-License-Identifier: MIT OR Apache-2.0
// Drives generated training code over a reference run. Built by run.py with -DMODEL=name and the generated header in
// front; with -DINITIAL="file" where the initial weights stand in one, -DDROPS where gradients are told the step,
// -DEACH where the gradients and parameters of every step are wanted, in files of their own; -DON_GPU where the
// runtime says why a call failed; -DUPDATE_WORK where an update has a workspace; -DWEIGHTS="file"
// with -DPREDICT_WEIGHTS=weights, or -DGRADIENTS_WEIGHTS=weights, where constants stand in one.
// In: a folder of raw little-endian files x0..x9, y0..y9. Out: the first step's gradients and the final parameters as
// .safetensors, the predictions on x0 as raw floats, and a line per step with its loss.
#include MODEL_HEADER
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(suffix) PASTE(MODEL, suffix)

#ifndef PREDICT_WEIGHTS
#define PREDICT_WEIGHTS
#endif
#ifndef GRADIENTS_WEIGHTS
#define GRADIENTS_WEIGHTS
#endif
#ifdef ON_GPU
#include <burn.h>
#define WHY burn_gpu_error()
#else
#define WHY "its code says so"
#endif
#ifdef DROPS
#define STEP(i) , i
#else
#define STEP(i)
#endif

static void fail(const char *what) {
    fprintf(stderr, "%s failed: %s\n", what, WHY);
    exit(1);
}

static void read_file(const char *folder, char kind, int i, void *to, size_t bytes) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%c%d", folder, kind, i);
    FILE *f = fopen(path, "rb");
    if (!f || fread(to, 1, bytes, f) != bytes) fail(path);
    fclose(f);
}

int main(int argc, char **argv) {
    static NAME(_predict_workspace) predict;
    static NAME(_gradients_workspace) work;
#ifdef UPDATE_WORK
    static NAME(_update_workspace) update_work;
#endif
    static NAME(_params) params, grads, loaded;
    static NAME(_state) state;
    static X_TYPE x[X_COUNT];
    static Y_TYPE y[Y_COUNT];
    static float out[OUT_COUNT], loss[1];
    char path[4096];
    if (argc != 3) fail("usage: step IN OUT");
    memset(&state, 0, sizeof state);
#ifdef WEIGHTS
    static union { double aligned[8]; unsigned char bytes[1 << 16]; } room;     // constants of small models
    unsigned char *weights = room.bytes + (64 - (size_t)room.bytes % 64) % 64;
    FILE *constants = fopen(WEIGHTS, "rb");
    if (!constants || !fread(weights, 1, sizeof room - 64, constants)) fail(WEIGHTS);
    fclose(constants);
#endif
#ifdef INITIAL
    if (NAME(_params_load)(&params, INITIAL)) fail("load of the initial weights");
#else
    NAME(_params_init)(&params);
#endif
    for (int i = 0; i < 10; i++) {
        read_file(argv[1], 'x', i, x, sizeof x);
        read_file(argv[1], 'y', i, y, sizeof y);
        if (i == 0) {
            if (NAME(_predict)(&predict, PREDICT_WEIGHTS x, &params, out)) fail("predict");
            snprintf(path, sizeof path, "%s/eval_output", argv[2]);
            FILE *f = fopen(path, "wb");
            if (!f || fwrite(out, 1, sizeof out, f) != sizeof out || fclose(f)) fail(path);
        }
        if (NAME(_gradients)(&work, GRADIENTS_WEIGHTS x, &params, y STEP(i + 1), loss, &grads)) fail("gradients");
        snprintf(path, sizeof path, "%s/gradients.safetensors", argv[2]);
        if (i == 0 && NAME(_params_save)(&grads, path)) fail(path);
#ifdef EACH
        snprintf(path, sizeof path, "%s/gradients%d.safetensors", argv[2], i);
        if (NAME(_params_save)(&grads, path)) fail(path);
        snprintf(path, sizeof path, "%s/params%d.safetensors", argv[2], i);
        if (NAME(_params_save)(&params, path)) fail(path);
#endif
        if (UPDATE(&params, &grads, &state, (float)(i + 1))) fail("update");
        printf("%.9g\n", (double)loss[0]);
    }
    snprintf(path, sizeof path, "%s/final.safetensors", argv[2]);
    if (NAME(_params_save)(&params, path)) fail(path);
    if (NAME(_params_load)(&loaded, path) || memcmp(&loaded, &params, sizeof params)) fail("load");
    return 0;
}
