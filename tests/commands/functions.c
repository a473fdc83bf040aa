// SPDX-License-Identifier: MIT OR Apache-2.0
// Greedy generation twice: by prefill and step of one model, whose state keeps the tokens before, and by the whole
// sequence of another with the same parameters. Their logits must be equal within 1e-5 of the largest, their tokens
// equal. VOCABULARY: how many logits a token has.
#include "step.h"
#include "whole.h"

#include <math.h>
#include <stdio.h>

enum { MOST = 32, FIRST = 5, TOKENS = 16 };

static step_workspace step_space;
static step_state state;
static whole_workspace whole_space;
static float last[VOCABULARY], rows[MOST][VOCABULARY];

static int best(const float *x) {
    int at = 0;
    for (int i = 1; i < VOCABULARY; i++)
        if (x[i] > x[at]) at = i;
    return at;
}

int main(void) {
    int64_t ids[MOST] = { 3, 14, 15, 9, 2 }, n = FIRST;
    double most = 0, largest = 0;
    int differ = 0, code = step_prefill(&step_space, n, ids, &state, last);
    for (; !code; n++) {
        code = whole_run(&whole_space, n, ids, &rows[0][0]);
        for (int i = 0; i < VOCABULARY; i++) {
            double by = fabs((double)last[i] - (double)rows[n - 1][i]);
            if (!(by <= most)) most = by;
            if (fabs((double)last[i]) > largest) largest = fabs((double)last[i]);
        }
        differ += best(last) != best(rows[n - 1]);
        if (n == FIRST + TOKENS || code) break;
        ids[n] = best(last);
        code = step_step(&step_space, &n, &ids[n], &state, last);
    }
    printf("code %d, %d tokens differ, logits by %.1e of the largest\n", code, differ, most / largest);
    return code || differ || !(most <= 1e-5 * largest);
}
