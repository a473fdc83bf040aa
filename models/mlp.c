// SPDX-License-Identifier: MIT OR Apache-2.0
// A multilayer perceptron, named as torchvision.ops.MLP names it (linear, rectifier and dropout are three modules):
// --set layers=3 --set width=512.
#include <burncc/model.h>

MODEL(mlp)
{
    int layers = config("layers", 2), width = config("width", 128);
    Tensor x = input("x", F32, symbol("batch"), config("features", 784));
    for (int i = 0; i < layers; i++) x = dropout(relu(linear(x, named("%d", 3 * i), width)), config("dropout", 0.0));
    output("logits", linear(x, named("%d", 3 * layers), config("classes", 10)));
}
