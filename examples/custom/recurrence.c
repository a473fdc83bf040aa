// SPDX-License-Identifier: MIT OR Apache-2.0
// A layer with an operation of its own: the linear recurrence h[t] = a[t] * h[t-1] + b[t] of each row, which gated
// recurrent networks and state-space models are made of. Its kernels are one loop; its gradient is the same operation
// backwards in time.
//
//   burncc examples/custom/recurrence.c -o gated.c --train --dim batch=16
#include <burncc/model.h>

KERNEL(recur_c, (const float *a, const float *b, float *h, int64_t n, int64_t first, int64_t last),
{
    for (int64_t row = first; row < last; row++) {
        float state = 0; // at t - 1
        for (int64_t t = row * n; t < (row + 1) * n; t++) h[t] = state = a[t] * state + b[t];
    }
})

GLSL(recur_glsl, (a, b, h, n),
{
    float state = 0.0; // at t - 1
    for (int t = point * n; t < (point + 1) * n; t++) h[t] = state = a[t] * state + b[t];
})

static void recur_gradient(const Tensor *x, const Tensor *y, const Tensor *dy, Tensor *dx);

static Tensor recur(Tensor a, Tensor b)
{
    return custom("recur", (a, b), .kernel = recur_c, .glsl = recur_glsl, .gradient = recur_gradient,
        .sizes = SIZES(dim(a, 1)), .points = dim(a, 0));
}

// A row's db[t] = dh[t] + a[t+1] * db[t+1] is the recurrence from the end on; da[t] = db[t] * h[t-1].
static void recur_gradient(const Tensor *x, const Tensor *h, const Tensor *dh, Tensor *dx)
{
    Tensor next = roll(flip(x[0], 1), 1, 1);
    dx[1] = flip(recur(next, flip(dh[0], 1)), 1);
    dx[0] = mul(dx[1], pad(h[0], .pads = { 1, -1 }));
}

MODEL(gated)
{
    Dim batch = symbol("batch");
    int64_t time = config("time", 32), width = config("width", 8);
    Tensor x = input("x", F32, batch, time, 4);
    Tensor gate = sigmoid(linear(x, "gate", width)), value = linear(x, "value", width);
    Dim rows = dim_mul(batch, width);                   // [batch, time, width] -> a row for each of batch and width
    Tensor a = reshape(permute(gate, 0, 2, 1), rows, time);
    Tensor b = reshape(permute(mul(sub(1, gate), value), 0, 2, 1), rows, time);
    Tensor h = reshape(recur(a, b), batch, width, time);
    output("classes", linear(select(h, -1, time - 1), "out", config("classes", 3)));
}
