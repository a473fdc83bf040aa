// SPDX-License-Identifier: MIT OR Apache-2.0
// GPT-2 (Radford et al. 2019) named as its public weights are; Hugging Face's GPT2LMHeadModel has a prefix:
// --map '^transformer\.(.*)=\1'. The defaults are the 124M model; medium: --set layers=24 --set width=1024
// --set heads=16. --set cache=1024: two functions, prefill and step, which keep the keys and values of so many tokens
// and give the logits of the last one, of --set batch=8 texts of one length at a time.
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

// What the tokens so far were, with room for so many of them; 0: nothing is kept.
typedef struct Past { Dim tokens; int room; } Past;

static Tensor self_attention(Tensor x, int heads, Past past)
{
    int width = dim(x, 2);
    Tensor qkv = dense(x, "c_attn", 3 * width), part[3];
    for (int i = 0; i < 3; i++) part[i] = split_heads(chunk(qkv, 3, -1, i), heads);
    for (int i = 1; i < 3 && past.room; i++) part[i] = cached(part[i], i == 1 ? "k" : "v", 2, past.room, past.tokens);
    int causal = past.tokens ? NO : YES;
    Tensor y = join_heads(scaled_dot_product_attention(part[0], part[1], part[2], .causal = causal));
    return dense(y, "c_proj", width);
}

static Tensor feed_forward(Tensor x)
{
    int width = dim(x, 2);
    return dense(gelu_tanh(dense(x, "c_fc", 4 * width)), "c_proj", width);
}

static void logits(Dim batch, Dim length, Past past)
{
    int width = config("width", 768), heads = config("heads", 12), layers = config("layers", 12);
    int vocabulary = config("vocabulary", 50257), most = config("positions", 1024);
    Tensor ids = input("input_ids", I64, batch, length);
    Tensor x = embedding(ids, "wte", vocabulary, width, .init = init_normal(0, 0.02)), y;
    Tensor positions = narrow(arange(I64, dim_add(past.tokens, length)), 0, past.tokens, length);
    x = add(x, embedding(positions, "wpe", most, width, .init = init_normal(0, 0.02)));
    for (int i = 0; i < layers; i++)
        scope("h.%d", i) {
            y = layer_norm(x, "ln_1");
            scope("attn") x = add(x, self_attention(y, heads, past));
            y = layer_norm(x, "ln_2");
            scope("mlp") x = add(x, feed_forward(y));
        }
    if (past.room) x = narrow(x, 1, dim_sub(length, 1), 1);
    output("logits", linear(layer_norm(x, "ln_f"), "lm_head", vocabulary, .bias = NO, .share = "wte.weight"));
}

MODEL(gpt2)
{
    int room = config("cache", 0);
    if (!room) {
        Dim length = symbol_within("length", 1, config("positions", 1024)), batch = symbol("batch");
        logits(batch, length, (Past){ 0, 0 });
        return;
    }
    int batch = config("batch", 1);
    function("prefill") logits(batch, symbol_within("length", 1, room), (Past){ 0, room });
    function("step") logits(batch, 1, (Past){ size_of(input("past", I64), 1, room - 1), room });
}
