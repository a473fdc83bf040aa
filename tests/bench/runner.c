// SPDX-License-Identifier: MIT OR Apache-2.0
// A compiled model as a contestant of scripts/bench: linked with the generated C (compiled with --name model) and
// nothing else, so that the peak resident set is that of the code, its weights and its tensors.
//
// With THREADS defined (the model compiled with --threads) runs are on a pool of runtime/threads.c, of so many threads.
//
// usage: program FOLDER           serves requests (worker.h); FOLDER holds in_N.bin and, beside the program, model.bin
//        program FOLDER --cold    runs once and prints the time of the monotonic clock, in ns
#include "worker.h"

#include "model.h"
#ifdef THREADS
#include "threads.h"
#endif

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 256 };
static burn_tensor in[MOST], out[MOST];
static int64_t out_shape[MOST][WORKER_RANK];
static void *workspace;
static const void *weights;

#ifdef THREADS
static burn_threads own;
static const burn_threads *const threads = &own;
#else
static const struct burn_threads *const threads = NULL;
#endif

static int worker_run(void) { return model_model.run(threads, workspace, weights, in, out); }

static const void *weights_map(const char *program) {
    char path[4096];
    const char *slash = strrchr(program, '/');
    snprintf(path, sizeof path, "%.*smodel.bin", slash ? (int)(slash - program) + 1 : 0, program);
    int f = open(path, O_RDONLY);
    struct stat s;
    if (f < 0 || fstat(f, &s) || (size_t)s.st_size < model_model.weights_bytes)
        worker_fail(path, "cannot map the weights");
    void *p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, f, 0);
    if (p == MAP_FAILED) worker_fail(path, "cannot map the weights");
    close(f);
    return p;
}

static void describe(Tensor *t, const burn_tensor_info *info, const burn_tensor *at, const int64_t *shape) {
    snprintf(t->name, sizeof t->name, "%s", info->name);
    t->dtype = (int)info->dtype;
    t->rank = info->rank;
    t->bytes = info->bytes;
    t->data = at->data;
    int64_t most = 1, count = 1;
    for (int d = 0; d < info->rank; d++) most *= info->shape[d], count *= t->shape[d] = shape[d];
    if (most) t->bytes = info->bytes / (size_t)most * (size_t)count;
}

int main(int argc, char **argv) {
    int64_t began = worker_now();
    const burn_model *m = &model_model;
    if (argc < 2) worker_fail(argv[0], "wants the folder of the inputs");
    if (m->input_count > MOST || m->output_count > MOST) worker_fail(argv[0], "too many inputs or outputs");
#ifdef THREADS
    if (burn_threads_open(&own, THREADS, 0)) worker_fail(argv[0], "cannot start threads");
#endif
    if (m->weights_bytes) weights = weights_map(argv[0]);
    workspace = worker_alloc(m->workspace_bytes);
    for (int i = 0; i < m->input_count; i++)
        in[i] = (burn_tensor){ .data = worker_load(argv[1], "in", i, m->inputs[i].bytes), .bytes = m->inputs[i].bytes };
    for (int i = 0; i < m->output_count; i++)
        out[i] = (burn_tensor){
            .data = worker_alloc(m->outputs[i].bytes), .bytes = m->outputs[i].bytes, .shape = out_shape[i] };
    int64_t loaded = worker_now();
    if (worker_run()) worker_fail(argv[0], "the first run failed");
    int64_t ran = worker_now();
    if (argc > 2) return printf("%" PRId64 "\n", ran) < 0;
    static Tensor outputs[MOST];
    for (int i = 0; i < m->output_count; i++) describe(&outputs[i], &m->outputs[i], &out[i], out_shape[i]);
    return worker_serve(argv[1], outputs, m->output_count, began, loaded, ran);
}
