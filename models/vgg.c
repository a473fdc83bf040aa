// SPDX-License-Identifier: MIT OR Apache-2.0
// VGG (Simonyan and Zisserman 2014) as torchvision has it: --set depth=11, 13, 16 or 19, --set batch_norm=1 for its
// vgg11_bn and so on.
#include <burncc/model.h>

static const struct { int depth, convolutions[5]; } family[] = {
    { 11, { 1, 1, 2, 2, 2 } }, { 13, { 2, 2, 2, 2, 2 } }, { 16, { 2, 2, 3, 3, 3 } }, { 19, { 2, 2, 4, 4, 4 } },
};

MODEL(vgg)
{
    int depth = config("depth", 16), size = config("size", 224), norm = config("batch_norm", 0), row = 0, module = 0;
    while (row < 4 && family[row].depth != depth) row++;
    if (row == 4) {
        fail("there is no VGG of depth %d; there are 11, 13, 16 and 19", depth);
        return;
    }
    Tensor x = input("image", F32, symbol("batch"), 3, size, size);
    for (int stage = 0; stage < 5; stage++) {
        for (int i = 0; i < family[row].convolutions[stage]; i++) {
            x = conv2d(x, named("features.%d", module++), 64 << (stage < 3 ? stage : 3), 3, .padding = 1);
            if (norm) x = batch_norm(x, named("features.%d", module++));
            x = relu(x);
            module++;
        }
        x = max_pool2d(x, 2);
        module++;
    }
    x = flatten(adaptive_avg_pool2d(x, 7), 1);
    x = dropout(relu(linear(x, "classifier.0", 4096)), 0.5);
    x = dropout(relu(linear(x, "classifier.3", 4096)), 0.5);
    output("logits", linear(x, "classifier.6", config("classes", 1000)));
}
