// SPDX-License-Identifier: MIT OR Apache-2.0
// m_evaluate beside m_predict, m_gradients and the loss of the predictions, computed here. Built by api.py: -DNUMBERS:
// x[3*1*4*6], targets are numbers, 4 a row; else x[4*3], targets are one of three classes. -DSAME: training computes
// the same loss; -DDROPS: gradients take a step's number.
#include "m.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHECK(holds) \
    do { \
        if (!(holds)) { \
            printf("line %d: %s\n", __LINE__, #holds); \
            return 1; \
        } \
    } while (0)

#ifdef NUMBERS
enum { INPUTS = 72, ROWS = 3, COLUMNS = 4, TARGETS = 12 };
typedef float Target;
#else
enum { INPUTS = 12, ROWS = 4, COLUMNS = 3, TARGETS = 4 };
typedef int64_t Target;
#endif
#ifdef DROPS
#define STEP , 1
#else
#define STEP
#endif

static m_predict_workspace predict;
static m_evaluate_workspace evaluate;
static m_gradients_workspace work;
static m_params params, before, grads;

static double loss_of(const float *y, const Target *target)
{
    double sum = 0;
    for (int i = 0; i < ROWS; i++) {
        double whole = 0;
        for (int j = 0; j < COLUMNS; j++) {
#ifdef NUMBERS
            whole += ((double)y[COLUMNS * i + j] - (double)target[COLUMNS * i + j])
                * ((double)y[COLUMNS * i + j] - (double)target[COLUMNS * i + j]) / COLUMNS;
        }
        sum += whole;
#else
            whole += exp((double)y[COLUMNS * i + j]);
        }
        sum += log(whole) - (double)y[COLUMNS * i + target[i]];
#endif
    }
    return sum / ROWS;
}

int main(void)
{
    float x[INPUTS], y[ROWS * COLUMNS], again[ROWS * COLUMNS], loss[1], trained[1];
    Target target[TARGETS];
    for (int i = 0; i < INPUTS; i++)
        x[i] = (float)(i * 37 % 16) / 8 - 1;
    for (int i = 0; i < TARGETS; i++)
        target[i] = (Target)(i % 3);
    m_params_init(&params);
    before = params;
    CHECK(!m_predict(&predict, x, &params, y));
    CHECK(!m_evaluate(&evaluate, x, &params, target, loss, again));
    CHECK(!memcmp(y, again, sizeof y) && !memcmp(&params, &before, sizeof params));
    CHECK(fabs((double)loss[0] - loss_of(y, target)) <= 1e-6 * loss_of(y, target));
    CHECK(!m_gradients(&work, x, &params, target STEP, trained, &grads));
#ifdef SAME
    CHECK(fabsf(loss[0] - trained[0]) <= 1e-6f * trained[0]);
#else
    CHECK(fabsf(loss[0] - trained[0]) > 1e-3f * trained[0]);
#endif
    CHECK(m_evaluate(&evaluate, x, &params, NULL, loss, again) == BURN_EINVAL);
#ifndef NUMBERS
    target[1] = 3;
    CHECK(m_evaluate(&evaluate, x, &params, target, loss, again) == BURN_ERANGE);
#endif
    return 0;
}
