// SPDX-License-Identifier: MIT OR Apache-2.0
// The core's other limit as a contestant of scripts/bench: a run reads a block of memory that no cache holds. Prints
// how many bytes that is (`ready BYTES 0`); with the times of its slices that gives the bandwidth that one core reads
// at.
#include "worker.h"

enum { LANES = 16, CHAINS = 8 };
typedef float Vector __attribute__((vector_size(LANES * sizeof(float))));

static const size_t bytes = (size_t)512 << 20;
static Vector *block;

static int worker_run(void) {
    Vector sum[CHAINS] = { 0 };
    size_t n = bytes / sizeof(Vector);
    for (size_t i = 0; i < n; i += CHAINS)
        for (size_t c = 0; c < CHAINS; c++) sum[c] += block[i + c];
    for (int c = 1; c < CHAINS; c++) sum[0] += sum[c];
    float total = 0;
    for (int i = 0; i < LANES; i++) total += sum[0][i];
    return total == -1;
}

int main(void) {
    block = worker_alloc(bytes);
    memset(block, 0, bytes);
    worker_run();
    return worker_serve(".", NULL, 0, 0, (int64_t)bytes, (int64_t)bytes);
}
