// SPDX-License-Identifier: MIT OR Apache-2.0
// DenseNet (Huang et al. 2016) of growth 32 as torchvision has it: --set depth=121, 169 or 201. Files of before 2018
// name the layers norm.1 and conv.1: --map 'norm\.([12])=norm\1' --map 'conv\.([12])=conv\1'.
#include <burncc/model.h>

static const struct { int depth, layers[4]; } family[] = {
    { 121, { 6, 12, 24, 16 } }, { 169, { 6, 12, 32, 32 } }, { 201, { 6, 12, 48, 32 } },
};

static Tensor dense_layer(Tensor x)
{
    Tensor y = conv2d(relu(batch_norm(x, "norm1")), "conv1", 128, 1, .bias = NO);
    return cat(1, x, conv2d(relu(batch_norm(y, "norm2")), "conv2", 32, 3, .padding = 1, .bias = NO));
}

static Tensor transition(Tensor x)
{
    int channels = dim(x, 1);
    return avg_pool2d(conv2d(relu(batch_norm(x, "norm")), "conv", channels / 2, 1, .bias = NO), 2);
}

MODEL(densenet)
{
    int depth = config("depth", 121), size = config("size", 224), row = 0;
    while (row < 3 && family[row].depth != depth) row++;
    if (row == 3) {
        fail("there is no DenseNet of depth %d here; there are 121, 169 and 201", depth);
        return;
    }
    Tensor x = input("image", F32, symbol("batch"), 3, size, size);
    scope("features") {
        x = relu(batch_norm(conv2d(x, "conv0", 64, 7, .stride = 2, .padding = 3, .bias = NO), "norm0"));
        x = max_pool2d(x, 3, .stride = 2, .padding = 1);
        for (int block = 0; block < 4; block++) {
            for (int i = 0; i < family[row].layers[block]; i++)
                scope("denseblock%d.denselayer%d", block + 1, i + 1) x = dense_layer(x);
            if (block < 3)
                scope("transition%d", block + 1) x = transition(x);
        }
        x = relu(batch_norm(x, "norm5"));
    }
    output("logits", linear(flatten(adaptive_avg_pool2d(x, 1), 1), "classifier", config("classes", 1000)));
}
