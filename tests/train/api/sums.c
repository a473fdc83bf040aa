// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients as values, and arguments that training refuses. Built by api.py over a model m of x[4*3] and four classes
// out of three.
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

static m_gradients_workspace work;
static m_params params, first, second, sum;

static const float *numbers(const m_params *p) { return (const float *)(const void *)p; }

int main(void)
{
    const size_t n = sizeof(m_params) / sizeof(float);
    const int64_t target[4] = {0, 2, 1, 2}, beyond[4] = {0, 3, 1, 2}, below[4] = {0, 2, -1, 2};
    float x[12], loss[1], others[12];
    for (int i = 0; i < 12; i++) {
        x[i] = 0.25f * (float)i - 1;
        others[i] = 1 - 0.125f * (float)i;
    }
    m_params_init(NULL);
    m_params_init(&params);
    CHECK(!m_gradients(&work, x, &params, target, loss, &first));
    CHECK(!m_gradients(&work, others, &params, target, loss, &second));
    memset(&sum, 255, sizeof sum);
    CHECK(!m_grads_zero(&sum) && !m_grads_add(&sum, &first) && !m_grads_add(&sum, &second));
    CHECK(!m_grads_scale(&sum, 0.5f));
    for (size_t i = 0; i < n; i++)
        CHECK(numbers(&sum)[i] == (numbers(&first)[i] + numbers(&second)[i]) * 0.5f);
    CHECK(m_grads_zero(NULL) == BURN_EINVAL && m_grads_scale(NULL, 1) == BURN_EINVAL);
    CHECK(m_grads_add(NULL, &first) == BURN_EINVAL && m_grads_add(&sum, NULL) == BURN_EINVAL);
    CHECK(m_gradients(&work, x, &params, beyond, loss, &first) == BURN_ERANGE);
    CHECK(m_gradients(&work, x, &params, below, loss, &first) == BURN_ERANGE);
    CHECK(m_gradients(&work, NULL, &params, target, loss, &first) == BURN_EINVAL);
    CHECK(m_gradients(&work, x, NULL, target, loss, &first) == BURN_EINVAL);
    CHECK(m_gradients(&work, x, &params, NULL, loss, &first) == BURN_EINVAL);
    CHECK(m_gradients(&work, x, &params, target, NULL, &first) == BURN_EINVAL);
    CHECK(m_gradients(&work, x, &params, target, loss, NULL) == BURN_EINVAL);
    loss[0] = 0;
    memset(&first, 0, sizeof first);
    x[5] = NAN;
    CHECK(m_gradients(&work, x, &params, target, loss, &first) == BURN_ENAN && !isfinite(loss[0]));
    CHECK(!isfinite(numbers(&first)[n - 1]));
    params.b_bias[1] = INFINITY;
    CHECK(m_gradients(&work, others, &params, target, loss, &first) == BURN_ENAN);
    return 0;
}
