// SPDX-License-Identifier: MIT OR Apache-2.0
// A classifier of sequences: embedding, LSTM, and a linear layer on its last state.
#include <burncc/model.h>

MODEL(lstm_classifier)
{
    Tensor h, tokens = input("tokens", I64, symbol("batch"), symbol("length"));
    Tensor x = embedding(tokens, "embedding", config("vocabulary", 10000), config("features", 128));
    lstm(x, "lstm", config("hidden", 256), .layers = config("layers", 1), .batch_first = YES, .h = &h);
    output("logits", linear(select(h, 0, -1), "fc", config("classes", 2)));
}
