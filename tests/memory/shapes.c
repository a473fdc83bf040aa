// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions of every form that window.c and window_dw.c have, in a chain whose results may lie over their inputs,
// and two residual blocks: a sum with the block's input, and one with a convolution of it.
#include <burncc/model.h>

MODEL(shapes)
{
    Tensor x = input("image", F32, config("batch", 2), 3, 19, 15);
    x = relu(conv2d(x, "strided", 10, 3, .padding = 1, .stride = 2));
    Tensor y = relu(conv2d(x, "dilated", 10, 3, .padding = 2, .dilation = 2));
    x = relu(add(x, conv2d(y, "pointwise", 10, 1)));
    x = relu6(conv2d(x, "depthwise", 10, 5, .padding = 2, .groups = 10));
    y = conv2d(relu(conv2d(x, "down", 12, 3, .padding = 1, .stride = 2)), "same", 10, 3, .padding = 1);
    x = relu(add(y, conv2d(x, "shortcut", 10, 1, .stride = 2)));
    x = conv2d(x, "multiplied", 20, 3, .padding = 1, .groups = 10);
    x = relu(conv2d(x, "groups", 6, 3, .padding = 1, .groups = 2));
    x = relu(conv2d(x, "wide", 12, 5, .padding = 4));
    x = conv2d(x, "narrow", 3, 2, .stride = 2);
    output("y", linear(flatten(x, 1), "last", config("classes", 7)));
}
