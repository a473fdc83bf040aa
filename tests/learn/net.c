// SPDX-License-Identifier: MIT OR Apache-2.0
// What learner.py teaches: a small net that has all that a step must keep in mind, running statistics and dropout.
#include <burncc/model.h>

MODEL(net)
{
    Dim batch = symbol("batch");
    Tensor x = input("x", F32, batch, 6);
    x = relu(batch_norm(linear(x, "first", 16), "norm"));
    x = dropout(x, 0.25);
    output("scores", linear(x, "last", 3));
}
