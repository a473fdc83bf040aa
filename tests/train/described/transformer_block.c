// SPDX-License-Identifier: MIT OR Apache-2.0
// A layer of a language model, norms in front: causal attention of one projection for queries, keys and values, and a
// feed-forward.
#include <burncc/model.h>

static Tensor self_attention(Tensor x, int heads)
{
    int width = dim(x, 2);
    Tensor qkv = linear(x, "qkv", 3 * width), part[3];
    for (int i = 0; i < 3; i++) part[i] = split_heads(chunk(qkv, 3, -1, i), heads);
    Tensor y = scaled_dot_product_attention(part[0], part[1], part[2], .causal = YES);
    return linear(join_heads(y), "proj", width);
}

MODEL(transformer_block)
{
    int width = 32, words = 50, length = 16;
    Tensor x = embedding(input("input", I64, 4, length), "emb", words, width);
    x = add(x, parameter("pos", (length, width), .init = init_normal(0, 0.02)));
    x = add(x, self_attention(layer_norm(x, "ln1"), 4));
    x = add(x, linear(gelu(linear(layer_norm(x, "ln2"), "up", 4 * width)), "down", width));
    output("output", linear(layer_norm(x, "lnf"), "head", words, .bias = NO));
}
