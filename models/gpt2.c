// SPDX-License-Identifier: MIT OR Apache-2.0
// GPT-2 (Radford et al. 2019) named as its public weights are; Hugging Face's GPT2LMHeadModel has a prefix:
// --map '^transformer\.(.*)=\1'. The defaults are the 124M model; medium: --set layers=24 --set width=1024
// --set heads=16.
#include <burncc/model.h>

// A linear layer whose weight is [in, out], as these files have it.
static Tensor dense(Tensor x, const char *name, int features)
{
    scope("%s", name) {
        Tensor weight = parameter("weight", (dim(x, 2), features), .init = init_normal(0, 0.02));
        x = add(matmul(x, weight), parameter("bias", (features), .init = init_zeros()));
    }
    return x;
}

static Tensor self_attention(Tensor x, int heads)
{
    int width = dim(x, 2);
    Tensor qkv = dense(x, "c_attn", 3 * width), part[3];
    for (int i = 0; i < 3; i++) part[i] = split_heads(chunk(qkv, 3, -1, i), heads);
    Tensor y = join_heads(scaled_dot_product_attention(part[0], part[1], part[2], .causal = YES));
    return dense(y, "c_proj", width);
}

static Tensor feed_forward(Tensor x)
{
    int width = dim(x, 2);
    return dense(gelu_tanh(dense(x, "c_fc", 4 * width)), "c_proj", width);
}

MODEL(gpt2)
{
    int width = config("width", 768), heads = config("heads", 12), layers = config("layers", 12);
    int vocabulary = config("vocabulary", 50257);
    Dim length = symbol_within("length", 1, config("positions", 1024));
    Tensor ids = input("input_ids", I64, symbol("batch"), length);
    Tensor x = embedding(ids, "wte", vocabulary, width, .init = init_normal(0, 0.02)), y;
    x = add(x, embedding(arange(I64, length), "wpe", config("positions", 1024), width, .init = init_normal(0, 0.02)));
    for (int i = 0; i < layers; i++)
        scope("h.%d", i) {
            y = layer_norm(x, "ln_1");
            scope("attn") x = add(x, self_attention(y, heads));
            y = layer_norm(x, "ln_2");
            scope("mlp") x = add(x, feed_forward(y));
        }
    output("logits", linear(layer_norm(x, "ln_f"), "lm_head", vocabulary, .bias = NO, .share = "wte.weight"));
}
