// SPDX-License-Identifier: MIT OR Apache-2.0
// Vision Transformer (Dosovitskiy et al. 2020), B/16 as torchvision has it; other sizes by --set layers=24
// --set width=1024 --set heads=16 (L/16), --set patch=32.
#include <burncc/model.h>

static Tensor encoder_layer(Tensor x, int heads)
{
    int width = dim(x, 2);
    x = add(x, multi_head_attention(layer_norm(x, "ln_1", .eps = 1e-6), "self_attention", heads));
    Tensor y = gelu(linear(layer_norm(x, "ln_2", .eps = 1e-6), "mlp.0", 4 * width));
    return add(x, linear(y, "mlp.3", width));
}

MODEL(vit_b_16)
{
    int size = config("size", 224), patch = config("patch", 16), width = config("width", 768);
    int heads = config("heads", 12), layers = config("layers", 12);
    Tensor image = input("image", F32, symbol("batch"), 3, size, size);
    Tensor token = parameter("class_token", (1, 1, width), .init = init_zeros());
    Tensor x = conv2d(image, "conv_proj", width, patch, .stride = patch);
    x = transpose(flatten(x, 2), 1, 2);
    x = cat(1, expand(token, dim(image, 0), 1, width), x);
    scope("encoder") {
        x = add(x, parameter("pos_embedding", (1, dim(x, 1), width), .init = init_normal(0, 0.02)));
        for (int i = 0; i < layers; i++)
            scope("layers.encoder_layer_%d", i) x = encoder_layer(x, heads);
        x = layer_norm(x, "ln", .eps = 1e-6);
    }
    output("logits", linear(select(x, 1, 0), "heads.head", config("classes", 1000)));
}
