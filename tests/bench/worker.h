// SPDX-License-Identifier: MIT OR Apache-2.0
// What every contestant of scripts/bench that is a C program does alike: it reads the inputs that the parent wrote,
// runs once, and then serves requests over its pipes, a line each:
//
//   (first, unasked)      ready LOAD_NS FIRST_NS      getting ready to run, and the first run
//   slice SECONDS         times NS NS ...             runs for about that long; what one run took, sample by sample
//   write                 done                        writes the outputs: out_N.bin and a line each in outputs.txt
//   memory                memory KIB                  the process's peak resident set (VmHWM)
//
// A worker defines `worker_run` and calls worker_serve. A sample is one run, or for runs of microseconds the mean of
// as many as take 20 us. The start of each slice warms the caches and is not counted. With BENCH_CLOCK=cpu in the
// environment samples are processor time of the calling thread: for one thread on a machine with other work.
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { WORKER_RANK = 8, WORKER_SAMPLES = 4096 };
enum { WORKER_UNIT_NS = 20000 };

// A tensor of ONNX element type `dtype`; `bytes` at `data`, dense.
typedef struct Tensor {
    char name[512];
    int dtype, rank;
    int64_t shape[WORKER_RANK];
    size_t bytes;
    void *data;
} Tensor;

static int worker_run(void);                            // one inference; 0 when it went well

static inline int64_t worker_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t worker_now(void) { return worker_clock(CLOCK_MONOTONIC); }

static inline void worker_fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline FILE *worker_open(const char *folder, const char *kind, int number, const char *mode) {
    char path[4096];
    if (number < 0) snprintf(path, sizeof path, "%s/%s", folder, kind);
    else snprintf(path, sizeof path, "%s/%s_%d.bin", folder, kind, number);
    FILE *f = fopen(path, mode);
    if (!f) worker_fail(path, "cannot open it");
    return f;
}

// Memory for tensors and workspaces: whole huge pages where the size is worth one.
static inline void *worker_alloc(size_t bytes) {
    size_t align = bytes >= (size_t)1 << 21 ? (size_t)1 << 21 : 64;
    bytes = (bytes + align - 1) / align * align;
    void *p = aligned_alloc(align, bytes ? bytes : align);
    if (!p) worker_fail("worker", "out of memory");
    if (align > 64) madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

// The content of FOLDER/KIND_NUMBER.bin.
static inline void *worker_load(const char *folder, const char *kind, int number, size_t bytes) {
    void *into = worker_alloc(bytes);
    FILE *f = worker_open(folder, kind, number, "rb");
    if (fread(into, 1, bytes, f) != bytes) worker_fail(kind, "a file is too short");
    fclose(f);
    return into;
}

// Lines of FOLDER/NAME: `DTYPE BYTES RANK DIM... NAME`; the number of tensors.
static inline int worker_read_table(const char *folder, const char *name, Tensor *tensors, int most) {
    FILE *f = worker_open(folder, name, -1, "r");
    int n = 0;
    for (; n < most; n++) {
        Tensor *t = &tensors[n];
        if (fscanf(f, "%d %zu %d", &t->dtype, &t->bytes, &t->rank) != 3) break;
        if (t->rank < 0 || t->rank > WORKER_RANK) worker_fail(name, "a rank above 8");
        for (int d = 0; d < t->rank; d++)
            if (fscanf(f, "%" SCNd64, &t->shape[d]) != 1) worker_fail(name, "a dimension is missing");
        if (fscanf(f, " %511[^\n]", t->name) != 1) worker_fail(name, "a name is missing");
    }
    fclose(f);
    return n;
}

static inline void worker_write(const char *folder, const Tensor *tensors, int n) {
    FILE *table = worker_open(folder, "outputs.txt", -1, "w");
    for (int i = 0; i < n; i++) {
        fprintf(table, "%d %zu %d", tensors[i].dtype, tensors[i].bytes, tensors[i].rank);
        for (int d = 0; d < tensors[i].rank; d++) fprintf(table, " %" PRId64, tensors[i].shape[d]);
        fprintf(table, " %s\n", tensors[i].name);
        FILE *f = worker_open(folder, "out", i, "wb");
        fwrite(tensors[i].data, 1, tensors[i].bytes, f);
        if (fclose(f)) worker_fail("worker", "cannot write an output");
    }
    fclose(table);
}

static inline long worker_memory(void) {
    FILE *f = fopen("/proc/self/status", "r");
    long kib = 0;
    for (char line[256]; f && fgets(line, sizeof line, f);) sscanf(line, "VmHWM: %ld", &kib);
    if (f) fclose(f);
    return kib;
}

// What one of `runs` runs took.
static inline int64_t worker_sample(int64_t runs) {
    static clockid_t clock = -1;
    if (clock < 0)
        clock = getenv("BENCH_CLOCK") && strcmp(getenv("BENCH_CLOCK"), "cpu") == 0 ? CLOCK_THREAD_CPUTIME_ID :
                                                                                     CLOCK_MONOTONIC;
    int64_t begin = worker_clock(clock);
    for (int64_t i = 0; i < runs; i++)
        if (worker_run()) worker_fail("worker", "a run failed");
    return (worker_clock(clock) - begin) / runs;
}

static inline void worker_slice(double seconds) {
    static int64_t samples[WORKER_SAMPLES];
    int64_t begin = worker_now(), slice = (int64_t)(seconds * 1e9), runs = 1;
    int n = 0;
    while (worker_sample(runs) * runs < WORKER_UNIT_NS && runs < WORKER_UNIT_NS) runs *= 2;
    while (worker_now() - begin < slice / 8) worker_sample(runs);
    do samples[n++] = worker_sample(runs);
    while (n < WORKER_SAMPLES && worker_now() - begin < slice);
    printf("times");
    for (int i = 0; i < n; i++) printf(" %" PRId64, samples[i]);
    printf("\n");
}

static inline int worker_serve(
    const char *folder, const Tensor *outputs, int n, int64_t began, int64_t loaded, int64_t ran) {
    printf("ready %" PRId64 " %" PRId64 "\n", loaded - began, ran - loaded);
    fflush(stdout);
    for (char line[256]; fgets(line, sizeof line, stdin);) {
        double seconds;
        if (sscanf(line, "slice %lf", &seconds) == 1) worker_slice(seconds);
        else if (strncmp(line, "memory", 6) == 0) printf("memory %ld\n", worker_memory());
        else if (strncmp(line, "write", 5) == 0) {
            worker_write(folder, outputs, n);
            printf("done\n");
        }
        fflush(stdout);
    }
    return 0;
}

#endif
