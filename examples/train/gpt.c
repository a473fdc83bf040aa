// SPDX-License-Identifier: MIT OR Apache-2.0
// A small GPT over characters: pre-normalized blocks of attention and GELU, positions that are learnt. From a text to a
// model that writes on:
//
//   burncc fit examples/train/gpt.c --data text:tinyshakespeare.txt --epochs 3 --lr 0.002 --schedule one_cycle
//       --optimizer 'adamw(weight_decay=0.01)' --target native --artifacts bard
//   burncc predict bard/model.onnx begin.txt --length 500
#include <burncc/model.h>

static Tensor block(Tensor x, int heads)
{
    int width = dim(x, 2);
    x = add(x, multi_head_attention(layer_norm(x, "norm1"), "attn", heads, .causal = YES));
    return add(x, linear(gelu(linear(layer_norm(x, "norm2"), "fc", 4 * width)), "proj", width));
}

MODEL(gpt)
{
    int width = config("width", 128), layers = config("layers", 4), heads = config("heads", 4);
    int length = config("length", 64), classes = config("classes", 65);
    Tensor tokens = input("tokens", I64, symbol("batch"), length);
    Tensor x = add(embedding(tokens, "embed", classes, width, .init = init_normal(0, 0.02)),
        embedding(arange(I64, length), "positions", length, width, .init = init_normal(0, 0.02)));
    for (int i = 0; i < layers; i++)
        scope("blocks.%d", i) x = block(x, heads);
    output("logits", linear(layer_norm(x, "norm"), "head", classes));
}
