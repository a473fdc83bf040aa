// SPDX-License-Identifier: MIT OR Apache-2.0
// A module whose sizes the run says, beside modules of fixed sizes: predictions, loss, gradients and ten steps of each.
// Built by api.py: -DFIXED=a,b,...: modules of fixed sizes, each with the sizes of its inputs; `open`: the one that
// takes them all; -DBOUND: the largest relative difference; HEADERS includes their headers.
#include HEADERS
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(holds) \
    do { \
        if (!(holds)) { \
            printf("line %d, %s: %s\n", __LINE__, module, #holds); \
            exit(1); \
        } \
    } while (0)

enum { MOST = 8, STEPS = 10 };
typedef struct Ends { burn_tensor in[MOST], out[MOST]; } Ends;

static const char *module = "open";
static unsigned seed = 1;

static double next(void)
{
    seed = seed * 1103515245u + 12345u;
    return (double)(seed >> 8 & 65535) / 32768 - 1;
}

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    CHECK(p);
    return p;
}

static void fill(const burn_tensor_info *info, void *data, int64_t classes)
{
    size_t n = info->bytes / (info->dtype == BURN_INT64 ? 8 : 4);
    for (size_t i = 0; i < n; i++)
        if (info->dtype == BURN_INT64) ((int64_t *)data)[i] = (int64_t)((next() + 1) / 2 * (double)classes);
        else ((float *)data)[i] = (float)next();
}

static void compare(const char *what, const void *got, const void *want, size_t bytes)
{
    const float *x = (const float *)got, *y = (const float *)want;
    double most = 0, worst = 0;
    for (size_t i = 0; i < bytes / 4; i++) {
        if (fabs((double)y[i]) > most) most = fabs((double)y[i]);
        if (!(fabs((double)x[i] - (double)y[i]) <= worst)) worst = fabs((double)x[i] - (double)y[i]);
    }
    if (worst <= BOUND * most) return;
    printf("%s: %s differs by %.2g of %.2g\n", module, what, worst, most);
    exit(1);
}

static void parts(const char *what, const burn_training *t, const void *got, const void *want)
{
    char text[128];
    for (int i = 0; i < t->param_count; i++) {
        const burn_part *p = &t->params[i];
        snprintf(text, sizeof text, "%s %s", what, p->tensor.name);
        compare(text, (const char *)got + p->offset, (const char *)want + p->offset, p->tensor.bytes);
    }
}

// The sizes of the fixed module's ends; outputs get rooms of the open one's.
static Ends ends(const burn_training *fixed)
{
    Ends e;
    int64_t *shapes = room(sizeof(int64_t) * MOST * MOST);
    for (int i = 0; i < fixed->input_count + fixed->target_count; i++, shapes += MOST) {
        const burn_tensor_info *info = &fixed->inputs[i];
        for (int j = 0; j < info->rank; j++) shapes[j] = info->shape[j];
        e.in[i] = (burn_tensor){.data = room(info->bytes), .bytes = info->bytes, .shape = info->rank ? shapes : NULL};
    }
    for (int i = 0; i < fixed->output_count; i++)
        e.out[i] = (burn_tensor){.data = room(fixed->outputs[i].bytes), .bytes = fixed->outputs[i].bytes};
    return e;
}

static float *hypers(const burn_training *t, int step)
{
    static float all[MOST];
    for (int i = 0; i < t->hyper_count; i++)
        all[i] = strcmp(t->hypers[i].name, "step") ? (float)t->hypers[i].usual : (float)step;
    return all;
}

static void check(const burn_training *t, const burn_training *fixed)
{
    void *work = room(t->predict_bytes + t->evaluate_bytes + t->gradients_bytes + t->update_bytes);
    void *params[2], *grads[2], *state[2];
    Ends e[2] = {ends(fixed), ends(fixed)};
    double loss[2];
    const burn_tensor_info *y = &fixed->outputs[0];
    const burn_training *of[2] = {t, fixed};
    module = fixed->name;
    CHECK(t->params_bytes == fixed->params_bytes);
    for (int k = 0; k < 2; k++) {
        params[k] = room(t->params_bytes);
        grads[k] = room(t->params_bytes);
        state[k] = room(t->state_bytes);
        CHECK(!of[k]->params_init(params[k]));
    }
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < t->input_count + t->target_count; i++) {
            fill(&fixed->inputs[i], e[0].in[i].data, y->shape[y->rank - 1]);
            memcpy(e[1].in[i].data, e[0].in[i].data, e[0].in[i].bytes);
        }
        for (int k = 0; k < 2; k++) CHECK(!of[k]->evaluate(NULL, work, NULL, e[k].in, params[k], &loss[k], e[k].out));
        CHECK(fabs(loss[0] - loss[1]) <= BOUND * fabs(loss[1]));
        for (int k = 0; k < 2; k++) CHECK(!of[k]->predict(NULL, work, NULL, e[k].in, params[k], e[k].out));
        compare("predictions", e[0].out[0].data, e[1].out[0].data, y->bytes);
        for (int k = 0; k < 2; k++)
            CHECK(!of[k]->gradients(NULL, work, NULL, e[k].in, params[k], s, &loss[k], grads[k]));
        CHECK(fabs(loss[0] - loss[1]) <= BOUND * fabs(loss[1]));
        if (s == 0) parts("gradient", t, grads[0], grads[1]);
        for (int k = 0; k < 2; k++)
            CHECK(!of[k]->update(NULL, work, NULL, hypers(t, s + 1), params[k], grads[k], state[k]));
    }
    parts("parameter", t, params[0], params[1]);
}

int main(void)
{
    const burn_training *fixed[] = {FIXED};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) check(&open_training, fixed[i]);
    return 0;
}
