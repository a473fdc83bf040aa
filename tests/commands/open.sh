#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Models whose dimensions cannot be left open, what inspect says of files that do not compile, images as inputs.
source "$(dirname "$0")/tap.sh"

# gate: x f32[batch,time] loses its first axis where batch is 1, and else its last; chain: where time is 3
python3 - "$here/.." <<'END'
import struct, sys, zlib
sys.path.insert(0, sys.argv[1])
from onnx_wire import FLOAT, INT64, graph, model, node, tensor, value_info

def gate(axis, size):
    then = graph([node("Squeeze", ["x", "first"], ["a"])], [], [value_info("a", FLOAT, ["n"])], name="then")
    other = graph([node("Transpose", ["x"], ["b"], perm=[1, 0])], [], [value_info("b", FLOAT, ["n", "m"])], name="else")
    return model(graph([
        node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "axis"], ["size"]),
        node("Equal", ["size", "one"], ["is"]),
        node("If", ["is"], ["y"], then_branch=("graph", then), else_branch=("graph", other)),
    ], [value_info("x", FLOAT, ["batch", "time"])], [value_info("y", FLOAT, ["n"])],
        [tensor("axis", INT64, axis), tensor("one", INT64, size), tensor("first", INT64, [0])]))

open("gate.onnx", "wb").write(gate(0, 1))
open("chain.onnx", "wb").write(gate(1, 3))

def png(name, width, height, channels):
    rows = b"".join(b"\0" + bytes(51 * (i + 1) for i in range(width * channels)) for _ in range(height))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) +
                           chunk(b"IEND", b""))

png("gray.png", 2, 2, 1)
png("wide.png", 3, 2, 1)
for name, shape in (("planes", [1, 3, 2, 1]), ("last", ["h", "w", 3]), ("plane", [1, 1, 2, 1])):
    open(name + ".onnx", "wb").write(model(graph([node("Neg", ["x"], ["y"])], [value_info("x", FLOAT, shape)],
                                                 [value_info("y", FLOAT, shape)])))
png("colour.png", 1, 2, 3)
END

status 0 "sizes that cannot stay open" "$burncc" gate.onnx -o gate.c
says 'gate.onnx: note: dimension batch is taken as 1, as shapes do not come out while it is open; --dim batch=N'
silent 'error:'
status 0 "one of them given" "$burncc" gate.onnx -o gate.c --dim time=4
grep -q 'reads    x: f32\[1,4\]' gate.h
result $? "x is f32[1,4]"
status 1 "a range where a size is wanted" "$burncc" gate.onnx -o gate.c --dim batch=1..4 --dim time=1..4
says 'output 0 is .* on one side and .* on the other'
status 0 "the sizes where they may be 1" "$burncc" chain.onnx -o chain.c --dim batch=2
says 'dimension time is taken as 1'
status 1 "not an operator" "$burncc" inspect unknown.onnx
says 'inputs +x: f32\[4\]'
says 'outputs +y: f32\[4\]'
says 'operators +3: Defrobnicate 1, Frobnicate 1, Relu 1'
says 'support +not as it stands, see above'
silent '^parameters'
status 1 "the same as JSON" "$burncc" inspect unknown.onnx --json
python3 -c 'import json
o = json.load(open("out"))
assert not o["supported"] and o["nodes"] == 3 and o["inputs"][0]["shape"] == [4] and "parameters" not in o'
result $? "it is JSON"
status 1 "open sizes" "$burncc" inspect gate.onnx --dim batch=1..4 --dim time=1..4
says 'inputs +x: f32\[batch,time\]'

status 0 "no image library is needed for Netpbm" "$burncc" run scores.onnx --input seven.pgm
if "$burncc" --version | grep -q ' PNG'; then
    status 0 "a PNG image" "$burncc" run scores.onnx --input gray.png
    status 0 "planes of colour" "$burncc" run planes.onnx --input colour.png
    says '^  -0\.2 -0\.2 -0\.4 -0\.4 -0\.6 -0\.6$'
    status 0 "colours last, any size" "$burncc" run last.onnx --input colour.png
    says '^y: f32\[2,1,3\]'
    says '^  -0\.2 -0\.4 -0\.6 -0\.2 -0\.4 -0\.6$'
    status 0 "colour where the model has one channel" "$burncc" run plane.onnx --input colour.png
    status 1 "another size" "$burncc" run scores.onnx --input wide.png
    says 'wide.png: error: the image is 3 x 2 .*, the model wants f32\[batch,1,2,2\]'
else
    echo "ok $((count += 1)) # SKIP burncc is built without PNG"
fi
cp image.npy damaged.png
status 1 "no image" "$burncc" run scores.onnx --input damaged.png
says 'damaged.png: error: not an image that this build decodes'

status 4 "records that cannot be written" "$burncc" tune scores.onnx -o nowhere/some.records --seconds 1
silent 'records='
status 0 "the plan by its name" "$burncc" scores.onnx --dump plan
says '^plan scores: workspace'
finish
