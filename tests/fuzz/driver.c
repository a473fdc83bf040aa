/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Runs the models of a batch, each in a child process. In: a folder with N.in, the inputs of model N. Out: N.out,
 * its outputs, and a line on standard output, `N ok` or what went wrong. A tensor in a file is its rank,
 * dimensions and bytes, each number an int64; after the inputs stand the sizes of the outputs' buffers (-1: as the
 * model says).
 * models.h, made with the batch, includes the models' headers and lists their descriptors. Buffers stand between
 * canaries. With THREADS the same bits are asked of the parts in reverse order and of a pool of threads. */
#define _POSIX_C_SOURCE 200809L
#include "models.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef THREADS
#include "threads.h"
#endif

enum { MARGIN = 64, MAX_TENSORS = 64, MAX_RANK = 16, SECONDS = 30 };
enum { UNREADABLE = 40, OUTSIDE = 41, INPUT_CHANGED = 42, OTHER_BITS = 43 };

static const unsigned char poison[4] = { 0xef, 0xbe, 0xc0, 0x7f };      /* as float: a NaN */

typedef struct Buffer { unsigned char *whole, *at, *copy; size_t bytes; int64_t shape[MAX_RANK]; } Buffer;

static void fill(unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++) p[i] = poison[i % 4];
}

static int buffer_open(Buffer *b, size_t bytes) {
    size_t all = (bytes + MARGIN - 1) / MARGIN * MARGIN + 2 * MARGIN;
    void *p = NULL;
    if (posix_memalign(&p, 64, all)) return 0;
    b->whole = p;
    b->at = b->whole + MARGIN;
    b->bytes = bytes;
    fill(b->whole, all);
    return 1;
}

static int intact(const Buffer *b) {
    for (size_t i = 0; i < MARGIN; i++)
        if (b->whole[i] != poison[i % 4] || b->at[b->bytes + i] != poison[(b->bytes + i) % 4]) return 0;
    return !b->copy || !memcmp(b->at, b->copy, b->bytes);
}

static int read_tensor(FILE *f, Buffer *b) {
    int64_t rank, bytes;
    if (fread(&rank, 8, 1, f) != 1 || rank > MAX_RANK || fread(b->shape, 8, (size_t)rank, f) != (size_t)rank
        || fread(&bytes, 8, 1, f) != 1)
        return 0;
    if (!buffer_open(b, (size_t)bytes) || fread(b->at, 1, b->bytes, f) != b->bytes) return 0;
    b->copy = malloc(b->bytes + 1);
    if (b->copy) memcpy(b->copy, b->at, b->bytes);
    return b->copy != NULL;
}

static int write_outputs(const burn_model *m, const char *path, const Buffer *out) {
    FILE *f = fopen(path, "wb");
    for (int i = 0; f && i < m->output_count; i++) {
        int64_t rank = m->outputs[i].rank, bytes = (int64_t)out[i].bytes;
        fwrite(&rank, 8, 1, f);
        fwrite(out[i].shape, 8, (size_t)rank, f);
        fwrite(&bytes, 8, 1, f);
        fwrite(out[i].at, 1, out[i].bytes, f);
    }
    return f && !fclose(f) ? 0 : UNREADABLE;
}

#ifdef THREADS
static void reverse(void *pool, int parts, void (*task)(void *argument, int part), void *argument) {
    (void)pool;
    while (parts--) task(argument, parts);
}

// Once more on these threads, in memory that holds nothing of the run before.
static int again(const burn_model *m, const burn_threads *threads, Buffer *work, const burn_tensor *ins,
    const burn_tensor *outs, Buffer *out) {
    int different = 0;
    fill(work->at, work->bytes);
    for (int i = 0; i < m->output_count; i++) {
        out[i].copy = malloc(out[i].bytes + 1);
        if (!out[i].copy) return UNREADABLE;
        memcpy(out[i].copy, out[i].at, out[i].bytes);
        fill(out[i].at, out[i].bytes);
    }
    const int code = m->run(threads, work->at, NULL, ins, outs);
    for (int i = 0; i < m->output_count; i++) {
        different |= memcmp(out[i].at, out[i].copy, out[i].bytes) != 0;
        free(out[i].copy);
        out[i].copy = NULL;
    }
    return code ? -code : different ? OTHER_BITS : 0;
}

static int on_threads(
    const burn_model *m, Buffer *work, const burn_tensor *ins, const burn_tensor *outs, Buffer *out) {
    const burn_threads backwards = { NULL, reverse };
    burn_threads pool;
    int code = again(m, &backwards, work, ins, outs, out);
    if (code || burn_threads_open(&pool, m->parts, BURN_THREADS_NO_SPIN)) return code ? code : UNREADABLE;
    code = again(m, &pool, work, ins, outs, out);
    burn_threads_close(&pool);
    return code;
}
#endif

static int run(int n, const char *folder) {
    const burn_model *m = models[n];
    static Buffer in[MAX_TENSORS], out[MAX_TENSORS], work;
    burn_tensor ins[MAX_TENSORS + 1] = { { 0 } }, outs[MAX_TENSORS + 1] = { { 0 } };
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.in", folder, n);
    FILE *f = fopen(path, "rb");
    if (!f || m->input_count > MAX_TENSORS || m->output_count > MAX_TENSORS || !buffer_open(&work, m->workspace_bytes))
        return UNREADABLE;
    for (int i = 0; i < m->input_count; i++) {
        if (!read_tensor(f, &in[i])) return UNREADABLE;
        ins[i].data = in[i].at;
        ins[i].bytes = in[i].bytes;
        ins[i].shape = in[i].shape;
    }
    for (int i = 0; i < m->output_count; i++) {
        int64_t room;
        if (fread(&room, 8, 1, f) != 1 || !buffer_open(&out[i], room < 0 ? m->outputs[i].bytes : (size_t)room))
            return UNREADABLE;
        for (int d = 0; d < m->outputs[i].rank; d++) out[i].shape[d] = m->outputs[i].shape[d];
        outs[i].data = out[i].at;
        outs[i].bytes = out[i].bytes;
        outs[i].shape = out[i].shape;
    }
    fclose(f);
    int code = m->run(NULL, work.at, NULL, ins, outs);
#ifdef THREADS
    if (!code) code = -on_threads(m, &work, ins, outs, out);
#endif
    if (code) return -code;
    for (int i = 0; i < m->input_count; i++) if (!intact(&in[i])) return INPUT_CHANGED;
    for (int i = 0; i < m->output_count; i++) if (!intact(&out[i])) return OUTSIDE;
    if (!intact(&work)) return OUTSIDE;
    snprintf(path, sizeof path, "%s/%d.out", folder, n);
    return write_outputs(m, path, out);
}

int main(int argc, char **argv) {
    for (int i = 0; argc > 1 && i < (int)(sizeof models / sizeof *models); i++) {
        int status = 0;
        fflush(stdout);
        pid_t pid = fork();
        if (!pid) {
            alarm(SECONDS);
            _exit(run(i, argv[1]));
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0) return 1;
        if (WIFSIGNALED(status))
            printf("%d %s\n", i, WTERMSIG(status) == SIGALRM ? "no end" : strsignal(WTERMSIG(status)));
        else if (WEXITSTATUS(status) == OUTSIDE) printf("%d wrote outside a buffer\n", i);
        else if (WEXITSTATUS(status) == INPUT_CHANGED) printf("%d changed or wrote outside an input\n", i);
        else if (WEXITSTATUS(status) == OTHER_BITS) printf("%d computed other bits on threads\n", i);
        else if (WEXITSTATUS(status)) printf("%d run returned %d\n", i, -WEXITSTATUS(status));
        else printf("%d ok\n", i);
    }
    return 0;
}
