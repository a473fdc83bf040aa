// SPDX-License-Identifier: MIT OR Apache-2.0
// A little of everything that training knows: convolutions, a depth-wise one, batch norm, dropout, two linear layers.
#include <burncc/model.h>

MODEL(pairs_net)
{
    Tensor x = input("image", F32, symbol("batch"), 2, 9, 9);
    x = relu(batch_norm(conv2d(x, "c1", 6, 3, .padding = 1, .bias = NO), "b1"));
    x = max_pool2d(silu(conv2d(x, "dw", 6, 3, .padding = 1, .groups = 6)), 2);
    x = dropout(relu(linear(flatten(x, 1), "l1", 10)), 0.25);
    output("scores", linear(x, "l2", 4));
}
