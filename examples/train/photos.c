// SPDX-License-Identifier: MIT OR Apache-2.0
// A network for a folder of photographs for each class, small enough to learn from some hundreds of them in a minute:
//
//   burncc fit examples/train/photos.c --data photos --epochs 20 --artifacts pets --target native
#include <burncc/model.h>

MODEL(photos)
{
    int size = config("size", 64), width = config("width", 16);
    Tensor x = input("image", F32, symbol("batch"), 3, size, size);
    for (int i = 0; i < 4; i++) {
        x = conv2d(x, named("conv%d", i), width << i, 3, .padding = 1, .bias = NO);
        x = max_pool2d(relu(batch_norm(x, named("norm%d", i))), 2);
    }
    output("logits", linear(flatten(adaptive_avg_pool2d(x, 1), 1), "head", config("classes", 2)));
}
