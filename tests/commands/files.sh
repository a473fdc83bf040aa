#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What is written, and what is not: outputs, their names, damaged models, disks that are full.
source "$(dirname "$0")/tap.sh"

mkdir -p out.c.d
status 0 "compile" "$burncc" scores.onnx -o out.c.d/net.c
grep -q 'int net_run(' out.c.d/net.h
result $? "the functions are named after the output"
cp out.c.d/net.c first.c
status 0 "compile again" "$burncc" scores.onnx -o out.c.d/net.c
cmp -s first.c out.c.d/net.c
result $? "the same input gives the same bytes"
status 0 "default output" "$burncc" scores.onnx
[ -s scores.c ] && [ -s scores.h ]
result $? "scores.c and scores.h"
rm -f scores.c scores.h
status 0 "name" "$burncc" scores.onnx -o b.c --name lenet
grep -q 'int lenet_run(' b.h
result $? "--name names the functions"
status 0 "large weights" "$burncc" large.onnx -o large.c --embed-limit 4K
[ -s large.bin ]
result $? "they are in large.bin"
status 0 "large parameters" "$burncc" scores.onnx --train -o apart.c --embed-limit 0
grep -q 'scores_initial\|apart_params_init' apart.c apart.h
[ $? = 1 ] && grep -q 'apart_params_load(params, path) reads them' apart.h && [ "$(dd if=apart.safetensors bs=8 skip=1 \
    count=1 2>dd.err | cut -c1-2)" = '{"' ]
result $? "they are in apart.safetensors, which the header names"
status 0 "small parameters" "$burncc" scores.onnx --train -o together.c
grep -q 'void together_params_init' together.h
result $? "they are in the C file"
absent together.safetensors
status 0 "dump" "$burncc" scores.onnx --dump import
says 'MatMul'
absent scores.c scores.h
status 0 "dump of training" "$burncc" scores.onnx --train --dump import
says 'graph predict'
says 'Gradient'
says 'graph update'
absent scores.c scores.h
status 0 "dump of a phase" "$burncc" scores.onnx --train --dump grad
says 'graph gradients'
status 0 "dump of a pass that runs more than once" "$burncc" scores.onnx --dump simplify
grep -E '^; after simplify, pass [0-9]+ of (CANON|LOWER)$' out | sort -u >times
[ "$(grep -c '^graph' out)" = 4 ] && [ "$(wc -l <times)" = 4 ]
result $? "it says which time"
status 0 "the same of training" "$burncc" scores.onnx --train --dump cse
says '^; after cse, pass [0-9]+ of CANON again$'
status 0 "report" "$burncc" scores.onnx -o b.c --report
says 'workspace'

status 0 "the plan alone" "$burncc" scores.onnx --target plan
grep -Fxq '    %3[i0] = sum[i1](load(%1, i1) * load(%0, i1 * 5 + i0))' scores.plan && grep \
    -Fxq '    %0 f32[4,5]: weights from byte 0' scores.plan
result $? "its loops and places"
cat >cell.txt <<'EOF'
graph cell(%0 x: f32[3,1,8], %1 w: f32[1,16,8], %2 r: f32[1,16,4], %3 s: f32[4], %4 b: f32[4]) {
  %5, %6, %7 = LSTM(%0, %1, %2) {activations="Sigmoid Tanh Tanh"}
  %8 = LayerNorm(%5, %3, %4) {axis=3, epsilon=1e-05}
  %9 = Relu(%8)
  return %9 y
}
EOF
status 0 "composites" "$burncc" cell.txt --target plan
grep -Eq '%5, %6, %7 = LSTM\(%0, %1, %2\)(   ; |$)' cell.plan && grep \
    -Eq '%8 = LayerNorm\(%5, %3, %4\)(   ; |$)' cell.plan
result $? "they stay where the back end claims them"
status 0 "composites that nobody claims" "$burncc" cell.txt --dump passes
! grep -qE 'LSTM\(|LayerNorm\(' out
result $? "they are expanded"
status 0 "the plan of a training step" "$burncc" scores.onnx --target plan --train -o step.plan
[ "$(grep -c '^step_.*: plan' step.plan)" = 5 ]
result $? "a plan for each of its programs"
absent scores.c scores.h step.c

for name in math string stdio Threads burn; do
    status 2 "a header of this name" "$burncc" scores.onnx -o $name.c
    says "^burncc: error: $name.h is a name of the C library's or the runtime's"
    absent $name.c $name.h
done
status 2 "the runtime's names" "$burncc" scores.onnx -o burn_net.c
says "names that begin with burn_ are the runtime's"
status 2 "the runtime's names" "$burncc" scores.onnx -o net.c --name burn
cp scores.onnx burn.onnx
status 0 "a model of this name" "$burncc" run burn.onnx --input image=image.npy
status 0 "a model of this name as ONNX" "$burncc" burn.onnx -o burn_two.onnx
echo 'int mine;' >mine.c
cp mine.c mine.h
for file in mine.c mine.onnx lone.c weights.safetensors; do
    stem=${file%.*}
    [ $stem != lone ] || echo 'int mine;' >lone.h
    [ $file = mine.onnx ] && cp scores.onnx $file
    [ $stem != weights ] || printf '%s' '12345678{"__metadata__":{"format":"pt"}}' >$file
    cp $file before 2>/dev/null || rm -f before
    status 4 "$file is somebody's" "$burncc" scores.onnx -o $file
    says "^($file|lone.h): error: this file is there and burncc did not write it; choose another name, or --force"
    [ ! -e before ] && absent $file || cmp -s before $file
    result $? "it is as it was"
    status 0 "$file by force" "$burncc" scores.onnx -o $file --force
    status 0 "$file again" "$burncc" scores.onnx -o $file
done
: >mine.c
status 0 "an empty file" "$burncc" scores.onnx -o mine.c
status 0 "layers" "$burncc" layers/layers.onnx -o layers.c
calls=$(grep -oE '^    layers_k[0-9a-zA-Z_]+\(' layers.c)
[ "$(wc -l <<<"$calls")" = 3 ] && [ "$(sort -u <<<"$calls" | wc -l)" = 1 ]
result $? "layers of one shape call one function"
status 0 "layers, their numbers" "$burncc" verify layers/layers.onnx --quiet
status 0 "columns" "$burncc" columns/columns.onnx -o columns.c
calls=$(grep -oE '^    columns_k[0-9a-zA-Z_]+\(' columns.c)
[ "$(wc -l <<<"$calls")" = 15 ] && [ "$(sort -u <<<"$calls" | wc -l)" = 3 ] && \
    [ "$(grep -c '^BURN_APART static' columns.c)" = 3 ]
result $? "columns and parts of one shape call one function"
status 0 "columns, their numbers" "$burncc" verify columns/columns.onnx --quiet

status 4 "no such model" "$burncc" missing.onnx -o bad.c
says 'missing.onnx: error: cannot open'
status 4 "a folder as model" "$burncc" . -o bad.c
status 1 "cut model" "$burncc" cut.onnx -o bad.c
says 'cut.onnx: error: (not an ONNX file, or a damaged one|the file is cut short)'
status 1 "text as model" "$burncc" text.onnx -o bad.c
status 1 "unknown operators" "$burncc" unknown.onnx -o bad.c
says 'Frobnicate'
says 'Defrobnicate'
says 'unknown.onnx: node 0 "[^"]+" \(Frobnicate\): error: .* is not supported; `burncc ops` lists those that are'
status 1 "shapes that do not fit" "$burncc" mismatch.onnx -o bad.c
says 'mismatch.onnx: node 1 "[^"]+" \(MatMul\): error: cannot multiply f32\[2,3\] by f32\[4,5\]: .* must be'
status 4 "weights' file is missing" "$burncc" absent.onnx -o bad.c
says 'absent.onnx: error: tensor "w": cannot open external data "absent.bin" .* copy it there'
status 1 "weights' file is cut" "$burncc" short.onnx -o bad.c
says 'short.onnx: error: tensor "w": .* external data "short.bin" of 7 bytes; copy it again'
status 0 "size without a bound" "$burncc" expand/expand.onnx -o expand.c
says 'Expand.: note: dimension y_dim_0 depends on the values of inputs and is taken to be at most 1; '\
'--dim y_dim_0=0..N gives another bound'
status 4 "no such folder" "$burncc" scores.onnx -o nowhere/bad.c
status 4 "model that is no file" "$burncc" /dev/null -o bad.c

if [ -w /dev/full ]; then
    ln -s /dev/full full.c
    status 4 "full disk" "$burncc" scores.onnx -o full.c
    says 'full.c: error: cannot write: No space left'
    absent full.h full.bin
    for file in header.h weights.bin; do
        ln -s /dev/full $file
        status 4 "full disk for $file" "$burncc" large.onnx -o ${file%.*}.c --embed-limit 4K
        says "$file: error: cannot write"
        mv $file full.link
        absent ${file%.*}.c ${file%.*}.h ${file%.*}.bin
    done
    "$burncc" --help >/dev/full 2>err
    [ $? = 4 ]
    result $? "full standard output: status 4"
    "$burncc" inspect scores.onnx >/dev/full 2>err
    [ $? = 4 ]
    result $? "full standard output of inspect: status 4"
fi
cat >wide.c <<'END'
#include <burncc/model.h>
MODEL(wide)
{
    Tensor x = input("x", F32, 1, 64, 32, 32);
    output("y", conv2d(x, "c", 64, 3, .padding = 1));
}
END
status 0 "weights that grow" "$burncc" wide.c -o wide_out.c --target x86-64-v3
says 'wide.c: note: weights take [0-9.]+ .iB, [0-9.]+ times the model.s 144.2 KiB, .*; --optimize size keeps them'
status 0 "that do not" "$burncc" wide.c -o wide_out.c --target x86-64-v3 --optimize size
silent 'weights take'
leftover=$(find . -name '*.tmp' | head -1)
[ -z "$leftover" ]
result $? "no temporary is left beside outputs"
# ---------------------------------------------------------------- --depfile
mkdir -p 'dep/some folder'
cd dep || exit 1
printf '#include <burncc/model.h>\n#include "some folder/width.h"\nMODEL(net) {\n%s\n}\n' \
    '    output("y", linear(input("x", F32, 1, 999), "fc", config("width", WIDTH)));' >net.c
echo '#define WIDTH 3' >'some folder/width.h'
echo '{ "width": 3 }' >net.json
printf '%s: \\\n  net.c \\\n  some\\ folder/width.h \\\n  net.json' out.c >want.d
printf '\nnet.c:\nsome\\ folder/width.h:\nnet.json:\n' >>want.d
status 0 "a description" "$burncc" net.c --config net.json -o out.c --depfile out.d
cmp -s out.d want.d
result $? "its rule names headers and settings"
status 0 "its parameters" "$burncc" net.c -o 'w#$.safetensors' --depfile w.d
says_file() {
    grep -Fq -- "$2" "$1"
    result $? "$1 has $2"
}
says_file w.d 'w\#$$.safetensors: \'
status 0 "with weights" "$burncc" net.c --weights 'w#$.safetensors' -o net.onnx --depfile onnx.d --embed-limit 0
says_file onnx.d 'net.onnx: \'
says_file onnx.d '  w\#$$.safetensors'
status 0 "a model with external data" "$burncc" net.onnx -o external.c --depfile external.d
says_file external.d '  net.onnx.data'
head -c 40 ../scores.onnx >bad.onnx
status 2 "of nothing" "$burncc" net.onnx --dump passes --depfile none.d
status 1 "a model that is wrong" "$burncc" bad.onnx -o none.c --depfile none.d
status 4 "a rule that cannot be written" "$burncc" net.onnx -o other.c --depfile none/none.d
absent none.d
cd ..

finish
