// SPDX-License-Identifier: MIT OR Apache-2.0
// Steps of runtime/lbfgs.c, by optimizers.py. With -DBURN_LBFGS_REAL=double: of Rosenbrock's function of six numbers;
// with -DMODEL: of generated code, whose parameters and gradients are one row of floats. Prints the number of
// evaluations, the loss before the step, and the first and the last number after it.
#include "lbfgs.h"
#include <stdio.h>

enum { STEPS = 3, HISTORY = 3 };
#ifdef MODEL
#include "m.h"
static m_gradients_workspace ws;
static m_params params;
enum { N = sizeof params / sizeof(float) };
#else
enum { N = 6 };
static burn_real params[N] = { -1.2, 1, 0.5, -0.3, 2, 0.1 };
#endif

static int objective(void *context, const burn_real *x, burn_real *gradient, burn_real *loss) {
    ++*(int *)context;
#ifdef MODEL
    static const float in[6] = { 1, -2, 3, 0.5f, 0, 2 }, target[6] = { 0, 1, -1, 2, 0.25f, 1 };
    return m_gradients(&ws, in, (const m_params *)(const void *)x, target, loss, (m_params *)(void *)gradient);
#else
    *loss = 0;
    for (int i = 0; i < N; i++) gradient[i] = 0;
    for (int i = 0; i + 1 < N; i++) {
        const burn_real a = x[i + 1] - x[i] * x[i], b = 1 - x[i];
        *loss += 100 * a * a + b * b;
        gradient[i] += -400 * a * x[i] - 2 * b;
        gradient[i + 1] += 200 * a;
    }
    return 0;
#endif
}

int main(void) {
    static burn_real memory[N * (7 + 2 * HISTORY) + HISTORY];
    burn_real *x = (burn_real *)(void *)&params, loss;
    burn_lbfgs s;
    int calls = 0;
    if (burn_lbfgs_size(N, HISTORY) != sizeof memory / sizeof *memory) return 2;
#ifdef MODEL
    m_params_init(&params);
#endif
    burn_lbfgs_init(&s, N, HISTORY, memory);
    for (int i = 0; i < STEPS; i++) {
        if (burn_lbfgs_step(&s, x, objective, &calls, &loss)) return 1;
        printf("%d %.12g %.12g %.12g\n", calls, (double)loss, (double)x[0], (double)x[N - 1]);
    }
    return 0;
}
