// SPDX-License-Identifier: MIT OR Apache-2.0
// OpenBLAS as a contestant of scripts/bench, for models that are one matrix product with constant weights.
//
// usage: openblas LIBRARY FOLDER THREADS M N K TRANSPOSED BIAS    in_0.bin: M x K; w_0.bin: K x N (or N x K);
// w_1.bin: N
#include "worker.h"

#include <dlfcn.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };    // the CBLAS interface's numbers
typedef void Sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
    const float *b, int ldb, float beta, float *c, int ldc);

static Sgemm *sgemm;
static int m, n, k, transposed;
static Tensor in, weights, bias, out;

static int worker_run(void) {
    float *y = out.data;
    for (int i = 0; bias.data && i < m; i++) memcpy(y + (size_t)i * (size_t)n, bias.data, (size_t)n * sizeof(float));
    sgemm(ROW_MAJOR, PLAIN, transposed ? TRANSPOSED : PLAIN, m, n, k, 1, in.data, k, weights.data, transposed ? k : n,
        bias.data ? 1 : 0, y, n);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 9) worker_fail(argv[0], "wants LIBRARY FOLDER THREADS M N K TRANSPOSED BIAS");
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) worker_fail("OpenBLAS", dlerror());
    int64_t began = worker_now();
    void (*set_threads)(int);
    *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (!sgemm || !set_threads) worker_fail("OpenBLAS", "a function is missing");
    set_threads(atoi(argv[3]));
    m = atoi(argv[4]), n = atoi(argv[5]), k = atoi(argv[6]), transposed = atoi(argv[7]);
    worker_read_table(argv[2], "wanted.txt", &out, 1);
    in.data = worker_load(argv[2], "in", 0, (size_t)m * (size_t)k * sizeof(float));
    weights.data = worker_load(argv[2], "w", 0, (size_t)k * (size_t)n * sizeof(float));
    if (atoi(argv[8])) bias.data = worker_load(argv[2], "w", 1, (size_t)n * sizeof(float));
    out.data = worker_alloc(out.bytes);
    int64_t loaded = worker_now();
    worker_run();
    return worker_serve(argv[2], &out, 1, began, loaded, worker_now());
}
