// SPDX-License-Identifier: MIT OR Apache-2.0
// BERT (Devlin et al. 2018) and what is built as it is, named as Hugging Face's BertModel names it; a model with a head
// on top has a prefix: --map '^bert\.(.*)=\1'. The defaults are bert-base-uncased.
//
// MiniLM-L6:  --set layers=6 --set width=384
// RoBERTa:    --set vocabulary=50265 --set positions=514 --set types=1 --set pad=1 --set eps=1e-5 (and ^roberta\.)
#include <burncc/model.h>

static Tensor self_attention(Tensor x, Tensor mask, int heads)
{
    int width = dim(x, 2);
    Tensor q = split_heads(linear(x, "query", width), heads);
    Tensor k = split_heads(linear(x, "key", width), heads);
    Tensor v = split_heads(linear(x, "value", width), heads);
    return join_heads(scaled_dot_product_attention(q, k, v, .mask = mask));
}

// A projection that is added to x before a norm.
static Tensor add_norm(Tensor x, Tensor y, double eps)
{
    return layer_norm(add(linear(y, "dense", dim(x, 2)), x), "LayerNorm", .eps = eps);
}

MODEL(bert)
{
    int width = config("width", 768), heads = config("heads", 12), layers = config("layers", 12);
    int inner = config("inner", 4 * width), pad = config("pad", -1);
    double eps = config("eps", 1e-12);
    Dim batch = symbol("batch"), length = symbol("length");
    Tensor ids = input("input_ids", I64, batch, length), seen = input("attention_mask", I64, batch, length);
    Tensor mask = unsqueeze(unsqueeze(ne(seen, 0), 1), 1), x;
    // RoBERTa counts positions behind its padding token's number, which padding itself has
    Tensor positions = pad < 0 ? unsqueeze(arange(I64, length), 0) :
                                 add(mul(cumsum(cast(ne(ids, pad), I64), 1), cast(ne(ids, pad), I64)), pad);
    scope("embeddings") {
        x = embedding(ids, "word_embeddings", config("vocabulary", 30522), width);
        x = add(x, embedding(positions, "position_embeddings", config("positions", 512), width));
        Tensor types = embedding(zeros(I64, 1, 1), "token_type_embeddings", config("types", 2), width);
        x = layer_norm(add(x, types), "LayerNorm", .eps = eps);
    }
    for (int i = 0; i < layers; i++)
        scope("encoder.layer.%d", i) {
            Tensor y;
            scope("attention.self") y = self_attention(x, mask, heads);
            scope("attention.output") x = add_norm(x, y, eps);
            y = gelu(linear(x, "intermediate.dense", inner));
            scope("output") x = add_norm(x, y, eps);
        }
    output("last_hidden_state", x);
    if (config("pooler", 1))
        output("pooler_output", tanh(linear(select(x, 1, 0), "pooler.dense", width)));
}
