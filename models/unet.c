// SPDX-License-Identifier: MIT OR Apache-2.0
// U-Net (Ronneberger et al. 2015) named as the widespread PyTorch implementation, Pytorch-UNet, names it: padded
// convolutions with batch norm, four halvings. Sizes are multiples of 16.
#include <burncc/model.h>

static Tensor double_conv(Tensor x, int channels)
{
    scope("double_conv")
        for (int i = 0; i < 2; i++) {
            x = conv2d(x, named("%d", 3 * i), channels, 3, .padding = 1, .bias = NO);
            x = relu(batch_norm(x, named("%d", 3 * i + 1)));
        }
    return x;
}

MODEL(unet)
{
    int width = config("width", 64), size = config("size", 256);
    Tensor down[5], x = input("image", F32, symbol("batch"), config("channels", 3), size, size);
    scope("inc") down[0] = double_conv(x, width);
    for (int i = 1; i < 5; i++)
        scope("down%d.maxpool_conv.1", i) down[i] = double_conv(max_pool2d(down[i - 1], 2), width << i);
    x = down[4];
    for (int i = 3; i >= 0; i--)
        scope("up%d", 4 - i) {
            x = conv_transpose2d(x, "up", width << i, 2, .stride = 2);
            scope("conv") x = double_conv(cat(1, down[i], x), width << i);
        }
    output("mask", conv2d(x, "outc.conv", config("classes", 2), 1));
}
