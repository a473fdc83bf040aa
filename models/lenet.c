// SPDX-License-Identifier: MIT OR Apache-2.0
// LeNet-5 (LeCun et al. 1998) with rectifiers and maximum pools, for images of 28 x 28 such as MNIST's.
#include <burncc/model.h>

MODEL(lenet)
{
    Dim batch = symbol("batch");
    Tensor x = input("image", F32, batch, 1, 28, 28);
    x = max_pool2d(relu(conv2d(x, "conv1", 6, 5, .padding = 2)), 2);
    x = max_pool2d(relu(conv2d(x, "conv2", 16, 5)), 2);
    x = relu(linear(flatten(x, 1), "fc1", 120));
    x = relu(linear(x, "fc2", 84));
    output("logits", linear(x, "fc3", config("classes", 10)));
}
