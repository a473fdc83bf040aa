// SPDX-License-Identifier: MIT OR Apache-2.0
// Which of some sounds is heard in a second of log-mel spectra: convolutions along time, depthwise in the middle.
#include <burncc/model.h>

MODEL(words)
{
    const int channels = (int)config("channels", 32);
    Tensor x = input("mel", F32, symbol("batch"), 20, 61);
    x = relu(batch_norm(conv1d(x, "conv1", channels, 5, .padding = 2, .stride = 2, .bias = NO), "norm1"));
    for (int i = 2; i < 4; i++)
        scope("block%d", i) {
            x = conv1d(x, "along", channels, 5, .padding = 2, .groups = channels, .bias = NO);
            x = conv1d(relu(batch_norm(x, "norm1")), "across", channels, 1, .bias = NO);
            x = relu(batch_norm(x, "norm2"));
            x = max_pool1d(x, 2);
        }
    x = flatten(x, 1);
    output("logits", linear(x, "fc", config("classes", 4)));
}
