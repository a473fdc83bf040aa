// SPDX-License-Identifier: MIT OR Apache-2.0
// Every derivative that the training code of a model in double precision gives, against central differences: gradients
// by parameters and by the input x (--input-gradients all), and the outputs' tangents (--jvp). m.h is the generated
// header; the model has an input x, one output y and the loss of values.
#include "m.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARAMS = sizeof(m_params) / sizeof(double) };
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static m_gradients_workspace work;
static m_train_step_workspace step_work;
static m_predict_workspace predict_work;
static m_jvp_workspace jvp_work;
static m_params params, grads, tangents;
static double x[X_COUNT], target[Y_COUNT], dx[X_COUNT], x_tangent[X_COUNT], y[Y_COUNT], y_tangent[Y_COUNT];
static double worst;
static int compared;

static double noise(void) {
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / (1 << 23) - 1;
}

static void fail(const char *what) {
    printf("%s failed\n", what);
    exit(1);
}

static double loss(void) {
    double l[1], unused[X_COUNT];
    m_params also;
    if (m_gradients(&work, x, &params, target, l, unused, &also)) fail("gradients");
    return l[0];
}

static void compare(const char *what, int i, double got, double slope) {
    double off = fabs(got - slope) / (1e-2 + fabs(slope));
    compared++;
    worst = off > worst ? off : worst;
    if (off <= 1e-5) return;
    printf("%s %d is %.9g, the slope is %.9g\n", what, i, got, slope);
    exit(1);
}

static void check_gradients(const char *what, double *at, const double *d, int n) {
    const double h = 1e-5;
    for (int i = 0; i < n; i++) {
        const double was = at[i];
        at[i] = was + h;
        const double above = loss();
        at[i] = was - h;
        const double below = loss();
        at[i] = was;
        compare(what, i, d[i], (above - below) / (2 * h));
    }
}

// To the place h times the directions away.
static void go(double h) {
    double *p = (double *)&params;
    const double *t = (const double *)&tangents;
    for (int i = 0; i < PARAMS; i++) p[i] += h * t[i];
    for (int i = 0; i < X_COUNT; i++) x[i] += h * x_tangent[i];
}

static void check_tangents(void) {
    const double h = 1e-5;
    double above[Y_COUNT], below[Y_COUNT];
    if (m_jvp(&jvp_work, x, &params, x_tangent, &tangents, y, y_tangent)) fail("jvp");
    go(h);
    if (m_predict(&predict_work, x, &params, above)) fail("predict");
    go(-2 * h);
    if (m_predict(&predict_work, x, &params, below)) fail("predict");
    go(h);
    for (int i = 0; i < Y_COUNT; i++) compare("tangent", i, y_tangent[i], (above[i] - below[i]) / (2 * h));
}

// Where gradients and update are one, the gradient by the input is that before the update.
static void check_step(void) {
    double l[1], again[X_COUNT];
    if (m_train_step(&step_work, x, &params, target, 0.1f, l, again)) fail("train_step");
    for (int i = 0; i < X_COUNT; i++) compare("train_step's gradient", i, again[i], dx[i]);
}

int main(void) {
    double l[1];
    m_params_init(&params);
    for (int i = 0; i < X_COUNT; i++) x[i] = noise(), x_tangent[i] = noise();
    for (int i = 0; i < Y_COUNT; i++) target[i] = noise();
    for (int i = 0; i < PARAMS; i++) ((double *)&tangents)[i] = noise();
    if (m_gradients(&work, x, &params, target, l, dx, &grads)) fail("gradients");
    check_gradients("gradient by parameter", (double *)&params, (const double *)&grads, PARAMS);
    check_gradients("gradient by x", x, dx, X_COUNT);
    check_tangents();
    check_step();
    printf("%d derivatives, worst %.1e\n", compared, worst);
    return 0;
}
