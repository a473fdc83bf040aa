// SPDX-License-Identifier: MIT OR Apache-2.0
// A residual block with batch norms, a depth-wise convolution in steps of two, and the average of what it gives.
#include <burncc/model.h>

MODEL(bn_resnet)
{
    Tensor x = conv2d(input("input", F32, 8, 3, 32, 32), "c1", 16, 3, .padding = 1, .bias = NO);
    x = max_pool2d(relu(batch_norm(x, "b1")), 2);
    x = relu(add(x, batch_norm(conv2d(x, "c2", 16, 3, .padding = 1, .bias = NO), "b2")));
    x = silu(conv2d(x, "dw", 16, 3, .stride = 2, .padding = 1, .groups = 16));
    output("output", linear(mean(x, 2, 3), "fc", 10));
}
