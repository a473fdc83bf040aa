// SPDX-License-Identifier: MIT OR Apache-2.0
// Whisper (Radford et al. 2022) named as Hugging Face's WhisperForConditionalGeneration names it; the decoder sees all
// tokens at once, without a cache. The defaults are whisper-tiny; base: --set width=512 --set heads=8 --set layers=6.
// --set decoder=0: the encoder alone.
#include <burncc/model.h>

// What x asks of y; nothing behind a token's place if causal.
static Tensor attention(Tensor x, Tensor y, int heads, int causal)
{
    int width = dim(x, 2);
    Tensor q = split_heads(linear(x, "q_proj", width), heads);
    Tensor k = split_heads(linear(y, "k_proj", width, .bias = NO), heads);
    Tensor v = split_heads(linear(y, "v_proj", width), heads);
    return linear(join_heads(scaled_dot_product_attention(q, k, v, .causal = causal)), "out_proj", width);
}

// encoded: what a decoder's layer looks at besides; NULL: a layer of the encoder
static Tensor layer(Tensor x, Tensor encoded, int heads)
{
    Tensor y = layer_norm(x, "self_attn_layer_norm");
    scope("self_attn") x = add(x, attention(y, y, heads, encoded ? YES : NO));
    if (encoded) {
        y = layer_norm(x, "encoder_attn_layer_norm");
        scope("encoder_attn") x = add(x, attention(y, encoded, heads, NO));
    }
    y = gelu(linear(layer_norm(x, "final_layer_norm"), "fc1", 4 * dim(x, 2)));
    return add(x, linear(y, "fc2", dim(x, 2)));
}

static Tensor encoder(Tensor mel, int width, int heads, int layers)
{
    Tensor x = gelu(conv1d(mel, "conv1", width, 3, .padding = 1));
    x = transpose(gelu(conv1d(x, "conv2", width, 3, .stride = 2, .padding = 1)), 1, 2);
    x = add(x, parameter("embed_positions.weight", (dim(x, 1), width), .frozen = YES));
    for (int i = 0; i < layers; i++)
        scope("layers.%d", i) x = layer(x, NULL, heads);
    return layer_norm(x, "layer_norm");
}

static Tensor decoder(Tensor encoded, Tensor tokens, int heads, int layers)
{
    int width = dim(encoded, 2);
    Tensor x = embedding(tokens, "embed_tokens", config("vocabulary", 51865), width);
    x = add(x, embedding(arange(I64, dim(tokens, 1)), "embed_positions", 448, width));
    for (int i = 0; i < layers; i++)
        scope("layers.%d", i) x = layer(x, encoded, heads);
    return layer_norm(x, "layer_norm");
}

MODEL(whisper)
{
    int width = config("width", 384), heads = config("heads", 6), layers = config("layers", 4);
    Dim batch = symbol("batch");
    Tensor x = input("mel", F32, batch, config("mels", 80), config("frames", 3000));
    scope("model.encoder") x = encoder(x, width, heads, layers);
    if (!config("decoder", 1)) {
        output("encoded", x);
        return;
    }
    Tensor tokens = input("tokens", I64, batch, symbol_within("length", 1, 448));
    scope("model.decoder") x = decoder(x, tokens, heads, layers);
    output("logits", linear(x, "proj_out", config("vocabulary", 51865), .bias = NO,
        .share = "model.decoder.embed_tokens.weight"));
}
