// SPDX-License-Identifier: MIT OR Apache-2.0
// Generated code runs in a child process with a time limit, so that its crash is a line of ours and not our crash.
//
// In: a built model and its inputs. Out: outputs, or one line about what went wrong. Every buffer is shared with the
// child and stands between canaries and two pages that nobody may touch:
//
//   [no access] ... canary | data | canary ... [no access]
//
// The canary, and what outputs and workspace hold before a run, is 0x7fc0beef (little endian): a NaN as float, so
// that reading where nothing was written shows in the results. With AddressSanitizer's runtime in the process
// (LD_PRELOAD), code built for it may not even read the canaries.
#define _DEFAULT_SOURCE
#include "command.h"
#include "config.h"
#include "runtime/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// MARGIN: at least so many canary bytes on either side; also the alignment
enum { MARGIN = 64, MAX_SAMPLES = 200000, MAX_TEXTS = 1 << 28 };
static const uint8_t canary[4] = { 0xef, 0xbe, 0xc0, 0x7f };
static const double warmup_share = 0.2,                 // of the time budget
                    sample_seconds = 20e-6;             // shortest span worth timing

typedef struct Region { uint8_t *map, *data; size_t map_bytes, inner_bytes, page, bytes; const char *name; } Region;

typedef struct Shared {
    bool done;
    int code;
    int64_t runs;
    int samples;
    GpuSplit gpu;
    char why[256];
    float ms[MAX_SAMPLES];
} Shared;

typedef struct Job {
    const Built *built;
    Region *in, *out, work;
    int n_in, n_out;
    Shared *shared;
    double seconds;                                     // 0: one run, else measure
    void (*ran)(void *); void *argument;                // after each run that is timed; NULL: nothing
    burn_tensor *in_args, *out_args;
    int64_t (*out_shapes)[MAX_RANK];                    // what the run says of its outputs; shared with the child
    // strings of the outputs, shared too: their elements become places in it, for addresses are the child's
    char *texts; size_t texts_used;
} Job;

// ---------------------------------------------------------------- buffers

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static void poison(uint8_t *from, uint8_t *end) {
    for (; from < end; from++) *from = canary[(uintptr_t)from % sizeof canary];
}

static bool poisoned(const uint8_t *from, const uint8_t *end) {
    for (; from < end; from++)
        if (*from != canary[(uintptr_t)from % sizeof canary]) return false;
    return true;
}

static bool region_open(Region *r, size_t bytes, const char *name) {
    r->page = (size_t)sysconf(_SC_PAGESIZE);
    // all of it would be written: no machine to bring down for loose bounds
    if (bytes / r->page > (size_t)sysconf(_SC_PHYS_PAGES) / 2) return false;
    r->bytes = bytes;
    r->name = name;
    r->inner_bytes = round_up(round_up(bytes, MARGIN) + 2 * MARGIN, r->page);
    r->map_bytes = r->inner_bytes + 2 * r->page;
    r->map = mmap(NULL, r->map_bytes, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->map == MAP_FAILED || mprotect(r->map + r->page, r->inner_bytes, PROT_READ | PROT_WRITE)) {
        if (r->map == MAP_FAILED) r->map = NULL;
        return false;
    }
    uint8_t *inner = r->map + r->page, *end = inner + r->inner_bytes;
    r->data = end - MARGIN - round_up(bytes, MARGIN);   // close to the end, where overruns are likelier
    poison(inner, end);
    return true;
}

static bool region_intact(const Region *r) {
    const uint8_t *inner = r->map + r->page;
    return poisoned(inner, r->data) && poisoned(r->data + r->bytes, inner + r->inner_bytes);
}

static void region_close(Region *r) {
    if (r->map) munmap(r->map, r->map_bytes);
}

// ---------------------------------------------------------------- in the child

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef int RunFn(Job *j, void *session);

static int run_cpu(Job *j, void *threads) {
    return j->built->model->run(threads, j->work.data, j->built->weights, j->in_args, j->out_args);
}

static int measure(Job *j, RunFn *run, void *session) {
    Shared *s = j->shared;
    double start = now(), once;
    int64_t warm = 0;
    do {
        int code = run(j, session);
        if (code) return code;
        once = (now() - start) / (double)++warm;
    } while (now() - start < j->seconds * warmup_share);
    int64_t inner = once < sample_seconds && !j->ran ? (int64_t)(sample_seconds / once) + 1 : 1;
    if (j->ran) j->ran(j->argument);
    double from = now(), end = from + j->seconds;
    do {
        for (int64_t i = 0; i < inner; i++) {
            int code = run(j, session);
            if (code) return code;
        }
        double to = now();
        s->ms[s->samples++] = (float)(1e3 * (to - from) / (double)inner);
        s->runs += inner;
        if (j->ran) j->ran(j->argument);
        from = now();
    } while (from < end && s->samples < MAX_SAMPLES);
    return 0;
}

#if HAVE_VULKAN
static const double split_share = 0.2;                  // of the time budget, once more

static int run_gpu(Job *j, void *session) {
    return burn_vk_run(session, j->in_args, j->out_args);
}

static int child_gpu(Job *j) {
    burn_vk *vk = NULL;
    burn_vk_session *session = NULL;
    int code = burn_vk_open(&vk, NULL);
    if (!code) code = burn_vk_load(vk, j->built->gpu, j->built->weights, &session);
    if (!code) code = j->seconds > 0 ? measure(j, run_gpu, session) : run_gpu(j, session);
    if (!code && j->seconds > 0)
        code = gpu_split(j->built->gpu, session, j->in_args, j->seconds * split_share, &j->shared->gpu);
    if (code) snprintf(j->shared->why, sizeof j->shared->why, "%s", burn_vk_last_error(vk));
    burn_vk_session_free(session);
    burn_vk_close(vk);
    return code;
}
#else
static int child_gpu(Job *j) {
    snprintf(j->shared->why, sizeof j->shared->why, "this burncc is built without Vulkan");
    return BURN_ENODEV;
}
#endif

// The elements that the run made of output i; -1 when its shape makes no sense.
static int64_t output_count(const Job *j, int i) {
    const Type *t = &j->built->plan->graph->outputs.at[i]->type;
    if (type_is_static(t)) return type_count(t);
    int64_t count = 1, room = (int64_t)(j->out[i].bytes / dtype_size(t->dtype));
    for (int k = 0; k < t->rank; k++) {
        int64_t d = j->out_shapes[i][k];
        if (d < 0 || (d > 0 && count > room / d)) return -1;
        count *= d;
    }
    return count;
}

// Copies the strings of the outputs where the parent sees them, each element then being its place there.
static int keep_strings(Job *j) {
    for (int i = 0; i < j->n_out; i++) {
        if (j->built->plan->graph->outputs.at[i]->type.dtype != DT_STRING) continue;
        const char **at = (const char **)(void *)j->out[i].data;
        for (int64_t k = 0, n = output_count(j, i); k < n; k++) {
            size_t length = at[k] ? strlen(at[k]) : 0;
            if (!at[k] || length >= MAX_TEXTS - j->texts_used) {
                snprintf(j->shared->why, sizeof j->shared->why, "output '%s' has %s", j->out[i].name,
                    at[k] ? "too long strings" : "an element that is no string");
                return BURN_ELIMIT;
            }
            memcpy(j->texts + j->texts_used, at[k], length + 1);
            at[k] = (const char *)(uintptr_t)j->texts_used;
            j->texts_used += length + 1;
        }
    }
    return 0;
}

// Tells AddressSanitizer, if it is there, that what lies around the data is nobody's.
static void margins_forbid(const Job *j) {
    void *self = dlopen(NULL, RTLD_LAZY);
    void (*forbid)(const volatile void *, size_t) = NULL;
    void *symbol = self ? dlsym(self, "__asan_poison_memory_region") : NULL;
    // ISO C has no cast between pointers to objects and to functions
    memcpy(&forbid, &symbol, sizeof symbol);
    for (int i = 0; forbid && i < j->n_in + j->n_out + 1; i++) {
        const Region *r = i < j->n_in ? &j->in[i] : i < j->n_in + j->n_out ? &j->out[i - j->n_in] : &j->work;
        const uint8_t *inner = r->map + r->page, *end = inner + r->inner_bytes;
        forbid(inner, (size_t)(r->data - inner));
        forbid(r->data + r->bytes, (size_t)(end - r->data) - r->bytes);
    }
}

static int child_cpu(Job *j) {
    burn_threads threads = { NULL, NULL };
    const int parts = j->built->model->parts;
    int code = parts ? burn_threads_open(&threads, parts, 0) : 0;
    if (code) snprintf(j->shared->why, sizeof j->shared->why, "cannot start %d threads", parts);
    if (!code) code = j->seconds > 0 ? measure(j, run_cpu, &threads) : run_cpu(j, &threads);
    burn_threads_close(&threads);
#if HAVE_VULKAN
    if (code && !*j->shared->why) snprintf(j->shared->why, sizeof j->shared->why, "%s", burn_gpu_error());
#endif
    return code;
}

static void child_begin(int timeout) {
    for (int i = 1; i < 32; i++) signal(i, SIG_DFL);
    alarm((unsigned)timeout);
}

NORETURN static void child(Job *j, int timeout) {
    child_begin(timeout);
    margins_forbid(j);
    int code = j->built->gpu ? child_gpu(j) : child_cpu(j);
    if (!code && j->seconds <= 0) code = keep_strings(j);
    j->shared->code = code;
    j->shared->done = true;
    _exit(0);
}

// ---------------------------------------------------------------- in the parent

// How the child ended; NULL: by itself.
static const char *child_end(Arena *a, pid_t pid, int timeout) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return "the child process is lost";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return arena_printf(a, "no end after %d s", timeout);
    return WIFSIGNALED(status) ? arena_printf(a, "crashed: %s", strsignal(WTERMSIG(status))) : NULL;
}

static const char *outcome(Arena *a, const Job *j, pid_t pid, int timeout) {
    const char *why = child_end(a, pid, timeout);
    if (why) return why;
    if (!j->shared->done) return "the child process ended early";
    if (j->shared->code)
        return arena_printf(a, "run returned %d%s%s", j->shared->code, *j->shared->why ? ": " : "", j->shared->why);
    for (int i = 0; i < j->n_in; i++)
        if (!region_intact(&j->in[i])) return arena_printf(a, "wrote outside input '%s'", j->in[i].name);
    for (int i = 0; i < j->n_out; i++)
        if (!region_intact(&j->out[i])) return arena_printf(a, "wrote outside output '%s'", j->out[i].name);
    return region_intact(&j->work) ? NULL : "wrote outside the workspace";
}

static burn_tensor tensor_of(const Type *t, void *data, size_t bytes, int64_t *shape) {
    return (burn_tensor){ data, bytes, shape, (burn_dtype)(int)t->dtype, t->rank };
}

static bool job_open(Arena *a, Job *j, const Inputs *in) {
    const Built *b = j->built;
    const Graph *g = b->plan->graph;
    j->n_in = g->inputs.n;
    j->n_out = g->outputs.n;
    j->in = NEW_ARRAY(a, Region, j->n_in);
    j->out = NEW_ARRAY(a, Region, j->n_out);
    j->in_args = NEW_ARRAY(a, burn_tensor, j->n_in + 1);
    j->out_args = NEW_ARRAY(a, burn_tensor, j->n_out + 1);
    j->shared = mmap(NULL, sizeof *j->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j->shared == MAP_FAILED) j->shared = NULL;
    j->out_shapes = mmap(NULL, sizeof *j->out_shapes * (size_t)(j->n_out + 1), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j->out_shapes == MAP_FAILED) j->out_shapes = NULL;
    j->texts = mmap(NULL, MAX_TEXTS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (j->texts == MAP_FAILED) j->texts = NULL;
    size_t work = b->model ? b->model->workspace_bytes : 0;
    bool ok = j->shared && j->out_shapes && j->texts && region_open(&j->work, work, "workspace");
    if (ok) poison(j->work.data, j->work.data + work);
    for (int i = 0; ok && i < j->n_in; i++) {
        size_t bytes = (size_t)type_bytes(&in->at[i]->type);
        ok = region_open(&j->in[i], bytes, g->inputs.at[i]->name);
        if (ok && bytes) memcpy(j->in[i].data, in->at[i]->data, bytes);
        if (ok) j->in_args[i] = tensor_of(&in->at[i]->type, j->in[i].data, bytes, in->at[i]->type.dim);
    }
    for (int i = 0; ok && i < j->n_out; i++) {
        const Type *t = &g->outputs.at[i]->type;
        size_t bytes = output_bytes(b->plan->graph, in, t);
        ok = region_open(&j->out[i], bytes, g->output_names.at[i]);
        if (!ok) break;
        if (t->dtype == DT_STRING) memset(j->out[i].data, 0, bytes);        // pointers
        else poison(j->out[i].data, j->out[i].data + bytes);
        j->out_args[i] = tensor_of(t, j->out[i].data, bytes, j->out_shapes[i]);
    }
    return ok;
}

static void job_close(Job *j) {
    for (int i = 0; i < j->n_in; i++) region_close(&j->in[i]);
    for (int i = 0; i < j->n_out; i++) region_close(&j->out[i]);
    region_close(&j->work);
    if (j->out_shapes) munmap(j->out_shapes, sizeof *j->out_shapes * (size_t)(j->n_out + 1));
    if (j->texts) munmap(j->texts, MAX_TEXTS);
    if (j->shared) munmap(j->shared, sizeof *j->shared);
}

static const char *job_run(Arena *a, Job *j, int timeout) {
    fflush(NULL);                                       // nothing twice
    pid_t pid = fork();
    if (pid == 0) child(j, timeout);
    return pid < 0 ? arena_printf(a, "cannot start a process: %s", strerror(errno)) : outcome(a, j, pid, timeout);
}

// Places in the child's texts become strings of our own.
static const char *take_strings(Arena *a, const Job *j, Tensor *t) {
    const char **at = t->data;
    for (int64_t k = 0, n = type_count(&t->type); k < n; k++) {
        uintptr_t place = (uintptr_t)at[k];
        if (place >= MAX_TEXTS) return "gave strings that cannot be read";
        at[k] = arena_strndup(a, j->texts + place, strnlen(j->texts + place, MAX_TEXTS - place));
    }
    return NULL;
}

const char *sandbox_run(Arena *a, const Built *b, const Inputs *in, Tensor **outputs, int timeout) {
    if (b->program) return remote_run(a, b, in, 0, timeout, &(Remote){ .outputs = outputs });
    Job j = { .built = b };
    const char *why = job_open(a, &j, in) ?
        job_run(a, &j, timeout) :
        "not enough memory for the buffers; lower upper bounds (--dim NAME=LO..HI) make them smaller";
    const Graph *g = b->plan->graph;
    for (int i = 0; !why && i < j.n_out; i++) {
        Type t = g->outputs.at[i]->type;
        bool fixed = type_is_static(&t);
        for (int k = 0; k < t.rank; k++) {
            if (!fixed) t.dim[k] = j.out_shapes[i][k];
            if (t.dim[k] < 0)
                why = arena_printf(a, "gave output '%s' the size %lld", g->output_names.at[i], (long long)t.dim[k]);
        }
        if (why || (size_t)type_bytes(&t) > j.out[i].bytes) {
            why = why ? why : arena_printf(a, "gave output '%s' more than its buffer holds", g->output_names.at[i]);
            break;
        }
        outputs[i] = tensor_new(a, t);
        if (type_bytes(&t)) memcpy(outputs[i]->data, j.out[i].data, (size_t)type_bytes(&t));
        if (t.dtype == DT_STRING) why = take_strings(a, &j, outputs[i]);
    }
    job_close(&j);
    return why;
}

static int compare_floats(const void *x, const void *y) {
    float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

static int compare_doubles(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static const char *remote_time(Arena *a, const Built *b, const Inputs *in, double seconds, int timeout, Timing *out) {
    Remote r = { 0 };
    const char *why = remote_run(a, b, in, seconds, timeout, &r);
    if (why) return why;
    if (!r.n_samples) return "gave no times";
    qsort(r.samples, (size_t)r.n_samples, sizeof *r.samples, compare_doubles);
    *out = (Timing){ .median_ms = r.samples[r.n_samples / 2], .min_ms = r.samples[0], .runs = r.runs,
        .stack = r.stack };
    if (!board_bare(&b->options->machine)) return NULL;
    double unit;
    out->counts = board_count(&b->options->machine, b->runner, &unit);
    out->counted = r.samples[0] * unit;
    const Unlinked unlinked = unlinked_of(a, b->program);
    out->stack_bound = stack_bound(a, &unlinked);
    return NULL;
}

const char *sandbox_watch(Arena *a, const Built *b, const Inputs *in, double seconds, int timeout,
    void (*ran)(void *argument), void *argument, Timing *out) {
    Job j = { .built = b, .seconds = seconds > 1e-3 ? seconds : 1e-3, .ran = ran, .argument = argument };
    const char *why = job_open(a, &j, in) ?
        job_run(a, &j, timeout + (int)(2 * seconds)) :
        "not enough memory for the buffers; lower upper bounds (--dim NAME=LO..HI) make them smaller";
    if (!why) {
        int n = j.shared->samples;
        qsort(j.shared->ms, (size_t)n, sizeof *j.shared->ms, compare_floats);
        *out = (Timing){ .median_ms = j.shared->ms[n / 2], .min_ms = j.shared->ms[0], .runs = j.shared->runs,
            .gpu = j.shared->gpu };
    }
    job_close(&j);
    return why;
}

const char *sandbox_time(Arena *a, const Built *b, const Inputs *in, double seconds, int timeout, Timing *out) {
    if (b->program) return remote_time(a, b, in, seconds, timeout, out);
    return sandbox_watch(a, b, in, seconds, timeout, NULL, NULL, out);
}

// ---------------------------------------------------------------- anything else

void *sandbox_memory(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void sandbox_release(void *p, size_t bytes) {
    if (p) munmap(p, bytes);
}

const char *sandbox_call(Arena *a, int (*call)(void *), void *argument, int timeout) {
    Shared *shared = sandbox_memory(sizeof *shared);
    if (!shared) return "not enough memory";
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child_begin(timeout);
        shared->code = call(argument);
#if HAVE_VULKAN
        if (shared->code) snprintf(shared->why, sizeof shared->why, "%s", burn_gpu_error());
#endif
        shared->done = true;
        _exit(0);
    }
    const char *why = pid < 0 ? arena_printf(a, "cannot start a process: %s", strerror(errno)) :
                                child_end(a, pid, timeout);
    if (!why && !shared->done) why = "the child process ended early";
    else if (!why && shared->code)
        why = arena_printf(a, "run returned %d%s%s", shared->code, *shared->why ? ": " : "", shared->why);
    sandbox_release(shared, sizeof *shared);
    return why;
}
