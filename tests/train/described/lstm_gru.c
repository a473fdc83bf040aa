// SPDX-License-Identifier: MIT OR Apache-2.0
// An LSTM, a GRU on its states, and a linear layer on the last one's.
#include <burncc/model.h>

MODEL(lstm_gru)
{
    Tensor x = lstm(input("input", F32, 4, 12, 8), "lstm", 16, .batch_first = YES);
    x = gru(x, "gru", 16, .batch_first = YES);
    output("output", linear(select(x, 1, -1), "fc", 4));
}
