#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc run, bench, inspect and ops: kinds of input, kinds of output.
source "$(dirname "$0")/tap.sh"

status 0 "npy" "$burncc" run scores.onnx --input image=image.npy
says '^scores: f32\[1,5\]  min='
says 'largest:'
cp out expected
for input in image.txt image64.npy test_data_set_0/input_0.pb; do
    status 0 "$input" "$burncc" run scores.onnx --input image=$input
    cmp -s out expected
    result $? "the same numbers"
done
status 0 "image" "$burncc" run scores.onnx --input seven.pgm
status 0 "two inputs" "$burncc" run pair.onnx --input x=x.txt --input y=y.txt
says '2 5 -6'
says '20 40 18014398509481986'
maps="--input words_keys=word_keys.txt --input words_values=word_values.txt"
maps="$maps --input numbers_keys=number_keys.txt --input numbers_values=number_values.txt"
for sizes in "--dim words_size=3 --dim numbers_size=2" "--dim words_size=1..4 --dim numbers_size=1..5"; do
    status 0 "maps and strings, $sizes" "$burncc" run maps.onnx $sizes $maps --quiet
    says '^  2 0 0 1.5$'
    says '^  "4" "2.5"$'
    says '^  0 4 0 2 0$'
done
status 0 "json" "$burncc" run pair.onnx --input x=x.txt --input y=y.txt --json
python3 -c 'import json
o = json.load(open("out"))["outputs"]
assert o[0]["name"] == "sum" and o[1]["values"][0] == 20'
result $? "it is JSON"
status 0 "to files" "$burncc" run scores.onnx --input image.npy --output results
python3 - <<'END'
import struct
data = open("results/scores.npy", "rb").read()
assert data[:8] == b"\x93NUMPY\x01\x00" and b"'shape': (1, 5)" in data and len(data) % 64 == 20
struct.unpack("<5f", data[-20:])
END
result $? "results/scores.npy"
status 0 "what it wrote" "$burncc" run pair.onnx --input x=x.txt --input y=y.txt --output results
status 0 "it can read" "$burncc" run pair.onnx --input x=results/sum.npy --input y=results/twice.npy
says '4 10 -12'

status 2 "no input" "$burncc" run pair.onnx --input x=x.txt
says 'inputs without a value: y: i64\[3\]'
status 2 "no such input" "$burncc" run pair.onnx --input z=x.txt
status 1 "wrong shape" "$burncc" run scores.onnx --input image=flat.npy
says 'holds f32\[4\], the model wants f32\[batch,1,2,2\]'
status 1 "wrong image" "$burncc" run scores.onnx --input image=wide.pgm
status 1 "text that is no number" "$burncc" run scores.onnx --input image=odd.txt
says "value 1, 'one', is not a f32"
status 1 "an array larger than its file" "$burncc" run scores.onnx --input image=bomb.npy
status 4 "no such file" "$burncc" run scores.onnx --input image=none.npy

status 0 "bench" "$burncc" bench scores.onnx --seconds 0.05
says '^median_ms=[0-9.e-]+ min_ms=[0-9.e-]+ gflops=[0-9.e+-]+ workspace_bytes=[0-9]+'
status 0 "bench of large weights" "$burncc" bench large.onnx --seconds 0.05 --json --embed-limit 1K
python3 -c 'import json; assert json.load(open("out"))["weights_bytes"] > 60000'
result $? "it is JSON"
status 0 "inspect" "$burncc" inspect scores.onnx --dim batch=2
says 'inputs +image: f32\['
says 'MatMul 1'
says '40 multiply-adds'
status 0 "inspect" "$burncc" inspect scores.onnx --json
python3 -c 'import json
o = json.load(open("out"))
assert o["supported"] and o["parameters"] == 20 and o["operators"]["MatMul"] == 1'
result $? "it is JSON"
status 1 "inspect what is not supported" "$burncc" inspect unknown.onnx
status 0 "ops" "$burncc" ops
says 'MatMul +ai.onnx +1'
status 0 "ops" "$burncc" ops --json
python3 -c 'import json; o = json.load(open("out")); assert len(o["onnx"]) > 50 and len(o["operations"]) > 30'
result $? "it is JSON"
status 0 "ops" "$burncc" ops --markdown
says '^\| MatMul \| ai.onnx \|'

# ---- --normalize: what images become
PYTHONPATH=$here/.. python3 - <<'END'
import pathlib
from onnx_wire import FLOAT, UINT8, graph, model, node, value_info
for name, dtype in (("colour", FLOAT), ("bytes8", UINT8)):
    ends = [value_info("x", dtype, [1, 3, 1, 2])], [value_info("y", dtype, [1, 3, 1, 2])]
    pathlib.Path(name + ".onnx").write_bytes(model(graph([node("Identity", ["x"], ["y"])], *ends)))
pathlib.Path("two.ppm").write_bytes(b"P6 2 1 255\n" + bytes([0, 51, 255, 255, 102, 0]))
END
digits=$here/../../models/digits
gives() { # what, options, the line of numbers
    status 0 "$1" "$burncc" run colour.onnx --input two.ppm ${2:+--normalize "$2"}
    says "^  $3\$"
}
gives "0 to 1" "" '0 1 0.2 0.4 1 0'
gives "0 to 255" none '0 255 51 102 255 0'
gives "-1 to 1" 0.5/0.5 '-1 1 -0.6 -0.2 1 -1'
gives "by channel" 0,0.2,0.5/1,2,0.25 '0 1 0 0.1 2 -2'
gives "as torchvision's classifiers" imagenet '-2.1179 2.24891 -1.14286 -0.25 2.64 -1.80444'
status 0 "a classifier" "$burncc" run "$digits/digits.onnx" --input "$digits/images/7.pgm" --output one
status 0 "and what it stands for" "$burncc" run "$digits/digits.onnx" --input "$digits/images/7.pgm" --output two \
    --normalize 0/1
cmp -s one/logits.npy two/logits.npy
result $? "are the same"
status 1 "three numbers for gray" "$burncc" run "$digits/digits.onnx" --input "$digits/images/7.pgm" \
    --normalize imagenet
says '7.pgm: error: --normalize has numbers for 3 channels, the image has 1'
status 1 "bytes" "$burncc" run bytes8.onnx --input two.ppm --normalize 0.5/0.5
says '--normalize is for inputs of floats; this one is u8 and takes 0 to 255 as they are'
for wrong in 1 1/0 1,2/3 /1 a/b 1,/2,3 imagenets; do
    status 2 "--normalize $wrong" "$burncc" run colour.onnx --input two.ppm --normalize $wrong
    says 'wants imagenet, none, or MEAN/SCALE'
done
finish
