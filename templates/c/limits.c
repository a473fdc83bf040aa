// SPDX-License-Identifier: MIT OR Apache-2.0
/* What a thread of this machine can do at most, beside which `burncc bench --profile` sets kernels: multiply-adds of
 * f32 on vectors as wide as the C compiler's flags name, and reading memory that no cache holds. The best of several
 * times, for others use the machine too; 0 where the compiler has no vectors.
 */
#include "vec.h"

#include <stdint.h>
#include <time.h>

/* Sums at a time: two units with a latency of 5 cycles want 10; with the operands they fit into 16 registers. */
enum { SUMS = 10, ROUNDS = 400000, TIMES = 7, PASSES = 4 };

void burncc_limits(double *gflops, double *gbytes, const void *memory, size_t bytes);

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifndef BURN_PORTABLE
/* x is one and y zero, which the compiler does not know. */
BURN_KERNEL static float multiply_adds(const burn_vf *x, const burn_vf *y)
{
    BURN_CONTRACT
    burn_vf sum[SUMS];
    float all = 0;
    for (int j = 0; j < SUMS; j++)
        sum[j] = *x;
    for (int64_t i = 0; i < ROUNDS; i++) {
        BURN_UNROLL
        for (int j = 0; j < SUMS; j++)
            sum[j] = sum[j] * *x + *y;
    }
    for (int j = 0; j < SUMS; j++)
        all += sum[j][0];
    return all;
}

BURN_KERNEL static float read_all(const burn_vf *from, int64_t n)
{
    burn_vf sum[8];
    float all = 0;
    for (int j = 0; j < 8; j++)
        sum[j] = from[j];
    for (int64_t i = 0; i + 8 <= n; i += 8) {
        BURN_UNROLL
        for (int j = 0; j < 8; j++)
            sum[j] += from[i + j];
    }
    for (int j = 0; j < 8; j++)
        all += sum[j][0];
    return all;
}

void burncc_limits(double *gflops, double *gbytes, const void *memory, size_t bytes)
{
    volatile float number = 1, sink;
    *gflops = *gbytes = 0;
    for (int i = 0; i < TIMES; i++) {
        burn_vf x, y; /* anew, or one time would do for all */
        for (int j = 0; j < BURN_VF_LANES; j++) {
            x[j] = number;
            y[j] = 1 - number;
        }
        const double start = seconds();
        sink = multiply_adds(&x, &y);
        const double rate = 2e-9 * BURN_VF_LANES * SUMS * ROUNDS / (seconds() - start);
        *gflops = rate > *gflops ? rate : *gflops;
    }
    for (int i = 0; i < PASSES; i++) {
        const double start = seconds();
        sink = read_all((const burn_vf *)memory, (int64_t)(bytes / sizeof(burn_vf)));
        const double rate = 1e-9 * (double)bytes / (seconds() - start);
        *gbytes = rate > *gbytes ? rate : *gbytes;
    }
    (void)sink;
}
#else
void burncc_limits(double *gflops, double *gbytes, const void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
    (void)seconds;
    *gflops = *gbytes = 0;
}
#endif
