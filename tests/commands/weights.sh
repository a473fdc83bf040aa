#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Files of weights: which parameter takes which tensor, what is said of the rest, and files that lie.
source "$(dirname "$0")/tap.sh"
source "$here/fc.sh"
python3 "$here/safetensors.py" || { echo "Bail out! safetensors.py fails"; exit 1; }

# y = W x + b with W = [[1, 1.125, 1.25], [1.375, 1.5, 1.625]], b = [0.5, 0.625]
for file in good prefix half model.safetensors.index; do
    path=$file.safetensors
    [ -e "$path" ] || path=$file.json
    status 0 "$file" run --weights "$path"
    says '^  8\.75 11\.5$'
    says '2 of the model.s 2 parameters'
done
status 0 "renamed" run --weights renamed.safetensors --map '^head\.0\.w=fc.weight' --map '^head\.([0-9])\.b=fc.bias'
says '^  8\.75 11\.5$'
status 1 "not renamed" run --weights renamed.safetensors
says 'no tensor has the name of a parameter'
status 0 "some" run --weights partial.safetensors
says 'no tensor for 1 parameters: "fc.bias"'
says '1 tensors belong to no parameter: "old.scale"'
status 1 "some, strictly" run --weights partial.safetensors --strict
status 0 "another shape" run --weights shape.safetensors
says '"fc.weight" is f32\[3,2\], the model.s "fc.weight" is f32\[2,3\]'
status 1 "another shape, strictly" run --weights shape.safetensors --strict
status 2 "a map that is none" run --weights good.safetensors --map '(=fc'
says '--map \(: '
status 0 "an ONNX model's too" "$burncc" scores.onnx -o s.c --weights good.safetensors --map 'fc.weight=w'
says '"w" is f32\[2,3\], the model.s "w" is'
status 0 "inspect" "$burncc" inspect good.safetensors
says '^fc.weight +f32\[2,3\] +1 \.\. 1\.625$'
says '^2 tensors of safetensors, 8 elements, 32 B'
status 0 "inspect --json" "$burncc" inspect half.safetensors --json
python3 -c 'import json; d = json.load(open("out")); assert d["tensors"][0]["dtype"] == "f16", d'
result $? "types in JSON"

for bad in bad_*.safetensors cut_*.safetensors escape.index.json; do
    got=0
    run --weights "$bad" >out 2>err || got=$?
    [ "$got" = 1 ] && [ "$(grep -c 'error:' err)" = 1 ] && grep -q "^$bad\|^part" err
    result $? "$bad: one diagnostic"
done

# Records, and Burn's files, whose matrices of linear layers are [in, out].
PYTHONPATH=$here/../learn python3 - <<'END' || { echo "Bail out! record_formats.py fails"; exit 1; }
import struct
import record_formats as formats
f = lambda *x: struct.pack(f"<{len(x)}f", *x)
weight, bias = f(1, 1.125, 1.25, 1.375, 1.5, 1.625), ("F32", [2], f(0.5, 0.625))
record = formats.record([("fc.weight", "F32", [2, 3], weight), ("fc.bias", *bias)])
other_way = "F32", [3, 2], f(1, 1.375, 1.125, 1.5, 1.25, 1.625)
for ending, (_, write, _) in formats.FORMATS.items():
    open(f"record{ending}", "wb").write(write(record))
open("record.bin.gz", "wb").write(formats.packed(formats.binary_write(record)))
open("bad.bin", "wb").write(formats.binary_write(record)[:-1])
open("burn.mpk", "wb").write(formats.named_mpk({"fc": {"weight": formats.param(*other_way),
                                                      "bias": formats.param(*bias)}}))
open("burn.bpk", "wb").write(formats.burnpack([("fc.weight", *other_way), ("fc.bias", *bias)]))
open("norm.bpk", "wb").write(formats.burnpack([("fc.gamma", *other_way), ("fc.beta", *bias)]))
END
for file in record.* burn.* norm.bpk; do
    got=0
    run --weights $file --strict >out 2>err || got=$?
    lacks=$(grep -o "this build has no.*" err)
    [ -n "$lacks" ] || { [ $got = 0 ] && grep -q "^  8\.75 11\.5$" out; }
    result $? "$file${lacks:+ # SKIP $lacks}"
done
status 1 "a record that is damaged" run --weights bad.bin
says 'bad.bin: .*its data ends too early'
status 1 "a record has no keys" run --weights record.bin --weights-key x
status 0 "inspect a record" "$burncc" inspect record.bin.gz
says '^2 tensors of binary, 8 elements, 32 B'
finish
