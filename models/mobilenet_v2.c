// SPDX-License-Identifier: MIT OR Apache-2.0
// MobileNetV2 (Sandler et al. 2018) as torchvision has it; for microcontrollers: --set width=0.35 --set size=96.
#include <burncc/model.h>

// Convolution "0", batch norm "1", and ReLU6.
static Tensor unit(Tensor x, int channels, int kernel, int stride, int groups)
{
    x = conv2d(x, "0", channels, kernel, .stride = stride, .padding = kernel / 2, .groups = groups, .bias = NO);
    return relu6(batch_norm(x, "1"));
}

static Tensor inverted_residual(Tensor x, int channels, int stride, int expand)
{
    int in = dim(x, 1), module = 0;
    Tensor y = x;
    if (expand > 1)
        scope("%d", module++) y = unit(y, in * expand, 1, 1, 1);
    scope("%d", module++) y = unit(y, in * expand, 3, stride, in * expand);
    y = conv2d(y, named("%d", module), channels, 1, .bias = NO);
    y = batch_norm(y, named("%d", module + 1));
    return stride == 1 && in == channels ? add(x, y) : y;
}

// So many channels at this width, a multiple of 8 that is not below nine tenths of them.
static int scaled(int channels, double width)
{
    int some = (int)(channels * width + 4) / 8 * 8;
    if (some < 8) some = 8;
    return some < 0.9 * channels * width ? some + 8 : some;
}

MODEL(mobilenet_v2)
{
    static const struct { int expand, channels, blocks, stride; } stages[] = {
        { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 }, { 6, 160, 3, 2 },
        { 6, 320, 1, 1 },
    };
    int size = config("size", 224), module = 1;
    double width = config("width", 1.0);
    Tensor x = input("image", F32, symbol("batch"), 3, size, size);
    scope("features.0") x = unit(x, scaled(32, width), 3, 2, 1);
    for (int s = 0; s < 7; s++)
        for (int i = 0; i < stages[s].blocks; i++)
            scope("features.%d.conv", module++)
                x = inverted_residual(x, scaled(stages[s].channels, width), i == 0 ? stages[s].stride : 1,
                    stages[s].expand);
    scope("features.18") x = unit(x, scaled(1280, width > 1 ? width : 1), 1, 1, 1);
    x = dropout(flatten(adaptive_avg_pool2d(x, 1), 1), 0.2);
    output("logits", linear(x, "classifier.1", config("classes", 1000)));
}
