#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sequences and optionals at a model's ends: --sequence, --absent, --input, and what the header says of them.
source "$(dirname "$0")/tap.sh"
python3 "$here/../small/run.py" --only-write small || { echo "Bail out! small/run.py fails"; exit 1; }
positions=small/sequence_positions ragged=small/sequence_ragged grown=small/sequence_grown optional=small/optional_ends

status 0 "a length" "$burncc" $positions/model.onnx -o length.c --sequence x=3 --dim k=3
grep -q 'input x is a sequence of 3: x_0, x_1, x_2$' length.h
result $? "the header names the parameters of x"
grep -q 'output w is a sequence of 4: w_0, w_1, w_2, w_3$' length.h
result $? "and those of w"
status 0 "shapes" "$burncc" $ragged/model.onnx -o ragged.c --sequence 'x=[4],[0],[7]'
grep -q 'reads    x_2: f32\[7\]' ragged.h
result $? "an element of 7"
status 0 "no elements" "$burncc" $ragged/model.onnx -o none.c --sequence x=0
status 0 "no length" "$burncc" $ragged/model.onnx -o one.c
says 'note: sequence x is taken to have one element'

status 0 "every length up to a bound, in one program" "$burncc" verify $positions/model.onnx --sequence x=1..5 --dim k=3
[ "$(grep -c '^pass .*[0-9]$' out)" = 3 ]
result $? "all data sets pass, nothing is frozen"
status 0 "a loop over it" "$burncc" verify $grown/model.onnx --sequence x=0..32
[ "$(grep -c '^pass .*[0-9]$' out)" = 3 ]
result $? "all data sets pass, nothing is frozen"
status 0 "its header" "$burncc" $grown/model.onnx -o grown.c --sequence x=0..32
grep -q 'size     n_x_length: x_length, 0 to 32' grown.h
result $? "a size"
status 1 "data that is longer" "$burncc" verify $grown/model.onnx --sequence x=0..2
says '^pass .*data=test_data_set_1$'
status 1 "elements of different shapes" "$burncc" verify $ragged/model.onnx --sequence x=0..4
says 'needs elements of one shape'
status 1 "a shape that the model has not" "$burncc" $grown/model.onnx --sequence 'x=0..4[2]'

python3 - <<'END'
import struct
for i in range(2):
    data = struct.pack("<6f", *[10 * i + k for k in range(6)])
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    header += b" " * (117 - len(header)) + b"\n"
    open(f"e{i}.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
open("p.txt", "w").write("-1")
END
status 0 "elements from files" "$burncc" run $positions/model.onnx --input x=e0.npy --input x=e1.npy --input p=p.txt
says '^w_2: f32\[2,3\]'
says ' 10 11 12 13 14 15'
status 0 "the same, of any length" "$burncc" run $positions/model.onnx --input x=e0.npy --input x=e1.npy \
    --input p=p.txt --sequence x=1..4
says '^w: f32\[3,2,3\]'
says ' 10 11 12 13 14 15'
status 0 "a whole sequence" "$burncc" run $positions/model.onnx --input x=$positions/test_data_set_2/input_0.pb \
    --input p=p.txt
says '^w_4: f32\[2,3\]'
status 0 "optionals that are not given" "$burncc" run $optional/model.onnx \
    --input x=$optional/test_data_set_0/input_0.pb
silent '^same'
status 0 "one that is" "$burncc" run $optional/model.onnx --input x=$optional/test_data_set_0/input_0.pb \
    --input o=$optional/test_data_set_0/input_1.pb
says '^same: f32\[3\]'
status 0 "data that holds what --absent denies" "$burncc" verify $optional/model.onnx --absent o --absent s
status 0 "absent" "$burncc" $optional/model.onnx -o absent.c --absent o --absent s
grep -q 'input o is an optional that holds nothing' absent.h
result $? "the header says so"

status 2 "an unknown sequence" "$burncc" $positions/model.onnx --sequence y=3
says 'no input of this name that is a sequence'
status 2 "a sequence twice" "$burncc" $positions/model.onnx --sequence x=3 --sequence x=4
status 2 "no optional" "$burncc" $positions/model.onnx --absent x --sequence x=2
for wrong in x x= =3 x=-1 x=4097 'x=[2,3],' 'x=[2,3' 'x=[2,,3]' x=3..1 x=1.. 'x=1..3[' 'x=1..3[2]]' \
    'x=[1,1,1,1,1,1,1,1,1]'; do
    status 2 "--sequence $wrong" "$burncc" $positions/model.onnx --sequence "$wrong"
done
finish
