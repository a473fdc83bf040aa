// SPDX-License-Identifier: MIT OR Apache-2.0
// A table's rows to classes, or to a number: two hidden layers. `burncc fit` says how many features and classes there
// are, from the data:
//
//   burncc fit examples/train/table.c --data csv:examples/train/iris.csv,scale --epochs 40 --lr 0.01
#include <burncc/model.h>

MODEL(table)
{
    int hidden = config("hidden", 32);
    Tensor x = input("features", F32, symbol("batch"), config("features", 4));
    x = relu(linear(x, "fc1", hidden));
    x = relu(linear(x, "fc2", hidden));
    output("out", linear(x, "fc3", config("classes", 3)));
}
