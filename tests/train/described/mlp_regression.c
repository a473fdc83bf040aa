// SPDX-License-Identifier: MIT OR Apache-2.0
// Three linear layers with GELU and tanh between them.
#include <burncc/model.h>

MODEL(mlp_regression)
{
    Tensor x = gelu(linear(input("input", F32, 16, 13), "a", 32));
    output("output", linear(tanh(linear(x, "b", 32)), "c", 1));
}
