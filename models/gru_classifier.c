// SPDX-License-Identifier: MIT OR Apache-2.0
// A classifier of signals: GRUs in both directions and a linear layer on the last layer's two states.
#include <burncc/model.h>

MODEL(gru_classifier)
{
    Tensor h, x = input("signal", F32, symbol("batch"), symbol("length"), config("features", 16));
    gru(x, "gru", config("hidden", 64), .layers = config("layers", 2), .bidirectional = YES, .batch_first = YES,
        .h = &h);
    x = cat(1, select(h, 0, -2), select(h, 0, -1));
    output("logits", linear(x, "fc", config("classes", 6)));
}
