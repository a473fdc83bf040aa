// SPDX-License-Identifier: MIT OR Apache-2.0
// Two convolutions, an adaptive pool and two linear layers, for batches of 8.
#include <burncc/model.h>

MODEL(mnist_cnn)
{
    Tensor x = input("input", F32, 8, 1, 28, 28);
    x = relu(conv2d(conv2d(x, "conv1", 8, 3), "conv2", 16, 3));
    x = flatten(adaptive_avg_pool2d(x, 8), 1);
    output("output", linear(relu(linear(x, "linear1", 64)), "linear2", 10));
}
