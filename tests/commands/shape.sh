#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --shape: sizes that a model has fixed are others, or the run's. Values against what shapes.py computes, and of trained
# models, where they are, recorded items one by one against the same as a batch.
source "$(dirname "$0")/tap.sh"
models=${BURNCC_TEST_DATA:-$here/../../../shared}/models
python3 "$here/shapes.py" . "$models" || { echo "Bail out! shapes.py fails"; exit 1; }
root=$here/../..

for name in flat flat_old shuffled token state resized pooled whole same_rows unfolded halves expanded; do
    status 0 "$name: other sizes" "$burncc" verify $name/model.onnx --shape "$(cat $name/shape)"
    says '^pass '
done
for name in flat shuffled state; do
    status 0 "$name: a batch that the run is told" \
        "$burncc" verify $name/model.onnx --shape "$(cat $name/shape)" --dim batch=1..4
    says '^pass '
done
status 0 "code for any batch" "$burncc" flat/model.onnx --shape x=batch,2,3 --dim batch=1..8 -o flat.c
grep -q 'reads    x: f32\[batch,2,3\]' flat.h && grep -q 'n_batch: batch, 1 to 8' flat.h
result $? "the header says so"
status 0 "the file's size, where nothing else is said" "$burncc" flat/model.onnx --shape x=batch,2,3 -o flat.c
says 'note: dimension batch is taken as 1; --dim batch=N'
status 0 "its own" "$burncc" same_rows/model.onnx --shape x=batch,2 -o rows.c
says 'note: dimension batch is taken as 2; '
status 0 "what it is" "$burncc" inspect flat/model.onnx --shape x=4,2,3
says '^inputs +x: f32\[4,2,3\]'
status 0 "the model with it" "$burncc" flat/model.onnx --shape x=batch,2,3 -o flat_batch.onnx
status 0 "which needs no --shape" "$burncc" verify flat_batch.onnx --data flat
says '^pass '
status 0 "training in batches" "$burncc" "$root/models/digits/digits.onnx" --train --shape image=batch,1,28,28 \
    --dim batch=8 -o digits.c
says_header() { grep -q -- "$1" digits.h; result $? "the header says $1"; }
says_header 'image\[8\*1\*28\*28\]'

status 1 "another product" "$burncc" flat/model.onnx --shape x=batch,2,5 -o bad.c
says 'node 1 "matmul_y" \(MatMul\): error: cannot multiply'
says 'note: of the sizes that --shape changes the graph takes these: --shape x=batch,2,3$'
status 1 "nothing fits" "$burncc" flat/model.onnx --shape x=1,2,5 -o bad.c
says 'note: the graph takes none of the sizes that --shape changes'
status 1 "windows" "$burncc" windows/model.onnx --shape "$(cat windows/shape)" -o bad.c
says '"reshape_y" \(Reshape\): error: the model reads f32\[1,28,2\] as f32\[1,4,7,2\] here; how it is to read'
says 'how it is to read f32\[1,35,2\] cannot be told'
status 1 "a batch that moves" "$burncc" moved/model.onnx --shape "$(cat moved/shape)" -o bad.c
says '\(Reshape\): error: the model reads f32\[1,3,2\] as f32\[3,1,2\] here'
status 1 "a batch that is dropped" "$burncc" dropped/model.onnx --shape "$(cat dropped/shape)" -o bad.c
says '\(Squeeze\): error: drops dimension 0, which is 1 in the model and 2 now'
status 1 "parts of other sizes" "$burncc" parts/model.onnx --shape "$(cat parts/shape)" -o bad.c
says '\(Split\): error: splits axis 1 into sizes of its own'
status 0 "the first of one" "$burncc" first/model.onnx --shape "$(cat first/shape)" -o first.c
says '\(Gather\): warning: takes the first of axis 0, .*--silence shape'
absent bad.c bad.h

for wrong in x x= =1,2 x=1,,3 x=1,-2 x=1,a+b; do
    status 2 "--shape $wrong" "$burncc" flat/model.onnx --shape $wrong
    says 'wants an input and all of its sizes, numbers or names, such as image=batch,3,224,224'
done
status 2 "another input" "$burncc" flat/model.onnx --shape y=1,2,3
says '--shape y: the model has no such input; its inputs: x$'
status 2 "another rank" "$burncc" flat/model.onnx --shape x=1,6
says '--shape x: the input has 3 dimensions, not 2'
status 2 "twice" "$burncc" flat/model.onnx --shape x=1,2,3 --shape x=2,2,3
status 2 "a description" "$burncc" "$root/models/lenet.c" --shape image=4,1,28,28
says '--shape is for ONNX models; .* settings \(--set\) and symbols \(--dim\)'

[ -d joined ] || echo "# SKIP trained models: they are not there"
for folder in joined/*/; do
    [ -d "$folder" ] || continue
    status 0 "$(basename $folder): recorded items as a batch" \
        "$burncc" verify ${folder}model.onnx --data $folder --shape "$(cat ${folder}shape)"
    says '^pass '
done
finish
