// SPDX-License-Identifier: MIT OR Apache-2.0
// ResNet (He et al. 2015) as torchvision has it: --set depth=18, 34, 50, 101 or 152.
#include <burncc/model.h>

static Tensor shortcut(Tensor x, int channels, int stride)
{
    if (stride != 1 || dim(x, 1) != channels)
        scope("downsample") x = batch_norm(conv2d(x, "0", channels, 1, .stride = stride, .bias = NO), "1");
    return x;
}

static Tensor basic(Tensor x, int width, int stride)
{
    Tensor y = relu(batch_norm(conv2d(x, "conv1", width, 3, .stride = stride, .padding = 1, .bias = NO), "bn1"));
    y = batch_norm(conv2d(y, "conv2", width, 3, .padding = 1, .bias = NO), "bn2");
    return relu(add(y, shortcut(x, width, stride)));
}

static Tensor bottleneck(Tensor x, int width, int stride)
{
    Tensor y = relu(batch_norm(conv2d(x, "conv1", width, 1, .bias = NO), "bn1"));
    y = relu(batch_norm(conv2d(y, "conv2", width, 3, .stride = stride, .padding = 1, .bias = NO), "bn2"));
    y = batch_norm(conv2d(y, "conv3", 4 * width, 1, .bias = NO), "bn3");
    return relu(add(y, shortcut(x, 4 * width, stride)));
}

static const struct { int depth, blocks[4]; } family[] = {
    { 18, { 2, 2, 2, 2 } }, { 34, { 3, 4, 6, 3 } }, { 50, { 3, 4, 6, 3 } }, { 101, { 3, 4, 23, 3 } },
    { 152, { 3, 8, 36, 3 } },
};

MODEL(resnet)
{
    int depth = config("depth", 18), size = config("size", 224), row = 0;
    while (row < 5 && family[row].depth != depth) row++;
    if (row == 5) {
        fail("there is no ResNet of depth %d; there are 18, 34, 50, 101 and 152", depth);
        return;
    }
    Tensor x = input("image", F32, symbol("batch"), 3, size, size);
    x = relu(batch_norm(conv2d(x, "conv1", 64, 7, .stride = 2, .padding = 3, .bias = NO), "bn1"));
    x = max_pool2d(x, 3, .stride = 2, .padding = 1);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < family[row].blocks[stage]; i++)
            scope("layer%d.%d", stage + 1, i)
                x = (depth < 50 ? basic : bottleneck)(x, 64 << stage, i == 0 && stage > 0 ? 2 : 1);
    x = flatten(adaptive_avg_pool2d(x, 1), 1);
    output("logits", linear(x, "fc", config("classes", 1000)));
}
