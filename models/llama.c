// SPDX-License-Identifier: MIT OR Apache-2.0
// Llama (Touvron et al. 2023) and its like, named as Hugging Face names them. The defaults are TinyLlama-1.1B.
//
// All tokens at once; --set cache=2048: two functions, prefill and step, which keep the keys and values of so many
// tokens and give the logits of the last one.
// Qwen2-0.5B: --set width=896 --set layers=24 --set heads=14 --set kv_heads=2 --set inner=4864 --set bias=1
//             --set vocabulary=151936 --set base=1e6 --set eps=1e-6 --set tied=1
#include <burncc/model.h>

// What the tokens so far were, with room for so many of them; 0: nothing is kept.
typedef struct Past { Dim tokens; int room; } Past;

static Tensor self_attention(Tensor x, Tensor positions, int heads, int kv_heads, Past past)
{
    int width = dim(x, 2), size = config("head_size", width / heads), bias = config("bias", 0) ? YES : NO;
    double base = config("base", 10000.0);
    Tensor q = split_heads(linear(x, "q_proj", heads * size, .bias = bias), heads);
    Tensor k = split_heads(linear(x, "k_proj", kv_heads * size, .bias = bias), kv_heads);
    Tensor v = split_heads(linear(x, "v_proj", kv_heads * size, .bias = bias), kv_heads);
    q = rotary(q, positions, base);
    k = rotary(k, positions, base);
    if (past.room) {
        k = cached(k, "k", 2, past.room, past.tokens);
        v = cached(v, "v", 2, past.room, past.tokens);
    }
    Tensor y = join_heads(scaled_dot_product_attention(q, k, v, .causal = past.tokens ? NO : YES));
    return linear(y, "o_proj", width, .bias = NO);
}

static Tensor feed_forward(Tensor x, int inner)
{
    Tensor gate = silu(linear(x, "gate_proj", inner, .bias = NO));
    return linear(mul(gate, linear(x, "up_proj", inner, .bias = NO)), "down_proj", dim(x, 2), .bias = NO);
}

static void logits(Dim batch, Dim length, Past past)
{
    int width = config("width", 2048), layers = config("layers", 22), heads = config("heads", 32);
    int kv_heads = config("kv_heads", 4), inner = config("inner", 5632), vocabulary = config("vocabulary", 32000);
    double eps = config("eps", 1e-5);
    Tensor ids = input("input_ids", I64, batch, length), y;
    Tensor x = embedding(ids, "model.embed_tokens", vocabulary, width, .init = init_normal(0, 0.02));
    Tensor positions = unsqueeze(narrow(arange(I64, dim_add(past.tokens, length)), 0, past.tokens, length), 0);
    for (int i = 0; i < layers; i++)
        scope("model.layers.%d", i) {
            y = rms_norm(x, "input_layernorm", .eps = eps);
            scope("self_attn") x = add(x, self_attention(y, positions, heads, kv_heads, past));
            y = rms_norm(x, "post_attention_layernorm", .eps = eps);
            scope("mlp") x = add(x, feed_forward(y, inner));
        }
    if (past.room) x = narrow(x, 1, dim_sub(length, 1), 1);
    const char *share = config("tied", 0) ? "model.embed_tokens.weight" : NULL;
    output("logits", linear(rms_norm(x, "model.norm", .eps = eps), "lm_head", vocabulary, .bias = NO, .share = share));
}

MODEL(llama)
{
    int room = config("cache", 0);
    if (!room) {
        Dim length = symbol("length"), batch = symbol("batch");
        logits(batch, length, (Past){ 0, 0 });
        return;
    }
    function("prefill") logits(1, symbol_within("length", 1, room), (Past){ 0, room });
    function("step") logits(1, 1, (Past){ size_of(input("past", I64), 1, room - 1), room });
}
