// SPDX-License-Identifier: MIT OR Apache-2.0
// What a run on a GPU is made of. In: a program on a device, and inputs. Out: the time of its kernels on the device's
// clock, and that of a run whose inputs and outputs stay on the device. What such a run takes beyond the kernels is the
// host's: submitting, and noticing the end; what a whole run takes beyond such a run are copies.
#include "command.h"
#include "config.h"

#include <stdlib.h>
#include <time.h>

#if HAVE_VULKAN

enum { MOST_SAMPLES = 4096, LEAST_SAMPLES = 3 };
static const double warmup_share = 0.2;

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

typedef struct Subject { burn_vk_session *session; burn_vk_workspace *workspace; double *each; } Subject;

// Milliseconds of one run; negative: an error's code.
typedef double SampleFn(const Subject *s, int *code);

static double sample_resident(const Subject *s, int *code) {
    const double from = now();
    *code = burn_vk_submit(s->workspace, NULL, NULL);
    if (!*code) *code = burn_vk_wait(s->workspace);
    return 1e3 * (now() - from);
}

static double sample_device(const Subject *s, int *code) {
    double ms = 0;
    *code = burn_vk_time(s->session, &ms, s->each);
    return ms;
}

// The median of as many as go into that time.
static int sample(const Subject *s, SampleFn *one, double seconds, double *median) {
    double *ms = calloc(MOST_SAMPLES, sizeof *ms);
    int code = ms ? 0 : BURN_ENOMEM, n = 0;
    for (double end = now() + seconds * warmup_share; !code && now() < end;) one(s, &code);
    for (double end = now() + seconds; !code && n < MOST_SAMPLES && (n < LEAST_SAMPLES || now() < end); n++)
        ms[n] = one(s, &code);
    if (!code) {
        qsort(ms, (size_t)n, sizeof *ms, compare_doubles);
        *median = ms[n / 2];
    }
    free(ms);
    return code;
}

static int keep_on_device(const burn_vk_program *p, const burn_tensor *inputs, burn_vk_workspace *w) {
    burn_vk_buffer *memory = burn_vk_workspace_buffer(w);
    int code = 0;
    for (int i = 0; !code && i < p->input_count; i++) {
        code = burn_vk_write(memory, p->inputs[i].offset, inputs[i].data, p->inputs[i].tensor.bytes);
        if (!code) code = burn_vk_bind_input(w, i, memory, p->inputs[i].offset);
    }
    return code;
}

int gpu_split(
    const burn_vk_program *p, burn_vk_session *session, const burn_tensor *inputs, double seconds, GpuSplit *out) {
    Subject s = { .session = session, .each = calloc(p->kernel_count + 1, sizeof *s.each) };
    int code = s.each ? burn_vk_workspace_new(session, &s.workspace) : BURN_ENOMEM;
    *out = (GpuSplit){ 0 };
    if (!code) code = keep_on_device(p, inputs, s.workspace);
    if (!code) code = sample(&s, sample_resident, seconds, &out->resident_ms);
    if (!code) code = sample(&s, sample_device, seconds, &out->device_ms);
    out->known = !code && p->kernel_count;
    burn_vk_workspace_free(s.workspace);
    free(s.each);
    // another arena may be too much, and some devices have no clock: then nobody knows
    return code == BURN_ENOMEM || code == BURN_ELIMIT ? 0 : code;
}
#else
int gpu_split(
    const burn_vk_program *p, burn_vk_session *session, const burn_tensor *inputs, double seconds, GpuSplit *out) {
    (void)p, (void)session, (void)inputs, (void)seconds;
    *out = (GpuSplit){ 0 };
    return 0;
}
#endif
