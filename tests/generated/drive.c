// SPDX-License-Identifier: MIT OR Apache-2.0
// Drives one model as several targets compiled it. Built by run.sh with -DMODELS=&a_model,&b_model and their headers
// before this file. In: the models' .bin files, when they have some, in the current folder. Out: status 0 when the
// descriptors agree, bad arguments are refused, and all outputs are equal within 1e-5 of the largest. Every buffer is
// a heap block of exactly its size, aligned no better than promised, so that a sanitizer sees each byte that is
// touched outside.
#include "burn.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };                                      // inputs or outputs
static const burn_model *const models[] = { MODELS };
static const int model_count = (int)(sizeof models / sizeof *models);

typedef struct Run {
    void *workspace, *weights;
    unsigned char *work_block, *block[2 * MOST];                     // what is freed; data starts an element later
    burn_tensor in[MOST], out[MOST];
} Run;

static void fail(const char *model, const char *what) {
    fprintf(stderr, "%s: %s\n", model, what);
    exit(1);
}

static uint32_t random_word(void) {                     // Numerical Recipes' linear congruence
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8 | state << 24;
}

// Tame: floats in [-1, 1), integers in 1..8. Wild: what breaks conversions and signed arithmetic.
static void fill(burn_tensor *t, burn_dtype dtype, int wild) {
    static const float floats[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -0.0f, 2147483648.0f, -9.3e18f,
        1e19f, 255.5f, -128.5f };
    static const int64_t integers[] = { INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -1, 0, 1, 127, -128, 255,
        (int64_t)1 << 32, -5 };
    static const burn_string strings[] = { "", "a", "-1.5e3", "\303\237\316\243 \320\251", "zz",
        "12345678901234567890", "NaN", "\377\303" };
    unsigned char *to = t->data;
    size_t size = burn_element_bytes(dtype);
    for (size_t i = 0; i < t->bytes / size; i++) {
        uint32_t w = random_word();
        int64_t n = wild ? integers[w % 12] : 1 + w % 8;
        float f = wild ? floats[w % 12] : (float)(w >> 8) / 8388608.0f - 1.0f;
        if (dtype == BURN_STRING) memcpy(to + size * i, &strings[w % 8], size);
        else if (dtype == BURN_FLOAT) memcpy(to + 4 * i, &f, 4);
        else if (dtype == BURN_BOOL) to[i] = (unsigned char)(w & 1);
        else if (size == 8) memcpy(to + 8 * i, &n, 8);
        else if (size == 4) {
            int32_t v = wild && w % 12 < 2 ? (int32_t)(n >> 32) : (int32_t)(uint32_t)n;
            memcpy(to + 4 * i, &v, 4);
        } else to[i] = (unsigned char)n;
    }
}

static burn_tensor allocate(unsigned char **block, const burn_tensor_info *info) {
    size_t before = burn_element_bytes(info->dtype);
    *block = malloc(before + info->bytes);
    if (!*block) fail(info->name, "no memory");
    return (burn_tensor){ *block + before, info->bytes, NULL, info->dtype, info->rank };
}

static void start(Run *r, const burn_model *m) {
    memset(r, 0, sizeof *r);
    if (m->input_count > MOST || m->output_count > MOST) fail(m->name, "more inputs or outputs than this test takes");
    r->work_block = malloc(8 + m->workspace_bytes);
    if (!r->work_block) fail(m->name, "no memory");
    r->workspace = r->work_block + 8;
    memset(r->workspace, 0xa5, m->workspace_bytes);
    for (int i = 0; i < m->input_count; i++) r->in[i] = allocate(&r->block[i], &m->inputs[i]);
    for (int i = 0; i < m->output_count; i++) r->out[i] = allocate(&r->block[MOST + i], &m->outputs[i]);
    if (!m->weights_bytes) return;
    char path[256];
    snprintf(path, sizeof path, "%s.bin", m->name);
    FILE *f = fopen(path, "rb");
    if (!f || posix_memalign(&r->weights, 64, m->weights_bytes)) fail(path, "cannot open");
    if (fread(r->weights, 1, m->weights_bytes, f) != m->weights_bytes || getc(f) != EOF)
        fail(path, "is not of the size that the model says");
    fclose(f);
}

static void stop(Run *r) {
    free(r->work_block);
    free(r->weights);
    for (int i = 0; i < 2 * MOST; i++) free(r->block[i]);
}

static void expect(const burn_model *m, int got, int want, const char *what) {
    if (got == want) return;
    fprintf(stderr, "%s: %s: run returned %d, not %d\n", m->name, what, got, want);
    exit(1);
}

static void check_arguments(const burn_model *m, Run *r) {
    expect(m, m->run(NULL, NULL, r->weights, r->in, r->out), BURN_EINVAL, "null workspace");
    expect(m, m->run(NULL, r->workspace, r->weights, NULL, r->out), BURN_EINVAL, "null inputs");
    expect(m, m->run(NULL, r->workspace, r->weights, r->in, NULL), BURN_EINVAL, "null outputs");
    if (r->weights) expect(m, m->run(NULL, r->workspace, NULL, r->in, r->out), BURN_EINVAL, "null weights");
    for (int i = 0; i < m->input_count + m->output_count; i++) {
        burn_tensor *t = i < m->input_count ? &r->in[i] : &r->out[i - m->input_count], good = *t;
        t->data = NULL;
        expect(m, m->run(NULL, r->workspace, r->weights, r->in, r->out), BURN_EINVAL, "null data");
        *t = good;
        t->bytes--;
        expect(m, m->run(NULL, r->workspace, r->weights, r->in, r->out), BURN_EINVAL, "short buffer");
        *t = good;
        t->rank++;
        expect(m, m->run(NULL, r->workspace, r->weights, r->in, r->out), BURN_ESHAPE, "another rank");
        *t = good;
        t->dtype = good.dtype == BURN_FLOAT ? BURN_INT32 : BURN_FLOAT;
        expect(m, m->run(NULL, r->workspace, r->weights, r->in, r->out), BURN_ETYPE, "another element type");
        *t = good;
    }
}

static void compare(
    const burn_model *m, const burn_tensor *got, const burn_tensor *want, const burn_tensor_info *info) {
    float largest = 0, error = 0, a, b;
    if (info->dtype == BURN_STRING) {
        for (size_t i = 0; i < info->bytes / sizeof(burn_string); i++)
            if (strcmp(((burn_string *)got->data)[i], ((burn_string *)want->data)[i]) != 0)
                fail(m->name, "other strings than the first target");
        return;
    }
    if (info->dtype != BURN_FLOAT) {
        if (memcmp(got->data, want->data, info->bytes) != 0) fail(m->name, "other integers than the first target");
        return;
    }
    for (size_t i = 0; i < info->bytes; i += 4) {
        memcpy(&a, (unsigned char *)got->data + i, 4);
        memcpy(&b, (unsigned char *)want->data + i, 4);
        if (!(fabsf(a - b) <= error)) error = fabsf(a - b);     // a NaN stays
        if (fabsf(b) > largest) largest = fabsf(b);
    }
    if (error <= 1e-5f * largest) return;
    fprintf(stderr, "%s: output %s is off by %g, largest %g\n", m->name, info->name, (double)error, (double)largest);
    exit(1);
}

int main(void) {
    const burn_model *first = models[0];
    Run want, got;
    start(&want, first);
    for (int round = 0; round < 4; round++) {
        int wild = round == 3;
        for (int i = 0; i < first->input_count; i++) fill(&want.in[i], first->inputs[i].dtype, wild);
        expect(first, first->run(NULL, want.workspace, want.weights, want.in, want.out), BURN_OK, "good buffers");
        for (int k = 0; k < model_count; k++) {
            const burn_model *m = models[k];
            if (m->input_count != first->input_count || m->output_count != first->output_count)
                fail(m->name, "another signature");
            start(&got, m);
            if (!round) check_arguments(m, &got);
            for (int i = 0; i < m->input_count; i++) memcpy(got.in[i].data, want.in[i].data, got.in[i].bytes);
            expect(m, m->run(NULL, got.workspace, got.weights, got.in, got.out), BURN_OK, "good buffers");
            for (int i = 0; i < m->input_count; i++)
                if (memcmp(got.in[i].data, want.in[i].data, got.in[i].bytes) != 0) fail(m->name, "changed an input");
            for (int i = 0; i < m->output_count && !wild; i++) compare(m, &got.out[i], &want.out[i], &m->outputs[i]);
            stop(&got);
        }
    }
    stop(&want);
    return 0;
}
