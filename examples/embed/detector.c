// SPDX-License-Identifier: MIT OR Apache-2.0
// How badly a column of log-mel bands goes through a bottleneck and back, on average over a second: small for sounds
// like those that it learnt from.
#include <burncc/model.h>

MODEL(detector)
{
    Tensor x = transpose(input("mel", F32, symbol("batch"), 20, 61), 1, 2); // [batch, columns, bands]
    Tensor y = relu(linear(x, "in", 32));
    y = relu(linear(y, "narrow", 4));
    y = linear(relu(linear(y, "wide", 32)), "out", 20);
    output("error", mean(square(sub(y, x)), 0, 1, 2));
}
