// SPDX-License-Identifier: MIT OR Apache-2.0
// SqueezeNet 1.1 (Iandola et al. 2016) as torchvision has it.
#include <burncc/model.h>

static Tensor fire(Tensor x, int squeezed, int expanded)
{
    x = relu(conv2d(x, "squeeze", squeezed, 1));
    Tensor narrow_ones = relu(conv2d(x, "expand1x1", expanded, 1));
    Tensor wide_ones = relu(conv2d(x, "expand3x3", expanded, 3, .padding = 1));
    return cat(1, narrow_ones, wide_ones);
}

MODEL(squeezenet)
{
    static const int squeezed[13] = { [3] = 16, 16, [6] = 32, 32, [9] = 48, 48, 64, 64 };    // 0: a pool, from 2 on
    int size = config("size", 224);
    Tensor x = input("image", F32, symbol("batch"), 3, size, size);
    x = relu(conv2d(x, "features.0", 64, 3, .stride = 2));
    for (int i = 2; i < 13; i++)
        if (squeezed[i]) scope("features.%d", i) x = fire(x, squeezed[i], 4 * squeezed[i]);
        else x = max_pool2d(x, 3, .stride = 2, .ceil = YES);
    x = relu(conv2d(dropout(x, 0.5), "classifier.1", config("classes", 1000), 1));
    output("logits", flatten(adaptive_avg_pool2d(x, 1), 1));
}
