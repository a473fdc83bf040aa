// SPDX-License-Identifier: MIT OR Apache-2.0
// Spoken words from a folder of WAV files for each: log-mel spectra of a second at 8 kHz, two convolutions along time.
//
//   burncc fit examples/train/spoken.c --data audio:words,rate=8000 --epochs 60 --target native
#include <burncc/model.h>

MODEL(spoken)
{
    Tensor x = input("mel", F32, symbol("batch"), 32, 79);
    x = max_pool1d(relu(conv1d(x, "conv1", 32, 5, .padding = 2)), 2);
    x = max_pool1d(relu(conv1d(x, "conv2", 32, 5, .padding = 2)), 2);
    output("logits", linear(flatten(x, 1), "fc", config("classes", 10)));
}
