// SPDX-License-Identifier: MIT OR Apache-2.0
// The same bits however a program's parts are run: on no threads, on pools of 1 to 4, on a pool that does the parts
// in reverse order on the calling thread, on one whose threads come in any order, one of them when the others are
// through, on one pool from two threads at a time, and in the same program compiled without --threads. In: PLAIN and
// THREADED, the two descriptors; their weights, files named on the command line or none. Out: the number of parts the
// caller's pool saw, or what differs.
#include "threads.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const burn_model PLAIN;
extern const burn_model THREADED;

enum { MOST = 32, ROUNDS = 3 };
typedef struct Ends { burn_tensor in[MOST], out[MOST]; void *work; } Ends;

static void *bytes_new(size_t n)
{
    void *p = aligned_alloc(64, (n + 127) / 64 * 64);
    if (!p)
        exit(2);
    return memset(p, 0x7f, n + 64); // huge floats
}

static void fill(const burn_tensor_info *info, void *data)
{
    unsigned state = 12345;
    for (size_t i = 0; i < info->bytes; i++)
        ((unsigned char *)data)[i] = 0;
    for (size_t i = 0; i < info->bytes / 4 && info->dtype == BURN_FLOAT; i++) {
        state = state * 1664525 + 1013904223;
        ((float *)data)[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    for (size_t i = 0; i < info->bytes / 8 && info->dtype == BURN_INT64; i++)
        ((int64_t *)data)[i] = (int64_t)(i % 2);
}

static Ends ends_new(const burn_model *m, size_t work_bytes)
{
    Ends e;
    memset(&e, 0, sizeof e);
    for (int i = 0; i < m->input_count; i++) {
        e.in[i] = (burn_tensor){.data = bytes_new(m->inputs[i].bytes), .bytes = m->inputs[i].bytes};
        fill(&m->inputs[i], e.in[i].data);
    }
    for (int i = 0; i < m->output_count; i++)
        e.out[i] = (burn_tensor){.data = bytes_new(m->outputs[i].bytes), .bytes = m->outputs[i].bytes};
    e.work = bytes_new(work_bytes);
    return e;
}

static void ends_free(Ends *e)
{
    for (int i = 0; i < MOST; i++) {
        free(e->in[i].data);
        free(e->out[i].data);
    }
    free(e->work);
}

static void compare(const burn_model *m, const Ends *got, const Ends *want, const char *what)
{
    for (int i = 0; i < m->output_count; i++)
        if (memcmp(got->out[i].data, want->out[i].data, m->outputs[i].bytes)) {
            fprintf(stderr, "output %d differs: %s\n", i, what);
            exit(1);
        }
}

static void *weights_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    long n = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    void *p = n >= 0 && !fseek(f, 0, SEEK_SET) ? bytes_new((size_t)n) : NULL;
    if (!p || fread(p, 1, (size_t)n, f) != (size_t)n)
        exit(2);
    fclose(f);
    return p;
}

static int seen; // parts

static void reverse(void *pool, int parts, void (*task)(void *argument, int part), void *argument)
{
    (void)pool;
    seen += parts;
    while (parts--)
        task(argument, parts);
}

typedef struct Late { void (*task)(void *argument, int part); void *argument; int part; } Late;

static void *late_part(void *argument)
{
    const Late *l = argument;
    l->task(l->argument, l->part);
    return NULL;
}

// A thread for each part, and one part, another each time, when all others are done: they have taken over its share.
static void late(void *pool, int parts, void (*task)(void *argument, int part), void *argument)
{
    pthread_t threads[MOST];
    Late all[MOST];
    int *const runs = pool, last = (*runs)++ % parts;
    if (parts > MOST)
        exit(2);
    for (int i = 0; i < parts; i++) {
        all[i] = (Late){task, argument, i};
        if (i != last && pthread_create(&threads[i], NULL, late_part, &all[i]))
            exit(2);
    }
    for (int i = 0; i < parts; i++)
        if (i != last)
            pthread_join(threads[i], NULL);
    task(argument, last);
}

typedef struct Caller { const burn_threads *threads; const void *weights; const Ends *want; } Caller;

static void *call(void *argument)
{
    const Caller *c = argument;
    const burn_model *m = &THREADED;
    Ends e = ends_new(m, m->workspace_bytes);
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < m->output_count; j++)
            memset(e.out[j].data, 0x7f, m->outputs[j].bytes);
        if (THREADED.run(c->threads, e.work, c->weights, e.in, e.out))
            exit(3);
        compare(m, &e, c->want, c->threads ? "with threads" : "without");
    }
    ends_free(&e);
    return NULL;
}

int main(int argc, char **argv)
{
    void *weights[2] = {NULL, NULL};
    for (int i = 1; i < argc && i < 3; i++)
        weights[i - 1] = weights_read(argv[i]);
    Ends want = ends_new(&PLAIN, PLAIN.workspace_bytes);
    if (PLAIN.run(NULL, want.work, weights[0], want.in, want.out))
        return 3;
    int runs = 0;
    const burn_threads own = {NULL, reverse}, odd = {&runs, late}, broken = {NULL, NULL};
    Caller c = {NULL, weights[1], &want};
    call(&c);
    c.threads = &own;
    call(&c);
    c.threads = &odd;
    call(&c);
    for (int count = 1; count <= 4; count++) {
        burn_threads pool;
        pthread_t other;
        if (burn_threads_open(&pool, count, 0))
            return 4;
        c.threads = &pool;
        if (pthread_create(&other, NULL, call, &c))
            return 4;
        call(&c);
        pthread_join(other, NULL);
        call(&c);
        burn_threads_close(&pool);
    }
    if (THREADED.run(&broken, want.work, weights[1], want.in, want.out) != BURN_EINVAL)
        return 5;
    ends_free(&want);
    free(weights[0]);
    free(weights[1]);
    printf("%d\n", seen / ROUNDS);
    return 0;
}
