// SPDX-License-Identifier: MIT OR Apache-2.0
// The encoder of T5 (Raffel et al. 2019) named as Hugging Face's T5EncoderModel names it. The defaults are t5-small;
// t5-base: --set width=768 --set heads=12 --set layers=12 --set inner=3072; T5 1.1 and Flan-T5: --set gated=1.
#include <burncc/model.h>

// How far key k is from query q in steps that grow with the distance: 16 of 32 for each direction, 8 of them exact, the
// rest logarithmic up to 128. [length, length]
static Tensor buckets(Dim length)
{
    Tensor at = arange(I64, length), ahead = sub(unsqueeze(at, 0), unsqueeze(at, 1)), distance = absolute(ahead);
    Tensor scaled = mul(log(div(cast(maximum(distance, 1), F32), 8)), 8 / log(128.0 / 8));
    Tensor far = minimum(add(cast(trunc(scaled), I64), 8), 15);
    return add(mul(cast(gt(ahead, 0), I64), 16), where(lt(distance, 8), distance, far));
}

static Tensor self_attention(Tensor x, Tensor bias, int heads, int size)
{
    Tensor q = split_heads(linear(x, "q", heads * size, .bias = NO), heads);
    Tensor k = split_heads(linear(x, "k", heads * size, .bias = NO), heads);
    Tensor v = split_heads(linear(x, "v", heads * size, .bias = NO), heads);
    Tensor y = join_heads(scaled_dot_product_attention(q, k, v, .mask = bias, .scale = 1));
    return linear(y, "o", dim(x, 2), .bias = NO);
}

static Tensor feed_forward(Tensor x, int inner, int gated)
{
    Tensor y = gated ? mul(gelu_tanh(linear(x, "wi_0", inner, .bias = NO)), linear(x, "wi_1", inner, .bias = NO)) :
                       relu(linear(x, "wi", inner, .bias = NO));
    return linear(y, "wo", dim(x, 2), .bias = NO);
}

MODEL(t5_encoder)
{
    int width = config("width", 512), heads = config("heads", 8), layers = config("layers", 6);
    int size = config("size", 64), inner = config("inner", 2048), gated = config("gated", 0);
    Dim batch = symbol("batch"), length = symbol("length");
    Tensor ids = input("input_ids", I64, batch, length), seen = input("attention_mask", I64, batch, length);
    Tensor x = embedding(ids, "shared", config("vocabulary", 32128), width), bias = NULL, y;
    Tensor unseen = mul(cast(eq(unsqueeze(unsqueeze(seen, 1), 1), 0), F32), -1e9);
    for (int i = 0; i < layers; i++)
        scope("encoder.block.%d.layer", i) {
            if (i == 0) {
                bias = embedding(buckets(length), "0.SelfAttention.relative_attention_bias", 32, heads);
                bias = add(unsqueeze(permute(bias, 2, 0, 1), 0), unseen);
            }
            y = rms_norm(x, "0.layer_norm");
            scope("0.SelfAttention") x = add(x, self_attention(y, bias, heads, size));
            y = rms_norm(x, "1.layer_norm");
            scope("1.DenseReluDense") x = add(x, feed_forward(y, inner, gated));
        }
    output("last_hidden_state", rms_norm(x, "encoder.final_layer_norm"));
}
