// SPDX-License-Identifier: MIT OR Apache-2.0
/* What driver.c asks of its machine, where there is an operating system: the request is standard input, the answer
 * standard output.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_SAMPLES = 20000 };

static const double warmup_share = 0.2, sample_seconds = 20e-6; /* of the time to measure; shortest span worth timing */

static void stop(const char *why)
{
    fprintf(stderr, "the model's driver: %s\n", why);
    exit(3);
}

static void take(void *to, size_t bytes)
{
    if (bytes && fread(to, 1, bytes, stdin) != bytes)
        stop("the request ends early");
}

static void give(const void *from, size_t bytes)
{
    if (bytes && fwrite(from, 1, bytes, stdout) != bytes)
        stop("the answer cannot be written");
}

static void finish(void)
{
    if (fflush(stdout) != 0)
        stop("the answer cannot be written");
}

static unsigned char *allocate(size_t bytes)
{
    unsigned char *p = malloc(bytes ? bytes : 1);
    if (!p)
        stop("out of memory");
    return p;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Samples are milliseconds. */
static int measure(int (*job)(void *), void *argument, double seconds, Measured *out)
{
    const double start = now();
    double once;
    int64_t inner, warm = 0;
    int code;
    do {
        if ((code = job(argument)) != 0 || seconds <= 0)
            return code;
        once = (now() - start) / (double)++warm;
    } while (now() - start < seconds * warmup_share);
    inner = once < sample_seconds ? (int64_t)(sample_seconds / once) + 1 : 1;
    out->samples = (double *)(void *)allocate(MOST_SAMPLES * sizeof(double));
    for (double from = now(), end = from + seconds; out->n == 0 || (from < end && out->n < MOST_SAMPLES);
         from = now()) {
        for (int64_t i = 0; i < inner; i++, out->runs++)
            if ((code = job(argument)) != 0)
                return code;
        out->samples[out->n++] = 1e3 * (now() - from) / (double)inner;
    }
    return 0;
}
