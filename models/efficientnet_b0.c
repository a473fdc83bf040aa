// SPDX-License-Identifier: MIT OR Apache-2.0
// EfficientNet-B0 (Tan and Le 2019) as torchvision has it.
#include <burncc/model.h>

// Convolution "0" and batch norm "1".
static Tensor unit(Tensor x, int channels, int kernel, int stride, int groups)
{
    x = conv2d(x, "0", channels, kernel, .stride = stride, .padding = kernel / 2, .groups = groups, .bias = NO);
    return batch_norm(x, "1");
}

// Channels are weighted by what their averages say.
static Tensor squeeze_excitation(Tensor x, int squeezed)
{
    Tensor y = silu(conv2d(adaptive_avg_pool2d(x, 1), "fc1", squeezed, 1));
    return mul(x, sigmoid(conv2d(y, "fc2", dim(x, 1), 1)));
}

static Tensor inverted_residual(Tensor x, int channels, int kernel, int stride, int expand)
{
    int in = dim(x, 1), wide = in * expand, module = 0;
    Tensor y = x;
    if (expand > 1)
        scope("%d", module++) y = silu(unit(y, wide, 1, 1, 1));
    scope("%d", module++) y = silu(unit(y, wide, kernel, stride, wide));
    scope("%d", module++) y = squeeze_excitation(y, in / 4);
    scope("%d", module++) y = unit(y, channels, 1, 1, 1);
    return stride == 1 && in == channels ? add(x, y) : y;
}

MODEL(efficientnet_b0)
{
    static const struct { int expand, channels, blocks, stride, kernel; } stages[] = {
        { 1, 16, 1, 1, 3 }, { 6, 24, 2, 2, 3 }, { 6, 40, 2, 2, 5 }, { 6, 80, 3, 2, 3 }, { 6, 112, 3, 1, 5 },
        { 6, 192, 4, 2, 5 }, { 6, 320, 1, 1, 3 },
    };
    int size = config("size", 224);
    Tensor x = input("image", F32, symbol("batch"), 3, size, size);
    scope("features.0") x = silu(unit(x, 32, 3, 2, 1));
    for (int s = 0; s < 7; s++)
        for (int i = 0; i < stages[s].blocks; i++)
            scope("features.%d.%d.block", s + 1, i)
                x = inverted_residual(x, stages[s].channels, stages[s].kernel, i == 0 ? stages[s].stride : 1,
                    stages[s].expand);
    scope("features.8") x = silu(unit(x, 1280, 1, 1, 1));
    x = dropout(flatten(adaptive_avg_pool2d(x, 1), 1), 0.2);
    output("logits", linear(x, "classifier.1", config("classes", 1000)));
}
