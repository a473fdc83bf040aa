// SPDX-License-Identifier: MIT OR Apache-2.0
// A step of training as a contestant of scripts/bench --training. training.py writes entry.h, which includes the
// generated header and says which module it is (TRAINING). A run is `train_step`: loss, gradients and update.
//
// usage: program FOLDER         FOLDER holds init.safetensors (the parameters), inputs.txt and in_N.bin: the model's
//                               inputs, then the loss's targets
//        program FOLDER check   no worker: writes the first loss to loss.bin (f64) and the struct of the first
//                               gradients to grads.bin, and to grads.txt a line for each of its members: its place and
//                               its name; prints the bytes that are planned for steps: parameters, the optimizer's
//                               state and the workspace
#include "worker.h"

#include "entry.h"

#ifdef THREADS
#include "threads.h"
static burn_threads pool;
#define POOL (&pool)
#else
#define POOL NULL
#endif

enum { MOST = 16 };
static const burn_training *const module = &TRAINING;
static burn_tensor in[MOST];
static const void *weights;                             // of what does not learn
static void *work, *params, *state;
static float hypers[MOST];
static int64_t step = 0;

static int worker_run(void) {
    double loss;
    step++;
    for (int i = 0; i < module->hyper_count; i++)
        if (!strcmp(module->hypers[i].name, "step")) hypers[i] = (float)step;
    return module->train_step(POOL, work, weights, in, step, hypers, params, state, &loss);
}

// net.bin, beside the program.
static void read_weights(const char *program) {
    char path[4096];
    const char *end = strrchr(program, '/');
    snprintf(path, sizeof path, "%.*snet.bin", end ? (int)(end + 1 - program) : 0, program);
    FILE *f = fopen(path, "rb");
    void *at = worker_alloc(module->weights_bytes);
    if (!f || fread(at, 1, module->weights_bytes, f) != module->weights_bytes) worker_fail(path, "cannot read it");
    fclose(f);
    weights = at;
}

static void read_inputs(const char *folder) {
    static Tensor tensors[MOST];
    int n = worker_read_table(folder, "inputs.txt", tensors, MOST);
    if (n != module->input_count + module->target_count) worker_fail("inputs.txt", "not what the model takes");
    for (int i = 0; i < n; i++) {
        if (tensors[i].bytes != module->inputs[i].bytes) worker_fail(tensors[i].name, "not of the model's size");
        in[i] = (burn_tensor){ .data = worker_load(folder, "in", i, tensors[i].bytes), .bytes = tensors[i].bytes,
            .shape = tensors[i].shape, .dtype = module->inputs[i].dtype, .rank = tensors[i].rank };
    }
}

static int check(const char *folder) {
    double loss;
    char *grads = worker_alloc(module->params_bytes);
    work = worker_alloc(module->gradients_bytes);
    if (module->gradients(POOL, work, weights, in, params, 1, &loss, grads)) worker_fail("gradients", "they failed");
    FILE *f = worker_open(folder, "loss.bin", -1, "wb");
    fwrite(&loss, sizeof loss, 1, f);
    fclose(f);
    f = worker_open(folder, "grads.bin", -1, "wb");
    if (fwrite(grads, 1, module->params_bytes, f) != module->params_bytes) worker_fail("grads.bin", "cannot write it");
    fclose(f);
    f = worker_open(folder, "grads.txt", -1, "w");
    for (int i = 0; i < module->param_count; i++)
        fprintf(f, "%zu %s\n", module->params[i].offset, module->params[i].tensor.name);
    fclose(f);
    printf("%zu\n", module->params_bytes + module->state_bytes + module->train_step_bytes);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) worker_fail(argv[0], "wants FOLDER");
    int64_t began = worker_now();
#ifdef THREADS
    if (burn_threads_open(&pool, THREADS, 0)) worker_fail(argv[0], "no threads");
#endif
    char path[4096];
    snprintf(path, sizeof path, "%s/init.safetensors", argv[1]);
    params = worker_alloc(module->params_bytes);
    if (module->params_load(params, path)) worker_fail(path, "it does not hold the model's parameters");
    if (module->weights_bytes) read_weights(argv[0]);
    read_inputs(argv[1]);
    if (argc > 2) return check(argv[1]);
    work = worker_alloc(module->train_step_bytes);
    state = worker_alloc(module->state_bytes);
    memset(state, 0, module->state_bytes);
    for (int i = 0; i < module->hyper_count; i++)
        hypers[i] = strcmp(module->hypers[i].name, "learning_rate") ? (float)module->hypers[i].usual : LEARNING_RATE;
    int64_t loaded = worker_now();
    if (worker_run()) worker_fail("train_step", "it failed");
    return worker_serve(argv[1], NULL, 0, began, loaded, worker_now());
}
