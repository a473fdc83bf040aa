// SPDX-License-Identifier: MIT OR Apache-2.0
// An LSTM over characters, that learns a list of names and makes others:
//
//   burncc fit examples/train/names.c --data text:names.txt,length=48 --epochs 5 --lr 0.004 --target native
//   burncc predict names-run/model.onnx begin.txt --length 80
#include <burncc/model.h>

MODEL(names)
{
    int width = config("width", 128), classes = config("classes", 27);
    Tensor x = embedding(input("tokens", I64, symbol("batch"), symbol("length")), "embed", classes, 32);
    x = transpose(lstm(transpose(x, 0, 1), "lstm", width), 0, 1);
    output("logits", linear(x, "head", classes));
}
