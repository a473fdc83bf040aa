// SPDX-License-Identifier: MIT OR Apache-2.0
/* A program around a model, for processors that are not the one that burncc runs on (--runner): what it reads, runs and
 * answers. How that reaches it, memory and time are another file's, which follows it: driver_hosted.c where there is a
 * C library over an operating system, firmware/driver.c where there is none.
 *
 * In, all little-endian: "BURNRUN2"; double seconds (0: one run, else as many as take so long); int64_t bytes of the
 * weights, and these; for each input its dimensions and its elements; for each output the number of elements to have
 * room for. Out: "BURNRUN2"; int64_t code of the run; int64_t which buffer was written outside of (0: none; the inputs
 * count from 1 on, then the outputs, then the workspace); int64_t runs; int64_t bytes of stack that a run took (0:
 * nobody looked); int64_t n, n times double the milliseconds of a run, or what a counter counted; for each output its
 * dimensions and its elements. Elements are int64_t n, then n of them; of a string, int64_t length (-1: none is there)
 * and the bytes.
 *
 * Buffers stand between canaries. These, and what outputs and workspace hold before a run, are 0x7fc0beef: a NaN as
 * float.
 */
#ifndef MODEL
#include "../runtime/burn.h"
extern const burn_model model;
#define MODEL model
#endif
#include <stdint.h>
#include <string.h>

enum { MARGIN = 64, MOST_RANK = 8 };

static const char magic[8] = "BURNRUN2"; /* without a zero byte */
static const unsigned char canary[4] = {0xef, 0xbe, 0xc0, 0x7f};

/* What the other file has. stop: no answer then, and the status says so. */
static void stop(const char *why);
static void take(void *to, size_t bytes);
static void give(const void *from, size_t bytes);
static void finish(void);
static unsigned char *allocate(size_t bytes);

/* What a job took: n samples, runs that were measured, stack as in the answer. */
typedef struct Measured {
    double *samples;
    int64_t n, runs, stack;
} Measured;
/* Runs the job, once where seconds is 0, else as often as takes so long; returns what it returned. */
static int measure(int (*job)(void *), void *argument, double seconds, Measured *out);

typedef struct Block { /* MARGIN bytes of canary, `bytes` at data, MARGIN bytes of canary */
    unsigned char *start, *data;
    size_t bytes;
} Block;

static int64_t take_int(void)
{
    int64_t v;
    take(&v, sizeof v);
    return v;
}

static void give_int(int64_t v)
{
    give(&v, sizeof v);
}

static Block block_new(int64_t bytes)
{
    Block b;
    if (bytes < 0 || (uint64_t)bytes > SIZE_MAX - 3 * MARGIN)
        stop("a buffer is too large");
    b.bytes = (size_t)bytes;
    b.start = allocate(b.bytes + 3 * MARGIN);
    b.start += MARGIN - (uintptr_t)b.start % MARGIN; /* data is then aligned to MARGIN */
    b.data = b.start + MARGIN;
    for (size_t i = 0; i < b.bytes + 2 * MARGIN; i++)
        b.start[i] = canary[i % 4];
    return b;
}

static int block_intact(const Block *b)
{
    for (size_t i = 0; i < b->bytes + 2 * MARGIN; i++)
        if ((i < MARGIN || i >= MARGIN + b->bytes) && b->start[i] != canary[i % 4])
            return 0;
    return 1;
}

static int64_t count_of(int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    return n;
}

static int64_t element_bytes(const burn_tensor_info *info)
{
    return (int64_t)burn_element_bytes(info->dtype);
}

static void take_input(const burn_tensor_info *info, Block *to, int64_t *shape)
{
    take(shape, (size_t)info->rank * sizeof *shape);
    const int64_t n = take_int();
    *to = block_new(n * element_bytes(info));
    if (info->dtype != BURN_STRING) {
        take(to->data, to->bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const size_t length = (size_t)take_int();
        unsigned char *const text = allocate(length + 1);
        take(text, length);
        text[length] = 0;
        ((const char **)(void *)to->data)[i] = (const char *)text;
    }
}

static void give_output(const burn_tensor_info *info, const Block *from, const int64_t *shape)
{
    const int64_t n = count_of(info->rank, shape), bytes = n * element_bytes(info);
    if (n < 0 || bytes > (int64_t)from->bytes)
        stop("an output has more elements than its buffer");
    give(shape, (size_t)info->rank * sizeof *shape);
    give_int(n);
    if (info->dtype != BURN_STRING)
        give(from->data, (size_t)bytes);
    for (int64_t i = 0; i < n && info->dtype == BURN_STRING; i++) {
        const char *const text = ((const char *const *)(const void *)from->data)[i];
        const int64_t length = text ? (int64_t)strlen(text) : -1;
        give_int(length);
        give(text, length > 0 ? (size_t)length : 0);
    }
}

typedef struct Job {
    void *work, *weights;
    burn_tensor *tensors; /* inputs, then outputs */
} Job;

static int run_model(void *job)
{
    const Job *const j = (const Job *)job;
    return MODEL.run(NULL, j->work, j->weights, j->tensors, j->tensors + MODEL.input_count);
}

int main(void)
{
    const int n_in = MODEL.input_count, n = n_in + MODEL.output_count;
    Block *const blocks = (Block *)(void *)allocate(((size_t)n + 2) * sizeof *blocks);
    int64_t(*const shapes)[MOST_RANK] = (int64_t(*)[MOST_RANK])(void *)allocate(((size_t)n + 1) * sizeof *shapes);
    Job j = {NULL, NULL, (burn_tensor *)(void *)allocate(((size_t)n + 1) * sizeof *j.tensors)};
    Measured took = {NULL, 0, 0, 0};
    char opening[sizeof magic];
    double seconds;
    int64_t outside = 0;
    take(opening, sizeof opening);
    take(&seconds, sizeof seconds);
    if (memcmp(opening, magic, sizeof magic) != 0)
        stop("the request is not for this driver");
    const Block weights = block_new(take_int());
    take(weights.data, weights.bytes);
    blocks[n] = block_new((int64_t)MODEL.workspace_bytes);
    for (int i = 0; i < n; i++) {
        const burn_tensor_info *const info = i < n_in ? &MODEL.inputs[i] : &MODEL.outputs[i - n_in];
        if (i < n_in)
            take_input(info, &blocks[i], shapes[i]);
        else
            blocks[i] = block_new(take_int() * element_bytes(info));
        if (i >= n_in && info->dtype == BURN_STRING)
            memset(blocks[i].data, 0, blocks[i].bytes); /* pointers */
        j.tensors[i].data = blocks[i].data;
        j.tensors[i].bytes = blocks[i].bytes;
        j.tensors[i].shape = shapes[i];
        j.tensors[i].dtype = info->dtype;
        j.tensors[i].rank = info->rank;
    }
    j.work = blocks[n].data;
    j.weights = MODEL.weights_bytes ? weights.data : NULL;
    const int code = measure(run_model, &j, seconds, &took);
    for (int i = n; i >= 0; i--)
        outside = block_intact(&blocks[i]) ? outside : i + 1;
    give(magic, sizeof magic);
    give_int(code);
    give_int(outside);
    give_int(took.runs);
    give_int(took.stack);
    give_int(took.n);
    give(took.samples, (size_t)took.n * sizeof *took.samples);
    for (int i = n_in; i < n && code == 0; i++)
        give_output(&MODEL.outputs[i - n_in], &blocks[i], shapes[i]);
    finish();
    return 0;
}
