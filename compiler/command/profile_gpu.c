// SPDX-License-Identifier: MIT OR Apache-2.0
// Where the time of a run on a GPU goes. In: a model built for Vulkan. Out: for each kernel its time on the device's
// clock, one kernel at a time, the median of many runs; and what the device can do at most, by two kernels of ours: one
// multiplies and adds in registers, one reads memory that no cache holds. Both grow until they take long enough.
//
// Drivers run in a child alone, as all that is generated does.
#include "profile.h"

#include "codegen/gpu/spirv.h"
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#if HAVE_VULKAN

enum { MOST_RUNS = 2000, LIMIT_GROUPS = 1 << 15, LIMIT_THREADS = 128, LIMIT_SECONDS = 60, REPEATS = 5 };
enum { FMA_FLOPS = 256 * 8 * 4 * 2, READ_BYTES = 16 * 16 };     // of a thread
static const double limit_ms = 1;                       // long beside a launch

// What the child leaves; rows: the run's time, then the kernels'.
typedef struct GpuRuns { char why[256]; double gflops, gbytes; int n; float rows[]; } GpuRuns;
typedef struct GpuJob {
    const Built *built;
    const Inputs *in;
    double seconds;
    bool limits;                                        // are asked for
    SpirvModule fma, fill, read;
    GpuRuns *runs;                                      // shared
    size_t bytes;
} GpuJob;

// ---------------------------------------------------------------- what the device can do

#define HEAD "#version 450\nlayout(local_size_x = 128) in;\n" \
    "layout(set = 0, binding = 0) buffer Arena { vec4 a[]; };\n"

// Eight chains of vectors of four; what it stores never happens, which compilers do not know.
static const char fma_text[] = HEAD
    "void main() {\n"
    "    vec4 x[8]; const float t = float(gl_GlobalInvocationID.x) * 1e-9;\n"
    "    for (int j = 0; j < 8; j++) x[j] = vec4(t + j);\n"
    "    for (int i = 0; i < 256; i++)\n"
    "        for (int j = 0; j < 8; j++) x[j] = fma(x[j], vec4(0.999), vec4(t));\n"
    "    vec4 s = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];\n"
    "    if (s.x + s.y + s.z + s.w == 12345.0) a[0] = s;\n"
    "}\n";
#define STRIDE "    const uint all = gl_NumWorkGroups.x * 128u, i = gl_GlobalInvocationID.x;\n"
static const char fill_text[] = HEAD "void main() {\n" STRIDE
    "    for (uint k = 0u; k < 16u; k++) a[i + k * all] = vec4(1.0);\n}\n";
static const char read_text[] = HEAD "void main() {\n" STRIDE
    "    vec4 s = vec4(0.0);\n"
    "    for (uint k = 0u; k < 16u; k++) s += a[i + k * all];\n"
    "    if (s.x + s.y + s.z + s.w == 12345.0) a[0] = s;\n}\n";

static burn_vk_kernel kernel_of(const char *name, const SpirvModule *m, uint32_t groups, uint32_t level) {
    return (burn_vk_kernel){ name, m->words, m->count, { groups, 1, 1 }, level, NULL, 0, NULL };
}

// The last kernel's least time over memory of so many bytes, in ms.
static int time_last(burn_vk *vk, const burn_vk_kernel *kernels, int n, size_t bytes, double *ms) {
    const burn_vk_program p = { .version = 1, .name = "limits", .kernels = kernels, .kernel_count = (size_t)n,
        .arena_bytes = bytes };
    burn_vk_session *s = NULL;
    int code = burn_vk_load(vk, &p, NULL, &s);
    *ms = 1e30;
    for (int i = 0; !code && i < REPEATS; i++) {
        double all, each[2];
        code = burn_vk_time(s, &all, each);
        if (!code && each[n - 1] < *ms) *ms = each[n - 1];
    }
    burn_vk_session_free(s);
    return code;
}

static int measure_limits(GpuJob *j, burn_vk *vk) {
    double ms = 0;
    int code = 0;
    for (uint32_t groups = 64; !code && groups <= LIMIT_GROUPS && ms < limit_ms; groups *= 8) {
        const burn_vk_kernel fma = kernel_of("fma", &j->fma, groups, 0);
        code = time_last(vk, &fma, 1, 256, &ms);
        if (!code) j->runs->gflops = (double)groups * LIMIT_THREADS * FMA_FLOPS / ms * 1e-6;
    }
    ms = 0;
    for (uint32_t groups = 1 << 11; !code && groups <= LIMIT_GROUPS && ms < limit_ms; groups *= 2) {
        const size_t bytes = (size_t)groups * LIMIT_THREADS * READ_BYTES;
        const burn_vk_kernel both[2] = {
            kernel_of("fill", &j->fill, groups, 0), kernel_of("read", &j->read, groups, 1) };
        code = time_last(vk, both, 2, bytes, &ms);
        if (!code) j->runs->gbytes = (double)bytes / ms * 1e-6;
        else if (j->runs->gbytes > 0) return 0;          // the device takes no more at once
    }
    return code;
}

// ---------------------------------------------------------------- the kernels

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int measure_kernels(GpuJob *j, burn_vk_session *s) {
    const burn_vk_program *p = j->built->gpu;
    const size_t columns = p->kernel_count + 1;
    burn_tensor *in = calloc((size_t)p->input_count + 1, sizeof *in);
    burn_tensor *none = calloc((size_t)p->output_count + 1, sizeof *none);
    double *each = calloc(columns, sizeof *each), run_ms;
    int code = in && none && each ? 0 : BURN_ENOMEM;
    for (int i = 0; !code && i < p->input_count; i++)
        in[i] = (burn_tensor){ .data = j->in->at[i]->data, .bytes = p->inputs[i].tensor.bytes };
    if (!code) code = burn_vk_run(s, in, none);
    for (double end = now() + j->seconds; !code && j->runs->n < MOST_RUNS && (!j->runs->n || now() < end);) {
        code = burn_vk_time(s, &run_ms, each);
        if (code) break;
        float *row = j->runs->rows + (size_t)j->runs->n++ * columns;
        row[0] = (float)run_ms;
        for (size_t k = 0; k + 1 < columns; k++) row[k + 1] = (float)each[k];
    }
    free(in);
    free(none);
    free(each);
    return code;
}

static int child(void *argument) {
    GpuJob *j = argument;
    burn_vk *vk = NULL;
    burn_vk_session *s = NULL;
    int code = burn_vk_open(&vk, NULL);
    if (!code) code = burn_vk_load(vk, j->built->gpu, j->built->weights, &s);
    if (!code) code = measure_kernels(j, s);
    burn_vk_session_free(s);
    if (!code && j->limits) code = measure_limits(j, vk);
    if (code) snprintf(j->runs->why, sizeof j->runs->why, "%s", burn_vk_last_error(vk));
    burn_vk_close(vk);
    return code;
}

// ---------------------------------------------------------------- what they come to

static int compare_floats(const void *x, const void *y) {
    float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

static double median(Arena *a, const GpuJob *j, size_t column) {
    const size_t columns = j->built->gpu->kernel_count + 1;
    float *ms = NEW_ARRAY(a, float, j->runs->n + 1);
    for (int i = 0; i < j->runs->n; i++) ms[i] = j->runs->rows[(size_t)i * columns + column];
    qsort(ms, (size_t)j->runs->n, sizeof *ms, compare_floats);
    return ms[j->runs->n / 2];
}

// The program's kernels stand by level; those that had nothing to do are left out there.
static Profile *digest(Arena *a, const GpuJob *j) {
    Profile *p = NEW(a, Profile);
    const Plan *plan = j->built->plan;
    const burn_vk_program *gpu = j->built->gpu;
    StrMap *columns = strmap_new(a);
    size_t *column = NEW_ARRAY(a, size_t, (int)gpu->kernel_count + 1);
    for (size_t k = 0; k < gpu->kernel_count; k++) {
        column[k] = k + 1;
        strmap_put(columns, gpu->kernels[k].name, &column[k]);
    }
    p->n = plan->numbered;
    p->at = NEW_ARRAY(a, KernelTime, p->n + 1);
    profile_number(a, plan, p->at);
    p->tracks = NEW_ARRAY(a, ProfileTrack, 1);
    p->n_tracks = 1;
    p->tracks->span = NEW_ARRAY(a, burncc_span, (int)gpu->kernel_count + 1);
    for (int i = 0; i < p->n; i++) {
        const size_t *at = strmap_get(columns, p->at[i].kernel->name);
        p->at[i].ms = at ? median(a, j, *at) : 0;
        p->ms += p->at[i].ms;
    }
    double ns = 0;
    for (int i = 0; i < p->n && p->tracks->n < (int64_t)gpu->kernel_count; i++) {
        const double end = ns + 1e6 * p->at[i].ms;
        p->tracks->span[p->tracks->n++] = (burncc_span){ (int64_t)ns, (int64_t)end, i };
        ns = end;
    }
    p->device_ms = median(a, j, 0);
    p->marked.runs = j->runs->n;
    p->limits = (Limits){ j->runs->gflops, j->runs->gbytes };
    return p;
}

static const char *compile_limits(Arena *a, GpuJob *j) {
    SpirvModule *of[] = { &j->fma, &j->fill, &j->read };
    const char *texts[] = { fma_text, fill_text, read_text };
    for (size_t i = 0; i < COUNT(of); i++)
        if (!spirv_compile(texts[i], "limits", of[i])) return arena_printf(a, "%s", of[i]->log ? of[i]->log : "");
    return NULL;
}

static int limits_child(void *argument) {
    GpuJob *j = argument;
    burn_vk *vk = NULL;
    int code = burn_vk_open(&vk, NULL);
    if (!code) code = measure_limits(j, vk);
    if (code) snprintf(j->runs->why, sizeof j->runs->why, "%s", burn_vk_last_error(vk));
    burn_vk_close(vk);
    return code;
}

static void free_limits(GpuJob *j) {
    sandbox_release(j->runs, j->bytes);
    spirv_free(&j->fma);
    spirv_free(&j->fill);
    spirv_free(&j->read);
}

bool limits_take_gpu(Arena *a, int timeout, Limits *out) {
    GpuJob j = { .bytes = sizeof *j.runs };
    const char *why = compile_limits(a, &j);
    if (!why && !(j.runs = sandbox_memory(j.bytes))) why = "not enough memory";
    if (!why) why = sandbox_call(a, limits_child, &j, timeout + LIMIT_SECONDS);
    if (why && j.runs && *j.runs->why) why = arena_printf(a, "%s: %s", why, j.runs->why);
    if (why) diag_error(NULL, "what the device can do cannot be measured: %s", why);
    else *out = (Limits){ j.runs->gflops, j.runs->gbytes };
    free_limits(&j);
    return !why;
}

typedef struct Naming { int code; char text[256]; } Naming;

static int name_child(void *argument) {
    Naming *n = argument;
    burn_vk *vk = NULL;
    n->code = burn_vk_open(&vk, NULL);
    snprintf(n->text, sizeof n->text, "%s", n->code ? burn_vk_last_error(NULL) : burn_vk_device_name(vk));
    burn_vk_close(vk);
    return n->code;
}

const char *gpu_device(Arena *a, int timeout, const char **name) {
    Naming *n = sandbox_memory(sizeof *n);
    const char *why = n ? sandbox_call(a, name_child, n, timeout) : "not enough memory";
    if (n && n->code) why = arena_strdup(a, n->text);
    if (!why) *name = arena_strdup(a, n->text);
    sandbox_release(n, sizeof *n);
    return why;
}

const char *profile_gpu(
    Arena *a, const Built *b, const Inputs *in, const CommandOptions *c, bool limits, Profile **out) {
    if (!b->gpu) return "--profile times GPU programs that are one list of kernels; this one has control on the host";
    GpuJob j = { .built = b, .in = in, .seconds = c->seconds * (1 - PLAIN_SHARE), .limits = limits };
    j.bytes = sizeof *j.runs + MOST_RUNS * (b->gpu->kernel_count + 1) * sizeof *j.runs->rows;
    const char *why = limits ? compile_limits(a, &j) : NULL;
    if (!why && !(j.runs = sandbox_memory(j.bytes))) why = "not enough memory";
    if (!why) why = sandbox_call(a, child, &j, c->timeout + LIMIT_SECONDS + (int)c->seconds);
    if (why && j.runs && *j.runs->why) why = arena_printf(a, "%s: %s", why, j.runs->why);
    if (!why) *out = digest(a, &j);
    free_limits(&j);
    return why;
}
#else
static const char lacking[] = "this burncc is built without Vulkan";
const char *gpu_device(Arena *a, int timeout, const char **name) {
    (void)a, (void)timeout, (void)name;
    return lacking;
}

bool limits_take_gpu(Arena *a, int timeout, Limits *out) {
    (void)a, (void)timeout, (void)out;
    diag_error(NULL, "%s", lacking);
    return false;
}

const char *profile_gpu(
    Arena *a, const Built *b, const Inputs *in, const CommandOptions *c, bool limits, Profile **out) {
    (void)a, (void)b, (void)in, (void)c, (void)limits, (void)out;
    return lacking;
}
#endif
