// SPDX-License-Identifier: MIT OR Apache-2.0
// ALBERT (Lan et al. 2019) named as Hugging Face's AlbertModel names it: narrow embeddings, and layers that share one
// set of parameters. The defaults are albert-base-v2; with a head on top: --map '^albert\.(.*)=\1'.
#include <burncc/model.h>

static Tensor self_attention(Tensor x, Tensor mask, int heads)
{
    int width = dim(x, 2);
    Tensor q = split_heads(linear(x, "query", width), heads);
    Tensor k = split_heads(linear(x, "key", width), heads);
    Tensor v = split_heads(linear(x, "value", width), heads);
    Tensor y = linear(join_heads(scaled_dot_product_attention(q, k, v, .mask = mask)), "dense", width);
    return layer_norm(add(x, y), "LayerNorm", .eps = 1e-12);
}

MODEL(albert)
{
    int width = config("width", 768), heads = config("heads", 12), layers = config("layers", 12);
    int narrowed = config("embedding", 128), inner = config("inner", 4 * width);
    Dim batch = symbol("batch"), length = symbol("length");
    Tensor ids = input("input_ids", I64, batch, length), seen = input("attention_mask", I64, batch, length);
    Tensor mask = unsqueeze(unsqueeze(ne(seen, 0), 1), 1), x;
    scope("embeddings") {
        x = embedding(ids, "word_embeddings", config("vocabulary", 30000), narrowed);
        x = add(x, embedding(arange(I64, length), "position_embeddings", config("positions", 512), narrowed));
        x = add(x, embedding(zeros(I64, 1, 1), "token_type_embeddings", 2, narrowed));
        x = layer_norm(x, "LayerNorm", .eps = 1e-12);
    }
    x = linear(x, "encoder.embedding_hidden_mapping_in", width);
    for (int i = 0; i < layers; i++)
        shared() scope("encoder.albert_layer_groups.0.albert_layers.0") {
            scope("attention") x = self_attention(x, mask, heads);
            Tensor y = linear(gelu_tanh(linear(x, "ffn", inner)), "ffn_output", width);
            x = layer_norm(add(y, x), "full_layer_layer_norm", .eps = 1e-12);
        }
    output("last_hidden_state", x);
    output("pooler_output", tanh(linear(select(x, 1, 0), "pooler", width)));
}
