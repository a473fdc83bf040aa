// SPDX-License-Identifier: MIT OR Apache-2.0
// DistilBERT (Sanh et al. 2019) named as Hugging Face's DistilBertModel names it; with a head on top:
// --map '^distilbert\.(.*)=\1'.
#include <burncc/model.h>

static Tensor self_attention(Tensor x, Tensor mask, int heads)
{
    int width = dim(x, 2);
    Tensor q = split_heads(linear(x, "q_lin", width), heads);
    Tensor k = split_heads(linear(x, "k_lin", width), heads);
    Tensor v = split_heads(linear(x, "v_lin", width), heads);
    return linear(join_heads(scaled_dot_product_attention(q, k, v, .mask = mask)), "out_lin", width);
}

MODEL(distilbert)
{
    int width = config("width", 768), heads = config("heads", 12), layers = config("layers", 6);
    Dim batch = symbol("batch"), length = symbol("length");
    Tensor ids = input("input_ids", I64, batch, length), seen = input("attention_mask", I64, batch, length);
    Tensor mask = unsqueeze(unsqueeze(ne(seen, 0), 1), 1), x, y;
    scope("embeddings") {
        x = embedding(ids, "word_embeddings", config("vocabulary", 30522), width);
        x = add(x, embedding(arange(I64, length), "position_embeddings", config("positions", 512), width));
        x = layer_norm(x, "LayerNorm", .eps = 1e-12);
    }
    for (int i = 0; i < layers; i++)
        scope("transformer.layer.%d", i) {
            scope("attention") y = self_attention(x, mask, heads);
            x = layer_norm(add(y, x), "sa_layer_norm", .eps = 1e-12);
            y = linear(gelu(linear(x, "ffn.lin1", 4 * width)), "ffn.lin2", width);
            x = layer_norm(add(y, x), "output_layer_norm", .eps = 1e-12);
        }
    output("last_hidden_state", x);
}
