// SPDX-License-Identifier: MIT OR Apache-2.0
// The core's own limit as a contestant of scripts/bench: a run is a fixed number of 32-bit multiply-adds that depend
// on nothing but registers, in as many independent chains as cover the unit's latency. Prints how many operations a
// run has (`ready OPERATIONS 0`); with the times of its slices that gives the peak under the same conditions as the
// models.
#include "worker.h"

#if defined(__AVX512F__)
enum { WIDTH = 64 };
#elif defined(__AVX__)
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif
enum { CHAINS = 12, STEPS = 4000 };
typedef float Vector __attribute__((vector_size(WIDTH)));

static volatile float seed = 1;

static int worker_run(void) {
    Vector chain[CHAINS], factor = (Vector){ 0 } + seed * 0.5f, term = (Vector){ 0 } + seed;
    for (int c = 0; c < CHAINS; c++) chain[c] = term * (float)c;
    for (int s = 0; s < STEPS; s++)
        for (int c = 0; c < CHAINS; c++) chain[c] = chain[c] * factor + term;
    Vector sum = chain[0];
    for (int c = 1; c < CHAINS; c++) sum += chain[c];
    float total = 0;
    for (size_t i = 0; i < WIDTH / sizeof(float); i++) total += sum[i];
    return total == -1;
}

int main(void) {
    int64_t operations = (int64_t)2 * STEPS * CHAINS * WIDTH / (int64_t)sizeof(float);
    worker_run();
    return worker_serve(".", NULL, 0, 0, operations, operations);
}
