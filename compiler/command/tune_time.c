// SPDX-License-Identifier: MIT OR Apache-2.0
// Times forms of one kernel against each other, in a child process with a time limit.
//
// In: functions over the same operands. Out: milliseconds of processor time for each, or that it computes something
// else. The idea: as in the model, activations are where the kernel before left them, in cache when they fit, and
// weights come from afar: calls go round copies of them that are, together, as large as the model's. Forms take
// turns, forwards and backwards, so that what disturbs the machine disturbs all; of each form's samples the lower
// quartile counts.
#define _DEFAULT_SOURCE
#include "tune.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 101, MIN_ROUNDS = 5, MAX_COPIES = 256, PATIENCE = 60 };    // PATIENCE: seconds more than asked for
static const double sample_seconds = 100e-6;            // shortest span worth timing
static const double allowed_error = 1e-3;               // of the largest element: Winograd's is some 1e-6

typedef struct Outcome { bool done; double ms[MAX_FORMS]; bool wrong[MAX_FORMS]; } Outcome;

typedef struct Form {
    unsigned char *at[MAX_ALONE], *scratch;             // operands; at[packed] is set for every call
    unsigned char *copies; size_t copy_bytes; int n_copies, next;
    int inner;                                          // calls in a sample
    double sample[MAX_ROUNDS];
} Form;

static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double wall_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---------------------------------------------------------------- in the child
static void call(const Contest *c, Form *f, int i) {
    if (f->n_copies) {
        f->at[c->alone.packed] = f->copies + f->copy_bytes * (size_t)f->next;
        f->next = (f->next + 1) % f->n_copies;
    }
    c->functions[i](f->at, f->scratch);
}

static void open_form(Arena *a, const Contest *c, Form *f, const Kernel *k, unsigned char *const *at) {
    memcpy(f->at, at, sizeof f->at);
    f->scratch = arena_alloc(a, (size_t)k->scratch_bytes + 64);
    if (c->alone.packed < 0) return;
    f->copy_bytes = ((size_t)k->packed->bytes + 63) / 64 * 64;
    size_t most = c->cold_bytes / f->copy_bytes;
    f->n_copies = most < 1 ? 1 : most > MAX_COPIES ? MAX_COPIES : (int)most;
    f->copies = arena_alloc(a, f->copy_bytes * (size_t)f->n_copies + 64);
    k->packed->fill(k->packed, f->copies);
    for (int i = 1; i < f->n_copies; i++) memcpy(f->copies + f->copy_bytes * (size_t)i, f->copies, f->copy_bytes);
}

static bool same_result(const Type *t, const void *x, const void *y, size_t bytes) {
    if (t->dtype != DT_F32) return !memcmp(x, y, bytes);
    const float *a = x, *b = y;
    double largest = 0, off = 0;
    for (size_t i = 0; i < bytes / sizeof *a; i++) {
        if (isnan(a[i]) != isnan(b[i])) return false;
        if (isfinite(a[i]) && fabs((double)a[i]) > largest) largest = fabs((double)a[i]);
        if (isfinite(a[i]) && fabs((double)a[i] - (double)b[i]) > off) off = fabs((double)a[i] - (double)b[i]);
    }
    return off <= allowed_error * largest;
}

// The first form's result is what the others' have to be.
static void compare(Arena *a, const Contest *c, Form *forms, Outcome *o) {
    Value *v = c->alone.operand[c->alone.result];
    size_t bytes = (size_t)type_bytes_upper(v->graph, &v->type);
    unsigned char *to = forms[0].at[c->alone.result], *right = arena_alloc(a, bytes + 64);
    for (int i = 0; i < c->n; i++) {
        memset(to, 0, bytes);
        double from = processor_time();
        call(c, &forms[i], i);
        call(c, &forms[i], i);
        double once = (processor_time() - from) / 2;
        forms[i].inner = once < sample_seconds ? (int)(sample_seconds / (once + 1e-9)) + 1 : 1;
        if (i == 0) memcpy(right, to, bytes);
        o->wrong[i] = !same_result(&v->type, right, to, bytes);
    }
}

static void take_sample(const Contest *c, Form *f, int i, int round) {
    double from = processor_time();
    for (int j = 0; j < f->inner; j++) call(c, f, i);
    f->sample[round] = 1e3 * (processor_time() - from) / f->inner;
}

static int compare_doubles(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

NORETURN static void child(const Contest *c, Outcome *o) {
    for (int i = 1; i < 32; i++) signal(i, SIG_DFL);
    alarm((unsigned)c->seconds + PATIENCE);
    Arena *a = arena_new();
    Form *forms = NEW_ARRAY(a, Form, c->n);
    unsigned char *at[MAX_ALONE] = { 0 };
    uint64_t state = 1;
    for (int i = 0; i < c->alone.n; i++) {
        const Value *v = c->alone.operand[i];
        if (i != c->alone.packed) at[i] = v->data ? v->data->data : tensor_random(a, v, &state)->data;
    }
    for (int i = 0; i < c->n; i++) open_form(a, c, &forms[i], c->kernels[i], at);
    compare(a, c, forms, o);
    int rounds = 0;
    for (double end = wall_time() + c->seconds; rounds < MAX_ROUNDS && (rounds < MIN_ROUNDS || wall_time() < end);
         rounds++)
        for (int i = 0; i < c->n; i++) {
            int turn = rounds % 2 ? c->n - 1 - i : i;
            take_sample(c, &forms[turn], turn, rounds);
        }
    for (int i = 0; i < c->n; i++) {
        qsort(forms[i].sample, (size_t)rounds, sizeof(double), compare_doubles);
        o->ms[i] = forms[i].sample[rounds / 4];
    }
    o->done = true;
    _exit(0);
}

// ---------------------------------------------------------------- in the parent
const char *contest_run(Arena *a, const Contest *c, double *ms) {
    Outcome *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (o == MAP_FAILED) return "not enough memory";
    fflush(NULL);
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) child(c, o);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) { }
    const char *why = pid < 0 ? strerror(errno) :
        WIFSIGNALED(status)   ? strsignal(WTERMSIG(status)) :
        o->done               ? NULL :
                                "the child process ended early";
    for (int i = 0; i < c->n && !why; i++) {
        ms[i] = o->wrong[i] ? HUGE_VAL : o->ms[i];
        if (o->wrong[i])
            diag_warn(WARN_tuning,
                NULL, "%s as '%s' gives other results: not taken", c->kernels[i]->signature, c->kernels[i]->choice);
    }
    why = why ? arena_strdup(a, why) : NULL;
    munmap(o, sizeof *o);
    return why;
}
