#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# PyTorch's files of weights in all their formats, and NumPy's archives: good ones, and some hundred that lie.
source "$(dirname "$0")/tap.sh"
source "$here/fc.sh"
python3 "$here/torch.py" || { echo "Bail out! torch.py fails"; exit 1; }

for file in good_*; do
    run --weights "$file" >out 2>err && grep -q '^  8\.75 11\.5$' out && grep -q "2 of the model.s 2 parameters" err
    result $? "$file"
done
status 0 "inspect" "$burncc" inspect good_key.pt
says '^model_state_dict.fc.weight +f32\[2,3\] +1 \.\. 1\.625$'
says '^optimizer.state.0.exp_avg +f32\[2\] +0\.5 \.\. 0\.625$'
status 0 "inspect a part" "$burncc" inspect good_key.pt --weights-key optimizer.state
says '^0.exp_avg'
status 1 "a key that is not there" "$burncc" inspect good_key.pt --weights-key nothing
says 'nothing under the key "nothing"; keys with tensors: "model_state_dict", "optimizer"$'
status 1 "several dictionaries" run --weights several.pt
says 'choose with --weights-key: "model", "ema"$'
status 0 "one of them" run --weights several.pt --weights-key ema
says '^  8\.75 11\.5$'
status 0 "element types" "$burncc" inspect types.pt
for type in 'double +f64' 'half +f16' 'bfloat16 +bf16' 'long +i64' 'int +i32' 'short +i16' 'char +i8' 'byte +u8' \
    'bool +bool' 'complexfloat +c64' 'complexdouble +c128' 'float8_e4m3fn +f8e4m3fn' 'float8_e5m2 +f8e5m2' \
    'uint16 +u16' 'uint32 +u32' 'uint64 +u64'; do
    says "^$type\[2\]"
done
status 0 "inspect --output" "$burncc" inspect good_turned.pt --output arrays
cmp <(tail -c 24 arrays/fc.weight.npy) <(python3 -c '
import struct, sys
sys.stdout.buffer.write(struct.pack("<6f", *[1 + i / 8 for i in range(6)]))')
result $? "tensors as .npy"
status 2 "inspect --output of a model" "$burncc" inspect fc.c --output arrays
# two thousand dictionaries, in each 2^60 ways to one tensor
status 1 "not all ways are gone" timeout 10 "$burncc" run fc.c --input x=x.txt --weights bad_ways.pt
says 'its objects hold one another too often'

for file in bad_* cut_*; do
    got=0
    "$burncc" inspect "$file" >out 2>err || got=$?
    mapfile -t said <err
    [[ $got = 1 && ${#said[@]} = 1 && ${said[0]} = "$file"*"error: "* && ! -s out ]]
    result $? "$file: one diagnostic"
done
absent hacked
finish
