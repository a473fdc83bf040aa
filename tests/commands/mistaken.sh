#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What is given in a model's place: the message says what it is and what helps.
source "$(dirname "$0")/tap.sh"

python3 - <<'END'
import gzip, struct, zipfile

def message(n, value):
    return bytes([n << 3 | 2, len(value)]) + value

def zipped(name, *files):
    with zipfile.ZipFile(name, "w") as z:
        for file in files:
            z.writestr(file, "x")

model = open("scores.onnx", "rb").read()
files = {
    "page": b"\n<!DOCTYPE html><html></html>",
    "pointer": b"version https://git-lfs\noid sha256:4d7a\nsize 12345\n",
    "packed": gzip.compress(model),
    "weights": struct.pack("<Q", 2) + b"{}" + bytes(8),
    "gguf": b"GGUF\3" + bytes(50),
    "tflite": b"\x1c\0\0\0TFL3" + bytes(50),
    "frozen": message(1, message(1, b"x") + message(2, b"Placeholder")),
    "saved": b"\x08\x01" + message(2, b"abcdef"),
    "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(50),
    "picture": b"\x89PNG\r\n\x1a\n",
    "empty": b"",
    "noise": b"\xff" * 99,
    "short": model[:len(model) // 2],
}
for name, data in files.items():
    open(name + ".onnx", "wb").write(data)
open("length", "w").write(f"{len(model) // 2} bytes of at least [0-9]+;")
zipped("module.onnx", "net/data.pkl")
zipped("archive.onnx", "net.onnx")
END
mkdir -p folder/inner exported
cp scores.onnx folder
touch exported/saved_model.pb

is() { # name, status, what the message says
    status "$2" "$1" "$burncc" "$1" -o bad.c
    says "^$1: error: $3"
}
is page.onnx 1 'not an ONNX model: this is a web page'
is pointer.onnx 1 'not an ONNX model: this is the pointer that Git LFS keeps .*`git lfs pull`'
is packed.onnx 1 'not an ONNX model: this is compressed by gzip; `gunzip` it first'
is weights.onnx 1 'not an ONNX model: this is a file of weights .* --weights'
is module.onnx 1 'not an ONNX model: this is a PyTorch file; .* torch.onnx.export'
is archive.onnx 1 'not an ONNX model: this is a zip archive; unpack it'
is gguf.onnx 1 'not an ONNX model: this is a GGUF file'
is tflite.onnx 1 'not an ONNX model: this is a TensorFlow Lite model; .*tf2onnx'
is frozen.onnx 1 '.*; this is perhaps a TensorFlow graph'
is saved.onnx 1 ".*; this is perhaps TensorFlow.s SavedModel"
is hdf5.onnx 1 'not an ONNX model: this is an HDF5 file'
is picture.onnx 1 'not an ONNX model: this is a PNG image, no model; `burncc run` takes it'
is empty.onnx 1 'not an ONNX model: .*; this is an empty file'
is noise.onnx 1 'not an ONNX file, or a damaged one: byte 0 cannot be read'
is short.onnx 1 "the file is cut short: it has $(cat length)"
is folder 4 'no model: this is a folder; the model may be scores.onnx in it'
is folder/inner 4 'no model: this is a folder, and no .onnx is in it'
is exported 4 "no model: this is TensorFlow's SavedModel; .*tf2onnx"
status 1 "inspect says it too" "$burncc" inspect page.onnx
says 'this is a web page'
absent bad.c bad.h
finish
